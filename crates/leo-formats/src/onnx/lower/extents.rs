//! Arithmetic with shapes: how exporters write "as many rows as there were".
//!
//! `x.view(x.size(0), -1)` in PyTorch becomes Shape, Gather, Unsqueeze and Concat in front of a Reshape. Here these
//! operators are evaluated while the file is read, the unknown size of the batch being an entry of its own.

use super::{Call, select};
use crate::onnx::Reason;
use crate::onnx::compose::Composer;
use crate::onnx::dims::{Axis, DimEntry, resolve_axis};
use crate::onnx::element::Int;
use crate::onnx::import::{Computed, Value};
use crate::onnx::tensor::{Tensor, TensorNumbers};
use leo_network::{MAX_RANK, NetworkError};

pub(super) fn shape(_: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let dims = call.subject()?.dims();
    let rank = dims.rank() as i64;
    let bound = |name, default| {
        let axis = call.int(name, default)?;
        Ok::<_, Reason>((if axis < 0 { axis.saturating_add(rank) } else { axis }).clamp(0, rank) as usize)
    };
    let (start, end) = (bound("start", 0)?, bound("end", rank)?);
    let entries = dims.axes()[start..end.max(start)].iter().map(|axis| match axis {
        Axis::Batch(None) => DimEntry::Batch,
        Axis::Batch(Some(extent)) | Axis::Fixed(extent) => DimEntry::Number(*extent as i64),
    });
    Ok(value(Int::I64, entries.collect(), false))
}

pub(super) fn gather(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    if let Value::Computed(x) = call.required(0)? {
        return select::gather(composer, call, x);
    }
    let (int, entries, _) =
        entries(call.required(0)?).ok_or(Reason::NotAffine("gathers elements of something other than a shape"))?;
    let indices = call.constant(1)?;
    let TensorNumbers::Int(_, positions) = &indices.numbers else {
        return Err(Reason::Unusable("has indices that are not whole numbers".to_owned()));
    };
    if indices.dims.len() > 1 {
        return Err(NetworkError::mismatch(format!("gathers a tensor of shape {:?} from a shape", indices.dims)).into());
    }
    resolve_axis(call.int("axis", 0)?, 1)?;
    let gathered = positions.iter().map(|&position| resolve_axis(position, entries.len()).map(|at| entries[at]));
    Ok(value(int, gathered.collect::<Result<_, _>>()?, indices.dims.is_empty()))
}

pub(super) fn concat(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let computed: Vec<&Computed> = call
        .inputs
        .iter()
        .flatten()
        .filter_map(|input| match input {
            Value::Computed(computed) => Some(computed),
            _ => None,
        })
        .collect();
    if let [first, ..] = computed[..] {
        if computed.len() < call.inputs.len() {
            return Err(Reason::NotAffine("joins computed values with constants"));
        }
        if call.opset >= 4 && call.attribute("axis").is_none() {
            return Err(Reason::Unusable("has no axis, which it needs".to_owned()));
        }
        let axis = first.dims.axis(call.int("axis", 1)?)?;
        return composer.concat(&computed, axis).map(Value::Computed);
    }
    let mut all = Vec::new();
    let mut joined = None;
    for input in call.inputs.iter().flatten() {
        match entries(input) {
            Some((int, ..)) if *joined.get_or_insert(int) != int => {
                return Err(Reason::Unusable("joins shapes of different types".to_owned()));
            }
            Some((_, entries, false)) if all.len() + entries.len() <= MAX_RANK => all.extend(entries),
            Some((_, _, false)) => return Err(NetworkError::TooManyAxes { rank: MAX_RANK + 1 }.into()),
            Some((_, _, true)) => return Err(NetworkError::mismatch("joins single numbers").into()),
            None => return Err(Reason::NotAffine("joins tensors other than shapes")),
        }
    }
    resolve_axis(call.int("axis", 0)?, 1)?;
    Ok(value(joined.unwrap_or(Int::I64), all, false))
}

/// The type and the entries of a shape, and whether it is a single number; `None` for anything else.
pub(super) fn entries(value: &Value) -> Option<(Int, Vec<DimEntry>, bool)> {
    match value {
        Value::Extents { int, entries, scalar } => Some((*int, entries.clone(), *scalar)),
        Value::Constant(tensor) => match &tensor.numbers {
            TensorNumbers::Int(int, numbers) if tensor.dims.len() <= 1 => {
                Some((*int, numbers.iter().map(|&number| DimEntry::Number(number)).collect(), tensor.dims.is_empty()))
            }
            _ => None,
        },
        _ => None,
    }
}

/// A constant, unless the size of the batch is in it.
pub(super) fn value(int: Int, entries: Vec<DimEntry>, scalar: bool) -> Value {
    let numbers = entries.iter().map(|entry| match entry {
        DimEntry::Number(number) => Some(*number),
        DimEntry::Batch => None,
    });
    match numbers.collect::<Option<Vec<i64>>>() {
        None => Value::Extents { int, entries, scalar },
        Some(numbers) => {
            let dims = if scalar { vec![] } else { vec![numbers.len()] };
            Value::Constant(Tensor { dims, numbers: TensorNumbers::Int(int, numbers) }.into())
        }
    }
}
