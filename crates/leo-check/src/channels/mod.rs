//! How far two networks can be apart of which the second is the first with fewer channels.
//!
//! Both have the same nodes, which read the same values; each value of the second has some of the channels that it has
//! in the first. So every element of the second network has an element of the first that it stands for, and what is
//! followed through both networks, node by node, is an interval that holds the difference of the two. Where equal
//! weights read elements that do not differ, it is nothing, exactly. Let `h'` stand for `h`, and let `d = h' - h`. A
//! sum over what stays, by weights `w'` instead of `w`, misses
//!
//! ```text
//! Σ w' d + Σ (w' - w) h + (b' - b) - Σ w h    (the last over what is gone)
//! ```
//!
//! so a channel that is gone costs nothing if it is always 0, or if it is a constant that the bias makes up for. Where
//! it is [said](ChannelSelection) what it is by channels that stay, that is put in its place, and the weights of these
//! make up for it. An
//! activation makes `λ d` of `d`, with `λ` between the least and the greatest slope of the pieces that both touch: a
//! unit that is proved to be off in both networks does not differ at all. Numbers side by side keep their differences,
//! and the largest of a window differs by no more than the numbers in it.
//!
//! That is differential verification with intervals (ReluDiff, Paulsen et al. 2020, arXiv:2001.03662). It needs no
//! matrix over positions: one pass over the terms of both networks, and room for a few values. For what dense layers
//! have besides, see [`mod@crate::deviation`].

mod expressions;
mod form;
mod pairs;
mod part;

use std::collections::BTreeMap;

use leo_network::op::{Action, ActionKind, AffineMap, Op};
use leo_network::{Channels, Network, Node, ValueId, ValueMap};

use crate::checker::ProvedBounds;
use crate::correspondence::Mismatch;
use crate::deviation::{Difference, last_readers};
use crate::number::Number;
use crate::range::Range;
pub use expressions::{ChannelExpression, ChannelExpressions, carried, has_filters};
use expressions::{Expressed, expressed};
use pairs::{NodePair, sum_of};
pub use part::{PartClaims, PartPair};

/// Of the values that have fewer channels than before, which ones stay, in ascending order.
pub type KeptChannels = BTreeMap<ValueId, Vec<usize>>;

/// What is said of the channels of values: which stay, and what some are by others.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChannelSelection {
    /// Which ones stay.
    pub kept: KeptChannels,
    /// Of values that [filters](has_filters) make, what channels are by others. One that goes and of which nothing is
    /// said counts for what it can be at the most.
    pub expressions: BTreeMap<ValueId, ChannelExpressions>,
}

/// The channels of all values that have fewer of them than before, given those of some: where each channel is treated
/// alone, or numbers are moved, what is made has the channels of what is read, and the other way round. (In files,
/// values in the middle of what an operator does have no name.)
///
/// What comes after a dense part's value keeps all that it has.
pub fn complete(network: &Network, part: Option<ValueId>, mut kept: KeptChannels) -> KeptChannels {
    let carries = |node: &Node| match node.op() {
        Op::Affine(map) => map.kind() != ActionKind::Sums || matches!(map, AffineMap::SumPool(_)),
        Op::Activation(_) | Op::Sum(_) | Op::MaxPool(_) => true,
        Op::Concat(_) => false,
    };
    let end = part.map_or(network.nodes().len(), ValueId::index);
    let pairs = network.nodes()[..end].iter().enumerate().filter(|(_, node)| carries(node));
    let pairs: Vec<(ValueId, &Node)> = pairs.map(|(index, node)| (network.result_of(index), node)).collect();
    for &(value, node) in &pairs {
        if let Some(channels) = shared(network, node, kept.get(&node.operands()[0]), Direction::There) {
            kept.entry(value).or_insert(channels);
        }
    }
    for &(value, node) in pairs.iter().rev() {
        if let Some(channels) = shared(network, node, kept.get(&value), Direction::Back) {
            kept.entry(node.operands()[0]).or_insert(channels);
        }
    }
    kept
}

/// From what is read to what is made, or back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    There,
    Back,
}

