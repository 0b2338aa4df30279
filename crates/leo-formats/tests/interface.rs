//! When two files are the same to the outside, and when they are not.

mod support;

use leo_formats::Model;
use leo_formats::onnx::proto::{
    FunctionProto, ModelProto, NodeProto, OperatorSetIdProto, TensorProto, TypeValue, ValueInfoProto,
};
use leo_formats::onnx::{Document, Float, Part};
use leo_network::op::{Dense, Matrix, Relu};
use leo_network::{Network, Shape, ValueId};
use prost::Message;
use support::{
    DOUBLE, NNET, branched, bytes, entry, floats, graph, int, ints, model, node, small, tensor_value, value,
};

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn loaded(model: &ModelProto) -> Anything<Model> {
    Ok(Document::from_bytes(bytes(model), None)?.into())
}

/// A node of an operator that is not ONNX's own.
fn foreign(operator: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto { domain: Some("com.example".into()), ..node(operator, inputs, output, &[]) }
}

fn set(domain: &str, version: i64) -> OperatorSetIdProto {
    OperatorSetIdProto { domain: Some(domain.into()), version: Some(version) }
}

/// Scores `y` and `z`, and much that comes after them: a softmax; a label; a foreign operator with a constant; and an
/// operator that the file defines itself.
fn tailed() -> ModelProto {
    let mut made = model(
        value("x", &[0, 3]),
        &[
            node("Gemm", &["x", "w1"], "g", &[int("transB", 1)]),
            node("Relu", &["g"], "h", &[]),
            node("Gemm", &["h", "w2"], "y", &[int("transB", 1)]),
            node("Gemm", &["h", "w1", "shared"], "z", &[]),
            node("Softmax", &["y"], "p", &[int("axis", 1)]),
            node("ArgMax", &["z"], "label", &[int("axis", 1), int("keepdims", 0)]),
            node("Constant", &[], "names", &[tensor_value(ints("n", &[3, 4, 5]))]),
            foreign("Lookup", &["label", "names", "shared", ""], "name"),
            node("Shape", &["h"], "size", &[]),
            foreign("Twice", &["z", "size"], "doubled"),
        ],
        &[
            floats("w1", &[2, 3], &[1.0, -2.0, 0.5, -1.0, 0.25, 3.0]),
            floats("w2", &[2, 2], &[1.0, 2.0, -1.0, 0.5]),
            floats("shared", &[3], &[0.5, 0.25, 0.0]),
        ],
        &[value("p", &[0, 2]), value("name", &[0]), value("doubled", &[0, 3])],
    );
    made.opset_import.push(set("com.example", 1));
    made.functions.push(FunctionProto {
        name: Some("Twice".into()),
        domain: Some("com.example".into()),
        input: vec!["a".into(), "b".into()],
        output: vec!["c".into()],
        opset_import: vec![set("", 13)],
        node: vec![node("Add", &["a", "a"], "c", &[])],
        ..FunctionProto::default()
    });
    made
}

fn made<'a>(model: &'a mut ModelProto, output: &str) -> &'a mut NodeProto {
    graph(model).node.iter_mut().find(|node| node.output[0] == output).expect("something makes it")
}

fn element_type(value: &mut ValueInfoProto) -> &mut Option<i32> {
    match value.r#type.as_mut().and_then(|of| of.value.as_mut()) {
        Some(TypeValue::Tensor(tensor)) => &mut tensor.elem_type,
        _ => panic!("test files have tensors only"),
    }
}

fn constant<'a>(model: &'a mut ModelProto, name: &str) -> &'a mut TensorProto {
    graph(model).initializer.iter_mut().find(|tensor| tensor.name() == name).expect("it is there")
}

type Change = fn(&mut ModelProto);

/// What is said of [`tailed`] and a variant of it, in both directions.
fn said(change: impl Fn(&mut ModelProto)) -> Anything<Result<(), String>> {
    let mut other = tailed();
    change(&mut other);
    let (first, second) = (loaded(&tailed())?, loaded(&other)?);
    let there = first.check_interface(&second).map_err(|difference| difference.to_string());
    assert_eq!(there.is_ok(), second.check_interface(&first).is_ok(), "{there:?}");
    Ok(there)
}

