//! What the checker was made to prove, so that another one can prove it again: the proof log of an analysis.

use leo_check::{BoundProof, LayerProof, Range, Relaxation, Side, SplitTree, Status, Target, default_slope, touched};
use leo_network::{LayerId, Network, UnitId, ValueMap};

/// What was proved of a layer's units, in the making.
#[derive(Default)]
pub(crate) struct ProofLog {
    linear: bool,
    bounds: Vec<BoundProof>,
}

impl ProofLog {
    /// All linear bounds with the default slopes were proved.
    pub(crate) fn note_all_linear(&mut self) {
        self.linear = true;
    }

    /// Some bounds were proved. Those that were better than what was known are kept, instead of what was better before.
    /// `ranges` are what is proved of the values before the layer.
    pub(crate) fn note(
        &mut self,
        before: &Range,
        after: &Range,
        (network, ranges): (&Network, &ValueMap<Range>),
        proofs: impl Iterator<Item = BoundProof>,
    ) {
        for BoundProof { target, mut tree } in proofs {
            let Target { unit, side } = target;
            let is_better = match side {
                Side::Lower => after.lower[unit] > before.lower[unit],
                Side::Upper => after.upper[unit] < before.upper[unit],
            };
            if is_better {
                trim(&mut tree, network, ranges, false);
                self.bounds.retain(|bound| bound.target != target);
                self.bounds.push(BoundProof { target, tree });
            }
        }
    }

    /// The proof, given what came of it, and which units are shown on and off.
    pub(crate) fn finish(
        mut self,
        layer: LayerId,
        (network, ranges): (&Network, &ValueMap<Range>),
        is_shown: impl Fn(usize) -> bool,
    ) -> LayerProof {
        self.bounds.iter_mut().for_each(|bound| trim(&mut bound.tree, network, ranges, true));
        let (range, of) = (&ranges[network.pre_activation(layer)], network.activation(layer));
        let status = |(unit, (lower, upper)): (usize, (&f64, &f64))| {
            let open = if is_shown(unit) { Status::Unstable } else { Status::Undecided };
            Status::of_range(of, lower, upper).unwrap_or(open)
        };
        let units = range.lower.iter().zip(&range.upper).enumerate().map(status).collect();
        LayerProof { units, linear: self.linear, bounds: self.bounds, witnesses: Vec::new() }
    }

    /// The lines that prove a bound best, if it took more than the default ones.
    pub(crate) fn lines(&self, target: Target) -> Option<&Relaxation> {
        let bound = self.bounds.iter().find(|bound| bound.target == target)?;
        match &bound.tree {
            SplitTree::Leaf { lines, .. } => Some(lines),
            SplitTree::Split { .. } => None,
        }
    }

    /// What was proved, with all slopes, whatever the default may be another time: whether all linear bounds were, and
    /// all others.
    pub(crate) fn proved(&self) -> (bool, &[BoundProof]) {
        (self.linear, &self.bounds)
    }
}

/// Leaves out what goes without saying: slopes that do not matter, or, if that is wanted, are the default, and
/// multipliers of 0 at the end.
pub(crate) fn trim(tree: &mut SplitTree, network: &Network, ranges: &ValueMap<Range>, defaults: bool) {
    match tree {
        SplitTree::Split { halves, .. } => halves.iter_mut().for_each(|half| trim(half, network, ranges, defaults)),
        SplitTree::Leaf { multipliers, lines } => {
            while multipliers.last().is_some_and(|multiplier| *multiplier <= 0.0) {
                multipliers.pop();
            }
            lines.slopes.retain(|&UnitId { layer, unit }, slope| {
                // What a file says of a layer that is not earlier means nothing.
                let Some(range) = ranges.get(network.pre_activation(layer).index()) else { return false };
                let (of, lower, upper) = (network.activation(layer), &range.lower[unit], &range.upper[unit]);
                let [first, last] = touched(of, lower, upper);
                first < last && !(defaults && *slope == default_slope(of, lower, upper))
            });
        }
    }
}
