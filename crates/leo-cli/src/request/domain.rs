//! From arguments to a domain.

use std::ffi::OsStr;
use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use leo_formats::ArrayFile;
use leo_formats::read_domain;
use leo_formats::vnnlib::NonBox;
use leo_formats::{Format, Model};
use leo_network::{Array, Domain};
use serde::Serialize;

use crate::args::DomainArguments;
use crate::request::samples;
use crate::terminal::output::counted;

/// The domain that the arguments ask for, checked against the model; an NNet file's own where they ask for none.
pub fn load(arguments: &DomainArguments, model: &Model) -> Result<Option<Domain>> {
    let inputs = model.network().input().elements();
    let (domain, source) = match (&arguments.domain, &arguments.data, model.format()) {
        (Some(spec), _, _) => (from_spec(spec, inputs, arguments.hull)?, format!("--domain {}", spec.display())),
        (None, Some(path), _) => {
            let source = path.display().to_string();
            let samples = samples::load(path, arguments.divide, model)?;
            (Domain::of_samples(&samples, model.network().input()).with_context(|| source.clone())?, source)
        }
        // The file's own box is shown if there is one; a file without one is a network all the same.
        (None, None, Format::Nnet(nnet)) => match nnet.domain() {
            Ok(domain) => (domain, "the file's own domain".to_owned()),
            Err(_) => return Ok(None),
        },
        (None, None, _) if arguments.margin.is_some() => bail!("--margin widens a domain: give --domain or --data too"),
        (None, None, _) => return Ok(None),
    };
    let domain = domain.for_inputs(inputs).context(source)?;
    Ok(Some(match arguments.margin {
        Some(margin) => domain.widened(margin).context("--margin")?,
        None => domain,
    }))
}

/// `0,1`, perhaps in brackets; `lo.npy,hi.npy`; or a file.
fn from_spec(spec: &OsStr, inputs: usize, hull: bool) -> Result<Domain> {
    let load = || Ok(read_domain(Path::new(spec), if hull { NonBox::Hull } else { NonBox::Refuse })?);
    // Neither numbers nor two names, then.
    let Some(spec) = spec.to_str() else { return load() };
    let bare = spec.trim();
    let bare = bare.strip_prefix('[').and_then(|bare| bare.strip_suffix(']')).unwrap_or(bare);
    let halves: Vec<&str> = bare.split(',').map(str::trim).collect();
    let numbers: Vec<Option<f64>> = halves.iter().map(|half| half.parse().ok()).collect();
    ensure!(
        !hull || halves.len() == 1 || Path::new(spec).is_file(),
        "--hull is about .vnnlib files, and --domain {spec} is none"
    );
    match (&halves[..], &numbers[..]) {
        (_, &[Some(lo), Some(hi)]) => {
            ensure!(lo.is_finite() && hi.is_finite(), "--domain {spec}: bounds must be finite");
            ensure!(lo <= hi, "--domain {spec}: the lower bound is above the upper bound");
            Ok(Domain::uniform(inputs, lo, hi)?)
        }
        // A comma may also be part of a name.
        (_, [None, ..]) if Path::new(spec).is_file() => load(),
        (&[lo, hi], [None, None]) if !lo.is_empty() && !hi.is_empty() => {
            let (lo, hi) = (Array::load(Path::new(lo))?, Array::load(Path::new(hi))?);
            Domain::between(&lo, &hi).with_context(|| format!("--domain {spec}"))
        }
        ([_], [None]) => load(),
        _ => bail!("--domain {spec}: should be LO,HI or lo.npy,hi.npy or a .vnnlib or .nnet file"),
    }
}

/// A domain, as people and programs read it.
#[derive(Serialize)]
pub struct DomainSummary {
    inputs: usize,
    /// Inputs that can take one value only.
    fixed: usize,
    /// The smallest lower bound, and the largest upper bound.
    lo: f64,
    hi: f64,
    /// The bounds of every input.
    lower: Vec<f64>,
    upper: Vec<f64>,
}

impl DomainSummary {
    pub fn new(domain: &Domain) -> Self {
        Self {
            inputs: domain.len(),
            fixed: domain.hull().lo().iter().zip(domain.hull().hi()).filter(|(lo, hi)| lo == hi).count(),
            lo: domain.hull().lo().iter().copied().fold(f64::INFINITY, f64::min),
            hi: domain.hull().hi().iter().copied().fold(f64::NEG_INFINITY, f64::max),
            lower: domain.hull().lo().to_vec(),
            upper: domain.hull().hi().to_vec(),
        }
    }
}

impl fmt::Display for DomainSummary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fixed = if self.fixed == 0 { String::new() } else { format!(", {} of them fixed", self.fixed) };
        write!(formatter, "{}{fixed}, within [{}, {}]", counted(self.inputs, "input"), self.lo, self.hi)
    }
}
