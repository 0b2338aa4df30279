//! The way back through a network, which gradients, relaxed bounds and reduced networks all take: linear functions of a value become
//! linear functions of what it was computed from, until only the input is left.
//!
//! In plain floating point: what is found this way are proposals, and the checker decides what they are worth.

use leo_network::op::{Arithmetic, Op};
use leo_network::{Network, ValueId, add_product};

use crate::vector::add_multiple;

/// Linear functions of the input, one a row.
pub(crate) struct Linear {
    /// Row-major.
    pub(crate) coefficients: Vec<f64>,
    pub(crate) constants: Vec<f64>,
}

/// Takes linear functions of `value` back to the input. `relu` is given a layer, the coefficients of its outputs, to be replaced by
/// coefficients of its pre-activations, and the constants.
pub(crate) fn back(
    network: &Network,
    value: ValueId,
    first: Vec<f64>,
    mut relu: impl FnMut(usize, &mut [f64], &mut [f64]),
) -> Linear {
    let rows = first.len() / network.shape(value).elements();
    let mut constants = vec![0.0; rows];
    let mut flows: Vec<Option<Vec<f64>>> = vec![None; value.index() + 1];
    flows[value.index()] = Some(first);
    for index in (0..value.index()).rev() {
        let Some(mut flow) = flows[index + 1].take() else { continue };
        let node = &network.nodes()[index];
        let (operand, width) = (node.operands()[0], node.shape().elements());
        match node.op() {
            Op::Relu(_) => relu(index, &mut flow, &mut constants),
            Op::Dense(dense) => {
                let (outer, inner) = (dense.weight().rows(), dense.weight().columns());
                if let Some(bias) = dense.bias() {
                    for (constant, flow) in constants.iter_mut().zip(flow.chunks_exact(width)) {
                        *constant += flow.iter().zip(bias.iter().cycle()).map(|(c, b)| c * b).sum::<f64>();
                    }
                }
                let vectors = flow.len() / outer;
                let mut product = vec![0.0; vectors * inner];
                if vectors == 1 {
                    for (row, &c) in flow.iter().enumerate().filter(|(_, c)| **c != 0.0) {
                        add_multiple(&mut product, c, dense.weight().row(row));
                    }
                } else {
                    add_product(&mut product, &flow, dense.weight().values(), vectors, outer, inner);
                }
                flow = product;
            }
            Op::Elementwise(elementwise) => {
                let factors = elementwise.constant().expand(node.shape());
                for (constant, flow) in constants.iter_mut().zip(flow.chunks_exact_mut(width)) {
                    for (c, &k) in flow.iter_mut().zip(&factors) {
                        match elementwise.arithmetic() {
                            Arithmetic::Add => *constant += *c * k,
                            Arithmetic::Multiply => *c *= k,
                            Arithmetic::Divide => *c /= k,
                        }
                    }
                }
            }
            Op::Reshape(_) => {}
            Op::Transpose(transpose) => {
                let sources = transpose.sources(network.shape(operand).extents());
                let mut moved = vec![0.0; flow.len()];
                for (row, target) in flow.chunks_exact(width).zip(moved.chunks_exact_mut(width)) {
                    row.iter().zip(&sources).for_each(|(&c, &source)| target[source] = c);
                }
                flow = moved;
            }
            Op::Sum(_) => give(&mut flows, node.operands()[1], flow.clone()),
        }
        give(&mut flows, operand, flow);
    }
    let coefficients = flows[ValueId::INPUT.index()].take();
    let coefficients = coefficients.unwrap_or_else(|| vec![0.0; rows * network.input().elements()]);
    Linear { coefficients, constants }
}

/// Adds what flows back to a value to what flowed back to it already.
fn give(flows: &mut [Option<Vec<f64>>], value: ValueId, flow: Vec<f64>) {
    match &mut flows[value.index()] {
        Some(present) => present.iter_mut().zip(&flow).for_each(|(present, flow)| *present += flow),
        empty => *empty = Some(flow),
    }
}

/// One element of a value a row, times a factor.
pub(crate) fn elements(width: usize, wanted: impl ExactSizeIterator<Item = (usize, f64)>) -> Vec<f64> {
    let mut rows = vec![0.0; wanted.len() * width];
    for (row, (element, factor)) in rows.chunks_exact_mut(width).zip(wanted) {
        row[element] = factor;
    }
    rows
}
