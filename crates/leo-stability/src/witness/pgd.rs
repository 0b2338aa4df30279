//! A longer search for the signs that a climb did not find: projected gradient ascent (PGD, Madry et al. 2018,
//! arXiv:1706.06083), with momentum (Dong et al. 2018, arXiv:1710.06081) and restarts.
//!
//! A climb goes on from a single point, and ends where that point is the best of its neighbourhood. Here, many points
//! set out for each sign: those that come nearest to it of all that are known, whichever unit they were kept for, and
//! random ones. They move together, a matrix product for all of them: every input by the same part of its range, up or
//! down as the gradient says, in a direction that remembers the steps before. The steps get shorter, from a third of
//! the range to a thousandth of it. For a lower bound the ascent is one of the negative.
//!
//! Points, blocks and random numbers depend on nothing but the seed and what was known before, so that what is found
//! does not depend on the number of threads.

use std::collections::HashSet;
use std::sync::Arc;

use fastrand::Rng;
use leo_check::Target;
use leo_network::{LayerId, Workspace};
use rayon::prelude::*;

use super::gradient::gradients;
use super::{Best, Improvement, Witnesses};
use crate::budget::Budget;

/// How many points that are known already are looked through for good ones to set out from.
const MAX_KNOWN_POINTS: usize = 512;
/// The first step, as a part of an input's range.
const FIRST_STRIDE: f64 = 0.3;
/// What is left of the first step at the end, as a part of an input's range.
const LAST_STRIDE: f64 = 0.001;
/// What part of a direction is carried over to the next step.
const MOMENTUM: f64 = 0.5;

/// How hard to search.
#[derive(Clone, Copy)]
pub(crate) struct PgdBudget {
    /// How many blocks of points set out for a sign.
    blocks: usize,
    /// How many points there are in a block: restarts, in the field's words.
    starts: usize,
    /// How many steps each point takes at the most.
    steps: usize,
}

impl PgdBudget {
    /// A few milliseconds a sign for a network of a hundred thousand weights: little beside a linear program.
    pub(crate) const SHORT: Self = Self { blocks: 1, starts: 8, steps: 20 };
    /// Little beside a case distinction.
    pub(crate) const LONG: Self = Self { blocks: 2, starts: 8, steps: 40 };
}

/// Points that are known, and the pre-activations of a layer there.
struct KnownPoints {
    points: Vec<Arc<[f64]>>,
    width: usize,
    numbers: Vec<f64>,
}

impl KnownPoints {
    /// The points that come nearest to a `goal`, at most `count`, the best first.
    fn nearest(&self, goal: Target, count: usize) -> Vec<usize> {
        let value = |row: usize| goal.side.sign() * self.numbers[row * self.width + goal.unit];
        let mut order: Vec<usize> = (0..self.points.len()).filter(|&row| !value(row).is_nan()).collect();
        order.sort_by(|&a, &b| value(b).total_cmp(&value(a)));
        order.truncate(count);
        order
    }
}

/// The best of all points that a block has been at.
struct Ascent {
    value: f64,
    point: Vec<f64>,
}

