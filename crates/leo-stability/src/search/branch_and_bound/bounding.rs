//! One piece of a case distinction: the bounding of branch and bound.
//!
//! A piece is settled by a proof that its bound is below 0, or by a witness. First slopes, multipliers and tilted lines
//! are improved together (beta-CROWN, Wang et al. 2021, and [`crate::bounds::refine`]), with a look now and then at the
//! point where the bound is attained. Where programs are small, or the bound is so near to 0 that it may be 0 in truth,
//! a linear program over the triangle relaxation (Ehlers 2017) says what the multipliers should be.

use std::sync::Arc;

use leo_check::{Range, Side, SplitTree};
use leo_network::{UnitId, ValueMap};

use super::branching::Branching;
use super::{BranchAndBound, SIGN_MARGIN, Subproblem};
use crate::bounds::input_layer::Tilted;
use crate::bounds::refine::Refinement;
use crate::bounds::relaxed::{RelaxationParameters, RelaxedPass};
use crate::bounds::{BoundProblem, KnownRanges};
use crate::search::reduced::ReducedFunction;
use crate::search::solver::Program;
use crate::search::{Optimum, SearchOutcome, Split};
use crate::witness::Probe;

/// How many steps a piece's bound is improved by.
const REFINEMENT_STEPS: usize = 24;
/// How many steps a piece's multipliers are improved by where nothing is left to split and there is no linear program.
const MULTIPLIER_STEPS: usize = 400;
/// After how many steps it is looked for a witness, again and again.
const PROBE_INTERVAL: usize = 8;
/// Linear programs with no more numbers than this are worth their time for every piece, if [`PIECES_WITHOUT_PROGRAM`]
/// pieces did not settle it.
const SMALL_PROGRAM_SIZE: usize = 1 << 14;
/// How many pieces are looked at before small linear programs are solved for every piece.
const PIECES_WITHOUT_PROGRAM: usize = 16;
/// How often a piece may have been split: trees are walked by recursion.
const MAX_DEPTH: usize = 256;

/// A bound that a linear program found may be 0 in truth if it is above 0 by no more than this many times what one that
/// is clear is below it.
const LEAN_LIMIT: f64 = 1e3;
/// How much is then added to what is to be maximised, to see whether it is 0, in multiples of what one that is clear is
/// below it.
const LEAN_SIZE: f64 = 1e6;
/// A bound that is above 0 by no more than this part of the range that is known may be 0 in truth, which only a linear
/// program shows.
const ZERO_TOLERANCE: f64 = 1e-6;

/// What became of a piece that was looked at.
pub(super) enum Settled {
    Proved(SplitTree),
    Refuted(Vec<f64>),
    Split { place: Branching, bound: f64, choice: Arc<RelaxationParameters> },
    Open,
}

