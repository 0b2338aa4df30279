//! Operators that take parts of a value along its axes, or put zeros around it.

use super::{Call, extents};
use crate::onnx::Reason;
use crate::onnx::compose::Composer;
use crate::onnx::dims::{Axis, DimEntry, resolve_axis};
use crate::onnx::import::{Computed, Value};
use crate::onnx::tensor::TensorNumbers;
use leo_network::{MAX_ELEMENTS, NetworkError};

/// How long an axis is, if it is none of the batch.
fn extent(x: &Computed, axis: usize) -> Result<usize, Reason> {
    match x.dims.axes()[axis] {
        Axis::Fixed(extent) => Ok(extent),
        Axis::Batch(_) => Err(Reason::MixesBatch),
    }
}

pub(super) fn slice(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let missing = || Reason::Unusable("has no starts or no ends".to_owned());
    let starts = call.ints("starts", 1)?.ok_or_else(missing)?;
    let ends = call.ints("ends", 2)?.ok_or_else(missing)?;
    let axes = call.ints("axes", 3)?.unwrap_or_else(|| (0..starts.len() as i64).collect());
    let steps = call.ints("steps", 4)?.unwrap_or_else(|| vec![1; starts.len()]);
    if [ends.len(), axes.len(), steps.len()].iter().any(|&count| count != starts.len()) || steps.contains(&0) {
        return Err(Reason::Unusable("has starts, ends, axes and steps that do not belong together".to_owned()));
    }
    if let Some((int, entries, false)) = extents::entries(call.required(0)?) {
        let [axis] = axes[..] else { return Err(NetworkError::mismatch("slices a shape along several axes").into()) };
        resolve_axis(axis, 1)?;
        let kept = indices(entries.len(), starts[0], ends[0], steps[0]);
        return Ok(extents::value(int, kept.into_iter().map(|index| entries[index]).collect(), false));
    }
    let x = match call.required(0)? {
        Value::Computed(x) => x,
        _ => return Err(Reason::NotAffine("slices something other than a computed value or a shape")),
    };
    let mut selection: Vec<(usize, Vec<Option<usize>>)> = Vec::new();
    for (place, &axis) in axes.iter().enumerate() {
        let axis = x.dims.axis(axis)?;
        let kept = indices(extent(x, axis)?, starts[place], ends[place], steps[place]);
        if selection.iter().any(|(other, _)| *other == axis) {
            return Err(Reason::Unusable(format!("slices axis {axis} twice")));
        }
        selection.push((axis, kept.into_iter().map(Some).collect()));
    }
    composer.select(x, &selection).map(Value::Computed)
}

/// The indices of an axis from a start to an end, both counted from its end where they are negative.
fn indices(extent: usize, start: i64, end: i64, step: i64) -> Vec<usize> {
    let extent = extent as i64;
    let counted = |index: i64| if index < 0 { index.saturating_add(extent) } else { index };
    if step > 0 {
        let (start, end) = (counted(start).clamp(0, extent), counted(end).clamp(0, extent));
        (start..end).step_by(usize::try_from(step).unwrap_or(usize::MAX)).map(|index| index as usize).collect()
    } else {
        let (start, end) = (counted(start).clamp(-1, extent - 1), counted(end).clamp(-1, extent - 1));
        let step = usize::try_from(step.unsigned_abs()).unwrap_or(usize::MAX);
        (end + 1..=start).rev().step_by(step).map(|index| index as usize).collect()
    }
}

pub(super) fn split(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let Value::Computed(x) = call.required(0)? else {
        return Err(Reason::NotAffine("splits something other than a computed value"));
    };
    let axis = x.dims.axis(call.int("axis", 0)?)?;
    let (extent, count) = (extent(x, axis)?, call.node.output.len());
    let sizes = match call.ints("split", 1)? {
        Some(sizes) => sizes.iter().map(|&size| usize::try_from(size).ok()).collect::<Option<Vec<usize>>>(),
        // The last part is smaller if there is less left for it.
        None => {
            let size = extent.div_ceil(count.max(1));
            Some((0..count).map(|part| extent.saturating_sub(part * size).min(size)).collect())
        }
    };
    let fits = |sizes: &Vec<usize>| {
        sizes.len() == count && sizes.iter().try_fold(0_usize, |sum, &size| sum.checked_add(size)) == Some(extent)
    };
    let sizes = sizes.filter(fits).ok_or_else(|| {
        Reason::from(NetworkError::mismatch(format!("splits axis {axis} of {} into other parts than it has", x.dims)))
    })?;
    let mut start = 0;
    let mut parts = Vec::new();
    for size in sizes {
        let part = (axis, (start..start + size).map(Some).collect());
        parts.push(Value::Computed(composer.select(x, &[part])?));
        start += size;
    }
    Ok(Value::Several(parts))
}

