//! From arguments to a domain.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use leo_network::vnnlib::Otherwise;
use leo_network::{Array, Domain, Format, Model};

use crate::args::DomainArguments;

/// The domain that the arguments ask for, checked against the model; an NNet file's own where they ask for none.
pub fn load(arguments: &DomainArguments, model: &Model) -> Result<Option<Domain>> {
    let inputs = model.network().input().elements();
    let (domain, source) = match (&arguments.domain, &arguments.data, model.format()) {
        (Some(spec), _, _) => {
            let source = format!("--domain {spec}");
            (from_spec(spec, inputs, arguments.hull).with_context(|| source.clone())?, source)
        }
        (None, Some(path), _) => {
            let source = path.display().to_string();
            (Domain::of_samples(&samples(path, arguments.divide)?).with_context(|| source.clone())?, source)
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

/// Reads samples, divided if that is asked for.
pub fn samples(path: &Path, divide: Option<f64>) -> Result<Array> {
    let samples = Array::load(path)?;
    match divide {
        None => Ok(samples),
        Some(divisor) if divisor.is_finite() && divisor != 0.0 => Ok(samples.divided(divisor)),
        Some(divisor) => bail!("--divide {divisor}: the divisor must be finite and not 0"),
    }
}

fn from_spec(spec: &str, inputs: usize, hull: bool) -> Result<Domain> {
    if let Some((lo, hi)) = spec.split_once(',') {
        return match (lo.trim().parse(), hi.trim().parse()) {
            (Ok(lo), Ok(hi)) => Ok(Domain::uniform(inputs, lo, hi)?),
            _ => Ok(Domain::load(Path::new(lo), Path::new(hi))?),
        };
    }
    let path = Path::new(spec);
    let name = spec.to_lowercase();
    match name.strip_suffix(".gz").unwrap_or(&name).rsplit_once('.') {
        Some((_, "vnnlib")) => Ok(Domain::load_vnnlib(path, if hull { Otherwise::Hull } else { Otherwise::Refuse })?),
        Some((_, "nnet")) => match Model::load(path)?.format() {
            Format::Nnet(nnet) => Ok(nnet.domain()?),
            _ => Err(anyhow!("is no NNet file")),
        },
        _ => bail!("should be LO,HI or lo.npy,hi.npy or a file ending in .vnnlib or .nnet"),
    }
}
