"""Makes models of many shapes, with samples and what ONNX Runtime computes for them.

Usage: models.py FOLDER

Writes NAME.onnx, NAME.x.npy and NAME.y.npy into FOLDER for every model, and prints one line for each:
its name, the output to compare, and the relative tolerance, separated by tabs.
"""

import pathlib
import sys
import warnings

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

random = np.random.default_rng(2020)
MODELS = {}

FLOAT, DOUBLE, HALF = TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16


def model(function):
    """Registers a function that makes a model; its name is the model's."""
    MODELS[function.__name__] = function
    return function


def weights(*shape, dtype=np.float32):
    return (random.normal(size=shape) / np.sqrt(shape[-1] if shape else 1)).astype(dtype)


class Graph:
    """An ONNX graph in the making."""

    def __init__(self, shape, opset=13, ir=8, elem=FLOAT, name="x"):
        self.nodes, self.constants, self.outputs = [], [], []
        self.opset, self.ir, self.elem = opset, ir, elem
        self.input = helper.make_tensor_value_info(name, elem, shape)
        self.count = 0

    def constant(self, array, raw=True):
        name = f"c{len(self.constants)}"
        array = np.asarray(array)
        if raw:
            tensor = numpy_helper.from_array(array, name)
        else:
            kind = helper.np_dtype_to_tensor_dtype(array.dtype)
            tensor = helper.make_tensor(name, kind, array.shape, array.flatten().tolist())
        self.constants.append(tensor)
        return name

    def add(self, operator, *inputs, outputs=1, **attributes):
        self.count += 1
        made = [f"v{self.count}" + ("" if i == 0 else f"_{i}") for i in range(outputs)]
        names = [self.constant(i) if isinstance(i, (np.ndarray, np.generic)) else i for i in inputs]
        node = helper.make_node(operator, names, made, name=f"{operator}_{self.count}", **attributes)
        self.nodes.append(node)
        return made[0]

    def dense(self, x, inner, outer, dtype=np.float32):
        return self.add("Gemm", x, weights(outer, inner, dtype=dtype), weights(outer, dtype=dtype), transB=1)

    def output(self, name, shape, elem=None):
        self.outputs.append(helper.make_tensor_value_info(name, elem or self.elem, shape))
        return self

    def build(self, inputs=()):
        graph = helper.make_graph(self.nodes, "g", [self.input, *inputs], self.outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=self.ir)


@model
def plain_softmax():
    g = Graph(["batch", 6])
    h = g.add("Relu", g.dense("x", 6, 8))
    g.output(g.add("Softmax", g.dense(h, 8, 3)), ["batch", 3])
    return g.build(), (5, 6)


@model
def every_field_is_used():
    """Names, doc strings, metadata and shapes that a round trip must keep."""
    g = Graph(["batch", 4])
    h = g.add("Relu", g.dense("x", 4, 5))
    g.output(g.dense(h, 5, 2), ["batch", 2])
    m = g.build()
    m.producer_name, m.producer_version, m.domain, m.model_version, m.doc_string = "p", "1.2", "d", 7, "model doc"
    m.graph.doc_string = "graph doc"
    helper.set_model_props(m, {"author": "nobody", "unicode": "löwe"})
    m.graph.value_info.append(helper.make_tensor_value_info(h, FLOAT, ["batch", 5]))
    m.graph.node[0].doc_string = "node doc"
    m.graph.input[0].doc_string = "input doc"
    m.graph.initializer[0].doc_string = "tensor doc"
    m.graph.input[0].type.denotation = "IMAGE"
    m.graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    m.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    for holder in (m.graph, m.graph.node[1], m.graph.initializer[1], m.graph.output[0]):
        if hasattr(holder, "metadata_props"):
            entry = holder.metadata_props.add()
            entry.key, entry.value = "k", "v"
    m.graph.quantization_annotation.add().tensor_name = h
    return m, (3, 4)


@model
def gemm_alpha_beta():
    g = Graph([None, 5], opset=9)
    h = g.add("Gemm", "x", weights(5, 7), weights(1, 7), alpha=0.3, beta=1.7)
    h = g.add("Gemm", g.add("Relu", h), weights(4, 7), weights(1), alpha=2.5, transB=1)
    g.output(h, [None, 4])
    return g.build(), (6, 5)


