//! `leo run`

use std::fmt::{Display, LowerExp};
use std::io::{BufWriter, Write, stdout};

use anyhow::{Result, anyhow, ensure};
use leo_network::array::Elements;
use leo_network::{Array, Model, RunError};

use crate::args::Run;
use crate::console::Console;
use crate::samples;

pub fn run(arguments: &Run, _console: &Console) -> Result<()> {
    if let Some(path) = &arguments.output {
        ensure!(path.extension().is_some_and(|suffix| suffix == "npy"), "{}: should end in .npy", path.display());
    }
    let model = Model::load(&arguments.model)?;
    let samples = samples::load(&arguments.input, arguments.divide, &model)?;
    let outputs = model.run(&samples, arguments.output_name.as_deref()).map_err(|error| {
        let file = if matches!(error, RunError::Samples { .. }) { &arguments.input } else { &arguments.model };
        anyhow!("{}: {error}", file.display())
    })?;
    match &arguments.output {
        Some(path) => Ok(outputs.save(path)?),
        None => print(&outputs),
    }
}

/// One sample a line, in as many digits as tell the numbers apart.
fn print(outputs: &Array) -> Result<()> {
    let mut out = BufWriter::new(stdout().lock());
    let rows = outputs.shape().first().copied().unwrap_or(1).max(1);
    let width = (outputs.len() / rows).max(1);
    macro_rules! lines {
        ($values:expr) => {
            for row in $values.chunks(width) {
                writeln!(out, "{}", row.iter().map(|value| shortest(value)).collect::<Vec<_>>().join(" "))?;
            }
        };
    }
    match outputs.elements() {
        Elements::U8(values) => lines!(values),
        Elements::I64(values) => lines!(values),
        Elements::F32(values) => lines!(values),
        Elements::F64(values) => lines!(values),
    }
    out.flush()?;
    Ok(())
}

/// As few characters as tell the number apart from its neighbours.
fn shortest(number: &(impl Display + LowerExp)) -> String {
    let (plain, scientific) = (number.to_string(), format!("{number:e}"));
    if scientific.len() < plain.len() { scientific } else { plain }
}
