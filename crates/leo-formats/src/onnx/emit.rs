//! From a network to ONNX nodes.

use std::collections::{HashMap, HashSet};

use super::OnnxError;
use super::element::Float;
use super::emit_window::can_be_written;
use super::graph::given_names;
use super::proto::{
    AttributeProto, Dimension, DimensionValue, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TensorType, TypeProto, TypeValue, ValueInfoProto,
    attribute_type,
};
use super::tensor::{encode_floats, encode_ints};
use super::{Document, NEWEST_OPSET};
use leo_network::op::{AffineMap, Arithmetic, Broadcast, Convolution, Dense, Elementwise, Matrix, Op};
use leo_network::{Network, Node, ValueId};
use leo_network::{NetworkError, Shape};

/// The operator set of files made from scratch: old enough for every runtime in use, new enough to be plain.
const EMITTED_OPSET: i64 = 13;

/// The version of the format of such files: as old, and as plain.
const EMITTED_IR_VERSION: i64 = 8;

const _: () = assert!(EMITTED_OPSET <= NEWEST_OPSET);

/// A network that is to be written between values of a graph.
pub(super) struct EmittedPart<'n> {
    pub(super) network: &'n Network,
    /// The type of its weights.
    pub(super) float: Float,
    /// Whether values have a batch in front of the sample's axes.
    pub(super) batched: bool,
    /// The version of the operator set.
    pub(super) opset: i64,
    /// The names and types that its input and outputs have outside.
    pub(super) input: (&'n str, Float),
    pub(super) outputs: Vec<(&'n str, Float)>,
}

impl EmittedPart<'_> {
    /// Whether a value is a matrix in ONNX, which has maps with a bias for these alone.
    fn is_matrix(&self, value: &Shape) -> bool {
        value.rank() + usize::from(self.batched) == 2
    }

    /// The network as it is read again once it is written, and for each of its values which one that is then.
    pub(super) fn as_read(&self) -> Result<(Network, Vec<ValueId>), NetworkError> {
        let mut builder = Network::builder(self.network.input().clone());
        let mut values = vec![ValueId::INPUT];
        for node in self.network.nodes() {
            let operands: Vec<ValueId> = node.operands().iter().map(|operand| values[operand.index()]).collect();
            let op = self.rounded(node.op())?;
            let apart = op.as_dense().filter(|_| !self.is_matrix(builder.shape(operands[0])));
            let Some((dense, bias)) = apart.and_then(|dense| Some((dense, dense.bias()?))) else {
                values.push(builder.add(node.name(), op, &operands)?);
                continue;
            };
            let product = builder.add(node.name(), Dense::new(dense.weight().clone(), None)?, &operands)?;
            let mut extents = vec![1; node.shape().rank()];
            extents.splice(extents.len().saturating_sub(1).., [bias.len()]);
            let summand = Broadcast::new(Shape::new(extents)?, bias.to_vec())?;
            values.push(builder.add(node.name(), Elementwise::new(Arithmetic::Add, summand)?, &[product])?);
        }
        let outputs = self.network.outputs().iter().map(|output| values[output.index()]).collect();
        Ok((builder.finish(outputs)?, values))
    }

    /// An operator with numbers of the piece's type.
    fn rounded(&self, op: &Op) -> Result<Op, NetworkError> {
        let round = |numbers: &[f64]| numbers.iter().map(|&number| self.float.round(number)).collect::<Vec<f64>>();
        Ok(match op {
            Op::Affine(AffineMap::Dense(dense)) => {
                let weight = dense.weight();
                let weight = Matrix::new(weight.rows(), weight.columns(), round(weight.values()))?;
                Dense::new(weight, dense.bias().map(round))?.into()
            }
            Op::Affine(AffineMap::Elementwise(elementwise)) => {
                let constant = elementwise.constant();
                let constant = Broadcast::new(constant.shape().clone(), round(constant.values()))?;
                Elementwise::new(elementwise.arithmetic(), constant)?.into()
            }
            Op::Affine(AffineMap::Convolution(map)) => {
                let (weights, bias) = (round(map.weights()), map.bias().map(round));
                Convolution::new(map.window().clone(), map.groups(), map.outputs(), weights, bias)?.into()
            }
            other => other.clone(),
        })
    }
}

