//! How far two networks can be apart, whatever they have to do with each other: seen at points, then proved.

use std::time::{Duration, Instant};

use leo_check::HashedModel;
use leo_compress::{
    Comparison, EquivError, LargestDifference, SeenDifference, Unmatched, equivalent, has_few_inputs,
    observe_with_deadline, refine_by_pieces,
};
use leo_formats::{Format, Model};
use leo_network::{Domain, Network, Step};
use leo_stability::{AnalysisOptions, Engine, StopReason};
use serde::Serialize;

use crate::compression::report::stop_reason;
use crate::{DomainSummary, Error, ModelFile, Options, SampleCount};

/// What was found out. Also the shape of the JSON: fields may join, these stay.
#[derive(Clone, Debug, Serialize)]
pub struct Equivalence {
    /// The version of this shape.
    pub version: u32,
    /// One file.
    pub first: String,
    /// The other one.
    pub second: String,
    /// How many constants each file lists as inputs, too: they are taken for the constants that they are.
    pub listed_constants: [usize; 2],
    /// The inputs that it is about.
    pub domain: DomainSummary,
    /// With samples, what they were good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<SampleCount>,
    /// The answer.
    pub verdict: EquivalenceVerdict,
    /// Proved: no output differs by more, anywhere on the domain, whether the networks are equal or not. The least of
    /// all bounds that were found; none if there is none.
    pub proved: Option<f64>,
    /// The largest difference seen.
    pub seen: f64,
    /// Each output.
    pub outputs: Vec<ComparedOutput>,
    /// Where outputs are seen to be furthest apart, measured by what is tolerated, if they are anywhere.
    pub furthest: Option<Furthest>,
    /// Units without a counterpart in the other network.
    pub unmatched: [Vec<Unpaired>; 2],
    /// Of networks with convolutions: why no channels of the one are taken for channels of the other, if none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<String>,
    /// What stopped the search for stable units, if something did.
    pub stopped: Option<&'static str>,
    /// How long it took.
    pub seconds: f64,
    /// How long each step took.
    pub steps: EquivalenceSeconds,
    /// Whether it was an observer that stopped it.
    #[serde(skip)]
    pub is_interrupted: bool,
}

/// Whether two networks compute the same, as far as is tolerated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum EquivalenceVerdict {
    /// Proved, for the whole domain.
    Equal,
    /// An input shows it.
    Different,
    /// Neither.
    Unknown,
}

/// A value that leaves the networks.
#[derive(Clone, Debug, Serialize)]
pub struct ComparedOutput {
    /// What the first file calls it.
    pub name: String,
    /// How far it may be apart.
    pub tolerance: f64,
    /// Proved: it is no further apart, anywhere on the domain.
    pub proved: Option<f64>,
    /// The largest difference seen.
    pub seen: f64,
}

/// A point where the networks differ.
#[derive(Clone, Debug, Serialize)]
pub struct Furthest {
    /// Which output.
    pub output: String,
    /// Which of its elements, counted from 0.
    pub element: usize,
    /// What it is in the first network.
    pub first: f64,
    /// What it is in the second one.
    pub second: f64,
    /// The point.
    pub input: Vec<f64>,
}

/// Units of a layer that have no counterpart.
#[derive(Clone, Debug, Serialize)]
pub struct Unpaired {
    /// The layer's name in the file, which may be empty.
    pub layer: String,
    /// Its number among the layers, counted from 0.
    pub index: usize,
    /// That of its value among all values, where 0 is the input.
    pub number: usize,
    /// The units, counted from 0.
    pub units: Vec<usize>,
}

/// How long each step took.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct EquivalenceSeconds {
    /// Reading files.
    pub reading: f64,
    /// Looking for differences.
    pub looking: f64,
    /// Proving how large they can be.
    pub proving: f64,
}

/// How far outputs may be apart, relative to the largest number seen in them, if nothing else is said.
const DEFAULT_TOLERANCE: f64 = 1e-5;

