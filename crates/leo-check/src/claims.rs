//! One unit as what it is said to be: an expression, and between what that lies which the expression misses.
//!
//! - A unit of the first network is said to be an affine function of its pre-activation `g`, or a multiple of another
//!   unit. How far `f(g)` can be from that follows from the range of `g`: nothing if a ReLU that is said to be 0 is
//!   proved to be off, or one that is said to be its pre-activation is proved to be on.
//! - A unit of the second network is said to be a multiple of a unit of the first. Or it is said to be an affine
//!   function of its pre-activation: how far it can be from that follows from the bounds of its expression.
//!
//! # Two units that are nearly the same
//!
//! Let `g'` and `g` be two pre-activations, and `e = g' - g`. Then `f(g') - f(g) = λ e` with `λ` between the least and
//! the greatest slope of the pieces that they touch: for a ReLU from 0 to 1. So the second unit is the first plus `e /
//! 2`, which is an expression like any other and passes on through affine maps, where it may cancel with others, plus a
//! symbol of size `|e| / 2`. Where both units are always on it is the first plus all of `e`, and where both are always
//! off it is the first: what the symbol can be is then nothing. [`near`] takes what leaves least.
//!
//! NeuroDiff (Paulsen et al. 2020) and VeryDiff (Teuber et al. 2025) bound `f(g') - f(g)` by lines in `e` for the same
//! reason: that difference is what is small.

use leo_network::{Activation, LayerId, UnitId, product_and_error, sum_and_error};

use crate::activation::{beyond, touched};
use crate::basis::Basis;
use crate::correspondence::Expression;
use crate::forms::{AffineForms, Gap, Multiple, UnitForm};
use crate::number::Number;
use crate::range::{Interval, Range};

/// A layer of the first network, and what is said of its units.
pub(crate) struct Units<'a, N> {
    pub(crate) layer: LayerId,
    pub(crate) of: &'a Activation,
    pub(crate) claims: &'a [Expression],
    /// The pre-activations.
    pub(crate) given: &'a AffineForms<N>,
    /// The units themselves, as elements of the basis.
    pub(crate) own: &'a AffineForms<N>,
    /// Proved ranges of the pre-activations.
    pub(crate) range: &'a Range<N>,
}

impl<'a, N: Number> Units<'a, N> {
    /// What a unit gives, in terms of the basis, if that is a claim that can be made.
    pub(crate) fn claimed(&self, unit: usize, basis: &Basis<N>) -> Option<UnitForm<'a, N>> {
        let linear = |row: usize, factor: f64| Multiple { forms: self.given, row, factor };
        let element = |row: usize, factor: f64| Multiple { forms: self.own, row, factor };
        let bounds = |unit: usize| within(self.range, self.given, unit, basis);
        match self.claims[unit] {
            Expression::Itself => Some(UnitForm::exactly(vec![element(unit, 1.0)])),
            Expression::Affine { slope, constant } => affine(self.of, linear(unit, slope), constant, bounds(unit)),
            Expression::Multiple { of: UnitId { layer, unit: of }, factor } => {
                let is_in_basis = layer == self.layer && *self.claims.get(of)? == Expression::Itself;
                if !is_in_basis || factor == 0.0 || !factor.is_finite() || !self.of.is_homogeneous() {
                    return None;
                }
                let pair = PreActivationPair {
                    of: self.of,
                    mine: linear(unit, 1.0),
                    theirs: linear(of, factor),
                    bounds: [bounds(unit), scaled(&bounds(of), factor)],
                };
                let (gap, rest) = pair.gap(basis);
                let mut terms = vec![element(of, factor.abs())];
                if factor < 0.0 {
                    let slopes = self.of.pieces().iter().map(|piece| piece.slope);
                    let (slopes, missing) = slopes.fold((0.0, 0.0), |(sum, lost), slope| {
                        let (sum, missing) = sum_and_error(sum, slope);
                        (sum, lost + missing)
                    });
                    let (product, rounding) = product_and_error(factor, slopes);
                    // Nothing is rounded here for a ReLU, and elsewhere nothing may be.
                    terms.push((missing == 0.0 && rounding == 0.0).then(|| linear(of, product))?);
                }
                Some(UnitForm { gap, rest, ..UnitForm::exactly(terms) })
            }
        }
    }
}

/// A multiple of a unit's pre-activation, which has these bounds, and a constant, in place of the unit.
pub(crate) fn affine<'f, N: Number>(
    of: &Activation,
    linear: Multiple<'f, N>,
    constant: f64,
    bounds: Interval<N>,
) -> Option<UnitForm<'f, N>> {
    (linear.factor.is_finite() && constant.is_finite()).then(|| {
        let rest = beyond(of, &bounds, linear.factor, constant);
        let terms = if linear.factor == 0.0 { Vec::new() } else { vec![linear] };
        UnitForm { constant, rest, ..UnitForm::exactly(terms) }
    })
}

