//! Inputs that show a unit on, and inputs that show it off: what the field looks for by attacks (FGSM, PGD) and calls
//! counterexamples.
//!
//! Points are evaluated in batches, in double precision, and each shows the signs of many units at once. A sign counts
//! only if the computed pre-activation is further from 0 than what rounding can do ([`leo_check::evaluation_errors`]),
//! or the checker examined the point more closely. For units that still lack one, first the corners where their linear
//! bounds are attained; then a climb: at a point, the gradient tells which corner of the domain is best if no ReLU
//! changed its mind; go there, or part of the way, and look again (Frank and Wolfe 1956; the whole way is the step of
//! FGSM, Goodfellow et al. 2015). Where better bounds do not settle a unit either, [`pgd`] looks longer.

pub(crate) mod gradient;
mod pgd;

use std::collections::HashSet;
use std::sync::Arc;

use fastrand::Rng;
use leo_check::{Precision, Range, Side, Target, extend_errors, pieces_at};
use leo_network::{
    Array, Domain, DomainError, Evaluator, LayerId, Network, UnitId, ValueMap, Values, Workspace, between,
};
use rayon::prelude::*;

use crate::bounds::KnownRanges;
use crate::bounds::relaxed::RelaxedPass;
use crate::budget::Budget;
use gradient::gradients;
pub(crate) use pgd::PgdBudget;

/// Random points, half of them corners, that every search begins with.
const RANDOM_POINTS: usize = 64;
/// How many steps a climb takes at the most.
const CLIMB_STEPS: usize = 12;
/// How far toward the corner the points lie that a step of a climb looks at, as parts of the way.
const STRIDES: [f64; 3] = [1.0, 0.5, 0.1];

/// How many points are evaluated together at the most: a task for one thread.
const BLOCK_ROWS: usize = 64;
/// How many blocks of samples are prepared at once, for however many threads.
const BLOCKS_AT_ONCE: usize = 16;
/// How many products it may take to look at all points of a certificate again: a second or two.
const COVER_PRODUCTS: usize = 1 << 30;
/// How many points a certificate may have in any case, however many products they take.
const MIN_COVER_POINTS: usize = 16;

/// The best that is known of one sign of one unit.
#[derive(Clone, Debug)]
struct Best {
    /// The pre-activation times the sign that is looked for.
    value: f64,
    /// Where it was found; empty if there is none yet.
    point: Arc<[f64]>,
    /// Whether it was examined more closely than by an evaluation.
    examined: bool,
    /// Whether it then certainly had the sign.
    certain: bool,
}

/// A point that is better than the best before for one sign of one unit.
struct Improvement {
    layer: LayerId,
    target: Target,
    value: f64,
    point: Arc<[f64]>,
}

/// A point, and which sign of which unit it may or may not have.
type Doubt = (Arc<[f64]>, Target);

/// Points of the domain, and which signs they show.
pub(crate) struct Witnesses<'n> {
    network: &'n Network,
    domain: &'n Domain,
    evaluator: Evaluator<f64>,
    /// For each layer and unit, for both sides of 0, or of the first knot if that is another one.
    best: Vec<Vec<[Best; 2]>>,
    /// How far computed values can be off, as far as ranges are known.
    errors: ValueMap<Vec<f64>>,
    /// How many points are evaluated together.
    block: usize,
}

impl<'n> Witnesses<'n> {
    /// Knows nothing yet.
    pub(crate) fn new(network: &'n Network, domain: &'n Domain) -> Self {
        let evaluator = Evaluator::new(network);
        let nothing = Best { value: f64::NEG_INFINITY, point: Arc::new([]), examined: false, certain: false };
        let units = |width: usize| vec![[(); 2].map(|()| nothing.clone()); width];
        let best = network.hidden().into_iter().map(units).collect();
        let block = evaluator.block_rows().min(BLOCK_ROWS);
        Self { network, domain, evaluator, best, errors: ValueMap::default(), block }
    }

    /// Looks at samples, a block at a time.
    pub(crate) fn evaluate_samples(&mut self, samples: &Array, budget: &Budget<'_>) -> Result<(), DomainError> {
        Domain::count_samples(samples, self.network.input())?;
        let mut numbers = samples.iter();
        let length = BLOCKS_AT_ONCE * self.block * self.domain.len();
        let mut block: Vec<f64> = Vec::with_capacity(length);
        loop {
            block.clear();
            block.extend(numbers.by_ref().take(length));
            if block.is_empty() || budget.is_exhausted() {
                return Ok(());
            }
            self.evaluate_points(&block);
        }
    }

