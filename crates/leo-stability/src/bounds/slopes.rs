//! Better slopes for linear bounds: alpha-CROWN (Xu et al. 2021, *Fast and Complete*, arXiv:2011.13824).
//!
//! A linear bound replaces an unstable unit by a line, and where its coefficient is negative the line's slope is free,
//! from 0 to 1 (`leo-check`, `backward.rs`): the field calls it alpha. For fixed slopes the bound is attained at one
//! corner of the domain. There, the bound's derivative with respect to a slope is the unit's coefficient times its
//! pre-activation in the relaxed network, where every ReLU is replaced by its line. So: substitute backward, evaluate
//! forward, take a step, and keep the best. Slopes belong to one bound each, and ranges of the layers before stay as
//! they are meanwhile.

use leo_check::{LowerSlopes, Target};
use leo_network::Network;

use crate::bounds::KnownRanges;
use crate::bounds::relaxed::{RelaxedPass, chosen_slopes};
use crate::budget::Budget;

/// How many steps are taken at the most.
const MAX_STEPS: usize = 60;

/// How many bounds should be improved together, at the most: what they take must fit into memory, whatever the number
/// of threads.
pub(crate) fn block(network: &Network) -> usize {
    ((1 << 20) / network.widest().max(1)).clamp(1, 64)
}

/// Slopes for some bounds of a value: as good as can be, or, if nothing more is wanted, so good that all are below 0.
pub(crate) fn improved(
    known: KnownRanges<'_>,
    bounds: &[Target],
    stop_at_sign: bool,
    budget: &Budget<'_>,
) -> Vec<LowerSlopes> {
    let mut pass = RelaxedPass::new(known, &[], bounds.len());
    let mut best: Vec<f64> = vec![f64::INFINITY; bounds.len()];
    let mut kept: Vec<LowerSlopes> = (0..bounds.len()).map(|row| chosen_slopes(&pass.lines, row)).collect();
    for step in 0..MAX_STEPS {
        let found = pass.backward(bounds);
        for (row, (best, found)) in best.iter_mut().zip(found).enumerate() {
            if found < *best {
                *best = found;
                kept[row] = chosen_slopes(&pass.lines, row);
            }
        }
        if stop_at_sign && best.iter().all(|&bound| bound < 0.0) || budget.is_exhausted() {
            break;
        }
        let corners = std::mem::take(&mut pass.corners);
        pass.forward(corners);
        pass.descend(0.5 / (1.0 + step as f64 / 10.0));
    }
    kept
}
