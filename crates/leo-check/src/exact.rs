//! Numbers that are never rounded.
//!
//! Every double is a whole number times a power of two, and so are sums and products of such numbers. What a division
//! leaves is a whole number below. Numbers that get too long are *lost*: nothing is known of them any more, and nothing
//! that depends on them is proved.

use std::cmp::Ordering;
use std::sync::Arc;

use leo_network::Scalar;
use num_bigint::{BigInt, Sign};
use rayon::prelude::*;

use crate::number::Number;

/// How many bits a number may have. Those of honest networks have a few hundred; a file could make them grow without
/// end.
const MAX_BITS: u64 = 1 << 15;

/// A number, unless it is lost.
#[derive(Clone, Debug)]
pub struct Exact(Option<Fraction>);

/// `mantissa * 2^exponent / divisor`.
#[derive(Clone, Debug, Default)]
struct Fraction {
    mantissa: BigInt,
    exponent: i64,
    /// More than 0; nothing stands for 1.
    divisor: Option<Arc<BigInt>>,
}

/// A finite double as a whole number times a power of two.
fn parts(number: f64) -> (i64, i64) {
    let bits = number.to_bits();
    let (biased, fraction) = ((bits >> 52 & 0x7ff) as i64, (bits & ((1 << 52) - 1)) as i64);
    let (mantissa, exponent) = if biased == 0 { (fraction, -1074) } else { (fraction | 1 << 52, biased - 1075) };
    if mantissa == 0 {
        return (0, 0);
    }
    let shift = mantissa.trailing_zeros();
    let mantissa = mantissa >> shift;
    (if number < 0.0 { -mantissa } else { mantissa }, exponent + i64::from(shift))
}

impl Fraction {
    fn is_zero(&self) -> bool {
        self.mantissa.sign() == Sign::NoSign
    }

    fn is_short(&self) -> bool {
        let divisor = self.divisor.as_deref().map_or(0, BigInt::bits);
        self.mantissa.bits().max(divisor).max(self.exponent.unsigned_abs()) <= MAX_BITS || self.is_zero()
    }

    /// The number, unless it is too long.
    fn kept(self) -> Exact {
        Exact(self.is_short().then_some(self))
    }

    /// Adds another number.
    fn add(&mut self, mut other: Self) {
        if self.is_zero() || other.is_zero() {
            if self.is_zero() {
                *self = other;
            }
            return;
        }
        if self.divisor != other.divisor {
            let [mine, theirs] = [&self.divisor, &other.divisor].map(|divisor| divisor.as_deref().cloned());
            let [mine, theirs] = [mine, theirs].map(|divisor| divisor.unwrap_or_else(|| BigInt::from(1)));
            let common = greatest_common_divisor(mine.clone(), theirs.clone());
            self.mantissa *= &theirs / &common;
            other.mantissa *= &mine / &common;
            self.divisor = Some(Arc::new(mine / common * theirs));
        }
        // Exponents are limited, and so is the shift.
        match self.exponent.cmp(&other.exponent) {
            Ordering::Less => other.mantissa <<= (other.exponent - self.exponent) as usize,
            Ordering::Equal => {}
            Ordering::Greater => {
                self.mantissa <<= (self.exponent - other.exponent) as usize;
                self.exponent = other.exponent;
            }
        }
        self.mantissa += other.mantissa;
    }

    fn times(&self, other: &Self) -> Exact {
        let divisor = match (&self.divisor, &other.divisor) {
            (Some(mine), Some(theirs)) => Some(Arc::new(&**mine * &**theirs)),
            (mine, theirs) => mine.clone().or_else(|| theirs.clone()),
        };
        let (mantissa, exponent) = (&self.mantissa * &other.mantissa, self.exponent + other.exponent);
        Self { mantissa, exponent, divisor }.kept()
    }

    /// A double that is no less.
    fn rounded_up(&self) -> f64 {
        if self.is_zero() {
            return 0.0;
        }
        // A quotient rounded toward 0, then 52 bits rounded toward negative infinity, and one more after each.
        let (mut mantissa, mut exponent) = (self.mantissa.clone(), self.exponent);
        if let Some(divisor) = self.divisor.as_deref() {
            let room = divisor.bits() + 64;
            mantissa = (mantissa << room) / divisor + 1;
            exponent -= room as i64;
        }
        let excess = mantissa.bits() as i64 - 52;
        if excess > 0 {
            mantissa = (mantissa >> excess as usize) + 1;
            exponent += excess;
        }
        let digits = i64::try_from(&mantissa).unwrap_or(i64::MAX) as f64;
        match exponent {
            // Far beyond what matters: 2^-1000 and 2^900, with digits up to 2^52.
            ..-1000 if digits > 0.0 => 1e-270,
            ..-1000 => 0.0,
            901.. if digits > 0.0 => f64::INFINITY,
            901.. => -1e270,
            _ => digits * f64::from_bits(((exponent + 1023) as u64) << 52),
        }
    }
}

