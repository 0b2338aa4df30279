//! One affine map in training: its weights and biases, and how fast they move.

use fastrand::Rng;
use pulp::Arch;

use crate::loops::{AddProduct, Descend, DescendBias, GradientStep};
use crate::matrix::{LANES, PaddedMatrix};
use crate::sparse::SparseBatch;

/// Weights are kept transposed, a row for each input, because batches come input by input.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DenseLayer {
    pub(crate) inputs: usize,
    pub(crate) outputs: usize,
    pub(crate) weights: PaddedMatrix,
    pub(crate) weight_velocity: PaddedMatrix,
    /// One row.
    pub(crate) bias: PaddedMatrix,
    pub(crate) bias_velocity: PaddedMatrix,
}

impl DenseLayer {
    /// Kaiming initialisation: weights uniform with variance `2 / inputs`, biases 0.
    ///
    /// Uniform and not normal numbers, because they need nothing but a square root, which is the same on every machine.
    pub(crate) fn new(inputs: usize, outputs: usize, random: &mut Rng) -> Self {
        let mut layer = Self::zeros(inputs, outputs);
        let bound = (6.0 / inputs as f64).sqrt();
        for input in 0..inputs {
            for output in 0..outputs {
                *layer.weights.get_mut(input, output) = ((2.0 * random.f64() - 1.0) * bound) as f32;
            }
        }
        layer
    }

    pub(crate) fn zeros(inputs: usize, outputs: usize) -> Self {
        // What comes from another layer comes in whole groups.
        let weights = PaddedMatrix::zeros(inputs.next_multiple_of(LANES), outputs);
        let bias = PaddedMatrix::zeros(1, outputs);
        Self { inputs, outputs, weight_velocity: weights.clone(), weights, bias_velocity: bias.clone(), bias }
    }

    /// Pre-activations for a batch of `samples` samples.
    pub(crate) fn forward(&self, arch: Arch, batch: &SparseBatch, samples: usize, out: &mut PaddedMatrix) {
        out.repeat(&self.bias, samples);
        arch.dispatch(AddProduct { out, batch, weights: &self.weights });
    }

    /// One step, where `delta` is the loss's gradient with respect to the pre-activations.
    pub(crate) fn descend(&mut self, arch: Arch, batch: &SparseBatch, delta: &PaddedMatrix, step: GradientStep) {
        let (weights, velocity) = (&mut self.weights, &mut self.weight_velocity);
        arch.dispatch(Descend { weights, velocity, batch, delta, step });
        arch.dispatch(DescendBias { bias: &mut self.bias, velocity: &mut self.bias_velocity, delta, step });
    }

    /// The four matrices, without padding, for a checkpoint to read or write in a fixed order.
    pub(crate) fn numbers_mut(&mut self) -> impl Iterator<Item = &mut f32> {
        let (inputs, outputs) = (self.inputs, self.outputs);
        let matrices = [
            (&mut self.weights, inputs),
            (&mut self.weight_velocity, inputs),
            (&mut self.bias, 1),
            (&mut self.bias_velocity, 1),
        ];
        matrices.into_iter().flat_map(move |(matrix, rows)| {
            matrix
                .rows_mut()
                .take(rows)
                .flat_map(move |row| row.iter_mut().flat_map(|group| &mut group.0).take(outputs))
        })
    }
}
