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
//! so a channel that is gone costs nothing if it is always 0, or if it is a constant that the bias makes up for. An
//! activation makes `λ d` of `d`, with `λ` between the least and the greatest slope of the pieces that both touch: a
//! unit that is proved to be off in both networks does not differ at all. Numbers side by side keep their differences,
//! and the largest of a window differs by no more than the numbers in it.
//!
//! That is differential verification with intervals (ReluDiff, Paulsen et al. 2020, arXiv:2001.03662). It needs no
//! matrix over positions: one pass over the terms of both networks, and room for a few values. For what dense layers
//! have besides, see [`mod@crate::deviation`].

use std::collections::BTreeMap;

use leo_network::op::{Action, ActionKind, AffineMap, Arithmetic, Op, Sums};
use leo_network::{Activation, Channels, Network, Node, ValueId, ValueMap, sum_and_error};
use rayon::prelude::*;

use crate::activation::{image, touched};
use crate::checker::ProvedBounds;
use crate::correspondence::Mismatch;
use crate::deviation::{Difference, last_readers};
use crate::number::Number;
use crate::range::{Interval, Range};
use crate::sound::Upper;

/// Of the values that have fewer channels than before, which ones stay, in ascending order.
pub type KeptChannels = BTreeMap<ValueId, Vec<usize>>;

