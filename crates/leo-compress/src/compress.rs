//! From a file to a smaller one.

use std::time::{Duration, Instant};

use leo_check::Mismatch;
use leo_network::onnx::{Document, Float, OnnxError};
use leo_network::{Domain, DomainError, NetworkError};
use leo_stability::{Engine, Stopped};

use crate::certify::Step;
use crate::history::History;
use crate::region::Pinned;
use crate::rewrite::Rewritten;
use crate::round::{self, Round};
use crate::tolerance::Tolerance;

/// How to go about removing units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// As in the paper: remove, merge, fold, collapse.
    Leo,
    /// The normal form, realised with as few units as possible.
    #[default]
    Full,
}

/// What to do, and what not.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Which algorithm.
    pub method: Method,
    /// How far approximations may move an output; if nothing is said, [`Tolerance::Ulp`] for the normal form and [`Tolerance::Zero`] for LEO.
    pub tolerance: Option<Tolerance>,
    /// Only what needs no rounding of any weight.
    pub bit_exact: bool,
    /// The type of rewritten weights, if not the file's own.
    pub float: Option<Float>,
    /// How to find out which units are stable.
    pub stability: leo_stability::Options<'a>,
}

impl Options<'_> {
    /// The tolerance that holds.
    pub fn tolerance(&self) -> Tolerance {
        let default = if self.method == Method::Full { Tolerance::Ulp } else { Tolerance::Zero };
        if self.bit_exact { Tolerance::Zero } else { self.tolerance.unwrap_or(default) }
    }
}

/// A file, perhaps smaller, and what was done to it.
#[derive(Clone, Debug)]
pub struct Compressed {
    /// The file.
    pub document: Document,
    /// Whether it is another one than before.
    pub changed: bool,
    /// What became of every unit.
    pub history: History,
    /// For each element of each output, how far it can be from what it was, anywhere on the domain: proved.
    pub delta: Vec<Vec<f64>>,
    /// How much of that would remain with weights in double precision: what was approximated on purpose.
    pub approximation: f64,
    /// Units of the file that was given for which it is not known whether they are stable.
    pub undecided: usize,
    /// What stopped the search for stable units before it was through.
    pub stopped: Option<Stopped>,
    /// Layers of the file that was given that could not be rewritten.
    pub pinned: Vec<Pinned>,
    /// How long each step took.
    pub times: Times,
    /// What was done, file by file: one, mostly. Of a file that is as it was, why it is.
    pub(crate) steps: Vec<Step>,
}

impl Compressed {
    /// The largest of all bounds on how far an output can move.
    pub fn largest_delta(&self) -> f64 {
        largest(&self.delta)
    }
}

/// How long each step took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Finding stable units.
    pub stability: Duration,
    /// Making plans.
    pub planning: Duration,
    /// Rewriting the file, and proving what that does.
    pub rewriting: Duration,
}

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompressError {
    /// The domain or the samples are another network's.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The file cannot be rewritten.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
    /// A weight has become too large.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Stopped from outside.
    #[error("stopped before it was through; nothing was rewritten")]
    Interrupted,
    /// More than the checker takes on.
    #[error("the network is too large for a proof")]
    TooLarge,
    /// A mistake in Leo.
    #[error("a mistake in Leo, please report it with the file: {0}")]
    Internal(String),
}

impl From<Mismatch> for CompressError {
    fn from(mismatch: Mismatch) -> Self {
        if mismatch == Mismatch::TooLarge { Self::TooLarge } else { Self::Internal(mismatch.to_string()) }
    }
}

/// The most rounds. One does nearly all, the second finds that nothing is left to do.
const ROUNDS: usize = 8;

/// Makes a file's network smaller on a domain, until nothing more can be removed.
///
/// # Errors
/// If the domain does not fit, or the file cannot be rewritten, or it is stopped.
pub fn compress(document: &Document, domain: &Domain, options: &Options<'_>) -> Result<Compressed, CompressError> {
    let start = Instant::now();
    let outputs = document.network().outputs().iter();
    let mut compressed = Compressed {
        document: document.clone(),
        changed: false,
        history: History::default(),
        delta: outputs.map(|&value| vec![0.0; document.network().shape(value).elements()]).collect(),
        approximation: 0.0,
        undecided: 0,
        stopped: None,
        pinned: Vec::new(),
        times: Times::default(),
        steps: Vec::new(),
    };
    let mut tolerance = options.tolerance();
    if round::is_spent(document, tolerance, domain) {
        tolerance = Tolerance::Zero;
    }
    for round in 0..ROUNDS {
        let time_limit = options.stability.time_limit.map(|limit| limit.saturating_sub(start.elapsed()));
        if round > 0 && time_limit.is_some_and(|limit| limit.is_zero()) {
            break;
        }
        let mut stability = leo_stability::Options { time_limit, narrow: true, shown: round == 0, ..options.stability };
        if round > 0 {
            // What is kept is about the first network.
            (stability.state, stability.keep) = (None, None);
        }
        if round > 0 && compressed.history.is_plain() {
            // Units that were unstable still are; those that are stable, and what was put in, are seen to be at once: a long search would find nothing.
            stability = leo_stability::Options { engine: Engine::Bounds, nodes: Some(0), ..stability };
        }
        let options = Options { stability, ..*options };
        let round = Round { domain, options: &options, tolerance, is_first: round == 0 };
        match round.go(&mut compressed)? {
            Some(rewritten) => compressed.document = rewritten,
            None => break,
        }
        compressed.changed = true;
        tolerance = Tolerance::Zero;
    }
    Ok(compressed)
}

impl Compressed {
    /// Adds up how far outputs can have moved.
    pub(crate) fn add_delta(&mut self, rewritten: &Rewritten) {
        for (sums, deltas) in self.delta.iter_mut().zip(&rewritten.deviation) {
            sums.iter_mut()
                .zip(deltas)
                .for_each(|(sum, delta)| *sum = if *sum == 0.0 { *delta } else { (*sum + delta).next_up() });
        }
    }
}

/// The largest of bounds on outputs.
pub(crate) fn largest(deltas: &[Vec<f64>]) -> f64 {
    deltas.iter().flatten().copied().fold(0.0, f64::max)
}
