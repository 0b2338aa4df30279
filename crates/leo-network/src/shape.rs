//! The shape of one sample's tensor, and the errors of fitting shapes together.
//!
//! A batch is never part of a [`Shape`]: a network is a function of one sample, and evaluation runs it on many
//! samples at once. Tensors are row-major everywhere.

use std::fmt;

/// The most numbers that one value of one sample may have: 16.8 million, 128 MiB in doubles.
///
/// A larger tensor is refused before anything is allocated for it.
pub const MAX_ELEMENTS: usize = 1 << 24;

/// The most numbers that all values of one sample may have together: 67 million, 256 MiB in singles.
pub const MAX_TOTAL_ELEMENTS: usize = 1 << 26;

/// The most pairs of a position and one that it reads that all windows of a network may have together, counted for one
/// channel each.
pub(crate) const MAX_TOTAL_TAPS: usize = 1 << 25;

/// The most axes that a tensor may have.
pub const MAX_RANK: usize = 32;

/// The extents of a tensor: at most [`MAX_RANK`] axes, none of them empty, at most [`MAX_ELEMENTS`] numbers in all.
///
/// No axes at all is the shape of a single number.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Shape(Vec<usize>);

impl Shape {
    /// A shape with these extents.
    ///
    /// # Errors
    /// If an axis is empty, or the tensor would be larger than [`MAX_ELEMENTS`], or has more than [`MAX_RANK`] axes.
    pub fn new(extents: impl Into<Vec<usize>>) -> Result<Self, NetworkError> {
        let extents = extents.into();
        if extents.len() > MAX_RANK {
            return Err(NetworkError::TooManyAxes { rank: extents.len() });
        }
        if extents.contains(&0) {
            return Err(NetworkError::Empty { extents });
        }
        match product(&extents) {
            Some(elements) if elements <= MAX_ELEMENTS => Ok(Self(extents)),
            _ => Err(NetworkError::TooLarge { extents }),
        }
    }

    /// The extents, outermost axis first.
    pub fn extents(&self) -> &[usize] {
        &self.0
    }

    /// How many axes there are.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// How many numbers a tensor of this shape holds; at least one.
    pub fn elements(&self) -> usize {
        self.0.iter().product()
    }

    /// The extent of the innermost axis; 1 where there is none.
    pub fn last(&self) -> usize {
        self.0.last().copied().unwrap_or(1)
    }

    /// This shape with another extent in its innermost axis.
    pub(crate) fn with_last(&self, extent: usize) -> Result<Self, NetworkError> {
        let mut extents = self.0.clone();
        match extents.last_mut() {
            Some(last) => *last = extent,
            None => extents.push(extent),
        }
        Self::new(extents)
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&brackets(&self.0))
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// `[2, 3]`, the way people write shapes.
fn brackets(extents: &[usize]) -> String {
    format!("{extents:?}")
}

/// Why a network cannot be built: shapes, or the numbers meant to fill them, do not fit.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NetworkError {
    /// A tensor with more axes than [`MAX_RANK`].
    #[error("a tensor with {rank} axes, more than the {MAX_RANK} that Leo takes")]
    TooManyAxes {
        /// How many there were.
        rank: usize,
    },
    /// A tensor without elements.
    #[error("a tensor of shape {} has no elements", brackets(.extents))]
    Empty {
        /// Its extents.
        extents: Vec<usize>,
    },
    /// A tensor with more elements than [`MAX_ELEMENTS`].
    #[error("a tensor of shape {} is larger than the {MAX_ELEMENTS} elements that Leo takes", brackets(.extents))]
    TooLarge {
        /// Its extents.
        extents: Vec<usize>,
    },
    /// A network whose values together have more elements than [`MAX_TOTAL_ELEMENTS`].
    #[error(
        "the values of one sample add up to more than the {MAX_TOTAL_ELEMENTS} numbers that Leo takes, or windows touch more \
         than {MAX_TOTAL_TAPS} positions"
    )]
    TooMuch,
    /// The shapes of an operator's operands do not fit its constants, or one another.
    #[error("{0}")]
    Mismatch(String),
    /// A weight or constant is NaN or infinite.
    #[error("{what} contains {value}; every weight must be finite")]
    NotFinite {
        /// Which tensor.
        what: &'static str,
        /// The offending number.
        value: f64,
    },
    /// A division by a constant that is zero somewhere.
    #[error("divides by a constant that contains 0")]
    DivisionByZero,
}

impl NetworkError {
    /// Shapes that do not fit together, in words.
    pub fn mismatch(message: impl Into<String>) -> Self {
        Self::Mismatch(message.into())
    }
}

/// How many numbers a tensor with these extents holds, if that many can be counted.
pub fn product(extents: &[usize]) -> Option<usize> {
    // An empty tensor may have other extents that no product could hold.
    if extents.contains(&0) {
        return Some(0);
    }
    extents.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent))
}

/// Accepts a tensor of finite numbers.
pub(crate) fn finite(what: &'static str, values: &[f64]) -> Result<(), NetworkError> {
    match values.iter().find(|value| !value.is_finite()) {
        None => Ok(()),
        Some(&value) => Err(NetworkError::NotFinite { what, value }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_extents_are_refused_without_overflow() {
        assert!(matches!(Shape::new([usize::MAX, usize::MAX]), Err(NetworkError::TooLarge { .. })));
        assert!(matches!(Shape::new([MAX_ELEMENTS + 1]), Err(NetworkError::TooLarge { .. })));
        assert!(matches!(Shape::new([3, 0]), Err(NetworkError::Empty { .. })));
        assert!(matches!(Shape::new(vec![1; 33]), Err(NetworkError::TooManyAxes { rank: 33 })));
        assert_eq!(Shape::new([]).map(|scalar| scalar.elements()), Ok(1));
    }
}
