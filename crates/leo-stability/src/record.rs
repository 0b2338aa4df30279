//! What the checker was made to prove, so that another one can prove it again.

use leo_check::{LayerProof, Range, Side, Status, Tree, default_slope};

use crate::verdict::status_of_range;

/// What was proved of a layer's units, in the making.
#[derive(Default)]
pub(crate) struct Record {
    linear: bool,
    bounds: Vec<(usize, Side, Tree)>,
}

impl Record {
    /// All linear bounds with the default slopes were proved.
    pub(crate) fn note_all_linear(&mut self) {
        self.linear = true;
    }

    /// Some bounds were proved. Those that were better than what was known are kept, instead of what was better before. `ranges` are what is proved of the values
    /// before the layer.
    pub(crate) fn note(
        &mut self,
        before: &Range,
        after: &Range,
        ranges: &[Range],
        layers: impl Fn(usize) -> usize,
        proofs: impl Iterator<Item = (usize, Side, Tree)>,
    ) {
        for (unit, side, mut tree) in proofs {
            let is_better = match side {
                Side::Lower => after.lower[unit] > before.lower[unit],
                Side::Upper => after.upper[unit] < before.upper[unit],
            };
            if is_better {
                trim(&mut tree, ranges, &layers, false);
                self.bounds.retain(|(other, on, _)| (*other, *on) != (unit, side));
                self.bounds.push((unit, side, tree));
            }
        }
    }

    /// The proof, given what came of it, and which units are shown on and off.
    pub(crate) fn finish(
        mut self,
        range: &Range,
        ranges: &[Range],
        layers: impl Fn(usize) -> usize,
        is_shown: impl Fn(usize) -> bool,
    ) -> LayerProof {
        self.bounds.iter_mut().for_each(|(_, _, tree)| trim(tree, ranges, &layers, true));
        let status = |(unit, (&lower, &upper)): (usize, (&f64, &f64))| {
            let open = if is_shown(unit) { Status::Unstable } else { Status::Undecided };
            status_of_range(lower, upper).unwrap_or(open)
        };
        let units = range.lower.iter().zip(&range.upper).enumerate().map(status).collect();
        LayerProof { units, linear: self.linear, bounds: self.bounds, witnesses: Vec::new() }
    }
}

impl Record {
    /// What was proved, with all slopes, whatever the default may be another time: whether all linear bounds were, and all others.
    pub(crate) fn proved(&self) -> (bool, &[(usize, Side, Tree)]) {
        (self.linear, &self.bounds)
    }
}

/// Leaves out what goes without saying: slopes that do not matter, or, if that is wanted, are the default, and multipliers of 0 at the end. `layers` gives the value of a
/// layer's pre-activations.
pub(crate) fn trim(tree: &mut Tree, ranges: &[Range], layers: &impl Fn(usize) -> usize, defaults: bool) {
    match tree {
        Tree::Split { off, on, .. } => {
            trim(off, ranges, layers, defaults);
            trim(on, ranges, layers, defaults);
        }
        Tree::Leaf { multipliers, lines } => {
            while multipliers.last().is_some_and(|multiplier| *multiplier <= 0.0) {
                multipliers.pop();
            }
            lines.slopes.retain(|&(layer, unit), slope| {
                // What a file says of a layer that is not earlier means nothing.
                let Some(range) = ranges.get(layers(layer)) else { return false };
                let (lower, upper) = (range.lower[unit], range.upper[unit]);
                lower < 0.0 && upper > 0.0 && !(defaults && *slope == default_slope(&lower, &upper))
            });
        }
    }
}
