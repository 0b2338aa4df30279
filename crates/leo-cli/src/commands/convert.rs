//! `leo convert`

use std::io::Write;

use anyhow::{Context, Result};
use leo_network::{Format, Model, write_atomically};
use serde::Serialize;

use crate::args::Convert;
use crate::console::Console;
use crate::files;
use crate::output::{counted, one_line};

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
    files::ensure_other(output, "-o", [arguments.model.as_path()])?;
    files::ensure_free(output, arguments.force)?;
    let converting = console.phase("converting");
    let model = Model::load(&arguments.model)?;
    let bytes = model.to_onnx().with_context(|| arguments.model.display().to_string())?;
    write_atomically(output, &bytes)?;
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
