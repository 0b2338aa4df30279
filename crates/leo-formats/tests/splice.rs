//! Splicing: what it changes in an ONNX file, and what it leaves as it is.

mod support;

use std::collections::BTreeSet;

use leo_formats::Model;
use leo_formats::onnx::proto::{ModelProto, TypeValue, ValueInfoProto};
use leo_formats::onnx::{Document, Export, Float, Part};
use leo_network::op::{Dense, Matrix, Relu};
use leo_network::{Array, Evaluator, Network, NetworkError, Shape, ValueId};
use prost::Message;
use support::{branched, bytes, floats, graph, int, model, node, outputs, read, small, value};

type Anything = Result<(), Box<dyn std::error::Error>>;

/// A part between values that the file calls so.
fn part(document: &Document, from: &str, to: &[&str], network: Network) -> Part {
    let named = |name: &str| document.value_named(name).expect("a value of that name");
    Part { from: named(from), to: to.iter().map(|name| named(name)).collect(), network }
}

#[test]
fn splicing_changes_one_part_and_keeps_the_rest() -> Anything {
    let mut original = small();
    graph(&mut original).value_info = vec![value("g", &[0, 2]), value("y", &[0, 2])];
    graph(&mut original).node.push(node("Cos", &["h"], "nobody_reads_this", &[]));
    original.doc_string = Some("kept".into());
    let document = read(&original)?;

    // The same function with its two units exchanged, and one of them cut in two.
    let mut better = Network::builder(Shape::new([3])?);
    let w1 = Matrix::new(3, 3, vec![-1.0, 0.25, 3.0, 1.0, -2.0, 0.5, 1.0, -2.0, 0.5])?;
    let g = better.add("first", Dense::new(w1, Some(vec![-0.5, 0.5, 0.5]))?, &[ValueId::INPUT])?;
    let h = better.add("", Relu, &[g])?;
    let w2 = Matrix::new(2, 3, vec![2.0, 0.5, 0.5, 0.5, -0.75, -0.25])?;
    let y = better.add("w1", Dense::new(w2, Some(vec![0.0, 1.0]))?, &[h])?;

    let spliced = document.splice(&[part(&document, "flat", &["y"], better.finish(vec![y])?)], None)?.made;
    let samples: Vec<f32> = (0..30).map(|i| (i as f32).sin()).collect();
    let (before, after) = (outputs(&document, &samples, &[10, 3, 1])?, outputs(&spliced, &samples, &[10, 3, 1])?);
    assert!(before.iter().zip(after.iter()).all(|(x, y)| (x - y).abs() < 1e-6));

    let mut written = ModelProto::decode(spliced.to_bytes()?.as_slice())?;
    assert_eq!(written.doc_string(), "kept");
    let written = graph(&mut written);
    let operators: Vec<&str> = written.node.iter().map(|node| node.op_type()).collect();
    assert_eq!(operators, ["Flatten", "Gemm", "Relu", "Gemm", "Sigmoid"]);
    assert_eq!(written.node[0], graph(&mut original).node[0]);
    assert_eq!(written.node[4], graph(&mut original).node[4]);
    assert_eq!(written.value_info, [value("y", &[0, 2])]);
    assert!(
        written.initializer.iter().all(|tensor| !["w2", "b1", "b2"].contains(&tensor.name())),
        "old weights are gone"
    );
    Ok(())
}

#[test]
fn splicing_around_a_value_that_others_read_keeps_it() -> Anything {
    let document = read(&branched())?;
    // Replace the branch from the scaled input to the sum: "h" is an output of the file, so its nodes stay.
    let mut better = Network::builder(Shape::new([4])?);
    let doubled = Dense::new(Matrix::new(4, 4, (0..16).map(|i| if i % 5 == 0 { 2.0 } else { 0.0 }).collect())?, None)?;
    let y = better.add("double", doubled, &[ValueId::INPUT])?;
    let spliced = document.splice(&[part(&document, "d", &["sum"], better.finish(vec![y])?)], None)?.made;
    assert_eq!(spliced.network().layers().len(), 1);
    let wrong = Network::builder(Shape::new([3])?).finish(vec![ValueId::INPUT])?;
    assert!(document.splice(&[part(&document, "d", &["sum"], wrong)], None).is_err());
    Ok(())
}