#[test]
fn what_does_not_matter_is_accepted() -> Anything {
    let changes: [(&str, Change); 9] = [
        ("nothing", |_| {}),
        ("weights", |model| *constant(model, "w2") = floats("w2", &[2, 2], &[7.0, 2.0, -1.0, 0.5])),
        ("names of nodes and doc strings", |model| {
            made(model, "p").name = Some("other".into());
            made(model, "label").doc_string = Some("the largest".into());
            model.producer_name = Some("somebody".into());
            graph(model).name = Some("other".into());
        }),
        ("names on the way", |model| {
            made(model, "label").output[0] = "best".into();
            made(model, "name").input[0] = "best".into();
        }),
        ("names of constants", |model| {
            constant(model, "shared").name = Some("moved".into());
            made(model, "name").input[2] = "moved".into();
            made(model, "z").input[2] = "moved".into();
        }),
        ("a constant as an initializer", |model| {
            graph(model).node.retain(|node| node.output[0] != "names");
            graph(model).initializer.push(ints("names", &[3, 4, 5]));
        }),
        ("the order of nodes and attributes", |model| {
            graph(model).node.reverse();
            made(model, "label").attribute.reverse();
        }),
        ("ONNX's own set by its name", |model| made(model, "p").domain = Some("ai.onnx".into())),
        ("nodes that nobody reads", |model| {
            graph(model).node.push(node("LogSoftmax", &["y"], "unread", &[]));
        }),
    ];
    for (what, change) in changes {
        assert_eq!(said(change)?, Ok(()), "{what}");
    }
    Ok(())
}

/// Each of these changes is refused, and this is said of it.
fn assert_refused<const N: usize>(changes: [(&str, Change); N]) -> Anything {
    for (number, (why, change)) in changes.into_iter().enumerate() {
        let said = said(change)?.err().ok_or_else(|| format!("change {number} passed: {why}"))?;
        assert!(said.contains(why), "change {number}: {said}");
    }
    Ok(())
}

#[test]
fn other_inputs_and_outputs_are_refused() -> Anything {
    assert_refused([
        ("the inputs have other names: \"x\" and \"input\"", |model| {
            graph(model).input[0].name = Some("input".into());
            made(model, "g").input[0] = "input".into();
        }),
        ("the inputs have other element types: f32 and f64", |model| {
            *element_type(&mut graph(model).input[0]) = Some(DOUBLE);
        }),
        ("the inputs have other shapes: [N, 3] and [N, 3, 1]", |model| {
            graph(model).input[0] = value("x", &[0, 3, 1]);
            graph(model).node.insert(0, node("Flatten", &["x"], "flat", &[]));
            made(model, "g").input[0] = "flat".into();
        }),
        ("the outputs have other names: \"p\", \"name\", \"doubled\" and \"p\", \"name\"", |model| {
            graph(model).output.pop();
        }),
        ("the outputs have other names", |model| graph(model).output.reverse()),
        ("the outputs have other names", |model| {
            made(model, "p").output[0] = "q".into();
            graph(model).output[0].name = Some("q".into());
        }),
        ("output \"name\" has another type", |model| *element_type(&mut graph(model).output[1]) = Some(7)),
    ])
}

#[test]
fn other_operators_are_refused() -> Anything {
    assert_refused([
        ("\"p\" is made by Softmax in one and by LogSoftmax in the other", |model| {
            made(model, "p").op_type = Some("LogSoftmax".into());
        }),
        ("\"p\" is made by Softmax in one and made by the network in the other", |model| {
            graph(model).node.retain(|node| node.output[0] != "p");
            made(model, "y").output[0] = "p".into();
        }),
        ("\"p\" is made by Softmax with other attributes", |model| made(model, "p").attribute = vec![int("axis", 0)]),
        ("\"p\" is made by Softmax with other attributes", |model| made(model, "p").attribute.clear()),
        ("\"label\" is made by ArgMax with other attributes", |model| {
            made(model, "label").attribute.push(int("select_last_index", 1));
        }),
        ("of version [13] in one and [12] in the other", |model| model.opset_import[0].version = Some(12)),
        ("of version [1] in one and [2] in the other", |model| model.opset_import[1].version = Some(2)),
        ("\"name\" is made by an operator Lookup of another set", |model| {
            made(model, "name").domain = Some("org.example".into());
        }),
        ("\"name\" is made by an operator Lookup of another set", |model| {
            made(model, "name").overload = Some("other".into());
        }),
        ("\"doubled\" is made by Twice, which need not be the same in both", |model| {
            model.functions[0].node[0].op_type = Some("Mul".into());
        }),
        ("\"doubled\" is made by Twice, which need not be the same in both", |model| model.functions.clear()),
        ("\"name\" is made by Lookup, which need not be the same in both", |model| {
            let lookup = FunctionProto { name: Some("Lookup".into()), ..model.functions[0].clone() };
            model.functions.push(lookup);
        }),
        ("\"size\" is made by Shape with other attributes", |model| {
            made(model, "size").attribute.push(int("start", 1));
        }),
    ])
}

