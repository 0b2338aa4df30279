//! `leo check`

use std::io::Write;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use leo_check::{Certificate, Exact, HashedModel, Refusal, Verified, verify_with_observer};
use leo_formats::read_text_file;
use leo_network::Numbers;
use serde::Serialize;

use crate::args::Check;
use crate::request::domain::DomainSummary;
use crate::request::files;
use crate::terminal::console::{Console, good};
use crate::terminal::number::upper;
use crate::terminal::output::{Negative, listed, one_line, operators};
use crate::terminal::progress::CheckBar;

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
    /// The operators after the networks: what is said of outputs is said of what these read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    before: Vec<String>,
    /// If it is verified: the inputs, for each output the largest number that the certificate says of its elements, and that was proved; and all that it says.
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
    let path = arguments.certificate.clone().unwrap_or_else(|| files::certificate_of(&arguments.small));
    let reading = console.phase("reading");
    let [first, second] = [HashedModel::load(&arguments.model)?, HashedModel::load(&arguments.small)?];
    ensure!(
        arguments.certificate.is_some() || path.exists(),
        "{}: there is no certificate beside the smaller network; name it as the third file",
        path.display()
    );
    let certificate = Certificate::from_bytes(&read_text_file(&path)?).with_context(|| path.display().to_string())?;
    drop(reading);
    let verify = if arguments.exact { verify_with_observer::<Exact> } else { verify_with_observer::<f64> };
    let bar = CheckBar::new(console);
    let checked = verify(&first, &second, &certificate, &bar);
    drop(bar);
    let verified = checked.as_ref().ok();
    let report = Report {
        version: 1,
        model: arguments.model.display().to_string(),
        small: arguments.small.display().to_string(),
        certificate: path.display().to_string(),
        exact: arguments.exact,
        verified: verified.is_some(),
        before: operators(first.model.tail()),
        domain: verified.map(|verified| DomainSummary::new(&verified.domain)),
        delta: verified.map(|verified| verified.delta.iter().map(Numbers::largest).collect()),
        proved: verified.map(largest_proved),
        elements: verified.map(|verified| verified.delta.clone()),
        delta_f32: verified.and_then(|verified| verified.delta_f32.clone()),
        refused: checked.as_ref().err().map(Refusal::to_string),
        seconds: start.elapsed().as_secs_f64(),
    };
    if arguments.json {
        console.json(&report)?;
    } else if let Ok(verified) = &checked {
        let out = &mut console.report();
        writeln!(out, "{}", report.sentence(verified))?;
        if console.is_verbose() {
            for (output, (delta, proved)) in verified.delta.iter().zip(largest_proved(verified)).enumerate() {
                let (delta, proved) = (upper(delta.largest()), upper(proved));
                writeln!(out, "  output {output}: within {delta}, proved to be within {proved}")?;
            }
            if let Some(single) = &verified.delta_f32 {
                let single = upper(single.iter().map(Numbers::largest).fold(0.0, f64::max));
                writeln!(out, "  evaluated in single precision, in any order of summation: within {single}")?;
            }
            writeln!(out, "{:.1} ms", 1e3 * report.seconds)?;
        }
    }
    match checked {
        Ok(_) => Ok(()),
        Err(refusal) => {
            // Doubles are rounded in another way on another processor, and a bound that just holds may then just fail.
            let hint = match refusal {
                Refusal::Delta { delta, proved, .. } if !arguments.exact && proved < 2.0 * delta => "; try --exact",
                _ => "",
            };
            Err(Negative(format!("refused: {}: {refusal}{hint}", path.display())).into())
        }
    }
}

/// For each output, the largest number that was proved of its elements.
fn largest_proved(verified: &Verified) -> Vec<f64> {
    verified.proved.iter().map(|proved| proved.iter().copied().fold(0.0, f64::max)).collect()
}

impl Report {
    /// What was proved.
    fn sentence(&self, verified: &Verified) -> String {
        let [model, mut small] = [&self.model, &self.small].map(|name| one_line(name));
        if !self.before.is_empty() {
            small += &format!(", before {},", listed(&self.before));
        }
        let domain = DomainSummary::new(&verified.domain);
        let delta = verified.delta.iter().map(Numbers::largest).fold(0.0, f64::max);
        let arithmetic = if self.exact { ", without any rounding" } else { "" };
        let claim = match delta {
            0.0 => format!("all outputs of {small} are exactly those of {model} in real arithmetic"),
            _ => format!("no output of {small} is further than {} from that of {model}", upper(delta)),
        };
        format!("{}{arithmetic}: for all inputs of the domain ({domain}) {claim}", good("verified"))
    }
}
