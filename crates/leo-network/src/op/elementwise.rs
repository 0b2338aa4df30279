//! Element-wise arithmetic with a constant: input normalisation, biases, folded batch normalisation.

use super::{Kernel, Operands, Operator};
use crate::product::Real;
use crate::shape::{Shape, ShapeError, finite};

/// What [`Elementwise`] does with its constant.
///
/// Division is an operation of its own, because `x / 255` is not `x` times any double: a proof about the network
/// must be able to tell the two apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `x + c`
    Add,
    /// `x c`
    Multiply,
    /// `x / c`
    Divide,
}

/// A constant that is stretched along the axes where its extent is 1, as NumPy does.
#[derive(Clone, Debug, PartialEq)]
pub struct Broadcast {
    shape: Shape,
    values: Vec<f64>,
}

impl Broadcast {
    /// A constant of this shape.
    ///
    /// # Errors
    /// If there are not as many values as the shape holds, or one is not finite.
    pub fn new(shape: Shape, values: Vec<f64>) -> Result<Self, ShapeError> {
        if shape.elements() != values.len() {
            return Err(ShapeError::mismatch(format!(
                "a constant of shape {shape} cannot hold {} values",
                values.len()
            )));
        }
        finite("the constant", &values)?;
        Ok(Self { shape, values })
    }

    /// The constant's own shape: as many axes as what it is applied to, each of the same extent or 1.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The constant's own values.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The constant at each element of a tensor of shape `target`, which it must [fit](Broadcast::fits).
    pub fn expand(&self, target: &Shape) -> Vec<f64> {
        if self.values.len() == 1 {
            return vec![self.values[0]; target.elements()];
        }
        let mut expanded = self.values.clone();
        let mut inner = 1;
        // From the innermost axis outwards: repeat every block of `inner` values where the constant's extent is 1.
        for (&own, &wanted) in self.shape.extents().iter().zip(target.extents()).rev() {
            if own == 1 && wanted > 1 {
                expanded = expanded.chunks_exact(inner).flat_map(|block| block.repeat(wanted)).collect();
            }
            inner *= wanted;
        }
        expanded
    }

    /// Whether the constant can be stretched to `target`.
    pub fn fits(&self, target: &Shape) -> bool {
        self.shape.rank() == target.rank()
            && self.shape.extents().iter().zip(target.extents()).all(|(&own, &wanted)| own == wanted || own == 1)
    }
}

/// `x + c`, `x c` or `x / c`, element by element.
#[derive(Clone, Debug, PartialEq)]
pub struct Elementwise {
    arithmetic: Arithmetic,
    constant: Broadcast,
}

impl Elementwise {
    /// The operation with this constant.
    ///
    /// # Errors
    /// If it would divide by zero.
    pub fn new(arithmetic: Arithmetic, constant: Broadcast) -> Result<Self, ShapeError> {
        if arithmetic == Arithmetic::Divide && constant.values.contains(&0.0) {
            return Err(ShapeError::DivisionByZero);
        }
        Ok(Self { arithmetic, constant })
    }

    /// What it does.
    pub fn arithmetic(&self) -> Arithmetic {
        self.arithmetic
    }

    /// With what.
    pub fn constant(&self) -> &Broadcast {
        &self.constant
    }
}

impl Operator for Elementwise {
    fn name(&self) -> &'static str {
        match self.arithmetic {
            Arithmetic::Add => "add",
            Arithmetic::Multiply => "multiply",
            Arithmetic::Divide => "divide",
        }
    }

    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, ShapeError> {
        if !self.constant.fits(operands[0]) {
            return Err(ShapeError::mismatch(format!(
                "a constant of shape {} does not stretch to the input's shape {}",
                self.constant.shape, operands[0]
            )));
        }
        Ok(operands[0].clone())
    }

    fn parameters(&self) -> usize {
        self.constant.values.len()
    }

    fn kernel<T: Real>(&self, operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        let constant = self.constant.expand(operands[0]).into_iter().map(T::from_f64).collect();
        Box::new(ElementwiseKernel { arithmetic: self.arithmetic, constant })
    }
}

struct ElementwiseKernel<T> {
    arithmetic: Arithmetic,
    constant: Vec<T>,
}

impl<T: Real> ElementwiseKernel<T> {
    fn apply(&self, x: &[T], y: &mut [T], f: impl Fn(T, T) -> T) {
        let width = self.constant.len();
        for (x, y) in x.chunks_exact(width).zip(y.chunks_exact_mut(width)) {
            for ((&x, &c), y) in x.iter().zip(&self.constant).zip(y) {
                *y = f(x, c);
            }
        }
    }
}

impl<T: Real> Kernel<T> for ElementwiseKernel<T> {
    fn run(&self, operands: Operands<'_, T>, output: &mut [T]) {
        let x = operands.get(0);
        match self.arithmetic {
            Arithmetic::Add => self.apply(x, output, |x, c| x + c),
            Arithmetic::Multiply => self.apply(x, output, |x, c| x * c),
            Arithmetic::Divide => self.apply(x, output, |x, c| x / c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(own: &[usize], values: &[f64], target: &[usize]) -> Result<Vec<f64>, ShapeError> {
        Ok(Broadcast::new(Shape::new(own)?, values.to_vec())?.expand(&Shape::new(target)?))
    }

    #[test]
    fn constants_stretch_as_in_numpy() -> Result<(), ShapeError> {
        assert_eq!(expanded(&[1, 3], &[1., 2., 3.], &[2, 3])?, [1., 2., 3., 1., 2., 3.]);
        assert_eq!(expanded(&[2, 1], &[1., 2.], &[2, 3])?, [1., 1., 1., 2., 2., 2.]);
        assert_eq!(expanded(&[2, 1, 2], &[1., 2., 3., 4.], &[2, 2, 2])?, [1., 2., 1., 2., 3., 4., 3., 4.]);
        assert_eq!(expanded(&[], &[5.], &[])?, [5.]);
        Ok(())
    }
}
