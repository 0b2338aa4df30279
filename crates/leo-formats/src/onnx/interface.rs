//! What two files are to the outside: whether "their networks agree" means the same for both.
//!
//! Two files can be put in each other's place if they take the same input, give the same outputs, and do the same with
//! what leaves the network. For the last, both are followed back from their outputs, side by side, until the network or
//! a constant is reached on both sides: the same operators of the same versions, with the same attributes and the same
//! constants, reading the same outputs of the network. Names on the way do not matter, values do. Whatever is not seen
//! to be the same differs.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use prost::Message;

use super::dims::{Axis, Dims};
use super::element::Float;
use super::import::Computed;
use super::proto::{
    AttributeProto, FunctionProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, TypeProto, TypeValue,
};
use super::{Document, OnnxError, is_native};
use crate::model::{Format, Model};

/// In what two files differ to the outside.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterfaceDifference {
    /// The inputs' names.
    #[error("the inputs have other names: {0:?} and {1:?}")]
    InputName(String, String),
    /// The types of the input's elements.
    #[error("the inputs have other element types: {} and {}", .0.name(), .1.name())]
    InputType(Float, Float),
    /// The shapes of the input.
    #[error("the inputs have other shapes: {0} and {1}")]
    InputShape(String, String),
    /// The outputs' names.
    #[error("the outputs have other names: {} and {}", listed(.0), listed(.1))]
    OutputNames(Vec<String>, Vec<String>),
    /// The types of an output.
    #[error("output {0:?} has another type in one than in the other")]
    OutputType(String),
    /// The shapes of what leaves the networks.
    #[error("what leaves the networks has other shapes: {0} and {1}")]
    NetworkOutputs(String, String),
    /// The precision that numbers are cut down to on the way.
    #[error("one computes in {}, the other does not", .0.name())]
    HalfPrecision(Float),
    /// What comes after the network.
    #[error("{value:?} {reason}")]
    Tail {
        /// What the first file calls the value that is not made in the same way.
        value: String,
        /// In what the ways differ.
        reason: String,
    },
    /// A file that cannot be compared.
    #[error("one of them {0}")]
    Unreadable(String),
}

impl From<OnnxError> for InterfaceDifference {
    fn from(error: OnnxError) -> Self {
        Self::Unreadable(error.to_string())
    }
}

fn listed(names: &[String]) -> String {
    if names.is_empty() {
        return "none".to_owned();
    }
    names.iter().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ")
}

impl Model {
    /// Checks that another model has the same interface, so that it does the same if its network does: the same input,
    /// the same outputs, and the same operators between the network and them. Then the two networks have outputs of the
    /// same shapes in the same order.
    ///
    /// Batches may be of a fixed size in one and of any size in the other. What has a constant in its place is that
    /// constant, and no input, although a file may list it as one, too. An NNet file is taken for the ONNX file that
    /// [`to_onnx`](Self::to_onnx) makes of it.
    ///
    /// # Errors
    /// If anything differs, or cannot be seen to be the same.
    pub fn check_interface(&self, other: &Self) -> Result<(), InterfaceDifference> {
        let documents = [self.as_document()?, other.as_document()?];
        let [first, second] = [&*documents[0], &*documents[1]];
        // Casts to a smaller type and back are a matter of rounding, of which nothing is claimed; and Leo writes such
        // where a file mixes types. So what hinders rewriting is no matter here.
        check_input(first, second)?;
        check_declared_outputs(first, second)?;
        check_precision(first, second)?;
        check_tails(first, second)?;
        check_network_outputs(first, second)
    }

    /// The network as an ONNX file: what was read, or what an NNet file is as one.
    ///
    /// # Errors
    /// If numbers of an NNet file do not fit into ONNX.
    pub fn as_document(&self) -> Result<Cow<'_, Document>, OnnxError> {
        match self.format() {
            Format::Onnx(document) => Ok(Cow::Borrowed(document)),
            Format::Nnet(_) => Ok(Cow::Owned(Document::from_bytes(self.to_onnx()?, None)?)),
        }
    }
}

fn check_input(first: &Document, second: &Document) -> Result<(), InterfaceDifference> {
    let [(name, _), (other, _)] = [first.declared_input(), second.declared_input()];
    if name != other {
        return Err(InterfaceDifference::InputName(name.to_owned(), other.to_owned()));
    }
    let [a, b] = [&first.read.input, &second.read.input];
    if a.float != b.float {
        return Err(InterfaceDifference::InputType(a.float, b.float));
    }
    if !are_alike(&a.dims, &b.dims) {
        return Err(InterfaceDifference::InputShape(a.dims.to_string(), b.dims.to_string()));
    }
    Ok(())
}

