//! The network: operators in topological order, shape-checked as they are added.
//!
//! A [`Network`] is a function of one sample. Its values are numbered: the input is [`ValueId::INPUT`], and every node
//! makes one more. A node may read only values that exist already, so that a network has no cycles and its
//! nodes stand in an order in which they can be evaluated, both by construction.

use crate::activation::Activation;
use crate::channels::Channels;
use crate::op::{Action, Op, Operator};
use crate::shape::{MAX_TOTAL_ELEMENTS, MAX_TOTAL_TAPS, NetworkError, Shape};

/// One value of a network: its input, or what one of its nodes computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(usize);

impl ValueId {
    /// The network's input.
    pub const INPUT: Self = Self(0);

    /// The position of this value among all values: 0 for the input, `i + 1` for what node `i` computes.
    pub fn index(self) -> usize {
        self.0
    }

    /// Which node computes this value; `None` for the input.
    pub fn node(self) -> Option<usize> {
        self.0.checked_sub(1)
    }

    /// What a value of [the part after](Network::after) another is in the whole network.
    #[must_use]
    pub fn in_whole(self, from: Self) -> Self {
        Self(from.0 + self.0)
    }

    /// What this value is in [the part after](Network::after) another, if it is there.
    #[must_use]
    pub fn in_part(self, from: Self) -> Option<Self> {
        self.0.checked_sub(from.0).map(Self)
    }
}

/// One layer of units, by its place among all of them: 0 for the first that the data come to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LayerId(usize);

impl LayerId {
    /// The layer with `index` layers before it. Whether a network has it is for [the network](Network::layer) to say.
    pub const fn new(index: usize) -> Self {
        Self(index)
    }

    /// How many layers come before it.
    pub fn index(self) -> usize {
        self.0
    }
}

/// One unit of a network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitId {
    /// Its layer.
    pub layer: LayerId,
    /// Which of the layer's units, counted from 0.
    pub unit: usize,
}

impl UnitId {
    /// Unit `unit` of the layer with `layer` layers before it.
    pub const fn new(layer: usize, unit: usize) -> Self {
        Self { layer: LayerId(layer), unit }
    }
}

/// Something for each value of a network, or for the first of them, in their order.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueMap<T>(Vec<T>);

impl<T> Default for ValueMap<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> From<Vec<T>> for ValueMap<T> {
    fn from(all: Vec<T>) -> Self {
        Self(all)
    }
}

impl<T> FromIterator<T> for ValueMap<T> {
    fn from_iter<I: IntoIterator<Item = T>>(all: I) -> Self {
        Self(all.into_iter().collect())
    }
}

impl<T> std::ops::Deref for ValueMap<T> {
    type Target = Vec<T>;

    fn deref(&self) -> &Vec<T> {
        &self.0
    }
}

impl<T> std::ops::DerefMut for ValueMap<T> {
    fn deref_mut(&mut self) -> &mut Vec<T> {
        &mut self.0
    }
}

impl<T> std::ops::Index<ValueId> for ValueMap<T> {
    type Output = T;

    fn index(&self, value: ValueId) -> &T {
        &self.0[value.0]
    }
}

impl<T> std::ops::IndexMut<ValueId> for ValueMap<T> {
    fn index_mut(&mut self, value: ValueId) -> &mut T {
        &mut self.0[value.0]
    }
}

/// One operator, what it reads, and the shape of what it computes.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    name: String,
    op: Op,
    operands: Vec<ValueId>,
    shape: Shape,
    channels: Channels,
}

impl Node {
    /// What the file calls it; possibly empty, not necessarily unique.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The operator.
    pub fn op(&self) -> &Op {
        &self.op
    }

    /// What it reads, in the operator's order.
    pub fn operands(&self) -> &[ValueId] {
        &self.operands
    }

    /// The shape of what it computes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The channels of what it computes.
    pub fn channels(&self) -> Channels {
        self.channels
    }
}

/// A feed-forward network of affine maps and activations, as a function of one sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    input: Shape,
    nodes: Vec<Node>,
    outputs: Vec<ValueId>,
    /// The nodes of the layers, in their order.
    layers: Vec<usize>,
    /// How many elements the widest value has: asked for in every layer.
    widest: usize,
    /// Whether all operators are those of dense networks.
    is_dense: bool,
}

impl Network {
    /// Starts a network whose samples have this shape.
    pub fn builder(input: Shape) -> Builder {
        Builder { elements: input.elements(), taps: 0, input, nodes: Vec::new() }
    }

    /// The shape of a sample.
    pub fn input(&self) -> &Shape {
        &self.input
    }

    /// The nodes, each after those whose values it reads.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The values that leave the network, at least one.
    pub fn outputs(&self) -> &[ValueId] {
        &self.outputs
    }

    /// The shape of a value.
    pub fn shape(&self, value: ValueId) -> &Shape {
        shape_of(&self.input, &self.nodes, value)
    }

    /// The shapes of what a node reads.
    pub fn operand_shapes(&self, node: &Node) -> Vec<&Shape> {
        node.operands.iter().map(|&operand| self.shape(operand)).collect()
    }

