//! The arguments of every command, declared once with their documentation.

mod compress;
mod domain;
mod scan;
mod search;
mod shape;
mod training;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use leo_stability::HAS_SOLVER;

pub use compress::{Compress, FloatName, MethodName};
pub use domain::DomainArguments;
pub use scan::Scan;
pub use search::{EngineName, SearchArguments};
pub use shape::ShapeArguments;
pub use training::{Data, Reproduce, SessionArguments, Train};

/// Makes trained ReLU networks smaller without changing what they compute, and proves it.
///
/// Leo reads a network (ONNX, or the NNet format of ACAS Xu) and the inputs it will ever see (a box such as [0, 1] for
/// every input). It finds the units that are always off or always on there, and writes a smaller network that computes
/// the same. It can also show what is in a network, run it, and train networks to work on.
#[derive(Debug, Parser)]
#[command(name = "leo", version, long_version = VERSION, max_term_width = 100, after_help = AFTER_HELP, subcommand_required = true)]
pub struct Arguments {
    /// Print no report and no progress, only errors and what was asked for, such as JSON; the exit code says the rest
    #[arg(short, long, global = true, conflicts_with = "verbose", display_order = 900)]
    pub quiet: bool,

    /// Print more detail
    #[arg(short, long, global = true, display_order = 901)]
    pub verbose: bool,

    #[command(subcommand)]
    pub command: Command,
}

/// What `leo --version` says. The Makefile looks at the second line.
const VERSION: &str = if HAS_SOLVER {
    concat!(env!("CARGO_PKG_VERSION"), "\nsolver: HiGHS")
} else {
    concat!(env!("CARGO_PKG_VERSION"), "\nsolver: none (`make build` builds Leo with HiGHS)")
};

/// What `leo --help` says at its end.
const AFTER_HELP: &str = "\
Exit codes:
  0    done
  1    a negative answer: `leo analyze` leaves units undecided, `leo check` refuses, `leo equiv` finds networks different or cannot tell
  2    bad usage or bad input; for input, one line on standard error says which file, where in it, and why
  101  a bug in Leo; please report it with the files
  130  stopped by Ctrl-C; `leo reproduce`, and with --resume `leo train`, `leo analyze` and `leo compress`, go on where they stopped

Gzip files are unpacked as they are read. Files are written whole or not at all. A reader that closes the pipe early is no error: the exit code is that of the answer.

`leo completions SHELL` prints a completion script for your shell; `leo man` prints the manual.";

#[derive(Debug, Subcommand)]
pub enum Command {
    Demo(Demo),
    Inspect(Inspect),
    Scan(Scan),
    Compress(Compress),
    Check(Check),
    Analyze(Analyze),
    Equiv(Equiv),
    Run(Run),
    Convert(Convert),
    Train(Train),
    Reproduce(Reproduce),
    Data(Data),
    Completions(Completions),
    Man(Man),
}

/// See Leo at work, on a network that comes with it
///
/// Compresses a network that reads handwritten digits, checks the proof, and writes a page to look at.
#[derive(Debug, Args)]
pub struct Demo {
    /// The folder to write model.onnx, small.onnx, small.leo and report.html to; these are overwritten
    #[arg(long, value_name = "FOLDER", default_value = "leo-demo")]
    pub to: PathBuf,
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
    pub shape: ShapeArguments,

    #[command(flatten)]
    pub domain: DomainArguments,
}

/// What `leo inspect --help` says at its end.
const INSPECT_HELP: &str = "\
Which operators, types and domains Leo takes: docs/supported.md.

Examples:
  leo inspect model.onnx
  leo inspect model.onnx --domain 0,1
  leo inspect model.onnx --domain property.vnnlib --hull
  leo inspect model.onnx --data train-images-idx3-ubyte.gz --divide 255 --json";

/// A page to write, and whether files may be lost.
#[derive(Debug, Args)]
pub struct ReportArguments {
    /// Write a page that shows the network, every unit and what is proved of it: HTML for a browser, complete in itself
    #[arg(long = "report", value_name = "FILE.html")]
    pub page: Option<PathBuf>,

    /// Overwrite files that are there already
    #[arg(long)]
    pub force: bool,
}

