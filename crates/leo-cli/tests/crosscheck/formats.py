"""Makes networks whose files have what exporters leave in them, and compares pairs of networks in ONNX Runtime.

Usage: formats.py make FOLDER
       formats.py compare FIRST SECOND LO HI SHAPE...

The first writes NAME.onnx files into FOLDER: constants that are listed as inputs, too; an input with open sizes, from
which the file computes a shape; weights that are denormal. The second prints how far outputs of two files are apart, on
random inputs of each shape (such as 1,3,8,8), in front of a softmax: a line for each shape, a number for each output.
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)
RANDOM = np.random.default_rng(7)


def floats(*shape):
    return (RANDOM.normal(size=shape) / np.sqrt(np.prod(shape[1:]) or 1)).astype(np.float32)


def save(folder, name, nodes, constants, shape, outputs, ir_version=8, listed=False, opset=13):
    constants = {key: np.asarray(value) for key, value in constants.items()}
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)]
    if listed:
        kinds = {key: helper.np_dtype_to_tensor_dtype(value.dtype) for key, value in constants.items()}
        inputs += [helper.make_tensor_value_info(key, kinds[key], value.shape) for key, value in constants.items()]
    made = [helper.make_tensor_value_info(output, TensorProto.FLOAT, [None, None]) for output in outputs]
    tensors = [numpy_helper.from_array(value, key) for key, value in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, made, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)
    onnx.checker.check_model(model)
    onnx.save(model, folder / f"{name}.onnx")


def convolutional(width=8, dead=4):
    """Two convolutions, of whose first the last channels are dead, and what comes of them as a vector of 5."""
    bias = floats(width)
    bias[width - dead :] = -50
    constants = {"w1": floats(width, 3, 3, 3), "b1": bias, "w2": floats(5, width, 1, 1), "b2": floats(5)}
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["g1"], pads=[1, 1, 1, 1], name="conv1"),
        helper.make_node("Relu", ["g1"], ["h1"], name="relu1"),
        helper.make_node("Conv", ["h1", "w2", "b2"], ["g2"], name="conv2"),
    ]
    return nodes, constants


def dense():
    constants = {"w1": floats(3, 8), "b1": floats(8), "w2": floats(8, 2), "b2": floats(2)}
    constants["b1"][5:] = -50
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["g"], name="fc1"),
        helper.make_node("Relu", ["g"], ["h"], name="relu1"),
        helper.make_node("Gemm", ["h", "w2", "b2"], ["y"], name="fc2"),
    ]
    return nodes, constants


def make(folder):
    mean = [helper.make_node("GlobalAveragePool", ["g2"], ["m"]), helper.make_node("Flatten", ["m"], ["y"])]
    nodes, constants = convolutional()
    save(folder, "listed", nodes + mean, constants, ["N", 3, 6, 6], ["y"], listed=True)

    # As many rows as there are samples, of so many numbers as its height and width make, which the file works out.
    nodes, constants = convolutional()
    constants |= {"zero": np.array(0), "two": np.array(2), "three": np.array(3), "five": np.array([5]), "first": [0]}
    nodes += [
        helper.make_node("Shape", ["g2"], ["s"]),
        helper.make_node("Gather", ["s", "two"], ["height"]),
        helper.make_node("Gather", ["s", "three"], ["width"]),
        helper.make_node("Mul", ["height", "width"], ["area"]),
        helper.make_node("Unsqueeze", ["area", "first"], ["areas"]),
        helper.make_node("Gather", ["s", "zero"], ["batch"]),
        helper.make_node("Unsqueeze", ["batch", "first"], ["batches"]),
        helper.make_node("Concat", ["batches", "five", "areas"], ["target"], axis=0),
        helper.make_node("Reshape", ["g2", "target"], ["r"]),
        helper.make_node("ReduceMean", ["r"], ["y"], axes=[2], keepdims=0),
    ]
    save(folder, "open", nodes, constants, ["N", 3, "H", "W"], ["y"])
    nodes, constants = convolutional()
    save(folder, "unnamed", nodes + mean, constants, [None, 3, None, None], ["y"])

    tiny = np.float32(1e-40)
    nodes, constants = convolutional()
    constants["w1"][0, 0, 0, :2] = [tiny, -tiny]
    constants["w1"][7, 0, 0, :2] = tiny  # Of a filter that goes
    constants["w2"][1, 2] = tiny
    constants["b2"][0] = tiny
    save(folder, "denormal-convolution", nodes + mean, constants, ["N", 3, 6, 6], ["y"])
    nodes, constants = convolutional(dead=0)
    constants["w2"][1, 2] = tiny
    save(folder, "denormal-alone", nodes + mean, constants, ["N", 3, 6, 6], ["y"])
    nodes, constants = dense()
    constants["w1"][0, 0] = constants["w2"][1, 1] = tiny
    constants["w1"][0, 6] = tiny  # Of a unit that goes
    save(folder, "denormal-dense", nodes, constants, ["N", 3], ["y"])
    nodes, constants = dense()
    constants["b1"][:], constants["w2"][1, 1] = 0, tiny
    save(folder, "denormal-dense-alone", nodes, constants, ["N", 3], ["y"])
    nodes, constants = dense()
    constants["b1"][:], constants["w2"][1, 1] = 0, tiny
    constants["w3"] = np.full(2, tiny)  # What comes after the network keeps its constants
    after = [helper.make_node("Softmax", ["y"], ["p"]), helper.make_node("Mul", ["p", "w3"], ["z"])]
    save(folder, "denormal-tail", nodes + after, constants, ["N", 3], ["z"])


def session(path):
    """What comes before a softmax, or all of it."""
    model = onnx.load(path)
    ends = [node for node in model.graph.node if node.op_type == "Softmax"]
    if ends:
        del model.graph.output[:]
        names = dict.fromkeys(node.input[0] for node in ends)
        model.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    data = model.SerializeToString()
    return onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])


def compare(first, second, lo, hi, *shapes):
    sessions = [session(path) for path in (first, second)]
    for shape in shapes:
        shape, lowest, highest = [int(size) for size in shape.split(",")], float(lo), float(hi)
        largest = 0.0
        for _ in range(8):
            x = RANDOM.uniform(lowest, highest, shape).astype(np.float32)
            a, b = (s.run(None, {s.get_inputs()[0].name: x}) for s in sessions)
            apart = [np.abs(np.float64(p) - np.float64(q)).max() for p, q in zip(a, b, strict=True)]
            largest = np.maximum(largest, apart)
        print(" ".join(f"{number:.17g}" for number in largest))


if sys.argv[1] == "make":
    make(pathlib.Path(sys.argv[2]))
else:
    compare(*sys.argv[2:])
