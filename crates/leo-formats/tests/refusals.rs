//! ONNX files that are refused, or not rewritten, and why.

mod support;

use std::path::Path;

use leo_formats::onnx::proto::{AttributeProto, FunctionProto, ModelProto, NodeProto, SparseTensorProto, TensorProto};
use leo_formats::onnx::{Document, Part};
use leo_formats::{Format, Model};
use leo_network::ValueId;
use support::{bytes, float, floats, graph, int, ints, model, node, read, small, tensor, value};

type Anything = Result<(), Box<dyn std::error::Error>>;

fn refusal(change: impl FnOnce(&mut ModelProto)) -> String {
    let mut model = small();
    change(&mut model);
    read(&model).map(|_| ()).expect_err("must be refused")
}

fn node_at(model: &mut ModelProto, index: usize) -> &mut NodeProto {
    &mut graph(model).node[index]
}

/// A refusal of a change to a network with convolutions.
fn convolutional_refusal(change: impl FnOnce(&mut ModelProto)) -> String {
    let mut model = support::convolutional();
    change(&mut model);
    read(&model).map(|_| ()).expect_err("must be refused")
}

#[test]
fn windows_that_do_not_fit_are_named() {
    assert!(read(&support::convolutional()).is_ok(), "it is fine as it is");
    let with = |index: usize, attributes: Vec<AttributeProto>| {
        convolutional_refusal(|model| node_at(model, index).attribute = attributes)
    };
    let pads = |pads: &[i64]| support::list("pads", pads);
    let upper = AttributeProto {
        name: Some("auto_pad".into()),
        r#type: Some(3),
        s: Some(b"SAME_UPPER".to_vec().into()),
        ..AttributeProto::default()
    };
    let both = with(0, vec![int("group", 2), pads(&[1, 1, 1, 1]), upper]);
    assert_eq!(both, "node \"make_g\" (Conv): it has both \"auto_pad\" and \"pads\", of which programs take either");
    let same = |more: AttributeProto| {
        let upper = AttributeProto {
            name: Some("auto_pad".into()),
            r#type: Some(3),
            s: Some(b"SAME_UPPER".to_vec().into()),
            ..AttributeProto::default()
        };
        with(0, vec![int("group", 2), upper, more])
    };
    let dilated = same(support::list("dilations", &[2, 2]));
    assert!(
        dilated.ends_with("it has both \"auto_pad\" and dilations, which programs pad in different ways"),
        "{dilated}"
    );
    let apart = same(support::list("strides", &[5, 5]));
    let said = "it has \"auto_pad\" where windows leave positions out, which programs do in different ways";
    assert!(apart.ends_with(said), "{apart}");
    let ceil = same(int("ceil_mode", 1));
    assert!(ceil.ends_with("it has both \"auto_pad\" and \"ceil_mode\", of which programs take either"), "{ceil}");
    let strides = with(0, vec![int("group", 2), support::list("strides", &[0, 1])]);
    assert_eq!(strides, "node \"make_g\" (Conv): it has a stride, a dilation or a kernel of 0");
    let negative = with(0, vec![int("group", 2), pads(&[-1, 0, 0, 0])]);
    assert_eq!(negative, "node \"make_g\" (Conv): it has \"pads\" that are negative, or not 4 numbers");
    let overflow = with(0, vec![int("group", 2), pads(&[i64::MAX, 0, 0, 0])]);
    assert_eq!(overflow, "node \"make_g\" (Conv): more padding than Leo takes");
    let groups = with(0, vec![int("group", 3)]);
    assert_eq!(groups, "node \"make_g\" (Conv): 4 channels cannot be made in 3 groups");
    let wide = with(2, vec![support::list("kernel_shape", &[5, 5])]);
    assert_eq!(wide, "node \"make_m\" (MaxPool): a window that spans 5 positions does not fit on 4 with 0 of padding");
    let lonely = with(2, vec![support::list("kernel_shape", &[2, 2]), pads(&[2, 2, 2, 2])]);
    assert_eq!(lonely, "node \"make_m\" (MaxPool): padding as wide as the window, of which nothing is the largest");
    let far = with(2, vec![support::list("kernel_shape", &[1 << 40, 1 << 40])]);
    assert!(far.starts_with("node \"make_m\" (MaxPool): "), "{far}");
    let weights = convolutional_refusal(|model| tensor(model, "w1").dims = vec![4, 3, 3, 1]);
    assert!(weights.starts_with("node \"make_g\" (Conv): "), "{weights}");
    let open = convolutional_refusal(|model| graph(model).input[0] = value("x", &[0, 2, 0, 0]));
    let said = "give the shape with --shape, such as --shape N=224";
    assert_eq!(open, format!("input \"x\": it has no fixed size along axis 2 (\"N\"); {said}"));
}

