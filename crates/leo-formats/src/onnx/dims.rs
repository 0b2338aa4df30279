//! The axes of an ONNX tensor, with the batch told apart from the sample.
//!
//! ONNX tensors carry their batch as an axis like any other; Leo's networks are functions of one sample. While a
//! graph is read, every value's axes are followed through it, the batch axis wherever it goes, so that what is left
//! without it is the sample's shape. An operator that would mix samples is found out here.

use super::Reason;
use leo_network::{NetworkError, Shape, product};

/// One axis of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Axis {
    /// The samples of a batch: how many, if the file fixes it.
    Batch(Option<usize>),
    /// An axis within one sample.
    Fixed(usize),
}

/// One entry of a shape that is computed with, as when a graph reshapes to "as many rows as before".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DimEntry {
    /// A number that is known.
    Number(i64),
    /// How many samples there are, which is not.
    Batch,
}

impl std::fmt::Display for DimEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Batch => f.write_str("N"),
        }
    }
}

/// The axes of a tensor, at most one of them the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dims(Vec<Axis>);

impl Dims {
    pub(crate) fn new(axes: Vec<Axis>) -> Self {
        debug_assert!(axes.iter().filter(|axis| matches!(axis, Axis::Batch(_))).count() <= 1);
        Self(axes)
    }

    pub(crate) fn fixed(extents: &[usize]) -> Self {
        Self(extents.iter().map(|&extent| Axis::Fixed(extent)).collect())
    }

    pub(crate) fn axes(&self) -> &[Axis] {
        &self.0
    }

    pub(super) fn rank(&self) -> usize {
        self.0.len()
    }

    /// Where the batch is.
    pub(crate) fn batch_axis(&self) -> Option<usize> {
        self.0.iter().position(|axis| matches!(axis, Axis::Batch(_)))
    }

    /// The extents without the batch.
    pub(crate) fn sample_extents(&self) -> Vec<usize> {
        extents(&self.0)
    }

    /// The sample's shape.
    pub(super) fn sample(&self) -> Result<Shape, NetworkError> {
        Shape::new(self.sample_extents())
    }

    /// The position within the sample of axis `axis`, which is not the batch.
    pub(super) fn sample_axis(&self, axis: usize) -> usize {
        match self.batch_axis() {
            Some(batch) if batch < axis => axis - 1,
            _ => axis,
        }
    }

    /// An axis as ONNX counts it, from the end where it is negative.
    pub(super) fn axis(&self, axis: i64) -> Result<usize, Reason> {
        resolve_axis(axis, self.rank())
    }

    /// These axes, but `axis` with this extent.
    pub(super) fn with(&self, axis: usize, extent: usize) -> Self {
        let mut axes = self.0.clone();
        axes[axis] = Axis::Fixed(extent);
        Self(axes)
    }

    /// As many axes with the batch where it is, and others with these extents.
    pub(super) fn with_sample(&self, extents: &[usize]) -> Self {
        let mut extents = extents.iter();
        let axis = |axis: &Axis| match axis {
            Axis::Batch(samples) => Axis::Batch(*samples),
            Axis::Fixed(extent) => Axis::Fixed(extents.next().copied().unwrap_or(*extent)),
        };
        Self(self.0.iter().map(axis).collect())
    }

    /// These axes without axis `axis`.
    pub(super) fn without(&self, axis: usize) -> Self {
        let mut axes = self.0.clone();
        axes.remove(axis);
        Self(axes)
    }

    /// These axes with axes of extent 1 in front, up to `rank` of them in all.
    pub(super) fn padded(&self, rank: usize) -> Self {
        let mut axes = vec![Axis::Fixed(1); rank.saturating_sub(self.rank())];
        axes.extend_from_slice(&self.0);
        Self(axes)
    }

    /// The axes in another order.
    pub(super) fn permuted(&self, order: &[usize]) -> Self {
        Self(order.iter().map(|&axis| self.0[axis]).collect())
    }

    /// ONNX's Flatten: all axes before `axis` as one, all others as another.
    pub(super) fn flattened(&self, axis: usize) -> Result<Self, Reason> {
        let (outer, inner) = self.0.split_at(axis);
        Ok(Self(vec![joined(outer)?, joined(inner)?]))
    }

