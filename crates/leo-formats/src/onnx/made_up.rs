//! What makes up for channels that are left out and are not nothing: other summands, and other weights.

use std::collections::BTreeMap;

use leo_network::ValueId;

use super::element::Float;
use super::tensor::{Tensor, TensorNumbers};

/// What makes up for channels that go.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MadeUp {
    /// For constants: of values that a convolution, a matrix with a bias or an addition makes, what is to be added to
    /// each channel that stays, instead of what was.
    pub summands: BTreeMap<ValueId, Vec<f64>>,
    /// For linear functions of channels that stay: of values that a convolution or a matrix makes, what shares its
    /// weights for some channels that it reads have in those for others.
    pub shares: BTreeMap<ValueId, Vec<Share>>,
    /// Leaves what is new as it is computed, in double precision. Such a file has two types of floats, and nobody runs
    /// it; it shows what rounding has to do with what has changed.
    pub is_unrounded: bool,
}

/// A multiple of the weights for one channel that is added to those for another.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Share {
    /// The channel that goes, along the axis of the channels that are read.
    pub from: usize,
    /// The channel that stays.
    pub to: usize,
    /// What its weights are multiplied by.
    pub factor: f64,
}

impl MadeUp {
    /// The type of numbers that replace others of a type.
    pub(super) fn type_of(&self, float: Float) -> Float {
        if self.is_unrounded { Float::F64 } else { float }
    }
}

impl Tensor {
    /// With multiples of places along one axis added to others, and what has changed rounded.
    pub(super) fn with_shares(mut self, axis: usize, shares: &[Share], made_up: &MadeUp) -> Self {
        let (width, inner) = (self.dims[axis], self.dims[axis + 1..].iter().product::<usize>());
        if let (TensorNumbers::Float(own, values), false) = (&mut self.numbers, shares.is_empty()) {
            let float = made_up.type_of(*own);
            *own = float;
            let before = values.clone();
            for outer in 0..self.dims[..axis].iter().product() {
                let row = |place: usize| (outer * width + place) * inner..(outer * width + place + 1) * inner;
                for share in shares {
                    for (to, from) in row(share.to).zip(row(share.from)) {
                        values[to] += share.factor * before[from];
                    }
                }
            }
            values.iter_mut().for_each(|value| *value = float.round(*value));
        }
        self
    }
}
