//! The arguments of every command, declared once with their documentation.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Makes trained ReLU networks smaller without changing what they compute, and proves it.
///
/// Leo reads a network (ONNX, or the NNet format of ACAS Xu) and the inputs it will ever see (a box such as [0, 1] for
/// every input). So far it can show what is in a network, run it, and write it back as ONNX; finding the units
/// that are always off or always on, and removing them, comes next.
#[derive(Debug, Parser)]
#[command(name = "leo", version, max_term_width = 100, after_help = AFTER_HELP, subcommand_required = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Exit codes:
  0    done
  1    a negative answer (no command gives one yet)
  2    bad usage or bad input; for input, one line on standard error says which file, where in it, and why
  101  a bug in Leo; please report it with the files

Gzip files are unpacked as they are read. Nothing is ever left half written.";

#[derive(Debug, Subcommand)]
pub enum Command {
    Inspect(Inspect),
    Run(Run),
    Convert(Convert),
}

/// Show what is in a network: layers, widths, parameters, activations, inputs and outputs
#[derive(Debug, Args)]
#[command(after_help = INSPECT_HELP)]
pub struct Inspect {
    /// The network, an .onnx or .nnet file
    pub model: PathBuf,

    /// Print JSON instead of tables
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub domain: DomainArguments,
}

const INSPECT_HELP: &str = "\
Examples:
  leo inspect model.onnx
  leo inspect model.onnx --domain 0,1
  leo inspect model.onnx --domain property.vnnlib --hull
  leo inspect model.onnx --data train-images-idx3-ubyte.gz --divide 255 --json";

/// Run a network on samples
///
/// The first axis of the samples counts them. Files in double precision are run in double precision, all others in single.
#[derive(Debug, Args)]
#[command(after_help = RUN_HELP)]
pub struct Run {
    /// The network, an .onnx or .nnet file
    pub model: PathBuf,

    /// The samples, a NumPy (.npy) or IDX file
    #[arg(short, long, value_name = "FILE")]
    pub input: PathBuf,

    /// Where to write the outputs, as .npy; without it they are printed, one sample a line
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Which output to compute, or which value in front of it [default: the first output that Leo can]
    #[arg(long, value_name = "NAME")]
    pub output_name: Option<String>,

    /// Divide all samples by this first, such as 255 for images of bytes
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub divide: Option<f64>,
}

const RUN_HELP: &str = "\
Examples:
  leo run model.onnx --input x.npy -o y.npy
  leo run mnist.onnx --input t10k-images-idx3-ubyte.gz --divide 255 -o scores.npy";

/// Write a network as a self-contained ONNX file
///
/// An ONNX file comes out as it went in, with external data embedded. An NNet file becomes an ONNX file in double precision, its
/// normalisation included.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  leo convert ACASXU_run2a_1_1_batch_2000.nnet -o acas.onnx")]
pub struct Convert {
    /// The network, an .onnx or .nnet file
    pub model: PathBuf,

    /// The ONNX file to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,
}

/// Where the domain, the box of inputs that matter, comes from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Domain (the inputs that the network will ever see)")]
pub struct DomainArguments {
    /// `LO,HI` for every input; `lo.npy,hi.npy`; a .vnnlib property; or an .nnet file, for its minima and maxima
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true)]
    pub domain: Option<String>,

    /// The range of the samples in this file (.npy or IDX), input by input
    #[arg(long, value_name = "FILE", conflicts_with = "domain")]
    pub data: Option<PathBuf>,

    /// Divide the samples of --data by this first, such as 255 for images of bytes
    #[arg(long, value_name = "NUMBER", requires = "data", conflicts_with = "domain", allow_negative_numbers = true)]
    pub divide: Option<f64>,

    /// Widen the domain by this much on every side
    #[arg(long, value_name = "NUMBER", allow_hyphen_values = true)]
    pub margin: Option<f64>,

    /// Where a .vnnlib property's inputs form no box, take a box around them
    #[arg(long, requires = "domain")]
    pub hull: bool,
}
