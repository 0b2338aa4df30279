//! What is said of an output: how far it can move, and what single precision makes of it.

use leo::{OutputReport, Single, Worst};

use crate::terminal::number::{short, upper};
use crate::terminal::output::one_line;

/// Up to what part of what an output reaches a bound is good for something.
const USEFUL_PART: f64 = 0.1;

/// How far the worst element moves beside what it reaches, if it can move at all.
pub fn worst(output: &OutputReport) -> Option<String> {
    let Worst { element, delta, scale, relative } = &output.worst;
    let (name, delta) = (one_line(&output.name), upper(*delta));
    match relative {
        Some(0.0) => None,
        Some(relative) => {
            let (part, scale) = (upper(*relative), short(*scale));
            Some(format!(
                "at most {part} of what an element reaches: {delta} for element {element} of {name:?}, which was seen to reach {scale}"
            ))
        }
        None => Some(format!("element {element} of {name:?}, which was only seen to be 0, may become {delta}")),
    }
}

/// What single precision makes of it, with its name unless it is the only one.
pub fn single(output: &OutputReport, is_only: bool) -> Option<String> {
    let Single { before, after, difference, .. } = output.measured_f32.as_ref()?;
    let [before, after, difference] = [before, after, difference].map(|number| short(*number));
    let proved = match output.delta_f32 {
        Some(delta) if delta <= USEFUL_PART * output.worst.scale => {
            format!(", and never more than {} (proved)", upper(delta))
        }
        Some(_) => "; what can be proved of that is too loose to help".to_owned(),
        None => String::new(),
    };
    let name = if is_only { String::new() } else { format!(", {:?}", one_line(&output.name)) };
    Some(format!(
        "evaluated in single precision{name}: errors up to {before} before, {after} after; up to {difference} apart where it was tried{proved}"
    ))
}
