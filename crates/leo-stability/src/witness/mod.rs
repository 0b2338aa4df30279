//! Inputs that show a unit on, and inputs that show it off.
//!
//! Points are evaluated in batches, in double precision, and each shows the signs of many units at once. A sign counts only if the
//! computed pre-activation is further from 0 than the checker's bound on what rounding can do. For units that still
//! lack one, a climb: at a point, the gradient tells which corner of the domain is best if no ReLU changed its mind; go there, or
//! part of the way, and look again.

mod gradient;

use std::cmp::Ordering;
use std::sync::Arc;

use fastrand::Rng;
use leo_check::{Checker, Range, Side};
use leo_network::{Array, Domain, DomainError, Evaluator, Network, Values, Workspace};

use crate::bounds::relaxed::Pass;
use crate::budget::Budget;
use gradient::gradients;

/// Random points, half of them corners, that every search begins with.
const RANDOM_POINTS: usize = 64;
/// How often a climb goes on.
const CLIMBS: usize = 12;
/// How far toward the corner the points of a climb lie.
const STRIDES: [f64; 3] = [1.0, 0.5, 0.1];

/// The best that is known of one sign of one unit.
#[derive(Clone, Debug)]
struct Best {
    /// The pre-activation times the sign that is looked for.
    value: f64,
    /// Where it was found in the block that is looked at.
    row: Option<usize>,
    /// The point; empty if there is none yet.
    point: Arc<[f64]>,
    /// Whether exact arithmetic says that it has the sign.
    certain: bool,
}

impl Best {
    /// Takes what is better, or as good: later points are chosen with more care. What is certain stays.
    fn offer(&mut self, value: f64, row: usize) {
        if value >= self.value && !self.certain {
            self.value = value;
            self.row = Some(row);
        }
    }
}

/// Points of the domain, and which signs they show.
pub(crate) struct Witnesses<'n> {
    network: &'n Network,
    domain: &'n Domain,
    evaluator: Evaluator<f64>,
    workspace: Workspace<f64>,
    /// For each layer and unit, for both signs, negative first.
    best: Vec<Vec<[Best; 2]>>,
    layers: Vec<usize>,
    /// The points that are looked at.
    block: Vec<f64>,
}

impl<'n> Witnesses<'n> {
    /// Knows nothing yet.
    pub(crate) fn new(network: &'n Network, domain: &'n Domain) -> Self {
        let evaluator = Evaluator::new(network);
        let layers: Vec<usize> = network.relu_layers().collect();
        let nothing = Best { value: f64::NEG_INFINITY, row: None, point: Arc::new([]), certain: false };
        let units = |layer: &usize| vec![[(); 2].map(|()| nothing.clone()); network.nodes()[*layer].shape().elements()];
        let best = layers.iter().map(units).collect();
        Self { network, domain, workspace: evaluator.workspace(), evaluator, best, layers, block: Vec::new() }
    }

    /// Looks at samples, a block at a time.
    pub(crate) fn look_at_samples(&mut self, samples: &Array, budget: &Budget<'_>) -> Result<(), DomainError> {
        let sample = self.network.input();
        if samples.count_samples(sample).is_none() {
            let (given, wanted) = (samples.shape().to_vec(), sample.extents().to_vec());
            return Err(DomainError::Samples { given, wanted });
        }
        let mut numbers = samples.iter();
        let length = self.evaluator.block_rows() * self.domain.len();
        let mut block: Vec<f64> = Vec::with_capacity(length);
        loop {
            block.clear();
            block.extend(numbers.by_ref().take(length));
            if block.is_empty() || budget.is_exhausted() {
                return Ok(());
            }
            self.look_at(&block);
        }
    }

    /// Looks at random points and at random corners.
    pub(crate) fn look_around(&mut self, seed: u64) {
        let mut random = Rng::with_seed(seed);
        let mut points = Vec::with_capacity(RANDOM_POINTS * self.domain.len());
        for point in 0..RANDOM_POINTS {
            for (&lo, &hi) in self.domain.lo().iter().zip(self.domain.hi()) {
                let share = if point % 2 == 0 { random.f64() } else { f64::from(random.u8(0..2)) };
                points.push(between(lo, hi, share));
            }
        }
        self.look_at(&points);
    }

