//! Mutated files of every format: whatever comes, no panic, and never more than a gibibyte.
//!
//! The files that a mutation leaves legal are run, written and read again.

mod support;

use std::alloc::System;
use std::path::Path;

use cap::Cap;
use fastrand::Rng;
use leo_formats::ArrayFile;
use leo_formats::Model;
use leo_formats::nnet::Nnet;
use leo_formats::onnx::proto::{DimensionValue, GraphProto, ModelProto, NodeProto, TypeValue};
use leo_formats::onnx::{Document, OnnxError};
use leo_formats::vnnlib::{self, NonBox};
use leo_network::{Array, Domain, Shape};
use prost::Message;

/// Allocations beyond a gibibyte fail, and a failed allocation ends the test.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, 1 << 30);

/// How many files of each format; the variable LEO_HOSTILE_ROUNDS asks for more.
fn rounds() -> usize {
    std::env::var("LEO_HOSTILE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(50_000)
}

/// Most mutations should break a file, but not all: else they miss their aim.
fn assert_some_were_legal(accepted: usize) {
    let rounds = rounds();
    assert!((rounds / 50..rounds).contains(&accepted), "{accepted} of {rounds} were legal");
    println!("{rounds} files, {accepted} of them legal; at most {} MiB allocated", ALLOCATOR.max_allocated() >> 20);
}

/// Numbers that programs stumble over.
const NASTY_NUMBERS: &[i64] = &[
    0,
    1,
    -1,
    2,
    3,
    7,
    64,
    127,
    128,
    255,
    256,
    65_535,
    65_536,
    1 << 24,
    (1 << 24) + 1,
    i32::MAX as i64,
    i32::MIN as i64,
    1 << 32,
    1 << 40,
    i64::MAX,
    i64::MIN,
    i64::MAX - 1,
];

/// Words that programs stumble over.
const NASTY_WORDS: &[&str] = &[
    "",
    "0",
    "-1",
    "1e999",
    "-1e999",
    "nan",
    "inf",
    "1e-400",
    "99999999999999999999",
    "(",
    ")",
    "((((",
    "[",
    "]",
    "[0,0]",
    "[99999999999]",
    ",",
    ",,",
    "-",
    "X_0",
    "X_99999999999",
    "Y_0",
    "or",
    "and",
    "<=",
    "assert",
    "\"",
    "|",
    ";",
    "\n",
    "//",
    "é",
    "\u{0}",
];

#[test]
fn mutated_onnx_files() -> Result<(), Box<dyn std::error::Error>> {
    let digits = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/digits.onnx"))?;
    let seeds =
        [support::small(), support::branched(), support::convolutional(), ModelProto::decode(digits.as_slice())?];
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("weights.bin"), [0; 64])?;
    let mut random = Rng::with_seed(1);
    let mut accepted = 0;
    for round in 0..rounds() {
        let mut model = random.choice(&seeds).cloned().unwrap_or_default();
        let bytes = if round % 2 == 0 {
            for _ in 0..random.usize(1..4) {
                mutate_model(&mut model, &mut random);
            }
            model.encode_to_vec()
        } else {
            mutate_bytes(model.encode_to_vec(), &mut random)
        };
        if let Ok(document) = Document::from_bytes(bytes, Some(folder.path())) {
            accepted += 1;
            exercise(document);
        }
    }
    assert_some_were_legal(accepted);
    Ok(())
}

/// Runs, writes and reads again what was accepted.
fn exercise(document: Document) {
    let network = document.network().clone();
    let model = Model::from(document);
    let inputs = network.input().elements();
    if network.values().map(|value| network.shape(value).elements()).sum::<usize>() < 100_000 {
        let samples = Array::new(vec![2, inputs], vec![0.5_f32; 2 * inputs]).expect("as many as the shape says");
        // Tails that Leo does not evaluate, and overflow to infinity, are no concern here.
        let _ = model.run(&samples, None);
    }
    match model.to_onnx() {
        Ok(written) => {
            let again = Document::from_bytes(written, None).expect("what was read can be read again");
            assert_eq!(*again.network(), network);
        }
        // A constant that nothing reads may be broken.
        Err(error) => assert!(matches!(error, OnnxError::Tensor { .. }), "{error}"),
    }
}

