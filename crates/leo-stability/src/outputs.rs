//! Ranges of what leaves the network: by the default lines (CROWN) in any case, and by chosen slopes (alpha-CROWN)
//! while there is time.

use leo_check::{Range, Target};
use leo_network::ValueId;

use crate::Engine;
use crate::analysis::{Analyzer, BOUNDS_AT_ONCE};
use crate::technique::{Refinement, Technique};

impl Analyzer<'_, '_> {
    /// What is proved of the outputs, in the end.
    pub(crate) fn output_ranges(&mut self) -> Vec<Range> {
        if self.options.engine != Engine::Tighten {
            self.bound_outputs();
            self.timed(Technique::SLOPES, |run| run.refine_outputs(Refinement::LowerSlopes));
        }
        self.network.outputs().iter().map(|&value| self.checker.ranges()[value].clone()).collect()
    }

    /// Proves linear bounds of all outputs with the default lines. That is one product a layer, which is not worth a
    /// look at the time: without it, a search that took all of it would leave intervals.
    pub(crate) fn bound_outputs(&mut self) {
        self.checker.go_to_end();
        let budget = self.limits.timeless();
        for &value in self.network.outputs() {
            let targets = self.targets_of(value);
            for some in targets.chunks(BOUNDS_AT_ONCE).take_while(|_| !budget.is_exhausted()) {
                self.checker.prove_linear_at(value, some, &[]);
            }
        }
    }

    /// Makes ranges of outputs narrower. By how much is the answer, as a part of their widths, for the output that
    /// gains most.
    pub(crate) fn refine_outputs(&mut self, how: Refinement) -> f64 {
        let mut outputs = std::mem::take(&mut self.outputs);
        let refine = |(value, record): &mut (ValueId, _)| self.refine(*value, &self.targets_of(*value), record, how);
        let gain = outputs.iter_mut().map(refine).fold(0.0, f64::max);
        self.outputs = outputs;
        gain
    }

    /// Both bounds of each element of a value. Nothing is to be proved of the input.
    fn targets_of(&self, value: ValueId) -> Vec<Target> {
        let elements = if value == ValueId::INPUT { 0 } else { self.network.shape(value).elements() };
        (0..elements).flat_map(Target::both).collect()
    }
}
