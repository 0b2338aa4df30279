//! Arithmetic with constants while a file is read: either as every program does it, or refused.

mod support;

use leo_formats::onnx::proto::{NodeProto, TensorProto};
use leo_network::op::{AffineMap, Op};
use support::{DOUBLE, floats, graph, int, ints, model, node, read, value};

/// ONNX's number for whole numbers of 8 bits without a sign.
const UINT8: i32 = 2;

/// ONNX's number for whole numbers of 8 bits.
const INT8: i32 = 3;

/// ONNX's number for whole numbers of 16 bits without a sign.
const UINT16: i32 = 4;

/// ONNX's number for whole numbers of 16 bits.
const INT16: i32 = 5;

/// ONNX's number for whole numbers of 32 bits.
const INT32: i32 = 6;

/// ONNX's number for truth values.
const BOOL: i32 = 9;

/// ONNX's number for half precision.
const FLOAT16: i32 = 10;

/// ONNX's number for whole numbers of 32 bits without a sign.
const UINT32: i32 = 12;

/// ONNX's number for half precision with the exponents of single precision.
const BFLOAT16: i32 = 16;

/// A single number in the field that narrow types have.
fn narrow(name: &str, data_type: i32, number: i32) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        data_type: Some(data_type),
        dims: vec![1, 1],
        int32_data: vec![number],
        ..TensorProto::default()
    }
}

/// A single number of 64 bits.
fn wide(name: &str, number: i64) -> TensorProto {
    TensorProto { dims: vec![1, 1], ..ints(name, &[number]) }
}

/// A single number as it is in memory.
fn raw(name: &str, data_type: i32, bytes: &[u8]) -> TensorProto {
    TensorProto {
        name: Some(name.into()),
        data_type: Some(data_type),
        dims: vec![1, 1],
        raw_data: Some(bytes.to_vec().into()),
        ..TensorProto::default()
    }
}

/// The weight that these nodes make of these constants, or why not.
fn weight(nodes: &[NodeProto], constants: &[TensorProto]) -> Result<f64, String> {
    let mut file = model(value("x", &[0, 1]), nodes, constants, &[value("y", &[0, 1])]);
    graph(&mut file).node.push(node("MatMul", &["x", "w"], "y", &[]));
    let document = read(&file)?;
    let [only] = document.network().nodes() else { panic!("one layer") };
    let Some(dense) = only.op().as_dense() else { panic!("a matrix") };
    Ok(dense.weight().row(0)[0])
}

fn cast(constant: TensorProto, target: i32) -> Result<f64, String> {
    weight(
        &[node("Cast", &["k"], "cast", &[int("to", target.into())]), node("Cast", &["cast"], "w", &[int("to", 1)])],
        &[constant],
    )
}

fn arithmetic(operator: &str, x: TensorProto, y: TensorProto) -> Result<f64, String> {
    let nodes = [node(operator, &["k", "l"], "made", &[]), node("Cast", &["made"], "w", &[int("to", 1)])];
    weight(&nodes, &[x, y])
}

fn misfit(result: Result<f64, String>, operator: &str, of: &str) {
    let reason = "it computes a whole number that does not exist or does not fit its type";
    assert_eq!(result, Err(format!("node \"make_made\" ({operator}): {reason} {of}")));
}

