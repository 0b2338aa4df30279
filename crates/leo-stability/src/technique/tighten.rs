//! Ranges as narrow as lines can make them, and no search for signs.
//!
//! After the default lines (CROWN), all layers and the outputs are gone through again and again: first with slopes that
//! are chosen for each bound, in batches (alpha-CROWN, Xu et al. 2021); then with all that a bound may choose, tilted
//! lines included, each search from where the one before ended. Every pass begins with the ranges of the one before,
//! and none is forgotten, so that it may stop at any time. It does when a pass gains too little.

use std::time::Instant;

use leo_check::{BoundProof, Range, Relaxation, Target};
use leo_network::ValueId;
use rayon::prelude::*;

use super::{Technique, slopes, tilt};
use crate::analysis::{Analyzer, has_exact_intervals, leaf};
use crate::bounds::relaxed::is_open;
use crate::bounds::{refine, slopes as batches};
use crate::proof_log::ProofLog;

/// A pass that makes no layer and no output narrower than by this part, on average, is the last one.
const ENOUGH: f64 = 0.01;
/// How many passes there are at the most.
const MOST_PASSES: usize = 16;

/// How lines are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refinement {
    /// Slopes alone, for many bounds together.
    LowerSlopes,
    /// All there is, for one bound after the other.
    Everything,
}

impl Analyzer<'_, '_> {
    /// Makes ranges narrower until that gains nothing more.
    pub(crate) fn tighten(&mut self) {
        self.find_front();
        if self.options.outputs {
            self.bound_outputs();
        }
        for pass in 0..MOST_PASSES {
            let how = if pass == 0 { Refinement::LowerSlopes } else { Refinement::Everything };
            let gain = self.tighten_once(how);
            if self.budget.is_exhausted() || pass > 0 && gain < ENOUGH {
                break;
            }
        }
    }

    /// Goes through all layers, and on to the outputs if they are asked for.
    fn tighten_once(&mut self, how: Refinement) -> f64 {
        let by = self.name_of(how);
        let mut gain = 0.0_f64;
        for index in 0..self.stages.len() {
            self.stage = std::mem::take(&mut self.stages[index]);
            self.decided_before = self.stages.iter().map(|stage| stage.decided()).sum();
            let start = Instant::now();
            gain = gain.max(self.timed(by, |run| run.tighten_layer(how)));
            self.stage.time += start.elapsed();
            self.stages[index] = std::mem::take(&mut self.stage);
        }
        if self.options.outputs {
            gain = gain.max(self.timed(by, |run| run.refine_outputs(how)));
        }
        gain
    }

    fn name_of(&self, how: Refinement) -> Technique {
        match how {
            Refinement::Everything if self.front.is_some() => tilt::TECHNIQUE,
            Refinement::LowerSlopes | Refinement::Everything => slopes::TECHNIQUE,
        }
    }

    /// Makes ranges of the layer's pre-activations narrower: of all units in batches, and one by one only of those for
    /// which a chord may stand.
    fn tighten_layer(&mut self, how: Refinement) -> f64 {
        let layer = self.stage.layer;
        if has_exact_intervals(self.network, layer) {
            return 0.0;
        }
        let (range, of) = (self.checker.range(layer), self.network.activation(layer));
        let wanted = |unit: &usize| how == Refinement::LowerSlopes || is_open(of, range, *unit);
        let units = 0..range.lower.len();
        let targets: Vec<Target> = units.filter(wanted).flat_map(Target::both).collect();
        let by = self.name_of(how);
        self.begin(by, targets.len());
        let mut record = std::mem::take(&mut self.stage.record);
        let gain = self.refine(self.network.pre_activation(layer), &targets, &mut record, how);
        self.stage.record = record;
        self.settle(by, &targets);
        gain
    }

    /// Makes bounds of a value better. By how much its elements are narrower then is the answer, as a part of their
    /// widths, on average.
    pub(crate) fn refine(&mut self, value: ValueId, targets: &[Target], record: &mut ProofLog, how: Refinement) -> f64 {
        let (found, lines): (Vec<Target>, Vec<Relaxation>) =
            self.chosen_lines(value, targets, record, how).into_iter().flatten().unzip();
        let before = self.checker.ranges()[value].clone();
        self.checker.prove_linear_at(value, &found, &lines.iter().collect::<Vec<_>>());
        let proofs = found.into_iter().zip(lines).map(|(target, lines)| BoundProof { target, tree: leaf(lines) });
        let after = &self.checker.ranges()[value];
        record.note(&before, after, (self.network, self.checker.ranges()), proofs);
        let gains = targets.iter().map(|target| gain(&before, after, target.unit));
        gains.sum::<f64>() / targets.len().max(1) as f64
    }

    /// Lines for bounds of a value, as far as there is time to look for them.
    fn chosen_lines(
        &self,
        value: ValueId,
        targets: &[Target],
        record: &ProofLog,
        how: Refinement,
    ) -> Vec<Vec<(Target, Relaxation)>> {
        let in_batch = |targets: &[Target]| {
            if self.budget.is_exhausted() {
                return Vec::new();
            }
            let slopes = batches::improved(self.known_of(value), targets, false, &self.budget);
            targets.iter().for_each(|_| self.one_done());
            targets.iter().zip(slopes).map(|(&target, slopes)| (target, Relaxation { slopes, tilt: None })).collect()
        };
        let alone = |&target: &Target| {
            if self.budget.is_exhausted() {
                return Vec::new();
            }
            let lines = refine::best_lines(&self.question_of(value, target), record.lines(target), false);
            self.one_done();
            vec![(target, lines)]
        };
        match how {
            Refinement::LowerSlopes => targets.par_chunks(batches::block(self.network)).map(in_batch).collect(),
            Refinement::Everything => targets.par_iter().map(alone).collect(),
        }
    }
}

/// By what part an element's range is narrower than before.
fn gain(before: &Range, after: &Range, element: usize) -> f64 {
    let [before, after] = [before, after].map(|range| range.upper[element] - range.lower[element]);
    match after < before {
        true if before.is_finite() => 1.0 - after / before,
        true => 1.0,
        false => 0.0,
    }
}