/// Where a pre-activation can lie: two bounds are known on each side, by its range and by its expression.
pub(crate) fn within<N: Number>(
    range: &Range<N>,
    forms: &AffineForms<N>,
    unit: usize,
    basis: &Basis<N>,
) -> Interval<N> {
    let Interval { lower, upper } = forms.bounds(unit, basis);
    Interval { lower: range.lower[unit].larger(&lower), upper: range.upper[unit].smaller(&upper) }
}

/// Two pre-activations that are said to be the same.
pub(crate) struct PreActivationPair<'a, 'n, N> {
    pub(crate) of: &'n Activation,
    pub(crate) mine: Multiple<'a, N>,
    pub(crate) theirs: Multiple<'a, N>,
    /// Where each of them lies.
    pub(crate) bounds: [Interval<N>; 2],
}

impl<'a, N: Number> PreActivationPair<'a, '_, N> {
    /// How far the unit of the first is from that of the second: a part of the difference of the pre-activations, and
    /// between what the rest lies.
    pub(crate) fn gap(&self, basis: &Basis<N>) -> (Option<Gap<'a, N>>, Interval<N>) {
        let error = self.mine.forms.difference(self.mine.row, self.theirs, basis);
        let (part, rest) = near(self.of, &error, &self.bounds[0], &self.bounds[1]);
        let gap = Gap { of: self.mine, from: self.theirs, part };
        ((part != 0.0).then_some(gap), rest)
    }
}

/// For two numbers that lie between bounds, and whose difference `e` does: a part of `e`, and between what the
/// difference of what an activation makes of them lies without that part. Of the slopes of the pieces that they touch
/// and the one in the middle, the one that leaves least.
fn near<N: Number>(
    of: &Activation,
    error: &Interval<N>,
    mine: &Interval<N>,
    theirs: &Interval<N>,
) -> (f64, Interval<N>) {
    let (most, least) = (error.upper.positive_part(), error.lower.negative().positive_part());
    if most.is_zero() && least.is_zero() {
        // Where nothing differs, there is nothing to take a part of.
        return (0.0, Interval { lower: N::default(), upper: N::default() });
    }
    let [first, last] = touched(of, &mine.lower.smaller(&theirs.lower), &mine.upper.larger(&theirs.upper));
    let slopes: Vec<f64> = of.pieces()[first..=last].iter().map(|piece| piece.slope).collect();
    let steepest = slopes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let flattest = slopes.iter().copied().fold(f64::INFINITY, f64::min);
    let middle = flattest / 2.0 + steepest / 2.0;
    // Without a part of `e`, what is left is a multiple of it: by the steepest slope less the part at the most, and by
    // the flattest at the least.
    let left = |part: f64| {
        let [more, fewer] = [(steepest, part), (part, flattest)].map(|(a, b)| less(a, b));
        let largest = |one: &N, other: &N| times(more, one).larger(&times(fewer, other));
        Interval { lower: largest(&least, &most).negative(), upper: largest(&most, &least) }
    };
    let width = |of: &Interval<N>| of.upper.minus(&of.lower);
    let mut best = (middle, left(middle));
    for part in slopes {
        // It is no more than what each of the two numbers alone can be off by, either.
        let [mine, theirs] = [mine, theirs].map(|at| beyond(of, at, part, 0.0));
        let Interval { lower, upper } = left(part);
        let far = |a: &N, b: &N| if b.is_zero() { a.clone() } else { a.minus(b).up() };
        let lower = far(&theirs.upper, &mine.lower).smaller(&lower.negative()).negative();
        let other = Interval { lower, upper: far(&mine.upper, &theirs.lower).smaller(&upper) };
        // Where one is as good as another, which is common, rounding must not decide.
        if width(&other) < width(&best.1).times(&N::of(TIE_FACTOR)) {
            best = (part, other);
        }
    }
    best
}

/// An interval is taken for narrower than another if its width is less than this part of the other's.
const TIE_FACTOR: f64 = 1.0 - 1.0 / (1 << 20) as f64;

/// How much a number is more than another, rounded up.
fn less(a: f64, b: f64) -> f64 {
    let (difference, missing) = sum_and_error(a, -b);
    if missing == 0.0 { difference } else { difference.next_up() }
}

/// A number that is not negative times a factor that is not, rounded up.
fn times<N: Number>(factor: f64, number: &N) -> N {
    match factor {
        0.0 => N::default(),
        1.0 => number.clone(),
        _ if number.is_zero() => N::default(),
        _ => number.times(&N::of(factor)).up(),
    }
}

/// Bounds of a number times a factor.
pub(crate) fn scaled<N: Number>(bounds: &Interval<N>, factor: f64) -> Interval<N> {
    if factor == 1.0 {
        return bounds.clone();
    }
    let (lower, upper) = (&bounds.lower, &bounds.upper);
    let (least, most) = if factor > 0.0 { (lower, upper) } else { (upper, lower) };
    let times = |bound: &N, factor: f64| match bound.is_zero() {
        true => N::default(),
        false => bound.times(&N::of(factor)).up(),
    };
    Interval { lower: times(least, -factor).negative(), upper: times(most, factor) }
}
