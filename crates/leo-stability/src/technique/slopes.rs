//! Linear bounds with slopes that are chosen for each of them: alpha-CROWN (Xu et al. 2021).

use leo_check::{LowerSlopes, Relaxation, Target};
use rayon::prelude::*;

use super::{Cost, Technique, TechniqueStep};
use crate::analysis::Analyzer;
use crate::bounds::slopes;

/// What it is called.
pub(super) const TECHNIQUE: Technique = Technique { name: "slopes", in_words: "better slopes", is_plain: true };

/// Chooses slopes for bounds that are open.
pub(super) const IMPROVE: TechniqueStep =
    TechniqueStep { technique: TECHNIQUE, cost: Cost::Little, when: |_| true, attempt: |run| run.better_slopes() };

impl Analyzer<'_, '_> {
    fn better_slopes(&mut self) {
        let open = self.open_bounds();
        self.begin(TECHNIQUE, open.len());
        let improve = |some: &[Target]| slopes::improved(self.known(), some, true, &self.budget);
        let block = slopes::block(self.network);
        let slopes: Vec<Vec<LowerSlopes>> = open.par_chunks(block).map(improve).collect();
        let lines = slopes.into_iter().flatten().map(|slopes| Relaxation { slopes, tilt: None }).collect();
        self.prove_lines(TECHNIQUE, &open, lines);
    }
}
