//! The checker: which ranges of pre-activations are proved.
//!
//! Layer by layer, each layer's ranges are found by intervals, and made narrower by linear bounds and by trees of
//! splits, as a proof or a prover asks for them. In the field's words, these are the *intermediate bounds*, on which
//! all lines of the layers after depend; a [`SplitTree`] is what branch and bound leaves when it is through.

use std::sync::Arc;

use leo_network::{Domain, DomainError, LayerId, Network, ValueId, ValueMap};
use rayon::prelude::*;

use crate::backward::{self, BackwardContext};
use crate::exact::Exact;
use crate::number::Number;
use crate::patches::{PatchBound, PatchSetting, Patches};
use crate::range::Range;
use crate::relaxation::{BoundProof, KnownPhase, Relaxation, Side, SplitTree, Target};
use crate::sound::Bound;

/// Goes through a network layer by layer, and knows for every value on the way a range that is proved.
#[derive(Clone, Debug)]
pub struct Checker<'n, N = f64> {
    network: &'n Network,
    domain: Domain,
    /// Of the input, and of what each node made, up to the pre-activations of the layer it stands at.
    ranges: ValueMap<Range<N>>,
    layer: Option<LayerId>,
    /// How many bounds go through one matrix product.
    block: usize,
    /// How much work is left for intervals of exact numbers, in products of words of 64 bits. Without any, nothing is
    /// known of what follows.
    work: f64,
    /// What bounds by patches know of nodes, from ranges that are no narrower than those here.
    patches: Arc<Patches<'n, N>>,
}

/// Ranges that are proved, of all values of a network on a domain. Only a [`Checker`] makes them.
#[derive(Clone, Debug)]
pub struct ProvedBounds<'n, N = f64> {
    network: &'n Network,
    domain: Domain,
    ranges: ValueMap<Range<N>>,
}

impl<'n, N: Number> ProvedBounds<'n, N> {
    /// The network that they are about.
    pub fn network(&self) -> &'n Network {
        self.network
    }

    /// The inputs that they are about.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Where a value can lie.
    pub fn range(&self, value: ValueId) -> &Range<N> {
        &self.ranges[value]
    }

    /// A box that holds a value, whatever the input is.
    ///
    /// # Errors
    /// If it is not known to lie in any.
    pub fn domain_at(&self, value: ValueId) -> Result<Domain, DomainError> {
        let Range { lower, upper } = self.ranges[value].outward();
        Domain::new(lower, upper)
    }

    /// Where the input, and what each node makes, can lie.
    pub fn ranges(&self) -> &ValueMap<Range<N>> {
        &self.ranges
    }
}

/// How many bounds go through one matrix product at the most.
const BLOCK_ROWS: usize = 128;
/// How many numbers go through one matrix product at the most.
const BLOCK_NUMBERS: usize = 1 << 22;
/// How much work intervals of exact numbers may be: seconds. A small file could ask for years.
const EXACT_WORK: f64 = 2e9;

impl<'n> Checker<'n> {
    /// Begins with the domain, in double precision.
    ///
    /// # Errors
    /// If the domain does not have as many inputs as the network.
    pub fn new(network: &'n Network, domain: &Domain) -> Result<Self, DomainError> {
        Self::begin(network, domain)
    }
}

impl<'n, N: Number> Checker<'n, N> {
    /// Begins with the domain, in any arithmetic.
    ///
    /// # Errors
    /// If the domain does not have as many inputs as the network.
    pub fn begin(network: &'n Network, domain: &Domain) -> Result<Self, DomainError> {
        let domain = domain.clone().for_inputs(network.input().elements())?;
        let rows = (BLOCK_NUMBERS / network.widest().max(1)).clamp(1, BLOCK_ROWS);
        let block = if N::ROUNDS { rows } else { 1 };
        let ranges = vec![Range::of_domain(&domain)].into();
        let patches = Arc::new(Patches::new(network));
        Ok(Self { network, domain, ranges, layer: None, block, work: EXACT_WORK, patches })
    }