/// Check a certificate: that a network computes the same as another one, up to delta
///
/// Proves again what `leo compress` found, from the two files and the certificate alone, in arithmetic that can only
/// err on the safe side. It needs no solver and no search, and believes nothing that a file says. What a certificate
/// is: docs/certificate.md.
#[derive(Debug, Args)]
#[command(after_help = CHECK_HELP)]
pub struct Check {
    /// The network as it was, an .onnx or .nnet file
    pub model: PathBuf,

    /// The smaller network
    pub small: PathBuf,

    /// The certificate [default: beside the smaller network: small.leo for small.onnx and for small.leo.onnx]
    pub certificate: Option<PathBuf>,

    #[command(flatten)]
    pub shape: ShapeArguments,

    /// Compute without any rounding, in exact arithmetic. Slower
    #[arg(long)]
    pub exact: bool,

    /// Print JSON instead of a sentence
    #[arg(long)]
    pub json: bool,
}

/// What `leo check --help` says at its end.
const CHECK_HELP: &str = "\
Exit codes: 0, verified; 1, refused: the certificate does not prove it; 2, a file cannot be read.

Examples:
  leo check model.onnx small.onnx small.leo
  leo check model.onnx small.onnx --exact";

/// Find out which units are always on or always off on the domain
///
/// For every ReLU unit: can it be on, can it be off? Bounds are proved in arithmetic that can only err on the safe
/// side, and a unit counts as unstable only if inputs are known for both. What neither settles is undecided. The
/// network's outputs are bounded, too.
#[derive(Debug, Args)]
#[command(after_help = ANALYZE_HELP)]
pub struct Analyze {
    /// The network, an .onnx or .nnet file
    pub model: PathBuf,

    /// Print JSON, with every unit, instead of a table
    #[arg(long)]
    pub json: bool,

    /// Write the bounds of inputs, units and outputs: arrays for NumPy (.npz) or a table (.csv). Can be given twice
    #[arg(short, long = "output", value_name = "FILE")]
    pub outputs: Vec<PathBuf>,

    #[command(flatten)]
    pub report: ReportArguments,

    /// With --json, show inputs for both signs of every unstable unit
    #[arg(long, requires = "json")]
    pub witnesses: bool,

    /// Believe what the mixed-integer solver says even where no proof or input confirms it. It works to tolerances, and
    /// can be wrong
    #[arg(long)]
    pub trust_solver: bool,

    #[command(flatten)]
    pub shape: ShapeArguments,

    /// Only prove bounds of units and outputs, as narrow as lines can make them, until that gains nothing more. No
    /// inputs are searched for and no cases distinguished; units that bounds do not decide are undecided, and that is
    /// no failure
    #[arg(long, help_heading = "Search (which units are stable)")]
    pub bounds_only: bool,

    /// Go on from this file, if it is there, and keep in it what is found, also if it is stopped by a limit or Ctrl-C.
    /// Nothing in it is believed: every proof is checked again
    #[arg(long, value_name = "FILE", help_heading = "Search (which units are stable)")]
    pub resume: Option<PathBuf>,

    #[command(flatten)]
    pub search: SearchArguments,

    #[command(flatten)]
    pub domain: DomainArguments,
}

/// What `leo analyze --help` says at its end.
const ANALYZE_HELP: &str = "\
With --domain, samples of --data are inputs to begin with, not the domain.

Exit code 1 says that some units are undecided; 130, that Ctrl-C stopped it. What is decided by then is reported, and with --resume kept.

Bounds hold on the whole domain: they are proved, rounded outward. docs/analysis.md says what is in JSON and files.

Examples:
  leo analyze model.onnx --domain 0,1
  leo analyze model.onnx --domain 0,1 --bounds-only -o bounds.npz
  leo analyze model.onnx --domain 0,1 --data train-images-idx3-ubyte.gz --divide 255
  leo analyze model.onnx --domain 0,1 --json --witnesses
  leo analyze model.onnx --domain 0,1 --time-limit 60 --resume model.search
  leo analyze model.onnx --domain 0,1 --engine milp --trust-solver --time-limit 600";