impl BranchAndBound<'_> {
    /// Looks for a proof without any cut, by a linear program that others may have used before.
    pub(crate) fn relax(&self, program: &mut Option<Program>, probe: &mut Probe<'_>) -> SearchOutcome {
        let mut pass = self.pass(self.question.known.ranges, &[]);
        match self.ask_program(&mut pass, program, self.target.as_ref()) {
            Some((_, bound)) if bound < self.clear => SearchOutcome::Proved(pass.leaf()),
            Some((optimum, _)) => probe.shows(&optimum.point).map_or(SearchOutcome::Open, SearchOutcome::Refuted),
            None => SearchOutcome::Open,
        }
    }

    /// Tries to settle a piece without cutting it.
    pub(super) fn settle(&self, piece: &Subproblem, probe: &mut Probe<'_>) -> Settled {
        let BoundProblem { known: KnownRanges { network, ranges, .. }, target, front, budget } = self.question;
        let mut ranges = ranges.clone();
        for Split { unit: UnitId { layer, unit }, side } in &piece.cuts {
            let range = &mut ranges[network.pre_activation(*layer)];
            match side {
                Side::Upper => range.lower[*unit] = 0.0,
                Side::Lower => range.upper[*unit] = 0.0,
            }
        }
        let mut pass = self.pass(&ranges, &piece.cuts);
        pass.tilted = front.map(Tilted::new);
        if let Some(start) = &piece.start {
            pass.begin_with(start);
        }
        pass.multipliers.last_mut().into_iter().for_each(|last| *last = piece.multiplier);
        let mut refinement = Refinement::new(&mut pass, target);
        for step in 0..=REFINEMENT_STEPS {
            if step > 0 {
                refinement.step();
            }
            if refinement.bound() < self.clear.min(-refinement.noise()) {
                return Settled::Proved(pass.leaf());
            }
            if step % PROBE_INTERVAL == 0 {
                let point = refinement.point();
                if let Some(point) = probe.shows(&point).or_else(|| probe.shows(refinement.corner())) {
                    return Settled::Refuted(point);
                }
            }
            if budget.is_exhausted() {
                return Settled::Open;
            }
        }
        let bound = refinement.least;
        refinement.rest_at_best();
        refinement.bound();
        let point = refinement.point();
        pass.forward(point);
        let candidates = self.costliest(&pass, None);
        let choice = pass.choice();
        let is_small = self.reduced.is_some_and(|reduced| reduced.size() <= SMALL_PROGRAM_SIZE)
            && self.looked_at > PIECES_WITHOUT_PROGRAM;
        let is_near = bound <= ZERO_TOLERANCE / SIGN_MARGIN * -self.clear;
        if !(is_small || is_near || piece.cuts.len() >= MAX_DEPTH)
            && let Some(place) = self.best_cut(piece, &mut ranges, &choice, bound, &candidates)
        {
            return Settled::Split { place, bound, choice: Arc::new(choice) };
        }
        self.settle_by_program(piece, &ranges, probe, choice, bound)
    }

    /// Tries to settle a piece by a linear program, if there is one, and says where to split it if that does not help.
    fn settle_by_program(
        &self,
        piece: &Subproblem,
        ranges: &ValueMap<Range>,
        probe: &mut Probe<'_>,
        choice: RelaxationParameters,
        mut bound: f64,
    ) -> Settled {
        // A new one each time: an answer may depend on where it started.
        let program = &mut None;
        let mut pass = self.pass(ranges, &piece.cuts);
        let plain = pass.backward(&[self.question.target])[0];
        if plain < self.clear {
            return Settled::Proved(pass.leaf());
        }
        // Perhaps the checker sees that a bound is exactly 0.
        let mut last_resort = (plain <= 0.0).then(|| pass.leaf());
        let mut cut = self.costliest(&pass, None).first().copied();
        if let Some((Optimum { point, gaps, .. }, found)) = self.ask_program(&mut pass, program, self.target.as_ref()) {
            if found < self.clear {
                return Settled::Proved(pass.leaf());
            }
            if let Some(point) = probe.shows(&point).or_else(|| probe.shows(&pass.sharpened(&point))) {
                return Settled::Refuted(point);
            }
            if found <= -self.clear {
                last_resort = Some(pass.leaf());
            }
            if found <= -LEAN_LIMIT * self.clear && self.lean(&mut pass, program, &point) {
                return Settled::Proved(pass.leaf());
            }
            bound = bound.min(found);
            cut = self.costliest(&pass, Some(&gaps)).first().copied();
        } else if cut.is_none() {
            // Where nothing is left to cut, it is worth a little more.
            match self.improve_multipliers(&mut pass, probe, plain) {
                Settled::Open => {}
                settled => return settled,
            }
        }
        match (cut.filter(|_| piece.cuts.len() < MAX_DEPTH), last_resort) {
            (Some(place), _) => Settled::Split { place, bound, choice: Arc::new(choice) },
            (None, Some(leaf)) => Settled::Proved(leaf),
            (None, None) => Settled::Open,
        }
    }

    /// Looks for multipliers that prove the bound on a piece. The corners that it comes by are, on average, where the
    /// bound is attained on the piece itself, which is seldom a corner of the domain: a good place to look for a
    /// witness.
    fn improve_multipliers(&self, pass: &mut RelaxedPass<'_>, probe: &mut Probe<'_>, mut bound: f64) -> Settled {
        if pass.cuts.is_empty() {
            return Settled::Open;
        }
        // A little below 0, or the bound would come nearer and nearer to 0 and never pass it.
        let aim = -0.25 * bound + 1e3 * self.clear;
        let mut total = vec![0.0; pass.corners.len()];
        for step in 1..=MULTIPLIER_STEPS {
            total.iter_mut().zip(&pass.corners).for_each(|(total, corner)| *total += corner);
            if step % PROBE_INTERVAL == 0 {
                let average: Vec<f64> = total.iter().map(|total| total / step as f64).collect();
                if let Some(point) = probe.shows(&average) {
                    return Settled::Refuted(point);
                }
            }
            let corners = pass.corners.clone();
            pass.forward(corners);
            pass.descend_multipliers((bound - aim) / (1.0 + step as f64 / 20.0));
            bound = pass.backward(&[self.question.target])[0];
            if bound < self.clear {
                return Settled::Proved(pass.leaf());
            }
        }
        Settled::Open
    }

    /// Solves the linear program of a piece: its solution, and the bound with the slopes and multipliers that it names,
    /// which the pass has now.
    fn ask_program(
        &self,
        pass: &mut RelaxedPass<'_>,
        program: &mut Option<Program>,
        target: Option<&ReducedFunction>,
    ) -> Option<(Optimum, f64)> {
        let (reduced, target) = (self.reduced?, target?);
        if program.is_none() {
            *program = Program::new(reduced);
        }
        let optimum = program.as_mut()?.maximise(target, pass.cuts, self.question.budget)?;
        let bound = pass.follow(self.question.target, reduced, &optimum.duals);
        Some((optimum, bound))
    }

    /// Where a maximum of 0 is attained at a corner, as in networks without biases, coefficients of the input that
    /// should be 0 come out on the wrong side of it. So a little is added to what is to be maximised, the more the
    /// further from the corner. If that is nowhere above 0 either, its proof is one of the original with room for
    /// rounding. Says whether there is one, which the pass then has.
    fn lean(&self, pass: &mut RelaxedPass<'_>, program: &mut Option<Program>, point: &[f64]) -> bool {
        let Some(mut leaning) = self.target.clone() else { return false };
        let range = pass.input();
        let total = -LEAN_SIZE * self.clear / point.len() as f64;
        for (index, (&x, c)) in point.iter().zip(&mut leaning.inputs).enumerate() {
            let (lo, hi) = (range.lower[index], range.upper[index]);
            if lo < hi && (x <= lo || x >= hi) {
                let slope = total / (hi - lo);
                let (slope, corner) = if x <= lo { (slope, lo) } else { (-slope, hi) };
                *c += slope;
                leaning.constant -= slope * corner;
            }
        }
        let answer = self.ask_program(pass, program, Some(&leaning));
        answer.is_some_and(|(_, bound)| bound <= 0.0)
    }
}
