//! A search as it goes through a network: what is known of each layer, and what all techniques do with what they find.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use leo_check::{BoundProof, Checker, Range, Relaxation, SplitTree, Status, Target};
use leo_network::op::{ActionKind, Op};
use leo_network::{Domain, DomainError, LayerId, Network, Step, ValueId, ValueMap};
use rayon::prelude::*;

use crate::bounds::input_layer::InputLayer;
use crate::bounds::{BoundProblem, KnownRanges};
use crate::budget::{Budget, Limits};
use crate::checkpoint::{Checkpoint, UnfinishedTree};
use crate::proof_log::ProofLog;
use crate::search::reduced::Reduced;
use crate::search::solver::Program;
use crate::search::{Claim, SearchOutcome};
use crate::technique::{Cost, Technique, TechniqueStep, pipeline};
use crate::verdict::Verdict;
use crate::witness::{Probe, Witnesses};
use crate::{Analysis, AnalysisOptions, Engine, HAS_SOLVER, StopReason};

/// Into how many pieces the domain may be cut for one bound.
pub(crate) const PIECES: usize = 20_000;
/// How many bounds are proved between two looks at the clock.
pub(crate) const BOUNDS_AT_ONCE: usize = 4096;
/// How much time must be left for a search that had too little of it.
const WORTH_GOING_ON: Duration = Duration::from_secs(2);

pub(crate) fn run<'n>(
    network: &'n Network,
    domain: &Domain,
    options: &AnalysisOptions<'_>,
) -> Result<Analysis<'n>, DomainError> {
    let limits = Limits::new(options.observer, options.time_limit, options.memory_limit);
    let mut run = Analyzer {
        network,
        options,
        limits: &limits,
        budget: limits.whole(),
        checker: Checker::new(network, domain)?,
        witnesses: Witnesses::new(network, domain),
        believed: ValueMap::default(),
        recalled: options.checkpoint.cloned(),
        front: None,
        narrow: 0,
        outputs: network.outputs().iter().map(|&value| (value, ProofLog::default())).collect(),
        stages: Vec::new(),
        stage: LayerState::default(),
        decided_before: 0,
        times: BTreeMap::new(),
        clock: Instant::now(),
    };
    run.sample_domain()?;
    let steps = pipeline(options.engine);
    loop {
        match run.checker.next_layer() {
            Some(layer) => {
                run.enter(layer);
                run.work(steps.iter());
            }
            None if run.has_time_left_over() => {
                run.begin_again();
                // What a layer found before its time was up is there still.
                run.work(steps.iter().filter(|step| step.cost != Cost::Nothing && !step.technique.is_plain));
            }
            None => {
                if options.engine == Engine::Tighten {
                    run.tighten();
                }
                return Ok(run.finish());
            }
        }
    }
}

/// An analysis that has come to some layer.
pub(crate) struct Analyzer<'a, 'n> {
    pub(crate) network: &'n Network,
    pub(crate) options: &'a AnalysisOptions<'a>,
    pub(crate) limits: &'a Limits<'a>,
    /// What is left for the work at hand.
    pub(crate) budget: Budget<'a>,
    pub(crate) checker: Checker<'n>,
    pub(crate) witnesses: Witnesses<'a>,
    /// Ranges that the solver believes in, for the mixed-integer programs of the layers after.
    pub(crate) believed: ValueMap<Range>,
    /// What an earlier analysis has found, or this one, before it began again.
    pub(crate) recalled: Option<Checkpoint>,
    /// The first layer, once its ranges are known, if its lines can be tilted.
    pub(crate) front: Option<Arc<InputLayer>>,
    /// How many layers have ranges, or shall have them, that are as narrow as lines can make them.
    pub(crate) narrow: usize,
    /// How bounds of the outputs were proved.
    pub(crate) outputs: Vec<(ValueId, ProofLog)>,
    /// The layers before.
    pub(crate) stages: Vec<LayerState>,
    pub(crate) stage: LayerState,
    /// How many units of the layers before are decided.
    pub(crate) decided_before: usize,
    /// How long each technique took, in all layers.
    pub(crate) times: BTreeMap<Technique, Duration>,
    /// When it left the last layer.
    clock: Instant,
}

/// A layer, and what is known of it.
#[derive(Default)]
pub(crate) struct LayerState {
    pub(crate) layer: LayerId,
    pub(crate) verdicts: Vec<Option<Verdict>>,
    /// How that was proved.
    pub(crate) record: ProofLog,
    /// Whether its ranges are as narrow as lines can make them.
    pub(crate) narrow: bool,
    /// What is left of an earlier analysis, or for a later one.
    pub(crate) drafts: Vec<UnfinishedTree>,
    /// Whether what an earlier analysis has proved was not proved again, because it was too late.
    pub(crate) forgotten: bool,
    /// What is before it, for a solver, once that was asked for.
    reduced: OnceLock<Option<Arc<Reduced>>>,
    pub(crate) time: Duration,
}

