"""Checks that models that Leo wrote are the models that it read.

Usage: compare.py BEFORE AFTER [BEFORE AFTER ...]

Each file after must pass onnx's checker and equal the file before in every field, except that external data
are inside it. Exits with 1 and a line for each that does not.
"""

import sys

import onnx
from onnx.external_data_helper import uses_external_data


def embedded(path):
    model = onnx.load(path)
    for tensor in model.graph.initializer:
        if uses_external_data(tensor):
            raise ValueError("external data were not loaded")
        tensor.ClearField("data_location")
    return model


def difference(before, after):
    try:
        onnx.checker.check_model(after, full_check=True)
    except onnx.checker.ValidationError as error:
        return f"does not pass onnx.checker: {error}"
    before, after = embedded(before), embedded(after)
    for old, new in zip(before.graph.initializer, after.graph.initializer, strict=True):
        if old.SerializeToString(deterministic=True) != new.SerializeToString(deterministic=True):
            return f"has another tensor {old.name}"
    if before.SerializeToString(deterministic=True) != after.SerializeToString(deterministic=True):
        return "has equal tensors, but differs elsewhere"
    return None


paths = sys.argv[1:]
found = {after: difference(before, after) for before, after in zip(paths[::2], paths[1::2], strict=True)}
for path, what in found.items():
    if what:
        print(path, what)
sys.exit(any(found.values()))
