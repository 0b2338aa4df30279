//! Gradients of pre-activations with respect to the input, a batch at a time. Fast and rounded: they only suggest where
//! to look.

use leo_network::{LayerId, Network, ValueId, Values};

use crate::adjoint;

/// For each row of a batch that was evaluated to `values`, the gradient at its point of one element of `value`,
/// row-major.
pub fn gradients(network: &Network, value: ValueId, values: Values<'_, f64>, elements: &[usize]) -> Vec<f64> {
    let first = adjoint::elements(network.shape(value).elements(), elements.iter().map(|&element| (element, 1.0)));
    let slopes = |layer: LayerId, flow: &mut [f64], _: &mut [f64]| {
        let of = network.activation(layer);
        for (number, &input) in flow.iter_mut().zip(values.get(network.pre_activation(layer))) {
            // At a knot, that of the piece to the left.
            let slope = of.pieces()[of.knots().iter().filter(|knot| input > **knot).count()].slope;
            *number = if slope == 0.0 { 0.0 } else { slope * *number };
        }
    };
    adjoint::back(network, value, first, slopes).coefficients
}
