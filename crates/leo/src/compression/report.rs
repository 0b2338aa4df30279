//! What was done, as people and programs read it.

use std::collections::{BTreeMap, BTreeSet};

use leo_compress::{Method, Pinned};
use leo_formats::Model;
use leo_formats::onnx::Document;
use leo_formats::tail::TailNode;
use leo_stability::{Status, StopReason};
use serde::Serialize;

use crate::accuracy::Accuracy;
use crate::compression::outputs::{OutputReport, outputs};
use crate::compression::reasons::{OneSidedUnit, Prospective, StayingUnits, layer_name, one_sided, staying};
use crate::{Compression, DomainSummary, Error, SampleCount, StagesReport};

/// What was done. Also the shape of the JSON: fields may join, these stay.
#[derive(Clone, Debug, Serialize)]
pub struct CompressionReport {
    /// The version of this shape.
    pub version: u32,
    /// The network that was given.
    pub model: String,
    /// Where the smaller one was written.
    pub output: String,
    /// `full` or `leo`.
    pub method: &'static str,
    /// How far approximations were allowed to move outputs.
    pub tolerance: String,
    /// Whether no weight was to be rounded.
    pub bit_exact: bool,
    /// The inputs that it is about.
    pub domain: DomainSummary,
    /// With samples, what they were good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<SampleCount>,
    /// How large the network was.
    pub before: Size,
    /// How large it is now.
    pub after: Size,
    /// Whether units are channels, each with many positions, as they are in networks with convolutions.
    pub has_channels: bool,
    /// The same of each part of a network with convolutions; nothing of others.
    #[serde(skip_serializing_if = "StagesReport::is_empty")]
    pub stages: StagesReport,
    /// How many constants the file lists as inputs, too: they are taken for the constants that they are, and what is
    /// rewritten lists none.
    pub listed_constants: usize,
    /// How many units each rule removed.
    pub removed: BTreeMap<&'static str, usize>,
    /// How many of the units that are there carry linear functions past their layer.
    pub carriers: usize,
    /// How many linear functions pass beside layers instead, by no ReLU.
    pub paths: usize,
    /// Layers that could not change, and why.
    pub kept: Vec<PinnedLayer>,
    /// Units that are always on or off, and stay.
    pub stays: Vec<StayingUnits>,
    /// Whether few units went.
    pub few: bool,
    /// If so, how many would go with larger tolerances.
    pub would_go: Vec<Prospective>,
    /// If so, and with samples, which units these show one side only of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_sided: Option<Vec<OneSidedUnit>>,
    /// How many denormal numbers became 0, because that was asked for.
    pub flushed: usize,
    /// Inputs that the new network does not depend on.
    pub unread_inputs: usize,
    /// Proved: no output moves by more, anywhere on the domain.
    pub delta: f64,
    /// Where that comes from.
    pub delta_parts: DeltaParts,
    /// The largest difference seen.
    pub observed: f64,
    /// The operators after the network: what is said of outputs is said of what these read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before_operators: Vec<String>,
    /// Each output.
    pub outputs: Vec<OutputReport>,
    /// With samples, of how many of them it is proved that the largest number of the only output is still the same one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<usize>,
    /// How many units are undecided.
    pub undecided: usize,
    /// How many of these are still there: nobody may need them.
    pub undecided_kept: usize,
    /// How many units were seen to be on and off.
    pub unstable: usize,
    /// What stopped the search for stable units, if something did.
    pub stopped: Option<&'static str>,
    /// With samples, if the outputs are a choice among answers; the shares of right ones with labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Accuracy>,
    /// Where the proof was written.
    pub certificate: Option<String>,
    /// How large it is.
    pub certificate_bytes: usize,
    /// A file that has the name of this network's certificate, and is another one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_certificate: Option<String>,
    /// Where the page was written.
    pub report: Option<String>,
    /// Whether the certificate was checked. Without that there is no report.
    pub checked: bool,
    /// How long all of it took.
    pub seconds: f64,
    /// How long each step took.
    pub steps: Seconds,
}

/// How large a network is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Size {
    /// The widths of the layers of ReLUs.
    pub hidden: Vec<usize>,
    /// How many units there are.
    pub units: usize,
    /// How many numbers of the file are denormal: too small to be stored with all their digits.
    pub denormals: usize,
    /// How many numbers there are in weights and biases.
    pub parameters: usize,
    /// How many products of a weight and an input a sample takes.
    pub multiply_adds: usize,
    /// How many numbers there are at once at the most, besides weights, while one sample is computed node by node.
    pub peak_activations: usize,
    /// How long the file is.
    pub bytes: usize,
}