/// Compare two networks on the domain: equal, different, or neither shown
///
/// Both files must take the same input, give the same outputs, and do the same with what leaves their networks. Then
/// the networks themselves are compared, whatever they have to do with each other: which units belong together is found
/// out, and how far any output can be apart is proved. What is compared is what leaves the networks, in front of a
/// softmax or whatever else comes after them.
#[derive(Debug, Args)]
#[command(after_help = EQUIV_HELP)]
pub struct Equiv {
    /// A network, an .onnx or .nnet file
    pub first: PathBuf,

    /// Another one
    pub second: PathBuf,

    /// How far outputs of equal networks may be apart [default: for each output, 1e-5 of the largest number seen in it]
    #[arg(long, value_name = "NUMBER", value_parser = tolerance, allow_negative_numbers = true)]
    pub tolerance: Option<f64>,

    /// If an input is found where the networks are different, write it to this file, as .npy
    #[arg(long, value_name = "FILE")]
    pub counterexample: Option<PathBuf>,

    /// Print JSON, with the input where the networks differ most
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub shape: ShapeArguments,

    #[command(flatten)]
    pub search: SearchArguments,

    #[command(flatten)]
    pub domain: DomainArguments,
}

fn tolerance(text: &str) -> Result<f64, String> {
    let tolerance = text.parse().ok().filter(|tolerance: &f64| *tolerance >= 0.0 && tolerance.is_finite());
    tolerance.ok_or_else(|| "should be 0 or a number above 0".to_owned())
}

/// What `leo equiv --help` says at its end.
const EQUIV_HELP: &str = "\
With --domain, samples of --data are inputs to begin with, not the domain; the networks are compared on them, too.

Exit code 0 says equal: proved for the whole domain. 1 says different, with an input that shows it, or unknown. 2 says that the files cannot be compared.

Examples:
  leo equiv model.onnx small.onnx --domain 0,1
  leo equiv model.onnx other.onnx --domain 0,1 --tolerance 0.001 --counterexample input.npy
  leo equiv acas.nnet small.onnx --json";

/// Run a network on samples
///
/// The first axis of the samples counts them. Files in double precision are run in double precision, all others in
/// single.
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

    #[command(flatten)]
    pub shape: ShapeArguments,

    /// Say how long a sample takes, too: one at a time, on one thread, in single precision, the fastest of many times
    #[arg(long)]
    pub time: bool,

    /// Print JSON, with the outputs unless they are written to a file; what is not finite is null
    #[arg(long)]
    pub json: bool,
}

/// What `leo run --help` says at its end.
const RUN_HELP: &str = "\
Examples:
  leo run model.onnx --input x.npy -o y.npy
  leo run mnist.onnx --input t10k-images-idx3-ubyte.gz --divide 255 -o scores.npy";

/// Write a network as a self-contained ONNX file
///
/// An ONNX file comes out as it went in, with external data embedded; constants that were listed as inputs, so that
/// they could be replaced when the network is run, are constants alone. An NNet file becomes an ONNX file in double
/// precision, its normalisation included.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  leo convert ACASXU_run2a_1_1_batch_2000.nnet -o acas.onnx")]
pub struct Convert {
    /// The network, an .onnx or .nnet file
    pub model: PathBuf,

    /// The ONNX file to write
    #[arg(short, long, value_name = "FILE")]
    pub output: PathBuf,

    #[command(flatten)]
    pub shape: ShapeArguments,

    /// Replace a file that is there already
    #[arg(long)]
    pub force: bool,

    /// Print JSON instead of a sentence
    #[arg(long)]
    pub json: bool,
}

/// Print a script that lets a shell complete leo's commands and flags
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_HELP)]
pub struct Completions {
    /// Which shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// What `leo completions --help` says at its end.
const COMPLETIONS_HELP: &str = "\
Examples:
  leo completions bash > ~/.local/share/bash-completion/completions/leo
  leo completions zsh > ~/.zfunc/_leo           with ~/.zfunc in fpath
  leo completions fish > ~/.config/fish/completions/leo.fish";

/// Print leo's manual page, or write one for every command
#[derive(Debug, Args)]
#[command(after_help = MAN_HELP)]
pub struct Man {
    /// Write leo.1 and a page for every command (leo-compress.1 and so on) into this folder, which is made if it is
    /// missing
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

/// What `leo man --help` says at its end.
const MAN_HELP: &str = "\
Examples:
  leo man | man -l -
  leo man --to ~/.local/share/man/man1";
