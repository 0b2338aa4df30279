//! The order of steps, layer by layer.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use leo_check::{BoundProof, Checker, LayerProof, Lines, Proof, Range, Slopes, Target, Tree};
use leo_network::op::{ActionKind, Op};
use leo_network::{Domain, DomainError, LayerId, Network, UnitId, ValueMap};
use rayon::prelude::*;

use crate::bounds::front::Front;
use crate::bounds::relaxed::is_open;
use crate::bounds::{Known, Question, refine, slopes};
use crate::budget::{Budget, Limits};
use crate::record::{self, Record};
use crate::search::reduced::Reduced;
use crate::search::solver::Program;
use crate::search::split::Search;
use crate::search::{Claim, Outcome};
use crate::state::{Draft, Recalled, State};
use crate::verdict::Verdict;
use crate::witness::{Effort, Probe, Witnesses};
use crate::{Analysis, By, Engine, HAS_SOLVER, Layer, Options, Standing, Status, Stopped, Unit};

/// Into how many pieces the domain may be cut for one bound, and how large a mixed-integer program's search tree may be.
pub(crate) const PIECES: usize = 20_000;
pub(crate) const NODES: usize = 2000;
/// How many pieces are looked at for every bound before any gets more, and how many times as many it then gets.
const FIRST_PIECES: usize = 64;
const MORE_PIECES: usize = 4;
/// How many bounds are proved between two looks at the clock.
const BOUNDS_AT_ONCE: usize = 4096;
/// How many linear programs follow each other, each from where the last one ended. It does not depend on the number of threads, because
/// answers may depend on where they started.
const PROGRAMS_IN_A_ROW: usize = 8;

/// Linear programs with no more numbers than this are fast enough to be tried before case distinctions.
const FAST_PROGRAM: usize = 1 << 17;

/// How much time must be left for a search that had too little of it.
const WORTH_GOING_ON: Duration = Duration::from_secs(2);

pub(crate) fn run<'n>(
    network: &'n Network,
    domain: &Domain,
    options: &Options<'_>,
) -> Result<Analysis<'n>, DomainError> {
    let limits = Limits::new(options.stop, options.time_limit, options.memory_limit);
    let mut run = Run {
        network,
        options,
        limits: &limits,
        budget: limits.whole(),
        checker: Checker::new(network, domain)?,
        witnesses: Witnesses::new(network, domain),
        believed: ValueMap::default(),
        front: None,
        narrow: 0,
        stage: Stage::default(),
        decided_before: 0,
        times: BTreeMap::new(),
    };
    if let Some(first) = network.layers().next() {
        run.narrow = usize::from(has_exact_intervals(network, first));
    }
    let mut start = Instant::now();
    if let Some(state) = options.state {
        run.witnesses.look_at(&state.points(domain));
        run.narrow = run.narrow.max(state.narrow());
    }
    if options.engine != Engine::Milp && network.layers().len() > 0 && !run.budget.is_exhausted() {
        if let Some(samples) = options.samples {
            run.witnesses.look_at_samples(samples, &run.budget)?;
        }
        run.timed(By::Witness, |run| run.witnesses.look_around(options.seed));
    }
    let mut stages: Vec<Stage> = Vec::new();
    while let Some(layer) = run.checker.next_layer() {
        run.enter(layer);
        let is_through = match options.engine {
            Engine::Milp => {
                run.timed(By::Milp, Run::decide_by_programs);
                true
            }
            Engine::Auto | Engine::Bounds => run.decide(),
        };
        if !is_through {
            // The first layer whose ranges could be narrower is made so, and all that follow are looked at again.
            let again = stages.len();
            stages.truncate(run.narrow + 1);
            run.go_back(stages.pop().unwrap_or_default());
            run.decided_before = stages.iter().map(Stage::decided).sum();
            run.narrow = again;
            run.timed(By::Tilt, Run::narrow_ranges);
        }
        let now = Instant::now();
        run.stage.time += now - start;
        run.decided_before += run.stage.decided();
        stages.push(std::mem::take(&mut run.stage));
        start = now;
    }
    // A layer's search has only its share of the time. Where that was too little, and the layers after left some of theirs, it goes on.
    let is_open = stages.iter().any(|stage| stage.verdicts.contains(&None));
    if is_open
        && options.engine != Engine::Milp
        && limits.stopped() == Some(Stopped::OutOfTime)
        && let Some(time_left) = limits.whole().time_left().filter(|left| *left > WORTH_GOING_ON)
    {
        let state = run.state(domain, &stages);
        let options = Options { samples: None, state: Some(&state), time_limit: Some(time_left), ..*options };
        let mut analysis = self::run(network, domain, &options)?;
        analysis.layers.iter_mut().zip(&stages).for_each(|(layer, stage)| layer.time += stage.time);
        run.times.iter().for_each(|(&step, time)| *analysis.steps.entry(step).or_default() += *time);
        return Ok(analysis);
    }
    if let Some(keep) = options.keep {
        keep.keep(run.state(domain, &stages));
    }
    let layers: Vec<Layer> = stages.iter().map(|stage| run.layer(stage)).collect();
    let proved = stages.into_iter().zip(&layers).map(|(stage, layer)| run.layer_proof(stage, &layer.units)).collect();
    let proof = run.proof(proved);
    let stopped = limits.stopped().filter(|_| is_open);
    Ok(Analysis { layers, stopped, steps: run.times, facts: run.checker.finish(), proof })
}

