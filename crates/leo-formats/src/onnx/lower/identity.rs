//! Operators that pass numbers on as they are, and the one that makes them.

use super::{Call, Subject, of_kind};
use crate::onnx::Reason;
use crate::onnx::compose::Composer;
use crate::onnx::dims::{DimEntry, resolve_axis};
use crate::onnx::element::{Float, Int};
use crate::onnx::import::{Computed, Value};
use crate::onnx::proto::attribute_type;
use crate::onnx::tensor::{Tensor, TensorNumbers};

pub(super) fn identity(_: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    call.required(0).cloned()
}

/// Outside training, dropout does nothing.
pub(super) fn dropout(_: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let training = match call.optional(2) {
        None => false,
        Some(_) => call.constant(2)?.any(),
    };
    if training {
        return Err(Reason::Unusable("is in training mode".to_owned()));
    }
    call.required(0).cloned()
}

/// Between floats, a cast changes nothing but rounding: a constant is rounded, a computed value is, in real
/// arithmetic, itself.
pub(super) fn cast(_: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let target = i32::try_from(call.int("to", 0)?).unwrap_or_default();
    if let Value::Extents { entries, scalar, .. } = call.required(0)? {
        // Any other type could change the size of the batch, and with it what is reshaped.
        let int = Int::from_code(target).filter(|int| matches!(int, Int::I32 | Int::I64));
        let int = int.ok_or_else(|| Reason::Unusable(format!("casts the size of the batch to type {target}")))?;
        let cast = entries.iter().map(|&entry| match entry {
            DimEntry::Number(number) => DimEntry::Number(int.cast_int(number)),
            DimEntry::Batch => DimEntry::Batch,
        });
        return Ok(Value::Extents { int, entries: cast.collect(), scalar: *scalar });
    }
    match (call.subject()?, Float::from_code(target)) {
        (Subject::Constant(tensor), _) => tensor.cast(target).map(|cast| Value::Constant(cast.into())),
        (Subject::Computed(computed), Some(float)) => Ok(Value::Computed(cast_computed(computed, float))),
        (Subject::Computed(_), None) => Err(Reason::NotAffine("casts to a type that is not a float")),
    }
}

/// A value as another type, which remembers if it was of half precision and may have lost something there.
fn cast_computed(computed: &Computed, float: Float) -> Computed {
    let before = Some(computed.float).filter(|before| matches!(before, Float::F16 | Float::Bf16));
    let narrowed = before.or(computed.narrowed).filter(|narrowed| *narrowed != float);
    Computed { float, narrowed, ..computed.clone() }
}

/// Whole numbers times a scale, as single precision computes that: of constants only.
pub(super) fn dequantize_linear(_: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    if matches!(call.required(0)?, Value::Computed(_)) {
        return Err(Reason::NotAffine("makes floats of whole numbers that are computed"));
    }
    let (x, scale) = (call.constant(0)?, call.constant(1)?);
    let zero = call.optional(2).map(|_| call.constant(2)).transpose()?;
    let wrong = || Reason::Unusable("has a scale or a zero point that does not fit what it scales".to_owned());
    let (TensorNumbers::Int(_, numbers), TensorNumbers::Float(float, scales)) = (&x.numbers, &scale.numbers) else {
        return Err(wrong());
    };
    let zeros = match zero.map(|zero| &zero.numbers) {
        None => vec![0; scales.len()],
        Some(TensorNumbers::Int(_, zeros)) if zeros.len() == scales.len() => zeros.clone(),
        Some(_) => return Err(wrong()),
    };
    if call.int("block_size", 0)? != 0 || *float != Float::F32 {
        return Err(Reason::NotAffine("scales blocks, or in another type than single precision"));
    }
    // One scale for all, or one for each index along an axis.
    let inner = match scale.dims[..] {
        [] | [1] => x.elements().max(1),
        [count] => {
            let axis = resolve_axis(call.int("axis", 1)?, x.dims.len())?;
            if x.dims[axis] != count {
                return Err(wrong());
            }
            x.dims[axis + 1..].iter().product()
        }
        _ => return Err(wrong()),
    };
    let value = |(index, &number): (usize, &i64)| {
        let at = index / inner % scales.len();
        Float::F32.round((number - zeros[at]) as f64 * scales[at])
    };
    let values = numbers.iter().enumerate().map(value).collect();
    Ok(Value::Constant(Tensor { dims: x.dims.clone(), numbers: TensorNumbers::Float(Float::F32, values) }.into()))
}

pub(super) fn constant(_: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let float = |dims, values: &[f32]| Tensor {
        dims,
        numbers: TensorNumbers::Float(Float::F32, values.iter().map(|&value| f64::from(value)).collect()),
    };
    let tensor = match &call.node.attribute[..] {
        [attribute] => match attribute.name() {
            "value" => match &of_kind(attribute, attribute_type::TENSOR)?.t {
                Some(tensor) => Tensor::decode(tensor, call.folder)
                    .map_err(|error| Reason::Tensor { name: tensor.name().to_owned(), error })?,
                None => return Err(Reason::Unusable("has no value".to_owned())),
            },
            "value_float" => float(vec![], &[of_kind(attribute, attribute_type::FLOAT)?.f()]),
            "value_floats" => float(vec![attribute.floats.len()], &of_kind(attribute, attribute_type::FLOATS)?.floats),
            "value_int" => Tensor {
                dims: vec![],
                numbers: TensorNumbers::Int(Int::I64, vec![of_kind(attribute, attribute_type::INT)?.i()]),
            },
            "value_ints" => Tensor::ints(of_kind(attribute, attribute_type::INTS)?.ints.clone()),
            other => return Err(Reason::Unusable(format!("has its value in {other:?}, which Leo does not read"))),
        },
        [] => return Err(Reason::Unusable("has no value".to_owned())),
        _ => return Err(Reason::Unusable("has several values".to_owned())),
    };
    Ok(Value::Constant(tensor.into()))
}
