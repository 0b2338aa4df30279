//! What is seen of the network that was given: how large its outputs get, and what evaluating it in single precision
//! makes of them.
//!
//! Both are what a smaller network is held to. A tolerance is relative to what an output was seen to *reach*, not to a
//! bound that nothing may come near. And a network that is as good in real arithmetic can be worse where it runs, if
//! large numbers cancel in it: so its own error in single precision is measured, at the same points as that of the
//! original. The largest error of a few points says little of that of many, so where a network seems to be noisier, but
//! within what is allowed, many more points are looked at.
//!
//! Where outputs are largest is found as in [`crate::compare::falsify`]: a gradient attack, with steps of Frank and
//! Wolfe.

use std::cell::OnceCell;

use leo_network::{Array, Domain, DomainError, Evaluator, Network, ValueId};

use crate::compare::falsify::{for_samples, gradients_at, random_points, uniform_points};

/// How many points outputs are looked at besides samples.
const RANDOM_POINTS: usize = 256;

/// The same for networks with convolutions, and how many steps along gradients are taken in them: each is a way back
/// through all positions.
const CHANNEL_EFFORT: [usize; 2] = [32, 2];

/// How many of an output's elements are climbed along at the most.
const MOST_ELEMENTS: usize = 512;

/// How many numbers the gradients of an output's elements may take.
const GRADIENT_NUMBERS: usize = 1 << 21;

/// The steps along gradients, as parts of the way to the end of the domain.
const STEP_SIZES: [f64; 6] = [1.0, 0.5, 1.0, 0.5, 1.0, 0.5];

/// How many samples single precision is tried on.
const TRIAL_SAMPLES: usize = 512;

/// What part of the noise that is allowed on top of the original's may be measured. The rest is for other points, and
/// for runtimes that sum up in another order.
const MEASURABLE_SHARE: f64 = 0.6;

/// How much evaluating a network in single precision may be: how many points, and how many products at all of them. The
/// more doubt there is, the more.
const EFFORTS: [SamplingEffort; 3] = [
    SamplingEffort { points: 1 << 8, work: 1 << 24, certain: [0.65, 2.0] },
    SamplingEffort { points: 1 << 12, work: 1 << 27, certain: [0.8, 1.25] },
    SamplingEffort { points: 1 << 15, work: 1 << 29, certain: [1.0, 1.0] },
];

/// How many numbers the points may be, and their outputs.
const POINT_NUMBERS: usize = 1 << 22;

#[derive(Clone, Copy)]
struct SamplingEffort {
    points: usize,
    work: usize,
    /// What part of the limit is far enough below it, and how many times the limit is far enough above it, not to look
    /// at more points.
    certain: [f64; 2],
}

/// What single precision cannot show of a number: a smaller error is none.
const INVISIBLE_ERROR: f64 = 1.0 / (1 << 24) as f64;

/// What is seen of a network.
pub(crate) struct Reference<'a> {
    network: &'a Network,
    domain: Domain,
    seed: u64,
    /// For each element of each output, the largest number that it was seen to be, whatever its sign.
    pub(crate) scales: Vec<Vec<f64>>,
    /// At a few points, and at more, once that is asked for.
    trials: [OnceCell<Trial>; EFFORTS.len()],
}

/// A network evaluated in single precision.
struct Trial {
    /// The points, in a row.
    points: Vec<f32>,
    /// What the network makes of them.
    single: Vec<Vec<f32>>,
    noise: Vec<Noise>,
}

/// What single precision makes of one output of a network, at some points.
#[derive(Clone, Debug, Default, PartialEq)]
struct Noise {
    /// The largest error.
    largest: f64,
    /// The largest error of any element, in units of what that was seen to reach; and for each element, the root of the
    /// mean of squares.
    relative: f64,
    usual: Vec<f64>,
}

/// Something of the original network, and of the one to compare it with.
type NetworkErrors<'a, T> = (&'a T, &'a T);

/// What was measured of one output in single precision, the same points for both networks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The largest error of the original network.
    pub original: f64,
    /// The largest error of the smaller one.
    pub small: f64,
    /// The largest difference between the two.
    pub difference: f64,
    /// How many times larger the smaller one's errors are, by the worst error, and by the usual one of any element, in
    /// units of what each element reaches.
    pub factor: f64,
    /// The largest errors of both in units of what their elements reach, and how many times larger the usual error of
    /// any element is.
    worst: [f64; 2],
    usual: f64,
}

/// How many times larger than the original's the measured error may be, so that it is `allowed` times as large at the
/// most where others measure it.
pub(crate) fn measured_limit(allowed: f64) -> f64 {
    if allowed > 1.0 { 1.0 + MEASURABLE_SHARE * (allowed - 1.0) } else { allowed }
}

