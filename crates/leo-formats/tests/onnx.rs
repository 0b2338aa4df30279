//! ONNX files: what is read, and what is kept.

mod support;

use leo_formats::onnx::proto::{
    AttributeProto, FunctionProto, GraphProto, NodeProto, SparseTensorProto, TensorProto, TrainingInfoProto,
};
use leo_formats::onnx::{Document, Export, Float};
use leo_network::op::{Dense, Matrix};
use leo_network::{Network, Shape, ValueId};
use support::{
    branched, bytes, entry, floats, graph, int, ints, model, node, outputs, read, scaler, small, tensor, value,
};

type Anything = Result<(), Box<dyn std::error::Error>>;

#[test]
fn scalers_are_affine() -> Anything {
    let scaled = |shape: &[i64], scaler| model(value("x", shape), &[scaler], &[], &[value("y", shape)]);
    let scaler = |offset: &[f32], scale: &[f32]| scaler("x", "y", offset, scale);
    let each = read(&scaled(&[0, 2], scaler(&[1.0, 2.0], &[3.0, 0.5])))?;
    assert_eq!(outputs(&each, &[2.0, 2.0, 0.0, 4.0], &[2, 2])?.to_vec::<f32>(), [3.0, 0.0, -3.0, 1.0]);
    let all = read(&scaled(&[0, 2], scaler(&[1.0], &[2.0])))?;
    assert_eq!(outputs(&all, &[2.0, 3.0], &[1, 2])?.to_vec::<f32>(), [2.0, 4.0]);

    let refused = |shape: &[i64], scaler| read(&scaled(shape, scaler)).map(|_| ()).expect_err("must be refused");
    let uneven = refused(&[0, 2], scaler(&[1.0], &[2.0, 3.0]));
    assert!(uneven.contains("(Scaler): it has 1 offsets and 2 scales"), "{uneven}");
    for (shape, count) in [(&[0, 2, 2][..], 2), (&[0, 2], 3), (&[0, 1], 2), (&[0, 2], 0)] {
        let numbers = vec![1.0; count];
        let complaint = refused(shape, scaler(&numbers, &numbers));
        assert!(complaint.contains("(Scaler): "), "{shape:?} {count}: {complaint}");
    }
    // The same name in another domain means something else.
    let mut foreign = scaler(&[1.0], &[2.0]);
    foreign.domain = Some("com.example".into());
    assert!(read(&scaled(&[0, 2], foreign))?.network().nodes().is_empty());
    Ok(())
}

#[test]
fn external_data_stay_inside_the_folder() -> Anything {
    let folder = tempfile::tempdir()?;
    let inside = folder.path().join("model");
    std::fs::create_dir(&inside)?;
    std::fs::write(folder.path().join("secret.bin"), [0; 24])?;
    std::fs::write(inside.join("w1.bin"), [1.0_f32, -2.0, 0.5, -1.0, 0.25, 3.0].map(f32::to_le_bytes).concat())?;
    #[cfg(unix)]
    std::os::unix::fs::symlink("../secret.bin", inside.join("link.bin"))?;
    let located = |location: &str, length: Option<&str>| {
        let mut model = small();
        let w1 = tensor(&mut model, "w1");
        w1.raw_data = None;
        w1.data_location = Some(1);
        w1.external_data = vec![entry("location", location)];
        w1.external_data.extend(length.map(|length| entry("length", length)));
        if location == "twice.bin" {
            w1.external_data.push(entry("location", "w1.bin"));
        }
        Document::from_bytes(bytes(&model), Some(&inside)).map_err(|error| error.to_string())
    };
    let read_back = located("w1.bin", Some("24"))?;
    assert_eq!(*read_back.network(), *read(&small())?.network());
    let written = Document::from_bytes(read_back.to_bytes()?, None)?;
    assert_eq!(bytes(written.model()), bytes(&small()), "written back, the file stands alone");
    assert_eq!(read_back.external_files(), [inside.join("w1.bin")]);
    assert!(written.external_files().is_empty());
    let absolute = folder.path().join("secret.bin").display().to_string();
    for location in ["../secret.bin", "link.bin", ".", "", &absolute] {
        let error = located(location, Some("24")).map(|_| ()).expect_err(location);
        assert!(error.contains("which is not a file inside the model's folder"), "{location}: {error}");
    }
    let mut longer = std::fs::read(inside.join("w1.bin"))?;
    longer.extend([0; 4]);
    std::fs::write(inside.join("w1.bin"), longer)?;
    assert_eq!(*located("w1.bin", None)?.network(), *read(&small())?.network(), "the shape says how much to read");
    assert!(located("twice.bin", None).map(|_| ()).expect_err("twice").contains("\"location\" is said twice"));
    assert!(located("none.bin", Some("24")).map(|_| ()).expect_err("missing").contains("does not exist"));
    assert!(located("w1.bin", Some("2400000000000")).map(|_| ()).expect_err("short").contains("is too short"));
    Ok(())
}

