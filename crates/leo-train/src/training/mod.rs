//! A training in progress: epoch after epoch of stochastic gradient descent with momentum. What happens to a batch is
//! in [`descent`].

mod descent;

use fastrand::Rng;
use pulp::Arch;
use serde::{Deserialize, Serialize};

use leo_network::op::{Dense, Matrix as Weights, Relu};
use leo_network::{Network, NetworkError, Shape, ValueId};

use crate::data::DataSet;
use crate::layer::DenseLayer;
use crate::matrix::PaddedMatrix;
use crate::recipe::{Recipe, RecipeError};
use crate::sparse::SparseBatch;
use descent::{Score, Scratch};

/// How many samples are evaluated at a time.
const EVALUATION_BATCH: usize = 64;

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

impl<'d> Training<'d> {
    /// Draws the first weights.
    ///
    /// # Errors
    /// If the recipe cannot be followed.
    pub fn new(recipe: Recipe, data: &'d DataSet) -> Result<Self, RecipeError> {
        Self::on(Arch::new(), recipe, data)
    }

    /// As [`Self::new`], on a processor with the abilities of `arch`, which may be fewer than this one has.
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
            .chunks(EVALUATION_BATCH)
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
}

/// The random numbers for one purpose: 0 is the first weights, then one for each epoch.
fn stream(seed: u64, purpose: u64) -> Rng {
    let base = Rng::with_seed(seed).u64(..);
    // Neighbouring seeds give numbers that resemble each other; what they draw does not.
    Rng::with_seed(Rng::with_seed(base.wrapping_add(purpose)).u64(..))
}

#[cfg(test)]
mod tests {
    use sha2::{Digest, Sha256};

    use super::*;
    use crate::data::DataPart;

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

    /// Samples of such patterns to train on, and 50 more to test with.
    pub(super) fn data(inputs: usize, classes: u8, samples: usize) -> DataSet {
        DataSet::new(patterns(inputs, classes, samples), patterns(inputs, classes, 50))
    }

    /// Every number in it, as bits.
    fn bits(training: &mut Training<'_>) -> Vec<u32> {
        training.numbers_mut().map(|number| number.to_bits()).collect()
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
        /// How many samples are put in order.
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
        let hash: String = format!("{:.16x}", digest.finalize());
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
