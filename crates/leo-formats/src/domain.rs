//! Domains in files.

use std::path::Path;

use leo_network::Domain;

use crate::file::{self, FileError, Problem};
use crate::nnet::Nnet;
use crate::vnnlib::{self, NonBox};

/// Reads the box of inputs in a VNN-LIB file, or the one of an NNet file, by its suffix; gzip or not.
///
/// # Errors
/// If the file cannot be read, or its inputs form no box and `non_box` refuses that.
pub fn read_domain(path: &Path, non_box: NonBox) -> Result<Domain, FileError> {
    read(path, non_box).map_err(|problem| problem.in_file(path))
}

fn read(path: &Path, non_box: NonBox) -> Result<Domain, Problem> {
    let bytes = file::read(path)?;
    match file::suffix(path).as_str() {
        "vnnlib" => Ok(vnnlib::domain(&bytes, non_box)?),
        "nnet" => Ok(Nnet::from_bytes(&bytes)?.domain()?),
        _ => Err(Problem::UnknownSuffix { expected: "domains are .vnnlib or .nnet files" }),
    }
}