#[test]
fn elements_that_do_not_fit_their_type_are_refused() {
    for (data_type, of, fits, element) in [
        (UINT8, "uint8", 255, 300),
        (INT8, "int8", -128, 200),
        (UINT16, "uint16", 65535, 70000),
        (INT16, "int16", -32768, -70000),
        (BOOL, "bool", 1, 2),
    ] {
        assert_eq!(cast(narrow("k", data_type, fits), 1), Ok(fits.into()));
        assert_eq!(
            cast(narrow("k", data_type, element), 1),
            Err(format!(
                "node \"make_cast\" (Cast): tensor \"k\" has an element {element} that does not fit its type {of}"
            ))
        );
    }
    assert_eq!(cast(raw("k", BOOL, &[1]), 1), Ok(1.0));
    assert!(cast(raw("k", BOOL, &[2]), 1).is_err_and(|error| error.contains("an element 2 that does not fit")));
    let unsigned = TensorProto { uint64_data: vec![1 << 32], int32_data: vec![], ..narrow("k", UINT32, 0) };
    assert!(cast(unsigned, 1).is_err_and(|error| error.contains("an element 4294967296 that does not fit")));
    assert_eq!(cast(narrow("k", FLOAT16, 0x3c00), 1), Ok(1.0));
    assert!(cast(narrow("k", FLOAT16, 0x13c00), 1).is_err_and(|error| error.ends_with("does not fit its type f16")));
}

#[test]
fn whole_numbers_that_leave_their_type_are_refused() {
    let thirty_two = |name: &str, number| narrow(name, INT32, number);
    assert_eq!(arithmetic("Mul", thirty_two("k", 30_000), thirty_two("l", 30_000)), Ok(9e8));
    misfit(arithmetic("Mul", thirty_two("k", 100_000), thirty_two("l", 100_000)), "Mul", "int32");
    misfit(arithmetic("Add", thirty_two("k", i32::MAX), thirty_two("l", 1)), "Add", "int32");
    misfit(arithmetic("Div", thirty_two("k", i32::MIN), thirty_two("l", -1)), "Div", "int32");
    misfit(arithmetic("Sub", narrow("k", UINT8, 1), narrow("l", UINT8, 2)), "Sub", "uint8");
    assert_eq!(arithmetic("Mul", wide("k", 1 << 20), wide("l", 1 << 20)), Ok(2.0_f64.powi(40)));
    misfit(arithmetic("Mul", wide("k", 1 << 32), wide("l", 1 << 32)), "Mul", "int64");
    misfit(arithmetic("Sub", wide("k", i64::MIN), wide("l", 1)), "Sub", "int64");
}

#[test]
fn whole_quotients_are_refused_where_rounding_is_not_certain() {
    assert_eq!(arithmetic("Div", wide("k", 7), wide("l", 2)), Ok(3.0));
    assert_eq!(arithmetic("Div", wide("k", -7), wide("l", -2)), Ok(3.0));
    assert_eq!(arithmetic("Div", wide("k", -6), wide("l", 2)), Ok(-3.0));
    misfit(arithmetic("Div", wide("k", -7), wide("l", 2)), "Div", "int64");
    misfit(arithmetic("Div", wide("k", 7), wide("l", 0)), "Div", "int64");
}

#[test]
fn constants_of_different_types_do_not_compute_with_one_another() {
    let reason = "it computes with constants of different types, or with truth values";
    let refused = Err(format!("node \"make_made\" (Add): {reason}"));
    assert_eq!(arithmetic("Add", wide("k", 1), narrow("l", INT32, 1)), refused);
    assert_eq!(arithmetic("Add", wide("k", 1), floats("l", &[1, 1], &[1.0])), refused);
    assert_eq!(arithmetic("Add", narrow("k", FLOAT16, 0x3c00), floats("l", &[1, 1], &[1.0])), refused);
    assert_eq!(arithmetic("Add", narrow("k", BOOL, 1), narrow("l", BOOL, 1)), refused);
    assert_eq!(
        weight(&[], &[TensorProto { name: Some("w".into()), ..wide("k", 1) }]),
        Err("node \"make_y\" (MatMul): it computes with a constant of type int64 and with floats at once".into())
    );
}

#[test]
fn half_precision_arithmetic_is_exact_or_refused() {
    let (two_thousand, one) = (narrow("k", FLOAT16, 0x6800), narrow("l", FLOAT16, 0x3c00));
    assert_eq!(arithmetic("Add", one.clone(), narrow("k", FLOAT16, 0x3c00)), Ok(2.0));
    assert_eq!(
        arithmetic("Add", two_thousand, one),
        Err("node \"make_made\" (Add): it computes a constant that is no f16, which programs round in different ways"
            .into())
    );
}