    /// Looks at random points and at random corners.
    pub(crate) fn sample_domain(&mut self, seed: u64) {
        let mut random = Rng::with_seed(seed);
        let mut points = Vec::with_capacity(RANDOM_POINTS * self.domain.len());
        for point in 0..RANDOM_POINTS {
            points.extend(match point % 2 == 0 {
                true => self.domain.at(|| random.f64()),
                false => self.domain.at(|| f64::from(random.u8(0..2))),
            });
        }
        self.evaluate_points(&points);
    }

    /// Evaluates points, or the points of the domain next to them, and keeps those that are the best yet for some unit.
    pub(crate) fn evaluate_points(&mut self, points: &[f64]) {
        let blocks = points.par_chunks(self.block * self.domain.len());
        let found = blocks.map_init(|| self.evaluator.workspace(), |workspace, block| self.scan(workspace, block));
        let found: Vec<Vec<Improvement>> = found.collect();
        self.keep(found);
    }

    /// Evaluates a block of points, and says for which units they are better than what is known, or as good: later
    /// points are chosen with more care.
    fn scan(&self, workspace: &mut Workspace<f64>, points: &[f64]) -> Vec<Improvement> {
        let inputs = self.domain.len();
        let mut block = points.to_vec();
        self.domain.clamp(&mut block);
        let values = self.evaluator.forward(workspace, &block);
        let mut shared: Vec<Option<Arc<[f64]>>> = vec![None; block.len() / inputs];
        let mut found = Vec::new();
        for (layer, units) in self.network.layers().zip(&self.best) {
            let mut rows: Vec<[(f64, usize); 2]> =
                units.iter().map(|best| best.each_ref().map(|best| (best.value, usize::MAX))).collect();
            let numbers = values.get(self.network.pre_activation(layer));
            let knot = self.knot(layer);
            for (row, numbers) in numbers.chunks_exact(units.len()).enumerate() {
                for (best, &number) in rows.iter_mut().zip(numbers) {
                    for (best, value) in best.iter_mut().zip([knot - number, number - knot]) {
                        if value >= best.0 {
                            *best = (value, row);
                        }
                    }
                }
            }
            for (unit, best) in rows.into_iter().enumerate() {
                let better = Target::both(unit).into_iter().zip(best).filter(|(_, (_, row))| *row != usize::MAX);
                for (target, (value, row)) in better {
                    let point = shared[row].get_or_insert_with(|| block[row * inputs..][..inputs].into()).clone();
                    found.push(Improvement { layer, target, value, point });
                }
            }
        }
        found
    }

    /// Keeps what is better, block by block. What is certain stays.
    fn keep(&mut self, found: Vec<Vec<Improvement>>) {
        for Improvement { layer, target, value, point } in found.into_iter().flatten() {
            let best = &mut self.best[layer.index()][target.unit][target.side as usize];
            if value >= best.value && !best.certain {
                *best = Best { value, point, examined: false, certain: false };
            }
        }
    }

    /// Ranges of more values are known now: what can be said with certainty follows from them.
    pub(crate) fn learn(&mut self, ranges: &ValueMap<Range>) {
        extend_errors(self.network, ranges, Precision::DOUBLE, &mut self.errors);
    }

    /// How far computed pre-activations of a layer can be off.
    fn errors(&self, layer: LayerId) -> &[f64] {
        &self.errors[self.network.pre_activation(layer)]
    }

    /// What pre-activations of a layer are compared with: the first of its knots.
    fn knot(&self, layer: LayerId) -> f64 {
        self.network.activation(layer).knots().first().copied().unwrap_or(0.0)
    }

    /// The best that is known of a bound's other side.
    fn best(&self, layer: LayerId, against: Target) -> &Best {
        &self.best[layer.index()][against.unit][against.side as usize]
    }

    /// Whether both sides of a unit are certain.
    pub(crate) fn is_unstable(&self, layer: LayerId, unit: usize) -> bool {
        Target::both(unit).into_iter().all(|target| !self.may_hold(layer, target))
    }

    /// Whether no input is known that refutes a bound of 0.
    pub(crate) fn may_hold(&self, layer: LayerId, target: Target) -> bool {
        let best = self.best(layer, target);
        !(best.value > self.errors(layer)[target.unit] || best.certain)
    }

    /// Inputs where a unit is off, and where it is on.
    pub(crate) fn of(&self, layer: LayerId, unit: usize) -> [Vec<f64>; 2] {
        Target::both(unit).map(|target| self.best(layer, target).point.to_vec())
    }

