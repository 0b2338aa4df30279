//! Rewriting without any rounding: only what leaves every weight and bias a number of its type, exactly.
//!
//! Units that are always off go, and so do, unless a sum would have to be rounded, units without weights and exact
//! multiples of others, and units that nobody reads. Whether something is exact is seen by error-free transformations
//! ([`leo_network::sum_and_error`], [`leo_network::product_and_error`]).

use leo_check::Expression;
use leo_formats::onnx::Float;
use leo_network::{product_and_error, sum_and_error};

use crate::normal_form::affine::Affine;
use crate::rewriting::draft::RegionDraft;
use crate::rewriting::plan::{ChannelFate, Plan, Rule};
use crate::rewriting::region::Region;

/// Rewrites a region. The paper's algorithm knows neither multiples nor units that nobody reads.
pub(crate) fn plan(region: &Region, float: Float, as_in_paper: bool) -> Plan {
    let mut draft = RegionDraft::new(region);
    for index in 0..region.layers.len() {
        remove_constants(&mut draft, index, float);
        if !as_in_paper {
            merge_multiples(&mut draft, index, float);
        }
        draft.leave_out_if_empty(index);
    }
    if !as_in_paper {
        for index in (0..region.layers.len()).rev() {
            remove_dead(&mut draft, index);
        }
    }
    draft.finish()
}

fn remove_constants(draft: &mut RegionDraft<'_>, index: usize, float: Float) {
    let layer = &draft.region.layers[index];
    for unit in 0..layer.map.rows {
        let (rule, output) = if layer.is_inactive(unit) {
            (Rule::Inactive, 0.0)
        } else if draft.maps[index].row(unit).iter().all(|&weight| weight == 0.0) {
            (Rule::Constant, layer.activation.of(draft.maps[index].bias[unit]))
        } else {
            continue;
        };
        let fits = |map: &Affine, row: usize| exact_sum(map.bias[row], map.at(row, unit), output, float).is_some();
        if output == 0.0 || draft.readers(index).all(|map| (0..map.rows).all(|row| fits(map, row))) {
            draft.add_constant(index, unit, output);
            draft.fates[index][unit] = ChannelFate::Gone(rule, Expression::constant(output));
        }
    }
}

fn merge_multiples(draft: &mut RegionDraft<'_>, index: usize, float: Float) {
    if !draft.region.layers[index].activation.is_homogeneous() {
        return;
    }
    for unit in 0..draft.fates[index].len() {
        let others: Vec<usize> = (0..unit).filter(|&other| draft.fates[index][other].is_kept()).collect();
        if !draft.fates[index][unit].is_kept() {
            continue;
        }
        for of in others {
            let Some(factor) = exact_factor(&draft.maps[index], unit, of) else { continue };
            let sum = |map: &Affine, row: usize| exact_sum(map.at(row, of), map.at(row, unit), factor, float);
            if !draft.readers(index).all(|map| (0..map.rows).all(|row| sum(map, row).is_some())) {
                continue;
            }
            for map in draft.readers(index) {
                for row in 0..map.rows {
                    map.row_mut(row)[of] = sum(map, row).unwrap_or_default();
                    map.row_mut(row)[unit] = 0.0;
                }
            }
            draft.fates[index][unit] = ChannelFate::Gone(Rule::Multiple, Expression::Multiple { of, factor });
            break;
        }
    }
}

fn remove_dead(draft: &mut RegionDraft<'_>, index: usize) {
    if draft.gone[index] {
        return;
    }
    for unit in 0..draft.fates[index].len() {
        let kept = (0..draft.fates[index].len()).filter(|&unit| draft.fates[index][unit].is_kept()).count();
        if draft.fates[index][unit].is_kept() && kept > 1 && !draft.is_read(index, unit) {
            draft.fates[index][unit] = ChannelFate::Gone(Rule::Dead, Expression::Itself);
        }
    }
}

/// The factor above 0, if there is one, that makes one row and its bias another, exactly.
fn exact_factor(map: &Affine, unit: usize, of: usize) -> Option<f64> {
    let (rows, biases) = ((map.row(unit), map.row(of)), (map.bias[unit], map.bias[of]));
    let pairs = || rows.0.iter().copied().zip(rows.1.iter().copied()).chain([biases]);
    let (a, b) = pairs().find(|&(_, b)| b != 0.0)?;
    let factor = a / b;
    let is_exact = |(a, b): (f64, f64)| product_and_error(b, factor) == (a, 0.0);
    (factor > 0.0 && factor.is_finite() && pairs().all(is_exact)).then_some(factor)
}

/// `sum + a b`, if that is a number of this type.
fn exact_sum(sum: f64, a: f64, b: f64, float: Float) -> Option<f64> {
    let (product, product_error) = product_and_error(a, b);
    let (total, sum_error) = sum_and_error(sum, product);
    (product_error == 0.0 && sum_error == 0.0 && float.round(total) == total).then_some(total)
}