    /// Evaluates points, or the points of the domain next to them, and keeps those that are the best yet for some unit.
    pub(crate) fn look_at(&mut self, points: &[f64]) {
        let inputs = self.domain.len();
        for points in points.chunks(self.evaluator.block_rows() * inputs) {
            clamp(self.domain, points, &mut self.block);
            let values = self.evaluator.forward(&mut self.workspace, &self.block);
            let mut kept: Vec<Option<Arc<[f64]>>> = vec![None; self.block.len() / inputs];
            for (units, &layer) in self.best.iter_mut().zip(&self.layers) {
                let rows = values.get(self.network.nodes()[layer].operands()[0]).chunks_exact(units.len());
                for (row, numbers) in rows.enumerate() {
                    for ([off, on], &number) in units.iter_mut().zip(numbers) {
                        off.offer(-number, row);
                        on.offer(number, row);
                    }
                }
                for best in units.iter_mut().flatten() {
                    if let Some(row) = best.row.take() {
                        let point = || self.block[row * inputs..][..inputs].into();
                        best.point = kept[row].get_or_insert_with(point).clone();
                    }
                }
            }
        }
    }

    /// Whether both signs of a unit are certain. The checker has come to its layer.
    pub(crate) fn is_unstable(&self, checker: &Checker<'_>, layer: usize, unit: usize) -> bool {
        (0..2).all(|sign| self.shows(checker, layer, unit, sign))
    }

    /// Whether no input is known that refutes that a unit is always active (a lower bound of 0) or always inactive (an upper one).
    pub(crate) fn may_hold(&self, checker: &Checker<'_>, layer: usize, unit: usize, side: Side) -> bool {
        !self.shows(checker, layer, unit, sign_against(side))
    }

    /// Inputs where a unit is off, and where it is on.
    pub(crate) fn of(&self, layer: usize, unit: usize) -> [Vec<f64>; 2] {
        self.best[layer][unit].each_ref().map(|best| best.point.to_vec())
    }

    /// Settles by exact arithmetic which signs of these units points have, where rounding leaves a doubt.
    pub(crate) fn settle_doubts(&mut self, checker: &Checker<'_>, layer: usize, units: &[usize]) {
        let node = self.layers[layer];
        for &unit in units {
            let error = checker.evaluation_error(node)[unit];
            for (best, wanted) in self.best[layer][unit].iter_mut().zip([Ordering::Less, Ordering::Greater]) {
                if best.value.abs() <= error && !best.certain {
                    best.certain = checker.exact_sign(node, unit, &best.point) == Some(wanted);
                }
            }
        }
    }

    /// The input that comes nearest to refuting a bound of 0.
    pub(crate) fn nearest(&self, layer: usize, unit: usize, side: Side) -> &[f64] {
        &self.best[layer][unit][sign_against(side)].point
    }