@model
def gemm_without_bias_in_newer_opsets():
    g = Graph(["N", 5], opset=17)
    h = g.add("Relu", g.add("Gemm", "x", weights(5, 4)))
    g.output(g.add("Gemm", h, weights(4, 2), np.float32(0.25)), ["N", 2])
    return g.build(), (4, 5)


@model
def gemm_transposes_its_input():
    g = Graph([4, 3])
    h = g.add("Gemm", "x", weights(4, 6), weights(3, 6), transA=1)
    g.output(g.add("Gemm", g.add("Relu", h), weights(6, 2), weights(3, 1)), [3, 2])
    return g.build(), (4, 3)


@model
def gemm_with_the_constant_on_the_left():
    g = Graph([5, 2])
    h = g.add("Relu", g.add("Gemm", weights(3, 5), "x", weights(3, 1)))
    g.output(g.add("Gemm", weights(3, 4), h, weights(4, 1), transA=1, beta=0.5), [4, 2])
    return g.build(), (5, 2)


@model
def matmul_over_positions():
    g = Graph(["N", 3, 4])
    h = g.add("Relu", g.add("Add", g.add("MatMul", "x", weights(4, 5)), weights(3, 5)))
    h = g.add("Flatten", h)
    g.output(g.add("MatMul", h, weights(15, 2)), ["N", 2])
    return g.build(), (4, 3, 4)


@model
def matmul_with_the_constant_on_the_left():
    g = Graph([5, 1])
    h = g.add("Relu", g.add("Add", g.add("MatMul", weights(4, 5), "x"), weights(4, 1)))
    g.output(g.add("MatMul", weights(2, 4), h), [2, 1])
    return g.build(), (5, 1)


@model
def matmul_on_the_left_within_a_batch():
    g = Graph(["N", 5, 3])
    h = g.add("Relu", g.add("MatMul", weights(4, 5), "x"))
    g.output(g.add("MatMul", h, weights(3)), ["N", 4])
    return g.build(), (2, 5, 3)


@model
def matmul_of_vectors():
    g = Graph([6])
    h = g.add("Relu", g.add("Add", g.add("MatMul", "x", weights(6, 4)), weights(4)))
    g.output(g.add("MatMul", h, weights(1, 4, 3)), [1, 3])
    return g.build(), (6,)


@model
def normalised_image():
    g = Graph(["N", 3, 4, 5])
    h = g.add("Div", "x", np.float32(255.0))
    h = g.add("Sub", h, weights(3, 1, 1))
    h = g.add("Div", h, np.abs(weights(1, 3, 1, 1)) + np.float32(0.5))
    h = g.add("Relu", g.dense(g.add("Flatten", h), 60, 8))
    g.output(g.add("LogSoftmax", g.dense(h, 8, 4)), ["N", 4])
    return g.build(), (3, 3, 4, 5)


def batch_normalization(g, x, channels):
    return g.add("BatchNormalization", x, weights(channels), weights(channels), weights(channels),
                 np.abs(weights(channels)) + np.float32(0.1), epsilon=1e-3)


@model
def batch_normalised_old():
    g = Graph(["N", 6], opset=9, ir=4)
    h = g.add("Relu", batch_normalization(g, g.dense("x", 6, 5), 5))
    g.output(batch_normalization(g, g.dense(h, 5, 3), 3), ["N", 3])
    return g.build(), (4, 6)


@model
def batch_normalised_image():
    g = Graph(["N", 3, 2, 4], opset=15)
    h = g.add("Relu", batch_normalization(g, "x", 3))
    g.output(g.dense(g.add("Flatten", h), 24, 3), ["N", 3])
    return g.build(), (4, 3, 2, 4)


@model
def normalised_across_what_looks_like_a_batch():
    g = Graph([2, 3], opset=15)
    h = g.add("Relu", batch_normalization(g, g.add("Transpose", "x"), 2))
    g.output(g.dense(h, 2, 4), [3, 4])
    return g.build(), (2, 3)


@model
def residual():
    g = Graph(["N", 6])
    a = g.add("Relu", g.dense("x", 6, 6))
    b = g.dense(g.add("Relu", g.dense(a, 6, 4)), 4, 6)
    c = g.add("Relu", g.add("Add", a, b))
    d = g.add("Sub", c, g.dense(c, 6, 6))
    g.output(g.dense(d, 6, 2), ["N", 2])
    return g.build(), (5, 6)


