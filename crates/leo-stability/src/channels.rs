//! The analysis of networks with convolutions: channel by channel, by intervals and at points.
//!
//! A unit is a channel there, with all its positions. It is always off, or always on, if it is so at every position;
//! one position where it is on, and one where it is off, show that it is neither. Intervals of all positions take two
//! convolutions a layer, and no more memory than the values themselves. On networks that are trained with weight decay
//! that is where most of what can be found is found: filters whose weights have decayed to nothing, and whatever hangs
//! on them alone.
//!
//! Points are samples, corners and random points, evaluated in double precision. A sign counts only where it is further
//! from 0 than rounding can take it, as in [`mod@crate::witness`].

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fastrand::Rng;
use leo_check::{Checker, Precision, Proof, Range, Status, evaluation_errors};
use leo_network::{Array, Domain, DomainError, Evaluator, LayerId, Network, Step};
use rayon::prelude::*;

use crate::budget::Limits;
use crate::technique::Technique;
use crate::{Analysis, AnalysisOptions, Engine, Layer, Unit};

/// How many points are looked at besides samples: at the least, and if the network is small enough for
/// [`POINT_PRODUCTS`].
const POINTS: [usize; 2] = [8, 64];

/// How many products it may take to look at more than the fewest points.
const POINT_PRODUCTS: usize = 1 << 28;

/// How many samples are looked at, at the most.
const MOST_SAMPLES: usize = 1024;

pub(crate) fn run<'n>(
    network: &'n Network,
    domain: &Domain,
    options: &AnalysisOptions<'_>,
) -> Result<Analysis<'n>, DomainError> {
    let limits = Limits::new(options.observer, options.time_limit, options.memory_limit);
    let budget = limits.whole();
    let mut checker = Checker::new(network, domain)?;
    if let Some(samples) = options.samples {
        Domain::count_samples(samples, network.input())?;
    }
    let layers = network.layers().len();
    let begin = |technique: Technique, layer: usize| {
        if let Some(observer) = options.observer {
            let technique = technique.in_words;
            observer.begin(Step::Search { technique, layer, layers, decided: 0, left: 0 }, 1);
        }
    };
    let mut times: Vec<Duration> = Vec::new();
    loop {
        begin(Technique::INTERVAL, times.len() + 1);
        let start = Instant::now();
        if checker.next_layer().is_none() {
            break;
        }
        times.push(start.elapsed());
    }
    let facts = checker.finish();
    let mut steps = BTreeMap::from([(Technique::INTERVAL, times.iter().sum())]);
    let mut seen = Seen::new(network);
    let looks = !matches!(options.engine, Engine::Tighten | Engine::Milp);
    if looks && layers > 0 && !budget.is_exhausted() {
        begin(Technique::WITNESS, layers);
        let start = Instant::now();
        let errors = evaluation_errors(network, facts.ranges(), Precision::DOUBLE);
        let points = points(network, facts.domain(), options);
        seen.look_at(network, &points, |layer| &errors[network.pre_activation(layer)]);
        steps.insert(Technique::WITNESS, start.elapsed());
    }
    let layer = |(layer, time): (LayerId, Duration)| {
        let range = facts.range(network.pre_activation(layer));
        let units = (0..network.width(layer)).map(|channel| seen.unit(network, layer, channel, range)).collect();
        Layer { id: layer, units, time }
    };
    let layers: Vec<Layer> = network.layers().zip(times).map(layer).collect();
    let is_open = layers.iter().flat_map(|layer| &layer.units).any(|unit| unit.status == Status::Undecided);
    let outputs = network.outputs().iter().filter(|_| options.outputs);
    let outputs = outputs.map(|&value| facts.range(value).clone()).collect();
    let stopped = limits.stopped().filter(|_| is_open);
    Ok(Analysis { layers, outputs, stopped, steps, facts, proof: Proof::default() })
}

/// Points to look at: samples, two opposite corners, other corners, and points in between.
fn points(network: &Network, domain: &Domain, options: &AnalysisOptions<'_>) -> Vec<Vec<f64>> {
    let mut random = Rng::with_seed(options.seed);
    let [fewest, most] = POINTS;
    let count = (POINT_PRODUCTS / network.multiply_adds().max(1)).clamp(fewest, most);
    let mut points: Vec<Vec<f64>> = [0.0, 1.0].map(|share| domain.at(|| share)).into();
    points.extend((2..count).map(|index| match index.is_multiple_of(2) {
        true => domain.at(|| f64::from(random.bool())),
        false => domain.at(|| random.f64()),
    }));
    let mut numbers = options.samples.into_iter().flat_map(Array::iter);
    for _ in 0..MOST_SAMPLES {
        let mut sample: Vec<f64> = numbers.by_ref().take(domain.len()).collect();
        if sample.len() < domain.len() {
            break;
        }
        domain.clamp(&mut sample);
        points.push(sample);
    }
    points
}

/// On which sides of their knots channels were seen.
struct Seen {
    /// For each layer and channel: below its first knot, and above its last one, at some position.
    sides: Vec<Vec<[bool; 2]>>,
}

impl Seen {
    fn new(network: &Network) -> Self {
        Self { sides: network.hidden().into_iter().map(|width| vec![[false; 2]; width]).collect() }
    }

    /// Looks at points, on all threads. A number counts if it is further from a knot than it can be off.
    fn look_at<'e>(&mut self, network: &Network, points: &[Vec<f64>], errors: impl Fn(LayerId) -> &'e Vec<f64> + Sync) {
        let evaluator = Evaluator::<f64>::new(network);
        let found = points.par_iter().map_init(
            || evaluator.workspace(),
            |workspace, point| {
                let values = evaluator.forward(workspace, point);
                let sides = |layer: LayerId| {
                    let (value, knots) = (network.pre_activation(layer), network.activation(layer).knots());
                    let (channels, errors) = (network.channels(value), errors(layer));
                    let mut sides = vec![[false; 2]; channels.count()];
                    let ends = knots.first().zip(knots.last());
                    for (element, &number) in values.get(value).iter().enumerate().filter(|_| ends.is_some()) {
                        let (&first, &last) = ends.unwrap_or((&0.0, &0.0));
                        let side = &mut sides[channels.of(element)];
                        side[0] |= (number + errors[element]).next_up() < first;
                        side[1] |= (number - errors[element]).next_down() > last;
                    }
                    sides
                };
                network.layers().map(sides).collect::<Vec<_>>()
            },
        );
        for found in found.collect::<Vec<_>>() {
            for (known, found) in self.sides.iter_mut().flatten().zip(found.iter().flatten()) {
                *known = [known[0] | found[0], known[1] | found[1]];
            }
        }
    }

    /// What is known of a channel, by where its positions lie and what was seen of them.
    fn unit(&self, network: &Network, layer: LayerId, channel: usize, range: &Range) -> Unit {
        let channels = network.channels(network.pre_activation(layer));
        let (lower, upper) =
            channels.elements(channel).fold((f64::INFINITY, f64::NEG_INFINITY), |(lower, upper), at| {
                (lower.min(range.lower[at]), upper.max(range.upper[at]))
            });
        let stable = Status::of_range(network.activation(layer), &lower, &upper);
        let is_unstable = self.sides[layer.index()][channel] == [true; 2];
        let (status, by) = match stable {
            Some(status) => (status, Some(Technique::INTERVAL)),
            None if is_unstable => (Status::Unstable, Some(Technique::WITNESS)),
            None => (Status::Undecided, None),
        };
        Unit { status, by, trusted: false, lower, upper, witnesses: None }
    }
}
