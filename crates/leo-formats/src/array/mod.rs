//! The two formats that data sets and bounds come in: NumPy's `.npy`, and IDX (the format of MNIST).
//!
//! The format is known by content, not by name.

mod idx;
mod npy;

use std::path::Path;

use leo_network::{Array, Elements};

use crate::file::{self, FileError, Problem};
use crate::writing::write_atomically;

/// What is wrong with an array file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayError {
    /// Neither format.
    #[error("is neither a NumPy array nor an IDX file: {0}")]
    Unknown(&'static str),
    /// The header of a NumPy file is not one.
    #[error("has a broken NumPy header: {0}")]
    Header(String),
    /// A type of element that is not a real number.
    #[error("holds elements of type {0}; Leo reads floats, integers and booleans")]
    ElementType(String),
    /// Fewer numbers than the header promises.
    #[error("is cut short: {expected} bytes of numbers announced, {found} there")]
    Truncated {
        /// How many bytes the header announces.
        expected: u64,
        /// How many there are.
        found: u64,
    },
    /// More bytes than the header promises.
    #[error("has {0} bytes after its last number")]
    Trailing(u64),
    /// A shape that no file could fill.
    #[error("announces the shape {0:?}, which is too large")]
    TooLarge(Vec<u64>),
}

/// Arrays in files.
pub trait ArrayFile: Sized {
    /// Reads a `.npy` or IDX file, gzip or not.
    ///
    /// # Errors
    /// If the file cannot be read or is neither.
    fn load(path: &Path) -> Result<Self, FileError>;

    /// Decodes a `.npy` or IDX file.
    ///
    /// # Errors
    /// If it is neither, or broken.
    fn from_bytes(bytes: &[u8]) -> Result<Self, ArrayError>;

    /// The content of a `.npy` file that holds it.
    fn to_npy(&self) -> Vec<u8>;

    /// Writes it as a `.npy` file, all or nothing.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn save(&self, path: &Path) -> Result<(), FileError>;
}

impl ArrayFile for Array {
    fn load(path: &Path) -> Result<Self, FileError> {
        file::read(path)
            .and_then(|bytes| Self::from_bytes(&bytes).map_err(Problem::from))
            .map_err(|problem| problem.in_file(path))
    }

    fn from_bytes(bytes: &[u8]) -> Result<Self, ArrayError> {
        if npy::is_npy(bytes) {
            npy::decode(bytes)
        } else if idx::is_idx(bytes) {
            idx::decode(bytes)
        } else {
            Err(ArrayError::Unknown(file::looks_like(bytes)))
        }
    }

    fn save(&self, path: &Path) -> Result<(), FileError> {
        write_atomically(path, &self.to_npy())
    }

    fn to_npy(&self) -> Vec<u8> {
        npy::encode(self)
    }
}

/// An array of a shape that was checked.
fn array(shape: Vec<usize>, elements: Elements) -> Result<Array, ArrayError> {
    let announced = shape.iter().map(|&extent| extent as u64).collect();
    Array::new(shape, elements).map_err(|_| ArrayError::TooLarge(announced))
}

/// A type of element: how wide it is, and how to read a run of them.
struct ElementType {
    width: usize,
    decode: fn(&[u8]) -> Elements,
}

/// Decodes numbers of type `$number`, as `$target` which holds them.
macro_rules! decoder {
    ($number:ty, $from_bytes:ident, $target:ty) => {
        ElementType {
            width: size_of::<$number>(),
            decode: |bytes| {
                let (words, _) = bytes.as_chunks::<{ size_of::<$number>() }>();
                words.iter().map(|&word| <$target>::from(<$number>::$from_bytes(word))).collect::<Vec<_>>().into()
            },
        }
    };
}

use decoder;

/// Checks that `numbers` is just what `shape` needs, so that nothing is allocated on a header's word alone.
fn checked_shape(shape: &[u64], width: usize, numbers: &[u8]) -> Result<Vec<usize>, ArrayError> {
    let too_large = || ArrayError::TooLarge(shape.to_vec());
    let elements =
        shape.iter().try_fold(1_u64, |product, &extent| product.checked_mul(extent)).ok_or_else(too_large)?;
    let expected = elements.checked_mul(width as u64).ok_or_else(too_large)?;
    let found = numbers.len() as u64;
    if found < expected {
        return Err(ArrayError::Truncated { expected, found });
    }
    if found > expected {
        return Err(ArrayError::Trailing(found - expected));
    }
    shape.iter().map(|&extent| usize::try_from(extent).map_err(|_| too_large())).collect()
}