    /// All points that show a sign that no other is known for.
    pub(crate) fn points(&self) -> Vec<Arc<[f64]>> {
        let mut points: Vec<Arc<[f64]>> = Vec::new();
        let mut known = HashSet::new();
        for layer in self.network.layers().take_while(|layer| self.knows(*layer)) {
            for target in (0..self.network.width(layer)).flat_map(Target::both) {
                let point = &self.best(layer, target).point;
                if !self.may_hold(layer, target) && known.insert(Arc::as_ptr(point).cast::<f64>()) {
                    points.push(Arc::clone(point));
                }
            }
        }
        points
    }

    /// Whether errors of a layer's pre-activations are known.
    fn knows(&self, layer: LayerId) -> bool {
        self.network.pre_activation(layer).index() < self.errors.len()
    }

    /// A few points that show these units off and on: which of the points, for each unit; none for those that would
    /// take too many points.
    pub(crate) fn cover(&self, units: &[UnitId]) -> (Vec<Vec<f64>>, Vec<Option<[usize; 2]>>) {
        // Corners first: they take less room in a file.
        let mut order: Vec<(bool, usize, Target)> = Vec::new();
        for (index, &UnitId { layer, unit }) in units.iter().enumerate() {
            let is_inner = |target| self.domain.hull().corner_of(&self.best(layer, target).point).is_none();
            order.extend(Target::both(unit).map(|target| (is_inner(target), index, target)));
        }
        order.sort_by_key(|&(inner, ..)| inner);
        let (mut points, mut shown) = (Vec::new(), vec![[None; 2]; units.len()]);
        let mut workspace = self.evaluator.workspace();
        let most = (COVER_PRODUCTS / self.network.multiply_adds().max(1)).max(MIN_COVER_POINTS);
        for (_, index, target) in order {
            let side = target.side as usize;
            if shown[index][side].is_some() || points.len() == most {
                continue;
            }
            let point = &self.best(units[index].layer, target).point;
            let values = self.evaluator.forward(&mut workspace, point);
            for (shown, &UnitId { layer, unit }) in shown.iter_mut().zip(units) {
                let number = values.get(self.network.pre_activation(layer))[unit] - self.knot(layer);
                let sign = usize::from(number > 0.0);
                if number.abs() > self.errors(layer)[unit] {
                    shown[sign] = shown[sign].or(Some(points.len()));
                }
            }
            shown[index][side] = Some(points.len());
            points.push(point.to_vec());
        }
        (points, shown.into_iter().map(|[off, on]| Some([off?, on?])).collect())
    }

    /// Settles which signs of these units points have, where rounding in an evaluation leaves a doubt.
    pub(crate) fn settle_doubts(&mut self, layer: LayerId, units: &[usize], budget: &Budget<'_>) {
        let errors = self.errors(layer);
        let is_doubtful = |target: &Target| {
            let best = self.best(layer, *target);
            best.value.abs() <= errors[target.unit] && !best.certain && !best.examined
        };
        let doubt = |target: Target| (Arc::clone(&self.best(layer, target).point), target);
        let targets = units.iter().flat_map(|&unit| Target::both(unit));
        let mut doubts: Vec<Doubt> = targets.filter(is_doubtful).map(doubt).collect();
        // Each point once, for all units that it is the best for.
        doubts.sort_by_key(|(point, target)| (Arc::as_ptr(point).cast::<f64>(), target.unit, target.side));
        let groups: Vec<&[Doubt]> = doubts.chunk_by(|a, b| Arc::ptr_eq(&a.0, &b.0)).collect();
        let settle = |group: &&[Doubt]| {
            let units: Vec<UnitId> = group.iter().map(|(_, target)| UnitId { layer, unit: target.unit }).collect();
            let found = match budget.is_exhausted() {
                true => None,
                false => pieces_at::<f64>(self.network, self.domain, &group[0].0, &units),
            };
            group.iter().map(|(_, target)| *target).zip(found.into_iter().flatten()).collect()
        };
        let settled: Vec<Vec<(Target, Option<usize>)>> = groups.par_iter().map(settle).collect();
        for (target, piece) in settled.into_iter().flatten() {
            let best = &mut self.best[layer.index()][target.unit][target.side as usize];
            best.examined = true;
            best.certain = piece.is_some_and(|piece| (target.side == Side::Upper) == (piece > 0));
        }
    }

