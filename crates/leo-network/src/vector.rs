//! Sums over long rows of numbers, compiled for several generations of processors by `pulp`, which picks at run time.
//!
//! A product of a matrix with a single row needs no more: a general matrix product would copy the matrix first.

use pulp::{Arch, Simd, WithSimd};

/// The sum of the products of two rows of the same length.
pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    Arch::new().dispatch(Dot(a, b))
}

/// Adds a multiple of a row to another of the same length.
pub fn add_multiple(sum: &mut [f64], factor: f64, row: &[f64]) {
    Arch::new().dispatch(AddMultiple { sum, factor, row });
}

struct Dot<'a>(&'a [f64], &'a [f64]);

impl WithSimd for Dot<'_> {
    type Output = f64;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> f64 {
        let ((a, a_rest), (b, b_rest)) = (S::as_simd_f64s(self.0), S::as_simd_f64s(self.1));
        // Four sums, or each addition would wait for the one before.
        let mut sums = [simd.splat_f64s(0.0); 4];
        let ((fours_a, left_a), (fours_b, left_b)) = (a.as_chunks::<4>(), b.as_chunks::<4>());
        for (a, b) in fours_a.iter().zip(fours_b) {
            for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
                *sum = simd.mul_add_f64s(*a, *b, *sum);
            }
        }
        for ((sum, a), b) in sums.iter_mut().zip(left_a).zip(left_b) {
            *sum = simd.mul_add_f64s(*a, *b, *sum);
        }
        let [a, b, c, d] = sums;
        let rest: f64 = a_rest.iter().zip(b_rest).map(|(a, b)| a * b).sum();
        simd.reduce_sum_f64s(simd.add_f64s(simd.add_f64s(a, b), simd.add_f64s(c, d))) + rest
    }
}

struct AddMultiple<'a> {
    sum: &'a mut [f64],
    factor: f64,
    row: &'a [f64],
}

impl WithSimd for AddMultiple<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let factor = simd.splat_f64s(self.factor);
        let (sums, rest) = S::as_mut_simd_f64s(self.sum);
        for (sum, number) in sums.iter_mut().zip(vectors::<S>(self.row)) {
            *sum = simd.mul_add_f64s(factor, number, *sum);
        }
        for (sum, number) in rest.iter_mut().zip(S::as_simd_f64s(self.row).1) {
            *sum += self.factor * number;
        }
    }
}

/// Numbers as vectors, without those that do not make a whole one.
#[inline(always)]
pub fn vectors<S: Simd>(numbers: &[f64]) -> impl Iterator<Item = S::f64s> {
    S::as_simd_f64s(numbers).0.iter().copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_any_length() {
        for length in 0..40 {
            let row: Vec<f64> = (0..length).map(f64::from).collect();
            let expected: f64 = row.iter().map(|x| x * x).sum();
            assert_eq!(dot(&row, &row), expected);
            let mut sum = row.clone();
            add_multiple(&mut sum, 2.0, &row);
            assert!(sum.iter().zip(&row).all(|(sum, x)| *sum == 3.0 * x));
        }
    }
}