impl Size {
    pub(crate) fn of(document: &Document) -> Result<Self, Error> {
        let network = document.network();
        let hidden = network.hidden();
        Ok(Self {
            units: hidden.iter().sum(),
            hidden,
            denormals: document.denormals()?,
            parameters: network.parameters(),
            multiply_adds: network.multiply_adds(),
            peak_activations: network.peak_activations(),
            bytes: document.to_bytes()?.len(),
        })
    }

    /// How many units there are.
    pub fn units(&self) -> usize {
        self.units
    }
}

/// A layer that could not change.
#[derive(Clone, Debug, Serialize)]
pub struct PinnedLayer {
    /// Its name in the file.
    pub layer: String,
    /// How many units it has.
    pub units: usize,
    /// Why it could not change.
    pub reason: String,
}

/// Where delta comes from.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct DeltaParts {
    /// What was left out on purpose, within the tolerance.
    pub approximation: f64,
    /// Weights that had to be rounded.
    pub rounding: f64,
}

/// How long each step took.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Seconds {
    /// Reading files.
    pub reading: f64,
    /// Finding stable units.
    pub stability: f64,
    /// Making plans.
    pub planning: f64,
    /// Rewriting the file, and proving what that does.
    pub rewriting_and_checking: f64,
    /// Comparing both networks at points.
    pub comparing: f64,
    /// Making and checking the certificate.
    pub certifying: f64,
}

/// What reports call what stopped a search.
pub(crate) fn stop_reason(stopped: StopReason) -> &'static str {
    match stopped {
        StopReason::Interrupted => "interrupted",
        StopReason::OutOfTime => "time limit",
        StopReason::OutOfMemory => "memory limit",
    }
}

/// The operators that a file has after its network, each once: what is proved is proved of what they read.
pub fn operators_after(model: &Model) -> Vec<String> {
    let operators: BTreeSet<&str> = model.tail().nodes().iter().map(TailNode::operator).collect();
    operators.into_iter().map(str::to_owned).collect()
}

impl Compression {
    /// All there is to say. What it knows nothing of, such as where files were written, is left to the caller.
    pub fn report(&self) -> CompressionReport {
        let (compressed, old) = (&self.compressed, self.original());
        let kept = |pinned: &Pinned| PinnedLayer {
            layer: layer_name(old, pinned.layer),
            units: old.width(pinned.layer),
            reason: pinned.reason.clone(),
        };
        let units = compressed.history.layers.iter().flat_map(|layer| &layer.units);
        let approximation = compressed.approximation;
        CompressionReport {
            version: 1,
            model: self.source.path().display().to_string(),
            output: String::new(),
            method: match self.options.method {
                Method::Full => "full",
                Method::Leo => "leo",
            },
            tolerance: self.options.tolerance.to_string(),
            bit_exact: self.options.bit_exact,
            domain: DomainSummary::new(&self.domain, self.source.model()),
            samples: self.samples,
            before: self.before.clone(),
            after: self.after.clone(),
            has_channels: !self.original.network().is_dense(),
            stages: StagesReport::new(old, self.network(), self.original.float()),
            listed_constants: self.original.listed_constants(),
            removed: compressed.history.count().iter().map(|(rule, &count)| (rule.name(), count)).collect(),
            carriers: compressed.history.carriers(),
            paths: compressed.history.paths,
            kept: compressed.pinned.iter().map(kept).collect(),
            stays: staying(old, compressed),
            few: compressed.removes_little(),
            would_go: compressed.prospects.iter().map(Into::into).collect(),
            one_sided: self.comparison.one_sided.as_ref().map(|found| one_sided(old, found)),
            flushed: compressed.flushed,
            unread_inputs: self.network().unread_inputs().len(),
            delta: self.delta(),
            delta_parts: DeltaParts { approximation, rounding: (compressed.largest_delta() - approximation).max(0.0) },
            observed: self.observed(),
            before_operators: operators_after(self.source.model()),
            outputs: outputs(&self.original, compressed, &self.certificate, &self.comparison.seen),
            settled: self.comparison.settled,
            undecided: compressed.undecided,
            undecided_kept: compressed.undecided_kept(),
            unstable: units.filter(|unit| unit.status == Status::Unstable).count(),
            stopped: compressed.stopped.map(stop_reason),
            accuracy: self.comparison.accuracy.clone(),
            certificate: None,
            certificate_bytes: self.certificate_bytes.len(),
            stale_certificate: None,
            report: None,
            checked: true,
            seconds: 0.0,
            steps: Seconds {
                reading: 0.0,
                stability: compressed.times.stability.as_secs_f64(),
                planning: compressed.times.planning.as_secs_f64(),
                rewriting_and_checking: compressed.times.rewriting.as_secs_f64(),
                comparing: self.comparing.as_secs_f64(),
                certifying: self.certifying.as_secs_f64(),
            },
        }
    }
}