/// Whether two values have the same axes, up to a batch whose size only one of the files fixes.
fn are_alike(a: &Dims, b: &Dims) -> bool {
    let alike = |(a, b): (&Axis, &Axis)| match (a, b) {
        (Axis::Batch(None), Axis::Batch(_)) | (Axis::Batch(_), Axis::Batch(None)) => true,
        (a, b) => a == b,
    };
    a.rank() == b.rank() && a.axes().iter().zip(b.axes()).all(alike)
}

fn check_declared_outputs(first: &Document, second: &Document) -> Result<(), InterfaceDifference> {
    let [names, others] = [first, second]
        .map(|document| document.declared_outputs().map(|(name, _)| name.to_owned()).collect::<Vec<_>>());
    if names != others {
        return Err(InterfaceDifference::OutputNames(names, others));
    }
    for (a, b) in first.graph().output.iter().zip(&second.graph().output) {
        if kind(a.r#type.as_ref()) != kind(b.r#type.as_ref()) {
            return Err(InterfaceDifference::OutputType(a.name().to_owned()));
        }
    }
    Ok(())
}

/// What a type says of elements. The shape of a tensor follows from how it is made.
fn kind(declared: Option<&TypeProto>) -> Option<Vec<u8>> {
    let mut declared = declared?.clone();
    declared.denotation = None;
    match &mut declared.value {
        Some(TypeValue::Tensor(tensor)) => tensor.shape = None,
        Some(TypeValue::SparseTensor(tensor)) => tensor.shape = None,
        _ => {}
    }
    Some(declared.encode_to_vec())
}

/// Casts are identities to a network, and between single and double precision that is all they are meant to be. Half
/// precision overflows.
fn check_precision(first: &Document, second: &Document) -> Result<(), InterfaceDifference> {
    for float in [Float::F16, Float::Bf16] {
        let [a, b] =
            [first, second].map(|document| document.read.computed.values().any(|computed| computed.float == float));
        if a != b {
            return Err(InterfaceDifference::HalfPrecision(float));
        }
    }
    Ok(())
}

fn check_network_outputs(first: &Document, second: &Document) -> Result<(), InterfaceDifference> {
    let shapes = |document: &Document| {
        let network = document.network();
        network.outputs().iter().map(|&value| network.shape(value).extents().to_vec()).collect::<Vec<_>>()
    };
    let [a, b] = [shapes(first), shapes(second)];
    if a == b { Ok(()) } else { Err(InterfaceDifference::NetworkOutputs(format!("{a:?}"), format!("{b:?}"))) }
}

fn check_tails(first: &Document, second: &Document) -> Result<(), InterfaceDifference> {
    let models = [first.embedded()?, second.embedded()?];
    let sides = [InterfaceSide::new(first, &models[0])?, InterfaceSide::new(second, &models[1])?];
    let mut walk = Walk { sides, partners: HashMap::new(), taken: HashSet::new() };
    let mut ahead: Vec<[&str; 2]> = first.declared_outputs().map(|(name, _)| [name; 2]).collect();
    ahead.reverse();
    while let Some(pair) = ahead.pop() {
        let differ = |reason| InterfaceDifference::Tail { value: pair[0].to_owned(), reason };
        ahead.extend(walk.compare(pair).map_err(differ)?);
    }
    Ok(())
}

/// One of the files, with all its data in it.
struct InterfaceSide<'a> {
    document: &'a Document,
    model: &'a ModelProto,
    /// By the names of what they make: nodes.
    makers: HashMap<&'a str, Maker<'a>>,
    constants: HashMap<&'a str, Constant<'a>>,
}

#[derive(Clone, Copy)]
struct Maker<'a> {
    node: &'a NodeProto,
    index: usize,
    /// Which of its outputs it is.
    place: usize,
}

#[derive(Clone, Copy)]
enum Constant<'a> {
    Dense(&'a TensorProto),
    Sparse(&'a SparseTensorProto),
}

/// Where a value comes from.
enum Origin<'a> {
    /// An input that a node does without.
    Nothing,
    Network(&'a Computed),
    Constant(Constant<'a>),
    Node(Maker<'a>),
}

impl std::fmt::Display for Origin<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nothing => formatter.write_str("left out"),
            Self::Network(_) => formatter.write_str("made by the network"),
            Self::Constant(_) => formatter.write_str("a constant"),
            Self::Node(maker) => write!(formatter, "made by {}", maker.node.op_type()),
        }
    }
}