/// A matrix of 2 by 2, as in [`residual`] and in what is put into it.
type Weights = [f32; 4];

/// The first matrix of [`residual`].
const W: Weights = [1.0, -2.0, 0.5, 1.0];

/// The first matrix of its left branch.
const L1: Weights = [2.0, -1.0, 1.0, 1.0];

/// The second matrix of its left branch.
const L2: Weights = [1.0, 3.0, -1.0, 0.5];

/// The matrix of its right branch.
const R: Weights = [-1.0, 0.5, 2.0, -0.25];

/// The first matrix of what is put into it.
const A: Weights = [1.0, -1.0, -0.5, 2.0];

/// The second matrix of what is put into it.
const B: Weights = [0.25, 1.0, 1.0, -3.0];

/// `x -> L₂ relu(L₁ h) + relu(R h)` with `h = relu(W x)`: a sum of two branches.
fn residual() -> ModelProto {
    let gemm = |from: &str, weight: &str, to: &str| node("Gemm", &[from, weight], to, &[int("transB", 1)]);
    model(
        value("x", &[0, 2]),
        &[
            gemm("x", "W", "g"),
            node("Relu", &["g"], "h", &[]),
            gemm("h", "L1", "l1"),
            node("Relu", &["l1"], "l2", &[]),
            gemm("l2", "L2", "l"),
            gemm("h", "R", "r1"),
            node("Relu", &["r1"], "r", &[]),
            node("Add", &["l", "r"], "y", &[]),
        ],
        &[("W", W), ("L1", L1), ("L2", L2), ("R", R)].map(|(name, weight)| floats(name, &[2, 2], &weight)),
        &[value("y", &[0, 2])],
    )
}

fn times(weight: Weights, x: [f32; 2]) -> [f32; 2] {
    [weight[0] * x[0] + weight[1] * x[1], weight[2] * x[0] + weight[3] * x[1]]
}

fn relu(x: [f32; 2]) -> [f32; 2] {
    x.map(|x| x.max(0.0))
}

fn plus(x: [f32; 2], y: [f32; 2]) -> [f32; 2] {
    [x[0] + y[0], x[1] + y[1]]
}

/// `x -> B relu(A x)`, whose units are called `name`.
fn two_layers(name: &str) -> Result<Network, NetworkError> {
    let dense = |weight: Weights| Dense::new(Matrix::new(2, 2, weight.map(f64::from).to_vec())?, None);
    let mut builder = Network::builder(Shape::new([2])?);
    let g = builder.add("", dense(A)?, &[ValueId::INPUT])?;
    let h = builder.add(name, Relu, &[g])?;
    let y = builder.add("", dense(B)?, &[h])?;
    builder.finish(vec![y])
}

fn operators(document: &Document) -> Vec<&str> {
    document.model().graph.iter().flat_map(|graph| &graph.node).map(|node| node.op_type()).collect()
}

