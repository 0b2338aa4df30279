//! The stages of a network with convolutions, as people draw it, and what each takes of a device: weights,
//! multiply-adds, and memory for what it hands on.
//!
//! A stage begins with the input, or with a node that makes something new: weighted sums, the sum of two branches,
//! values side by side, windows. What only treats that number by number, or moves it, and is all that reads it, belongs
//! to it, one layer of units at most: a convolution with its batch normalisation and its ReLU is one stage. A network
//! that has lost channels has the same nodes, and so the same stages.

use leo_formats::onnx::Float;
use leo_network::op::{ActionKind, AffineMap, Arithmetic, Convolution, Op, Operator, Window, WindowAxis};
use leo_network::{LayerId, Network, Node, ValueId};
use serde::Serialize;

use crate::compression::reasons::layer_name;

/// A stage, and how large it is before and after; the second numbers are the first ones where nothing was done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StageReport {
    /// What the file calls its layer of units, or else the node that it begins with; empty for the input.
    pub name: String,
    /// What it does, in short.
    pub operator: String,
    /// Its layer of units, if it has one, counted from 0 among all layers.
    pub layer: Option<usize>,
    /// The stages that it reads, counted from 0, where 0 is the input.
    pub reads: Vec<usize>,
    /// Along each axis of positions, how many there are; for the input, along all axes.
    pub positions: Vec<usize>,
    /// How many channels it makes; none of the input, which may have them along any axis.
    pub channels: [usize; 2],
    /// How many numbers there are in its weights and biases.
    pub parameters: [usize; 2],
    /// How many products of a weight and an input a sample takes.
    pub multiply_adds: [usize; 2],
    /// How many bytes what it hands on takes for one sample, in the file's type of numbers.
    pub activation_bytes: [usize; 2],
}

/// All stages of a network, and what leaves it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StagesReport {
    /// The stages, in the order in which they are computed.
    pub all: Vec<StageReport>,
    /// The stages that outputs come from.
    pub outputs: Vec<usize>,
    /// How many bytes all values take that are there at once, at the most, if nodes are computed in their order and a
    /// value is dropped after what reads it last.
    pub peak_activation_bytes: [usize; 2],
}

impl StagesReport {
    /// The stages of a network, and of what it has become by losing channels: of the same nodes. Nothing of dense
    /// networks, whose units are no channels, nor where dense layers behind convolutions have become others.
    pub fn new(before: &Network, after: &Network, float: Float) -> Self {
        let is_same =
            |(one, other): (&Node, &Node)| one.op().name() == other.op().name() && one.operands() == other.operands();
        let has_same_nodes =
            before.nodes().len() == after.nodes().len() && before.nodes().iter().zip(after.nodes()).all(is_same);
        if before.is_dense() || !has_same_nodes {
            return Self::default();
        }
        let stages = Stages::new(before);
        let outputs = before.outputs().iter().map(|output| stages.of[output.index()]).collect();
        let bytes = |numbers: usize| numbers * bytes_of(float);
        Self {
            all: stages.all.iter().map(|stage| stage.report([before, after], float)).collect(),
            outputs,
            peak_activation_bytes: [before, after].map(|network| bytes(network.peak_activations())),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }
}

/// How many bytes a number takes.
fn bytes_of(float: Float) -> usize {
    match float {
        Float::F16 | Float::Bf16 => 2,
        Float::F32 => 4,
        Float::F64 => 8,
    }
}

/// A stage in the making.
struct Stage {
    /// Its nodes; the input has none of its own.
    nodes: Vec<usize>,
    layer: Option<LayerId>,
    reads: Vec<usize>,
    /// The value whose channels are drawn.
    channels: ValueId,
    /// What others read.
    value: ValueId,
}

struct Stages {
    all: Vec<Stage>,
    /// For each value, its stage.
    of: Vec<usize>,
}

impl Stages {
    fn new(network: &Network) -> Self {
        let mut readers = vec![0; network.nodes().len() + 1];
        let read = network.nodes().iter().flat_map(Node::operands).chain(network.outputs());
        read.for_each(|value| readers[value.index()] += 1);
        let (channels, value) = (ValueId::INPUT, ValueId::INPUT);
        let input = Stage { nodes: Vec::new(), layer: None, reads: Vec::new(), channels, value };
        let mut stages = Self { all: vec![input], of: vec![0] };
        for (index, node) in network.nodes().iter().enumerate() {
            let (value, operand) = (network.result_of(index), node.operands()[0]);
            let layer = network.layer_at(index);
            let last = &mut stages.all[stages.of[operand.index()]];
            let follows = match node.op() {
                Op::Activation(_) => last.layer.is_none(),
                Op::Affine(map) => map.kind() != ActionKind::Sums,
                Op::Sum(_) | Op::Concat(_) | Op::MaxPool(_) => false,
            };
            if follows && readers[operand.index()] == 1 {
                last.nodes.push(index);
                last.value = value;
                if layer.is_some() {
                    (last.layer, last.channels) = (layer, value);
                }
                stages.of.push(stages.of[operand.index()]);
                continue;
            }
            let mut reads: Vec<usize> = node.operands().iter().map(|operand| stages.of[operand.index()]).collect();
            reads.sort_unstable();
            reads.dedup();
            stages.of.push(stages.all.len());
            stages.all.push(Stage { nodes: vec![index], layer, reads, channels: value, value });
        }
        stages
    }
}

impl Stage {
    fn report(&self, networks: [&Network; 2], float: Float) -> StageReport {
        let [before, _] = networks;
        let sum = |of: &dyn Fn(&Network, &Node) -> usize| {
            networks.map(|network| self.nodes.iter().map(|&index| of(network, &network.nodes()[index])).sum())
        };
        let is_input = self.channels == ValueId::INPUT;
        let axis = before.channels(self.channels).axis();
        let extents = before.shape(self.channels).extents().iter().enumerate();
        // What is before the channels are samples; mostly there is one.
        let is_position = |&(along, &extent): &(usize, &usize)| is_input || along > axis || along < axis && extent > 1;
        let first = self.nodes.first().filter(|_| !self.reads.is_empty());
        let name = || first.map_or_else(String::new, |&index| before.nodes()[index].name().to_owned());
        StageReport {
            name: self.layer.map_or_else(name, |layer| layer_name(before, layer)),
            operator: self.operator(before),
            layer: self.layer.map(LayerId::index),
            reads: self.reads.clone(),
            positions: extents.filter(is_position).map(|(_, &extent)| extent).collect(),
            channels: networks.map(|network| if is_input { 0 } else { network.channels(self.channels).count() }),
            parameters: sum(&|_, node| node.op().parameters()),
            multiply_adds: sum(&|network, node| network.multiply_adds_of(node)),
            activation_bytes: networks.map(|network| network.shape(self.value).elements() * bytes_of(float)),
        }
    }

