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
//! padding. Where it stands for a linear function of other channels ([`dependence`]), what reads it can read these
//! instead, by weights that make up for it: then these are needed.
//!
//! No number of what stays changes but biases and weights that make up for something. How far that moves outputs is for
//! the checker to say.

use std::collections::{BTreeMap, BTreeSet};

use leo_check::{
    ChannelExpression, ChannelExpressions, ChannelSelection, KeptChannels, ProvedBounds, complete, has_filters,
};
use leo_formats::onnx::{Aside, Document, MadeUp, Share};
use leo_network::op::{Action, ActionKind, AffineMap, Op};
use leo_network::{LayerId, Network, Node, UnitId, ValueId, ValueMap};

use super::dependence;
use super::reading::{ChannelReader, before, input_channel};
use super::ties::{Joined, tie};
use crate::rewriting::history::RemovedUnit;
use crate::rewriting::plan::Rule;
use crate::why::Why;

/// A channel counts as a constant if it moves by no more than this part of it, or than this, whichever is less: what is
/// left out by that is proved to be small, or put back.
const CONSTANT_WIDTH: f64 = 1e-9;

/// All channels of all values, and which of them belong together.
pub(crate) struct Groups<'a> {
    facts: &'a ProvedBounds<'a>,
    network: &'a Network,
    /// For each value, the place of its first channel among all of them.
    first: ValueMap<usize>,
    /// For each channel, the one that its group is called by.
    group: Vec<usize>,
    /// For each channel of each value, the constant that it stands for, if it stands for one.
    constant: ValueMap<Vec<Option<f64>>>,
    /// For each value, channels that are linear functions of others.
    expressed: ValueMap<ChannelExpressions>,
    /// What reads channels by weights of its own.
    readers: Vec<ChannelReader>,
    /// After which value everything is dense and has been taken care of, if that is so: nothing there goes or makes up
    /// for anything, but the biases of what reads this value.
    dense: Option<ValueId>,
    /// Groups that stay in any case.
    pinned: BTreeSet<usize>,
    /// Values whose layout a node changes, and those that it makes of them.
    moved: BTreeSet<ValueId>,
}

/// Which nodes may make up for channels that go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Making<'m> {
    /// For constants.
    pub(crate) constants: &'m [ValueId],
    /// For linear functions of other channels.
    pub(crate) shares: &'m [ValueId],
}

/// What a channel stands for where it is read.
enum Standing<'a> {
    Constant(f64),
    /// A linear function of channels that stay.
    Others(&'a ChannelExpression),
}

/// Which channels go.
#[derive(Clone, Debug)]
pub(crate) struct ChannelPlan {
    pub(crate) selection: ChannelSelection,
    /// What makes up for them.
    pub(crate) made_up: MadeUp,
    /// The units that go, and why.
    pub(crate) removed: Vec<RemovedUnit>,
}

impl<'a> Groups<'a> {
    /// If nothing may be approximated, only what is quite the same everywhere is a constant. What comes after `dense`,
    /// if that is a value, stays as it is.
    pub(crate) fn new(
        facts: &'a ProvedBounds<'a>,
        document: &Document,
        is_exact: bool,
        dense: Option<ValueId>,
    ) -> Self {
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
        let (expressed, pinned) = (ValueMap::default(), BTreeSet::new());
        let mut groups = Self { facts, network, first, group, constant, expressed, readers, dense, pinned, moved };
        groups.pin(document);
        groups.expressed = groups.expressions();
        groups
    }

    /// For each value, channels that are linear functions of others. Those stay first that have to stay in any case.
    fn expressions(&self) -> ValueMap<ChannelExpressions> {
        let reads = |reader: &ChannelReader| reader.inputs.iter().map(|&place| self.group[place]).collect::<Vec<_>>();
        let without = self.readers.iter().filter(|reader| reader.bias.is_none());
        let rigid: BTreeSet<usize> = without.flat_map(reads).collect();
        let comes_first = |value: ValueId, channel: usize| self.pinned.contains(&self.of(value, channel));
        let has_bias = |value: ValueId, channel: usize| !rigid.contains(&self.of(value, channel));
        dependence::expressions(self.facts, comes_first, has_bias)
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
        let is_dense = |value: &ValueId| self.dense.is_some_and(|dense| dense < *value);
        for value in self.network.outputs().iter().copied().chain(self.network.values().filter(is_dense)) {
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
            let is_free = self.dense.is_none_or(|dense| operand <= dense);
            is_free && reader.bias.is_some() && self.constant[operand].iter().flatten().any(|constant| *constant != 0.0)
        };
        self.readers.iter().filter(has_constants).map(|reader| reader.value).collect()
    }

    fn operand_of(&self, reader: &ChannelReader) -> ValueId {
        self.network.nodes()[reader.value.node().unwrap_or_default()].operands()[0]
    }

