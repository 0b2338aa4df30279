//! From arguments to a model's file, and what is to be known of it, whatever is done with it.

use std::path::Path;

use anyhow::{Result, anyhow};
use leo::{GivenShape, ModelFile};

use crate::args::ShapeArguments;
use crate::terminal::output::{counted, one_line};

/// The shape of the input that is asked for, if one is.
pub fn shape(arguments: &ShapeArguments) -> Result<Option<GivenShape>> {
    let parse = |text: &String| text.parse().map_err(|why: String| anyhow!("--shape {text}: {why}"));
    arguments.shape.as_ref().map(parse).transpose()
}

/// Reads a file, for the shape that is asked for.
pub fn open(path: &Path, arguments: &ShapeArguments) -> Result<ModelFile> {
    Ok(leo::open_for_shape(path, shape(arguments)?.as_ref())?)
}

/// What one should know of denormal numbers in a file, if there are any.
pub fn denormals(file: &str, count: usize) -> Option<String> {
    let (numbers, are) = (counted(count, "weight"), if count == 1 { "is" } else { "are" });
    (count > 0).then(|| format!("{}: {numbers} {are} denormal, which many processors are slow with", one_line(file)))
}

/// What one should know of constants that a file lists as inputs, too, if it does.
pub fn listed_constants(file: &str, count: usize) -> Option<String> {
    let constants = counted(count, "constant");
    let claim = "listed as inputs, too, and taken for what the file says";
    (count > 0).then(|| format!("{}: {constants} {claim}", one_line(file)))
}
