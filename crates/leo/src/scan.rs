//! A quick look: how much of a network is dead weight, by bounds that cost next to nothing.
//!
//! What is counted is what [`ModelFile::compress`] would find with intervals and linear bounds alone, and prove; only
//! that nothing is written, certified, or looked at closely.

use std::time::{Duration, Instant};

use leo_compress::CompressOptions;
use leo_network::{Domain, Network};
use leo_stability::{AnalysisOptions, Engine};
use serde::Serialize;

use crate::{Error, ModelFile, Totals};

/// How long a quick look may take, about.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// What a quick look found. Also the shape of the JSON: fields may join, these stay.
#[derive(Clone, Debug, Serialize)]
pub struct ScanReport {
    /// Whether units are channels, each with many positions, as they are in networks with convolutions.
    pub has_channels: bool,
    /// How many constants the file lists as inputs, too: they are taken for the constants that they are.
    pub listed_constants: usize,
    /// How many units there are.
    pub units: usize,
    /// How many of them are always off.
    pub inactive: usize,
    /// How many of them are always on.
    pub active: usize,
    /// How many of them would go.
    pub removed: usize,
    /// How many numbers there are in weights and biases, and how many would be left.
    pub parameters: [usize; 2],
    /// How many products of a weight and an input a sample takes, and how many it would take.
    pub multiply_adds: [usize; 2],
    /// How many numbers of the file are denormal: too small to be stored with all their digits.
    pub denormals: usize,
    /// How long it took.
    pub seconds: f64,
}

/// Takes a quick look: see [`ModelFile::scan`].
pub(crate) fn scan(file: &ModelFile, domain: &Domain) -> Result<ScanReport, Error> {
    let start = Instant::now();
    let document = file.document()?;
    let stability = AnalysisOptions {
        engine: Engine::Bounds,
        nodes: Some(0),
        time_limit: Some(TIME_LIMIT),
        ..AnalysisOptions::default()
    };
    let compressed = leo_compress::compress(&document, domain, &CompressOptions { stability, ..Default::default() })?;
    let totals = Totals::of(compressed.history.layers.iter().flat_map(|layer| &layer.units));
    let both = |count: fn(&Network) -> usize| [document.network(), compressed.document.network()].map(count);
    Ok(ScanReport {
        has_channels: !document.network().is_dense(),
        listed_constants: document.listed_constants(),
        units: totals.units,
        inactive: totals.inactive,
        active: totals.active,
        removed: compressed.history.removed.iter().flatten().flatten().count(),
        parameters: both(Network::parameters),
        multiply_adds: both(Network::multiply_adds),
        denormals: document.denormals()?,
        seconds: start.elapsed().as_secs_f64(),
    })
}
