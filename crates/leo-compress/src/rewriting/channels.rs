//! From a file with convolutions to a smaller one: channels are left out, and nothing else is changed but biases and
//! weights that make up for them.
//!
//! There is no plan to choose from, but one question: which nodes may make up for what goes. That rounds biases and
//! weights, and what it moves outputs by grows on the way to them: so if all of them together move outputs too far,
//! those that come first are left out, until the rest does not; first of those with new weights, then of those with new
//! biases. Weights that are rounded are no approximation, so what they move outputs by is held against the tolerance
//! before they are; with them, it must be nothing that one could see.
//!
//! What is dense behind the convolutions is rewritten first ([`DensePart`]), as the dense network that it is, so that
//! channels that only its units needed can go as well. Both are one link: nothing in between has to be in a
//! certificate.

use std::collections::BTreeMap;
use std::time::Instant;

use leo_check::{
    ChannelBounds, ChannelExpression, ChannelSelection, Checker, Difference, ProvedBounds, channel_difference,
    single_errors,
};
use leo_formats::onnx::{Document, Float, MadeUp, OnnxError};
use leo_network::{Domain, LayerId, UnitId, ValueId};
use leo_stability::{AnalysisOptions, Engine, Status, analyze};

use crate::compare::reference::Reference;
use crate::compress::{CompressError, CompressOptions, Compressed};
use crate::deltas;
use crate::method::groups::{ChannelPlan, Groups, Making};
use crate::method::styles::VISIBLE_SHARE;
use crate::rewriting::certify::{Reasoning, RewriteStep};
use crate::rewriting::dense_part::{DensePart, RewrittenPart};
use crate::rewriting::history::{History, RemovedUnit};
use crate::rewriting::region::Pinned;
use crate::rewriting::round::{ensure_wanted, is_spent};
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
    let begun = Instant::now();
    let analysis = analyze(first.network(), domain, &options.stability)?;
    ensure_wanted(options)?;
    compressed.times.stability += begun.elapsed();
    let units = analysis.layers.iter().flat_map(|layer| &layer.units);
    compressed.undecided = units.filter(|unit| unit.status == Status::Undecided).count();
    compressed.stopped = analysis.stopped;
    compressed.history = History::begin(&analysis.layers);
    let errors = || single_errors(first.network(), analysis.facts.ranges());
    compressed.errors = first.is_plainly_single().then(errors).map(|errors| [errors.clone(), errors]);
    let (start, before) = (Instant::now(), compressed.times);
    let float = first.float();
    let tolerances = options.tolerance().of_outputs(&reference.scales, float);
    let is_spent = is_spent(&first, options.tolerance(), domain);
    let mut narrowing = Narrowing {
        domain,
        options,
        reference,
        tolerances,
        begun,
        float,
        is_spent,
        is_plain: false,
        first_dense: None,
    };
    narrowing.step(compressed, &analysis.facts, analysis.channel_bounds.clone())?;
    // What stays of a part that was rewritten is known already.
    let of_part = std::mem::take(&mut compressed.staying);
    compressed.staying = staying(compressed, &analysis.facts, options);
    if let Some(first) = narrowing.first_dense {
        compressed.staying.retain(|staying| staying.layer.index() < first);
        compressed.staying.extend(of_part);
    }
    // What is left may have narrower ranges than what it was made from, so that more is known of it.
    for _ in 1..MOST_ROUNDS {
        if !compressed.changed {
            break;
        }
        let document = compressed.document.clone();
        let has_more = if analysis.channel_bounds.is_empty() {
            narrowing.step(compressed, &intervals(&document, domain)?, Vec::new())?
        } else {
            let again = analyze(document.network(), domain, &options.stability)?;
            narrowing.step(compressed, &again.facts, again.channel_bounds)?
        };
        if !has_more {
            break;
        }
    }
    compressed.forget_what_went();
    let of_part = compressed.times.stability - before.stability + (compressed.times.planning - before.planning);
    compressed.times.rewriting += start.elapsed().saturating_sub(of_part);
    Ok(())
}

/// What intervals prove of a file.
fn intervals<'n>(document: &'n Document, domain: &Domain) -> Result<ProvedBounds<'n>, CompressError> {
    let mut checker = Checker::new(document.network(), domain)?;
    checker.go_to_end();
    Ok(checker.finish())
}

/// What it takes to leave out channels.
struct Narrowing<'a> {
    domain: &'a Domain,
    options: &'a CompressOptions<'a>,
    reference: &'a Reference<'a>,
    /// How far elements of outputs may still be moved.
    tolerances: Vec<Vec<f64>>,
    /// When the time began of which there may be a limit.
    begun: Instant,
    /// The type of the file's numbers.
    float: Float,
    /// Whether the dense part was approximated already.
    is_spent: bool,
    /// Whether everything that is known of the dense part is seen without a search.
    is_plain: bool,
    /// Which layer of the file that was given is the first of its dense part, if that was rewritten at once.
    first_dense: Option<usize>,
}

