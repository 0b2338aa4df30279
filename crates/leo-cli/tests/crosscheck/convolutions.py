"""Makes random convolutional networks of all operators that have windows or take parts of values, with samples and what
ONNX Runtime computes for them.

Usage: convolutions.py FOLDER COUNT

Writes NAME.onnx, NAME.x.npy and NAME.y.npy into FOLDER for every model, and prints its name. Some filters are dead,
some constant, some have weights that have decayed to nearly nothing, and some are multiples or combinations of others.
"""

import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

onnxruntime.set_default_logger_severity(4)


class Network:
    def __init__(self, seed):
        self.random = np.random.default_rng(seed)
        self.opset = int(self.random.choice([9, 11, 13, 17, 18]))
        self.nodes, self.constants, self.count = [], [], 0
        self.axes = int(self.random.integers(1, 4))
        self.channels = int(self.random.integers(1, 4))
        self.extents = [int(self.random.integers(4, 8)) for _ in range(self.axes)]
        self.value = "x"

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def add(self, operator, *inputs, outputs=1, **attributes):
        self.count += 1
        names = [self.constant(i) if isinstance(i, (np.ndarray, np.generic)) else i for i in inputs]
        made = [f"v{self.count}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, names, made, name=f"{operator}_{self.count}", **attributes))
        return made[0] if outputs == 1 else made

    def floats(self, *shape, scale=None):
        return (self.random.normal(size=shape) * (scale or 1 / np.sqrt(np.prod(shape[1:]) or 1))).astype(np.float32)

    def pick(self, *choices):
        return choices[int(self.random.integers(len(choices)))]

    def window(self, can_be_dilated=True):
        """Attributes of a window that fits, and the extents of what it makes; None if it does not."""
        kernel = [int(self.random.integers(1, 4)) for _ in range(self.axes)]
        strides = [int(self.random.integers(1, 3)) for _ in range(self.axes)]
        dilations = [int(self.random.integers(1, 3)) if can_be_dilated else 1 for _ in range(self.axes)]
        spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations)]
        if any(span > extent for span, extent in zip(spans, self.extents)):
            return None
        found = {"kernel_shape": kernel, "strides": strides}
        if can_be_dilated:
            found["dilations"] = dilations
        kind = self.pick("NOTSET", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
        if kind == "NOTSET":
            found["pads"] = [int(self.random.integers(0, k)) for k in kernel + kernel]
        else:
            found["auto_pad"] = kind
            # Where windows leave positions out, or are dilated, programs pad in different ways.
            sizes = zip(kernel, strides, self.extents)
            leaves_out = any((-(-extent // s) - 1) * s + k < extent for k, s, extent in sizes)
            if kind != "VALID" and (max(dilations) > 1 or leaves_out):
                return None
        return found

    def spoil(self, kernel, bias):
        """Filters that are dead, constant, or have decayed, or are what others are."""
        for row in range(len(bias)):
            kind = self.random.integers(0, 12)
            if kind == 0:
                bias[row] = -50 - 50 * np.abs(kernel[row]).sum()
            elif kind == 1:
                kernel[row] *= np.float32(1e-30)
                bias[row] = -0.25
            elif kind == 2:
                kernel[row] = 0
                bias[row] = 0.5
            elif kind == 3 and row:
                other, factor = int(self.random.integers(0, row)), np.float32(self.pick(0.5, 1, 4))
                kernel[row], bias[row] = kernel[other] * factor, bias[other] * factor
            elif kind in (4, 5):
                kernel[row] = kernel[0] / 2 - kernel[-1] / 4
                bias[row] = 60

    def conv(self):
        window = self.window()
        if window is None:
            return
        outputs, groups = int(self.random.integers(1, 7)), 1
        if self.pick(True, False, False):
            groups = self.channels
            outputs = self.channels * self.pick(1, 2)
        kernel = self.floats(outputs, self.channels // groups, *window["kernel_shape"])
        bias = self.floats(outputs)
        self.spoil(kernel, bias)
        inputs = [kernel, bias] if self.pick(True, True, False) else [kernel]
        self.value = self.add("Conv", self.value, *inputs, group=groups, **window)
        self.channels = outputs

    def conv_transpose(self):
        outputs = int(self.random.integers(1, 4))
        groups = self.channels if self.pick(True, False, False) else 1
        kernel = [int(self.random.integers(1, 4)) for _ in range(self.axes)]
        strides = [int(self.random.integers(1, 3)) for _ in range(self.axes)]
        attributes = {"kernel_shape": kernel, "strides": strides, "group": groups}
        if self.pick(True, False):
            attributes["pads"] = [int(self.random.integers(0, (k + 1) // 2)) for k in kernel + kernel]
            attributes["output_padding"] = [int(self.random.integers(0, s)) for s in strides]
        weights = self.floats(self.channels, outputs, *kernel)
        self.value = self.add("ConvTranspose", self.value, weights, self.floats(outputs * groups), **attributes)
        self.channels = outputs * groups

    def pool(self):
        operator = self.pick("MaxPool", "AveragePool")
        window = self.window(can_be_dilated=False)
        if window is None:
            return
        if operator == "AveragePool":
            window["count_include_pad"] = self.pick(0, 1)
        if self.opset >= (19 if operator == "AveragePool" else 10) and "auto_pad" not in window:
            window["ceil_mode"] = self.pick(0, 1)
        self.value = self.add(operator, self.value, **window)

    def batch_normalization(self):
        count = self.channels
        scale, bias, mean = self.floats(count, scale=1), self.floats(count, scale=1), self.floats(count, scale=1)
        variance = np.abs(self.floats(count, scale=1)) + np.float32(0.5)
        self.value = self.add("BatchNormalization", self.value, scale, bias, mean, variance)

    def branch(self):
        if self.pick(True, False):
            side = self.add("Conv", self.value, self.floats(self.channels, self.channels, *[1] * self.axes))
            self.value = self.add("Add", self.value, side)
        else:
            more = int(self.random.integers(1, 4))
            side = self.add("Conv", self.value, self.floats(more, self.channels, *[1] * self.axes))
            self.value = self.add("Concat", side, self.value, axis=1)
            self.channels += more

    def pad(self):
        pads = np.array([0, 0, *self.random.integers(0, 3, self.axes)] * 2, np.int64)
        if self.opset < 11:
            self.value = self.add("Pad", self.value, pads=pads.tolist())
        else:
            self.value = self.add("Pad", self.value, pads)

    def part(self):
        axis = int(self.random.integers(2, 2 + self.axes))
        start, step = int(self.random.integers(0, 2)), int(self.pick(1, 2, -1))
        if self.opset < 10:
            self.value = self.add("Slice", self.value, axes=[axis], starts=[start], ends=[2**31 - 1])
            return
        ends = -(2**31) if step < 0 else 2**31 - 1
        first = -1 if step < 0 else start
        numbers = [np.array([number], np.int64) for number in (first, ends, axis, step)]
        self.value = self.add("Slice", self.value, *numbers)

    def split(self):
        if self.channels < 2 or self.opset >= 18:
            return
        sizes = [1, self.channels - 1]
        if self.opset < 13:
            parts = self.add("Split", self.value, outputs=2, axis=1, split=sizes)
        else:
            parts = self.add("Split", self.value, np.array(sizes, np.int64), outputs=2, axis=1)
        self.value = self.add("Concat", parts[1], parts[0], axis=1)

    def resize(self):
        scales = np.array([1, 1, *[2] * self.axes], np.float32)
        if self.axes == 3:
            return
        if self.opset < 10:
            self.value = self.add("Upsample", self.value, scales, mode="nearest")
        elif self.opset >= 11:
            mode = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            mode = self.pick(mode, {})
            self.value = self.add("Resize", self.value, "", scales, mode="nearest", **mode)

    def infer(self):
        """Looks up the shape of the value at hand."""
        value = helper.make_tensor_value_info(self.value, TensorProto.FLOAT, None)
        shape = onnx.shape_inference.infer_shapes(self.build([value]), strict_mode=True).graph.output[0]
        sizes = [axis.dim_value for axis in shape.type.tensor_type.shape.dim]
        self.channels, self.extents = sizes[1], sizes[2:]

    def build(self, outputs):
        shape = ["N", *self.first]
        value = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
        graph = helper.make_graph(self.nodes, "g", [value], outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=8)

    def make(self):
        self.first = [self.channels, *self.extents]
        self.conv()
        self.value = self.add("Relu", self.value)
        self.infer()
        for _ in range(int(self.random.integers(2, 6))):
            steps = [self.conv, self.conv, self.conv, self.pool, self.branch, self.batch_normalization]
            steps += [self.conv_transpose, self.pad, self.part, self.split, self.resize]
            before = self.value
            self.pick(*steps)()
            if self.value == before:
                continue
            if self.pick(True, False):
                self.value = self.add("Relu", self.value)
            self.infer()
            if np.prod(self.extents) * self.channels > 3000 or min(self.extents) < 2:
                break
        end = self.pick("GlobalAveragePool", "GlobalMaxPool", "ReduceMean", "Flatten")
        if end == "ReduceMean":
            axes = list(range(2, 2 + self.axes))
            if self.opset >= 18:
                self.value = self.add(end, self.value, np.array(axes, np.int64), keepdims=0)
            else:
                self.value = self.add(end, self.value, axes=axes, keepdims=0)
        else:
            self.value = self.add(end, self.value)
        count = self.channels
        if end == "Flatten":
            count *= int(np.prod(self.extents))
        elif end != "ReduceMean":
            self.value = self.add("Flatten", self.value)
        hidden = self.add("Gemm", self.value, self.floats(5, count), self.floats(5), transB=1)
        self.value = self.add("Gemm", self.add("Relu", hidden), self.floats(3, 5), self.floats(3), transB=1)
        return self.build([helper.make_tensor_value_info(self.value, TensorProto.FLOAT, ["N", 3])])


folder, count = pathlib.Path(sys.argv[1]), int(sys.argv[2])
made = seed = 0
while made < count:
    network = Network(seed)
    seed += 1
    try:
        model = network.make()
        onnx.checker.check_model(model, full_check=True)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        samples = network.random.uniform(-1, 1, [3, *network.first]).astype(np.float32)
        outputs = session.run(None, {"x": samples})[0]
    except Exception as error:  # What ONNX Runtime does not take is no network to compare.
        print(f"seed {seed - 1}: {str(error).splitlines()[0][:150]}", file=sys.stderr)
        continue
    name = f"convolutions{seed - 1}"
    onnx.save(model, str(folder / f"{name}.onnx"))
    np.save(folder / f"{name}.x.npy", samples)
    np.save(folder / f"{name}.y.npy", outputs)
    print(name)
    made += 1