#[test]
fn what_cannot_be_read_is_named() {
    let lstm = refusal(|model| node_at(model, 1).op_type = Some("LSTM".into()));
    let said = "the operator is not supported here; docs/supported.md says which are, and where";
    assert_eq!(lstm, format!("node \"make_g\" (LSTM): {said}"));
    let tanh = refusal(|model| node_at(model, 2).op_type = Some("Tanh".into()));
    assert_eq!(tanh, format!("node \"make_h\" (Tanh): {said}"));
    let square = refusal(|model| {
        *node_at(model, 2) = node("Mul", &["g", "g"], "h", &[]);
    });
    assert_eq!(square, "node \"make_h\" (Mul): it multiplies two computed values, which no affine map does");
    let unnamed = refusal(|model| {
        node_at(model, 1).op_type = Some("LSTM".into());
        node_at(model, 1).name = None;
    });
    assert!(unnamed.starts_with("the node that makes \"g\" (LSTM): "), "{unnamed}");
    assert_eq!(
        refusal(|model| tensor(model, "w1").raw_data = Some([0xff; 24].to_vec().into())),
        "node \"make_g\" (Gemm): the weight matrix contains NaN; every weight must be finite"
    );
    assert_eq!(
        refusal(|model| tensor(model, "b1").raw_data = Some(f32::INFINITY.to_le_bytes().repeat(2).into())),
        "node \"make_g\" (Gemm): the bias contains inf; every weight must be finite"
    );
    assert_eq!(
        refusal(|model| tensor(model, "w1").dims = vec![3, 2]),
        "node \"make_g\" (Gemm): the weights take vectors of length 2, the input has axes [N, 3]"
    );
    assert_eq!(
        refusal(|model| tensor(model, "w1").dims = vec![1 << 40, 1 << 40]),
        "node \"make_g\" (Gemm): tensor \"w1\" has the shape [1099511627776, 1099511627776] but 6 numbers"
    );
    assert_eq!(
        refusal(|model| graph(model).input[0] = value("x", &[0, 1 << 40])),
        "input \"x\": a tensor of shape [1099511627776] is larger than the 16777216 elements that Leo takes"
    );
    assert_eq!(
        refusal(|model| node_at(model, 1).input[0] = "y".into()),
        "node \"make_g\" depends on itself: the graph has a cycle"
    );
    assert_eq!(
        refusal(|model| node_at(model, 1).input[0] = "nowhere".into()),
        "node \"make_g\" reads \"nowhere\", which nothing makes"
    );
    assert_eq!(refusal(|model| node_at(model, 1).output[0] = "x".into()), "\"x\" is made twice");
    assert_eq!(refusal(|model| model.opset_import[0].version = Some(6)), "uses operator set 6; Leo knows 7 to 28");
    assert_eq!(refusal(|model| model.opset_import.clear()), "does not say which operator set it uses");
    let twice = |model: &mut ModelProto, version: i64| {
        let mut other = model.opset_import[0].clone();
        other.version = Some(version);
        model.opset_import.push(other);
    };
    let refused = refusal(|model| twice(model, 14));
    assert_eq!(refused, "uses several versions of ONNX's operator set at once");
    let mut same = small();
    twice(&mut same, 13);
    assert!(read(&same).is_ok(), "scikit-learn's exporter names it twice");
    assert_eq!(
        refusal(|model| graph(model).input.push(value("z", &[0, 3]))),
        "has 2 inputs [\"x\", \"z\"]; Leo takes networks with one"
    );
    assert_eq!(
        refusal(|model| node_at(model, 0).attribute.push(int("axis", 0))),
        "node \"make_flat\" (Flatten): it mixes the samples of a batch, or cuts them apart"
    );
}

/// A file of the cases that people sent in, where there are any beside the project.
fn case(name: &str) -> Option<Result<Model, String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases").join(name);
    if !path.exists() {
        eprintln!("skipped: there is no shared/cases/{name} beside the project");
        return None;
    }
    Some(Model::load(&path).map_err(|error| error.problem.to_string()))
}

/// Why the network of a file that can be read cannot be replaced.
fn hindrance(document: &Document) -> String {
    document.check_rewritable().expect_err("something is in the way").to_string()
}