/// Compares two networks on a domain. Before a proof is tried, which may take long, `on_difference` is given the input
/// where they are seen to be different, if there is one.
///
/// # Errors
/// If the files take or give something else, or domain or samples do not fit, or `on_difference` fails.
pub fn compare(
    files: [&ModelFile; 2],
    domain: &Domain,
    tolerance: Option<f64>,
    options: &Options,
    on_difference: &mut dyn FnMut(&Furthest) -> Result<(), Error>,
) -> Result<Equivalence, Error> {
    let start = Instant::now();
    files.iter().try_for_each(|file| options.check(file.network()))?;
    let models = files.map(ModelFile::model);
    let names = files.map(|file| file.path().display().to_string());
    check_comparable(files)?;
    let counted = options.count_samples(domain)?;
    let found = if are_same_to_the_byte(files.map(ModelFile::hashed)) || models[0].network() == models[1].network() {
        Findings::of_one_network(models[0], tolerance)
    } else {
        ComparedPair { models, domain, tolerance, options, start }.compare(on_difference)?
    };
    let listed_constants = files.map(|file| file.model().listed_constants());
    let domain_summary = DomainSummary::new(domain, files[0].model());
    let found = found.answer(names, domain, start);
    Ok(Equivalence { samples: counted, listed_constants, domain: domain_summary, ..found })
}

/// Sees to it that two files take the same input, give the same outputs, and do the same with what leaves their
/// networks.
///
/// # Errors
/// If not.
pub fn check_comparable(files: [&ModelFile; 2]) -> Result<(), Error> {
    if are_same_to_the_byte(files.map(ModelFile::hashed)) {
        return Ok(());
    }
    let [first, second] = files;
    let about = || format!("{} and {} cannot be compared", first.path().display(), second.path().display());
    first.model().check_interface(second.model()).map_err(|error| Error::from(error).about(about()))
}

/// Whether two files have the same content, and no other file has a part in what they mean.
fn are_same_to_the_byte([first, second]: [&HashedModel; 2]) -> bool {
    let stands_alone = |file: &HashedModel| file.model.external_files().is_empty();
    first.sha256 == second.sha256 && stands_alone(first) && stands_alone(second)
}

/// What was found out of two networks.
struct Findings {
    outputs: Vec<ComparedOutput>,
    furthest: Option<Furthest>,
    unmatched: [Vec<Unpaired>; 2],
    obstacle: Option<String>,
    stopped: Option<StopReason>,
    /// How long it took to look for differences.
    looking: Duration,
}

impl Findings {
    /// Of a network and itself: there is nothing to look for. Nothing is tolerated, unless it is said how much.
    fn of_one_network(model: &Model, tolerance: Option<f64>) -> Self {
        let output = |index: usize| ComparedOutput {
            name: name_of(model, index),
            tolerance: tolerance.unwrap_or(0.0),
            proved: Some(0.0),
            seen: 0.0,
        };
        Self {
            outputs: (0..model.network().outputs().len()).map(output).collect(),
            furthest: None,
            unmatched: [vec![], vec![]],
            obstacle: None,
            stopped: None,
            looking: Duration::ZERO,
        }
    }

    fn answer(self, [first, second]: [String; 2], domain: &Domain, start: Instant) -> Equivalence {
        let Self { outputs, furthest, unmatched, obstacle, stopped, looking } = self;
        let is_within = |output: &ComparedOutput| output.proved.is_some_and(|proved| proved <= output.tolerance);
        let proved = outputs.iter().map(|output| output.proved);
        Equivalence {
            version: 1,
            first,
            second,
            listed_constants: [0; 2],
            domain: DomainSummary::of_shape(domain, None),
            samples: None,
            verdict: match is_seen(&outputs) {
                true => EquivalenceVerdict::Different,
                false if outputs.iter().all(is_within) => EquivalenceVerdict::Equal,
                false => EquivalenceVerdict::Unknown,
            },
            proved: proved.into_iter().try_fold(0.0, |most: f64, proved| Some(most.max(proved?))),
            seen: outputs.iter().map(|output| output.seen).fold(0.0, f64::max),
            furthest,
            outputs,
            unmatched,
            obstacle,
            stopped: stopped.map(stop_reason),
            seconds: start.elapsed().as_secs_f64(),
            steps: EquivalenceSeconds {
                reading: 0.0,
                looking: looking.as_secs_f64(),
                proving: (start.elapsed() - looking).as_secs_f64(),
            },
            is_interrupted: stopped == Some(StopReason::Interrupted),
        }
    }
}

