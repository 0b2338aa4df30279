//! From arguments to samples.

use std::path::Path;

use anyhow::{Result, bail};
use leo_network::onnx::Float;
use leo_network::{Array, Model};

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
