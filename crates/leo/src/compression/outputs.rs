//! What is known of each output: how far it can move, how far it was seen to, and what single precision makes of it.

use leo_check::Certificate;
use leo_compress::{Compressed, LargestDifference, Measured};
use leo_formats::onnx::Document;
use leo_network::ValueId;
use serde::Serialize;

/// Numbers about one output.
#[derive(Clone, Debug, Serialize)]
pub struct OutputReport {
    /// What the file calls it.
    pub name: String,
    /// Proved: none of its elements moves by more, anywhere on the domain.
    pub delta: f64,
    /// The element whose delta is largest beside what it was seen to reach, which of all it is, and both numbers.
    pub worst: Worst,
    /// The largest difference seen.
    pub seen: f64,
    /// Proved: the largest difference if both files are evaluated in single precision, in any order of summation.
    /// Nothing if that is not certain.
    pub delta_f32: Option<f64>,
    /// What was measured in single precision, at the same points.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub measured_f32: Option<Single>,
}

/// An element of an output.
#[derive(Clone, Debug, Serialize)]
pub struct Worst {
    /// Which one, counted from 0.
    pub element: usize,
    /// Proved: it moves by no more.
    pub delta: f64,
    /// The largest number that it was seen to be, whatever its sign.
    pub scale: f64,
    /// The one in units of the other; nothing if it was only seen to be 0, and moves.
    pub relative: Option<f64>,
}

/// What single precision makes of two networks, measured.
#[derive(Clone, Debug, Serialize)]
pub struct Single {
    /// The largest error of the network that was given.
    pub before: f64,
    /// The largest error of the smaller one.
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
pub(crate) fn outputs(
    file: &Document,
    compressed: &Compressed,
    certificate: &Certificate,
    seen: &[LargestDifference],
) -> Vec<OutputReport> {
    let of_output = |(index, &value): (usize, &ValueId)| {
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
