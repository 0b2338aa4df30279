//! Sums of inputs, each times a weight, and of a bias: what affine maps are made of that are more than a change of each
//! number.
//!
//! How the terms of a sum lie among the inputs is known here, or to whoever implements [`Terms`], and to nobody else.
//! Where it is one matrix for each vector, there and back again are matrix products. What a kernel makes that moves
//! over positions is told without a list of it.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::Dense;
use super::convolution::{KernelSums, KernelTerms};
use crate::product::{Scalar, add_product_transposed};
use crate::shape::Shape;
use crate::vector::{add_multiple, dot};

/// Sums that are told one by one.
pub trait Terms: fmt::Debug + Send + Sync {
    /// How many inputs there are.
    fn inputs(&self) -> usize;

    /// How many outputs there are.
    fn outputs(&self) -> usize;

    /// The inputs that `output` is a sum of, each at most once, in their order, with their weights.
    fn of(&self, output: usize) -> Vec<(usize, f64)>;

    /// What else is added to `output`, if anything is ever added.
    fn bias(&self, output: usize) -> Option<f64>;

    /// How many terms the longest sum has.
    fn longest(&self) -> usize;

    /// In how many sums one input is at the most.
    fn readers(&self) -> usize;
}

/// Sums of inputs, each times a weight, and of a bias.
#[derive(Clone, Debug)]
pub struct Sums<'a>(pub(super) Lies<'a>);

#[derive(Clone, Debug)]
pub(super) enum Lies<'a> {
    /// One matrix, used once for each vector along the innermost axis.
    Matrix {
        /// A row for each output of the matrix.
        weights: Cow<'a, [f64]>,
        inner: usize,
        outer: usize,
        bias: Option<&'a [f64]>,
        positions: usize,
    },
    Kernel(KernelSums<'a>),
    Terms(Arc<dyn Terms + 'a>),
}

/// Sums with the absolute values of all weights.
#[derive(Debug)]
struct Magnitudes<'a>(Arc<dyn Terms + 'a>);

impl Terms for Magnitudes<'_> {
    fn inputs(&self) -> usize {
        self.0.inputs()
    }

    fn outputs(&self) -> usize {
        self.0.outputs()
    }

    fn of(&self, output: usize) -> Vec<(usize, f64)> {
        self.0.of(output).into_iter().map(|(input, weight)| (input, weight.abs())).collect()
    }

    fn bias(&self, output: usize) -> Option<f64> {
        self.0.bias(output)
    }

    fn longest(&self) -> usize {
        self.0.longest()
    }

    fn readers(&self) -> usize {
        self.0.readers()
    }
}

/// The terms of one sum.
enum Iter<'s> {
    Row { start: usize, weights: std::iter::Enumerate<std::slice::Iter<'s, f64>> },
    Kernel(KernelTerms<'s>),
    Listed(std::vec::IntoIter<(usize, f64)>),
}

impl Iterator for Iter<'_> {
    type Item = (usize, f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        match self {
            Self::Row { start, weights } => weights.next().map(|(index, &weight)| (*start + index, weight)),
            Self::Kernel(terms) => terms.next(),
            Self::Listed(terms) => terms.next(),
        }
    }

    #[inline]
    fn fold<B, F: FnMut(B, Self::Item) -> B>(self, init: B, mut f: F) -> B {
        match self {
            Self::Row { start, weights } => weights.fold(init, |all, (index, &weight)| f(all, (start + index, weight))),
            Self::Kernel(terms) => terms.fold(init, f),
            Self::Listed(terms) => terms.fold(init, f),
        }
    }
}

impl<'a> Sums<'a> {
    pub(crate) fn of_dense(dense: &'a Dense, operand: &Shape) -> Self {
        let (inner, outer) = (dense.weight().columns(), dense.weight().rows());
        let (weights, positions) = (dense.weight().values().into(), operand.elements() / inner);
        Self(Lies::Matrix { weights, inner, outer, bias: dense.bias(), positions })
    }

    /// What a kernel makes.
    pub(crate) fn of_kernel(sums: KernelSums<'a>) -> Self {
        Self(Lies::Kernel(sums))
    }

    /// Sums that are told one by one.
    pub fn of_terms(terms: impl Terms + 'a) -> Self {
        Self(Lies::Terms(Arc::new(terms)))
    }

    /// The sums that `weights`, in rows of `inputs` each, make of `inputs` inputs.
    pub fn of_rows(weights: &'a [f64], inputs: usize) -> Self {
        Self(Lies::Matrix {
            weights: weights.into(),
            inner: inputs,
            outer: weights.len() / inputs,
            bias: None,
            positions: 1,
        })
    }

    /// These sums with the absolute values of all weights.
    pub fn magnitudes(&self) -> Self {
        Self(match &self.0 {
            Lies::Terms(terms) => Lies::Terms(Arc::new(Magnitudes(Arc::clone(terms)))),
            Lies::Kernel(sums) => {
                let weights = sums.weights.iter().map(|weight| weight.abs()).collect();
                Lies::Kernel(KernelSums { weights, ..sums.clone() })
            }
            &Lies::Matrix { ref weights, inner, outer, bias, positions } => {
                let weights = weights.iter().map(|weight| weight.abs()).collect();
                Lies::Matrix { weights, inner, outer, bias, positions }
            }
        })
    }