/// An analysis that has come to some layer.
pub(crate) struct Run<'a, 'n> {
    pub(crate) network: &'n Network,
    pub(crate) options: &'a Options<'a>,
    limits: &'a Limits<'a>,
    /// What is left for the work at hand.
    pub(crate) budget: Budget<'a>,
    pub(crate) checker: Checker<'n>,
    pub(crate) witnesses: Witnesses<'a>,
    /// Ranges that the solver believes in, for the mixed-integer programs of the layers after.
    pub(crate) believed: ValueMap<Range>,
    /// The first layer, once its ranges are known, if its lines can be tilted.
    front: Option<Arc<Front>>,
    /// How many layers have ranges, or shall have them, that are as narrow as lines can make them.
    narrow: usize,
    pub(crate) stage: Stage,
    /// How many units of the layers before are decided.
    decided_before: usize,
    /// How long each step took, in all layers.
    times: BTreeMap<By, Duration>,
}

/// A layer, and what is known of it.
#[derive(Default)]
pub(crate) struct Stage {
    pub(crate) layer: LayerId,
    pub(crate) verdicts: Vec<Option<Verdict>>,
    /// How that was proved.
    record: Record,
    /// Whether its ranges are as narrow as lines can make them.
    narrow: bool,
    /// What is left of an earlier analysis, or for a later one.
    drafts: Vec<Draft>,
    /// Whether what an earlier analysis has proved was not proved again, because it was too late.
    forgotten: bool,
    time: Duration,
}

impl Stage {
    /// How many of the layer's units are decided.
    fn decided(&self) -> usize {
        self.verdicts.iter().filter(|verdict| verdict.is_some()).count()
    }
}

impl Run<'_, '_> {
    /// Begins with a layer that the checker has just come to.
    fn enter(&mut self, layer: LayerId) {
        self.witnesses.learn(self.checker.ranges());
        let verdicts = vec![None; self.network.width(layer)];
        self.stage = Stage { layer, verdicts, ..Stage::default() };
        if layer.index() == 1 {
            let bounds = self.checker.domain().as_box();
            self.front =
                bounds.and_then(|bounds| Front::new(self.network, bounds, self.checker.ranges())).map(Arc::new);
        }
    }

    /// Goes back to a layer that was left.
    fn go_back(&mut self, stage: Stage) {
        self.checker.go_back(stage.layer);
        self.stage = stage;
    }

    /// All that was found out, for another analysis.
    fn state(&self, domain: &Domain, stages: &[Stage]) -> State {
        let mut state = State::new(&self.witnesses.points(), domain);
        for stage in stages {
            if stage.forgotten {
                state.take_from(self.options.state);
                continue;
            }
            let (linear, bounds) = stage.record.proved();
            let (bounds, drafts) = (bounds.to_vec(), stage.drafts.clone());
            let undecided = stage.verdicts.iter().filter(|verdict| verdict.is_none()).count();
            state.keep(&Recalled { linear, narrow: stage.narrow, bounds, drafts }, undecided);
        }
        state
    }

