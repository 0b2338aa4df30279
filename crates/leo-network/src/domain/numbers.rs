//! A number for each of several things, as files have them.

use serde::{Deserialize, Serialize};

/// A number for each of several things, or the same for all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Numbers {
    /// For all.
    Same(f64),
    /// For each.
    Each(Vec<f64>),
}

impl Numbers {
    /// Numbers, once if they are all the same.
    pub fn of(numbers: &[f64]) -> Self {
        match numbers.iter().all(|number| number.to_bits() == numbers[0].to_bits()) && !numbers.is_empty() {
            true => Self::Same(numbers[0]),
            false => Self::Each(numbers.to_vec()),
        }
    }

    /// Whether there is one for each of `count` things.
    pub fn are_for(&self, count: usize) -> bool {
        match self {
            Self::Same(_) => true,
            Self::Each(numbers) => numbers.len() == count,
        }
    }

    /// The one for a thing.
    ///
    /// # Panics
    /// If there is none.
    pub fn at(&self, thing: usize) -> f64 {
        match self {
            Self::Same(number) => *number,
            Self::Each(numbers) => numbers[thing],
        }
    }

    /// The largest of them that is not negative; 0 if there is none.
    pub fn largest(&self) -> f64 {
        match self {
            Self::Same(number) => *number,
            Self::Each(numbers) => numbers.iter().copied().fold(0.0, f64::max),
        }
    }

    /// The numbers, one by one, for each of `count` things.
    pub(crate) fn for_each(&self, count: usize) -> Vec<f64> {
        match self {
            Self::Same(number) => vec![*number; count],
            Self::Each(numbers) => numbers.clone(),
        }
    }
}
