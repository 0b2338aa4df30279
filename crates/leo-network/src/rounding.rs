//! Sums, products and quotients with what rounding took from them, and rounded away from where they must not go.
//!
//! Bounds of a domain that come from arithmetic are rounded outward: a box may be larger than what was asked for by a
//! hair, never smaller. Where the arithmetic is exact, and it mostly is, nothing is rounded.
//!
//! What rounding took comes from error-free transformations: D. E. Knuth's two-sum (*The Art of Computer Programming*,
//! volume 2), and the two-product by a fused multiply-add (T. Ogita, S. M. Rump, S. Oishi, *Accurate Sum and Dot
//! Product*, SIAM J. Sci. Comput. 26, 2005; without one it is T. J. Dekker's, 1971).

/// Below this, what rounding takes away from a product may itself be too small for a double, and look like nothing.
const UNDERFLOW_LIMIT: f64 = 1e-280;

/// A sum, and how far it is from the exact one (Knuth's two-sum): 0 if it is exact, NaN if it overflowed.
pub fn sum_and_error(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let part = sum - a;
    (sum, ((a - (sum - part)) + (b - part)).abs())
}

/// A product, and how far it is from the exact one at the most: 0 only if it is exact.
pub fn product_and_error(a: f64, b: f64) -> (f64, f64) {
    let product = a * b;
    if a == 0.0 || b == 0.0 || a.abs() == 1.0 || b.abs() == 1.0 {
        return (product, 0.0);
    }
    let underflow = if product.abs() > UNDERFLOW_LIMIT { 0.0 } else { f64::MIN_POSITIVE };
    (product, a.mul_add(b, -product).abs() + underflow)
}

/// A quotient, and how far it is from the exact one at the most: 0 only if it is exact.
pub fn quotient_and_error(a: f64, b: f64) -> (f64, f64) {
    let quotient = a / b;
    if a == 0.0 || b.abs() == 1.0 {
        return (quotient, 0.0);
    }
    let exact = (-quotient).mul_add(b, a) == 0.0 && a.abs() > UNDERFLOW_LIMIT && quotient.abs() > UNDERFLOW_LIMIT;
    (quotient, if exact { 0.0 } else { quotient.abs() * f64::EPSILON + f64::MIN_POSITIVE })
}

/// An interval that holds a number whose exact value a double may not be able to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Enclosure {
    /// No more than the number.
    pub lo: f64,
    /// No less than the number.
    pub hi: f64,
}

impl Enclosure {
    /// Zero, exactly.
    pub const ZERO: Self = Self::exactly(0.0);

    /// A double, exactly.
    pub const fn exactly(value: f64) -> Self {
        Self { lo: value, hi: value }
    }

    /// `value`, or a double beside it if the operation that gave it was not exact.
    fn rounded(value: f64, exact: bool) -> Self {
        if exact { Self::exactly(value) } else { Self { lo: value.next_down(), hi: value.next_up() } }
    }

    fn of_sum(a: f64, b: f64) -> Self {
        let (sum, error) = sum_and_error(a, b);
        Self::rounded(sum, error == 0.0)
    }

    fn of_product(a: f64, b: f64) -> Self {
        let (product, error) = product_and_error(a, b);
        Self::rounded(product, error == 0.0)
    }

    fn of_quotient(a: f64, b: f64) -> Self {
        let (quotient, error) = quotient_and_error(a, b);
        Self::rounded(quotient, error == 0.0)
    }

    /// The sum.
    pub fn plus(self, other: Self) -> Self {
        Self { lo: Self::of_sum(self.lo, other.lo).lo, hi: Self::of_sum(self.hi, other.hi).hi }
    }

    /// The negative.
    pub fn negative(self) -> Self {
        Self { lo: -self.hi, hi: -self.lo }
    }

    /// The product.
    pub fn times(self, other: Self) -> Self {
        Self::around(self, other, Self::of_product)
    }

    /// The quotient; infinite if zero lies among the divisors.
    pub fn over(self, other: Self) -> Self {
        if other.lo <= 0.0 && other.hi >= 0.0 {
            return Self { lo: f64::NEG_INFINITY, hi: f64::INFINITY };
        }
        Self::around(self, other, Self::of_quotient)
    }

    /// What an operation that is monotone in each operand gives at the corners.
    fn around(a: Self, b: Self, operation: fn(f64, f64) -> Self) -> Self {
        let corners = [(a.lo, b.lo), (a.lo, b.hi), (a.hi, b.lo), (a.hi, b.hi)].map(|(a, b)| operation(a, b));
        corners
            .into_iter()
            .fold(corners[0], |all, corner| Self { lo: all.lo.min(corner.lo), hi: all.hi.max(corner.hi) })
    }

    /// Whether it is zero and nothing else.
    pub fn is_zero(self) -> bool {
        self == Self::ZERO
    }

    /// Whether both ends are finite.
    pub fn is_finite(self) -> bool {
        self.lo.is_finite() && self.hi.is_finite()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_arithmetic_is_left_alone() {
        let [half, three] = [0.5, 3.0].map(Enclosure::exactly);
        assert_eq!(half.plus(three), Enclosure::exactly(3.5));
        assert_eq!(half.times(three), Enclosure::exactly(1.5));
        assert_eq!(three.over(half), Enclosure::exactly(6.0));
        assert_eq!(half.negative(), Enclosure::exactly(-0.5));
    }

    #[test]
    fn inexact_arithmetic_goes_outward() {
        let [tenth, three] = [0.1, 3.0].map(Enclosure::exactly);
        let third = three.over(Enclosure::exactly(10.0));
        assert!(third.lo < 0.3 && 0.3 < third.hi, "{third:?}");
        let sum = tenth.plus(Enclosure::exactly(0.2));
        assert!(sum.lo < sum.hi && sum.lo <= 0.3 && 0.3 <= sum.hi, "{sum:?}");
        assert!(tenth.times(tenth).lo < tenth.times(tenth).hi);
        let tiny = Enclosure::exactly(1e-200);
        assert!(tiny.times(tiny).hi > 0.0, "underflow is not exact");
        let small = Enclosure::exactly(1.1e-154);
        assert!(small.times(small).lo < small.times(small).hi, "nor is what is lost below the smallest double");
        assert!(!three.over(Enclosure::ZERO).is_finite());
    }
}
