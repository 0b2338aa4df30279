//! The order of steps, layer by layer.

use std::sync::Arc;
use std::time::Instant;

use leo_check::{Checker, LayerProof, Proof, Range, Side, Slopes, Tree};
use leo_network::op::Op;
use leo_network::{Domain, DomainError, Network};
use rayon::prelude::*;

use crate::bounds::slopes;
use crate::budget::{Budget, Limits};
use crate::record::Record;
use crate::search::reduced::Reduced;
use crate::search::solver::{self, Program};
use crate::search::split::Search;
use crate::search::{Claim, Outcome};
use crate::verdict::{Verdict, status_of_range};
use crate::witness::{Probe, Witnesses};
use crate::{Analysis, By, Engine, HAS_SOLVER, Layer, Options, Status, Unit};

/// Into how many pieces the domain may be cut for one bound, and how large a mixed-integer program's search tree may be.
const NODES: usize = 2000;
/// How many more pieces it is worth if a mixed-integer program says that the bound holds.
const CONFIDENCE: usize = 8;
/// How many bounds are proved between two looks at the clock.
const BOUNDS_AT_ONCE: usize = 4096;
/// How many linear programs follow each other, each from where the last one ended. It does not depend on the number of threads, because
/// answers may depend on where they started.
const PROGRAMS_IN_A_ROW: usize = 8;

/// A bound of 0 that is to be proved or refuted: of which unit, and on which side.
type Bound = (usize, Side);

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
        believed: Vec::new(),
        depth: 0,
        node: 0,
        verdicts: Vec::new(),
        record: Record::default(),
    };
    let mut start = Instant::now();
    if options.engine != Engine::Milp && network.relu_layers().next().is_some() && !run.budget.is_exhausted() {
        if let Some(samples) = options.samples {
            run.witnesses.look_at_samples(samples, &run.budget)?;
        }
        run.witnesses.look_around(options.seed);
    }
    let (mut layers, mut proved) = (Vec::new(), Vec::new());
    while let Some(node) = run.checker.next_layer() {
        let units = run.layer(node);
        proved.push(run.layer_proof(&units));
        let now = Instant::now();
        layers.push(Layer { node, units, time: now - start });
        start = now;
    }
    let is_open = layers.iter().flat_map(|layer| &layer.units).any(|unit| unit.status == Status::Undecided);
    let proof = run.proof(proved);
    Ok(Analysis { layers, stopped: limits.stopped().filter(|_| is_open), facts: run.checker.finish(), proof })
}

/// An analysis that has come to some layer.
struct Run<'a, 'n> {
    network: &'n Network,
    options: &'a Options<'a>,
    limits: &'a Limits<'a>,
    /// What is left for the work at hand.
    budget: Budget<'a>,
    checker: Checker<'n>,
    witnesses: Witnesses<'a>,
    /// Ranges that the solver believes in, for the mixed-integer programs of the layers after.
    believed: Vec<Range>,
    /// How many layers there are before this one.
    depth: usize,
    /// The layer's node.
    node: usize,
    /// What is known of its units.
    verdicts: Vec<Option<Verdict>>,
    /// How that was proved.
    record: Record,
}

impl Run<'_, '_> {
    /// Decides the units of a layer that the checker has just come to.
    fn layer(&mut self, node: usize) -> Vec<Unit> {
        self.node = node;
        self.witnesses.learn(self.checker.ranges());
        self.verdicts = vec![None; self.checker.range(node).lower.len()];
        match self.options.engine {
            Engine::Milp => self.decide_by_programs(),
            Engine::Auto | Engine::Bounds => self.decide(),
        }
        let units = (0..self.verdicts.len()).map(|unit| self.unit(unit)).collect();
        self.depth += 1;
        units
    }

    /// How to prove again what is known of the layer.
    fn layer_proof(&mut self, units: &[Unit]) -> LayerProof {
        let is_shown =
            |unit: usize| self.options.shown && units[unit].status == Status::Unstable && !units[unit].trusted;
        std::mem::take(&mut self.record).finish(self.checker.range(self.node), is_shown)
    }