    /// ONNX's Reshape: an entry of `target` may be 0 for "as before" (unless `zero_is_zero`) or -1 for "what is left".
    ///
    /// Elements keep their row-major order. So the batch must come out as one axis, with as many elements of the
    /// sample before it as there were.
    pub(super) fn reshaped(&self, target: &[DimEntry], zero_is_zero: bool) -> Result<Self, Reason> {
        let wrong = || {
            let entries: Vec<String> = target.iter().map(DimEntry::to_string).collect();
            Reason::from(NetworkError::mismatch(format!("cannot give {self} the shape [{}]", entries.join(", "))))
        };
        let (mut axes, open) = self.requested(target, zero_is_zero).ok_or_else(wrong)?;
        let elements = product(&self.sample_extents()).ok_or_else(wrong)?;
        let copied: Vec<usize> = (0..axes.len()).filter(|&at| matches!(axes[at], Axis::Batch(_))).collect();
        let Some(batch) = self.batch_axis() else {
            return if copied.is_empty() && fill(&mut axes, open, elements).is_some() {
                Ok(Self(axes))
            } else {
                Err(wrong())
            };
        };
        let before = product(&extents(&self.0[..batch]));
        let keeps_order = |axes: &[Axis], at: usize| product(&extents(&axes[..at])) == before;
        let position = match (self.0[batch], &copied[..]) {
            (_, &[position]) => {
                fill(&mut axes, open, elements).ok_or_else(wrong)?;
                Some(position)
            }
            // A batch of any size can only be the open entry.
            (Axis::Batch(None), []) => open.filter(|_| product(&extents(&axes)) == Some(elements)),
            // One of a fixed size is an entry that equals it.
            (Axis::Batch(Some(samples)), []) => {
                let total = elements.checked_mul(samples).ok_or_else(wrong)?;
                fill(&mut axes, open, total).ok_or_else(wrong)?;
                (0..axes.len()).find(|&at| axes[at] == Axis::Fixed(samples) && keeps_order(&axes, at))
            }
            _ => return Err(wrong()),
        };
        let position = position.filter(|&at| keeps_order(&axes, at)).ok_or(Reason::MixesBatch)?;
        axes[position] = self.0[batch];
        Ok(Self(axes))
    }

    /// The axes that a shape asks for, and the open one among them, which stands for 1 so far.
    fn requested(&self, target: &[DimEntry], zero_is_zero: bool) -> Option<(Vec<Axis>, Option<usize>)> {
        let mut open = None;
        let mut axes = Vec::new();
        for (position, &entry) in target.iter().enumerate() {
            axes.push(match entry {
                DimEntry::Batch => Axis::Batch(None),
                DimEntry::Number(0) if zero_is_zero => return None,
                DimEntry::Number(0) => *self.0.get(position)?,
                DimEntry::Number(-1) if open.is_none() => {
                    open = Some(position);
                    Axis::Fixed(1)
                }
                DimEntry::Number(number) => Axis::Fixed(usize::try_from(number).ok()?),
            });
        }
        Some((axes, open))
    }
}

impl std::fmt::Display for Dims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let axes = self.0.iter().map(|axis| match axis {
            Axis::Batch(None) => "N".to_owned(),
            Axis::Batch(Some(samples)) => format!("N={samples}"),
            Axis::Fixed(extent) => extent.to_string(),
        });
        write!(f, "[{}]", axes.collect::<Vec<_>>().join(", "))
    }
}

/// An axis as ONNX counts it, from the end where it is negative.
pub(super) fn resolve_axis(axis: i64, rank: usize) -> Result<usize, Reason> {
    let rank = rank as i64;
    let counted = if axis < 0 { axis.checked_add(rank) } else { Some(axis) };
    match counted {
        Some(counted) if (0..rank).contains(&counted) => Ok(counted as usize),
        _ => Err(NetworkError::mismatch(format!("axis {axis} of a tensor with {rank} axes")).into()),
    }
}

