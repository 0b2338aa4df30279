//! Dense layers behind convolutions: what goes from a dense network goes from them, what is proved of that holds at
//! points without any rounding, and a certificate that says something else is refused.

mod support;

use std::path::Path;

use fastrand::Rng;
use leo_check::{Certificate, Checker, HashedModel, verify, verify_exactly};
use leo_compress::{CompressOptions, Compressed, Rule, Tolerance};
use leo_formats::onnx::{Document, Float};
use leo_network::op::{Convolution, Dense, Matrix, MaxPool, Relu, Reshape, Window, WindowAxis};
use leo_network::{Array, Builder, Domain, Network, NetworkError, Part, Shape, ValueId};
use leo_stability::Status;
use serde_json::{Value, json};
use support::{document, evaluate, exact, shrink};

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Numbers that singles can hold, with few bits.
fn numbers(random: &mut Rng, count: usize) -> Vec<f64> {
    (0..count).map(|_| f64::from(random.i32(-64..=64)) / 32.0).collect()
}

/// A dense layer, in which some units are off, on, multiples of others, or opposite to them.
fn planted(random: &mut Rng, inputs: usize, units: usize) -> Result<Dense, NetworkError> {
    let (mut rows, mut bias): (Vec<Vec<f64>>, _) =
        ((0..units).map(|_| numbers(random, inputs)).collect(), numbers(random, units));
    for unit in 0..units {
        let other = random.usize(..=unit);
        match random.u8(..10) {
            0 | 1 => bias[unit] = -65536.0,
            2 | 3 => bias[unit] = 65536.0,
            factor @ 4..=7 if other < unit => {
                let factor = [2.0, 0.5, -1.0, -0.5][usize::from(factor - 4)];
                rows[unit] = rows[other].iter().map(|weight| weight * factor).collect();
                bias[unit] = bias[other] * factor;
            }
            _ => {}
        }
    }
    Dense::new(Matrix::new(units, inputs, rows.concat())?, Some(bias))
}

/// A convolution with a ReLU, in which some channels are dead, constant, or multiples of others.
fn convolution(
    builder: &mut Builder,
    value: ValueId,
    random: &mut Rng,
    (channels, kernel): (usize, usize),
) -> Result<ValueId, NetworkError> {
    let entries = kernel * kernel * builder.shape(value).extents()[0];
    let (mut weights, mut bias) = (numbers(random, channels * entries), numbers(random, channels));
    for channel in 0..channels {
        let (earlier, row) = weights.split_at_mut(channel * entries);
        match random.u8(..6) {
            0 => bias[channel] = -65536.0,
            1 => {
                row[..entries].fill(0.0);
                bias[channel] = f64::from(0.3_f32);
            }
            2 if channel > 0 => {
                row[..entries].iter_mut().zip(&earlier[..entries]).for_each(|(weight, other)| *weight = 0.5 * other);
                bias[channel] = 0.5 * bias[0];
            }
            _ => {}
        }
    }
    let window = Window::new(vec![WindowAxis::new(kernel, 1); 2]);
    let map = Convolution::new(window, 1, channels, weights, Some(bias))?;
    let made = builder.add(format!("conv{}", value.index()), map, &[value])?;
    builder.add(format!("units{}", value.index()), Relu, &[made])
}

/// One convolution or two, and perhaps a pool; all positions as a vector; and two dense layers, of which the first may
/// be read by an output, too.
fn random(seed: u64) -> Result<Network, NetworkError> {
    let mut random = Rng::with_seed(seed);
    let mut builder = Network::builder(Shape::new([1, 3, 3])?);
    let size = (random.usize(2..5), random.usize(1..3));
    let mut value = convolution(&mut builder, ValueId::INPUT, &mut random, size)?;
    if random.bool() {
        let size = (random.usize(2..5), 1);
        value = convolution(&mut builder, value, &mut random, size)?;
    }
    if random.bool() {
        value = builder.add("max", MaxPool::new(Window::new(vec![WindowAxis::new(2, 1); 2])), &[value])?;
    }
    let elements = builder.shape(value).elements();
    value = builder.add("flat", Reshape::new(Shape::new([elements])?), &[value])?;
    dense_layers(builder, value, &mut random)
}

