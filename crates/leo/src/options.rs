//! What to do, and what not: built up, and owned, so that it can be kept and sent to other threads.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use leo_compress::{CompressOptions, Method, Tolerance};
use leo_formats::onnx::Float;
use leo_network::{Array, Domain, Network, Observer};
use leo_stability::{AnalysisOptions, Checkpoint, Engine, HAS_SOLVER};

use crate::samples::check_labels;
use crate::search_file::SearchFile;
use crate::{Error, ModelFile, SampleCount};

/// How to go about analysing, compressing and comparing networks. What is not set is as the program `leo` has it.
///
/// ```
/// use std::time::Duration;
///
/// let options = leo::Options::new().tolerance(leo::Tolerance::Zero).time_limit(Duration::from_secs(60));
/// # let _ = options;
/// ```
#[derive(Clone, Default)]
pub struct Options {
    pub(crate) method: Method,
    pub(crate) tolerance: Option<Tolerance>,
    pub(crate) bit_exact: bool,
    pub(crate) allow_noise: Option<f64>,
    pub(crate) float: Option<Float>,
    pub(crate) align: Option<usize>,
    pub(crate) flush_denormals: bool,
    pub(crate) engine: Engine,
    pub(crate) trust_solver: bool,
    pub(crate) witnesses: bool,
    pub(crate) seed: u64,
    pub(crate) samples: Option<Arc<Array>>,
    pub(crate) labels: Option<Arc<[f64]>>,
    pub(crate) node_limit: Option<usize>,
    pub(crate) time_limit: Option<Duration>,
    pub(crate) memory_limit: Option<u64>,
    pub(crate) resume: Option<PathBuf>,
    pub(crate) observer: Option<Arc<dyn Observer + Send + Sync>>,
}

impl Options {
    /// Those of the program `leo` without any flags.
    pub fn new() -> Self {
        Self::default()
    }

    /// How to remove units: the normal form, or as in the paper.
    #[must_use]
    pub fn method(mut self, method: Method) -> Self {
        self.method = method;
        self
    }

    /// How far approximations may move an output.
    #[must_use]
    pub fn tolerance(mut self, tolerance: impl Into<Option<Tolerance>>) -> Self {
        self.tolerance = tolerance.into();
        self
    }

    /// Only what leaves every weight exact: delta is 0.
    #[must_use]
    pub fn bit_exact(mut self, bit_exact: bool) -> Self {
        self.bit_exact = bit_exact;
        self
    }

    /// How many times as large as the original's the error may be that single precision makes in the smaller network.
    #[must_use]
    pub fn allow_noise(mut self, factor: impl Into<Option<f64>>) -> Self {
        self.allow_noise = factor.into();
        self
    }

    /// Of how many channels those of a convolution shall be a multiple that loses some: if nothing is said, 4, because
    /// runtimes compute them in blocks; 1 for as few as can be.
    #[must_use]
    pub fn align(mut self, channels: impl Into<Option<usize>>) -> Self {
        self.align = channels.into();
        self
    }

    /// Whether denormal numbers that are left become 0: those that are too small to be stored with all their digits,
    /// and slow processors down. What that does to outputs is part of delta.
    #[must_use]
    pub fn flush_denormals(mut self, flush: bool) -> Self {
        self.flush_denormals = flush;
        self
    }

    /// The type of the weights that are written, if not the file's own.
    #[must_use]
    pub fn float(mut self, float: impl Into<Option<Float>>) -> Self {
        self.float = float.into();
        self
    }

    /// Which ways of deciding a unit are open.
    #[must_use]
    pub fn engine(mut self, engine: Engine) -> Self {
        self.engine = engine;
        self
    }

    /// Whether the word of a mixed-integer solver counts that no proof or input confirms. Only for analyses.
    #[must_use]
    pub fn trust_solver(mut self, trust: bool) -> Self {
        self.trust_solver = trust;
        self
    }

    /// Whether an analysis shows inputs for both signs of every unstable unit.
    #[must_use]
    pub fn witnesses(mut self, witnesses: bool) -> Self {
        self.witnesses = witnesses;
        self
    }

    /// What random inputs are drawn from.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Inputs to begin with, on which networks are compared, too.
    #[must_use]
    pub fn samples(mut self, samples: impl Into<Option<Array>>) -> Self {
        self.samples = samples.into().map(Arc::new);
        self
    }

    /// The right answers for the samples.
    #[must_use]
    pub fn labels(mut self, labels: impl Into<Option<Vec<f64>>>) -> Self {
        self.labels = labels.into().map(Arc::from);
        self
    }

    /// How many subproblems branch and bound may have for one bound, and how many nodes a mixed-integer program.
    #[must_use]
    pub fn node_limit(mut self, nodes: impl Into<Option<usize>>) -> Self {
        self.node_limit = nodes.into();
        self
    }

