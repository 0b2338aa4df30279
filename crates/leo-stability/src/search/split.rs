//! Case distinctions.
//!
//! A linear bound is loose because units that can be on or off are replaced by lines. So the domain is cut where one of them turns on: on
//! either side that unit is no longer replaced, and the bound is better. The unit to cut at is the one whose line costs
//! most. On each piece the signs that are known there help by multipliers, which a few steps of descent find, or else a linear program. Each bound is attained
//! at some point; the network is evaluated there, and may well show the sign that was to be excluded, which ends the search.

use std::sync::Arc;

use leo_check::{Range, Side, Tree};
use leo_network::Network;

use super::reduced::{Affine, Reduced};
use super::solver::Program;
use super::{Cut, Optimum, Outcome};
use crate::bounds::relaxed::Pass;
use crate::budget::Budget;
use crate::witness::Probe;

/// How often the multipliers of a piece are improved; the same where nothing is left to cut and there is no linear program; and how often it is
/// looked for a witness.
const STEPS: usize = 20;
const LAST_STEPS: usize = 400;
const LOOK_EVERY: usize = 10;
/// How many pieces are looked at before linear programs help.
const CHEAP_PIECES: usize = 16;

/// How often a piece may have been cut: trees are walked by recursion.
const DEEPEST: usize = 256;
/// A bound that is so far below 0, as a part of the range that is known, the checker will not find to be above 0, whatever is rounded.
const CLEARLY: f64 = 1e-12;

/// A bound that is so many times as far from 0 as one that is clear may be 0 in truth; and how much is added then, to see.
const TOUCHING: f64 = 1e3;
const LEANING: f64 = 1e6;

/// A search for a proof that a pre-activation is nowhere above 0 (an upper bound) or nowhere below 0 (a lower one).
pub(crate) struct Search<'a, 'p> {
    pub(crate) network: &'a Network,
    pub(crate) layer: usize,
    pub(crate) target: (usize, Side),
    /// How many pieces may be looked at.
    pub(crate) pieces: usize,
    pub(crate) budget: &'a Budget<'a>,
    /// For linear programs, if there are to be any.
    pub(crate) reduced: Option<&'a Arc<Reduced>>,
    /// Is shown points, and says whether one of them has the sign that is to be excluded.
    pub(crate) probe: &'a mut Probe<'p>,
}

impl<'a, 'p> Search<'a, 'p> {
    fn begin(self, ranges: &[Range], program: Option<Program>) -> Progress<'a, 'p> {
        let target = self.reduced.map(|reduced| reduced.target(self.network, self.layer, ranges, self.target));
        let range = &ranges[self.network.pre_activation(self.layer).index()];
        let (lower, upper) = (range.lower[self.target.0], range.upper[self.target.0]);
        let clear = -CLEARLY * upper.max(-lower).min(f64::MAX);
        Progress { search: self, target, program, clear, looked_at: 0 }
    }

    /// Looks for a proof on the domain, where `ranges` hold.
    pub(crate) fn run(self, ranges: &[Range]) -> Outcome {
        self.begin(ranges, None).piece(&mut ranges.to_vec(), &mut Vec::new())
    }

    /// Looks for a proof without any cut, by a linear program that others may have used before.
    pub(crate) fn relax(self, ranges: &[Range], program: &mut Option<Program>) -> Outcome {
        let mut pass = Pass::new(self.network, self.layer, ranges, &[], 1);
        let mut progress = self.begin(ranges, program.take());
        let answer = progress.ask_program(&mut pass);
        *program = progress.program;
        match answer {
            Some((_, bound)) if bound < progress.clear => Outcome::Proved(pass.leaf(true)),
            Some((optimum, _)) if progress.search.probe.shows(&optimum.point) => Outcome::Refuted,
            _ => Outcome::Open,
        }
    }
}

/// A search under way.
struct Progress<'a, 'p> {
    search: Search<'a, 'p>,
    /// What is to be maximised.
    target: Option<Affine>,
    /// Made when it is first needed.
    program: Option<Program>,
    /// What is clearly negative.
    clear: f64,
    looked_at: usize,
}

