//! Plain networks, layer after layer.

use leo_network::op::{Dense, Matrix, Relu};
use leo_network::{Network, NetworkError, Shape, ValueId};

/// Weights and biases of one layer after another; ReLUs between them.
pub type Layers = Vec<(Vec<Vec<f64>>, Vec<f64>)>;

pub fn dense(rows: &[Vec<f64>], bias: &[f64]) -> Result<Dense, NetworkError> {
    Dense::new(Matrix::new(rows.len(), rows[0].len(), rows.concat())?, Some(bias.to_vec()))
}

pub fn chain(layers: &Layers) -> Result<Network, NetworkError> {
    let mut builder = Network::builder(Shape::new([layers[0].0[0].len()])?);
    let mut value = ValueId::INPUT;
    for (index, (rows, bias)) in layers.iter().enumerate() {
        value = builder.add(format!("fc{index}"), dense(rows, bias)?, &[value])?;
        if index + 1 < layers.len() {
            value = builder.add(format!("relu{index}"), Relu, &[value])?;
        }
    }
    builder.finish(vec![value])
}

/// Layers that each read one number `z` of the layer before, in pairs `relu(z - t)` and `relu(t - z)`, so that one of
/// each pair is enough if `z` gets past the layer. With one input and one output.
#[allow(dead_code)]
pub fn paired(depth: usize, factor: f64, thresholds: &[f64]) -> Layers {
    let mut layers = Layers::new();
    let mut row = vec![1.0];
    for _ in 0..depth {
        let opposite: Vec<f64> = row.iter().map(|weight| -weight).collect();
        let rows = thresholds.iter().flat_map(|_| [row.clone(), opposite.clone()]).collect();
        layers.push((rows, thresholds.iter().flat_map(|t| [-t, *t]).collect()));
        let signed = |index: usize| if index.is_multiple_of(2) { factor } else { -factor };
        row = (0..thresholds.len()).flat_map(|index| [signed(index), signed(index) / 2.0]).collect();
    }
    layers.push((vec![row], vec![0.0]));
    layers
}
