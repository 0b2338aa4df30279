//! The domain: the inputs that a network will ever see.
//!
//! A [`Domain`] is a box, `lo <= x <= hi` for each element `x` of the flattened sample. It can be had from a
//! constant, from two arrays, from a [VNN-LIB](crate::vnnlib) file, from an [NNet](crate::nnet) file, or from the
//! range of a data set.
//!
//! Bounds are doubles. A program in single precision that rounds 0.3 gets a number just above the double 0.3, outside a
//! domain that ends there; widen such a domain by a [margin](Domain::widened).

use std::path::Path;

use crate::array::Array;
use crate::file::{self, FileError, Problem};
use crate::nnet::Nnet;
use crate::rounding::Enclosure;
use crate::shape::Shape;
use crate::vnnlib::{self, Otherwise};

/// A box of inputs: finite bounds with `lo <= hi`, one pair for each element of a sample.
///
/// ```
/// use leo_network::{Domain, DomainError};
///
/// let pixels = Domain::uniform(784, 0.0, 1.0)?;
/// assert!(pixels.contains(&[0.5; 784]));
/// assert!(matches!(Domain::uniform(784, 1.0, 0.0), Err(DomainError::Reversed { index: 0, .. })));
/// # Ok::<(), DomainError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Domain {
    lo: Vec<f64>,
    hi: Vec<f64>,
}

/// Why bounds do not make a domain.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DomainError {
    /// As many lower bounds as upper bounds are needed.
    #[error("{lo} lower bounds but {hi} upper bounds")]
    Unequal {
        /// How many lower bounds.
        lo: usize,
        /// How many upper bounds.
        hi: usize,
    },
    /// No bounds at all.
    #[error("a domain without inputs")]
    Empty,
    /// NaN or infinity.
    #[error("input {index} has the bound {bound}; bounds must be finite")]
    NotFinite {
        /// Which input.
        index: usize,
        /// Its bound.
        bound: f64,
    },
    /// An interval without points.
    #[error("input {index} has its lower bound {lo} above its upper bound {hi}")]
    Reversed {
        /// Which input.
        index: usize,
        /// Its lower bound.
        lo: f64,
        /// Its upper bound.
        hi: f64,
    },
    /// Another network's domain.
    #[error("the domain has {domain} inputs, the network has {network}")]
    WrongLength {
        /// How many inputs the domain bounds.
        domain: usize,
        /// How many inputs the network has.
        network: usize,
    },
    /// No samples, or samples for another network.
    #[error(
        "holds an array of shape {given:?}, not samples of shape {wanted:?}; the first axis counts samples, and there must be one"
    )]
    Samples {
        /// The array's shape.
        given: Vec<usize>,
        /// The shape of one sample.
        wanted: Vec<usize>,
    },
    /// A margin that is negative or not finite.
    #[error("a margin of {0}; it must be finite and not negative")]
    BadMargin(f64),
}

impl Domain {
    /// The box between these bounds.
    ///
    /// # Errors
    /// If there are none, or not equally many, or one is not finite, or a lower one is above its upper one.
    pub fn new(lo: Vec<f64>, hi: Vec<f64>) -> Result<Self, DomainError> {
        if lo.len() != hi.len() {
            return Err(DomainError::Unequal { lo: lo.len(), hi: hi.len() });
        }
        if lo.is_empty() {
            return Err(DomainError::Empty);
        }
        for (index, (&lo, &hi)) in lo.iter().zip(&hi).enumerate() {
            if let Some(&bound) = [lo, hi].iter().find(|bound| !bound.is_finite()) {
                return Err(DomainError::NotFinite { index, bound });
            }
            if lo > hi {
                return Err(DomainError::Reversed { index, lo, hi });
            }
        }
        Ok(Self { lo, hi })
    }

    /// The same interval for each of `inputs` inputs.
    ///
    /// # Errors
    /// As for [`Domain::new`].
    pub fn uniform(inputs: usize, lo: f64, hi: f64) -> Result<Self, DomainError> {
        Self::new(vec![lo; inputs], vec![hi; inputs])
    }