/// Two networks, and all that it takes to compare them.
struct ComparedPair<'a> {
    models: [&'a Model; 2],
    domain: &'a Domain,
    tolerance: Option<f64>,
    options: &'a Options,
    start: Instant,
}

impl ComparedPair<'_> {
    /// Looks for a difference, then proves how large it can be.
    fn compare(&self, on_difference: &mut dyn FnMut(&Furthest) -> Result<(), Error>) -> Result<Findings, Error> {
        let begin = Instant::now();
        self.options.watcher().begin(Step::Comparison, 1);
        let observed = self.observe()?;
        let mut outputs: Vec<ComparedOutput> = observed
            .iter()
            .enumerate()
            .map(|(output, observed)| ComparedOutput {
                name: name_of(self.models[0], output),
                tolerance: self.tolerance.unwrap_or_else(|| default_tolerance(observed)),
                proved: None,
                seen: distance(observed),
            })
            .collect();
        let furthest = furthest(&outputs, &observed);
        if let (Some(furthest), true) = (&furthest, is_seen(&outputs)) {
            on_difference(furthest)?;
        }
        let looking = begin.elapsed();
        let (compared, stopped) = self.prove(&outputs)?;
        let (mut unmatched, mut obstacle) = ([vec![], vec![]], None);
        if let Some(compared) = &compared {
            obstacle.clone_from(&compared.obstacle);
            take_bounds(&mut outputs, compared)?;
            unmatched = [0, 1].map(|index| unpaired(self.models[index].network(), &compared.unmatched[index]));
        }
        Ok(Findings { outputs, furthest, unmatched, obstacle, stopped, looking })
    }

    /// What is seen in half of the time.
    fn observe(&self) -> Result<Vec<LargestDifference>, Error> {
        let [first, second] = self.models.map(Model::network);
        let end = self.options.time_left(self.start).and_then(|left| Instant::now().checked_add(left / 2));
        let (samples, seed) = (self.options.samples.as_deref(), self.options.seed);
        Ok(observe_with_deadline(first, second, self.domain, samples, seed, end)?)
    }

    /// Bounds the difference, unless that is stopped; and says what stopped it, or a part of it.
    fn prove(&self, outputs: &[ComparedOutput]) -> Result<(Option<Comparison>, Option<StopReason>), Error> {
        let options = self.options.analysis(self.start, None, self.options.watcher());
        match self.bound(outputs, &options) {
            Ok(compared) => {
                let stopped = compared.stopped;
                Ok((Some(compared), stopped))
            }
            // That they are different is known all the same.
            Err(EquivError::Interrupted) if is_seen(outputs) => Ok((None, Some(StopReason::Interrupted))),
            Err(error) => Err(error.into()),
        }
    }

    /// Mostly a quick way is enough, without a search for units that are hard to decide. Where the networks are
    /// different it has to be: then the bound only says how different they are at most.
    fn bound(&self, outputs: &[ComparedOutput], options: &AnalysisOptions<'_>) -> Result<Comparison, EquivError> {
        let [first, second] = self.models.map(Model::network);
        let time_left = || self.options.time_left(self.start);
        let compare = |options: &AnalysisOptions<'_>| equivalent(first, second, self.domain, options);
        let quick = compare(&AnalysisOptions { engine: Engine::Bounds, nodes: Some(0), ..*options })?;
        if is_seen(outputs) || are_within(&quick.deviation, outputs) {
            return Ok(quick);
        }
        let mut quick = quick;
        if has_few_inputs(first) {
            let options = AnalysisOptions { time_limit: time_left(), ..*options };
            let is_enough = |bounds: &[Vec<f64>]| are_within(bounds, outputs);
            quick = refine_by_pieces([first, second], self.domain, quick, &options, is_enough);
            if is_enough(&quick.deviation) || quick.stopped.is_some() {
                return Ok(quick);
            }
        }
        let time_limit = time_left();
        if time_limit.is_some_and(|left| left.is_zero()) {
            return Ok(quick.or_stopped(StopReason::OutOfTime));
        }
        match compare(&AnalysisOptions { time_limit, ..*options }) {
            Err(EquivError::Interrupted) => Ok(quick.or_stopped(StopReason::Interrupted)),
            longer => Ok(quick.with_later(longer?)),
        }
    }
}

