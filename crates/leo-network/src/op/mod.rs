//! The operators of a network.
//!
//! There are five, and nobody who analyses networks needs to know of more: an [affine map](AffineMap) of one value, an
//! [`Activation`], the [sum](Sum) of two values, values [side by side](Concat), and the [largest](MaxPool) of each
//! window. The kinds of affine maps are a file each, and so are activations. To add a map, write its file, add its name
//! to the list in `affine.rs`, and teach the file formats about it.

mod affine;
mod concat;
mod convolution;
mod dense;
mod elementwise;
mod layout;
mod patch;
mod pooling;
mod select;
mod sum;
mod sums;
mod window;

pub use crate::activation::Relu;
pub(crate) use affine::Map;
pub use affine::{Action, ActionKind, AffineMap, ChannelReads, Moves};
pub use concat::Concat;
pub use convolution::Convolution;
pub use dense::{Dense, Matrix};
pub use elementwise::stretched_positions;
pub use elementwise::{Arithmetic, Broadcast, Elementwise};
pub use layout::{Reshape, Transpose};
pub use patch::Patch;
pub use pooling::{MaxPool, MaxWindows, SumPool};
pub use select::Select;
pub use sum::Sum;
pub use sums::{Sums, Terms};
pub use window::{Window, WindowAxis};

use crate::activation::Activation;
use crate::channels::Channels;
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

    /// Where the channels of a result of this shape lie, given where those of the first operand do.
    fn channels(&self, _operand: Channels, result: &Shape) -> Channels {
        Channels::innermost(result)
    }

    /// How many numbers it has learnt: the size of its constants.
    fn parameters(&self) -> usize {
        0
    }
}

/// An operator that can be run.
pub(crate) trait Evaluate {
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
    /// `A x + b`, for some linear map `A`.
    Affine(AffineMap),
    /// A function of each element alone, such as `max(0, x)`: a layer of units.
    Activation(Activation),
    /// `x + y`, where two branches meet.
    Sum(Sum),
    /// Values side by side.
    Concat(Concat),
    /// The largest of each window.
    MaxPool(MaxPool),
}

macro_rules! each {
    ($op:expr, $inner:ident => $body:expr) => {
        match $op {
            Op::Affine($inner) => $body,
            Op::Activation($inner) => $body,
            Op::Sum($inner) => $body,
            Op::Concat($inner) => $body,
            Op::MaxPool($inner) => $body,
        }
    };
}

impl Op {
    /// The affine map, if it is one.
    pub fn as_affine(&self) -> Option<&AffineMap> {
        match self {
            Self::Affine(map) => Some(map),
            Self::Activation(_) | Self::Sum(_) | Self::Concat(_) | Self::MaxPool(_) => None,
        }
    }

    /// The matrix with its bias, if it is one.
    pub fn as_dense(&self) -> Option<&Dense> {
        match self.as_affine()? {
            AffineMap::Dense(dense) => Some(dense),
            _ => None,
        }
    }

    /// What it makes of each element, if it is a layer of units.
    pub fn as_activation(&self) -> Option<&Activation> {
        match self {
            Self::Activation(activation) => Some(activation),
            Self::Affine(_) | Self::Sum(_) | Self::Concat(_) | Self::MaxPool(_) => None,
        }
    }

    /// Whether it is a layer of units.
    pub fn is_layer(&self) -> bool {
        self.as_activation().is_some()
    }

    /// Whether each of its outputs is a sum of inputs that are weighted.
    pub fn has_sums(&self) -> bool {
        self.as_affine().is_some_and(|map| map.kind() == ActionKind::Sums)
    }

    /// How many pairs of a position and one that it reads its window has at the most, on an operand of this shape.
    pub(crate) fn most_taps(&self, operand: &Shape) -> usize {
        let window = match self {
            Self::Affine(AffineMap::Convolution(map)) => map.window(),
            Self::Affine(AffineMap::SumPool(pool)) => pool.window(),
            Self::MaxPool(pool) => pool.window(),
            Self::Affine(_) | Self::Activation(_) | Self::Sum(_) | Self::Concat(_) => return 0,
        };
        let first = operand.rank().saturating_sub(window.axes().len());
        window.most_taps(&operand.extents()[first..])
    }

    /// Whether it is an operator of dense networks: a matrix for each vector, a change of each number or of their
    /// order, an activation, or a sum. Others are followed by intervals, channel by channel.
    pub fn is_dense(&self) -> bool {
        match self {
            Self::Affine(map) => map.kind() != ActionKind::Sums || self.as_dense().is_some(),
            Self::Activation(_) | Self::Sum(_) => true,
            Self::Concat(_) | Self::MaxPool(_) => false,
        }
    }

    /// Marks the elements of operand `index` of some, of these shapes, that some of the elements that are wanted depend
    /// on.
    pub(crate) fn mark_read(&self, operands: &[&Shape], index: usize, wanted: &[bool], read: &mut [bool]) {
        match self {
            Self::Affine(map) => map.mark_read(operands[index], wanted, read),
            Self::Activation(_) | Self::Sum(_) => {
                read.iter_mut().zip(wanted).for_each(|(read, wanted)| *read |= wanted)
            }
            Self::Concat(concat) => {
                let sources = concat.sources(operands).into_iter().zip(wanted);
                sources.filter(|((operand, _), _)| *operand == index).for_each(|((_, at), wanted)| read[at] |= wanted);
            }
            Self::MaxPool(pool) => {
                let windows = pool.windows(operands[index]);
                let wanted = (0..wanted.len()).filter(|&output| wanted[output]);
                wanted.for_each(|output| windows.of(output).for_each(|input| read[input] = true));
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

    fn channels(&self, operand: Channels, result: &Shape) -> Channels {
        each!(self, op => op.channels(operand, result))
    }

    fn parameters(&self) -> usize {
        each!(self, op => op.parameters())
    }
}

impl Evaluate for Op {
    fn kernel<T: Real>(&self, operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        each!(self, op => op.kernel(operands))
    }
}

impl From<Concat> for Op {
    fn from(concat: Concat) -> Self {
        Self::Concat(concat)
    }
}

impl From<MaxPool> for Op {
    fn from(pool: MaxPool) -> Self {
        Self::MaxPool(pool)
    }
}

impl From<Sum> for Op {
    fn from(sum: Sum) -> Self {
        Self::Sum(sum)
    }
}