    /// The smallest box that holds all samples of a data set, where a sample has this shape. What counts as samples is
    /// said [there](Array::count_samples).
    ///
    /// # Errors
    /// If there is no sample, or samples are of another shape, or a number is not finite.
    pub fn of_samples(samples: &Array, sample: &Shape) -> Result<Self, DomainError> {
        Self::count_samples(samples, sample)?;
        let width = sample.elements();
        let (mut lo, mut hi) = (vec![f64::INFINITY; width], vec![f64::NEG_INFINITY; width]);
        for (position, value) in samples.iter().enumerate() {
            let index = position % width;
            if !value.is_finite() {
                return Err(DomainError::NotFinite { index, bound: value });
            }
            lo[index] = lo[index].min(value);
            hi[index] = hi[index].max(value);
        }
        Self::new(lo, hi)
    }

    /// How many samples an array holds.
    ///
    /// # Errors
    /// If it holds none, or something else.
    pub fn count_samples(samples: &Array, sample: &Shape) -> Result<usize, DomainError> {
        samples
            .count_samples(sample)
            .ok_or_else(|| DomainError::Samples { given: samples.shape().to_vec(), wanted: sample.extents().to_vec() })
    }

    /// The box between the bounds in two arrays of the same shape.
    ///
    /// # Errors
    /// As for [`Domain::new`].
    pub fn between(lo: &Array, hi: &Array) -> Result<Self, DomainError> {
        Self::new(lo.to_vec(), hi.to_vec())
    }

    /// Reads the box of inputs in a VNN-LIB file, or the one of an NNet file, by its suffix; gzip or not.
    ///
    /// # Errors
    /// If the file cannot be read, or its inputs form no box and that is not [otherwise](Otherwise) provided for.
    pub fn load(path: &Path, otherwise: Otherwise) -> Result<Self, FileError> {
        Self::try_load(path, otherwise).map_err(|problem| problem.in_file(path))
    }

    fn try_load(path: &Path, otherwise: Otherwise) -> Result<Self, Problem> {
        let bytes = file::read(path)?;
        match file::suffix(path).as_str() {
            "vnnlib" => Ok(vnnlib::domain(&bytes, otherwise)?),
            "nnet" => Ok(Nnet::from_bytes(&bytes)?.domain()?),
            _ => Err(Problem::UnknownSuffix { expected: "domains are .vnnlib or .nnet files" }),
        }
    }

    /// The box grown by `margin` on every side, rounded outward.
    ///
    /// # Errors
    /// If the margin is negative or not finite, or so large that a bound overflows.
    pub fn widened(self, margin: f64) -> Result<Self, DomainError> {
        if !(margin >= 0.0 && margin.is_finite()) {
            return Err(DomainError::BadMargin(margin));
        }
        let margin = Enclosure::exactly(margin);
        let lo = self.lo.iter().map(|&bound| Enclosure::exactly(bound).plus(margin.negative()).lo).collect();
        let hi = self.hi.iter().map(|&bound| Enclosure::exactly(bound).plus(margin).hi).collect();
        Self::new(lo, hi)
    }

    /// This domain, if it is one for a network with so many inputs.
    ///
    /// # Errors
    /// If it is not.
    pub fn for_inputs(self, inputs: usize) -> Result<Self, DomainError> {
        if self.len() == inputs {
            Ok(self)
        } else {
            Err(DomainError::WrongLength { domain: self.len(), network: inputs })
        }
    }

    /// The lower bounds.
    pub fn lo(&self) -> &[f64] {
        &self.lo
    }

    /// The upper bounds.
    pub fn hi(&self) -> &[f64] {
        &self.hi
    }

    /// How many inputs it bounds; at least one.
    #[allow(clippy::len_without_is_empty, reason = "a domain is never empty")]
    pub fn len(&self) -> usize {
        self.lo.len()
    }

    /// Whether a flattened sample lies in it.
    pub fn contains(&self, sample: &[f64]) -> bool {
        sample.len() == self.len()
            && sample.iter().zip(self.lo.iter().zip(&self.hi)).all(|(x, (lo, hi))| lo <= x && x <= hi)
    }

