//! `leo convert`

use anyhow::{Context, Result, ensure};
use leo_network::{Model, write_atomically};

use crate::args::Convert;
use crate::console::Console;

pub fn run(arguments: &Convert, _console: &Console) -> Result<()> {
    let suffix = arguments.output.extension().unwrap_or_default();
    ensure!(suffix == "onnx", "{}: the file to write should end in .onnx", arguments.output.display());
    let model = Model::load(&arguments.model)?;
    let bytes = model.to_onnx().with_context(|| arguments.model.display().to_string())?;
    write_atomically(&arguments.output, &bytes)?;
    Ok(())
}
