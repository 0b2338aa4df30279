//! From an ONNX graph to a network.
//!
//! Every node that an output depends on is lowered by the function that [`lower`] has for its operator.
//! Constants are folded on the way. What Leo has no function for may stand after the last affine map: it becomes
//! part of the [`Tail`]. Anywhere else it is refused by name.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;

use super::compose::Composer;
use super::dims::{Axis, DimEntry, Dims};
use super::element::{Float, Int};
use super::given_shape::{GivenShape, axes_of};
use super::graph::{label, live_order, true_inputs};
use super::lower::{self, Call};
use super::proto::{GraphProto, NodeProto, TensorProto, TypeValue, ValueInfoProto};
use super::tensor::{Tensor, TensorError};
use super::{Hindrance, OnnxError, Reason, declared_axes, is_native};
use crate::tail::{Function, Source, Tail, TailNode};
use leo_network::{Network, ValueId};

/// A value that the network computes, and how ONNX sees it.
#[derive(Clone, Debug)]
pub(super) struct Computed {
    pub(super) id: ValueId,
    pub(super) dims: Dims,
    pub(super) float: Float,
    /// The half precision that it was cut down to before it was cast to what it is now.
    pub(super) narrowed: Option<Float>,
}

/// What a name in the graph stands for.
#[derive(Clone, Debug)]
pub(super) enum Value {
    /// A constant.
    Constant(Rc<Tensor>),
    /// A value of the network.
    Computed(Computed),
    /// A shape, or one entry of it, that depends on the size of the batch.
    Extents { int: Int, entries: Vec<DimEntry>, scalar: bool },
    /// A value of the tail: the operator that makes it, the one that the tail begins with before it, and its axes where
    /// they are known.
    Tail { index: usize, first: usize, dims: Option<Dims> },
    /// A constant that Leo cannot read, which is no matter where only the tail does.
    Unreadable { name: String, error: TensorError },
    /// What an operator with several outputs makes, one after the other.
    Several(Vec<Self>),
    /// Made from constants alone, by an operator that Leo has no function for.
    Unfolded { operator: String },
}

/// The constants by their names, those made from constants included.
pub(super) type Constants = HashMap<String, Rc<Tensor>>;

/// A graph, read.
#[derive(Debug)]
pub(super) struct Imported {
    pub(super) network: Network,
    pub(super) tail: Tail,
    pub(super) input: Computed,
    /// How long each axis of the input is, 1 for a batch of any size; and whether the file leaves some of that open.
    pub(super) extents: Vec<usize>,
    pub(super) was_given: bool,
    /// For each output of the file: where it comes from, and its axes where they are known.
    pub(super) outputs: Vec<(Source, Option<Dims>)>,
    /// The values besides that the tail makes, or that leave the network for it.
    pub(super) inner: Vec<(String, Source, Option<Dims>)>,
    /// For each value of the network that has a name: its first one, and how ONNX sees it.
    pub(super) names: HashMap<ValueId, (String, Computed)>,
    /// What each name stands for, where that is a value of the network.
    pub(super) computed: HashMap<String, Computed>,
    /// What is in the way of rewriting it.
    pub(super) hindrance: Option<Hindrance>,
}

/// Reads a graph, and its constants. A batch of fixed size that the graph does not keep apart is part of the sample.
pub(super) fn import(
    graph: &GraphProto,
    opset: i64,
    folder: Option<&Path>,
    shape: Option<&GivenShape>,
) -> Result<(Imported, Constants), OnnxError> {
    let [input] = true_inputs(graph)[..] else {
        let names = true_inputs(graph).iter().map(|input| input.name().to_owned()).collect();
        return Err(OnnxError::Inputs { names });
    };
    let float = input_type(input)?;
    let declared = declared_axes(input).ok_or_else(|| refused(input, "it has no shape"))?;
    let (declared, extents, was_given) = axes_of(&declared, shape).map_err(|reason| refused(input, reason))?;
    let read = |axes: Vec<Axis>| {
        let (read, constants) = Importer::run(graph, opset, folder, input, Dims::new(axes), float)?;
        Ok((Imported { extents: extents.clone(), was_given, ..read }, constants))
    };
    let attempt = read(declared.clone());
    match (attempt, declared.first()) {
        (Err(OnnxError::Node { reason: Reason::MixesBatch, .. }), Some(&Axis::Batch(Some(samples)))) => {
            let mut whole = declared;
            whole[0] = Axis::Fixed(samples);
            read(whole)
        }
        (attempt, _) => attempt,
    }
}

