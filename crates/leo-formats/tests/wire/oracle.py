"""What protobuf and ONNX Runtime make of files that Leo has read or refused.

Usage: oracle.py STREAM FOLDER

STREAM holds for each file, after the number of its bytes as 4 bytes, little-endian: the file; the file as Leo writes it
back, empty if Leo refuses it; and what Leo computes, a line for each output: its name in hexadecimal, and its numbers.
FOLDER is where external data lie, and where files are put to be run. Prints a count of each outcome, and a line
"DIFFERENT index reason" for each file that both Leo and protobuf read, but not as the same messages, or that both Leo
and ONNX Runtime run, but not to the same numbers. ONNX Runtime may crash on such files: it runs in a process of its
own, and a file that ends that process counts as refused.
"""

import collections
import os
import resource
import signal
import struct
import subprocess
import sys

MEMORY = 8 << 30
SECONDS = 60
HUGE = 1e30


def entries(path):
    with open(path, "rb") as stream:
        while True:
            parts = []
            for _ in range(3):
                head = stream.read(4)
                if not head:
                    return
                parts.append(stream.read(struct.unpack("<I", head)[0]))
            yield parts


def protobuf_differs(onnx, file, written):
    """Why protobuf sees other messages in the file than in what Leo made of it; None if it does not."""
    try:
        seen = onnx.ModelProto.FromString(file)
    except Exception as error:
        return f"protobuf refuses it: {error}"
    again = onnx.ModelProto.FromString(written)
    return None if seen == again else "protobuf sees other messages"


def samples(numpy, count):
    return ((numpy.arange(count) * 37 + 11) % 64) / 32.0 - 1.0


def run(numpy, onnxruntime, path):
    """The outputs by their names, or None if ONNX Runtime refuses the file."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
        (wanted,) = session.get_inputs()
        shape = [extent if isinstance(extent, int) and extent > 0 else 2 for extent in wanted.shape]
        kind = {"tensor(float)": "f4", "tensor(double)": "f8", "tensor(float16)": "f2"}[wanted.type]
        x = samples(numpy, int(numpy.prod(shape))).reshape(shape).astype(kind)
        outputs = session.run(None, {wanted.name: x})
        return {output.name: values for output, values in zip(session.get_outputs(), outputs, strict=True)}
    except Exception:
        return None


def runtime_differs(numpy, outputs, computed):
    for line in computed.decode().splitlines():
        name, *numbers = line.split(" ")
        name = bytes.fromhex(name).decode()
        if name not in outputs:
            return f"no output {name!r}"
        theirs = numpy.asarray(outputs[name]).astype("f8").ravel()
        ours = numpy.array([float(number) for number in numbers])
        if ours.shape != theirs.shape:
            return f"output {name!r} has {theirs.size} numbers, not {ours.size}"
        # Beyond that, single precision overflows in one order of summation and not in another.
        usual = numpy.isfinite(ours) & numpy.isfinite(theirs) & (abs(ours) < HUGE) & (abs(theirs) < HUGE)
        if (numpy.isfinite(ours) != numpy.isfinite(theirs))[abs(numpy.nan_to_num(ours)) < HUGE].any():
            return f"output {name!r} is {theirs.tolist()}, not {ours.tolist()}"
        scale = max([1.0, *abs(theirs[usual])])
        half = numpy.asarray(outputs[name]).dtype == numpy.float16
        if (abs(ours - theirs)[usual] > (1e-2 if half else 1e-4) * scale).any():
            return f"output {name!r} is {theirs.tolist()}, not {ours.tolist()}"
    return None


def work(path, folder, start):
    import numpy
    import onnx
    import onnxruntime

    # ONNX Runtime prints on its own.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    place = f"{folder}/mutant.onnx"
    for index, (file, written, computed) in enumerate(entries(path)):
        if index < start:
            continue
        print(f"{index} begun", file=answers, flush=True)
        signal.alarm(SECONDS)
        different = protobuf_differs(onnx, file, written) if written else None
        with open(place, "wb") as target:
            target.write(file)
        if not different:
            outputs = run(numpy, onnxruntime, place)
            different = written and outputs is not None and runtime_differs(numpy, outputs, computed)
            ours, theirs = "taken" if written else "refused", "refused" if outputs is None else "taken"
        answer = f"{ours} by Leo, {theirs} by ONNX Runtime" if not different else "DIFFERENT " + " ".join(different.split())
        print(f"{index} {answer}", file=answers, flush=True)


def main(path, folder):
    counts, start = collections.Counter(), 0
    while True:
        worker = subprocess.Popen(
            [sys.executable, __file__, path, folder, str(start)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        begun = None
        for line in worker.stdout:
            index, what = line.rstrip("\n").split(" ", 1)
            if what == "begun":
                begun = int(index)
                continue
            begun = None
            counts["different" if what.startswith("DIFFERENT") else what] += 1
            if what.startswith("DIFFERENT"):
                print(f"DIFFERENT {index} {what.removeprefix('DIFFERENT ')}")
        if worker.wait() == 0 and begun is None:
            break
        if begun is None:
            sys.exit("ONNX Runtime cannot be started")
        counts["ended ONNX Runtime"] += 1
        start = begun + 1
    for what, count in sorted(counts.items()):
        print(f"{count} {what}")


if len(sys.argv) > 3:
    work(sys.argv[1], sys.argv[2], int(sys.argv[3]))
else:
    main(sys.argv[1], sys.argv[2])
