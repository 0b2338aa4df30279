//! From a file with convolutions to a smaller one: channels are left out, and nothing else is changed but biases and
//! weights that make up for them.
//!
//! There is no plan to choose from, but one question: which nodes may make up for what goes. That rounds biases and
//! weights, and what it moves outputs by grows on the way to them: so if all of them together move outputs too far,
//! those that come first are left out, until the rest does not; first of those with new weights, then of those with new
//! biases. Weights that are rounded are no approximation, so what they move outputs by is held against the tolerance
//! before they are; with them, it must be nothing that one could see.

use std::collections::BTreeMap;
use std::time::Instant;

use leo_check::{
    ChannelBounds, ChannelExpression, ChannelSelection, Checker, Difference, ProvedBounds, channel_difference,
    single_errors,
};
use leo_formats::onnx::{Document, MadeUp, OnnxError};
use leo_network::{Domain, UnitId, ValueId};
use leo_stability::{Status, analyze};

use crate::compare::reference::Reference;
use crate::compress::{CompressError, CompressOptions, Compressed};
use crate::deltas;
use crate::method::groups::{ChannelPlan, Groups, Making};
use crate::method::styles::VISIBLE_SHARE;
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
    /// How far outputs would move if no weight that makes up for a channel were rounded.
    approximation: Vec<Vec<f64>>,
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
        let what = "channels are left out of a file in the type that it has; leave out --dtype";
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
    let tolerances = options.tolerance().of_outputs(&reference.scales, first.float());
    let mut narrowing = Narrowing { domain, options, reference, tolerances };
    narrowing.step(compressed, &analysis.facts, analysis.channel_bounds.clone())?;
    // What is left may have narrower ranges than what it was made from, so that more is known of it.
    for _ in 1..MOST_ROUNDS {
        if !compressed.changed {
            break;
        }
        let document = compressed.document.clone();
        let has_more = if analysis.channel_bounds.is_empty() {
            let mut checker = Checker::new(document.network(), domain)?;
            checker.go_to_end();
            narrowing.step(compressed, &checker.finish(), Vec::new())?
        } else {
            let again = analyze(document.network(), domain, &options.stability)?;
            narrowing.step(compressed, &again.facts, again.channel_bounds)?
        };
        if !has_more {
            break;
        }
    }
    compressed.staying = staying(compressed, &analysis.facts, options);
    compressed.times.rewriting += start.elapsed();
    Ok(())
}

/// What it takes to leave out channels.
struct Narrowing<'a> {
    domain: &'a Domain,
    options: &'a CompressOptions<'a>,
    reference: &'a Reference<'a>,
    /// How far elements of outputs may still be moved.
    tolerances: Vec<Vec<f64>>,
}

impl Narrowing<'_> {
    /// Leaves out channels of a file of which this is known, until nothing more can go as far as that shows. Whether
    /// anything went.
    fn step(
        &mut self,
        compressed: &mut Compressed,
        facts: &ProvedBounds<'_>,
        bounds: Vec<ChannelBounds>,
    ) -> Result<bool, CompressError> {
        let first = compressed.document.clone();
        let mut all = ChannelSelection::default();
        let mut approximation = Vec::new();
        for _ in 0..MOST_ROUNDS {
            ensure_wanted(self.options)?;
            let Some(narrowed) = self.narrowed(&compressed.document, facts, &all)? else { break };
            compressed.history.leave_out(&narrowed.plan, &compressed.document);
            all = joined(&all, &narrowed.plan.selection);
            approximation = narrowed.approximation;
            compressed.document = narrowed.document;
        }
        let mut has_changed = !all.kept.is_empty();
        if self.options.flush_denormals {
            let (document, flushed) = compressed.document.flushed()?;
            (compressed.document, has_changed) = (document, has_changed || flushed > 0);
            compressed.flushed += flushed;
        }
        if !has_changed && !compressed.steps.is_empty() {
            return Ok(false);
        }
        compressed.changed |= has_changed;
        let with_ranges = compressed.errors.is_some();
        let Difference { deviation, ranges } =
            channel_difference(facts, compressed.document.network(), &all, with_ranges)?;
        deltas::add(&mut compressed.delta, &deviation);
        let left = self.tolerances.iter_mut().flatten().zip(approximation.iter().flatten());
        left.for_each(|(left, spent)| *left = (*left - spent).max(0.0));
        compressed.approximation += deltas::largest(&approximation);
        if let Some([_, errors]) = compressed.errors.as_mut().filter(|_| has_changed) {
            *errors = single_errors(compressed.document.network(), &ranges);
        }
        compressed.steps.push(RewriteStep { before: first, reasoning: Reasoning::Channels(all, bounds) });
        Ok(has_changed)
    }
}