    /// Whether a flattened sample is a corner of it: at a bound in each input.
    pub fn is_corner(&self, sample: &[f64]) -> bool {
        sample.len() == self.len()
            && sample.iter().zip(self.lo.iter().zip(&self.hi)).all(|(x, (lo, hi))| x == lo || x == hi)
    }

    /// Moves flattened samples, one after the other, to the points of it next to them; what is NaN to its lower bound.
    pub fn clamp(&self, samples: &mut [f64]) {
        for sample in samples.chunks_mut(self.len()) {
            for (x, (&lo, &hi)) in sample.iter_mut().zip(self.lo.iter().zip(&self.hi)) {
                *x = if x.is_nan() { lo } else { x.clamp(lo, hi) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_boxes_with_points_are_domains() {
        assert!(matches!(Domain::new(vec![0.0, 1.0], vec![1.0, 0.5]), Err(DomainError::Reversed { index: 1, .. })));
        assert!(matches!(Domain::uniform(2, f64::NAN, 1.0), Err(DomainError::NotFinite { index: 0, .. })));
        assert!(matches!(Domain::uniform(2, 0.0, f64::INFINITY), Err(DomainError::NotFinite { .. })));
        assert!(matches!(Domain::new(vec![0.0], vec![]), Err(DomainError::Unequal { lo: 1, hi: 0 })));
        assert!(matches!(Domain::uniform(0, 0.0, 1.0), Err(DomainError::Empty)));
        assert!(Domain::uniform(3, 2.0, 2.0).is_ok(), "a point is a domain");
    }

    #[test]
    fn the_range_of_samples_holds_them_all() -> Result<(), Box<dyn std::error::Error>> {
        let samples = Array::new(vec![2, 2], vec![1.0_f64, 5.0, -1.0, 6.0])?;
        let domain = Domain::of_samples(&samples, &Shape::new([2])?)?;
        assert!(matches!(Domain::of_samples(&samples, &Shape::new([3])?), Err(DomainError::Samples { .. })));
        let channels_last = Array::new(vec![1, 2, 2, 3], vec![0_u8; 12])?;
        assert!(Domain::of_samples(&channels_last, &Shape::new([3, 2, 2])?).is_err(), "axes in another order");
        assert_eq!((domain.lo(), domain.hi()), (&[-1.0, 5.0][..], &[1.0, 6.0][..]));
        assert!(domain.contains(&[0.0, 5.5]) && !domain.contains(&[0.0, 7.0]) && !domain.contains(&[0.0]));
        let wider = domain.widened(0.5)?;
        assert_eq!((wider.lo(), wider.hi()), (&[-1.5, 4.5][..], &[1.5, 6.5][..]));
        assert!(wider.clone().widened(-1.0).is_err() && wider.widened(f64::NAN).is_err());
        Ok(())
    }

    #[test]
    fn corners_are_at_a_bound_in_each_input() -> Result<(), DomainError> {
        let domain = Domain::new(vec![-1.0, 2.0], vec![1.0, 2.0])?;
        assert!(domain.is_corner(&[-1.0, 2.0]) && domain.is_corner(&[1.0, 2.0]));
        assert!(
            !domain.is_corner(&[0.0, 2.0]) && !domain.is_corner(&[-1.0, 3.0]) && !domain.is_corner(&[f64::NAN, 2.0])
        );
        assert!(!domain.is_corner(&[]) && !domain.is_corner(&[-1.0]) && !domain.is_corner(&[-1.0, 2.0, 2.0]));
        Ok(())
    }

    #[test]
    fn clamped_samples_lie_in_it() -> Result<(), DomainError> {
        let domain = Domain::new(vec![-1.0, 2.0], vec![1.0, 2.0])?;
        let mut samples = [0.5, 2.0, f64::NAN, 7.0, f64::INFINITY, f64::NEG_INFINITY];
        domain.clamp(&mut samples);
        assert_eq!(samples, [0.5, 2.0, -1.0, 2.0, 1.0, 2.0]);
        Ok(())
    }
}