@model
def channels_last():
    g = Graph(["N", 4, 5, 3])
    h = g.add("Transpose", "x", perm=[0, 3, 1, 2])
    h = g.add("Reshape", h, np.array([0, -1], np.int64))
    h = g.add("Relu", g.dense(h, 60, 7))
    h = g.add("Reshape", h, np.array([-1, 7, 1], np.int64))
    h = g.add("Transpose", h, perm=[0, 2, 1])
    g.output(g.add("MatMul", h, weights(7, 2)), ["N", 1, 2])
    return g.build(), (3, 4, 5, 3)


@model
def squeezed_by_attributes():
    g = Graph(["N", 1, 6, 1], opset=11)
    h = g.add("Squeeze", "x", axes=[1, -1])
    h = g.add("Relu", g.dense(h, 6, 4))
    h = g.add("Unsqueeze", h, axes=[0, 3])
    h = g.add("Squeeze", h, axes=[0])
    g.output(g.add("Softmax", h, axis=1), ["N", 4, 1])
    return g.build(), (3, 1, 6, 1)


@model
def squeezed_by_inputs():
    g = Graph(["N", 1, 6, 1], opset=13)
    h = g.add("Squeeze", "x", np.array([1, 3], np.int64))
    h = g.add("Unsqueeze", h, np.array([0], np.int64))
    h = g.add("Relu", g.add("MatMul", h, weights(6, 4)))
    h = g.add("Squeeze", h, np.array([0], np.int64))
    g.output(g.add("Softmax", h, axis=-1), ["N", 4])
    return g.build(), (3, 1, 6, 1)


@model
def old_file_with_constants_as_inputs():
    g = Graph(["N", 4], opset=7, ir=3)
    h = g.add("Dropout", g.dense("x", 4, 6), ratio=0.5)
    h = g.add("Relu", g.add("Identity", h))
    bias = g.add("Constant", value=numpy_helper.from_array(weights(2), "bias"))
    h = g.add("Add", g.add("MatMul", h, g.constant(weights(6, 2), raw=False)), bias)
    g.output(g.add("Sigmoid", h), ["N", 2])
    inputs = [helper.make_tensor_value_info(t.name, t.data_type, t.dims) for t in g.constants]
    return g.build(inputs), (4, 4)


@model
def newer_dropout_and_constants():
    g = Graph(["N", 4], opset=13)
    h = g.add("Dropout", g.dense("x", 4, 6), np.float32(0.3), outputs=2)
    scale = g.add("Constant", value_float=0.5)
    shift = g.add("Constant", value_floats=[0.1, -0.2, 0.3, 0.4, -0.5, 0.6])
    h = g.add("Relu", g.add("Add", shift, g.add("Mul", scale, h)))
    g.output(g.add("Tanh", g.dense(h, 6, 2)), ["N", 2])
    return g.build(), (4, 4)


@model
def doubles():
    g = Graph(["N", 5], elem=DOUBLE)
    h = g.add("Relu", g.dense("x", 5, 6, np.float64))
    h = g.add("MatMul", h, g.constant(weights(6, 3, dtype=np.float64), raw=False))
    g.output(h, ["N", 3])
    return g.build(), (4, 5)


@model
def half_weights_cast_to_single():
    g = Graph(["N", 5])
    w = g.add("Cast", weights(5, 6, dtype=np.float16), to=FLOAT)
    v = g.add("Cast", g.constant(weights(6, 3, dtype=np.float16), raw=False), to=FLOAT)
    v = g.add("Transpose", g.add("Transpose", v, perm=[1, 0]))
    h = g.add("Relu", g.add("MatMul", "x", w))
    g.output(g.add("MatMul", h, v), ["N", 3])
    return g.build(), (4, 5)


@model
def halves_throughout():
    g = Graph(["N", 5], elem=HALF)
    h = g.add("Relu", g.dense("x", 5, 6, np.float16))
    g.output(g.dense(h, 6, 3, np.float16), ["N", 3])
    return g.build(), (4, 5), 1e-2


@model
def mixed_precision():
    g = Graph(["N", 5])
    h = g.add("Cast", "x", to=DOUBLE)
    h = g.add("Relu", g.dense(h, 5, 6, np.float64))
    g.output(g.dense(g.add("Cast", h, to=FLOAT), 6, 3), ["N", 3])
    return g.build(), (4, 5)


