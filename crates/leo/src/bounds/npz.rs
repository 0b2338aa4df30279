//! Bounds as a `.npz` file: NumPy's name for a ZIP archive of `.npy` files. All arrays are of doubles, with one axis.

use std::io::{Cursor, Write};

use leo_formats::ArrayFile;
use leo_network::Array;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::{Error, StabilityReport};

/// Three arrays for each layer, and two for the input and for each output.
pub(super) fn encode(bounds: &StabilityReport) -> Result<Vec<u8>, Error> {
    let mut arrays = vec![
        ("input_lower".to_owned(), bounds.domain.lower.clone()),
        ("input_upper".to_owned(), bounds.domain.upper.clone()),
    ];
    for layer in &bounds.layers {
        let index = layer.index;
        arrays.push((format!("lower_{index}"), layer.lower.clone()));
        arrays.push((format!("upper_{index}"), layer.upper.clone()));
        arrays.push((format!("status_{index}"), layer.status.iter().copied().map(f64::from).collect()));
    }
    for output in &bounds.outputs {
        let index = output.index;
        arrays.push((format!("output_lower_{index}"), output.lower.clone()));
        arrays.push((format!("output_upper_{index}"), output.upper.clone()));
    }
    archive(arrays)
}

/// An archive whose bytes follow from the arrays: it has no date of its own.
fn archive(arrays: Vec<(String, Vec<f64>)>) -> Result<Vec<u8>, Error> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (name, numbers) in arrays {
        let npy = Array::new(vec![numbers.len()], numbers)?.to_npy();
        let is_large = u32::try_from(npy.len()).is_err();
        let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored).large_file(is_large);
        writer.start_file(format!("{name}.npy"), options)?;
        writer.write_all(&npy)?;
    }
    Ok(writer.finish()?.into_inner())
}
