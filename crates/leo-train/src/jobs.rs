//! Networks to train, one or many, each on a core of its own.
//!
//! A network's weights and velocities stay in the cache of the core that trains it, and nothing that another
//! core does can change them: the result is the same, bit for bit, whatever is trained beside it.
//!
//! Beside the ONNX file that a job makes lies a checkpoint until it is done, so that a job that was killed can go on.
//! The finished file carries the recipe and the result in its metadata.

use std::fs;
use std::io;
use std::num::NonZeroUsize;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use leo_formats::onnx::{Document, Export, Float};
use leo_formats::{FileError, Format, Model, Problem, write_atomically};
use leo_network::Network;
use serde::{Deserialize, Serialize};

use crate::checkpoint::CheckpointError;
use crate::data::DataSet;
use crate::recipe::{Recipe, RecipeError};
use crate::training::Training;

/// The key of an ONNX file's metadata under which the recipe is.
const RECIPE: &str = "leo.recipe";
/// The key of an ONNX file's metadata under which the fingerprint of the data set is.
const DATA: &str = "leo.data";
/// The key of an ONNX file's metadata under which is what came of the training.
const RESULT: &str = "leo.result";

/// A network to train.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// How.
    pub recipe: Recipe,
    /// The ONNX file to write.
    pub path: PathBuf,
}

/// What came of a training.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrainingOutcome {
    /// The mean negative log-likelihood over the last epoch.
    pub loss: f64,
    /// The share of the training set that was right in the last epoch.
    pub train_accuracy: f64,
    /// The share of the test set that the finished network gets right.
    pub test_accuracy: f64,
}

/// How a job ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum End {
    /// The network is there.
    Done(TrainingOutcome),
    /// It was told to stop; there is a checkpoint, unless it had not begun.
    Stopped,
    /// The weights grew beyond all bounds in this epoch; there is no file.
    Diverged(u32),
}

/// What happens to files that are there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Existing {
    /// Networks are replaced, and checkpoints refused: they may be hours of work.
    Replace,
    /// Networks that are done stay, and checkpoints are gone on from.
    Continue,
}

/// Hears how the jobs go, from several threads at once.
pub trait Progress: Sync {
    /// A job begins, of which `_epochs` epochs are done already.
    fn begins(&self, _job: &Job, _epochs: u32) {}
    /// A job has done another epoch.
    fn epoch(&self, _job: &Job, _training: &Training<'_>) {}
    /// A job is done.
    fn done(&self, _job: &Job, _outcome: &TrainingOutcome) {}
}

/// Why a network could not be trained.
#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    /// The recipe cannot be followed.
    #[error(transparent)]
    Recipe(#[from] RecipeError),
    /// A file could not be written.
    #[error(transparent)]
    File(#[from] FileError),
    /// The checkpoint could not be read or removed.
    #[error("{}: {error}", .path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// A training was stopped here, and this one should start anew.
    #[error("{}: is from a training that was stopped; add --resume to go on with it, or remove it", .0.display())]
    Unfinished(PathBuf),
    /// The checkpoint is of no use.
    #[error("{}: {error}; remove it to start anew", .path.display())]
    Checkpoint {
        /// Which file.
        path: PathBuf,
        /// Why.
        error: CheckpointError,
    },
    /// There is a network already, and it is another one.
    #[error("{}: is there already, and {why}; remove it, or choose another place", .path.display())]
    Other {
        /// Which file.
        path: PathBuf,
        /// What is different.
        why: String,
    },
}

/// What all jobs share.
pub struct Session<'a> {
    /// What to train on.
    pub data: &'a DataSet,
    /// How many networks to train at once.
    pub threads: NonZeroUsize,
    /// What happens to files that are there already.
    pub existing: Existing,
    /// How long a training may go on without a new checkpoint.
    pub checkpoint_every: Duration,
    /// Once this is set, each training writes a checkpoint at the end of its epoch and stops.
    pub stop: &'a AtomicBool,
    /// Who wants to know.
    pub progress: &'a dyn Progress,
}

impl Session<'_> {
    /// Does all jobs, in their order as far as that goes.
    ///
    /// # Errors
    /// If a file cannot be read or written, or is another one than a job expects. The other trainings then stop as if
    /// they were told to.
    pub fn train(&self, jobs: &[Job]) -> Result<Vec<End>, TrainError> {
        let next = AtomicUsize::new(0);
        let failed = AtomicBool::new(false);
        let stops = || self.stop.load(Ordering::Relaxed) || failed.load(Ordering::Relaxed);
        let work = || -> Result<Vec<(usize, End)>, TrainError> {
            let mut ends = Vec::new();
            while !stops() {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(job) = jobs.get(index) else { break };
                let end = job.train(self, &stops).inspect_err(|_| failed.store(true, Ordering::Relaxed))?;
                ends.push((index, end));
            }
            Ok(ends)
        };
        let mut all = vec![End::Stopped; jobs.len()];
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads.get().min(jobs.len())).map(|_| scope.spawn(work)).collect();
            for thread in threads {
                for (index, end) in thread.join().unwrap_or_else(|panic| resume_unwind(panic))? {
                    all[index] = end;
                }
            }
            Ok(all)
        })
    }
}