/// Small files that ask for much: each is refused, or run within the limit.
#[test]
fn files_that_ask_for_too_much() -> Result<(), Box<dyn std::error::Error>> {
    let empty = "{'descr': '|u1', 'fortran_order': True, 'shape': (1099511627776, 0), }";
    let mut npy = b"\x93NUMPY\x01\x00".to_vec();
    npy.extend((empty.len() as u16).to_le_bytes());
    npy.extend(empty.as_bytes());
    assert!(Array::from_bytes(&npy)?.is_empty());

    let huge = 1 << 40;
    let wide = support::value("x", &[0, 4096]);
    let chain = |operator: &str, count: usize, second: Option<&str>| -> Vec<_> {
        let name = |index: usize| if index == 0 { "first".to_owned() } else { format!("v{index}") };
        (0..count)
            .map(|index| {
                let first = name(index);
                let inputs = [first.as_str(), second.unwrap_or(&first)];
                let inputs = if second.is_some() || operator == "Concat" { &inputs[..] } else { &inputs[..1] };
                support::node(operator, inputs, &name(index + 1), &[support::int("axis", 0)])
            })
            .collect()
    };
    let add = |value: &str| support::node("Add", &["x", value], "y", &[]);
    let column: Vec<f32> = vec![1.0; 4096];
    let attempts = [
        ("an empty constant with a huge extent", vec![support::node("Transpose", &["none"], "t", &[]), add("t")]),
        ("arithmetic with it", vec![support::node("Mul", &["none", "row"], "t", &[]), add("t")]),
        ("a shape that doubles forty times", [chain("Concat", 40, None), vec![add("v40")]].concat()),
        ("constants that grow and multiply", {
            let grown = support::node("Add", &["column", "row"], "first", &[]);
            [vec![grown], chain("Add", 200, Some("row")), vec![add("v200")]].concat()
        }),
        ("values that grow and multiply", {
            let grown = support::node("Add", &["x", "column3"], "first", &[]);
            [vec![grown], chain("Relu", 200, None), vec![support::node("Relu", &["v200"], "y", &[])]].concat()
        }),
    ];
    // ra100.onnx of the cases: 18 kB that took 3.2 GB.
    let product = support::node("Mul", &["column", "wide"], "first", &[]);
    let tied = (0..100).map(|index| {
        let from = if index == 0 { "x".to_owned() } else { format!("v{index}") };
        support::node("MatMul", &[&from, "first"], &format!("v{}", index + 1), &[])
    });
    let last = support::node("Relu", &["v100"], "y", &[]);
    let ra100 = ("weights that are read again and again", [product].into_iter().chain(tied).chain([last]).collect());
    for (what, mut nodes) in attempts.into_iter().chain([ra100]) {
        let mut constants = vec![
            support::floats("none", &[huge, 0], &[]),
            support::floats("row", &[4096], &column),
            support::floats("column", &[4096, 1], &column),
            support::floats("column3", &[4096, 1, 1], &column),
            support::floats("wide", &[1, 4096], &column),
        ];
        if what.contains("doubles") {
            constants.push(support::ints("first", &[1]));
        }
        nodes.iter_mut().for_each(|node| node.attribute.retain(|_| node.op_type.as_deref() == Some("Concat")));
        let model = support::model(wide.clone(), &nodes, &constants, &[support::value("y", &[0, 4096])]);
        let refused = Document::from_bytes(model.encode_to_vec(), None).map(|_| ()).expect_err(what);
        println!("{what}: {refused}");
    }

    // A label passed on through a hundred thousand nodes is read, and run, without a deep stack.
    let label = support::node("ArgMax", &["x"], "first", &[support::int("axis", 1)]);
    let mut nodes = [vec![label], chain("Identity", 100_000, None)].concat();
    nodes.iter_mut().skip(1).for_each(|node| node.attribute.clear());
    let model = support::model(wide, &nodes, &[], &[support::value("v100000", &[0, 1])]);
    let model = Model::from(Document::from_bytes(model.encode_to_vec(), None)?);
    let labels = model.run(&Array::new(vec![1, 4096], vec![0.5_f32; 4096])?, None)?;
    assert_eq!(labels.iter().collect::<Vec<_>>(), [0.0]);
    Ok(())
}

#[test]
fn mutated_nnet_files() {
    let mut random = Rng::with_seed(2);
    let mut accepted = 0;
    for _ in 0..rounds() {
        if let Ok(nnet) = Nnet::from_bytes(&mutate_text(&[support::NNET], &mut random)) {
            accepted += 1;
            let _ = nnet.domain();
            exercise_nnet(nnet);
        }
    }
    assert_some_were_legal(accepted);
}

fn exercise_nnet(nnet: Nnet) {
    let network = nnet.network().clone();
    let written = Model::from(nnet).to_onnx().expect("every NNet network can be written");
    // Emitting may name and order things anew, but doubles keep every weight.
    let again = Document::from_bytes(written, None).expect("and read");
    assert_eq!(again.network().parameters(), network.parameters());
}