impl Narrowing<'_> {
    /// Rewrites the dense part of a file of which this is known, and leaves out channels, until nothing more can go as
    /// far as that shows. Whether anything went.
    fn step(
        &mut self,
        compressed: &mut Compressed,
        facts: &ProvedBounds<'_>,
        bounds: Vec<ChannelBounds>,
    ) -> Result<bool, CompressError> {
        let first = compressed.document.clone();
        let part = DensePart::of(&first, facts);
        let taken = match &part {
            Some(part) => self.rewrite(part, compressed, facts)?,
            None => None,
        };
        let (rewritten, history) = (compressed.document.clone(), compressed.history.clone());
        let dense = part.as_ref().filter(|_| taken.is_some());
        let own = dense.map(|part| self.before(part, &first, &rewritten, &bounds)).transpose()?;
        let dense = taken.as_ref().map(|taken| taken.claims.value);
        let (mut all, mut approximation) = self.leave_out(compressed, own.as_ref().unwrap_or(facts), dense)?;
        let pair = taken.as_ref().map(RewrittenPart::pair);
        let compare = |document: &Document, all: &ChannelSelection, with_ranges: bool| {
            channel_difference(facts, document.network(), all, pair.as_ref(), with_ranges)
        };
        if pair.is_some() && !all.kept.is_empty() {
            let found = compare(&compressed.document, &all, false);
            if !found.is_ok_and(|found| self.allows(&found.deviation)) {
                // Without fewer channels, it was looked at before.
                (compressed.document, compressed.history) = (rewritten.clone(), history);
                (all, approximation) = (ChannelSelection::default(), Vec::new());
            }
        }
        let mut has_changed = !all.kept.is_empty() || taken.is_some();
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
        let Difference { deviation, ranges } = compare(&compressed.document, &all, with_ranges)?;
        deltas::add(&mut compressed.delta, &deviation);
        let left = self.tolerances.iter_mut().flatten().zip(approximation.iter().flatten());
        left.for_each(|(left, spent)| *left = (*left - spent).max(0.0));
        compressed.approximation += deltas::largest(&approximation);
        if let Some([_, errors]) = compressed.errors.as_mut().filter(|_| has_changed) {
            *errors = single_errors(compressed.document.network(), &ranges);
        }
        let is_plainly_single = compressed.document.is_plainly_single();
        compressed.errors.take_if(|_| !is_plainly_single);
        let claims = taken.map(|taken| taken.claims);
        compressed.steps.push(RewriteStep { before: first, reasoning: Reasoning::Channels(all, bounds, claims) });
        Ok(has_changed)
    }

    /// What is known of a file with another dense part than before: of what comes before that, the same.
    fn before<'n>(
        &self,
        part: &DensePart,
        first: &Document,
        rewritten: &'n Document,
        bounds: &[ChannelBounds],
    ) -> Result<ProvedBounds<'n>, CompressError> {
        let end = part.first_layer(first.network());
        let bounds: Vec<ChannelBounds> = bounds.iter().filter(|of| of.layer.index() < end).cloned().collect();
        let found = ProvedBounds::of_channels(rewritten.network(), self.domain, &bounds, &());
        found.map_err(|refusal| CompressError::Internal(refusal.to_string()))
    }

    /// Leaves out channels of a file of which this is known, as often as that helps: which ones are left of all, and
    /// how far that moves outputs on purpose.
    fn leave_out(
        &self,
        compressed: &mut Compressed,
        facts: &ProvedBounds<'_>,
        dense: Option<ValueId>,
    ) -> Result<(ChannelSelection, Vec<Vec<f64>>), CompressError> {
        let (mut all, mut approximation) = (ChannelSelection::default(), Vec::new());
        for _ in 0..MOST_ROUNDS {
            ensure_wanted(self.options)?;
            let Some(narrowed) = self.narrowed(&compressed.document, facts, &all, dense)? else { break };
            compressed.history.leave_out(&narrowed.plan, &compressed.document);
            all = joined(&all, &narrowed.plan.selection);
            approximation = narrowed.approximation;
            compressed.document = narrowed.document;
        }
        Ok((all, approximation))
    }

    /// Rewrites a dense part of a file of which this is known, if something is gained by that.
    fn rewrite<'n>(
        &mut self,
        part: &'n DensePart,
        compressed: &mut Compressed,
        facts: &ProvedBounds<'_>,
    ) -> Result<Option<RewrittenPart<'n>>, CompressError> {
        let time_limit = self.options.stability.time_limit.map(|limit| limit.saturating_sub(self.begun.elapsed()));
        if time_limit.is_some_and(|limit| limit.is_zero()) {
            return Ok(None);
        }
        let mut stability = AnalysisOptions { time_limit, ..self.options.stability };
        if self.is_plain {
            stability = AnalysisOptions { engine: Engine::Bounds, nodes: Some(0), ..stability };
        }
        let tolerance = if self.is_spent { Tolerance::Zero } else { self.options.tolerance() };
        let bit_exact = is_exact(self.options);
        let options = CompressOptions { stability, tolerance: Some(tolerance), bit_exact, ..*self.options };
        let document = compressed.document.clone();
        let (is_plain, taken) = part.rewritten(&document, self.domain, &options)?;
        self.is_plain = is_plain;
        let Some(taken) = taken else { return Ok(None) };
        let nothing = ChannelSelection::default();
        let found = channel_difference(facts, taken.document.network(), &nothing, Some(&taken.pair()), false);
        if !found.is_ok_and(|found| self.allows(&found.deviation)) || self.is_noisy(&taken.document) {
            return Ok(None);
        }
        self.is_spent = true;
        if taken.compressed.approximation > 0.0 {
            let spent = tolerance.of_outputs(&taken.compressed.scales, document.float());
            let left = self.tolerances.iter_mut().flatten().zip(spent.iter().flatten());
            left.for_each(|(left, spent)| *left = (*left - spent.min(taken.compressed.approximation)).max(0.0));
        }
        let first = part.first_layer(document.network());
        if compressed.steps.is_empty() {
            self.first_dense = Some(first);
        }
        compressed.note_part(first, &taken);
        Ok(Some(taken))
    }

    /// Whether outputs may be moved so far by weights that are rounded.
    fn allows(&self, deviation: &[Vec<f64>]) -> bool {
        let tolerances = self.options.tolerance().of_outputs(&self.reference.scales, self.float);
        match is_exact(self.options) {
            true => deltas::are_zero(deviation),
            false => self.reference.relative(deviation, &tolerances, 1.0 / VISIBLE_SHARE) <= VISIBLE_SHARE,
        }
    }

    /// Whether single precision makes too much of a file, if it is in that.
    fn is_noisy(&self, document: &Document) -> bool {
        let limit = self.options.noise_limit();
        let measured = || self.reference.compare(document.network(), limit);
        document.float() == Float::F32 && measured().iter().any(|measured| measured.factor > limit)
    }
}

