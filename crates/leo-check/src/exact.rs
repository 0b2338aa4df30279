//! Linear bounds, and signs at points, without any rounding, for the few that rounding leaves in doubt.
//!
//! Every double is a whole number times a power of two, and so are sums and products of such numbers. The substitution is the same
//! as in [`crate::backward`]; here nothing is rounded until the end, and then upward.

use std::cmp::Ordering;

use leo_network::op::{Arithmetic, Op};
use leo_network::{Network, ValueId};
use num_bigint::{BigInt, Sign};

use crate::backward::{Setting, Target};

/// `mantissa * 2^exponent`.
#[derive(Clone, Debug, Default)]
struct Dyadic {
    mantissa: BigInt,
    exponent: i64,
}

impl Dyadic {
    /// A finite double.
    fn new(number: f64) -> Self {
        let bits = number.to_bits();
        let (biased, fraction) = ((bits >> 52 & 0x7ff) as i64, bits & ((1 << 52) - 1));
        let (mantissa, exponent) = if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
        if mantissa == 0 {
            return Self::default();
        }
        let shift = mantissa.trailing_zeros();
        let mantissa = BigInt::from(mantissa >> shift);
        Self { mantissa: if number < 0.0 { -mantissa } else { mantissa }, exponent: exponent + i64::from(shift) }
    }

    fn is_zero(&self) -> bool {
        self.mantissa.sign() == Sign::NoSign
    }

    fn is_positive(&self) -> bool {
        self.mantissa.sign() == Sign::Plus
    }

    fn add(&mut self, other: &Self) {
        if other.is_zero() {
            return;
        }
        if self.is_zero() {
            *self = other.clone();
            return;
        }
        let exponent = self.exponent.min(other.exponent);
        let shifted = |number: &Self| &number.mantissa << (number.exponent - exponent) as usize;
        *self = Self { mantissa: shifted(self) + shifted(other), exponent };
    }

    fn times(&self, other: &Self) -> Self {
        Self { mantissa: &self.mantissa * &other.mantissa, exponent: self.exponent + other.exponent }
    }

    fn minus(&self, other: &Self) -> Self {
        let mut difference = Self { mantissa: -&other.mantissa, exponent: other.exponent };
        difference.add(self);
        difference
    }

    fn max(self, other: Self) -> Self {
        if self.minus(&other).is_positive() { self } else { other }
    }

    /// A double that is no less: 0 for 0, and never 0 for anything above.
    fn rounded_up(&self) -> f64 {
        // What cancelled keeps the exponent of its terms, which means nothing.
        if self.is_zero() {
            return 0.0;
        }
        // 52 bits of mantissa, rounded toward negative infinity by the shift, and then one more.
        let excess = self.mantissa.bits() as i64 - 52;
        let (mantissa, exponent) = if excess > 0 {
            ((&self.mantissa >> excess as usize) + 1, self.exponent + excess)
        } else {
            (self.mantissa.clone(), self.exponent)
        };
        let digits = i64::try_from(&mantissa).unwrap_or(i64::MAX) as f64;
        match exponent {
            // Far beyond what matters: 2^-1000 and 2^900, with digits up to 2^52.
            ..-1000 => {
                if digits > 0.0 {
                    1e-270
                } else {
                    0.0
                }
            }
            901.. => {
                if digits > 0.0 {
                    f64::INFINITY
                } else {
                    -1e270
                }
            }
            _ => digits * f64::from_bits(((exponent + 1023) as u64) << 52),
        }
    }
}

/// Whether elements of a value are above, below or at 0 at a point, without any rounding. `None` after a division, whose results are not
/// doubles.
pub(crate) fn signs(network: &Network, value: ValueId, elements: &[usize], point: &[f64]) -> Vec<Option<Ordering>> {
    if elements.is_empty() {
        return Vec::new();
    }
    let mut values: Vec<Vec<Dyadic>> = vec![point.iter().map(|&x| Dyadic::new(x)).collect()];
    for made in &network.nodes()[..value.index()] {
        let x = &values[made.operands()[0].index()];
        let result = match made.op() {
            Op::Relu(_) => x.iter().map(|x| if x.is_positive() { x.clone() } else { Dyadic::default() }).collect(),
            Op::Dense(dense) => {
                let (weight, outer) = (dense.weight(), dense.weight().rows());
                let output = |index: usize| {
                    let x = &x[index / outer * weight.columns()..];
                    let bias = dense.bias().map_or(0.0, |bias| bias[index % outer]);
                    let mut sum = Dyadic::new(bias);
                    for (&w, x) in weight.row(index % outer).iter().zip(x).filter(|(_, x)| !x.is_zero()) {
                        sum.add(&x.times(&Dyadic::new(w)));
                    }
                    sum
                };
                (0..made.shape().elements()).map(output).collect()
            }
            Op::Elementwise(elementwise) => {
                let constants = elementwise.constant().expand(made.shape());
                let pairs = x.iter().zip(constants.into_iter().map(Dyadic::new));
                match elementwise.arithmetic() {
                    Arithmetic::Add => pairs.map(|(x, k)| sum(x, &k)).collect(),
                    Arithmetic::Multiply => pairs.map(|(x, k)| x.times(&k)).collect(),
                    Arithmetic::Divide => return vec![None; elements.len()],
                }
            }
            Op::Reshape(_) => x.clone(),
            Op::Transpose(transpose) => {
                let sources = transpose.sources(network.shape(made.operands()[0]).extents());
                sources.into_iter().map(|source| x[source].clone()).collect()
            }
            Op::Sum(_) => x.iter().zip(&values[made.operands()[1].index()]).map(|(x, y)| sum(x, y)).collect(),
        };
        values.push(result);
    }
    let sign = |&element: &usize| match &values[value.index()][element] {
        number if number.is_zero() => Some(Ordering::Equal),
        number if number.is_positive() => Some(Ordering::Greater),
        _ => Some(Ordering::Less),
    };
    elements.iter().map(sign).collect()
}

