//! From arguments to the inputs that matter: the domain, and samples to begin with.

use std::path::Path;

use anyhow::{Context, Result};
use leo_formats::Model;
use leo_network::{Array, Domain};

use crate::args::DomainArguments;
use crate::request::domain;
use crate::request::samples::{self, SampleCount};

/// The inputs that matter.
pub struct Inputs {
    pub domain: Domain,
    /// Some of them, or near them.
    pub samples: Option<Array>,
    /// How many these are.
    pub counted: Option<SampleCount>,
    /// The file that an error about them should name.
    pub source: String,
}

/// The inputs that the arguments ask for; the own ones of the first network that has some where they ask for none.
pub fn load(arguments: &DomainArguments, models: &[(&Model, &Path)]) -> Result<Inputs> {
    let (first, file) = models[0];
    let mut domain = None;
    for (model, _) in models {
        domain = domain.map_or_else(|| domain::load(arguments, model), |found| Ok(Some(found)))?;
    }
    let domain = domain.context("give the inputs that matter: --domain LO,HI, or see --help for other ways")?;
    let source = arguments.data.as_deref().unwrap_or(file).display().to_string();
    let samples = arguments.data.as_deref().map(|path| samples::load(path, arguments.divide, first)).transpose()?;
    let counted = samples.as_ref().map(|samples| samples::count_outside(samples, &domain)).transpose();
    Ok(Inputs { counted: counted.with_context(|| source.clone())?, domain, samples, source })
}