/// Puts two new layers between each of these pairs of values of [`residual`], in either order, and checks what the file
/// computes, which of its constants are left, and how many nodes there are.
fn check_parts(ends: [[&str; 2]; 2], expected: impl Fn([f32; 2]) -> [f32; 2], kept: &[&str], nodes: usize) -> Anything {
    let document = read(&residual())?;
    let mut parts = Vec::new();
    for ([from, to], name) in ends.into_iter().zip(["first", "second"]) {
        parts.push(part(&document, from, &[to], two_layers(name)?));
    }
    for _ in 0..2 {
        let spliced = document.splice(&parts, None)?.made;
        let read_back = Document::from_bytes(spliced.to_bytes()?, None)?;
        for x in [[1.0, 0.5], [-1.0, 2.0], [3.0, -0.25], [-2.0, -1.0]] {
            let y = outputs(&read_back, &x, &[1, 2])?;
            assert_eq!(y.iter().collect::<Vec<_>>(), expected(x).map(f64::from), "{ends:?} at {x:?}");
        }
        let graph = read_back.model().graph.as_ref().expect("it was read");
        let old =
            graph.initializer.iter().map(|tensor| tensor.name()).filter(|name| ["W", "L1", "L2", "R"].contains(name));
        assert_eq!(old.collect::<Vec<_>>(), kept, "{ends:?}");
        assert_eq!(graph.node.len(), nodes, "{ends:?}");
        let network = read_back.network();
        let units: Vec<&str> = network.layers().map(|layer| network.node_of(layer).name()).collect();
        assert!(units.contains(&"first") && units.contains(&"second"), "{units:?}");
        parts.reverse();
    }
    Ok(())
}

fn better(x: [f32; 2]) -> [f32; 2] {
    times(B, relu(times(A, x)))
}

#[test]
fn a_part_may_begin_where_another_ends() -> Anything {
    // "l2" is read by nothing but what the second part replaces, and made by the first.
    let inner = |x| {
        let h = relu(times(W, x));
        plus(better(better(h)), relu(times(R, h)))
    };
    check_parts([["h", "l2"], ["l2", "l"]], inner, &["W", "R"], 11)?;
    let outer = |x| {
        let h = better(x);
        plus(times(L2, better(h)), relu(times(R, h)))
    };
    check_parts([["x", "h"], ["h", "l2"]], outer, &["L2", "R"], 10)
}

#[test]
fn parts_may_stand_side_by_side() -> Anything {
    // "l1" and "r1" are read by nothing but what the parts replace.
    let expected = |x| {
        let h = relu(times(W, x));
        plus(better(times(L1, h)), better(times(R, h)))
    };
    check_parts([["l1", "l"], ["r1", "r"]], expected, &["W", "L1", "R"], 11)
}

#[test]
fn parts_may_begin_at_the_same_value() -> Anything {
    let expected = |x| {
        let h = relu(times(W, x));
        plus(better(h), better(h))
    };
    check_parts([["h", "l"], ["h", "r"]], expected, &["W"], 9)
}

#[test]
fn parts_that_cannot_be_are_refused() -> Anything {
    let document = read(&residual())?;
    let refused = |ends: &[[&str; 2]]| -> Result<String, Box<dyn std::error::Error>> {
        let parts = ends.iter().map(|[from, to]| Ok(part(&document, from, &[to], two_layers("")?)));
        let parts = parts.collect::<Result<Vec<_>, NetworkError>>()?;
        Ok(document.splice(&parts, None).map(|_| ()).expect_err("must be refused").to_string())
    };
    assert_eq!(refused(&[["x", "l"], ["h", "l"]])?, "cannot be rewritten: \"l\" is to be computed twice");
    assert!(refused(&[["h", "h"]])?.contains("cycle"));
    assert!(refused(&[["h", "l"], ["l", "h"]])?.contains("cycle"));
    assert_eq!(refused(&[["h", "x"]])?, "\"x\" is made twice");
    Ok(())
}

#[test]
fn without_parts_the_file_stays_as_it_is() -> Anything {
    let mut shuffled = branched();
    graph(&mut shuffled).node.reverse();
    assert_eq!(read(&shuffled)?.splice(&[], Some(Float::F64))?.made.to_bytes()?, bytes(&shuffled));
    Ok(())
}

/// The type that a file declares for an input or output.
fn declared(value: &ValueInfoProto) -> Option<i32> {
    match value.r#type.as_ref()?.value.as_ref()? {
        TypeValue::Tensor(tensor) => tensor.elem_type,
        _ => None,
    }
}