    /// The matrix, a row for each of its outputs, and the bias of each, if the same is done to each vector along the
    /// innermost axis.
    pub fn as_matrix(&self) -> Option<(&[f64], Option<&'a [f64]>)> {
        match &self.0 {
            Lies::Matrix { weights, bias, .. } => Some((weights, *bias)),
            Lies::Kernel(_) | Lies::Terms(_) => None,
        }
    }

    /// How many inputs there are.
    pub fn inputs(&self) -> usize {
        match &self.0 {
            Lies::Matrix { inner, positions, .. } => positions * inner,
            Lies::Kernel(sums) => sums.read(),
            Lies::Terms(terms) => terms.inputs(),
        }
    }

    /// How many outputs there are.
    pub fn outputs(&self) -> usize {
        match &self.0 {
            Lies::Matrix { outer, positions, .. } => positions * outer,
            Lies::Kernel(sums) => sums.made(),
            Lies::Terms(terms) => terms.outputs(),
        }
    }

    /// How many products of a weight and an input it takes to compute all outputs.
    pub fn products(&self) -> usize {
        match &self.0 {
            Lies::Matrix { inner, .. } => self.outputs() * inner,
            Lies::Kernel(sums) => sums.samples * sums.outputs * sums.inputs * sums.taps.count(),
            Lies::Terms(terms) => (0..terms.outputs()).map(|output| terms.of(output).len()).sum(),
        }
    }

    /// How many terms the longest sum has.
    pub fn longest(&self) -> usize {
        match &self.0 {
            Lies::Matrix { inner, .. } => *inner,
            Lies::Kernel(sums) => sums.inputs * sums.taps.longest(),
            Lies::Terms(terms) => terms.longest(),
        }
    }

    /// In how many sums one input is at the most.
    pub fn readers(&self) -> usize {
        match &self.0 {
            Lies::Matrix { outer, .. } => *outer,
            Lies::Kernel(sums) => sums.readers(),
            Lies::Terms(terms) => terms.readers(),
        }
    }

    /// The inputs that `output` is a sum of, in their order, with their weights.
    #[inline]
    pub fn terms(&self, output: usize) -> impl Iterator<Item = (usize, f64)> + use<'_, 'a> {
        match &self.0 {
            Lies::Matrix { weights, inner, outer, .. } => {
                let weights = weights[output % outer * inner..][..*inner].iter().enumerate();
                Iter::Row { start: output / outer * inner, weights }
            }
            Lies::Kernel(sums) => Iter::Kernel(sums.terms(output)),
            Lies::Terms(terms) => Iter::Listed(terms.of(output).into_iter()),
        }
    }

    /// What else is added to `output`.
    pub fn bias(&self, output: usize) -> f64 {
        match &self.0 {
            Lies::Matrix { bias, outer, .. } => bias.map_or(0.0, |bias| bias[output % outer]),
            Lies::Kernel(sums) => sums.bias.map_or(0.0, |bias| bias[sums.channel(output)]),
            Lies::Terms(terms) => terms.bias(output).unwrap_or(0.0),
        }
    }

    /// Whether anything is added to outputs.
    pub fn has_bias(&self) -> bool {
        match &self.0 {
            Lies::Matrix { bias, .. } => bias.is_some(),
            Lies::Kernel(sums) => sums.bias.is_some(),
            Lies::Terms(terms) => terms.bias(0).is_some(),
        }
    }

    /// Rows of coefficients on outputs, as coefficients on inputs. Biases are left out.
    pub fn backward<S: Scalar>(&self, coefficients: &[S]) -> Vec<S> {
        let mut product = vec![S::default(); coefficients.len() / self.outputs() * self.inputs()];
        match &self.0 {
            Lies::Matrix { weights, inner, outer, .. } => {
                S::add_rows_times_weights(&mut product, coefficients, weights, *outer, *inner);
            }
            Lies::Kernel(_) | Lies::Terms(_) => {
                let rows = coefficients.chunks_exact(self.outputs()).zip(product.chunks_exact_mut(self.inputs()));
                for (row, product) in rows {
                    for (output, c) in row.iter().enumerate() {
                        for (input, weight) in self.terms(output) {
                            let (sum, c) = (&mut product[input..=input], std::slice::from_ref(c));
                            S::add_rows_times_weights(sum, c, &[weight], 1, 1);
                        }
                    }
                }
            }
        }
        product
    }

    /// The outputs of inputs that are rows of `width` numbers each, without biases.
    pub fn of_wide_inputs<S: Scalar>(&self, rows: &[S], width: usize) -> Vec<S> {
        let mut made = vec![S::default(); self.outputs() * width];
        match &self.0 {
            Lies::Matrix { weights, inner, outer, .. } => {
                let positions = rows.chunks_exact(inner * width).zip(made.chunks_exact_mut(outer * width));
                positions.for_each(|(rows, made)| S::add_weights_times_rows(made, weights, rows, *inner, width));
            }
            Lies::Kernel(_) | Lies::Terms(_) => {
                for (output, made) in made.chunks_exact_mut(width).enumerate() {
                    for (input, weight) in self.terms(output) {
                        S::add_weights_times_rows(made, &[weight], &rows[input * width..][..width], 1, width);
                    }
                }
            }
        }
        made
    }

