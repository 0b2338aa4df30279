//! From a file with convolutions to a smaller one: channels are left out, and nothing else is changed but biases that
//! make up for constants.
//!
//! There is no plan to choose from, but one question: which nodes may make up for constants. That rounds a bias, and
//! what it moves outputs by grows on the way to them: so if all of them together move outputs too far, those that come
//! first are left out, until the rest does not.

use std::time::Instant;

use leo_check::{Checker, Difference, KeptChannels, ProvedBounds, channel_difference, single_errors};
use leo_formats::onnx::{Document, OnnxError};
use leo_network::{Domain, UnitId, ValueId};
use leo_stability::{Status, analyze};

use crate::compare::reference::Reference;
use crate::compress::{CompressError, CompressOptions, Compressed};
use crate::method::groups::{ChannelPlan, Groups};
use crate::rewriting::certify::{Reasoning, RewriteStep};
use crate::rewriting::history::{History, RemovedUnit};
use crate::rewriting::round::ensure_wanted;
use crate::tolerance::Tolerance;
use crate::why::{Staying, Why};

/// The most rounds. One does nearly all, the second finds that nothing is left to do.
const MOST_ROUNDS: usize = 4;

/// In what multiples of channels runtimes compute convolutions best, if nothing is said. (Measured: PERFORMANCE.md.)
pub(crate) const DEFAULT_ALIGN: usize = 4;

/// What came of leaving out channels once.
struct Narrowed {
    document: Document,
    plan: ChannelPlan,
}

/// Leaves out channels of a file that was given, of which `compressed` knows what is seen of it so far.
pub(crate) fn compress(
    compressed: &mut Compressed,
    domain: &Domain,
    options: &CompressOptions<'_>,
    reference: &Reference<'_>,
) -> Result<(), CompressError> {
    let first = compressed.document.clone();
    if options.float.is_some_and(|float| float != first.float()) {
        let what = "channels are left out of a file as it is, in the type that it has";
        return Err(CompressError::Onnx(OnnxError::Splice(what.to_owned())));
    }
    let start = Instant::now();
    let analysis = analyze(first.network(), domain, &options.stability)?;
    ensure_wanted(options)?;
    compressed.times.stability += start.elapsed();
    let units = analysis.layers.iter().flat_map(|layer| &layer.units);
    compressed.undecided = units.filter(|unit| unit.status == Status::Undecided).count();
    compressed.stopped = analysis.stopped;
    compressed.history = History::begin(&analysis.layers);
    let errors = || single_errors(first.network(), analysis.facts.ranges());
    compressed.errors = first.is_plainly_single().then(errors).map(|errors| [errors.clone(), errors]);
    let start = Instant::now();
    let mut all = KeptChannels::new();
    for _ in 0..MOST_ROUNDS {
        ensure_wanted(options)?;
        let Some(narrowed) = narrowed(&compressed.document, &first, &analysis.facts, &all, domain, options, reference)?
        else {
            break;
        };
        compressed.history.leave_out(&narrowed.plan, &compressed.document);
        all = joined(&all, &narrowed.plan.kept);
        compressed.document = narrowed.document;
        compressed.changed = true;
    }
    let with_ranges = compressed.errors.is_some();
    let Difference { deviation, ranges } =
        channel_difference(&analysis.facts, compressed.document.network(), &all, with_ranges)?;
    compressed.delta = deviation;
    if let Some([_, errors]) = compressed.errors.as_mut().filter(|_| compressed.changed) {
        *errors = single_errors(compressed.document.network(), &ranges);
    }
    compressed
        .steps
        .push(RewriteStep { before: first.clone(), reasoning: Reasoning::Channels(all, analysis.channel_bounds) });
    compressed.staying = staying(compressed, &analysis.facts, options);
    compressed.times.rewriting += start.elapsed();
    Ok(())
}