/// The nodes and constants of these networks, with names that none in `graph` has.
pub(super) fn emit(pieces: &[EmittedPart<'_>], graph: &GraphProto) -> EmittedNodes {
    let mut written = EmittedNodes::new(pieces, graph);
    for piece in pieces {
        let names = Emitter { piece, written: &mut written }.emit();
        written.pieces.push(names);
    }
    written
}

/// Nodes and constants in the making, and the names of values and those of nodes that are taken.
pub(super) struct EmittedNodes {
    values: Names,
    names: Names,
    pub(super) nodes: Vec<NodeProto>,
    pub(super) constants: Vec<TensorProto>,
    /// For each piece, what the values of its network are called.
    pub(super) pieces: Vec<Vec<String>>,
}

impl EmittedNodes {
    fn new(pieces: &[EmittedPart<'_>], graph: &GraphProto) -> Self {
        let nodes = graph.node.iter().flat_map(|node| node.input.iter().chain(&node.output)).map(String::as_str);
        let others = graph.output.iter().chain(&graph.value_info).map(|value| value.name());
        // A value between two pieces may stand nowhere in the graph as it is now.
        let ends = pieces.iter().flat_map(|piece| piece.outputs.iter().chain([&piece.input])).map(|&(name, _)| name);
        let mut names = Names::taken(graph.node.iter().map(|node| node.name()));
        names.promise(pieces.iter().flat_map(|piece| piece.network.nodes()).map(|node| node.name()));
        Self {
            values: Names::taken(nodes.chain(others).chain(given_names(graph)).chain(ends)),
            names,
            nodes: Vec::new(),
            constants: Vec::new(),
            pieces: Vec::new(),
        }
    }
}

/// Writes one piece.
pub(super) struct Emitter<'n> {
    pub(super) piece: &'n EmittedPart<'n>,
    written: &'n mut EmittedNodes,
}

impl Emitter<'_> {
    /// Says what the values are called.
    fn emit(&mut self) -> Vec<String> {
        let piece = self.piece;
        let outputs = || piece.network.outputs().iter().zip(&piece.outputs);
        let mut named: HashMap<ValueId, &str> = HashMap::new();
        for (&value, (name, _)) in outputs().filter(|(_, (_, float))| *float == piece.float) {
            named.entry(value).or_insert(name);
        }
        let mut names: Vec<String> = vec![self.input()];
        for (index, node) in piece.network.nodes().iter().enumerate() {
            let name = match named.get(&piece.network.result_of(index)) {
                Some(&name) => name.to_owned(),
                None => self.fresh(if node.name().is_empty() { "value" } else { node.name() }),
            };
            let operands = node.operands().iter().map(|operand| names[operand.index()].clone()).collect();
            self.node(node, operands, &name);
            names.push(name);
        }
        // An output that is the input, or that leaves twice, or as another type, needs a node to carry its name.
        for (value, &(output, float)) in outputs() {
            let made = &names[value.index()];
            if float != piece.float {
                self.cast(made, float, output);
            } else if made != output {
                self.push("Identity", "", vec![made.clone()], output, vec![]);
            }
        }
        names
    }

    /// The name of the input in the piece's own type.
    fn input(&mut self) -> String {
        let (name, float) = self.piece.input;
        if float == self.piece.float {
            return name.to_owned();
        }
        let output = self.fresh(&format!("{name}_cast"));
        self.cast(name, self.piece.float, &output);
        output
    }

    fn cast(&mut self, input: &str, to: Float, output: &str) {
        self.push("Cast", "", vec![input.to_owned()], output, vec![int("to", i64::from(to.code()))]);
    }

    /// A name that no value has yet.
    pub(super) fn fresh(&mut self, stem: &str) -> String {
        self.written.values.unused(stem)
    }

    pub(super) fn push(
        &mut self,
        operator: &str,
        name: &str,
        input: Vec<String>,
        output: &str,
        attribute: Vec<AttributeProto>,
    ) {
        self.written.nodes.push(NodeProto {
            op_type: Some(operator.to_owned()),
            name: (!name.is_empty()).then(|| name.to_owned()),
            input,
            output: vec![output.to_owned()],
            attribute,
            ..NodeProto::default()
        });
    }

    pub(super) fn constant(&mut self, stem: &str, dims: &[usize], values: &[f64]) -> String {
        let name = self.fresh(stem);
        self.written.constants.push(encode_floats(&name, self.piece.float, dims, values));
        name
    }

    fn node(&mut self, node: &Node, mut operands: Vec<String>, output: &str) {
        let name = self.written.names.claim(node.name());
        let map = match node.op() {
            Op::Activation(of) => {
                let attributes = of.onnx().attributes.iter().map(|&(name, number)| float(name, number)).collect();
                return self.push(of.onnx().operator, &name, operands, output, attributes);
            }
            Op::Sum(_) => return self.push("Add", &name, operands, output, vec![]),
            Op::Concat(concat) => return self.concat(concat, &name, operands, output),
            Op::MaxPool(pool) => return self.max_pool(pool, &name, operands, output),
            Op::Affine(map) => map,
        };
        match map {
            AffineMap::Dense(dense) => {
                let operand = self.piece.network.shape(node.operands()[0]);
                self.dense(dense, operand, &name, operands, output);
            }
            AffineMap::Elementwise(elementwise) => {
                let operator = match elementwise.arithmetic() {
                    Arithmetic::Add => "Add",
                    Arithmetic::Multiply => "Mul",
                    Arithmetic::Divide => "Div",
                };
                let constant = elementwise.constant();
                operands.push(self.constant("constant", constant.shape().extents(), constant.values()));
                self.push(operator, &name, operands, output, vec![]);
            }
            AffineMap::Convolution(map) => self.convolution(map, &name, operands, output),
            AffineMap::SumPool(pool) => self.sum_pool(node, pool, &name, operands, output),
            AffineMap::Select(select) => self.select(node, select, &name, operands, output),
            AffineMap::Reshape(reshape) => {
                operands.push(self.shape_constant(reshape.target()));
                self.push("Reshape", &name, operands, output, vec![]);
            }
            AffineMap::Transpose(transpose) => {
                let within = transpose.order().iter().map(|&axis| axis as i64);
                let order = if self.piece.batched {
                    std::iter::once(0).chain(within.map(|axis| axis + 1)).collect()
                } else {
                    within.collect()
                };
                self.push("Transpose", &name, operands, output, vec![ints("perm", order)]);
            }
        }
    }

    fn shape_constant(&mut self, target: &Shape) -> String {
        let mut entries: Vec<i64> = target.extents().iter().map(|&extent| extent as i64).collect();
        if self.piece.batched {
            // 0 copies the batch.
            entries.insert(0, 0);
        }
        self.ints_constant("shape", &entries)
    }

    pub(super) fn ints_constant(&mut self, stem: &str, numbers: &[i64]) -> String {
        let name = self.fresh(stem);
        self.written.constants.push(encode_ints(&name, numbers));
        name
    }

    fn dense(&mut self, dense: &Dense, operand: &Shape, name: &str, mut operands: Vec<String>, output: &str) {
        let weight = dense.weight();
        let stem = |what: &str| if name.is_empty() { what.to_owned() } else { format!("{name}.{what}") };
        if self.piece.is_matrix(operand) && (dense.bias().is_some() || self.piece.opset >= 11) {
            operands.push(self.constant(&stem("weight"), &[weight.rows(), weight.columns()], weight.values()));
            if let Some(bias) = dense.bias() {
                operands.push(self.constant(&stem("bias"), &[bias.len()], bias));
            }
            self.push("Gemm", name, operands, output, vec![int("transB", 1)]);
            return;
        }
        let turned = weight.transposed();
        operands.push(self.constant(&stem("weight"), &[turned.rows(), turned.columns()], turned.values()));
        match dense.bias() {
            None => self.push("MatMul", name, operands, output, vec![]),
            Some(bias) => {
                let product = self.fresh(&stem("product"));
                self.push("MatMul", name, operands, &product, vec![]);
                let bias = self.constant(&stem("bias"), &[bias.len()], bias);
                let add = self.written.names.unused(&stem("add"));
                self.push("Add", &add, vec![product, bias], output, vec![]);
            }
        }
    }
}

