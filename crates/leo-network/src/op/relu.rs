//! The rectifier.

use super::{Kernel, Operands, Operator, Run};
use crate::product::Real;
use crate::shape::{NetworkError, Shape};

/// `max(0, x)`, element by element. Each element is one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relu;

impl Operator for Relu {
    fn name(&self) -> &'static str {
        "relu"
    }

    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError> {
        Ok(operands[0].clone())
    }
}

impl Run for Relu {
    fn kernel<T: Real>(&self, _operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        Box::new(*self)
    }
}

impl<T: Real> Kernel<T> for Relu {
    fn run(&self, operands: Operands<'_, T>, output: &mut [T]) {
        let zero = T::default();
        for (y, &x) in output.iter_mut().zip(operands.get(0)) {
            // A NaN stays a NaN: an overflow in a layer before must not look like a unit that is off.
            *y = if x < zero { zero } else { x };
        }
    }
}