impl Witnesses<'_> {
    /// Looks harder for points that refute bounds of 0 of units of a layer.
    pub(crate) fn pgd_with_restarts(
        &mut self,
        layer: LayerId,
        bounds: &[Target],
        effort: PgdBudget,
        seed: u64,
        budget: &Budget<'_>,
    ) {
        if bounds.is_empty() || budget.is_exhausted() {
            return;
        }
        let (known, count) = (self.known(layer), effort.starts.min(self.block));
        // What refutes a bound is on its other side.
        let nearest = |goal: Target| known.nearest(goal, effort.blocks * count.div_ceil(2));
        let goals: Vec<(Target, Vec<usize>)> = bounds.iter().map(|&goal| (goal, nearest(goal))).collect();
        let tasks = goals.par_iter().flat_map_iter(|of| (0..effort.blocks).map(move |block| (of, block)));
        let found: Vec<Vec<Improvement>> = tasks
            .map_init(
                || self.evaluator.workspace(),
                |workspace, (&(goal, ref nearest), block)| {
                    let near = nearest.iter().skip(block).step_by(effort.blocks).map(|&row| &*known.points[row]);
                    let starts = self.starts(near, count, &mut random(seed, layer, goal, block));
                    self.ascend(workspace, layer, goal, starts, effort.steps, budget)
                },
            )
            .collect();
        self.keep(found);
    }

    /// The points that are the best for some unit of a layer or of the layers before, nearer layers first.
    fn known(&self, layer: LayerId) -> KnownPoints {
        let mut seen = HashSet::new();
        let mut points: Vec<Arc<[f64]>> = Vec::new();
        for Best { point, .. } in self.best[..=layer.index()].iter().rev().flatten().flatten() {
            if points.len() < MAX_KNOWN_POINTS && !point.is_empty() && seen.insert(Arc::as_ptr(point)) {
                points.push(Arc::clone(point));
            }
        }
        let value = self.network.pre_activation(layer);
        let evaluate = |workspace: &mut Workspace<f64>, points: &[Arc<[f64]>]| {
            let rows: Vec<f64> = points.iter().flat_map(|point| point.iter().copied()).collect();
            self.evaluator.forward(workspace, &rows).get(value).to_vec()
        };
        let blocks = points.par_chunks(self.block).map_init(|| self.evaluator.workspace(), evaluate);
        let numbers: Vec<Vec<f64>> = blocks.collect();
        KnownPoints { points, width: self.network.shape(value).elements(), numbers: numbers.concat() }
    }

    /// Points to set out from, `count` of them: those that are `near`, and then random corners and random points by
    /// turns.
    fn starts<'p>(&self, near: impl Iterator<Item = &'p [f64]>, count: usize, random: &mut Rng) -> Vec<f64> {
        let inputs = self.domain.len();
        let mut points = Vec::with_capacity(count * inputs);
        near.for_each(|point| points.extend_from_slice(point));
        for row in points.len() / inputs..count {
            // Corners where few inputs are high, and corners where many are.
            let high = random.f64();
            points.extend(self.domain.at(|| {
                let share = random.f64();
                if row % 2 == 0 { f64::from(share < high) } else { share }
            }));
        }
        points
    }

    /// Takes points uphill until one of them has the sign for certain, and looks at the best.
    fn ascend(
        &self,
        workspace: &mut Workspace<f64>,
        layer: LayerId,
        goal: Target,
        mut points: Vec<f64>,
        steps: usize,
        budget: &Budget<'_>,
    ) -> Vec<Improvement> {
        let (inputs, value, error) =
            (self.domain.len(), self.network.pre_activation(layer), self.errors(layer)[goal.unit]);
        let mut directions = vec![0.0; points.len()];
        let units = vec![goal.unit; points.len() / inputs];
        let mut summit = Ascent { value: f64::NEG_INFINITY, point: Vec::new() };
        for step in 0..=steps {
            if budget.is_exhausted() {
                break;
            }
            let values = self.evaluator.forward(workspace, &points);
            let numbers = values.get(value).chunks_exact(self.network.shape(value).elements());
            for (numbers, point) in numbers.zip(points.chunks_exact(inputs)) {
                summit.raise(goal.side.sign() * numbers[goal.unit], point);
            }
            if summit.value > error || step == steps {
                break;
            }
            let slopes = gradients(self.network, value, values, &units);
            let left = 1.0 - step as f64 / steps as f64;
            self.advance(&mut points, &mut directions, &slopes, goal, FIRST_STRIDE * left * left + LAST_STRIDE);
        }
        // Where every evaluation overflowed, or it is too late, there is none.
        if summit.point.is_empty() { Vec::new() } else { self.scan(workspace, &summit.point) }
    }

    /// Moves every input of every point by `stride` of its range.
    fn advance(&self, points: &mut [f64], directions: &mut [f64], slopes: &[f64], goal: Target, stride: f64) {
        let inputs = self.domain.len();
        let rows = points.chunks_exact_mut(inputs).zip(directions.chunks_exact_mut(inputs));
        for ((point, direction), slopes) in rows.zip(slopes.chunks_exact(inputs)) {
            // Steps count alike, however steep it was there.
            let size = slopes.iter().map(|slope| slope.abs()).sum::<f64>().max(f64::MIN_POSITIVE);
            for (direction, slope) in direction.iter_mut().zip(slopes) {
                *direction = MOMENTUM * *direction + goal.side.sign() * slope / size;
            }
            self.domain.step_by(point, direction, stride);
        }
    }
}

impl Ascent {
    /// Goes on to a point if it is higher.
    fn raise(&mut self, value: f64, point: &[f64]) {
        if value > self.value {
            self.value = value;
            self.point.clear();
            self.point.extend_from_slice(point);
        }
    }
}

/// Random numbers for one block of one sign of one unit.
fn random(seed: u64, layer: LayerId, goal: Target, block: usize) -> Rng {
    let of = |seed: u64, number: usize| Rng::with_seed(seed ^ number as u64).u64(..);
    Rng::with_seed([layer.index(), goal.unit, goal.side as usize, block].into_iter().fold(seed, of))
}

