//! Operators that move numbers around without changing them.

use super::{Call, Subject};
use crate::onnx::Reason;
use crate::onnx::compose::Composer;
use crate::onnx::dims::{Axis, DimEntry, Dims, resolve_axis};
use crate::onnx::import::Value;
use leo_network::op::Transpose;
use leo_network::{MAX_RANK, NetworkError};

pub(super) fn flatten(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let subject = call.subject()?;
    let dims = subject.dims();
    let axis = call.int("axis", 1)?;
    // Flatten may also cut after the last axis.
    let cut = if axis == dims.rank() as i64 { dims.rank() } else { dims.axis(axis)? };
    relabel(composer, &subject, dims.flattened(cut)?)
}

pub(super) fn reshape(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    if matches!(call.required(0)?, Value::Extents { .. }) {
        let to_scalar = call.ints("shape", 1)?.is_some_and(|target| target.is_empty());
        if let Some(extent) = single_extent(call, to_scalar)? {
            return Ok(extent);
        }
    }
    let subject = call.subject()?;
    let target = match call.required(1)? {
        Value::Extents { entries, .. } => entries.clone(),
        _ => call.ints("shape", 1)?.unwrap_or_default().into_iter().map(DimEntry::Number).collect(),
    };
    let dims = subject.dims().reshaped(&target, call.int("allowzero", 0)? != 0)?;
    relabel(composer, &subject, dims)
}

pub(super) fn squeeze(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    if let Some(scalar) = single_extent(call, true)? {
        return Ok(scalar);
    }
    let subject = call.subject()?;
    let dims = subject.dims();
    let squeezed: Vec<usize> = match call.ints("axes", 1)? {
        Some(axes) => axes.iter().map(|&axis| dims.axis(axis)).collect::<Result<_, _>>()?,
        // A batch of one sample loses its axis then.
        None if dims.axes().iter().any(|axis| matches!(axis, Axis::Batch(None | Some(1)))) => {
            return Err(Reason::MixesBatch);
        }
        None => (0..dims.rank()).filter(|&axis| dims.axes()[axis] == Axis::Fixed(1)).collect(),
    };
    let mut kept = Vec::new();
    for (axis, &extent) in dims.axes().iter().enumerate() {
        match extent {
            _ if !squeezed.contains(&axis) => kept.push(extent),
            Axis::Fixed(1) => {}
            Axis::Fixed(_) => return Err(NetworkError::mismatch(format!("axis {axis} of {dims} is not 1")).into()),
            Axis::Batch(_) => return Err(Reason::MixesBatch),
        }
    }
    relabel(composer, &subject, Dims::new(kept))
}

pub(super) fn unsqueeze(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    if let Some(vector) = single_extent(call, false)? {
        return Ok(vector);
    }
    let subject = call.subject()?;
    let dims = subject.dims();
    let missing = || Reason::Unusable("has no axes to insert".to_owned());
    let axes = call.ints("axes", 1)?.ok_or_else(missing)?;
    let rank = dims.rank() + axes.len();
    if rank > MAX_RANK {
        return Err(NetworkError::TooManyAxes { rank }.into());
    }
    let inserted: Vec<usize> = axes.iter().map(|&axis| resolve_axis(axis, rank)).collect::<Result<_, _>>()?;
    let mut old = dims.axes().iter();
    let new: Vec<Axis> = (0..rank)
        .filter_map(|axis| if inserted.contains(&axis) { Some(Axis::Fixed(1)) } else { old.next().copied() })
        .collect();
    if new.len() != rank {
        return Err(NetworkError::mismatch(format!("inserts the axes {axes:?}, one of them twice")).into());
    }
    relabel(composer, &subject, Dims::new(new))
}

pub(super) fn transpose(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let subject = call.subject()?;
    let dims = subject.dims();
    let order: Vec<usize> = match call.ints("perm", usize::MAX)? {
        Some(order) => order.iter().map(|&axis| dims.axis(axis)).collect::<Result<_, _>>()?,
        None => (0..dims.rank()).rev().collect(),
    };
    if order.len() != dims.rank() {
        return Err(NetworkError::mismatch(format!("orders {} axes of {dims}", order.len())).into());
    }
    let transpose = Transpose::new(order)?;
    match subject {
        Subject::Constant(tensor) => Ok(Value::Constant(tensor.transposed(&transpose).into())),
        Subject::Computed(computed) => composer.transpose(computed, transpose.order()).map(Value::Computed),
    }
}

/// The size of the batch as a single number or as a shape of one entry, if that is what the call is about.
fn single_extent(call: &Call<'_>, scalar: bool) -> Result<Option<Value>, Reason> {
    match call.required(0)? {
        Value::Extents { int, entries, .. } if entries.len() == 1 => {
            Ok(Some(Value::Extents { int: *int, entries: entries.clone(), scalar }))
        }
        _ => Ok(None),
    }
}

/// The elements of `subject` in the same order under the axes `dims`.
fn relabel(composer: &mut Composer, subject: &Subject<'_>, dims: Dims) -> Result<Value, Reason> {
    match subject {
        Subject::Computed(computed) => composer.reshape(computed, dims).map(Value::Computed),
        Subject::Constant(tensor) => {
            let dims = dims.sample()?.extents().to_vec();
            Ok(Value::Constant(tensor.reshaped(dims).into()))
        }
    }
}