impl<'a> Reference<'a> {
    /// Looks at a network: at samples if there are any, and else at points of the domain, and where gradients lead from
    /// there.
    ///
    /// # Errors
    /// If samples or domain do not fit the network.
    pub(crate) fn new(
        network: &'a Network,
        domain: &Domain,
        samples: Option<&Array>,
        seed: u64,
    ) -> Result<Self, DomainError> {
        let domain = domain.clone().for_inputs(network.input().elements())?;
        let mut search = OutputSearch::new(network, &domain);
        let [points, steps] = if network.is_dense() { [RANDOM_POINTS, STEP_SIZES.len()] } else { CHANNEL_EFFORT };
        let random = random_points(&domain, points, seed);
        let mut points: Vec<Vec<f64>> = Vec::new();
        match samples {
            Some(samples) => for_samples(samples, network, &domain, |some| {
                search.look_at(some);
                points.extend(some.iter().take(TRIAL_SAMPLES.saturating_sub(points.len())).cloned());
            })?,
            None => {
                search.look_at(&random);
                STEP_SIZES.into_iter().take(steps).for_each(|part| search.climb(part));
            }
        }
        points.extend(random);
        points.extend(uniform_points(&domain, EFFORTS[0].points_of(network), seed));
        let scales = search.scales;
        let mut trials = [const { OnceCell::new() }; EFFORTS.len()];
        trials[0] = OnceCell::from(Trial::new(network, &points, &domain, &scales));
        Ok(Self { network, domain, seed, scales, trials })
    }

    /// The largest of some bounds on how far outputs can move, in units of what each element was seen to reach, or of
    /// `times` what it may be moved on purpose, if that is more.
    pub(crate) fn relative(&self, deltas: &[Vec<f64>], tolerances: &[Vec<f64>], times: f64) -> f64 {
        let pairs = deltas.iter().flatten().zip(self.scales.iter().flatten());
        let units = pairs.zip(tolerances.iter().flatten());
        let relative = |((delta, scale), tolerance): ((&f64, &f64), &f64)| match *delta {
            0.0 => 0.0,
            delta => delta / scale.max(times * tolerance),
        };
        units.map(relative).fold(0.0, larger)
    }

    /// What single precision makes of a network that is to stand for this one, output by output. The nearer that comes
    /// to the limit, the more points are looked at.
    pub(crate) fn compare(&self, network: &Network, limit: f64) -> Vec<Measured> {
        let mut measured: Vec<Measured> = Vec::new();
        for (index, (effort, trial)) in EFFORTS.iter().zip(&self.trials).enumerate() {
            let trial = trial.get_or_init(|| {
                let seed = self.seed.wrapping_add(index as u64);
                let points = uniform_points(&self.domain, effort.points_of(self.network), seed);
                Trial::new(self.network, &points, &self.domain, &self.scales)
            });
            let found = trial.compare(network, &self.scales);
            match measured.is_empty() {
                true => measured = found,
                false => measured.iter_mut().zip(found).for_each(|(measured, found)| measured.join(&found)),
            }
            let worst = measured.iter().map(|of| of.factor).fold(0.0, larger);
            let [below, above] = effort.certain;
            if worst <= below * limit || worst > above * limit {
                break;
            }
        }
        measured
    }
}

impl SamplingEffort {
    /// At how many points a network can be evaluated.
    fn points_of(self, network: &Network) -> usize {
        let elements = |value: ValueId| network.shape(value).elements();
        let outputs: usize = network.outputs().iter().map(|&value| elements(value)).sum();
        // What is no product takes time, too.
        let each = network.multiply_adds() + network.values().map(elements).sum::<usize>();
        self.points.min(self.work / each).min(POINT_NUMBERS / outputs.max(network.input().elements()))
    }
}

impl Measured {
    /// With what was measured at more points, which say more about how errors compare.
    fn join(&mut self, more: &Self) {
        let worst = [0, 1].map(|network| larger(self.worst[network], more.worst[network]));
        *self = Self {
            original: larger(self.original, more.original),
            small: larger(self.small, more.small),
            difference: larger(self.difference, more.difference),
            factor: larger(times(worst), more.usual),
            worst,
            usual: more.usual,
        };
    }
}

impl Trial {
    fn new(network: &Network, points: &[Vec<f64>], domain: &Domain, scales: &[Vec<f64>]) -> Self {
        let points: Vec<f32> = points.iter().flat_map(|point| in_single(point, domain)).collect();
        let (single, noise) = measure(network, &points, scales);
        Self { points, single, noise }
    }

    /// What single precision makes of another network at the same points.
    fn compare(&self, network: &Network, scales: &[Vec<f64>]) -> Vec<Measured> {
        let (single, noise) = measure(network, &self.points, scales);
        let outputs = self.noise.iter().zip(&noise).zip(self.single.iter().zip(&single));
        let measured = |((before, after), (first, second)): (NetworkErrors<'_, Noise>, NetworkErrors<'_, Vec<f32>>)| {
            let apart = |(a, b): (&f32, &f32)| (f64::from(*a) - f64::from(*b)).abs();
            let worst = [before.relative, after.relative];
            let usual = before.usual.iter().zip(&after.usual).map(|(&before, &after)| times([before, after]));
            let usual = usual.fold(0.0, larger);
            Measured {
                original: before.largest,
                small: after.largest,
                difference: first.iter().zip(second).map(apart).fold(0.0, larger),
                factor: larger(times(worst), usual),
                worst,
                usual,
            }
        };
        outputs.map(measured).collect()
    }
}