/// The stable units that are still there, and why.
fn staying(compressed: &Compressed, facts: &ProvedBounds<'_>, options: &CompressOptions<'_>) -> Vec<Staying> {
    let Some(RewriteStep { before, .. }) = compressed.steps.first() else { return Vec::new() };
    let groups = Groups::new(facts, before, is_exact(options));
    let needed = groups.core(&if is_exact(options) { Vec::new() } else { groups.absorbers() });
    let mut all: Vec<Staying> = Vec::new();
    for (layer, removed) in compressed.history.layers.iter().zip(&compressed.history.removed) {
        let stable = (0..removed.len()).filter(|&unit| layer.units[unit].status.is_stable() && removed[unit].is_none());
        for unit in stable {
            let why = match layer.units[unit].status {
                Status::OFF => groups.why(layer.id, unit, &needed, align(options)),
                _ => Why::LinearChannel,
            };
            match all.iter_mut().find(|known| known.layer == layer.id && known.why == why) {
                Some(known) => known.units.push(unit),
                None => all.push(Staying { layer: layer.id, units: vec![unit], why }),
            }
        }
    }
    all
}

/// Whether outputs may not move at all.
fn is_exact(options: &CompressOptions<'_>) -> bool {
    options.bit_exact || options.tolerance() == Tolerance::Zero
}

fn align(options: &CompressOptions<'_>) -> usize {
    options.align.unwrap_or(DEFAULT_ALIGN).max(1)
}

/// A file with fewer channels, if there are any that can go. How far outputs may move is held against the file that was
/// given, of which these channels are left.
fn narrowed(
    document: &Document,
    original: &Document,
    facts: &ProvedBounds<'_>,
    all: &KeptChannels,
    domain: &Domain,
    options: &CompressOptions<'_>,
    reference: &Reference<'_>,
) -> Result<Option<Narrowed>, CompressError> {
    let tolerance = options.tolerance();
    let tolerances = tolerance.of_outputs(&reference.scales, original.float());
    let (is_exact, align) = (is_exact(options), align(options));
    let own;
    let facts_now = if all.is_empty() {
        facts
    } else {
        let mut checker = Checker::new(document.network(), domain)?;
        checker.go_to_end();
        own = checker.finish();
        &own
    };
    let groups = Groups::new(facts_now, document, is_exact);
    let attempt = |absorbers: &[ValueId]| -> Result<Option<Narrowed>, CompressError> {
        let plan = groups.plan(absorbers, align);
        if plan.kept.is_empty() || !plan.can_be_told(document) {
            return Ok(None);
        }
        ensure_wanted(options)?;
        let Ok(new) = document.narrow(&plan.kept, &plan.summands) else { return Ok(None) };
        let kept = joined(all, &plan.kept);
        // Where a single channel is left, a change of layout may be none any more, and the nodes are others.
        let Ok(Difference { deviation, .. }) = channel_difference(facts, new.made.network(), &kept, false) else {
            return Ok(None);
        };
        let is_within = |(delta, tolerance): (&f64, &f64)| if is_exact { *delta == 0.0 } else { delta <= tolerance };
        let fits = deviation.iter().flatten().zip(tolerances.iter().flatten()).all(is_within);
        Ok(fits.then_some(Narrowed { document: new.made, plan }))
    };
    let absorbers = if is_exact { Vec::new() } else { groups.absorbers() };
    // The fewer of the first ones take part, the less outputs move.
    let (mut least, mut most) = (0, absorbers.len());
    let mut best = attempt(&absorbers)?;
    if best.is_some() {
        return Ok(best);
    }
    while least < most {
        let middle = least + (most - least) / 2;
        match attempt(&absorbers[middle + 1..])? {
            Some(found) => {
                best = Some(found);
                most = middle;
            }
            None => least = middle + 1,
        }
    }
    Ok(best)
}

/// The channels that stay of those that stayed before.
fn joined(before: &KeptChannels, after: &KeptChannels) -> KeptChannels {
    let mut all = before.clone();
    for (&value, kept) in after {
        let of = |channel: usize| before.get(&value).map_or(channel, |before| before[channel]);
        all.insert(value, kept.iter().map(|&channel| of(channel)).collect());
    }
    all
}

impl History {
    /// Notes what leaving out channels did to a file.
    fn leave_out(&mut self, plan: &ChannelPlan, document: &Document) {
        for RemovedUnit { unit: UnitId { layer, unit }, rule } in &plan.removed {
            if let Some(UnitId { layer, unit }) = self.origins[layer.index()][*unit] {
                self.removed[layer.index()][unit] = Some(*rule);
            }
        }
        for layer in document.network().layers() {
            if let Some(kept) = plan.kept.get(&document.network().output_of(layer)) {
                let origins = &mut self.origins[layer.index()];
                *origins = kept.iter().map(|&unit| origins[unit]).collect();
            }
        }
    }
}