#[test]
fn a_part_may_compute_in_a_type_of_its_own() -> Anything {
    let mut original = small();
    graph(&mut original).value_info = vec![value("y", &[0, 2])];
    let document = read(&original)?;
    // In single precision, the two units cancel.
    let weight = 1.0 + 2f64.powi(-30);
    let mut builder = Network::builder(Shape::new([3])?);
    let w1 = Matrix::new(2, 3, vec![weight, 0.0, 0.0, 1.0, 0.0, 0.0])?;
    let g = builder.add("", Dense::new(w1, None)?, &[ValueId::INPUT])?;
    let h = builder.add("units", Relu, &[g])?;
    let w2 = Matrix::new(2, 2, vec![1.0, -1.0, 0.0, 1.0])?;
    let y = builder.add("", Dense::new(w2, Some(vec![0.0, 0.1]))?, &[h])?;
    let parts = [part(&document, "flat", &["y"], builder.finish(vec![y])?)];

    let double = document.splice(&parts, Some(Float::F64))?.made;
    assert_eq!(operators(&double), ["Flatten", "Cast", "Gemm", "Relu", "Gemm", "Cast", "Sigmoid"]);
    let graph = double.model().graph.as_ref().expect("it was read");
    assert!(graph.initializer.iter().all(|tensor| tensor.data_type() == 11), "all weights are doubles");
    let outside = graph.input.iter().chain(&graph.output).chain(&graph.value_info);
    assert!(outside.map(declared).all(|declared| declared == Some(support::FLOAT)), "all else stays single");
    assert_eq!(double.float(), Float::F32);

    let run = |document: &Document| Evaluator::<f64>::new(document.network()).run(&[1.0, 0.0, 0.0]);
    assert_eq!(run(&double), [[2f64.powi(-30), 1.1]]);
    let single = document.splice(&parts, None)?.made;
    assert_eq!(operators(&single), ["Flatten", "Gemm", "Relu", "Gemm", "Sigmoid"]);
    assert_eq!(run(&single), [[0.0, 1.0 + f64::from(0.1_f32)]]);
    assert_eq!(document.splice(&parts, Some(Float::F32))?.made.to_bytes()?, single.to_bytes()?);
    let p = outputs(&double, &[1.0, 0.0, 0.0], &[1, 3, 1])?;
    assert!(p.iter().zip([0.5, 1.0 / (1.0 + (-1.1_f64).exp())]).all(|(x, y)| (x - y).abs() < 1e-6));

    // What was written can be rewritten: back to single precision, from where the cast was to where it was.
    assert_eq!(double.value_named("y"), Some(double.network().outputs()[0]), "a cast does not change a value");
    let back = parts.map(|old| part(&double, "flat", &["y"], old.network));
    assert_eq!(run(&double.splice(&back, Some(Float::F32))?.made), run(&single));
    Ok(())
}

#[test]
fn a_part_may_end_in_several_types() -> Anything {
    let mut mixed = residual();
    let file = graph(&mut mixed);
    file.node.extend([node("Cast", &["r1"], "wide", &[int("to", 11)]), node("Relu", &["wide"], "z", &[])]);
    file.output.push(value("z", &[0, 2]));
    if let Some(TypeValue::Tensor(tensor)) = file.output[1].r#type.as_mut().and_then(|of| of.value.as_mut()) {
        tensor.elem_type = Some(11);
    }
    let document = read(&mixed)?;
    let mut builder = Network::builder(Shape::new([2])?);
    let h = builder.add("units", Relu, &[ValueId::INPUT])?;
    let parts = [part(&document, "g", &["r", "z"], builder.finish(vec![h, h])?)];
    let refused = document.splice(&parts, None).map(|_| ()).expect_err("no type is the one");
    assert_eq!(refused.to_string(), "cannot be rewritten: the values to compute have different types");
    for (float, casts) in [(Float::F32, 1), (Float::F64, 2), (Float::F16, 3)] {
        let spliced = document.splice(&parts, Some(float))?.made;
        assert_eq!(operators(&spliced).iter().filter(|operator| **operator == "Cast").count(), casts, "{float:?}");
        let model = Model::from(spliced);
        let z = model.run(&Array::new(vec![1, 2], vec![4.0_f32, 0.5])?, Some("z"))?;
        assert_eq!(z.iter().collect::<Vec<_>>(), relu(times(W, [4.0, 0.5])).map(f64::from));
    }
    Ok(())
}