/// Names that are taken.
struct Names {
    taken: HashSet<String>,
    /// Those among them that are kept for whoever claims them.
    promised: HashSet<String>,
    /// How often each stem was asked for.
    counts: HashMap<String, usize>,
}

impl Names {
    fn taken<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        Self { taken: names.map(str::to_owned).collect(), promised: HashSet::new(), counts: HashMap::new() }
    }

    /// Keeps those of these names that are not taken for whoever claims them first.
    fn promise<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        for name in names.filter(|name| !name.is_empty()) {
            if self.taken.insert(name.to_owned()) {
                self.promised.insert(name.to_owned());
            }
        }
    }

    /// This name if it was promised, or else one like it; no name stays none.
    fn claim(&mut self, name: &str) -> String {
        if name.is_empty() || self.promised.remove(name) { name.to_owned() } else { self.unused(name) }
    }

    /// The stem, with a number behind it if it is taken; taken from now on.
    fn unused(&mut self, stem: &str) -> String {
        let count = self.counts.entry(stem.to_owned()).or_default();
        loop {
            *count += 1;
            let name = if *count == 1 { stem.to_owned() } else { format!("{stem}_{count}") };
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

pub(super) fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(attribute_type::INT),
        i: Some(value),
        ..AttributeProto::default()
    }
}

