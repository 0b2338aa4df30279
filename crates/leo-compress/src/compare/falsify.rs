//! How far two networks are seen to be apart: points where they differ, found by climbing along gradients.
//!
//! Points are looked for in double precision. Where networks seem to be furthest apart, they are evaluated again with
//! about twice as many digits, and what rounding could have made of the difference even then is taken off. So what is
//! seen at a point is what is there, and never more than a bound that is proved.
//!
//! In the field's words this is falsification: a gradient attack, from many points, on the difference of two networks,
//! as PGD (A. Madry et al., *Towards Deep Learning Models Resistant to Adversarial Attacks*, ICLR 2018) is one on a
//! loss. Steps are those of M. Frank and P. Wolfe (1956), a part of the way to where the linearised difference is
//! largest on the domain, as J. Chen et al. take them (*A Frank-Wolfe Framework for Efficient and Effective Adversarial
//! Attacks*, AAAI 2020): so they stay within a domain of any kind. A point that is found is a counterexample to
//! equality.

use std::time::Instant;

use fastrand::Rng;
use leo_check::{Checker, Precision, evaluation_errors};
use leo_network::{Array, Domain, DomainError, Evaluator, Network, ValueId, evaluate_precisely};
use leo_stability::gradients;
use rayon::prelude::*;

/// How many points are looked at to begin with, besides samples, at the least.
const FEWEST_POINTS: usize = 256;

/// How many points are looked at to begin with, besides samples, at the most.
const MOST_POINTS: usize = 1 << 14;

/// How many products it may take to look at more than [`FEWEST_POINTS`].
const MOST_PRODUCTS: usize = 1 << 26;

/// How many points of each output are led on from.
const CLIMBERS: usize = 16;

/// The steps along gradients, as parts of the way to the end of the domain.
const STEP_SIZES: [f64; 18] =
    [1.0, 0.5, 1.0, 0.5, 1.0, 0.5, 1.0, 0.5, 1.0, 0.5, 1.0, 0.5, 0.25, 0.12, 0.06, 0.03, 0.015, 0.008];

/// How many samples are looked at at once.
const BATCH_SAMPLES: usize = 256;

/// How many points of each output are looked at closely.
const PRECISE_POINTS: usize = 4;

/// How many products gradients and precise evaluations of networks with convolutions may take, each: there is no matrix
/// to take them back by, and it would be minutes.
const MOST_CHANNEL_PRODUCTS: usize = 1 << 26;

/// How much may be looked at.
#[derive(Clone, Copy)]
struct AttackEffort {
    /// Points to begin with, besides samples.
    points: usize,
    /// Points of each output that are led on from.
    climbers: usize,
    /// Steps along gradients.
    steps: usize,
    /// Points of each output that are looked at closely.
    precise: usize,
}

impl AttackEffort {
    fn of(networks: [&Network; 2]) -> Self {
        let products = networks.map(Network::multiply_adds).into_iter().max().unwrap_or(0).max(1);
        let (steps, climbers, precise) = (STEP_SIZES.len(), CLIMBERS, PRECISE_POINTS);
        if networks.iter().all(|network| network.is_dense()) {
            let points = (MOST_PRODUCTS / products).clamp(FEWEST_POINTS, MOST_POINTS);
            return Self { points, climbers, steps, precise };
        }
        let each = MOST_CHANNEL_PRODUCTS / products / networks[0].outputs().len();
        let climbers = (each / steps).clamp(1, climbers);
        Self {
            points: (MOST_PRODUCTS / products).clamp(8, MOST_POINTS),
            climbers,
            steps: (each / climbers).clamp(1, steps),
            precise: (each / 8).clamp(1, precise),
        }
    }
}

/// What rounding makes with twice as many digits, compared with what it makes in doubles: 2^-104 instead of 2^-53, with
/// room to spare.
const PRECISE_ROUNDING: f64 = 1.0 / (1_u64 << 46) as f64;

/// What is seen of one output of two networks.
#[derive(Clone, Debug, PartialEq)]
pub struct LargestDifference {
    /// The largest number in it, whatever its sign, that either network gives, in double precision.
    pub size: f64,
    /// Where it differs most, if it is certain to differ anywhere.
    pub furthest: Option<SeenDifference>,
}

/// A point where an element of an output differs.
#[derive(Clone, Debug, PartialEq)]
pub struct SeenDifference {
    /// Which element.
    pub element: usize,
    /// How far the two networks are apart there at the least, whatever rounding did.
    pub distance: f64,
    /// What the two networks give, in double precision.
    pub values: [f64; 2],
    /// The point of the domain.
    pub point: Vec<f64>,
}