#[test]
fn new_nodes_keep_their_names() -> Anything {
    let document = read(&residual())?;
    // "make_l2" goes, so that its name is free; "make_y" stays.
    let layers = |name: &str, from: &str, to: &str| -> Result<Part, NetworkError> {
        Ok(part(&document, from, &[to], two_layers(name)?))
    };
    for [first, second, first_written, second_written] in [
        ["make_r", "make_l2", "make_r", "make_l2"],
        ["make_y", "other", "make_y_2", "other"],
        ["same", "same", "same", "same_2"],
        // Values have names of their own, and these are some.
        ["h", "L1", "h", "L1"],
        // Here they are values that the parts make.
        ["r", "l", "r", "l"],
    ] {
        let spliced = document.splice(&[layers(first, "h", "l")?, layers(second, "h", "r")?], None)?.made;
        let names: Vec<&str> = spliced.network().nodes().iter().map(|node| node.name()).collect();
        assert_eq!(names.iter().filter(|name| **name == first_written).count(), 1, "{names:?}");
        assert_eq!(names.iter().filter(|name| **name == second_written).count(), 1, "{names:?}");
    }
    // When the first part is written, no node reads or makes "l2", and still it is no name for another value.
    let parts = [layers("l2", "h", "r")?, layers("first", "h", "l2")?, layers("second", "l2", "l")?];
    let spliced = document.splice(&parts, None)?.made;
    let network = spliced.network();
    let units: BTreeSet<&str> = network.layers().map(|layer| network.node_of(layer).name()).collect();
    assert_eq!(units, BTreeSet::from(["first", "l2", "make_h", "second"]));
    Ok(())
}

#[test]
fn names_made_up_on_the_way_do_not_take_a_nodes_own() -> Anything {
    let square = || Dense::new(Matrix::new(2, 2, vec![1.0; 4])?, Some(vec![1.0; 2]));
    let mut builder = Network::builder(Shape::new([2, 2])?);
    // With a bias and this rank, one node becomes two, and the second of them is called "fc.add".
    let mut last = ValueId::INPUT;
    last = builder.add("fc", square()?, &[last])?;
    for name in ["fc", "fc_2", "fc.add"] {
        last = builder.add(name, Relu, &[last])?;
    }
    let export = Export { float: Float::F32, input: "in".into(), outputs: vec!["out".into()], metadata: vec![] };
    let document = Document::from_network(&builder.finish(vec![last])?, &export)?;
    let network = document.network();
    let units: Vec<&str> = network.layers().map(|layer| network.node_of(layer).name()).collect();
    assert_eq!(units, ["fc_3", "fc_2", "fc.add"]);
    Ok(())
}

#[test]
fn an_output_that_is_left_out_takes_nothing_else_along() -> Anything {
    let mut original = small();
    let file = graph(&mut original);
    let mut dropout = node("Dropout", &["g"], "dropped", &[]);
    dropout.output.push(String::new());
    file.node.insert(2, dropout);
    file.node[3].input[0] = "dropped".into();
    file.node[5] = node("Clip", &["y", "", "b1"], "p", &[]);
    let document = read(&original)?;
    let builder = Network::builder(Shape::new([2])?);
    let spliced = document.splice(&[part(&document, "g", &["h"], builder.finish(vec![ValueId::INPUT])?)], None)?.made;
    assert_eq!(operators(&spliced), ["Flatten", "Gemm", "Identity", "Gemm", "Clip"]);
    Ok(())
}
