//! What proofs ask of an activation: where a unit can be, by where its pre-activation can be, and lines above it.
//!
//! Let `f` be continuous and linear on its pieces, and `g(x) = c f(x) - d x` for whatever `c` and `d`. Between its
//! knots `g` is linear, so on an interval it is largest at one of the ends or at a knot within. All bounds here are
//! that maximum, rounded up: so the image of an interval ([`image`]: `c` is 1 or -1 and `d` is 0), how far a unit can
//! be from a line ([`beyond`]), and the line above a unit with any slope at all ([`line_above`]). For a ReLU no number
//! is rounded where it need not be.
//!
//! For a ReLU, the chord above the unit and the lines below it with slopes from 0 to 1 are the triangle relaxation
//! (Ehlers 2017, arXiv:1705.01320); which slope stands for the lower side where nothing is said
//! ([`default_slope`], the side with the smaller triangle) is the choice of CROWN (Zhang et al. 2018) and DeepPoly
//! (Singh et al. 2019).

use leo_network::Activation;
use leo_network::activation::Piece;
use leo_network::sum_and_error;

use crate::number::Number;
use crate::range::Interval;

/// Which pieces an interval touches: the first, and the last. If they are the same, a unit whose pre-activation lies
/// there is stable.
pub fn touched<N: Number>(of: &Activation, lower: &N, upper: &N) -> [usize; 2] {
    let knots = of.knots();
    let last = knots.len() - knots.iter().filter(|knot| *upper <= N::of(**knot)).count();
    [knots.iter().filter(|knot| *lower >= N::of(**knot)).count().min(last), last]
}

/// The piece on which a unit stays whose pre-activation has these bounds, if it stays on one.
pub fn stable_piece<N: Number>(of: &Activation, lower: &N, upper: &N) -> Option<usize> {
    let [first, last] = touched(of, lower, upper);
    (first == last).then_some(first)
}

/// Where what an activation makes of the numbers of an interval lies, less a multiple of these and a constant.
pub fn beyond<N: Number>(of: &Activation, at: &Interval<N>, slope: f64, constant: f64) -> Interval<N> {
    let [first, last] = touched(of, &at.lower, &at.upper);
    let mut all = value(&of.pieces()[first], &at.lower, slope, constant);
    let mut add = |piece: usize, x: &N| {
        let Interval { lower, upper } = value(&of.pieces()[piece], x, slope, constant);
        (all.lower, all.upper) = (all.lower.smaller(&lower), all.upper.larger(&upper));
    };
    (first..last).for_each(|piece| add(piece, &N::of(of.knots()[piece])));
    add(last, &at.upper);
    all
}

/// Between what the line of a piece lies at a number, less a multiple of this and a constant.
fn value<N: Number>(piece: &Piece, x: &N, slope: f64, constant: f64) -> Interval<N> {
    let (difference, missing) = sum_and_error(piece.slope, -slope);
    if missing == 0.0 && piece.constant == 0.0 && constant == 0.0 && [0.0, 1.0, -1.0].contains(&difference) {
        let exactly = multiple(difference, x);
        return Interval { lower: exactly.clone(), upper: exactly };
    }
    let up = |sum: N| if sum.is_zero() { sum } else { sum.up() };
    let [above, below] = [1.0, -1.0].map(|sign| {
        let linear = match missing == 0.0 {
            true => multiple(sign * difference, x),
            false => up(multiple(sign * piece.slope, x).plus(&multiple(-sign * slope, x))),
        };
        let constants = [piece.constant, -constant].into_iter().filter(|constant| *constant != 0.0);
        constants.fold(linear, |sum, constant| up(sum.plus(&N::of(sign * constant))))
    });
    Interval { lower: N::default().minus(&below), upper: above }
}

/// Where what an activation makes of the numbers of an interval lies.
pub(crate) fn image<N: Number>(of: &Activation, at: &Interval<N>) -> Interval<N> {
    match stable_piece(of, &at.lower, &at.upper).map(|piece| &of.pieces()[piece]) {
        Some(piece) if piece.is_identity() => at.clone(),
        Some(piece) if piece.is_zero() => Interval { lower: N::default(), upper: N::default() },
        _ => beyond(of, at, 0.0, 0.0),
    }
}

