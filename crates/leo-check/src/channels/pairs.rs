//! How much what a node of the second network makes differs from what the same node of the first one makes.

use leo_network::op::{Action, Arithmetic, Op, Sums};
use leo_network::{Activation, Network, Node, ValueId, ValueMap, sum_and_error};
use rayon::prelude::*;

use super::expressions::Expressed;
use super::form::LinearForm;
use super::{StandIn, StandIns};
use crate::activation::{image, touched};
use crate::checker::ProvedBounds;
use crate::correspondence::Mismatch;
use crate::number::Number;
use crate::range::{Interval, Range};
use crate::sound::Upper;

/// A node of the first network, and the one that does the same in the second.
pub(super) struct NodePair<'a, N> {
    pub(super) first: &'a Network,
    pub(super) second: &'a Network,
    pub(super) one: &'a Node,
    pub(super) other: &'a Node,
    pub(super) facts: &'a ProvedBounds<'a, N>,
    pub(super) values: &'a StandIns,
    /// How much values of the second network differ.
    pub(super) differences: &'a ValueMap<Range<N>>,
    /// What stands for channels of values so far that are gone.
    pub(super) expressed: &'a ValueMap<Expressed<N>>,
}

impl<N: Number> NodePair<'_, N> {
    /// How much what the second node makes differs from what it stands for.
    pub(super) fn difference(&self, value: ValueId) -> Result<Range<N>, Mismatch> {
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
                let expressed = &self.expressed[operand];
                let of = |element: usize| {
                    if expressed.of.is_empty() {
                        return sums.difference(element, made.source(element));
                    }
                    let form = LinearForm::new(self.facts, self.one.operands(), vec![expressed]);
                    sums.difference_by_forms(element, made.source(element), form)
                };
                Some(elements.into_par_iter().with_min_len(64).map(of).collect())
            }
            _ => None,
        }
    }
}

/// The sum of two numbers that lie in intervals.
pub(super) fn sum_of<N: Number>(a: &Interval<N>, b: &Interval<N>) -> Interval<N> {
    let sum = |a: &N, b: &N| if b.is_zero() { a.clone() } else { a.plus(b).up() };
    Interval { lower: sum(&a.lower.negative(), &b.lower.negative()).negative(), upper: sum(&a.upper, &b.upper) }
}

/// How much what an activation makes differs, for a pre-activation in a range and another that differs by so much.
pub(super) fn of_activation<N: Number>(of: &Activation, range: &Interval<N>, by: &Interval<N>) -> Interval<N> {
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

impl<N: Number> SumPair<'_, N> {
    /// The same where channels that are gone are expressed by others.
    fn difference_by_forms(&self, element: usize, source: usize, mut form: LinearForm<'_, N>) -> Interval<N> {
        let nothing = N::default();
        for (input, weight) in self.other.terms(element) {
            form.add_between(&N::of(weight), &self.given.lower[input], &self.given.upper[input]);
            form.add((0, self.stands_for.source(input)), (&N::of(weight), &nothing), 1.0);
        }
        for (input, weight) in self.one.terms(source) {
            form.add((0, input), (&N::of(weight), &nothing), -1.0);
        }
        form.add_constant(1.0, self.other.bias(element));
        form.add_constant(-1.0, self.one.bias(source));
        form.bounds()
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
