#!/usr/bin/env python3
"""A second checker of Leo's certificates, written from docs/certificate.md, in exact arithmetic. Needs NumPy.

    check.py MODEL SMALL CERTIFICATE    one answer; the exit code is 0 verified, 1 refused, 2 broken
    check.py --batch FILE               an answer a line, for triples of paths separated by tabs"""
import gzip, hashlib, json, math, sys
from fractions import Fraction
from types import SimpleNamespace as Record
import numpy as np
class Refused(Exception): """What files say is not proved. Any other exception means that one is broken."""
def need(fine, why, *details, error=ValueError):
    if not fine: raise error(why % details)
def prove(*arguments): need(*arguments, error=Refused)
class Exact:
    """An array of exact numbers: whole numbers `n` (an array of Python ints) times one `unit` (a Fraction)."""
    def __init__(self, n, unit=Fraction(1)): self.n, self.unit = n, unit
    def __add__(self, other): return merge(np.add, self, other)
    def __sub__(self, other): return merge(np.subtract, self, other)
    def __mul__(self, other): return Exact(self.n * other.n, self.unit * other.unit)
    def __matmul__(self, other): return Exact(product(self.n, other.n), self.unit * other.unit)
    def __neg__(self): return Exact(-self.n, self.unit)
    def __abs__(self): return Exact(np.abs(self.n), self.unit)
    def __getitem__(self, key): return Exact(self.n[key], self.unit)
    def clip(self): return Exact(np.maximum(self.n, 0), self.unit)
def merge(function, *parts):
    """A function of the whole numbers of some arrays, once these have the same unit."""
    unit = Fraction(math.gcd(*(p.unit.numerator for p in parts)), math.lcm(*(p.unit.denominator for p in parts)))
    return Exact(function(*(p.n if p.unit == unit else p.n * int(p.unit / unit) for p in parts)), unit)
def larger(a, b): return merge(np.maximum, a, b)
def smaller(a, b): return merge(np.minimum, a, b)
def join(parts): return merge(lambda *x: np.concatenate(x), *parts)
def nothing(*shape): return Exact(np.zeros(shape, object))
def exact(values):  # Doubles as exact numbers
    mantissa, exponent = np.frexp(np.asarray(values, np.float64))
    need(np.isfinite(mantissa).all(), "a number is not finite")
    whole = (mantissa * 2.0**53).astype(np.int64)
    zeros = np.maximum(np.frexp((whole & -whole).astype(np.float64))[1] - 1, 0)  # so many bits at the end are 0
    exponent = exponent.astype(np.int64) + zeros - 53
    least = int(exponent[whole != 0].min()) if whole.any() else 0
    return Exact((whole >> zeros).astype(object) << np.maximum(exponent - least, 0).astype(object), Fraction(2)**least)
def digits(a):
    """Whole numbers in base 2**16, lowest digit first, as doubles. Only the highest digit has a sign."""
    width = int(np.abs(a).max()).bit_length() // 16 + 1
    raw = b"".join(x.to_bytes(2 * width, "little", signed=True) for x in a.ravel().tolist())
    found = np.moveaxis(np.frombuffer(raw, "<u2").reshape(*a.shape, width), -1, 0).astype(np.float64, order="C")
    found[-1] -= 65536 * (found[-1] >= 32768)
    return found
def product(a, b):
    """A matrix times another or a vector: if that is large, by digits, whose sums in doubles stay below 2**53."""
    x, y = (digits(a), digits(b)) if b.ndim == 2 and b.size and min(len(a), b.shape[1]) > 3 else ((), ())
    if not len(x) or len(b) * min(len(x), len(y)) > 2**20: return a.dot(b)
    total = np.zeros((len(x) + len(y) + 2, len(a), b.shape[1]), np.int64)
    for i, digit in enumerate(x): total[i:i + len(y)] += (digit @ y).astype(np.int64)
    for i in range(len(total) - 1): total[i + 1] += total[i] >> 16
    raw, size = np.moveaxis(total & 65535, 0, -1).astype("<u2").tobytes(), 2 * len(total)
    whole = [int.from_bytes(raw[i:i + size], "little", signed=True) for i in range(0, len(raw), size)]
    return np.array(whole, object).reshape(total.shape[1:])
# ONNX files
def varint(data, at):
    """The whole number that begins at a place, and the place after it."""
    end = next((i for i in range(at, len(data)) if data[i] < 128), len(data)) + 1
    return (sum((byte & 127) << 7 * i for i, byte in enumerate(data[at:end])) + 2**63) % 2**64 - 2**63, end
def message(data):
    """A protobuf message: for each field number and wire type, a list of what stands there, as bytes."""
    fields, at = {}, 0
    while at < len(data):
        key, start = varint(data, at)
        size, at = varint(data, start) if key & 7 in (0, 2) else ({1: 8, 5: 4}.get(key & 7, -1), start)
        start, at = (at, at + size) if key & 7 else (start, at)
        need(start <= at <= len(data), "not ONNX: a field is cut off")
        fields.setdefault((key >> 3, key & 7), []).append(data[start:at])
    return fields
def integers(data): return [varint(data, i)[0] for i in range(len(data)) if not i or data[i - 1] < 128]
def content(fields, number, *wires): return b"".join(x for wire in wires for x in fields.get((number, wire), []))
def integer(fields, number): return (integers(content(fields, number, 0)) or [0])[-1]
def texts(fields, number): return [x.decode("utf-8") for x in fields.get((number, 2), [])]
def text(fields, number): return (texts(fields, number) or [""])[-1]
def messages(fields, number): return [message(x) for x in fields.get((number, 2), [])]
def part(fields, number): return message(content(fields, number, 2))
def tensor(fields, kinds):
    """A tensor of one of some types as an array."""
    kind, shape = integer(fields, 2), integers(content(fields, 1, 0, 2))
    need(kind in kinds and not integer(fields, 14) and min(shape, default=0) >= 0, "a tensor is missing or external")
    name, number, wire = {1: ("<f4", 4, 5), 2: ("u1", 5, 0), 3: ("i1", 5, 0), 6: ("<i4", 5, 0), 7: ("<i8", 7, 0),
                          11: ("<f8", 10, 1)}[kind]
    raw, data = content(fields, 9, 2), content(fields, number, wire, 2)
    return (np.frombuffer(raw or data, name) if raw or wire else np.array(integers(data), name)).reshape(shape)
def attribute(fields):
    """A float, a whole number, a text, the message of a tensor, a list of numbers, or None if it is something else."""
    number, floats = (np.frombuffer(content(fields, *at), "<f4").tolist() for at in ((2, 5), (7, 5, 2)))
    whole, kind = integers(content(fields, 8, 0, 2)), integer(fields, 20)
    if kind == 3: return content(fields, 4, 2).decode("utf-8", "replace")
    return {1: (number or [0.0])[-1], 2: integer(fields, 3), 4: part(fields, 5), 6: floats, 7: whole}.get(kind)
# Operators with the attributes that are known here; and those with which a tail may begin
KNOWN = {"Gemm": "alpha beta transB", "Flatten": "axis", "Cast": "to", "Constant": "value", "MatMul": "", "Add": "",
         "Sub": "", "Mul": "", "Div": "", "Relu": "", "Reshape": "", "Identity": ""}
