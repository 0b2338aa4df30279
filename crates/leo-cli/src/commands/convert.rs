//! `leo convert`

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use leo_formats::Format;
use serde::Serialize;

use crate::args::Convert;
use crate::request::{files, model as request};
use crate::terminal::console::Console;
use crate::terminal::output::{counted, one_line};

/// What was written. Also the shape of the JSON: fields may join, these stay.
#[derive(Serialize)]
struct Report {
    version: u32,
    model: String,
    /// `ONNX` or `NNet`.
    format: &'static str,
    output: String,
    parameters: usize,
    bytes: usize,
}

pub fn run(arguments: &Convert, console: &Console) -> Result<()> {
    let output = &arguments.output;
    let console = &console.beside([output.as_path()], arguments.json)?;
    files::ensure_onnx(output)?;
    let converting = console.phase("converting");
    let file = request::open(&arguments.model, &arguments.shape)?;
    let model = file.model();
    files::ensure_other(output, "-o", file.files().iter().map(PathBuf::as_path))?;
    files::ensure_free(output, arguments.force)?;
    let bytes = match model.format() {
        Format::Onnx(document) => document.clone().with_fixed_constants().to_bytes(),
        Format::Nnet(_) => model.to_onnx(),
    };
    let bytes = bytes.with_context(|| arguments.model.display().to_string())?;
    files::write(&[files::output(output, &bytes, arguments.force)])?;
    drop(converting);
    let report = Report {
        version: 1,
        model: arguments.model.display().to_string(),
        format: match model.format() {
            Format::Onnx(_) => "ONNX",
            Format::Nnet(_) => "NNet",
        },
        output: output.display().to_string(),
        parameters: model.network().parameters(),
        bytes: bytes.len(),
    };
    if arguments.json {
        return console.json(&report);
    }
    let (parameters, bytes) = (counted(report.parameters, "parameter"), counted(report.bytes, "byte"));
    writeln!(console.report(), "wrote {}: {parameters}, {bytes}", one_line(&report.output))?;
    Ok(())
}
