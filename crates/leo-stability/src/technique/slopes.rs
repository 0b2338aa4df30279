//! Linear bounds with slopes that are chosen for each of them: alpha-CROWN (Xu et al. 2021).

use leo_check::{Lines, Slopes, Target};
use rayon::prelude::*;

use super::{Cost, Step, Technique};
use crate::analysis::Run;
use crate::bounds::slopes;

pub(super) const TECHNIQUE: Technique = Technique { name: "slopes", in_words: "better slopes", is_plain: true };

pub(super) const IMPROVE: Step =
    Step { technique: TECHNIQUE, cost: Cost::Little, when: |_| true, attempt: |run| run.better_slopes() };

impl Run<'_, '_> {
    fn better_slopes(&mut self) {
        let open = self.open_bounds();
        self.begin(TECHNIQUE, open.len());
        let improve = |some: &[Target]| slopes::improved(self.known(), some, &self.budget);
        let block = slopes::block(self.network);
        let slopes: Vec<Vec<Slopes>> = open.par_chunks(block).map(improve).collect();
        let lines = slopes.into_iter().flatten().map(|slopes| Lines { slopes, tilt: None }).collect();
        self.prove_lines(TECHNIQUE, &open, lines);
    }
}
