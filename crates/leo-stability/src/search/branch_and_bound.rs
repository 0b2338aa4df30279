//! Case distinctions.
//!
//! A linear bound is loose because units that can be on or off are replaced by lines. So the domain is cut where one of them turns on: on
//! either side that unit is no longer replaced, and the bound is better. Of the units whose lines cost
//! most at the point where the bound is nearly attained, a few are tried, and the domain is cut at the one where both halves gain most. Both halves begin with the lines and multipliers of the whole, and improve them. The pieces with the worst bounds are cut first, several at a time,
//! on all threads. Each bound is attained at some point; the network is evaluated there, and may well show the sign that was to be excluded, which ends the search.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use leo_check::{Range, Relaxation, Side, SplitTree};
use leo_network::{UnitId, ValueMap};
use rayon::prelude::*;

use super::reduced::{Reduced, ReducedFunction};
use super::solver::Program;
use super::{Optimum, SearchOutcome, Split};
use crate::bounds::input_layer::Tilted;
use crate::bounds::refine::Refinement;
use crate::bounds::relaxed::{self, RelaxationParameters, RelaxedPass, is_free, is_open};
use crate::bounds::{BoundProblem, KnownRanges};
use crate::witness::Probe;

/// How many steps a piece's bound is improved by; the same where nothing is left to cut and there is no linear program; and how often it is
/// looked for a witness.
const STEPS: usize = 24;
const LAST_STEPS: usize = 400;
const LOOK_EVERY: usize = 8;
/// How many units are tried before a piece is cut, and by how many steps the bounds of the halves are improved then.
const TRIES: usize = 4;
const STEPS_OF_A_TRY: usize = 3;
/// How many pieces are worked on at a time. It does not depend on the number of threads, because answers depend on it.
const AT_ONCE: usize = 16;
/// Where linear programs have no more numbers than this, and a few pieces did not settle it, they are worth their time for every piece.
const SMALL_PROGRAM: usize = 1 << 14;
const CHEAP_PIECES: usize = 16;

/// How often a piece may have been cut: trees are walked by recursion.
const DEEPEST: usize = 256;
/// A bound that is so far below 0, as a part of the range that is known, the checker will not find to be above 0, whatever is rounded.
const CLEARLY: f64 = 1e-12;

/// A bound that is so many times as far from 0 as one that is clear may be 0 in truth; and how much is added then, to see.
const TOUCHING: f64 = 1e3;
const LEANING: f64 = 1e6;
/// A bound that is so near to 0, as a part of the range, may be 0 in truth, which only a linear program shows.
const NEARLY: f64 = 1e-6;

/// A search for a proof that a pre-activation is nowhere above 0 (an upper bound) or nowhere below 0 (a lower one).
pub(crate) struct BranchAndBound<'a> {
    question: BoundProblem<'a>,
    /// For linear programs, if there are to be any.
    reduced: Option<&'a Arc<Reduced>>,
    /// What is to be maximised.
    target: Option<ReducedFunction>,
    /// What is clearly negative.
    clear: f64,
    /// The tree of pieces, from the whole domain to the smallest.
    pieces: Vec<Checkpoint>,
    /// Those that are to be looked at.
    open: BinaryHeap<Subproblem>,
    /// How many were looked at.
    looked_at: usize,
    /// Whether some piece could be neither settled nor cut.
    stuck: bool,
}

/// What became of a piece.
enum Checkpoint {
    Open,
    Proved(SplitTree),
    Split { unit: UnitId, halves: [usize; 2] },
}

/// A unit to cut at, and multipliers with which the bounds of both halves, off first, are no worse than that of the whole.
#[derive(Clone, Copy)]
struct Branching {
    unit: UnitId,
    multipliers: [f64; 2],
}

/// A piece that is to be looked at.
struct Subproblem {
    cuts: Vec<Split>,
    /// The bound that the piece had from which it was cut.
    bound: f64,
    /// Where its lines and multipliers begin, and that of the last cut.
    start: Option<Arc<RelaxationParameters>>,
    multiplier: f64,
    place: usize,
}

