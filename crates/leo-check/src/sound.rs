//! Arithmetic that can only err on the safe side.
//!
//! Let `u = 2⁻⁵³` be the unit roundoff of doubles. A sum of `n` products, computed in any order, with or without fused
//! multiply-adds, misses the exact sum by at most `n u / (1 - n u)` times the sum of the products' absolute values,
//! plus `n` times the smallest normal double for what underflows (Higham, *Accuracy and Stability of Numerical
//! Algorithms*, 2002, section 3.1). The absolute values are summed as the products are, so this is an a-posteriori
//! error bound: no rounding mode is asked for, and no interval is carried along. [`slack`] is more than twice that
//! factor, which leaves room for the absolute values, which are themselves sums computed with rounding, to be too small
//! by as much, for anything shorter than a trillion terms.
//!
//! For [`crate::Exact`] numbers all this is 0.

use crate::number::Number;

/// What to multiply a sum of absolute values by to bound the error of a sum of `terms` terms.
pub(crate) fn slack<N: Number>(terms: usize) -> N {
    if N::ROUNDS { N::of((terms as f64 + 8.0) * f64::EPSILON) } else { N::default() }
}

/// What `products` products lose at the most because they are too small for a double.
pub(crate) fn underflow<N: Number>(products: usize) -> N {
    if N::ROUNDS { N::of(2.0 * products as f64 * f64::MIN_POSITIVE) } else { N::default() }
}

/// An upper bound of a sum, in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Upper<N> {
    sum: N,
    magnitude: N,
    terms: usize,
    /// Whether anything was rounded: a single number was not.
    is_rounded: bool,
    /// Upper bounds of what else belongs to the sum and is not negative.
    excess: N,
    /// Upper bounds of errors made elsewhere.
    error: N,
}

impl<N: Number> Upper<N> {
    /// Adds a number.
    pub(crate) fn add(&mut self, number: &N) {
        if !number.is_zero() {
            self.is_rounded |= self.terms > 0;
            self.add_term(number);
        }
    }

    /// Adds a product.
    pub(crate) fn add_product(&mut self, a: &N, b: &N) {
        if !a.is_zero() && !b.is_zero() {
            self.is_rounded = true;
            self.add_term(&a.times(b));
        }
    }

    fn add_term(&mut self, term: &N) {
        self.sum.add(term);
        if N::ROUNDS {
            self.magnitude.add(&term.abs());
        }
        self.terms += 1;
    }

    /// Adds an upper bound of an error made elsewhere.
    pub(crate) fn add_error(&mut self, error: &N) {
        if !error.is_zero() {
            self.error.add(error);
            self.is_rounded = true;
            self.terms += 1;
        }
    }

    /// Adds an upper bound of something that is not negative.
    pub(crate) fn add_excess(&mut self, excess: &N) {
        if !excess.is_zero() {
            self.excess.add(excess);
            self.is_rounded = true;
            self.terms += 1;
        }
    }

    /// A number that is no less than the exact sum, and how much of it may be due to rounding.
    pub(crate) fn bound(&self) -> Bound<N> {
        if !N::ROUNDS {
            return Bound { limit: self.sum.plus(&self.excess).plus(&self.error), error: N::default() };
        }
        if !self.is_rounded && self.sum.is_finite() {
            return Bound { limit: self.sum.clone(), error: N::default() };
        }
        let rounding = slack::<N>(self.terms).times(&self.magnitude.plus(&self.excess).plus(&self.error));
        let error = self.error.plus(&rounding).plus(&underflow(self.terms));
        Bound { limit: self.sum.plus(&self.excess).plus(&error).up(), error }
    }
}

/// An upper bound that was computed with rounding.
#[derive(Clone, Debug)]
pub(crate) struct Bound<N> {
    /// No less than what was to be bounded; infinite if that overflowed.
    pub(crate) limit: N,
    /// Without rounding it might have been as much less.
    pub(crate) error: N,
}

impl<N: Number> Bound<N> {
    /// Whether rounding may be all that keeps it above 0.
    pub(crate) fn is_doubtful(&self) -> bool {
        N::ROUNDS && self.limit.is_positive() && self.limit <= N::of(4.0).times(&self.error)
    }
}
