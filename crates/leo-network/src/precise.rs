//! Evaluation with about twice the digits of doubles, for the few points where that matters: two networks that differ by less than what rounding makes in doubles
//! can be told apart.
//!
//! Each number is the unevaluated sum of two doubles, so that a sum of `n` products of numbers of size 1 is off by no more than about `n` times 2^-104.

use twofloat::TwoFloat;

use crate::network::{Network, Node, ValueId};
use crate::op::{Arithmetic, Dense, Op};

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
    let zero = TwoFloat::from(0.0);
    match node.op() {
        Op::Relu(_) => x.iter().map(|&number| if number > zero { number } else { zero }).collect(),
        Op::Dense(dense) => x.chunks_exact(dense.weight().columns()).flat_map(|x| mapped(dense, x)).collect(),
        Op::Sum(_) => x.iter().zip(operand(1)).map(|(&x, &y)| x + y).collect(),
        Op::Reshape(_) => x.clone(),
        Op::Transpose(transpose) => {
            let sources = transpose.sources(network.shape(node.operands()[0]).extents());
            sources.into_iter().map(|source| x[source]).collect()
        }
        Op::Elementwise(elementwise) => {
            let constants = elementwise.constant().expand(node.shape());
            let with = |(&x, k): (&TwoFloat, f64)| match elementwise.arithmetic() {
                Arithmetic::Add => x + k,
                Arithmetic::Multiply => x * k,
                Arithmetic::Divide => x / k,
            };
            x.iter().zip(constants).map(with).collect()
        }
    }
}

fn mapped(dense: &Dense, x: &[TwoFloat]) -> Vec<TwoFloat> {
    let row = |row: usize| {
        let bias = TwoFloat::from(dense.bias().map_or(0.0, |bias| bias[row]));
        let terms = dense.weight().row(row).iter().zip(x).filter(|(weight, _)| **weight != 0.0);
        terms.fold(bias, |sum, (&weight, &x)| sum + x * weight)
    };
    (0..dense.weight().rows()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Broadcast, Elementwise, Matrix, Relu};
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