    /// How long it may take. What is not decided by then is undecided.
    #[must_use]
    pub fn time_limit(mut self, limit: impl Into<Option<Duration>>) -> Self {
        self.time_limit = limit.into();
        self
    }

    /// How many bytes of memory the process may have in use before a search stops.
    #[must_use]
    pub fn memory_limit(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.memory_limit = bytes.into();
        self
    }

    /// A file to go on from, if it is there, and to keep in what a search finds, also if it is stopped. Nothing in it
    /// is believed: every proof is checked again.
    #[must_use]
    pub fn resume(mut self, file: impl Into<Option<PathBuf>>) -> Self {
        self.resume = file.into();
        self
    }

    /// Who hears how it goes, and may stop it.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer + Send + Sync>) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The same as the crate that decides stability takes it, `begun` some time ago.
    pub(crate) fn analysis<'a>(
        &'a self,
        begun: Instant,
        checkpoint: Option<&'a Checkpoint>,
        observer: &'a dyn Observer,
    ) -> AnalysisOptions<'a> {
        AnalysisOptions {
            engine: self.engine,
            trust_solver: self.trust_solver,
            seed: self.seed,
            samples: self.samples.as_deref(),
            report_witnesses: self.witnesses,
            nodes: self.node_limit,
            checkpoint,
            time_limit: self.time_left(begun),
            memory_limit: self.memory_limit,
            observer: Some(observer),
            ..AnalysisOptions::default()
        }
    }

    /// The same as the crate that compresses takes it.
    pub(crate) fn compression<'a>(&self, stability: AnalysisOptions<'a>) -> CompressOptions<'a> {
        CompressOptions {
            method: self.method,
            tolerance: self.tolerance,
            bit_exact: self.bit_exact,
            allow_noise: self.allow_noise,
            float: self.float,
            align: self.align,
            flush_denormals: self.flush_denormals,
            stability,
        }
    }

    /// How many samples there are, and how many of them are in no domain.
    pub(crate) fn count_samples(&self, domain: &Domain) -> Result<Option<SampleCount>, Error> {
        let counted = self.samples.as_ref().map(|samples| SampleCount::of(samples, domain)).transpose();
        counted.map_err(|error| error.about("samples"))
    }

    /// Sees to it that what is asked for makes sense, and can be done by this build, for a network.
    pub(crate) fn check(&self, network: &Network) -> Result<(), Error> {
        let is_amount = |amount: f64| amount > 0.0 && amount.is_finite();
        let wrong = match self.tolerance {
            _ if self.bit_exact && self.flush_denormals => {
                "numbers that become 0 are not exact: flush_denormals or bit_exact, not both".to_owned()
            }
            Some(Tolerance::Absolute(amount) | Tolerance::Relative(amount)) if !is_amount(amount) => {
                format!("a tolerance of {amount}: it should be above 0 and finite; Tolerance::Zero is none")
            }
            _ if self.allow_noise.is_some_and(|factor| factor.is_nan() || factor < 1.0) => {
                "the noise that is allowed should be 1 or a number above 1".to_owned()
            }
            _ if !network.is_dense() && self.engine == Engine::Milp => {
                "programs of a solver know dense layers alone: of convolutions, intervals, points and linear bounds are all that is tried"
                    .to_owned()
            }
            _ if !HAS_SOLVER && (self.engine == Engine::Milp || self.trust_solver) => {
                "this Leo was built without the solver HiGHS (the feature `highs`), which is needed here".to_owned()
            }
            _ if self.labels.is_some() && self.samples.is_none() => "there are labels, and no samples".to_owned(),
            _ => return Ok(()),
        };
        Err(Error::Request(wrong))
    }

    /// How many labels there should be, and what they are.
    pub(crate) fn check_labels(&self, count: Option<SampleCount>) -> Result<(), Error> {
        let (Some(labels), Some(SampleCount { count, .. })) = (self.labels.as_deref(), count) else { return Ok(()) };
        check_labels(labels, count).map_err(|error| error.about("labels"))
    }

    /// The file to go on from and to keep a search in, if there is to be one.
    pub(crate) fn search_file(&self, file: &ModelFile, domain: &Domain) -> Result<Option<SearchFile>, Error> {
        let Some(path) = &self.resume else { return Ok(None) };
        if matches!(self.engine, Engine::Milp | Engine::Tighten) {
            let what = "only the search of the engines auto and bounds can be gone on with";
            return Err(Error::Request(format!("{}: {what}", path.display())));
        }
        SearchFile::open(path, file, domain).map(Some)
    }

    /// How much of the time is left for something that has `begun`; nothing if there is no limit.
    pub(crate) fn time_left(&self, begun: Instant) -> Option<Duration> {
        self.time_limit.map(|limit| limit.saturating_sub(begun.elapsed()))
    }

    /// Who hears how it goes.
    pub(crate) fn watcher(&self) -> &dyn Observer {
        match &self.observer {
            Some(observer) => &**observer,
            None => &(),
        }
    }
}
