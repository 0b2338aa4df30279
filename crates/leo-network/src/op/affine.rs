//! The affine maps, and all that analyses ask of one.
//!
//! A kind of map is a struct with its constants in a file of its own; [`AffineMap`] lists them. Whoever analyses networks does not tell the kinds apart but
//! asks for a map's [`Action`]: it moves numbers, changes each of them, or sums them up. That is what matters to a proof, too: nothing is rounded when numbers move,
//! one operation when each is changed, and many where they are summed up. So intervals, backward substitution, expressions, errors of evaluation, costs and
//! drawings are written once, over actions, and a new kind of map only has to say which action it has.

use super::{Arithmetic, Dense, Elementwise, Kernel, Operator, Reshape, Run, Transpose};
use crate::product::{Real, Scalar, add_product, add_product_transposed};
use crate::shape::{NetworkError, Shape};
use crate::vector::{add_multiple, dot};

/// An affine map of one value.
#[derive(Clone, Debug, PartialEq)]
pub enum AffineMap {
    /// `W x + b` along the innermost axis.
    Dense(Dense),
    /// `x + c`, `x c` or `x / c`, element by element.
    Elementwise(Elementwise),
    /// The same numbers in the same order under another shape.
    Reshape(Reshape),
    /// The axes in another order.
    Transpose(Transpose),
}

/// What an affine map does to the elements of its operand.
#[derive(Clone, Debug)]
pub enum Action<'a> {
    /// Each output is one of the inputs.
    Move(Moves),
    /// Each output is the input in its place, plus, times or over a constant.
    Each(Arithmetic, Vec<f64>),
    /// Each output is a sum of inputs, each times a weight, and of a bias.
    Sums(Sums<'a>),
}

/// Which of the [actions](Action) a map has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ActionKind {
    /// [`Action::Move`]
    Move,
    /// [`Action::Each`]
    Each(Arithmetic),
    /// [`Action::Sums`]
    Sums,
}

impl AffineMap {
    /// What it does to an operand of this shape, which it must accept.
    pub fn action(&self, operand: &Shape) -> Action<'_> {
        match self {
            Self::Dense(dense) => Action::Sums(Sums::of_dense(dense, operand)),
            Self::Elementwise(of) => Action::Each(of.arithmetic(), of.constant().expand(operand)),
            Self::Reshape(_) => Action::Move(Moves::in_order()),
            Self::Transpose(transpose) => Action::Move(Moves::new(transpose.sources(operand.extents()))),
        }
    }

    /// Which action that is.
    pub fn kind(&self) -> ActionKind {
        match self {
            Self::Dense(_) => ActionKind::Sums,
            Self::Elementwise(of) => ActionKind::Each(of.arithmetic()),
            Self::Reshape(_) | Self::Transpose(_) => ActionKind::Move,
        }
    }

    /// Marks the inputs that some of the outputs that are wanted depend on.
    pub(crate) fn mark_read(&self, operand: &Shape, wanted: &[bool], read: &mut [bool]) {
        match self.action(operand) {
            Action::Move(moves) => {
                wanted.iter().enumerate().for_each(|(output, wanted)| read[moves.source(output)] |= wanted);
            }
            Action::Each(arithmetic, constants) => {
                let is_read = |constant: f64| arithmetic != Arithmetic::Multiply || constant != 0.0;
                let of = wanted.iter().zip(constants).map(|(wanted, constant)| *wanted && is_read(constant));
                read.iter_mut().zip(of).for_each(|(read, of)| *read |= of);
            }
            Action::Sums(sums) => {
                for (output, _) in wanted.iter().enumerate().filter(|(_, wanted)| **wanted) {
                    sums.terms(output).for_each(|(input, weight)| read[input] |= weight != 0.0);
                }
            }
        }
    }
}

/// Where outputs that are inputs come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moves {
    /// Nothing if they are in the same order.
    sources: Option<Vec<usize>>,
}

impl Moves {
    fn in_order() -> Self {
        Self { sources: None }
    }

    /// For each output, its input.
    fn new(sources: Vec<usize>) -> Self {
        let is_in_order = sources.iter().copied().eq(0..sources.len());
        Self { sources: (!is_in_order).then_some(sources) }
    }

    /// Whether every number stays in its place.
    pub fn is_in_order(&self) -> bool {
        self.sources.is_none()
    }

    /// The input that `output` is.
    pub fn source(&self, output: usize) -> usize {
        self.sources.as_ref().map_or(output, |sources| sources[output])
    }

    /// The outputs, for rows of inputs.
    pub fn forward<T: Clone>(&self, inputs: &[T]) -> Vec<T> {
        let Some(sources) = &self.sources else { return inputs.to_vec() };
        let rows = inputs.chunks_exact(sources.len());
        rows.flat_map(|row| sources.iter().map(|&source| row[source].clone())).collect()
    }

    /// Rows of numbers that belong to outputs, with each where it belongs to the input.
    pub fn backward<T: Clone + Default>(&self, outputs: Vec<T>) -> Vec<T> {
        let Some(sources) = &self.sources else { return outputs };
        let mut moved = vec![T::default(); outputs.len()];
        for (row, moved) in outputs.chunks_exact(sources.len()).zip(moved.chunks_exact_mut(sources.len())) {
            row.iter().zip(sources).for_each(|(number, &source)| moved[source] = number.clone());
        }
        moved
    }
}

