//! Where the channels of a value lie among its elements.

use crate::shape::Shape;

/// The channels of a value: what a weight belongs to, at however many positions. The one place that knows where they
/// lie in a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels {
    count: usize,
    positions: usize,
    /// How far the elements of neighbouring channels are from each other.
    stride: usize,
    /// The axis that they lie along.
    axis: usize,
}

impl Channels {
    /// Those along an axis of a shape; all of it is one channel where there is no such axis.
    pub fn along(shape: &Shape, axis: usize) -> Self {
        let count = shape.extents().get(axis).copied().unwrap_or(1);
        let stride = shape.extents().iter().skip(axis + 1).product();
        Self { count, positions: shape.elements() / count, stride, axis }
    }

    /// `count` of them, at `positions` positions, with elements that are `stride` from each other.
    pub(crate) fn laid(count: usize, positions: usize, stride: usize) -> Self {
        Self { count, positions, stride, axis: 0 }
    }

    /// Those of a dense layer: along the innermost axis.
    pub fn innermost(shape: &Shape) -> Self {
        Self::along(shape, shape.rank().saturating_sub(1))
    }

    /// The axis that they lie along.
    pub fn axis(&self) -> usize {
        self.axis
    }

    /// Whether they are as many, at as many positions, and lie as far from each other.
    pub(crate) fn is_alike(&self, other: &Self) -> bool {
        (self.count, self.positions, self.stride) == (other.count, other.positions, other.stride)
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.count
    }

    /// How many elements each has.
    pub fn positions(&self) -> usize {
        self.positions
    }

    /// The channel of an element.
    pub fn of(&self, element: usize) -> usize {
        element / self.stride % self.count
    }

    /// The position of an element in its channel.
    pub fn position(&self, element: usize) -> usize {
        element / (self.stride * self.count) * self.stride + element % self.stride
    }

    /// The element of a channel at a position.
    pub fn element(&self, channel: usize, position: usize) -> usize {
        (position / self.stride * self.count + channel) * self.stride + position % self.stride
    }

    /// All elements of a channel.
    pub fn elements(self, channel: usize) -> impl Iterator<Item = usize> {
        (0..self.positions).map(move |position| self.element(channel, position))
    }

    /// Channels that lie as these do, but `count` of them.
    pub fn with_count(self, count: usize) -> Self {
        Self { count, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::NetworkError;

    #[test]
    fn every_element_has_one_channel_and_one_position() -> Result<(), NetworkError> {
        let inner = Channels::innermost(&Shape::new([2, 3])?);
        assert_eq!(inner.elements(1).collect::<Vec<_>>(), [1, 4]);
        let outer = Channels::along(&Shape::new([2, 3])?, 0);
        assert_eq!(outer.elements(1).collect::<Vec<_>>(), [3, 4, 5]);
        for channels in [inner, outer] {
            for element in 0..6 {
                assert_eq!(channels.element(channels.of(element), channels.position(element)), element);
            }
        }
        Ok(())
    }
}