/// The type of the input, as the file declares it.
fn input_type(input: &ValueInfoProto) -> Result<Float, OnnxError> {
    let wrong = |reason: &str| refused(input, reason);
    let Some(TypeValue::Tensor(tensor)) = input.r#type.as_ref().and_then(|of| of.value.as_ref()) else {
        return Err(wrong("it is not a tensor"));
    };
    Float::from_code(tensor.elem_type()).ok_or_else(|| {
        wrong(&format!("it has the element type {}; Leo takes inputs of 16, 32 or 64 bit floats", tensor.elem_type()))
    })
}

fn refused(input: &ValueInfoProto, reason: impl ToString) -> OnnxError {
    OnnxError::Input { name: input.name().to_owned(), reason: reason.to_string() }
}

fn at(node: &NodeProto, reason: Reason) -> OnnxError {
    OnnxError::Node { node: label(node), operator: node.op_type().to_owned(), reason }
}

/// The state of reading a graph.
pub(super) struct Importer<'a> {
    composer: Composer,
    opset: i64,
    values: HashMap<&'a str, Value>,
    names: HashMap<ValueId, (String, Computed)>,
    tail: Tail,
    /// For each operator of the tail, its node and why it is not part of the network.
    kept: Vec<(&'a NodeProto, Reason)>,
    /// The values that leave the network, and the position of each.
    leaving: Vec<ValueId>,
    positions: HashMap<ValueId, usize>,
    hindrance: Option<Hindrance>,
}

impl<'a> Importer<'a> {
    fn run(
        graph: &'a GraphProto,
        opset: i64,
        folder: Option<&'a Path>,
        input: &'a ValueInfoProto,
        dims: Dims,
        float: Float,
    ) -> Result<(Imported, Constants), OnnxError> {
        let sample = dims.sample().map_err(|error| refused(input, error))?;
        let computed = Computed { id: ValueId::INPUT, dims, float, narrowed: None };
        let mut importer = Self {
            composer: Composer::new(sample),
            opset,
            values: HashMap::new(),
            names: HashMap::new(),
            tail: Tail::default(),
            kept: Vec::new(),
            leaving: Vec::new(),
            positions: HashMap::new(),
            hindrance: None,
        };
        importer.define(input.name(), Value::Computed(computed.clone()));
        for values in graph.sparse_initializer.iter().filter_map(|sparse| sparse.values.as_ref()) {
            let name = values.name();
            importer.define(name, Value::Unreadable { name: name.to_owned(), error: TensorError::Sparse });
        }
        let constants = graph.initializer.iter().map(|tensor| (tensor.name(), tensor)).collect();
        for index in live_order(graph)? {
            let node = &graph.node[index];
            importer.decode(node, &constants, folder);
            let call = importer.call(node, folder).map_err(|reason| at(node, reason))?;
            if let Some((culprit, reason)) = importer.misplaced(&call) {
                return Err(at(culprit, reason.clone()));
            }
            importer.lower(&call).map_err(|reason| at(node, reason))?;
            importer.note_hindrance(&call);
        }
        let mut outputs: Vec<_> = graph.output.iter().map(|output| importer.output(output.name())).collect();
        importer.reorder(graph, &mut outputs);
        if outputs.iter().all(|(source, _)| *source == Source::Constant) {
            return Err(OnnxError::ConstantOutput { output: graph.output[0].name().to_owned() });
        }
        let (inner, named, constants) = (importer.inner(graph), importer.computed(), importer.constants());
        let Self { composer, leaving, tail, names, hindrance, .. } = importer;
        let network = composer.finish(leaving).map_err(|error| refused(input, error))?;
        let input = computed;
        let (extents, was_given) = (Vec::new(), false);
        let computed = named;
        let read = Imported { network, tail, input, extents, was_given, outputs, inner, names, computed, hindrance };
        Ok((read, constants))
    }

    /// Reads the constants of the file that a node reads, if no node before it does.
    fn decode(&mut self, node: &'a NodeProto, constants: &HashMap<&str, &TensorProto>, folder: Option<&Path>) {
        for name in &node.input {
            let is_known = name.is_empty() || self.values.contains_key(name.as_str());
            let Some(proto) = constants.get(name.as_str()).filter(|_| !is_known) else { continue };
            let value = match Tensor::decode(proto, folder) {
                Ok(tensor) => {
                    self.composer.count_decoded(&tensor);
                    Value::Constant(Rc::new(tensor))
                }
                Err(error) => Value::Unreadable { name: name.clone(), error },
            };
            self.define(name, value);
        }
    }

    fn define(&mut self, name: &'a str, value: Value) {
        if let Value::Computed(computed) = &value {
            self.names.entry(computed.id).or_insert_with(|| (name.to_owned(), computed.clone()));
        }
        self.values.insert(name, value);
    }

