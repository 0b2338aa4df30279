//! Bounds as files for other programs, and which format a name asks for.

mod csv;
mod npz;

use std::path::Path;

use crate::{Error, StabilityReport};

/// What bounds can be written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundsFormat {
    /// A table of text.
    Csv,
    /// Arrays of numbers for NumPy.
    Npz,
}

impl BoundsFormat {
    /// The format that a name ends in.
    ///
    /// # Errors
    /// If it ends in none.
    pub fn of(path: &Path) -> Result<Self, Error> {
        let suffix = path.extension().map(|suffix| suffix.to_string_lossy().to_lowercase());
        match suffix.as_deref() {
            Some("csv") => Ok(Self::Csv),
            Some("npz") => Ok(Self::Npz),
            _ => {
                let what = "bounds are written as .npz or as .csv, and the name says which";
                Err(Error::Request(format!("{}: {what}", path.display())))
            }
        }
    }

    /// The content of a file.
    ///
    /// # Errors
    /// If the format has no room for it.
    pub fn encode(self, report: &StabilityReport) -> Result<Vec<u8>, Error> {
        match self {
            Self::Csv => Ok(csv::encode(report)),
            Self::Npz => npz::encode(report),
        }
    }
}