    /// Goes on to the next layer, which it returns, and proves ranges of its pre-activations by intervals,
    /// from all that was proved of the layers before.
    pub fn next_layer(&mut self) -> Option<LayerId> {
        let layer = self.network.layer(self.layer.map_or(0, |done| done.index() + 1))?;
        self.go_to(self.network.output_of(layer).index() - 1);
        self.layer = Some(layer);
        Some(layer)
    }

    /// Goes back to a layer that it has come to before, and forgets what it knows of later values.
    ///
    /// # Panics
    /// If it has not come there yet.
    pub fn go_back(&mut self, layer: LayerId) {
        assert!(self.layer.is_some_and(|now| layer <= now), "a layer that it has come to");
        self.ranges.truncate(self.network.pre_activation(layer).index() + 1);
        self.layer = Some(layer);
        // Ranges that are found again may be wider than they were.
        self.patches = Arc::new(Patches::new(self.network));
    }

    /// Finds ranges, by intervals, of what the nodes before this one make.
    fn go_to(&mut self, end: usize) {
        for node in self.ranges.len() - 1..end {
            let made = &self.network.nodes()[node];
            let operand = &self.ranges[made.operands()[0]];
            self.work -= self.network.multiply_adds_of(made) as f64 * N::words(&operand.upper);
            let known = self.work > 0.0 || N::ROUNDS;
            let range = match known {
                true => Range::of_node(self.network, node, &self.ranges),
                false => Range::unknown(made.shape().elements()),
            };
            self.ranges.push(range);
        }
    }

    /// Goes on to the end, and proves ranges by intervals of all values on the way.
    pub fn go_to_end(&mut self) {
        self.go_to(self.network.nodes().len());
    }

