//! How far two networks are seen to be apart: points where they differ, found by climbing along gradients.
//!
//! Both are evaluated in double precision, and what rounding could have made of the difference there is taken off. So what is seen at a point is
//! no more than what is there, and never more than a bound that is proved.

use fastrand::Rng;
use leo_check::Checker;
use leo_network::{Array, Domain, DomainError, Evaluator, Network};
use leo_stability::{evaluation_errors, gradients};

/// How many points are looked at to begin with, besides samples, and how many of them are led on from.
const POINTS: usize = 256;
const CLIMBERS: usize = 16;
/// How many steps they take.
const STEPS: usize = 12;
/// How many samples are looked at at once.
const AT_ONCE: usize = 256;

/// What is seen of one output of two networks.
#[derive(Clone, Debug, PartialEq)]
pub struct Observed {
    /// The largest number in it, whatever its sign, that either network gives, in double precision.
    pub size: f64,
    /// Where it differs most, if it is certain to differ anywhere.
    pub furthest: Option<Apart>,
}

/// A point where an element of an output differs.
#[derive(Clone, Debug, PartialEq)]
pub struct Apart {
    /// Which element.
    pub element: usize,
    /// How far the two networks are apart there at the least, whatever rounding did.
    pub distance: f64,
    /// What the two networks give, in double precision.
    pub values: [f64; 2],
    /// The point of the domain.
    pub point: Vec<f64>,
}

/// The largest difference between outputs of two networks that is seen at random points of a domain, at its corners, at samples, and at points to which
/// gradients lead from there.
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

/// For each output of two networks, where they are seen to differ most, looking at the same points as [`largest_difference`] does.
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
) -> Result<Vec<Observed>, DomainError> {
    let mut search = Search::new([first, second], domain)?;
    search.look_at(&random_points(domain, POINTS, seed));
    if let Some(samples) = samples {
        Domain::count_samples(samples, first.input())?;
        let mut numbers = samples.iter();
        let mut some: Vec<Vec<f64>> = Vec::new();
        loop {
            let mut sample: Vec<f64> = numbers.by_ref().take(domain.len()).collect();
            let is_last = sample.len() < domain.len();
            if !is_last {
                domain.clamp(&mut sample);
                some.push(sample);
            }
            if some.len() == AT_ONCE || is_last {
                search.look_at(&some);
                some.clear();
            }
            if is_last {
                break;
            }
        }
    }
    for step in 0..STEPS {
        search.climb(step);
    }
    Ok(search.observed)
}

/// Two opposite corners of a domain, and as many other points of it, half of them corners, as there are to be.
pub(crate) fn random_points(domain: &Domain, count: usize, seed: u64) -> Vec<Vec<f64>> {
    let mut random = Rng::with_seed(seed);
    let mut points = vec![domain.lo().to_vec(), domain.hi().to_vec()];
    for index in 2..count {
        let corner = index.is_multiple_of(2);
        let coordinate = |(&lo, &hi): (&f64, &f64)| match corner {
            true if random.bool() => lo,
            true => hi,
            false => (lo + random.f64() * (hi - lo)).clamp(lo, hi),
        };
        points.push(domain.lo().iter().zip(domain.hi()).map(coordinate).collect());
    }
    points
}

struct Search<'a> {
    networks: [&'a Network; 2],
    evaluators: [Evaluator<f64>; 2],
    domain: &'a Domain,
    /// For each element of each output, what rounding can make of a difference.
    noise: Vec<Vec<f64>>,
    /// For each output, the points with the largest differences.
    best: Vec<Vec<Found>>,
    observed: Vec<Observed>,
}

struct Found {
    element: usize,
    values: [f64; 2],
    point: Vec<f64>,
}

impl Found {
    fn difference(&self) -> f64 {
        self.values[0] - self.values[1]
    }

    fn size(&self) -> f64 {
        self.difference().abs()
    }
}

impl<'a> Search<'a> {
    fn new(networks: [&'a Network; 2], domain: &'a Domain) -> Result<Self, DomainError> {
        let mut noise: Vec<Vec<f64>> = Vec::new();
        for network in networks {
            let mut checker = Checker::new(network, domain)?;
            while checker.next_layer().is_some() {}
            let errors = evaluation_errors(network, checker.finish().ranges());
            for (output, &value) in network.outputs().iter().enumerate() {
                let errors = &errors[value.index()];
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
        let observed = noise.iter().map(|_| Observed { size: 0.0, furthest: None }).collect();
        Ok(Self { networks, evaluators, domain, noise, best, observed })
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
                    self.note(output, Found { element, values, point: point.clone() });
                }
            }
        }
    }

    fn note(&mut self, output: usize, found: Found) {
        // What is left after rounding: less than that is nothing.
        let certain = (found.size().next_down() - self.noise[output][found.element]).next_down();
        let furthest = &mut self.observed[output].furthest;
        if certain > furthest.as_ref().map_or(0.0, |furthest| furthest.distance) {
            let Found { element, values, ref point } = found;
            *furthest = Some(Apart { element, distance: certain, values, point: point.clone() });
        }
        let best = &mut self.best[output];
        let place = best.partition_point(|other| other.size() >= found.size());
        if place < CLIMBERS && found.size() > 0.0 {
            best.insert(place, found);
            best.truncate(CLIMBERS);
        }
    }

    /// From each of the best points as far as the gradient of the difference leads, or, every other time, half the way.
    fn climb(&mut self, step: usize) {
        let mut next = Vec::new();
        for output in 0..self.noise.len() {
            let found: Vec<&Found> = self.best[output].iter().collect();
            let [first, second] = [0, 1].map(|index| self.gradients(index, output, &found));
            let width = self.domain.len();
            for (found, slopes) in found.iter().zip(first.chunks(width).zip(second.chunks(width))) {
                let mut point = found.point.clone();
                for (index, x) in point.iter_mut().enumerate() {
                    let slope = found.difference().signum() * (slopes.0[index] - slopes.1[index]);
                    let (lo, hi) = (self.domain.lo()[index], self.domain.hi()[index]);
                    let end = if slope > 0.0 { hi } else { lo };
                    if slope != 0.0 {
                        *x = if step.is_multiple_of(2) { end } else { (*x / 2.0 + end / 2.0).clamp(lo, hi) };
                    }
                }
                next.push(point);
            }
        }
        if !next.is_empty() {
            self.look_at(&next);
        }
    }

    /// The gradients of one of the networks, at points, of the elements of an output that differ most there.
    fn gradients(&self, index: usize, output: usize, found: &[&Found]) -> Vec<f64> {
        let (network, evaluator) = (self.networks[index], &self.evaluators[index]);
        let points: Vec<f64> = found.iter().flat_map(|found| found.point.iter().copied()).collect();
        let elements: Vec<usize> = found.iter().map(|found| found.element).collect();
        let mut workspace = evaluator.workspace();
        gradients(network, network.outputs()[output], evaluator.forward(&mut workspace, &points), &elements)
    }
}
