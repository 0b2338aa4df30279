//! From a network to ONNX nodes.

use std::collections::{HashMap, HashSet};

use super::OnnxError;
use super::proto::{
    AttributeProto, Dimension, DimensionValue, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TensorType, TypeProto, TypeValue, ValueInfoProto,
};
use super::tensor::{Float, encode_floats, encode_ints};
use super::{Document, NEWEST_OPSET};
use crate::network::{Network, Node, ValueId};
use crate::op::{Arithmetic, Dense, Op};
use crate::shape::Shape;

/// ONNX's numbers for the kinds of attributes used here.
const ATTRIBUTE_INT: i32 = 2;
const ATTRIBUTE_INTS: i32 = 7;

/// The operator set of files made from scratch: old enough for every runtime in use, new enough to be plain.
const EMITTED_OPSET: i64 = 13;
const EMITTED_IR_VERSION: i64 = 8;
const _: () = assert!(EMITTED_OPSET <= NEWEST_OPSET);

/// Nodes and constants in the making.
pub(super) struct Emitter<'n> {
    network: &'n Network,
    float: Float,
    opset: i64,
    /// Whether values have a batch in front of the sample's axes.
    batched: bool,
    /// The names of values, and those of nodes, that are taken.
    values: Names,
    names: Names,
    pub(super) nodes: Vec<NodeProto>,
    pub(super) constants: Vec<TensorProto>,
}

impl<'n> Emitter<'n> {
    /// An emitter for the nodes of `network`, that avoids all names in `graph`.
    pub(super) fn new(network: &'n Network, float: Float, opset: i64, batched: bool, graph: &GraphProto) -> Self {
        let nodes = graph.node.iter().flat_map(|node| node.input.iter().chain(&node.output)).map(String::as_str);
        let others = graph.input.iter().chain(&graph.output).chain(&graph.value_info).map(|value| value.name());
        let constants = graph.initializer.iter().map(|tensor| tensor.name());
        Self {
            network,
            float,
            opset,
            batched,
            values: Names::taken(nodes.chain(others).chain(constants)),
            names: Names::taken(graph.node.iter().map(|node| node.name())),
            nodes: Vec::new(),
            constants: Vec::new(),
        }
    }

    /// Emits the whole network, from the value called `input` to values called `outputs`.
    pub(super) fn emit(&mut self, input: &str, outputs: &[String]) {
        let mut named: HashMap<ValueId, &String> = HashMap::new();
        for (&value, name) in self.network.outputs().iter().zip(outputs) {
            named.entry(value).or_insert(name);
        }
        let mut names: Vec<String> = vec![input.to_owned()];
        for (index, node) in self.network.nodes().iter().enumerate() {
            let value = self.network.result_of(index);
            let name = match named.get(&value) {
                Some(&name) => name.clone(),
                None => self.fresh(if node.name().is_empty() { "value" } else { node.name() }),
            };
            let operands = node.operands().iter().map(|operand| names[operand.index()].clone()).collect();
            self.node(node, operands, &name);
            names.push(name);
        }
        // An output that is the input, or that leaves twice, needs a node to carry its name.
        for (value, output) in self.network.outputs().iter().zip(outputs) {
            if names[value.index()] != *output {
                self.push("Identity", "", vec![names[value.index()].clone()], output, vec![]);
            }
        }
    }

    /// A name that no value has yet.
    fn fresh(&mut self, stem: &str) -> String {
        self.values.unused(stem)
    }

    fn push(&mut self, operator: &str, name: &str, input: Vec<String>, output: &str, attribute: Vec<AttributeProto>) {
        let name = (!name.is_empty()).then(|| self.names.unused(name));
        self.nodes.push(NodeProto {
            op_type: Some(operator.to_owned()),
            name,
            input,
            output: vec![output.to_owned()],
            attribute,
            ..NodeProto::default()
        });
    }

    fn constant(&mut self, stem: &str, dims: &[usize], values: &[f64]) -> String {
        let name = self.fresh(stem);
        self.constants.push(encode_floats(&name, self.float, dims, values));
        name
    }

