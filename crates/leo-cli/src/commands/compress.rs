//! `leo compress`

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use comfy_table::CellAlignment::{Left, Right};
use leo_check::{Certificate, Sealed, verify};
use leo_compress::{CompressError, Compressed, Method, Options, Pinned, compress, largest_difference};
use leo_network::onnx::{Document, Float};
use leo_network::{Domain, Format, Model, write_atomically};
use serde::Serialize;

use crate::accuracy::{self, Accuracy};
use crate::args::{Compress, FloatName, MethodName};
use crate::console::Console;
use crate::domain::{self, Bounds};
use crate::interrupt::Interrupted;
use crate::output::{counted, grouped, is_same_file, listed, one_line};
use crate::progress::AnalysisBar;
use crate::samples::{self, Samples};
use crate::search;

/// What was done. Also the shape of the JSON: fields may join, these stay.
#[derive(Serialize)]
struct Report {
    version: u32,
    model: String,
    output: String,
    method: &'static str,
    tolerance: String,
    bit_exact: bool,
    domain: Bounds,
    /// With --data, what the samples were good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<Samples>,
    before: Size,
    after: Size,
    /// How many units each rule removed.
    removed: BTreeMap<&'static str, usize>,
    /// How many of the units that are there carry linear functions past their layer.
    carriers: usize,
    /// Layers that could not change, and why.
    kept: Vec<Kept>,
    /// Inputs that the new network does not depend on.
    unread_inputs: usize,
    /// Proved: no output moves by more, anywhere on the domain.
    delta: f64,
    delta_parts: Parts,
    /// The largest difference seen.
    observed: f64,
    undecided: usize,
    /// What stopped the search for stable units, if something did.
    stopped: Option<&'static str>,
    /// With --labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    accuracy: Option<Accuracy>,
    /// Where the proof was written.
    certificate: Option<String>,
    certificate_bytes: usize,
    /// Whether the certificate was checked. Without that nothing is written.
    checked: bool,
    seconds: f64,
    steps: Steps,
}

#[derive(Serialize)]
struct Size {
    /// The widths of the layers of ReLUs.
    hidden: Vec<usize>,
    units: usize,
    parameters: usize,
    multiply_adds: usize,
    bytes: usize,
}

impl Size {
    fn of(document: &Document) -> Result<Self> {
        let network = document.network();
        let hidden = network.hidden();
        Ok(Self {
            units: hidden.iter().sum(),
            hidden,
            parameters: network.parameters(),
            multiply_adds: network.multiply_adds(),
            bytes: document.to_bytes()?.len(),
        })
    }
}

#[derive(Serialize)]
struct Kept {
    layer: String,
    units: usize,
    reason: String,
}

/// Where delta comes from.
#[derive(Serialize)]
struct Parts {
    /// What was left out on purpose, within the tolerance.
    approximation: f64,
    /// Weights that had to be rounded.
    rounding: f64,
}

/// Seconds.
#[derive(Serialize)]
struct Steps {
    reading: f64,
    stability: f64,
    planning: f64,
    rewriting_and_checking: f64,
    comparing: f64,
    certifying: f64,
}