/// The stable units that are still there, and why.
fn staying(compressed: &Compressed, facts: &ProvedBounds<'_>, options: &CompressOptions<'_>) -> Vec<Staying> {
    let Some(RewriteStep { before, .. }) = compressed.steps.first() else { return Vec::new() };
    let groups = Groups::new(facts, before, is_exact(options), None);
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
        dense: Option<ValueId>,
    ) -> Result<Option<Narrowed>, CompressError> {
        let own = if all.kept.is_empty() { None } else { Some(intervals(document, self.domain)?) };
        let groups = Groups::new(own.as_ref().unwrap_or(facts), document, is_exact(self.options), dense);
        let attempt = |making: Making<'_>| -> Result<Option<Narrowed>, CompressError> {
            ensure_wanted(self.options)?;
            let plan = groups.plan(making, align(self.options));
            Ok(if plan.can_be_told(document, dense) { self.tried(document, facts, all, plan) } else { None })
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
        if plan.selection.kept.is_empty() {
            return None;
        }
        let selection = joined(all, &plan.selection);
        // Where a single channel is left, a change of layout may be none any more, and the nodes are others.
        let narrowed = |made_up: &MadeUp| {
            let made = document.narrow(&plan.selection.kept, made_up).ok()?.made;
            let found = channel_difference(facts, made.network(), &selection, None, false).ok()?;
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

impl Compressed {
    /// Notes what became of the dense part of a file, whose layers are those from this one on.
    fn note_part(&mut self, first: usize, taken: &RewrittenPart<'_>) {
        let RewrittenPart { document, compressed: part, .. } = taken;
        let place = |layer: LayerId| LayerId::new(first + layer.index());
        if self.steps.is_empty() {
            self.history.learn(first, &part.history.layers);
            let units = self.history.layers.iter().flat_map(|layer| &layer.units);
            self.undecided = units.filter(|unit| unit.status == Status::Undecided).count();
            self.stopped = self.stopped.or(part.stopped);
            self.pinned
                .extend(part.pinned.iter().cloned().map(|pinned| Pinned { layer: place(pinned.layer), ..pinned }));
            let staying = part.staying.iter().cloned();
            self.staying = staying.map(|staying| Staying { layer: place(staying.layer), ..staying }).collect();
        }
        self.history.add_part(first, &part.history);
        self.approximation += part.approximation;
        self.times.stability += part.times.stability;
        self.times.planning += part.times.planning;
        self.document = document.clone();
    }
}
