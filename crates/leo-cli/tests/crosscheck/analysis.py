"""Holds reports of `leo analyze --json` to their schema, to their files for NumPy, and to ONNX Runtime.

Usage: analysis.py SCHEMA [MODEL SAMPLES REPORT BOUNDS ...]

Each report must be of SCHEMA. BOUNDS (.npz) must hold the same numbers. Every value that the report names is computed
for SAMPLES (.npy), and each element of it must lie between its bounds. Prints how many networks and values there were.
"""

import json
import pathlib
import sys

import jsonschema
import numpy as np
import onnx
import onnxruntime

ROUNDING = 1e-3

schema, *files = sys.argv[1:]
schema = json.loads(pathlib.Path(schema).read_text())
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
# A schema that lets everything pass would not be noticed otherwise.
for broken in [{}, {"version": 1}, []]:
    assert not validator.is_valid(broken)


def equal(array, numbers):
    numbers = np.array([np.nan if number is None else number for number in numbers], dtype=float)
    assert array.dtype == np.float64 and np.array_equal(np.where(np.isfinite(array), array, np.nan), numbers, True)


def run(model, samples, names):
    """The values of these names, as ONNX Runtime computes them."""
    model = onnx.load(model)
    there = {output.name for output in model.graph.output}
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in sorted(names - there))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    found = session.run(sorted(names), {session.get_inputs()[0].name: samples})
    return dict(zip(sorted(names), found, strict=True))


looked_at = 0
for model, samples, report, bounds in zip(*[iter(files)] * 4, strict=True):
    report = json.loads(pathlib.Path(report).read_text())
    validator.validate(report)
    arrays = np.load(bounds, allow_pickle=False)
    samples = np.load(samples)
    named = []
    for index, layer in enumerate(report["layers"]):
        assert layer["index"] == index and layer["width"] == len(layer["units"]) == int(np.prod(layer["shape"]))
        words = {"inactive": -1, "active": 1, "unstable": 0, "undecided": 2}
        assert layer["status"] == [words[unit["status"]] for unit in layer["units"]]
        for side in ("lower", "upper"):
            assert layer[side] == [unit[side] for unit in layer["units"]]
            equal(arrays[f"{side}_{index}"], layer[side])
        equal(arrays[f"status_{index}"], layer["status"])
        named.append((layer["pre_activation"], layer))
        relu = {"lower": np.maximum(layer["lower"], 0), "upper": np.maximum(layer["upper"], 0)}
        named.append((layer["value"], {**layer, **relu}))
    for index, output in enumerate(report["outputs"]):
        assert output["index"] == index
        equal(arrays[f"output_lower_{index}"], output["lower"])
        equal(arrays[f"output_upper_{index}"], output["upper"])
        named += [(output["value"], output), (output["name"], output)]
    equal(arrays["input_lower"], report["domain"]["lower"])
    equal(arrays["input_upper"], report["domain"]["upper"])
    named = [(name, known) for name, known in named if name is not None]
    values = run(model, samples, {name for name, _ in named})
    for name, known in named:
        value, shape = values[name].astype(float), known["shape"]
        if list(value.shape[1:]) == shape:
            rows = value.reshape(len(value), -1)
        elif list(value.shape) == shape:
            rows = value.reshape(1, -1)
        else:
            continue  # the batch is somewhere else
        lower, upper = np.array(known["lower"], dtype=float), np.array(known["upper"], dtype=float)
        slack = ROUNDING * (1 + np.abs(rows))
        assert np.all(rows >= lower - slack) and np.all(rows <= upper + slack), (model, name)
        looked_at += 1
print(len(files) // 4, looked_at)
