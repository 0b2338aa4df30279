//! Gradients of pre-activations with respect to the input, a batch at a time. Fast and rounded: they only suggest where to look.

use leo_network::{Network, ValueId, Values};

use crate::walk;

/// For each row of a batch that was evaluated to `values`, the gradient at its point of one element of `value`, row-major.
pub fn gradients(network: &Network, value: ValueId, values: Values<'_, f64>, elements: &[usize]) -> Vec<f64> {
    let first = walk::elements(network.shape(value).elements(), elements.iter().map(|&element| (element, 1.0)));
    let relu = |layer: usize, flow: &mut [f64], _: &mut [f64]| {
        for (number, &input) in flow.iter_mut().zip(values.get(network.pre_activation(layer))) {
            if input <= 0.0 {
                *number = 0.0;
            }
        }
    };
    walk::back(network, value, first, relu).coefficients
}