#[test]
fn mutated_vnnlib_files() {
    let mut random = Rng::with_seed(3);
    let mut accepted = 0;
    for _ in 0..rounds() {
        let bytes = mutate_text(&[support::VNNLIB_1, support::VNNLIB_2], &mut random);
        let strict = vnnlib::domain(&bytes, NonBox::Refuse);
        let hull = vnnlib::domain(&bytes, NonBox::Hull);
        accepted += usize::from(hull.is_ok());
        if let Ok(domain) = strict {
            assert_eq!(hull, Ok(domain), "a box is its own hull");
        }
    }
    assert_some_were_legal(accepted);
}

#[test]
fn mutated_arrays() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let mut seeds = vec![
        vec![0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6],
        b"\x93NUMPY\x02\x00\x3a\x00\x00\x00{'descr': '>f2', 'fortran_order': True, 'shape': (2, 2), }\n        "
            .to_vec(),
    ];
    for array in [
        Array::new(vec![2, 3], vec![1.5_f32, -0.0, 3.0, 4.0, 5.0, 6.0])?,
        Array::new(vec![3], vec![1.0_f64, 1e-300, -2.0])?,
        Array::new(vec![1, 2, 2], vec![7_i64, -7, 0, 1])?,
    ] {
        let path = folder.path().join("x.npy");
        array.save(&path)?;
        seeds.push(std::fs::read(path)?);
    }
    let mut random = Rng::with_seed(4);
    let mut accepted = 0;
    for _ in 0..rounds() {
        let seed = random.choice(&seeds).cloned().unwrap_or_default();
        if let Ok(array) = Array::from_bytes(&mutate_bytes(seed, &mut random)) {
            accepted += 1;
            assert_eq!(array.iter().count(), array.len());
            let _ = Domain::of_samples(&array, &Shape::new([3])?);
            let _ = array.divided::<f32>(255.0);
        }
    }
    assert_some_were_legal(accepted);
    Ok(())
}

/// Flips, cuts, repeats and overwrites bytes.
fn mutate_bytes(mut bytes: Vec<u8>, random: &mut Rng) -> Vec<u8> {
    for _ in 0..random.usize(1..4) {
        if bytes.is_empty() {
            break;
        }
        let at = random.usize(..bytes.len());
        let length = random.usize(1..=(bytes.len() - at).min(16));
        match random.u8(..7) {
            0 => bytes[at] ^= 1 << random.u8(..8),
            1 => bytes[at] = random.u8(..),
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..at + length)),
            4 => {
                let block = bytes[at..at + length].to_vec();
                let to = random.usize(..bytes.len());
                bytes.splice(to..to, block);
            }
            5 => bytes[at..at + length].fill(if random.bool() { 0xff } else { 0 }),
            _ => {
                let nasty = random.choice(NASTY_NUMBERS).copied().unwrap_or_default().to_le_bytes();
                bytes.iter_mut().skip(at).zip(nasty).for_each(|(byte, new)| *byte = new);
            }
        }
    }
    bytes
}

/// Changes words and numbers of a text, or else its bytes.
fn mutate_text(seeds: &[&str], random: &mut Rng) -> Vec<u8> {
    let seed = random.choice(seeds).copied().unwrap_or_default();
    if random.u8(..4) == 0 {
        return mutate_bytes(seed.as_bytes().to_vec(), random);
    }
    let mut words: Vec<&str> = seed.split_inclusive(|c: char| c.is_whitespace() || "(),[]".contains(c)).collect();
    for _ in 0..random.usize(1..4) {
        let at = random.usize(..words.len());
        match random.u8(..4) {
            0 => words[at] = random.choice(NASTY_WORDS).copied().unwrap_or_default(),
            1 => words.insert(at, random.choice(NASTY_WORDS).copied().unwrap_or_default()),
            2 => drop(words.remove(at)),
            _ => {
                let other = random.usize(..words.len());
                words.swap(at, other);
            }
        }
        if words.is_empty() {
            break;
        }
    }
    words.concat().into_bytes()
}

/// Operators that Leo knows, and others.
const OPERATORS: &str = "Add Mul Div Sub MatMul Gemm Relu Flatten Squeeze Unsqueeze Transpose Reshape \
    BatchNormalization Cast Dropout Identity Shape Gather Concat Softmax ArgMax Conv If Constant Nonsense ConvTranspose \
    MaxPool AveragePool GlobalAveragePool GlobalMaxPool ReduceMean ReduceSum Pad Slice Split Resize Upsample \
    DequantizeLinear";