impl LayerState {
    /// How many of the layer's units are decided.
    pub(crate) fn decided(&self) -> usize {
        self.verdicts.iter().filter(|verdict| verdict.is_some()).count()
    }
}

impl<'n> Analyzer<'_, 'n> {
    /// Looks at points, before the first layer.
    fn sample_domain(&mut self) -> Result<(), DomainError> {
        self.narrow = self.narrow_layers();
        if let Some(state) = &self.recalled {
            self.witnesses.evaluate_points(&state.points(self.checker.domain()));
        }
        let looks = matches!(self.options.engine, Engine::Auto | Engine::Bounds);
        if !looks || self.network.layers().len() == 0 || self.budget.is_exhausted() {
            return Ok(());
        }
        if let Some(samples) = self.options.samples {
            self.witnesses.evaluate_samples(samples, &self.budget)?;
        }
        self.timed(Technique::WITNESS, |run| run.witnesses.sample_domain(run.options.seed));
        Ok(())
    }

    /// How many layers, from the first on, have ranges that are as narrow as they can be, by what is recalled.
    fn narrow_layers(&self) -> usize {
        let first = self.network.layers().next();
        let exact = first.is_some_and(|first| has_exact_intervals(self.network, first));
        self.recalled.as_ref().map_or(0, Checkpoint::narrow).max(usize::from(exact))
    }

    /// Begins with a layer that the checker has just come to.
    fn enter(&mut self, layer: LayerId) {
        self.witnesses.learn(self.checker.ranges());
        let verdicts = vec![None; self.network.width(layer)];
        self.stage = LayerState { layer, verdicts, ..LayerState::default() };
        if layer.index() == 1 {
            self.find_front();
        }
    }

    /// Looks at the first layer, once its ranges are as they shall be.
    pub(crate) fn find_front(&mut self) {
        let bounds = self.checker.domain().as_box();
        self.front =
            bounds.and_then(|bounds| InputLayer::new(self.network, bounds, self.checker.ranges())).map(Arc::new);
    }

    /// Tries steps on the layer it is at, unless one of them leads back to an earlier one, and leaves it.
    fn work<'s>(&mut self, steps: impl Iterator<Item = &'s TechniqueStep>) {
        let layer = self.stage.layer;
        let mut has_share = false;
        for step in steps {
            if !(step.when)(self) {
                continue;
            }
            match step.cost {
                Cost::Nothing => {
                    (step.attempt)(self);
                    continue;
                }
                Cost::Share if !has_share => {
                    // It can take long, and shall leave time for the layers after.
                    self.budget = self.limits.part(self.parts());
                    has_share = true;
                }
                Cost::Little | Cost::Share => {}
            }
            self.timed(step.technique, step.attempt);
            if self.stage.layer != layer {
                break;
            }
        }
        self.budget = self.limits.whole();
        let before = std::mem::replace(&mut self.clock, Instant::now());
        self.stage.time += self.clock - before;
        self.stage.reduced = OnceLock::new();
        self.decided_before += self.stage.decided();
        self.stages.push(std::mem::take(&mut self.stage));
    }

    /// Goes back to a layer that was left. All that was found of the layers after it is forgotten.
    pub(crate) fn go_back(&mut self, layer: LayerId) {
        self.checker.go_back(layer);
        let spent: Duration = self.stages.drain(layer.index() + 1..).map(|stage| stage.time).sum();
        self.stage = self.stages.pop().unwrap_or_default();
        self.stage.time += spent;
        self.decided_before = self.stages.iter().map(LayerState::decided).sum();
    }

    /// Whether a layer had too little time, although there is some left: each search has only its share, and the layers
    /// after may have left some of theirs.
    fn has_time_left_over(&self) -> bool {
        matches!(self.options.engine, Engine::Auto | Engine::Bounds)
            && self.first_open().is_some()
            && self.limits.stopped() == Some(StopReason::OutOfTime)
            && self.limits.whole().time_left().is_some_and(|left| left > WORTH_GOING_ON)
    }

    /// The first layer with a unit that is undecided.
    pub(crate) fn first_open(&self) -> Option<LayerId> {
        self.stages.iter().find(|stage| stage.verdicts.contains(&None)).map(|stage| stage.layer)
    }

    /// Goes back to the first layer that is open, and takes what is known of all others along.
    fn begin_again(&mut self) {
        self.recalled = Some(self.state());
        self.narrow = self.narrow_layers();
        self.limits.go_on();
        self.budget = self.limits.whole();
        if let Some(layer) = self.first_open() {
            self.go_back(layer);
        }
    }

    /// Of how many layers that need time this one is the first.
    pub(crate) fn parts(&self) -> usize {
        let others = match &self.recalled {
            Some(state) => state.open_after(self.stage.layer),
            None => self.network.layers().len() - self.stage.layer.index() - 1,
        };
        others + 1
    }

    /// Works on a step, and takes its time.
    pub(crate) fn timed<T>(&mut self, step: Technique, work: impl FnOnce(&mut Self) -> T) -> T {
        let start = Instant::now();
        let done = work(self);
        *self.times.entry(step).or_default() += start.elapsed();
        done
    }

    /// Whether there is anything left to do in this layer, and time for it.
    pub(crate) fn is_open(&self) -> bool {
        !self.open_bounds().is_empty() && !self.budget.is_exhausted()
    }

    /// What is before the layer, for a solver, if one is to be asked.
    pub(crate) fn reduced(&self) -> Option<&Arc<Reduced>> {
        let asks_solver = HAS_SOLVER && matches!(self.options.engine, Engine::Auto | Engine::Milp);
        let new = || if asks_solver { self.reduced_by(self.checker.ranges()) } else { None };
        self.stage.reduced.get_or_init(new).as_ref()
    }

    /// What is before the layer, if these are the ranges there.
    pub(crate) fn reduced_by(&self, ranges: &ValueMap<Range>) -> Option<Arc<Reduced>> {
        Reduced::new(self.network, self.stage.layer, ranges).map(Arc::new)
    }

    /// All bounds of the layer's units.
    pub(crate) fn all_bounds(&self) -> Vec<Target> {
        (0..self.stage.verdicts.len()).flat_map(Target::both).collect()
    }

    /// Proves linear bounds with the default slopes, with a look at the clock now and then.
    pub(crate) fn prove_linear(&mut self, by: Technique, bounds: &[Target]) {
        let before = self.checker.range(self.stage.layer).clone();
        let mut done = 0;
        for some in bounds.chunks(BOUNDS_AT_ONCE) {
            if self.budget.is_exhausted() {
                break;
            }
            self.checker.prove_linear(some, &[]);
            done += some.len();
        }
        if done == 2 * self.stage.verdicts.len() {
            self.stage.record.note_all_linear();
        } else {
            let proofs = bounds[..done].iter().map(|&target| BoundProof { target, tree: leaf(Relaxation::default()) });
            self.note(&before, proofs);
        }
        self.settle(by, bounds);
    }

    /// Keeps proofs that made the range of the layer's pre-activations narrower than it was before.
    pub(crate) fn note(&mut self, before: &Range, proofs: impl Iterator<Item = BoundProof>) {
        let known = (self.network, self.checker.ranges());
        self.stage.record.note(before, self.checker.range(self.stage.layer), known, proofs);
    }

    /// Proves linear bounds with these lines.
    pub(crate) fn prove_lines(&mut self, by: Technique, bounds: &[Target], lines: Vec<Relaxation>) {
        let before = self.checker.range(self.stage.layer).clone();
        self.checker.prove_linear(bounds, &lines.iter().collect::<Vec<_>>());
        let proofs = bounds.iter().zip(lines).map(|(&target, lines)| BoundProof { target, tree: leaf(lines) });
        self.note(&before, proofs);
        self.settle(by, bounds);
    }

    /// What bounds of the layer are found from.
    pub(crate) fn known(&self) -> KnownRanges<'_> {
        self.known_of(self.network.pre_activation(self.stage.layer))
    }

    /// What bounds of a value are found from.
    pub(crate) fn known_of(&self, value: ValueId) -> KnownRanges<'_> {
        KnownRanges { network: self.network, domain: self.checker.domain(), value, ranges: self.checker.ranges() }
    }

    /// What is asked about a bound.
    pub(crate) fn question(&self, target: Target) -> BoundProblem<'_> {
        self.question_of(self.network.pre_activation(self.stage.layer), target)
    }

    /// What is asked about a bound of a value.
    pub(crate) fn question_of(&self, value: ValueId, target: Target) -> BoundProblem<'_> {
        let front = self.front.as_ref().filter(|front| self.network.output_of(front.layer) <= value);
        BoundProblem { known: self.known_of(value), target, front, budget: &self.budget }
    }

    /// Works on some bounds, on all threads, and lets the checker decide what the outcomes are worth. In groups of
    /// `row`, each may hand over a linear program to the next.
    pub(crate) fn attempt(
        &mut self,
        by: Technique,
        bounds: &[Target],
        row: usize,
        work: impl Fn(&Self, &mut Option<Program>, Target, &mut Probe<'_>) -> (SearchOutcome, Option<Claim>) + Sync,
    ) {
        self.begin(by, bounds.len());
        let this = &*self;
        let one = |program: &mut Option<Program>, bound: Target| {
            let mut probe = this.witnesses.probe(this.stage.layer, bound);
            let (outcome, claim) = match this.budget.is_exhausted() {
                true => (SearchOutcome::Open, None),
                false => work(this, program, bound, &mut probe),
            };
            this.one_done();
            (bound, outcome, claim)
        };
        let some = |bounds: &[Target]| {
            let mut program = None;
            bounds.iter().map(|&bound| one(&mut program, bound)).collect::<Vec<_>>()
        };
        let outcomes = bounds.par_chunks(row).flat_map_iter(some).collect();
        self.take_over(by, bounds, outcomes);
    }

    /// Lets the checker decide what outcomes are worth.
    pub(crate) fn take_over(
        &mut self,
        by: Technique,
        bounds: &[Target],
        outcomes: Vec<(Target, SearchOutcome, Option<Claim>)>,
    ) {
        let (mut trees, mut claims) = (Vec::new(), Vec::new());
        for (target, outcome, claim) in outcomes {
            match outcome {
                SearchOutcome::Proved(tree) => trees.push(BoundProof { target, tree }),
                SearchOutcome::Refuted(point) => self.witnesses.evaluate_points(&point),
                SearchOutcome::Open => {}
            }
            claims.extend(claim.map(|claim| (target, claim)));
        }
        let before = self.checker.range(self.stage.layer).clone();
        self.checker.prove_splits(&trees);
        self.note(&before, trees.into_iter());
        self.settle(by, bounds);
        self.settle_unstable(Technique::WITNESS);
        self.trust(&claims);
    }

    /// The bounds of 0 that undecided units may have: it is where they are cut, if their only knot is there.
    pub(crate) fn open_bounds(&self) -> Vec<Target> {
        let layer = self.stage.layer;
        let is_searched = self.network.activation(layer).is_homogeneous();
        let undecided =
            (0..self.stage.verdicts.len()).filter(|&unit| is_searched && self.stage.verdicts[unit].is_none());
        undecided.flat_map(Target::both).filter(|&target| self.witnesses.may_hold(layer, target)).collect()
    }

    /// Decides what the proved ranges decide, of the units that some bounds are about.
    pub(crate) fn settle(&mut self, by: Technique, bounds: &[Target]) {
        let (range, of) = (self.checker.range(self.stage.layer), self.network.activation(self.stage.layer));
        for &Target { unit, .. } in bounds {
            let status = Status::of_range(of, &range.lower[unit], &range.upper[unit]);
            let verdict = &mut self.stage.verdicts[unit];
            *verdict = verdict.or(status.map(|status| Verdict { status, by, trusted: false }));
        }
    }

    /// Decides what the witnesses decide.
    pub(crate) fn settle_unstable(&mut self, by: Technique) {
        for (unit, verdict) in self.stage.verdicts.iter_mut().enumerate() {
            if verdict.is_none() && self.witnesses.is_unstable(self.stage.layer, unit) {
                *verdict = Some(Verdict { status: Status::Unstable, by, trusted: false });
            }
        }
    }

    pub(crate) fn one_done(&self) {
        if let Some(observer) = self.options.observer {
            observer.advance(1);
        }
    }

    pub(crate) fn begin(&self, step: Technique, units: usize) {
        if let Some(observer) = self.options.observer
            && units > 0
        {
            let left = self.stage.verdicts.iter().filter(|verdict| verdict.is_none()).count();
            let decided = self.decided_before + self.stage.verdicts.len() - left;
            let (layer, layers) = (self.stage.layer.index() + 1, self.network.layers().len());
            let technique = step.in_words;
            observer.begin(Step::Search { technique, layer, layers, decided, left }, units);
        }
    }
}

/// A linear bound on the whole domain.
pub(crate) fn leaf(lines: Relaxation) -> SplitTree {
    SplitTree::Leaf { multipliers: Vec::new(), lines }
}

/// Whether no interval arithmetic before a layer, or since the layer before, loses anything but by rounding: every
/// element of every value on the way depends on inputs of its own, until one matrix brings them together.
pub(crate) fn has_exact_intervals(network: &Network, layer: LayerId) -> bool {
    let mut value = network.pre_activation(layer);
    let mut products = 0;
    while let Some(node) = value.node().map(|node| &network.nodes()[node]) {
        match node.op() {
            Op::Affine(map) => products += usize::from(map.kind() == ActionKind::Sums),
            // If no matrix comes after it, ranges of the layer before are all there is to know.
            Op::Activation(_) => return products == 0,
            Op::Sum(_) | Op::Concat(_) | Op::MaxPool(_) => return false,
        }
        value = node.operands()[0];
    }
    products <= 1
}
