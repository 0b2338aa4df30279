//! Random networks with everything in them that a compressor might remove, and random boxes.

use fastrand::Rng;
use leo_network::op::{Arithmetic, Broadcast, Dense, Elementwise, Matrix, Relu, Reshape, Sum};
use leo_network::{Builder, Domain, Network, NetworkError, Shape, ValueId};

/// Points, thin, huge, one-sided and plain boxes; each input has its own kind.
pub fn random_domain(random: &mut Rng, inputs: usize) -> Domain {
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    let common = random.u8(0..7);
    for _ in 0..inputs {
        let place = f64::from(random.i8(-8..9)) / 4.0;
        let kind = if random.u8(0..3) == 0 { random.u8(0..7) } else { common };
        let (lo, hi) = match kind {
            0 => (place, place),
            1 => (place, place + 2_f64.powi(-20)),
            2 => (-1024.0, 1024.0),
            3 => (0.0, place.abs() + 0.25),
            4 => (-place.abs() - 0.25, 0.0),
            _ => (place, place + f64::from(random.u8(1..9)) / 4.0),
        };
        lower.push(lo);
        upper.push(hi);
    }
    Domain::new(lower, upper).expect("not reversed")
}

/// Rows of weights with biases, some of them always off, always on, zero, or a function of rows before.
fn random_dense(random: &mut Rng, inputs: usize, outputs: usize, last: bool) -> Result<Dense, NetworkError> {
    let (mut rows, mut biases): (Vec<Vec<f64>>, Vec<f64>) = Default::default();
    for row in 0..outputs {
        let mut weights: Vec<f64> = (0..inputs).map(|_| f64::from(random.i8(-4..5)) / 4.0).collect();
        let mut bias = f64::from(random.i8(-8..9)) / 4.0;
        let other = random.usize(0..row.max(1));
        match random.u8(0..14) {
            0 => weights.fill(0.0),
            1 | 2 if row > 0 => {
                let factor = [1.0, 2.0, 0.5, 3.0][random.usize(0..4)];
                weights = rows[other].iter().map(|weight| weight * factor).collect();
                bias = biases[other] * factor;
            }
            3 | 4 if row > 0 => {
                weights = rows[other].iter().map(|weight| -weight).collect();
                bias = -biases[other];
            }
            5 | 6 => bias += 64.0,
            7 | 8 => bias -= 64.0,
            9 if row > 1 => {
                weights = (0..inputs).map(|i| rows[other][i] - rows[row - 1][i]).collect();
                bias = 128.0;
            }
            10 => weights.iter_mut().for_each(|weight| *weight *= 2_f64.powi(-24)),
            _ => {}
        }
        rows.push(weights);
        biases.push(bias);
    }
    // Nobody reads some of what comes before.
    if random.u8(0..3) == 0 || last {
        let dead = random.usize(0..inputs);
        if random.bool() {
            rows.iter_mut().for_each(|row| row[dead] = 0.0);
        }
    }
    Dense::new(Matrix::new(outputs, inputs, rows.concat())?, Some(biases))
}

/// A dense map, perhaps with its bias or a factor in nodes of their own.
fn add_affine(
    builder: &mut Builder,
    random: &mut Rng,
    value: ValueId,
    outputs: usize,
    last: bool,
) -> Result<ValueId, NetworkError> {
    let inputs = builder.shape(value).last();
    let name = format!("fc{}", value.index());
    let dense = random_dense(random, inputs, outputs, last)?;
    let constants = |random: &mut Rng| -> Vec<f64> { (0..outputs).map(|_| f64::from(random.u8(1..5)) / 2.0).collect() };
    match random.u8(0..6) {
        0 => {
            let value = builder.add(name, Dense::new(dense.weight().clone(), None)?, &[value])?;
            let bias = dense.bias().unwrap_or_default().to_vec();
            let add = Elementwise::new(Arithmetic::Add, Broadcast::new(Shape::new([outputs])?, bias)?)?;
            builder.add("bias", add, &[value])
        }
        1 => {
            let value = builder.add(name, dense, &[value])?;
            let factors = Broadcast::new(Shape::new([outputs])?, constants(random))?;
            let value = builder.add("scale", Elementwise::new(Arithmetic::Multiply, factors)?, &[value])?;
            builder.add("flat", Reshape::new(Shape::new([outputs])?), &[value])
        }
        _ => builder.add(name, dense, &[value]),
    }
}

/// A network with some layers, residual sums, and sometimes two outputs.
pub fn random_network(random: &mut Rng, inputs: usize, depth: usize) -> Result<Network, NetworkError> {
    let mut builder = Network::builder(Shape::new([inputs])?);
    let mut value = ValueId::INPUT;
    let mut outputs = Vec::new();
    for layer in 0..depth {
        let name = format!("relu{layer}");
        if layer > 0 && random.u8(0..4) == 0 {
            let (width, inner) = (builder.shape(value).last(), random.usize(1..5));
            let branch = add_affine(&mut builder, random, value, inner, false)?;
            let branch = builder.add(name, Relu, &[branch])?;
            let branch = add_affine(&mut builder, random, branch, width, false)?;
            value = builder.add("sum", Sum, &[value, branch])?;
            if random.bool() {
                value = builder.add(format!("after{layer}"), Relu, &[value])?;
            }
            continue;
        }
        let width = random.usize(1..6);
        value = add_affine(&mut builder, random, value, width, false)?;
        value = builder.add(name, Relu, &[value])?;
        if random.u8(0..8) == 0 {
            let other = add_affine(&mut builder, random, value, 2, true)?;
            outputs.push(other);
        }
    }
    if random.u8(0..8) > 0 {
        value = add_affine(&mut builder, random, value, 2, true)?;
    }
    if !outputs.contains(&value) {
        outputs.push(value);
    }
    builder.finish(outputs)
}