fn dense_layers(mut builder: Builder, value: ValueId, random: &mut Rng) -> Result<Network, NetworkError> {
    let elements = builder.shape(value).elements();
    let [wide, narrow] = [random.usize(3..9), random.usize(3..7)];
    let made = builder.add("fc1", planted(random, elements, wide)?, &[value])?;
    let first = builder.add("relu1", Relu, &[made])?;
    let made = builder.add("fc2", planted(random, wide, narrow)?, &[first])?;
    let second = builder.add("relu2", Relu, &[made])?;
    let last = Dense::new(Matrix::new(2, narrow, numbers(random, 2 * narrow))?, None)?;
    let mut outputs = vec![builder.add("fc3", last, &[second])?];
    if random.u8(..4) == 0 {
        let beside = Dense::new(Matrix::new(1, wide, numbers(random, wide))?, None)?;
        outputs.push(builder.add("beside", beside, &[first])?);
    }
    builder.finish(outputs)
}

/// The value behind which all is dense.
fn beginning(network: &Network) -> ValueId {
    let flat = network.nodes().iter().position(|node| node.name() == "fc1").expect("it is there");
    network.nodes()[flat].operands()[0]
}

/// How many layers of units come before it.
fn layers_before(network: &Network) -> usize {
    network.layers().filter(|&layer| network.output_of(layer) < beginning(network)).count()
}

fn hidden_after(network: &Network, layers: usize) -> usize {
    network.hidden()[layers..].iter().sum()
}

fn sealed(document: &Document) -> HashedModel {
    HashedModel::from_bytes(document.to_bytes().expect("no external data"), Path::new("n.onnx")).expect("a network")
}

/// The certificate of what was done, as JSON, and the two files.
fn certified(before: &Document, after: &Compressed, domain: &Domain) -> Anything<([HashedModel; 2], Value)> {
    let files = [before, &after.document].map(sealed);
    let certificate = after.certificate(files[0].sha256.clone(), files[1].sha256.clone(), domain)?;
    Ok((files, serde_json::from_slice(&certificate.to_bytes()?)?))
}

/// Whether a certificate is read and believed, in doubles and exactly.
fn is_believed([first, second]: &[HashedModel; 2], certificate: &Value) -> bool {
    let Ok(certificate) = Certificate::from_bytes(certificate.to_string().as_bytes()) else { return false };
    let found = [verify, verify_exactly].map(|check| check(first, second, &certificate, &()).is_ok());
    assert_eq!(found[0], found[1], "both arithmetics agree");
    found[0]
}

