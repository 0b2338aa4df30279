//! Values side by side.

use super::{Evaluate, Kernel, Operands, Operator};
use crate::channels::Channels;
use crate::product::Real;
use crate::shape::{NetworkError, Shape};

/// Values one after the other along an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Concat {
    axis: usize,
    count: usize,
}

impl Concat {
    /// `count` values along an axis.
    pub fn new(axis: usize, count: usize) -> Self {
        Self { axis, count }
    }

    /// Along which axis.
    pub fn axis(&self) -> usize {
        self.axis
    }

    /// For each element of the result, which operand has it, and where.
    pub fn sources(&self, operands: &[&Shape]) -> Vec<(usize, usize)> {
        let blocks = self.blocks(operands);
        let outer: usize = operands[0].extents()[..self.axis].iter().product();
        let places = |at: usize| {
            let blocks = blocks.iter().enumerate();
            blocks.flat_map(move |(operand, &block)| (0..block).map(move |within| (operand, at * block + within)))
        };
        (0..outer).flat_map(places).collect()
    }

    /// How many neighbouring elements each operand has at a time.
    fn blocks(&self, operands: &[&Shape]) -> Vec<usize> {
        operands.iter().map(|shape| shape.extents()[self.axis..].iter().product()).collect()
    }
}

impl Operator for Concat {
    fn name(&self) -> &'static str {
        "concatenation"
    }

    fn arity(&self) -> usize {
        self.count
    }

    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError> {
        let mut extents = operands[0].extents().to_vec();
        for shape in &operands[1..] {
            let is_alike = shape.rank() == extents.len() && self.axis < extents.len();
            let others = || shape.extents().iter().zip(&extents).enumerate().filter(|(axis, _)| *axis != self.axis);
            if !is_alike || others().any(|(_, (one, other))| one != other) {
                return Err(NetworkError::mismatch(format!(
                    "puts values of shapes {} and {shape} side by side along axis {}",
                    operands[0], self.axis
                )));
            }
        }
        match extents.get_mut(self.axis) {
            None => return Err(NetworkError::mismatch(format!("there is no axis {}", self.axis))),
            Some(extent) => {
                let sum = operands.iter().try_fold(0_usize, |sum, shape| sum.checked_add(shape.extents()[self.axis]));
                *extent = sum.unwrap_or(usize::MAX);
            }
        }
        Shape::new(extents)
    }

    fn channels(&self, operand: Channels, result: &Shape) -> Channels {
        Channels::along(result, operand.axis())
    }
}

impl Evaluate for Concat {
    fn kernel<T: Real>(&self, operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        Box::new(ConcatKernel { blocks: self.blocks(operands) })
    }
}

struct ConcatKernel {
    /// How many neighbouring elements each operand has at a time.
    blocks: Vec<usize>,
}

impl<T: Real> Kernel<T> for ConcatKernel {
    fn run(&self, operands: Operands<'_, T>, output: &mut [T]) {
        let width: usize = self.blocks.iter().sum();
        for (at, mut row) in output.chunks_exact_mut(width).enumerate() {
            for (operand, &block) in self.blocks.iter().enumerate() {
                let (part, rest) = row.split_at_mut(block);
                part.copy_from_slice(&operands.get(operand)[at * block..][..block]);
                row = rest;
            }
        }
    }
}