/// Whoever overwrites a file that a tensor has its data in changes the model, wherever that tensor is.
#[test]
fn every_file_with_data_is_known() -> Anything {
    let folder = tempfile::tempdir()?;
    let external = |file: &str| TensorProto {
        data_location: Some(1),
        external_data: vec![entry("location", file)],
        ..floats("w", &[1], &[])
    };
    let mut model = small();
    // Not read, but kept: a function that nothing calls, with a graph in it.
    let with_tensor = |file: &str| AttributeProto { t: Some(external(file)), ..int(file, 0) };
    let inner = GraphProto {
        initializer: vec![external("inner.bin"), floats("here", &[1], &[1.0])],
        sparse_initializer: vec![SparseTensorProto { indices: Some(external("sparse.bin")), ..Default::default() }],
        node: vec![node("Constant", &[], "c", &[with_tensor("deep.bin")])],
        ..GraphProto::default()
    };
    let outer = AttributeProto { g: Some(Box::new(inner)), ..int("body", 0) };
    let function = FunctionProto {
        domain: Some("mine".into()),
        node: vec![node("Constant", &[], "c", &[with_tensor("function.bin"), with_tensor("deep.bin"), outer])],
        ..FunctionProto::default()
    };
    model.functions.push(function);
    let training = GraphProto { initializer: vec![external("training.bin")], ..GraphProto::default() };
    model.training_info.push(TrainingInfoProto { algorithm: Some(training), ..TrainingInfoProto::default() });
    let document = Document::from_bytes(bytes(&model), Some(folder.path()))?;
    let names = ["deep.bin", "function.bin", "inner.bin", "sparse.bin", "training.bin"];
    assert_eq!(document.external_files(), names.map(|name| folder.path().join(name)));
    Ok(())
}

#[test]
fn what_is_read_is_written_back_to_the_byte() -> Anything {
    for model in [small(), branched()] {
        assert_eq!(read(&model)?.to_bytes()?, bytes(&model));
    }
    Ok(())
}

#[test]
fn nodes_may_stand_in_any_order() -> Anything {
    let mut shuffled = branched();
    graph(&mut shuffled).node.reverse();
    assert_eq!(read(&shuffled)?.network().parameters(), read(&branched())?.network().parameters());
    Ok(())
}

#[test]
fn values_are_found_by_any_of_their_names() -> Anything {
    let mut original = small();
    graph(&mut original).node.push(node("Identity", &["h"], "also_h", &[]));
    graph(&mut original).output.push(value("also_h", &[0, 2]));
    let document = read(&original)?;
    for id in document.network().values() {
        assert_eq!(document.name_of(id).and_then(|name| document.value_named(name)), Some(id));
    }
    assert_eq!(document.value_named("also_h"), document.value_named("h"));
    assert_eq!(document.value_named("x"), Some(ValueId::INPUT));
    assert_eq!(document.value_named("w1"), None, "a constant is no value of the network");
    assert_eq!(document.value_named("nowhere"), None);
    Ok(())
}

#[test]
fn metadata_are_kept_and_replaced() -> Anything {
    let document = read(&small())?.with_metadata("first", "1").with_metadata("second", "2").with_metadata("first", "3");
    let read_back = Document::from_bytes(document.to_bytes()?, None)?;
    let found = ["first", "second", "third"].map(|key| read_back.metadata(key));
    assert_eq!(found, [Some("3"), Some("2"), None]);
    assert_eq!(read_back.model().metadata_props.len(), 2);
    Ok(())
}