/// The channels of all values that have fewer of them than before, given those of some: where each channel is treated
/// alone, or numbers are moved, what is made has the channels of what is read, and the other way round. (In files,
/// values in the middle of what an operator does have no name.)
pub fn complete(network: &Network, mut kept: KeptChannels) -> KeptChannels {
    let carries = |node: &Node| match node.op() {
        Op::Affine(map) => map.kind() != ActionKind::Sums || matches!(map, AffineMap::SumPool(_)),
        Op::Activation(_) | Op::Sum(_) | Op::MaxPool(_) => true,
        Op::Concat(_) => false,
    };
    let pairs = network.nodes().iter().enumerate().filter(|(_, node)| carries(node));
    let pairs: Vec<(ValueId, &Node)> = pairs.map(|(index, node)| (network.result_of(index), node)).collect();
    for &(value, node) in &pairs {
        if let Some(channels) = carried(network, node, kept.get(&node.operands()[0]), Direction::There) {
            kept.entry(value).or_insert(channels);
        }
    }
    for &(value, node) in pairs.iter().rev() {
        if let Some(channels) = carried(network, node, kept.get(&value), Direction::Back) {
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
fn carried(network: &Network, node: &Node, kept: Option<&Vec<usize>>, way: Direction) -> Option<Vec<usize>> {
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
/// channels; and, if that is asked for, where all values of the second network lie.
///
/// # Errors
/// If it is not that network with these channels.
pub fn channel_difference<N: Number>(
    facts: &ProvedBounds<'_, N>,
    second: &Network,
    kept: &KeptChannels,
    with_ranges: bool,
) -> Result<Difference<N>, Mismatch> {
    let first = facts.network();
    let values = StandIns::new(first, second, kept)?;
    let last_reader = last_readers(second);
    let input = vec![N::default(); first.input().elements()];
    let mut differences = ValueMap::from(vec![Range { lower: input.clone(), upper: input }]);
    let mut ranges = ValueMap::default();
    let moved = |value: ValueId, by: &Range<N>| moved(facts.range(value), &values.of[value], by);
    if with_ranges {
        ranges.push(facts.range(ValueId::INPUT).clone());
    }
    for (index, (one, other)) in first.nodes().iter().zip(second.nodes()).enumerate() {
        let value = first.result_of(index);
        let pair = NodePair { first, second, one, other, facts, values: &values, differences: &differences };
        let made = pair.difference(value)?;
        if with_ranges {
            ranges.push(moved(value, &made));
        }
        differences.push(made);
        for operand in one.operands().iter().filter(|operand| last_reader[**operand] == Some(index)) {
            differences[*operand] = Range { lower: Vec::new(), upper: Vec::new() };
        }
    }
    let distance = |value: &ValueId| {
        let range = &differences[*value];
        (0..range.len()).map(|element| range.magnitude(element)).collect()
    };
    Ok(Difference { deviation: second.outputs().iter().map(distance).collect(), ranges })
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
    /// Sees to it that both networks have the same nodes, and values of the shapes that the channels make them have.
    fn new(first: &Network, second: &Network, kept: &KeptChannels) -> Result<Self, Mismatch> {
        let mut of = ValueMap::default();
        let is_alike = first.nodes().len() == second.nodes().len()
            && first.outputs() == second.outputs()
            && first.nodes().iter().zip(second.nodes()).all(|(one, other)| one.operands() == other.operands())
            && kept.keys().all(|value| value.index() <= first.nodes().len());
        if !is_alike {
            return Err(Mismatch::Graph);
        }
        for value in first.values() {
            let (old, kept) = (first.channels(value), kept.get(&value).cloned());
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

/// A node of the first network, and the one that does the same in the second.
struct NodePair<'a, N> {
    first: &'a Network,
    second: &'a Network,
    one: &'a Node,
    other: &'a Node,
    facts: &'a ProvedBounds<'a, N>,
    values: &'a StandIns,
    /// How much values of the second network differ.
    differences: &'a ValueMap<Range<N>>,
}

impl<N: Number> NodePair<'_, N> {
    /// How much what the second node makes differs from what it stands for.
    fn difference(&self, value: ValueId) -> Result<Range<N>, Mismatch> {
        let wrong = || Mismatch::Channels { value: value.index() };
        let made = &self.values.of[value];
        let elements = self.other.shape().elements();
        let (operand, range) = (self.one.operands()[0], self.facts.range(self.one.operands()[0]));
        let source = |element: usize| made.source(element);
        let found: Option<Vec<Interval<N>>> = match (self.one.op(), self.other.op()) {
            (Op::Activation(one), Op::Activation(other)) if one == other => {
                let of = |unit| Some(of_activation(one, &range.at(source(unit)), &self.same((unit, source(unit)), 0)?));
                (0..elements).map(of).collect()
            }
            (Op::Sum(_), Op::Sum(_)) => {
                let of = |element| {
                    let pair = (element, source(element));
                    Some(sum_of(&self.same(pair, 0)?, &self.same(pair, 1)?))
                };
                (0..elements).map(of).collect()
            }
            (Op::Concat(one), Op::Concat(other)) => {
                let one = one.sources(&self.first.operand_shapes(self.one));
                let other = other.sources(&self.second.operand_shapes(self.other));
                let of = |element: usize| {
                    let ((index, theirs), (operand, mine)) = (one[source(element)], other[element]);
                    self.same((mine, theirs), index).filter(|_| index == operand)
                };
                (0..elements).map(of).collect()
            }
            (Op::MaxPool(one), Op::MaxPool(other)) => {
                let (one, other) = (one.windows(self.first.shape(operand)), other.windows(self.second.shape(operand)));
                let of = |element: usize| {
                    let is_whole = other.of(element).count() == one.of(source(element)).count();
                    let mut window = other.of(element).zip(one.of(source(element))).map(|pair| self.same(pair, 0));
                    let first = window.next().filter(|_| is_whole)??;
                    window.try_fold(first, |all, by| {
                        let by = by?;
                        Some(Interval { lower: all.lower.smaller(&by.lower), upper: all.upper.larger(&by.upper) })
                    })
                };
                (0..elements).map(of).collect()
            }
            (Op::Affine(one), Op::Affine(other)) => {
                let (one, other) = (one.action(self.first.shape(operand)), other.action(self.second.shape(operand)));
                self.difference_of_map(made, one, other)
            }
            _ => None,
        };
        let (lower, upper) = found.ok_or_else(wrong)?.into_iter().map(|at| (at.lower, at.upper)).unzip();
        Ok(Range { lower, upper })
    }

    /// The difference of an element of an operand, if it stands for the one that it should stand for.
    fn same(&self, (mine, theirs): (usize, usize), operand: usize) -> Option<Interval<N>> {
        let value = self.one.operands()[operand];
        (self.values.of[value].source(mine) == theirs).then(|| self.differences[value].at(mine))
    }

    /// How much what an affine map makes differs.
    fn difference_of_map(&self, made: &StandIn, one: Action<'_>, other: Action<'_>) -> Option<Vec<Interval<N>>> {
        let (elements, operand) = (0..self.other.shape().elements(), self.one.operands()[0]);
        let range = self.facts.range(operand);
        match (one, other) {
            (Action::Move(one), Action::Move(other)) => {
                let of = |element| self.same((other.source(element), one.source(made.source(element))), 0);
                elements.map(of).collect()
            }
            (Action::Each(one, mine), Action::Each(other, theirs)) if one == other => {
                let of = |element: usize| {
                    let source = made.source(element);
                    let by = self.same((element, source), 0)?;
                    Some(of_each(one, [mine[source], theirs[element]], &range.at(source), &by))
                };
                elements.map(of).collect()
            }
            (Action::Sums(one), Action::Sums(other)) => {
                let (stands_for, given) = (&self.values.of[operand], &self.differences[operand]);
                let sums = SumPair { one, other, stands_for, given, range };
                let of = |element| sums.difference(element, made.source(element));
                Some(elements.into_par_iter().with_min_len(64).map(of).collect())
            }
            _ => None,
        }
    }
}

/// The sum of two numbers that lie in intervals.
fn sum_of<N: Number>(a: &Interval<N>, b: &Interval<N>) -> Interval<N> {
    let sum = |a: &N, b: &N| if b.is_zero() { a.clone() } else { a.plus(b).up() };
    Interval { lower: sum(&a.lower.negative(), &b.lower.negative()).negative(), upper: sum(&a.upper, &b.upper) }
}

/// How much what an activation makes differs, for a pre-activation in a range and another that differs by so much.
fn of_activation<N: Number>(of: &Activation, range: &Interval<N>, by: &Interval<N>) -> Interval<N> {
    if by.lower.is_zero() && by.upper.is_zero() {
        return by.clone();
    }
    let other = sum_of(range, by);
    let [first, last] = touched(of, &range.lower.smaller(&other.lower), &range.upper.larger(&other.upper));
    let slopes = of.pieces()[first..=last].iter().map(|piece| piece.slope);
    let times = |slope: f64, number: &N| match slope {
        0.0 => N::default(),
        1.0 => number.clone(),
        _ if number.is_zero() => N::default(),
        _ => number.times(&N::of(slope)).up(),
    };
    // Of what is linear in both, the largest is at corners.
    let corners = |sign: f64| {
        let ends = [&by.lower, &by.upper].map(|end| if sign < 0.0 { end.negative() } else { end.clone() });
        let all = slopes.clone().flat_map(move |slope| ends.clone().map(|end| times(slope, &end)));
        all.reduce(|a, b| a.larger(&b)).unwrap_or_default()
    };
    let (above, below) = (corners(1.0), corners(-1.0));
    // Nor is it more than what lies between where both are.
    let [mine, theirs] = [&other, range].map(|at| image(of, at));
    let far = |a: &N, b: &N| if b.is_zero() { a.clone() } else { a.minus(b).up() };
    Interval {
        lower: below.smaller(&far(&theirs.upper, &mine.lower)).negative(),
        upper: above.smaller(&far(&mine.upper, &theirs.lower)),
    }
}

/// How much a number plus, times or over a constant differs, for a number in a range, and another one that differs by
/// so much, with another constant.
fn of_each<N: Number>(
    arithmetic: Arithmetic,
    [old, new]: [f64; 2],
    range: &Interval<N>,
    by: &Interval<N>,
) -> Interval<N> {
    let (mut above, mut below) = (Upper::default(), Upper::default());
    let mut add = |factor: f64, at: &Interval<N>| {
        let (most, least) = if factor > 0.0 { (&at.upper, &at.lower) } else { (&at.lower, &at.upper) };
        above.add_product(&N::of(factor), most);
        below.add_product(&N::of(-factor), least);
    };
    let (apart, missing) = sum_and_error(new, -old);
    match arithmetic {
        Arithmetic::Add => {
            add(1.0, by);
            add(1.0, &Interval { lower: N::of(apart), upper: N::of(apart) });
            above.add_error(&N::of(missing));
            below.add_error(&N::of(missing));
        }
        Arithmetic::Multiply => {
            add(new, by);
            add(apart, range);
            let size = range.lower.abs().larger(&range.upper.abs());
            above.add_product(&N::of(missing), &size);
            below.add_product(&N::of(missing), &size);
        }
        Arithmetic::Divide if old == new => {
            let over = |end: &N, sign: f64| match end.is_zero() {
                true => N::default(),
                false => end.over(&N::of(sign * new)).up(),
            };
            let larger = |sign: f64| over(&by.lower, sign).larger(&over(&by.upper, sign));
            return Interval { lower: larger(-1.0).negative(), upper: larger(1.0) };
        }
        // Nobody writes that.
        Arithmetic::Divide => return Interval { lower: N::of(f64::INFINITY).negative(), upper: N::of(f64::INFINITY) },
    }
    Interval { lower: below.bound().limit.negative(), upper: above.bound().limit }
}

/// Sums of a value, and the same sums of one that stands for it.
struct SumPair<'a, N> {
    one: Sums<'a>,
    other: Sums<'a>,
    stands_for: &'a StandIn,
    /// How much what stands for the operand differs from it.
    given: &'a Range<N>,
    /// Where the operand lies.
    range: &'a Range<N>,
}

impl<N: Number> SumPair<'_, N> {
    /// How much one sum differs from the one that it stands for.
    fn difference(&self, element: usize, source: usize) -> Interval<N> {
        let mut sum = DifferenceOfSums::default();
        let mut theirs =
            self.other.terms(element).map(|(input, weight)| (self.stands_for.source(input), input, weight)).peekable();
        for (input, weight) in self.one.terms(source) {
            // Terms that the first network does not have there are about elements that it reads with weight 0.
            while let Some((at, mine, new)) = theirs.next_if(|(at, ..)| *at < input) {
                sum.add_term(self, (at, mine), 0.0, new);
            }
            match theirs.next_if(|(at, ..)| *at == input) {
                Some((at, mine, new)) => sum.add_term(self, (at, mine), weight, new),
                None => sum.add(-weight, &self.range.lower[input], &self.range.upper[input]),
            }
        }
        theirs.for_each(|(at, mine, new)| sum.add_term(self, (at, mine), 0.0, new));
        let (apart, missing) = sum_and_error(self.other.bias(element), -self.one.bias(source));
        sum.add(1.0, &N::of(apart), &N::of(apart));
        sum.add_error(&N::of(missing));
        Interval {
            lower: sum.below.bound().limit.negative().shortened_down(),
            upper: sum.above.bound().limit.shortened_up(),
        }
    }
}

/// Bounds of the difference of two sums, in the making.
struct DifferenceOfSums<N> {
    above: Upper<N>,
    below: Upper<N>,
}

impl<N: Number> Default for DifferenceOfSums<N> {
    fn default() -> Self {
        Self { above: Upper::default(), below: Upper::default() }
    }
}

impl<N: Number> DifferenceOfSums<N> {
    /// Adds a number between two others, times a factor.
    fn add(&mut self, factor: f64, lower: &N, upper: &N) {
        if factor != 0.0 {
            let (most, least) = if factor > 0.0 { (upper, lower) } else { (lower, upper) };
            self.above.add_product(&N::of(factor), most);
            self.below.add_product(&N::of(-factor), least);
        }
    }

    fn add_error(&mut self, error: &N) {
        self.above.add_error(error);
        self.below.add_error(error);
    }

    /// Adds what a term differs by: an element of the operand, and the one that stands for it, by an old and a new
    /// weight.
    fn add_term(&mut self, pair: &SumPair<'_, N>, (source, element): (usize, usize), old: f64, new: f64) {
        self.add(new, &pair.given.lower[element], &pair.given.upper[element]);
        if old != new {
            let (apart, missing) = sum_and_error(new, -old);
            self.add(apart, &pair.range.lower[source], &pair.range.upper[source]);
            if missing != 0.0 {
                self.above.add_product(&N::of(missing), &pair.range.magnitude(source));
                self.below.add_product(&N::of(missing), &pair.range.magnitude(source));
            }
        }
    }
}
