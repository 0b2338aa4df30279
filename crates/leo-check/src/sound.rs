//! Arithmetic that can only err on the safe side.
//!
//! Let `u = 2⁻⁵³` be the unit roundoff of doubles. A sum of `n` products, computed in any order, with or without fused
//! multiply-adds, misses the exact sum by at most `n u / (1 - n u)` times the sum of the products' absolute values, plus `n` times the smallest
//! normal double for what underflows. [`slack`] is more than twice that factor, which leaves room for the absolute values, which
//! are themselves sums computed with rounding, to be too small by as much, for anything shorter than a trillion terms.

/// What to multiply a sum of absolute values by to bound the error of a sum of so many terms.
pub(crate) fn slack(terms: usize) -> f64 {
    (terms as f64 + 8.0) * f64::EPSILON
}

/// An upper bound of a sum, in the making.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Upper {
    sum: f64,
    magnitude: f64,
    terms: usize,
    /// Whether anything was rounded: a single number was not.
    is_rounded: bool,
    /// Upper bounds of what else belongs to the sum and is not negative.
    excess: f64,
    /// Upper bounds of errors made elsewhere.
    error: f64,
}

impl Upper {
    /// Adds a number.
    pub(crate) fn add(&mut self, number: f64) {
        if number == 0.0 {
            return;
        }
        self.sum += number;
        self.magnitude += number.abs();
        self.is_rounded |= self.terms > 0;
        self.terms += 1;
    }

    /// Adds a product.
    pub(crate) fn add_product(&mut self, a: f64, b: f64) {
        if a == 0.0 || b == 0.0 {
            return;
        }
        let product = a * b;
        self.sum += product;
        self.magnitude += product.abs();
        self.is_rounded = true;
        self.terms += 1;
    }

    /// Adds an upper bound of an error made elsewhere.
    pub(crate) fn add_error(&mut self, error: f64) {
        if error == 0.0 {
            return;
        }
        self.error += error;
        self.is_rounded = true;
        self.terms += 1;
    }

    /// Adds an upper bound of something that is not negative.
    pub(crate) fn add_excess(&mut self, excess: f64) {
        if excess == 0.0 {
            return;
        }
        self.excess += excess;
        self.is_rounded = true;
        self.terms += 1;
    }

    /// A number that is no less than the exact sum, and how much of it may be due to rounding.
    pub(crate) fn bound(&self) -> Bound {
        if !self.is_rounded && self.sum.is_finite() {
            return Bound { limit: self.sum, error: 0.0 };
        }
        let rounding = slack(self.terms) * (self.magnitude + self.excess + self.error);
        let error = self.error + rounding + self.terms as f64 * f64::MIN_POSITIVE;
        let limit = (self.sum + self.excess + error).next_up();
        Bound { limit: if limit.is_nan() { f64::INFINITY } else { limit }, error }
    }
}

/// An upper bound that was computed with rounding.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    /// No less than what was to be bounded; infinite if that overflowed.
    pub(crate) limit: f64,
    /// Without rounding it might have been as much less.
    pub(crate) error: f64,
}

impl Bound {
    /// Whether rounding may be all that keeps it above 0.
    pub(crate) fn is_doubtful(self) -> bool {
        self.limit > 0.0 && self.limit <= 4.0 * self.error
    }
}
