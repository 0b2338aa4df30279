//! Channels that must leave together, and which of them nobody needs: for networks with convolutions.
//!
//! What treats channels one by one (activations, pools, additions, kernels with a group for each channel) has them in
//! common with what it reads; where branches meet in a sum, they have them in common, too. Such channels are one
//! *group*, and leave together or not at all: a row of weights before, columns of weights after, and numbers in
//! between.
//!
//! A channel *stands for* nothing if it is 0 everywhere, and for a constant if it is that everywhere, up to what nobody
//! can see. A group is *needed* if an output has one of its channels, or if a needed channel reads one by a weight that
//! is not 0, where it does not stand for nothing; or for a constant, unless the bias of what reads it can make up for
//! it: that takes a kernel that sees the constant at every position, which one does not whose window reaches into
//! padding.
//!
//! No number of what stays changes but biases that make up for constants. How far that moves outputs is for the checker
//! to say.

use std::collections::{BTreeMap, BTreeSet};

use leo_check::{KeptChannels, ProvedBounds, complete};
use leo_formats::onnx::{Aside, Document};
use leo_network::op::{Action, ActionKind, AffineMap, Arithmetic, ChannelReads, Op};
use leo_network::{Channels, LayerId, Network, Node, UnitId, ValueId, ValueMap};

use crate::rewriting::history::RemovedUnit;
use crate::rewriting::plan::Rule;
use crate::why::Why;

/// A channel counts as a constant if it moves by no more than this part of it, or than this, whichever is less: what is
/// left out by that is proved to be small, or put back.
const CONSTANT_WIDTH: f64 = 1e-9;

/// All channels of all values, and which of them belong together.
pub(crate) struct Groups<'a> {
    network: &'a Network,
    /// For each value, the place of its first channel among all of them.
    first: ValueMap<usize>,
    /// For each channel, the one that its group is called by.
    group: Vec<usize>,
    /// For each channel of each value, the constant that it stands for, if it stands for one.
    constant: ValueMap<Vec<Option<f64>>>,
    /// What reads channels by weights of its own.
    readers: Vec<ChannelReader>,
    /// Groups that stay in any case.
    pinned: BTreeSet<usize>,
    /// Values whose layout a node changes, and those that it makes of them.
    moved: BTreeSet<ValueId>,
}

/// A node that has weights for each pair of a channel that it reads and one that it makes.
struct ChannelReader {
    value: ValueId,
    /// For each channel that it reads, its place among all channels.
    inputs: Vec<usize>,
    reads: ChannelReads,
    /// Which value's summands can make up for constants, if they can.
    bias: Option<ValueId>,
}

/// Which channels go.
#[derive(Clone, Debug)]
pub(crate) struct ChannelPlan {
    pub(crate) kept: KeptChannels,
    /// Summands that make up for constants.
    pub(crate) summands: BTreeMap<ValueId, Vec<f64>>,
    /// The units that go, and why.
    pub(crate) removed: Vec<RemovedUnit>,
}

/// Sets of channels, joined as they are found to belong together (Tarjan 1975).
struct Joined(Vec<usize>);

impl Joined {
    fn find(&mut self, mut place: usize) -> usize {
        while self.0[place] != place {
            self.0[place] = self.0[self.0[place]];
            place = self.0[place];
        }
        place
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        // By the smaller one, so that a group is called the same however it came to be.
        self.0[a.max(b)] = a.min(b);
    }
}