/// An upper bound of a multiple.
#[inline]
fn multiple<N: Number>(factor: f64, number: &N) -> N {
    match factor {
        // No negative zero comes of it.
        _ if factor == 0.0 || number.is_zero() => N::default(),
        1.0 => number.clone(),
        -1.0 => number.negative(),
        _ => above(number.times(&N::of(factor))),
    }
}

/// By what part further a range must reach to one side for the line below a unit to follow the unit there: clearly, or
/// rounding would decide where it reaches as far, which is common, and another arithmetic would come to another bound.
const TIE_TOLERANCE: f64 = 1.0 / (1 << 20) as f64;

/// The slope of the line on the side of a unit where it is free, for a pre-activation with these bounds, if nothing
/// else is said: that of the piece into which the range reaches clearly further, or of the first.
pub fn default_slope<N: Number>(of: &Activation, lower: &N, upper: &N) -> f64 {
    let [first, last] = touched(of, lower, upper);
    let knots = &of.knots()[first..last];
    let (Some(&left), Some(&right)) = (knots.first(), knots.last()) else { return of.pieces()[first].slope };
    let (below, above) = (N::of(left).minus(lower), upper.minus(&N::of(right)));
    of.pieces()[if above > below.times(&N::of(1.0 + TIE_TOLERANCE)) { last } else { first }].slope
}

/// The slopes of lines that stand for a unit whose pre-activation lies in an interval.
pub(crate) struct SlopeRange {
    /// The pieces that it touches.
    pub(crate) touched: [usize; 2],
    /// That of the chord.
    chord: f64,
    /// Below the unit and above it: the default, if the slope may be chosen there.
    free: [Option<f64>; 2],
}

impl SlopeRange {
    pub(crate) fn new<N: Number>(of: &Activation, at: &Interval<N>) -> Self {
        let [first, last] = touched(of, &at.lower, &at.upper);
        // At a knot, a unit is on the piece to the right here.
        let right = of.knots().iter().filter(|knot| at.lower >= N::of(**knot)).count();
        let touched = if right > last { [right; 2] } else { [first, last] };
        let default = || default_slope(of, &at.lower, &at.upper);
        let free = [false, true].map(|is_above| of.has_free_slope(is_above, touched).then(default));
        Self { touched, chord: of.within(chord(of, at, touched), touched), free }
    }
}

/// For a coefficient `c` on a unit whose pre-activation `z` lies in an interval, a line above `c f(z)`: the coefficient
/// of `z`, and what is added then. Where slopes only grow, or only shrink, from piece to piece, one side of the unit
/// has the chord and on the other the slope is free: it may be chosen. Whatever it is, the line is above.
pub(crate) fn line_above<N: Number>(
    of: &Activation,
    c: &N,
    at: &Interval<N>,
    slopes: &SlopeRange,
    chosen: Option<f64>,
) -> (N, N) {
    let [first, last] = slopes.touched;
    let slope = match (slopes.free[usize::from(c.is_positive())], chosen.filter(|slope| !slope.is_nan())) {
        (Some(_), Some(chosen)) => of.within(chosen, slopes.touched),
        (Some(default), None) => default,
        (None, _) => slopes.chord,
    };
    if slope.is_nan() {
        return (c.clone(), N::of(f64::INFINITY));
    }
    let d = if slope == 1.0 { c.clone() } else { c.times(&N::of(slope)) };
    // Between knots, what is left is linear, so that it is largest at an end or at a knot.
    let mut constant = excess(c, &d, &of.pieces()[first], &at.lower);
    for piece in first..last {
        constant = constant.larger(&excess(c, &d, &of.pieces()[piece], &N::of(of.knots()[piece])));
    }
    constant = constant.larger(&excess(c, &d, &of.pieces()[last], &at.upper));
    (d, constant)
}

/// About the slope of the line between the ends.
fn chord<N: Number>(of: &Activation, at: &Interval<N>, [first, last]: [usize; 2]) -> f64 {
    let end = |piece: usize, x: &N| {
        let Piece { slope, constant, .. } = of.pieces()[piece];
        let linear = multiple(slope, x);
        if constant == 0.0 { linear } else { linear.plus(&N::of(constant)) }
    };
    end(last, &at.upper).minus(&end(first, &at.lower)).share_of(&at.upper.minus(&at.lower))
}

