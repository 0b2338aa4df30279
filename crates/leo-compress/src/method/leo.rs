//! LEO as in the paper: Algorithm 1 of T. Serra, A. Kumar, S. Ramalingam, *Lossless Compression of Deep Neural
//! Networks*, CPAIOR 2020, [arXiv:2001.00218](https://arxiv.org/abs/2001.00218).
//!
//! Layer by layer, from the first to the last:
//!
//! - *remove* units with a constant output: always off, or without weights. What they give goes into the biases of the
//!   next layer;
//! - *merge* units that are always on and whose weights are a linear combination of the weights of those kept before:
//!   `w_i = Σ α_k w_k`, so `h_i = Σ α_k h_k + b_i - Σ α_k b_k`, and the next layer's weights and biases take that over.
//!   (Algorithm 1 has a plus before the last sum; the paper's proof has the minus that is right);
//! - *fold* a layer whose units are all on: it is an affine map, and goes into the next;
//! - *collapse* the network if nothing but constants is left in a layer: the function is constant.
//!
//! `G <= 0` is enough for a unit to be off; the paper writes `G < 0`.

use leo_check::Expression;

use crate::normal_form::linear::Span;
use crate::rewriting::draft::RegionDraft;
use crate::rewriting::plan::{ChannelFate, Plan, Rule};
use crate::rewriting::region::Region;

/// Goes through the layers of a region. A unit may be merged if what the linear combination misses is at most
/// `allowance` (layer, unit) anywhere on the domain, or no more than rounding.
pub(crate) fn plan(region: &Region, allowance: impl Fn(usize, usize) -> f64) -> Plan {
    let mut draft = RegionDraft::new(region);
    for layer in 0..region.layers.len() {
        if !draft.gone[layer] {
            go_through(&mut draft, layer, &allowance);
        }
    }
    draft.finish()
}

fn go_through(draft: &mut RegionDraft<'_>, index: usize, allowance: &impl Fn(usize, usize) -> f64) {
    let layer = &draft.region.layers[index];
    let units = layer.map.rows;
    let (mut stable, mut unstable): (Vec<usize>, bool) = (Vec::new(), false);
    let mut span = Span::new(draft.magnitudes(index));
    for unit in 0..units {
        let no_weights = draft.maps[index].row(unit).iter().all(|&weight| weight == 0.0);
        if layer.is_inactive(unit) || no_weights {
            let others = unit + 1 < units || !stable.is_empty() || unstable;
            let (rule, output) = match layer.is_inactive(unit) {
                true => (Rule::Inactive, 0.0),
                false => (Rule::Constant, layer.activation.of(draft.maps[index].bias[unit])),
            };
            if others {
                draft.add_constant(index, unit, output);
            }
            draft.fates[index][unit] = ChannelFate::Gone(rule, Expression::constant(output));
        } else if layer.line(unit) == (1.0, 0.0) {
            match span.express(draft.maps[index].row(unit), allowance(index, unit)) {
                None => stable.push(unit),
                Some(combination) => {
                    draft.merge(index, unit, &stable, &combination);
                    draft.fates[index][unit] = ChannelFate::Gone(Rule::Merged, Expression::linear(0.0));
                }
            }
        } else {
            unstable = true;
        }
    }
    match (unstable, stable.is_empty()) {
        (true, _) => {}
        (false, false) => draft.fold(index, &stable),
        (false, true) => draft.collapse(index),
    }
}