impl<'a> Groups<'a> {
    /// If nothing may be approximated, only what is quite the same everywhere is a constant.
    pub(crate) fn new(facts: &'a ProvedBounds<'a>, document: &Document, is_exact: bool) -> Self {
        let network = facts.network();
        let mut first = ValueMap::default();
        let mut count = 0;
        for value in network.values() {
            first.push(count);
            count += network.channels(value).count();
        }
        let mut joined = Joined((0..count).collect());
        let mut readers = Vec::new();
        for (index, node) in network.nodes().iter().enumerate() {
            tie(network, node, network.result_of(index), &first, &mut joined);
            readers.extend(ChannelReader::new(network, index, &first, &mut joined));
        }
        let group: Vec<usize> = (0..count).map(|place| joined.find(place)).collect();
        let constant = network.values().map(|value| constants(facts, value, is_exact)).collect();
        let is_move = |node: &Node| node.op().as_affine().is_some_and(|map| map.kind() == ActionKind::Move);
        let moves = network.nodes().iter().enumerate().filter(|(_, node)| is_move(node));
        let moved = moves.flat_map(|(index, node)| [network.result_of(index), node.operands()[0]]).collect();
        let mut groups = Self { network, first, group, constant, readers, pinned: BTreeSet::new(), moved };
        groups.pin(document);
        groups
    }

    /// The place of a channel among all of them.
    fn of(&self, value: ValueId, channel: usize) -> usize {
        self.group[self.first[value] + channel]
    }

    /// The groups of a value's channels.
    fn of_value(&self, value: ValueId) -> &[usize] {
        &self.group[self.first[value]..][..self.network.channels(value).count()]
    }

