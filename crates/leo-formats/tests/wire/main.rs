//! The encoding of ONNX files: whatever is done to it, no file is one network to Leo and another one to those who run
//! it.
//!
//! Protobuf, by way of the Python package onnx, and ONNX Runtime are the judges; `make test` installs both and names
//! the interpreter in LEO_PYTHON. Without it, the tests that need it say so.

mod mutants;
#[path = "../support/mod.rs"]
mod support;

use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use fastrand::Rng;
use leo_formats::Model;
use leo_formats::onnx::proto::{FunctionProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TypeValue};
use leo_formats::onnx::{DeclaredAxis, Document, wire};
use leo_network::Array;
use mutants::{Mutator, Schema};
use prost::Message;
use support::{bytes, entry, float, float_list, floats, graph, int, model, node, small, tensor_value, value};

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// How many mutants; the variable LEO_WIRE_ROUNDS asks for more.
fn rounds() -> u64 {
    std::env::var("LEO_WIRE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(4_000)
}

/// Runs one of the scripts, or says that it cannot.
fn python(script: &str, arguments: &[&Path]) -> Anything<Option<String>> {
    let Ok(interpreter) = std::env::var("LEO_PYTHON") else {
        eprintln!("skipped: LEO_PYTHON names no Python with ONNX Runtime; `make test` makes one");
        return Ok(None);
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/wire").join(script);
    let output = Command::new(interpreter).arg(&script).args(arguments).output()?;
    let (printed, errors) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    if output.status.success() { Ok(Some(printed)) } else { Err(format!("{printed}{errors}").into()) }
}

/// A file of the cases that people sent in, where there are any beside the project.
fn case(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases").join(name);
    if !path.exists() {
        eprintln!("skipped: there is no shared/cases/{name} beside the project");
    }
    path.exists().then_some(path)
}

/// Why Leo does not take these bytes.
fn refusal(bytes: Vec<u8>) -> String {
    Document::from_bytes(bytes, None).map(drop).expect_err("must be refused").to_string()
}

fn varint(number: usize) -> Vec<u8> {
    let mut bytes = vec![];
    prost::encoding::encode_varint(number as u64, &mut bytes);
    bytes
}

/// One field on the wire: a number.
fn number(field: usize, value: usize) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

/// One field on the wire: bytes.
fn counted(field: usize, content: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(content.len()), content.to_vec()].concat()
}

/// A file with more bytes at the end of its graph.
fn with_graph(more: &[u8]) -> Vec<u8> {
    let mut outside = small();
    let inside = graph(&mut outside).encode_to_vec();
    outside.graph = None;
    [bytes(&outside), counted(7, &[&inside, more].concat())].concat()
}

/// A file whose constant "more", which nothing reads, has these bytes besides.
fn with_tensor(more: &[u8]) -> Vec<u8> {
    with_graph(&counted(5, &[bytes_of(&floats("more", &[1], &[1.0])), more.to_vec()].concat()))
}

/// A file with a node in the tail, and these bytes in that node.
fn with_node(more: &[u8]) -> Vec<u8> {
    with_graph(&counted(1, &[bytes_of(&node("LogSoftmax", &["y"], "unread", &[])), more.to_vec()].concat()))
}

fn bytes_of(message: &impl Message) -> Vec<u8> {
    message.encode_to_vec()
}

#[test]
fn an_enum_has_no_values_but_its_own() {
    let all_alike = "is not an ONNX file that all programs read alike: ";
    for (file, why) in [
        (with_tensor(&number(14, 7)), "graph.initializer[4].data_location has the value 7, which ONNX does not have"),
        (with_tensor(&[number(14, 1), number(14, 7)].concat()), "graph.initializer[4].data_location is there twice"),
        (with_node(&counted(5, &number(20, 15))), "graph.node[5].attribute[0].type has the value 15, which ONNX"),
        (
            with_graph(&counted(13, &counted(2, &counted(1, &number(1, 29))))),
            "graph.value_info[0].type.Tensor.elem_type",
        ),
        (
            with_graph(&counted(5, &number(2, 29))),
            "graph.initializer[4].data_type has the value 29, which ONNX does not",
        ),
        (
            with_graph(&counted(5, &[vec![2 << 3], vec![0x81, 0x80, 0x80, 0x80, 0x10]].concat())),
            "graph.initializer[4].data_type has a whole number that takes more bytes than it needs, or does not fit \
             its type",
        ),
    ] {
        let said = refusal(file);
        assert!(said.starts_with(&format!("{all_alike}{why}")), "{said}\nnot: {why}");
    }
    assert!(Document::from_bytes(with_tensor(&number(14, 0)), None).is_ok(), "0 is what it is anyway");
}

/// A sequence of sequences of sequences, and so on.
fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(vec![], |inside, _| counted(4, &counted(1, &inside)))
}

