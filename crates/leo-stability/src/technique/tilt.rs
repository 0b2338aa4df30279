//! Linear bounds with tilted lines above units of the first layer (the inequalities of Anderson et al. 2020, mixed),
//! and slopes chosen with them: for what is open, and to tighten the intermediate bounds, which are those of the layers
//! before.

use leo_check::{Relaxation, Target};
use leo_network::LayerId;
use rayon::prelude::*;

use super::{Cost, Technique, TechniqueStep};
use crate::analysis::{Analyzer, has_exact_intervals};
use crate::bounds::refine;
use crate::bounds::relaxed::is_open;

/// What it is called.
pub(super) const TECHNIQUE: Technique = Technique { name: "tilt", in_words: "tilted lines", is_plain: false };

/// Makes the ranges narrower of a layer before the first one that needed that.
pub(super) const NARROW: TechniqueStep = TechniqueStep {
    technique: TECHNIQUE,
    cost: Cost::Little,
    when: |run| run.stage.layer.index() < run.narrow,
    attempt: |run| run.narrow_ranges(),
};

/// Goes back to the first layer whose ranges could be narrower, makes them so, and looks at all that follow again.
pub(super) const GO_BACK: TechniqueStep = TechniqueStep {
    technique: TECHNIQUE,
    cost: Cost::Little,
    when: |run| run.narrow < run.stage.layer.index() && run.is_open(),
    attempt: |run| {
        let again = run.stage.layer.index();
        run.go_back(LayerId::new(run.narrow));
        run.narrow = again;
        run.narrow_ranges();
    },
};

/// Tilts lines for bounds that are open.
pub(super) const TILT: TechniqueStep = TechniqueStep {
    technique: TECHNIQUE,
    cost: Cost::Share,
    when: |run| run.is_open(),
    attempt: |run| run.tilted_lines(),
};

impl Analyzer<'_, '_> {
    /// Lines that are tilted, for bounds that are open.
    fn tilted_lines(&mut self) {
        let open = self.open_bounds();
        self.begin(TECHNIQUE, open.len());
        let lines = self.best_lines(&open, true);
        self.prove_lines(TECHNIQUE, &open, lines);
    }

    /// Makes the ranges of unstable units as narrow as lines can: the ranges of all layers after are the narrower.
    fn narrow_ranges(&mut self) {
        if self.stage.narrow {
            return;
        }
        self.stage.narrow = true;
        if has_exact_intervals(self.network, self.stage.layer) {
            return;
        }
        let (range, of) = (self.checker.range(self.stage.layer), self.network.activation(self.stage.layer));
        let bounds = (0..range.lower.len()).filter(|&unit| is_open(of, range, unit)).flat_map(Target::both);
        let bounds: Vec<Target> = bounds.collect();
        self.begin(TECHNIQUE, bounds.len());
        self.budget = self.limits.part(self.parts());
        let lines = self.best_lines(&bounds, false);
        self.stage.narrow = !self.budget.is_exhausted();
        self.budget = self.limits.whole();
        self.prove_lines(TECHNIQUE, &bounds, lines);
    }

    fn best_lines(&self, bounds: &[Target], stop_at_sign: bool) -> Vec<Relaxation> {
        let best = |&bound: &Target| {
            let lines = refine::best_lines(&self.question(bound), None, stop_at_sign);
            self.one_done();
            lines
        };
        bounds.par_iter().map(best).collect()
    }
}