/// An upper bound of `c f(x) - d x`, where `f` is on this piece.
#[inline]
fn excess<N: Number>(c: &N, d: &N, piece: &Piece, x: &N) -> N {
    let is_negative = *x < N::default();
    let signed = |number: &N| if is_negative { number.negative() } else { number.clone() };
    let product = if x.is_zero() {
        N::default()
    } else {
        let slope = match piece.slope {
            0.0 => signed(d).negative(),
            1.0 if c == d => N::default(),
            1.0 => signed(c).minus(&signed(d)).up(),
            slope => signed(c).times(&N::of(slope)).up().minus(&signed(d)).up(),
        };
        if slope.is_zero() { slope } else { above(slope.times(&signed(x))) }
    };
    match piece.constant {
        0.0 => product,
        constant => product.plus(&c.times(&N::of(constant)).up()).up(),
    }
}

/// An upper bound of what was rounded to this product of numbers that are not 0.
pub(crate) fn above<N: Number>(product: N) -> N {
    if N::ROUNDS && product.is_zero() { N::of(f64::MIN_POSITIVE) } else { product.up() }
}

#[cfg(test)]
mod tests {
    use leo_network::activation::{Onnx, Relu};
    use proptest::prelude::*;

    use super::*;
    use crate::exact::Exact;

    /// A function that goes down, up, and stays, with knots anywhere.
    fn zigzag() -> Activation {
        let piece = |slope, constant| Piece { name: "", slope, constant };
        let pieces = vec![piece(-0.5, 0.5), piece(2.0, -2.0), piece(0.0, 4.0)];
        Activation::new("zigzag", Onnx { operator: "", attributes: vec![] }, vec![1.0, 3.0], pieces)
            .expect("it is whole")
    }

    proptest! {
        #[test]
        fn nothing_leaves_what_is_proved(
            ends in (-5.0..5.0_f64, -5.0..5.0_f64),
            share in 0.0..=1.0_f64,
            c in -3.0..3.0_f64,
            chosen in proptest::option::of(-2.0..2.0_f64),
        ) {
            let at = Interval { lower: ends.0.min(ends.1), upper: ends.0.max(ends.1) };
            let x = (at.lower + share * (at.upper - at.lower)).clamp(at.lower, at.upper);
            for of in [zigzag(), Relu.into()] {
                let y = Exact::of(of.of(x));
                let made = image(&of, &at);
                prop_assert!(made.lower - 1e-14 <= of.of(x) && of.of(x) <= made.upper + 1e-14);
                let (d, constant) = line_above(&of, &c, &at, &SlopeRange::new(&of, &at), chosen);
                let line = Exact::of(d).times(&Exact::of(x)).plus(&Exact::of(constant));
                // What `of` makes is rounded itself.
                prop_assert!(Exact::of(c).times(&y) <= line.plus(&Exact::of(1e-14)), "{c} {x} {d} {constant}");
                let exact = Interval { lower: Exact::of(at.lower), upper: Exact::of(at.upper) };
                let (d, constant) = line_above(&of, &Exact::of(c), &exact, &SlopeRange::new(&of, &exact), chosen);
                prop_assert!(Exact::of(c).times(&y) <= d.times(&Exact::of(x)).plus(&constant).plus(&Exact::of(1e-14)));
            }
        }
    }

    #[test]
    fn a_rectifier_needs_no_rounding() {
        let relu = Activation::from(Relu);
        let at = |lower, upper| Interval { lower, upper };
        assert_eq!(image(&relu, &at(-0.1, 0.3)), at(0.0, 0.3));
        assert_eq!(beyond(&relu, &at(-0.1, 0.3), 1.0, 0.0), at(0.0, 0.1));
        assert_eq!(
            [at(-1.0, 0.0), at(0.0, 0.0), at(0.0, 1.0)].map(|at| stable_piece(&relu, &at.lower, &at.upper)),
            [Some(0), Some(0), Some(1)]
        );
        let around = at(-0.1, 0.3);
        assert_eq!(line_above(&relu, &-0.7, &around, &SlopeRange::new(&relu, &around), Some(0.25)), (-0.7 * 0.25, 0.0));
        assert_eq!([(-1.0, 2.0), (-2.0, 1.0), (-1.0, 1.0)].map(|(l, u)| default_slope(&relu, &l, &u)), [1.0, 0.0, 0.0]);
    }
}
