//! Which units are always on or always off, and where units and outputs lie: as people and programs read it.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use leo_check::Range;
use leo_formats::{Model, write_atomically};
use leo_network::{Domain, ValueId};
use leo_stability::{AnalysisOptions, Engine, Layer, Positions, Status, StopReason, Unit};
use serde::Serialize;

use crate::bounds::BoundsFormat;
use crate::compression::report::stop_reason;
use crate::search_file::{Keeper, SearchFile};
use crate::{DomainSummary, Error, ModelFile, Options, SampleCount};

/// What was found out. Also the shape of the JSON: fields may join, these stay.
#[derive(Clone, Debug, Serialize)]
pub struct StabilityReport {
    /// The version of this shape.
    pub version: u32,
    /// The network.
    pub model: String,
    /// How many constants the file lists as inputs, too: they are taken for the constants that they are.
    pub listed_constants: usize,
    /// The inputs that it is about.
    pub domain: DomainSummary,
    /// How long it took.
    pub seconds: f64,
    /// Which ways of deciding a unit were open.
    pub engine: &'static str,
    /// With samples, what they were good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<SampleCount>,
    /// Why it stopped before it was through, if it did.
    pub stopped: Option<&'static str>,
    /// Each layer.
    pub layers: Vec<LayerReport>,
    /// Each output.
    pub outputs: Vec<OutputBounds>,
    /// All layers together.
    pub totals: Totals,
    /// How many seconds each technique took that can take long.
    pub steps: BTreeMap<&'static str, f64>,
    /// What the file calls the input.
    #[serde(skip)]
    pub input: String,
    /// Whether units are channels, each with many positions, as they are in networks with convolutions.
    pub has_channels: bool,
    /// Whether it was an observer that stopped it.
    #[serde(skip)]
    pub is_interrupted: bool,
    /// The same of each layer, as the crate that decides stability has it.
    #[serde(skip)]
    pub verdicts: Vec<Layer>,
}

/// A layer of units.
#[derive(Clone, Debug, Serialize)]
pub struct LayerReport {
    /// Which layer, counted from 0.
    pub index: usize,
    /// Its name in the file.
    pub name: String,
    /// What the file calls the value in front of the activation, if it has a name for it.
    pub pre_activation: Option<String>,
    /// What the file calls the value behind it, if it has a name for it.
    pub value: Option<String>,
    /// The axes of both, without that of the batch.
    pub shape: Vec<usize>,
    /// How many units there are.
    pub width: usize,
    /// How long it took.
    pub seconds: f64,
    /// Proved: where pre-activations are nowhere below, unit by unit.
    pub lower: Vec<f64>,
    /// Proved: where pre-activations are nowhere above, unit by unit.
    pub upper: Vec<f64>,
    /// -1 for units that are always off, 1 for those that are always on, 0 for unstable ones, 2 for undecided ones.
    pub status: Vec<i8>,
    /// The same, with what decided it.
    pub units: Vec<UnitReport>,
    /// How many units there are of each kind.
    #[serde(skip)]
    pub totals: Totals,
}

/// A unit.
#[derive(Clone, Debug, Serialize)]
pub struct UnitReport {
    /// `inactive`, `active`, `unstable` or `undecided`.
    pub status: &'static str,
    /// Proved: its pre-activation is nowhere below.
    pub lower: f64,
    /// Proved: its pre-activation is nowhere above.
    pub upper: f64,
    /// The technique that decided it.
    pub by: Option<&'static str>,
    /// Only if this is what the solver says, and nothing confirms it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub trusted: bool,
    /// Only on request, and for unstable units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witnesses: Option<WitnessPair>,
    /// Only of channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions: Option<PositionCounts>,
}

/// How many positions channels have, and how many of these are stable.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct PositionCounts {
    /// All of them.
    pub all: usize,
    /// How many are always off.
    pub off: usize,
    /// How many are always on.
    pub on: usize,
}

/// Inputs that show that a unit is unstable.
#[derive(Clone, Debug, Serialize)]
pub struct WitnessPair {
    /// Where it is off.
    pub off: Vec<f64>,
    /// Where it is on.
    pub on: Vec<f64>,
}

/// A value that leaves the network, and where it lies.
#[derive(Clone, Debug, Serialize)]
pub struct OutputBounds {
    /// Which output of the network, counted from 0.
    pub index: usize,
    /// The output of the file that it is, if nothing comes after it.
    pub name: Option<String>,
    /// What the file calls it, if it has a name for it.
    pub value: Option<String>,
    /// Its axes, without that of the batch.
    pub shape: Vec<usize>,
    /// Proved: it is nowhere below, element by element.
    pub lower: Vec<f64>,
    /// Proved: it is nowhere above, element by element.
    pub upper: Vec<f64>,
}

/// How many units there are of each kind, and what decided how many.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Totals {
    /// All of them.
    pub units: usize,
    /// How many are always off.
    pub inactive: usize,
    /// How many are always on.
    pub active: usize,
    /// How many are seen to be either.
    pub unstable: usize,
    /// How many are undecided.
    pub undecided: usize,
    /// How many of these verdicts are only what the solver says.
    pub trusted: usize,
    /// How many each technique decided.
    pub by: BTreeMap<&'static str, usize>,
    /// What their positions are, if they are channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub positions: Option<PositionCounts>,
}