impl<'a> InterfaceSide<'a> {
    fn new(document: &'a Document, model: &'a ModelProto) -> Result<Self, InterfaceDifference> {
        let graph = model.graph.as_ref().ok_or(OnnxError::NoGraph)?;
        let dense = graph.initializer.iter().map(|tensor| (tensor.name(), Constant::Dense(tensor)));
        let named = |sparse: &'a SparseTensorProto| Some((sparse.values.as_ref()?.name(), Constant::Sparse(sparse)));
        let constants = dense.chain(graph.sparse_initializer.iter().filter_map(named)).collect();
        let mut makers = HashMap::new();
        for (index, node) in graph.node.iter().enumerate() {
            let made = node.output.iter().enumerate();
            makers.extend(made.map(|(place, name)| (name.as_str(), Maker { node, index, place })));
        }
        Ok(Self { document, model, makers, constants })
    }

    fn origin(&self, name: &str) -> Result<Origin<'a>, String> {
        if name.is_empty() {
            Ok(Origin::Nothing)
        } else if let Some(computed) = self.document.read.computed.get(name) {
            Ok(Origin::Network(computed))
        } else if let Some(&constant) = self.constants.get(name) {
            Ok(Origin::Constant(constant))
        } else {
            let maker = *self.makers.get(name).ok_or("is made by nothing in one of them")?;
            let constant = constant_of(maker.node).map(|tensor| Origin::Constant(Constant::Dense(tensor)));
            Ok(constant.unwrap_or(Origin::Node(maker)))
        }
    }

    /// Which of the network's outputs a value is.
    fn position(&self, computed: &Computed) -> Option<usize> {
        self.document.network().outputs().iter().position(|&value| value == computed.id)
    }

    /// The versions of a set of operators that the file asks for.
    fn versions(&self, domain: &str) -> Vec<i64> {
        if is_native(domain) {
            return vec![self.document.opset()];
        }
        let sets = self.model.opset_import.iter().filter(|set| set.domain() == domain);
        let mut versions: Vec<i64> = sets.map(|set| set.version()).collect();
        versions.sort_unstable();
        versions
    }

    /// Whether the file itself says what an operator is.
    fn defines(&self, node: &NodeProto) -> bool {
        let is_it = |function: &FunctionProto| function.domain() == node.domain() && function.name() == node.op_type();
        self.model.functions.iter().any(is_it)
    }
}

/// The tensor that a node of ONNX's own operator Constant holds.
fn constant_of(node: &NodeProto) -> Option<&TensorProto> {
    match &node.attribute[..] {
        [only] if is_native(node.domain()) && node.op_type() == "Constant" && only.name() == "value" => only.t.as_ref(),
        _ => None,
    }
}

/// Goes back from the outputs of two files, side by side.
struct Walk<'a> {
    sides: [InterfaceSide<'a>; 2],
    /// For each node of the first file that was met, the one of the second that it was met with; no node has two
    /// partners, as one that draws random numbers is not the same as two that do.
    partners: HashMap<usize, usize>,
    taken: HashSet<usize>,
}

impl<'a> Walk<'a> {
    /// Compares how two values are made, up to the values that they are made from, which are returned.
    fn compare(&mut self, [a, b]: [&str; 2]) -> Result<Vec<[&'a str; 2]>, String> {
        let [first, second] = &self.sides;
        match (first.origin(a)?, second.origin(b)?) {
            (Origin::Nothing, Origin::Nothing) => Ok(vec![]),
            (Origin::Network(a), Origin::Network(b)) => self.compare_computed(a, b).map(|()| vec![]),
            (Origin::Constant(a), Origin::Constant(b)) if a.bytes() == b.bytes() => Ok(vec![]),
            (Origin::Constant(_), Origin::Constant(_)) => {
                Err("is another constant in one than in the other".to_owned())
            }
            (Origin::Node(a), Origin::Node(b)) => self.compare_makers(a, b),
            (a, b) => Err(format!("is {a} in one and {b} in the other")),
        }
    }

    fn compare_computed(&self, a: &Computed, b: &Computed) -> Result<(), String> {
        let [first, second] = &self.sides;
        match (first.position(a), second.position(b)) {
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => return Err(format!("is output {a} of one network and output {b} of the other")),
            _ => return Err("does not leave the network, and yet something after it depends on it".to_owned()),
        }
        if a.float != b.float {
            return Err(format!("leaves one network as {} and the other as {}", a.float.name(), b.float.name()));
        }
        if !are_alike(&a.dims, &b.dims) {
            return Err(format!("leaves one network with axes {} and the other with axes {}", a.dims, b.dims));
        }
        Ok(())
    }

    fn compare_makers(&mut self, a: Maker<'a>, b: Maker<'a>) -> Result<Vec<[&'a str; 2]>, String> {
        if a.place != b.place {
            return Err(format!("is output {} of an operator in one and output {} in the other", a.place, b.place));
        }
        match self.partners.get(&a.index) {
            Some(partner) if *partner == b.index => return Ok(vec![]),
            None if self.taken.insert(b.index) => self.partners.insert(a.index, b.index),
            _ => return Err("is made by an operator that has two parts to play in one and one in the other".to_owned()),
        };
        self.compare_nodes(a.node, b.node)?;
        if let Some(shapes) = self.shapes_read(a.node, b.node)? {
            return if shapes { Ok(vec![]) } else { Err("is the shape of other values".to_owned()) };
        }
        let inputs = a.node.input.iter().zip(&b.node.input);
        Ok(inputs.map(|(a, b)| [a.as_str(), b.as_str()]).collect())
    }

