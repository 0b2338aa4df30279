//! The box.

use serde::{Deserialize, Serialize};

use super::{ConvexSet, Domain, DomainError, Numbers, between};

/// A box: finite bounds with `lo <= x <= hi`, one pair for each element `x` of a sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    lo: Vec<f64>,
    hi: Vec<f64>,
}

/// A box as files have it: bounds for each input, or the same for all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WrittenBounds {
    inputs: usize,
    lo: Numbers,
    hi: Numbers,
}

impl Bounds {
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

    /// The lower bounds.
    pub fn lo(&self) -> &[f64] {
        &self.lo
    }

    /// The upper bounds.
    pub fn hi(&self) -> &[f64] {
        &self.hi
    }

    /// Both bounds of each input.
    pub fn sides(&self) -> impl ExactSizeIterator<Item = (f64, f64)> {
        self.lo.iter().copied().zip(self.hi.iter().copied())
    }

    /// For a corner, whether each input is at its upper bound, unless that is its lower one, too; nothing for any other
    /// point.
    pub fn corner_of(&self, point: &[f64]) -> Option<Vec<bool>> {
        let side = |(&x, (lo, hi)): (&f64, (f64, f64))| (x == lo || x == hi).then_some(x != lo);
        point.iter().zip(self.sides()).map(side).collect::<Option<Vec<bool>>>().filter(|_| point.len() == self.lo.len())
    }

    /// The corner where these inputs are at their upper bounds.
    pub fn corner(&self, is_high: impl Iterator<Item = bool>) -> Vec<f64> {
        self.sides().zip(is_high).map(|((lo, hi), is_high)| if is_high { hi } else { lo }).collect()
    }
}

impl From<Bounds> for Domain {
    fn from(bounds: Bounds) -> Self {
        Self::Box(bounds)
    }
}

impl ConvexSet for Bounds {
    type Written = WrittenBounds;

    fn hull(&self) -> &Bounds {
        self
    }

    fn as_box(&self) -> Option<&Bounds> {
        Some(self)
    }

    fn maximise<T: PartialOrd + Default>(&self, coefficients: &[T], point: &mut [f64]) {
        let zero = T::default();
        for ((x, c), (lo, hi)) in point.iter_mut().zip(coefficients).zip(self.sides()) {
            let low = if *c < zero { lo } else { *x };
            *x = if *c > zero { hi } else { low };
        }
    }

    fn at(&self, mut share: impl FnMut() -> f64) -> Vec<f64> {
        self.sides().map(|(lo, hi)| between(lo, hi, share())).collect()
    }

    fn project(&self, point: &mut [f64]) {
        point.iter_mut().zip(self.sides()).for_each(|(x, (lo, hi))| *x = if x.is_nan() { lo } else { x.clamp(lo, hi) });
    }

    fn contains(&self, point: &[f64]) -> bool {
        point.iter().zip(self.sides()).all(|(x, (lo, hi))| lo <= *x && *x <= hi)
    }

    fn halves(&self, input: usize, middle: f64) -> Option<[Self; 2]> {
        let (mut below, mut above) = (self.clone(), self.clone());
        (below.hi[input], above.lo[input]) = (middle, middle);
        Some([below, above])
    }

    fn written(&self) -> WrittenBounds {
        WrittenBounds { inputs: self.lo.len(), lo: Numbers::of(&self.lo), hi: Numbers::of(&self.hi) }
    }

    fn read(written: &WrittenBounds, inputs: usize) -> Result<Self, DomainError> {
        if written.inputs != inputs {
            return Err(DomainError::WrongLength { domain: written.inputs, network: inputs });
        }
        let [lo, hi] = [&written.lo, &written.hi].map(|numbers| numbers.for_each(inputs));
        Self::new(lo, hi)
    }
}
