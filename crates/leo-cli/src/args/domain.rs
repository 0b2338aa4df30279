//! Where the domain comes from, for every command that takes one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::Args;

/// Where the domain, the box of inputs that matter, comes from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Domain (the inputs that the network will ever see)")]
pub struct DomainArguments {
    /// `LO,HI` for every input; `lo.npy,hi.npy`; a .vnnlib property; or an .nnet file, for its minima and maxima
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true)]
    pub domain: Option<OsString>,

    /// The range of the samples in this file (.npy or IDX), input by input, if there is no --domain
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,

    /// Divide the samples of --data by this first, such as 255 for images of bytes
    #[arg(long, value_name = "NUMBER", requires = "data", allow_negative_numbers = true)]
    pub divide: Option<f64>,

    /// Widen the domain by this much on every side
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub margin: Option<f64>,

    /// Where a .vnnlib property's inputs form no box, take a box around them
    #[arg(long, requires = "domain")]
    pub hull: bool,
}

impl DomainArguments {
    /// The files that are read for it.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.data.as_deref().into_iter().chain(self.domain.as_deref().map(Path::new))
    }
}