impl PartialEq for Subproblem {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Subproblem {}

impl PartialOrd for Subproblem {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Subproblem {
    /// The worst bound is the greatest; of equal ones, the piece that was there first.
    fn cmp(&self, other: &Self) -> Ordering {
        self.bound.total_cmp(&other.bound).then_with(|| other.place.cmp(&self.place))
    }
}

/// What became of a piece that was looked at.
enum Settled {
    Proved(SplitTree),
    Refuted(Vec<f64>),
    Split { place: Branching, bound: f64, choice: Arc<RelaxationParameters> },
    Open,
}

impl<'a> BranchAndBound<'a> {
    pub(crate) fn new(question: BoundProblem<'a>, reduced: Option<&'a Arc<Reduced>>) -> Self {
        let BoundProblem { known: KnownRanges { network, layer, ranges, .. }, target: bound, .. } = question;
        let target = reduced.map(|reduced| reduced.target(network, layer, ranges, bound));
        let range = &ranges[network.pre_activation(layer)];
        let (lower, upper) = (range.lower[bound.unit], range.upper[bound.unit]);
        let clear = -CLEARLY * upper.max(-lower).min(f64::MAX);
        let whole = Subproblem { cuts: Vec::new(), bound: f64::INFINITY, start: None, multiplier: 0.0, place: 0 };
        let (pieces, open) = (vec![Checkpoint::Open], BinaryHeap::from([whole]));
        Self { question, reduced, target, clear, pieces, open, looked_at: 0, stuck: false }
    }

    /// Goes on with a case distinction of which some leaves are open, counted in the order of a walk. These have the lines and multipliers to begin with.
    pub(crate) fn go_on(&mut self, tree: SplitTree, open: &[usize]) {
        self.open.clear();
        let open: HashSet<usize> = open.iter().copied().collect();
        let mut whole = self.pass(self.question.known.ranges, &[]);
        whole.backward(&[self.question.target]);
        let plain = whole.plain_choice();
        let mut leaves = 0;
        let mut ahead = vec![(tree, Vec::new(), 0)];
        while let Some((tree, cuts, place)) = ahead.pop() {
            match tree {
                SplitTree::Split { unit, halves: [below, above], .. } => {
                    let halves = [self.pieces.len(), self.pieces.len() + 1];
                    self.pieces.extend([Checkpoint::Open, Checkpoint::Open]);
                    self.pieces[place] = Checkpoint::Split { unit, halves };
                    let with = |side| cuts.iter().copied().chain([Split { unit, side }]).collect::<Vec<Split>>();
                    ahead.extend([(*above, with(Side::Upper), halves[1]), (*below, with(Side::Lower), halves[0])]);
                }
                SplitTree::Leaf { mut multipliers, lines } => {
                    if open.contains(&leaves) {
                        multipliers.resize(cuts.len(), 0.0);
                        let multiplier = multipliers.pop().unwrap_or(0.0);
                        let start = plain.with(&lines, multipliers, &whole.lines, self.question.front);
                        let bound = f64::INFINITY;
                        self.open.push(Subproblem { cuts, bound, start: Some(Arc::new(start)), multiplier, place });
                    } else {
                        self.pieces[place] = Checkpoint::Proved(SplitTree::Leaf { multipliers, lines });
                    }
                    leaves += 1;
                }
            }
        }
    }

    /// The case distinction as far as it has come, and which of its leaves are open, counted in the order of a walk.
    pub(crate) fn draft(&self) -> (SplitTree, Vec<usize>) {
        let pieces: HashMap<usize, &Subproblem> = self.open.iter().map(|piece| (piece.place, piece)).collect();
        let (mut leaves, mut open) = (0, Vec::new());
        let tree = self.draft_of(0, &pieces, &mut leaves, &mut open);
        (tree, open)
    }

