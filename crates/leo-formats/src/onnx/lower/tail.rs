//! The operators of a tail that Leo can evaluate.

use super::Call;
use crate::onnx::dims::{Axis, Dims};
use crate::onnx::element::Float;
use crate::tail::{Along, Function};

/// What an operator of the tail computes, and the axes of its result, if Leo can evaluate it.
pub(in crate::onnx) fn tail_function(call: &Call<'_>, dims: &Dims) -> Option<(Function, Dims)> {
    if !call.native {
        return None;
    }
    let same = |function| Some((function, dims.clone()));
    match call.node.op_type() {
        "Identity" => same(Function::Identity),
        "Cast" => {
            let target = i32::try_from(call.int("to", 0).ok()?).ok()?;
            let keeps_the_numbers = matches!(Float::from_code(target)?, Float::F32 | Float::F64);
            if keeps_the_numbers { same(Function::Identity) } else { None }
        }
        "Sigmoid" => same(Function::Sigmoid),
        "Tanh" => same(Function::Tanh),
        "Softmax" => same(Function::Softmax(softmax_axes(call, dims)?)),
        "LogSoftmax" => same(Function::LogSoftmax(softmax_axes(call, dims)?)),
        "ArgMax" => {
            let axis = dims.axis(call.int("axis", 0).ok()?).ok()?;
            let along = along(dims, axis, axis + 1)?;
            let kept = if call.int("keepdims", 1).ok()? != 0 { dims.with(axis, 1) } else { dims.without(axis) };
            Some((Function::ArgMax { along, last: call.int("select_last_index", 0).ok()? != 0 }, kept))
        }
        _ => None,
    }
}

/// Before version 13, softmax runs over all axes from the given one on; since then, over that one alone.
fn softmax_axes(call: &Call<'_>, dims: &Dims) -> Option<Along> {
    if call.opset >= 13 {
        let axis = dims.axis(call.int("axis", -1).ok()?).ok()?;
        along(dims, axis, axis + 1)
    } else {
        let axis = dims.axis(call.int("axis", 1).ok()?).ok()?;
        along(dims, axis, dims.rank())
    }
}

/// The axes from `begin` to `end` within the sample, unless the batch is among them.
fn along(dims: &Dims, begin: usize, end: usize) -> Option<Along> {
    let extent = |axes: &[Axis]| -> usize {
        let fixed = axes.iter().map(|axis| if let Axis::Fixed(extent) = axis { *extent } else { 1 });
        fixed.product()
    };
    let axes = dims.axes();
    let among = axes[begin..end].iter().any(|axis| matches!(axis, Axis::Batch(_)));
    (!among).then(|| Along {
        outer: extent(&axes[..begin]),
        length: extent(&axes[begin..end]),
        inner: extent(&axes[end..]),
    })
}