    /// All values: the input, then what each node computes.
    pub fn values(&self) -> impl Iterator<Item = ValueId> + use<> {
        (0..=self.nodes.len()).map(ValueId)
    }

    /// The value that node `index` computes.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn result_of(&self, index: usize) -> ValueId {
        assert!(index < self.nodes.len(), "node {index} of {}", self.nodes.len());
        ValueId(index + 1)
    }

    /// The layers of units, in the order of the data. Each element of a layer is one unit.
    pub fn layers(&self) -> impl DoubleEndedIterator<Item = LayerId> + ExactSizeIterator + use<> {
        (0..self.layers.len()).map(LayerId)
    }

    /// The layer with `index` layers before it, if there is one.
    pub fn layer(&self, index: usize) -> Option<LayerId> {
        (index < self.layers.len()).then_some(LayerId(index))
    }

    /// The layer that a node is, if it is one.
    pub fn layer_at(&self, node: usize) -> Option<LayerId> {
        self.layers.binary_search(&node).ok().map(LayerId)
    }

    /// The node of a layer.
    ///
    /// # Panics
    /// If it is another network's, as all that is asked of one.
    pub fn node_of(&self, layer: LayerId) -> &Node {
        &self.nodes[self.layers[layer.0]]
    }

    /// What the units of a layer make of their pre-activations.
    pub fn activation(&self, layer: LayerId) -> &Activation {
        self.node_of(layer).op.as_activation().expect("a layer has one")
    }

    /// What a layer reads.
    pub fn pre_activation(&self, layer: LayerId) -> ValueId {
        self.node_of(layer).operands[0]
    }

    /// What a layer makes.
    pub fn output_of(&self, layer: LayerId) -> ValueId {
        ValueId(self.layers[layer.0] + 1)
    }

    /// How many units a layer has: elements in a dense network, and channels in any other, each with all its positions.
    pub fn width(&self, layer: LayerId) -> usize {
        let node = self.node_of(layer);
        if self.is_dense { node.shape.elements() } else { node.channels.count() }
    }

    /// The channels of a value.
    pub fn channels(&self, value: ValueId) -> Channels {
        channels_of(&self.input, &self.nodes, value)
    }

    /// How many elements the widest value has.
    pub fn widest(&self) -> usize {
        self.widest
    }

    /// How many units each layer has.
    pub fn hidden(&self) -> Vec<usize> {
        self.layers().map(|layer| self.width(layer)).collect()
    }

    /// Whether all its operators are those of dense networks. Others are analysed and rewritten channel by channel.
    pub fn is_dense(&self) -> bool {
        self.is_dense
    }

    /// How many products of a weight and a number it takes to compute the outputs for one sample.
    pub fn multiply_adds(&self) -> usize {
        self.nodes.iter().map(|node| self.multiply_adds_of(node)).sum()
    }

    /// How many of them one of its nodes takes.
    pub fn multiply_adds_of(&self, node: &Node) -> usize {
        let map = node.op.as_affine().filter(|_| node.op.has_sums());
        match map.map(|map| map.action(self.shape(node.operands[0]))) {
            Some(Action::Sums(sums)) => sums.products(),
            Some(Action::Move(_) | Action::Each(..)) | None => 0,
        }
    }

    /// How many numbers there are at once at the most, for one sample, if nodes are evaluated in their order and a
    /// value is dropped after what reads it last: what a device has to have room for besides the weights.
    pub fn peak_activations(&self) -> usize {
        let mut last = vec![0; self.nodes.len() + 1];
        for (index, node) in self.nodes.iter().enumerate() {
            node.operands.iter().for_each(|operand| last[operand.index()] = index);
        }
        self.outputs.iter().for_each(|output| last[output.index()] = self.nodes.len());
        let mut alive = self.input.elements();
        let mut most = alive;
        for (index, node) in self.nodes.iter().enumerate() {
            alive += node.shape.elements();
            most = most.max(alive);
            let mut read: Vec<ValueId> = node.operands.clone();
            read.sort_unstable();
            read.dedup();
            let dropped = read.into_iter().filter(|operand| last[operand.index()] == index);
            alive -= dropped.map(|operand| self.shape(operand).elements()).sum::<usize>();
        }
        most
    }

    /// Which elements of the input no output depends on, because all weights on the way are 0.
    pub fn unread_inputs(&self) -> Vec<usize> {
        let mut read: Vec<Vec<bool>> = self.values().map(|value| vec![false; self.shape(value).elements()]).collect();
        self.outputs.iter().for_each(|output| read[output.index()].fill(true));
        for (index, node) in self.nodes.iter().enumerate().rev() {
            let wanted = std::mem::take(&mut read[index + 1]);
            let shapes = self.operand_shapes(node);
            for (place, operand) in node.operands.iter().enumerate() {
                node.op.mark_read(&shapes, place, &wanted, &mut read[operand.index()]);
            }
        }
        (0..self.input.elements()).filter(|&element| !read[ValueId::INPUT.index()][element]).collect()
    }

    /// Whether another network does the same, node by node, whatever they are called.
    pub fn is_alike(&self, other: &Self) -> bool {
        let mut nodes = self.nodes.iter().zip(&other.nodes);
        (&self.input, &self.outputs, self.nodes.len()) == (&other.input, &other.outputs, other.nodes.len())
            && nodes.all(|(one, other)| one.operands == other.operands && one.op == other.op)
    }

    /// How many numbers the network has learnt.
    pub fn parameters(&self) -> usize {
        self.nodes.iter().map(|node| node.op.parameters()).sum()
    }
}