fn greatest_common_divisor(mut a: BigInt, mut b: BigInt) -> BigInt {
    while b.sign() != Sign::NoSign {
        (a, b) = (b.clone(), a % b);
    }
    a
}

impl Exact {
    fn sign(&self) -> Option<Sign> {
        self.0.as_ref().map(|number| number.mantissa.sign())
    }

    /// Adds a multiple of another number.
    fn add_multiple(&mut self, other: &Self, factor: f64) {
        let (mantissa, exponent) = parts(factor);
        if mantissa == 0 || other.is_zero() {
            return;
        }
        let multiple = other.0.as_ref().and_then(|other| {
            let exponent = other.exponent + exponent;
            Fraction { mantissa: &other.mantissa * mantissa, exponent, divisor: other.divisor.clone() }.kept().0
        });
        self.take(multiple);
    }

    /// Adds a number that is not needed any more.
    fn take(&mut self, other: Option<Fraction>) {
        let (Some(mine), Some(other)) = (&mut self.0, other) else {
            self.0 = None;
            return;
        };
        mine.add(other);
        if !mine.is_short() {
            self.0 = None;
        }
    }
}

impl Default for Exact {
    fn default() -> Self {
        Self(Some(Fraction::default()))
    }
}

impl PartialEq for Exact {
    fn eq(&self, other: &Self) -> bool {
        self.partial_cmp(other) == Some(Ordering::Equal)
    }
}

impl PartialOrd for Exact {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let sign = match (self.sign()?, other.sign()?) {
            (mine, Sign::NoSign) => mine,
            (Sign::NoSign, theirs) => -theirs,
            _ => self.minus(other).sign()?,
        };
        Some(sign.cmp(&Sign::NoSign))
    }
}

impl Number for Exact {
    const ROUNDS: bool = false;

    fn of(number: f64) -> Self {
        let (mantissa, exponent) = parts(number);
        Self(number.is_finite().then(|| Fraction { mantissa: mantissa.into(), exponent, divisor: None }))
    }

    fn add(&mut self, other: &Self) {
        if !other.is_zero() {
            self.take(other.0.clone());
        }
    }

    fn times(&self, other: &Self) -> Self {
        match (&self.0, &other.0) {
            (Some(mine), Some(theirs)) => mine.times(theirs),
            _ => Self(None),
        }
    }

    fn over(&self, other: &Self) -> Self {
        let one = BigInt::from(1);
        let inverse = other.0.as_ref().filter(|other| !other.is_zero()).map(|other| {
            let magnitude = BigInt::from(other.mantissa.magnitude().clone());
            let sign = BigInt::from_biguint(other.mantissa.sign(), 1_u8.into());
            Fraction {
                mantissa: other.divisor.as_deref().unwrap_or(&one) * sign,
                exponent: -other.exponent,
                divisor: (magnitude != one).then(|| Arc::new(magnitude)),
            }
        });
        self.times(&Self(inverse))
    }

    fn negative(&self) -> Self {
        Self(self.0.clone().map(|number| Fraction { mantissa: -number.mantissa, ..number }))
    }

    fn up(self) -> Self {
        self
    }

    fn sum_and_error(&self, other: &Self) -> (Self, Self) {
        (self.plus(other), Self::default())
    }

    fn product_and_error(&self, other: &Self) -> (Self, Self) {
        (self.times(other), Self::default())
    }

    fn quotient_and_error(&self, other: &Self) -> (Self, Self) {
        (self.over(other), Self::default())
    }

    fn is_finite(&self) -> bool {
        self.0.is_some()
    }

    fn share_of(&self, whole: &Self) -> f64 {
        self.over(whole).0.map_or(f64::NAN, |share| share.rounded_up())
    }

    fn rounded_up(&self) -> f64 {
        self.0.as_ref().map_or(f64::INFINITY, Fraction::rounded_up)
    }

    fn words(numbers: &[Self]) -> f64 {
        let bits = |number: &Self| number.0.as_ref().map_or(0, |fraction| fraction.mantissa.bits());
        1.0 + numbers.iter().map(bits).sum::<u64>() as f64 / (64 * numbers.len().max(1)) as f64
    }

    fn shortened_up(&self) -> Self {
        Self::of(self.rounded_up())
    }

    fn exactly(&self) -> Option<Exact> {
        self.is_finite().then(|| self.clone())
    }

    fn is_zero(&self) -> bool {
        self.sign() == Some(Sign::NoSign)
    }

    fn is_positive(&self) -> bool {
        self.sign() == Some(Sign::Plus)
    }
}