#[test]
fn random_dense_layers_stay_what_they_are() -> Anything {
    let (mut parts, mut removed, mut more) = (0, 0, 0);
    for seed in 0..300 {
        let before = document(&random(seed)?, Float::F32);
        let network = before.network();
        let domain = Domain::uniform(9, -1.0, 1.0)?;
        // How much noise is too much depends on what was given, which is another network the next time.
        let allow_noise = seed.is_multiple_of(2).then_some(1e6);
        let mut options = CompressOptions { align: Some(1), allow_noise, ..CompressOptions::default() };
        let mut random = Rng::with_seed(seed);
        let samples = Array::new(vec![20, 9], (0..180).map(|_| random.f64()).collect::<Vec<f64>>())?;
        options.stability.samples = Some(&samples).filter(|_| seed.is_multiple_of(3));
        let after = shrink(&before, &domain, &options);
        let (_, certificate) = certified(&before, &after, &domain)?;
        let has_part = |link: &Value| link.get("part").is_some();
        parts += usize::from(certificate["links"].as_array().is_some_and(|links| links.iter().any(has_part)));
        removed += after.history.removed.iter().flatten().flatten().count();
        for _ in 0..4 {
            let point = domain.at(|| random.f64());
            let [old, new] = [network, after.document.network()].map(|network| evaluate(network, &point));
            for ((old, new), delta) in old.iter().flatten().zip(new.iter().flatten()).zip(after.delta.iter().flatten())
            {
                let apart = if old > new { old - new } else { new - old };
                assert!(apart <= exact(*delta), "seed {seed}");
            }
        }
        let again = shrink(&after.document, &domain, &options);
        assert!(allow_noise.is_none() || !again.changed, "seed {seed}: twice is once");

        // As a file of its own.
        let value = beginning(network);
        let part = document(&network.after(value)?, Float::F32);
        let facts = {
            let mut checker = Checker::new(network, &domain)?;
            checker.go_to_end();
            checker.finish()
        };
        options.stability.samples = None;
        let alone = shrink(&part, &facts.domain_at(value)?, &options);
        let [whole, alone] = [(&after, layers_before(network)), (&alone, 0)]
            .map(|(of, first)| hidden_after(of.document.network(), first));
        assert!(allow_noise.is_none() || whole <= alone, "seed {seed}: {whole} units left, and {alone} alone");
        more += alone.saturating_sub(whole);
    }
    assert!(parts > 250 && removed > 2000, "{parts} parts were rewritten, {removed} units went, {more} not alone");
    Ok(())
}

/// The same network with a denormal number in each of its dense layers.
fn with_denormals(network: &Network) -> Result<Network, NetworkError> {
    let mut builder = Network::builder(network.input().clone());
    for node in network.nodes() {
        let op = match node.op().as_dense() {
            None => node.op().clone(),
            Some(dense) => {
                let (rows, columns) = (dense.weight().rows(), dense.weight().columns());
                let mut values = dense.weight().values().to_vec();
                values[columns - 1] = f64::from(1e-40_f32);
                Dense::new(Matrix::new(rows, columns, values)?, dense.bias().map(<[f64]>::to_vec))?.into()
            }
        };
        builder.add(node.name(), op, node.operands())?;
    }
    builder.finish(network.outputs().to_vec())
}

#[test]
fn denormal_numbers_of_dense_parts_are_flushed_and_proved() -> Anything {
    let (mut parts, mut flushed) = (0, 0);
    for seed in 0..60 {
        let before = document(&with_denormals(&random(seed)?)?, Float::F32);
        let domain = Domain::uniform(9, -1.0, 1.0)?;
        let options = CompressOptions { align: Some(1), flush_denormals: true, ..CompressOptions::default() };
        let after = shrink(&before, &domain, &options);
        let (_, certificate) = certified(&before, &after, &domain)?;
        parts += usize::from(certificate.to_string().contains("\"part\""));
        flushed += after.flushed;
        assert_eq!(after.document.flushed()?.1, 0, "seed {seed}: none is left");
        let mut random = Rng::with_seed(seed);
        for _ in 0..4 {
            let point = domain.at(|| random.f64());
            let [old, new] = [before.network(), after.document.network()].map(|network| evaluate(network, &point));
            for ((old, new), delta) in old.iter().flatten().zip(new.iter().flatten()).zip(after.delta.iter().flatten())
            {
                let apart = if old > new { old - new } else { new - old };
                assert!(apart <= exact(*delta), "seed {seed}");
            }
        }
    }
    assert!(parts > 40 && flushed > 20, "{parts} parts were rewritten, {flushed} numbers became 0");
    Ok(())
}

