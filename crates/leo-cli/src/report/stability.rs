//! What is known of a network's units: as tables for people, and as JSON.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use comfy_table::CellAlignment::{Left, Right};
use leo_network::Network;
use leo_stability::{Layer, Status, Technique, Unit};
use serde::Serialize;

use crate::terminal::console::Console;
use crate::terminal::output::one_line;

#[derive(Serialize)]
pub struct LayerReport {
    pub name: String,
    pub width: usize,
    pub seconds: f64,
    pub units: Vec<UnitReport>,
    #[serde(skip)]
    pub totals: Totals,
}

#[derive(Serialize)]
pub struct UnitReport {
    status: &'static str,
    lower: f64,
    upper: f64,
    by: Option<&'static str>,
    /// Only if this is what the solver says, and nothing confirms it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    trusted: bool,
    /// Only on request, and for unstable units.
    #[serde(skip_serializing_if = "Option::is_none")]
    witnesses: Option<WitnessReport>,
}

/// Inputs where a unit is off, and where it is on.
#[derive(Serialize)]
pub struct WitnessReport {
    off: Vec<f64>,
    on: Vec<f64>,
}

/// How many units there are of each kind, and what decided how many.
#[derive(Serialize)]
pub struct Totals {
    pub units: usize,
    pub inactive: usize,
    pub active: usize,
    pub unstable: usize,
    pub undecided: usize,
    /// How many of these verdicts are only what the solver says.
    pub trusted: usize,
    pub by: BTreeMap<&'static str, usize>,
}

impl LayerReport {
    pub fn new(network: &Network, layer: &Layer) -> Self {
        Self {
            name: network.node_of(layer.id).name().to_owned(),
            width: layer.units.len(),
            seconds: layer.time.as_secs_f64(),
            units: layer.units.iter().map(UnitReport::new).collect(),
            totals: Totals::of(layer.units.iter()),
        }
    }
}

/// Prints how many units of each layer are of which kind, and what decided them.
pub fn print(layers: &[LayerReport], totals: &Totals, seconds: f64, console: &Console) -> Result<()> {
    let out = &mut console.report();
    let rows = || {
        let layers = layers.iter().map(|layer| (layer.name.as_str(), &layer.totals, layer.seconds));
        layers.chain([("all", totals, seconds)])
    };
    let mut kinds = console.table(&[
        ("layer", Left),
        ("units", Right),
        ("inactive", Right),
        ("active", Right),
        ("unstable", Right),
        ("undecided", Right),
        ("ms", Right),
    ]);
    for (name, totals, seconds) in rows() {
        let Totals { units, inactive, active, unstable, undecided, .. } = *totals;
        let numbers = [units, inactive, active, unstable, undecided].map(|number| number.to_string());
        kinds.add_row([one_line(name)].into_iter().chain(numbers).chain([format!("{:.1}", 1e3 * seconds)]));
    }
    writeln!(out, "{kinds}")?;
    let used: Vec<&str> =
        Technique::all().into_iter().map(|by| by.name).filter(|name| totals.by.contains_key(name)).collect();
    if !used.is_empty() {
        let columns: Vec<_> =
            [("decided by", Left)].into_iter().chain(used.iter().map(|&name| (name, Right))).collect();
        let mut steps = console.table(&columns);
        for (name, totals, _) in rows() {
            let counts = used.iter().map(|step| totals.by.get(step).unwrap_or(&0).to_string());
            steps.add_row([one_line(name)].into_iter().chain(counts));
        }
        writeln!(out, "\n{steps}\n")?;
    }
    Ok(())
}

impl UnitReport {
    fn new(unit: &Unit) -> Self {
        let status = match unit.status {
            Status::OFF => "inactive",
            Status::Stable(_) => "active",
            Status::Unstable => "unstable",
            Status::Undecided => "undecided",
        };
        let witnesses = unit.witnesses.clone().map(|[off, on]| WitnessReport { off, on });
        let (by, trusted) = (unit.by.map(|by| by.name), unit.trusted);
        Self { status, lower: unit.lower, upper: unit.upper, by, trusted, witnesses }
    }
}

impl Totals {
    pub fn of<'a>(units: impl Iterator<Item = &'a Unit>) -> Self {
        let mut totals =
            Self { units: 0, inactive: 0, active: 0, unstable: 0, undecided: 0, trusted: 0, by: BTreeMap::new() };
        for unit in units {
            totals.units += 1;
            *match unit.status {
                Status::OFF => &mut totals.inactive,
                Status::Stable(_) => &mut totals.active,
                Status::Unstable => &mut totals.unstable,
                Status::Undecided => &mut totals.undecided,
            } += 1;
            totals.trusted += usize::from(unit.trusted);
            if let Some(by) = unit.by {
                *totals.by.entry(by.name).or_default() += 1;
            }
        }
        totals
    }
}
