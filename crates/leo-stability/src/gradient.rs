//! Gradients of pre-activations with respect to the input, a batch at a time. Fast and rounded: they only suggest where to look.

use leo_network::op::{Arithmetic, Op};
use leo_network::{Network, ValueId, Values, add_product};

/// For each row of a batch that was evaluated to `values`, the gradient at its point of one element of `value`, row-major.
pub(crate) fn gradients(network: &Network, value: ValueId, values: Values<'_, f64>, elements: &[usize]) -> Vec<f64> {
    let rows = elements.len();
    let width = network.shape(value).elements();
    let mut flows: Vec<Option<Vec<f64>>> = vec![None; value.index() + 1];
    let mut first = vec![0.0; rows * width];
    for (row, &element) in first.chunks_exact_mut(width).zip(elements) {
        row[element] = 1.0;
    }
    flows[value.index()] = Some(first);
    for index in (0..value.index()).rev() {
        let Some(mut flow) = flows[index + 1].take() else { continue };
        let node = &network.nodes()[index];
        let operand = node.operands()[0];
        match node.op() {
            Op::Relu(_) => {
                for (number, &input) in flow.iter_mut().zip(values.get(operand)) {
                    if input <= 0.0 {
                        *number = 0.0;
                    }
                }
            }
            Op::Dense(dense) => {
                let (outer, inner) = (dense.weight().rows(), dense.weight().columns());
                let vectors = flow.len() / outer;
                let mut product = vec![0.0; vectors * inner];
                add_product(&mut product, &flow, dense.weight().values(), vectors, outer, inner);
                flow = product;
            }
            Op::Elementwise(elementwise) => {
                let constants = elementwise.constant().expand(node.shape());
                let scale: fn(&mut f64, f64) = match elementwise.arithmetic() {
                    Arithmetic::Add => |_, _| {},
                    Arithmetic::Multiply => |number, k| *number *= k,
                    Arithmetic::Divide => |number, k| *number /= k,
                };
                flow.iter_mut().zip(constants.iter().cycle()).for_each(|(number, &k)| scale(number, k));
            }
            Op::Reshape(_) => {}
            Op::Transpose(transpose) => {
                let sources = transpose.sources(network.shape(operand).extents());
                let mut moved = vec![0.0; flow.len()];
                for (row, target) in flow.chunks_exact(sources.len()).zip(moved.chunks_exact_mut(sources.len())) {
                    row.iter().zip(&sources).for_each(|(&number, &source)| target[source] = number);
                }
                flow = moved;
            }
            Op::Sum(_) => give(&mut flows, node.operands()[1], flow.clone()),
        }
        give(&mut flows, operand, flow);
    }
    flows[ValueId::INPUT.index()].take().unwrap_or_else(|| vec![0.0; rows * network.input().elements()])
}

/// Adds what flows back to a value to what flowed back to it already.
pub(crate) fn give(flows: &mut [Option<Vec<f64>>], value: ValueId, flow: Vec<f64>) {
    match &mut flows[value.index()] {
        Some(present) => present.iter_mut().zip(&flow).for_each(|(present, flow)| *present += flow),
        empty => *empty = Some(flow),
    }
}