impl Scalar for Exact {
    fn add_rows_times_weights(sum: &mut [Self], rows: &[Self], weights: &[f64], outer: usize, inner: usize) {
        sum.par_chunks_mut(inner).zip(rows.par_chunks(outer)).for_each(|(sum, row)| {
            for (number, weights) in row.iter().zip(weights.chunks(inner)).filter(|(number, _)| !number.is_zero()) {
                sum.iter_mut().zip(weights).for_each(|(sum, &weight)| sum.add_multiple(number, weight));
            }
        });
    }

    fn add_weights_times_rows(sum: &mut [Self], weights: &[f64], rows: &[Self], inner: usize, width: usize) {
        sum.par_chunks_mut(width).zip(weights.par_chunks(inner)).for_each(|(sum, weights)| {
            for (&weight, row) in weights.iter().zip(rows.chunks(width)) {
                sum.iter_mut().zip(row).for_each(|(sum, number)| sum.add_multiple(number, weight));
            }
        });
    }

    fn add_products(sum: &mut [Self], numbers: &[Self], weights: &[f64]) {
        sum.iter_mut().zip(numbers).zip(weights).for_each(|((sum, number), &weight)| sum.add_multiple(number, weight));
    }

    fn add_numbers(sum: &mut [Self], numbers: &[Self]) {
        sum.iter_mut().zip(numbers).for_each(|(sum, number)| sum.add(number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_rational::BigRational;
    use proptest::prelude::*;

    fn rational(number: &Exact) -> BigRational {
        let number = number.0.as_ref().expect("a number");
        let power = BigRational::from_integer(2.into()).pow(number.exponent as i32);
        let divisor = number.divisor.as_deref().cloned().unwrap_or_else(|| 1.into());
        BigRational::new(number.mantissa.clone(), divisor) * power
    }

    proptest! {
        #[test]
        fn arithmetic_is_that_of_rational_numbers(numbers in proptest::collection::vec(-1e6..1e6_f64, 6)) {
            let whole = |number: f64| BigRational::from_float(number).expect("finite");
            let numbers = <[f64; 6]>::try_from(numbers).expect("six");
            let [a, b, c, d, e, f] = numbers.map(|x| if x == 0.0 { 1.0 } else { x });
            let mut number = Exact::of(a).over(&Exact::of(b)).plus(&Exact::of(c).times(&Exact::of(d)));
            let mut wanted = whole(a) / whole(b) + whole(c) * whole(d);
            prop_assert_eq!(rational(&number), wanted.clone());
            number.add_multiple(&Exact::of(e).over(&Exact::of(d)), f);
            wanted += whole(e) / whole(d) * whole(f);
            number = number.over(&Exact::of(e).over(&Exact::of(f)));
            wanted /= whole(e) / whole(f);
            prop_assert_eq!(rational(&number), wanted.clone());
            prop_assert_eq!(number.partial_cmp(&Exact::of(a)), wanted.partial_cmp(&whole(a)));
            let above = number.rounded_up();
            prop_assert!(whole(above) >= wanted && above - 1e-12 * above.abs() <= number.negative().rounded_up().abs());
        }
    }

    #[test]
    fn rounding_goes_up() {
        for number in [0.0, 1.0, -1.0, 0.1, -0.1, 1e-300, -1e-300, 1e300, -1e300, f64::MIN_POSITIVE] {
            assert!(Exact::of(number).rounded_up() >= number, "{number}");
            assert_eq!(Exact::of(number).rounded_up() > 0.0, number > 0.0, "{number}");
        }
        for (numerator, divisor) in [(1.0, 3.0), (-1.0, 3.0), (6.0, 3.0), (-6.0, 3.0), (1e-200, 7.0)] {
            let above = Exact::of(numerator).over(&Exact::of(divisor));
            assert!(Exact::of(above.rounded_up()) >= above, "{numerator} / {divisor}");
        }
    }

    #[test]
    fn what_gets_too_long_is_lost_and_stays_so() {
        let mut number = Exact::of(1e300);
        let mut steps = 0;
        while number.is_finite() {
            number = number.times(&Exact::of(1.000_000_1e-300)).plus(&Exact::of(1e300));
            steps += 1;
        }
        assert!((10..1000).contains(&steps), "{steps}");
        for lost in [number.plus(&Exact::of(1.0)), number.times(&Exact::of(2.0)), number.negative(), number.abs()] {
            assert!(!lost.is_finite() && !lost.is_zero() && !lost.is_positive() && lost.rounded_up() == f64::INFINITY);
            assert!(lost.partial_cmp(&Exact::default()).is_none() && lost != lost.clone());
        }
        assert!(!Exact::of(f64::INFINITY).is_finite() && !Exact::of(1.0).over(&Exact::of(0.0)).is_finite());
    }
}
