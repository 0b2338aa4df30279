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
}

impl Channels {
    /// Those of a dense layer: along the innermost axis.
    pub fn innermost(shape: &Shape) -> Self {
        Self { count: shape.last(), positions: shape.elements() / shape.last(), stride: 1 }
    }

    /// Those of a convolution: along the first axis.
    pub fn outermost(shape: &Shape) -> Self {
        let count = shape.extents().first().copied().unwrap_or(1);
        Self { count, positions: shape.elements() / count, stride: shape.elements() / count }
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
        let outer = Channels::outermost(&Shape::new([2, 3])?);
        assert_eq!(outer.elements(1).collect::<Vec<_>>(), [3, 4, 5]);
        for channels in [inner, outer] {
            for element in 0..6 {
                assert_eq!(channels.element(channels.of(element), channels.position(element)), element);
            }
        }
        Ok(())
    }
}