/// Whether outputs are seen to be further apart than is tolerated.
fn is_seen(outputs: &[ComparedOutput]) -> bool {
    outputs.iter().any(|output| output.seen > output.tolerance)
}

/// Whether no bound, for any element of any output, is more than is tolerated.
fn are_within(deviation: &[Vec<f64>], outputs: &[ComparedOutput]) -> bool {
    deviation.iter().zip(outputs).all(|(bounds, output)| bounds.iter().all(|bound| *bound <= output.tolerance))
}

/// Notes what is proved of each output.
fn take_bounds(outputs: &mut [ComparedOutput], compared: &Comparison) -> Result<(), Error> {
    for (output, bounds) in outputs.iter_mut().zip(&compared.deviation) {
        let proved = bounds.iter().copied().fold(0.0, f64::max);
        if output.seen > proved {
            let ComparedOutput { name, seen, .. } = output;
            return Err(Error::Mistake(format!("output {name:?} differs by {seen:e}, and {proved:e} is proved")));
        }
        output.proved = Some(proved);
    }
    Ok(())
}

/// What is tolerated of an output if nothing is said: nothing where numbers overflow.
fn default_tolerance(observed: &LargestDifference) -> f64 {
    if observed.size.is_finite() { DEFAULT_TOLERANCE * observed.size } else { 0.0 }
}

/// What the file calls a value that leaves its network.
fn name_of(model: &Model, output: usize) -> String {
    let name = match model.format() {
        Format::Onnx(document) => document.name_of(document.network().outputs()[output]),
        Format::Nnet(_) => model.outputs().nth(output).map(|port| port.name.as_str()),
    };
    name.map_or_else(|| format!("output {output}"), str::to_owned)
}

fn distance(observed: &LargestDifference) -> f64 {
    observed.furthest.as_ref().map_or(0.0, |apart| apart.distance)
}

/// The point with the largest difference, measured by what is tolerated.
fn furthest(outputs: &[ComparedOutput], observed: &[LargestDifference]) -> Option<Furthest> {
    let seen = outputs.iter().zip(observed).filter_map(|(output, seen)| Some((output, seen.furthest.as_ref()?)));
    let by_tolerance = |(output, apart): &(&ComparedOutput, &SeenDifference)| apart.distance / output.tolerance;
    let (output, apart) = seen.max_by(|a, b| by_tolerance(a).total_cmp(&by_tolerance(b)))?;
    let [first, second] = apart.values;
    Some(Furthest { output: output.name.clone(), element: apart.element, first, second, input: apart.point.clone() })
}

fn unpaired(network: &Network, unmatched: &[Unmatched]) -> Vec<Unpaired> {
    let of = |unmatched: &Unmatched| Unpaired {
        layer: network.node_of(unmatched.layer).name().to_owned(),
        index: unmatched.layer.index(),
        number: network.output_of(unmatched.layer).index(),
        units: unmatched.units.clone(),
    };
    unmatched.iter().map(of).collect()
}