    /// Proves again what an earlier analysis has proved of this layer.
    fn recall(&mut self) {
        let Some(state) = self.options.state else { return };
        let Recalled { linear, narrow, bounds, drafts } = state.recall(self.network, self.stage.layer);
        (self.stage.narrow, self.stage.drafts) = (narrow, drafts);
        self.stage.forgotten = true;
        if self.budget.is_exhausted() {
            return;
        }
        if linear {
            let all: Vec<Target> = (0..self.stage.verdicts.len()).flat_map(Target::both).collect();
            self.prove_linear(By::Linear, &all);
        }
        let (mut trees, mut lines) = (Vec::new(), [Vec::new(), Vec::new()]);
        for BoundProof { target, tree } in bounds {
            match tree {
                Tree::Leaf { lines: chosen, .. } => {
                    lines[usize::from(chosen.tilt.is_some())].push((target, chosen));
                }
                tree @ Tree::Split { .. } => trees.push(BoundProof { target, tree }),
            }
        }
        for (by, lines) in [By::Slopes, By::Tilt].into_iter().zip(lines) {
            let (bounds, lines): (Vec<Target>, Vec<Lines>) = lines.into_iter().unzip();
            self.prove_lines(by, &bounds, lines);
        }
        let before = self.checker.range(self.stage.layer).clone();
        let budget = &self.budget;
        self.checker.prove_splits_until(&trees, &|| budget.is_exhausted());
        let bounds: Vec<Target> = trees.iter().map(|bound| bound.target).collect();
        self.note(&before, trees.into_iter());
        self.settle(By::Split, &bounds);
        self.stage.forgotten = self.budget.is_exhausted();
    }

    /// What was found out about a layer.
    fn layer(&self, stage: &Stage) -> Layer {
        let units = (0..stage.verdicts.len()).map(|unit| self.unit(stage, unit)).collect();
        Layer { id: stage.layer, units, time: stage.time }
    }

    /// How to prove again what is known of a layer.
    fn layer_proof(&self, stage: Stage, units: &[Unit]) -> LayerProof {
        let is_shown =
            |unit: usize| self.options.shown && units[unit].status == Status::Unstable && !units[unit].trusted;
        stage.record.finish(stage.layer, (self.network, self.checker.ranges()), is_shown)
    }

    /// How to prove again what is known of all layers: with inputs for units that can be on or off.
    fn proof(&self, mut layers: Vec<LayerProof>) -> Proof {
        let mut unstable = Vec::new();
        for (layer, proof) in self.network.layers().zip(&layers) {
            let units = proof.units.iter().enumerate().filter(|(_, status)| **status == Status::Unstable);
            unstable.extend(units.map(|(unit, _)| UnitId { layer, unit }));
        }
        let (points, shown) = self.witnesses.cover(&unstable);
        for (UnitId { layer, unit }, shown) in unstable.into_iter().zip(shown) {
            match shown {
                Some(shown) => layers[layer.index()].witnesses.push(shown),
                None => layers[layer.index()].units[unit] = Status::Undecided,
            }
        }
        Proof { layers, points }
    }

    fn unit(&self, stage: &Stage, unit: usize) -> Unit {
        let (range, verdict) = (self.checker.range(stage.layer), stage.verdicts[unit]);
        let status = verdict.map_or(Status::Undecided, |verdict| verdict.status);
        let trusted = verdict.is_some_and(|verdict| verdict.trusted);
        let shown = self.options.witnesses && status == Status::Unstable && !trusted;
        Unit {
            status,
            by: verdict.map(|verdict| verdict.by),
            trusted,
            lower: range.lower[unit],
            upper: range.upper[unit],
            witnesses: shown.then(|| self.witnesses.of(stage.layer, unit)),
        }
    }

    /// The cheapest first. Says whether it is through with the layer: if not, it wants narrower ranges of the layers before.
    fn decide(&mut self) -> bool {
        let all: Vec<Target> = (0..self.stage.verdicts.len()).flat_map(Target::both).collect();
        self.settle(By::Interval, &all);
        self.settle_unstable(By::Witness);
        self.recall();
        self.timed(By::Linear, Self::linear_bounds);
        self.timed(By::Witness, Self::climb);
        self.timed(By::Slopes, Self::better_slopes);
        if self.stage.layer.index() < self.narrow {
            self.timed(By::Tilt, Self::narrow_ranges);
        }
        if !self.is_open() {
            return true;
        }
        self.timed(By::Witness, |run| run.search_harder(Effort::SHORT));
        if self.is_open() && self.narrow < self.stage.layer.index() {
            return false;
        }
        // What follows can take long, and shall leave time for the layers after.
        self.budget = self.limits.part(self.parts());
        if self.is_open() {
            self.timed(By::Tilt, Self::tilted_lines);
        }
        if self.is_open() {
            self.search_for_proofs();
        }
        self.budget = self.limits.whole();
        true
    }

