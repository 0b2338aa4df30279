//! What is handed back when an analysis is through: what is known of each layer, how to prove it again, and what
//! another analysis may begin with.

use leo_check::{LayerProof, Proof, Status};
use leo_network::UnitId;

use crate::analysis::{Analyzer, LayerState};
use crate::checkpoint::{Checkpoint, RecalledLayer};
use crate::{Analysis, Engine, Layer, Unit};

impl<'n> Analyzer<'_, 'n> {
    /// All that came of it.
    pub(crate) fn finish(mut self) -> Analysis<'n> {
        if let Some(observer) = self.options.observer.filter(|observer| observer.keeps()) {
            observer.keep(&self.state().to_bytes());
        }
        let gives_up = self.options.engine == Engine::Tighten || self.first_open().is_some();
        let stopped = self.limits.stopped().filter(|_| gives_up);
        let stages = std::mem::take(&mut self.stages);
        let layers: Vec<Layer> = stages.iter().map(|stage| self.layer(stage)).collect();
        let proofs =
            stages.into_iter().zip(&layers).map(|(stage, layer)| self.layer_proof(stage, &layer.units)).collect();
        let proof = self.proof(proofs);
        // Last of all: what is proved of outputs now is no part of the proof.
        let outputs = if self.options.outputs { self.output_ranges() } else { Vec::new() };
        Analysis {
            layers,
            outputs,
            stopped,
            steps: self.times,
            facts: self.checker.finish(),
            proof,
            channel_bounds: Vec::new(),
        }
    }

    /// All that was found out, for another analysis.
    pub(crate) fn state(&self) -> Checkpoint {
        let mut state = Checkpoint::new(&self.witnesses.points(), self.checker.domain());
        for stage in &self.stages {
            if stage.forgotten {
                state.take_from(self.recalled.as_ref());
                continue;
            }
            let (linear, bounds) = stage.record.proved();
            let (bounds, drafts) = (bounds.to_vec(), stage.drafts.clone());
            let undecided = stage.verdicts.len() - stage.decided();
            state.keep(&RecalledLayer { linear, narrow: stage.narrow, bounds, drafts }, undecided);
        }
        state
    }

    /// What was found out about a layer.
    fn layer(&self, stage: &LayerState) -> Layer {
        let units = (0..stage.verdicts.len()).map(|unit| self.unit(stage, unit)).collect();
        Layer { id: stage.layer, units, time: stage.time }
    }

    /// How to prove again what is known of a layer.
    fn layer_proof(&self, stage: LayerState, units: &[Unit]) -> LayerProof {
        let is_shown = |unit: usize| {
            self.options.certify_witnesses && units[unit].status == Status::Unstable && !units[unit].trusted
        };
        let mut proof = stage.record.finish(stage.layer, (self.network, self.checker.ranges()), is_shown);
        if self.options.engine == Engine::Tighten {
            // A bound may have been proved from ranges of earlier layers that were not yet what they are now. They are
            // narrower since, but the default slopes are others for others.
            proof.units.fill(Status::Undecided);
        }
        proof
    }

    /// How to prove again what is known of all layers: with inputs for units that can be on or off.
    fn proof(&self, mut layers: Vec<LayerProof>) -> Proof {
        let mut unstable = Vec::new();
        for (layer, proof) in self.network.layers().zip(&layers) {
            let units = proof.units.iter().enumerate().filter(|(_, status)| **status == Status::Unstable);
            unstable.extend(units.map(|(unit, _)| UnitId { layer, unit }));
        }
        let (points, shown) = self.witnesses.cover(&unstable);
        for (UnitId { layer, unit }, shown) in unstable.into_iter().zip(shown) {
            match shown {
                Some(shown) => layers[layer.index()].witnesses.push(shown),
                None => layers[layer.index()].units[unit] = Status::Undecided,
            }
        }
        Proof { layers, points }
    }

    fn unit(&self, stage: &LayerState, unit: usize) -> Unit {
        let (range, verdict) = (self.checker.range(stage.layer), stage.verdicts[unit]);
        let status = verdict.map_or(Status::Undecided, |verdict| verdict.status);
        let trusted = verdict.is_some_and(|verdict| verdict.trusted);
        let shown = self.options.report_witnesses && status == Status::Unstable && !trusted;
        Unit {
            status,
            by: verdict.map(|verdict| verdict.by),
            trusted,
            lower: range.lower[unit],
            upper: range.upper[unit],
            witnesses: shown.then(|| self.witnesses.of(stage.layer, unit)),
            positions: None,
        }
    }
}