/// The stable units that are still there, and why.
fn staying(compressed: &Compressed, facts: &ProvedBounds<'_>, options: &CompressOptions<'_>) -> Vec<Staying> {
    let Some(RewriteStep { before, .. }) = compressed.steps.first() else { return Vec::new() };
    let groups = Groups::new(facts, before, is_exact(options));
    let (constants, shares) = makers(&groups, options);
    let needed =
        [Making { constants: &constants, shares: &shares }, Making::default()].map(|making| groups.core(making));
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

/// Which nodes may make up for constants, and which for linear functions of other channels.
fn makers(groups: &Groups<'_>, options: &CompressOptions<'_>) -> (Vec<ValueId>, Vec<ValueId>) {
    let constants = if is_exact(options) { Vec::new() } else { groups.absorbers() };
    (constants, if options.bit_exact { Vec::new() } else { groups.sharers() })
}

/// Whether outputs may not move at all.
fn is_exact(options: &CompressOptions<'_>) -> bool {
    options.bit_exact || options.tolerance() == Tolerance::Zero
}

fn align(options: &CompressOptions<'_>) -> usize {
    options.align.unwrap_or(DEFAULT_ALIGN).max(1)
}

impl Narrowing<'_> {
    /// A file with fewer channels, if there are any that can go. How far outputs may move is held against the file that
    /// these facts are about, of which these channels are left.
    fn narrowed(
        &self,
        document: &Document,
        facts: &ProvedBounds<'_>,
        all: &ChannelSelection,
    ) -> Result<Option<Narrowed>, CompressError> {
        let own;
        let facts_now = if all.kept.is_empty() {
            facts
        } else {
            let mut checker = Checker::new(document.network(), self.domain)?;
            checker.go_to_end();
            own = checker.finish();
            &own
        };
        let groups = Groups::new(facts_now, document, is_exact(self.options));
        let attempt = |making: Making<'_>| -> Result<Option<Narrowed>, CompressError> {
            ensure_wanted(self.options)?;
            let plan = groups.plan(making, align(self.options));
            Ok(self.tried(document, facts, all, plan))
        };
        let (constants, shares) = makers(&groups, self.options);
        if let Some(found) = best_of(&shares, |shares| attempt(Making { constants: &constants, shares }))? {
            return Ok(Some(found));
        }
        best_of(&constants, |constants| attempt(Making { constants, shares: &[] }))
    }

    /// What comes of a plan, if it moves outputs no further than they may be.
    fn tried(
        &self,
        document: &Document,
        facts: &ProvedBounds<'_>,
        all: &ChannelSelection,
        plan: ChannelPlan,
    ) -> Option<Narrowed> {
        if plan.selection.kept.is_empty() || !plan.can_be_told(document) {
            return None;
        }
        let selection = joined(all, &plan.selection);
        // Where a single channel is left, a change of layout may be none any more, and the nodes are others.
        let narrowed = |made_up: &MadeUp| {
            let made = document.narrow(&plan.selection.kept, made_up).ok()?.made;
            let found = channel_difference(facts, made.network(), &selection, false).ok()?;
            Some((made, found.deviation))
        };
        let (made, deviation) = narrowed(&plan.made_up)?;
        let approximation = if plan.made_up.shares.is_empty() {
            deviation
        } else {
            let relative = self.reference.relative(&deviation, &self.tolerances, 1.0 / VISIBLE_SHARE);
            if relative > VISIBLE_SHARE {
                return None;
            }
            narrowed(&MadeUp { is_unrounded: true, ..plan.made_up.clone() })?.1
        };
        let fits = match is_exact(self.options) {
            true => deltas::are_zero(&approximation),
            false => deltas::are_within(&approximation, &self.tolerances),
        };
        fits.then_some(Narrowed { document: made, plan, approximation })
    }
}

/// What is made with as many of the last ones as possible, if anything is. The fewer of the first ones take part, the
/// less outputs move.
fn best_of<T>(
    all: &[ValueId],
    attempt: impl Fn(&[ValueId]) -> Result<Option<T>, CompressError>,
) -> Result<Option<T>, CompressError> {
    let (mut least, mut most) = (0, all.len());
    let mut best = attempt(all)?;
    if best.is_some() {
        return Ok(best);
    }
    while least < most {
        let middle = least + (most - least) / 2;
        match attempt(&all[middle + 1..])? {
            Some(found) => {
                best = Some(found);
                most = middle;
            }
            None => least = middle + 1,
        }
    }
    Ok(best)
}

/// The channels that stay of those that stayed before, and what all those are that went.
fn joined(before: &ChannelSelection, after: &ChannelSelection) -> ChannelSelection {
    let mut all = before.clone();
    let place = |value: ValueId, channel: usize| before.kept.get(&value).map_or(channel, |before| before[channel]);
    for (&value, kept) in &after.kept {
        all.kept.insert(value, kept.iter().map(|&channel| place(value, channel)).collect());
    }
    for (&value, expressions) in &after.expressions {
        for (&channel, of) in expressions {
            let terms = of.terms.iter().map(|&(other, factor)| (place(value, other), factor)).collect();
            let of = ChannelExpression { constant: of.constant, terms };
            all.expressions.entry(value).or_default().insert(place(value, channel), of);
        }
    }
    // What an expression is made of has none itself.
    for expressions in all.expressions.values_mut() {
        let known = expressions.clone();
        for of in expressions.values_mut() {
            let mut terms: BTreeMap<usize, f64> = BTreeMap::new();
            for (other, factor) in std::mem::take(&mut of.terms) {
                match known.get(&other) {
                    Some(inner) => {
                        of.constant += factor * inner.constant;
                        inner.terms.iter().for_each(|(at, by)| *terms.entry(*at).or_default() += factor * by);
                    }
                    None => *terms.entry(other).or_default() += factor,
                }
            }
            of.terms = terms.into_iter().collect();
        }
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
            if let Some(kept) = plan.selection.kept.get(&document.network().output_of(layer)) {
                let origins = &mut self.origins[layer.index()];
                *origins = kept.iter().map(|&unit| origins[unit]).collect();
            }
        }
    }
}
