//! Denormal numbers that are left in the end, set to 0, and the proof of what that does: part of the last step.

use leo_check::{Difference, Refusal, difference, single_errors};
use leo_network::Domain;

use crate::compress::{CompressError, Compressed};
use crate::deltas;
use crate::rewriting::certify::{Reasoning, RewriteStep};

/// Sets denormal numbers of a file of dense layers to 0. Before the last step, outputs could have moved so far.
pub(crate) fn flush(
    compressed: &mut Compressed,
    before_last: Vec<Vec<f64>>,
    domain: &Domain,
) -> Result<(), CompressError> {
    let (flushed, count) = compressed.document.flushed()?;
    let Some(RewriteStep { before, reasoning: Reasoning::Units(proof, pairs) }) = compressed.steps.last() else {
        return Ok(());
    };
    if count == 0 {
        return Ok(());
    }
    let refused = |refusal: Refusal| CompressError::Internal(refusal.to_string());
    let facts = proof.check::<f64>(before.network(), domain).map_err(refused)?;
    let with_ranges = compressed.errors.is_some();
    let Difference { deviation, ranges } = difference(&facts, flushed.network(), pairs, with_ranges)?;
    if let Some([_, errors]) = &mut compressed.errors {
        *errors = single_errors(flushed.network(), &ranges);
    }
    compressed.delta = before_last;
    deltas::add(&mut compressed.delta, &deviation);
    compressed.document = flushed;
    compressed.flushed = count;
    compressed.changed = true;
    Ok(())
}
