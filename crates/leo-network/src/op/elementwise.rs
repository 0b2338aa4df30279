//! Element-wise arithmetic with a constant: input normalisation, biases, folded batch normalisation.

use super::{Action, ActionKind, Evaluate, Kernel, Map, Operands, Operator};
use crate::channels::Channels;
use crate::product::Real;
use crate::shape::{NetworkError, Shape, finite};

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
    pub fn new(shape: Shape, values: Vec<f64>) -> Result<Self, NetworkError> {
        if shape.elements() != values.len() {
            return Err(NetworkError::mismatch(format!(
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
        let positions = stretched_positions(self.shape.extents(), target.extents());
        positions.into_iter().map(|position| self.values[position]).collect()
    }

    /// Whether the constant can be stretched to `target`.
    pub fn fits(&self, target: &Shape) -> bool {
        self.shape.rank() == target.rank()
            && self.shape.extents().iter().zip(target.extents()).all(|(&own, &wanted)| own == wanted || own == 1)
    }
}

/// For each element of a tensor with the extents `target`, the element of one with the extents `own` that is stretched
/// to it as in NumPy. The last axes of both belong together.
pub fn stretched_positions(own: &[usize], target: &[usize]) -> Vec<usize> {
    if target.contains(&0) {
        return Vec::new();
    }
    let missing = target.len() - own.len();
    let mut positions = vec![0];
    for (axis, &extent) in target.iter().enumerate() {
        let own_extent = axis.checked_sub(missing).map_or(1, |axis| own[axis]);
        let step = usize::from(own_extent > 1);
        positions =
            positions.iter().flat_map(|&position| (0..extent).map(move |i| position * own_extent + i * step)).collect();
    }
    positions
}

/// `x + c`, `x c` or `x / c`, element by element.
#[derive(Clone, Debug, PartialEq)]
pub struct Elementwise {
    arithmetic: Arithmetic,
    constant: Broadcast,
    /// Whether its constant comes from the operator itself: nobody has learnt it.
    is_fixed: bool,
}

impl Elementwise {
    /// The operation with this constant.
    ///
    /// # Errors
    /// If it would divide by zero.
    pub fn new(arithmetic: Arithmetic, constant: Broadcast) -> Result<Self, NetworkError> {
        if arithmetic == Arithmetic::Divide && constant.values.contains(&0.0) {
            return Err(NetworkError::DivisionByZero);
        }
        Ok(Self { arithmetic, constant, is_fixed: false })
    }

    /// Whether its constant comes from the operator that it is part of, such as how many numbers an average is of.
    pub fn is_fixed(&self) -> bool {
        self.is_fixed
    }

    /// The operation with a constant that nobody has learnt, such as how many numbers an average is of.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn of_operator(arithmetic: Arithmetic, constant: Broadcast) -> Result<Self, NetworkError> {
        Ok(Self { is_fixed: true, ..Self::new(arithmetic, constant)? })
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

    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError> {
        if !self.constant.fits(operands[0]) {
            return Err(NetworkError::mismatch(format!(
                "a constant of shape {} does not stretch to the input's shape {}",
                self.constant.shape, operands[0]
            )));
        }
        Ok(operands[0].clone())
    }

    fn channels(&self, operand: Channels, _result: &Shape) -> Channels {
        operand
    }

    fn parameters(&self) -> usize {
        if self.is_fixed { 0 } else { self.constant.values.len() }
    }
}

impl Evaluate for Elementwise {
    fn kernel<T: Real>(&self, operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        let constant = self.constant.expand(operands[0]).into_iter().map(T::from_f64).collect();
        Box::new(ElementwiseKernel { arithmetic: self.arithmetic, constant })
    }
}

impl Map for Elementwise {
    fn action(&self, operand: &Shape) -> Action<'_> {
        Action::Each(self.arithmetic, self.constant.expand(operand))
    }

    fn kind(&self) -> ActionKind {
        ActionKind::Each(self.arithmetic)
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

    fn expanded(own: &[usize], values: &[f64], target: &[usize]) -> Result<Vec<f64>, NetworkError> {
        Ok(Broadcast::new(Shape::new(own)?, values.to_vec())?.expand(&Shape::new(target)?))
    }

    #[test]
    fn constants_stretch_as_in_numpy() -> Result<(), NetworkError> {
        assert_eq!(expanded(&[1, 3], &[1., 2., 3.], &[2, 3])?, [1., 2., 3., 1., 2., 3.]);
        assert_eq!(expanded(&[2, 1], &[1., 2.], &[2, 3])?, [1., 1., 1., 2., 2., 2.]);
        assert_eq!(expanded(&[2, 1, 2], &[1., 2., 3., 4.], &[2, 2, 2])?, [1., 2., 1., 2., 3., 4., 3., 4.]);
        assert_eq!(expanded(&[], &[5.], &[])?, [5.]);
        Ok(())
    }
}
