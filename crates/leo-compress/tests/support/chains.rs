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