/// Changes one field of a model to something that its encoding allows.
fn mutate_model(model: &mut ModelProto, random: &mut Rng) {
    let nasty = random.choice(NASTY_NUMBERS).copied().unwrap_or_default();
    let Some(graph) = model.graph.as_mut() else { return };
    let names: Vec<String> =
        graph.node.iter().flat_map(|node| node.input.iter().chain(&node.output)).cloned().collect();
    let name = random.choice(&names).cloned().unwrap_or_default();
    match random.u8(..16) {
        0 => model.opset_import.iter_mut().for_each(|set| set.version = Some(nasty)),
        1 | 2 => mutate_tensor(graph, random, nasty),
        3 => mutate_input(graph, random, nasty),
        4 => drop(graph.node.remove(random.usize(..graph.node.len().max(1)).min(graph.node.len().saturating_sub(1)))),
        5 => {
            if let Some(node) = random.choice(&graph.node).cloned() {
                graph.node.insert(0, node);
            }
        }
        6 => random.shuffle(&mut graph.node),
        7 => random.choice(&mut graph.output).into_iter().for_each(|output| output.name = Some(name.clone())),
        8 => graph.initializer.truncate(random.usize(..8)),
        _ => {
            if let Some(node) = random.choice(&mut graph.node) {
                mutate_node(node, random, nasty, name);
            }
        }
    }
}

fn mutate_node(node: &mut NodeProto, random: &mut Rng, nasty: i64, name: String) {
    match random.u8(..7) {
        0 => node.op_type = random.choice(OPERATORS.split(' ').collect::<Vec<_>>()).map(str::to_owned),
        1 => random.choice(&mut node.input).into_iter().for_each(|input| input.clone_from(&name)),
        2 => random.choice(&mut node.output).into_iter().for_each(|output| output.clone_from(&name)),
        3 => {
            let attributes = "axis axes perm transA transB alpha epsilon to keepdims value_ints kernel_shape strides pads \
                dilations group auto_pad ceil_mode count_include_pad output_padding output_shape split starts ends";
            let attribute = random.choice(attributes.split_whitespace().collect::<Vec<_>>()).unwrap_or_default();
            let mut attribute = support::int(attribute, nasty);
            if random.bool() {
                attribute.r#type = Some(random.i32(1..9));
            }
            attribute.ints = vec![nasty; random.usize(..4)];
            attribute.f = Some(nasty as f32);
            node.attribute.push(attribute);
        }
        4 => {
            if let Some(attribute) = random.choice(&mut node.attribute) {
                attribute.i = Some(nasty);
                attribute.ints.iter_mut().for_each(|value| *value = nasty);
                attribute.f = Some(if random.bool() { f32::NAN } else { 1e38 });
            }
        }
        5 => node.input.truncate(random.usize(..3)),
        _ => node.input.push(name),
    }
}

fn mutate_input(graph: &mut GraphProto, random: &mut Rng, nasty: i64) {
    let Some(value) = graph.input.first_mut().and_then(|input| input.r#type.as_mut()).and_then(|of| of.value.as_mut())
    else {
        return;
    };
    let TypeValue::Tensor(tensor) = value else { return };
    match (random.u8(..3), tensor.shape.as_mut()) {
        (0, _) => tensor.elem_type = Some(nasty as i32),
        (1, Some(shape)) => {
            if let Some(dimension) = random.choice(shape.dim.iter_mut()) {
                dimension.value = Some(DimensionValue::Value(nasty));
            }
        }
        (_, Some(shape)) => {
            if let Some(dimension) = random.choice(&shape.dim).cloned() {
                shape.dim.insert(0, dimension);
            }
        }
        _ => tensor.shape = None,
    }
}

fn mutate_tensor(graph: &mut GraphProto, random: &mut Rng, nasty: i64) {
    let Some(tensor) = random.choice(graph.initializer.iter_mut()) else { return };
    match random.u8(..8) {
        0 => tensor.data_type = Some(random.i32(-1..20)),
        1 => tensor.dims.push(nasty),
        2 => random.choice(tensor.dims.iter_mut()).into_iter().for_each(|extent| *extent = nasty),
        3 => tensor.dims.reverse(),
        4 => tensor.raw_data = tensor.raw_data.as_ref().map(|raw| raw.slice(..random.usize(..=raw.len()))),
        5 => {
            let value = *random.choice(&[f32::NAN, f32::INFINITY, 1e38, -0.0, 1e-45]).unwrap_or(&0.0);
            tensor.raw_data = tensor.raw_data.as_ref().map(|raw| value.to_le_bytes().repeat(raw.len() / 4).into());
        }
        6 => {
            tensor.data_location = Some(1);
            let location = random.choice(["weights.bin", "../weights.bin", "/etc/passwd", "", ".", "none.bin"]);
            let offset = if random.bool() { "0".to_owned() } else { nasty.to_string() };
            tensor.external_data =
                vec![support::entry("location", location.unwrap_or_default()), support::entry("offset", &offset)];
        }
        _ => tensor.dims.iter_mut().for_each(|extent| *extent = extent.saturating_mul(1 << random.u8(..40))),
    }
}