@model
def external_data():
    g = Graph(["N", 6])
    g.output(g.dense(g.add("Relu", g.dense("x", 6, 8)), 8, 3), ["N", 3])
    return g.build(), (5, 6)


@model
def acas_like_batch_of_one():
    g = Graph([1, 1, 1, 5])
    h = g.add("Sub", "x", weights(1, 1, 1, 5))
    h = g.add("Flatten", h, axis=1)
    for inner, outer in [(5, 7), (7, 7)]:
        h = g.add("Relu", g.add("Add", g.add("MatMul", h, weights(inner, outer)), weights(outer)))
    g.output(g.add("Add", g.add("MatMul", h, weights(7, 5)), weights(1, 5)), [1, 5])
    return g.build(), (1, 1, 1, 5)


@model
def batch_of_eight():
    g = Graph([8, 2, 4])
    h = g.add("Reshape", "x", np.array([8, -1], np.int64))
    h = g.add("Relu", g.dense(h, 8, 8))
    h = g.add("Reshape", h, np.array([8, 8], np.int64))
    g.output(g.dense(h, 8, 2), [8, 2])
    return g.build(), (8, 2, 4)


@model
def no_batch_at_all():
    g = Graph([4, 6])
    h = g.add("Reshape", "x", np.array([1, 24], np.int64))
    h = g.add("Relu", g.dense(h, 24, 5))
    g.output(g.dense(h, 5, 2), [1, 2])
    return g.build(), (4, 6)


@model
def stretched_input():
    g = Graph(["N", 1])
    h = g.add("Add", "x", weights(1, 5))
    h = g.add("Relu", g.add("Mul", weights(3, 1, 1), h))
    h = g.add("Transpose", h, perm=[1, 0, 2])
    g.output(g.dense(g.add("Flatten", h), 15, 2), ["N", 2])
    return g.build(), (4, 1)


@model
def constants_on_both_sides():
    g = Graph(["N", 4])
    h = g.add("Sub", weights(4), "x")
    h = g.add("Mul", np.float32(-2.0).reshape(1), h)
    shared = g.add("Mul", weights(4), g.add("Sub", weights(4), np.float32(0.5).reshape(1)))
    h = g.add("Relu", g.add("Add", shared, h))
    g.output(g.dense(h, 4, 3), ["N", 3])
    return g.build(), (4, 4)


@model
def branches_stretched_to_one_another():
    g = Graph(["N", 4])
    narrow = g.add("Relu", g.dense("x", 4, 1))
    wide = g.add("Add", g.add("Relu", g.dense("x", 4, 5)), narrow)
    g.output(g.add("Gemm", wide, weights(5, 3), narrow, beta=0.5), ["N", 3])
    return g.build(), (4, 4)


@model
def added_to_its_transpose():
    g = Graph([3, 3])
    g.output(g.add("Relu", g.add("Add", "x", g.add("Transpose", "x"))), [3, 3])
    return g.build(), (3, 3)


@model
def arithmetic_with_shapes():
    g = Graph(["N", 2, 3, 2])
    shape = g.add("Shape", "x")
    rows = g.add("Reshape", g.add("Gather", shape, np.array(0, np.int64)), np.array([-1], np.int64))
    inner = g.add("Mul", g.add("Gather", shape, np.array([1], np.int64)), g.add("Gather", shape, np.array([2], np.int64)))
    target = g.add("Concat", g.add("Cast", rows, to=TensorProto.INT64), inner, np.array([-1], np.int64), axis=0)
    h = g.add("Relu", g.add("MatMul", g.add("Reshape", "x", target), weights(2, 3)))
    g.output(g.dense(g.add("Flatten", h), 18, 2), ["N", 2])
    return g.build(), (3, 2, 3, 2)


@model
def constants_made_from_constants():
    g = Graph(["N", 3])
    mask = g.add("Cast", g.add("Cast", np.array([0, 2, 5], np.int64), to=TensorProto.BOOL), to=FLOAT)
    narrow = g.add("Cast", g.add("Cast", np.array([200, -1, 3], np.int64), to=TensorProto.INT8), to=FLOAT)
    square = g.add("Div", g.add("Add", weights(2, 3), weights(3)), np.full((1, 1), 3, np.float32))
    h = g.add("Relu", g.add("Add", g.add("Mul", "x", mask), narrow))
    h = g.add("MatMul", h, g.add("Transpose", square))
    g.output(h, ["N", 2]).output(g.add("Identity", weights(4)), [4])
    return g.build(), (4, 3)