#[test]
fn networks_made_by_hand_become_files() -> Anything {
    let mut builder = Network::builder(Shape::new([2, 3])?);
    let dense = Dense::new(Matrix::new(2, 3, vec![1.0, 0.5, -1.0, 2.0, 0.25, 0.0])?, Some(vec![1.0, -1.0]))?;
    let y = builder.add("fc", dense, &[ValueId::INPUT])?;
    let network = builder.finish(vec![y, ValueId::INPUT])?;
    let export = Export {
        float: Float::F32,
        input: "in".into(),
        outputs: vec!["out".into(), "same".into()],
        metadata: vec![("recipe".into(), "by hand".into())],
    };
    let document = Document::from_network(&network, &export)?;
    assert_eq!(document.model().metadata_props[0].value(), "by hand");
    let again = Document::from_bytes(document.to_bytes()?, None)?;
    let Some(dense) = again.network().nodes()[0].op().as_dense() else { panic!("the product comes first") };
    assert_eq!(dense.weight().row(0), [1.0, 0.5, -1.0]);
    let duplicate = Export { outputs: vec!["in".into(), "same".into()], ..export };
    assert!(Document::from_network(&network, &duplicate).is_err());
    Ok(())
}

#[test]
fn a_file_without_layers_is_a_network_too() -> Anything {
    let document =
        read(&model(value("x", &[0, 2]), &[node("Identity", &["x"], "y", &[])], &[], &[value("y", &[0, 2])]))?;
    assert!(document.network().nodes().is_empty());
    assert_eq!(outputs(&document, &[1.0, 2.0], &[1, 2])?.iter().collect::<Vec<_>>(), [1.0, 2.0]);
    let constant = model(
        value("x", &[0, 2]),
        &[node("Identity", &["c"], "y", &[])],
        &[floats("c", &[1], &[1.0])],
        &[value("y", &[1])],
    );
    assert!(read(&constant).expect_err("no network").contains("does not depend on the input"));
    Ok(())
}

/// Of what comes after a network, only some keeps its answer: the place of its largest number.
#[test]
fn which_tails_keep_the_largest_number_in_its_place() -> Anything {
    let axis = |axis: i64| int("axis", axis);
    let picked = |data: &str, place: &str| NodeProto {
        domain: Some("ai.onnx.ml".into()),
        ..node("ArrayFeatureExtractor", &[data, place], "out", &[])
    };
    let label = || node("ArgMax", &["y"], "label", &[axis(1)]);
    for (dims, tail, expected) in [
        (&[0, 3][..], vec![], true),
        (&[0, 3], vec![node("Softmax", &["y"], "out", &[axis(1)])], true),
        (&[0, 3], vec![node("Sigmoid", &["y"], "out", &[])], true),
        (&[0, 3], vec![node("ArgMax", &["y"], "out", &[axis(1)])], true),
        (&[0, 3], vec![label(), picked("names", "label")], true),
        (&[0, 3], vec![picked("y", "places")], false),
        (&[0, 3], vec![node("ArgMin", &["y"], "out", &[axis(1)])], false),
        (&[0, 3], vec![node("Neg", &["y"], "out", &[])], false),
        (&[0, 3], vec![node("Softmax", &["y"], "p", &[axis(1)]), node("Neg", &["p"], "out", &[])], false),
        (&[0, 2, 3], vec![], false),
        (&[0, 2, 3], vec![node("Softmax", &["y"], "out", &[axis(2)])], false),
    ] {
        let last = if tail.is_empty() { "y" } else { "out" };
        let nodes = [vec![node("MatMul", &["x", "w"], "y", &[])], tail].concat();
        let constants = [floats("w", &[3, 3], &[0.5; 9]), ints("names", &[7, 8, 9]), ints("places", &[1, 2])];
        let document = read(&model(value("x", dims), &nodes, &constants, &[value(last, dims)]))?;
        assert_eq!(
            document.keeps_largest(),
            expected,
            "{dims:?} {:?}",
            nodes[1..].iter().map(|node| node.op_type()).collect::<Vec<_>>()
        );
    }
    Ok(())
}
