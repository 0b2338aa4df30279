//! Element-wise arithmetic, and batch normalisation, which is that.

use super::{Call, unusable};
use crate::onnx::Reason;
use crate::onnx::compose::Composer;
use crate::onnx::dims::Axis;
use crate::onnx::element::{Float, Int};
use crate::onnx::import::{Computed, Value};
use crate::onnx::tensor::{Tensor, TensorNumbers};
use leo_network::op::{Arithmetic, stretched_positions};
use leo_network::{MAX_ELEMENTS, NetworkError, product};

pub(super) fn add(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    match operands(call)? {
        ArithmeticOperands::Constants(x, y) => fold(x, y, |x, y| x + y, |x, y| Some(x + y)),
        ArithmeticOperands::Right(x, c) | ArithmeticOperands::Left(c, x) => constant(composer, x, Arithmetic::Add, c),
        ArithmeticOperands::Computed(x, y) => composer.sum(x, y).map(Value::Computed),
    }
}

pub(super) fn sub(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    match operands(call)? {
        ArithmeticOperands::Constants(x, y) => fold(x, y, |x, y| x - y, |x, y| Some(x - y)),
        ArithmeticOperands::Right(x, c) => {
            let negative = c.floats()?.into_iter().map(|value| -value).collect();
            constant(composer, x, Arithmetic::Add, &Tensor::doubles(c.dims.clone(), negative))
        }
        ArithmeticOperands::Left(c, x) => {
            let negative = composer.elementwise(x, Arithmetic::Multiply, &Tensor::doubles(vec![], vec![-1.0]))?;
            constant(composer, &negative, Arithmetic::Add, c)
        }
        ArithmeticOperands::Computed(x, y) => {
            let negative = composer.elementwise(y, Arithmetic::Multiply, &Tensor::doubles(vec![], vec![-1.0]))?;
            composer.sum(x, &negative).map(Value::Computed)
        }
    }
}

pub(super) fn mul(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    match operands(call)? {
        ArithmeticOperands::Constants(x, y) => fold(x, y, |x, y| x * y, |x, y| Some(x * y)),
        ArithmeticOperands::Right(x, c) | ArithmeticOperands::Left(c, x) => {
            constant(composer, x, Arithmetic::Multiply, c)
        }
        ArithmeticOperands::Computed(..) => Err(Reason::NotAffine("multiplies two computed values")),
    }
}

pub(super) fn div(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    match operands(call)? {
        ArithmeticOperands::Constants(x, y) => fold(x, y, |x, y| x / y, quotient),
        ArithmeticOperands::Right(x, c) => constant(composer, x, Arithmetic::Divide, c),
        ArithmeticOperands::Left(..) | ArithmeticOperands::Computed(..) => {
            Err(Reason::NotAffine("divides by a computed value"))
        }
    }
}

/// `(x - mean) / sqrt(variance + epsilon) * scale + bias`, folded into one factor and one summand a channel.
///
/// The root is irrational: the folded factor, in doubles, is what the network is taken to have.
pub(super) fn batch_normalization(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    // Before version 14, it is the presence of further outputs that means training.
    let further_outputs = call.node.output.iter().skip(1).any(|output| !output.is_empty());
    if call.int("training_mode", 0)? != 0 || (call.opset < 14 && further_outputs) {
        return Err(Reason::Unusable("is in training mode".to_owned()));
    }
    let x = call.computed(0)?;
    let [scale, bias, mean, variance] = [1, 2, 3, 4].map(|index| call.constant(index));
    let (scale, bias, mean, variance) = (scale?, bias?, mean?, variance?);
    if [bias, mean, variance].iter().any(|tensor| tensor.dims != scale.dims) {
        return Err(NetworkError::mismatch("scale, bias, mean and variance have different shapes").into());
    }
    let epsilon = call.float("epsilon", 1e-5)?;
    let roots = variance.floats()?.into_iter().map(|variance| (variance + epsilon).sqrt());
    let factor: Vec<f64> = scale.floats()?.into_iter().zip(roots).map(|(scale, root)| scale / root).collect();
    let moved = mean.floats()?.into_iter().zip(&factor).map(|(mean, factor)| mean * factor);
    let summand = bias.floats()?.into_iter().zip(moved).map(|(bias, moved)| bias - moved).collect();

    // One number a channel, along axis 1; before version 9 also one for each element of a sample.
    let rank = x.dims.rank();
    let per_channel = call.opset >= 9 || call.int("spatial", 1)? != 0;
    let mut dims = scale.dims.clone();
    if per_channel {
        match (&dims[..], x.dims.axes().get(1)) {
            (_, Some(Axis::Batch(_))) => return Err(Reason::MixesBatch),
            (&[scales], Some(&Axis::Fixed(channels))) if scales == channels => {}
            (&[1], None) => {}
            _ => {
                let message = format!("a scale of shape {dims:?} for the channels of {}", x.dims);
                return Err(NetworkError::mismatch(message).into());
            }
        }
        dims.resize(rank.saturating_sub(1).max(1), 1);
    }
    let channels = |values| Tensor::doubles(dims.clone(), values);
    let scaled = composer.elementwise(x, Arithmetic::Multiply, &channels(factor))?;
    if scaled.dims != x.dims {
        return Err(
            NetworkError::mismatch(format!("channels {:?} for an input with axes {}", scale.dims, x.dims)).into()
        );
    }
    composer.elementwise(&scaled, Arithmetic::Add, &channels(summand)).map(Value::Computed)
}

