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
    name, number, wire = {1: ("<f4", 4, 5), 7: ("<i8", 7, 0), 11: ("<f8", 10, 1)}[kind]
    raw, data = content(fields, 9, 2), content(fields, number, wire, 2)
    return (np.frombuffer(raw or data, name) if raw or wire else np.array(integers(data), name)).reshape(shape)
def attribute(fields):  # A float, a whole number, the message of a tensor, or None if it is something else
    number = np.frombuffer(content(fields, 2, 5) or bytes(4), "<f4").tolist()[-1]
    return {1: number, 2: integer(fields, 3), 4: part(fields, 5)}.get(integer(fields, 20))
# Operators with the attributes that are known here; and those with which a tail may begin
KNOWN = {"Gemm": "alpha beta transB", "Flatten": "axis", "Cast": "to", "Constant": "value", "MatMul": "", "Add": "",
         "Sub": "", "Mul": "", "Div": "", "Relu": "", "Reshape": "", "Identity": ""}
TAIL = "Softmax LogSoftmax Hardmax ArgMax ArgMin TopK Sigmoid Tanh Exp Log Softplus Erf ReduceMax ReduceMin".split()
class Network:
    """The network in an ONNX file. Its `values` are the input, affine (`terms`: pairs of an earlier value and a matrix;
    `constant`), or ReLUs (`relu`: of which value). If one matrix makes it, or what it is a ReLU of, from all of
    one value, that is its `weights`, in doubles. Batches are one sample: no operator known here can mix samples."""
    def __init__(self, data):
        model, graph = message(data), part(message(data), 7)
        self.opsets = {text(o, 1): integer(o, 2) for o in messages(model, 8)}
        self.constants = {"": {}, **{text(t, 8): t for t in messages(graph, 5)}}  # Messages, until they are needed
        self.values, self.layers, self.ends, self.tail, self.names = [], [], {}, {}, {}
        inputs, outputs = [i for i in messages(graph, 11) if text(i, 1) not in self.constants], messages(graph, 12)
        need(len(inputs) == 1 and (25, 2) not in model and len(self.constants) == len(graph.get((5, 2), [])) + 1,
             "not ONNX, or several inputs, or functions of its own, or initializers of the same name")
        kind, needed, nodes = part(part(inputs[0], 2), 1), {text(o, 1) for o in outputs}, []
        shape = [integer(axis, 1) for axis in messages(part(kind, 2), 1)]  # An open axis has 0
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
        if any(i in self.tail for i in inputs) or not (constant or foreign) and (
                op in TAIL or op == "Cast" and a.get("to") not in (1, 10, 11)):
            return self.tail.update((o, node) for o in outputs)
        need(not foreign and op in KNOWN and all(v == 0 or v is not None and k in KNOWN[op].split()
             for k, v in a.items()), "operator %s, or an attribute of it, is not known", op)
        if op == "Constant": return self.constants.update({outputs[0]: a["value"]})
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
# What a certificate looks like. A tuple is a list of just these items, and fields with a star may be missing.
def either(*schemas): return lambda x: any(fits(x, schema) for schema in schemas)
TILT = {"layer": int, "position": str, "on": str, "softness": float}
TREE = [either((int, int), {"slopes*": [(int, int, float)], "multipliers*": [float], "tilt*": TILT})]
CLAIM = either("itself", {"constant": float}, {"linear": float}, {"multiple": (int, float)})
LAYER = {"units": str, "linear*": bool, "witnesses*": [(int, int)],
         "facts*": [{"unit": int, "side": either("lower", "upper"), "tree": TREE}], "claims*": [(int, CLAIM)]}
BOUND, ROLE = either(float, [float]), either((int, int), (int, int, float), "linear", {"constant": float})
LINK = {"layers": [LAYER], "points*": [either(str, [float])], "anchors*": [(str, str)], "roles": [[ROLE]]}
COMMON = {"format": "leo certificate", "first": str, "second": str, "links": [either(LINK, {**LINK, "network": str})],
          "domain": {"inputs": int, "lo": BOUND, "hi": BOUND}}
CERTIFICATE = either({**COMMON, "version": 1, "delta": [float]},
                     {**COMMON, "version": 2, "delta": [BOUND], "delta_f32*": [BOUND]})
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
def load(data, cache={}):  # The hash of an ONNX file, and the network in it
    data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    key = hashlib.sha256(data).hexdigest()
    return key, cache.setdefault(key, cache.get(key) or Network(data))
def between(digits):  # The same for a file within a certificate
    try: return load(bytes.fromhex(digits))
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
    prove(["network" in link for link in links] == [True] * (len(links) - 1) + [False], "a network too few or too many")
    keys, nets = zip(load(model), *(between(link["network"]) for link in links[:-1]), load(small))
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
    for first, second, link in zip(nets, nets[1:], links):
        prove([len(link["layers"])] + [len(roles) for roles in link["roles"]] ==
              [len(first.layers)] + [second.values[v].size for v in second.layers], "other layers or units")
        found = ranges(first, link["layers"], [exact(lo)], [exact(hi)])
        witnesses(first, link, lo, hi)
        errors, last = single(first, *found) if link is links[0] and "delta_f32" in c else errors, found
        if not same(first, second):
            moved, last = distances(first, second, link, *found)
            total = [a + b for a, b in zip(total, moved)]
    errors = [a + b for a, b in zip(errors, single(nets[-1], *last))] if "delta_f32" in c else [nothing(1) for _ in total]
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
