//! Activations: what a unit makes of its pre-activation.
//!
//! An [`Activation`] is a continuous function of one number that is linear between its *knots*: on each of its
//! *pieces*. All that anybody needs to know of one is in its knots and pieces, so that a new activation is a file here
//! with a struct of its parameters and the pieces that these make. A unit is *stable* if its pre-activation stays on
//! one piece.

mod relu;

pub use relu::Relu;

use crate::channels::Channels;
use crate::op::{Evaluate, Kernel, Op, Operands, Operator};
use crate::product::Real;
use crate::rounding::{product_and_error, sum_and_error};
use crate::shape::{NetworkError, Shape};

/// A line that an activation is on one of its pieces.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// What people call a unit that is there: it is always ...
    pub name: &'static str,
    /// What the pre-activation is multiplied by.
    pub slope: f64,
    /// What is added then.
    pub constant: f64,
}

impl Piece {
    /// Whether it is 0 everywhere.
    pub fn is_zero(&self) -> bool {
        self.slope == 0.0 && self.constant == 0.0
    }

    /// Whether it changes nothing.
    pub fn is_identity(&self) -> bool {
        self.slope == 1.0 && self.constant == 0.0
    }
}

/// How many pieces an activation may have: a letter or a digit stands for each.
pub const MAX_PIECES: usize = 36;

/// An operator of ONNX, and the numbers that are its attributes.
#[derive(Clone, Debug, PartialEq)]
pub struct Onnx {
    /// What it is called.
    pub operator: &'static str,
    /// Its attributes, each with its name.
    pub attributes: Vec<(&'static str, f64)>,
}

/// A continuous function that is linear on each of its pieces, element by element. Each element is one unit.
#[derive(Clone, Debug, PartialEq)]
pub struct Activation {
    name: &'static str,
    onnx: Onnx,
    /// In their order, one fewer than there are pieces.
    knots: Vec<f64>,
    pieces: Vec<Piece>,
}

impl Activation {
    /// The function with these knots, and pieces from the left to the right, and what people and files call it.
    ///
    /// # Errors
    /// If knots and pieces do not make one continuous function, exactly, or there are more than certificates have
    /// letters for.
    pub fn new(name: &'static str, onnx: Onnx, knots: Vec<f64>, pieces: Vec<Piece>) -> Result<Self, NetworkError> {
        // A line at a knot, if that takes no rounding.
        let at = |piece: &Piece, knot: f64| {
            let (product, lost) = product_and_error(piece.slope, knot);
            let (value, missing) = sum_and_error(product, piece.constant);
            (lost == 0.0 && missing == 0.0).then_some(value)
        };
        let meet = |(pair, &knot): (&[Piece], &f64)| at(&pair[0], knot).is_some_and(|y| at(&pair[1], knot) == Some(y));
        let is_whole =
            pieces.len() == knots.len() + 1 && pieces.len() <= MAX_PIECES && knots.is_sorted_by(|a, b| a < b);
        if !is_whole || !pieces.windows(2).zip(&knots).all(meet) {
            return Err(NetworkError::mismatch(format!("the pieces of {name} do not meet at its knots")));
        }
        Ok(Self { name, onnx, knots, pieces })
    }

    /// What ONNX has for it.
    pub fn onnx(&self) -> &Onnx {
        &self.onnx
    }

    /// Where its pieces meet, in their order.
    pub fn knots(&self) -> &[f64] {
        &self.knots
    }

    /// Its pieces, from the left to the right.
    pub fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    /// Whether a line above a unit, or below it, may have any slope that these pieces have, from the first to the last:
    /// below, where slopes only grow from piece to piece, and above, where they only shrink.
    pub fn has_free_slope(&self, is_above: bool, [first, last]: [usize; 2]) -> bool {
        let pieces = &self.pieces[first..=last];
        pieces.is_sorted_by(|a, b| if is_above { a.slope >= b.slope } else { a.slope <= b.slope })
    }

