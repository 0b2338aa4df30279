//! The matrix products: Gemm and MatMul.

use std::rc::Rc;

use super::{Call, unusable};
use crate::onnx::Reason;
use crate::onnx::compose::Composer;
use crate::onnx::dims::Dims;
use crate::onnx::import::{Computed, Value};
use crate::onnx::tensor::Tensor;
use leo_network::NetworkError;
use leo_network::op::{Arithmetic, Matrix};

/// `alpha A B + beta C`, with A and B transposed on request.
///
/// `alpha` and `beta` go into the weights. In doubles, the product of two singles is exact.
pub(super) fn gemm(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let (alpha, beta) = (call.float("alpha", 1.0)?, call.float("beta", 1.0)?);
    let (turn_a, turn_b) = (call.int("transA", 0)? != 0, call.int("transB", 0)? != 0);
    let (x, turn_x, axis, weight) = match (call.required(0)?, call.required(1)?) {
        (Value::Computed(a), Value::Constant(b)) => (a, turn_a, 1, scaled_matrix(b, alpha, !turn_b)?),
        (Value::Constant(a), Value::Computed(b)) => (b, turn_b, 0, scaled_matrix(a, alpha, turn_a)?),
        (Value::Computed(_), Value::Computed(_)) => return Err(Reason::NotAffine("multiplies two computed values")),
        (Value::Computed(_), other) => return Err(unusable(other, 1, "a constant")),
        (other, _) => return Err(unusable(other, 0, "computed from the network's input")),
    };
    if x.dims.rank() != 2 {
        return Err(NetworkError::mismatch(format!("takes matrices, not axes {}", x.dims)).into());
    }
    let x = if turn_x { composer.transpose(x, &[1, 0])? } else { x.clone() };
    match call.optional(2).filter(|_| beta != 0.0) {
        None => composer.dense(&x, axis, weight, None).map(Value::Computed),
        Some(Value::Constant(c)) => {
            let values: Vec<f64> = c.floats()?.iter().map(|c| beta * c).collect();
            match bias(&c.dims, &values, weight.rows()).filter(|_| axis == 1) {
                Some(bias) => composer.dense(&x, axis, weight, Some(bias)),
                None => {
                    let product = composer.dense(&x, axis, weight, None)?;
                    let dims = product.dims.clone();
                    let sum =
                        composer.elementwise(&product, Arithmetic::Add, &Tensor::doubles(c.dims.clone(), values))?;
                    same_axes(&dims, sum)
                }
            }
            .map(Value::Computed)
        }
        Some(Value::Computed(c)) => {
            let product = composer.dense(&x, axis, weight, None)?;
            let c = if beta == 1.0 {
                c.clone()
            } else {
                composer.elementwise(c, Arithmetic::Multiply, &Tensor::doubles(vec![], vec![beta]))?
            };
            let sum = composer.sum(&product, &c)?;
            same_axes(&product.dims, sum).map(Value::Computed)
        }
        Some(other) => Err(unusable(other, 2, "a constant")),
    }
}

/// Gemm stretches C to the product, never the product to C.
fn same_axes(dims: &Dims, sum: Computed) -> Result<Computed, Reason> {
    if sum.dims == *dims {
        Ok(sum)
    } else {
        Err(NetworkError::mismatch(format!("its bias has more elements than its product with axes {dims}")).into())
    }
}

/// The constant as one number for each of `outputs` outputs, if it is the same for all samples.
fn bias(dims: &[usize], values: &[f64], outputs: usize) -> Option<Vec<f64>> {
    match (dims, values) {
        (_, [only]) if dims.len() <= 2 => Some(vec![*only; outputs]),
        ([length] | [1, length], _) if *length == outputs => Some(values.to_vec()),
        _ => None,
    }
}

/// A constant as a matrix with a row for each output.
fn scaled_matrix(tensor: &Rc<Tensor>, factor: f64, turned: bool) -> Result<Matrix, Reason> {
    let [rows, columns] = tensor.dims[..] else {
        return Err(NetworkError::mismatch(format!("weights of shape {:?} are no matrix", tensor.dims)).into());
    };
    let mut values = tensor.floats()?;
    values.iter_mut().for_each(|value| *value *= factor);
    let matrix = Matrix::new(rows, columns, values)?;
    Ok(if turned { matrix.transposed() } else { matrix })
}

/// The product of a computed value with a constant matrix or vector, on either side, as NumPy defines it.
pub(super) fn matmul(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let (x, constant, on_right) = match (call.required(0)?, call.required(1)?) {
        (Value::Computed(x), Value::Constant(constant)) => (x, constant, true),
        (Value::Constant(constant), Value::Computed(x)) => (x, constant, false),
        (Value::Computed(_), Value::Computed(_)) => return Err(Reason::NotAffine("multiplies two computed values")),
        (Value::Computed(_), other) => return Err(unusable(other, 1, "a constant")),
        (other, _) => return Err(unusable(other, 0, "computed from the network's input")),
    };
    let rank = x.dims.rank();
    if rank == 0 {
        return Err(NetworkError::mismatch("takes matrices and vectors, not single numbers").into());
    }
    // The axis of x that is summed over: its last one on the left side, its last but one on the right side.
    let axis = if on_right { rank - 1 } else { rank.saturating_sub(2) };
    let (weight, keeps_axis) = match constant.dims[..] {
        [length] => (Matrix::new(1, length, constant.floats()?)?, false),
        [ref outer @ .., rows, columns] if outer.iter().all(|&extent| extent == 1) => {
            let matrix = Matrix::new(rows, columns, constant.floats()?)?;
            (if on_right { matrix.transposed() } else { matrix }, true)
        }
        [..] => {
            let message = format!("weights of shape {:?} are several matrices; Leo takes one", constant.dims);
            return Err(NetworkError::mismatch(message).into());
        }
    };
    let product = composer.dense(x, axis, weight, None)?;
    // Axes of extent 1 in front of the matrix are axes of the result, where x has fewer.
    let dims = if keeps_axis {
        product.dims.padded(constant.dims.len() - usize::from(rank == 1))
    } else {
        product.dims.without(axis)
    };
    composer.reshape(&product, dims).map(Value::Computed)
}
