//! The operators of a network, one file each.
//!
//! An operator is a struct with its constants, checked when it is made, an implementation of [`Operator`] (what shape it
//! gives for which operands), and a kernel that runs it on a batch. [`Op`] lists them. To add one (a
//! convolution, say), write its file, add a variant and an arm to `each!` below, and teach the file formats about
//! it; the graph, its evaluation and the rest need no change.

mod dense;
mod elementwise;
mod layout;
mod relu;
mod sum;

pub use dense::{Dense, Matrix};
pub(crate) use elementwise::stretched_positions;
pub use elementwise::{Arithmetic, Broadcast, Elementwise};
pub use layout::{Reshape, Transpose};
pub use relu::Relu;
pub use sum::Sum;

use crate::evaluate::Values;
use crate::network::ValueId;
use crate::product::Real;
use crate::shape::{NetworkError, Shape};

/// What every operator can tell about itself.
pub trait Operator {
    /// The name people know it by.
    fn name(&self) -> &'static str;

    /// How many values it reads.
    fn arity(&self) -> usize {
        1
    }

    /// The shape of its result, for operands of these shapes.
    ///
    /// # Errors
    /// If it cannot take such operands. There are [`arity`](Operator::arity) of them; the caller has seen to that.
    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError>;

    /// How many numbers it has learnt: the size of its constants.
    fn parameters(&self) -> usize {
        0
    }
}

/// An operator that can be run.
pub(crate) trait Run {
    /// The code that runs it in precision `T`, for operands of shapes that it accepted.
    fn kernel<T: Real>(&self, operands: &[&Shape]) -> Box<dyn Kernel<T>>;
}

/// An operator made ready to run in one precision.
pub(crate) trait Kernel<T>: Send + Sync {
    /// Computes every row of `output` from the same row of the operands.
    fn run(&self, operands: Operands<'_, T>, output: &mut [T]);
}

/// The values that a kernel reads: for each operand, one row a sample.
#[derive(Clone, Copy)]
pub(crate) struct Operands<'a, T> {
    pub(crate) values: Values<'a, T>,
    pub(crate) ids: &'a [ValueId],
    pub(crate) rows: usize,
}

impl<'a, T> Operands<'a, T> {
    /// How many samples there are.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// All rows of operand `index`.
    pub(crate) fn get(&self, index: usize) -> &'a [T] {
        self.values.get(self.ids[index])
    }
}

/// An operator of a network.
///
/// Not `non_exhaustive`, on purpose: whoever proves things about networks must handle every operator there is.
#[derive(Clone, Debug, PartialEq)]
pub enum Op {
    /// `W x + b` along the innermost axis.
    Dense(Dense),
    /// `max(0, x)`, the unit that Leo is about.
    Relu(Relu),
    /// `x + c`, `x c` or `x / c`, element by element.
    Elementwise(Elementwise),
    /// The same numbers in the same order under another shape.
    Reshape(Reshape),
    /// The axes in another order.
    Transpose(Transpose),
    /// `x + y`, where two branches meet.
    Sum(Sum),
}

/// The one place that tells the operators apart.
macro_rules! each {
    ($op:expr, $inner:ident => $body:expr) => {
        match $op {
            Op::Dense($inner) => $body,
            Op::Relu($inner) => $body,
            Op::Elementwise($inner) => $body,
            Op::Reshape($inner) => $body,
            Op::Transpose($inner) => $body,
            Op::Sum($inner) => $body,
        }
    };
}

impl Op {
    /// Marks the elements of an operand, of this shape, that some of the elements that are wanted depend on.
    pub(crate) fn mark_read(&self, operand: &Shape, wanted: &[bool], read: &mut [bool]) {
        match self {
            Self::Dense(dense) => {
                let (weight, inner) = (dense.weight(), dense.weight().columns());
                for (output, _) in wanted.iter().enumerate().filter(|(_, wanted)| **wanted) {
                    let (position, row) = (output / weight.rows(), output % weight.rows());
                    let read = &mut read[position * inner..][..inner];
                    read.iter_mut().zip(weight.row(row)).for_each(|(read, weight)| *read |= *weight != 0.0);
                }
            }
            Self::Transpose(transpose) => {
                let sources = transpose.sources(operand.extents());
                sources.iter().zip(wanted).for_each(|(&source, wanted)| read[source] |= wanted);
            }
            Self::Elementwise(elementwise) if elementwise.arithmetic() == Arithmetic::Multiply => {
                let factors = elementwise.constant().expand(operand);
                let of = wanted.iter().zip(factors).map(|(wanted, factor)| *wanted && factor != 0.0);
                read.iter_mut().zip(of).for_each(|(read, of)| *read |= of);
            }
            Self::Relu(_) | Self::Elementwise(_) | Self::Reshape(_) | Self::Sum(_) => {
                read.iter_mut().zip(wanted).for_each(|(read, wanted)| *read |= wanted);
            }
        }
    }
}

impl Operator for Op {
    fn name(&self) -> &'static str {
        each!(self, op => op.name())
    }

    fn arity(&self) -> usize {
        each!(self, op => op.arity())
    }

    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError> {
        each!(self, op => op.output_shape(operands))
    }

    fn parameters(&self) -> usize {
        each!(self, op => op.parameters())
    }
}

impl Run for Op {
    fn kernel<T: Real>(&self, operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        each!(self, op => op.kernel(operands))
    }
}

macro_rules! into_op {
    ($($operator:ident),*) => {
        $(impl From<$operator> for Op {
            fn from(operator: $operator) -> Self {
                Self::$operator(operator)
            }
        })*
    };
}

into_op!(Dense, Relu, Elementwise, Reshape, Transpose, Sum);