fn shape_of<'a>(input: &'a Shape, nodes: &'a [Node], value: ValueId) -> &'a Shape {
    value.node().map_or(input, |index| &nodes[index].shape)
}

fn channels_of(input: &Shape, nodes: &[Node], value: ValueId) -> Channels {
    value.node().map_or_else(|| Channels::innermost(input), |index| nodes[index].channels)
}

/// A network in the making.
#[derive(Clone, Debug)]
pub struct Builder {
    input: Shape,
    nodes: Vec<Node>,
    /// How many numbers all values of one sample have together.
    elements: usize,
    /// How many pairs of a position and one that it reads all windows have together.
    taps: usize,
}

impl Builder {
    /// Adds a node and returns the value it computes.
    ///
    /// # Errors
    /// If the operator does not take these operands.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        op: impl Into<Op>,
        operands: &[ValueId],
    ) -> Result<ValueId, NetworkError> {
        let op = op.into();
        if operands.len() != op.arity() {
            return Err(NetworkError::mismatch(format!(
                "{} reads {} values, not {}",
                op.name(),
                op.arity(),
                operands.len()
            )));
        }
        if let Some(unknown) = operands.iter().find(|value| value.index() > self.nodes.len()) {
            return Err(NetworkError::mismatch(format!("reads value {}, which no node has made yet", unknown.index())));
        }
        let shapes: Vec<&Shape> = operands.iter().map(|&value| self.shape(value)).collect();
        let shape = op.output_shape(&shapes)?;
        self.elements += shape.elements();
        self.taps = self.taps.saturating_add(op.most_taps(self.shape(operands[0])));
        if self.elements > MAX_TOTAL_ELEMENTS || self.taps > MAX_TOTAL_TAPS {
            return Err(NetworkError::TooMuch);
        }
        let channels = op.channels(channels_of(&self.input, &self.nodes, operands[0]), &shape);
        self.nodes.push(Node { name: name.into(), op, operands: operands.to_vec(), shape, channels });
        Ok(ValueId(self.nodes.len()))
    }

    /// The shape of a value made so far.
    ///
    /// # Panics
    /// If there is no such value.
    pub fn shape(&self, value: ValueId) -> &Shape {
        shape_of(&self.input, &self.nodes, value)
    }

    /// The finished network, with these values leaving it.
    ///
    /// # Errors
    /// If there is no output, or one that no node has made.
    pub fn finish(self, outputs: Vec<ValueId>) -> Result<Network, NetworkError> {
        if outputs.is_empty() {
            return Err(NetworkError::mismatch("a network needs an output"));
        }
        if outputs.iter().any(|value| value.index() > self.nodes.len()) {
            return Err(NetworkError::mismatch("an output that no node has made"));
        }
        let shapes = self.nodes.iter().map(Node::shape).chain([&self.input]);
        let widest = shapes.map(Shape::elements).max().unwrap_or(0);
        let layers = (0..self.nodes.len()).filter(|&node| self.nodes[node].op.is_layer()).collect();
        let is_dense = self.nodes.iter().all(|node| node.op.is_dense());
        let mut nodes = self.nodes;
        if is_dense {
            // What matrices are applied to are vectors along the innermost axis, wherever other operators would have
            // channels.
            nodes.iter_mut().for_each(|node| node.channels = Channels::innermost(&node.shape));
        }
        Ok(Network { input: self.input, nodes, outputs, layers, widest, is_dense })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Dense, Matrix, Relu, Sum};

    #[test]
    fn shapes_are_checked_as_nodes_are_added() -> Result<(), NetworkError> {
        let mut builder = Network::builder(Shape::new([3])?);
        let narrow = Dense::new(Matrix::new(1, 2, vec![1.0, 2.0])?, None)?;
        assert!(matches!(builder.add("fc", narrow, &[ValueId::INPUT]), Err(NetworkError::Mismatch(_))));
        assert!(builder.add("sum", Sum, &[ValueId::INPUT]).is_err(), "a sum reads two values");
        assert!(builder.add("relu", Relu, &[ValueId(7)]).is_err(), "no node made value 7");
        let relu = builder.add("relu", Relu, &[ValueId::INPUT])?;
        let network = builder.finish(vec![relu])?;
        assert_eq!(network.shape(relu).extents(), [3]);
        assert_eq!(network.layers().map(|layer| network.output_of(layer)).collect::<Vec<_>>(), [relu]);
        Ok(())
    }
}
