"""Makes three-units.onnx and its two variations: the networks that docs/maths.md works out by hand.

Usage: make_three_units.py FOLDER

Needs onnx, which `make test` installs into .venv.
"""

import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

# Name: weights and biases of the three hidden units, weights and bias of the output.
NETWORKS = {
    "three-units": ([[-1], [1], [2]], [-1, 1, -1], [[5, 1, 1]], [0]),
    "three-units-merge": ([[1], [3], [2]], [1, 2, -1], [[1, 1, 1]], [0]),
    "three-units-carrier": ([[1, 0], [0, 1], [1, -1]], [1, 1, 0], [[1, 1, 1]], [0]),
}


def network(name, *arrays):
    names = ["hidden.weight", "hidden.bias", "output.weight", "output.bias"]
    constants = [numpy_helper.from_array(np.array(values, np.float32), n) for n, values in zip(names, arrays)]
    nodes = [
        helper.make_node("Gemm", ["x", *names[:2]], ["g"], "hidden", transB=1),
        helper.make_node("Relu", ["g"], ["h"], "relu"),
        helper.make_node("Gemm", ["h", *names[2:]], ["y"], "output", transB=1),
    ]
    inputs = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", len(arrays[0][0])])
    outputs = helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1])
    graph = helper.make_graph(nodes, name, [inputs], [outputs], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8, producer_name="leo")


for name, arrays in NETWORKS.items():
    save(network(name, *arrays), pathlib.Path(sys.argv[1]) / f"{name}.onnx")
