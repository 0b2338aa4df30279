//! Arrays of numbers, and the two formats that data sets and bounds come in: NumPy's `.npy` and IDX (the format of
//! MNIST).
//!
//! The format is known by content, not by name. Numbers keep the precision of the file where it is a common one, so
//! that a data set of bytes takes no more room than it must.

#![allow(clippy::unnecessary_cast, reason = "one expression serves four types of numbers")]

mod idx;
mod npy;

use std::path::Path;

use crate::file::{self, FileError, Problem};
use crate::op::Transpose;
use crate::product::Real;
use crate::shape::{Shape, product};
use crate::writing::write_atomically;

/// An array of numbers, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    shape: Vec<usize>,
    elements: Elements,
}

/// The numbers of an [`Array`], in the narrowest of four types that holds them.
#[derive(Clone, Debug, PartialEq)]
pub enum Elements {
    /// Bytes, as in images.
    U8(Vec<u8>),
    /// Any other whole numbers.
    I64(Vec<i64>),
    /// Single precision, and half.
    F32(Vec<f32>),
    /// Double precision.
    F64(Vec<f64>),
}

macro_rules! elements_from {
    ($($variant:ident: $number:ty),*) => {
        $(impl From<Vec<$number>> for Elements {
            fn from(values: Vec<$number>) -> Self {
                Self::$variant(values)
            }
        })*
    };
}

elements_from!(U8: u8, I64: i64, F32: f32, F64: f64);

/// Runs the same expression on whichever vector there is.
macro_rules! each {
    ($elements:expr, $values:ident => $body:expr) => {
        match $elements {
            Elements::U8($values) => $body,
            Elements::I64($values) => $body,
            Elements::F32($values) => $body,
            Elements::F64($values) => $body,
        }
    };
}

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

impl Array {
    /// An array of this shape.
    ///
    /// # Errors
    /// If the shape does not hold just as many numbers.
    pub fn new(shape: Vec<usize>, elements: impl Into<Elements>) -> Result<Self, ArrayError> {
        let elements = elements.into();
        let found = each!(&elements, values => values.len());
        if product(&shape) != Some(found) {
            return Err(ArrayError::TooLarge(shape.iter().map(|&extent| extent as u64).collect()));
        }
        Ok(Self { shape, elements })
    }

    /// An array with one axis.
    pub(crate) fn flat(elements: Elements) -> Self {
        let length = each!(&elements, values => values.len());
        Self { shape: vec![length], elements }
    }

    /// The array with its axes in another order, of as many axes.
    pub(crate) fn transposed(&self, transpose: &Transpose) -> Self {
        let sources = transpose.sources(&self.shape);
        let elements =
            each!(&self.elements, values => sources.iter().map(|&source| values[source]).collect::<Vec<_>>().into());
        Self { shape: transpose.order().iter().map(|&axis| self.shape[axis]).collect(), elements }
    }

    /// Reads a `.npy` or IDX file, gzip or not.
    ///
    /// # Errors
    /// If the file cannot be read or is neither.
    pub fn load(path: &Path) -> Result<Self, FileError> {
        file::read(path)
            .and_then(|bytes| Self::from_bytes(&bytes).map_err(Problem::from))
            .map_err(|problem| problem.in_file(path))
    }

    /// Decodes a `.npy` or IDX file.
    ///
    /// # Errors
    /// If it is neither, or broken.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, ArrayError> {
        if npy::is_npy(bytes) {
            npy::decode(bytes)
        } else if idx::is_idx(bytes) {
            idx::decode(bytes)
        } else {
            Err(ArrayError::Unknown(file::looks_like(bytes)))
        }
    }

    /// Writes it as a `.npy` file, all or nothing.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), FileError> {
        write_atomically(path, &npy::encode(self))
    }

    /// The extents, outermost axis first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// The numbers.
    pub fn elements(&self) -> &Elements {
        &self.elements
    }

    /// How many numbers it holds.
    pub fn len(&self) -> usize {
        each!(&self.elements, values => values.len())
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many samples of shape `sample` the array holds, if that is what it holds.
    ///
    /// The first axis counts them, and the others are the sample's, give or take axes of extent 1, or flattened. An
    /// array with the shape of one sample is one sample.
    pub fn count_samples(&self, sample: &Shape) -> Option<usize> {
        let proper = |extents: &[usize]| extents.iter().copied().filter(|&extent| extent != 1).collect::<Vec<_>>();
        let wanted = proper(sample.extents());
        let fits = |extents: &[usize]| {
            let given = proper(extents);
            product(&given) == Some(sample.elements()) && (given == wanted || given.len() <= 1 || wanted.len() <= 1)
        };
        match self.shape() {
            _ if self.is_empty() => None,
            [rows, rest @ ..] if fits(rest) => Some(*rows),
            whole => fits(whole).then_some(1),
        }
    }

    /// The numbers as doubles. Whole numbers beyond 2⁵³ are rounded.
    pub fn iter(&self) -> Box<dyn Iterator<Item = f64> + '_> {
        each!(&self.elements, values => Box::new(values.iter().map(|&value| value as f64)))
    }

    /// The numbers in a network's precision, rounded to nearest.
    pub fn to_vec<T: Real>(&self) -> Vec<T> {
        each!(&self.elements, values => values.iter().map(|&value| T::from_f64(value as f64)).collect())
    }

    /// Every number divided by `divisor` and rounded to the precision `T` that a network takes: how images of bytes become
    /// inputs in [0, 1].
    #[must_use]
    pub fn divided<T: Real>(&self, divisor: f64) -> Self
    where
        Elements: From<Vec<T>>,
    {
        let values: Vec<T> =
            each!(&self.elements, values => values.iter().map(|&value| T::from_f64(value as f64 / divisor)).collect());
        Self { shape: self.shape.clone(), elements: values.into() }
    }
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

use {decoder, each};

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
