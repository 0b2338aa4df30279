//! Which signs a pre-activation is certain to have at a point.
//!
//! A network is evaluated at a point of the domain in double precision, and each value is off by at most an error that is known
//! beforehand, for all points of the domain at once: rounding makes at most [`slack`] times the sum of the terms' absolute values, which
//! ranges bound; errors of operands pass through affine maps with the weights' absolute values, and through a ReLU as they
//! are. A computed pre-activation further from 0 than its error has the sign it seems to have.

use leo_network::op::{Arithmetic, Op};
use leo_network::{Network, ValueId};

use crate::range::Range;
use crate::sound::{Upper, slack};

/// For each element of a value, how far its computed number can be from the exact one, given the same for the operands.
pub(crate) fn error_of_node(network: &Network, node: usize, ranges: &[Range], errors: &[Vec<f64>]) -> Vec<f64> {
    let made = &network.nodes()[node];
    let operand = |index: usize| made.operands()[index].index();
    let (range, error) = (&ranges[operand(0)], &errors[operand(0)]);
    // How large a computed number can be.
    let size = |element: usize| range.magnitude(element) + error[element];
    match made.op() {
        Op::Relu(_) | Op::Reshape(_) => error.clone(),
        Op::Transpose(transpose) => {
            let sources = transpose.sources(network.shape(made.operands()[0]).extents());
            sources.into_iter().map(|source| error[source]).collect()
        }
        Op::Dense(dense) => {
            let (weight, inner) = (dense.weight(), dense.weight().columns());
            let mut made = Vec::new();
            for start in (0..range.len()).step_by(inner) {
                for row in 0..weight.rows() {
                    let (mut inherited, mut magnitude) = (Upper::default(), Upper::default());
                    for (offset, w) in weight.row(row).iter().enumerate() {
                        inherited.add_product(w.abs(), error[start + offset]);
                        magnitude.add_product(w.abs(), size(start + offset));
                    }
                    magnitude.add(dense.bias().map_or(0.0, |bias| bias[row].abs()));
                    let underflow = 2.0 * (inner as f64 + 1.0) * f64::MIN_POSITIVE;
                    inherited.add_error(slack(inner + 1) * magnitude.bound().limit + underflow);
                    made.push(inherited.bound().limit);
                }
            }
            made
        }
        Op::Sum(_) => {
            let (other, other_error) = (&ranges[operand(1)], &errors[operand(1)]);
            let sum = |element: usize| {
                let mut sum = Upper::default();
                sum.add(error[element]);
                sum.add(other_error[element]);
                sum.add_error(slack(2) * (size(element) + other.magnitude(element) + other_error[element]));
                sum.bound().limit
            };
            (0..range.len()).map(sum).collect()
        }
        Op::Elementwise(elementwise) => {
            let constants = elementwise.constant().expand(made.shape());
            let of = |(element, k): (usize, f64)| {
                let mut sum = Upper::default();
                let factor = match elementwise.arithmetic() {
                    Arithmetic::Add => {
                        sum.add(error[element]);
                        sum.add_error(slack(2) * (size(element) + k.abs()));
                        return sum.bound().limit;
                    }
                    Arithmetic::Multiply => k.abs(),
                    Arithmetic::Divide => (1.0 / k.abs()).next_up(),
                };
                sum.add_product(factor, error[element]);
                sum.add_error(slack(2) * (size(element) * factor) + 2.0 * f64::MIN_POSITIVE);
                sum.bound().limit
            };
            constants.into_iter().enumerate().map(of).collect()
        }
    }
}

/// The input itself is exact.
pub(crate) fn error_of_input(network: &Network) -> Vec<f64> {
    vec![0.0; network.shape(ValueId::INPUT).elements()]
}
