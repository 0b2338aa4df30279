//! Inputs that show a unit on, and inputs that show it off.
//!
//! Points are evaluated in batches, in double precision, and each shows the signs of many units at once. A sign counts only if the
//! computed pre-activation is further from 0 than the checker's bound on what rounding can do. For units that still
//! lack one, a climb: at a point, the gradient tells which corner of the domain is best if no ReLU changed its mind; go there, or
//! part of the way, and look again.

use fastrand::Rng;
use leo_check::{Checker, Side};
use leo_network::{Domain, Evaluator, Network, Values, Workspace};

use crate::gradient::gradients;

/// Random points, half of them corners, that every search begins with.
const RANDOM_POINTS: usize = 256;
/// How often a climb goes on.
const CLIMBS: usize = 12;
/// How far toward the corner the points of a climb lie.
const STRIDES: [f64; 3] = [1.0, 0.5, 0.1];

/// The best that is known of one sign of one unit: a point, and the pre-activation there.
#[derive(Clone, Debug, Default)]
struct Best {
    /// The pre-activation times the sign that is looked for.
    value: Option<f64>,
    point: Vec<f64>,
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
}

impl<'n> Witnesses<'n> {
    /// Begins with the samples, with random points and with random corners.
    pub(crate) fn new(network: &'n Network, domain: &'n Domain, samples: &[f64], seed: u64) -> Self {
        let evaluator = Evaluator::new(network);
        let layers: Vec<usize> = network.relu_layers().collect();
        let units =
            |layer: &usize| vec![[Best::default(), Best::default()]; network.nodes()[*layer].shape().elements()];
        let best = layers.iter().map(units).collect();
        let mut witnesses = Self { network, domain, workspace: evaluator.workspace(), evaluator, best, layers };
        witnesses.look_at(samples);
        let mut random = Rng::with_seed(seed);
        let mut points = Vec::with_capacity(RANDOM_POINTS * domain.len());
        for point in 0..RANDOM_POINTS {
            for (&lo, &hi) in domain.lo().iter().zip(domain.hi()) {
                let share = if point % 2 == 0 { random.f64() } else { f64::from(random.u8(0..2)) };
                points.push(between(lo, hi, share));
            }
        }
        witnesses.look_at(&points);
        witnesses
    }

    /// Evaluates points, or the points of the domain next to them, and keeps those that are the best yet for some unit.
    pub(crate) fn look_at(&mut self, points: &[f64]) {
        let inputs = self.domain.len();
        let bounds = || self.domain.lo().iter().zip(self.domain.hi());
        for block in points.chunks(self.evaluator.block_rows() * inputs) {
            let block: Vec<f64> = block
                .chunks_exact(inputs)
                .flat_map(|point| {
                    point.iter().zip(bounds()).map(|(&x, (&lo, &hi))| if x.is_nan() { lo } else { x.clamp(lo, hi) })
                })
                .collect();
            let values = self.evaluator.forward(&mut self.workspace, &block);
            for (units, &layer) in self.best.iter_mut().zip(&self.layers) {
                let rows = values.get(self.network.nodes()[layer].operands()[0]).chunks_exact(units.len());
                for (row, point) in rows.zip(block.chunks_exact(inputs)) {
                    for (best, &number) in units.iter_mut().zip(row) {
                        for (best, signed) in best.iter_mut().zip([-number, number]) {
                            if best.value.is_none_or(|value| signed > value) && !signed.is_nan() {
                                best.value = Some(signed);
                                best.point.clear();
                                best.point.extend_from_slice(point);
                            }
                        }
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
        !self.shows(checker, layer, unit, if side == Side::Lower { 0 } else { 1 })
    }

    fn shows(&self, checker: &Checker<'_>, layer: usize, unit: usize, sign: usize) -> bool {
        let error = checker.evaluation_error(self.layers[layer])[unit];
        self.best[layer][unit][sign].value.is_some_and(|value| value > error)
    }

    /// Looks for the signs that these units of a layer lack.
    pub(crate) fn climb(&mut self, checker: &Checker<'_>, layer: usize, units: &[usize]) {
        let value = self.network.nodes()[self.layers[layer]].operands()[0];
        for _ in 0..CLIMBS {
            let lacking: Vec<(usize, usize)> = units
                .iter()
                .flat_map(|&unit| [(unit, 0), (unit, 1)])
                .filter(|&(unit, sign)| !self.shows(checker, layer, unit, sign))
                .collect();
            if lacking.is_empty() {
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

/// A point between two others; the ends exactly.
fn between(from: f64, to: f64, share: f64) -> f64 {
    match share {
        0.0 => from,
        1.0 => to,
        _ => (from + share * (to - from)).clamp(from.min(to), from.max(to)),
    }
}
