//! What is known of each output: how far it can move, how far it was seen to, and what single precision makes of it.

use leo_check::Certificate;
use leo_compress::{Compressed, LargestDifference, Measured};
use leo_formats::onnx::Document;
use serde::Serialize;

use crate::terminal::number::{short, upper};
use crate::terminal::output::one_line;

/// Up to what part of what an output reaches a bound is good for something.
const USEFUL: f64 = 0.1;

/// Numbers about one output.
#[derive(Serialize)]
pub struct OutputReport {
    /// What the file calls it.
    pub name: String,
    /// Proved: none of its elements moves by more, anywhere on the domain.
    pub delta: f64,
    /// The element whose delta is largest beside what it was seen to reach, which of all it is, and both numbers.
    pub worst: Worst,
    /// The largest difference seen.
    pub seen: f64,
    /// Proved: the largest difference if both files are evaluated in single precision, in any order of summation. Nothing if that is not certain.
    pub delta_f32: Option<f64>,
    /// What was measured in single precision, at the same points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_f32: Option<Single>,
}

/// An element of an output.
#[derive(Serialize)]
pub struct Worst {
    /// Counted from 0.
    pub element: usize,
    pub delta: f64,
    /// The largest number that it was seen to be, whatever its sign.
    pub scale: f64,
    /// The one in units of the other; nothing if it was only seen to be 0, and moves.
    pub relative: Option<f64>,
}

/// What single precision makes of two networks, measured.
#[derive(Serialize)]
pub struct Single {
    /// The largest errors of both networks.
    pub before: f64,
    pub after: f64,
    /// The largest difference of the two.
    pub difference: f64,
    /// How many times larger the errors have become, each in units of what its element reaches.
    pub factor: f64,
}

impl From<&Measured> for Single {
    fn from(measured: &Measured) -> Self {
        let &Measured { original, small, difference, factor, .. } = measured;
        Self { before: original, after: small, difference, factor }
    }
}

/// All outputs of a file.
pub fn outputs(
    file: &Document,
    compressed: &Compressed,
    certificate: &Certificate,
    seen: &[LargestDifference],
) -> Vec<OutputReport> {
    let of_output = |(index, &value): (usize, &leo_network::ValueId)| {
        let (delta, scales) = (&certificate.delta[index], &compressed.scales[index]);
        let measured = compressed.single.as_ref().map(|single| Single::from(&single[index]));
        OutputReport {
            name: file.name_of(value).map_or_else(|| format!("output {index}"), str::to_owned),
            delta: delta.largest(),
            worst: worst(scales, |element| delta.at(element)),
            seen: seen.get(index).and_then(|seen| seen.furthest.as_ref()).map_or(0.0, |apart| apart.distance),
            delta_f32: certificate.delta_f32.as_ref().map(|single| single[index].largest()),
            measured_f32: measured,
        }
    };
    file.network().outputs().iter().enumerate().map(of_output).collect()
}

/// The element with the largest delta in units of what it was seen to reach.
fn worst(scales: &[f64], delta: impl Fn(usize) -> f64) -> Worst {
    let relative = |element: usize| if delta(element) == 0.0 { 0.0 } else { delta(element) / scales[element] };
    let element = (0..scales.len()).max_by(|&a, &b| relative(a).total_cmp(&relative(b))).unwrap_or(0);
    let relative = Some(relative(element)).filter(|relative| relative.is_finite());
    Worst { element, delta: delta(element), scale: scales[element], relative }
}

impl OutputReport {
    /// How far the worst element moves beside what it reaches, if it can move at all.
    pub fn worst_in_words(&self) -> Option<String> {
        let Worst { element, delta, scale, relative } = &self.worst;
        let (name, delta) = (one_line(&self.name), upper(*delta));
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
    pub fn single_in_words(&self, is_only: bool) -> Option<String> {
        let Single { before, after, difference, .. } = self.measured_f32.as_ref()?;
        let [before, after, difference] = [before, after, difference].map(|number| short(*number));
        let proved = match self.delta_f32 {
            Some(delta) if delta <= USEFUL * self.worst.scale => {
                format!(", and never more than {} (proved)", upper(delta))
            }
            Some(_) => "; what can be proved of that is too loose to help".to_owned(),
            None => String::new(),
        };
        let name = if is_only { String::new() } else { format!(", {:?}", one_line(&self.name)) };
        Some(format!(
            "evaluated in single precision{name}: errors up to {before} before, {after} after; up to {difference} apart where it was tried{proved}"
        ))
    }
}
