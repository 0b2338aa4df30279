//! How to look for stable units, for every command that does.

use std::num::NonZeroUsize;
use std::time::Duration;

use clap::{Args, ValueEnum};

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

    /// How many pieces a case distinction for one unit may have, and how many nodes a mixed-integer program's search
    /// tree [default: 20000 pieces, 2000 nodes; with --engine milp, no limit on nodes]
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
    /// The cheapest first: intervals, inputs, linear bounds, better slopes, narrower ranges and tilted lines, small
    /// linear programs, case distinctions, mixed-integer programs
    Auto,
    /// The same without linear and mixed-integer programs
    Bounds,
    /// As in the paper: a mixed-integer program for every unit and sign
    Milp,
}

/// More threads than any machine has cores take longer to start than the work.
const MOST_THREADS: usize = 256;

pub(super) fn threads(text: &str) -> Result<NonZeroUsize, String> {
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
