//! Branch and bound (Bunel et al. 2018, arXiv:1711.00455): case distinctions on which side of 0 units are.
//!
//! A linear bound is loose because unstable units are replaced by lines. So the domain is split where one of them turns
//! on: on either side that unit is no longer replaced, and the bound is better. A piece of the domain (a subproblem, or
//! node) is bounded ([`bounding`]), and if that does not settle it, split at the unit where that pays most
//! ([`branching`]). Both halves begin with the lines and multipliers of the whole, and improve them. The pieces with
//! the worst bounds come first, several at a time, on all threads. Each bound is attained at some point; the network is
//! evaluated there, and may well show the sign that was to be excluded, which ends the search.
//!
//! Here is which piece comes next, and what has become of them: a tree, which is the proof once every leaf has one.

mod bounding;
mod branching;

use std::cmp::Ordering;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use leo_check::{Range, Relaxation, Side, SplitTree};
use leo_network::{UnitId, ValueMap};
use rayon::prelude::*;

use super::reduced::{Reduced, ReducedFunction};
use super::{SearchOutcome, Split};
use crate::bounds::relaxed::{RelaxationParameters, RelaxedPass};
use crate::bounds::{BoundProblem, KnownRanges};
use crate::witness::Probe;
use bounding::Settled;
use branching::Branching;

/// How many pieces are worked on at a time. It does not depend on the number of threads, because answers depend on it.
const BATCH_SIZE: usize = 16;
/// A bound that is below 0 by more than this part of the range that is known the checker will not find to be above 0,
/// whatever is rounded.
const SIGN_MARGIN: f64 = 1e-12;

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
    pieces: Vec<PieceState>,
    /// Those that are to be looked at.
    open: BinaryHeap<Subproblem>,
    /// How many were looked at.
    looked_at: usize,
    /// Whether some piece could be neither settled nor split.
    stuck: bool,
}

/// What became of a piece.
enum PieceState {
    Open,
    Proved(SplitTree),
    Split { unit: UnitId, halves: [usize; 2] },
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

impl<'a> BranchAndBound<'a> {
    pub(crate) fn new(question: BoundProblem<'a>, reduced: Option<&'a Arc<Reduced>>) -> Self {
        let BoundProblem { known: KnownRanges { network, value, ranges, .. }, target: bound, .. } = question;
        let target = reduced.map(|reduced| reduced.target(network, value, ranges, bound));
        let range = &ranges[value];
        let (lower, upper) = (range.lower[bound.unit], range.upper[bound.unit]);
        let clear = -SIGN_MARGIN * upper.max(-lower).min(f64::MAX);
        let whole = Subproblem { cuts: Vec::new(), bound: f64::INFINITY, start: None, multiplier: 0.0, place: 0 };
        let (pieces, open) = (vec![PieceState::Open], BinaryHeap::from([whole]));
        Self { question, reduced, target, clear, pieces, open, looked_at: 0, stuck: false }
    }

    /// Goes on with a case distinction, a `tree` of which the `open` leaves, counted in the order of a walk, are not
    /// proved. They have the lines and multipliers to begin with.
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
                    self.pieces.extend([PieceState::Open, PieceState::Open]);
                    self.pieces[place] = PieceState::Split { unit, halves };
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
                        self.pieces[place] = PieceState::Proved(SplitTree::Leaf { multipliers, lines });
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
            PieceState::Split { unit, halves } => {
                let halves = halves.map(|half| Box::new(self.draft_of(half, pieces, leaves, open)));
                return SplitTree::Split { unit: *unit, knot: 0, halves };
            }
            PieceState::Proved(leaf) => leaf.clone(),
            PieceState::Open => {
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

    /// Looks at pieces, until the bound is proved or refuted, or `most` pieces were looked at in all. `probe` makes
    /// what looks for a witness.
    pub(crate) fn run<'w>(&mut self, most: usize, probe: impl Fn() -> Probe<'w> + Sync) -> SearchOutcome {
        while self.looked_at < most && !self.question.budget.is_exhausted() {
            let count = BATCH_SIZE.min(most - self.looked_at);
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
                    Settled::Proved(leaf) => self.pieces[piece.place] = PieceState::Proved(leaf),
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
            self.pieces.push(PieceState::Open);
            let mut cuts = piece.cuts.clone();
            cuts.push(Split { unit, side });
            self.open.push(Subproblem { cuts, bound, start: Some(Arc::clone(&choice)), multiplier, place });
        }
        self.pieces[piece.place] = PieceState::Split { unit, halves };
    }

    /// The proof, once all pieces have one.
    fn tree(&mut self, place: usize) -> SplitTree {
        match std::mem::replace(&mut self.pieces[place], PieceState::Open) {
            PieceState::Split { unit, halves } => {
                SplitTree::Split { unit, knot: 0, halves: halves.map(|half| Box::new(self.tree(half))) }
            }
            PieceState::Proved(leaf) => leaf,
            PieceState::Open => plain_leaf(),
        }
    }

    fn pass<'s>(&self, ranges: &'s ValueMap<Range>, cuts: &'s [Split]) -> RelaxedPass<'s>
    where
        'a: 's,
    {
        RelaxedPass::new(KnownRanges { ranges, ..self.question.known }, cuts, 1)
    }
}

/// A linear bound with the default lines.
fn plain_leaf() -> SplitTree {
    SplitTree::Leaf { multipliers: Vec::new(), lines: Relaxation::default() }
}
