//! `leo check`

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use leo::{Certificate, DomainSummary, Refusal};
use leo_check::Verified;
use leo_formats::read_text_file;
use leo_network::Numbers;
use serde::Serialize;

use crate::args::Check;
use crate::request::{domain, model};
use crate::terminal::console::{Console, good};
use crate::terminal::number::upper;
use crate::terminal::output::{Negative, listed, one_line};
use crate::terminal::progress::Watcher;

/// The answer. Also the shape of the JSON: fields may join, these stay.
#[derive(Serialize)]
struct Report {
    version: u32,
    model: String,
    small: String,
    certificate: String,
    /// Whether nothing was rounded.
    exact: bool,
    verified: bool,
    /// How many constants each file lists as inputs, too: they are taken for the constants that they are.
    listed_constants: [usize; 2],
    /// The operators after the networks: what is said of outputs is said of what these read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
    /// If it is verified: the inputs, for each output the largest number that the certificate says of its elements, and
    /// that was proved; and all that it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    domain: Option<DomainSummary>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    proved: Option<Vec<f64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elements: Option<Vec<Numbers>>,
    /// The same for single precision, if the certificate says something of that.
    #[serde(skip_serializing_if = "Option::is_none")]
    delta_f32: Option<Vec<Numbers>>,
    /// Why it is refused, if it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    seconds: f64,
}

pub fn run(arguments: &Check, console: &Console) -> Result<()> {
    let start = Instant::now();
    let path = arguments.certificate.clone().unwrap_or_else(|| leo::certificate_of(&arguments.small));
    let reading = console.phase("reading");
    ensure!(
        arguments.certificate.is_some() || path.exists(),
        "{}: there is no certificate beside the smaller network; name it as the third file",
        path.display()
    );
    let certificate = Certificate::from_bytes(&read_text_file(&path)?).with_context(|| path.display().to_string())?;
    // What is claimed is claimed of this shape: nobody has to say it again.
    let shape = model::shape(&arguments.shape)?.or_else(|| certificate.given_shape());
    let open = |path| leo::open_for_shape(path, shape.as_ref());
    let [first, second] = [open(&arguments.model)?, open(&arguments.small)?];
    drop(reading);
    let watcher = Watcher::new(console);
    let checked = leo::check_with(&first, &second, &certificate, arguments.exact, &watcher);
    watcher.finish();
    let checked = match checked {
        Ok(checked) => Ok(checked.verified),
        Err(leo::Error::Refused(refusal)) => Err(*refusal),
        Err(other) => return Err(other.into()),
    };
    let listed_constants = [&first, &second].map(|file| file.model().listed_constants());
    let before = leo::operators_after(first.model());
    let report = Report::new(arguments, &path, (before, listed_constants), &checked, start);
    if arguments.json {
        console.json(&report)?;
    } else if let Ok(verified) = &checked {
        report.print(verified, console)?;
    }
    checked.map(drop).map_err(|refusal| refused(&refusal, &path, arguments.exact).into())
}

/// What is said of a certificate that is refused.
fn refused(refusal: &Refusal, path: &Path, exact: bool) -> Negative {
    // Doubles are rounded in another way on another processor, and a bound that just holds may then just fail.
    let hint = match *refusal {
        Refusal::Delta { delta, proved, .. } if !exact && proved < 2.0 * delta => "; try --exact",
        _ => "",
    };
    Negative(format!("refused: {}: {refusal}{hint}", path.display()))
}

/// For each output, the largest number that was proved of its elements.
fn largest_proved(verified: &Verified) -> Vec<f64> {
    verified.proved.iter().map(|proved| proved.iter().copied().fold(0.0, f64::max)).collect()
}

impl Report {
    fn new(
        arguments: &Check,
        certificate: &Path,
        (before, listed_constants): (Vec<String>, [usize; 2]),
        checked: &Result<Verified, Refusal>,
        start: Instant,
    ) -> Self {
        let verified = checked.as_ref().ok();
        Self {
            version: 1,
            model: arguments.model.display().to_string(),
            small: arguments.small.display().to_string(),
            certificate: certificate.display().to_string(),
            exact: arguments.exact,
            verified: verified.is_some(),
            listed_constants,
            before,
            domain: verified.map(|verified| DomainSummary::of_shape(&verified.domain, verified.shape.as_deref())),
            delta: verified.map(|verified| verified.delta.iter().map(Numbers::largest).collect()),
            proved: verified.map(largest_proved),
            elements: verified.map(|verified| verified.delta.clone()),
            delta_f32: verified.and_then(|verified| verified.delta_f32.clone()),
            refused: checked.as_ref().err().map(Refusal::to_string),
            seconds: start.elapsed().as_secs_f64(),
        }
    }

    fn print(&self, verified: &Verified, console: &Console) -> Result<()> {
        let out = &mut console.report();
        writeln!(out, "{}", self.sentence(verified))?;
        for (name, listed) in [&self.model, &self.small].into_iter().zip(self.listed_constants) {
            model::listed_constants(name, listed).map_or(Ok(()), |note| writeln!(out, "{note}"))?;
        }
        if !console.is_verbose() {
            return Ok(());
        }
        for (output, (delta, proved)) in verified.delta.iter().zip(largest_proved(verified)).enumerate() {
            let (delta, proved) = (upper(delta.largest()), upper(proved));
            writeln!(out, "  output {output}: within {delta}, proved to be within {proved}")?;
        }
        if let Some(single) = &verified.delta_f32 {
            let single = upper(single.iter().map(Numbers::largest).fold(0.0, f64::max));
            writeln!(out, "  evaluated in single precision, in any order of summation: within {single}")?;
        }
        writeln!(out, "{:.1} ms", 1e3 * self.seconds)?;
        Ok(())
    }

    /// What was proved.
    fn sentence(&self, verified: &Verified) -> String {
        let [model, mut small] = [&self.model, &self.small].map(|name| one_line(name));
        if !self.before.is_empty() {
            small += &format!(", before {},", listed(&self.before));
        }
        let domain = DomainSummary::of_shape(&verified.domain, verified.shape.as_deref());
        let delta = verified.delta.iter().map(Numbers::largest).fold(0.0, f64::max);
        let arithmetic = if self.exact { ", without any rounding" } else { "" };
        let claim = match delta {
            0.0 => format!("all outputs of {small} are exactly those of {model} in real arithmetic"),
            _ => format!("no output of {small} is further than {} from that of {model}", upper(delta)),
        };
        format!(
            "{}{arithmetic}: for all inputs of the domain ({}) {claim}",
            good("verified"),
            domain::in_words(&domain)
        )
    }
}
