//! Exact evaluation of networks, and files made of them.

use std::path::Path;

use leo_check::{Certificate, Checker, HashedModel, verify, verify_exactly};
use leo_compress::{CompressOptions, Compressed, compress};
use leo_formats::onnx::{Document, Export, Float};
use leo_network::op::{AffineMap, Arithmetic, Op};
use leo_network::{Domain, Network};
use num_rational::BigRational as Ratio;
use num_traits::{Signed, Zero};

/// A bound on all numbers in a network: what rounding is relative to.
#[allow(dead_code)]
pub fn largest_number(network: &Network, domain: &Domain) -> f64 {
    let facts = Checker::new(network, domain).expect("the domain fits").finish();
    network.values().map(|value| facts.range(value).size()).fold(0.0, f64::max)
}

pub fn exact(number: f64) -> Ratio {
    Ratio::from_float(number).expect("finite")
}

/// The outputs at a point, without any rounding.
#[allow(dead_code)]
pub fn evaluate(network: &Network, point: &[f64]) -> Vec<Vec<Ratio>> {
    let values = values_at(network, point.iter().map(|&x| exact(x)).collect());
    network.outputs().iter().map(|output| values[output.index()].clone()).collect()
}

/// All values at a point, without any rounding.
pub fn values_at(network: &Network, point: Vec<Ratio>) -> Vec<Vec<Ratio>> {
    let mut values: Vec<Vec<Ratio>> = vec![point];
    for node in network.nodes() {
        let operand = |index: usize| &values[node.operands()[index].index()];
        let made = match node.op() {
            Op::Affine(AffineMap::Dense(dense)) => {
                let (weight, inner) = (dense.weight(), dense.weight().columns());
                let mut made = Vec::new();
                for x in operand(0).chunks_exact(inner) {
                    for row in 0..weight.rows() {
                        let bias = dense.bias().map_or_else(Ratio::zero, |bias| exact(bias[row]));
                        made.push(bias + weight.row(row).iter().zip(x).map(|(&w, x)| exact(w) * x).sum::<Ratio>());
                    }
                }
                made
            }
            Op::Activation(_) => {
                operand(0).iter().map(|x| if x.is_positive() { x.clone() } else { Ratio::zero() }).collect()
            }
            Op::Sum(_) => operand(0).iter().zip(operand(1)).map(|(x, y)| x + y).collect(),
            Op::Affine(AffineMap::Reshape(_)) => operand(0).clone(),
            Op::Affine(AffineMap::Transpose(transpose)) => {
                let sources = transpose.sources(network.shape(node.operands()[0]).extents());
                sources.into_iter().map(|source| operand(0)[source].clone()).collect()
            }
            Op::Affine(AffineMap::Elementwise(elementwise)) => {
                let constants = elementwise.constant().expand(node.shape());
                let apply = |(x, c): (&Ratio, f64)| match elementwise.arithmetic() {
                    Arithmetic::Add => x + exact(c),
                    Arithmetic::Multiply => x * exact(c),
                    Arithmetic::Divide => x / exact(c),
                };
                operand(0).iter().zip(constants).map(apply).collect()
            }
        };
        values.push(made);
    }
    values
}

#[allow(dead_code)]
pub fn document(network: &Network, float: Float) -> Document {
    let outputs = (0..network.outputs().len()).map(|output| format!("y{output}")).collect();
    let export = Export { float, input: "x".to_owned(), outputs, metadata: vec![] };
    Document::from_network(network, &export).expect("names fit")
}

pub fn shrink(document: &Document, domain: &Domain, options: &CompressOptions<'_>) -> Compressed {
    let compressed = compress(document, domain, options).expect("the domain fits");
    let sealed = |document: &Document| {
        let bytes = document.to_bytes().expect("no external data");
        HashedModel::from_bytes(bytes, Path::new("network.onnx")).expect("a network")
    };
    let [first, second] = [document, &compressed.document].map(sealed);
    let certificate = compressed.certificate(first.sha256.clone(), second.sha256.clone(), domain).expect("as before");
    let bytes = certificate.to_bytes().expect("JSON");
    let certificate = Certificate::from_bytes(&bytes).expect("a certificate");
    for check in [verify, verify_exactly] {
        if let Err(refusal) = check(&first, &second, &certificate, &()) {
            panic!("{refusal}: {}", String::from_utf8_lossy(&bytes));
        }
    }
    compressed
}
