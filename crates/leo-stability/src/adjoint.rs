//! The way back through a network, which gradients, relaxed bounds and reduced networks all take: linear functions of a
//! value become linear functions of what it was computed from, until only the input is left. It applies the adjoint of
//! each affine map, as backpropagation does.
//!
//! In plain floating point: what is found this way are proposals, and the checker decides what they are worth.

use leo_network::op::{Action, Arithmetic, Op};
use leo_network::{LayerId, Network, ValueId, ValueMap};

/// Linear functions of the input, one a row.
pub(crate) struct LinearFunctions {
    /// Row-major.
    pub(crate) coefficients: Vec<f64>,
    pub(crate) constants: Vec<f64>,
}

/// Takes linear functions of `value` back to the input. `relax` is given a layer, the coefficients of its outputs, to
/// be replaced by coefficients of its pre-activations, and the constants.
pub(crate) fn back(
    network: &Network,
    value: ValueId,
    first: Vec<f64>,
    mut relax: impl FnMut(LayerId, &mut [f64], &mut [f64]),
) -> LinearFunctions {
    let rows = first.len() / network.shape(value).elements();
    let mut constants = vec![0.0; rows];
    let mut flows: ValueMap<Option<Vec<f64>>> = vec![None; value.index() + 1].into();
    flows[value] = Some(first);
    for index in (0..value.index()).rev() {
        let Some(mut flow) = flows[network.result_of(index)].take() else { continue };
        let node = &network.nodes()[index];
        let (operand, width) = (node.operands()[0], node.shape().elements());
        match node.op() {
            Op::Activation(_) => {
                network.layer_at(index).into_iter().for_each(|layer| relax(layer, &mut flow, &mut constants));
            }
            Op::Sum(_) => give(&mut flows, node.operands()[1], flow.clone()),
            Op::Concat(concat) => {
                let sources = concat.sources(&network.operand_shapes(node));
                for (index, &operand) in node.operands().iter().enumerate() {
                    let own = network.shape(operand).elements();
                    let mut given = vec![0.0; rows * own];
                    for (flow, given) in flow.chunks_exact(width).zip(given.chunks_exact_mut(own)) {
                        let parts = flow.iter().zip(&sources).filter(|(_, (of, _))| *of == index);
                        parts.for_each(|(c, &(_, element))| given[element] += c);
                    }
                    give(&mut flows, operand, given);
                }
                continue;
            }
            Op::MaxPool(pool) => {
                // Which one is the largest depends on the input: each has its share.
                let windows = pool.windows(network.shape(operand));
                let own = network.shape(operand).elements();
                let mut given = vec![0.0; rows * own];
                for (flow, given) in flow.chunks_exact(width).zip(given.chunks_exact_mut(own)) {
                    for (output, c) in flow.iter().enumerate().filter(|(_, c)| **c != 0.0) {
                        let share = c / windows.of(output).count() as f64;
                        windows.of(output).for_each(|input| given[input] += share);
                    }
                }
                flow = given;
            }
            Op::Affine(map) => match map.action(network.shape(operand)) {
                Action::Move(moves) => flow = moves.backward(flow),
                Action::Each(arithmetic, factors) => {
                    for (constant, flow) in constants.iter_mut().zip(flow.chunks_exact_mut(width)) {
                        for (c, &k) in flow.iter_mut().zip(&factors) {
                            match arithmetic {
                                Arithmetic::Add => *constant += *c * k,
                                Arithmetic::Multiply => *c *= k,
                                Arithmetic::Divide => *c /= k,
                            }
                        }
                    }
                }
                Action::Sums(sums) => {
                    if sums.has_bias() {
                        for (constant, flow) in constants.iter_mut().zip(flow.chunks_exact(width)) {
                            let terms = flow.iter().enumerate();
                            *constant += terms.map(|(output, c)| c * sums.bias(output)).sum::<f64>();
                        }
                    }
                    flow = sums.backward_fast(&flow);
                }
            },
        }
        give(&mut flows, operand, flow);
    }
    let coefficients = flows[ValueId::INPUT].take();
    let coefficients = coefficients.unwrap_or_else(|| vec![0.0; rows * network.input().elements()]);
    LinearFunctions { coefficients, constants }
}

/// Adds what flows back to a value to what flowed back to it already.
fn give(flows: &mut ValueMap<Option<Vec<f64>>>, value: ValueId, flow: Vec<f64>) {
    match &mut flows[value] {
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