/// The largest difference between outputs of two networks that is seen at random points of a domain, at its corners, at
/// samples, and at points to which gradients lead from there.
///
/// # Errors
/// If the domain or the samples do not fit the networks.
pub fn largest_difference(
    first: &Network,
    second: &Network,
    domain: &Domain,
    samples: Option<&Array>,
    seed: u64,
) -> Result<f64, DomainError> {
    let observed = observe(first, second, domain, samples, seed)?;
    let distances = observed.iter().filter_map(|output| output.furthest.as_ref()).map(|apart| apart.distance);
    Ok(distances.fold(0.0, f64::max))
}

/// For each output of two networks, where they are seen to differ most, looking at the same points as
/// [`largest_difference`] does.
///
/// # Errors
/// If the domain or the samples do not fit the networks.
///
/// # Panics
/// If the networks do not have inputs and outputs of the same shapes.
pub fn observe(
    first: &Network,
    second: &Network,
    domain: &Domain,
    samples: Option<&Array>,
    seed: u64,
) -> Result<Vec<LargestDifference>, DomainError> {
    observe_with_deadline(first, second, domain, samples, seed, None)
}

/// What [`observe`] gives, as far as there is time for it: after `end` no more points are looked at, but for the first
/// ones.
///
/// # Errors
/// As for [`observe`].
///
/// # Panics
/// As [`observe`] does.
pub fn observe_with_deadline(
    first: &Network,
    second: &Network,
    domain: &Domain,
    samples: Option<&Array>,
    seed: u64,
    end: Option<Instant>,
) -> Result<Vec<LargestDifference>, DomainError> {
    let is_late = || end.is_some_and(|end| Instant::now() >= end);
    let mut search = DifferenceAttack::new([first, second], domain)?;
    let effort = search.effort;
    for some in random_points(domain, effort.points, seed).chunks(BATCH_SAMPLES) {
        search.look_at(some);
    }
    if let Some(samples) = samples {
        for_samples(samples, first, domain, |some| {
            if !is_late() {
                search.look_at(some);
            }
        })?;
    }
    for part in STEP_SIZES.into_iter().take(effort.steps).take_while(|_| !is_late()) {
        search.climb(part);
    }
    search.look_closely();
    Ok(search.observed)
}

/// Calls a function with samples, some at a time, moved into the domain where they are outside.
///
/// # Errors
/// If the samples are another network's.
pub(crate) fn for_samples(
    samples: &Array,
    network: &Network,
    domain: &Domain,
    mut look: impl FnMut(&[Vec<f64>]),
) -> Result<(), DomainError> {
    Domain::count_samples(samples, network.input())?;
    let mut numbers = samples.iter();
    let mut some: Vec<Vec<f64>> = Vec::new();
    loop {
        let mut sample: Vec<f64> = numbers.by_ref().take(domain.len()).collect();
        let is_last = sample.len() < domain.len();
        if !is_last {
            domain.clamp(&mut sample);
            some.push(sample);
        }
        if some.len() == BATCH_SAMPLES || is_last {
            look(&some);
            some.clear();
        }
        if is_last {
            return Ok(());
        }
    }
}

/// Points anywhere in a domain.
pub(crate) fn uniform_points(domain: &Domain, count: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut random = Rng::with_seed(seed);
    (0..count).map(|_| domain.at(|| random.f64())).collect()
}

/// Two opposite corners of a domain, and as many other points of it, half of them corners, as there are to be.
pub(crate) fn random_points(domain: &Domain, count: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut random = Rng::with_seed(seed);
    let mut corner_or_point = |index: usize| match index.is_multiple_of(2) {
        true => domain.at(|| f64::from(!random.bool())),
        false => domain.at(|| random.f64()),
    };
    let corners = [0.0, 1.0].map(|share| domain.at(|| share));
    corners.into_iter().chain((2..count).map(&mut corner_or_point)).collect()
}

/// The gradients of elements of a value of a network, each at a point of its own.
pub(crate) fn gradients_at(
    network: &Network,
    evaluator: &Evaluator<f64>,
    value: ValueId,
    points: &[f64],
    elements: &[usize],
) -> Vec<f64> {
    let mut workspace = evaluator.workspace();
    gradients(network, value, evaluator.forward(&mut workspace, points), elements)
}

struct DifferenceAttack<'a> {
    networks: [&'a Network; 2],
    effort: AttackEffort,
    evaluators: [Evaluator<f64>; 2],
    domain: &'a Domain,
    /// For each element of each output, what rounding can make of a difference.
    noise: Vec<Vec<f64>>,
    /// For each output, the points with the largest differences.
    best: Vec<Vec<ClimbResult>>,
    observed: Vec<LargestDifference>,
}

#[derive(Clone)]
struct ClimbResult {
    element: usize,
    values: [f64; 2],
    point: Vec<f64>,
}

impl ClimbResult {
    fn difference(&self) -> f64 {
        self.values[0] - self.values[1]
    }

    fn size(&self) -> f64 {
        self.difference().abs()
    }
}