/// The channels at one end of a node that belong to those at the other, unless some elements of a channel do and others
/// do not.
fn shared(network: &Network, node: &Node, kept: Option<&Vec<usize>>, way: Direction) -> Option<Vec<usize>> {
    let (kept, operand) = (kept?, node.operands()[0]);
    let (from, to) = match way {
        Direction::There => (network.channels(operand), node.channels()),
        Direction::Back => (node.channels(), network.channels(operand)),
    };
    let Op::Affine(map) = node.op() else { return (from.count() == to.count()).then(|| kept.clone()) };
    let Action::Move(moves) = map.action(network.shape(operand)) else {
        return (from.count() == to.count()).then(|| kept.clone());
    };
    let is_kept: Vec<bool> = (0..from.count()).map(|channel| kept.binary_search(&channel).is_ok()).collect();
    let mut found: Vec<Option<bool>> = vec![None; to.count()];
    for made in 0..node.shape().elements() {
        let (one, other) = match way {
            Direction::There => (moves.source(made), made),
            Direction::Back => (made, moves.source(made)),
        };
        let (stays, known) = (is_kept[from.of(one)], &mut found[to.of(other)]);
        if *known.get_or_insert(stays) != stays {
            return None;
        }
    }
    Some((0..to.count()).filter(|&channel| found[channel] == Some(true)).collect())
}

/// How far each element of each output of `second` can be from what `facts` are about, if it is that network with these
/// channels; and, if that is asked for, where all values of the second network lie. If there is a dense part, it is
/// that network up to there, and what comes after corresponds unit by unit.
///
/// # Errors
/// If it is not that network with these channels.
pub fn channel_difference<N: Number>(
    facts: &ProvedBounds<'_, N>,
    second: &Network,
    selection: &ChannelSelection,
    part: Option<&PartPair<'_, N>>,
    with_ranges: bool,
) -> Result<Difference<N>, Mismatch> {
    let first = facts.network();
    let values = StandIns::new(first, second, selection, part.map(|part| part.value))?;
    check_expressions(first, selection)?;
    let last_reader = last_readers(second);
    let input = vec![N::default(); first.input().elements()];
    let mut differences = ValueMap::from(vec![Range { lower: input.clone(), upper: input }]);
    let mut stand_for = ValueMap::from(vec![Expressed::default()]);
    let mut ranges = ValueMap::default();
    let moved = |value: ValueId, by: &Range<N>| moved(facts.range(value), &values.of[value], by);
    if with_ranges {
        ranges.push(facts.range(ValueId::INPUT).clone());
    }
    let end = part.map_or(first.nodes().len(), |part| part.value.index());
    for (index, (one, other)) in first.nodes().iter().zip(second.nodes()).enumerate().take(end) {
        let value = first.result_of(index);
        let (values, given) = (&values, &differences);
        let pair = NodePair { first, second, one, other, facts, values, differences: given, expressed: &stand_for };
        let made = pair.difference(value)?;
        if with_ranges {
            ranges.push(moved(value, &made));
        }
        differences.push(made);
        let made = expressed(facts, value, selection.expressions.get(&value), &stand_for);
        stand_for.push(made);
        for operand in one.operands().iter().filter(|operand| last_reader[**operand] == Some(index)) {
            differences[*operand] = Range { lower: Vec::new(), upper: Vec::new() };
            stand_for[*operand] = Expressed::default();
        }
    }
    if let Some(part) = part {
        return part.difference(facts, second, &values.of[part.value], &differences[part.value], ranges);
    }
    let distance = |value: &ValueId| {
        let range = &differences[*value];
        (0..range.len()).map(|element| range.magnitude(element)).collect()
    };
    Ok(Difference { deviation: second.outputs().iter().map(distance).collect(), ranges })
}

/// How many products expressions may take to be proved.
const MOST_PRODUCTS: usize = 1 << 31;