    /// All that is proved, with intervals for what comes after the layer it stands at.
    pub fn finish(mut self) -> ProvedBounds<'n, N> {
        self.go_to_end();
        ProvedBounds { network: self.network, domain: self.domain, ranges: self.ranges }
    }

    /// The proved range of the pre-activations of a layer that the checker has come to.
    ///
    /// # Panics
    /// If it has not come there yet.
    pub fn range(&self, layer: LayerId) -> &Range<N> {
        &self.ranges[self.network.pre_activation(layer)]
    }

    /// The inputs that it is about.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Proved ranges of the input, and of what each node up to here made.
    pub fn ranges(&self) -> &ValueMap<Range<N>> {
        &self.ranges
    }

    /// Proves linear bounds for pre-activations of the layer it stands at, each from one side, and keeps what is better
    /// than what is known. `lines` has what each of `bounds` has chosen, in their order; where it is too short, that is
    /// the default.
    ///
    /// # Panics
    /// If it stands at no layer, or the layer has no such unit.
    pub fn prove_linear(&mut self, bounds: &[Target], lines: &[&Relaxation]) {
        self.prove_linear_with_progress(bounds, lines, &|_| ());
    }

    /// As [`Self::prove_linear`], and tells `done` from time to time how many bounds more are done.
    pub(crate) fn prove_linear_with_progress(
        &mut self,
        bounds: &[Target],
        lines: &[&Relaxation],
        done: &(dyn Fn(usize) + Sync),
    ) {
        let layer = self.layer.expect("the checker stands at a layer");
        self.prove_linear_of(self.network.pre_activation(layer), bounds, lines, done);
    }

    /// Proves linear bounds for elements of any value that it has come to, such as an output, from what is proved of
    /// the values before. Lines are those of these bounds, in their order; missing ones are the default.
    ///
    /// # Panics
    /// If it has not come there yet, or the value has no such element.
    pub fn prove_linear_at(&mut self, value: ValueId, bounds: &[Target], lines: &[&Relaxation]) {
        self.prove_linear_of(value, bounds, lines, &|_| ());
    }

    fn prove_linear_of(
        &mut self,
        value: ValueId,
        bounds: &[Target],
        lines: &[&Relaxation],
        done: &(dyn Fn(usize) + Sync),
    ) {
        // The same blocks however many threads there are, so that the same numbers come out.
        let limits = bounds.par_chunks(self.block).enumerate().map(|(index, block)| {
            let lines = lines.get(index * self.block..).unwrap_or_default();
            let setting = self.setting(value, &self.ranges, lines, &[]);
            let limits = limits(&setting, block);
            done(block.len());
            block.iter().copied().zip(limits).collect::<Vec<_>>()
        });
        for (target, limit) in limits.collect::<Vec<_>>().into_iter().flatten() {
            self.keep(value, target, limit);
        }
    }

    /// What linear bounds by patches say of pre-activations of a layer that it has come to, where the range leaves open
    /// on which side of their knots they are, without going back through layers before `first`. Nothing is kept.
    ///
    /// # Panics
    /// If it has not come there yet, or the layer has no such element.
    pub fn patch_bounds(&self, layer: LayerId, targets: &[Target], first: usize) -> Vec<PatchBound<N>> {
        let value = self.network.pre_activation(layer);
        let bound = |target: &Target| {
            let goal = N::of(self.goal(layer, target.side));
            let setting = PatchSetting { domain: &self.domain, ranges: &self.ranges, first, goal };
            self.patches.bound(&setting, value, *target)
        };
        targets.par_iter().with_max_len(1).map(bound).collect()
    }

    /// What bounds of a layer's pre-activations, or of their negatives, must not be above for all of these to be on one
    /// side of the activation's knots.
    pub fn goal(&self, layer: LayerId, side: Side) -> f64 {
        let knots = self.network.activation(layer).knots();
        match side {
            Side::Upper => knots.first().copied().unwrap_or(f64::NEG_INFINITY),
            Side::Lower => knots.last().map_or(f64::NEG_INFINITY, |knot| -knot),
        }
    }

    /// Keeps bounds that are proved, where they are better than what is known.
    pub(crate) fn keep_bounds(&mut self, layer: LayerId, bounds: Vec<(Target, N)>) {
        let value = self.network.pre_activation(layer);
        bounds.into_iter().for_each(|(target, limit)| self.keep(value, target, limit));
    }

    /// The network that it goes through.
    pub(crate) fn network(&self) -> &'n Network {
        self.network
    }

    /// Proves bounds for units of the layer it stands at by case distinctions, and keeps what is better than what is
    /// known.
    ///
    /// # Panics
    /// If it stands at no layer, or the layer has no such unit, or a tree names a unit that is not in an earlier layer.
    pub fn prove_splits(&mut self, bounds: &[BoundProof]) {
        self.prove_splits_with_progress(bounds, &|_| (), &|| false);
    }

    /// As [`Self::prove_splits`], unless `stop` says so before it is through; then nothing is proved by what it did not
    /// get to.
    ///
    /// # Panics
    /// As for [`Self::prove_splits`].
    pub fn prove_splits_with_stop(&mut self, bounds: &[BoundProof], stop: &(dyn Fn() -> bool + Sync)) {
        self.prove_splits_with_progress(bounds, &|_| (), stop);
    }

    /// As [`Self::prove_splits_with_stop`], and tells `done` from time to time how many bounds more are done.
    pub(crate) fn prove_splits_with_progress(
        &mut self,
        bounds: &[BoundProof],
        done: &(dyn Fn(usize) + Sync),
        stop: &(dyn Fn() -> bool + Sync),
    ) {
        let layer = self.layer.expect("the checker stands at a layer");
        let limit = |&BoundProof { target, ref tree }: &BoundProof| {
            let limit = self.limit_of_tree(layer, target, tree, &mut self.ranges.clone(), &mut Vec::new(), stop);
            done(1);
            (target, limit)
        };
        let limits: Vec<(Target, N)> = bounds.par_iter().map(limit).collect();
        for (target, limit) in limits {
            self.keep(self.network.pre_activation(layer), target, limit);
        }
    }

    /// What a tree proves on the piece of the domain that `cuts` leave, where `ranges` hold.
    fn limit_of_tree(
        &self,
        layer: LayerId,
        target: Target,
        tree: &SplitTree,
        ranges: &mut ValueMap<Range<N>>,
        cuts: &mut Vec<KnownPhase>,
        stop: &dyn Fn() -> bool,
    ) -> N {
        if stop() {
            return N::of(f64::INFINITY);
        }
        let (unit, knot, halves) = match tree {
            SplitTree::Leaf { multipliers, lines } => {
                for (index, cut) in cuts.iter_mut().enumerate() {
                    cut.multiplier = multipliers.get(index).copied().unwrap_or(0.0);
                }
                let value = self.network.pre_activation(layer);
                return limits(&self.setting(value, ranges, &[lines], cuts), &[target]).remove(0);
            }
            SplitTree::Split { unit, knot, halves } => (*unit, *knot, halves),
        };
        assert!(unit.layer < layer, "an earlier layer");
        let (value, knot) =
            (self.network.pre_activation(unit.layer), self.network.activation(unit.layer).knots()[knot]);
        let whole = ranges[value].at(unit.unit);
        let limits = [Side::Lower, Side::Upper].map(|side| {
            let range = &mut ranges[value];
            match side {
                Side::Lower => range.upper[unit.unit] = whole.upper.smaller(&N::of(knot)),
                Side::Upper => range.lower[unit.unit] = whole.lower.larger(&N::of(knot)),
            }
            cuts.push(KnownPhase { unit, knot, side, multiplier: 0.0 });
            let limit = self.limit_of_tree(layer, target, &halves[side as usize], ranges, cuts, stop);
            cuts.pop();
            let range = &mut ranges[value];
            (range.lower[unit.unit], range.upper[unit.unit]) = (whole.lower.clone(), whole.upper.clone());
            limit
        });
        limits[0].larger(&limits[1])
    }

    /// What bounds are proved from, on a piece of the domain.
    fn setting<'a>(
        &'a self,
        value: ValueId,
        ranges: &'a ValueMap<Range<N>>,
        lines: &'a [&'a Relaxation],
        cuts: &'a [KnownPhase],
    ) -> BackwardContext<'a, N> {
        BackwardContext { network: self.network, domain: &self.domain, value, ranges, lines, cuts }
    }

    fn keep(&mut self, value: ValueId, target: Target, limit: N) {
        let range = &mut self.ranges[value];
        match target.side {
            Side::Lower => range.tighten(target.unit, Some(N::default().minus(&limit)), None),
            Side::Upper => range.tighten(target.unit, None, Some(limit)),
        }
    }
}

/// Linear bounds, exact where rounding leaves a doubt: for each target an upper bound, of its element or of its
/// negative.
fn limits<N: Number>(setting: &BackwardContext<'_, N>, targets: &[Target]) -> Vec<N> {
    let exactly = |row: usize| {
        let ranges = ValueMap::from(setting.ranges.iter().map(Range::exactly).collect::<Option<Vec<Range<Exact>>>>()?);
        let lines = setting.lines.get(row).map(std::slice::from_ref).unwrap_or_default();
        let BackwardContext { network, domain, value, cuts, .. } = *setting;
        let setting = BackwardContext { network, domain, value, ranges: &ranges, lines, cuts };
        Some(N::of(backward::bounds(&setting, &targets[row..=row])[0].limit.rounded_up()))
    };
    let settled = |(row, bound): (usize, Bound<N>)| {
        let exact = if bound.is_doubtful() { exactly(row) } else { None };
        exact.map_or(bound.limit.clone(), |exact| exact.smaller(&bound.limit))
    };
    backward::bounds(setting, targets).into_iter().enumerate().map(settled).collect()
}
