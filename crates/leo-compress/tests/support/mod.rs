//! Exact evaluation of networks, and files made of them.

use std::path::Path;

use leo_check::{Certificate, Checker, HashedModel, verify, verify_exactly};
use leo_compress::{CompressOptions, Compressed, compress};
use leo_formats::onnx::{Document, Export, Float};
use leo_network::op::{AffineMap, Arithmetic, Convolution, Op, Select, Window};
use leo_network::{Domain, Network, Shape};
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
            Op::Concat(concat) => {
                let sources = concat.sources(&network.operand_shapes(node));
                sources.into_iter().map(|(index, element)| operand(index)[element].clone()).collect()
            }
            Op::MaxPool(pool) => {
                let (shape, x) = (network.shape(node.operands()[0]), operand(0));
                let largest = |window: Vec<(usize, usize)>| {
                    window.into_iter().map(|(read, _)| x[read].clone()).max().expect("no window is empty")
                };
                windows(pool.window(), shape, node.shape()).into_iter().map(largest).collect()
            }
            Op::Affine(AffineMap::SumPool(pool)) => {
                let (shape, x) = (network.shape(node.operands()[0]), operand(0));
                let sum = |window: Vec<(usize, usize)>| window.into_iter().map(|(read, _)| x[read].clone()).sum();
                windows(pool.window(), shape, node.shape()).into_iter().map(sum).collect()
            }
            Op::Affine(AffineMap::Convolution(map)) => {
                convolved(map, network.shape(node.operands()[0]), node.shape(), operand(0))
            }
            Op::Affine(AffineMap::Select(select)) => {
                selected(select, network.shape(node.operands()[0]), node.shape(), operand(0))
            }
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

/// What a convolution makes, from the definition.
fn convolved(map: &Convolution, shape: &Shape, made_shape: &Shape, x: &[Ratio]) -> Vec<Ratio> {
    let axis = shape.rank() - map.window().axes().len() - 1;
    let entries: usize = map.window().axes().iter().map(|axis| axis.kernel).product();
    let [read, _] = [shape, made_shape].map(|of| of.extents()[axis + 1..].iter().product::<usize>());
    // The windows of a single channel, for all channels alike.
    let [one_read, one_made] = [shape, made_shape].map(|of| [&[1], &of.extents()[axis + 1..]].concat()).map(Shape::new);
    let window = windows(map.window(), &one_read.expect("smaller"), &one_made.expect("smaller"));
    let (inputs, outputs) = (map.inputs() / map.groups(), map.outputs() / map.groups());
    let mut values = Vec::new();
    for sample in x.chunks_exact(read * map.inputs()) {
        for output in 0..map.outputs() {
            for window in &window {
                let mut sum = map.bias().map_or_else(Ratio::zero, |bias| exact(bias[output]));
                for input in 0..inputs {
                    let channel = output / outputs * inputs + input;
                    for (position, entry) in window {
                        let weight = map.weights()[(output * inputs + input) * entries + entry];
                        sum += exact(weight) * &sample[channel * read + position];
                    }
                }
                values.push(sum);
            }
        }
    }
    values
}

/// What is selected, from the definition.
fn selected(select: &Select, shape: &Shape, made_shape: &Shape, x: &[Ratio]) -> Vec<Ratio> {
    let (extents, made) = (shape.extents(), made_shape.extents());
    let number = |element: usize| {
        let mut source = Some(0);
        let mut rest = made_shape.elements();
        for (axis, &extent) in made.iter().enumerate() {
            rest /= extent;
            let index = select.axes()[axis][element / rest % extent];
            source = source.zip(index).map(|(source, index)| source * extents[axis] + index);
        }
        source.map_or_else(Ratio::zero, |source| x[source].clone())
    };
    (0..made_shape.elements()).map(number).collect()
}

/// For each element that a window makes, what it reads, and by which entry of the kernel: from the definition.
fn windows(window: &Window, operand: &Shape, made: &Shape) -> Vec<Vec<(usize, usize)>> {
    let axes = window.axes();
    let first = operand.rank() - axes.len();
    let digits = |mut number: usize, extents: &[usize]| {
        let mut digits = vec![0; extents.len()];
        for (digit, &extent) in digits.iter_mut().zip(extents).rev() {
            (*digit, number) = (number % extent, number / extent);
        }
        digits
    };
    let kernel: Vec<usize> = axes.iter().map(|axis| axis.kernel).collect();
    let of_element = |element: usize| {
        let at = digits(element, made.extents());
        let mut found = Vec::new();
        for entry in 0..kernel.iter().product() {
            let mut read = at[..first].to_vec();
            for ((axis, entry), (&at, &extent)) in
                axes.iter().zip(digits(entry, &kernel)).zip(at[first..].iter().zip(&operand.extents()[first..]))
            {
                let (entry, before) = ((entry * axis.dilation) as i64, axis.before as i64);
                let position = match window.is_transposed() {
                    false => Some(at as i64 * axis.stride as i64 + entry - before),
                    true => Some(at as i64 + before - entry)
                        .filter(|ahead| ahead % axis.stride as i64 == 0)
                        .map(|ahead| ahead / axis.stride as i64),
                };
                read.extend(position.filter(|at| (0..extent as i64).contains(at)).map(|at| at as usize));
            }
            if read.len() == operand.rank() {
                let place = read.iter().zip(operand.extents()).fold(0, |place, (at, extent)| place * extent + at);
                found.push((place, entry));
            }
        }
        found
    };
    (0..made.elements()).map(of_element).collect()
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
