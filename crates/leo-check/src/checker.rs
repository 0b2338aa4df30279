//! The checker: which ranges of pre-activations are proved.

use std::cmp::Ordering;

use leo_network::{Domain, DomainError, Network, ValueId};
use rayon::prelude::*;

use crate::backward::{self, Setting, Target};
use crate::exact;
use crate::facts::{Cut, Side, Slopes, Tree};
use crate::range::Range;
use crate::sound::Bound;
use crate::witness;

/// Goes through a network layer by layer, and knows for every value on the way a range that is proved.
#[derive(Clone, Debug)]
pub struct Checker<'n> {
    network: &'n Network,
    /// Of the input, and of what each node made, up to the pre-activations of the layer it stands at.
    ranges: Vec<Range>,
    /// For the same values, how far what [`leo_network::Evaluator`] computes in double precision can be from the exact number.
    errors: Vec<Vec<f64>>,
    layer: Option<usize>,
    /// How many bounds go through one matrix product.
    block: usize,
}

/// Ranges that are proved, of all values of a network on a domain. Only a [`Checker`] makes them.
#[derive(Clone, Debug)]
pub struct Facts<'n> {
    network: &'n Network,
    ranges: Vec<Range>,
    errors: Vec<Vec<f64>>,
}

impl<'n> Facts<'n> {
    /// The network that they are about.
    pub fn network(&self) -> &'n Network {
        self.network
    }

    /// Where a value can lie.
    pub fn range(&self, value: ValueId) -> &Range {
        &self.ranges[value.index()]
    }

    /// For each element of a value, how far what [`leo_network::Evaluator`] computes in double precision can be from the exact number, at whatever
    /// point of the domain.
    pub fn evaluation_error(&self, value: ValueId) -> &[f64] {
        &self.errors[value.index()]
    }
}

/// How many bounds go through one matrix product at most, and how many numbers at most.
const BLOCK_ROWS: usize = 128;
const BLOCK_NUMBERS: usize = 1 << 22;

impl<'n> Checker<'n> {
    /// Begins with the domain.
    ///
    /// # Errors
    /// If the domain does not have as many inputs as the network.
    pub fn new(network: &'n Network, domain: &Domain) -> Result<Self, DomainError> {
        let domain = domain.clone().for_inputs(network.input().elements())?;
        let (ranges, errors) = (vec![Range::of_domain(&domain)], vec![witness::error_of_input(network)]);
        let block = (BLOCK_NUMBERS / network.widest().max(1)).clamp(1, BLOCK_ROWS);
        Ok(Self { network, ranges, errors, layer: None, block })
    }

    /// Goes on to the next layer of ReLUs, whose node it returns, and proves ranges of its pre-activations by intervals,
    /// from all that was proved of the layers before.
    pub fn next_layer(&mut self) -> Option<usize> {
        let layer = self.network.relu_layers().find(|&layer| self.layer.is_none_or(|done| layer > done))?;
        self.go_to(layer);
        self.layer = Some(layer);
        Some(layer)
    }

    /// Finds ranges, by intervals, and errors of what the nodes before this one make.
    fn go_to(&mut self, end: usize) {
        for node in self.ranges.len() - 1..end {
            self.ranges.push(Range::of_node(self.network, node, &self.ranges));
            self.errors.push(witness::error_of_node(self.network, node, &self.ranges, &self.errors));
        }
    }

