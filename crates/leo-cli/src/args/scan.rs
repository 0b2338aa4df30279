//! A quick look at many files.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::ShapeArguments;

/// See how much of many networks is dead weight: seconds a file, nothing is written
///
/// A row for each file: how many units (channels, in networks with convolutions) are always off or always on, and what
/// `leo compress` would remove at least; or why the file is refused. Only the cheap bounds are tried.
#[derive(Debug, Args)]
#[command(after_help = SCAN_HELP)]
pub struct Scan {
    /// The networks, .onnx or .nnet files
    #[arg(required = true)]
    pub models: Vec<PathBuf>,

    /// The inputs that they will see, as for `leo compress`; every file has to have as many inputs as this is for
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true, default_value = "0,1")]
    pub domain: OsString,

    #[command(flatten)]
    pub shape: ShapeArguments,

    /// Print JSON instead of a table
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,

    /// Print comma-separated values instead of a table
    #[arg(long)]
    pub csv: bool,
}

/// What `leo scan --help` says at its end.
const SCAN_HELP: &str = "\
The exit code is 0 if at least one of the files could be looked at.

Examples:
  leo scan *.onnx
  leo scan models/mnist/*.onnx --csv
  leo scan image-classifier.onnx --domain=-1,1 --json";
