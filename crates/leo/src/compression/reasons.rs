//! Why units stay, and what else could go.

use leo_compress::{Compressed, OneSided, Prospect, Staying};
use leo_network::{LayerId, Network};
use leo_stability::Status;
use serde::Serialize;

/// Units of a layer that are always on or always off and stay, and why.
#[derive(Clone, Debug, Serialize)]
pub struct StayingUnits {
    /// The layer's name in the file.
    pub layer: String,
    /// The units, counted from 0.
    pub units: Vec<usize>,
    /// Whether they are always on, or always off.
    pub always: &'static str,
    /// Why they stay.
    pub why: String,
}

/// What would go if more were allowed.
#[derive(Clone, Debug, Serialize)]
pub struct Prospective {
    /// The tolerance, as a part of what each output was seen to reach.
    pub tolerance: f64,
    /// How many units would go.
    pub units: usize,
}

impl From<&Prospect> for Prospective {
    fn from(&Prospect { tolerance, units }: &Prospect) -> Self {
        Self { tolerance, units }
    }
}

/// An unstable unit that is only on, or only off, on the samples.
#[derive(Clone, Debug, Serialize)]
pub struct OneSidedUnit {
    /// The layer's name in the file.
    pub layer: String,
    /// The unit, counted from 0.
    pub unit: usize,
    /// What it is on every sample.
    pub always: &'static str,
    /// Where an input shows it otherwise: inputs that are there beyond all samples. Missing if no such input is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beyond: Option<Vec<usize>>,
}

fn always(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

/// What people call a layer: by its name in the file, or by its number, counted from 0, where it has none.
pub fn layer_name(network: &Network, layer: LayerId) -> String {
    match network.node_of(layer).name() {
        "" => format!("layer {}", layer.index()),
        name => name.to_owned(),
    }
}

/// The stable units that stay.
pub(super) fn staying(network: &Network, compressed: &Compressed) -> Vec<StayingUnits> {
    let of = |Staying { layer, units, why }: &Staying| {
        let first = units.first().map(|&unit| compressed.history.layers[layer.index()].units[unit].status);
        StayingUnits {
            layer: layer_name(network, *layer),
            units: units.clone(),
            always: always(first != Some(Status::OFF)),
            why: why.to_string(),
        }
    };
    compressed.staying.iter().map(of).collect()
}

/// The units of which samples show one side only.
pub(super) fn one_sided(network: &Network, found: &[OneSided]) -> Vec<OneSidedUnit> {
    let of = |OneSided { unit, on, inputs }: &OneSided| OneSidedUnit {
        layer: layer_name(network, unit.layer),
        unit: unit.unit,
        always: always(*on),
        beyond: inputs.clone(),
    };
    found.iter().map(of).collect()
}