#[test]
fn what_decoders_skip_or_merge_is_refused() {
    let twice = "is there twice; programs take the first, the last or both";
    for (file, why) in [
        (with_tensor(&counted(8, b"other")), format!("graph.initializer[4].name {twice}")),
        (with_tensor(&counted(9, b"")), format!("graph.initializer[4].raw_data {twice}")),
        ([bytes(&small()), counted(7, b"")].concat(), format!("graph {twice}")),
        (with_node(&number(99, 1)), "graph.node[5] has a field 99 that Leo does not know".to_owned()),
        (with_graph(&number(3, 1)), "graph has a field 3 that Leo does not know; some programs might".to_owned()),
        (with_node(&number(4, 1)), format!("graph.node[5].op_type {twice}")),
        (with_node(&number(8, 1)), "graph.node[5].overload is not encoded as string; programs skip it".to_owned()),
        (with_node(&[8 << 3 | 3, 8 << 3 | 4]), "graph.node[5].overload is not encoded as string".to_owned()),
        (with_node(&counted(8, &[0xff])), "graph.node[5].overload is not text in UTF-8".to_owned()),
        (
            with_graph(&counted(13, &counted(2, &[counted(1, b""), counted(4, b"")].concat()))),
            "graph.value_info[0].type.Sequence is there beside Tensor, in whose place it should be".to_owned(),
        ),
        (with_tensor(&[1 << 3, 0x81, 0x00]), "graph.initializer[4].dims has a whole number that takes more".to_owned()),
        (with_node(&counted(5, &counted(14, &nested(60)))), "lies deeper than 100 messages within one".to_owned()),
    ] {
        let said = refusal(file);
        assert!(said.contains(&why), "{said}\nnot: {why}");
    }
    for (file, why) in [
        ([bytes(&small()), vec![7 << 3 | 6]].concat(), "is not a whole ONNX file: has bytes that are no field"),
        ([bytes(&small()), vec![0, 0]].concat(), "is not a whole ONNX file: has bytes that are no field"),
        (bytes(&small())[..100].to_vec(), "is not a whole ONNX file: "),
    ] {
        let said = refusal(file);
        assert!(said.starts_with(why), "{said}\nnot: {why}");
    }
    // Numbers may be packed or not, and fields may stand in any order.
    let dims = [counted(1, &[1, 1]), vec![1 << 3, 1], number(2, 1), counted(9, &[0; 4])].concat();
    assert!(Document::from_bytes(with_graph(&counted(5, &dims)), None).is_ok());
}

/// In one of its two graphs, which decoders put together, a `data_location` is 1, and in the other 7: protobuf drops
/// the 7, prost takes it.
#[test]
fn t2_data_that_are_external_to_some_are_refused() {
    let Some(path) = case("t2.onnx") else { return };
    let said = Model::load(&path).map(drop).expect_err("must be refused").to_string();
    assert!(said.contains("graph is there twice"), "{said}");
}

#[test]
fn the_fields_are_those_of_onnx() -> Anything {
    let folder = tempfile::tempdir()?;
    let listing = folder.path().join("listing");
    std::fs::write(&listing, wire::listing())?;
    python("schema.py", &[&listing])?;
    Ok(())
}

/// A file with typed data, attributes of several kinds, a function, metadata, two outputs and numbers in another file.
fn rich() -> ModelProto {
    let mut made = model(
        value("x", &[0, 3]),
        &[
            node("Constant", &[], "factor", &[tensor_value(typed("", &[3], &[0.5, 2.0, -1.0]))]),
            node("Constant", &[], "shift", &[float_list("value_floats", &[0.25, -0.5])]),
            node("Mul", &["x", "factor"], "scaled", &[]),
            node("Gemm", &["scaled", "w1", "b1"], "g", &[float("alpha", 0.5), float("beta", 2.0), int("transB", 1)]),
            node("Relu", &["g"], "h", &[]),
            node("Unsqueeze", &["h", "axes"], "u", &[]),
            node("Squeeze", &["u", "axes"], "s", &[]),
            node("MatMul", &["s", "w2"], "m", &[]),
            node("Add", &["m", "shift"], "y", &[]),
            node("Softmax", &["y"], "p", &[int("axis", 1)]),
            node("ArgMax", &["y"], "label", &[int("axis", 1), int("keepdims", 0)]),
            NodeProto { domain: Some("com.example".into()), ..node("Twice", &["y"], "twice", &[]) },
        ],
        &[
            typed("w1", &[2, 3], &[1.0, -2.0, 0.5, -1.0, 0.25, 3.0]),
            typed("b1", &[2], &[0.5, -0.5]),
            outside("w2", &[2, 2]),
            support::ints("axes", &[1]),
        ],
        &[value("p", &[0, 2]), value("label", &[0]), value("y", &[0, 2]), value("twice", &[0, 2])],
    );
    if let Some(TypeValue::Tensor(label)) = graph(&mut made).output[1].r#type.as_mut().and_then(|of| of.value.as_mut())
    {
        label.elem_type = Some(support::INT64);
    }
    made.opset_import.push(OperatorSetIdProto { domain: Some("com.example".into()), version: Some(1) });
    made.metadata_props.push(entry("key", "value"));
    made.functions.push(FunctionProto {
        name: Some("Twice".into()),
        domain: Some("com.example".into()),
        input: vec!["a".into()],
        output: vec!["c".into()],
        opset_import: vec![OperatorSetIdProto { domain: Some(String::new()), version: Some(13) }],
        node: vec![node("Add", &["a", "a"], "c", &[])],
        ..FunctionProto::default()
    });
    graph(&mut made).value_info.push(value("h", &[0, 2]));
    made
}

