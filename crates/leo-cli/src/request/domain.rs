//! From arguments to a domain.

use anyhow::{Context, Result, anyhow, bail, ensure};
use leo::{Domain as Spec, DomainSummary, NonBox};
use leo_formats::{Format, Model};
use leo_network::Domain;

use crate::args::DomainArguments;
use crate::request::inputs::divided;
use crate::terminal::number;
use crate::terminal::output::counted;

/// The domain that the arguments ask for, checked against the model; an NNet file's own where they ask for none.
pub fn load(arguments: &DomainArguments, model: &Model) -> Result<Option<Domain>> {
    let (spec, source) = match (&arguments.domain, &arguments.data, model.format()) {
        (Some(text), _, _) => {
            let source = format!("--domain {}", text.display());
            ensure!(!arguments.hull || Spec::is_file(text), "--hull is about .vnnlib files, and {source} is none");
            let non_box = if arguments.hull { NonBox::Hull } else { NonBox::Refuse };
            let named = |error| match error {
                leo::Error::Request(what) => anyhow!("--domain {what}"),
                other => other.into(),
            };
            (Spec::parse_with(text, non_box).map_err(named)?, source)
        }
        (None, Some(path), _) => {
            let samples = leo::read_samples(path, arguments.divide, model).map_err(divided)?;
            (Spec::of_samples(samples), path.display().to_string())
        }
        // The file's own box is shown if there is one; a file without one is a network all the same.
        (None, None, Format::Nnet(nnet)) if nnet.domain().is_err() => return Ok(None),
        (None, None, Format::Nnet(_)) => (Spec::own(), "the file's own domain".to_owned()),
        (None, None, _) if arguments.margin.is_some() => bail!("--margin widens a domain: give --domain or --data too"),
        (None, None, _) => return Ok(None),
    };
    let domain = spec.for_model(model).context(source)?;
    Ok(Some(match arguments.margin {
        Some(margin) => domain.widened(margin).context("--margin")?,
        None => domain,
    }))
}

/// A domain, as people read it.
pub fn in_words(DomainSummary { inputs, shape, fixed, lo, hi, .. }: &DomainSummary) -> String {
    let shape = shape.as_ref().map_or_else(String::new, |shape| {
        format!(" of shape {}", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(" x "))
    });
    let fixed = if *fixed == 0 { String::new() } else { format!(", {fixed} of them fixed") };
    let (lo, hi) = (number::least(*lo), number::greatest(*hi));
    format!("{}{shape}{fixed}, within [{lo}, {hi}]", counted(*inputs, "input"))
}
