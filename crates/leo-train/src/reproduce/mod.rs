//! The paper's experiment: 31 networks in each of nine settings, and its Tables 1 and 2 beside ours.
//!
//! Everything lives in one folder: the networks, from which a later run goes on, and the tables. Leo trains the
//! networks, measures their accuracy, finds their stable units, and compresses them: as the paper does, and by the
//! normal form.

mod paper;
mod plot;
mod tables;

use std::fs::create_dir_all;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use leo_compress::{CompressError, Method, Tolerance, compress};
use leo_formats::{FileError, Format, Model, write_atomically};
use leo_network::{Domain, DomainError};
use leo_stability::{AnalysisOptions, Status, analyze};
use serde::Serialize;

pub use paper::{Estimate, Measure, PAPER, Published, Setting};
pub use tables::{Line, Tables};

use crate::jobs::{End, Job, Session, TrainError, TrainingOutcome};
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
pub struct ExperimentNetwork {
    /// Which of the settings.
    pub setting: Setting,
    /// Its seed.
    pub seed: u64,
    /// Its file, in the experiment's folder.
    pub file: String,
    /// What came of its training.
    pub outcome: TrainingOutcome,
    /// What its units are on [0, 1].
    pub stability: Stability,
    /// What each way of compressing removes, in the order of [`Way::ALL`].
    pub removed: [RemovedCounts; 3],
}

/// A way of compressing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// As in the paper.
    Leo,
    /// The normal form, without approximations.
    FullExact,
    /// The normal form, with approximations that single precision cannot show.
    Full,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Leo, Self::FullExact, Self::Full];

    /// How its column is headed.
    pub fn title(self) -> &'static str {
        match self {
            Self::Leo => "LEO",
            Self::FullExact => "full, tolerance 0",
            Self::Full => "full",
        }
    }

    /// What files call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Leo => "leo",
            Self::FullExact => "full_tolerance_0",
            Self::Full => "full",
        }
    }

    fn options(self) -> leo_compress::CompressOptions<'static> {
        let (method, tolerance) = match self {
            Self::Leo => (Method::Leo, None),
            Self::FullExact => (Method::Full, Some(Tolerance::Zero)),
            Self::Full => (Method::Full, None),
        };
        leo_compress::CompressOptions { method, tolerance, ..leo_compress::CompressOptions::default() }
    }
}

/// What compressing a network with two hidden layers removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct RemovedCounts {
    /// How many units of each layer.
    pub units: [usize; 2],
    /// Of how many there are, in both layers.
    pub of: usize,
    /// Proved: no output moves by more.
    pub delta: f64,
    /// How long it took, from finding stable units to proving that.
    pub seconds: f64,
}

impl RemovedCounts {
    fn by(way: Way, model: &Model, domain: &Domain) -> Result<Self, ReproduceError> {
        let Format::Onnx(document) = model.format() else { return Ok(Self::default()) };
        let start = Instant::now();
        let compressed = compress(document, domain, &way.options())?;
        let seconds = start.elapsed().as_secs_f64();
        let (before, after) = (document.network(), compressed.document.network());
        let mut removed = Self { delta: compressed.largest_delta(), seconds, ..Self::default() };
        for (units, layer) in removed.units.iter_mut().zip(before.layers()) {
            // Layers keep their names. One that is not there has lost all its units.
            let name = before.node_of(layer).name();
            let same = after.layers().find(|&layer| after.node_of(layer).name() == name);
            *units = before.width(layer) - same.map_or(0, |layer| after.width(layer));
            removed.of += before.width(layer);
        }
        Ok(removed)
    }

    /// In percent.
    fn share(&self) -> f64 {
        100.0 * self.units.iter().sum::<usize>() as f64 / self.of.max(1) as f64
    }
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
    fn of(model: &Model, domain: &Domain) -> Result<Self, ReproduceError> {
        let mut stability = Self::default();
        let analysis = analyze(model.network(), domain, &AnalysisOptions::default())?;
        for (layer, found) in analysis.layers.iter().enumerate().take(2) {
            for unit in &found.units {
                match unit.status {
                    Status::OFF => stability.inactive[layer] += 1,
                    Status::Stable(_) => stability.active[layer] += 1,
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

impl ExperimentNetwork {
    /// What is known of it. Some measures depend on the way it is compressed, and some do not.
    pub fn get(&self, measure: Measure, way: Way) -> f64 {
        let removed = &self.removed[way as usize];
        match measure {
            Measure::Accuracy => 100.0 * self.outcome.test_accuracy,
            Measure::ActiveFirst => self.stability.active[0] as f64,
            Measure::ActiveSecond => self.stability.active[1] as f64,
            Measure::Stability => self.stability.stable(),
            Measure::RemovedFirst => removed.units[0] as f64,
            Measure::RemovedSecond => removed.units[1] as f64,
            Measure::Compression => removed.share(),
            Measure::Runtime => removed.seconds,
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
    /// A network could not be compressed.
    #[error(transparent)]
    Compress(#[from] CompressError),
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

    /// Trains what is not trained yet, compresses it, and writes the tables. The session should go on from what is
    /// there. `compressed` is told how many networks are compressed, and of how many.
    ///
    /// # Errors
    /// If a file cannot be written, the folder holds networks of another experiment, or a training diverges.
    pub fn run(
        &self,
        folder: &Path,
        session: &Session<'_>,
        compressed: impl Fn(usize, usize),
    ) -> Result<Tables, ReproduceError> {
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
            let model = Model::load(path)?;
            let domain = Domain::uniform(model.network().input().elements(), 0.0, 1.0)?;
            let stability = Stability::of(&model, &domain)?;
            let [leo, exact, full] = Way::ALL.map(|way| RemovedCounts::by(way, &model, &domain));
            let removed = [leo?, exact?, full?];
            done.push(ExperimentNetwork {
                setting,
                seed: recipe.seed,
                file: recipe.file_name(),
                outcome,
                stability,
                removed,
            });
            compressed(done.len(), jobs.len());
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
