//! What the benchmarks share: which networks are measured, and how.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The networks in `models/mnist`, by name.
pub fn models() -> std::io::Result<Vec<PathBuf>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/mnist");
    let mut models: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    models.sort();
    Ok(models)
}

/// The median of so many measurements.
pub fn median(
    repeats: usize,
    mut measure: impl FnMut() -> Result<Duration, Box<dyn Error>>,
) -> Result<Duration, Box<dyn Error>> {
    let mut times = (0..repeats).map(|_| measure()).collect::<Result<Vec<_>, _>>()?;
    times.sort();
    Ok(times[repeats / 2])
}
