//! Why units stay, and what else could go.

use leo_compress::{Compressed, OneSided, Prospect, Staying};
use leo_network::{LayerId, Network};
use leo_stability::Status;
use serde::Serialize;

use crate::terminal::number::short;
use crate::terminal::output::{counted, grouped, listed, one_line};

/// The section of the guide about networks of which little goes.
const SECTION: &str = "docs/guide.md, \"When little is removed\"";
/// How many units or inputs are named.
const NAMED: usize = 8;

/// Why units stay that are always on or always off.
#[derive(Serialize)]
pub struct Stays {
    /// The layer's name in the file, and its units, counted from 0.
    pub layer: String,
    pub units: Vec<usize>,
    /// Whether they are always on, or always off.
    pub always: &'static str,
    pub why: String,
}

/// What would go if more were allowed.
#[derive(Serialize)]
pub struct Would {
    /// The tolerance, as a part of what each output was seen to reach.
    pub tolerance: f64,
    /// How many units would go.
    pub units: usize,
}

impl From<&Prospect> for Would {
    fn from(&Prospect { tolerance, units }: &Prospect) -> Self {
        Self { tolerance, units }
    }
}

/// A unit that can be on and off, but not on the samples.
#[derive(Serialize)]
pub struct Silent {
    pub layer: String,
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

/// What layers are called: as in the file, or by their number, counted from 1.
pub fn layer_names(network: &Network) -> Vec<String> {
    let name = |layer: LayerId| match network.node_of(layer).name() {
        "" => format!("layer {}", layer.index() + 1),
        name => name.to_owned(),
    };
    network.layers().map(name).collect()
}

/// The stable units that stay.
pub fn stays(network: &Network, compressed: &Compressed) -> Vec<Stays> {
    let names = layer_names(network);
    let of = |Staying { layer, units, why }: &Staying| {
        let first = units.first().map(|&unit| compressed.history.layers[layer.index()].units[unit].status);
        Stays {
            layer: names[layer.index()].clone(),
            units: units.clone(),
            always: always(first != Some(Status::OFF)),
            why: why.to_string(),
        }
    };
    compressed.staying.iter().map(of).collect()
}

/// The units of which samples show one side only.
pub fn silent(network: &Network, found: &[OneSided]) -> Vec<Silent> {
    let names = layer_names(network);
    let of = |OneSided { unit, on, inputs }: &OneSided| Silent {
        layer: names[unit.layer.index()].clone(),
        unit: unit.unit,
        always: always(*on),
        beyond: inputs.clone(),
    };
    found.iter().map(of).collect()
}

impl Stays {
    /// As a sentence.
    pub fn in_words(&self) -> String {
        let units = counted(self.units.len(), "unit");
        let verb = if self.units.len() == 1 { "stays" } else { "stay" };
        format!("{units} of {:?} {verb}, always {}: {}", one_line(&self.layer), self.always, one_line(&self.why))
    }

    /// Which units.
    pub fn named(&self) -> String {
        let more = if self.units.len() > NAMED { ", ..." } else { "" };
        format!("{:?}, always {}: {}{more}", one_line(&self.layer), self.always, listed(self.units.iter().take(NAMED)))
    }
}

/// What people should know if few units go.
pub fn what_else(prospects: &[Would], silent: Option<&[Silent]>, units: usize, unstable: usize) -> Vec<String> {
    let mut sentences =
        vec![format!("{} of {} were seen to be both on and off", grouped(unstable), counted(units, "unit"))];
    if !prospects.is_empty() {
        let each = prospects.iter().map(|would| format!("{} at {}", grouped(would.units), short(would.tolerance)));
        sentences.push(format!(
            "with a larger tolerance, as a part of what the outputs reach, about so many would go, if single precision allows it: {} (--tolerance 0.01% is 1e-4)",
            listed(each)
        ));
    }
    if silent.is_some_and(<[Silent]>::is_empty) {
        sentences.push("every unit that can change its sign on the domain does so on the samples".to_owned());
    }
    if let Some(silent) = silent.filter(|silent| !silent.is_empty()) {
        let verb = if silent.len() == 1 { "never changes its sign" } else { "never change their sign" };
        let mut sentence =
            format!("{} {verb} on the samples, though they can on the domain", counted(silent.len(), "unit"));
        let example = silent.iter().find_map(|unit| Some((unit, unit.beyond.as_ref()?)));
        if let Some((unit, beyond)) = example {
            let other = if unit.always == "on" { "off" } else { "on" };
            let place = match beyond.len() {
                0 => "in the midst of the samples".to_owned(),
                1 => format!("where input {} is beyond all samples", beyond[0]),
                count => {
                    let more = if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
                    format!("where inputs {}{more} are beyond all samples", listed(beyond.iter().take(NAMED)))
                }
            };
            sentence += &format!(": unit {} of {:?}, say, is {other} {place}", unit.unit, one_line(&unit.layer));
        }
        sentences.push(sentence);
    }
    sentences.push(format!("what to do where little goes: {SECTION}"));
    sentences
}