/// How many times the first of two errors, in units of what an element reaches, the second is. What single precision
/// cannot show is no error.
fn times([before, after]: [f64; 2]) -> f64 {
    if after <= INVISIBLE_ERROR { 1.0 } else { after / before.max(INVISIBLE_ERROR) }
}

/// What a network gives in single precision, and how far that is off, in units of what its outputs reach.
fn measure(network: &Network, points: &[f32], scales: &[Vec<f64>]) -> (Vec<Vec<f32>>, Vec<Noise>) {
    let single = Evaluator::<f32>::new(network).run(points);
    let precise: Vec<f64> = points.iter().copied().map(f64::from).collect();
    let precise = Evaluator::<f64>::new(network).run(&precise);
    let outputs = single.iter().zip(&precise).zip(scales);
    let noise = outputs.map(|((single, precise), scales)| {
        let mut noise = Noise { usual: vec![0.0; scales.len()], ..Noise::default() };
        for (index, (&single, &precise)) in single.iter().zip(precise).enumerate() {
            let error = (f64::from(single) - precise).abs();
            let scale = scales[index % scales.len()];
            noise.largest = larger(noise.largest, error);
            if scale > 0.0 {
                noise.relative = larger(noise.relative, error / scale);
                noise.usual[index % scales.len()] += (error / scale).powi(2);
            }
        }
        let points = (single.len() / scales.len()).max(1) as f64;
        noise.usual.iter_mut().for_each(|squares| *squares = (*squares / points).sqrt());
        noise
    });
    let noise = noise.collect();
    (single, noise)
}

/// The larger of two numbers; what is no number is larger than any.
fn larger(a: f64, b: f64) -> f64 {
    if a.is_nan() || b.is_nan() { f64::INFINITY } else { a.max(b) }
}

/// The numbers in single precision that are nearest to a point, moved into the domain where that is possible.
fn in_single<'a>(point: &'a [f64], domain: &'a Domain) -> impl Iterator<Item = f32> + 'a {
    point.iter().zip(domain.hull().sides()).map(|(&x, (lo, hi))| {
        let nearest = x as f32;
        if f64::from(nearest) > hi && f64::from(nearest.next_down()) >= lo {
            nearest.next_down()
        } else if f64::from(nearest) < lo && f64::from(nearest.next_up()) <= hi {
            nearest.next_up()
        } else {
            nearest
        }
    })
}

/// A search for points where outputs are large.
struct OutputSearch<'a> {
    network: &'a Network,
    evaluator: Evaluator<f64>,
    domain: &'a Domain,
    scales: Vec<Vec<f64>>,
    /// For each output, for some of its elements, where they are largest: the element, its value there, and the point.
    best: Vec<Vec<(f64, Vec<f64>)>>,
}

impl<'a> OutputSearch<'a> {
    fn new(network: &'a Network, domain: &'a Domain) -> Self {
        let widths: Vec<usize> = network.outputs().iter().map(|&value| network.shape(value).elements()).collect();
        let climbers = (GRADIENT_NUMBERS / network.widest().max(1)).clamp(1, MOST_ELEMENTS);
        Self {
            network,
            evaluator: Evaluator::new(network),
            domain,
            scales: widths.iter().map(|&width| vec![0.0; width]).collect(),
            best: widths.iter().map(|&width| vec![(0.0, domain.at(|| 0.0)); width.min(climbers)]).collect(),
        }
    }

    fn look_at(&mut self, points: &[Vec<f64>]) {
        let outputs = self.evaluator.run(&points.concat());
        for ((numbers, scales), best) in outputs.iter().zip(&mut self.scales).zip(&mut self.best) {
            let width = scales.len();
            for (index, &number) in numbers.iter().enumerate() {
                let element = index % width;
                if number.abs() > scales[element] {
                    scales[element] = number.abs();
                    if let Some(best) = best.get_mut(element) {
                        *best = (number, points[index / width].clone());
                    }
                }
            }
        }
    }

    /// From where each element is largest to where its gradient leads.
    fn climb(&mut self, part: f64) {
        let mut next = Vec::new();
        for (output, best) in self.best.iter().enumerate() {
            let points: Vec<f64> = best.iter().flat_map(|(_, point)| point.iter().copied()).collect();
            let elements: Vec<usize> = (0..best.len()).collect();
            let value = self.network.outputs()[output];
            let slopes = gradients_at(self.network, &self.evaluator, value, &points, &elements);
            for ((number, point), slopes) in best.iter().zip(slopes.chunks(self.domain.len())) {
                let mut point = point.clone();
                let slopes: Vec<f64> = slopes.iter().map(|slope| number.signum() * slope).collect();
                self.domain.step_along(&mut point, &slopes, part);
                next.push(point);
            }
        }
        self.look_at(&next);
    }
}
