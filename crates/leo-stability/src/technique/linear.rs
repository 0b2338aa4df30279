//! Linear bounds by backward substitution, with the default slopes: CROWN (Zhang et al. 2018), DeepPoly (Singh et al.
//! 2019).

use leo_check::{BoundProof, Relaxation, SplitTree, Target};

use super::{Cost, Technique, TechniqueStep, slopes, tilt};
use crate::Engine;
use crate::analysis::{Analyzer, has_exact_intervals};
use crate::checkpoint::RecalledLayer;

/// What it is called.
pub(super) const TECHNIQUE: Technique = Technique { name: "linear", in_words: "linear bounds", is_plain: true };

/// Proves again what an earlier analysis has proved of the layer.
pub(super) const RECALL: TechniqueStep =
    TechniqueStep { technique: TECHNIQUE, cost: Cost::Nothing, when: |_| true, attempt: |run| run.recall() };

/// Bounds units, also where only the layers after profit from it.
pub(super) const BOUND: TechniqueStep =
    TechniqueStep { technique: TECHNIQUE, cost: Cost::Little, when: |_| true, attempt: |run| run.linear_bounds() };

impl Analyzer<'_, '_> {
    fn linear_bounds(&mut self) {
        // Ranges of unstable units matter to the layers after, and in the last one to nobody. Intervals of the first
        // layer are exact.
        let narrow = self.options.tighten_last_layer || self.options.outputs || self.options.engine == Engine::Tighten;
        let last = self.stage.layer.index() + 1 == self.network.layers().len() && !narrow;
        let known = last || has_exact_intervals(self.network, self.stage.layer);
        let wanted = |unit: &usize| !known || self.stage.verdicts[*unit].is_none();
        let bounds: Vec<Target> = (0..self.stage.verdicts.len()).filter(wanted).flat_map(Target::both).collect();
        self.begin(TECHNIQUE, bounds.len());
        self.prove_linear(TECHNIQUE, &bounds);
    }

    /// Proves again what an earlier analysis has proved of this layer.
    fn recall(&mut self) {
        let Some(state) = &self.recalled else { return };
        let RecalledLayer { linear, narrow, bounds, drafts } = state.recall(self.network, self.stage.layer);
        (self.stage.narrow, self.stage.drafts) = (narrow, drafts);
        self.stage.forgotten = true;
        if self.budget.is_exhausted() {
            return;
        }
        if linear {
            self.prove_linear(TECHNIQUE, &self.all_bounds());
        }
        let (mut trees, mut lines) = (Vec::new(), [Vec::new(), Vec::new()]);
        for BoundProof { target, tree } in bounds {
            match tree {
                SplitTree::Leaf { lines: chosen, .. } => {
                    lines[usize::from(chosen.tilt.is_some())].push((target, chosen));
                }
                tree @ SplitTree::Split { .. } => trees.push(BoundProof { target, tree }),
            }
        }
        for (by, lines) in [slopes::TECHNIQUE, tilt::TECHNIQUE].into_iter().zip(lines) {
            let (bounds, lines): (Vec<Target>, Vec<Relaxation>) = lines.into_iter().unzip();
            self.prove_lines(by, &bounds, lines);
        }
        let before = self.checker.range(self.stage.layer).clone();
        let budget = &self.budget;
        self.checker.prove_splits_with_stop(&trees, &|| budget.is_exhausted());
        let bounds: Vec<Target> = trees.iter().map(|bound| bound.target).collect();
        self.note(&before, trees.into_iter());
        self.settle(Technique::SPLIT, &bounds);
        self.stage.forgotten = self.budget.is_exhausted();
    }
}
