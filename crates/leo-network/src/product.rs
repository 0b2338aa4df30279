//! The two precisions that networks are evaluated in, and the matrix product they are evaluated by.
//!
//! This is the only module with `unsafe` code: the call into the `gemm` crate, whose interface takes raw pointers.

use std::fmt;
use std::ops::{Add, Div, Mul};

/// A precision to evaluate in: `f32` or `f64`.
pub trait Real:
    Copy
    + PartialOrd
    + Default
    + Send
    + Sync
    + fmt::Debug
    + fmt::Display
    + Add<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + sealed::Sealed
    + 'static
{
    /// The nearest number of this precision.
    fn from_f64(value: f64) -> Self;
    /// This number as a double.
    fn to_f64(self) -> f64;
}

mod sealed {
    /// Keeps [`super::Real`] to the two types that the product below is right for.
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

impl Real for f32 {
    fn from_f64(value: f64) -> Self {
        value as Self
    }
    fn to_f64(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    fn from_f64(value: f64) -> Self {
        value
    }
    fn to_f64(self) -> f64 {
        self
    }
}

/// Numbers that weights, which are doubles, can be multiplied with: doubles, and whatever proofs are carried out with.
pub trait Scalar: Clone + Default + Send + Sync {
    /// `sum += rows · weights`, all row-major: `rows` has rows of `outer` numbers, `weights` has `outer` rows of
    /// `inner` doubles, and `sum` has as many rows as `rows`, of `inner` numbers.
    fn add_rows_times_weights(sum: &mut [Self], rows: &[Self], weights: &[f64], outer: usize, inner: usize);

    /// `sum += weights · rows`, all row-major: `weights` has rows of `inner` doubles, `rows` has `inner` rows of
    /// `width` numbers, and `sum` has as many rows as `weights`, of `width` numbers.
    fn add_weights_times_rows(sum: &mut [Self], weights: &[f64], rows: &[Self], inner: usize, width: usize);

    /// Adds to each number another one times a weight of its own.
    fn add_products(sum: &mut [Self], numbers: &[Self], weights: &[f64]);

    /// Adds to each number another one.
    fn add_numbers(sum: &mut [Self], numbers: &[Self]);
}

impl Scalar for f64 {
    fn add_rows_times_weights(sum: &mut [Self], rows: &[Self], weights: &[f64], outer: usize, inner: usize) {
        add_product(sum, rows, weights, rows.len() / outer, outer, inner);
    }

    fn add_weights_times_rows(sum: &mut [Self], weights: &[f64], rows: &[Self], inner: usize, width: usize) {
        add_product(sum, weights, rows, weights.len() / inner, inner, width);
    }

    fn add_products(sum: &mut [Self], numbers: &[Self], weights: &[f64]) {
        sum.iter_mut().zip(numbers).zip(weights).for_each(|((sum, number), weight)| *sum += number * weight);
    }

    fn add_numbers(sum: &mut [Self], numbers: &[Self]) {
        sum.iter_mut().zip(numbers).for_each(|(sum, number)| *sum += number);
    }
}

/// `out += x wᵀ`, where `x` has `rows` rows of `inner` numbers, `w` has `columns` rows of `inner` numbers, and `out`
/// has `rows` rows of `columns` numbers, all row-major.
///
/// Runs on the calling thread: callers split their batches, so that results do not depend on the thread count.
///
/// # Panics
/// If a slice does not have the length its shape says.
pub fn add_product_transposed<T: Real>(out: &mut [T], x: &[T], w: &[T], rows: usize, inner: usize, columns: usize) {
    product(out, x, w, [rows, inner, columns], (1, inner));
}

/// `out += x w`, where `x` has `rows` rows of `inner` numbers, `w` has `inner` rows of `columns` numbers, and `out` has
/// `rows` rows of `columns` numbers, all row-major. Otherwise like [`add_product_transposed`].
///
/// # Panics
/// If a slice does not have the length its shape says.
pub fn add_product<T: Real>(out: &mut [T], x: &[T], w: &[T], rows: usize, inner: usize, columns: usize) {
    product(out, x, w, [rows, inner, columns], (columns, 1));
}

/// `out += x w`, where from a row of `w` to the next it is `strides.0` numbers, from a column to the next `strides.1`.
fn product<T: Real>(out: &mut [T], x: &[T], w: &[T], shape: [usize; 3], strides: (usize, usize)) {
    let [rows, inner, columns] = shape;
    assert_eq!(Some(x.len()), rows.checked_mul(inner), "x is rows by inner");
    assert_eq!(Some(w.len()), columns.checked_mul(inner), "w is inner by columns, or its transpose");
    assert_eq!(Some(out.len()), rows.checked_mul(columns), "out is rows by columns");
    assert!(strides == (columns, 1) || strides == (1, inner), "w is row-major, or its transpose is");
    let one = T::from_f64(1.0);
    // SAFETY: `gemm` reads and writes exactly the elements `base + row * row_stride + column * column_stride` of the
    // three matrices it is given. The lengths asserted above cover them for these strides, `out` is borrowed
    // mutably and so aliases neither operand, and `T` is `f32` or `f64` (the trait is sealed), types `gemm` knows.
    #[allow(unsafe_code)]
    unsafe {
        gemm::gemm(
            rows,
            columns,
            inner,
            out.as_mut_ptr(),
            1,
            columns as isize,
            true,
            x.as_ptr(),
            1,
            inner as isize,
            w.as_ptr(),
            strides.1 as isize,
            strides.0 as isize,
            one,
            one,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_three_nested_loops(
            rows in 0_usize..20,
            inner in 0_usize..40,
            columns in 0_usize..20,
            seed in any::<u32>(),
        ) {
            let number = |i: usize| f64::from((i as u32).wrapping_mul(2_654_435_761).wrapping_add(seed) % 17) - 8.0;
            let x: Vec<f64> = (0..rows * inner).map(number).collect();
            let w: Vec<f64> = (0..columns * inner).map(|i| number(i + 7)).collect();
            let mut out: Vec<f64> = (0..rows * columns).map(|i| number(i + 3)).collect();
            let mut expected = out.clone();
            for row in 0..rows {
                for column in 0..columns {
                    for k in 0..inner {
                        expected[row * columns + column] += x[row * inner + k] * w[column * inner + k];
                    }
                }
            }
            let mut other = out.clone();
            add_product_transposed(&mut out, &x, &w, rows, inner, columns);
            prop_assert_eq!(&out, &expected);
            let turned: Vec<f64> = (0..inner * columns).map(|i| w[i % columns * inner + i / columns]).collect();
            add_product(&mut other, &x, &turned, rows, inner, columns);
            prop_assert_eq!(other, expected);
        }
    }
}
