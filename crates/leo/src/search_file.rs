//! A search that is kept in a file, so that another one can go on from there.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use leo_formats::{FileError, read_text_file, write_atomically};
use leo_network::{Domain, Observer, Step, WrittenDomain};
use leo_stability::Checkpoint;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Error, ModelFile};

/// What the format is called.
const FORMAT: &str = "leo search";
/// The version that is written and read here.
const VERSION: u32 = 2;

/// What every version has.
#[derive(Deserialize)]
struct FormatHead {
    format: String,
    version: u32,
}

/// What is in the file.
#[derive(Serialize, Deserialize)]
struct Content {
    format: String,
    version: u32,
    /// The SHA-256 of the network's file.
    network: String,
    domain: WrittenDomain,
    /// The checkpoint.
    state: Box<RawValue>,
}

/// The file of a search.
pub(crate) struct SearchFile {
    path: PathBuf,
    network: String,
    domain: WrittenDomain,
    /// What the file had, if there was one.
    found: Option<Checkpoint>,
    /// What became of the attempt to write it.
    written: Mutex<Result<(), FileError>>,
}

impl SearchFile {
    /// Reads a file, if it is there; else makes it.
    ///
    /// # Errors
    /// If it is something else, or about another network or domain, or cannot be written.
    pub(crate) fn open(path: &Path, model: &ModelFile, domain: &Domain) -> Result<Self, Error> {
        let shape = model.model().given_shape().map(|extents| format!(" for inputs of shape {extents:?}"));
        let (network, domain) = (model.sha256().to_owned() + &shape.unwrap_or_default(), domain.written());
        let found = if path.exists() { Some(read(path, &network, &domain)?) } else { None };
        let file = Self { path: path.to_owned(), network, domain, found, written: Mutex::new(Ok(())) };
        if file.found.is_none() {
            // Better to know now than in the end whether it can be written.
            let nothing = serde_json::value::to_raw_value(&Checkpoint::default());
            file.write(nothing.map_err(|error| Error::Mistake(error.to_string()))?)?;
        }
        Ok(file)
    }

    /// What there is to go on from.
    pub(crate) fn checkpoint(&self) -> Option<&Checkpoint> {
        self.found.as_ref()
    }

    fn write(&self, state: Box<RawValue>) -> Result<(), FileError> {
        let (format, network, domain) = (FORMAT.to_owned(), self.network.clone(), self.domain.clone());
        let content = Content { format, version: VERSION, network, domain, state };
        let bytes = serde_json::to_vec(&content).expect("names, numbers and what was JSON before have a form in JSON");
        write_atomically(&self.path, &bytes)
    }

    /// Whether it could be written.
    ///
    /// # Errors
    /// If not.
    pub(crate) fn finish(&self) -> Result<(), Error> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(std::mem::replace(&mut *written, Ok(()))?)
    }
}

/// What a file has, if it is about this network and this domain.
fn read(path: &Path, network: &str, domain: &WrittenDomain) -> Result<Checkpoint, Error> {
    let bytes = read_text_file(path)?;
    let about = |error: &str| Error::Request(format!("{}: {error}", path.display()));
    let unfit =
        |error: serde_json::Error| about(&format!("is not the file of a search that --resume can go on with: {error}"));
    let FormatHead { format, version } = serde_json::from_slice(&bytes).map_err(unfit)?;
    if format != FORMAT || version != VERSION {
        return Err(about("is the file of a search by another version of Leo"));
    }
    let content: Content = serde_json::from_slice(&bytes).map_err(unfit)?;
    if content.network != network {
        return Err(about("is a search about another network"));
    }
    if content.domain != *domain {
        return Err(about("is a search about another domain"));
    }
    Checkpoint::from_bytes(content.state.get().as_bytes()).map_err(unfit)
}

/// Watches a search, and keeps its checkpoints in a file.
pub(crate) struct Keeper<'a> {
    pub(crate) observer: &'a dyn Observer,
    pub(crate) file: Option<&'a SearchFile>,
}

impl Observer for Keeper<'_> {
    fn begin(&self, step: Step, parts: usize) {
        self.observer.begin(step, parts);
    }

    fn advance(&self, parts: usize) {
        self.observer.advance(parts);
    }

    fn is_stopped(&self) -> bool {
        self.observer.is_stopped()
    }

    fn keeps(&self) -> bool {
        self.file.is_some() || self.observer.keeps()
    }

    fn keep(&self, checkpoint: &[u8]) {
        self.observer.keep(checkpoint);
        if let Some(file) = self.file
            && let Ok(state) = serde_json::from_slice(checkpoint)
        {
            *file.written.lock().unwrap_or_else(PoisonError::into_inner) = file.write(state);
        }
    }
}