/// A tensor of singles in its typed field.
fn typed(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto { raw_data: None, float_data: values.to_vec(), ..floats(name, dims, &[]) }
}

/// A tensor of singles in the file `weights.bin`.
fn outside(name: &str, dims: &[i64]) -> TensorProto {
    let external_data = vec![entry("location", "weights.bin"), entry("offset", "4"), entry("length", "16")];
    TensorProto { raw_data: None, external_data, data_location: Some(1), ..floats(name, dims, &[]) }
}

/// Numbers that both sides make up in the same way.
fn samples(count: usize) -> Vec<f64> {
    (0..count).map(|index| ((index * 37 + 11) % 64) as f64 / 32.0 - 1.0).collect()
}

/// What Leo computes, a line for each output that it can: the name in hexadecimal, and the numbers.
fn computed(document: Document) -> String {
    let extents = document.declared_input().1.unwrap_or_default();
    let extents = extents.iter().map(|axis| if let DeclaredAxis::Fixed(extent) = axis { *extent } else { 2 });
    let (elements, all) = (document.network().input().elements(), extents.product::<usize>());
    let model = Model::from(document);
    let samples = Array::new(vec![all / elements, elements], samples(all)).expect("as many as the shape says");
    let line = |name: &str| {
        let values = model.run(&samples, Some(name)).ok()?;
        let name: String = name.bytes().map(|byte| format!("{byte:02x}")).collect();
        let values: Vec<String> = values.iter().map(|value| value.to_string()).collect();
        Some(format!("{name} {}\n", values.join(" ")))
    };
    model.computable().0.into_iter().filter_map(line).collect()
}

/// Thousands of files whose encoding is changed. Each that Leo takes is the same to protobuf as what Leo writes back,
/// and each that ONNX Runtime takes as well gives the same numbers.
#[test]
fn no_mutant_is_one_file_to_leo_and_another_to_onnx_runtime() -> Anything {
    let folder = tempfile::tempdir()?;
    let weights: Vec<u8> = [9.0_f32, 1.0, 2.0, -1.0, 0.5, 7.0].iter().flat_map(|weight| weight.to_le_bytes()).collect();
    std::fs::write(folder.path().join("weights.bin"), weights)?;
    let mut old = small();
    old.ir_version = Some(3);
    graph(&mut old)
        .input
        .extend([("w1", 2, 3), ("w2", 2, 2)].map(|(name, rows, columns)| value(name, &[rows, columns])));
    graph(&mut old).input.extend(["b1", "b2"].map(|name| value(name, &[2])));
    let seeds = [small(), support::branched(), rich(), old].map(|seed| bytes(&seed));
    let schema = Schema::known();
    let path = folder.path().join("stream");
    let mut stream = BufWriter::new(std::fs::File::create(&path)?);
    let mut write = |part: &[u8]| -> std::io::Result<()> {
        stream.write_all(&(part.len() as u32).to_le_bytes())?;
        stream.write_all(part)
    };
    let mut taken = 0;
    for round in 0..rounds() {
        let mut mutator = Mutator { schema: &schema, random: Rng::with_seed(round) };
        let seed = &seeds[round as usize % seeds.len()];
        let mutant = if round < seeds.len() as u64 { seed.clone() } else { mutator.mutant(seed) };
        write(&mutant)?;
        match Document::from_bytes(mutant, Some(folder.path())) {
            Err(_) => (0..2).try_for_each(|_| write(&[]))?,
            Ok(document) => {
                taken += 1;
                write(&document.model().encode_to_vec())?;
                write(computed(document).as_bytes())?;
            }
        }
    }
    stream.flush()?;
    drop(stream);
    assert!(taken > rounds() / 50, "{taken} of {} were taken", rounds());
    let Some(said) = python("oracle.py", &[&path, folder.path()])? else { return Ok(()) };
    println!("{said}");
    assert!(!said.contains("DIFFERENT"), "{said}");
    Ok(())
}
