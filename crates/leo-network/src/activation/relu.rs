//! The rectifier.

use super::{Activation, Onnx, Piece};
use crate::op::{Kernel, Op, Operands};
use crate::product::Real;

/// `max(0, x)`: off, or on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relu;

impl From<Relu> for Activation {
    fn from(_: Relu) -> Self {
        let pieces =
            vec![Piece { name: "off", slope: 0.0, constant: 0.0 }, Piece { name: "on", slope: 1.0, constant: 0.0 }];
        Self { name: "relu", onnx: Onnx { operator: "Relu", attributes: Vec::new() }, knots: vec![0.0], pieces }
    }
}

impl From<Relu> for Op {
    fn from(relu: Relu) -> Self {
        Self::Activation(relu.into())
    }
}

/// As fast as it can be: most units are rectifiers.
impl<T: Real> Kernel<T> for Relu {
    fn run(&self, operands: Operands<'_, T>, output: &mut [T]) {
        let zero = T::default();
        for (y, &x) in output.iter_mut().zip(operands.get(0)) {
            // A NaN stays a NaN: an overflow in a layer before must not look like a unit that is off.
            *y = if x < zero { zero } else { x };
        }
    }
}
