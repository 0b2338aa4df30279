//! How far an evaluation in double precision can be off.
//!
//! A network is evaluated at a point of the domain in double precision, and each value is off by at most an error that is known
//! beforehand, for all points of the domain at once: rounding makes at most [`slack`] times the sum of the terms' absolute values, which
//! ranges bound; errors of operands pass through affine maps with the weights' absolute values, and through a ReLU as they
//! are. A computed pre-activation further from 0 than its error has the sign it seems to have.

use leo_check::Range;
use leo_network::op::{Arithmetic, Op};
use leo_network::{Network, Node};

/// For each element of the input, and of what each node makes: how far the number that [`leo_network::Evaluator`] computes in double precision can be
/// from the exact one, at whatever point of the domain where the values lie in these ranges. As many values as there are ranges.
pub fn evaluation_errors(network: &Network, ranges: &[Range]) -> Vec<Vec<f64>> {
    let mut errors = Vec::new();
    extend_errors(network, ranges, &mut errors);
    errors
}

/// Adds the errors of the values that ranges are known of now.
pub(crate) fn extend_errors(network: &Network, ranges: &[Range], errors: &mut Vec<Vec<f64>>) {
    if errors.is_empty() {
        // The input itself is exact.
        errors.push(vec![0.0; network.input().elements()]);
    }
    for node in network.nodes().iter().take(ranges.len() - 1).skip(errors.len() - 1) {
        errors.push(errors_of_node(network, node, ranges, errors));
    }
}

/// What to multiply a sum of absolute values by to bound the error of a sum of so many terms: more than twice of what is needed.
fn slack(terms: usize) -> f64 {
    (terms as f64 + 8.0) * f64::EPSILON
}

/// An upper bound of a sum of so many numbers that are not negative, given what it is rounded to.
fn above(sum: f64, terms: usize) -> f64 {
    let bound = sum * (1.0 + slack(terms)) + (terms as f64 + 1.0) * f64::MIN_POSITIVE;
    match sum {
        0.0 => 0.0,
        sum if sum.is_nan() => f64::INFINITY,
        _ => bound,
    }
}

fn errors_of_node(network: &Network, node: &Node, ranges: &[Range], errors: &[Vec<f64>]) -> Vec<f64> {
    let operand = |index: usize| node.operands()[index].index();
    let error = &errors[operand(0)];
    // How large a computed number can be.
    let size = |value: usize, element: usize| {
        let range = &ranges[value];
        range.lower[element].abs().max(range.upper[element].abs()) + errors[value][element]
    };
    let first = |element: usize| size(operand(0), element);
    match node.op() {
        Op::Relu(_) | Op::Reshape(_) => error.clone(),
        Op::Transpose(transpose) => {
            let sources = transpose.sources(network.shape(node.operands()[0]).extents());
            sources.into_iter().map(|source| error[source]).collect()
        }
        Op::Dense(dense) => {
            let (weight, inner) = (dense.weight(), dense.weight().columns());
            let sizes: Vec<f64> = (0..error.len()).map(first).collect();
            let mut made = Vec::new();
            for start in (0..error.len()).step_by(inner) {
                let (errors, sizes) = (&error[start..][..inner], &sizes[start..][..inner]);
                for row in 0..weight.rows() {
                    let (mut inherited, mut magnitude) = (0.0, dense.bias().map_or(0.0, |bias| bias[row].abs()));
                    for ((w, error), size) in weight.row(row).iter().zip(errors).zip(sizes) {
                        inherited += w.abs() * error;
                        magnitude += w.abs() * size;
                    }
                    let underflow = 2.0 * (inner as f64 + 1.0) * f64::MIN_POSITIVE;
                    made.push(above(inherited + slack(inner + 1) * above(magnitude, inner + 1) + underflow, inner));
                }
            }
            made
        }
        Op::Sum(_) => {
            let other = operand(1);
            let sum = |element: usize| {
                let size = first(element) + size(other, element);
                above(error[element] + errors[other][element] + slack(2) * size, 4)
            };
            (0..error.len()).map(sum).collect()
        }
        Op::Elementwise(elementwise) => {
            let constants = elementwise.constant().expand(node.shape());
            let of = |(element, k): (usize, f64)| {
                let factor = match elementwise.arithmetic() {
                    Arithmetic::Add => return above(error[element] + slack(2) * (first(element) + k.abs()), 4),
                    Arithmetic::Multiply => k.abs(),
                    Arithmetic::Divide => (1.0 / k.abs()).next_up(),
                };
                above(factor * error[element] + slack(2) * (first(element) * factor) + 2.0 * f64::MIN_POSITIVE, 4)
            };
            constants.into_iter().enumerate().map(of).collect()
        }
    }
}