#[test]
fn other_constants_and_values_are_refused() -> Anything {
    assert_refused([
        ("\"names\" is another constant", |model| {
            made(model, "names").attribute = vec![tensor_value(ints("n", &[3, 5, 4]))];
        }),
        ("\"names\" is another constant", |model| {
            let mut narrow = ints("n", &[]);
            (narrow.data_type, narrow.dims, narrow.int32_data) = (Some(6), vec![3], vec![3, 4, 5]);
            made(model, "names").attribute = vec![tensor_value(narrow)];
        }),
        ("\"shared\" is another constant", |model| {
            *constant(model, "shared") = floats("shared", &[3], &[0.5, 0.25, -0.0])
        }),
        ("\"shared\" is another constant", |model| {
            *constant(model, "shared") = floats("shared", &[1, 3], &[0.5, 0.25, 0.0]);
        }),
        ("\"name\" is made by Lookup with other inputs", |model| {
            made(model, "name").input.pop();
        }),
        ("\"name\" is made by Lookup with other inputs", |model| made(model, "name").output.push("more".into())),
        ("is output 0 of an operator in one and output 1 in the other", |model| {
            made(model, "label").output[0] = "other".into();
            made(model, "other").output.push("label".into());
        }),
        ("is the shape of other values", |model| made(model, "size").input[0] = "x".into()),
        ("leaves one network as f32 and the other as f64", |model| {
            made(model, "p").input[0] = "wide".into();
            graph(model).node.push(node("Cast", &["y"], "wide", &[int("to", i64::from(DOUBLE))]));
        }),
        ("\"z\" is output 1 of one network and output 0 of the other", |model| {
            // The scores of the softmax are those of the label, too.
            made(model, "label").input[0] = "y".into();
        }),
    ])
}

/// Whatever could be put in a constant's place when a file is run: the interface is that of the real inputs.
#[test]
fn constants_that_are_inputs_too_are_constants() -> Anything {
    let listed = |model: &mut ModelProto, name: &str, dims: &[i64]| graph(model).input.push(value(name, dims));
    let with = |change: &dyn Fn(&mut ModelProto)| {
        let mut other = tailed();
        made(&mut other, "z").input.pop();
        change(&mut other);
        loaded(&other)
    };
    let (plain, shared) = (with(&|_| ())?, with(&|model| listed(model, "shared", &[3]))?);
    let weight = with(&|model| listed(model, "w2", &[2, 2]))?;
    for (a, b) in [&plain, &shared, &weight].into_iter().flat_map(|a| [(a, &plain), (a, &shared), (a, &weight)]) {
        assert_eq!(a.check_interface(b), Ok(()));
    }
    // What they are is compared all the same, and so are inputs that are none.
    let other = with(&|model| {
        listed(model, "shared", &[3]);
        *constant(model, "shared") = floats("shared", &[3], &[0.5, 0.25, 2.0]);
    })?;
    let said = |a: &Model, b: &Model| a.check_interface(b).map_err(|difference| difference.to_string());
    for a in [&plain, &shared] {
        assert_eq!(said(a, &other), Err("\"shared\" is another constant in one than in the other".to_owned()));
    }
    let renamed = with(&|model| {
        listed(model, "w2", &[2, 2]);
        graph(model).input[0].name = Some("image".to_owned());
        let nodes = graph(model).node.iter_mut().flat_map(|node| &mut node.input);
        nodes.filter(|name| *name == "x").for_each(|name| *name = "image".to_owned());
    })?;
    assert_eq!(said(&weight, &renamed), Err("the inputs have other names: \"x\" and \"image\"".to_owned()));
    Ok(())
}