impl<'a> DifferenceAttack<'a> {
    fn new(networks: [&'a Network; 2], domain: &'a Domain) -> Result<Self, DomainError> {
        let mut noise: Vec<Vec<f64>> = Vec::new();
        for network in networks {
            let facts = Checker::new(network, domain)?.finish();
            let errors = evaluation_errors(network, facts.ranges(), Precision::DOUBLE);
            for (output, &value) in network.outputs().iter().enumerate() {
                let errors = &errors[value];
                match noise.get_mut(output) {
                    Some(noise) => {
                        noise.iter_mut().zip(errors).for_each(|(sum, error)| *sum = (*sum + error).next_up())
                    }
                    None => noise.push(errors.to_vec()),
                }
            }
        }
        let evaluators = networks.map(Evaluator::new);
        let best = noise.iter().map(|_| Vec::new()).collect();
        let observed = noise.iter().map(|_| LargestDifference { size: 0.0, furthest: None }).collect();
        Ok(Self { networks, effort: AttackEffort::of(networks), evaluators, domain, noise, best, observed })
    }

    fn look_at(&mut self, points: &[Vec<f64>]) {
        let batch = points.concat();
        let [first, second] = [0, 1].map(|index| self.evaluators[index].run(&batch));
        for (output, (first, second)) in first.iter().zip(&second).enumerate() {
            let sizes = first.iter().chain(second).map(|number| number.abs());
            self.observed[output].size = sizes.fold(self.observed[output].size, f64::max);
            let width = self.noise[output].len();
            for (row, point) in points.iter().enumerate() {
                let pairs = first[row * width..][..width].iter().zip(&second[row * width..][..width]);
                let values = pairs.map(|(&a, &b)| [a, b]).enumerate();
                let furthest = values.max_by(|(_, [a, b]), (_, [c, d])| (a - b).abs().total_cmp(&(c - d).abs()));
                if let Some((element, values)) = furthest {
                    self.note(output, ClimbResult { element, values, point: point.clone() });
                }
            }
        }
    }

    fn note(&mut self, output: usize, found: ClimbResult) {
        let best = &mut self.best[output];
        let place = best.partition_point(|other| other.size() >= found.size());
        // Also where nothing is seen to differ: the difference may be too small for doubles.
        if place < self.effort.climbers {
            best.insert(place, found);
            best.truncate(self.effort.climbers);
        }
    }

    /// From each of the best points to where the gradient of the difference leads.
    fn climb(&mut self, part: f64) {
        let mut next = Vec::new();
        for output in 0..self.noise.len() {
            let found: Vec<&ClimbResult> = self.best[output].iter().collect();
            let [first, second] = [0, 1].map(|index| self.gradients(index, output, &found));
            let width = self.domain.len();
            for (found, slopes) in found.iter().zip(first.chunks(width).zip(second.chunks(width))) {
                let mut point = found.point.clone();
                let sign = found.difference().signum();
                let slopes: Vec<f64> = slopes.0.iter().zip(slopes.1).map(|(a, b)| sign * (a - b)).collect();
                self.domain.step_along(&mut point, &slopes, part);
                next.push(point);
            }
        }
        if !next.is_empty() {
            self.look_at(&next);
        }
    }

    /// The gradients of one of the networks, at points, of the elements of an output that differ most there.
    fn gradients(&self, index: usize, output: usize, found: &[&ClimbResult]) -> Vec<f64> {
        let (network, evaluator) = (self.networks[index], &self.evaluators[index]);
        let points: Vec<f64> = found.iter().flat_map(|found| found.point.iter().copied()).collect();
        let elements: Vec<usize> = found.iter().map(|found| found.element).collect();
        gradients_at(network, evaluator, network.outputs()[output], &points, &elements)
    }

    /// Evaluates both networks with more digits where they seem to be furthest apart, and keeps for each output what is
    /// certain.
    fn look_closely(&mut self) {
        let points = self.best.iter().flat_map(|best| best.iter().take(self.effort.precise)).map(|found| &found.point);
        let mut points: Vec<&Vec<f64>> = points.collect();
        points.dedup();
        let evaluated = points.par_iter().map(|point| self.networks.map(|network| evaluate_precisely(network, point)));
        for (point, [first, second]) in points.iter().zip(evaluated.collect::<Vec<_>>()) {
            for (output, (first, second)) in first.iter().zip(&second).enumerate() {
                for (element, (&a, &b)) in first.iter().zip(second).enumerate() {
                    let noise = self.noise[output][element] * PRECISE_ROUNDING + f64::MIN_POSITIVE;
                    // What is left after rounding: less than that is nothing.
                    let certain = (f64::from((a - b).abs()).next_down() - noise).next_down();
                    let furthest = &mut self.observed[output].furthest;
                    if certain > furthest.as_ref().map_or(0.0, |furthest| furthest.distance) {
                        let values = [a, b].map(f64::from);
                        let point = point.to_vec();
                        *furthest = Some(SeenDifference { element, distance: certain, values, point });
                    }
                }
            }
        }
    }
}
