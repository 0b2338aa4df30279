//! The affine maps, and all that analyses ask of one.
//!
//! A kind of map is a struct with its constants in a file of its own, which says in [`Map`] what it does; [`AffineMap`]
//! lists them. Whoever analyses networks does not tell the kinds apart but asks for a map's [`Action`]: it moves
//! numbers, changes each of them, or sums them up ([`Sums`]). That is what matters to a proof, too: nothing is rounded
//! when numbers move, one operation when each is changed, and many where they are summed up. So intervals, backward
//! substitution, expressions, errors of evaluation, costs and drawings are written once, over actions.

use super::{
    Arithmetic, Convolution, Dense, Elementwise, Evaluate, Kernel, Op, Operator, Reshape, Select, SumPool, Sums,
    Transpose,
};
use crate::channels::Channels;
use crate::product::Real;
use crate::shape::{NetworkError, Shape};

/// What a kind of map does, besides being an [`Operator`] that can [`Evaluate`].
pub(crate) trait Map: Operator + Evaluate {
    /// What it does to an operand of this shape, which it must accept.
    fn action(&self, operand: &Shape) -> Action<'_>;

    /// Which action that is.
    fn kind(&self) -> ActionKind;

    /// Of sums: whether a channel that is read cannot go without the channels that are made of it.
    fn ties_channels(&self) -> bool {
        false
    }
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

/// The one place that lists the kinds of maps.
macro_rules! maps {
    ($($(#[$about:meta])* $kind:ident),*) => {
        /// An affine map of one value.
        #[derive(Clone, Debug, PartialEq)]
        pub enum AffineMap {
            $($(#[$about])* $kind($kind)),*
        }

        impl AffineMap {
            /// What it does to an operand of this shape, which it must accept.
            pub fn action(&self, operand: &Shape) -> Action<'_> {
                match self { $(Self::$kind(map) => map.action(operand)),* }
            }

            /// Which action that is.
            pub fn kind(&self) -> ActionKind {
                match self { $(Self::$kind(map) => map.kind()),* }
            }

            /// Whether a channel that is read cannot go without the channels that are made of it, as where each channel
            /// is treated alone. Otherwise each channel that is made has weights of its own for those that are read.
            pub fn ties_channels(&self) -> bool {
                self.kind() != ActionKind::Sums || match self { $(Self::$kind(map) => map.ties_channels()),* }
            }
        }

        impl Operator for AffineMap {
            fn name(&self) -> &'static str {
                match self { $(Self::$kind(map) => map.name()),* }
            }

            fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError> {
                match self { $(Self::$kind(map) => map.output_shape(operands)),* }
            }

            fn channels(&self, operand: Channels, result: &Shape) -> Channels {
                match self { $(Self::$kind(map) => map.channels(operand, result)),* }
            }

            fn parameters(&self) -> usize {
                match self { $(Self::$kind(map) => map.parameters()),* }
            }
        }

        impl Evaluate for AffineMap {
            fn kernel<T: Real>(&self, operands: &[&Shape]) -> Box<dyn Kernel<T>> {
                match self { $(Self::$kind(map) => map.kernel(operands)),* }
            }
        }

        $(impl From<$kind> for Op {
            fn from(map: $kind) -> Self {
                Self::Affine(AffineMap::$kind(map))
            }
        })*
    };
}

maps! {
    /// `W x + b` along the innermost axis.
    Dense,
    /// `x + c`, `x c` or `x / c`, element by element.
    Elementwise,
    /// The same numbers in the same order under another shape.
    Reshape,
    /// The axes in another order.
    Transpose,
    /// A kernel that moves over positions.
    Convolution,
    /// Sums over windows.
    SumPool,
    /// Parts along each axis, and zeros around them.
    Select
}

/// Which channels a map reads for which of those that it makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelReads {
    /// The axis of the operand that the channels are along that it reads.
    pub axis: usize,
    /// How many channels it reads.
    pub inputs: usize,
    /// For each channel that it makes, whether it has a weight that is not 0 for each of them.
    pub reads: Vec<Vec<bool>>,
}

impl AffineMap {
    /// Which channels it reads for which of those that it makes, if each of these has weights of its own for all of
    /// those.
    pub fn channel_reads(&self, operand: &Shape) -> Option<ChannelReads> {
        let rows = |weights: &[f64], inputs: usize, entries: usize| {
            let row =
                |row: &[f64]| row.chunks_exact(entries).map(|weights| weights.iter().any(|w| *w != 0.0)).collect();
            weights.chunks_exact(inputs * entries).map(row).collect()
        };
        match self {
            Self::Dense(dense) => {
                let inputs = dense.weight().columns();
                let axis = operand.rank().saturating_sub(1);
                Some(ChannelReads { axis, inputs, reads: rows(dense.weight().values(), inputs, 1) })
            }
            Self::Convolution(convolution) if convolution.groups() == 1 => {
                let (inputs, entries) = (convolution.inputs(), convolution.window().entries()?);
                let axis = operand.rank().checked_sub(convolution.window().axes().len() + 1)?;
                Some(ChannelReads { axis, inputs, reads: rows(convolution.weights(), inputs, entries) })
            }
            Self::Convolution(_)
            | Self::Elementwise(_)
            | Self::Reshape(_)
            | Self::Transpose(_)
            | Self::SumPool(_)
            | Self::Select(_) => None,
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
    pub(crate) fn in_order() -> Self {
        Self { sources: None }
    }

    /// For each output, its input.
    pub(crate) fn new(sources: Vec<usize>) -> Self {
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
