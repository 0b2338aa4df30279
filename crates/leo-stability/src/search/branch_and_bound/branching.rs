//! Where to split a piece: the branching of branch and bound.
//!
//! Of the units whose lines cost most at the point where the bound is nearly attained, a few are tried, and the piece
//! is split at the one where both halves gain most. That is filtered smart branching (FSB, De Palma et al. 2021,
//! arXiv:2104.06718): a cheap score filters candidates, as that of BaBSR (Bunel et al. 2020, arXiv:1909.06588), and a
//! short computation of bounds chooses among them. The gains of both halves are multiplied, as solvers of mixed-integer
//! programs do (Achterberg 2007).

use leo_check::{Range, Side};
use leo_network::{UnitId, ValueMap};

use super::{BranchAndBound, Subproblem};
use crate::bounds::refine::Refinement;
use crate::bounds::relaxed::{self, RelaxationParameters, RelaxedPass, is_free, is_open};
use crate::search::Split;

/// How many units are tried before a piece is split.
const MAX_CANDIDATES: usize = 4;
/// By how many steps the bounds of both halves are improved to try a unit.
const CANDIDATE_STEPS: usize = 3;

/// A unit to cut at, and multipliers with which the bounds of both halves, off first, are no worse than that of the
/// whole.
#[derive(Clone, Copy)]
pub(super) struct Branching {
    pub(super) unit: UnitId,
    pub(super) multipliers: [f64; 2],
}

impl BranchAndBound<'_> {
    /// The unit that it pays most to split at: of the `candidates`, whose lines cost most, the one with the best bounds
    /// on both halves.
    pub(super) fn best_cut(
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
        for &place in candidates.iter().take(MAX_CANDIDATES) {
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
                for _ in 0..CANDIDATE_STEPS {
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

    /// The units whose lines cost most, the costliest first: how far the line is from the ReLU where a linear program's
    /// solution is, or else at the point that the lines are near to, times the coefficient.
    pub(super) fn costliest(&self, pass: &RelaxedPass<'_>, gaps: Option<&[f64]>) -> Vec<Branching> {
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
