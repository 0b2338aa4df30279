//! The domain: the inputs that a network will ever see.
//!
//! A [`Domain`] is a convex set of flattened samples, without end in no direction. It can be had from a constant, from
//! two arrays, or from the range of a data set; files that hold one are read by `leo-formats`.
//!
//! A kind of domain is a file with a [`ConvexSet`]: the box around it, where on it a linear function is largest, the
//! point of it next to a point, whether it holds a point, and how it is written down. That is all that anybody asks:
//! proofs need the box for the ranges they begin with, and the maximum for the ones they end with, and searches need
//! points, which are made of the others here. So far there are [boxes](Bounds).
//!
//! Bounds are doubles. A program in single precision that rounds 0.3 gets a number just above the double 0.3, outside a
//! domain that ends there; widen such a domain by a [margin](Domain::widened).

mod bounds;
mod numbers;

use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::rounding::Enclosure;
use crate::shape::Shape;

pub use bounds::Bounds;
pub use numbers::Numbers;

/// What is asked of a kind of domain. None is empty, and none is without end.
pub trait ConvexSet: Sized {
    /// How files have it.
    type Written;

    /// The smallest box that holds it.
    fn hull(&self) -> &Bounds;

    /// Moves a point to where a linear function with these coefficients is largest, exactly. Along inputs that do not
    /// matter it stays.
    fn maximise<T: PartialOrd + Default>(&self, coefficients: &[T], point: &mut [f64]);

    /// A point of the set that shares lead to: one after the other, how much of the way each input goes from its lower
    /// bound to its upper one.
    fn at(&self, share: impl FnMut() -> f64) -> Vec<f64> {
        let mut point = self.hull().at(share);
        self.project(&mut point);
        point
    }

    /// Moves a point to the one of the set next to it, or one nearby. What is no number may become any.
    fn project(&self, point: &mut [f64]);

    /// Whether it holds a point, with a number for each input.
    fn contains(&self, point: &[f64]) -> bool;

    /// The parts where an input is no larger and no smaller than a number between its bounds, if the set can be cut.
    fn halves(&self, _input: usize, _middle: f64) -> Option<[Self; 2]> {
        None
    }

    /// The bounds, if it is a box.
    fn as_box(&self) -> Option<&Bounds> {
        None
    }

    /// Numbers that tell it from other sets.
    fn identity(&self) -> Vec<f64> {
        [self.hull().lo(), self.hull().hi()].concat()
    }

    /// As files have it.
    fn written(&self) -> Self::Written;

    /// From a file, for a network with `inputs` inputs: room is made for no more.
    fn read(written: &Self::Written, inputs: usize) -> Result<Self, DomainError>;
}

