//! Evaluation with about twice the digits of doubles, for the few points where that matters: two networks that differ
//! by less than what rounding makes in doubles can be told apart.
//!
//! Each number is the unevaluated sum of two doubles (double-double arithmetic: T. J. Dekker, *A Floating-Point
//! Technique for Extending the Available Precision*, Numerische Mathematik 18 (1971); by the algorithms of M. Joldes,
//! J.-M. Muller, V. Popescu, *Tight and Rigorous Error Bounds for Basic Building Blocks of Double-Word Arithmetic*, ACM
//! TOMS 44 (2017), which `twofloat` implements), so that a sum of `n` products of numbers of size 1 is off by no
//! more than about `n` times 2^-104.

use twofloat::TwoFloat;

use crate::network::{Network, Node, ValueId};
use crate::op::{Action, Arithmetic, Op};

/// The network's outputs at a point.
///
/// # Panics
/// If the point does not have as many numbers as the network has inputs.
pub fn evaluate_precisely(network: &Network, point: &[f64]) -> Vec<Vec<TwoFloat>> {
    assert_eq!(point.len(), network.input().elements(), "a number for each input");
    let mut values: Vec<Vec<TwoFloat>> = vec![point.iter().copied().map(TwoFloat::from).collect()];
    for node in network.nodes() {
        values.push(made(network, node, &values));
    }
    network.outputs().iter().map(|value| values[value.index()].clone()).collect()
}

/// What a node makes.
fn made(network: &Network, node: &Node, values: &[Vec<TwoFloat>]) -> Vec<TwoFloat> {
    let operand = |index: usize| -> &Vec<TwoFloat> { &values[ValueId::index(node.operands()[index])] };
    let x = operand(0);
    match node.op() {
        Op::Activation(of) => {
            let line = |&x: &TwoFloat| match of.pieces()[of.piece_at(&x)] {
                piece if piece.is_identity() => x,
                piece if piece.slope == 0.0 => TwoFloat::from(piece.constant),
                piece => x * piece.slope + piece.constant,
            };
            x.iter().map(line).collect()
        }
        Op::Sum(_) => x.iter().zip(operand(1)).map(|(&x, &y)| x + y).collect(),
        Op::Concat(concat) => {
            let sources = concat.sources(&network.operand_shapes(node)).into_iter();
            sources.map(|(index, element)| operand(index)[element]).collect()
        }
        Op::MaxPool(pool) => {
            let windows = pool.windows(network.shape(node.operands()[0]));
            let largest = |output: usize| {
                let window = windows.of(output).map(|input| x[input]);
                window.reduce(|a, b| if b > a { b } else { a }).unwrap_or_default()
            };
            (0..node.shape().elements()).map(largest).collect()
        }
        Op::Affine(map) => match map.action(network.shape(node.operands()[0])) {
            Action::Move(moves) => moves.forward(x),
            Action::Each(arithmetic, constants) => {
                let with = |(&x, k): (&TwoFloat, f64)| match arithmetic {
                    Arithmetic::Add => x + k,
                    Arithmetic::Multiply => x * k,
                    Arithmetic::Divide => x / k,
                };
                x.iter().zip(constants).map(with).collect()
            }
            Action::Sums(sums) => {
                let sum = |output: usize| {
                    let terms = sums.terms(output).filter(|(_, weight)| *weight != 0.0);
                    let bias = TwoFloat::from(sums.bias(output));
                    terms.fold(bias, |sum, (input, weight)| sum + x[input] * weight)
                };
                (0..sums.outputs()).map(sum).collect()
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Broadcast, Dense, Elementwise, Matrix, Relu};
    use crate::shape::Shape;

    #[test]
    fn what_doubles_lose_is_there() -> Result<(), Box<dyn std::error::Error>> {
        let mut builder = Network::builder(Shape::new([2])?);
        let first = Dense::new(Matrix::new(1, 2, vec![1.0, 1.0])?, Some(vec![1e-20]))?;
        let g = builder.add("fc", first, &[ValueId::INPUT])?;
        let h = builder.add("relu", Relu, &[g])?;
        let thirds = Elementwise::new(Arithmetic::Divide, Broadcast::new(Shape::new([1])?, vec![3.0])?)?;
        let y = builder.add("thirds", thirds, &[h])?;
        let network = builder.finish(vec![y])?;
        let outputs = evaluate_precisely(&network, &[1.0, -1.0]);
        assert!((outputs[0][0] * 3.0 - 1e-20).abs() < 1e-50, "{outputs:?}");
        assert_eq!(evaluate_precisely(&network, &[-1.0, 0.0])[0][0], 0.0);
        Ok(())
    }
}