#[cfg(test)]
mod tests {
    use leo_check::{Checker, Side};
    use leo_network::op::{Dense, Matrix, Relu};
    use leo_network::{Domain, DomainError, Network, NetworkError, Shape, ValueId};

    use super::*;
    use crate::budget::Limits;

    type Anything = Result<(), Box<dyn std::error::Error>>;

    /// Where the tip of the cone is.
    const PEAK: [f64; 6] = [0.37, 0.61, 0.23, 0.83, 0.55, 0.12];
    /// How high the tip is, and how far from it the cone is above 0.
    const RADIUS: f64 = 0.08;
    /// The layer that the cone is in.
    const SECOND: LayerId = LayerId::new(1);

    /// A second layer of two units, [`RADIUS`]` - |x - p|` and its negative, where `|x - p|` adds up what each input is
    /// away from [`PEAK`].
    fn cone() -> Result<Network, NetworkError> {
        let mut weights = Vec::new();
        for (index, sign) in (0..PEAK.len()).flat_map(|index| [(index, 1.0), (index, -1.0)]) {
            weights.extend((0..PEAK.len()).map(|input| if input == index { sign } else { 0.0 }));
        }
        let first = Matrix::new(2 * PEAK.len(), PEAK.len(), weights)?;
        let second = Matrix::new(2, 2 * PEAK.len(), [[-1.0; 2 * PEAK.len()], [1.0; 2 * PEAK.len()]].concat())?;
        let mut builder = Network::builder(Shape::new([PEAK.len()])?);
        let biases = PEAK.iter().flat_map(|&peak| [-peak, peak]).collect();
        let g = builder.add("fc1", Dense::new(first, Some(biases))?, &[ValueId::INPUT])?;
        let h = builder.add("relu1", Relu, &[g])?;
        let g = builder.add("fc2", Dense::new(second, Some(vec![RADIUS, -RADIUS]))?, &[h])?;
        let h = builder.add("relu2", Relu, &[g])?;
        builder.finish(vec![h])
    }

    /// Both sides of both units.
    fn bounds() -> impl Iterator<Item = Target> {
        (0..2).flat_map(Target::both)
    }

    /// What is known of the second layer after a climb, and a search for what is then lacking.
    fn search<'n>(
        network: &'n Network,
        domain: &'n Domain,
        effort: Option<PgdBudget>,
    ) -> Result<Witnesses<'n>, DomainError> {
        let mut checker = Checker::new(network, domain)?;
        while checker.next_layer().is_some() {}
        let (limits, mut witnesses) = (Limits::default(), Witnesses::new(network, domain));
        witnesses.learn(checker.ranges());
        witnesses.sample_domain(0);
        witnesses.climb(SECOND, &[0, 1], &limits.whole());
        if let Some(effort) = effort {
            witnesses.pgd_with_restarts(SECOND, &open(&witnesses), effort, 0, &limits.whole());
        }
        Ok(witnesses)
    }

    fn open(witnesses: &Witnesses<'_>) -> Vec<Target> {
        bounds().filter(|&target| witnesses.may_hold(SECOND, target)).collect()
    }

    #[test]
    fn shrinking_steps_find_a_peak_where_a_climb_is_stuck() -> Anything {
        let (network, domain) = (cone()?, Domain::uniform(PEAK.len(), 0.0, 1.0)?);
        assert_eq!(
            open(&search(&network, &domain, None)?),
            [Target { unit: 0, side: Side::Upper }, Target { unit: 1, side: Side::Lower }]
        );
        for effort in [PgdBudget::SHORT, PgdBudget::LONG] {
            assert_eq!(open(&search(&network, &domain, Some(effort))?), []);
        }
        Ok(())
    }

    #[test]
    fn what_is_found_does_not_depend_on_the_number_of_threads() -> Anything {
        let (network, domain) = (cone()?, Domain::uniform(PEAK.len(), 0.0, 1.0)?);
        let found = |threads: usize| -> Result<_, Box<dyn std::error::Error>> {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
            let witnesses = pool.install(|| search(&network, &domain, Some(PgdBudget::LONG)))?;
            Ok([0, 1].map(|unit| witnesses.of(SECOND, unit)))
        };
        let alone = found(1)?;
        assert_eq!(alone, found(2)?);
        assert_eq!(alone, found(5)?);
        Ok(())
    }

    #[test]
    fn nothing_is_found_where_nothing_is() -> Anything {
        let network = cone()?;
        let away = Domain::uniform(PEAK.len(), 0.4, 1.0)?;
        assert_eq!(
            open(&search(&network, &away, Some(PgdBudget::LONG))?),
            [Target { unit: 0, side: Side::Upper }, Target { unit: 1, side: Side::Lower }]
        );
        Ok(())
    }
}
