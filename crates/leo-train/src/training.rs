//! A training in progress: epoch after epoch of stochastic gradient descent with momentum.
//!
//! With the samples' one-hot labels `t`, logits `z` and `p = softmax(z)`, the loss is the mean over the batch of
//! `-log p_label`, plus `l1` times the sum of all weights' absolute values. Its gradient starts as `(p - t) / samples` at the
//! logits and goes back layer by layer, through the transposed weights and the ReLUs that were on.

use fastrand::Rng;
use pulp::Arch;
use serde::{Deserialize, Serialize};

use leo_network::op::{Dense, Matrix as Weights, Relu};
use leo_network::{Network, NetworkError, Shape, ValueId};

use crate::data::{DataPart, DataSet};
use crate::layer::DenseLayer;
use crate::loops::{AddProduct, GradientStep};
use crate::matrix::PaddedMatrix;
use crate::recipe::{Recipe, RecipeError};
use crate::sparse::SparseBatch;

/// How many samples are evaluated at a time.
const EVALUATED: usize = 64;

/// How an epoch went, over its batches as they were seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Epoch {
    /// The mean negative log-likelihood, without the l1 term.
    pub loss: f64,
    /// The share of samples whose label got the largest logit.
    pub accuracy: f64,
}

/// A network in training.
pub struct Training<'d> {
    recipe: Recipe,
    data: &'d DataSet,
    layers: Vec<DenseLayer>,
    epochs: u32,
    last: Epoch,
    arch: Arch,
    scratch: Scratch,
}

/// Room for a batch on its way through the network and back.
#[derive(Default)]
struct Scratch {
    order: Vec<u32>,
    labels: Vec<u8>,
    /// What each layer reads.
    batches: Vec<SparseBatch>,
    /// What each layer gives, after the ReLU if it has one.
    outputs: Vec<PaddedMatrix>,
    /// The loss's gradient at a layer's pre-activations, as a matrix and as a batch; then at those of the layer before.
    delta: PaddedMatrix,
    delta_columns: SparseBatch,
    delta_before: PaddedMatrix,
    transposed: PaddedMatrix,
}

/// What a batch cost, summed over its samples.
#[derive(Clone, Copy, Debug, Default)]
struct Score {
    loss: f64,
    correct: usize,
}

impl<'d> Training<'d> {
    /// Draws the first weights.
    ///
    /// # Errors
    /// If the recipe cannot be followed.
    pub fn new(recipe: Recipe, data: &'d DataSet) -> Result<Self, RecipeError> {
        Self::on(Arch::new(), recipe, data)
    }

    /// The same on a processor with fewer abilities than this one has.
    pub(crate) fn on(arch: Arch, recipe: Recipe, data: &'d DataSet) -> Result<Self, RecipeError> {
        recipe.check()?;
        recipe.check_size(data.inputs(), data.classes())?;
        let mut random = stream(recipe.seed, 0);
        let widths: Vec<usize> =
            [data.inputs()].into_iter().chain(recipe.hidden.iter().copied()).chain([data.classes()]).collect();
        let layers: Vec<DenseLayer> =
            widths.windows(2).map(|pair| DenseLayer::new(pair[0], pair[1], &mut random)).collect();
        let mut scratch = Scratch::default();
        scratch.batches.resize_with(layers.len(), SparseBatch::default);
        scratch.outputs.resize_with(layers.len(), PaddedMatrix::default);
        Ok(Self { recipe, data, layers, epochs: 0, last: Epoch::default(), arch, scratch })
    }

    /// How it is trained.
    pub fn recipe(&self) -> &Recipe {
        &self.recipe
    }

    /// How many epochs are done.
    pub fn epochs(&self) -> u32 {
        self.epochs
    }

    /// How the last epoch went.
    pub fn last(&self) -> Epoch {
        self.last
    }

