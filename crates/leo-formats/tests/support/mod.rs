//! ONNX files made by hand, for tests.

#![allow(dead_code, reason = "each test uses a part of it")]

use leo_formats::Model;
use leo_formats::onnx::Document;
use leo_formats::onnx::proto::{
    AttributeProto, Dimension, DimensionValue, GraphProto, ModelProto, NodeProto, OperatorSetIdProto,
    StringStringEntryProto, TensorProto, TensorShapeProto, TensorType, TypeProto, TypeValue, ValueInfoProto,
};
use leo_network::Array;
use prost::Message;

/// ONNX's number for single precision.
pub const FLOAT: i32 = 1;

/// ONNX's number for whole numbers of 64 bits.
pub const INT64: i32 = 7;

/// ONNX's number for double precision.
pub const DOUBLE: i32 = 11;

/// A tensor of singles.
pub fn floats(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        data_type: Some(FLOAT),
        dims: dims.to_vec(),
        raw_data: Some(values.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<u8>>().into()),
        ..TensorProto::default()
    }
}

/// A tensor of whole numbers, in its typed field.
pub fn ints(name: &str, values: &[i64]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        data_type: Some(INT64),
        dims: vec![values.len() as i64],
        int64_data: values.to_vec(),
        ..TensorProto::default()
    }
}

/// An attribute that is a whole number.
pub fn int(name: &str, value: i64) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(2), i: Some(value), ..AttributeProto::default() }
}

/// An attribute that is a float.
pub fn float(name: &str, value: f32) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(1), f: Some(value), ..AttributeProto::default() }
}

/// An attribute that is a tensor, as that of Constant.
pub fn tensor_value(tensor: TensorProto) -> AttributeProto {
    AttributeProto { name: Some("value".into()), r#type: Some(4), t: Some(tensor), ..AttributeProto::default() }
}

/// An attribute of floats.
pub fn float_list(name: &str, values: &[f32]) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(6), floats: values.to_vec(), ..AttributeProto::default() }
}

