//! What is said of units that stay, and of what else could go.

use leo::{OneSidedUnit, Prospective, StayingUnits};

use crate::terminal::number::short;
use crate::terminal::output::{counted, grouped, listed, one_line};

/// The section of the guide about networks of which little goes.
const SECTION: &str = "docs/guide.md, \"When little is removed\"";
/// How many units or inputs are named.
const MOST_NAMED: usize = 8;

/// Why stable units of a layer stay.
pub fn staying(stays: &StayingUnits, noun: &str) -> String {
    let units = counted(stays.units.len(), noun);
    let verb = if stays.units.len() == 1 { "stays" } else { "stay" };
    format!("{units} of {:?} {verb}, always {}: {}", one_line(&stays.layer), stays.always, one_line(&stays.why))
}

/// Which stable units stay.
pub fn named(stays: &StayingUnits) -> String {
    let more = if stays.units.len() > MOST_NAMED { ", ..." } else { "" };
    format!(
        "{:?}, always {}: {}{more}",
        one_line(&stays.layer),
        stays.always,
        listed(stays.units.iter().take(MOST_NAMED))
    )
}
/// What people should know if few units go.
pub fn what_else(
    prospects: &[Prospective],
    silent: Option<&[OneSidedUnit]>,
    units: &str,
    unstable: usize,
) -> Vec<String> {
    let mut sentences = vec![format!("{} of {units} were seen to be both on and off", grouped(unstable))];
    if !prospects.is_empty() {
        let each = prospects.iter().map(|would| format!("{} at {}", grouped(would.units), short(would.tolerance)));
        sentences.push(format!(
            "with a larger tolerance, as a part of what the outputs reach, about so many would go, if single precision allows it: {} (--tolerance 0.01% is 1e-4)",
            listed(each)
        ));
    }
    if silent.is_some_and(<[OneSidedUnit]>::is_empty) {
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
                    let more =
                        if count > MOST_NAMED { format!(" and {} more", count - MOST_NAMED) } else { String::new() };
                    format!("where inputs {}{more} are beyond all samples", listed(beyond.iter().take(MOST_NAMED)))
                }
            };
            sentence += &format!(": unit {} of {:?}, say, is {other} {place}", unit.unit, one_line(&unit.layer));
        }
        sentences.push(sentence);
    }
    sentences.push(format!("what to do where little goes: {SECTION}"));
    sentences
}
