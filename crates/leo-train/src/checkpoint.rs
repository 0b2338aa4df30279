//! A training in a file, to go on with later exactly as if it had never stopped.
//!
//! One line of JSON says what is trained on what and how far it is. The numbers follow, little-endian, layer by layer:
//! weights, their velocities, biases, theirs. The order of the samples needs no place in it: it depends on the seed and
//! the epoch only.

use serde::{Deserialize, Serialize};

use crate::data::DataSet;
use crate::recipe::{Recipe, RecipeError};
use crate::training::{Epoch, Training};

/// What the format is called, with its version.
const FORMAT: &str = "leo checkpoint 1";

#[derive(Serialize, Deserialize)]
struct Header {
    format: String,
    recipe: Recipe,
    data: String,
    epochs: u32,
    last: Epoch,
}

/// Why a training cannot go on from a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// Not a whole checkpoint.
    #[error("is not a checkpoint of Leo's: {0}")]
    Broken(String),
    /// A checkpoint of another network.
    #[error("was made with another recipe: {0}")]
    OtherRecipe(String),
    /// A checkpoint of a network trained on something else.
    #[error("was made with another data set")]
    OtherData,
    /// The recipe cannot be followed.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
}

impl<'d> Training<'d> {
    /// Everything that a training needs to go on.
    pub fn checkpoint(&mut self) -> Vec<u8> {
        let header = Header {
            format: FORMAT.to_owned(),
            recipe: self.recipe().clone(),
            data: self.data().fingerprint().to_owned(),
            epochs: self.epochs(),
            last: self.last(),
        };
        let mut bytes = serde_json::to_vec(&header).unwrap_or_default();
        bytes.push(b'\n');
        for number in self.numbers_mut() {
            bytes.extend(number.to_le_bytes());
        }
        bytes
    }

    /// Goes on from a checkpoint.
    ///
    /// # Errors
    /// If the checkpoint is broken, or one of another training.
    pub fn resume(recipe: Recipe, data: &'d DataSet, checkpoint: &[u8]) -> Result<Self, CheckpointError> {
        let broken = |why: &str| CheckpointError::Broken(why.to_owned());
        let line =
            checkpoint.iter().position(|&byte| byte == b'\n').ok_or_else(|| broken("its first line has no end"))?;
        let (header, numbers) = (&checkpoint[..line], &checkpoint[line + 1..]);
        let header: Header =
            serde_json::from_slice(header).map_err(|error| CheckpointError::Broken(error.to_string()))?;
        if header.format != FORMAT {
            return Err(broken("its format is another one"));
        }
        if header.recipe != recipe {
            return Err(CheckpointError::OtherRecipe(header.recipe.differences(&recipe)));
        }
        if header.data != data.fingerprint() {
            return Err(CheckpointError::OtherData);
        }
        let mut training = Self::new(recipe, data)?;
        let (numbers, rest) = numbers.as_chunks::<4>();
        if !rest.is_empty() || numbers.len() != training.numbers_mut().count() {
            return Err(broken("it has the wrong length"));
        }
        for (number, &bytes) in training.numbers_mut().zip(numbers) {
            *number = f32::from_le_bytes(bytes);
        }
        training.set_progress(header.epochs, header.last);
        Ok(training)
    }
}
