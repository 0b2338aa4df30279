//! What `leo compress` takes.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use leo_compress::Tolerance;

use super::{DomainArguments, ReportArguments, SearchArguments, ShapeArguments};

/// Make a network smaller without changing what it computes on the domain
///
/// Finds the units that are always off, always on, constant, multiples of each other or read by nobody there, and
/// rewrites the network without them. What comes out is proved to agree with what went in, on the whole domain, up to a
/// number that is reported: delta. What is not rewritten stays as it is in the file: names, shapes, metadata, pre- and
/// post-processing.
#[derive(Debug, Args)]
#[command(after_help = COMPRESS_HELP)]
pub struct Compress {
    /// The network, an .onnx or .nnet file
    pub model: PathBuf,

    /// The ONNX file to write [default: beside the network, model.leo.onnx for model.onnx]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Where to write the certificate, which `leo check` checks [default: as -o, with .leo for .onnx]
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<PathBuf>,

    /// Write no certificate. The proof is checked all the same
    #[arg(long, conflicts_with = "certificate")]
    pub no_certificate: bool,

    #[command(flatten)]
    pub report: ReportArguments,

    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,

    /// How to remove units
    #[arg(long, value_enum, default_value_t = MethodName::Full)]
    pub method: MethodName,

    /// How far approximations may move any output: 0 for none; ulp for less than single precision can show, for each
    /// element of an output half a unit in the last place of the largest number that it was seen to be; a percentage of
    /// that number; or a number. Rounding of weights comes on top [default: ulp; 0 with --method leo]
    #[arg(long, value_name = "0|ulp|NUMBER|PERCENT%", allow_negative_numbers = true)]
    pub tolerance: Option<Tolerance>,

    /// How many times as large as the original's the error may be that single precision makes in the smaller network.
    /// Both are measured, with room to spare for other points and other runtimes: of 2, at most 1.6 may be measured. A
    /// network that is noisier is not written, but another one that removes less [default: 2]
    #[arg(long, value_name = "FACTOR", value_parser = factor, allow_negative_numbers = true)]
    pub allow_noise: Option<f64>,

    /// Only what leaves every weight exact: delta is 0
    #[arg(long, conflicts_with = "tolerance")]
    pub bit_exact: bool,

    /// Of how many channels those of a convolution are to be a multiple that loses some: runtimes compute them in
    /// blocks, and what fits into these is faster. 1 has as few of them as can be [default: 4]
    #[arg(long, value_name = "CHANNELS", value_parser = clap::value_parser!(u16).range(1..))]
    pub align: Option<u16>,

    /// Set denormal weights that are left to 0. They are too small to be stored with all their digits, and make many
    /// processors crawl. What that does to outputs is proved, as part of delta
    #[arg(long, conflicts_with = "bit_exact")]
    pub flush_denormals: bool,

    /// The type of the weights that are written [default: the file's; f64 for .nnet files]
    #[arg(long, value_enum, value_name = "TYPE")]
    pub dtype: Option<FloatName>,

    /// The right answers for the samples of --data, whole numbers in a NumPy (.npy) or IDX file, to report the accuracy
    /// before and after
    #[arg(long, value_name = "FILE", requires = "data")]
    pub labels: Option<PathBuf>,

    #[command(flatten)]
    pub shape: ShapeArguments,

    /// Go on from this file, if it is there, and keep in it what is found, also if it is stopped by a limit or Ctrl-C.
    /// Nothing in it is believed: every proof is checked again
    #[arg(long, value_name = "FILE", help_heading = "Search (which units are stable)")]
    pub resume: Option<PathBuf>,

    #[command(flatten)]
    pub search: SearchArguments,

    #[command(flatten)]
    pub domain: DomainArguments,
}

/// Ways of removing units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum MethodName {
    /// The normal form, with as few units as possible
    Full,
    /// As in the paper: remove, merge, fold, collapse
    Leo,
}

/// Types of weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FloatName {
    /// Single precision
    F32,
    /// Double precision; inputs and outputs keep their type
    F64,
}

/// What `leo compress --help` says at its end.
const COMPRESS_HELP: &str = "\
With --domain, samples of --data are inputs to begin with, not the domain; the networks are compared on them, too.

What the words mean that say why units went or stayed (inactive, linear, merged, kept, stays and so on), with examples: docs/removal.md.

If there is nothing to remove, the file is written as it is. Ctrl-C writes nothing but the file of --resume.

Examples:
  leo compress model.onnx --domain 0,1
  leo compress model.onnx -o small.onnx --domain 0,1 --report report.html
  leo compress model.onnx -o small.onnx --domain 0,1 --tolerance 0
  leo compress model.onnx -o small.onnx --domain 0,1 --method leo
  leo compress mnist.onnx -o small.onnx --domain 0,1 --data t10k-images-idx3-ubyte.gz --divide 255 \\
      --labels t10k-labels-idx1-ubyte.gz";

fn factor(text: &str) -> Result<f64, String> {
    let factor = text.parse().ok().filter(|factor: &f64| *factor >= 1.0);
    factor.ok_or_else(|| "should be 1 or a number above 1".to_owned())
}