    /// How to prove again what is known of all layers: with inputs for units that can be on or off.
    fn proof(&self, mut layers: Vec<LayerProof>) -> Proof {
        let mut unstable = Vec::new();
        for (layer, proof) in layers.iter().enumerate() {
            let units = proof.units.iter().enumerate().filter(|(_, status)| **status == Status::Unstable);
            unstable.extend(units.map(|(unit, _)| (layer, unit)));
        }
        let (points, shown) = self.witnesses.cover(&unstable);
        for (&(layer, unit), shown) in unstable.iter().zip(shown) {
            match shown {
                Some(shown) => layers[layer].witnesses.push(shown),
                None => layers[layer].units[unit] = Status::Undecided,
            }
        }
        Proof { layers, points }
    }

    fn unit(&self, unit: usize) -> Unit {
        let (range, verdict) = (self.checker.range(self.node), self.verdicts[unit]);
        let status = verdict.map_or(Status::Undecided, |verdict| verdict.status);
        let trusted = verdict.is_some_and(|verdict| verdict.trusted);
        let shown = self.options.witnesses && status == Status::Unstable && !trusted;
        Unit {
            status,
            by: verdict.map(|verdict| verdict.by),
            trusted,
            lower: range.lower[unit],
            upper: range.upper[unit],
            witnesses: shown.then(|| self.witnesses.of(self.depth, unit)),
        }
    }

    /// The cheapest first.
    fn decide(&mut self) {
        let all: Vec<Bound> = (0..self.verdicts.len()).flat_map(both_sides).collect();
        self.settle(By::Interval, &all);
        self.settle_unstable(By::Witness);
        self.linear_bounds();
        self.climb();
        self.better_slopes();
        if self.open_bounds().is_empty() {
            return;
        }
        // What follows can take long, and shall leave time for the layers after.
        self.budget = self.limits.part(self.network.relu_layers().count() - self.depth);
        let asks_solver = HAS_SOLVER && self.options.engine != Engine::Bounds;
        let reduced = if asks_solver { self.reduced(self.checker.ranges()) } else { None };
        if let Some(reduced) = &reduced {
            self.linear_programs(reduced);
        }
        self.split(reduced.as_ref());
        if let Some(reduced) = &reduced {
            self.mixed_integer_programs(reduced);
        }
        self.budget = self.limits.whole();
    }

    /// What is before the layer, for a solver.
    fn reduced(&self, ranges: &[Range]) -> Option<Arc<Reduced>> {
        Reduced::new(self.network, self.node, ranges).map(Arc::new)
    }

    fn linear_bounds(&mut self) {
        // Ranges of unstable units matter to the layers after, and in the last one to nobody. Intervals of the first layer are exact.
        let last = self.network.relu_layers().last() == Some(self.node) && !self.options.narrow;
        let known = last || has_exact_intervals(self.network, self.node);
        let wanted = |unit: &usize| !known || self.verdicts[*unit].is_none();
        let bounds: Vec<Bound> = (0..self.verdicts.len()).filter(wanted).flat_map(both_sides).collect();
        self.begin(By::Linear, bounds.len());
        self.prove_linear(By::Linear, &bounds);
    }

    /// Proves linear bounds with the default slopes, with a look at the clock now and then.
    fn prove_linear(&mut self, by: By, bounds: &[Bound]) {
        let before = self.checker.range(self.node).clone();
        let mut done = 0;
        for some in bounds.chunks(BOUNDS_AT_ONCE) {
            if self.budget.is_exhausted() {
                break;
            }
            self.checker.prove_linear(some, &[]);
            done += some.len();
        }
        if done == 2 * self.verdicts.len() {
            self.record.note_all_linear();
        } else {
            let proofs = bounds[..done].iter().map(|&(unit, side)| (unit, side, leaf(Slopes::new())));
            self.note(&before, proofs);
        }
        self.settle(by, bounds);
    }