/// Sums of inputs, each times a weight, and of a bias: for now one matrix, used once for each vector that the operand holds.
#[derive(Clone, Copy, Debug)]
pub struct Sums<'a> {
    /// A row for each output of the matrix.
    weights: &'a [f64],
    inner: usize,
    outer: usize,
    bias: Option<&'a [f64]>,
    positions: usize,
}

impl<'a> Sums<'a> {
    fn of_dense(dense: &'a Dense, operand: &Shape) -> Self {
        let (inner, outer) = (dense.weight().columns(), dense.weight().rows());
        let positions = operand.elements() / inner;
        Self { weights: dense.weight().values(), inner, outer, bias: dense.bias(), positions }
    }

    /// The sums that rows of so many weights make of as many inputs.
    pub fn of_rows(weights: &'a [f64], inputs: usize) -> Self {
        Self { weights, inner: inputs, outer: weights.len() / inputs, bias: None, positions: 1 }
    }

    /// The same with other weights in place of its own, in their order.
    pub fn with_weights<'b>(&self, weights: &'b [f64]) -> Sums<'b>
    where
        'a: 'b,
    {
        Sums { weights, ..*self }
    }

    /// All weights, each once.
    pub fn weights(&self) -> &'a [f64] {
        self.weights
    }

    /// How many inputs there are.
    pub fn inputs(&self) -> usize {
        self.positions * self.inner
    }

    /// How many outputs there are.
    pub fn outputs(&self) -> usize {
        self.positions * self.outer
    }

    /// How many products of a weight and an input it takes to compute all outputs.
    pub fn products(&self) -> usize {
        self.outputs() * self.inner
    }

    /// How many terms the longest sum has.
    pub fn longest(&self) -> usize {
        self.inner
    }

    /// In how many sums one input is at the most.
    pub fn readers(&self) -> usize {
        self.outer
    }

    /// The inputs that `output` is a sum of, in their order, with their weights.
    pub fn terms(&self, output: usize) -> impl Iterator<Item = (usize, f64)> + use<'a> {
        let start = output / self.outer * self.inner;
        let row = &self.weights[output % self.outer * self.inner..][..self.inner];
        row.iter().enumerate().map(move |(index, &weight)| (start + index, weight))
    }

    /// What else is added to `output`.
    pub fn bias(&self, output: usize) -> f64 {
        self.bias.map_or(0.0, |bias| bias[output % self.outer])
    }

    /// Whether anything is added to outputs.
    pub fn has_bias(&self) -> bool {
        self.bias.is_some()
    }

    /// Rows of coefficients on outputs, as coefficients on inputs. Biases are left out.
    pub fn backward<S: Scalar>(&self, coefficients: &[S]) -> Vec<S> {
        let mut product = vec![S::default(); coefficients.len() / self.outer * self.inner];
        S::add_rows_times_weights(&mut product, coefficients, self.weights, self.outer, self.inner);
        product
    }

    /// The outputs of inputs that are rows of `width` numbers each, without biases.
    pub fn of_wide_inputs<S: Scalar>(&self, rows: &[S], width: usize) -> Vec<S> {
        let mut made = vec![S::default(); self.outputs() * width];
        let positions = rows.chunks_exact(self.inner * width).zip(made.chunks_exact_mut(self.outer * width));
        for (rows, made) in positions {
            S::add_weights_times_rows(made, self.weights, rows, self.inner, width);
        }
        made
    }

    /// As [`backward`](Self::backward), fast for a single row of coefficients, many of which are 0.
    pub fn backward_fast(&self, coefficients: &[f64]) -> Vec<f64> {
        let vectors = coefficients.len() / self.outer;
        let mut product = vec![0.0; vectors * self.inner];
        if vectors == 1 {
            for (&c, row) in coefficients.iter().zip(self.weights.chunks_exact(self.inner)).filter(|(c, _)| **c != 0.0)
            {
                add_multiple(&mut product, c, row);
            }
        } else {
            add_product(&mut product, coefficients, self.weights, vectors, self.outer, self.inner);
        }
        product
    }

    /// The outputs for rows of inputs, fast for a single one.
    pub fn forward_fast(&self, inputs: &[f64]) -> Vec<f64> {
        let vectors = inputs.len() / self.inner;
        let mut made = self.bias.map_or_else(|| vec![0.0; vectors * self.outer], |bias| bias.repeat(vectors));
        if vectors == 1 {
            let rows = made.iter_mut().zip(self.weights.chunks_exact(self.inner));
            rows.for_each(|(made, row)| *made += dot(row, inputs));
        } else {
            add_product_transposed(&mut made, inputs, self.weights, vectors, self.inner, self.outer);
        }
        made
    }
}

/// The one place, besides [`AffineMap::action`], that tells the kinds of maps apart.
macro_rules! each_map {
    ($map:expr, $inner:ident => $body:expr) => {
        match $map {
            AffineMap::Dense($inner) => $body,
            AffineMap::Elementwise($inner) => $body,
            AffineMap::Reshape($inner) => $body,
            AffineMap::Transpose($inner) => $body,
        }
    };
}

impl Operator for AffineMap {
    fn name(&self) -> &'static str {
        each_map!(self, map => map.name())
    }

    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError> {
        each_map!(self, map => map.output_shape(operands))
    }

    fn parameters(&self) -> usize {
        each_map!(self, map => map.parameters())
    }
}

impl Run for AffineMap {
    fn kernel<T: Real>(&self, operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        each_map!(self, map => map.kernel(operands))
    }
}