#[test]
fn casts_round_once_or_are_refused() {
    let nearly_in_the_middle = (1_i64 << 60) + (1 << 36) + 1;
    assert_eq!(cast(wide("k", nearly_in_the_middle), 1), Ok(2.0_f64.powi(60) + 2.0_f64.powi(37)));
    let sixteen = (1_i64 << 30) + (1 << 22) + 1;
    let reason = format!("it casts {sixteen} to bf16, which programs do in different ways");
    assert_eq!(cast(wide("k", sixteen), BFLOAT16), Err(format!("node \"make_cast\" (Cast): {reason}")));
    let double = 1.0 + 2.0_f64.powi(-11) + 2.0_f64.powi(-40);
    assert!(cast(raw("k", DOUBLE, &double.to_le_bytes()), FLOAT16).is_err_and(|error| error.contains("to f16, which")));
    assert_eq!(cast(wide("k", 2049), FLOAT16), Ok(2048.0));
}

#[test]
fn casts_to_whole_numbers_that_do_not_fit_are_refused() {
    let single = |number| floats("k", &[1, 1], &[number]);
    assert_eq!(cast(single(-2.75), INT8), Ok(-2.0));
    assert_eq!(cast(single(0.5), BOOL), Ok(1.0));
    for number in [128.0, -129.0, f32::INFINITY, f32::NAN] {
        let refused = cast(single(number), INT8);
        assert!(refused.is_err_and(|error| error.ends_with("to int8, which programs do in different ways")));
    }
    assert_eq!(cast(wide("k", 200), INT8), Ok(-56.0), "ONNX says what becomes of whole numbers");
    assert!(cast(single(1.0), 13).is_err_and(|error| error.ends_with("to type 13, which Leo does not read")));
}

#[test]
fn a_number_beside_the_size_of_the_batch_is_cast_too() {
    let reshaped = |beside: i64, to: i64| {
        let file = model(
            value("x", &[0, 1, 2]),
            &[
                node("Shape", &["x"], "shape", &[]),
                node("Gather", &["shape", "first"], "rows", &[]),
                node("Concat", &["rows", "beside"], "long", &[int("axis", 0)]),
                node("Cast", &["long"], "short", &[int("to", to)]),
                node("Gather", &["short", "second"], "k", &[]),
                node("Cast", &["k"], "w", &[int("to", 1)]),
                node("Mul", &["x", "w"], "y", &[]),
            ],
            &[ints("first", &[0]), ints("second", &[1]), ints("beside", &[beside])],
            &[value("y", &[0, 1, 2])],
        );
        let document = read(&file).expect("a file that programs run");
        let Op::Affine(AffineMap::Elementwise(product)) = document.network().nodes()[0].op() else {
            panic!("a product")
        };
        product.constant().values()[0]
    };
    assert_eq!(reshaped((1 << 32) + 3, 7), 4_294_967_296.0, "the nearest single");
    assert_eq!(reshaped((1 << 32) + 3, 6), 3.0);
}

/// What a file computes from its constants may underflow on the way, and a runtime may take that for 0.
#[test]
fn numbers_that_are_computed_are_not_plainly_single() -> Result<(), Box<dyn std::error::Error>> {
    let scaled = |nodes: &[NodeProto], constants: &[TensorProto]| {
        let last = [node("Mul", &["x", "w"], "a", &[]), node("Relu", &["a"], "y", &[])];
        read(&model(value("x", &[0, 1]), &[nodes, &last].concat(), constants, &[value("y", &[0, 1])]))
    };
    let given = scaled(&[], &[floats("w", &[1], &[1e-6])])?;
    assert!(given.is_plainly_single());
    let computed =
        scaled(&[node("Mul", &["p", "q"], "w", &[])], &[floats("p", &[1], &[1e-36]), floats("q", &[1], &[1e30])])?;
    assert!(!computed.is_plainly_single());
    Ok(())
}
