//! What reads channels by weights of its own, and what it can make up for.

use leo_network::op::{Action, AffineMap, Arithmetic, ChannelReads, Op};
use leo_network::{Channels, Network, Node, ValueId, ValueMap};

use super::ties::Joined;

/// A node that has weights for each pair of a channel that it reads and one that it makes.
pub(crate) struct ChannelReader {
    pub(crate) value: ValueId,
    /// For each channel that it reads, its place among all channels.
    pub(crate) inputs: Vec<usize>,
    pub(crate) reads: ChannelReads,
    /// Which value's summands can make up for constants, if they can.
    pub(crate) bias: Option<ValueId>,
}

/// The summand that a channel has now, by the value that has the summands.
pub(crate) fn before(network: &Network, value: ValueId, product: ValueId, channel: usize) -> f64 {
    let node = value.node().map(|node| &network.nodes()[node]);
    match node.map(Node::op) {
        Some(Op::Affine(AffineMap::Convolution(map))) => map.bias().map_or(0.0, |bias| bias[channel]),
        Some(Op::Affine(AffineMap::Dense(map))) => map.bias().map_or(0.0, |bias| bias[channel]),
        Some(Op::Affine(AffineMap::Elementwise(map))) => {
            map.constant().expand(network.shape(value))[network.channels(product).element(channel, 0)]
        }
        _ => 0.0,
    }
}

/// Which index along an axis an element has.
pub(crate) fn input_channel(extents: &[usize], axis: usize, element: usize) -> usize {
    let stride: usize = extents[axis + 1..].iter().product();
    element / stride % extents[axis]
}

impl ChannelReader {
    /// The node, if it has weights for pairs of channels. All that it reads by the same weights belongs together.
    pub(crate) fn new(network: &Network, index: usize, first: &ValueMap<usize>, joined: &mut Joined) -> Option<Self> {
        let node = &network.nodes()[index];
        let Op::Affine(map) = node.op() else { return None };
        let (value, operand) = (network.result_of(index), node.operands()[0]);
        let shape = network.shape(operand);
        let reads = map.channel_reads(shape)?;
        let (along, own) = (Channels::along(shape, reads.axis), network.channels(operand));
        let place = |element: usize| first[operand] + own.of(element);
        let inputs = (0..reads.inputs).map(|input| place(along.element(input, 0))).collect();
        if along != own {
            for element in 0..shape.elements() {
                joined.join(place(element), place(along.element(along.of(element), 0)));
            }
        }
        Some(Self { value, inputs, bias: bias_of(network, map, value, operand), reads })
    }
}

/// The value that has a summand for each channel of what a map makes, if what a constant adds is the same at each
/// position.
fn bias_of(network: &Network, map: &AffineMap, value: ValueId, operand: ValueId) -> Option<ValueId> {
    match map {
        AffineMap::Convolution(convolution) => {
            let Action::Sums(sums) = map.action(network.shape(operand)) else { return None };
            let all = convolution.inputs() * convolution.window().entries()?;
            (sums.outputs() * all == sums.products()).then_some(value)
        }
        AffineMap::Dense(dense) if dense.bias().is_some() => Some(value),
        AffineMap::Dense(_) => {
            // A product whose bias is added by a node of its own, and that nothing else reads.
            let mut readers = network.nodes().iter().enumerate().filter(|(_, node)| node.operands().contains(&value));
            let (index, node) = readers.next().filter(|_| !network.outputs().contains(&value))?;
            let Op::Affine(AffineMap::Elementwise(sum)) = node.op() else { return None };
            let is_vector = sum.constant().values().len() == node.channels().count();
            let is_sum = sum.arithmetic() == Arithmetic::Add && is_vector && node.channels() == network.channels(value);
            (is_sum && readers.next().is_none()).then(|| network.result_of(index))
        }
        _ => None,
    }
}