impl Progress<'_, '_> {
    /// Goes through the pieces of the piece that `cuts` leave, where `ranges` hold.
    fn piece(&mut self, ranges: &mut [Range], cuts: &mut Vec<Cut>) -> Outcome {
        if self.looked_at >= self.search.pieces || cuts.len() > DEEPEST || self.search.budget.is_exhausted() {
            return Outcome::Open;
        }
        self.looked_at += 1;
        let cut = {
            let mut pass = Pass::new(self.search.network, self.search.layer, ranges, cuts, 1);
            match self.settle(&mut pass) {
                Settled::Proved(leaf) => return Outcome::Proved(leaf),
                Settled::Refuted => return Outcome::Refuted,
                Settled::Open => return Outcome::Open,
                Settled::Cut { layer, unit } => (layer, unit),
            }
        };
        let (layer, unit) = cut;
        let value = self.search.network.pre_activation(layer).index();
        let (lower, upper) = (ranges[value].lower[unit], ranges[value].upper[unit]);
        let mut halves = Vec::new();
        for on in [false, true] {
            (ranges[value].lower[unit], ranges[value].upper[unit]) = if on { (0.0, upper) } else { (lower, 0.0) };
            cuts.push(Cut { layer, unit, on });
            let outcome = self.piece(ranges, cuts);
            cuts.pop();
            match outcome {
                Outcome::Proved(tree) => halves.push(Box::new(tree)),
                Outcome::Refuted => return Outcome::Refuted,
                // No proof will come of it, but perhaps a witness from the other half.
                Outcome::Open => {}
            }
        }
        (ranges[value].lower[unit], ranges[value].upper[unit]) = (lower, upper);
        match <[Box<Tree>; 2]>::try_from(halves) {
            Ok([off, on]) => Outcome::Proved(Tree::Split { layer, unit, off, on }),
            Err(_) => Outcome::Open,
        }
    }

    /// Tries to settle a piece without cutting it.
    fn settle(&mut self, pass: &mut Pass<'_>) -> Settled {
        let bound = pass.backward(&[self.search.target])[0];
        if bound < self.clear {
            return Settled::Proved(pass.leaf(false));
        }
        if self.search.probe.shows(&pass.corners) {
            return Settled::Refuted;
        }
        // Perhaps the checker sees that a bound is exactly 0.
        let mut last_resort = (bound <= 0.0).then(|| pass.leaf(false));
        let mut cut = self.costliest(pass, None);
        let helped = self.target.is_some() && (cut.is_none() || self.looked_at > CHEAP_PIECES);
        // Where nothing is left to cut, it is worth a little more, and costs more.
        let steps = if cut.is_some() || helped { STEPS } else { LAST_STEPS };
        self.looked_at += steps / STEPS - 1;
        match self.improve_multipliers(pass, bound, steps) {
            Settled::Open => {}
            settled => return settled,
        }
        if helped && let Some((Optimum { point, gaps, .. }, bound)) = self.ask_program(pass) {
            if bound < self.clear {
                return Settled::Proved(pass.leaf(true));
            }
            if self.search.probe.shows(&point) || self.search.probe.shows(&pass.sharpened(&point)) {
                return Settled::Refuted;
            }
            if bound <= -self.clear {
                last_resort = Some(pass.leaf(true));
            }
            if bound <= -TOUCHING * self.clear && self.lean(pass, &point) {
                return Settled::Proved(pass.leaf(true));
            }
            cut = self.costliest(pass, Some(&gaps));
        }
        match (cut, last_resort) {
            (Some((layer, unit)), _) => Settled::Cut { layer, unit },
            (None, Some(leaf)) => Settled::Proved(leaf),
            (None, None) => Settled::Open,
        }
    }