    /// What it is trained on.
    pub fn data(&self) -> &'d DataSet {
        self.data
    }

    /// Every number that the next epoch depends on, in a fixed order.
    pub(crate) fn numbers_mut(&mut self) -> impl Iterator<Item = &mut f32> {
        self.layers.iter_mut().flat_map(DenseLayer::numbers_mut)
    }

    /// Says how far it is.
    pub(crate) fn set_progress(&mut self, epochs: u32, last: Epoch) {
        (self.epochs, self.last) = (epochs, last);
    }

    /// Whether all epochs of the recipe are done.
    pub fn is_done(&self) -> bool {
        self.epochs >= self.recipe.epochs
    }

    /// Sees the whole training set once, in an order that depends on nothing but the seed and the epoch.
    pub fn epoch(&mut self) -> Epoch {
        let data = self.data;
        let mut order = std::mem::take(&mut self.scratch.order);
        order.clear();
        order.extend(0..data.train().len() as u32);
        stream(self.recipe.seed, u64::from(self.epochs) + 1).shuffle(&mut order);
        let step = self.recipe.step(self.epochs);
        let mut total = Score::default();
        for chosen in order.chunks(self.recipe.batch) {
            let score = self.step(chosen, step);
            total.loss += score.loss;
            total.correct += score.correct;
        }
        let samples = order.len() as f64;
        self.scratch.order = order;
        self.epochs += 1;
        self.last = Epoch { loss: total.loss / samples, accuracy: total.correct as f64 / samples };
        self.last
    }

    /// The share of the test set that the network gets right.
    pub fn test_accuracy(&mut self) -> f64 {
        let part = self.data.test();
        let everything: Vec<u32> = (0..part.len() as u32).collect();
        let correct: usize = everything
            .chunks(EVALUATED)
            .map(|chosen| {
                self.forward(part, chosen);
                self.score().correct
            })
            .sum();
        correct as f64 / part.len() as f64
    }

    /// The network as it is now.
    ///
    /// # Errors
    /// If training diverged, so that a weight is no longer finite.
    pub fn network(&self) -> Result<Network, NetworkError> {
        let mut builder = Network::builder(Shape::new([self.data.inputs()])?);
        let mut value = ValueId::INPUT;
        for (index, layer) in self.layers.iter().enumerate() {
            if index > 0 {
                value = builder.add(format!("relu{index}"), Relu, &[value])?;
            }
            let weights = (0..layer.outputs)
                .flat_map(|output| (0..layer.inputs).map(move |input| f64::from(layer.weights.get(input, output))));
            let bias = (0..layer.outputs).map(|output| f64::from(layer.bias.get(0, output)));
            let weights = Weights::new(layer.outputs, layer.inputs, weights.collect())?;
            value = builder.add(format!("fc{}", index + 1), Dense::new(weights, Some(bias.collect()))?, &[value])?;
        }
        builder.finish(vec![value])
    }

    /// One step of gradient descent on the samples of the training set that `chosen` names.
    fn step(&mut self, chosen: &[u32], step: GradientStep) -> Score {
        self.forward(self.data.train(), chosen);
        let score = self.score();
        self.backward(chosen.len(), step);
        score
    }

    fn forward(&mut self, part: &DataPart, chosen: &[u32]) {
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
    fn score(&mut self) -> Score {
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

/// The random numbers for one purpose: 0 is the first weights, then one for each epoch.
fn stream(seed: u64, purpose: u64) -> Rng {
    let base = Rng::with_seed(seed).u64(..);
    // Neighbouring seeds give numbers that resemble each other; what they draw does not.
    Rng::with_seed(Rng::with_seed(base.wrapping_add(purpose)).u64(..))
}

#[cfg(test)]
mod tests {
    use super::*;

    use sha2::{Digest, Sha256};

    /// Noisy images of a few random patterns, mostly 0.
    fn patterns(inputs: usize, classes: u8, samples: usize) -> DataPart {
        let mut random = Rng::with_seed(7);
        let patterns: Vec<Vec<bool>> =
            (0..classes).map(|_| (0..inputs).map(|_| random.u8(..) < 80).collect()).collect();
        let labels: Vec<u8> = (0..samples).map(|_| random.u8(0..classes)).collect();
        let pixels = labels.iter().flat_map(|&label| &patterns[usize::from(label)]);
        let bytes: Vec<u8> = pixels.map(|&on| if on != (random.u8(..) < 20) { random.u8(100..) } else { 0 }).collect();
        DataPart::new(inputs, &bytes, labels)
    }

    fn data(inputs: usize, classes: u8, samples: usize) -> DataSet {
        DataSet::new(patterns(inputs, classes, samples), patterns(inputs, classes, 50))
    }

    /// Every number in it, as bits.
    fn bits(training: &mut Training<'_>) -> Vec<u32> {
        training.numbers_mut().map(|number| number.to_bits()).collect()
    }

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
        const INPUTS: usize = 9;
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

    /// Wide enough for several tiles of registers, on odd numbers of inputs and samples.
    fn odd_recipe() -> Recipe {
        Recipe {
            hidden: vec![150, 7, 33],
            l1: 1e-3,
            seed: 5,
            epochs: 20,
            batch: 10,
            decay_every: 15,
            ..Recipe::default()
        }
    }

    #[test]
    fn orders_of_different_epochs_have_nothing_in_common() {
        const SAMPLES: usize = 20_000;
        let place_of = |epoch: u64| {
            let mut order: Vec<usize> = (0..SAMPLES).collect();
            stream(3, epoch).shuffle(&mut order);
            let mut places = vec![0.0; SAMPLES];
            for (place, sample) in order.into_iter().enumerate() {
                places[sample] = place as f64 / SAMPLES as f64 - 0.5;
            }
            places
        };
        let epochs: Vec<Vec<f64>> = (1..10).map(place_of).collect();
        for (index, first) in epochs.iter().enumerate() {
            for second in &epochs[..index] {
                let correlation = 12.0 / SAMPLES as f64 * first.iter().zip(second).map(|(a, b)| a * b).sum::<f64>();
                // Five standard deviations of what chance gives.
                assert!(correlation.abs() < 0.035, "{correlation}");
            }
        }
    }

    #[test]
    fn every_processor_computes_the_same_bits() -> Result<(), RecipeError> {
        let data = data(45, 10, 123);
        let mut archs = vec![Arch::new(), Arch::Scalar];
        #[cfg(target_arch = "x86_64")]
        archs.extend(pulp::x86::V3::try_new().map(Arch::V3));
        let mut results = Vec::new();
        for arch in archs {
            let mut training = Training::on(arch, odd_recipe(), &data)?;
            while !training.is_done() {
                training.epoch();
            }
            results.push((bits(&mut training), training.last(), training.test_accuracy()));
        }
        assert!(results.iter().all(|result| *result == results[0]));
        assert!(results[0].2 > 0.3, "it has learned something: {}", results[0].2);
        Ok(())
    }

    #[test]
    fn networks_stay_the_same_from_version_to_version() -> Result<(), RecipeError> {
        let data = data(45, 10, 123);
        let mut training = Training::new(odd_recipe(), &data)?;
        while !training.is_done() {
            training.epoch();
        }
        let digest =
            bits(&mut training).iter().fold(Sha256::new(), |digest, bits| digest.chain_update(bits.to_le_bytes()));
        let hash: String = digest.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, "533077f7abb973e1", "recipes in files made by older versions would give other networks now");
        Ok(())
    }

    #[test]
    fn the_network_computes_what_was_trained() -> Result<(), Box<dyn std::error::Error>> {
        let data = data(45, 10, 123);
        let mut training = Training::new(odd_recipe(), &data)?;
        training.epoch();
        let network = training.network()?;
        let part = data.test();
        let all: Vec<u32> = (0..part.len() as u32).collect();
        training.forward(part, &all);
        let logits = training.scratch.outputs.last().ok_or("no layers")?;
        let mut inputs = vec![0.0_f32; part.len() * data.inputs()];
        for (pair, entries) in training.scratch.batches[0].iter().enumerate() {
            for entry in entries {
                for (offset, &value) in entry.values.iter().enumerate().filter(|&(offset, _)| 2 * pair + offset < 45) {
                    inputs[entry.sample as usize * 45 + 2 * pair + offset] = value;
                }
            }
        }
        let outputs = leo_network::Evaluator::<f32>::new(&network).run(&inputs);
        for (sample, row) in outputs[0].chunks(10).enumerate() {
            for (class, &output) in row.iter().enumerate() {
                assert!((output - logits.get(sample, class)).abs() < 1e-5);
            }
        }
        Ok(())
    }

    #[test]
    fn checkpoints_go_on_as_if_nothing_had_happened() -> Result<(), Box<dyn std::error::Error>> {
        let data = data(20, 4, 70);
        let recipe = Recipe { hidden: vec![8, 5], l1: 1e-3, epochs: 6, decay_every: 2, batch: 16, ..Recipe::default() };
        let mut undisturbed = Training::new(recipe.clone(), &data)?;
        let mut disturbed = Training::new(recipe.clone(), &data)?;
        while !undisturbed.is_done() {
            undisturbed.epoch();
            disturbed.epoch();
            disturbed = Training::resume(recipe.clone(), &data, &disturbed.checkpoint())?;
            assert!(bits(&mut disturbed) == bits(&mut undisturbed) && disturbed.last() == undisturbed.last());
        }
        assert!(disturbed.is_done());

        let whole = disturbed.checkpoint();
        let refused = |recipe: &Recipe, data: &DataSet, bytes: &[u8]| {
            Training::resume(recipe.clone(), data, bytes).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let other = Recipe { seed: 1, ..recipe.clone() };
        assert_eq!(refused(&other, &data, &whole), "was made with another recipe: seed 0");
        assert_eq!(refused(&recipe, &self::data(20, 4, 71), &whole), "was made with another data set");
        for length in [0, 10, whole.len() - 1, whole.len() - 4] {
            assert!(refused(&recipe, &data, &whole[..length]).starts_with("is not a checkpoint"), "{length}");
        }
        assert!(refused(&recipe, &data, &[&whole[..], &[0; 4]].concat()).starts_with("is not a checkpoint"));
        Ok(())
    }
}
