//! The paper's experiment: 31 networks in each of nine settings, and its Tables 1 and 2 beside ours.
//!
//! Everything lives in one folder: the networks, from which a later run goes on, and the tables. Leo trains the networks, measures their accuracy and
//! finds their stable units; the columns about compression stay empty until it compresses.

mod paper;
mod plot;
mod tables;

use std::fs::create_dir_all;
use std::io;
use std::path::{Path, PathBuf};

use leo_network::{Domain, DomainError, FileError, Model, write_atomically};
use leo_stability::{Options, Status, analyze};
use serde::Serialize;

pub use paper::{Estimate, Measure, PAPER, Published, Setting};
pub use tables::{Line, Tables};

use crate::jobs::{End, Job, Outcome, Session, TrainError};
use crate::recipe::Recipe;

/// What to repeat of the paper's experiment.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// How many networks to train in each setting; their seeds are 0, 1, 2 and so on.
    pub networks: u64,
    /// The settings.
    pub settings: Vec<Published>,
    /// How many epochs to train each network.
    pub epochs: u32,
    /// What to call the data set in the tables.
    pub data: String,
    /// The command that runs it, to be named in the tables.
    pub command: String,
}

/// A network of the experiment and what came of it.
#[derive(Clone, Debug)]
pub struct Network {
    /// Which of the settings.
    pub setting: Setting,
    /// Its seed.
    pub seed: u64,
    /// Its file, in the experiment's folder.
    pub file: String,
    /// What came of its training.
    pub outcome: Outcome,
    /// What its units are on [0, 1].
    pub stability: Stability,
}

/// What the units of a network with two hidden layers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Stability {
    /// How many are proved to be always active, in each layer.
    pub active: [usize; 2],
    /// How many are proved to be always inactive, in each layer.
    pub inactive: [usize; 2],
    /// How many are undecided, in both layers.
    pub undecided: usize,
    /// How many there are, in both layers.
    pub units: usize,
}

impl Stability {
    fn of(path: &Path) -> Result<Self, ReproduceError> {
        let model = Model::load(path)?;
        let domain = Domain::uniform(model.network().input().elements(), 0.0, 1.0)?;
        let mut stability = Self::default();
        let analysis = analyze(model.network(), &domain, &Options::default())?;
        for (layer, found) in analysis.layers.iter().enumerate().take(2) {
            for unit in &found.units {
                match unit.status {
                    Status::Active => stability.active[layer] += 1,
                    Status::Inactive => stability.inactive[layer] += 1,
                    Status::Undecided => stability.undecided += 1,
                    Status::Unstable => {}
                }
            }
            stability.units += found.units.len();
        }
        Ok(stability)
    }

    /// In percent. Undecided units do not count.
    fn stable(&self) -> f64 {
        100.0 * self.active.iter().chain(&self.inactive).sum::<usize>() as f64 / self.units as f64
    }
}

impl Network {
    /// What is known of it.
    pub fn get(&self, measure: Measure) -> Option<f64> {
        match measure {
            Measure::Accuracy => Some(100.0 * self.outcome.test_accuracy),
            Measure::ActiveFirst => Some(self.stability.active[0] as f64),
            Measure::ActiveSecond => Some(self.stability.active[1] as f64),
            Measure::Stability => Some(self.stability.stable()),
            Measure::RemovedFirst | Measure::RemovedSecond | Measure::Compression | Measure::Runtime => None,
        }
    }
}

/// Why the experiment could not be repeated.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// A folder could not be made.
    #[error("{}: cannot be made: {error}", .folder.display())]
    Folder {
        /// Which folder.
        folder: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A network could not be trained.
    #[error(transparent)]
    Train(#[from] TrainError),
    /// A network could not be read, or a table could not be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A network has no weights that are numbers.
    #[error("{}: the training diverged in epoch {epoch}; the tables are without it", .path.display())]
    Diverged {
        /// The file that would have been written.
        path: PathBuf,
        /// When.
        epoch: u32,
    },
    /// A network's inputs are not what they should be.
    #[error(transparent)]
    Domain(#[from] DomainError),
}

impl Experiment {
    /// The networks to train into `folder`, all settings of a seed together, so that half an experiment is of use.
    pub fn jobs(&self, folder: &Path) -> Vec<Job> {
        let job = |seed, Setting { width, l1 }| {
            let recipe = Recipe { hidden: vec![width; 2], l1, seed, epochs: self.epochs, ..Recipe::default() };
            Job { path: folder.join(NETWORKS).join(recipe.file_name()), recipe }
        };
        let seeds = 0..self.networks;
        seeds.flat_map(|seed| self.settings.iter().map(move |line| job(seed, line.setting))).collect()
    }

    /// Trains what is not trained yet, and writes the tables of what is. The session should go on from what is there.
    ///
    /// # Errors
    /// If a file cannot be written, the folder holds networks of another experiment, or a training diverges.
    pub fn run(&self, folder: &Path, session: &Session<'_>) -> Result<Tables, ReproduceError> {
        let networks = folder.join(NETWORKS);
        create_dir_all(&networks).map_err(|error| ReproduceError::Folder { folder: networks, error })?;
        let jobs = self.jobs(folder);
        let ends = session.train(&jobs)?;
        let (mut done, mut diverged) = (Vec::new(), None);
        for (Job { recipe, path }, end) in jobs.iter().zip(ends) {
            let outcome = match end {
                End::Done(outcome) => outcome,
                End::Stopped => continue,
                End::Diverged(epoch) => {
                    diverged = Some(ReproduceError::Diverged { path: path.clone(), epoch });
                    continue;
                }
            };
            let setting = Setting { width: recipe.hidden[0], l1: recipe.l1 };
            let (seed, file, stability) = (recipe.seed, recipe.file_name(), Stability::of(path)?);
            done.push(Network { setting, seed, file, outcome, stability });
        }
        let tables = Tables::new(self, done);
        for (name, content) in [
            ("networks.csv", tables.networks_csv()),
            ("tables.csv", tables.csv()),
            ("tables.json", tables.json()),
            ("tables.md", tables.markdown()),
            (PLOT, plot::accuracy(&tables)),
        ] {
            write_atomically(&folder.join(name), content.as_bytes())?;
        }
        diverged.map_or(Ok(tables), Err)
    }
}

/// Where the networks are, in the experiment's folder.
const NETWORKS: &str = "networks";
/// The picture beside the tables.
const PLOT: &str = "accuracy.svg";
