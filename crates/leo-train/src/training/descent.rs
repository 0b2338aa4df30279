//! One batch through a network and back: the loss, its gradient by backpropagation, and a step of gradient descent.
//!
//! With the samples' one-hot labels `t`, logits `z` and `p = softmax(z)`, the loss is the mean over the batch of
//! `-log p_label`, plus `l1` times the sum of all weights' absolute values. Its gradient starts as `(p - t) / samples`
//! at the logits and goes back layer by layer, through the transposed weights and the ReLUs that were on.

use super::Training;
use crate::data::DataPart;
use crate::loops::{AddProduct, GradientStep};
use crate::matrix::PaddedMatrix;
use crate::sparse::SparseBatch;

/// Room for a batch on its way through the network and back.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) order: Vec<u32>,
    labels: Vec<u8>,
    /// What each layer reads.
    pub(super) batches: Vec<SparseBatch>,
    /// What each layer gives, after the ReLU if it has one.
    pub(super) outputs: Vec<PaddedMatrix>,
    /// The loss's gradient at a layer's pre-activations.
    delta: PaddedMatrix,
    /// That gradient as a batch.
    delta_columns: SparseBatch,
    /// The loss's gradient at the pre-activations of the layer before.
    delta_before: PaddedMatrix,
    /// A layer's weights, transposed.
    transposed: PaddedMatrix,
}

/// What a batch cost, summed over its samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Score {
    pub(super) loss: f64,
    pub(super) correct: usize,
}