fn sum(x: &Dyadic, y: &Dyadic) -> Dyadic {
    let mut sum = x.clone();
    sum.add(y);
    sum
}

/// An upper bound of the target, or of its negative if it is a lower bound that is asked for: what [`crate::backward`] computes, exactly.
/// `None` where numbers are not doubles: after a division, or for infinite ranges.
///
/// Chosen slopes are those of `row`.
pub(crate) fn bound(setting: Setting<'_>, target: Target, row: usize) -> Option<f64> {
    let Setting { network, layer, ranges, slopes, cuts } = setting;
    let start = network.pre_activation(layer);
    let mut coefficients: Vec<Option<Vec<Dyadic>>> = vec![None; start.index() + 1];
    let mut constant = Dyadic::default();
    let mut first = vec![Dyadic::default(); network.shape(start).elements()];
    first[target.element] = Dyadic::new(target.side.sign());
    coefficients[start.index()] = Some(first);
    for node in (0..start.index()).rev() {
        let Some(mut given) = coefficients[node + 1].take() else { continue };
        let made = &network.nodes()[node];
        let operand = made.operands()[0];
        let result = match made.op() {
            Op::Relu(_) => {
                let range = &ranges[network.pre_activation(node).index()];
                let slopes = slopes.of(node, row);
                for (unit, c) in given.iter_mut().enumerate() {
                    let (l, u) = (range.lower[unit], range.upper[unit]);
                    if l >= 0.0 || c.is_zero() {
                        continue;
                    }
                    if u <= 0.0 {
                        *c = Dyadic::default();
                    } else if !(l.is_finite() && u.is_finite()) {
                        return None;
                    } else if c.is_positive() {
                        let part = c.times(&Dyadic::new((u / (u - l)).clamp(0.0, 1.0)));
                        let left = part.times(&Dyadic::new(-l));
                        let right = c.minus(&part).times(&Dyadic::new(u));
                        constant.add(&left.max(right));
                        *c = part;
                    } else {
                        let chosen =
                            slopes.and_then(|slopes| slopes.get(unit).copied()).filter(|slope| !slope.is_nan());
                        let slope = chosen.unwrap_or(if u > -l { 1.0 } else { 0.0 });
                        *c = c.times(&Dyadic::new(slope.clamp(0.0, 1.0)));
                    }
                }
                for cut in cuts.iter().filter(|cut| cut.layer == node) {
                    given[cut.unit].add(&Dyadic::new(cut.addend()));
                }
                given
            }
            Op::Dense(dense) => {
                let (outer, inner) = (dense.weight().rows(), dense.weight().columns());
                let mut product = vec![Dyadic::default(); given.len() / outer * inner];
                for (given, product) in given.chunks_exact(outer).zip(product.chunks_exact_mut(inner)) {
                    for (output, c) in given.iter().enumerate().filter(|(_, c)| !c.is_zero()) {
                        for (sum, &weight) in product.iter_mut().zip(dense.weight().row(output)) {
                            sum.add(&c.times(&Dyadic::new(weight)));
                        }
                        if let Some(bias) = dense.bias() {
                            constant.add(&c.times(&Dyadic::new(bias[output])));
                        }
                    }
                }
                product
            }
            Op::Elementwise(elementwise) => {
                for (c, k) in given.iter_mut().zip(elementwise.constant().expand(made.shape())) {
                    let scaled = c.times(&Dyadic::new(k));
                    match elementwise.arithmetic() {
                        Arithmetic::Add => constant.add(&scaled),
                        Arithmetic::Multiply => *c = scaled,
                        Arithmetic::Divide => return None,
                    }
                }
                given
            }
            Op::Reshape(_) => given,
            Op::Transpose(transpose) => {
                let mut moved = vec![Dyadic::default(); given.len()];
                for (c, source) in given.into_iter().zip(transpose.sources(network.shape(operand).extents())) {
                    moved[source] = c;
                }
                moved
            }
            Op::Sum(_) => {
                give(&mut coefficients, made.operands()[1], given.clone());
                given
            }
        };
        give(&mut coefficients, operand, result);
    }
    let input = &ranges[ValueId::INPUT.index()];
    for (element, c) in coefficients[ValueId::INPUT.index()].iter().flatten().enumerate() {
        let end = if c.is_positive() { input.upper[element] } else { input.lower[element] };
        constant.add(&c.times(&Dyadic::new(end)));
    }
    Some(constant.rounded_up())
}

fn give(coefficients: &mut [Option<Vec<Dyadic>>], value: ValueId, given: Vec<Dyadic>) {
    match &mut coefficients[value.index()] {
        Some(present) => present.iter_mut().zip(&given).for_each(|(present, given)| present.add(given)),
        empty => *empty = Some(given),
    }
}
