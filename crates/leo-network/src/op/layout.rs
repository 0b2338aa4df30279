//! Changes of layout: the numbers stay, their places change.

use super::{Action, ActionKind, Evaluate, Kernel, Map, Moves, Operands, Operator};
use crate::channels::Channels;
use crate::product::Real;
use crate::shape::{NetworkError, Shape};

/// The same numbers in the same order, under another shape. Flattening is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reshape {
    target: Shape,
}

impl Reshape {
    /// A change to the shape `target`.
    pub fn new(target: Shape) -> Self {
        Self { target }
    }

    /// The shape it gives.
    pub fn target(&self) -> &Shape {
        &self.target
    }
}

impl Operator for Reshape {
    fn name(&self) -> &'static str {
        "reshape"
    }

    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError> {
        if operands[0].elements() != self.target.elements() {
            return Err(NetworkError::mismatch(format!(
                "cannot give the shape {} to a tensor of shape {}",
                self.target, operands[0]
            )));
        }
        Ok(self.target.clone())
    }

    fn channels(&self, operand: Channels, result: &Shape) -> Channels {
        // Where an axis of the result holds the same elements at the same distances, it is the same axis.
        let axes = (0..result.rank()).map(|axis| Channels::along(result, axis));
        axes.into_iter().find(|axis| axis.is_alike(&operand)).unwrap_or_else(|| Channels::innermost(result))
    }
}

impl Evaluate for Reshape {
    fn kernel<T: Real>(&self, _operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        Box::new(Copy)
    }
}

impl Map for Reshape {
    fn action(&self, _operand: &Shape) -> Action<'_> {
        Action::Move(Moves::in_order())
    }

    fn kind(&self) -> ActionKind {
        ActionKind::Move
    }
}

struct Copy;

impl<T: Real> Kernel<T> for Copy {
    fn run(&self, operands: Operands<'_, T>, output: &mut [T]) {
        output.copy_from_slice(operands.get(0));
    }
}

/// The axes in another order: axis `i` of the result is axis `order[i]` of the operand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transpose {
    order: Vec<usize>,
}

impl Transpose {
    /// The reordering `order`.
    ///
    /// # Errors
    /// If it does not name every axis once.
    pub fn new(order: impl Into<Vec<usize>>) -> Result<Self, NetworkError> {
        let order = order.into();
        let mut seen = vec![false; order.len()];
        for &axis in &order {
            match seen.get_mut(axis) {
                Some(seen) if !*seen => *seen = true,
                _ => return Err(NetworkError::mismatch(format!("{order:?} is not an order of {} axes", order.len()))),
            }
        }
        Ok(Self { order })
    }

    /// All of `rank` axes in reverse.
    pub fn reversal(rank: usize) -> Self {
        Self { order: (0..rank).rev().collect() }
    }

    /// Where each axis of the result comes from.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// For each element of the result, the operand's element that moves there.
    pub fn sources(&self, operand: &[usize]) -> Vec<usize> {
        if operand.contains(&0) {
            return Vec::new();
        }
        let mut strides = vec![1; operand.len()];
        for axis in (1..operand.len()).rev() {
            strides[axis - 1] = strides[axis] * operand[axis];
        }
        let mut sources = vec![0];
        for &axis in &self.order {
            let (extent, stride) = (operand[axis], strides[axis]);
            sources = sources.iter().flat_map(|&start| (0..extent).map(move |i| start + i * stride)).collect();
        }
        sources
    }
}

impl Operator for Transpose {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError> {
        let extents = operands[0].extents();
        if extents.len() != self.order.len() {
            return Err(NetworkError::mismatch(format!(
                "reorders {} axes, the input has shape {}",
                self.order.len(),
                operands[0]
            )));
        }
        Shape::new(self.order.iter().map(|&axis| extents[axis]).collect::<Vec<_>>())
    }

    fn channels(&self, operand: Channels, result: &Shape) -> Channels {
        let axis = self.order.iter().position(|&axis| axis == operand.axis());
        axis.map_or_else(|| Channels::innermost(result), |axis| Channels::along(result, axis))
    }
}

impl Map for Transpose {
    fn action(&self, operand: &Shape) -> Action<'_> {
        Action::Move(Moves::new(self.sources(operand.extents())))
    }

    fn kind(&self) -> ActionKind {
        ActionKind::Move
    }
}

impl Evaluate for Transpose {
    fn kernel<T: Real>(&self, operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        Box::new(Gather { sources: self.sources(operands[0].extents()) })
    }
}

struct Gather {
    sources: Vec<usize>,
}

impl<T: Real> Kernel<T> for Gather {
    fn run(&self, operands: Operands<'_, T>, output: &mut [T]) {
        let width = self.sources.len();
        for (x, y) in operands.get(0).chunks_exact(width).zip(output.chunks_exact_mut(width)) {
            for (y, &source) in y.iter_mut().zip(&self.sources) {
                *y = x[source];
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_move_where_the_order_says() -> Result<(), NetworkError> {
        assert_eq!(Transpose::new([1, 0])?.sources(&[2, 3]), [0, 3, 1, 4, 2, 5]);
        assert_eq!(Transpose::new([2, 0, 1])?.sources(&[1, 2, 2]), [0, 2, 1, 3]);
        assert_eq!(Transpose::new([])?.sources(&[]), [0]);
        Ok(())
    }

    #[test]
    fn an_order_names_every_axis_once() {
        assert!(Transpose::new([0, 0]).is_err());
        assert!(Transpose::new([0, 2]).is_err());
    }
}