    /// Keeps proofs that made the range of the layer's pre-activations narrower than it was before.
    fn note(&mut self, before: &Range, proofs: impl Iterator<Item = (usize, Side, Tree)>) {
        let value = |layer: usize| self.network.pre_activation(layer).index();
        self.record.note(before, self.checker.range(self.node), self.checker.ranges(), value, proofs);
    }

    fn climb(&mut self) {
        let open: Vec<usize> = (0..self.verdicts.len()).filter(|&unit| self.verdicts[unit].is_none()).collect();
        self.begin(By::Witness, open.len());
        if self.budget.is_exhausted() {
            return;
        }
        self.witnesses.look_at_corners(self.depth, self.checker.ranges(), &self.open_bounds(), &self.budget);
        self.witnesses.settle_doubts(self.depth, &open, &self.budget);
        self.witnesses.climb(self.depth, &open, &self.budget);
        self.witnesses.settle_doubts(self.depth, &open, &self.budget);
        self.settle_unstable(By::Witness);
    }

    fn better_slopes(&mut self) {
        let open = self.open_bounds();
        self.begin(By::Slopes, open.len());
        let ranges = self.checker.ranges();
        let improve = |some: &[Bound]| slopes::improved(self.network, self.node, ranges, some, &self.budget);
        let block = slopes::block(self.network);
        let slopes: Vec<Vec<Slopes>> = open.par_chunks(block).map(improve).collect();
        let slopes = slopes.concat();
        let before = self.checker.range(self.node).clone();
        self.checker.prove_linear(&open, &slopes);
        let proofs = open.iter().zip(slopes).map(|(&(unit, side), slopes)| (unit, side, leaf(slopes)));
        self.note(&before, proofs);
        self.settle(By::Slopes, &open);
    }

    fn linear_programs(&mut self, reduced: &Arc<Reduced>) {
        let open = self.open_bounds();
        self.attempt(By::Lp, &open, PROGRAMS_IN_A_ROW, |run, program, bound, probe| {
            (run.search(bound, 1, Some(reduced), probe).relax(run.checker.ranges(), program), None)
        });
    }

    fn split(&mut self, reduced: Option<&Arc<Reduced>>) {
        let (open, pieces) = (self.open_bounds(), self.options.nodes.unwrap_or(NODES));
        self.attempt(By::Split, &open, 1, |run, _, bound, probe| {
            (run.search(bound, pieces, reduced, probe).run(run.checker.ranges()), None)
        });
    }

    /// Looks for a witness, or for a reason to believe that a longer search for a proof pays.
    fn mixed_integer_programs(&mut self, reduced: &Arc<Reduced>) {
        let (open, nodes) = (self.open_bounds(), self.options.nodes.unwrap_or(NODES));
        self.attempt(By::Milp, &open, 1, |run, _, bound, probe| {
            let start = run.witnesses.nearest(run.depth, bound.0, bound.1);
            let claim = run.claim(bound, run.checker.ranges(), reduced, start, nodes, probe);
            let outcome = match claim.is_some_and(|claim| claim.bound <= 0.0) {
                true => run.search(bound, CONFIDENCE * nodes, Some(reduced), probe).run(run.checker.ranges()),
                false => Outcome::Open,
            };
            (outcome, claim)
        });
    }

    /// A search for a proof of a bound.
    fn search<'s, 'p>(
        &'s self,
        target: Bound,
        pieces: usize,
        reduced: Option<&'s Arc<Reduced>>,
        probe: &'s mut Probe<'p>,
    ) -> Search<'s, 'p> {
        Search { network: self.network, layer: self.node, target, pieces, budget: &self.budget, reduced, probe }
    }

    /// What a mixed-integer program says about a bound.
    fn claim(
        &self,
        bound: Bound,
        ranges: &[Range],
        reduced: &Arc<Reduced>,
        start: &[f64],
        nodes: usize,
        probe: &mut Probe<'_>,
    ) -> Option<Claim> {
        let target = reduced.target(self.network, self.node, ranges, bound);
        solver::claim(reduced, &target, start, nodes, &self.budget, probe)
    }