    /// Keeps what the outside has, and what the file reads for something else than to compute with it, and what takes
    /// parts of channels.
    fn pin(&mut self, document: &Document) {
        let mut pinned: BTreeSet<usize> = self.of_value(ValueId::INPUT).iter().copied().collect();
        for &value in self.network.outputs() {
            pinned.extend(self.of_value(value));
        }
        let is_own = |aside: &Aside<'_>| {
            let own: BTreeSet<usize> = self.of_value(aside.value).iter().copied().collect();
            let has = |value: &ValueId| self.of_value(*value).iter().any(|group| own.contains(group));
            aside.reshapes.as_ref().is_some_and(|reshapes| reshapes.iter().all(has))
        };
        for aside in document.read_aside().into_iter().filter(|aside| !is_own(aside)) {
            pinned.extend(self.of_value(aside.value));
        }
        for (index, node) in self.network.nodes().iter().enumerate() {
            let operand = node.operands()[0];
            if let Op::Affine(AffineMap::Select(select)) = node.op() {
                let (channels, result) = (self.network.channels(operand), self.network.result_of(index));
                let along = &select.axes()[channels.axis()];
                if !along.iter().copied().eq((0..channels.count()).map(Some)) {
                    pinned.extend(self.of_value(operand));
                    pinned.extend(self.of_value(result));
                }
            }
        }
        self.pinned = pinned;
    }

    /// All nodes whose bias can make up for constants, from the first to the last.
    pub(crate) fn absorbers(&self) -> Vec<ValueId> {
        let has_constants = |reader: &&ChannelReader| {
            let operand = self.operand_of(reader);
            reader.bias.is_some() && self.constant[operand].iter().flatten().any(|constant| *constant != 0.0)
        };
        self.readers.iter().filter(has_constants).map(|reader| reader.value).collect()
    }

    fn operand_of(&self, reader: &ChannelReader) -> ValueId {
        self.network.nodes()[reader.value.node().unwrap_or_default()].operands()[0]
    }

    /// What a channel stands for where a node reads it, if that costs nothing: 0, or a constant that one of these nodes
    /// makes up for.
    fn stands_for(&self, reader: &ChannelReader, input: usize, absorbers: &[ValueId]) -> Option<f64> {
        let operand = self.operand_of(reader);
        let constant = self.constant[operand][reader.inputs[input] - self.first[operand]]?;
        (constant == 0.0 || absorbers.contains(&reader.value)).then_some(constant)
    }

    /// Which groups are needed, if these are, and if these nodes make up for constants.
    fn needed(&self, mut needed: BTreeSet<usize>, absorbers: &[ValueId]) -> BTreeSet<usize> {
        loop {
            let before = needed.len();
            for reader in self.readers.iter().rev() {
                let rows = reader.reads.reads.iter().enumerate();
                let rows: Vec<&Vec<bool>> =
                    rows.filter(|(row, _)| needed.contains(&self.of(reader.value, *row))).map(|(_, row)| row).collect();
                for (input, &place) in reader.inputs.iter().enumerate() {
                    let is_read = || rows.iter().any(|row| row[input]);
                    if !needed.contains(&self.group[place])
                        && is_read()
                        && self.stands_for(reader, input, absorbers).is_none()
                    {
                        needed.insert(self.group[place]);
                    }
                }
            }
            // A value cannot be nothing; and a change of layout is none any more where an axis is left with a single
            // channel, so that the file would have other nodes.
            for value in self.network.values() {
                let groups = self.of_value(value);
                let least = if self.moved.contains(&value) { 2 } else { 1 };
                let others = groups.iter().filter(|group| !needed.contains(group)).copied().collect::<Vec<_>>();
                let missing = least.min(groups.len()).saturating_sub(groups.len() - others.len());
                needed.extend(others.into_iter().take(missing));
            }
            if needed.len() == before {
                return needed;
            }
        }
    }

    /// Which channels go, if these nodes make up for constants, and convolutions make multiples of so many channels:
    /// some stay that could go.
    pub(crate) fn plan(&self, absorbers: &[ValueId], align: usize) -> ChannelPlan {
        let needed = self.aligned(self.core(absorbers), absorbers, align);
        let mut kept = KeptChannels::new();
        for value in self.network.values() {
            let groups = self.of_value(value);
            let channels: Vec<usize> = (0..groups.len()).filter(|&channel| needed.contains(&groups[channel])).collect();
            if channels.len() < groups.len() {
                kept.insert(value, channels);
            }
        }
        let mut summands = BTreeMap::new();
        for reader in self.readers.iter().filter(|reader| absorbers.contains(&reader.value)) {
            if let Some((value, numbers)) = self.summands(reader, &needed) {
                summands.insert(value, numbers);
            }
        }
        let mut removed = Vec::new();
        for layer in self.network.layers() {
            let value = self.network.output_of(layer);
            for (unit, group) in self.of_value(value).iter().enumerate() {
                if !needed.contains(group) {
                    let rule = match self.constant[value][unit] {
                        Some(0.0) => Rule::Inactive,
                        Some(_) => Rule::Constant,
                        None => Rule::Dead,
                    };
                    removed.push(RemovedUnit { unit: UnitId { layer, unit }, rule });
                }
            }
        }
        ChannelPlan { kept, summands, removed }
    }

    /// With so many more groups that each convolution that loses channels makes a multiple of `align`: first those that
    /// a bias would have to make up for, then those that are always 0.
    fn aligned(&self, mut needed: BTreeSet<usize>, absorbers: &[ValueId], align: usize) -> BTreeSet<usize> {
        let (made_up, alive) = (self.made_up_for(&needed, absorbers), self.not_off());
        for is_exact in [true, false] {
            for reader in &self.readers {
                let node = &self.network.nodes()[reader.value.node().unwrap_or_default()];
                if !matches!(node.op(), Op::Affine(AffineMap::Convolution(_))) {
                    continue;
                }
                let groups: BTreeSet<usize> = self.of_value(reader.value).iter().copied().collect();
                let stay = groups.intersection(&needed).count();
                let wanted = stay.next_multiple_of(align).min(groups.len());
                if stay == groups.len() {
                    continue;
                }
                let mut others: Vec<usize> = groups.difference(&needed).copied().collect();
                if is_exact {
                    others.retain(|group| made_up.contains(group));
                } else {
                    others.sort_by_key(|group| alive.contains(group));
                }
                needed.extend(others.into_iter().take(wanted - stay));
            }
            if is_exact {
                needed = self.needed(needed, absorbers);
            }
        }
        needed
    }

    /// The groups of which what is needed reads a channel that stands for a constant.
    fn made_up_for(&self, needed: &BTreeSet<usize>, absorbers: &[ValueId]) -> BTreeSet<usize> {
        let mut groups = BTreeSet::new();
        for reader in &self.readers {
            let is_needed = |row: usize| needed.contains(&self.of(reader.value, row));
            let rows: Vec<usize> = (0..reader.reads.reads.len()).filter(|&row| is_needed(row)).collect();
            let constants = (0..reader.inputs.len()).filter(|&input| {
                let constant = self.stands_for(reader, input, absorbers);
                constant.is_some_and(|constant| constant != 0.0)
                    && rows.iter().any(|&row| reader.reads.reads[row][input])
            });
            groups.extend(constants.map(|input| self.group[reader.inputs[input]]));
        }
        groups
    }

    /// The groups of which not all units are always off.
    fn not_off(&self) -> BTreeSet<usize> {
        let outputs = self.network.layers().map(|layer| self.network.output_of(layer));
        let channels = outputs.flat_map(|value| self.of_value(value).iter().zip(&self.constant[value]));
        channels.filter(|(_, constant)| **constant != Some(0.0)).map(|(group, _)| *group).collect()
    }

    /// Which groups are needed, if these nodes make up for constants.
    pub(crate) fn core(&self, absorbers: &[ValueId]) -> BTreeSet<usize> {
        self.needed(self.pinned.clone(), absorbers)
    }

    /// Why a unit of a layer that is always off is still there, if these groups are needed.
    pub(crate) fn why(&self, layer: LayerId, unit: usize, needed: &BTreeSet<usize>, align: usize) -> Why {
        let value = self.network.output_of(layer);
        let group = self.of(value, unit);
        if self.pinned.contains(&group) {
            return Why::Pinned(
                "an output, or something else than arithmetic, needs its channels as they are".to_owned(),
            );
        }
        if !needed.contains(&group) {
            return Why::Aligned(align);
        }
        let is_join = |node: &Node| matches!(node.op(), Op::Sum(_) | Op::Concat(_));
        let mut joins = self.network.nodes().iter().enumerate().filter(|(_, node)| is_join(node));
        let has = |index: usize| self.of_value(self.network.result_of(index)).contains(&group);
        match joins.find(|(index, _)| has(*index)) {
            Some((_, node)) => Why::Coupled(node.name().to_owned()),
            None => Why::Pinned(
                "what is made of it alone, as by a depthwise convolution, is needed, or its value would be left with too \
                 few channels"
                    .to_owned(),
            ),
        }
    }

    /// The summands of the channels that stay, with what the constants add that go.
    fn summands(&self, reader: &ChannelReader, needed: &BTreeSet<usize>) -> Option<(ValueId, Vec<f64>)> {
        let (value, operand) = (reader.bias?, self.operand_of(reader));
        let node = &self.network.nodes()[reader.value.node()?];
        let Op::Affine(map) = node.op() else { return None };
        let Action::Sums(sums) = map.action(self.network.shape(operand)) else { return None };
        let own = |input: usize| {
            let channel = input_channel(self.network.shape(operand).extents(), reader.reads.axis, input);
            let place = reader.inputs[channel];
            let constant = self.constant[operand][place - self.first[operand]].unwrap_or(0.0);
            if needed.contains(&self.group[place]) { 0.0 } else { constant }
        };
        let mut changed = false;
        let made = node.channels();
        let mut numbers = Vec::new();
        for row in (0..made.count()).filter(|&row| needed.contains(&self.of(reader.value, row))) {
            let element = made.element(row, 0);
            let missing: f64 = sums.terms(element).map(|(input, weight)| weight * own(input)).sum();
            changed |= missing != 0.0;
            numbers.push(before(self.network, value, reader.value, row) + missing);
        }
        changed.then_some((value, numbers))
    }
}

