//! How a network is trained: everything that, together with the data set, decides each bit of the result.

use serde::{Deserialize, Serialize};

use crate::loops::GradientStep;

/// The hyper-parameters. The defaults are those of the paper's experiments, but for widths, l1 and seed, which it
/// varies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The width of each hidden layer.
    pub hidden: Vec<usize>,
    /// The weight in the loss of the sum of all weights' absolute values. Biases are free.
    pub l1: f64,
    /// What the first weights and the order of the samples are drawn from.
    pub seed: u64,
    /// How often the whole training set is seen.
    pub epochs: u32,
    /// How many samples a step sees.
    pub batch: usize,
    /// The step size at first.
    pub learning_rate: f64,
    /// What the step size is multiplied by now and then.
    pub decay: f64,
    /// After how many epochs that happens.
    pub decay_every: u32,
    /// How much of the last step goes into the next.
    pub momentum: f64,
}

/// What makes a recipe impossible to follow.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RecipeError {
    /// A width, or a number of samples or epochs, of zero or beyond reason.
    #[error("{what} should be from 1 to {most}, not {found}")]
    Count {
        /// Which number.
        what: &'static str,
        /// The most there can be.
        most: usize,
        /// What the recipe has.
        found: usize,
    },
    /// A factor that is not in its range.
    #[error("{what} should be {range}, not {found}")]
    Factor {
        /// Which number.
        what: &'static str,
        /// Where it may lie.
        range: &'static str,
        /// What the recipe has.
        found: f64,
    },
}

impl Default for Recipe {
    fn default() -> Self {
        Self {
            hidden: vec![100, 100],
            l1: 0.0,
            seed: 0,
            epochs: 120,
            batch: 64,
            learning_rate: 0.01,
            decay: 0.1,
            decay_every: 50,
            momentum: 0.9,
        }
    }
}

impl Recipe {
    /// How many hidden layers there may be.
    const MAX_LAYERS: usize = 1 << 10;
    /// How wide a hidden layer may be.
    const MAX_WIDTH: usize = 1 << 16;
    /// How many epochs there may be, and epochs to the next decay.
    const MAX_EPOCHS: usize = 1 << 24;
    /// How many weights there may be, and numbers in a batch: each takes a dozen bytes or so.
    const MAX_NUMBERS: usize = 1 << 27;

    /// Checks that the recipe can be followed.
    ///
    /// # Errors
    /// Which number is out of its range.
    pub fn check(&self) -> Result<(), RecipeError> {
        let count = |what, most, found| match found {
            0 => Err(RecipeError::Count { what, most, found }),
            _ if found > most => Err(RecipeError::Count { what, most, found }),
            _ => Ok(()),
        };
        count("the number of hidden layers", Self::MAX_LAYERS, self.hidden.len())?;
        for &width in &self.hidden {
            count("the width of a hidden layer", Self::MAX_WIDTH, width)?;
        }
        count("the batch size", Self::MAX_WIDTH, self.batch)?;
        count("the number of epochs", Self::MAX_EPOCHS, self.epochs as usize)?;
        count("the number of epochs between decays", Self::MAX_EPOCHS, self.decay_every as usize)?;
        let factor = |what, range, fits: bool, found: f64| {
            if fits && found.is_finite() { Ok(()) } else { Err(RecipeError::Factor { what, range, found }) }
        };
        factor("the l1 weight", "at least 0", self.l1 >= 0.0, self.l1)?;
        factor("the learning rate", "above 0", self.learning_rate > 0.0, self.learning_rate)?;
        factor("the decay", "above 0 and at most 1", self.decay > 0.0 && self.decay <= 1.0, self.decay)?;
        factor("the momentum", "at least 0 and below 1", (0.0..1.0).contains(&self.momentum), self.momentum)
    }

    /// How many weights a network has that is trained so.
    pub fn weights(&self, inputs: usize, classes: usize) -> usize {
        let ends = self.hidden.iter().copied().chain([classes]);
        [inputs].into_iter().chain(self.hidden.iter().copied()).zip(ends).map(|(from, to)| from * to).sum()
    }

    /// Checks that there is room for such a network, and for a batch on its way through it.
    pub(crate) fn check_size(&self, inputs: usize, classes: usize) -> Result<(), RecipeError> {
        let most = Self::MAX_NUMBERS;
        let widest = self.hidden.iter().copied().fold(inputs.max(classes), usize::max);
        for (what, found) in
            [("the number of weights", self.weights(inputs, classes)), ("the size of a batch", widest * self.batch)]
        {
            if found > most {
                return Err(RecipeError::Count { what, most, found });
            }
        }
        Ok(())
    }

    /// A name for the network's file that tells it from its siblings.
    pub fn file_name(&self) -> String {
        let hidden: Vec<String> = self.hidden.iter().map(usize::to_string).collect();
        let plain = self.l1.to_string();
        let l1 = if plain.len() > 12 { format!("{:e}", self.l1) } else { plain };
        format!("{}-l1-{l1}-seed-{}.onnx", hidden.join("-"), self.seed)
    }

    /// What this recipe has and the other has not.
    pub(crate) fn differences(&self, other: &Self) -> String {
        let fields = |recipe| match serde_json::to_value(recipe) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let others = fields(other);
        let different = fields(self).into_iter().filter(|(name, value)| others.get(name) != Some(value));
        different.map(|(name, value)| format!("{name} {value}")).collect::<Vec<_>>().join(", ")
    }

    /// The step of an epoch, counted from 0.
    pub(crate) fn step(&self, epoch: u32) -> GradientStep {
        let decays = epoch / self.decay_every;
        let rate = (0..decays).fold(self.learning_rate, |rate, _| rate * self.decay);
        GradientStep { rate: rate as f32, momentum: self.momentum as f32, l1: self.l1 as f32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_learning_rate_falls_by_the_decay_every_fifty_epochs() {
        let recipe = Recipe::default();
        assert_eq!(
            [0, 49, 50, 99, 100, 119].map(|epoch| recipe.step(epoch).rate),
            [0.01, 0.01, 0.001, 0.001, 1e-4, 1e-4]
        );
    }

    #[test]
    fn impossible_recipes_are_refused() {
        let refused = |change: fn(&mut Recipe)| {
            let mut recipe = Recipe::default();
            change(&mut recipe);
            recipe.check().is_err()
        };
        assert!(!refused(|_| {}));
        assert!(refused(|recipe| recipe.hidden.clear()));
        assert!(refused(|recipe| recipe.hidden[0] = 0));
        assert!(refused(|recipe| recipe.batch = 0));
        assert!(refused(|recipe| recipe.epochs = 0));
        assert!(refused(|recipe| recipe.l1 = -1.0));
        assert!(refused(|recipe| recipe.l1 = f64::NAN));
        assert!(refused(|recipe| recipe.learning_rate = f64::INFINITY));
        assert!(refused(|recipe| recipe.momentum = 1.0));
        let wide = Recipe { hidden: vec![1 << 16; 2], ..Recipe::default() };
        assert!(wide.check().is_ok() && wide.check_size(784, 10).is_err());
        assert!(Recipe::default().check_size(784, 10).is_ok());
    }
}