/// Sees to it that channels are expressed by finite multiples of channels that are not, and by no more of them than can
/// be looked at.
fn check_expressions(network: &Network, selection: &ChannelSelection) -> Result<(), Mismatch> {
    let mut products = 0_usize;
    for (&value, expressions) in &selection.expressions {
        let refuse = || Mismatch::ChannelExpression { value: value.index() };
        let node = value.node().and_then(|node| network.nodes().get(node)).filter(|node| has_filters(node));
        let node = node.ok_or_else(refuse)?;
        let is_other = |channel: usize| channel < node.channels().count() && !expressions.contains_key(&channel);
        let Op::Affine(map) = node.op() else { return Err(refuse()) };
        let Action::Sums(sums) = map.action(network.shape(node.operands()[0])) else { return Err(refuse()) };
        for (&channel, ChannelExpression { constant, terms }) in expressions {
            let fits = channel < node.channels().count() && constant.is_finite();
            let ascends = terms.is_sorted_by(|(a, _), (b, _)| a < b);
            if !fits || !ascends || !terms.iter().all(|&(other, factor)| is_other(other) && factor.is_finite()) {
                return Err(refuse());
            }
            let work = (1 + terms.len()).saturating_mul(node.channels().positions()).saturating_mul(sums.longest());
            products = products.saturating_add(work);
        }
    }
    if products > MOST_PRODUCTS { Err(Mismatch::TooLarge) } else { Ok(()) }
}

/// Where the elements of a value of the second network lie, by where those of the first do and how much they differ.
fn moved<N: Number>(range: &Range<N>, stands_for: &StandIn, by: &Range<N>) -> Range<N> {
    let at = |element: usize| sum_of(&range.at(stands_for.source(element)), &by.at(element));
    let (lower, upper) = (0..by.len()).map(at).map(|at| (at.lower, at.upper)).unzip();
    Range { lower, upper }
}

/// For each value of the second network, which elements of the first one its own stand for.
struct StandIns {
    of: ValueMap<StandIn>,
}

/// Which elements of a value those of a narrower one stand for.
struct StandIn {
    old: Channels,
    new: Channels,
    /// None if all stay.
    kept: Option<Vec<usize>>,
}

impl StandIn {
    /// The element of the first network that one of the second stands for. A later one stands for a later one.
    fn source(&self, element: usize) -> usize {
        match &self.kept {
            None => element,
            Some(kept) => self.old.element(kept[self.new.of(element)], self.new.position(element)),
        }
    }
}

impl StandIns {
    /// Sees to it that both networks have the same nodes, up to the value of a dense part if there is one, and values
    /// of the shapes that the channels make them have.
    fn new(
        first: &Network,
        second: &Network,
        selection: &ChannelSelection,
        part: Option<ValueId>,
    ) -> Result<Self, Mismatch> {
        let mut of = ValueMap::default();
        let end = part.map_or(first.nodes().len(), ValueId::index);
        let is_whole = first.nodes().len() == second.nodes().len() && first.outputs() == second.outputs();
        let has_all = part.map_or(is_whole, |_| end <= first.nodes().len().min(second.nodes().len()));
        let operands = |node: &Node| node.operands().to_vec();
        let mut told = selection.kept.keys().chain(selection.expressions.keys());
        let is_alike = has_all
            && first.nodes()[..end].iter().map(operands).eq(second.nodes()[..end].iter().map(operands))
            && told.all(|value| value.index() <= end);
        if !is_alike {
            return Err(Mismatch::Graph);
        }
        for value in first.values().take(end + 1) {
            let (old, kept) = (first.channels(value), selection.kept.get(&value).cloned());
            // Along the same axis: of several of length 1, the second network could have another one.
            let new = Channels::along(second.shape(value), old.axis());
            let fits = match &kept {
                None => first.shape(value) == second.shape(value),
                Some(kept) => {
                    let is_one =
                        kept.iter().is_sorted_by(|a, b| a < b) && kept.last().is_some_and(|&last| last < old.count());
                    let extents = first.shape(value).extents().iter().enumerate();
                    let expected = extents.map(|(axis, &extent)| if axis == old.axis() { kept.len() } else { extent });
                    let is_shared = value == ValueId::INPUT || first.outputs().contains(&value);
                    is_one && !is_shared && second.shape(value).extents().iter().copied().eq(expected)
                }
            };
            if !fits {
                return Err(Mismatch::Channels { value: value.index() });
            }
            of.push(StandIn { old, new, kept });
        }
        Ok(Self { of })
    }
}
