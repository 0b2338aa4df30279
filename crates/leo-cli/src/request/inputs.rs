//! From arguments to the inputs that matter: the domain, and samples to begin with.

use anyhow::{Context, Result, anyhow};
use leo::{Array, ModelFile, SampleCount};
use leo_network::Domain;

use crate::args::DomainArguments;
use crate::request::domain;
use crate::terminal::output::{counted, grouped};

/// The inputs that matter.
pub struct Inputs {
    pub domain: Domain,
    /// Some of them, or near them.
    pub samples: Option<Array>,
    /// The file that an error about them should name.
    pub source: String,
}

/// The inputs that the arguments ask for; the own ones of the first network that has some where they ask for none.
pub fn load(arguments: &DomainArguments, files: &[&ModelFile]) -> Result<Inputs> {
    let first = files[0];
    let mut domain = None;
    for file in files {
        domain = domain.map_or_else(|| domain::load(arguments, file.model()), |found| Ok(Some(found)))?;
    }
    let domain = domain.context(
        "give the inputs that matter: --domain LO,HI (0,1 if all are from 0 to 1), or see --help for other ways",
    )?;
    let source = arguments.data.as_deref().unwrap_or(first.path()).display().to_string();
    Ok(Inputs { samples: samples(arguments, first)?, domain, source })
}

/// The samples of --data, as a network takes them.
fn samples(arguments: &DomainArguments, file: &ModelFile) -> Result<Option<Array>> {
    let read = |path| leo::read_samples(path, arguments.divide, file.model());
    arguments.data.as_deref().map(read).transpose().map_err(divided)
}

/// What is wrong with samples, by the name of the argument.
pub fn divided(error: leo::Error) -> anyhow::Error {
    match error {
        leo::Error::Request(what) => anyhow!("--divide {what}"),
        other => other.into(),
    }
}

impl Inputs {
    /// What is wrong with what was asked for, by the names of the arguments.
    pub fn explain(&self, error: leo::Error) -> anyhow::Error {
        match error {
            leo::Error::About { about, error } if about == "labels" => anyhow!("--labels: {error}"),
            leo::Error::About { about, error } if about == "samples" => anyhow!("{}: {error}", self.source),
            error @ (leo::Error::Compress(_) | leo::Error::Equiv(_) | leo::Error::Domain(_)) => {
                anyhow!("{}: {error}", self.source)
            }
            other => other.into(),
        }
    }
}

/// What one should know of samples outside the domain, if there are any.
pub fn outside(samples: Option<SampleCount>) -> Option<String> {
    let SampleCount { count, outside } = samples.filter(|samples| samples.outside > 0)?;
    let (outside, count) = (grouped(outside), counted(count, "sample"));
    Some(format!("{outside} of {count} not in the domain: the points of it next to them are taken instead"))
}