    fn draft_of(
        &self,
        place: usize,
        pieces: &HashMap<usize, &Subproblem>,
        leaves: &mut usize,
        open: &mut Vec<usize>,
    ) -> SplitTree {
        let leaf = match &self.pieces[place] {
            Checkpoint::Split { unit, halves } => {
                let halves = halves.map(|half| Box::new(self.draft_of(half, pieces, leaves, open)));
                return SplitTree::Split { unit: *unit, knot: 0, halves };
            }
            Checkpoint::Proved(leaf) => leaf.clone(),
            Checkpoint::Open => {
                open.push(*leaves);
                let start = pieces.get(&place).and_then(|piece| Some((piece, piece.start.as_ref()?)));
                start.map_or_else(plain_leaf, |(piece, start)| {
                    let mut pass = self.pass(self.question.known.ranges, &piece.cuts);
                    pass.begin_with(start);
                    pass.multipliers.last_mut().into_iter().for_each(|last| *last = piece.multiplier);
                    pass.leaf()
                })
            }
        };
        *leaves += 1;
        leaf
    }

    /// Looks at pieces, until the bound is proved or refuted, or so many were looked at in all. `probe` makes what looks for a witness.
    pub(crate) fn run<'w>(&mut self, most: usize, probe: impl Fn() -> Probe<'w> + Sync) -> SearchOutcome {
        while self.looked_at < most && !self.question.budget.is_exhausted() {
            let count = AT_ONCE.min(most - self.looked_at);
            let some: Vec<Subproblem> = std::iter::from_fn(|| self.open.pop()).take(count).collect();
            if some.is_empty() {
                break;
            }
            let this = &*self;
            let settle = |probe: &mut Probe<'w>, piece: &Subproblem| this.settle(piece, probe);
            let settled: Vec<Settled> = some.par_iter().map_init(&probe, settle).collect();
            self.looked_at += some.len();
            for (piece, settled) in some.into_iter().zip(settled) {
                match settled {
                    Settled::Proved(leaf) => self.pieces[piece.place] = Checkpoint::Proved(leaf),
                    Settled::Refuted(point) => return SearchOutcome::Refuted(point),
                    Settled::Split { place, bound, choice } => self.cut(piece, place, bound, choice),
                    Settled::Open if self.question.budget.is_exhausted() => self.open.push(piece),
                    // No proof will come of it, but perhaps a witness from another piece.
                    Settled::Open => self.stuck = true,
                }
            }
        }
        if !self.open.is_empty() || self.stuck {
            return SearchOutcome::Open;
        }
        SearchOutcome::Proved(self.tree(0))
    }

    fn cut(&mut self, piece: Subproblem, at: Branching, bound: f64, choice: Arc<RelaxationParameters>) {
        let Branching { unit, multipliers } = at;
        let halves = [self.pieces.len(), self.pieces.len() + 1];
        for ((side, place), multiplier) in [Side::Lower, Side::Upper].into_iter().zip(halves).zip(multipliers) {
            self.pieces.push(Checkpoint::Open);
            let mut cuts = piece.cuts.clone();
            cuts.push(Split { unit, side });
            self.open.push(Subproblem { cuts, bound, start: Some(Arc::clone(&choice)), multiplier, place });
        }
        self.pieces[piece.place] = Checkpoint::Split { unit, halves };
    }

    /// The proof, once all pieces have one.
    fn tree(&mut self, place: usize) -> SplitTree {
        match std::mem::replace(&mut self.pieces[place], Checkpoint::Open) {
            Checkpoint::Split { unit, halves } => {
                SplitTree::Split { unit, knot: 0, halves: halves.map(|half| Box::new(self.tree(half))) }
            }
            Checkpoint::Proved(leaf) => leaf,
            Checkpoint::Open => plain_leaf(),
        }
    }

    /// Looks for a proof without any cut, by a linear program that others may have used before.
    pub(crate) fn relax(&self, program: &mut Option<Program>, probe: &mut Probe<'_>) -> SearchOutcome {
        let mut pass = self.pass(self.question.known.ranges, &[]);
        match self.ask_program(&mut pass, program, self.target.as_ref()) {
            Some((_, bound)) if bound < self.clear => SearchOutcome::Proved(pass.leaf()),
            Some((optimum, _)) => probe.shows(&optimum.point).map_or(SearchOutcome::Open, SearchOutcome::Refuted),
            None => SearchOutcome::Open,
        }
    }

