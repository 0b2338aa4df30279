//! From a file to a smaller one.

use std::time::{Duration, Instant};

use leo_check::{Mismatch, apart_in_single};
use leo_formats::onnx::{Document, Float, OnnxError};
use leo_network::{Array, Domain, DomainError, LayerId, Network, NetworkError, Observer, Step};
use leo_stability::{Engine, Status, StopReason};

use crate::compare::reference::{Measured, Reference, measured_limit};
use crate::compare::samples::{OneSided, one_sided};
use crate::deltas::largest;
use crate::prospects;
use crate::rewriting::certify::{Reasoning, RewriteStep};
use crate::rewriting::channels;
use crate::rewriting::flush::flush;
use crate::rewriting::history::{History, beside};
use crate::rewriting::region::Pinned;
use crate::rewriting::round::{self, Round};
use crate::tolerance::Tolerance;
use crate::why::{Prospect, Staying};

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
pub struct CompressOptions<'a> {
    /// Which algorithm.
    pub method: Method,
    /// How far approximations may move an output; if nothing is said, [`Tolerance::Ulp`] for the normal form and
    /// [`Tolerance::Zero`] for LEO.
    pub tolerance: Option<Tolerance>,
    /// Only what needs no rounding of any weight.
    pub bit_exact: bool,
    /// How many times larger than the original's the error may be that single precision makes in the smaller network;
    /// if nothing is said, twice. It is measured, and what is measured has to be some way below that, because other
    /// points and other orders of summation give other errors.
    pub allow_noise: Option<f64>,
    /// The type of rewritten weights, if not the file's own.
    pub float: Option<Float>,
    /// Of how many channels those of a convolution shall be a multiple that loses some; if nothing is said, 4.
    pub align: Option<usize>,
    /// Whether denormal numbers that are left shall become 0.
    pub flush_denormals: bool,
    /// How to find out which units are stable.
    pub stability: leo_stability::AnalysisOptions<'a>,
}

impl CompressOptions<'_> {
    /// The tolerance that holds.
    pub fn tolerance(&self) -> Tolerance {
        let default = if self.method == Method::Full { Tolerance::Ulp } else { Tolerance::Zero };
        if self.bit_exact { Tolerance::Zero } else { self.tolerance.unwrap_or(default) }
    }

    /// How many times the original's noise may be measured.
    pub(crate) fn noise_limit(&self) -> f64 {
        measured_limit(self.allow_noise.unwrap_or(DEFAULT_NOISE))
    }
}

/// Watches rounds after the first, and parts of networks: as another observer does, but keeps nothing.
pub(crate) struct LaterRounds<'a>(pub(crate) &'a dyn Observer);

impl Observer for LaterRounds<'_> {
    fn begin(&self, step: Step, parts: usize) {
        self.0.begin(step, parts);
    }

    fn advance(&self, parts: usize) {
        self.0.advance(parts);
    }

    fn is_stopped(&self) -> bool {
        self.0.is_stopped()
    }
}

/// How many times larger errors in single precision may get, if nothing is said.
const DEFAULT_NOISE: f64 = 2.0;

/// A file, perhaps smaller, and what was done to it.
#[derive(Clone, Debug)]
pub struct Compressed {
    /// The file.
    pub document: Document,
    /// Whether it is another one than before.
    pub changed: bool,
    /// How many denormal numbers of it became 0.
    pub flushed: usize,
    /// What became of every unit.
    pub history: History,
    /// For each element of each output, how far it can be from what it was, anywhere on the domain: proved.
    pub delta: Vec<Vec<f64>>,
    /// How far the original and the smaller network can be off, each, when they are computed in single precision, if
    /// the files leave no doubt what is computed.
    pub(crate) errors: Option<[Vec<Vec<f64>>; 2]>,
    /// For each element of each output, the largest number that it was seen to be, whatever its sign.
    pub scales: Vec<Vec<f64>>,
    /// For each output, what was measured in single precision, if the file is in that.
    pub single: Option<Vec<Measured>>,
    /// Stable units that are still there, and why.
    pub staying: Vec<Staying>,
    /// If few units went, how many would go with larger tolerances.
    pub prospects: Vec<Prospect>,
    /// How much of delta would remain with weights in double precision: what was approximated on purpose.
    pub approximation: f64,
    /// Units of the file that was given for which it is not known whether they are stable.
    pub undecided: usize,
    /// What stopped the search for stable units before it was through.
    pub stopped: Option<StopReason>,
    /// Layers of the file that was given that could not be rewritten.
    pub pinned: Vec<Pinned>,
    /// How long each step took.
    pub times: Times,
    /// What was done, file by file: one, mostly. Of a file that is as it was, why it is.
    pub(crate) steps: Vec<RewriteStep>,
}