/// The one place that tells the kinds of domains apart.
macro_rules! domains {
    ($($(#[$about:meta])* $kind:ident($set:ty)),*) => {
        /// The inputs that matter: a convex set of flattened samples.
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
        pub enum Domain {
            $($(#[$about])* $kind($set)),*
        }

        /// A domain as files have it.
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(untagged, expecting = "no domain of a kind that this Leo knows (a box has inputs, lo and hi)")]
        pub enum WrittenDomain {
            $($(#[$about])* $kind(<$set as ConvexSet>::Written)),*
        }

        impl Domain {
            /// The smallest box that holds it.
            pub fn hull(&self) -> &Bounds {
                match self { $(Self::$kind(set) => set.hull()),* }
            }

            /// Moves a point to where a linear function with these coefficients is largest, exactly. Along inputs that
            /// do not matter it stays.
            pub fn maximise<T: PartialOrd + Default>(&self, coefficients: &[T], point: &mut [f64]) {
                match self { $(Self::$kind(set) => set.maximise(coefficients, point)),* }
            }

            /// A point of it that shares lead to: one after the other, how much of the way each input goes from its
            /// lower bound to its upper one.
            pub fn at(&self, share: impl FnMut() -> f64) -> Vec<f64> {
                match self { $(Self::$kind(set) => set.at(share)),* }
            }

            /// Whether a flattened sample lies in it.
            pub fn contains(&self, sample: &[f64]) -> bool {
                sample.len() == self.len() && match self { $(Self::$kind(set) => set.contains(sample)),* }
            }

            /// Moves flattened samples, one after the other, to the points of it next to them; what is NaN to any.
            pub fn clamp(&self, samples: &mut [f64]) {
                for sample in samples.chunks_mut(self.len()) {
                    match self { $(Self::$kind(set) => set.project(sample)),* }
                }
            }

            /// Both parts of it where one input is no larger, and no smaller, than the middle between its bounds:
            /// unless there is no number between these, or it cannot be cut.
            pub fn halves(&self, input: usize) -> Option<[Self; 2]> {
                let (lo, hi) = (self.hull().lo()[input], self.hull().hi()[input]);
                let middle = lo / 2.0 + hi / 2.0;
                let is_between = lo < middle && middle < hi;
                if !is_between {
                    return None;
                }
                match self { $(Self::$kind(set) => Some(set.halves(input, middle)?.map(Self::$kind))),* }
            }

            /// The bounds, if it is a box.
            pub fn as_box(&self) -> Option<&Bounds> {
                match self { $(Self::$kind(set) => set.as_box()),* }
            }

            /// Numbers that tell it from other domains.
            pub fn identity(&self) -> Vec<f64> {
                match self { $(Self::$kind(set) => set.identity()),* }
            }

            /// As files have it.
            pub fn written(&self) -> WrittenDomain {
                match self { $(Self::$kind(set) => WrittenDomain::$kind(set.written())),* }
            }
        }

        impl WrittenDomain {
            /// The domain, for a network with `inputs` inputs.
            ///
            /// # Errors
            /// If it is none, or another network's.
            pub fn domain(&self, inputs: usize) -> Result<Domain, DomainError> {
                let domain = match self { $(Self::$kind(set) => Domain::$kind(ConvexSet::read(set, inputs)?)),* };
                domain.for_inputs(inputs)
            }
        }
    };
}

domains! {
    /// Each input lies between bounds of its own.
    Box(Bounds)
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
        "holds an array of shape {given:?}, not samples of shape {wanted:?}; the first axis counts samples, and there \
         must be one"
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
    /// As for [`Bounds::new`].
    pub fn new(lo: Vec<f64>, hi: Vec<f64>) -> Result<Self, DomainError> {
        Ok(Self::Box(Bounds::new(lo, hi)?))
    }

    /// The interval from `lo` to `hi` for each of `inputs` inputs.
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

    /// The box around it grown by `margin` on every side, rounded outward.
    ///
    /// # Errors
    /// If the margin is negative or not finite, or so large that a bound overflows.
    pub fn widened(self, margin: f64) -> Result<Self, DomainError> {
        if !(margin >= 0.0 && margin.is_finite()) {
            return Err(DomainError::BadMargin(margin));
        }
        let margin = Enclosure::exactly(margin);
        let sides = || self.hull().sides().map(|(lo, hi)| (Enclosure::exactly(lo), Enclosure::exactly(hi)));
        let lo = sides().map(|(lo, _)| lo.plus(margin.negative()).lo).collect();
        Self::new(lo, sides().map(|(_, hi)| hi.plus(margin).hi).collect())
    }

    /// This domain, if it is one for a network with `inputs` inputs.
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

    /// How many inputs it has; at least one.
    #[allow(clippy::len_without_is_empty, reason = "a domain is never empty")]
    pub fn len(&self) -> usize {
        self.hull().lo().len()
    }

    /// Moves a point a part of the way to where slopes lead, a step of Frank and Wolfe (1956); inputs without a slope
    /// stay.
    pub fn step_along(&self, point: &mut [f64], slopes: &[f64], part: f64) {
        let mut end = point.to_vec();
        self.maximise(slopes, &mut end);
        for ((x, end), slope) in point.iter_mut().zip(end).zip(slopes) {
            if *slope != 0.0 {
                *x = *x * (1.0 - part) + end * part;
            }
        }
        self.clamp(point);
    }

    /// Moves every input of a point by a part of its range, up or down as a direction says, and then into the domain: a
    /// step of projected gradient descent (PGD), by signs.
    pub fn step_by(&self, point: &mut [f64], direction: &[f64], part: f64) {
        for ((x, direction), (lo, hi)) in point.iter_mut().zip(direction).zip(self.hull().sides()) {
            if *direction != 0.0 {
                *x += direction.signum() * part * (hi - lo);
            }
        }
        self.clamp(point);
    }
}

/// A number between two others; the ends exactly.
#[inline]
pub fn between(from: f64, to: f64, share: f64) -> f64 {
    match share {
        0.0 => from,
        1.0 => to,
        _ => (from + share * (to - from)).clamp(from.min(to), from.max(to)),
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
        assert_eq!((domain.hull().lo(), domain.hull().hi()), (&[-1.0, 5.0][..], &[1.0, 6.0][..]));
        assert!(domain.contains(&[0.0, 5.5]) && !domain.contains(&[0.0, 7.0]) && !domain.contains(&[0.0]));
        let wider = domain.widened(0.5)?;
        assert_eq!((wider.hull().lo(), wider.hull().hi()), (&[-1.5, 4.5][..], &[1.5, 6.5][..]));
        assert!(wider.clone().widened(-1.0).is_err() && wider.widened(f64::NAN).is_err());
        Ok(())
    }

    #[test]
    fn corners_are_at_a_bound_in_each_input() -> Result<(), DomainError> {
        let bounds = Bounds::new(vec![-1.0, 2.0], vec![1.0, 2.0])?;
        for (corner, sides) in [([-1.0, 2.0], [false, false]), ([1.0, 2.0], [true, false])] {
            assert_eq!(bounds.corner_of(&corner).as_deref(), Some(&sides[..]));
            assert_eq!(bounds.corner(sides.into_iter()), corner);
        }
        for other in [&[0.0, 2.0][..], &[-1.0, 3.0], &[f64::NAN, 2.0], &[], &[-1.0], &[-1.0, 2.0, 2.0]] {
            assert_eq!(bounds.corner_of(other), None);
        }
        Ok(())
    }

    #[test]
    fn linear_functions_are_largest_at_corners() -> Result<(), DomainError> {
        let domain = Domain::new(vec![-1.0, 2.0, 0.0], vec![1.0, 3.0, 4.0])?;
        let mut point = [0.5, 2.5, 1.0];
        domain.maximise(&[2.0, -1.0, 0.0], &mut point);
        assert_eq!(point, [1.0, 2.0, 1.0], "the last input does not matter");
        domain.step_along(&mut point, &[-1.0, 0.0, 1.0], 0.5);
        assert_eq!(point, [0.0, 2.0, 2.5]);
        domain.step_by(&mut point, &[3.0, 0.0, -7.0], 0.75);
        assert_eq!(point, [1.0, 2.0, 0.0], "no further than the domain reaches");
        let halves = domain.halves(2).map(|halves| halves.map(|half| half.hull().sides().nth(2)));
        assert_eq!(halves, Some([Some((0.0, 2.0)), Some((2.0, 4.0))]));
        assert!(Domain::uniform(1, 1.0, 1.0_f64.next_up())?.halves(0).is_none(), "no number lies between");
        assert_eq!(domain.written().domain(3)?, domain);
        assert!(matches!(domain.written().domain(2), Err(DomainError::WrongLength { domain: 3, network: 2 })));
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
