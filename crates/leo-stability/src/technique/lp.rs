//! Linear programs: the triangle relaxation (Ehlers 2017), over the network without its stable units.

use super::{Cost, Technique, TechniqueStep};
use crate::analysis::Analyzer;
use crate::search::branch_and_bound::BranchAndBound;

/// What it is called.
pub(super) const TECHNIQUE: Technique = Technique { name: "lp", in_words: "linear programs", is_plain: false };

/// Solves one for each bound, where they are fast.
pub(super) const RELAX: TechniqueStep = TechniqueStep {
    technique: TECHNIQUE,
    cost: Cost::Share,
    when: |run| run.is_open() && run.reduced().is_some_and(|reduced| reduced.size() <= FAST_PROGRAM_SIZE),
    attempt: |run| run.linear_programs(),
};

/// How many linear programs follow each other, each from where the last one ended. It does not depend on the number of
/// threads, because answers may depend on where they started.
const PROGRAMS_IN_A_ROW: usize = 8;

/// Linear programs with no more numbers than this are fast enough to be tried before case distinctions.
const FAST_PROGRAM_SIZE: usize = 1 << 17;

impl Analyzer<'_, '_> {
    fn linear_programs(&mut self) {
        let open = self.open_bounds();
        self.attempt(TECHNIQUE, &open, PROGRAMS_IN_A_ROW, |run, program, bound, probe| {
            (BranchAndBound::new(run.question(bound), run.reduced()).relax(program, probe), None)
        });
    }
}