    /// All nodes whose weights can make up for linear functions of other channels, from the first to the last.
    pub(crate) fn sharers(&self) -> Vec<ValueId> {
        let has_some = |reader: &&ChannelReader| {
            let place = self.first[self.operand_of(reader)];
            let is_direct = reader.inputs.iter().enumerate().all(|(input, at)| *at == place + input);
            let is_free = self.dense.is_none_or(|dense| reader.value <= dense);
            is_free && is_direct && !self.expressed[self.operand_of(reader)].is_empty()
        };
        self.readers.iter().filter(has_some).map(|reader| reader.value).collect()
    }

    /// What a channel stands for where a node reads it, if that costs nothing: 0, or something that one of these nodes
    /// makes up for.
    fn stands_for(&self, reader: &ChannelReader, input: usize, making: Making<'_>) -> Option<Standing<'_>> {
        let operand = self.operand_of(reader);
        let channel = reader.inputs[input] - self.first[operand];
        let absorbs = |constant: f64| constant == 0.0 || making.constants.contains(&reader.value);
        if let Some(constant) = self.constant[operand][channel].filter(|&constant| absorbs(constant)) {
            return Some(Standing::Constant(constant));
        }
        let expression = self.expressed[operand].get(&channel).filter(|_| making.shares.contains(&reader.value))?;
        let has_room = expression.constant == 0.0 || reader.bias.is_some();
        has_room.then_some(Standing::Others(expression))
    }

    /// Which groups are needed, if these are, and if these nodes make up for what goes.
    fn needed(&self, mut needed: BTreeSet<usize>, making: Making<'_>) -> BTreeSet<usize> {
        loop {
            let before = needed.len();
            for reader in self.readers.iter().rev() {
                let rows = reader.reads.reads.iter().enumerate();
                let rows: Vec<&Vec<bool>> =
                    rows.filter(|(row, _)| needed.contains(&self.of(reader.value, *row))).map(|(_, row)| row).collect();
                for (input, &place) in reader.inputs.iter().enumerate() {
                    let is_read = || rows.iter().any(|row| row[input]);
                    if needed.contains(&self.group[place]) || !is_read() {
                        continue;
                    }
                    match self.stands_for(reader, input, making) {
                        None => {
                            needed.insert(self.group[place]);
                        }
                        Some(Standing::Constant(_)) => {}
                        Some(Standing::Others(of)) => {
                            let operand = self.operand_of(reader);
                            needed.extend(of.terms.iter().map(|&(channel, _)| self.of(operand, channel)));
                        }
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

    /// Which channels go, if these nodes make up for them, and convolutions make multiples of so many channels: some
    /// stay that could go.
    pub(crate) fn plan(&self, making: Making<'_>, align: usize) -> ChannelPlan {
        let needed = self.aligned(self.core(making), making, align);
        let mut kept = KeptChannels::new();
        for value in self.network.values() {
            let groups = self.of_value(value);
            let channels: Vec<usize> = (0..groups.len()).filter(|&channel| needed.contains(&groups[channel])).collect();
            if channels.len() < groups.len() {
                kept.insert(value, channels);
            }
        }
        let mut made_up = MadeUp::default();
        for reader in &self.readers {
            if making.constants.contains(&reader.value) || making.shares.contains(&reader.value) {
                made_up.summands.extend(self.summands(reader, &needed, making));
            }
            let shares = self.shares(reader, &needed, making);
            if !shares.is_empty() {
                made_up.shares.insert(reader.value, shares);
            }
        }
        let selection = ChannelSelection { kept, expressions: self.told(&made_up) };
        let mut removed = Vec::new();
        for layer in self.network.layers() {
            let value = self.network.output_of(layer);
            for (unit, group) in self.of_value(value).iter().enumerate() {
                if !needed.contains(group) {
                    let rule = match (self.constant[value][unit], self.expressed[value].get(&unit)) {
                        (Some(0.0), _) if self.is_off(value, unit) => Rule::Inactive,
                        (Some(0.0), _) => Rule::Negligible,
                        (Some(_), _) => Rule::Constant,
                        (None, Some(of)) if of.terms.len() == 1 && of.constant == 0.0 => Rule::Multiple,
                        (None, Some(_)) => Rule::Merged,
                        (None, None) => Rule::Dead,
                    };
                    removed.push(RemovedUnit { unit: UnitId { layer, unit }, rule });
                }
            }
        }
        ChannelPlan { selection, made_up, removed }
    }

    /// Whether a channel is 0, and not only nearly so.
    fn is_off(&self, value: ValueId, channel: usize) -> bool {
        let range = self.facts.range(value);
        self.network.channels(value).elements(channel).all(|at| range.lower[at] == 0.0 && range.upper[at] == 0.0)
    }

    /// What weights for channels that are still read add to those for others.
    fn shares(&self, reader: &ChannelReader, needed: &BTreeSet<usize>, making: Making<'_>) -> Vec<Share> {
        let rows =
            reader.reads.reads.iter().enumerate().filter(|(row, _)| needed.contains(&self.of(reader.value, *row)));
        let rows: Vec<&Vec<bool>> = rows.map(|(_, row)| row).collect();
        let is_read =
            |input: &usize| !needed.contains(&self.group[reader.inputs[*input]]) && rows.iter().any(|row| row[*input]);
        let mut shares = Vec::new();
        for from in (0..reader.inputs.len()).filter(is_read) {
            if let Some(Standing::Others(of)) = self.stands_for(reader, from, making) {
                shares.extend(of.terms.iter().map(|&(to, factor)| Share { from, to, factor }));
            }
        }
        shares
    }

    /// What is to be said of channels for those to be believed that make up for some: what these are, and what those
    /// are that are read before them.
    fn told(&self, made_up: &MadeUp) -> BTreeMap<ValueId, ChannelExpressions> {
        let from = |reader: &ChannelReader| {
            let shares = made_up.shares.get(&reader.value).map_or(&[][..], Vec::as_slice);
            shares.iter().map(|share| self.group[reader.inputs[share.from]]).collect::<Vec<_>>()
        };
        let mut asked: BTreeSet<usize> = self.readers.iter().flat_map(from).collect();
        let mut told = BTreeMap::new();
        let filters = self.network.nodes().iter().enumerate().rev().filter(|(_, node)| has_filters(node));
        for (index, node) in filters {
            let (value, operand) = (self.network.result_of(index), node.operands()[0]);
            let all = self.expressed[value].iter().filter(|(channel, _)| asked.contains(&self.of(value, **channel)));
            let all: ChannelExpressions = all.map(|(&channel, of)| (channel, of.clone())).collect();
            if !all.is_empty() {
                asked.extend(self.expressed[operand].keys().map(|&channel| self.of(operand, channel)));
                told.insert(value, all);
            }
        }
        told
    }

    /// With so many more groups that each convolution that loses channels makes a multiple of `align`: first those that
    /// a bias would have to make up for, then those that are always 0.
    fn aligned(&self, mut needed: BTreeSet<usize>, making: Making<'_>, align: usize) -> BTreeSet<usize> {
        let (made_up, alive) = (self.made_up_for(&needed, making), self.not_off());
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
                needed = self.needed(needed, making);
            }
        }
        needed
    }

    /// The groups of which what is needed reads a channel that has to be made up for.
    fn made_up_for(&self, needed: &BTreeSet<usize>, making: Making<'_>) -> BTreeSet<usize> {
        let mut groups = BTreeSet::new();
        for reader in &self.readers {
            let is_needed = |row: usize| needed.contains(&self.of(reader.value, row));
            let rows: Vec<usize> = (0..reader.reads.reads.len()).filter(|&row| is_needed(row)).collect();
            let constants = (0..reader.inputs.len()).filter(|&input| {
                let is_something = match self.stands_for(reader, input, making) {
                    Some(Standing::Constant(constant)) => constant != 0.0,
                    Some(Standing::Others(_)) => !needed.contains(&self.group[reader.inputs[input]]),
                    None => false,
                };
                is_something && rows.iter().any(|&row| reader.reads.reads[row][input])
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

    /// Which groups are needed, if these nodes make up for what goes.
    pub(crate) fn core(&self, making: Making<'_>) -> BTreeSet<usize> {
        self.needed(self.pinned.clone(), making)
    }

    /// Why a unit of a layer that is always off is still there, if these groups are needed: where what goes is made up
    /// for, and where it is not.
    pub(crate) fn why(&self, layer: LayerId, unit: usize, [needed, rigid]: &[BTreeSet<usize>; 2], align: usize) -> Why {
        let value = self.network.output_of(layer);
        let group = self.of(value, unit);
        if self.pinned.contains(&group) {
            return Why::Pinned(
                "an output, or something else than arithmetic, needs its channels as they are".to_owned(),
            );
        }
        if !needed.contains(&group) {
            // Nobody would need it if something were made up for.
            return if align <= 1 || rigid.contains(&group) { Why::Rounding } else { Why::Aligned(align) };
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
    fn summands(
        &self,
        reader: &ChannelReader,
        needed: &BTreeSet<usize>,
        making: Making<'_>,
    ) -> Option<(ValueId, Vec<f64>)> {
        let (value, operand) = (reader.bias?, self.operand_of(reader));
        let node = &self.network.nodes()[reader.value.node()?];
        let Op::Affine(map) = node.op() else { return None };
        let Action::Sums(sums) = map.action(self.network.shape(operand)) else { return None };
        let own = |input: usize| {
            let channel = input_channel(self.network.shape(operand).extents(), reader.reads.axis, input);
            let place = reader.inputs[channel];
            match self.stands_for(reader, channel, making).filter(|_| !needed.contains(&self.group[place])) {
                Some(Standing::Constant(constant)) => constant,
                Some(Standing::Others(of)) => of.constant,
                None => 0.0,
            }
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
    pub(crate) fn can_be_told(&self, document: &Document, dense: Option<ValueId>) -> bool {
        let ChannelSelection { kept, expressions } = &self.selection;
        let named = kept.iter().filter(|(value, _)| document.name_of(**value).is_some());
        let named = named.map(|(&value, channels)| (value, channels.clone())).collect();
        expressions.keys().all(|&value| document.name_of(value).is_some())
            && complete(document.network(), dense, named) == *kept
    }
}
