//! Where two branches meet.

use super::{Evaluate, Kernel, Operands, Operator};
use crate::channels::Channels;
use crate::product::Real;
use crate::shape::{NetworkError, Shape};

/// `x + y`, element by element, of two values of the same shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sum;

impl Operator for Sum {
    fn name(&self) -> &'static str {
        "sum"
    }

    fn arity(&self) -> usize {
        2
    }

    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError> {
        let [left, right] = [operands[0], operands[1]];
        if left != right {
            return Err(NetworkError::mismatch(format!("adds values of different shapes, {left} and {right}")));
        }
        Ok(left.clone())
    }

    fn channels(&self, operand: Channels, _result: &Shape) -> Channels {
        operand
    }
}

impl Evaluate for Sum {
    fn kernel<T: Real>(&self, _operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        Box::new(*self)
    }
}

impl<T: Real> Kernel<T> for Sum {
    fn run(&self, operands: Operands<'_, T>, output: &mut [T]) {
        let pairs = operands.get(0).iter().zip(operands.get(1));
        for (z, (&x, &y)) in output.iter_mut().zip(pairs) {
            *z = x + y;
        }
    }
}
