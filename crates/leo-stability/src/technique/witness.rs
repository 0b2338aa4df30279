//! Inputs that show units on both sides: gradient steps to corners, then projected gradient ascent (PGD, Madry et al.
//! 2018) on pre-activations, from better starts the longer it takes.

use super::{Cost, Technique, TechniqueStep};
use crate::analysis::Analyzer;
use crate::bounds::KnownRanges;
use crate::witness::PgdBudget;

/// What it is called.
pub(super) const TECHNIQUE: Technique = Technique { name: "witness", in_words: "inputs that show it", is_plain: false };

/// Decides what the points decide that were looked at.
pub(super) const READ_OFF: TechniqueStep = TechniqueStep {
    technique: TECHNIQUE,
    cost: Cost::Nothing,
    when: |_| true,
    attempt: |run| run.settle_unstable(TECHNIQUE),
};

/// Looks where linear bounds are attained, and climbs from there.
pub(super) const CLIMB: TechniqueStep =
    TechniqueStep { technique: TECHNIQUE, cost: Cost::Little, when: |_| true, attempt: |run| run.climb() };

/// Climbs from many points, with shrinking steps.
pub(super) const ASCEND: TechniqueStep = TechniqueStep {
    technique: TECHNIQUE,
    cost: Cost::Little,
    when: |run| run.is_open(),
    attempt: |run| run.pgd_with_restarts(PgdBudget::SHORT),
};

/// Climbs from many points as [`ASCEND`] does, and longer.
pub(super) const ASCEND_LONGER: TechniqueStep =
    TechniqueStep { cost: Cost::Share, attempt: |run| run.pgd_with_restarts(PgdBudget::LONG), ..ASCEND };

impl Analyzer<'_, '_> {
    fn climb(&mut self) {
        let open: Vec<usize> =
            (0..self.stage.verdicts.len()).filter(|&unit| self.stage.verdicts[unit].is_none()).collect();
        self.begin(TECHNIQUE, open.len());
        if self.budget.is_exhausted() {
            return;
        }
        let open_bounds = self.open_bounds();
        let (network, domain, ranges) = (self.network, self.checker.domain(), self.checker.ranges());
        let known = KnownRanges { network, domain, value: network.pre_activation(self.stage.layer), ranges };
        self.witnesses.try_relaxation_maximisers(known, &open_bounds, &self.budget);
        self.witnesses.settle_doubts(self.stage.layer, &open, &self.budget);
        self.witnesses.climb(self.stage.layer, &open, &self.budget);
        self.witnesses.settle_doubts(self.stage.layer, &open, &self.budget);
        self.settle_unstable(TECHNIQUE);
    }

    /// Looks once more for the inputs that undecided units lack.
    fn pgd_with_restarts(&mut self, effort: PgdBudget) {
        let open = self.open_bounds();
        self.begin(TECHNIQUE, open.len());
        self.witnesses.pgd_with_restarts(self.stage.layer, &open, effort, self.options.seed, &self.budget);
        let units: Vec<usize> = open.iter().map(|target| target.unit).collect();
        self.witnesses.settle_doubts(self.stage.layer, &units, &self.budget);
        self.settle_unstable(TECHNIQUE);
    }
}