impl Job {
    /// Where the checkpoint lies until the network is done.
    pub fn checkpoint(&self) -> PathBuf {
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".checkpoint");
        self.path.with_file_name(name)
    }

    fn train(&self, session: &Session<'_>, stops: &dyn Fn() -> bool) -> Result<End, TrainError> {
        let Session { progress, checkpoint_every, .. } = session;
        let mut training = match self.start(session)? {
            Start::Training(training) => *training,
            Start::Done(outcome) => {
                progress.begins(self, self.recipe.epochs);
                progress.done(self, &outcome);
                return Ok(End::Done(outcome));
            }
        };
        progress.begins(self, training.epochs());
        let mut saved: Option<Instant> = None;
        while !training.is_done() {
            let stop = stops();
            // The first one comes at once: a place where nothing can be written should not be found out at the end.
            if stop || saved.is_none_or(|saved| saved.elapsed() >= *checkpoint_every) {
                write_atomically(&self.checkpoint(), &training.checkpoint())?;
                saved = Some(Instant::now());
            }
            if stop {
                return Ok(End::Stopped);
            }
            if !training.epoch().loss.is_finite() {
                break;
            }
            progress.epoch(self, &training);
        }
        // A weight that is not finite makes no network.
        let (true, Ok(network)) = (training.is_done(), training.network()) else {
            self.remove_checkpoint()?;
            return Ok(End::Diverged(training.epochs()));
        };
        let outcome = TrainingOutcome {
            loss: training.last().loss,
            train_accuracy: training.last().accuracy,
            test_accuracy: training.test_accuracy(),
        };
        self.write(&network, training.data(), &outcome)?;
        self.remove_checkpoint()?;
        progress.done(self, &outcome);
        Ok(End::Done(outcome))
    }

    /// Finds out what is there already.
    fn start<'a>(&self, session: &Session<'a>) -> Result<Start<'a>, TrainError> {
        let path = self.checkpoint();
        let checkpoint = match fs::read(&path) {
            Ok(bytes) => Some(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(TrainError::Io { path, error }),
        };
        if session.existing == Existing::Replace {
            return match checkpoint {
                Some(_) => Err(TrainError::Unfinished(path)),
                None => Ok(Start::Training(Box::new(Training::new(self.recipe.clone(), session.data)?))),
            };
        }
        let finished = self.path.exists().then(|| self.outcome(session.data));
        let resume = |bytes: Vec<u8>| Training::resume(self.recipe.clone(), session.data, &bytes);
        match (finished, checkpoint.map(resume)) {
            // What was killed between writing the one and removing the other has both.
            (Some(Ok(outcome)), _) => {
                self.remove_checkpoint()?;
                Ok(Start::Done(outcome))
            }
            (_, Some(Ok(training))) => Ok(Start::Training(Box::new(training))),
            (Some(Err(error)), _) => Err(error),
            (None, Some(Err(error))) => Err(TrainError::Checkpoint { path, error }),
            (None, None) => Ok(Start::Training(Box::new(Training::new(self.recipe.clone(), session.data)?))),
        }
    }

    fn remove_checkpoint(&self) -> Result<(), TrainError> {
        let path = self.checkpoint();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(TrainError::Io { path, error }),
            _ => Ok(()),
        }
    }

    fn write(&self, network: &Network, data: &DataSet, outcome: &TrainingOutcome) -> Result<(), TrainError> {
        let export = Export {
            float: Float::F32,
            input: "input".to_owned(),
            outputs: vec!["logits".to_owned()],
            metadata: vec![
                (RECIPE.to_owned(), serde_json::to_string(&self.recipe).unwrap_or_default()),
                (DATA.to_owned(), data.fingerprint().to_owned()),
                (RESULT.to_owned(), serde_json::to_string(outcome).unwrap_or_default()),
            ],
        };
        let bytes = Document::from_network(network, &export).and_then(|document| document.to_bytes());
        let bytes = bytes.map_err(|error| Problem::from(error).in_file(&self.path))?;
        Ok(write_atomically(&self.path, &bytes)?)
    }

    /// Reads what came of the job from the file that it made.
    fn outcome(&self, data: &DataSet) -> Result<TrainingOutcome, TrainError> {
        let other = |why: String| TrainError::Other { path: self.path.clone(), why };
        let model = Model::load(&self.path)?;
        let Format::Onnx(document) = model.format() else { return Err(other("is no ONNX file".to_owned())) };
        let metadata = |key: &str| {
            let entries = document.model().metadata_props.iter();
            entries.filter(|entry| entry.key() == key).map(|entry| entry.value()).next()
        };
        let (Some(recipe), Some(fingerprint), Some(outcome)) = (metadata(RECIPE), metadata(DATA), metadata(RESULT))
        else {
            return Err(other("does not come from `leo train`".to_owned()));
        };
        let unreadable = |error: serde_json::Error| other(format!("its metadata cannot be read: {error}"));
        let recipe: Recipe = serde_json::from_str(recipe).map_err(unreadable)?;
        if recipe != self.recipe {
            return Err(other(format!("was trained with another recipe: {}", recipe.differences(&self.recipe))));
        }
        if fingerprint != data.fingerprint() {
            return Err(other("was trained on another data set".to_owned()));
        }
        serde_json::from_str(outcome).map_err(unreadable)
    }
}

/// Where a job begins.
enum Start<'d> {
    Training(Box<Training<'d>>),
    Done(TrainingOutcome),
}