#[test]
fn dup_a_constant_that_is_there_twice_is_refused() {
    let twice = "constant \"b1\" is there twice; programs take the first, the last or neither";
    assert_eq!(refusal(|model| graph(model).initializer.push(floats("b1", &[2], &[9.0, 9.0]))), twice);
    let sparse = SparseTensorProto { values: Some(floats("b1", &[1], &[9.0])), ..SparseTensorProto::default() };
    assert_eq!(refusal(|model| graph(model).sparse_initializer.push(sparse)), twice);
    let inputs = refusal(|model| graph(model).input.push(value("x", &[0, 3])));
    assert_eq!(inputs, "input \"x\" is there twice; programs take the first, the last or neither");
    let said = case("dup.onnx").map(|read| read.map(drop).expect_err("must be refused"));
    assert!(said.is_none_or(|said| said.starts_with("constant \"W\" is there twice")));
}

#[test]
fn numbers_in_two_fields_are_refused() {
    let refused = refusal(|model| tensor(model, "b1").float_data = vec![7.0, 7.0]);
    assert_eq!(
        refused,
        "node \"make_g\" (Gemm): tensor \"b1\" has its numbers in several places: float_data, raw_data"
    );
    let refused = refusal(|model| tensor(model, "b1").data_location = Some(1));
    assert!(refused.ends_with("has its numbers in several places: raw_data, external_data"), "{refused}");
}

#[test]
fn a_function_cannot_stand_for_an_operator_that_leo_knows() {
    let function =
        FunctionProto { name: Some("Scaler".into()), domain: Some("ai.onnx.ml".into()), ..FunctionProto::default() };
    let refused = refusal(|model| model.functions.push(function.clone()));
    assert_eq!(refused, "defines the operator \"Scaler\" of ONNX's own set anew, which Leo does not read");
    let mut other = small();
    other.functions.push(FunctionProto { name: Some("Other".into()), ..function });
    assert!(read(&other).is_ok());
}

/// It is the constant that it is, and once the file is rewritten, nobody can put weights of the old size in its place.
#[test]
fn ovr_a_weight_that_is_an_input_too_is_a_constant() -> Anything {
    let mut listed = small();
    graph(&mut listed).input.push(value("w1", &[2, 3]));
    graph(&mut listed).input.push(value("b1", &[2]));
    let document = read(&listed)?;
    assert_eq!((document.listed_constants(), read(&small())?.listed_constants()), (2, 0));
    assert_eq!(document.network(), read(&small())?.network());
    assert_eq!(bytes(document.model()), bytes(&listed), "read and written, it is as it was");
    assert_eq!(bytes(document.clone().with_fixed_constants().model()), bytes(&small()));
    let inputs = |made: &Document| -> Vec<String> {
        made.model().graph.iter().flat_map(|graph| &graph.input).map(|input| input.name().to_owned()).collect()
    };
    let y = document.network().outputs().to_vec();
    let part = Part { from: ValueId::INPUT, to: y, network: document.network().clone() };
    assert_eq!(inputs(&document.splice(&[part], None)?.made), ["x"]);
    let g = document.value_named("g").ok_or("g")?;
    let relu = document.value_named("h").ok_or("h")?;
    let kept = [(g, vec![1]), (relu, vec![1])].into();
    assert_eq!(inputs(&document.narrow(&kept, &Default::default())?.made), ["x"]);
    // Before version 4 of the format, all constants have to be listed, and none can be replaced.
    listed.ir_version = Some(3);
    assert_eq!(read(&listed)?.listed_constants(), 0);
    assert_eq!(bytes(read(&listed)?.with_fixed_constants().model()), bytes(&listed));
    Ok(())
}

/// Between two casts numbers overflow, and without them they would not.
#[test]
fn sx_quant_numbers_cut_down_to_half_precision_are_not_rewritten() -> Anything {
    let cast = |from: &str, to: &str, code: i64| node("Cast", &[from], to, &[int("to", code)]);
    let mut quantised = small();
    node_at(&mut quantised, 1).input[0] = "wide".into();
    graph(&mut quantised).node.extend([cast("flat", "narrow", 10), cast("narrow", "wide", 1)]);
    assert_eq!(
        hindrance(&read(&quantised)?),
        "cannot be rewritten: node \"make_g\" reads numbers that were cut down to f16 and cast back, which a network \
         without that would not do alike"
    );
    // A network that is in half precision from one cast to the other is one network.
    let halves = |name: &str| TensorProto { data_type: Some(10), ..floats(name, &[], &[]) };
    let mut half = small();
    for name in ["w1", "b1", "w2", "b2"] {
        let of = tensor(&mut half, name);
        let numbers = of.raw_data().len() / 4;
        *of = TensorProto { raw_data: Some(vec![0; 2 * numbers].into()), dims: of.dims.clone(), ..halves(name) };
    }
    node_at(&mut half, 1).input[0] = "narrow".into();
    node_at(&mut half, 4).input[0] = "wide".into();
    graph(&mut half).node.extend([cast("flat", "narrow", 10), cast("y", "wide", 1)]);
    assert!(read(&half)?.check_rewritable().is_ok());

    if let Some(Format::Onnx(document)) = case("sx_quant.onnx").transpose()?.map(|model| model.format().clone()) {
        assert!(hindrance(&document).contains("cut down to f16"));
    }
    Ok(())
}