fn extents(axes: &[Axis]) -> Vec<usize> {
    let fixed = axes.iter().filter_map(|axis| match axis {
        Axis::Fixed(extent) => Some(*extent),
        Axis::Batch(_) => None,
    });
    fixed.collect()
}

/// Gives the open entry what is left, and checks that everything adds up to `elements`.
fn fill(axes: &mut [Axis], open: Option<usize>, elements: usize) -> Option<()> {
    let known = product(&extents(axes)).filter(|&known| known > 0)?;
    if let Some(position) = open {
        axes[position] = Axis::Fixed(elements / known);
    }
    (product(&extents(axes))? == elements).then_some(())
}

/// Several axes as one.
fn joined(axes: &[Axis]) -> Result<Axis, Reason> {
    let extent = product(&extents(axes)).ok_or_else(|| NetworkError::TooLarge { extents: extents(axes) })?;
    match axes.iter().find(|axis| matches!(axis, Axis::Batch(_))) {
        None => Ok(Axis::Fixed(extent)),
        Some(&batch) if extent == 1 => Ok(batch),
        Some(_) => Err(Reason::MixesBatch),
    }
}

#[cfg(test)]
mod tests {
    use super::Axis::{Batch, Fixed};
    use super::*;

    fn reshape(from: &[Axis], target: &[i64]) -> Option<Vec<Axis>> {
        let target: Vec<DimEntry> = target.iter().map(|&number| DimEntry::Number(number)).collect();
        Dims::new(from.to_vec()).reshaped(&target, false).ok().map(|dims| dims.0)
    }

    #[test]
    fn reshapes_follow_the_batch() {
        let image = [Batch(None), Fixed(1), Fixed(2), Fixed(3)];
        assert_eq!(reshape(&image, &[-1, 6]), Some(vec![Batch(None), Fixed(6)]));
        assert_eq!(reshape(&image, &[0, -1]), Some(vec![Batch(None), Fixed(6)]));
        assert_eq!(reshape(&image, &[1, -1, 6]), Some(vec![Fixed(1), Batch(None), Fixed(6)]));
        assert_eq!(reshape(&image, &[1, -1]), None, "samples would be joined");
        assert_eq!(reshape(&image, &[6, -1]), None, "samples would be interleaved");
        assert_eq!(reshape(&image, &[0, 7]), None);
        let eight = [Batch(Some(8)), Fixed(8)];
        assert_eq!(reshape(&eight, &[8, 2, 4]), Some(vec![Batch(Some(8)), Fixed(2), Fixed(4)]));
        assert_eq!(reshape(&eight, &[8, -1]), Some(vec![Batch(Some(8)), Fixed(8)]));
        assert_eq!(reshape(&eight, &[64]), None);
        assert_eq!(reshape(&[Fixed(2), Fixed(6)], &[-1, 4]), Some(vec![Fixed(3), Fixed(4)]));
        assert_eq!(reshape(&[Fixed(2), Fixed(6)], &[-1, 5]), None);
        assert_eq!(reshape(&[Fixed(2)], &[-1, -1]), None);
    }

    #[test]
    fn a_computed_shape_names_the_batch_once() {
        let image = Dims::new(vec![Batch(None), Fixed(2), Fixed(3)]);
        let flat = image.reshaped(&[DimEntry::Batch, DimEntry::Number(-1)], false);
        assert_eq!(flat.ok().map(|dims| dims.0), Some(vec![Batch(None), Fixed(6)]));
        assert!(image.reshaped(&[DimEntry::Batch, DimEntry::Batch, DimEntry::Number(6)], false).is_err());
        assert!(image.reshaped(&[DimEntry::Number(6), DimEntry::Batch], false).is_err());
        assert!(Dims::fixed(&[6]).reshaped(&[DimEntry::Batch, DimEntry::Number(6)], false).is_err());
    }

    #[test]
    fn flattening_keeps_samples_apart() {
        let image = Dims::new(vec![Batch(None), Fixed(2), Fixed(3)]);
        assert_eq!(image.flattened(1).ok().map(|dims| dims.0), Some(vec![Batch(None), Fixed(6)]));
        assert!(image.flattened(0).is_err() && image.flattened(2).is_err());
    }
}