    /// What it does: what it begins with, and its units.
    fn operator(&self, network: &Network) -> String {
        let op = |index: &usize| network.nodes()[*index].op();
        let is_divided = |op: &Op| match op {
            Op::Affine(map) => map.kind() == ActionKind::Each(Arithmetic::Divide),
            _ => false,
        };
        let head = self.nodes.first().map(op).filter(|_| !self.reads.is_empty());
        let head = match head {
            None => "input".to_owned(),
            Some(Op::Activation(activation)) => return activation.onnx().operator.to_owned(),
            Some(Op::Sum(_)) => "Add".to_owned(),
            Some(Op::Concat(_)) => "Concat".to_owned(),
            Some(Op::MaxPool(pool)) => format!("MaxPool {}", windowed(pool.window())),
            Some(Op::Affine(AffineMap::SumPool(pool))) => {
                // An average is written as a sum, and a division.
                let is_average = self.nodes.iter().map(op).any(is_divided);
                format!("{} {}", if is_average { "AveragePool" } else { "sums" }, windowed(pool.window()))
            }
            Some(Op::Affine(AffineMap::Convolution(convolution))) => convolved(convolution),
            Some(Op::Affine(AffineMap::Select(select))) => {
                let has_padding = select.axes().iter().flatten().any(Option::is_none);
                if has_padding { "Pad" } else { "Slice" }.to_owned()
            }
            Some(op) => op.name().to_owned(),
        };
        match self.layer {
            Some(layer) => format!("{head} + {}", network.activation(layer).onnx().operator),
            None => head,
        }
    }
}

/// A convolution in short: `Conv 3x3 depthwise, stride 2`.
fn convolved(convolution: &Convolution) -> String {
    let window = convolution.window();
    let name = if window.is_transposed() { "ConvTranspose" } else { "Conv" };
    let (groups, inputs) = (convolution.groups(), convolution.inputs());
    let kernel = along(window, |axis| axis.kernel);
    let grouped = match groups {
        1 => String::new(),
        groups if groups == inputs => " depthwise".to_owned(),
        groups => format!(" in {groups} groups"),
    };
    format!("{name} {kernel}{grouped}{}", moved(window))
}

fn windowed(window: &Window) -> String {
    format!("{}{}", along(window, |axis| axis.kernel), moved(window))
}

/// How a window moves, where that is not from each position to the next.
fn moved(window: &Window) -> String {
    let of = |name: &str, number: fn(&WindowAxis) -> usize| {
        let is_plain = window.axes().iter().all(|axis| number(axis) == 1);
        if is_plain { String::new() } else { format!(", {name} {}", shortest(window, number)) }
    };
    of("stride", |axis| axis.stride) + &of("dilation", |axis| axis.dilation)
}

fn shortest(window: &Window, number: fn(&WindowAxis) -> usize) -> String {
    let numbers: Vec<usize> = window.axes().iter().map(number).collect();
    if numbers.windows(2).all(|pair| pair[0] == pair[1]) { numbers[0].to_string() } else { along(window, number) }
}

/// A number of each axis: `3x3`.
fn along(window: &Window, number: impl Fn(&WindowAxis) -> usize) -> String {
    window.axes().iter().map(|axis| number(axis).to_string()).collect::<Vec<_>>().join("x")
}