    /// All that is proved, with intervals for what comes after the layer it stands at.
    pub fn finish(mut self) -> Facts<'n> {
        self.go_to(self.network.nodes().len());
        Facts { network: self.network, ranges: self.ranges, errors: self.errors }
    }

    /// The proved range of the pre-activations of a layer that the checker has come to.
    ///
    /// # Panics
    /// If it has not come there yet.
    pub fn range(&self, layer: usize) -> &Range {
        &self.ranges[self.network.pre_activation(layer).index()]
    }

    /// Proved ranges of the input, and of what each node up to here made.
    pub fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// For each unit of a layer that the checker has come to, a number such that every pre-activation that
    /// [`leo_network::Evaluator`] computes in double precision, at whatever point of the domain, has the sign that it
    /// seems to have if it is further from 0 than that.
    ///
    /// # Panics
    /// If it has not come there yet.
    pub fn evaluation_error(&self, layer: usize) -> &[f64] {
        &self.errors[self.network.pre_activation(layer).index()]
    }

    /// Whether pre-activations of some units are above, below or at 0 at a point of the domain: by intervals, which are narrow at a point, and where
    /// that leaves a doubt, exactly. Slow, compared with an evaluation in double precision: for the few points that that leaves in doubt.
    ///
    /// `None` if the point is not in the domain, or if the network divides, so that values are no sums of powers of two, and intervals do not
    /// suffice.
    ///
    /// # Panics
    /// If the layer has no such unit.
    pub fn signs(&self, layer: usize, units: &[usize], point: &[f64]) -> Vec<Option<Ordering>> {
        let domain = &self.ranges[ValueId::INPUT.index()];
        let inside = |(&x, (&lo, &hi)): (&f64, (&f64, &f64))| lo <= x && x <= hi;
        if point.len() != domain.len() || !point.iter().zip(domain.lower.iter().zip(&domain.upper)).all(inside) {
            return vec![None; units.len()];
        }
        let value = self.network.pre_activation(layer);
        let mut ranges = vec![Range { lower: point.to_vec(), upper: point.to_vec() }];
        for node in 0..value.index() {
            ranges.push(Range::of_node(self.network, node, &ranges));
        }
        let range = &ranges[value.index()];
        let certain = |unit: usize| match (range.lower[unit] > 0.0, range.upper[unit] < 0.0) {
            (true, _) => Some(Ordering::Greater),
            (_, true) => Some(Ordering::Less),
            _ => None,
        };
        let doubtful: Vec<usize> = units.iter().copied().filter(|&unit| certain(unit).is_none()).collect();
        let mut settled = exact::signs(self.network, value, &doubtful, point).into_iter();
        units.iter().map(|&unit| certain(unit).or_else(|| settled.next().flatten())).collect()
    }

    /// Proves linear bounds for pre-activations of the layer it stands at, each from one side, and keeps those that are better than what
    /// is known. Chosen slopes have a row for each of `bounds`.
    ///
    /// # Panics
    /// If it stands at no layer, or the layer has no such unit.
    pub fn prove_linear(&mut self, bounds: &[(usize, Side)], slopes: &Slopes) {
        let layer = self.layer.expect("the checker stands at a layer");
        let setting = Setting { network: self.network, layer, ranges: &self.ranges, slopes, cuts: &[] };
        let targets: Vec<Target> = bounds.iter().map(|&(element, side)| Target { element, side }).collect();
        // The same blocks however many threads there are, so that the same numbers come out.
        let blocks: Vec<(usize, &[Target])> =
            targets.chunks(self.block).enumerate().map(|(index, block)| (index * self.block, block)).collect();
        let limits: Vec<Vec<f64>> =
            blocks.into_par_iter().map(|(skipped, block)| limits(setting, block, skipped)).collect();
        for (target, limit) in targets.into_iter().zip(limits.into_iter().flatten()) {
            self.keep(layer, target, limit);
        }
    }

    /// Proves bounds for units of the layer it stands at by case distinctions, and keeps those that are better than what is known.
    ///
    /// # Panics
    /// If it stands at no layer, or the layer has no such unit, or a tree names a unit that is not in an earlier layer.
    pub fn prove_splits(&mut self, bounds: &[(usize, Side, Tree)]) {
        let layer = self.layer.expect("the checker stands at a layer");
        let limit = |(element, side, tree): &(usize, Side, Tree)| {
            let target = Target { element: *element, side: *side };
            (target, self.limit_of_tree(layer, target, tree, &mut self.ranges.clone(), &mut Vec::new()))
        };
        let limits: Vec<(Target, f64)> = bounds.par_iter().map(limit).collect();
        for (target, limit) in limits {
            self.keep(layer, target, limit);
        }
    }

    /// What a tree proves on the piece of the domain that `cuts` leave, where `ranges` hold.
    fn limit_of_tree(
        &self,
        layer: usize,
        target: Target,
        tree: &Tree,
        ranges: &mut Vec<Range>,
        cuts: &mut Vec<Cut>,
    ) -> f64 {
        let (cut, unit, off, on) = match tree {
            Tree::Leaf { multipliers, slopes } => {
                for (index, cut) in cuts.iter_mut().enumerate() {
                    cut.multiplier = multipliers.get(index).copied().unwrap_or(0.0);
                }
                return limits(Setting { network: self.network, layer, ranges, slopes, cuts }, &[target], 0)[0];
            }
            Tree::Split { layer, unit, off, on } => (*layer, *unit, off, on),
        };
        assert!(cut < layer && self.network.relu_layers().any(|layer| layer == cut), "an earlier layer of ReLUs");
        let value = self.network.pre_activation(cut).index();
        let (lower, upper) = (ranges[value].lower[unit], ranges[value].upper[unit]);
        ranges[value].upper[unit] = upper.min(0.0);
        cuts.push(Cut { layer: cut, unit, on: false, multiplier: 0.0 });
        let off = self.limit_of_tree(layer, target, off, ranges, cuts);
        cuts.pop();
        ranges[value].upper[unit] = upper;
        ranges[value].lower[unit] = lower.max(0.0);
        cuts.push(Cut { layer: cut, unit, on: true, multiplier: 0.0 });
        let on = self.limit_of_tree(layer, target, on, ranges, cuts);
        cuts.pop();
        ranges[value].lower[unit] = lower;
        off.max(on)
    }

    fn keep(&mut self, layer: usize, target: Target, limit: f64) {
        let range = &mut self.ranges[self.network.pre_activation(layer).index()];
        match target.side {
            Side::Lower => range.tighten(target.element, 0.0 - limit, f64::INFINITY),
            Side::Upper => range.tighten(target.element, f64::NEG_INFINITY, limit),
        }
    }
}

/// Linear bounds, exact where rounding leaves a doubt: for each target an upper bound, of its element or of its negative. Chosen slopes
/// have rows for `skipped` other targets before.
fn limits(setting: Setting<'_>, targets: &[Target], skipped: usize) -> Vec<f64> {
    let settled = |(row, (&target, bound)): (usize, (&Target, Bound))| {
        let exact = bound.is_doubtful().then(|| exact::bound(setting, target, skipped + row)).flatten();
        exact.map_or(bound.limit, |exact| exact.min(bound.limit))
    };
    targets.iter().zip(backward::bounds(setting, targets, skipped)).enumerate().map(settled).collect()
}
