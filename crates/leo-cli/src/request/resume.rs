//! A search that is kept in a file, so that another one can go on from there.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, ensure};
use leo_check::HashedModel;
use leo_formats::{read_text_file, write_atomically};
use leo_network::{Domain, WrittenDomain};
use leo_stability::{AnalysisOptions, Checkpoint, Keep};
use serde::{Deserialize, Serialize};

use crate::args::{EngineName, SearchArguments};
use crate::request::files;

/// What the format is called, and the version that is written and read here.
const FORMAT: &str = "leo search";
const VERSION: u32 = 2;

/// What every version has.
#[derive(Deserialize)]
struct Head {
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
    state: Checkpoint,
}

impl Content {
    fn write(&self, path: &Path) -> Result<()> {
        let bytes = serde_json::to_vec(self).with_context(|| path.display().to_string())?;
        Ok(write_atomically(path, &bytes)?)
    }
}

/// The file of a search.
pub struct Resume {
    path: PathBuf,
    /// Begins with what the file had, if there was one.
    content: Content,
    is_there: bool,
    /// What became of the attempt to write it.
    written: Mutex<Result<()>>,
}

impl Resume {
    /// Reads the file that is named, if it is there.
    ///
    /// # Errors
    /// If it is something else, or about another network or domain, or one of the other files.
    pub fn open<'a>(
        path: Option<&Path>,
        model: &Path,
        domain: &Domain,
        search: &SearchArguments,
        others: impl IntoIterator<Item = &'a Path>,
    ) -> Result<Option<Self>> {
        let Some(path) = path else { return Ok(None) };
        files::ensure_other(path, "--resume", others)?;
        ensure!(search.engine != EngineName::Milp, "--resume: not with --engine milp");
        let (network, domain) = (HashedModel::load(model)?.sha256, domain.written());
        let is_there = path.exists();
        let state = if is_there {
            let bytes = read_text_file(path)?;
            let name = || path.display().to_string();
            let unfit = || format!("{}: is not the file of a search that --resume can go on with", name());
            let Head { format, version } = serde_json::from_slice(&bytes).with_context(unfit)?;
            ensure!(
                format == FORMAT && version == VERSION,
                "{}: is the file of a search by another version of Leo",
                name()
            );
            let content: Content = serde_json::from_slice(&bytes).with_context(unfit)?;
            ensure!(content.network == network, "{}: is a search about another network", name());
            ensure!(content.domain == domain, "{}: is a search about another domain", name());
            content.state
        } else {
            Checkpoint::default()
        };
        let content = Content { format: FORMAT.to_owned(), version: VERSION, network, domain, state };
        if !is_there {
            // Better to know now than in the end whether it can be written.
            content.write(path)?;
        }
        Ok(Some(Self { path: path.to_owned(), content, is_there, written: Mutex::new(Ok(())) }))
    }

    /// The same options for a search that goes on from here, and is kept.
    pub fn options<'a>(&'a self, options: AnalysisOptions<'a>) -> AnalysisOptions<'a> {
        AnalysisOptions { state: self.is_there.then_some(&self.content.state), keep: Some(self), ..options }
    }

    /// Whether it could be written.
    ///
    /// # Errors
    /// If not.
    pub fn finish(&self) -> Result<()> {
        let mut written = self.written.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *written, Ok(()))
    }
}

impl Keep for Resume {
    fn keep(&self, state: Checkpoint) {
        let (network, domain) = (self.content.network.clone(), self.content.domain.clone());
        let content = Content { format: FORMAT.to_owned(), version: VERSION, network, domain, state };
        *self.written.lock().unwrap_or_else(PoisonError::into_inner) = content.write(&self.path);
    }
}