fn float(name: &str, value: f64) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(attribute_type::FLOAT),
        f: Some(value as f32),
        ..AttributeProto::default()
    }
}

pub(super) fn ints(name: &str, values: Vec<i64>) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(attribute_type::INTS),
        ints: values,
        ..AttributeProto::default()
    }
}

/// How a network made in Leo, or read from another format, is to appear as an ONNX file.
#[derive(Clone, Debug)]
pub struct Export {
    /// The type of its weights, input and outputs.
    pub float: Float,
    /// The input's name.
    pub input: String,
    /// The outputs' names, one for each of the network's.
    pub outputs: Vec<String>,
    /// Keys and values to store in the file's metadata.
    pub metadata: Vec<(String, String)>,
}

impl Document {
    /// A new file with this network, for batches of any size. Weights are rounded to the type asked for.
    ///
    /// # Errors
    /// If the names do not fit the network.
    pub fn from_network(network: &Network, export: &Export) -> Result<Self, OnnxError> {
        let distinct: HashSet<&String> = export.outputs.iter().chain([&export.input]).collect();
        if export.outputs.len() != network.outputs().len() || distinct.len() != export.outputs.len() + 1 {
            return Err(OnnxError::Splice("input and outputs need one name each, all different".to_owned()));
        }
        if !can_be_written(network) {
            return Err(OnnxError::Splice(
                "ONNX has windows on samples, channels and positions, and nothing else".to_owned(),
            ));
        }
        let declare = |name: &String, shape: &Shape| batch_info(name, export.float, shape);
        let outputs = export.outputs.iter().zip(network.outputs());
        let mut graph = GraphProto {
            name: Some("network".to_owned()),
            input: vec![declare(&export.input, network.input())],
            output: outputs.map(|(name, &value)| declare(name, network.shape(value))).collect(),
            ..GraphProto::default()
        };
        let outside = |name| (String::as_str(name), export.float);
        let piece = EmittedPart {
            network,
            float: export.float,
            batched: true,
            opset: EMITTED_OPSET,
            input: outside(&export.input),
            outputs: export.outputs.iter().map(outside).collect(),
        };
        let written = emit(&[piece], &graph);
        (graph.node, graph.initializer) = (written.nodes, written.constants);
        let metadata = export.metadata.iter().map(|(key, value)| entry(key, value));
        let model = ModelProto {
            ir_version: Some(EMITTED_IR_VERSION),
            producer_name: Some("leo".to_owned()),
            producer_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(EMITTED_OPSET) }],
            graph: Some(graph),
            metadata_props: metadata.collect(),
            ..ModelProto::default()
        };
        Self::from_model(model, None, None)
    }
}

/// An entry of a file's metadata.
pub(super) fn entry(key: &str, value: &str) -> StringStringEntryProto {
    StringStringEntryProto { key: Some(key.to_owned()), value: Some(value.to_owned()) }
}

/// Declares an input or output: a batch of any size of such samples.
fn batch_info(name: &str, float: Float, sample: &Shape) -> ValueInfoProto {
    let batch = DimensionValue::Param("N".to_owned());
    let extents = sample.extents().iter().map(|&extent| DimensionValue::Value(extent as i64));
    value_info(name, float.code(), std::iter::once(batch).chain(extents))
}

/// Declares a value with these axes.
pub(super) fn value_info(name: &str, elem_type: i32, axes: impl Iterator<Item = DimensionValue>) -> ValueInfoProto {
    let dim = axes.map(|axis| Dimension { value: Some(axis), ..Dimension::default() }).collect();
    let tensor = TensorType { elem_type: Some(elem_type), shape: Some(TensorShapeProto { dim }) };
    ValueInfoProto {
        name: Some(name.to_owned()),
        r#type: Some(TypeProto { value: Some(TypeValue::Tensor(tensor)), ..TypeProto::default() }),
        ..ValueInfoProto::default()
    }
}