impl Training<'_> {
    /// One step of gradient descent on the samples of the training set that `chosen` names.
    pub(super) fn step(&mut self, chosen: &[u32], step: GradientStep) -> Score {
        self.forward(self.data.train(), chosen);
        let score = self.score();
        self.backward(chosen.len(), step);
        score
    }

    pub(super) fn forward(&mut self, part: &DataPart, chosen: &[u32]) {
        let Scratch { labels, batches, outputs, .. } = &mut self.scratch;
        labels.clear();
        labels.extend(chosen.iter().map(|&sample| part.label(sample)));
        batches[0].gather(part.samples(), chosen);
        for (index, layer) in self.layers.iter().enumerate() {
            layer.forward(self.arch, &batches[index], chosen.len(), &mut outputs[index]);
            if let Some(next) = batches.get_mut(index + 1) {
                outputs[index].rectify();
                next.gather_rows(&outputs[index]);
            }
        }
    }

    /// What the logits cost, and into `delta` the gradient of the mean of that.
    pub(super) fn score(&mut self) -> Score {
        let Scratch { labels, outputs, delta, .. } = &mut self.scratch;
        let Some(logits) = outputs.last() else { return Score::default() };
        let classes = self.data.classes();
        delta.clear(logits, labels.len());
        let mut score = Score::default();
        for (sample, &label) in labels.iter().enumerate() {
            let label = usize::from(label);
            let mut best = 0;
            for class in 1..classes {
                if logits.get(sample, class) > logits.get(sample, best) {
                    best = class;
                }
            }
            let most = logits.get(sample, best);
            let mut sum = 0.0;
            for class in 0..classes {
                let power = libm::expf(logits.get(sample, class) - most);
                *delta.get_mut(sample, class) = power;
                sum += power;
            }
            let scale = 1.0 / (sum * labels.len() as f32);
            for class in 0..classes {
                *delta.get_mut(sample, class) *= scale;
            }
            *delta.get_mut(sample, label) -= 1.0 / labels.len() as f32;
            score.loss += libm::log(f64::from(sum)) - f64::from(logits.get(sample, label) - most);
            score.correct += usize::from(best == label);
        }
        score
    }

    fn backward(&mut self, samples: usize, step: GradientStep) {
        let Scratch { batches, outputs, delta, delta_columns, delta_before, transposed, .. } = &mut self.scratch;
        for (index, layer) in self.layers.iter_mut().enumerate().rev() {
            if let Some(before) = index.checked_sub(1) {
                transposed.transpose(&layer.weights, delta.width());
                delta_columns.gather_rows(delta);
                delta_before.clear(&outputs[before], samples);
                self.arch.dispatch(AddProduct { out: delta_before, batch: delta_columns, weights: transposed });
                delta_before.keep_where_active(&outputs[before]);
            }
            layer.descend(self.arch, &batches[index], delta, step);
            std::mem::swap(delta, delta_before);
        }
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::super::tests::data;
    use super::*;
    use crate::data::DataSet;
    use crate::recipe::{Recipe, RecipeError};

    /// A weight, or a bias in the row after the last input.
    fn parameter<'t>(training: &'t mut Training<'_>, layer: usize, row: usize, output: usize) -> &'t mut f32 {
        let layer = &mut training.layers[layer];
        if row < layer.inputs { layer.weights.get_mut(row, output) } else { layer.bias.get_mut(0, output) }
    }

    /// The loss of the chosen samples in double precision, by plain loops, and how near to its kink any ReLU comes.
    fn loss(training: &Training<'_>, inputs: &[Vec<f64>], chosen: &[u32], l1: f64) -> (f64, f64) {
        let (mut total, mut nearest) = (0.0, f64::INFINITY);
        for &sample in chosen {
            let mut values = inputs[sample as usize].clone();
            for (index, layer) in training.layers.iter().enumerate() {
                let weight = |input, output| f64::from(layer.weights.get(input, output));
                let sum =
                    |output| values.iter().enumerate().map(|(input, value)| weight(input, output) * value).sum::<f64>();
                values = (0..layer.outputs).map(|output| sum(output) + f64::from(layer.bias.get(0, output))).collect();
                if index + 1 < training.layers.len() {
                    nearest = values.iter().fold(nearest, |nearest, value| nearest.min(value.abs()));
                    values.iter_mut().for_each(|value| *value = value.max(0.0));
                }
            }
            let label = usize::from(training.data.train().label(sample));
            total += values.iter().map(|value| value.exp()).sum::<f64>().ln() - values[label];
        }
        let weights = training.layers.iter().flat_map(|layer| {
            let of_input = move |input| (0..layer.outputs).map(move |output| layer.weights.get(input, output));
            (0..layer.inputs).flat_map(of_input)
        });
        (total / chosen.len() as f64 + l1 * weights.map(|weight| f64::from(weight.abs())).sum::<f64>(), nearest)
    }

    #[test]
    fn gradients_are_those_of_the_loss() -> Result<(), RecipeError> {
        /// How many inputs a sample has.
        const INPUTS: usize = 9;
        /// By how much a parameter is changed to see what that does to the loss.
        const NUDGE: f32 = 1.0 / 4096.0;
        let mut random = Rng::with_seed(3);
        let bytes: Vec<u8> = (0..12 * INPUTS).map(|_| if random.bool() { random.u8(..) } else { 0 }).collect();
        let part = DataPart::new(INPUTS, &bytes, (0..12).map(|sample| sample % 3).collect());
        let data = DataSet::new(part.clone(), part);
        let number = |&byte: &u8| f64::from((f64::from(byte) / 255.0) as f32);
        let inputs: Vec<Vec<f64>> = bytes.chunks(INPUTS).map(|row| row.iter().map(number).collect()).collect();
        let chosen = [5, 0, 11, 3, 7];
        let recipe = Recipe { hidden: vec![6, 20, 5], seed: 1, ..Recipe::default() };
        for l1 in [0.0, 0.25] {
            let mut before = Training::new(recipe.clone(), &data)?;
            // Biases start at 0; other numbers test more.
            for layer in &mut before.layers {
                for output in 0..layer.outputs {
                    *layer.bias.get_mut(0, output) = random.f32() - 0.5;
                }
            }
            let mut after = Training { layers: before.layers.clone(), ..Training::new(recipe.clone(), &data)? };
            // With a rate of 1 and no momentum, a step subtracts just the gradient.
            after.step(&chosen, GradientStep { rate: 1.0, momentum: 0.0, l1: l1 as f32 });
            let (_, nearest) = loss(&before, &inputs, &chosen, l1);
            assert!(nearest > 4.0 * f64::from(NUDGE), "no ReLU may change its mind below, but one is at {nearest}");
            for layer in 0..before.layers.len() {
                for row in 0..=before.layers[layer].inputs {
                    for output in 0..before.layers[layer].outputs {
                        let original = *parameter(&mut before, layer, row, output);
                        let analytic = original - *parameter(&mut after, layer, row, output);
                        let mut at = |value: f32| {
                            *parameter(&mut before, layer, row, output) = value;
                            loss(&before, &inputs, &chosen, l1).0
                        };
                        let (above, below) = (original + NUDGE, original - NUDGE);
                        let numeric = (at(above) - at(below)) / f64::from(above - below);
                        at(original);
                        let difference = (f64::from(analytic) - numeric).abs();
                        assert!(difference < 2e-6, "layer {layer}, {row} to {output}: {analytic} is not {numeric}");
                    }
                }
            }
        }
        Ok(())
    }

    #[test]
    fn momentum_carries_a_step_into_the_next() -> Result<(), RecipeError> {
        let data = data(8, 3, 20);
        let mut training = Training::new(Recipe { hidden: vec![4], seed: 2, ..Recipe::default() }, &data)?;
        let chosen = [1, 2, 3, 4];
        let gradient_at = |training: &Training<'_>| -> Result<f32, RecipeError> {
            let mut trial =
                Training { layers: training.layers.clone(), ..Training::new(training.recipe.clone(), training.data)? };
            let before = *parameter(&mut trial, 1, 0, 0);
            trial.layers[1].weight_velocity = PaddedMatrix::zeros(16, 3);
            trial.step(&chosen, GradientStep { rate: 1.0, momentum: 0.0, l1: 0.0 });
            Ok(before - *parameter(&mut trial, 1, 0, 0))
        };
        let step = GradientStep { rate: 0.5, momentum: 0.75, l1: 0.0 };
        let start = *parameter(&mut training, 1, 0, 0);
        let first = gradient_at(&training)?;
        training.step(&chosen, step);
        let second = gradient_at(&training)?;
        training.step(&chosen, step);
        let expected = start - 0.5 * first - 0.5 * (0.75 * first + second);
        assert!(first.abs() > 1e-3 && (*parameter(&mut training, 1, 0, 0) - expected).abs() < 1e-6);
        Ok(())
    }
}