/// The summand that a channel has now, by the value that has the summands.
fn before(network: &Network, value: ValueId, product: ValueId, channel: usize) -> f64 {
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
fn input_channel(extents: &[usize], axis: usize, element: usize) -> usize {
    let stride: usize = extents[axis + 1..].iter().product();
    element / stride % extents[axis]
}

impl ChannelReader {
    /// The node, if it has weights for pairs of channels. All that it reads by the same weights belongs together.
    fn new(network: &Network, index: usize, first: &ValueMap<usize>, joined: &mut Joined) -> Option<Self> {
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

/// Joins the channels that a node reads and makes, if it treats them one by one, or in groups that are no smaller.
fn tie(network: &Network, node: &Node, value: ValueId, first: &ValueMap<usize>, joined: &mut Joined) {
    let made = node.channels();
    let mut last = (usize::MAX, usize::MAX);
    let mut pair = |element: usize, operand: ValueId, source: usize| {
        let (a, b) = (first[value] + made.of(element), first[operand] + network.channels(operand).of(source));
        if (a, b) != last {
            joined.join(a, b);
            last = (a, b);
        }
    };
    let elements = 0..node.shape().elements();
    match node.op() {
        Op::Activation(_) | Op::Sum(_) => {
            node.operands().iter().for_each(|&operand| elements.clone().for_each(|at| pair(at, operand, at)));
        }
        Op::Concat(concat) => {
            let sources = concat.sources(&network.operand_shapes(node)).into_iter().enumerate();
            sources.for_each(|(element, (index, source))| pair(element, node.operands()[index], source));
        }
        Op::MaxPool(pool) => {
            let operand = node.operands()[0];
            let windows = pool.windows(network.shape(operand));
            elements.for_each(|element| windows.of(element).for_each(|source| pair(element, operand, source)));
        }
        Op::Affine(map) if !map.ties_channels() => {}
        Op::Affine(map) => {
            let operand = node.operands()[0];
            match map.action(network.shape(operand)) {
                Action::Move(moves) => elements.for_each(|element| pair(element, operand, moves.source(element))),
                Action::Each(..) => elements.for_each(|element| pair(element, operand, element)),
                Action::Sums(sums) => {
                    elements
                        .for_each(|element| sums.terms(element).for_each(|(source, _)| pair(element, operand, source)));
                }
            }
        }
    }
}

/// For each channel of a value, the constant that it is, if it is one.
fn constants(facts: &ProvedBounds<'_>, value: ValueId, is_exact: bool) -> Vec<Option<f64>> {
    let (channels, range) = (facts.network().channels(value), facts.range(value));
    let of_channel = |channel: usize| {
        let ends = channels.elements(channel).fold((f64::INFINITY, f64::NEG_INFINITY), |(lower, upper), at| {
            (lower.min(range.lower[at]), upper.max(range.upper[at]))
        });
        let (lower, upper) = ends;
        let middle = lower + (upper - lower) / 2.0;
        if is_exact {
            return (lower == upper).then_some(lower);
        }
        let is_constant = upper - lower <= CONSTANT_WIDTH * middle.abs().min(1.0) || lower == upper;
        let is_nothing = upper.max(-lower) <= CONSTANT_WIDTH * CONSTANT_WIDTH;
        if is_nothing { Some(0.0) } else { is_constant.then_some(middle) }
    };
    (0..channels.count()).map(of_channel).collect()
}

impl ChannelPlan {
    /// Whether values without a name in the file have the channels that follow from those that have one: whoever checks
    /// it has no other.
    pub(crate) fn can_be_told(&self, document: &Document) -> bool {
        let named = self.kept.iter().filter(|(value, _)| document.name_of(**value).is_some());
        let named = named.map(|(&value, channels)| (value, channels.clone())).collect();
        complete(document.network(), named) == self.kept
    }
}