    /// Of how many layers that need time this one is the first.
    fn parts(&self) -> usize {
        let others = match self.options.state {
            Some(state) => state.open_after(self.stage.layer),
            None => self.network.layers().len() - self.stage.layer.index() - 1,
        };
        others + 1
    }

    /// Works on a step, and takes its time.
    fn timed(&mut self, step: By, work: impl FnOnce(&mut Self)) {
        let start = Instant::now();
        work(self);
        *self.times.entry(step).or_default() += start.elapsed();
    }

    /// Whether there is anything left to do in this layer, and time for it.
    fn is_open(&self) -> bool {
        !self.open_bounds().is_empty() && !self.budget.is_exhausted()
    }

    /// With and without a solver.
    fn search_for_proofs(&mut self) {
        let asks_solver = HAS_SOLVER && self.options.engine != Engine::Bounds;
        let reduced = if asks_solver { self.reduced(self.checker.ranges()) } else { None };
        if let Some(reduced) = reduced.as_ref().filter(|reduced| reduced.size() <= FAST_PROGRAM) {
            self.timed(By::Lp, |run| run.linear_programs(reduced));
        }
        self.timed(By::Witness, |run| run.search_harder(Effort::LONG));
        self.timed(By::Split, |run| run.split(reduced.as_ref()));
        if let Some(reduced) = &reduced {
            self.timed(By::Milp, |run| run.mixed_integer_programs(reduced));
        }
    }

    /// What is before the layer, for a solver.
    pub(crate) fn reduced(&self, ranges: &ValueMap<Range>) -> Option<Arc<Reduced>> {
        Reduced::new(self.network, self.stage.layer, ranges).map(Arc::new)
    }

    fn linear_bounds(&mut self) {
        // Ranges of unstable units matter to the layers after, and in the last one to nobody. Intervals of the first layer are exact.
        let last = self.stage.layer.index() + 1 == self.network.layers().len() && !self.options.narrow;
        let known = last || has_exact_intervals(self.network, self.stage.layer);
        let wanted = |unit: &usize| !known || self.stage.verdicts[*unit].is_none();
        let bounds: Vec<Target> = (0..self.stage.verdicts.len()).filter(wanted).flat_map(Target::both).collect();
        self.begin(By::Linear, bounds.len());
        self.prove_linear(By::Linear, &bounds);
    }