pub fn run(arguments: &Compress, console: &Console) -> Result<()> {
    let start = Instant::now();
    search::check(&arguments.search)?;
    let sealed = Sealed::load(&arguments.model)?;
    let model = &sealed.model;
    ensure!(!is_same_file(&arguments.model, &arguments.output), "-o: would overwrite the network; give another name");
    let certificate_path = certificate_path(arguments)?;
    let domain = domain::load(&arguments.domain, model)?;
    let domain = domain.context("give the inputs that matter: --domain LO,HI, or see --help for other ways")?;
    let data = arguments.domain.data.as_deref();
    let of_data = || data.unwrap_or(&arguments.model).display().to_string();
    let samples = data.map(|path| samples::load(path, arguments.domain.divide, model)).transpose()?;
    let outside = samples.as_ref().map(|samples| samples::count_outside(samples, &domain)).transpose();
    let outside = outside.with_context(of_data)?;
    let count = outside.map_or(0, |samples| samples.count);
    let labels = arguments.labels.as_deref().map(|path| accuracy::labels(path, count)).transpose()?;
    let before = match model.format() {
        Format::Onnx(document) => (**document).clone(),
        Format::Nnet(_) => Document::from_bytes(model.to_onnx()?, None)?,
    };
    let reading = start.elapsed();

    let bar = AnalysisBar::new(console);
    let options = Options {
        method: match arguments.method {
            MethodName::Full => Method::Full,
            MethodName::Leo => Method::Leo,
        },
        tolerance: arguments.tolerance,
        bit_exact: arguments.bit_exact,
        float: arguments.dtype.map(|dtype| match dtype {
            FloatName::F32 => Float::F32,
            FloatName::F64 => Float::F64,
        }),
        stability: search::options(&arguments.search, start, samples.as_ref(), &bar)?,
    };
    let compressed = compress(&before, &domain, &options);
    bar.finish();
    let compressed = match compressed {
        Err(CompressError::Interrupted) => return Err(Interrupted("nothing was written".to_owned()).into()),
        other => other.with_context(of_data)?,
    };
    let compared = Instant::now();
    let (old, new) = (before.network(), compressed.document.network());
    let observed = match compressed.changed {
        true => largest_difference(old, new, &domain, samples.as_ref(), arguments.search.seed).with_context(of_data)?,
        false => 0.0,
    };
    let proved = compressed.largest_delta();
    if observed > proved {
        bail!(
            "a mistake in Leo, please report it with the file: outputs differ by {observed:e}, and {proved:e} is proved; nothing was written"
        );
    }
    let accuracy = match (&samples, &labels) {
        (Some(samples), Some(labels)) => {
            let models = [Model::from(before.clone()), Model::from(compressed.document.clone())];
            Some(Accuracy::of(&models, samples, labels, &domain, proved)?)
        }
        _ => None,
    };
    let comparing = compared.elapsed();
    let compared = Instant::now();
    let bytes = compressed.document.to_bytes()?;
    let certificate = certify(&sealed, &bytes, &compressed, &domain)?;
    let certifying = compared.elapsed();
    let delta = certificate.delta.iter().copied().fold(0.0, f64::max);
    let certificate = certificate.to_bytes()?;
    if let Some(path) = &certificate_path {
        write_atomically(path, &certificate)?;
    }
    if let Err(error) = write_atomically(&arguments.output, &bytes) {
        // A certificate of nothing would only confuse.
        certificate_path.iter().for_each(|path| drop(std::fs::remove_file(path)));
        return Err(error.into());
    }
    let kept = |pinned: &Pinned| {
        let node = &old.nodes()[pinned.layer];
        Kept { layer: node.name().to_owned(), units: node.shape().elements(), reason: pinned.reason.clone() }
    };
    let Compressed { times, approximation, .. } = compressed;
    let report = Report {
        version: 1,
        model: arguments.model.display().to_string(),
        output: arguments.output.display().to_string(),
        method: match arguments.method {
            MethodName::Full => "full",
            MethodName::Leo => "leo",
        },
        tolerance: options.tolerance().to_string(),
        bit_exact: arguments.bit_exact,
        domain: Bounds::new(&domain),
        samples: outside,
        before: Size::of(&before)?,
        after: Size::of(&compressed.document)?,
        removed: compressed.history.count().iter().map(|(rule, &count)| (rule.name(), count)).collect(),
        carriers: compressed.history.carriers(),
        kept: compressed.pinned.iter().map(kept).collect(),
        unread_inputs: new.unread_inputs().len(),
        delta,
        delta_parts: Parts { approximation, rounding: (proved - approximation).max(0.0) },
        observed,
        undecided: compressed.undecided,
        stopped: compressed.stopped.map(search::reason),
        accuracy,
        certificate: certificate_path.as_deref().map(|path| path.display().to_string()),
        certificate_bytes: certificate.len(),
        checked: true,
        seconds: start.elapsed().as_secs_f64(),
        steps: Steps {
            reading: reading.as_secs_f64(),
            stability: times.stability.as_secs_f64(),
            planning: times.planning.as_secs_f64(),
            rewriting_and_checking: times.rewriting.as_secs_f64(),
            comparing: comparing.as_secs_f64(),
            certifying: certifying.as_secs_f64(),
        },
    };
    if arguments.json { console.json(&report) } else { report.print(console, compressed.changed) }
}

/// Where the certificate is to be written, if it is: beside the network, unless that is no file.
fn certificate_path(arguments: &Compress) -> Result<Option<PathBuf>> {
    let output = &arguments.output;
    let is_file = !output.exists() || output.is_file();
    let path = match &arguments.certificate {
        Some(path) => path.clone(),
        None if arguments.no_certificate || !is_file => return Ok(None),
        None => output.with_extension("leo"),
    };
    for other in [output, &arguments.model] {
        ensure!(
            !is_same_file(&path, other),
            "--certificate {}: would overwrite a network; give another name",
            path.display()
        );
    }
    Ok(Some(path))
}