/// Zeros before and after, along each axis; where there are fewer than none, less of what is there.
pub(super) fn pad(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let Value::Computed(x) = call.required(0)? else {
        return Err(Reason::NotAffine("pads something other than a computed value"));
    };
    if !matches!(call.text("mode")?, None | Some("constant")) {
        return Err(Reason::Unusable("pads by other numbers than a constant".to_owned()));
    }
    let value = match call.optional(2) {
        Some(_) => call.constant(2)?.floats()?,
        None => vec![call.float("value", 0.0)?],
    };
    if value.iter().any(|&value| value != 0.0) {
        return Err(Reason::Unusable("pads by another constant than 0".to_owned()));
    }
    let pads = call.ints("pads", 1)?.ok_or_else(|| Reason::Unusable("has no pads".to_owned()))?;
    let axes: Vec<usize> = match call.ints("axes", 3)? {
        Some(axes) => axes.iter().map(|&axis| x.dims.axis(axis)).collect::<Result<_, _>>()?,
        None => (0..x.dims.rank()).collect(),
    };
    let wrong = || Reason::Unusable(format!("has {} pads for axes {}", pads.len(), x.dims));
    if pads.len() != 2 * axes.len() {
        return Err(wrong());
    }
    let mut selection = Vec::new();
    for (place, &axis) in axes.iter().enumerate() {
        let (before, after) = (pads[place], pads[axes.len() + place]);
        if (before, after) == (0, 0) {
            continue;
        }
        let extent = extent(x, axis)? as i64;
        if [before, after].iter().any(|pad| pad.unsigned_abs() > MAX_ELEMENTS as u64) {
            return Err(wrong());
        }
        let index = |at: i64| usize::try_from(at).ok().filter(|_| at < extent);
        selection.push((axis, (-before..extent + after).map(index).collect()));
    }
    composer.select(x, &selection).map(Value::Computed)
}

/// The elements at indices that are constant, along an axis.
pub(super) fn gather(composer: &mut Composer, call: &Call<'_>, x: &Computed) -> Result<Value, Reason> {
    let indices = call.constant(1)?;
    let TensorNumbers::Int(_, numbers) = &indices.numbers else {
        return Err(Reason::Unusable("has indices that are not whole numbers".to_owned()));
    };
    let axis = x.dims.axis(call.int("axis", 0)?)?;
    let extent = extent(x, axis)?;
    let selected = numbers.iter().map(|&index| resolve_axis(index, extent).map(Some)).collect::<Result<Vec<_>, _>>()?;
    let gathered = composer.select(x, &[(axis, selected)])?;
    match indices.dims.len() {
        0 => composer.reshape(&gathered, gathered.dims.without(axis)).map(Value::Computed),
        1 => Ok(Value::Computed(gathered)),
        _ => Err(Reason::NotAffine("gathers by a table of indices")),
    }
}

/// Each element several times along the axes, a whole number of times: the nearest neighbour, whatever rule is asked
/// for.
pub(super) fn resize(composer: &mut Composer, call: &Call<'_>) -> Result<Value, Reason> {
    let Value::Computed(x) = call.required(0)? else {
        return Err(Reason::NotAffine("resizes something other than a computed value"));
    };
    let is_resize = call.node.op_type() == "Resize";
    let has_regions = is_resize && call.opset >= 11;
    let rule = call.text("coordinate_transformation_mode")?;
    let rule = rule.unwrap_or(if has_regions { "half_pixel" } else { "asymmetric" });
    let nearest = call.text("nearest_mode")?.unwrap_or(if has_regions { "round_prefer_floor" } else { "floor" });
    let is_nearest = matches!(call.text("mode")?, None | Some("nearest"));
    // With these, and a whole number of times, the nearest neighbour is no matter of rounding.
    let is_sure = matches!(
        (rule, nearest),
        ("asymmetric", "floor") | ("half_pixel" | "pytorch_half_pixel", "round_prefer_floor" | "round_prefer_ceil")
    );
    let is_stretched = matches!(call.text("keep_aspect_ratio_policy")?, None | Some("stretch"));
    if !is_nearest || !is_sure || !is_stretched || call.attribute("axes").is_some() {
        return Err(Reason::Unusable("resizes by another rule than the nearest neighbour's".to_owned()));
    }
    let factors: Option<Vec<usize>> = match call.optional(if has_regions { 3 } else { usize::MAX }) {
        Some(_) => {
            let (_, entries, _) = extents::entries(call.required(3)?).ok_or_else(|| unclear(x))?;
            let factor = |(entry, axis): (&DimEntry, &Axis)| match (entry, axis) {
                (DimEntry::Batch, Axis::Batch(_)) => Some(1),
                (DimEntry::Number(size), Axis::Batch(samples)) => {
                    (usize::try_from(*size).ok() == *samples).then_some(1)
                }
                (DimEntry::Number(size), Axis::Fixed(extent)) => {
                    let size = usize::try_from(*size).ok()?;
                    size.is_multiple_of(*extent).then_some(size / extent)
                }
                (DimEntry::Batch, Axis::Fixed(_)) => None,
            };
            let pairs = entries.iter().zip(x.dims.axes());
            (entries.len() == x.dims.rank()).then(|| pairs.map(factor).collect()).flatten()
        }
        None => {
            let scales = match call.attribute("scales") {
                Some(_) => call.floats("scales")?,
                None => call.constant(if has_regions { 2 } else { 1 })?.floats()?,
            };
            let factor =
                |&scale: &f64| (scale >= 1.0 && scale.fract() == 0.0 && scale < 65536.0).then_some(scale as usize);
            (scales.len() == x.dims.rank()).then(|| scales.iter().map(factor).collect()).flatten()
        }
    };
    let mut selection = Vec::new();
    for (axis, &factor) in factors.ok_or_else(|| unclear(x))?.iter().enumerate().filter(|(_, factor)| **factor != 1) {
        let extent = extent(x, axis)?;
        if factor == 0 || extent.saturating_mul(factor) > MAX_ELEMENTS {
            return Err(unclear(x));
        }
        selection.push((axis, (0..extent * factor).map(|index| Some(index / factor)).collect()));
    }
    composer.select(x, &selection).map(Value::Computed)
}

fn unclear(x: &Computed) -> Reason {
    Reason::Unusable(format!("resizes axes {} by something other than whole factors", x.dims))
}