/// An attribute of whole numbers.
pub fn list(name: &str, values: &[i64]) -> AttributeProto {
    AttributeProto { name: Some(name.into()), r#type: Some(7), ints: values.to_vec(), ..AttributeProto::default() }
}

/// A key and its value.
pub fn entry(key: &str, value: &str) -> StringStringEntryProto {
    StringStringEntryProto { key: Some(key.into()), value: Some(value.into()) }
}

/// A node called after its output.
pub fn node(operator: &str, inputs: &[&str], output: &str, attributes: &[AttributeProto]) -> NodeProto {
    NodeProto {
        op_type: Some(operator.into()),
        name: Some(format!("make_{output}")),
        input: inputs.iter().map(ToString::to_string).collect(),
        output: vec![output.into()],
        attribute: attributes.to_vec(),
        ..NodeProto::default()
    }
}

/// An input or output of singles; 0 stands for a batch of any size.
pub fn value(name: &str, dims: &[i64]) -> ValueInfoProto {
    let dim = dims.iter().map(|&extent| Dimension {
        value: Some(if extent == 0 { DimensionValue::Param("N".into()) } else { DimensionValue::Value(extent) }),
        ..Dimension::default()
    });
    let tensor = TensorType { elem_type: Some(FLOAT), shape: Some(TensorShapeProto { dim: dim.collect() }) };
    ValueInfoProto {
        name: Some(name.into()),
        r#type: Some(TypeProto { value: Some(TypeValue::Tensor(tensor)), ..TypeProto::default() }),
        ..ValueInfoProto::default()
    }
}

/// What scikit-learn's StandardScaler becomes.
pub fn scaler(input: &str, output: &str, offset: &[f32], scale: &[f32]) -> NodeProto {
    let attributes = [float_list("offset", offset), float_list("scale", scale)];
    NodeProto { domain: Some("ai.onnx.ml".into()), ..node("Scaler", &[input], output, &attributes) }
}

/// A file with one graph.
pub fn model(
    input: ValueInfoProto,
    nodes: &[NodeProto],
    constants: &[TensorProto],
    outputs: &[ValueInfoProto],
) -> ModelProto {
    ModelProto {
        ir_version: Some(8),
        opset_import: vec![OperatorSetIdProto { domain: None, version: Some(13) }],
        graph: Some(GraphProto {
            name: Some("g".into()),
            node: nodes.to_vec(),
            initializer: constants.to_vec(),
            input: vec![input],
            output: outputs.to_vec(),
            ..GraphProto::default()
        }),
        ..ModelProto::default()
    }
}

/// `x -> W₂ relu(W₁ x + b₁) + b₂`, from 3 inputs over 2 units to 2 outputs, flattened before and squashed after.
pub fn small() -> ModelProto {
    model(
        value("x", &[0, 3, 1]),
        &[
            node("Flatten", &["x"], "flat", &[]),
            node("Gemm", &["flat", "w1", "b1"], "g", &[int("transB", 1)]),
            node("Relu", &["g"], "h", &[]),
            node("Gemm", &["h", "w2", "b2"], "y", &[int("transB", 1)]),
            node("Sigmoid", &["y"], "p", &[]),
        ],
        &[
            floats("w1", &[2, 3], &[1.0, -2.0, 0.5, -1.0, 0.25, 3.0]),
            floats("b1", &[2], &[0.5, -0.5]),
            floats("w2", &[2, 2], &[1.0, 2.0, -1.0, 0.5]),
            floats("b2", &[2], &[0.0, 1.0]),
        ],
        &[value("p", &[0, 2])],
    )
}

/// A convolution in groups, pools, a transposed convolution, parts of values side by side, and a dense layer.
pub fn convolutional() -> ModelProto {
    let window = [list("kernel_shape", &[2, 2]), list("strides", &[2, 2])];
    let twice = [list("strides", &[2, 2])];
    let kernel = [int("group", 2), list("pads", &[1, 1, 1, 1]), list("strides", &[1, 1])];
    let side_by_side = [int("axis", 1)];
    model(
        value("x", &[0, 2, 4, 4]),
        &[
            node("Conv", &["x", "w1", "b1"], "g", &kernel),
            node("Relu", &["g"], "h", &[]),
            node("MaxPool", &["h"], "m", &window),
            node("AveragePool", &["h"], "a", &window),
            node("Slice", &["m", "one", "four", "one"], "s", &[]),
            node("Concat", &["s", "a"], "c", &side_by_side),
            node("Relu", &["c"], "r", &[]),
            node("ConvTranspose", &["r", "w2"], "t", &twice),
            node("Mul", &["t", "half"], "u", &[]),
            node("Concat", &["u", "x"], "v", &side_by_side),
            node("Flatten", &["v"], "f", &[]),
            node("Gemm", &["f", "w3"], "y", &[int("transB", 1)]),
        ],
        &[
            floats("w1", &[4, 1, 3, 3], &[0.25; 36]),
            floats("b1", &[4], &[0.5, -9.0, 0.0, 1.0]),
            floats("w2", &[7, 2, 2, 2], &[-0.5; 56]),
            floats("w3", &[3, 64], &[0.125; 192]),
            ints("one", &[1]),
            ints("four", &[4]),
            floats("half", &[1, 2, 1, 1], &[0.5, 2.0]),
        ],
        &[value("y", &[0, 3])],
    )
}

/// A file with branches, layout changes, constants in every way, and two outputs.
pub fn branched() -> ModelProto {
    model(
        value("x", &[0, 2, 2]),
        &[
            node("Transpose", &["x"], "t", &[list("perm", &[0, 2, 1])]),
            node("Shape", &["t"], "s", &[]),
            node("Gather", &["s", "zero"], "n", &[]),
            node("Concat", &["n", "rest"], "target", &[int("axis", 0)]),
            node("Reshape", &["t", "target"], "r", &[]),
            node("Div", &["r", "scale"], "d", &[]),
            node("MatMul", &["d", "w"], "m", &[]),
            node("Add", &["m", "b"], "a", &[]),
            node("Relu", &["a"], "h", &[]),
            node("Add", &["h", "d"], "sum", &[]),
            node("BatchNormalization", &["sum", "b", "b", "b", "one"], "bn", &[]),
            node("Softmax", &["bn"], "p", &[]),
        ],
        &[
            ints("zero", &[0]),
            ints("rest", &[-1]),
            floats("scale", &[], &[255.0]),
            floats("w", &[4, 4], &std::array::from_fn::<f32, 16, _>(|i| (i as f32 * 0.7).sin())),
            floats("b", &[4], &[0.1, -0.2, 0.3, 0.4]),
            floats("one", &[4], &[1.0; 4]),
        ],
        &[value("p", &[0, 4]), value("h", &[0, 4])],
    )
}

/// The file's bytes.
pub fn bytes(model: &ModelProto) -> Vec<u8> {
    model.encode_to_vec()
}

/// The file as Leo reads it, or why it does not.
pub fn read(model: &ModelProto) -> Result<Document, String> {
    Document::from_bytes(bytes(model), None).map_err(|error| error.to_string())
}

/// The constant of a model with this name.
pub fn tensor<'a>(model: &'a mut ModelProto, name: &str) -> &'a mut TensorProto {
    graph(model).initializer.iter_mut().find(|tensor| tensor.name() == name).expect("a tensor of that name")
}

pub fn graph(model: &mut ModelProto) -> &mut GraphProto {
    model.graph.as_mut().expect("all test models have one")
}

/// What the file computes from a batch of samples.
pub fn outputs(document: &Document, samples: &[f32], shape: &[usize]) -> Result<Array, Box<dyn std::error::Error>> {
    Ok(Model::from(document.clone()).run(&Array::new(shape.to_vec(), samples.to_vec())?, None)?)
}

/// An NNet file.
pub const NNET: &str =
    "// a comment\n2,2,1,2,\n2,2,1,\n0,\n-1,-2,\n1,2,\n0.5,1,10,\n2,4,3,\n1,0,\n0,-1,\n0.25,\n0,\n1,2,\n-1,\n";

/// A file of VNN-LIB 1.
pub const VNNLIB_1: &str = "; a property\n\
    (declare-const X_0 Real)\n(declare-const X_1 Real)\n(declare-const Y_0 Real)\n\
    (assert (<= X_0 0.5))\n(assert (>= X_0 -0.5))\n(assert (and (<= -1 X_1) (<= X_1 1e1)))\n\
    (assert (or (and (>= X_0 0.1) (<= X_0 0.15) (<= Y_0 2)) (and (>= X_0 0.2) (>= Y_0 3))))\n";

/// A file of VNN-LIB 2.
pub const VNNLIB_2: &str = "(vnnlib-version <2.0>)\n(declare-network acc\n (declare-input X Real [1,3])\n\
    (declare-output Y Real [])\n)\n(assert (<= (* -1.0 X[0,0]) 0.0))\n(assert (<= X [0, 0] 50.0))\n\
    (assert (and (<= (- 5) X[0,1]) (<= X[0,1] (+ 5 (/ 1 2)))))\n(assert (== X[0,2] 2.5))\n\
    (assert (or (<= Y -3.0) (>= Y 0.0)))\n";