impl Compressed {
    /// The largest of all bounds on how far an output can move.
    pub fn largest_delta(&self) -> f64 {
        largest(&self.delta)
    }

    /// For each element of each output, how far it can be from what it was if both networks are evaluated in single
    /// precision, in any order of summation: proved. Nothing where the files leave a doubt what is computed, or where
    /// something may overflow.
    pub fn delta_f32(&self) -> Option<Vec<Vec<f64>>> {
        let delta = apart_in_single(&self.delta, self.errors.as_ref()?);
        largest(&delta).is_finite().then_some(delta)
    }

    /// How many of the undecided units are still there.
    pub fn undecided_kept(&self) -> usize {
        let units = self.history.layers.iter().zip(&self.history.removed);
        let units = units.flat_map(|(layer, removed)| layer.units.iter().zip(removed));
        units.filter(|(unit, removed)| unit.status == Status::Undecided && removed.is_none()).count()
    }

    /// Whether so few units went that one may want to know why.
    pub fn removes_little(&self) -> bool {
        let units: usize = self.history.layers.iter().map(|layer| layer.units.len()).sum();
        let left: usize = self.document.network().hidden().iter().sum();
        units > 0 && (units.saturating_sub(left) as f64) < prospects::SMALL_SHARE * units as f64
    }