/// The same file with another number in one of its dense layers.
fn spoilt(document: &Document, random: &mut Rng) -> Anything<Document> {
    let network = document.network();
    let Some(first) = network.nodes().iter().find(|node| node.op().as_dense().is_some()) else {
        return Err("a dense layer".into());
    };
    let from = first.operands()[0];
    let part = network.after(from)?;
    let dense: Vec<usize> =
        (0..part.nodes().len()).filter(|&node| part.nodes()[node].op().as_dense().is_some()).collect();
    let spoilt = dense[random.usize(..dense.len())];
    let mut builder = Network::builder(part.input().clone());
    for (index, node) in part.nodes().iter().enumerate() {
        let mut op = node.op().clone();
        if let Some(dense) = op.as_dense().filter(|_| index == spoilt) {
            let (weight, mut values) = (dense.weight(), dense.weight().values().to_vec());
            values[random.usize(..weight.values().len())] += 0.5;
            let weight = Matrix::new(weight.rows(), weight.columns(), values)?;
            op = Dense::new(weight, dense.bias().map(<[f64]>::to_vec))?.into();
        }
        builder.add(node.name(), op, node.operands())?;
    }
    let part = Part { from, to: network.outputs().to_vec(), network: builder.finish(part.outputs().to_vec())? };
    Ok(document.splice(&[part], None)?.made)
}

#[test]
fn what_moves_outputs_is_not_believed() -> Anything {
    let (mut refused, mut moved) = (0, 0);
    for seed in 0..150 {
        let before = document(&random(seed)?, Float::F32);
        let domain = Domain::uniform(9, -1.0, 1.0)?;
        let options = CompressOptions { align: Some(1), ..CompressOptions::default() };
        let after = shrink(&before, &domain, &options);
        let (files, mut certificate) = certified(&before, &after, &domain)?;
        let mut random = Rng::with_seed(seed);
        let [first, _] = files;
        let wrong = spoilt(&after.document, &mut random)?;
        let files = [first, sealed(&wrong)];
        certificate["second"] = json!(files[1].sha256);
        let is_refused = !is_believed(&files, &certificate);
        refused += usize::from(is_refused);
        for _ in 0..8 {
            let point = domain.at(|| random.f64());
            let [old, new] = [before.network(), wrong.network()].map(|network| evaluate(network, &point));
            for ((old, new), delta) in old.iter().flatten().zip(new.iter().flatten()).zip(after.delta.iter().flatten())
            {
                let apart = if old > new { old - new } else { new - old };
                let is_moved = apart > exact(*delta) * exact(1.05);
                assert!(is_refused || !is_moved, "seed {seed}");
                moved += usize::from(is_moved);
            }
        }
    }
    assert!(refused > 100 && moved > 500, "{refused} were refused, {moved} outputs moved");
    Ok(())
}

/// A network with these dense rows behind a convolution that passes its inputs on: two numbers from 0 to 1.
fn behind(rows: &[[f64; 2]], bias: &[f64], last: &[f64]) -> Anything<Document> {
    let mut builder = Network::builder(Shape::new([2, 1, 1])?);
    let window = Window::new(vec![WindowAxis::new(1, 1); 2]);
    let map = Convolution::new(window, 1, 3, vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0], Some(vec![0.0, 0.0, -4.0]))?;
    let made = builder.add("conv", map, &[ValueId::INPUT])?;
    let units = builder.add("relu0", Relu, &[made])?;
    let flat = builder.add("flat", Reshape::new(Shape::new([3])?), &[units])?;
    let rows: Vec<f64> = rows.iter().flat_map(|&[a, b]| [a, b, 1.0]).collect();
    let first = Dense::new(Matrix::new(bias.len(), 3, rows)?, Some(bias.to_vec()))?;
    let made = builder.add("fc1", first, &[flat])?;
    let units = builder.add("relu1", Relu, &[made])?;
    let second = Dense::new(Matrix::new(2, bias.len(), [last, last].concat())?, Some(vec![0.25, -0.5]))?;
    let made = builder.add("fc2", second, &[units])?;
    let units = builder.add("relu2", Relu, &[made])?;
    let made = builder.add("fc3", Dense::new(Matrix::new(1, 2, vec![1.0, -0.5])?, None)?, &[units])?;
    Ok(document(&builder.finish(vec![made])?, Float::F32))
}