    /// Looks for multipliers that prove the bound on a piece. The corners that it comes by are, on average, where the bound
    /// is attained on the piece itself, which is seldom a corner of the domain: a good place to look for a witness.
    fn improve_multipliers(&mut self, pass: &mut Pass<'_>, mut bound: f64, steps: usize) -> Settled {
        if pass.cuts.is_empty() {
            return Settled::Open;
        }
        // A little below 0, or the bound would come nearer and nearer to 0 and never pass it.
        let aim = -0.25 * bound + 1e3 * self.clear;
        let mut total = vec![0.0; pass.corners.len()];
        for step in 1..=steps {
            total.iter_mut().zip(&pass.corners).for_each(|(total, corner)| *total += corner);
            if step % LOOK_EVERY == 0 {
                let average: Vec<f64> = total.iter().map(|total| total / step as f64).collect();
                if self.search.probe.shows(&average) {
                    return Settled::Refuted;
                }
            }
            pass.forward();
            pass.descend_multipliers((bound - aim) / (1.0 + step as f64 / 20.0));
            bound = pass.backward(&[self.search.target])[0];
            if bound < self.clear {
                return Settled::Proved(pass.leaf(false));
            }
        }
        Settled::Open
    }

    /// Solves the linear program of a piece: its solution, and the bound with the slopes and multipliers that it names, which the pass has now.
    fn ask_program(&mut self, pass: &mut Pass<'_>) -> Option<(Optimum, f64)> {
        let (reduced, target) = (self.search.reduced?, self.target.as_ref()?);
        if self.program.is_none() {
            self.program = Program::new(reduced);
        }
        let optimum = self.program.as_mut()?.maximise(target, pass.cuts, self.search.budget)?;
        let bound = pass.follow(self.search.target, reduced, &optimum.duals);
        Some((optimum, bound))
    }

    /// Where a maximum of 0 is attained at a corner, as in networks without biases, coefficients of the input that should be 0 come out on the wrong side of it. So a
    /// little is added to what is to be maximised, the more the further from the corner. If that is nowhere above 0 either, its proof is one of the
    /// original with room for rounding. Says whether there is one, which the pass then has.
    fn lean(&mut self, pass: &mut Pass<'_>, point: &[f64]) -> bool {
        let Some(original) = self.target.take() else { return false };
        let mut leaning = original.clone();
        let range = pass.input();
        let total = -LEANING * self.clear / point.len() as f64;
        for (index, (&x, c)) in point.iter().zip(&mut leaning.inputs).enumerate() {
            let (lo, hi) = (range.lower[index], range.upper[index]);
            if lo < hi && (x <= lo || x >= hi) {
                let slope = total / (hi - lo);
                let (slope, corner) = if x <= lo { (slope, lo) } else { (-slope, hi) };
                *c += slope;
                leaning.constant -= slope * corner;
            }
        }
        self.target = Some(leaning);
        let answer = self.ask_program(pass);
        self.target = Some(original);
        answer.is_some_and(|(_, bound)| bound <= 0.0)
    }

    /// The unit whose line costs most: how far the line is from the ReLU, at its worst or where a linear program's solution is, times the
    /// coefficient.
    fn costliest(&self, pass: &Pass<'_>, gaps: Option<&[f64]>) -> Option<(usize, usize)> {
        let mut best: Option<(f64, usize, usize)> = None;
        for lines in &pass.lines {
            let range = pass.range(lines.layer);
            let gaps: Option<Vec<f64>> = self.search.reduced.zip(gaps).map(|(reduced, gaps)| {
                let mut found = vec![0.0; range.lower.len()];
                reduced.units_of(lines.layer, gaps).for_each(|(unit, gap)| found[unit] = gap);
                found
            });
            for (unit, &c) in lines.coefficients.iter().enumerate() {
                let (l, u) = (range.lower[unit], range.upper[unit]);
                if l >= 0.0 || u <= 0.0 {
                    continue;
                }
                let slope = lines.free[0][unit];
                let worst = if c > 0.0 { -l * u / (u - l) } else { (slope * -l).max((1.0 - slope) * u) };
                // Where a solution shows no gap at all, the worst decides. Where no coefficient is left, the gaps do.
                let cost = match &gaps {
                    Some(gaps) => c.abs() * (gaps[unit] + 1e-6 * worst) + 1e-6 * gaps[unit],
                    None => c.abs() * worst,
                };
                if cost > best.map_or(0.0, |(most, ..)| most) {
                    best = Some((cost, lines.layer, unit));
                }
            }
        }
        best.map(|(_, layer, unit)| (layer, unit))
    }
}

/// What became of a piece.
enum Settled {
    Proved(Tree),
    Refuted,
    Cut { layer: usize, unit: usize },
    Open,
}