    /// As [`backward`](Self::backward), fast for a single row of coefficients, many of which are 0.
    pub fn backward_fast(&self, coefficients: &[f64]) -> Vec<f64> {
        match &self.0 {
            Lies::Matrix { weights, inner, outer, .. } if coefficients.len() == *outer => {
                let mut product = vec![0.0; *inner];
                let rows = coefficients.iter().zip(weights.chunks_exact(*inner)).filter(|(c, _)| **c != 0.0);
                rows.for_each(|(&c, row)| add_multiple(&mut product, c, row));
                product
            }
            Lies::Matrix { .. } => self.backward(coefficients),
            Lies::Kernel(_) | Lies::Terms(_) => {
                let mut product = vec![0.0; coefficients.len() / self.outputs() * self.inputs()];
                let rows = coefficients.chunks_exact(self.outputs()).zip(product.chunks_exact_mut(self.inputs()));
                for (row, product) in rows {
                    for (output, &c) in row.iter().enumerate().filter(|(_, c)| **c != 0.0) {
                        self.terms(output).for_each(|(input, weight)| product[input] += c * weight);
                    }
                }
                product
            }
        }
    }

    /// The outputs for rows of inputs, fast for a single one.
    pub fn forward_fast(&self, inputs: &[f64]) -> Vec<f64> {
        match &self.0 {
            Lies::Matrix { weights, inner, outer, bias, .. } => {
                let vectors = inputs.len() / inner;
                let mut made = bias.map_or_else(|| vec![0.0; vectors * outer], |bias| bias.repeat(vectors));
                if vectors == 1 {
                    let rows = made.iter_mut().zip(weights.chunks_exact(*inner));
                    rows.for_each(|(made, row)| *made += dot(row, inputs));
                } else {
                    add_product_transposed(&mut made, inputs, weights, vectors, *inner, *outer);
                }
                made
            }
            Lies::Kernel(_) | Lies::Terms(_) => {
                let sum = |row: &[f64], output: usize| {
                    let terms = self.terms(output);
                    terms.fold(self.bias(output), |sum, (input, weight)| sum + weight * row[input])
                };
                let rows = inputs.chunks_exact(self.inputs());
                rows.flat_map(|row| (0..self.outputs()).map(move |output| sum(row, output))).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::Matrix;
    use crate::shape::NetworkError;

    /// The sums of a dense map, told one by one.
    #[derive(Debug)]
    struct Told<'a>(Sums<'a>);

    impl Terms for Told<'_> {
        fn inputs(&self) -> usize {
            self.0.inputs()
        }

        fn outputs(&self) -> usize {
            self.0.outputs()
        }

        fn of(&self, output: usize) -> Vec<(usize, f64)> {
            self.0.terms(output).collect()
        }

        fn bias(&self, output: usize) -> Option<f64> {
            self.0.has_bias().then(|| self.0.bias(output))
        }

        fn longest(&self) -> usize {
            self.0.longest()
        }

        fn readers(&self) -> usize {
            self.0.readers()
        }
    }

    #[test]
    fn sums_that_are_told_one_by_one_are_those_of_a_matrix() -> Result<(), NetworkError> {
        // Small whole numbers, so that no order of summation rounds.
        let numbers = |count: usize| (0..count).map(|i| (i * 7 % 11) as f64 - 5.0).collect::<Vec<f64>>();
        for bias in [None, Some(numbers(3))] {
            let dense = Dense::new(Matrix::new(3, 4, numbers(12))?, bias)?;
            let of = |positions: usize| Ok(Sums::of_dense(&dense, &Shape::new([positions, 4])?));
            for positions in [1, 5] {
                let sums: Sums<'_> = of(positions)?;
                let told = Sums::of_terms(Told(sums.clone()));
                assert!(sums.as_matrix().is_some() && told.as_matrix().is_none());
                let sizes =
                    |sums: &Sums<'_>| [sums.inputs(), sums.outputs(), sums.products(), sums.longest(), sums.readers()];
                assert_eq!(sizes(&sums), sizes(&told));
                for (one, other) in [(sums.clone(), told.clone()), (sums.magnitudes(), told.magnitudes())] {
                    for rows in [1, 2] {
                        let outputs = numbers(rows * one.outputs());
                        assert_eq!(one.backward(&outputs), other.backward(&outputs));
                        assert_eq!(one.backward_fast(&outputs), other.backward_fast(&outputs));
                        let inputs = numbers(rows * one.inputs());
                        assert_eq!(one.forward_fast(&inputs), other.forward_fast(&inputs));
                        assert_eq!(one.of_wide_inputs(&inputs, rows), other.of_wide_inputs(&inputs, rows));
                    }
                    assert_eq!((one.has_bias(), one.bias(1)), (other.has_bias(), other.bias(1)));
                }
            }
        }
        Ok(())
    }
}