    /// Proves linear bounds with the default slopes, with a look at the clock now and then.
    pub(crate) fn prove_linear(&mut self, by: By, bounds: &[Target]) {
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
            let proofs = bounds[..done].iter().map(|&target| BoundProof { target, tree: leaf(Lines::default()) });
            self.note(&before, proofs);
        }
        self.settle(by, bounds);
    }

    /// Keeps proofs that made the range of the layer's pre-activations narrower than it was before.
    fn note(&mut self, before: &Range, proofs: impl Iterator<Item = BoundProof>) {
        let known = (self.network, self.checker.ranges());
        self.stage.record.note(before, self.checker.range(self.stage.layer), known, proofs);
    }

    fn climb(&mut self) {
        let open: Vec<usize> =
            (0..self.stage.verdicts.len()).filter(|&unit| self.stage.verdicts[unit].is_none()).collect();
        self.begin(By::Witness, open.len());
        if self.budget.is_exhausted() {
            return;
        }
        let open_bounds = self.open_bounds();
        let (network, domain, ranges) = (self.network, self.checker.domain(), self.checker.ranges());
        let known = Known { network, domain, layer: self.stage.layer, ranges };
        self.witnesses.look_at_corners(known, &open_bounds, &self.budget);
        self.witnesses.settle_doubts(self.stage.layer, &open, &self.budget);
        self.witnesses.climb(self.stage.layer, &open, &self.budget);
        self.witnesses.settle_doubts(self.stage.layer, &open, &self.budget);
        self.settle_unstable(By::Witness);
    }

    /// Looks once more for the inputs that open units lack.
    fn search_harder(&mut self, effort: Effort) {
        let open = self.open_bounds();
        self.begin(By::Witness, open.len());
        self.witnesses.search_harder(self.stage.layer, &open, effort, self.options.seed, &self.budget);
        let units: Vec<usize> = open.iter().map(|target| target.unit).collect();
        self.witnesses.settle_doubts(self.stage.layer, &units, &self.budget);
        self.settle_unstable(By::Witness);
    }

    fn better_slopes(&mut self) {
        let open = self.open_bounds();
        self.begin(By::Slopes, open.len());
        let improve = |some: &[Target]| slopes::improved(self.known(), some, &self.budget);
        let block = slopes::block(self.network);
        let slopes: Vec<Vec<Slopes>> = open.par_chunks(block).map(improve).collect();
        let lines = slopes.into_iter().flatten().map(|slopes| Lines { slopes, tilt: None }).collect();
        self.prove_lines(By::Slopes, &open, lines);
    }

    /// Proves linear bounds with these lines.
    fn prove_lines(&mut self, by: By, bounds: &[Target], lines: Vec<Lines>) {
        let before = self.checker.range(self.stage.layer).clone();
        self.checker.prove_linear(bounds, &lines.iter().collect::<Vec<_>>());
        let proofs = bounds.iter().zip(lines).map(|(&target, lines)| BoundProof { target, tree: leaf(lines) });
        self.note(&before, proofs);
        self.settle(by, bounds);
    }

    /// What bounds of the layer are found from.
    pub(crate) fn known(&self) -> Known<'_> {
        let (network, domain, ranges) = (self.network, self.checker.domain(), self.checker.ranges());
        Known { network, domain, layer: self.stage.layer, ranges }
    }

    /// What is asked about a bound.
    pub(crate) fn question(&self, target: Target) -> Question<'_> {
        let front = self.front.as_ref().filter(|front| front.layer < self.stage.layer);
        Question { known: self.known(), target, front, budget: &self.budget }
    }

    /// Lines that are tilted, for what is open.
    fn tilted_lines(&mut self) {
        let open = self.open_bounds();
        self.begin(By::Tilt, open.len());
        let lines = self.best_lines(&open, true);
        self.prove_lines(By::Tilt, &open, lines);
    }

    /// Makes the ranges of units that can be on or off as narrow as lines can: those of all layers after are the narrower.
    fn narrow_ranges(&mut self) {
        if self.stage.narrow {
            return;
        }
        self.stage.narrow = true;
        if has_exact_intervals(self.network, self.stage.layer) {
            return;
        }
        let (range, of) = (self.checker.range(self.stage.layer), self.network.activation(self.stage.layer));
        let bounds = (0..range.lower.len()).filter(|&unit| is_open(of, range, unit)).flat_map(Target::both);
        let bounds: Vec<Target> = bounds.collect();
        self.begin(By::Tilt, bounds.len());
        self.budget = self.limits.part(self.parts());
        let lines = self.best_lines(&bounds, false);
        self.stage.narrow = !self.budget.is_exhausted();
        self.budget = self.limits.whole();
        self.prove_lines(By::Tilt, &bounds, lines);
    }

    fn best_lines(&self, bounds: &[Target], stop_at_sign: bool) -> Vec<Lines> {
        let best = |&bound: &Target| {
            let lines = refine::best_lines(&self.question(bound), stop_at_sign);
            self.one_done();
            lines
        };
        bounds.par_iter().map(best).collect()
    }

    fn linear_programs(&mut self, reduced: &Arc<Reduced>) {
        let open = self.open_bounds();
        self.attempt(By::Lp, &open, PROGRAMS_IN_A_ROW, |run, program, bound, probe| {
            (Search::new(run.question(bound), Some(reduced)).relax(program, probe), None)
        });
    }

    fn split(&mut self, reduced: Option<&Arc<Reduced>>) {
        let open = self.open_bounds();
        let most = self.options.nodes.unwrap_or(PIECES);
        self.begin(By::Split, open.len());
        let this = &*self;
        let begin = |&bound: &Target| {
            let mut search = Search::new(this.question(bound), reduced);
            if let Some(draft) = this.stage.drafts.iter().find(|draft| draft.proof.target == bound) {
                search.go_on(draft.proof.tree.clone(), &draft.open);
            }
            (bound, search, Outcome::Open)
        };
        let mut searches: Vec<(Target, Search<'_>, Outcome)> = open.iter().map(begin).collect();
        let mut pieces = FIRST_PIECES;
        loop {
            searches.par_iter_mut().with_max_len(1).for_each(|(bound, search, outcome)| {
                if matches!(outcome, Outcome::Open) {
                    *outcome = search.run(pieces.min(most), || this.witnesses.probe(this.stage.layer, *bound));
                    if !matches!(outcome, Outcome::Open) {
                        this.one_done();
                    }
                }
            });
            let is_open = searches.iter().any(|(_, _, outcome)| matches!(outcome, Outcome::Open));
            if !is_open || pieces >= most || this.budget.is_exhausted() {
                break;
            }
            pieces *= MORE_PIECES;
        }
        let goes_on = this.budget.is_exhausted() && !this.limits.whole().is_exhausted();
        let keeps = this.options.keep.is_some() || goes_on;
        let (mut drafts, mut outcomes) = (Vec::new(), Vec::new());
        for (target, search, outcome) in searches {
            if keeps && matches!(outcome, Outcome::Open) {
                let (mut tree, open) = search.draft();
                record::trim(&mut tree, this.network, this.checker.ranges(), false);
                drafts.push(Draft { proof: BoundProof { target, tree }, open });
            }
            outcomes.push((target, outcome, None));
        }
        self.stage.drafts = drafts;
        self.take_over(By::Split, &open, outcomes);
    }

    /// Works on some bounds, on all threads, and lets the checker decide what the outcomes are worth. In a row of so many, one may
    /// hand over a linear program to the next.
    pub(crate) fn attempt(
        &mut self,
        by: By,
        bounds: &[Target],
        row: usize,
        work: impl Fn(&Self, &mut Option<Program>, Target, &mut Probe<'_>) -> (Outcome, Option<Claim>) + Sync,
    ) {
        self.begin(by, bounds.len());
        let this = &*self;
        let one = |program: &mut Option<Program>, bound: Target| {
            let mut probe = this.witnesses.probe(this.stage.layer, bound);
            let (outcome, claim) = match this.budget.is_exhausted() {
                true => (Outcome::Open, None),
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
    fn take_over(&mut self, by: By, bounds: &[Target], outcomes: Vec<(Target, Outcome, Option<Claim>)>) {
        let (mut trees, mut claims) = (Vec::new(), Vec::new());
        for (target, outcome, claim) in outcomes {
            match outcome {
                Outcome::Proved(tree) => trees.push(BoundProof { target, tree }),
                Outcome::Refuted(point) => self.witnesses.look_at(&point),
                Outcome::Open => {}
            }
            claims.extend(claim.map(|claim| (target, claim)));
        }
        let before = self.checker.range(self.stage.layer).clone();
        self.checker.prove_splits(&trees);
        self.note(&before, trees.into_iter());
        self.settle(by, bounds);
        self.settle_unstable(By::Witness);
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
    pub(crate) fn settle(&mut self, by: By, bounds: &[Target]) {
        let (range, of) = (self.checker.range(self.stage.layer), self.network.activation(self.stage.layer));
        for &Target { unit, .. } in bounds {
            let status = Status::of_range(of, &range.lower[unit], &range.upper[unit]);
            let verdict = &mut self.stage.verdicts[unit];
            *verdict = verdict.or(status.map(|status| Verdict { status, by, trusted: false }));
        }
    }

    /// Decides what the witnesses decide.
    pub(crate) fn settle_unstable(&mut self, by: By) {
        for (unit, verdict) in self.stage.verdicts.iter_mut().enumerate() {
            if verdict.is_none() && self.witnesses.is_unstable(self.stage.layer, unit) {
                *verdict = Some(Verdict { status: Status::Unstable, by, trusted: false });
            }
        }
    }

    pub(crate) fn one_done(&self) {
        if let Some(progress) = self.options.progress {
            progress.one_done();
        }
    }

    pub(crate) fn begin(&self, step: By, units: usize) {
        if let Some(progress) = self.options.progress
            && units > 0
        {
            let left = self.stage.verdicts.iter().filter(|verdict| verdict.is_none()).count();
            let decided = self.decided_before + self.stage.verdicts.len() - left;
            let (layer, layers) = (self.stage.layer.index() + 1, self.network.layers().len());
            progress.begins(Standing { layer, layers, decided, left }, step, units);
        }
    }
}

/// A linear bound on the whole domain.
fn leaf(lines: Lines) -> Tree {
    Tree::Leaf { multipliers: Vec::new(), lines }
}

/// Whether no interval arithmetic before a layer, or since the layer before, loses anything but by rounding: every element of every value on the way depends on inputs of
/// its own, until one matrix brings them together.
fn has_exact_intervals(network: &Network, layer: LayerId) -> bool {
    let mut value = network.pre_activation(layer);
    let mut products = 0;
    while let Some(node) = value.node().map(|node| &network.nodes()[node]) {
        match node.op() {
            Op::Affine(map) => products += usize::from(map.kind() == ActionKind::Sums),
            // If no matrix comes after it, ranges of the layer before are all there is to know.
            Op::Activation(_) => return products == 0,
            Op::Sum(_) => return false,
        }
        value = node.operands()[0];
    }
    products <= 1
}