/// One unit that is off, one that is on, one twice another, and one opposite to it.
fn one_of_each() -> Anything<Document> {
    let rows = [[1.0, -1.0], [-1.0, -1.0], [0.5, 0.5], [2.0, -2.0], [-1.0, 1.0], [0.25, -0.75]];
    behind(&rows, &[0.125, -0.5, 0.5, 0.25, -0.125, 0.375], &[1.0, 1.0, -0.5, 0.75, 0.5, -1.0])
}

#[test]
fn what_is_planted_in_dense_layers_is_found() -> Anything {
    let before = one_of_each()?;
    let domain = Domain::uniform(2, 0.0, 1.0)?;
    let options = CompressOptions { align: Some(1), ..CompressOptions::default() };
    let after = shrink(&before, &domain, &options);
    assert_eq!(after.history.removed[0], [None, None, Some(Rule::Inactive)], "its column went with it");
    let statuses: Vec<Status> = after.history.layers[1].units.iter().map(|unit| unit.status).collect();
    assert_eq!((statuses[1], statuses[2]), (Status::OFF, Status::ON));
    let left = after.document.network().hidden();
    assert!(left[0] == 2 && left[1] <= 3, "{left:?}");
    for options in [
        CompressOptions { bit_exact: true, ..options },
        CompressOptions { tolerance: Some(Tolerance::Zero), ..options },
    ] {
        let after = shrink(&before, &domain, &options);
        assert_eq!(after.history.removed[1][1], Some(Rule::Inactive));
        assert_eq!(after.largest_delta(), 0.0, "nothing is rounded that may not be");
    }
    Ok(())
}

#[test]
fn certificates_that_say_something_else_are_refused() -> Anything {
    let domain = Domain::uniform(2, 0.0, 1.0)?;
    let options = CompressOptions { align: Some(1), ..CompressOptions::default() };
    let before = one_of_each()?;
    let after = shrink(&before, &domain, &options);
    let (files, certificate) = certified(&before, &after, &domain)?;
    assert!(is_believed(&files, &certificate));
    assert_eq!(certificate["version"], 4);
    let link = certificate["links"][0].clone();
    let part = &link["part"];
    let changed = |pointer: &str, value: Value| -> Value {
        let mut changed = certificate.clone();
        *changed.pointer_mut(&format!("/links/0{pointer}")).expect("it is there") = value;
        changed
    };
    let without = |field: &str| {
        let mut changed = certificate.clone();
        changed["links"][0].as_object_mut().expect("an object").remove(field);
        changed
    };
    let value = part["value"].as_str().ok_or("a name")?.to_owned();
    let inner = before.name_of(before.network().outputs()[0]).ok_or("a name")?;
    let letters = part["layers"][0]["units"].as_str().ok_or("letters")?;
    let unknown = letters.find('?').ok_or("an unstable unit")?;
    let with = |letter: &str| format!("{}{letter}{}", &letters[..unknown], &letters[unknown + 1..]);
    let wrong = [
        ("no part", without("part")),
        ("no value", changed("/part/value", json!("nothing"))),
        ("the input", changed("/part/value", json!("x"))),
        ("an output", changed("/part/value", json!(inner))),
        ("a letter that is not true", changed("/part/layers/0/units", json!(with("-")))),
        ("a letter that nothing shows", changed("/part/layers/0/units", json!(with("~")))),
        ("roles of fewer units", changed("/part/roles/0", json!([]))),
        ("another role", changed("/part/roles/0/0", json!({ "constant": 0.0 }))),
        ("all channels", changed("/channels", json!([]))),
    ];
    for (what, certificate) in wrong {
        assert!(!is_believed(&files, &certificate), "{what}: {value}");
    }
    // Of another network.
    let other = behind(&[[1.0, -1.0], [-1.0, -1.0]], &[0.125, -0.5], &[1.0, 1.0])?;
    let (_, others) = certified(&other, &shrink(&other, &domain, &options), &domain)?;
    assert!(!is_believed(&files, &changed("/part", others["links"][0]["part"].clone())), "another part");
    Ok(())
}
