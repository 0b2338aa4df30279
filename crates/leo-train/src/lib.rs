//! Trains ReLU networks with l1 regularisation, and repeats the experiment of the LEO paper.
//!
//! A [`Recipe`] and a [`DataSet`] name one network: a [`Training`] gives the same bits on every machine. The loss is
//! the mean negative log-likelihood after a softmax, plus `l1` times the sum of the weights' absolute values; l1
//! regularisation is what makes units stable, so that there is something for Leo to remove.
//!
//! ```
//! use leo_train::{DataSet, DataPart, Recipe, Training};
//!
//! // Which of two pixels is brighter?
//! let pixels = [[200, 10], [30, 240], [90, 0], [0, 70]];
//! let part = DataPart::new(2, pixels.as_flattened(), vec![0, 1, 0, 1]);
//! let data = DataSet::new(part.clone(), part);
//!
//! let recipe = Recipe { hidden: vec![4], epochs: 200, batch: 2, ..Recipe::default() };
//! let mut training = Training::new(recipe, &data)?;
//! while !training.is_done() {
//!     training.epoch();
//! }
//! assert_eq!(training.test_accuracy(), 1.0);
//! let network = training.network()?;
//! assert_eq!(network.parameters(), 4 * 2 + 4 + 2 * 4 + 2);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A [`Session`] does many [`Job`]s at once, each a network to train into an ONNX file, with checkpoints. [`reproduce`]
//! makes the paper's tables from them, and [`library`] finds data sets and fetches MNIST.

mod checkpoint;
mod data;
mod jobs;
mod layer;
pub mod library;
mod loops;
mod matrix;
mod recipe;
pub mod reproduce;
mod sparse;
mod training;

pub use checkpoint::CheckpointError;
pub use data::{DataError, DataPart, DataSet};
pub use jobs::{End, Existing, Job, Progress, Session, TrainError, TrainingOutcome};
pub use recipe::{Recipe, RecipeError};
pub use training::{Epoch, Training};