/// Analyses a network: see [`ModelFile::analyze_with`].
pub(crate) fn analyze(file: &ModelFile, domain: &Domain, options: &Options) -> Result<StabilityReport, Error> {
    let start = Instant::now();
    options.check(file.network())?;
    let samples = options.count_samples(domain)?;
    let search = options.search_file(file, domain)?;
    let observer = Keeper { observer: options.watcher(), file: search.as_ref() };
    let checkpoint = search.as_ref().and_then(SearchFile::checkpoint);
    let stability = AnalysisOptions { outputs: true, ..options.analysis(start, checkpoint, &observer) };
    let analysis = leo_stability::analyze(file.network(), domain, &stability)?;
    search.as_ref().map_or(Ok(()), SearchFile::finish)?;
    let (model, network) = (file.model(), file.network());
    let outputs = network.outputs().iter().zip(&analysis.outputs).enumerate();
    Ok(StabilityReport {
        version: 1,
        model: file.path().display().to_string(),
        listed_constants: model.listed_constants(),
        domain: DomainSummary::new(domain, model),
        engine: match options.engine {
            Engine::Auto => "auto",
            Engine::Bounds => "bounds",
            Engine::Milp => "milp",
            Engine::Tighten => "bounds-only",
        },
        samples,
        stopped: analysis.stopped.map(stop_reason),
        layers: analysis.layers.iter().map(|layer| LayerReport::new(model, layer)).collect(),
        outputs: outputs.map(|(index, (&value, range))| OutputBounds::new(model, index, value, range)).collect(),
        totals: Totals::of(analysis.layers.iter().flat_map(|layer| &layer.units)),
        steps: analysis.steps.iter().map(|(&step, time)| (step.name, time.as_secs_f64())).collect(),
        input: model.input().name.clone(),
        has_channels: !network.is_dense(),
        is_interrupted: analysis.stopped == Some(StopReason::Interrupted),
        verdicts: analysis.layers,
        seconds: start.elapsed().as_secs_f64(),
    })
}

impl StabilityReport {
    /// Writes all bounds to a file for other programs, whose name ends in `.npz` or in `.csv`. A file of this name is
    /// replaced.
    ///
    /// # Errors
    /// If it ends in something else, or cannot be written.
    pub fn save_bounds(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        let content = BoundsFormat::of(path)?.encode(self)?;
        Ok(write_atomically(path, &content)?)
    }
}

impl LayerReport {
    /// What is known of a layer.
    pub fn new(model: &Model, layer: &Layer) -> Self {
        let network = model.network();
        let node = network.node_of(layer.id);
        let name = |value: ValueId| model.name_of(value).map(str::to_owned);
        Self {
            index: layer.id.index(),
            name: node.name().to_owned(),
            pre_activation: name(network.pre_activation(layer.id)),
            value: name(network.output_of(layer.id)),
            shape: node.shape().extents().to_vec(),
            width: layer.units.len(),
            seconds: layer.time.as_secs_f64(),
            lower: layer.units.iter().map(|unit| unit.lower).collect(),
            upper: layer.units.iter().map(|unit| unit.upper).collect(),
            status: layer.units.iter().map(|unit| number_of(unit.status)).collect(),
            units: layer.units.iter().map(UnitReport::new).collect(),
            totals: Totals::of(layer.units.iter()),
        }
    }
}

/// A status as a number: 1 and -1 for what is proved to be stable.
fn number_of(status: Status) -> i8 {
    match status {
        Status::OFF => -1,
        Status::Stable(_) => 1,
        Status::Unstable => 0,
        Status::Undecided => 2,
    }
}

impl UnitReport {
    fn new(unit: &Unit) -> Self {
        let status = match unit.status {
            Status::OFF => "inactive",
            Status::Stable(_) => "active",
            Status::Unstable => "unstable",
            Status::Undecided => "undecided",
        };
        let witnesses = unit.witnesses.clone().map(|[off, on]| WitnessPair { off, on });
        let (by, trusted) = (unit.by.map(|by| by.name), unit.trusted);
        let positions = unit.positions.map(|Positions { all, off, on }| PositionCounts { all, off, on });
        Self { status, lower: unit.lower, upper: unit.upper, by, trusted, witnesses, positions }
    }
}

impl OutputBounds {
    fn new(model: &Model, index: usize, value: ValueId, range: &Range) -> Self {
        Self {
            index,
            name: model.output_that_is(value).map(str::to_owned),
            value: model.name_of(value).map(str::to_owned),
            shape: model.network().shape(value).extents().to_vec(),
            lower: range.lower.clone(),
            upper: range.upper.clone(),
        }
    }
}

impl Totals {
    /// How many units there are of each kind.
    pub fn of<'a>(units: impl Iterator<Item = &'a Unit>) -> Self {
        let mut totals = Self::default();
        for unit in units {
            totals.units += 1;
            *match unit.status {
                Status::OFF => &mut totals.inactive,
                Status::Stable(_) => &mut totals.active,
                Status::Unstable => &mut totals.unstable,
                Status::Undecided => &mut totals.undecided,
            } += 1;
            totals.trusted += usize::from(unit.trusted);
            if let Some(Positions { all, off, on }) = unit.positions {
                let sums = totals.positions.get_or_insert_default();
                *sums = PositionCounts { all: sums.all + all, off: sums.off + off, on: sums.on + on };
            }
            if let Some(by) = unit.by {
                *totals.by.entry(by.name).or_default() += 1;
            }
        }
        totals
    }
}
