//! Arrays of numbers: samples, bounds, results.
//!
//! Numbers keep the precision that they came with where it is a common one, so that a data set of bytes takes no more
//! room than it must.

#![allow(clippy::unnecessary_cast, reason = "one expression serves four types of numbers")]

use crate::op::Transpose;
use crate::product::Real;
use crate::shape::{NetworkError, Shape, product};

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

impl Array {
    /// An array of this shape.
    ///
    /// # Errors
    /// If the shape does not hold just as many numbers.
    pub fn new(shape: Vec<usize>, elements: impl Into<Elements>) -> Result<Self, NetworkError> {
        let elements = elements.into();
        let found = each!(&elements, values => values.len());
        if product(&shape) != Some(found) {
            return Err(NetworkError::mismatch(format!("{found} numbers make no array of shape {shape:?}")));
        }
        Ok(Self { shape, elements })
    }

    /// An array with one axis.
    pub fn flat(elements: Elements) -> Self {
        let length = each!(&elements, values => values.len());
        Self { shape: vec![length], elements }
    }

    /// The array with its axes in another order, of as many axes.
    #[must_use]
    pub fn transposed(&self, transpose: &Transpose) -> Self {
        let sources = transpose.sources(&self.shape);
        let elements =
            each!(&self.elements, values => sources.iter().map(|&source| values[source]).collect::<Vec<_>>().into());
        Self { shape: transpose.order().iter().map(|&axis| self.shape[axis]).collect(), elements }
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

    /// Every number divided by `divisor` and rounded to the precision `T` that a network takes: how images of bytes
    /// become inputs in [0, 1].
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