    /// Unstable units of the original network that are only on, or only off, on samples.
    ///
    /// # Errors
    /// If the samples are another network's.
    pub fn one_sided(&self, domain: &Domain, samples: &Array) -> Result<Vec<OneSided>, DomainError> {
        let Some(RewriteStep { before, reasoning: Reasoning::Units(proof, _) }) = self.steps.first() else {
            return Ok(Vec::new());
        };
        one_sided(before.network(), &self.history.layers, domain, samples, |unit, on| proof.witness(unit, on))
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
const MOST_ROUNDS: usize = 8;

/// What part of the time the search for stable units may take: at the least, however long the rest may take, and at the
/// most.
const SHARE_OF_SEARCH: [f64; 2] = [0.4, 0.85];

/// After what part of the time no more ways to rewrite are tried. The rest is for comparing and certifying, which takes
/// a fraction of the search.
const SHARE_OF_PLANNING: f64 = 0.9;

/// How many products of a weight and an expression's coefficient are planned with, carried out and proved in a second,
/// on a slow machine.
const PRODUCTS_A_SECOND: f64 = 4e8;

/// How much of a time limit the search for stable units may take. Plans and proofs are about expressions of as many
/// numbers as there are inputs and units, for each number in the network.
fn time_to_search(network: &Network, limit: Duration) -> Duration {
    let basis = network.input().elements() + network.hidden().iter().sum::<usize>();
    let rest = network.multiply_adds() as f64 * basis as f64 / PRODUCTS_A_SECOND;
    let [least, most] = SHARE_OF_SEARCH.map(|share| limit.mul_f64(share));
    most.saturating_sub(Duration::try_from_secs_f64(rest).unwrap_or(Duration::MAX)).max(least)
}

/// Makes a file's network smaller on a domain, until nothing more can be removed.
///
/// # Errors
/// If the domain does not fit, or the file cannot be rewritten, or it is stopped.
pub fn compress(
    document: &Document,
    domain: &Domain,
    options: &CompressOptions<'_>,
) -> Result<Compressed, CompressError> {
    compress_in_rounds(document, domain, options, MOST_ROUNDS)
}

/// The same, in no more rounds than this, if it is a dense network.
pub(crate) fn compress_in_rounds(
    document: &Document,
    domain: &Domain,
    options: &CompressOptions<'_>,
    rounds: usize,
) -> Result<Compressed, CompressError> {
    let start = Instant::now();
    document.check_rewritable()?;
    let outputs = document.network().outputs().iter();
    let reference = Reference::new(document.network(), domain, options.stability.samples, options.stability.seed)?;
    let mut compressed = Compressed {
        errors: None,
        scales: reference.scales.clone(),
        single: None,
        staying: Vec::new(),
        prospects: Vec::new(),
        document: document.clone(),
        changed: false,
        flushed: 0,
        history: History::default(),
        delta: outputs.map(|&value| vec![0.0; document.network().shape(value).elements()]).collect(),
        approximation: 0.0,
        undecided: 0,
        stopped: None,
        pinned: Vec::new(),
        times: Times::default(),
        steps: Vec::new(),
    };
    if !document.network().is_dense() {
        channels::compress(&mut compressed, domain, options, &reference)?;
        return Ok(compressed.measured(options, &reference));
    }
    let is_spent = round::is_spent(document, options.tolerance(), domain);
    let mut tolerance = if is_spent { Tolerance::Zero } else { options.tolerance() };
    let whole = options.stability.time_limit;
    let deadline = whole.and_then(|limit| start.checked_add(limit.mul_f64(SHARE_OF_PLANNING)));
    let later = options.stability.observer.map(LaterRounds);
    let mut before_last = compressed.delta.clone();
    for round in 0..rounds {
        // The search may have its share, and the next ones what it leaves of that.
        let time_limit = whole.map(|limit| time_to_search(document.network(), limit).saturating_sub(start.elapsed()));
        if round > 0 && time_limit.is_some_and(|limit| limit.is_zero()) {
            break;
        }
        let mut stability = leo_stability::AnalysisOptions {
            time_limit,
            tighten_last_layer: true,
            certify_witnesses: round == 0,
            ..options.stability
        };
        if round > 0 {
            // What is kept is about the first network.
            stability.checkpoint = None;
            stability.observer = later.as_ref().map(|later| later as &dyn Observer);
        }
        if round > 0 && compressed.history.is_plain() {
            // Units that were unstable still are; those that are stable, and what was put in, are seen to be at once: a
            // long search would find nothing.
            stability = leo_stability::AnalysisOptions { engine: Engine::Bounds, nodes: Some(0), ..stability };
        }
        let options = CompressOptions { stability, ..*options };
        let round =
            Round { domain, options: &options, tolerance, reference: &reference, is_first: round == 0, deadline };
        let delta = compressed.delta.clone();
        match round.go(&mut compressed)? {
            Some(rewritten) => compressed.document = rewritten,
            None => break,
        }
        before_last = delta;
        compressed.changed = true;
        tolerance = Tolerance::Zero;
    }
    if options.flush_denormals {
        flush(&mut compressed, before_last, domain)?;
    }
    compressed.forget_what_went();
    compressed.history.paths = beside(compressed.document.network()).saturating_sub(beside(document.network()));
    Ok(compressed.measured(options, &reference))
}

impl Compressed {
    /// With what single precision makes of it.
    fn measured(mut self, options: &CompressOptions<'_>, reference: &Reference<'_>) -> Self {
        let is_single = self.document.float() == Float::F32 && options.float != Some(Float::F64);
        self.single = is_single.then(|| reference.compare(self.document.network(), options.noise_limit()));
        self
    }

    /// What was said of units and layers that stay is not said of those that went after all, in a later round or by
    /// another way.
    pub(crate) fn forget_what_went(&mut self) {
        let removed = &self.history.removed;
        for staying in &mut self.staying {
            staying.units.retain(|&unit| removed[staying.layer.index()][unit].is_none());
        }
        self.staying.retain(|staying| !staying.units.is_empty());
        let layers = self.history.layers.iter().zip(removed);
        let changed = layers.filter(|(_, removed)| removed.iter().any(Option::is_some)).map(|(layer, _)| layer.id);
        let changed: Vec<LayerId> = changed.collect();
        self.pinned.retain(|pinned| changed.binary_search(&pinned.layer).is_err());
    }
}
