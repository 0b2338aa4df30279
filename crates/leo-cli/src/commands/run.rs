//! `leo run`

use std::fmt::{Display, LowerExp};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::time::Instant;

use anyhow::{Result, anyhow, ensure};
use leo_formats::ArrayFile;
use leo_formats::RunError;
use leo_network::{Array, Elements};
use serde::Serialize;

use crate::args::Run;
use crate::request::{files, inputs, model as request};
use crate::terminal::console::Console;
use crate::terminal::output::{counted, one_line};

/// What was computed. Also the shape of the JSON: fields may join, these stay.
#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    model: String,
    input: String,
    /// The file that the outputs were written to.
    output: Option<String>,
    /// The value that was asked for by its name.
    output_name: Option<&'a str>,
    samples: usize,
    /// That of all outputs together; the first axis counts samples.
    shape: &'a [usize],
    /// One list a sample, unless they were written to a file.
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<OutputRows<'a>>,
    seconds: f64,
    /// How long the network itself takes for one sample, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    seconds_a_sample: Option<f64>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum OutputRows<'a> {
    U8(Vec<&'a [u8]>),
    I64(Vec<&'a [i64]>),
    F32(Vec<&'a [f32]>),
    F64(Vec<&'a [f64]>),
}

pub fn run(arguments: &Run, console: &Console) -> Result<()> {
    let start = Instant::now();
    if let Some(path) = &arguments.output {
        ensure!(path.extension().is_some_and(|suffix| suffix == "npy"), "{}: should end in .npy", path.display());
    }
    let reading = console.phase("reading");
    let file = request::open(&arguments.model, &arguments.shape)?;
    let model = file.model();
    if let Some(path) = &arguments.output {
        let read = file.files();
        files::ensure_other(path, "-o", read.iter().chain([&arguments.input]).map(PathBuf::as_path))?;
    }
    let samples = leo::read_samples(&arguments.input, arguments.divide, model).map_err(inputs::divided)?;
    drop(reading);
    let count = samples.count_samples(model.network().input()).unwrap_or(0);
    let running = console.counting_phase("running", count);
    let outputs = model.run_with_progress(&samples, arguments.output_name.as_deref(), &|samples| running.done(samples));
    drop(running);
    let outputs = outputs.map_err(|error| {
        let file = if matches!(error, RunError::Samples { .. }) { &arguments.input } else { &arguments.model };
        anyhow!("{}: {error}", file.display())
    })?;
    if let Some(path) = &arguments.output {
        let _writing = console.phase("writing");
        outputs.save(path)?;
    }
    let shown = |path: &PathBuf| path.display().to_string();
    let report = Report {
        version: 1,
        model: shown(&arguments.model),
        input: shown(&arguments.input),
        output: arguments.output.as_ref().map(shown),
        output_name: arguments.output_name.as_deref(),
        samples: outputs.shape().first().copied().unwrap_or(1),
        shape: outputs.shape(),
        outputs: arguments.output.is_none().then(|| rows(&outputs)),
        seconds: start.elapsed().as_secs_f64(),
        seconds_a_sample: arguments.time.then(|| file.seconds_a_sample(&samples)),
    };
    if let Some(seconds) = report.seconds_a_sample.filter(|_| !arguments.json) {
        writeln!(console.report(), "{:.3} ms a sample, one at a time on one thread", 1e3 * seconds)?;
    }
    match (&report.output, &report.outputs) {
        _ if arguments.json => console.json(&report),
        (Some(path), _) => {
            let samples = counted(report.samples, "sample");
            Ok(writeln!(console.report(), "wrote {}: {samples}, shape {:?}", one_line(path), report.shape)?)
        }
        (None, Some(rows)) => print(rows, console),
        (None, None) => Ok(()),
    }
}

/// The outputs for each sample.
fn rows(outputs: &Array) -> OutputRows<'_> {
    let rows = outputs.shape().first().copied().unwrap_or(1).max(1);
    let width = (outputs.len() / rows).max(1);
    match outputs.elements() {
        Elements::U8(values) => OutputRows::U8(values.chunks(width).collect()),
        Elements::I64(values) => OutputRows::I64(values.chunks(width).collect()),
        Elements::F32(values) => OutputRows::F32(values.chunks(width).collect()),
        Elements::F64(values) => OutputRows::F64(values.chunks(width).collect()),
    }
}

/// One sample a line, in as many digits as tell the numbers apart. Stops where nobody reads any more.
fn print(rows: &OutputRows<'_>, console: &Console) -> Result<()> {
    let mut out = BufWriter::new(console.answer());
    macro_rules! lines {
        ($rows:expr) => {
            for row in $rows {
                if !out.get_ref().is_open() {
                    return Ok(());
                }
                writeln!(out, "{}", row.iter().map(|value| shortest(value)).collect::<Vec<_>>().join(" "))?;
            }
        };
    }
    match rows {
        OutputRows::U8(rows) => lines!(rows),
        OutputRows::I64(rows) => lines!(rows),
        OutputRows::F32(rows) => lines!(rows),
        OutputRows::F64(rows) => lines!(rows),
    }
    out.flush()?;
    Ok(())
}

/// As few characters as tell the number apart from its neighbours.
fn shortest(number: &(impl Display + LowerExp)) -> String {
    let (plain, scientific) = (number.to_string(), format!("{number:e}"));
    if scientific.len() < plain.len() { scientific } else { plain }
}
