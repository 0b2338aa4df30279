//! Case distinctions, for units that neither bounds nor witnesses settle.
//!
//! A linear bound is loose because units that can be on or off are replaced by lines. So the domain is cut where one of them turns on: on
//! either side that unit is no longer replaced, and the bound is better. The unit to cut at is the one whose line costs
//! most. Each bound is attained at some corner; the network is evaluated there, and may well show the sign that was to be
//! excluded, which ends the search.

use leo_check::{Range, Side, Tree};
use leo_network::Network;

use crate::relaxed::Pass;

/// How a search ended.
pub(crate) enum Outcome {
    /// Every piece is proved, if the checker agrees.
    Proved(Tree),
    /// The caller saw the sign that was to be excluded.
    Refuted,
    /// Too many pieces.
    OutOfBudget,
}

/// How often the multipliers of a piece are improved; the same where nothing is left to cut; and how often it is looked for a witness.
const STEPS: usize = 20;
const LAST_STEPS: usize = 400;
const LOOK_EVERY: usize = 10;

/// A search for a proof that a pre-activation is nowhere above 0 (an upper bound) or nowhere below 0 (a lower one).
pub(crate) struct Search<'a> {
    pub(crate) network: &'a Network,
    pub(crate) layer: usize,
    pub(crate) target: (usize, Side),
    /// How many pieces may still be looked at.
    pub(crate) budget: usize,
    /// Is shown points, and says whether one of them has the sign that is to be excluded.
    pub(crate) refutes: &'a mut dyn FnMut(&[f64]) -> bool,
}

impl Search<'_> {
    /// Goes through the pieces of the piece that `cuts` leave, where `ranges` hold.
    pub(crate) fn run(&mut self, ranges: &[Range], cuts: &mut Vec<(usize, usize, bool)>) -> Outcome {
        let Some(left) = self.budget.checked_sub(1) else { return Outcome::OutOfBudget };
        self.budget = left;
        let mut pass = Pass::new(self.network, self.layer, ranges, 1);
        pass.cuts.clone_from(cuts);
        pass.multipliers = vec![0.0; cuts.len()];
        let first = pass.backward(&[self.target])[0];
        let (cut, unit) = {
            let costliest = costliest(self.network, ranges, &pass);
            if first < 0.0 {
                return Outcome::Proved(Tree::Leaf(pass.multipliers));
            }
            if (self.refutes)(&pass.corners) {
                return Outcome::Refuted;
            }
            // Where nothing is left to cut, it is worth a little more, and costs more.
            let steps = if costliest.is_some() { STEPS } else { LAST_STEPS };
            self.budget = self.budget.saturating_sub(steps / STEPS);
            match self.multipliers(&mut pass, first, steps) {
                Settled::Proved(multipliers) => return Outcome::Proved(Tree::Leaf(multipliers)),
                Settled::Refuted => return Outcome::Refuted,
                Settled::Open => {}
            }
            match costliest {
                Some(costliest) => costliest,
                // Nothing left to cut; perhaps the checker sees that a bound is exactly 0.
                None if first == 0.0 => return Outcome::Proved(Tree::Leaf(vec![0.0; cuts.len()])),
                None => return Outcome::OutOfBudget,
            }
        };
        let value = self.network.nodes()[cut].operands()[0].index();
        let mut halves = Vec::new();
        for on in [false, true] {
            let mut piece = ranges.to_vec();
            if on {
                piece[value].lower[unit] = 0.0;
            } else {
                piece[value].upper[unit] = 0.0;
            }
            cuts.push((cut, unit, on));
            let outcome = self.run(&piece, cuts);
            cuts.pop();
            match outcome {
                Outcome::Proved(tree) => halves.push(Box::new(tree)),
                Outcome::Refuted => return Outcome::Refuted,
                // No proof will come of it, but perhaps a witness from the other half.
                Outcome::OutOfBudget => {}
            }
        }
        match <[Box<Tree>; 2]>::try_from(halves) {
            Ok([off, on]) => Outcome::Proved(Tree::Split { layer: cut, unit, off, on }),
            Err(_) => Outcome::OutOfBudget,
        }
    }

    /// Looks for multipliers that prove the bound on a piece. The corners that it comes by are, on average, where the bound
    /// is attained on the piece itself, which is seldom a corner of the domain: a good place to look for a witness.
    fn multipliers(&mut self, pass: &mut Pass<'_>, mut bound: f64, steps: usize) -> Settled {
        if pass.cuts.is_empty() {
            return Settled::Open;
        }
        // A little below 0, or the bound would come nearer and nearer to 0 and never pass it.
        let aim = -0.25 * bound - 1e-9;
        let mut total = vec![0.0; pass.corners.len()];
        for step in 1..=steps {
            total.iter_mut().zip(&pass.corners).for_each(|(total, corner)| *total += corner);
            if step % LOOK_EVERY == 0 {
                let average: Vec<f64> = total.iter().map(|total| total / step as f64).collect();
                if (self.refutes)(&average) {
                    return Settled::Refuted;
                }
            }
            pass.forward();
            pass.descend_multipliers((bound - aim) / (1.0 + step as f64 / 20.0));
            bound = pass.backward(&[self.target])[0];
            if bound < 0.0 {
                return Settled::Proved(pass.multipliers.clone());
            }
        }
        Settled::Open
    }
}

/// What improving the multipliers of a piece led to.
enum Settled {
    Proved(Vec<f64>),
    Refuted,
    Open,
}

/// The unit whose line costs most: how far the line is from the ReLU at its worst, times the coefficient.
fn costliest(network: &Network, ranges: &[Range], pass: &Pass<'_>) -> Option<(usize, usize)> {
    let mut best: Option<(f64, usize, usize)> = None;
    for lines in &pass.lines {
        let range = &ranges[network.nodes()[lines.layer].operands()[0].index()];
        for (unit, &c) in lines.coefficients.iter().enumerate() {
            let (l, u) = (range.lower[unit], range.upper[unit]);
            if l >= 0.0 || u <= 0.0 || c == 0.0 {
                continue;
            }
            let slope = lines.free[0][unit];
            let gap = if c > 0.0 { -l * u / (u - l) } else { (slope * -l).max((1.0 - slope) * u) };
            let cost = c.abs() * gap;
            if best.is_none_or(|(most, ..)| cost > most) {
                best = Some((cost, lines.layer, unit));
            }
        }
    }
    best.map(|(_, layer, unit)| (layer, unit))
}