#[test]
fn batch_normalisation_in_training_is_refused_before_opset_14_too() {
    let training = refusal(|model| {
        model.opset_import[0].version = Some(9);
        let mut normalise = node("BatchNormalization", &["g", "b1", "b1", "b1", "ones"], "h", &[]);
        normalise.output.extend(["mean", "variance", "saved_mean", "saved_variance"].map(String::from));
        *node_at(model, 2) = normalise;
        graph(model).initializer.push(floats("ones", &[2], &[1.0, 1.0]));
    });
    assert_eq!(training, "node \"make_h\" (BatchNormalization): it is in training mode");
}

#[test]
fn attributes_are_there_once_and_of_their_kind() {
    let alpha = |value: f32| float("alpha", value);
    let twice = refusal(|model| node_at(model, 1).attribute.extend([alpha(1.0), alpha(5.0)]));
    assert_eq!(twice, "node \"make_g\" (Gemm): it has the attribute \"alpha\" twice");
    let in_the_tail =
        refusal(|model| *node_at(model, 4) = node("Softmax", &["y"], "p", &[int("axis", 1), int("axis", 0)]));
    assert_eq!(in_the_tail, "node \"make_p\" (Softmax): it has the attribute \"axis\" twice");
    let whole = refusal(|model| node_at(model, 1).attribute.push(int("alpha", 2)));
    assert_eq!(whole, "node \"make_g\" (Gemm): it has an attribute \"alpha\" of kind 2 that should be of kind 1");
    let unsaid = refusal(|model| {
        node_at(model, 1).attribute.push(AttributeProto { r#type: None, ..alpha(7.0) });
    });
    assert_eq!(unsaid, "node \"make_g\" (Gemm): it has an attribute \"alpha\" of kind 0 that should be of kind 1");
    let two_values = refusal(|model| {
        let values = [float("value_float", 1.0), int("value_int", 2)];
        graph(model).node.push(node("Constant", &[], "c", &values));
        *node_at(model, 2) = node("Add", &["g", "c"], "h", &[]);
    });
    assert_eq!(two_values, "node \"make_c\" (Constant): it has several values");
}

#[test]
fn the_size_of_the_batch_is_not_cast_to_something_else() {
    let refused = refusal(|model| {
        let reshape = [
            node("Shape", &["x"], "shape", &[]),
            node("Gather", &["shape", "first"], "rows", &[]),
            node("Cast", &["rows"], "truth", &[int("to", 9)]),
            node("Cast", &["truth"], "one", &[int("to", 7)]),
            node("Concat", &["one", "rest"], "target", &[int("axis", 0)]),
            node("Reshape", &["x", "target"], "flat", &[]),
        ];
        graph(model).node.splice(0..1, reshape);
        graph(model).initializer.extend([ints("first", &[0]), ints("rest", &[-1])]);
    });
    assert_eq!(refused, "node \"make_truth\" (Cast): it casts the size of the batch to type 9");
}

#[test]
fn arithmetic_with_an_empty_constant_does_no_harm() {
    let refused = refusal(|model| {
        graph(model).initializer.extend([floats("none", &[2, 0], &[]), floats("one", &[1], &[1.0])]);
        graph(model).node.push(node("Mul", &["none", "one"], "product", &[]));
        node_at(model, 2).op_type = Some("Add".into());
        node_at(model, 2).input.push("product".into());
    });
    assert!(refused.starts_with("node \"make_h\" (Add): "), "{refused}");
}

/// Without axes, Squeeze takes away the axis of a batch that happens to have one sample, and only of such a batch.
#[test]
fn squeeze_without_axes_is_not_for_batches_of_any_size() -> Anything {
    let squeezed = |batch: i64, axes: &[&str]| {
        let inputs = [&["x"], axes].concat();
        let nodes = [node("Squeeze", &inputs, "s", &[]), node("Relu", &["s"], "y", &[])];
        read(&model(value("x", &[batch, 1, 3]), &nodes, &[ints("axes", &[1])], &[value("y", &[batch, 3])]))
    };
    assert!(squeezed(0, &["axes"]).is_ok() && squeezed(4, &[]).is_ok());
    let refused = squeezed(0, &[]).err().ok_or("a batch of one sample would lose its axis")?;
    assert!(refused.contains("Squeeze") || refused.contains("make_s"), "{refused}");
    Ok(())
}