TAIL = "Softmax LogSoftmax Hardmax ArgMax ArgMin TopK Sigmoid Tanh Exp Log Softplus Erf ReduceMax ReduceMin".split()
class Network:
    """The network in an ONNX file. Its `values` are the input, affine (`terms`: pairs of an earlier value and a matrix;
    `constant`), or ReLUs (`relu`: of which value). If one matrix makes it, or what it is a ReLU of, from all of
    one value, that is its `weights`, in doubles. Batches are one sample: no operator known here can mix samples."""
    ONLY_WITHIN = ()  # Operators that no tail may have
    def __init__(self, data, given=None):
        model, graph = message(data), part(message(data), 7)
        self.opsets = {text(o, 1): integer(o, 2) for o in messages(model, 8)}
        self.constants = {"": {}, **{text(t, 8): t for t in messages(graph, 5)}}  # Messages, until they are needed
        self.values, self.layers, self.ends, self.tail, self.names = [], [], {}, {}, {}
        inputs, outputs = [i for i in messages(graph, 11) if text(i, 1) not in self.constants], messages(graph, 12)
        need(len(inputs) == 1 and (25, 2) not in model and len(self.constants) == len(graph.get((5, 2), [])) + 1,
             "not ONNX, or several inputs, or functions of its own, or initializers of the same name")
        kind, needed, nodes = part(part(inputs[0], 2), 1), {text(o, 1) for o in outputs}, []
        shape = [integer(axis, 1) for axis in messages(part(kind, 2), 1)]  # An open axis has 0
        fits = given is None or len(shape) == len(given) and min(given) > 0 and all(d <= 0 or d == g for d, g in zip(shape, given))
        need(fits, "the input cannot have the shape %s", given)
        shape = shape if given is None else list(given)
        need(integer(kind, 1) in (1, 11) and shape and shape[0] < 2 and min(shape[1:], default=1) > 0, "an odd input")
        self.plain = integer(kind, 1) == 1  # Whether all is in single precision
        self.add(text(inputs[0], 1), [1] + shape[1:])
        for node in reversed(messages(graph, 1)):
            if needed.intersection(texts(node, 2)): needed, nodes = needed.union(texts(node, 1)), [node] + nodes
        for node in nodes: self.node(node, text(node, 4), texts(node, 1), [o for o in texts(node, 2) if o])
        self.interface = inputs, outputs, [self.describe(text(o, 1)) for o in outputs]
        self.outputs = [self.names[name][0] for name in self.ends]
    def add(self, name, shape, terms=(), constant=0.0, relu=None, weights=np.empty(0)):
        constant, self.names[name] = exact(np.broadcast_to(constant, shape).ravel()), (len(self.values), tuple(shape))
        self.values.append(Record(size=len(constant.n), terms=terms, constant=constant, relu=relu,
                                  weights=weights, layer=len(self.layers)))
        self.layers += [] if relu is None else [len(self.values) - 1]
    def node(self, node, op, inputs, outputs):  # A node makes a constant, a value, or is part of the tail
        a, places = {text(x, 1): attribute(x) for x in messages(node, 5)}, (self.constants, self.names, self.tail)
        need(not any(o in p for p in places for o in outputs) and all(any(i in p for p in places) for i in inputs),
             "operator %s reads what is not there, or makes what is there already", op)
        foreign, constant = text(node, 7) not in ("", "ai.onnx"), all(i in self.constants for i in inputs)
        behind = any(i in self.tail for i in inputs)
        need(not behind or op not in self.ONLY_WITHIN, "operator %s is behind one that is not known", op)
        if behind or not (constant or foreign) and (
                op in TAIL or op == "Cast" and a.get("to") not in (1, 10, 11)):
            return self.tail.update((o, node) for o in outputs)
        need(not foreign and self.known(op, a), "operator %s, or an attribute of it, is not known", op)
        if op == "Constant": return self.constants.update({outputs[0]: a["value"]})
        self.make(op, a, inputs, outputs, texts(node, 2))
    def known(self, op, a):
        return op in KNOWN and all(v == 0 or type(v) in (int, float, dict) and k in KNOWN[op].split()
                                   for k, v in a.items())
    def make(self, op, a, inputs, outputs, _):
        self.plain &= a.get("to", 1) == a.get("alpha", 1.0) == a.get("beta", 1.0) == 1
        values, first = [self.names[i] for i in inputs if i in self.names], inputs[0] in self.names
        additive, factors = op in ("Add", "Sub"), [1.0, -1.0 if op == "Sub" else 1.0]
        need(len(values) == 1 and (first or additive or op == "Mul") or additive and len(values) == 2 and
             values[0][1] == values[1][1], "operator %s is not known for such operands", op)
        (source, shape), size = values[0], math.prod(values[0][1])
        if additive:
            terms = [(self.names[i][0], exact(f * np.eye(size))) for i, f in zip(inputs, factors) if i in self.names]
            self.add(outputs[0], shape, terms, self.floats(inputs[first]) * factors[first] if len(values) == 1 else 0.0)
        elif op in ("Mul", "Div"):
            factor = exact(np.broadcast_to(self.floats(inputs[first]), shape).ravel())
            self.plain &= op == "Mul" or bool((abs(self.floats(inputs[first])) >= 2.0**-126).all())
            multiple = math.lcm(*factor.n.tolist())
            factor = factor if op == "Mul" else Exact(multiple // factor.n, 1 / (factor.unit * multiple))
            self.add(outputs[0], shape, [(source, Exact(np.diag(factor.n), factor.unit))])
        elif op in ("Gemm", "MatMul"):
            weights = self.floats(inputs[1]) * a.get("alpha", 1.0)
            bias = self.floats(inputs[2]) * a.get("beta", 1.0) if any(inputs[2:]) else 0.0
            need(weights.ndim == 2 and (op == "MatMul" or len(shape) == 2), "%s of such shapes is not known", op)
            found = np.eye(size).reshape(size, *shape) @ (weights.T if a.get("transB") else weights)
            self.add(outputs[0], found.shape[1:], [(source, exact(found.reshape(size, -1).T))], bias)
            if shape[-1] == size: self.values[-1].weights = found.reshape(size, -1).T
        elif op == "Relu": self.add(outputs[0], shape, relu=source, weights=self.values[source].weights)
        else:  # Nothing but the shape
            axis, target = a.get("axis", 1), tensor(self.constants[inputs[1]], [7]) if op == "Reshape" else shape
            target = [math.prod(shape[:axis]), math.prod(shape[axis:])] if op == "Flatten" else [
                int(d) or shape[i] for i, d in enumerate(target)]
            self.names[outputs[0]] = source, np.empty(shape).reshape(target).shape
    def floats(self, name): return tensor(self.constants.get(name, {}), (1, 11)).astype(np.float64)
    def describe(self, name):
        """A text for how something is made from the outputs of the network, to compare tails. Finds these outputs."""
        if name in self.names: return f"output {self.ends.setdefault(name, len(self.ends))} {self.names[name][1]}"
        if name in self.constants: return repr(sorted(x for x in self.constants[name].items() if x[0][0] != 8))
        if isinstance(self.tail[name], dict):
            node, raw, domain = self.tail[name], sorted(self.tail[name].get((5, 2), [])), text(self.tail[name], 7)
            need(not any((k, 2) in message(a) for a in raw for k in (6, 11)), "the tail has graphs within")
            parts = text(node, 4), domain, self.opsets.get(domain), raw, [self.describe(i) for i in texts(node, 1)]
            found = hashlib.sha256(repr(parts).encode()).hexdigest()
            self.tail.update((o, "%s %d" % (found, i)) for i, o in enumerate(texts(node, 2)))
        return self.tail[name]
# Networks whose values have channels: step 8
CHANNELED = {  # Operators with the attributes that are known here; after "=" the only value that is
    "Conv": "auto_pad dilations group kernel_shape pads strides", "GlobalAveragePool": "", "GlobalMaxPool": "",
    "ConvTranspose": "auto_pad dilations group kernel_shape output_padding pads strides",
    "AveragePool": "auto_pad ceil_mode count_include_pad dilations kernel_shape pads strides",
    "MaxPool": "auto_pad ceil_mode dilations kernel_shape pads storage_order strides",
    "ReduceMean": "axes keepdims noop_with_empty_axes", "ReduceSum": "axes keepdims noop_with_empty_axes",
    "Pad": "mode=constant pads value=0", "Slice": "axes ends starts", "Split": "axis num_outputs split",
    "Concat": "axis", "Gather": "axis", "Upsample": "mode=nearest scales", "Squeeze": "axes", "Unsqueeze": "axes",
    "Resize": "antialias=0 coordinate_transformation_mode cubic_coeff_a exclude_outside extrapolation_value "
              "keep_aspect_ratio_policy=stretch mode=nearest nearest_mode",
    "BatchNormalization": "epsilon momentum spatial=1 training_mode=0", "DequantizeLinear": "axis block_size=0",
    "Transpose": "perm", "Reshape": "allowzero=0", "Flatten": "axis", "Cast": "to saturate", "Identity": "",
    "Shape": "", "Dropout": "ratio seed", "Relu": "", "Gemm": "alpha beta transA=0 transB", "MatMul": "", "Add": "",
    "Sub": "", "Mul": "", "Div": "", "Constant": "value"}
# Those that no network has that links about units are about; those of constants; those that plain networks may have
WINDOWED = ("Conv ConvTranspose AveragePool GlobalAveragePool ReduceMean ReduceSum MaxPool GlobalMaxPool Pad Slice "
            "Split Gather Resize Upsample Concat").split()
MEANS = "AveragePool GlobalAveragePool ReduceMean".split()
COMPUTED = ("Concat Gather Slice Add Sub Mul Div Squeeze Unsqueeze Reshape Transpose Identity Cast "
            "DequantizeLinear").split()
PLAIN = ("Conv ConvTranspose Concat MaxPool GlobalMaxPool AveragePool GlobalAveragePool ReduceMean ReduceSum Pad Slice "
         "Split Gather Resize Upsample Gemm MatMul Add Sub Mul Div Relu Reshape Flatten Squeeze Unsqueeze Transpose "
         "Identity Dropout Cast").split()
def lattice(extents, places):
    """Which elements of an array are at all combinations of places along its axes, in row-major order. Places may be
    matrices, with a row for each entry of a kernel: so is what is found. Where a place is beyond an axis, -1."""
    found = np.zeros((1, 1), np.int64)
    for extent, place in zip(extents, places):
        at, place = found[:, None, :, None], np.atleast_2d(place)[None, :, None, :]
        found = np.where((at >= 0) & (place >= 0) & (place < extent), at * extent + place, -1)
        found = found.reshape(found.shape[0] * found.shape[1], -1)
    return found
def windows(op, a, kernel, extents):
    """Where the windows along each axis read, as matrices with a row for each entry of the kernel, what the padded axis
    is, and how many windows there are."""
    rank, kind = len(extents), a.get("auto_pad", "NOTSET")
    strides, dilations = a.get("strides", [1] * rank), a.get("dilations", [1] * rank)
    pads, more = a.get("pads", [0] * 2 * rank), a.get("output_padding", [0] * rank)
    need(len(kernel) == len(strides) == len(dilations) == len(more) == len(pads) / 2 == rank > 0 and
         min(pads + more) >= 0 and min([*kernel, *strides, *dilations]) > 0 and
         kind in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER") and
         (kind == "NOTSET" or not any(pads) and not a.get("ceil_mode")), "odd windows of %s", op)
    places, ends = [], []
    for extent, size, stride, dilation, begin, end, extra in zip(
            extents, kernel, strides, dilations, pads[:rank], pads[rank:], more):
        span = (size - 1) * dilation + 1
        entries = np.arange(size)[:, None] * dilation
        if op == "ConvTranspose":  # What is made at a place comes from where a window of stride 1 reads what was spread
            need(kind in ("NOTSET", "VALID") and extra < max(stride, dilation), "%s with auto_pad or padding", op)
            found = np.arange(stride * (extent - 1) + extra + span - begin - end) + begin - entries
            places.append(np.where((found >= 0) & (found % stride == 0), found // stride, -1))
            continue
        if kind in ("SAME_UPPER", "SAME_LOWER"):
            total = max((-(-extent // stride) - 1) * stride + span - extent, 0)
            begin, end = (total // 2, total - total // 2)[::1 if kind == "SAME_UPPER" else -1]
        room = extent + begin + end - span
        count = min(-(-room // stride), (extent + begin - 1) // stride) if a.get("ceil_mode") else room // stride
        need(room >= 0, "%s has a window that does not fit", op)
        places.append(np.arange(count + 1) * stride - begin + entries)
        ends.append((-begin, extent + end))
    return places, ends, [place.shape[1] for place in places]
class Channels(Network):
    """The network in an ONNX file, for links about channels. What makes a value is one of these `kind`s:
    - "sums": for each group (the first axis of all three arrays) a matrix of `weights` times columns of elements, whose
      numbers are in `index` (-1 is a zero), plus the `bias`, over the `divisor`. What it makes is numbered in `place`;
    - "scaled": the element times a `factor`, plus the `bias`, over the `divisor`;
    - "added": the sum of two values, the second times the `sign`;
    - "largest": of each column of `index`; "picked": the elements in `index`; and "relu".
    Elements of several `sources` are numbered one source after the other. `axis` is the one that channels lie along.
    The batch is the first axis of all values, and 1."""
    ONLY_WITHIN = ("Gemm MatMul BatchNormalization Relu Conv ConvTranspose MaxPool AveragePool GlobalMaxPool "
                   "GlobalAveragePool").split()
    def add(self, name, shape, kind="input", sources=(), axis=None, op="", **what):
        shape, axis = tuple(int(d) for d in shape), len(shape) - 1 if axis is None else axis
        need(shape and shape[0] == 1 and min(shape) > 0, "operator %s makes a value of odd shape", op)
        self.names[name] = len(self.values), shape
        for k in what.keys() & {"factor", "bias", "divisor"}: what[k] = np.broadcast_to(what[k], shape).ravel()
        self.values.append(Record(size=math.prod(shape), shape=shape, kind=kind, op=op, sources=sources, axis=axis,
                                  **what))
    def known(self, op, a):
        """Whether an operator is known here, with all its attributes."""
        if op not in CHANNELED: return False
        names = dict(name.partition("=")[::2] for name in CHANNELED[op].split())
        return all(k in names and v is not None and names[k] in ("", str(v), "%g" % v if type(v) is float else "")
                   for k, v in a.items())
    def array(self, name):
        """A constant, or None if there is none of this name."""
        found = self.constants[name] if name in self.constants else None
        return tensor(found, (1, 2, 3, 6, 7, 11)) if type(found) is dict and found else found if name else None
    def floats(self, name):
        found = self.array(name)
        need(found is not None and found.dtype in (np.float32, np.float64), "a constant is missing, or odd")
        self.plain &= found.dtype == np.float32 and type(self.constants[name]) is dict
        return found.astype(np.float64)
    def whole(self, name, given):
        """Whole numbers that are an attribute in some versions and an input in others, as a list, or None."""
        need(given is None or not name, "something is said twice")
        found = self.array(name)
        need(found is None and not name or found.dtype in (np.int64, np.int32), "numbers are not whole")
        return given if found is None else found.ravel().tolist()
    def compute(self, op, a, inputs, given):
        """Constants made of constants: what shapes are made by, and weights that are only moved or dequantized."""
        need(op in COMPUTED and given and all(x is not None for x in given[:2]), "%s of constants is not known", op)
        x, axis, whole = given[0], a.get("axis", 0), all(x is not None and x.dtype == np.int64 for x in given)
        if op == "Identity": return x
        if op == "Transpose": return x.transpose(a.get("perm"))
        if op == "Gather": return x.take(self.inside(given[1], x.shape[axis]), axis)
        if op == "Concat": return np.concatenate(given, axis)
        if op == "Reshape": return x.reshape([int(d) or x.shape[i] for i, d in enumerate(given[1])])
        if op in ("Squeeze", "Unsqueeze"):
            axes = self.whole(inputs[1] if len(inputs) > 1 else "", a.get("axes"))
            return x.squeeze(axes and tuple(axes)) if op == "Squeeze" else np.expand_dims(x, tuple(axes))
        if op == "Slice":
            for axis, part in self.slices(x.shape, a, inputs): x = x.take(part, axis)
            return x
        if op == "Cast":
            need(whole and a["to"] in (6, 7) and (abs(x) < 2**31).all(), "Cast of constants is not known")
            return x.astype(np.int64)
        if op == "DequantizeLinear":
            scale, zero, axis = given[1], given[2] if len(given) > 2 else np.zeros((), x.dtype), a.get("axis", 1)
            need(scale.dtype == np.float32 and zero is not None and zero.dtype == x.dtype and scale.ndim < 2 and
                 (zero.shape == scale.shape or not zero.ndim), "odd scales")
            shape = [-1 if i == axis % x.ndim else 1 for i in range(x.ndim)] if scale.size > 1 else [1] * x.ndim
            need(scale.size in (1, x.shape[axis] if scale.size > 1 else 1), "odd scales")
            found = x.astype(np.int64) - (zero.reshape(shape) if zero.size > 1 else zero.ravel()).astype(np.int64)
            need(x.dtype in (np.int8, np.uint8, np.int32) and (abs(found) < 2**24).all(), "large numbers to dequantize")
            return (found * scale.reshape(shape).astype(np.float64)).astype(np.float32)  # The product is exact
        need(whole and all((abs(x) < 2**31).all() for x in given), "%s of such constants is not known", op)
        if op == "Div": need((given[0] >= 0).all() and (given[1] > 0).all(), "a quotient that is not certain")
        return {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.floor_divide}[op](*given)
    def inside(self, index, extent):
        need(index.dtype in (np.int64, np.int32) and ((index >= -extent) & (index < extent)).all(), "an odd index")
        return index % extent
    def slices(self, shape, a, inputs):
        """For each axis that a Slice is along, which of its places stay."""
        names = zip(inputs[1:] + [""] * 4, ("starts", "ends", "axes", ""))
        starts, ends, axes, steps = (self.whole(name, a.get(attribute)) for name, attribute in names)
        steps, axes = steps or [1] * len(starts), axes or [*range(len(starts))]
        need(len(starts) == len(ends) == len(axes) == len(steps) == len({axis % len(shape) for axis in axes}) and
             all(-len(shape) <= axis < len(shape) for axis in axes), "an odd Slice")
        return [(axis % len(shape), np.arange(shape[axis])[x:y:z]) for axis, x, y, z in zip(axes, starts, ends, steps)]
    def make(self, op, a, inputs, outputs, slots):
        values, name = [self.names[i] for i in inputs if i in self.names], outputs[0]
        if op == "Shape": return self.constants.update({name: np.array(self.names[inputs[0]][1], np.int64)})
        if not values:
            return self.constants.update({name: self.compute(op, a, inputs, [self.array(i) for i in inputs])})
        need(inputs[0] in self.names or op in ("Add", "Sub", "Mul"), "operator %s is not known for such operands", op)
        need(len(values) == 1 or op == "Concat" or op in ("Add", "Sub") and values[0][1] == values[1][1],
             "operator %s is not known for several values", op)
        self.plain &= op in PLAIN and a.get("to", 1) == a.get("alpha", 1.0) == a.get("beta", 1.0) == 1
        (source, shape), rank = values[0], len(values[0][1])
        size, extents, old = math.prod(shape), shape[2:], self.values[source].axis
        numbers, inputs = np.arange(size).reshape(shape), inputs + [""] * 5
        def add(made, kind, axis=old, output=name, sources=(source,), **what):
            if kind != "picked" or tuple(made) != shape or op == "Concat" or (what["index"] != numbers.ravel()).any():
                self.add(output, made, kind, sources, axis, op, **what)
            else: self.names[output] = source, shape  # Where nothing is moved, nothing is made
        def pick(places, output=name):  # Some places along some axes
            every = [np.asarray(places.get(i, range(d))) for i, d in enumerate(shape)]
            add([len(x) for x in every], "picked", output=output, index=lattice(shape, every)[0])
        def axes(given, least=1, of=rank):
            found = None if given is None else [axis % of for axis in given if -of <= axis < of]
            need(found and len(set(found)) == len(given) and min(found) >= least, "%s along odd axes", op)
            return found
        if op == "Identity" or op == "Cast" or op == "Dropout":
            need(op != "Cast" or a["to"] in (1, 10, 11), "Cast to odd numbers")
            need(not inputs[2], "Dropout that may be training")
            self.names[name] = source, shape
        elif op == "Relu": add(shape, "relu")
        elif op in ("Add", "Sub") and len(values) == 2:
            sources = tuple(self.names[i][0] for i in inputs[:2])
            add(shape, "added", sources=sources, sign=-1 if op == "Sub" else 1)
        elif op in ("Add", "Sub", "Mul", "Div"):
            first = inputs[0] in self.names
            constant, one = self.floats(inputs[first]), -1.0 if op == "Sub" and not first else 1.0
            need(op != "Div" or constant.all(), "something is divided by 0")
            self.plain &= op != "Div" or bool((abs(constant) >= 2.0**-126).all())
            add(shape, "scaled", factor=constant if op == "Mul" else one, divisor=constant if op == "Div" else 1.0,
                bias=constant * (-1.0 if op == "Sub" and first else 1.0) if op in ("Add", "Sub") else 0.0)
        elif op == "BatchNormalization":
            scale, bias, mean, variance = (self.floats(i) for i in inputs[1:5])
            need(scale.shape == bias.shape == mean.shape == variance.shape == shape[1:2], "an odd BatchNormalization")
            factor = scale / np.sqrt(variance + a.get("epsilon", float(np.float32(1e-5))))
            along = [-1] + [1] * (rank - 2)
            add(shape, "scaled", factor=factor.reshape(along), bias=(bias - mean * factor).reshape(along), divisor=1.0)
        elif op in ("Gemm", "MatMul"):
            weights = self.floats(inputs[1]) * a.get("alpha", 1.0)
            weights = weights.T if a.get("transB") else weights
            bias = self.floats(inputs[2]) * a.get("beta", 1.0) if inputs[2] else 0.0
            need(weights.ndim == 2 and rank > 1 and (op == "MatMul" or rank == 2) and len(weights) == shape[-1],
                 "%s of such shapes is not known", op)
            made = (*shape[:-1], weights.shape[1])
            add(made, "sums", len(made) - 1, index=numbers.reshape(-1, shape[-1]).T[None], weights=weights.T[None],
                place=np.arange(math.prod(made)).reshape(-1, made[-1]).T[None], bias=bias, divisor=1.0)
        elif op in ("Conv", "ConvTranspose"):
            weights, group, count = self.floats(inputs[1]), a.get("group", 1), shape[1]
            kernel, bias = [*weights.shape[2:]], self.floats(inputs[2]) if inputs[2] else np.zeros(())
            need(rank > 2 and weights.ndim == rank and a.get("kernel_shape", kernel) == kernel and group > 0 and
                 count % group == 0 == len(weights) % group and
                 count == (weights.shape[1] * group if op == "Conv" else len(weights)), "%s of odd shapes", op)
            places, _, made = windows(op, a, kernel, extents)
            if op == "Conv": weights = weights.reshape(group, len(weights) // group, -1)
            else:
                weights = weights.reshape(group, count // group, weights.shape[1], -1).swapaxes(1, 2)
                weights = weights.reshape(group, weights.shape[1], -1)
            filters, found = group * weights.shape[1], lattice(extents, places)
            index = np.where(found < 0, -1, found + np.arange(count)[:, None, None] * math.prod(extents))
            need(bias.shape in ((), (filters,)), "%s with an odd bias", op)
            add((1, filters, *made), "sums", 1, index=index.reshape(group, -1, found.shape[1]), weights=weights,
                place=np.arange(filters * math.prod(made)).reshape(*weights.shape[:2], -1),
                bias=bias.reshape([-1] + [1] * (rank - 2)), divisor=1.0)
        elif op in ("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool"):
            need(rank > 2, "%s of odd shapes", op)
            every, ends = [np.arange(d)[:, None] for d in extents], [(0, d) for d in extents]
            places, ends, made = (every, ends, [1] * (rank - 2)) if "Global" in op else windows(
                op, a, a["kernel_shape"], extents)
            found = lattice(extents, places)
            index = np.where(found < 0, -1, found + np.arange(shape[1])[:, None, None] * math.prod(extents))
            index = index.swapaxes(0, 1).reshape(len(found), -1)
            if op in ("MaxPool", "GlobalMaxPool"):  # What is missing is replaced by something that is there
                need((index.max(axis=0) >= 0).all(), "%s has a window of nothing", op)
                add((1, shape[1], *made), "largest", index=np.where(index < 0, index.max(axis=0), index))
            else:
                counts = np.ones(1)  # Of each window, what is in the axis, or in its padding too
                for place, (begin, end), d in zip(places, ends, extents):
                    begin, end = (begin, end) if a.get("count_include_pad") else (0, d)
                    counts = np.outer(counts, ((place >= begin) & (place < end)).sum(axis=0)).ravel()
                need(counts.all(), "%s has a window of nothing", op)
                add((1, shape[1], *made), "sums", index=index[None], weights=np.ones((1, 1, len(index))), bias=0.0,
                    place=np.arange(index.shape[1])[None, None], divisor=counts.reshape(made))
        elif op in ("ReduceMean", "ReduceSum"):
            along = axes(self.whole(inputs[1], a.get("axes")))
            index = np.moveaxis(numbers, along, range(len(along))).reshape(math.prod(shape[i] for i in along), -1)
            kept, keep = [i for i in range(rank) if i not in along], a.get("keepdims", 1)
            made = [1 if i in along else d for i, d in enumerate(shape) if keep or i in kept]
            axis = old if keep else kept.index(old) if old in kept else len(kept) - 1
            add(made, "sums", axis, index=index[None], weights=np.ones((1, 1, len(index))), bias=0.0,
                place=np.arange(index.shape[1])[None, None], divisor=float(len(index)) if op == "ReduceMean" else 1.0)
        elif op == "Concat":
            [axis], starts = axes([a["axis"]]), np.cumsum([0] + [math.prod(s) for _, s in values])
            need(not any(inputs[len(values):]), "Concat of values and constants")
            index = np.concatenate([np.arange(math.prod(s)).reshape(s) + i for (_, s), i in zip(values, starts)], axis)
            add(index.shape, "picked", sources=tuple(v for v, _ in values), index=index.ravel())
        elif op == "Pad":
            pads, value = self.whole(inputs[1], a.get("pads")), self.array(inputs[2])
            need(value is None or value.size == 1 and not value.any(), "Pad with something else than zeros")
            along = axes(self.whole(inputs[3], None), 0) if inputs[3] else [*range(rank)]
            need(pads and len(pads) == 2 * len(along), "an odd Pad")
            pads = {axis: (x, y) for axis, x, y in zip(along, pads, pads[len(along):])}
            need(not any(pads.get(0, ())), "Pad of the batch")
            pick({axis: np.arange(-x, shape[axis] + y) for axis, (x, y) in pads.items()})
        elif op == "Slice":
            places = dict(self.slices(shape, a, inputs))
            need(len(places.get(0, [0])) == 1, "Slice of the batch")
            pick(places)
        elif op == "Split":
            [axis], sizes = axes([a.get("axis", 0)]), self.whole(inputs[1], a.get("split"))
            need(sizes or shape[axis] % len(slots) == 0, "Split into uneven parts")
            sizes = sizes or [shape[axis] // len(slots)] * len(slots)
            need(len(sizes) == len(slots) == a.get("num_outputs", len(slots)) and min(sizes) > 0 and
                 sum(sizes) == shape[axis], "an odd Split")
            for output, start, count in zip(slots, np.cumsum([0] + sizes).tolist(), sizes):
                if output: pick({axis: range(start, start + count)}, output)
        elif op == "Gather":
            [axis], index = axes([a.get("axis", 0)]), self.array(inputs[1])
            index = numbers.take(self.inside(index, shape[axis]), axis)
            need(self.array(inputs[1]).ndim == 1, "Gather of such indices is not known")
            add(index.shape, "picked", index=index.ravel())
        elif op in ("Resize", "Upsample"):
            at = 1 if op == "Upsample" or self.opsets.get("", self.opsets.get("ai.onnx", 0)) < 11 else 2
            scales, sizes = self.array(inputs[at]), self.whole(inputs[3], None) if at == 2 else None
            scales = a.get("scales") if op == "Upsample" and "scales" in a else scales
            modes = (a.get("coordinate_transformation_mode", "half_pixel" if at == 2 else "asymmetric"),
                     a.get("nearest_mode", "round_prefer_floor" if at == 2 else "floor"))
            need(a.get("mode", "nearest") == "nearest" and (modes == ("asymmetric", "floor") or modes[0] in (
                 "half_pixel", "pytorch_half_pixel") and modes[1].startswith("round_prefer_")), "odd places of %s", op)
            need((sizes is None) != (scales is None or not len(scales)), "odd scales")
            factors = np.array(sizes) / shape if sizes else np.asarray(scales, np.float64)
            need(len(factors) == rank and factors[0] == 1 <= factors.min() and (factors == np.floor(factors)).all(),
                 "%s by other than whole factors", op)
            pick({i: np.arange(d * int(f)) // int(f) for i, (d, f) in enumerate(zip(shape, factors))})
        elif op == "Transpose":
            perm = a.get("perm", [*range(rank)][::-1])
            need(sorted(perm) == [*range(rank)] and perm[0] == 0, "Transpose of the batch")
            index = numbers.transpose(perm)
            add(index.shape, "picked", perm.index(old), index=index.ravel())
        else:  # Nothing but the shape
            need(op in ("Reshape", "Flatten", "Squeeze", "Unsqueeze"), "operator %s is not known for values", op)
            axis = a.get("axis", 1)
            if op == "Reshape": made = [int(d) or shape[i] for i, d in enumerate(self.whole(inputs[1], None))]
            elif op == "Flatten": made = [math.prod(shape[:axis]), math.prod(shape[axis:])]
            else:
                given = self.whole(inputs[1], a.get("axes"))
                along = axes(given, of=rank + len(given or ()) if op == "Unsqueeze" else rank)
                need(op == "Unsqueeze" or all(shape[i] == 1 for i in along), "Squeeze of more than 1")
                made = [d for i, d in enumerate(shape) if i not in along]
                if op == "Unsqueeze": made = np.expand_dims(numbers, tuple(along)).shape
            made = numbers.reshape(made).shape
            fits = [i for i in range(1, len(made)) if made[i] == shape[old] and
                    math.prod(made[i + 1:]) == math.prod(shape[old + 1:])]
            add(made, "picked", (fits + [len(made) - 1])[0], index=numbers.ravel())
def short(x, up):
    """Numbers rounded up, or down, to about 160 bits for the largest one. What is shorter stays as it is."""
    size = int(np.abs(x.n).max()) * x.unit.numerator
    ratio = x.unit / Fraction(2)**(size.bit_length() - x.unit.denominator.bit_length() - 160)
    if not size or ratio.denominator == 1: return x
    n = x.n * ratio.numerator
    return Exact(-(-n // ratio.denominator) if up else n // ratio.denominator, x.unit / ratio)
def pair(a, b): return smaller(a, b), larger(a, b)
def gather(parts, index):  # Elements of several arrays, numbered one after the other. That of -1 is 0
    return merge(lambda *x: np.concatenate([*x, [0]])[index], *parts)
def dots(w, x):
    """For each group, a matrix times another. For few rows, entry by entry; else in parts that fit into memory."""
    found, step = np.zeros((*w.shape[:2], x.n.shape[2]), object), max(2**18 // max(w.shape[2], 1), 1)
    if w.shape[1] < 4:
        for t in range(w.shape[2]): found += w[:, :, t, None] * x.n[:, t, None]
    else:
        for g, at in ((g, at) for g in range(len(w)) for at in range(0, found.shape[2], step) if w.shape[2]):
            found[g, :, at:at + step] = product(w[g], x.n[g, :, at:at + step])
    return found
def sums(weights, index, place, lo, hi):
    """Between what sums lie, as in `Channels`, of parts whose elements lie between others."""
    used = np.flatnonzero((weights.n != 0).any(axis=(0, 1)))
    w, index, unit = weights.n[:, :, used], index[:, used], weights.unit / 2
    middle, reach = (gather([part], index) for part in (lo + hi, hi - lo))
    middle, reach = Exact(dots(w, middle), middle.unit * unit), Exact(dots(np.abs(w), reach), reach.unit * unit)
    back = np.argsort(place, axis=None)
    return [Exact(x.n.ravel()[back], x.unit) for x in (middle - reach, middle + reach)]
def over(low, high, divisor):
    """A range over doubles, rounded outward."""
    if (divisor == 1).all(): return low, high
    c = exact(divisor)
    a, b = pair(low * exact(np.sign(divisor)), high * exact(np.sign(divisor)))
    a, b = (Exact(x.n << 160, x.unit / c.unit / 2**160) for x in (a, b))
    return Exact(a.n // np.abs(c.n), a.unit), Exact(-(-b.n // np.abs(c.n)), b.unit)
def narrowed(net, linear, layer, lo, hi):
    """Step 8: narrows the range of what a layer is made of by linear bounds of channels that are always off, or on."""
    order = [v for v, value in enumerate(net.values) if value.kind == "relu"]
    v, = net.values[order[layer]].sources
    x, numbers = net.values[v], np.arange(net.values[v].size).reshape(net.values[v].shape)
    count = x.shape[x.axis]
    for letter, first, digits in (item[1:] for item in linear if item[0] == layer):
        prove(len(digits) == (count + 3) // 4 and not digits.strip("0123456789abcdefABCDEF"),
              "layer %d has %d channels", layer, count)
        bits = [int(digit, 16) >> bit & 1 for digit in digits for bit in (3, 2, 1, 0)][:count]
        elements, sign = numbers.take(np.flatnonzero(bits), x.axis).ravel(), 1.0 if letter == "-" else -1.0
        beyond = hi[v] if letter == "-" else -lo[v]
        elements = elements[(beyond.n[elements] > 0).astype(bool)]
        for some in (elements[at:at + 16] for at in range(0, len(elements), 16)):
            found = patches(net, v, some, sign, order, first, lo, hi)
            wrong = some[(found.n > 0).astype(bool)]
            prove(not len(wrong), "layer %d: element %d is not proved to be always %s", layer, *wrong[:1],
                  "off" if letter == "-" else "on")
            def put(bounds, found):
                bounds = bounds.copy()
                bounds[some] = np.minimum(bounds[some], found)
                return bounds
            beyond = merge(put, beyond, short(found, True))
        if letter == "-": hi[v] = beyond
        else: lo[v] = -beyond
def added_up(numbers, places, count):  # The sums of numbers that belong to the same place
    found = np.zeros(count, object)
    np.add.at(found, places, numbers.n)
    return Exact(found, numbers.unit)
def patches(net, start, elements, sign, order, first, lo, hi):
    """Step 8: upper bounds of elements of a value, times a sign, by substitution back to the layer `first`. The
    coefficients on a value are lists: which bound each belongs to, which element it is on, and the numbers."""
    count, best = len(elements), None
    live, constant = {start: (np.arange(count), elements, exact(np.full(count, sign)))}, nothing(count)
    def stop():  # The first bound that is not above 0, or the least: of those so far, and what ranges say here
        total = constant
        for v, (rows, at, c) in live.items():
            end = merge(lambda u, l: np.where(c.n > 0, u, l), hi[v][at], lo[v][at])
            total += added_up(c * end, rows, count)
        return merge(lambda a, b: np.where(a <= 0, a, np.minimum(a, b)), best, total) if best else total
    for v in range(start, 0, -1):
        if v not in live: continue
        value, sources = net.values[v], net.values[v].sources
        if value.kind == "relu":
            best = stop()
            if (best.n <= 0).all() or order.index(v) < first: return best
        rows, at, c = live.pop(v)
        if value.kind in ("sums", "scaled"): c, constant = divided(value, rows, at, c, constant, lo[v], hi[v])
        if value.kind == "relu":
            l, u = lo[sources[0]][at], hi[sources[0]][at]
            on, off = (l.n >= 0).astype(bool), (u.n <= 0).astype(bool)
            slope, above = ((u + l * exact(1 + 2.0**-20)).n > 0) * 1.0, (c.n > 0).astype(bool)
            chord = merge(lambda x, y: np.array([a / b if 0 < a < b else 0.0 for a, b in zip(x, y)]), u, u - l).n
            d = c * exact(np.where(on, 1.0, np.where(off, 0.0, np.where(above, chord, slope))).astype(np.float64))
            gap = larger(-(d * l), (c - d) * u)
            constant += added_up(Exact(np.where(above & ~on & ~off, gap.n, 0), gap.unit), rows, count)
            parts = [(sources[0], rows, at, d)]
        elif value.kind == "largest":
            index, (low, high) = value.index[:, at], merge(lambda *x: np.array(x), lo[sources[0]], hi[sources[0]]).n
            most = index[low[index].argmax(axis=0), range(len(at))]
            alone = ((high[index] <= low[most]) | (index == most)).all(axis=0) | ~(c.n > 0).astype(bool)
            constant += added_up(c[~alone] * hi[v][at[~alone]], rows[~alone], count)
            parts = [(sources[0], rows[alone], most[alone], c[alone])]
        else: parts = through(net, value, rows, at, c)
        for s, rows, at, c in parts:
            if s in live: rows, at, c = (np.concatenate([rows, live[s][0]]), np.concatenate([at, live[s][1]]),
                                         join([c, live[s][2]]))
            live[s] = gathered(rows, at, c, net.values[s].size)
    return stop()
def divided(value, rows, at, c, constant, low, high):
    """Coefficients on what sums are before they are divided, and the constants with their bias, and with what rounding
    the coefficients can do."""
    if (value.divisor != 1).any():
        divisor, size = exact(value.divisor[at]), larger(abs(low[at]), abs(high[at]))
        c = Exact((c.n << 160) // divisor.n, c.unit / divisor.unit / 2**160)
        constant += added_up(Exact(abs(divisor).n * size.n, c.unit * divisor.unit * size.unit), rows, len(constant.n))
    return c, constant + added_up(c * exact(value.bias[at]), rows, len(constant.n))
def through(net, value, rows, at, c):  # Coefficients on what an affine node makes, as those on what it reads
    sources = value.sources
    if value.kind == "added": return [(s, rows, at, c * exact(f)) for s, f in zip(sources, (1.0, value.sign))]
    if value.kind == "scaled": return [(sources[0], rows, at, c * exact(value.factor[at]))]
    if value.kind == "sums": return [(sources[0], *back(value, rows, at, c, net.values[sources[0]].size))]
    starts, found = np.cumsum([0] + [net.values[s].size for s in sources]), value.index[at]
    own = [(found >= begin) & (found < end) for begin, end in zip(starts, starts[1:])]
    return [(s, rows[x], found[x] - begin, c[x]) for s, x, begin in zip(sources, own, starts)]
def gathered(rows, at, c, size):  # Coefficients, one for each element, without those that are 0
    keys, places = np.unique(rows * size + at, return_inverse=True)
    c = added_up(c, places.ravel(), len(keys))
    used = (c.n != 0).astype(bool)
    return keys[used] // size, keys[used] % size, c[used]
def back(value, rows, at, c, size):
    """Coefficients on sums as coefficients on what they are sums of."""
    if "turned" not in vars(value):
        value.turned, value.whole = np.argsort(value.place, axis=None), exact(value.weights)
    (g, r, p), found = np.unravel_index(value.turned[at], value.place.shape), []
    for group in np.unique(g):
        own, columns = g == group, value.place.shape[2]
        keys, places = np.unique(rows[own] * columns + p[own], return_inverse=True)
        given = np.zeros((value.place.shape[1], len(keys)), object)
        given[r[own], places.ravel()] = c.n[own]
        index, numbers = value.index[group][:, keys % columns], product(value.whole.n[group].T, given)
        row = np.broadcast_to(keys // columns, index.shape)
        found.append((row[index >= 0], index[index >= 0], Exact(numbers[index >= 0], value.whole.unit * c.unit)))
    rows, at, c = zip(*found) if found else ([rows], [at], [c])
    return gathered(np.concatenate(rows), np.concatenate(at), join(c), size)
def channel_ranges(net, lo, hi, linear=()):
    """Step 8: the range of every value by interval arithmetic, narrowed where linear bounds decide channels."""
    layers = sum(value.kind == "relu" for value in net.values)
    prove(all(item[0] < layers for item in linear), "something is said of a layer that is not there")
    layer = 0
    for value in net.values[1:]:
        if value.kind == "relu":
            narrowed(net, linear, layer, lo, hi)
            layer += 1
        low, high = ([x[v] for v in value.sources] for x in (lo, hi))
        if value.kind == "relu": low, high = low[0].clip(), high[0].clip()
        elif value.kind == "picked": low, high = gather(low, value.index), gather(high, value.index)
        elif value.kind == "largest":
            low, high = (merge(lambda x: x[value.index].max(axis=0), x[0]) for x in (low, high))
        elif value.kind == "added": low, high = added(value, low, high)
        else:
            if value.kind == "sums": low, high = sums(exact(value.weights), value.index, value.place, low[0], high[0])
            else: low, high = pair(exact(value.factor) * low[0], exact(value.factor) * high[0])
            low, high = over(low + exact(value.bias), high + exact(value.bias), value.divisor)
        lo, hi = lo + [short(low, False)], hi + [short(high, True)]
    return lo, hi
def added(value, low, high):
    return (low[0] + low[1], high[0] + high[1]) if value.sign > 0 else (low[0] - high[1], high[0] - low[1])
def stand(first, second, said):
    """Step 8: the element of the first network that each element of each value of the second one stands for."""
    kept = {}
    for name, digits in said:
        prove(name in first.names, "'%s' is no value with channels", name)
        v = first.names[name][0]
        count = first.values[v].shape[first.values[v].axis]
        prove(v not in kept and len(digits) == (count + 3) // 4 and not digits.strip("0123456789abcdefABCDEF"),
              "'%s' is there twice, or does not have so many channels", name)
        kept[v] = np.flatnonzero([int(digit, 16) >> bit & 1 for digit in digits for bit in (3, 2, 1, 0)][:count])
        prove(len(kept[v]), "no channel of '%s' stays", name)
    prove(first.outputs == second.outputs and [(x.op, x.kind, x.sources) for x in first.values] ==
          [(x.op, x.kind, x.sources) for x in second.values], "the networks do not have the same nodes")
    found = []
    for v, (x, y) in enumerate(zip(first.values, second.values)):
        numbers = np.arange(x.size).reshape(x.shape)
        numbers = numbers.take(kept[v], x.axis) if v in kept else numbers
        prove(numbers.shape == y.shape and (numbers.size == x.size or v not in [0, *first.outputs]),
              "value %d has a shape that does not fit its channels", v)
        found.append(numbers.ravel())
    return found
def matched(x, y, there, here):
    """For sums in place of others: the weights of the second network less those of the first, where terms that are
    not there have the weight 0, and the `index` and `place` of all these terms. None if the groups of the second
    network are not parts of those of the first one, or their windows are others."""
    g, r, p = np.unravel_index(np.argsort(x.place, axis=None)[here[y.place]], x.place.shape)
    g, r, p = g[:, 0, 0], r[:, :, 0], p[0, 0]
    if not np.array_equal(x.place[g[:, None, None], r[:, :, None], p], here[y.place]): return None
    index, rows, mine, yours = x.index[g][:, :, p], there[y.index], exact(y.weights), exact(-x.weights)
    count, alone = index.shape[1], rows.shape[2] == 1  # Of a single element, there is no other window
    spread = np.zeros((*r.shape, count + alone * rows.shape[1]), object)
    for i, (terms, wanted) in enumerate(zip(index, rows)):
        known = {row.tobytes(): t for t, row in enumerate(terms)}
        found = [known.get(row.tobytes(), count + t if alone else -1) for t, row in enumerate(wanted)]
        used = [t for t, row in enumerate(wanted) if row.max() >= 0]  # The others read nothing but padding
        if any(found[t] < 0 for t in used) or len({found[t] for t in used}) < len(used): return None
        spread[i][:, [found[t] for t in used]] = mine.n[i][:, used]
    padded = np.concatenate([yours.n[g[:, None], r], np.zeros((*r.shape, alone * rows.shape[1]), object)], 2)
    index = np.concatenate([index, rows], 1) if alone else index
    return Exact(spread, mine.unit) + Exact(padded, yours.unit), index, y.place
def wide(x):
    """Sums in a single group, where the weights of other groups are 0."""
    groups, rows, terms = x.weights.shape
    weights = np.zeros((groups, rows, groups, terms))
    weights[range(groups), :, range(groups)] = x.weights
    index, place = x.index.reshape(1, groups * terms, -1), x.place.reshape(1, groups * rows, -1)
    return Record(weights=weights.reshape(1, groups * rows, -1), index=index, place=place)
def apart(x):
    """The same sums with a group of its own for each window."""
    x, count = wide(x), x.index.shape[2]
    prove(x.weights.size * count < 2**23, "sums over other windows, of too many numbers")
    return Record(weights=x.weights.repeat(count, 0), index=x.index[0].T[:, :, None], place=x.place[0].T[:, :, None])
def rectified(l, u, m, n):
    """Step 8: the difference of ReLUs of numbers in a range, whose differences lie between others."""
    def difference(l, u, m, n):
        off, on, none = np.maximum(u, u + n) <= 0, np.minimum(l, l + m) >= 0, (m == 0) & (n == 0)
        most = np.where(off, 0, np.where(on, n, np.maximum(n, 0)))
        least = np.where(off, 0, np.where(on, m, np.minimum(m, 0)))
        most = np.minimum(most, np.maximum(u + n, 0) - np.maximum(l, 0))
        least = np.maximum(least, np.maximum(l + m, 0) - np.maximum(u, 0))
        return np.array([np.where(none, 0, least), np.where(none, 0, most)], object)
    return [merge(difference, l, u, m, n)[i] for i in (0, 1)]
def by_channel(value):  # The elements of each channel, position by position
    numbers = np.moveaxis(np.arange(value.size).reshape(value.shape), value.axis, 0)
    return numbers.reshape(len(numbers), -1)
class Expressions:
    """Step 8: what channels of the first network's values are by others. `of` has, for each value and channel, the
    constant, the terms, and between what numbers lies what that misses at each position."""
    def __init__(self, net, said, lo, hi):
        self.net, self.lo, self.hi, self.said, self.of, work = net, lo, hi, {}, [], 0
        for name, channel, constant, terms in said:
            prove(name in net.names, "'%s' is no value with channels", name)
            v = net.names[name][0]
            value, own = net.values[v], self.said.setdefault(v, {})
            prove(value.op in ("Conv", "ConvTranspose", "Gemm", "MatMul"), "'%s' is made by no filters", name)
            count = value.shape[value.axis]
            prove(channel < count and channel not in own and all(k < count for k, _ in terms) and
                  all(a < b for (a, _), (b, _) in zip(terms, terms[1:])), "odd expressions of '%s'", name)
            own[channel] = float(constant), [(k, float(f)) for k, f in terms]
            work += (1 + len(terms)) * (value.size // count) * value.weights.shape[2]
        prove(work <= 2**31 and not any(k in own for own in self.said.values() for _, terms in own.values()
                                        for k, _ in terms), "expressions of what has one, or too many of them")
        for v, value in enumerate(net.values): self.of.append(self.express(v, value) if self.said else {})
    def reads(self, value): return any(self.of[s] for s in value.sources)
    def express(self, v, value):
        said = self.said.get(v, {}) if value.op in ("Conv", "ConvTranspose", "Gemm", "MatMul") else self.follow(value)
        elements = by_channel(value)
        said = {j: x for j, x in said.items() if max([j] + [k for k, _ in x[1]]) < len(elements)}
        return {j: (c, terms, *self.missing(v, value, elements, j, c, terms)) for j, (c, terms) in said.items()}
    def on(self, s, channels):  # Whether what goes into a ReLU is never below 0, on all positions of some channels
        return all((self.lo[s][by_channel(self.net.values[s])[k]].n >= 0).all() for k in channels)
    def follow(self, value):
        """The expressions that follow from those of what a node reads."""
        if not self.reads(value): return {}
        s, one = value.sources[0], {j: x[:2] for j, x in self.of[value.sources[0]].items()}
        def multiple(terms): return len(terms) == 1 and terms[0][1] > 0
        if value.kind == "relu": return {j: (c, terms) for j, (c, terms) in one.items() if c == 0 and multiple(terms)
                                         or self.on(s, [j] + [k for k, _ in terms])}
        if value.kind == "largest": return {j: x for j, x in one.items() if multiple(x[1])}
        if value.kind == "added":
            other = self.of[value.sources[1]]
            return {j: (c + value.sign * other[j][0], terms) for j, (c, terms) in one.items() if j in other}
        if value.kind == "sums":
            longest = int((value.index >= 0).sum(axis=1).max()) if value.index.size else 0
            return {j: (c * longest / value.divisor[0], terms) for j, (c, terms) in one.items()}
        if value.kind == "scaled": return self.scaled(value, one)
        starts = np.cumsum([0] + [self.net.values[s].size for s in value.sources])
        def origin(element):
            at = int(value.index[element])
            i = np.searchsorted(starts, at, "right") - 1
            return (int(i), at - int(starts[i])) if at >= 0 else None
        first = {j: next((at for at in map(origin, row) if at), None) for j, row in enumerate(by_channel(value))}
        places, found = {at: j for j, at in first.items()}, {}
        for j, at in first.items():
            if at is None: continue
            elements = by_channel(self.net.values[value.sources[at[0]]])
            (channel, position), = np.argwhere(elements == at[1])
            if channel in self.of[value.sources[at[0]]]:
                c, terms = self.of[value.sources[at[0]]][channel][:2]
                moved = [(places.get((at[0], int(elements[k, position]))), f) for k, f in terms]
                if all(k is not None for k, _ in moved): found[j] = c, sorted(moved)
        return found
    def scaled(self, value, one):
        elements, found = by_channel(value)[:, 0], {}
        for j, (c, terms) in one.items():
            def at(k): return [float(x[elements[k]]) for x in (value.factor, value.bias, value.divisor)]
            a, b, d = at(j)
            factors = [(k, a / d * f * (at(k)[2] / at(k)[0])) if at(k)[0] else (k, math.nan) for k, f in terms]
            constant = (a * c + b) / d - sum(f * at(k)[1] / at(k)[2] for k, f in factors)
            if all(map(math.isfinite, [constant] + [f for _, f in factors])): found[j] = constant, factors
        return found
    def missing(self, v, value, elements, j, c, terms):
        """Between what numbers lies what an expression misses, at each position."""
        s = value.sources[0]
        if value.kind == "relu":
            least, most = self.of[s][j][2:]
            if self.on(s, [j] + [k for k, _ in terms]): return least, most
            (k, f), = terms
            return rectified(*(exact(f) * x[s][elements[k]] for x in (self.lo, self.hi)), least, most)
        if value.kind == "largest":
            read = by_channel(self.net.values[s])
            channel, place = (np.empty(read.size, int) for _ in range(2))
            channel[read], place[read] = np.indices(read.shape)
            positions = place[value.index[:, elements[j]]]
            prove(all((channel[value.index[:, elements[k]]] == k).all() and
                      np.array_equal(place[value.index[:, elements[k]]], positions) for k in [j] + [k for k, _ in terms]),
                  "value %d takes the largest of several channels", v)
            least, most = self.of[s][j][2:]
            return merge(lambda x: x[positions].min(axis=0), least), merge(lambda x: x[positions].max(axis=0), most)
        count = elements.shape[1]
        rows = np.tile(np.arange(count), 1 + len(terms))
        at = np.concatenate([elements[j]] + [elements[k] for k, _ in terms])
        sums = join([exact(np.ones(count))] + [exact(np.full(count, -f)) for _, f in terms])
        def bound(sign):
            start = Exact(np.full(count, 1, object)) * exact(-sign * c)
            given, constant = sums * exact(sign), start
            if value.kind in ("sums", "scaled"):
                given, constant = divided(value, rows, at, given, constant, self.lo[v], self.hi[v])
            return self.bounded(value.sources, through(self.net, value, rows, at, given), constant)
        return -bound(-1.0), bound(1.0)
    def bounded(self, sources, parts, constant):
        """The most that linear functions of elements of some values can be, plus constants, with channels that have an
        expression replaced by it."""
        for s, rows, at, c in parts:
            rows, at, c = gathered(rows, at, c, self.net.values[s].size)
            elements, found = by_channel(self.net.values[s]), []
            channel, position = (np.empty(self.net.values[s].size, int) for _ in range(2))
            channel[elements], position[elements] = np.indices(elements.shape)
            gone = np.isin(channel[at], list(self.of[s]))
            for j in np.unique(channel[at[gone]]):
                own = channel[at] == j
                mine, place, (k, terms, least, most) = c[own], position[at[own]], self.of[s][j]
                constant = constant + added_up(larger(mine * least[place], mine * most[place]), rows[own],
                                               len(constant.n)) + added_up(mine * exact(k), rows[own], len(constant.n))
                found += [(rows[own], elements[other][place], mine * exact(f)) for other, f in terms]
            found.append((rows[~gone], at[~gone], c[~gone]))
            rows, at, c = gathered(*(np.concatenate(x) for x in list(zip(*found))[:2]), join([x[2] for x in found]),
                                   self.net.values[s].size)
            constant = constant + added_up(larger(c * self.lo[s][at], c * self.hi[s][at]), rows, len(constant.n))
        return constant
    def apart(self, x, y, here, there, operand):
        """How far sums of the second network are from those of the first, if what they read stands for what these read."""
        found = []
        for at in (np.arange(y.size)[begin:begin + 64] for begin in range(0, y.size, 64)):
            ones, rows = exact(np.ones(len(at))), np.arange(len(at))
            (mine, where, c), yours = back(y, rows, at, ones, len(there) - 1), back(x, rows, here[at], -ones, len(self.lo[operand].n))
            parts = [(operand, np.concatenate([mine, yours[0]]), np.concatenate([there[where], yours[1]]), join([c, yours[2]]))]
            signed = [[(*part[:3], part[3] * exact(sign)) for part in parts] for sign in (1.0, -1.0)]
            found.append([self.bounded([operand], part, nothing(len(at))) for part in signed])
        return -join([x[1] for x in found]), join([x[0] for x in found])
def differences(first, second, said, lo, hi, expressions=(), given=None):
    """Step 8: bounds of the differences of the second network's values, `low` and `high`, where those of the input are
    `given` if not 0, and the ranges of these values."""
    low, high, stands, others = [], [], stand(first, second, said), Expressions(first, expressions, lo, hi)
    for v, (x, y, here) in enumerate(zip(first.values, second.values, stands)):
        starts = np.cumsum([0] + [first.values[s].size for s in x.sources])
        there = np.concatenate([stands[s] + start for s, start in zip(x.sources, starts)] + [[-1]])
        m, n = [low[s] for s in x.sources], [high[s] for s in x.sources]
        l, u = [lo[s] for s in x.sources], [hi[s] for s in x.sources]
        prove(np.array_equal(there[y.index], x.index[..., here]) if x.kind in ("picked", "largest") else
              x.kind == "sums" or
              all(np.array_equal(stands[s], here) for s in x.sources), "value %d does not read what it should read", v)
        if x.kind == "input": m, n = given or (nothing(y.size), nothing(y.size))
        elif x.kind == "relu": m, n = rectified(l[0][here], u[0][here], m[0], n[0])
        elif x.kind == "added":
            prove(x.sign == y.sign, "value %d is another sum", v)
            m, n = added(y, m, n)
        elif x.kind == "picked": m, n = gather(m, y.index), gather(n, y.index)
        elif x.kind == "largest":
            m, n = merge(lambda x: x[y.index].min(axis=0), m[0]), merge(lambda x: x[y.index].max(axis=0), n[0])
        else:
            prove(np.array_equal(y.divisor, x.divisor[here]), "value %d is divided by something else", v)
            if x.kind == "scaled":
                factor = exact(y.factor)
                other, (m, n) = factor - exact(x.factor)[here], pair(factor * m[0], factor * n[0])
                least, most = pair(other * l[0][here], other * u[0][here])
            elif others.reads(x):
                least, most = others.apart(x, y, here, there, x.sources[0])
                m, n = sums(exact(y.weights), y.index, y.place, m[0], n[0])
            else:
                terms = matched(x, y, there, here) or matched(
                    wide(x), wide(y), there, here) or matched(apart(x), apart(y), there, here)
                prove(terms, "value %d is a sum over other windows", v)
                least, most = sums(*terms, l[0], u[0])
                m, n = sums(exact(y.weights), y.index, y.place, m[0], n[0])
            moved = exact(y.bias) - exact(x.bias)[here]
            m, n = over(m + least + moved, n + most + moved, y.divisor)
        low, high = low + [short(m, False)], high + [short(n, True)]
    ranges = [[x[here] + d for x, here, d in zip(bounds, stands, moved)] for bounds, moved in ((lo, low), (hi, high))]
    return low, high, ranges
def magnitudes(net, low, high): return [larger(-low[o], high[o]) for o in net.outputs]
def up_to(net, v):  # What makes a value, and what comes before it
    return Record(values=net.values[:v + 1], outputs=[], names={n: x for n, x in net.names.items() if x[0] <= v})
def behind(net, v, whole, here):
    """What comes after a value through which everything goes, as a network of its own, whose input is all that the
    value was, of which it has the elements `here`. The others have no weights."""
    values = [Record(size=whole.size, shape=whole.shape, kind="input", op="", sources=(), axis=whole.axis)]
    prove(all(o > v for o in net.outputs) and all(s >= v for x in net.values[v + 1:] for s in x.sources),
          "not everything goes through the value before a part")
    for x in net.values[v + 1:]:
        prove(x.op not in WINDOWED, "something is said of units of a part with %s", x.op)
        is_few, moved = v in x.sources and len(here) < whole.size, {"sources": tuple(s - v for s in x.sources)}
        prove(not is_few or x.op in ("Gemm", "MatMul") and len(whole.shape) == 2,
              "%s reads what has lost channels", x.op)
        values.append(Record(**{**vars(x), **moved, **({"index": here[x.index]} if is_few else {})}))
    return Record(values=values, outputs=[o - v for o in net.outputs],
                  names={n: (i - v, shape) for n, (i, shape) in net.names.items() if i >= v})
def flat(net):
    """The same as a network for links about units. `at` has the place of each value in it: what only changes the shape
    makes none of its own."""
    found, at, layers = [], [], []
    for x in net.values:
        new, size = Record(size=x.size, terms=(), constant=nothing(x.size), relu=None, weights=np.empty(0),
                           layer=len(layers)), x.size
        sources, source = [at[s] for s in x.sources], net.values[x.sources[0]] if x.sources else x
        if x.kind == "picked" and np.array_equal(x.index, np.arange(size)):
            at.append(sources[0])
            continue
        if x.kind == "relu":
            new.relu, new.weights = sources[0], found[sources[0]].weights
            layers.append(len(found))
        elif x.kind == "added": new.terms = [(s, exact(f * np.eye(size))) for s, f in zip(sources, (1.0, x.sign))]
        elif x.kind != "input":
            matrix = np.zeros((size, source.size))
            if x.kind == "sums":
                for index, place, weights in zip(x.index, x.place, x.weights):
                    for i, p in zip(index.T, place.T): matrix[np.ix_(p, i)] = weights
                if x.index.shape[2] == 1: new.weights = matrix
            else: matrix[range(size), x.index if x.kind == "picked" else range(size)] = 1.0
            w, b = exact(matrix), exact(np.zeros(size) if x.kind == "picked" else x.bias)
            if x.kind == "scaled":
                c, w = exact(x.divisor), w * exact(x.factor)[:, None]
                multiple = math.lcm(*c.n.tolist())
                share = Exact(multiple // c.n, 1 / (c.unit * multiple))
                w, b = w * share[:, None], b * share
            new.terms, new.constant = [(sources[0], w)], b
        at.append(len(found))
        found.append(new)
    return Record(values=found, layers=layers, at=at, outputs=[at[o] for o in net.outputs],
                  names={n: (at[i], shape) for n, (i, shape) in net.names.items()})
def doubles(x, way):  # Exact numbers as doubles, rounded towards an infinity
    found = []
    for exactly in (n * x.unit for n in x.n.tolist()):
        prove(abs(exactly) < 2**1023, "a part reads what is too large")
        near = float(exactly)
        found.append(near if near == exactly or (near > exactly) == (way > 0) else math.nextafter(near, way))
    return exact(found)
def parted(first, second, link, lo, hi):
    """Step 8 for a link with a part: how far each output may move, and the ranges of the second network's values."""
    part, name = link["part"], link["part"]["value"]
    v = first.names.get(name, (None,))[0]
    prove(v is not None and second.names.get(name, (None,))[0] == v, "'%s' is not at the same place in both networks", name)
    start, end = up_to(first, v), up_to(second, v)
    low, high, (least, most) = differences(start, end, link["channels"], lo, hi, link.get("expressions", []))
    whole, here = first.values[v], stand(start, end, link["channels"])[-1]
    box = [doubles(lo[v], -math.inf)], [doubles(hi[v], math.inf)]
    after = behind(second, v, whole, here)
    one, other = flat(behind(first, v, whole, np.arange(whole.size))), flat(after)
    prove([len(part["layers"])] + [len(roles) for roles in part["roles"]] ==
          [len(one.layers)] + [other.values[k].size for k in other.layers], "other layers or units of a part")
    prove(not any("~" in x["units"] or x.get("witnesses") for x in part["layers"]),
          "a unit of a part is said to be unstable")
    found = ranges(one, part["layers"], *box)
    apart = [nothing(one.values[o].size) for o in one.outputs], found
    apart, own = apart if same(one, other) else distances(one, other, part, *found)
    own = [[x[k] for k in other.at] for x in own]
    if low[v].n.any() or high[v].n.any():
        def spread(x):
            numbers = np.zeros(whole.size, object)
            numbers[here] = x.n
            return Exact(numbers, x.unit)
        moved = differences(after, after, [], *channel_ranges(after, *box), given=(spread(low[v]), spread(high[v])))[:2]
        apart = [a + b for a, b in zip(apart, magnitudes(after, *moved))]
        own = [[a + b for a, b in zip(x, y)] for x, y in zip(own, moved)]
    return apart, (least + own[0][1:], most + own[1][1:])
def channel_single(net, lo, hi):
    """Step 7: how far each output can be off that is computed in single precision, rounded up."""
    tiny, errors = exact(2.0**-126), [nothing(net.values[0].size)]
    for value in net.values[1:]:
        given = [errors[s] for s in value.sources]
        if value.kind == "relu": error = given[0] + tiny
        elif value.kind == "picked":
            error = gather(given, value.index)
            if value.op in ("Concat", "Pad", "Slice", "Split", "Gather", "Resize", "Upsample"): error += tiny  # It may be written in another way
        elif value.kind == "largest": error = merge(lambda x: x[value.index].max(axis=0), given[0]) + tiny
        else:
            sizes = [larger(abs(lo[s]), abs(hi[s])) + error for s, error in zip(value.sources, given)]
            if value.kind == "added": bias, factors = nothing(value.size), [exact(np.ones(value.size))] * 2
            elif value.kind == "scaled":
                bias, divisor = exact(value.bias), np.abs(value.divisor)
                factors = [exact(np.where(divisor == 1, np.abs(value.factor), np.nextafter(1 / divisor, np.inf)))]
            else: weights, bias, factors = exact(np.abs(value.weights)), exact(value.bias), None
            def total(x, ones=False):  # Sums of operands times weights without signs, or times 1 if these are not 0
                if factors: return sum((Exact((f.n != 0).astype(object)) * y if ones else f * y
                                        for f, y in zip(factors, x)), nothing(value.size))
                w = Exact((weights.n != 0).astype(object)) if ones else weights
                return sums(w, value.index, value.place, x[0], x[0])[1]
            size, count = abs(bias) + total(sizes), total([exact(np.ones(len(x.n))) for x in given], True)
            count = count.n * count.unit.numerator // count.unit.denominator
            given, sizes, n = [x + tiny for x in given], [x + tiny for x in sizes], count + 1
            prove(((size - exact(2.0**127 * (1 - 2.0**-24))).n <= 0).all() and n.max() < 2**23, "a float may overflow")
            error = total(given)
            if value.kind == "sums" and value.op in MEANS:  # Each number is rounded twice more, before or after
                share, n = exact(np.nextafter(1 / np.broadcast_to(value.divisor, value.size), np.inf)), n + 2
                size, error = size * share, error * share
            error += tiny * (total(sizes, True) + Exact(2 * n))
            error += (size + error) * Exact(-(-(n << 80) // (2**24 - n)), Fraction(1, 2**80))
            still = (count == 0) & ((bias.n == 0) | ((abs(bias) - tiny).n >= 0))
            error = Exact(np.where(still, 0, error.n), error.unit)
        errors.append(short(error, True))
    return [errors[v] for v in net.outputs]
# What a certificate looks like. A tuple is a list of just these items, and fields with a star may be missing.
def either(*schemas): return lambda x: any(fits(x, schema) for schema in schemas)
TILT = {"layer": int, "position": str, "on": str, "softness": float}
TREE = [either((int, int), {"slopes*": [(int, int, float)], "multipliers*": [float], "tilt*": TILT})]
CLAIM = either("itself", {"constant": float}, {"linear": float}, {"multiple": (int, float)})
LAYER = {"units": str, "linear*": bool, "witnesses*": [(int, int)],
         "facts*": [{"unit": int, "side": either("lower", "upper"), "tree": TREE}], "claims*": [(int, CLAIM)]}
BOUND, ROLE = either(float, [float]), either((int, int), (int, int, float), "linear", {"constant": float})
LINK = {"layers": [LAYER], "points*": [either(str, [float])], "anchors*": [(str, str)], "roles": [[ROLE]]}
CHANNEL_LINK = {"channels": [(str, str)], "network*": str}
PART = {"value": str, "layers": [LAYER], "anchors*": [(str, str)], "roles": [[ROLE]]}
LATEST_LINK = {**CHANNEL_LINK, "part*": PART, "linear*": [(int, either("-", "+"), int, str)],
               "expressions*": [(str, int, float, [(int, float)])]}
COMMON = {"format": "leo certificate", "first": str, "second": str, "links": [either(LINK, {**LINK, "network": str})],
          "domain": {"inputs": int, "lo": BOUND, "hi": BOUND}}
CERTIFICATE = either({**COMMON, "version": 1, "delta": [float]},
                     {**COMMON, "version": 2, "delta": [BOUND], "delta_f32*": [BOUND]},
                     {**COMMON, "version": 3, "delta": [BOUND], "delta_f32*": [BOUND],
                      "links": [either(LINK, {**LINK, "network": str}, CHANNEL_LINK)]},
                     {**COMMON, "version": 4, "delta": [BOUND], "delta_f32*": [BOUND], "shape*": [int],
                      "links": [either(LINK, {**LINK, "network": str}, LATEST_LINK)]})
def fits(x, schema):
    """Whether what was read fits a schema. Whole numbers count something: they are never negative."""
    if isinstance(schema, dict):
        return type(x) is dict and {n for n in schema if n[-1] != "*"} <= set(x) and all(
            n in schema and fits(x[n], schema[n]) or n + "*" in schema and fits(x[n], schema[n + "*"]) for n in x)
    if isinstance(schema, list): return type(x) is list and all(fits(item, schema[0]) for item in x)
    if isinstance(schema, tuple): return type(x) is list and len(x) == len(schema) and all(map(fits, x, schema))
    if schema is float: return type(x) in (int, float) and abs(x) <= sys.float_info.max
    if isinstance(schema, type): return type(x) is schema and (schema is not int or x >= 0)
    return schema(x) if callable(schema) else type(x) is type(schema) and x == schema
def forward(value, x, start, signed=True):  # What an affine value makes of what `x` says of its operands, plus a start
    return sum(((w if signed else abs(w)) @ x(source) for source, w in value.terms), start)
def span(c, lo, hi):  # The least and the largest value of linear functions of operands in these ranges
    middle, reach = c @ (lo + hi), abs(c) @ (hi - lo)
    return [Exact(x.n, x.unit / 2) for x in (middle - reach, middle + reach)]
def leaves(net, layer, fact):
    """Step 3: a tree's leaves as rows (unit, sign, slopes, tilt or 0, cuts: (layer, unit, half, multiplier))."""
    rows, ways, where, sign = [], [[]], (layer, fact["unit"]), 1.0 if fact["side"] == "upper" else -1.0
    for item in fact["tree"]:
        prove(ways, "layer %d, unit %d: a tree has something left over", *where)
        way, cut, end = ways.pop(), type(item) is list, layer if type(item) is list else len(net.layers)
        slopes, given, tilt = ([item], [], 0) if cut else map(item.get, ("slopes", "multipliers", "tilt"), ([], [], 0))
        prove(len(given) <= len(way) <= 512 - cut and all(s[0] < end and s[1] < net.values[net.layers[s[0]]].size
              for s in slopes), "layer %d, unit %d: a tree is too deep, or has an unknown unit or multiplier", *where)
        prove(not tilt or tilt["layer"] < layer and tilt["softness"] > 0 and not (tilt["on"] + tilt["position"]).strip(
              "0123456789abcdefABCDEF") and (len(tilt["on"]) / 2, len(tilt["position"]) / 2) ==
              net.values[net.layers[tilt["layer"]]].weights.shape, "layer %d, unit %d: a senseless tilt", *where)
        if cut: ways += [way + [(*item, 1.0)], way + [(*item, -1.0)]]
        else: rows.append((where[1], sign, slopes, tilt, [(*c, max(m, 0.0)) for c, m in zip(way, given + [0.0] * 512)]))
    prove(not ways, "layer %d, unit %d: a tree is not whole", *where)
    return rows
def tilted(tilt, g, units, lo, hi):
    """Step 2: tilted lines above units, as coefficients on what makes them, which lies in a box, and constants."""
    w, position, on = g.weights[units], *(np.array([*bytes.fromhex(tilt[name])]) / 255 for name in ("position", "on"))
    share = 0.5 + (on[units, None] - np.where(w > 0, position, 1 - position)) / float(tilt["softness"])
    w, a = exact(w), exact(w * np.clip(share, 0, 1))
    return a, larger(span(-a, lo, hi)[1], g.constant[units] + span(w - a, lo, hi)[1])
def bounds(net, layer, rows, lo, hi):
    """Step 2: upper bounds of pre-activations of a layer, times signs, by substitution back to the input."""
    start, count = net.values[net.layers[layer]].relu, len(rows)
    ones = np.eye(net.values[start].size)[[row[0] for row in rows]] * [[row[1]] for row in rows]
    coefficients, constant = {0: nothing(count, net.values[0].size), start: exact(ones)}, nothing(count)
    for v in (v for v in range(start, 0, -1) if v in coefficients):
        c, value = coefficients.pop(v), net.values[v]
        if value.relu is None:
            constant += c @ value.constant
            parts = [(source, c @ w) for source, w in value.terms]
        else:
            l, u, g = lo[value.relu], hi[value.relu], net.values[value.relu]
            flows, tops = [nothing(1, value.weights.shape[-1])] * count, [nothing(1)] * count
            on, off, slope, extra = (np.tile(x, (count, 1)) for x in (
                l.n >= 0, u.n <= 0, 1.0 * ((u + l * exact(1 + 2.0**-20)).n > 0), np.zeros(value.size)))
            for r, (_, _, slopes, tilt, cuts) in enumerate(rows):
                for _, k, given in (s for s in slopes if s[0] == value.layer): slope[r, k] = min(max(given, 0.0), 1.0)
                for _, k, half, multiplier in (s for s in cuts if s[0] == value.layer):
                    (on if half > 0 else off)[r, k] = True
                    extra[r, k] += half * multiplier
                if tilt and tilt["layer"] == value.layer:
                    k, [(z, _)] = np.flatnonzero((c.n[r] > 0) & ~on[r] & ~off[r]), g.terms
                    flows[r], tops[r] = (c[r:r + 1, k] @ x for x in tilted(tilt, g, k, lo[z], hi[z]))
                    c.n[r, k] = 0
            chord = merge(lambda x, y: np.array([a / b if 0 < a < b else 0.0 for a, b in zip(x, y)]), u, u - l).n
            d = c * exact(np.where(on, 1.0, np.where(off, 0.0, np.where(c.n > 0, chord, slope))))
            gap = larger(-(d * l), (c - d) * u)
            constant += Exact(np.where((c.n > 0) & ~on & ~off, gap.n, 0).sum(axis=1), gap.unit) + join(tops)
            parts = [(value.relu, d + exact(extra))] + [(z, f) for f in [join(flows)] for z, _ in g.terms if f.n.any()]
        for source, c in parts: coefficients[source] = coefficients[source] + c if source in coefficients else c
    return constant + span(coefficients[0], lo[0], hi[0])[1]
def interval(value, lo, hi):  # Step 1: where an affine value lies
    return [sum(parts, value.constant) for parts in zip(*(span(w, lo[i], hi[i]) for i, w in value.terms))]
def ranges(net, layers, lo, hi):
    """Steps 1 to 3: the range of every value, narrowed at layers, where the letters are checked."""
    for value in net.values[1:]:
        if value.relu is None:
            low, high = interval(value, lo, hi)
            lo, hi = lo + [low], hi + [high]
            continue
        g, size, j, letters = value.relu, value.size, value.layer, layers[value.layer]["units"]
        facts, at = layers[j].get("facts", []), 2 * size
        prove(len(letters) == size and not letters.strip("-+~?") and all(fact["unit"] < size for fact in facts),
              "layer %d has %d units", j, size)
        groups = [[(k, sign, [], 0, [])] for sign in (1.0, -1.0) for k in range(size)
                  if layers[j].get("linear")] + [leaves(net, j, f) for f in facts]
        rows = [row for group in groups for row in group]
        found = join([hi[g], -lo[g]] + [bounds(net, j, rows[i:i + 256], lo, hi) for i in range(0, len(rows), 256)])
        for group in groups:
            place, at = group[0][0] + size * (group[0][1] < 0), at + len(group)
            found.n[place] = min(found.n[place], max(found.n[at - len(group):at]))
        hi[g], lo[g] = found[:size], -found[size:2 * size]
        wrong = [k for k, x in enumerate(letters) if x == "-" and hi[g].n[k] > 0 or x == "+" and lo[g].n[k] < 0]
        prove(not wrong, "layer %d, unit %d: it is not proved to be always off, or on, as is said", j, *wrong[:1])
        lo, hi = lo + [lo[g].clip()], hi + [hi[g].clip()]
    return lo, hi
def witnesses(net, link, lo, hi):
    """Step 4: units that can be on or off are that at their points."""
    size, points = len(lo), link.get("points", [])
    prove(all(len(p) == (size if isinstance(p, list) else (size + 3) // 4) and (isinstance(p, list) or not
          p.strip("0123456789abcdefABCDEF")) for p in points), "a point of odd length, or no digits")
    points = np.array([p if isinstance(p, list) else np.where([int(digit, 16) >> bit & 1 for digit in p
                       for bit in (3, 2, 1, 0)][:size], hi, lo) for p in points], np.float64).reshape(-1, size)
    prove(((points >= lo) & (points <= hi)).all(), "a point is not in the domain")
    x = [exact(points.T)]
    for value in net.values[1:]:
        if value.relu is not None:
            g, j, layer = x[value.relu].n, value.layer, link["layers"][value.layer]
            given, units = layer.get("witnesses", []), [k for k, letter in enumerate(layer["units"]) if letter == "~"]
            prove(len(given) == len(units), "layer %d has too many or too few witnesses", j)
            wrong = [k for k, p in zip(units, given) if max(p) >= len(points) or not g[k, p[0]] < 0 < g[k, p[1]]]
            prove(not wrong, "layer %d, unit %d: its witnesses do not show it off and on", j, *wrong[:1])
        x += [x[value.relu].clip() if value.terms == () else forward(value, x.__getitem__, value.constant[:, None])]
def distances(first, second, link, lo, hi):
    """Step 5: how far each output may move. An expression is a matrix of coefficients, with a row for each element of a
    value and a column for each basis element, the first of which is 1."""
    anchors = {}  # For values of the second network, those of the first
    for a, b in link.get("anchors", []):
        prove(a in first.names and b in second.names and math.prod(first.names[a][1]) == math.prod(second.names[b][1]),
              "anchor '%s', '%s' is not there, or has values of different sizes", a, b)
        a, b = first.names[a][0], second.names[b][0]
        prove(a == b == 0 or a * b and anchors.get(b, a) == a and (b in anchors or a not in anchors.values()), "twice")
        anchors.update({b: a} if a else {})  # What is only reshaped is the same value: a pair may be there twice
    spans = {v: (lo[v], hi[v]) for v in [0] + first.layers} | {~a: (lo[a], hi[a]) for a in set(anchors.values())} | {
        (net is second, v): (nothing(net.values[v].size),) * 2 for net in (first, second) for v in net.layers}  # Symbols
    columns, width = {}, 1
    for block in spans: columns[block], width = width, width + len(spans[block][0].n)
    def basis(block): return Exact(np.eye(len(spans[block][0].n), width, columns[block], dtype=object))
    def column(constant): return constant[:, None] * Exact(np.eye(1, width, dtype=object))
    def limits(e): return span(e, *(join([exact([1.0])] + [s[i] for s in spans.values()]) for i in (0, 1)))
    def near(error, mine, theirs):
        """A part of an error, nothing, half or all, and between what a ReLU lies that has it without that part."""
        least, most = (-error[0]).clip(), error[1].clip()
        half = larger(least, most) * exact(0.5)
        options = [(half, half)]
        for x, y, m, n in (mine, theirs, least, most), ([-b for b in mine[::-1]], [-b for b in theirs[::-1]], most, least):
            (a, b), (c, d) = ([bound.clip() for bound in at] for at in (x, y))
            options.append((smaller(d - a, m), smaller(b - c, n)))
        below, above = (merge(lambda *x: np.array(x), *x) for x in zip(*options))
        widths, best, rows = below + above, np.zeros(len(half.n), int), np.arange(len(half.n))
        for i in (1, 2):  # One that is clearly better than the best so far
            best[(widths[best, rows] * exact(1 - 2.0**-20) - widths[i]).n > 0] = i
        return exact(np.array([0.5, 0.0, 1.0])[best]), -below[best, rows], above[best, rows]
    def layer(j, g, bounds, claims, others, symbols):
        """A layer by claims: pairs of a kind and a number or list. Roles are claims, with one of `others` as kind."""
        groups, parts = {}, []
        for k, (kind, _) in enumerate(claims): groups.setdefault(kind, []).append(k)
        for kind, units in groups.items():
            (low, high), what = (b[units] for b in bounds), [claims[k][1] for k in units]
            if kind == "itself": parts.append((others["multiple"][1][units], *[nothing(len(units))] * 2))
            elif kind in ("constant", "linear"):
                c, linear = exact(what), kind == "linear"
                low, high = ((-high).clip(), (-low).clip()) if linear else (low.clip(), high.clip())
                parts.append((g[units] + column(c) if linear else column(c), low - c, high - c))
            else:
                for k, (at, f) in zip(units, what):
                    prove(kind in others and at < len(others[kind][1].n) and (f > 0 if kind != "multiple" else f and
                          claims[at][0] == "itself"), "layer %d, unit %d: a senseless multiple or role", j, k)
                sources, f, (before, after, ends) = [w[0] for w in what], exact([w[1] for w in what]), others[kind]
                e = after[sources] * abs(f)[:, None] + before[sources] * smaller(f, nothing(1))[:, None]
                gap, ends = g[units] - before[sources] * f[:, None], [end[sources] * f for end in ends]
                part, below, above = near(limits(gap), (low, high), (smaller(*ends), larger(*ends)))
                parts.append((e + gap * part[:, None], below, above))
        back = np.argsort([k for units in groups.values() for k in units])
        e, *spans[symbols] = (join(x)[back] for x in zip(*parts))
        return e + basis(symbols)
    def pair(x): return (x[0], (x + [1.0])[1:3]) if type(x) is list else (x, 0.0) if type(x) is str else [*x.items()][0]
    both, aside, known = ([], []), [], {}
    claims = [{k: {"-": {"constant": 0.0}, "+": "linear"}.get(letter, "itself") for k, letter in enumerate(x["units"])}
              | dict(x.get("claims", [])) for x in link["layers"]]
    for j, x in enumerate(claims): prove(len(x) == len(link["layers"][j]["units"]), "layer %d: a claim of nothing", j)
    for found, net, said in zip(both, (first, second), ([[*x.values()] for x in claims], link["roles"])):
        for v, value in enumerate(net.values):
            if value.relu is None:
                e = basis(0) if not v else forward(value, found.__getitem__, column(value.constant))
            else:
                j, g, others = value.layer, found[value.relu], known
                bounds = limits(g)
                if found is both[0]:
                    bounds = larger(bounds[0], lo[value.relu]), smaller(bounds[1], hi[value.relu])
                    others = {"multiple": (g, basis(v), bounds)}
                e = layer(j, g, bounds, [pair(x) for x in said[j]], others, (net is second, v))
                known.update({j: (g, e, bounds)} if found is both[0] else {})
            aside.append(e)  # Those of the second network, which come after, are never looked at
            if found is both[0] and ~v in columns: e = basis(~v)
            if found is both[1] and v in anchors: e = basis(~anchors[v]) + e - aside[anchors[v]]
            found.append(e)
    low, high = [lo[0]], [hi[0]]  # Step 7: the ranges of the second network's values
    for value, e in zip(second.values[1:], both[1][1:]):
        pair = interval(value, low, high) if value.relu is None else (low[value.relu].clip(), high[value.relu].clip())
        for x, y, narrow, bound in zip((low, high), pair, (larger, smaller), limits(e)): x.append(narrow(y, bound))
    outputs = zip(first.outputs, second.outputs)
    return [larger(-x, y) for x, y in (limits(both[0][a] - both[1][b]) for a, b in outputs)], (low, high)
def single(net, lo, hi):
    """Step 7: how far each output can be off that is computed in single precision."""
    tiny, errors = exact(2.0**-126), [nothing(net.values[0].size)]
    for value in net.values[1:]:
        if value.relu is not None:
            errors.append(errors[value.relu] + tiny)
            continue
        sizes = {i: larger(abs(lo[i]), abs(hi[i])) + errors[i] for i, _ in value.terms}
        ones = [(i, Exact((w.n != 0).astype(object))) for i, w in value.terms]
        size = sum((abs(w) @ sizes[i] for i, w in value.terms), abs(value.constant))
        error = sum((abs(w) @ (errors[i] + tiny) for i, w in value.terms), nothing(value.size))
        count = sum(w.n.sum(axis=1) for _, w in ones)
        prove(((size - exact(2.0**127 * (1 - 2.0**-24))).n <= 0).all() and count.max() + 1 < 2**23, "a float may overflow")
        error = sum((tiny * (w @ (sizes[i] + tiny)) for i, w in ones), error) + tiny * Exact(2 * count + 2)
        gamma = [Fraction(k + 1, 2**24 - k - 1) for k in count]
        error += join([(size + error)[k:k + 1] * Exact(np.array([g.numerator], object), Fraction(1, g.denominator))
                       for k, g in enumerate(gamma)])
        still = (count == 0) & ((value.constant.n == 0) | ((abs(value.constant) - tiny).n >= 0))
        errors.append(Exact(np.where(still, 0, error.n), error.unit))
    return [errors[v] for v in net.outputs]
def dense(data, shape):
    """A network for links about units, which are refused if there are none of such a network."""
    try: return Network(data, shape)
    except Exception as error:
        try: odd = {value.op for value in Channels(data, shape).values}.intersection(WINDOWED)
        except Exception: raise error
        prove(not odd, "something is said of units of a network with %s", " ".join(odd))
        raise
def load(data, road, shape, cache={}):  # The hash of an ONNX file, and the network in it, as a link needs it
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    key = hashlib.sha256(data).hexdigest()
    known = key, road, tuple(shape or ())
    return key, cache.setdefault(known, cache.get(known) or road(data, shape))
def between(digits, road, shape):  # The same for a file within a certificate
    try: return load(bytes.fromhex(digits), road, shape)
    except Exception as error: raise Refused("a link leads to no network: %s" % error) from error
def equal(x, y): return x.n.shape == y.n.shape and not (x - y).n.any()
def same(a, b):
    """Whether two networks are the same, node by node and number by number, where 0 and -0 are one number."""
    return a is b or a.outputs == b.outputs and len(a.values) == len(b.values) and all(
        x.relu == y.relu and equal(x.constant, y.constant) and len(x.terms) == len(y.terms) and
        all(i == j and equal(v, w) for (i, v), (j, w) in zip(x.terms, y.terms)) for x, y in zip(a.values, b.values))
def check(*paths):
    """Checks three files, and returns if the claim is verified."""
    model, small, c = (open(path, "rb").read() for path in paths)
    c = json.loads(c.decode("utf-8"), parse_constant=lambda _: None,  # None fits nothing
                   object_pairs_hook=lambda pairs: dict(pairs) if len(dict(pairs)) == len(pairs) else None)
    need(fits(c, CERTIFICATE), "the certificate has missing, unknown or mistyped fields, or another version")
    links, domain = c["links"], c["domain"]
    asked = [4 if {"linear", "expressions", "part"} & set(x) else 3 if "channels" in x else 2 for x in links]
    need((4 if "shape" in c else max(asked, default=2)) == max(c["version"], 2) and
         all(x.get("linear", [0]) and x.get("expressions", [0]) for x in links), "what it says is of another version")
    shape = c.get("shape")
    prove(["network" in link for link in links] == [True] * (len(links) - 1) + [False], "a network too few or too many")
    roads, inner = [Channels if "channels" in link else dense for link in links], [x["network"] for x in links[:-1]]
    pairs = [(between(inner[i - 1], road, shape) if i else load(model, road, shape),
              between(inner[i], road, shape) if i < len(inner) else load(small, road, shape))
             for i, road in enumerate(roads)]
    keys, nets = zip(*(x for two in pairs for x in two))
    prove((keys[0], keys[-1]) == (c["first"], c["second"]), "the certificate is of other files: the hashes differ")
    sizes = [[n.values[0].size] + [n.values[o].size for o in n.outputs] for n in nets]
    prove(nets[0].interface == nets[-1].interface and all(s == sizes[0] for s in sizes) and
          len(sizes[0]) == len(c["delta"]) + 1, "inputs, outputs, tails or the number of deltas do not fit together")
    lo, hi = (np.array(x if type(x) is list else [x] * sizes[0][0], np.float64) for x in (domain["lo"], domain["hi"]))
    prove(len(lo) == len(hi) == domain["inputs"] == sizes[0][0] and (lo <= hi).all(), "the domain does not fit")
    deltas, total = c.get("delta_f32", c["delta"]), [nothing(size) for size in sizes[0][1:]]
    prove(len(deltas) == len(total) and all(type(d) is not list or len(d) == len(x.n) for said in (c["delta"], deltas)
          for d, x in zip(said, total)), "odd deltas")
    prove("delta_f32" not in c or nets[0].plain and nets[-1].plain, "delta_f32 of a file that is not in single precision")
    errors = []
    for (_, first), (_, second), link in ((*two, link) for two, link in zip(pairs, links)):
        if "channels" in link:
            found = channel_ranges(first, [exact(lo)], [exact(hi)], link.get("linear", []))
            errors = channel_single(first, *found) if link is links[0] and "delta_f32" in c else errors
            if "part" in link: moved, last = parted(first, second, link, *found)
            else:
                *moved, last = differences(first, second, link["channels"], *found, link.get("expressions", []))
                moved = magnitudes(second, *moved)
            total = [a + b for a, b in zip(total, moved)]
            continue
        prove([len(link["layers"])] + [len(roles) for roles in link["roles"]] ==
              [len(first.layers)] + [second.values[v].size for v in second.layers], "other layers or units")
        found = ranges(first, link["layers"], [exact(lo)], [exact(hi)])
        witnesses(first, link, lo, hi)
        errors, last = single(first, *found) if link is links[0] and "delta_f32" in c else errors, found
        if not same(first, second):
            moved, last = distances(first, second, link, *found)
            total = [a + b for a, b in zip(total, moved)]
    end = (channel_single if "channels" in links[-1] else single)(nets[-1], *last) if "delta_f32" in c else []
    errors = [a + b for a, b in zip(errors, end)] if "delta_f32" in c else [nothing(1) for _ in total]
    for i, (x, error) in enumerate(zip(total, errors)):
        for name, said, bound in ("delta", c["delta"][i], x), ("delta_f32", deltas[i], x + error):
            over = (bound - exact(np.broadcast_to(said, x.n.shape))).n
            prove(name not in c or (over <= 0).all(), "output %d, element %d: more than %s", i, over.argmax(), name)
    return "on the domain, no output is further from the first network's than delta, %s" % c["delta"]
def answer(paths):
    try: return "verified", check(*paths)
    except Refused as error: return "refused", str(error)
    except Exception as error: return "broken", str(error).replace("\n", " ") or type(error).__name__  # Of any kind
if __name__ == "__main__":
    np.seterr(all="ignore")
    batch, usage = sys.argv[1:2] == ["--batch"], "usage: check.py MODEL SMALL CERTIFICATE | --batch FILE"
    if len(sys.argv) != (3 if batch else 4): sys.exit(print(usage, file=sys.stderr) or 2)
    for paths in (line.rstrip("\n").split("\t") for line in open(sys.argv[2])) if batch else [sys.argv[1:]]:
        print(("\t" if batch else ": ").join(found := answer(paths)), flush=True)
    sys.exit(0 if batch else ["verified", "refused", "broken"].index(found[0]))