@model
def linear():
    g = Graph(["N", 4])
    g.output(g.dense(g.dense("x", 4, 3), 3, 2), ["N", 2])
    return g.build(), (4, 4)


@model
def two_outputs_and_a_label():
    g = Graph(["N", 6], opset=12)
    h = g.add("Relu", g.dense("x", 6, 5))
    logits = g.dense(h, 5, 4)
    g.output(g.add("ArgMax", logits, axis=1, keepdims=0), ["N"], TensorProto.INT64)
    g.output(h, ["N", 5]).output(logits, ["N", 4])
    return g.build(), (50, 6)


@model
def unused_nodes_of_any_kind():
    g = Graph(["N", 3, 4, 4])
    g.add("Conv", "x", weights(2, 3, 3, 3))
    h = g.dense(g.add("Flatten", "x"), 48, 6)
    g.add("Sin", h)
    g.output(g.add("Relu", h), ["N", 6])
    return g.build(), (3, 3, 4, 4)


@model
def newest_opset():
    g = Graph(["N", 4], opset=21, ir=10)
    h = g.add("Relu", g.dense(g.add("Flatten", "x"), 4, 6))
    g.output(g.add("Softmax", g.dense(h, 6, 3)), ["N", 3])
    return g.build(), (4, 4)


def exported_by_scikit_learn():
    """Networks trained and exported by tools that know nothing of Leo."""
    from skl2onnx import to_onnx
    from sklearn.datasets import load_diabetes, load_digits
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    warnings.simplefilter("ignore")
    digits, labels = load_digits(return_X_y=True)
    digits = (digits / 16).astype(np.float32)
    classifier = MLPClassifier(hidden_layer_sizes=(24, 12), max_iter=15, random_state=0).fit(digits, labels)
    yield "sklearn_classifier", to_onnx(classifier, digits[:1], options={"zipmap": False}), digits[:40], "probabilities"

    names = np.array([f"digit {label}" for label in labels])
    words = MLPClassifier(hidden_layer_sizes=(16,), max_iter=10, random_state=0).fit(digits, names)
    yield "sklearn_string_labels", to_onnx(words, digits[:1], options={"zipmap": False}), digits[:40], "probabilities"

    patients, progression = (array.astype(np.float32) for array in load_diabetes(return_X_y=True))
    regressor = MLPRegressor(hidden_layer_sizes=(20, 10), max_iter=30, random_state=0).fit(patients, progression)
    yield "sklearn_regressor", to_onnx(regressor, patients[:1]), patients[:40], "variable"

    pipeline = make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(10,), max_iter=30, random_state=0))
    pipeline.fit(patients * 100, progression)
    plain = to_onnx(pipeline, patients[:1], black_op={"Scaler"})
    yield "sklearn_scaler_pipeline", plain, patients[:40] * 100, "variable"
    yield "sklearn_scaler_operator", to_onnx(pipeline, patients[:1]), patients[:40] * 100, "variable"


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)

    def write(name, model, samples, output, tolerance):
        path = folder / f"{name}.onnx"
        if name == "external_data":
            onnx.save(model, path, save_as_external_data=True, location="weights.bin", size_threshold=0)
        else:
            onnx.save(model, path)
        onnx.checker.check_model(str(path))
        session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
        result, = session.run([output], {session.get_inputs()[0].name: samples})
        np.save(folder / f"{name}.x.npy", samples)
        np.save(folder / f"{name}.y.npy", result)
        print(name, output, tolerance, sep="\t")

    for name, function in MODELS.items():
        model, shape, *rest = function()
        tolerance = rest[0] if rest else 1e-5
        dtype = helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)
        samples = random.uniform(-2, 2, size=shape).astype(dtype)
        constants = {node.output[0] for node in model.graph.node if set(node.input) <= {t.name for t in model.graph.initializer}}
        for output in model.graph.output:
            if output.name in constants:
                continue
            suffix = "" if output is model.graph.output[0] else f".{output.name}"
            write(name + suffix, model, samples, output.name, tolerance)
    for name, model, samples, output in exported_by_scikit_learn():
        write(name, model, samples, output, 1e-5)


main(pathlib.Path(sys.argv[1]))