/// The certificate, as it is when it is read again, checked against both files as they are when they are read again.
fn certify(first: &Sealed, bytes: &[u8], compressed: &Compressed, domain: &Domain) -> Result<Certificate> {
    let second = Sealed::from_bytes(bytes.to_vec(), Path::new("small.onnx"))?;
    let certificate = compressed.certificate(first.sha256.clone(), second.sha256.clone(), domain)?;
    let certificate = Certificate::from_bytes(&certificate.to_bytes()?)?;
    if let Err(refusal) = verify::<f64>(first, &second, &certificate) {
        bail!(
            "a mistake in Leo, please report it with the file: the checker refused the certificate ({refusal}); nothing was written"
        );
    }
    Ok(certificate)
}

impl Report {
    fn print(&self, console: &Console, changed: bool) -> Result<()> {
        let out = &mut console.report();
        writeln!(out, "{}: domain {}", one_line(&self.model), self.domain)?;
        if let Some(samples) = self.samples.filter(|samples| samples.outside > 0) {
            writeln!(out, "{samples}")?;
        }
        for Kept { layer, units, reason } in &self.kept {
            writeln!(out, "kept: {:?} ({}): {}", one_line(layer), counted(*units, "unit"), one_line(reason))?;
        }
        if !changed {
            writeln!(out, "nothing to remove: {} is the same network, in the same numbers", one_line(&self.output))?;
            return self.print_end(out);
        }
        let mut sizes = console.table(&[("", Left), ("before", Right), ("after", Right), ("left", Right)]);
        let widths = |hidden: &[usize]| if hidden.is_empty() { "none".to_owned() } else { listed(hidden) };
        sizes.add_row(["hidden layers", &widths(&self.before.hidden), &widths(&self.after.hidden), ""]);
        let (before, after) = (&self.before, &self.after);
        for (name, before, after) in [
            ("units", before.units, after.units),
            ("parameters", before.parameters, after.parameters),
            ("multiply-adds", before.multiply_adds, after.multiply_adds),
            ("bytes", before.bytes, after.bytes),
        ] {
            let left = format!("{:.1}%", 100.0 * after as f64 / before.max(1) as f64);
            sizes.add_row([name, &grouped(before), &grouped(after), &left]);
        }
        writeln!(out, "{sizes}\n")?;
        let removed = self.removed.iter().map(|(rule, &count)| format!("{} {rule}", grouped(count)));
        write!(out, "removed: {}", listed(removed))?;
        if self.carriers > 0 {
            write!(out, "; {} linear functions past their layers", carry(self.carriers))?;
        }
        writeln!(out)?;
        let Parts { approximation, rounding } = self.delta_parts;
        if self.delta == 0.0 {
            writeln!(out, "proved: on the whole domain all outputs are exactly what they were, in real arithmetic")?;
        } else {
            writeln!(out, "proved: on the whole domain no output moves by more than {:.2e}", self.delta)?;
            writeln!(
                out,
                "  {approximation:.2e} of it left out on purpose (--tolerance {}), {rounding:.2e} rounding of weights",
                self.tolerance
            )?;
            writeln!(out, "  the largest difference seen is {:.2e}", self.observed)?;
        }
        self.print_end(out)
    }

    fn print_end(&self, out: &mut impl Write) -> Result<()> {
        if let Some(accuracy) = &self.accuracy {
            writeln!(out, "{accuracy}")?;
        }
        if self.unread_inputs > 0 {
            writeln!(out, "{} no part in it any more", take(self.unread_inputs))?;
        }
        if self.undecided > 0 {
            let why = self.stopped.map_or_else(String::new, |stopped| format!(" ({stopped})"));
            writeln!(out, "{} undecided{why}, and kept", counted(self.undecided, "unit"))?;
        }
        let Steps { reading, stability, planning, rewriting_and_checking, comparing, certifying } = self.steps;
        let ms = |seconds: f64| format!("{:.1}", 1e3 * seconds);
        writeln!(
            out,
            "{} ms: reading {}, stability {}, planning {}, rewriting and checking {}, comparing {}, certifying {}",
            ms(self.seconds),
            ms(reading),
            ms(stability),
            ms(planning),
            ms(rewriting_and_checking),
            ms(comparing),
            ms(certifying)
        )?;
        write!(out, "wrote {}", one_line(&self.output))?;
        match &self.certificate {
            Some(path) => writeln!(out, ", and its certificate: {}", one_line(path))?,
            None => writeln!(out)?,
        }
        Ok(())
    }
}

fn carry(units: usize) -> String {
    format!("{} {}", counted(units, "unit"), if units == 1 { "carries" } else { "carry" })
}

fn take(inputs: usize) -> String {
    format!("{} {}", counted(inputs, "input"), if inputs == 1 { "has" } else { "have" })
}
