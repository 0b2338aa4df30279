//! Operators that pass numbers on as they are, and the one that makes them.

use super::{Call, Subject};
use crate::onnx::Reason;
use crate::onnx::import::{Computed, Importer, Value};
use crate::onnx::tensor::{Float, Numbers, Tensor};

pub(super) fn identity(_: &mut Importer<'_>, call: &Call<'_>) -> Result<Value, Reason> {
    call.required(0).cloned()
}

/// Outside training, dropout does nothing.
pub(super) fn dropout(_: &mut Importer<'_>, call: &Call<'_>) -> Result<Value, Reason> {
    let training = match call.optional(2) {
        None => false,
        Some(_) => call.constant(2)?.to_floats().iter().any(|&training| training != 0.0),
    };
    if training {
        return Err(Reason::Unusable("is in training mode".to_owned()));
    }
    call.required(0).cloned()
}

/// Between floats, a cast changes nothing but rounding: a constant is rounded, a computed value is, in real
/// arithmetic, itself.
pub(super) fn cast(_: &mut Importer<'_>, call: &Call<'_>) -> Result<Value, Reason> {
    if let shape @ Value::Extents { .. } = call.required(0)? {
        return Ok(shape.clone());
    }
    let target = call.int("to", 0);
    let float = i32::try_from(target).ok().and_then(Float::from_code);
    match (call.subject()?, float) {
        (Subject::Constant(tensor), Some(float)) => Ok(Value::Constant(tensor.cast(float).into())),
        (Subject::Constant(tensor), None) if matches!(tensor.numbers, Numbers::Int(_)) => {
            Ok(Value::Constant(tensor.clone().into()))
        }
        (Subject::Computed(computed), Some(float)) => Ok(Value::Computed(Computed { float, ..computed.clone() })),
        (_, None) => Err(Reason::NotAffine("casts to a type that is not a float")),
    }
}

pub(super) fn constant(_: &mut Importer<'_>, call: &Call<'_>) -> Result<Value, Reason> {
    let float = |dims, values: &[f32]| Tensor {
        dims,
        numbers: Numbers::Float(Float::F32, values.iter().map(|&value| f64::from(value)).collect()),
    };
    let tensor = match call.node.attribute.first() {
        Some(attribute) => match attribute.name() {
            "value" => match &attribute.t {
                Some(tensor) => Tensor::decode(tensor, call.folder)
                    .map_err(|error| Reason::Tensor { name: tensor.name().to_owned(), error })?,
                None => return Err(Reason::Unusable("has no value".to_owned())),
            },
            "value_float" => float(vec![], &[attribute.f()]),
            "value_floats" => float(vec![attribute.floats.len()], &attribute.floats),
            "value_int" => Tensor { dims: vec![], numbers: Numbers::Int(vec![attribute.i()]) },
            "value_ints" => Tensor::ints(attribute.ints.clone()),
            other => return Err(Reason::Unusable(format!("has its value in {other:?}, which Leo does not read"))),
        },
        None => return Err(Reason::Unusable("has no value".to_owned())),
    };
    Ok(Value::Constant(tensor.into()))
}