    /// The input that comes nearest to refuting a bound of 0.
    pub(crate) fn nearest(&self, layer: LayerId, target: Target) -> &[f64] {
        &self.best(layer, target).point
    }

    /// Looks for a single sign of a single unit, beside others that do.
    pub(crate) fn probe(&self, layer: LayerId, target: Target) -> Probe<'_> {
        Probe {
            witnesses: self,
            workspace: self.evaluator.workspace(),
            layer,
            target,
            error: self.errors(layer)[target.unit],
            point: Vec::new(),
        }
    }

    /// Looks at the points where the linear bounds of these units of a layer are attained in the relaxed network.
    pub(crate) fn try_relaxation_maximisers(&mut self, known: KnownRanges<'_>, bounds: &[Target], budget: &Budget<'_>) {
        if bounds.is_empty() {
            // Even a workspace for nothing takes time that grows with the network.
            return;
        }
        let found: Vec<Vec<Improvement>> = bounds
            .par_chunks(self.block)
            .map_init(
                || self.evaluator.workspace(),
                |workspace, bounds| {
                    if budget.is_exhausted() {
                        return Vec::new();
                    }
                    let mut pass = RelaxedPass::new(known, &[], bounds.len());
                    pass.backward(bounds);
                    self.scan(workspace, &pass.corners)
                },
            )
            .collect();
        self.keep(found);
    }

    /// Looks for the signs that these units of a layer lack.
    pub(crate) fn climb(&mut self, layer: LayerId, units: &[usize], budget: &Budget<'_>) {
        for _ in 0..CLIMB_STEPS {
            let lacking: Vec<Target> = units
                .iter()
                .flat_map(|&unit| Target::both(unit))
                .filter(|&target| self.may_hold(layer, target))
                // Where every evaluation overflowed there is nowhere to begin.
                .filter(|&target| !self.best(layer, target).point.is_empty())
                .collect();
            if lacking.is_empty() || budget.is_exhausted() {
                return;
            }
            let rows = (self.block / STRIDES.len()).max(1);
            let found: Vec<Vec<Improvement>> = lacking
                .par_chunks(rows)
                .map_init(|| self.evaluator.workspace(), |workspace, lacking| self.step(workspace, layer, lacking))
                .collect();
            self.keep(found);
        }
    }

    /// From the best point of each of these units and signs, goes uphill, and looks there.
    fn step(&self, workspace: &mut Workspace<f64>, layer: LayerId, lacking: &[Target]) -> Vec<Improvement> {
        let (inputs, value) = (self.domain.len(), self.network.pre_activation(layer));
        let point = |&target: &Target| self.best(layer, target).point.iter().copied();
        let starts: Vec<f64> = lacking.iter().flat_map(point).collect();
        let units: Vec<usize> = lacking.iter().map(|target| target.unit).collect();
        let values: Values<'_, f64> = self.evaluator.forward(workspace, &starts);
        let gradients = gradients(self.network, value, values, &units);
        let mut points = Vec::with_capacity(STRIDES.len() * starts.len());
        let rows = gradients.chunks_exact(inputs).zip(starts.chunks_exact(inputs));
        for ((gradient, start), target) in rows.zip(lacking) {
            let uphill: Vec<f64> = gradient.iter().map(|slope| target.side.sign() * slope).collect();
            let mut corner = start.to_vec();
            self.domain.maximise(&uphill, &mut corner);
            for stride in STRIDES {
                points.extend(start.iter().zip(&corner).map(|(&from, &to)| between(from, to, stride)));
            }
        }
        self.scan(workspace, &points)
    }
}

/// Looks for one sign of one unit.
pub(crate) struct Probe<'a> {
    witnesses: &'a Witnesses<'a>,
    workspace: Workspace<f64>,
    layer: LayerId,
    target: Target,
    error: f64,
    /// The last point that was looked at.
    point: Vec<f64>,
}

impl Probe<'_> {
    /// The point of the domain next to a point, if it is certain to have the sign.
    pub(crate) fn shows(&mut self, point: &[f64]) -> Option<Vec<f64>> {
        let Witnesses { network, domain, evaluator, .. } = self.witnesses;
        self.point.clear();
        self.point.extend_from_slice(point);
        domain.clamp(&mut self.point);
        let values = evaluator.forward(&mut self.workspace, &self.point);
        let number = values.get(network.pre_activation(self.layer))[self.target.unit] - self.witnesses.knot(self.layer);
        (self.target.side.sign() * number > self.error).then(|| self.point.clone())
    }
}