    fn compare_nodes(&self, a: &NodeProto, b: &NodeProto) -> Result<(), String> {
        let [first, second] = &self.sides;
        let domain = |node: &NodeProto| if is_native(node.domain()) { String::new() } else { node.domain().to_owned() };
        if a.op_type() != b.op_type() {
            return Err(format!("is made by {} in one and by {} in the other", a.op_type(), b.op_type()));
        }
        let operator = a.op_type();
        if domain(a) != domain(b) || a.overload() != b.overload() {
            return Err(format!("is made by an operator {operator} of another set in one than in the other"));
        }
        let [versions, others] = [first.versions(a.domain()), second.versions(b.domain())];
        if versions != others {
            return Err(format!("is made by {operator} of version {versions:?} in one and {others:?} in the other"));
        }
        if (first.defines(a) || second.defines(b)) && !self.define_the_same() {
            return Err(format!("is made by {operator}, which need not be the same in both"));
        }
        let [mine, theirs] = [attributes(a), attributes(b)];
        if mine.is_none() || mine != theirs {
            return Err(format!("is made by {operator} with other attributes in one than in the other"));
        }
        let present = |names: &[String]| names.iter().map(|name| !name.is_empty()).collect::<Vec<_>>();
        if present(&a.input) != present(&b.input) || present(&a.output) != present(&b.output) {
            return Err(format!("is made by {operator} with other inputs or outputs in one than in the other"));
        }
        Ok(())
    }

    /// Whether both files define the same operators of their own by the same means.
    fn define_the_same(&self) -> bool {
        let [first, second] = self.sides.each_ref().map(|side| {
            let functions = &side.model.functions;
            // Data of graphs within graphs may lie in files of the same name in two folders.
            let nested = functions.iter().flat_map(|function| &function.node).any(|node| attributes(node).is_none());
            let sets = side.model.opset_import.iter().map(|set| (set.domain(), set.version())).collect::<HashSet<_>>();
            (!nested).then(|| (functions.iter().map(Message::encode_to_vec).collect::<Vec<_>>(), sets))
        });
        first.is_some() && first == second
    }

    /// If two nodes read nothing but the shapes of values of the networks: whether these are the same.
    fn shapes_read(&self, a: &NodeProto, b: &NodeProto) -> Result<Option<bool>, String> {
        let [first, second] = &self.sides;
        let ([x], [y]) = (&a.input[..], &b.input[..]) else { return Ok(None) };
        if a.op_type() != "Shape" || !is_native(a.domain()) {
            return Ok(None);
        }
        Ok(match (first.origin(x)?, second.origin(y)?) {
            (Origin::Network(x), Origin::Network(y)) => Some(are_alike(&x.dims, &y.dims)),
            _ => None,
        })
    }
}

impl Constant<'_> {
    /// All that makes it what it is.
    fn bytes(self) -> Vec<u8> {
        match self {
            Self::Dense(tensor) => nameless(tensor).encode_to_vec(),
            Self::Sparse(sparse) => {
                let nameless = |tensor: &Option<TensorProto>| tensor.as_ref().map(nameless);
                let (values, indices) = (nameless(&sparse.values), nameless(&sparse.indices));
                SparseTensorProto { values, indices, dims: sparse.dims.clone() }.encode_to_vec()
            }
        }
    }
}

fn nameless(tensor: &TensorProto) -> TensorProto {
    let data_location = tensor.data_location.filter(|&location| location != 0);
    TensorProto { name: None, doc_string: None, metadata_props: vec![], data_location, ..tensor.clone() }
}

/// A node's attributes by their names; none if there are graphs among them, which may read whatever is around them.
fn attributes(node: &NodeProto) -> Option<Vec<(&str, Vec<u8>)>> {
    let bytes = |attribute: &AttributeProto| {
        let (t, tensors) = (attribute.t.as_ref().map(nameless), attribute.tensors.iter().map(nameless).collect());
        AttributeProto { doc_string: None, t, tensors, ..attribute.clone() }.encode_to_vec()
    };
    if node.attribute.iter().any(|attribute| attribute.g.is_some() || !attribute.graphs.is_empty()) {
        return None;
    }
    let mut attributes: Vec<_> = node.attribute.iter().map(|attribute| (attribute.name(), bytes(attribute))).collect();
    attributes.sort_by_key(|(name, _)| *name);
    Some(attributes)
}