    /// Works on some bounds, on all threads, and lets the checker decide what the outcomes are worth. In a row of so many, one may
    /// hand over a linear program to the next.
    fn attempt(
        &mut self,
        by: By,
        bounds: &[Bound],
        row: usize,
        work: impl Fn(&Self, &mut Option<Program>, Bound, &mut Probe<'_>) -> (Outcome, Option<Claim>) + Sync,
    ) {
        self.begin(by, bounds.len());
        let this = &*self;
        let one = |program: &mut Option<Program>, (unit, side): Bound| {
            let mut probe = this.witnesses.probe(this.depth, unit, side);
            let (outcome, claim) = match this.budget.is_exhausted() {
                true => (Outcome::Open, None),
                false => work(this, program, (unit, side), &mut probe),
            };
            this.one_done();
            let tree = if let Outcome::Proved(tree) = outcome { Some((unit, side, tree)) } else { None };
            (tree, probe.found(), claim.map(|claim| (unit, side, claim)))
        };
        let some = |bounds: &[Bound]| {
            let mut program = None;
            bounds.iter().map(|&bound| one(&mut program, bound)).collect::<Vec<_>>()
        };
        let found: Vec<_> = bounds.par_chunks(row).flat_map_iter(some).collect();
        let (mut trees, mut claims) = (Vec::new(), Vec::new());
        for (tree, point, claim) in found {
            trees.extend(tree);
            claims.extend(claim);
            self.witnesses.look_at(&point.unwrap_or_default());
        }
        let before = self.checker.range(self.node).clone();
        self.checker.prove_splits(&trees);
        self.note(&before, trees.into_iter());
        self.settle(by, bounds);
        self.settle_unstable(By::Witness);
        self.trust(&claims);
    }

    /// The paper's way: for every unit first whether it can be on, and if it can, whether it can be off. What the programs claim is then
    /// to be proved.
    fn decide_by_programs(&mut self) {
        // Where it is too late to ask, what earlier programs found may still decide something.
        let by = if self.budget.is_exhausted() { By::Witness } else { By::Milp };
        self.begin(By::Milp, self.verdicts.len());
        let known = self.believed.len();
        self.believed.extend_from_slice(&self.checker.ranges()[known..]);
        let this = &*self;
        let Some(reduced) = this.reduced(&this.believed) else { return };
        let nodes = this.options.nodes.unwrap_or(usize::MAX);
        let ask = |unit: usize| {
            let mut answers = Vec::new();
            for side in [Side::Upper, Side::Lower] {
                let mut probe = this.witnesses.probe(this.depth, unit, side);
                let claim = match this.budget.is_exhausted() {
                    true => None,
                    false => this.claim((unit, side), &this.believed, &reduced, &[], nodes, &mut probe),
                };
                answers.push(((unit, side), claim, probe.found()));
                if claim.is_some_and(|claim| claim.bound <= 0.0) {
                    break;
                }
            }
            this.one_done();
            answers
        };
        let answers: Vec<_> = (0..this.verdicts.len()).into_par_iter().flat_map_iter(ask).collect();
        let value = self.network.pre_activation(self.node).index();
        let (mut claims, mut held) = (Vec::new(), Vec::new());
        for ((unit, side), claim, point) in answers {
            self.witnesses.look_at(&point.unwrap_or_default());
            let Some(claim) = claim else { continue };
            claims.push((unit, side, claim));
            let range = &mut self.believed[value];
            match side {
                Side::Upper => range.upper[unit] = range.upper[unit].min(claim.bound),
                Side::Lower => range.lower[unit] = range.lower[unit].max(-claim.bound),
            }
            held.extend((claim.bound <= 0.0).then_some((unit, side)));
        }
        self.settle_unstable(by);
        self.prove_linear(By::Milp, &held);
        if self.options.trust_solver {
            return self.trust(&claims);
        }
        held.retain(|&(unit, _)| self.verdicts[unit].is_none());
        let reduced = self.reduced(self.checker.ranges());
        let pieces = CONFIDENCE * self.options.nodes.unwrap_or(NODES);
        self.attempt(By::Milp, &held, 1, |run, _, bound, probe| {
            (run.search(bound, pieces, reduced.as_ref(), probe).run(run.checker.ranges()), None)
        });
    }

    /// The bounds of 0 that undecided units may have.
    fn open_bounds(&self) -> Vec<Bound> {
        let undecided = (0..self.verdicts.len()).filter(|&unit| self.verdicts[unit].is_none());
        undecided.flat_map(both_sides).filter(|&(unit, side)| self.witnesses.may_hold(self.depth, unit, side)).collect()
    }

    /// Decides what the proved ranges decide, of the units that some bounds are about.
    fn settle(&mut self, by: By, bounds: &[Bound]) {
        let range = self.checker.range(self.node);
        for &(unit, _) in bounds {
            let status = status_of_range(range.lower[unit], range.upper[unit]);
            let verdict = &mut self.verdicts[unit];
            *verdict = verdict.or(status.map(|status| Verdict { status, by, trusted: false }));
        }
    }

    /// Decides what the witnesses decide.
    fn settle_unstable(&mut self, by: By) {
        for (unit, verdict) in self.verdicts.iter_mut().enumerate() {
            if verdict.is_none() && self.witnesses.is_unstable(self.depth, unit) {
                *verdict = Some(Verdict { status: Status::Unstable, by, trusted: false });
            }
        }
    }

    /// Believes what mixed-integer programs say, where nothing else is known, if the user wants that.
    fn trust(&mut self, claims: &[(usize, Side, Claim)]) {
        if !self.options.trust_solver {
            return;
        }
        for (unit, verdict) in self.verdicts.iter_mut().enumerate().filter(|(_, verdict)| verdict.is_none()) {
            let claim = |wanted: Side| {
                claims.iter().find(|&&(of, side, _)| of == unit && side == wanted).map(|(_, _, claim)| claim)
            };
            let refuted = |side: Side| {
                claim(side).is_some_and(|claim| claim.value > 0.0) || !self.witnesses.may_hold(self.depth, unit, side)
            };
            let holds = |side: Side| {
                claim(side).is_some_and(|claim| claim.bound <= 0.0) && self.witnesses.may_hold(self.depth, unit, side)
            };
            let status = if holds(Side::Upper) {
                Status::Inactive
            } else if holds(Side::Lower) {
                Status::Active
            } else if refuted(Side::Upper) && refuted(Side::Lower) {
                Status::Unstable
            } else {
                continue;
            };
            *verdict = Some(Verdict { status, by: By::Milp, trusted: true });
        }
    }

    fn one_done(&self) {
        if let Some(progress) = self.options.progress {
            progress.one_done();
        }
    }

    fn begin(&self, step: By, units: usize) {
        if let Some(progress) = self.options.progress
            && units > 0
        {
            progress.begins(self.depth + 1, self.network.relu_layers().count(), step, units);
        }
    }
}

/// A linear bound on the whole domain.
fn leaf(slopes: Slopes) -> Tree {
    Tree::Leaf { multipliers: Vec::new(), slopes }
}

fn both_sides(unit: usize) -> [Bound; 2] {
    [(unit, Side::Lower), (unit, Side::Upper)]
}

/// Whether no interval arithmetic before a layer loses anything but by rounding: every element of every value on the way depends on inputs of
/// its own, until one matrix brings them together.
fn has_exact_intervals(network: &Network, layer: usize) -> bool {
    let mut value = network.pre_activation(layer);
    let mut products = 0;
    while let Some(node) = value.node().map(|node| &network.nodes()[node]) {
        match node.op() {
            Op::Dense(_) => products += 1,
            Op::Elementwise(_) | Op::Reshape(_) | Op::Transpose(_) => {}
            Op::Relu(_) | Op::Sum(_) => return false,
        }
        value = node.operands()[0];
    }
    products <= 1
}
