//! From arguments to samples.

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use leo_formats::ArrayFile;
use leo_formats::Model;
use leo_formats::onnx::Float;
use leo_network::{Array, Domain};
use serde::Serialize;

use crate::terminal::output::{counted, grouped};

/// Reads samples, divided in the network's precision if that is asked for.
pub fn load(path: &Path, divide: Option<f64>, model: &Model) -> Result<Array> {
    let samples = Array::load(path)?;
    match divide {
        None => Ok(samples),
        Some(divisor) if !divisor.is_finite() || divisor == 0.0 => {
            bail!("--divide {divisor}: the divisor must be finite and not 0")
        }
        Some(divisor) if model.float() == Float::F64 => Ok(samples.divided::<f64>(divisor)),
        Some(divisor) => Ok(samples.divided::<f32>(divisor)),
    }
}

/// Inputs to begin with.
#[derive(Clone, Copy, Serialize)]
pub struct SampleCount {
    pub count: usize,
    /// How many are not in the domain. The points of it next to them are taken.
    pub outside: usize,
}

impl fmt::Display for SampleCount {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = counted(self.count, "sample");
        write!(
            formatter,
            "{} of {count} not in the domain: the points of it next to them are taken instead",
            grouped(self.outside)
        )
    }
}

/// How many samples there are, and how many are not in the domain.
pub fn count_outside(samples: &Array, domain: &Domain) -> Result<SampleCount> {
    let (mut count, mut outside) = (0, 0);
    let mut numbers = samples.iter();
    loop {
        let sample: Vec<f64> = numbers.by_ref().take(domain.len()).collect();
        if sample.len() < domain.len() {
            return Ok(SampleCount { count, outside });
        }
        ensure!(sample.iter().all(|number| !number.is_nan()), "sample {count} has an entry that is not a number");
        count += 1;
        outside += usize::from(!domain.contains(&sample));
    }
}