/// `(x - offset) * scale`, one number each or one for every feature. What comes out is in single precision.
pub(super) fn scaler(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let x = call.computed(0)?;
    let (offset, scale) = (call.floats("offset")?, call.floats("scale")?);
    if x.dims.rank() > 2 || offset.len() != scale.len() {
        // The standard does not say what that means, and programs differ.
        return Err(Reason::Unusable(format!(
            "has {} offsets and {} scales for axes {}",
            offset.len(),
            scale.len(),
            x.dims
        )));
    }
    let negative = offset.into_iter().map(|offset| -offset).collect();
    let features = |values: Vec<f64>| Tensor::doubles(vec![values.len()], values);
    let moved = composer.elementwise(x, Arithmetic::Add, &features(negative))?;
    let scaled = composer.elementwise(&moved, Arithmetic::Multiply, &features(scale))?;
    if scaled.dims != x.dims {
        return Err(NetworkError::mismatch(format!("features for an input with axes {}", x.dims)).into());
    }
    Ok(Value::Computed(Computed { float: Float::F32, ..scaled }))
}

/// The two operands of an operation, by what they are.
enum ArithmeticOperands<'a> {
    Constants(&'a Tensor, &'a Tensor),
    Right(&'a Computed, &'a Tensor),
    Left(&'a Tensor, &'a Computed),
    Computed(&'a Computed, &'a Computed),
}

fn operands<'a>(call: &'a Call<'_>) -> Result<ArithmeticOperands<'a>, Reason> {
    Ok(match (call.required(0)?, call.required(1)?) {
        (Value::Constant(x), Value::Constant(y)) => ArithmeticOperands::Constants(x, y),
        (Value::Computed(x), Value::Constant(c)) => ArithmeticOperands::Right(x, c),
        (Value::Constant(c), Value::Computed(x)) => ArithmeticOperands::Left(c, x),
        (Value::Computed(x), Value::Computed(y)) => ArithmeticOperands::Computed(x, y),
        (Value::Computed(_) | Value::Constant(_), other) => {
            return Err(unusable(other, 1, "a tensor that Leo can follow"));
        }
        (other, _) => return Err(unusable(other, 0, "a tensor that Leo can follow")),
    })
}

fn constant(composer: &mut Composer, x: &Computed, arithmetic: Arithmetic, c: &Tensor) -> Result<Value, Reason> {
    composer.elementwise(x, arithmetic, c).map(Value::Computed)
}

/// The quotient of two whole numbers. Programs round one that is below 0 and not whole down, or towards 0.
fn quotient(x: i128, y: i128) -> Option<i128> {
    let quotient = x.checked_div(y)?;
    ((x < 0) == (y < 0) || quotient * y == x).then_some(quotient)
}

/// Arithmetic between constants of one type, stretched to one another as in NumPy.
///
/// What programs may compute in different ways is refused: whole numbers that do not fit their type, and half precision
/// where it would round.
fn fold(
    x: &Tensor,
    y: &Tensor,
    floats: impl Fn(f64, f64) -> f64,
    ints: impl Fn(i128, i128) -> Option<i128>,
) -> Result<Value, Reason> {
    let unfit = || NetworkError::mismatch(format!("computes with constants of shapes {:?} and {:?}", x.dims, y.dims));
    let dims = stretched(&x.dims, &y.dims).ok_or_else(unfit)?;
    let pairs = stretched_positions(&x.dims, &dims).into_iter().zip(stretched_positions(&y.dims, &dims));
    let numbers = match (&x.numbers, &y.numbers) {
        (TensorNumbers::Float(float, xs), TensorNumbers::Float(other, ys)) if float == other => {
            let inexact = || {
                let name = float.name();
                Reason::Unusable(format!(
                    "computes a constant that is no {name}, which programs round in different ways"
                ))
            };
            let results = pairs.map(|(i, j)| float.result(floats(xs[i], ys[j])).ok_or_else(inexact));
            TensorNumbers::Float(*float, results.collect::<Result<_, _>>()?)
        }
        (TensorNumbers::Int(int, xs), TensorNumbers::Int(other, ys)) if int == other && *int != Int::Bool => {
            let misfit = || {
                let name = int.name();
                Reason::Unusable(format!("computes a whole number that does not exist or does not fit its type {name}"))
            };
            let result = |x: i64, y: i64| ints(x.into(), y.into()).and_then(|result| int.checked(result));
            let results = pairs.map(|(i, j)| result(xs[i], ys[j]).ok_or_else(misfit));
            TensorNumbers::Int(*int, results.collect::<Result<_, _>>()?)
        }
        _ => {
            return Err(Reason::Unusable(
                "computes with constants of different types, or with truth values".to_owned(),
            ));
        }
    };
    Ok(Value::Constant(Tensor { dims, numbers }.into()))
}

/// The shape that both shapes stretch to, if there is one that is not too large.
fn stretched(x: &[usize], y: &[usize]) -> Option<Vec<usize>> {
    let rank = x.len().max(y.len());
    let extent = |dims: &[usize], axis: usize| (axis + dims.len()).checked_sub(rank).map_or(1, |axis| dims[axis]);
    let both = (0..rank).map(|axis| match (extent(x, axis), extent(y, axis)) {
        (1, extent) | (extent, 1) => Some(extent),
        (left, right) => (left == right).then_some(left),
    });
    let dims: Vec<usize> = both.collect::<Option<_>>()?;
    (product(&dims)? <= MAX_ELEMENTS).then_some(dims)
}
