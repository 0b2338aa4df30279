//! Samples: inputs to begin with, to compare on, or to take the range of.

use std::path::Path;

use leo_formats::onnx::Float;
use leo_formats::{ArrayFile, Model};
use leo_network::{Array, Domain};
use serde::Serialize;

use crate::Error;

/// Reads samples of a NumPy or IDX file, divided in the network's precision if that is asked for.
///
/// # Errors
/// If the file cannot be read, or the divisor is 0 or not finite.
pub fn read_samples(path: &Path, divisor: Option<f64>, model: &Model) -> Result<Array, Error> {
    let samples = Array::load(path)?;
    match divisor {
        None => Ok(samples),
        Some(divisor) if !divisor.is_finite() || divisor == 0.0 => {
            Err(Error::Request(format!("{divisor}: the divisor must be finite and not 0")))
        }
        Some(divisor) if model.float() == Float::F64 => Ok(samples.divided::<f64>(divisor)),
        Some(divisor) => Ok(samples.divided::<f32>(divisor)),
    }
}

/// Reads labels, which are whole numbers, one for each of `samples` samples.
///
/// # Errors
/// If the file cannot be read, or holds something else.
pub fn read_labels(path: &Path, samples: usize) -> Result<Vec<f64>, Error> {
    let labels: Vec<f64> = Array::load(path)?.to_vec();
    check_labels(&labels, samples).map_err(|error| error.about(path.display().to_string()))?;
    Ok(labels)
}

/// Sees to it that labels are whole numbers, one for each of `samples` samples.
pub(crate) fn check_labels(labels: &[f64], samples: usize) -> Result<(), Error> {
    let counted = |number: usize, noun: &str| format!("{number} {noun}{}", if number == 1 { "" } else { "s" });
    let wrong = match labels.iter().find(|label| label.fract() != 0.0) {
        _ if labels.len() != samples => {
            format!("{} for {}", counted(labels.len(), "label"), counted(samples, "sample"))
        }
        Some(label) => format!("holds {label}, and labels are whole numbers"),
        None => return Ok(()),
    };
    Err(Error::Request(wrong))
}

/// How many samples there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SampleCount {
    /// All of them.
    pub count: usize,
    /// How many are not in the domain. The points of it next to them are taken.
    pub outside: usize,
}

impl SampleCount {
    /// Counts samples, and those that are not in the domain.
    ///
    /// # Errors
    /// If a sample has an entry that is not a number.
    pub fn of(samples: &Array, domain: &Domain) -> Result<Self, Error> {
        let (mut count, mut outside) = (0, 0);
        let mut numbers = samples.iter();
        loop {
            let sample: Vec<f64> = numbers.by_ref().take(domain.len()).collect();
            if sample.len() < domain.len() {
                return Ok(Self { count, outside });
            }
            if sample.iter().any(|number| number.is_nan()) {
                return Err(Error::Request(format!("sample {count} has an entry that is not a number")));
            }
            count += 1;
            outside += usize::from(!domain.contains(&sample));
        }
    }
}