    /// Looks for a single sign of a single unit, beside others that do.
    pub(crate) fn probe(&self, checker: &Checker<'_>, layer: usize, unit: usize, side: Side) -> Probe<'_> {
        Probe {
            witnesses: self,
            workspace: self.evaluator.workspace(),
            layer: self.layers[layer],
            unit,
            sign: if side == Side::Lower { -1.0 } else { 1.0 },
            error: checker.evaluation_error(self.layers[layer])[unit],
            point: Vec::new(),
            found: false,
        }
    }

    fn shows(&self, checker: &Checker<'_>, layer: usize, unit: usize, sign: usize) -> bool {
        let error = checker.evaluation_error(self.layers[layer])[unit];
        let best = &self.best[layer][unit][sign];
        best.value > error || best.certain
    }

    /// Looks at the points where the linear bounds of these units of a layer are attained in the relaxed network.
    pub(crate) fn look_at_corners(&mut self, layer: usize, ranges: &[Range], bounds: &[(usize, Side)]) {
        for bounds in bounds.chunks(self.evaluator.block_rows()) {
            let mut pass = Pass::new(self.network, self.layers[layer], ranges, &[], bounds.len());
            pass.backward(bounds);
            self.look_at(&pass.corners);
        }
    }

    /// Looks for the signs that these units of a layer lack.
    pub(crate) fn climb(&mut self, checker: &Checker<'_>, layer: usize, units: &[usize], budget: &Budget<'_>) {
        let value = self.network.nodes()[self.layers[layer]].operands()[0];
        for _ in 0..CLIMBS {
            let lacking: Vec<(usize, usize)> = units
                .iter()
                .flat_map(|&unit| [(unit, 0), (unit, 1)])
                .filter(|&(unit, sign)| !self.shows(checker, layer, unit, sign))
                .collect();
            if lacking.is_empty() || budget.is_exhausted() {
                return;
            }
            let mut next = Vec::new();
            for block in lacking.chunks(self.evaluator.block_rows()) {
                let starts: Vec<f64> =
                    block.iter().flat_map(|&(unit, sign)| self.best[layer][unit][sign].point.iter().copied()).collect();
                let elements: Vec<usize> = block.iter().map(|&(unit, _)| unit).collect();
                let values: Values<'_, f64> = self.evaluator.forward(&mut self.workspace, &starts);
                let gradients = gradients(self.network, value, values, &elements);
                let rows = gradients.chunks_exact(self.domain.len()).zip(starts.chunks_exact(self.domain.len()));
                for ((gradient, start), &(_, sign)) in rows.zip(block) {
                    for stride in STRIDES {
                        let bounds = self.domain.lo().iter().zip(self.domain.hi());
                        for ((&slope, &from), (&lo, &hi)) in gradient.iter().zip(start).zip(bounds) {
                            let uphill = if sign == 1 { slope } else { -slope };
                            let corner = if uphill > 0.0 {
                                hi
                            } else if uphill < 0.0 {
                                lo
                            } else {
                                from
                            };
                            next.push(between(from, corner, stride).clamp(lo, hi));
                        }
                    }
                }
            }
            self.look_at(&next);
        }
    }
}

/// Looks for one sign of one unit.
pub(crate) struct Probe<'a> {
    witnesses: &'a Witnesses<'a>,
    workspace: Workspace<f64>,
    layer: usize,
    unit: usize,
    sign: f64,
    error: f64,
    /// The last point that was looked at, and whether it has the sign.
    point: Vec<f64>,
    found: bool,
}

impl Probe<'_> {
    /// Whether a point, or the point of the domain next to it, or another before it, is certain to have the sign.
    pub(crate) fn shows(&mut self, point: &[f64]) -> bool {
        if self.found {
            return true;
        }
        let Witnesses { network, domain, evaluator, .. } = self.witnesses;
        clamp(domain, point, &mut self.point);
        let values = evaluator.forward(&mut self.workspace, &self.point);
        let number = values.get(network.nodes()[self.layer].operands()[0])[self.unit];
        self.found = self.sign * number > self.error;
        self.found
    }

    /// The point that has it.
    pub(crate) fn found(self) -> Option<Vec<f64>> {
        self.found.then_some(self.point)
    }
}

/// The sign that refutes a bound of 0: 0 for negative, 1 for positive.
fn sign_against(side: Side) -> usize {
    match side {
        Side::Lower => 0,
        Side::Upper => 1,
    }
}

/// The points of the domain next to some points.
fn clamp(domain: &Domain, points: &[f64], inside: &mut Vec<f64>) {
    inside.clear();
    for point in points.chunks_exact(domain.len()) {
        let bounds = domain.lo().iter().zip(domain.hi());
        inside.extend(point.iter().zip(bounds).map(|(&x, (&lo, &hi))| if x.is_nan() { lo } else { x.clamp(lo, hi) }));
    }
}

/// A point between two others; the ends exactly.
fn between(from: f64, to: f64, share: f64) -> f64 {
    match share {
        0.0 => from,
        1.0 => to,
        _ => (from + share * (to - from)).clamp(from.min(to), from.max(to)),
    }
}