    /// How many axes a value has in ONNX.
    fn rank(&self, value: ValueId) -> usize {
        self.network.shape(value).rank() + usize::from(self.batched)
    }

    fn node(&mut self, node: &Node, mut operands: Vec<String>, output: &str) {
        let name = node.name().to_owned();
        match node.op() {
            Op::Dense(dense) => self.dense(dense, node.operands()[0], &name, operands, output),
            Op::Relu(_) => self.push("Relu", &name, operands, output, vec![]),
            Op::Sum(_) => self.push("Add", &name, operands, output, vec![]),
            Op::Elementwise(elementwise) => {
                let operator = match elementwise.arithmetic() {
                    Arithmetic::Add => "Add",
                    Arithmetic::Multiply => "Mul",
                    Arithmetic::Divide => "Div",
                };
                let constant = elementwise.constant();
                operands.push(self.constant("constant", constant.shape().extents(), constant.values()));
                self.push(operator, &name, operands, output, vec![]);
            }
            Op::Reshape(reshape) => {
                operands.push(self.shape_constant(reshape.target()));
                self.push("Reshape", &name, operands, output, vec![]);
            }
            Op::Transpose(transpose) => {
                let within = transpose.order().iter().map(|&axis| axis as i64);
                let order = if self.batched {
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
        if self.batched {
            // 0 copies the batch.
            entries.insert(0, 0);
        }
        let name = self.fresh("shape");
        self.constants.push(encode_ints(&name, &entries));
        name
    }

    fn dense(&mut self, dense: &Dense, operand: ValueId, name: &str, mut operands: Vec<String>, output: &str) {
        let weight = dense.weight();
        let stem = |what: &str| if name.is_empty() { what.to_owned() } else { format!("{name}.{what}") };
        if self.rank(operand) == 2 && (dense.bias().is_some() || self.opset >= 11) {
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
                self.push("Add", &stem("add"), vec![product, bias], output, vec![]);
            }
        }
    }

    /// Adds a cast to the emitter's type and returns what it makes.
    pub(super) fn cast(&mut self, input: &str) -> String {
        let output = self.fresh(&format!("{input}_cast"));
        self.push("Cast", "", vec![input.to_owned()], &output, vec![int("to", i64::from(self.float.code()))]);
        output
    }
}

/// Names that are taken.
struct Names {
    taken: HashSet<String>,
    /// How often each stem was asked for.
    counts: HashMap<String, usize>,
}

impl Names {
    fn taken<'a>(names: impl Iterator<Item = &'a str>) -> Self {
        Self { taken: names.map(str::to_owned).collect(), counts: HashMap::new() }
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

fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(ATTRIBUTE_INT),
        i: Some(value),
        ..AttributeProto::default()
    }
}

fn ints(name: &str, values: Vec<i64>) -> AttributeProto {
    AttributeProto {
        name: Some(name.to_owned()),
        r#type: Some(ATTRIBUTE_INTS),
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
        let declare = |name: &String, shape: &Shape| batch_info(name, export.float, shape);
        let outputs = export.outputs.iter().zip(network.outputs());
        let mut graph = GraphProto {
            name: Some("network".to_owned()),
            input: vec![declare(&export.input, network.input())],
            output: outputs.map(|(name, &value)| declare(name, network.shape(value))).collect(),
            ..GraphProto::default()
        };
        let mut emitter = Emitter::new(network, export.float, EMITTED_OPSET, true, &graph);
        emitter.emit(&export.input, &export.outputs);
        (graph.node, graph.initializer) = (emitter.nodes, emitter.constants);
        let metadata = export
            .metadata
            .iter()
            .map(|(key, value)| StringStringEntryProto { key: Some(key.clone()), value: Some(value.clone()) });
        let model = ModelProto {
            ir_version: Some(EMITTED_IR_VERSION),
            producer_name: Some("leo".to_owned()),
            producer_version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(EMITTED_OPSET) }],
            graph: Some(graph),
            metadata_props: metadata.collect(),
            ..ModelProto::default()
        };
        Self::from_model(model, None)
    }
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