    /// The slope nearest to this one that lies between those of some pieces, from the first to the last.
    pub fn within(&self, slope: f64, [first, last]: [usize; 2]) -> f64 {
        let (mut least, mut most) = (f64::INFINITY, f64::NEG_INFINITY);
        for piece in &self.pieces[first..=last] {
            (least, most) = (least.min(piece.slope), most.max(piece.slope));
        }
        slope.clamp(least, most)
    }

    /// Which piece a number is on: at a knot, the one to the right.
    pub fn piece_at<X: PartialOrd<f64>>(&self, x: &X) -> usize {
        self.knots.iter().filter(|knot| x >= *knot).count()
    }

    /// What it makes of a number.
    pub fn of(&self, x: f64) -> f64 {
        let Piece { slope, constant, .. } = self.pieces[self.piece_at(&x)];
        // What is infinite or no number is forgotten by no factor but 0.
        if slope == 0.0 && !x.is_nan() { constant } else { slope * x + constant }
    }

    /// Whether `f(c x) = c f(x)` for all `c > 0`: two pieces that meet at 0. Then `f(-c x) = c f(x) - c s x`, where `s`
    /// is the sum of both slopes.
    pub fn is_homogeneous(&self) -> bool {
        self.knots == [0.0] && self.pieces.iter().all(|piece| piece.constant == 0.0)
    }

    /// Whether it is `max(0, x)`.
    pub fn is_rectifier(&self) -> bool {
        self.is_homogeneous() && self.pieces[0].is_zero() && self.pieces[1].is_identity()
    }
}

impl Operator for Activation {
    fn name(&self) -> &'static str {
        self.name
    }

    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError> {
        Ok(operands[0].clone())
    }

    fn channels(&self, operand: Channels, _result: &Shape) -> Channels {
        operand
    }
}

impl Evaluate for Activation {
    fn kernel<T: Real>(&self, _operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        if self.is_rectifier() {
            return Box::new(Relu);
        }
        let numbers = |piece: &Piece| [piece.slope, piece.constant].map(T::from_f64);
        Box::new(Pieces {
            knots: self.knots.iter().copied().map(T::from_f64).collect(),
            lines: self.pieces.iter().map(numbers).collect(),
        })
    }
}

impl From<Activation> for Op {
    fn from(activation: Activation) -> Self {
        Self::Activation(activation)
    }
}

/// Knots, and the slope and the constant of each piece.
struct Pieces<T> {
    knots: Vec<T>,
    lines: Vec<[T; 2]>,
}

impl<T: Real> Kernel<T> for Pieces<T> {
    fn run(&self, operands: Operands<'_, T>, output: &mut [T]) {
        for (y, &x) in output.iter_mut().zip(operands.get(0)) {
            let [slope, constant] = self.lines[self.knots.iter().filter(|knot| x >= **knot).count()];
            // An overflow in a layer before must not look like a unit that is on another piece, and 0 times infinity is
            // 0 here.
            let is_number = x.partial_cmp(&x).is_some();
            *y = if slope == T::default() && is_number { constant } else { slope * x + constant };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_meet_or_are_no_activation() {
        let piece = |slope, constant| Piece { name: "", slope, constant };
        let pieces = [piece(0.0, 0.0), piece(1.0, 0.0), piece(0.0, 6.0)];
        let onnx = || Onnx { operator: "Clip", attributes: vec![] };
        let six = |knot| Activation::new("clip", onnx(), vec![0.0, knot], pieces.to_vec());
        assert!(six(5.0).is_err() && six(-6.0).is_err());
        let clip = six(6.0).expect("they meet");
        assert_eq!([-1.0, 0.0, 2.0, 6.0, 7.0].map(|x| clip.of(x)), [0.0, 0.0, 2.0, 6.0, 6.0]);
        assert_eq!(clip.piece_at(&6.0), 2);
        assert!(!clip.is_homogeneous() && Activation::from(Relu).is_homogeneous());
    }
}