    fn pass<'s>(&self, ranges: &'s ValueMap<Range>, cuts: &'s [Split]) -> RelaxedPass<'s>
    where
        'a: 's,
    {
        RelaxedPass::new(KnownRanges { ranges, ..self.question.known }, cuts, 1)
    }

    /// Tries to settle a piece without cutting it.
    fn settle(&self, piece: &Subproblem, probe: &mut Probe<'_>) -> Settled {
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
        for step in 0..=STEPS {
            if step > 0 {
                refinement.step();
            }
            if refinement.bound() < self.clear.min(-refinement.noise()) {
                return Settled::Proved(pass.leaf());
            }
            if step % LOOK_EVERY == 0 {
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
        let is_small =
            self.reduced.is_some_and(|reduced| reduced.size() <= SMALL_PROGRAM) && self.looked_at > CHEAP_PIECES;
        let is_near = bound <= NEARLY / CLEARLY * -self.clear;
        if !(is_small || is_near || piece.cuts.len() >= DEEPEST)
            && let Some(place) = self.best_cut(piece, &mut ranges, &choice, bound, &candidates)
        {
            return Settled::Split { place, bound, choice: Arc::new(choice) };
        }
        self.settle_by_program(piece, &ranges, probe, choice, bound)
    }

    /// The same by a linear program, if there is one.
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
            if found <= -TOUCHING * self.clear && self.lean(&mut pass, program, &point) {
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
        match (cut.filter(|_| piece.cuts.len() < DEEPEST), last_resort) {
            (Some(place), _) => Settled::Split { place, bound, choice: Arc::new(choice) },
            (None, Some(leaf)) => Settled::Proved(leaf),
            (None, None) => Settled::Open,
        }
    }

    /// Looks for multipliers that prove the bound on a piece. The corners that it comes by are, on average, where the bound
    /// is attained on the piece itself, which is seldom a corner of the domain: a good place to look for a witness.
    fn improve_multipliers(&self, pass: &mut RelaxedPass<'_>, probe: &mut Probe<'_>, mut bound: f64) -> Settled {
        if pass.cuts.is_empty() {
            return Settled::Open;
        }
        // A little below 0, or the bound would come nearer and nearer to 0 and never pass it.
        let aim = -0.25 * bound + 1e3 * self.clear;
        let mut total = vec![0.0; pass.corners.len()];
        for step in 1..=LAST_STEPS {
            total.iter_mut().zip(&pass.corners).for_each(|(total, corner)| *total += corner);
            if step % LOOK_EVERY == 0 {
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

    /// Solves the linear program of a piece: its solution, and the bound with the slopes and multipliers that it names, which the pass has now.
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

    /// Where a maximum of 0 is attained at a corner, as in networks without biases, coefficients of the input that should be 0 come out on the wrong side of it. So a
    /// little is added to what is to be maximised, the more the further from the corner. If that is nowhere above 0 either, its proof is one of the
    /// original with room for rounding. Says whether there is one, which the pass then has.
    fn lean(&self, pass: &mut RelaxedPass<'_>, program: &mut Option<Program>, point: &[f64]) -> bool {
        let Some(mut leaning) = self.target.clone() else { return false };
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
        let answer = self.ask_program(pass, program, Some(&leaning));
        answer.is_some_and(|(_, bound)| bound <= 0.0)
    }

    /// The unit that it pays most to cut at: of those whose lines cost most, the one with the best bounds on both halves.
    fn best_cut(
        &self,
        piece: &Subproblem,
        ranges: &mut ValueMap<Range>,
        choice: &RelaxationParameters,
        bound: f64,
        candidates: &[Branching],
    ) -> Option<Branching> {
        if candidates.len() < 2 {
            return candidates.first().copied();
        }
        let mut cuts = piece.cuts.clone();
        let mut best: Option<(f64, Branching)> = None;
        for &place in candidates.iter().take(TRIES) {
            let Branching { unit: UnitId { layer, unit }, multipliers } = place;
            let value = self.question.known.network.pre_activation(layer);
            let (lower, upper) = (ranges[value].lower[unit], ranges[value].upper[unit]);
            let gains = [Side::Lower, Side::Upper].map(|side| {
                (ranges[value].lower[unit], ranges[value].upper[unit]) = match side {
                    Side::Lower => (lower, 0.0),
                    Side::Upper => (0.0, upper),
                };
                cuts.push(Split { unit: place.unit, side });
                let mut pass = self.pass(ranges, &cuts);
                pass.begin_with(choice);
                pass.multipliers[piece.cuts.len()] = multipliers[side as usize];
                let mut refinement = Refinement::new(&mut pass, self.question.target);
                refinement.bound();
                for _ in 0..STEPS_OF_A_TRY {
                    if refinement.least < self.clear {
                        break;
                    }
                    refinement.step();
                    refinement.bound();
                }
                let least = refinement.least;
                cuts.pop();
                (bound - least).clamp(1e-6 * bound.abs(), bound.abs())
            });
            (ranges[value].lower[unit], ranges[value].upper[unit]) = (lower, upper);
            let score = gains[0] * gains[1];
            if best.is_none_or(|(most, _)| score > most) {
                best = Some((score, place));
            }
        }
        best.map(|(_, place)| place)
    }

    /// The units whose lines cost most, the costliest first: how far the line is from the ReLU where a linear program's solution is, or else at the point that the lines are near to, times the
    /// coefficient.
    fn costliest(&self, pass: &RelaxedPass<'_>, gaps: Option<&[f64]>) -> Vec<Branching> {
        let mut costs: Vec<(f64, Branching)> = Vec::new();
        // Pieces are cut where units pass 0.
        let activation = |lines: &relaxed::RelaxationLines| pass.activation(lines.layer);
        for lines in pass.lines.iter().filter(|lines| activation(lines).is_homogeneous()) {
            let (range, of) = (pass.range(lines.layer), activation(lines));
            let [left, right] = [0, 1].map(|piece: usize| of.pieces()[piece].slope);
            let gaps: Option<Vec<f64>> = self.reduced.zip(gaps).map(|(reduced, gaps)| {
                let mut found = vec![0.0; range.lower.len()];
                reduced.units_of(lines.layer, gaps).for_each(|(unit, gap)| found[unit] = gap);
                found
            });
            for (unit, &c) in lines.coefficients.iter().enumerate() {
                let (l, u) = (range.lower[unit], range.upper[unit]);
                if !is_open(of, range, unit) {
                    continue;
                }
                let (slope, is_free) = (lines.free[0][unit], is_free(of, c));
                let (below, above) = ((slope - left).abs(), (right - slope).abs());
                let worst = match is_free || c == 0.0 {
                    true => (below * -l).max(above * u),
                    false => (right - left).abs() * (-l * u / (u - l)),
                };
                // Where a solution shows no gap at all, the worst decides. Where no coefficient is left, the gaps do.
                let cost = match &gaps {
                    Some(gaps) => c.abs() * (gaps[unit] + 1e-6 * worst) + 1e-6 * gaps[unit],
                    None => c.abs() * (lines.gap(of, unit) + 1e-6 * worst),
                };
                if cost > 0.0 {
                    let multipliers = if is_free { [c.abs() * below, c.abs() * above] } else { [0.0; 2] };
                    costs.push((cost, Branching { unit: UnitId { layer: lines.layer, unit }, multipliers }));
                }
            }
        }
        costs.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        costs.into_iter().map(|(_, place)| place).collect()
    }
}

/// A linear bound with the default lines.
fn plain_leaf() -> SplitTree {
    SplitTree::Leaf { multipliers: Vec::new(), lines: Relaxation::default() }
}