/// One operator that draws random numbers, read twice, is not two of them; nor is what a second file makes by a longer
/// way taken for the same.
#[test]
fn operators_are_matched_one_to_one() -> Anything {
    let pair = |second: &str| {
        let nodes = [
            node("Gemm", &["x", "w"], "y", &[]),
            node("RandomNormalLike", &["y"], "noise", &[]),
            node("RandomNormalLike", &["y"], "more", &[]),
            node("Sub", &["noise", second], "z", &[]),
        ];
        loaded(&model(value("x", &[0, 2]), &nodes, &[floats("w", &[2, 1], &[1.0, 2.0])], &[value("z", &[0, 1])]))
    };
    let (once, twice) = (pair("noise")?, pair("more")?);
    assert!(once.check_interface(&pair("noise")?).is_ok() && twice.check_interface(&pair("more")?).is_ok());
    for (a, b) in [(&once, &twice), (&twice, &once)] {
        let said = a.check_interface(b).err().ok_or("refused")?.to_string();
        assert!(said.contains("two parts to play"), "{said}");
    }
    Ok(())
}

/// External data are compared as what they are, wherever they lie.
#[test]
fn data_in_other_files_count() -> Anything {
    let mut outside = tailed();
    let shared = constant(&mut outside, "shared");
    shared.raw_data = None;
    shared.data_location = Some(1);
    shared.external_data = vec![entry("location", "numbers")];
    let folders = [tempfile::tempdir()?, tempfile::tempdir()?];
    for (folder, last) in folders.iter().zip([0.0_f32, 1.0]) {
        let numbers: Vec<u8> = [0.5_f32, 0.25, last].iter().flat_map(|number| number.to_le_bytes()).collect();
        std::fs::write(folder.path().join("numbers"), numbers)?;
        std::fs::write(folder.path().join("model.onnx"), outside.encode_to_vec())?;
    }
    let [same, other] = folders.each_ref().map(|folder| Model::load(&folder.path().join("model.onnx")));
    let (inside, same, other) = (loaded(&tailed())?, same?, other?);
    assert_eq!(inside.check_interface(&same), Ok(()));
    for first in [&inside, &same] {
        let said = first.check_interface(&other).err().ok_or("refused")?.to_string();
        assert_eq!(said, "\"shared\" is another constant in one than in the other");
    }
    Ok(())
}

/// Parts that are rewritten, in the file's precision and in double, leave the interface as it is.
#[test]
fn splicing_keeps_the_interface() -> Anything {
    for (original, from, to) in [(small(), "flat", "y"), (branched(), "d", "sum"), (tailed(), "h", "z")] {
        let document = Document::from_bytes(bytes(&original), None)?;
        let [from, to] = [from, to].map(|name| document.value_named(name).ok_or(name.to_owned()));
        let (from, to) = (from?, to?);
        let [inputs, outputs] = [from, to].map(|value| document.network().shape(value).clone());
        let dense =
            |rows: usize, columns: usize| Dense::new(Matrix::new(rows, columns, vec![0.5; rows * columns])?, None);
        let mut builder = Network::builder(inputs.clone());
        let g = builder.add("new", dense(1, inputs.elements())?, &[ValueId::INPUT])?;
        let h = builder.add("", Relu, &[g])?;
        let y = builder.add("", dense(outputs.elements(), 1)?, &[h])?;
        let part = Part { from, to: vec![to], network: builder.finish(vec![y])? };
        for float in [None, Some(Float::F64)] {
            let spliced = document.splice(std::slice::from_ref(&part), float)?.made;
            let spliced = Document::from_bytes(spliced.to_bytes()?, None)?;
            assert_eq!(Model::from(document.clone()).check_interface(&spliced.into()), Ok(()));
        }
    }
    Ok(())
}

#[test]
fn a_batch_may_be_fixed_in_one_file() -> Anything {
    let with_batch = |samples: i64| {
        let mut model = tailed();
        graph(&mut model).input[0] = value("x", &[samples, 3]);
        loaded(&model)
    };
    assert_eq!(with_batch(0)?.check_interface(&with_batch(4)?), Ok(()));
    let said = with_batch(2)?.check_interface(&with_batch(4)?).err().ok_or("refused")?.to_string();
    assert_eq!(said, "the inputs have other shapes: [N=2, 3] and [N=4, 3]");
    Ok(())
}

#[test]
fn an_nnet_file_is_what_it_is_as_an_onnx_file() -> Anything {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("a.nnet"), NNET)?;
    let nnet = Model::load(&folder.path().join("a.nnet"))?;
    let onnx = Model::from(Document::from_bytes(nnet.to_onnx()?, None)?);
    for (a, b) in [(&nnet, &onnx), (&onnx, &nnet), (&nnet, &nnet)] {
        assert_eq!(a.check_interface(b), Ok(()));
    }
    assert!(nnet.check_interface(&loaded(&small())?).is_err());
    assert_eq!(nnet.network().input(), &Shape::new([2])?);
    Ok(())
}
