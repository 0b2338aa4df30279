//! What the benchmarks share: which networks are measured, and how.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The networks in a folder, by name.
pub fn models(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut models: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    models.retain(|path| path.extension().is_some_and(|suffix| suffix == "onnx"));
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
