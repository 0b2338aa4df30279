//! Interval arithmetic, as the checker carries it out where it comes to a layer: interval bound propagation (IBP, Gowal
//! et al. 2018). For the first layer over a box, nothing can improve on it.

use super::{Cost, Technique, TechniqueStep};

/// What it is called.
pub(super) const TECHNIQUE: Technique = Technique { name: "interval", in_words: "intervals", is_plain: true };

/// Decides what the ranges decide that are there.
pub(super) const READ_OFF: TechniqueStep = TechniqueStep {
    technique: TECHNIQUE,
    cost: Cost::Nothing,
    when: |_| true,
    attempt: |run| run.settle(TECHNIQUE, &run.all_bounds()),
};