    fn call(&self, node: &'a NodeProto, folder: Option<&'a Path>) -> Result<Call<'a>, Reason> {
        let missing = |name: &str| Reason::Unusable(format!("reads {name:?}, which has no value"));
        let value = |name: &String| match name.as_str() {
            "" => Ok(None),
            name => self.values.get(name).cloned().map(Some).ok_or_else(|| missing(name)),
        };
        let inputs = node.input.iter().map(value).collect::<Result<_, _>>()?;
        let mut attributes = HashSet::new();
        if let Some(again) = node.attribute.iter().find(|attribute| !attributes.insert(attribute.name())) {
            // One program takes the first, another one the last.
            return Err(Reason::Unusable(format!("has the attribute {:?} twice", again.name())));
        }
        let native = is_native(node.domain());
        let lowering = lower::lowering(node.domain(), node.op_type());
        Ok(Call { node, inputs, opset: self.opset, folder, native, lowering })
    }

    /// An operator that stands where Leo cannot have it, and why: the call's own, or one before it that was kept for
    /// the tail although the call's is not one for the tail.
    fn misplaced(&self, call: &Call<'a>) -> Option<(&'a NodeProto, &Reason)> {
        // Graphs within a node may read any value of this one without saying so.
        let nested = call.node.attribute.iter().any(|attribute| attribute.g.is_some() || !attribute.graphs.is_empty());
        if nested || (call.native && lower::refused_everywhere(call.node.op_type())) {
            return Some((call.node, &Reason::Unsupported));
        }
        let first = self.tail_before(call).filter(|_| call.lowering.is_some_and(|lowering| lowering.ends_tail))?;
        let (node, reason) = &self.kept[first];
        Some((node, reason))
    }

    fn lower(&mut self, call: &Call<'a>) -> Result<(), Reason> {
        self.composer.begin(call.node.name());
        let computed = call.inputs.iter().flatten().any(|input| matches!(input, Value::Computed(_)));
        let unfolded = || Value::Unfolded { operator: call.node.op_type().to_owned() };
        let made = match call.lowering {
            _ if self.tail_before(call).is_some() => self.keep_in_tail(call, Reason::Unsupported),
            Some(lowering) => match (lowering.lower)(&mut self.composer, call) {
                Err(reason @ Reason::NotAffine(_)) if computed && !lowering.ends_tail => {
                    self.keep_in_tail(call, reason)
                }
                Err(Reason::NotAffine(_)) if !computed => unfolded(),
                lowered => lowered?,
            },
            None if computed => self.keep_in_tail(call, Reason::Unsupported),
            None => unfolded(),
        };
        if let Value::Constant(tensor) = &made {
            self.composer.count_folded(tensor)?;
        }
        // Outputs beyond the first, such as Dropout's mask, are nothing that Leo follows.
        let further = if matches!(made, Value::Tail { .. }) { made.clone() } else { unfolded() };
        let several = if let Value::Several(values) = &made { values.clone() } else { vec![made] };
        for (position, name) in call.node.output.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
            self.define(name, several.get(position).unwrap_or(&further).clone());
        }
        Ok(())
    }

    /// Looks for what a rewrite could not keep in a call that is not for the tail.
    fn note_hindrance(&mut self, call: &Call<'a>) {
        let made = call.node.output.first().and_then(|name| self.values.get(name.as_str()));
        if self.hindrance.is_some() || matches!(made, Some(Value::Tail { .. })) {
            return;
        }
        let narrowed = call.inputs.iter().flatten().find_map(|input| match (input, made) {
            // What passes numbers on as they are, another Cast perhaps, does nothing with them.
            (Value::Computed(input), Some(Value::Computed(made))) if made.id != input.id => input.narrowed,
            _ => None,
        });
        self.hindrance = narrowed.map(|float| Hindrance::Narrowed { node: label(call.node), float });
    }

    /// The first operator of the tail that a call depends on.
    fn tail_before(&self, call: &Call<'_>) -> Option<usize> {
        call.inputs.iter().flatten().find_map(|input| match input {
            Value::Tail { first, .. } => Some(*first),
            _ => None,
        })
    }

    /// Keeps an operator as it is; `reason` is why it could not be part of the network.
    fn keep_in_tail(&mut self, call: &Call<'a>, reason: Reason) -> Value {
        self.kept.push((call.node, reason));
        let index = self.tail.nodes.len();
        let mut reads = Vec::new();
        for input in call.inputs.iter().flatten() {
            match input {
                Value::Computed(computed) => reads.push((self.leave(computed.id), Some(computed.dims.clone()))),
                Value::Tail { index, dims, .. } => reads.push((Source::Tail(*index), dims.clone())),
                Value::Constant(_) | Value::Extents { .. } | Value::Unreadable { .. } => {}
                Value::Several(_) | Value::Unfolded { .. } => {}
            }
        }
        let positions = reads.iter().any(|(source, _)| self.tail.are_positions(*source));
        let known = match &reads[..] {
            // A label may be passed on, but is no number to compute with.
            [_] if positions && call.node.op_type() != "Identity" => None,
            [(source, Some(dims))] => {
                lower::tail_function(call, dims).map(|(function, dims)| (function, *source, dims))
            }
            _ => None,
        };
        // Where an operator before this one cannot be evaluated, that one is to blame.
        let blame = || {
            let before = reads.iter().find_map(|(source, _)| match source {
                Source::Tail(before) => self.tail.nodes[*before].function.err(),
                _ => None,
            });
            before.unwrap_or(index)
        };
        let function = known.as_ref().map(|(function, source, _)| (*function, *source)).ok_or_else(blame);
        self.tail.nodes.push(TailNode {
            name: call.node.name().to_owned(),
            operator: call.node.op_type().to_owned(),
            positions: positions || matches!(function, Ok((Function::ArgMax { .. }, _))),
            function,
        });
        Value::Tail { index, first: self.tail_before(call).unwrap_or(index), dims: known.map(|(_, _, dims)| dims) }
    }

    /// Makes a value one of the network's outputs.
    fn leave(&mut self, id: ValueId) -> Source {
        let next = self.leaving.len();
        let position = *self.positions.entry(id).or_insert(next);
        if position == next {
            self.leaving.push(id);
        }
        Source::Network(position)
    }

    /// Puts the values that leave the network into an order that does not depend on that of the file's nodes, which
    /// rewriting changes: as they are met on the way back from the declared outputs.
    fn reorder(&mut self, graph: &'a GraphProto, outputs: &mut [(Source, Option<Dims>)]) {
        let made = graph.node.iter().flat_map(|node| node.output.iter().map(move |name| (name.as_str(), node)));
        let makers: HashMap<&str, &NodeProto> = made.collect();
        let mut order: Vec<usize> = Vec::new();
        let mut met: HashSet<&str> = HashSet::new();
        let mut ahead: Vec<&str> = graph.output.iter().rev().map(|output| output.name()).collect();
        while let Some(name) = ahead.pop() {
            if !met.insert(name) {
                continue;
            }
            match self.values.get(name) {
                Some(Value::Computed(computed)) => {
                    order.extend(self.positions.get(&computed.id).filter(|position| !order.contains(position)));
                }
                Some(Value::Tail { .. }) => {
                    ahead.extend(makers.get(name).iter().flat_map(|node| node.input.iter().rev().map(String::as_str)));
                }
                _ => {}
            }
        }
        let missing: Vec<usize> = (0..self.leaving.len()).filter(|position| !order.contains(position)).collect();
        order.extend(missing);
        self.leaving = order.iter().map(|&position| self.leaving[position]).collect();
        self.positions = self.leaving.iter().enumerate().map(|(position, &id)| (id, position)).collect();
        let moved = |source: &mut Source| {
            if let Source::Network(position) = source {
                *position = order.iter().position(|old| old == position).unwrap_or(*position);
            }
        };
        outputs.iter_mut().for_each(|(source, _)| moved(source));
        self.tail.nodes.iter_mut().flat_map(|node| &mut node.function).for_each(|(_, source)| moved(source));
    }

    /// The named values that leave the network or come after it, in the order of the file.
    fn inner(&self, graph: &GraphProto) -> Vec<(String, Source, Option<Dims>)> {
        let source = |name: &String| match self.values.get(name.as_str())? {
            Value::Computed(computed) => {
                let position = self.positions.get(&computed.id)?;
                Some((name.clone(), Source::Network(*position), Some(computed.dims.clone())))
            }
            Value::Tail { index, dims, .. } => Some((name.clone(), Source::Tail(*index), dims.clone())),
            _ => None,
        };
        graph.node.iter().flat_map(|node| &node.output).filter_map(source).collect()
    }

    /// The names of the network's values.
    fn computed(&self) -> HashMap<String, Computed> {
        let computed = |(name, value): (&&str, &Value)| match value {
            Value::Computed(computed) => Some(((*name).to_owned(), computed.clone())),
            _ => None,
        };
        self.values.iter().filter_map(computed).collect()
    }

    /// The constants by their names.
    fn constants(&self) -> Constants {
        let constant = |(name, value): (&&str, &Value)| match value {
            Value::Constant(tensor) => Some(((*name).to_owned(), tensor.clone())),
            _ => None,
        };
        self.values.iter().filter_map(constant).collect()
    }

    fn output(&mut self, name: &str) -> (Source, Option<Dims>) {
        match self.values.get(name).cloned() {
            Some(Value::Computed(computed)) => (self.leave(computed.id), Some(computed.dims)),
            Some(Value::Tail { index, dims, .. }) => (Source::Tail(index), dims),
            _ => (Source::Constant, None),
        }
    }
}
