//! The analysis of networks with convolutions: channel by channel, by intervals, at points, and by linear bounds of
//! what these leave open ([`crate::patches`]).
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

use leo_check::{ChannelBounds, Checker, Precision, Proof, Range, Side, Status, evaluation_errors};
use leo_network::{Domain, DomainError, Evaluator, LayerId, Network, Step, ValueMap, Values};
use rayon::prelude::*;

use crate::budget::{Budget, Limits};
use crate::channel_points::{Ascents, MissingSign, Points};
use crate::patches::PatchSearch;
use crate::technique::Technique;
use crate::{Analysis, AnalysisOptions, Engine, Layer, Positions, Unit};

/// Of a channel that was seen nowhere.
const NOWHERE: [(f64, usize); 2] = [(f64::INFINITY, 0), (f64::NEG_INFINITY, 0)];

pub(crate) fn run<'n>(
    network: &'n Network,
    domain: &Domain,
    options: &AnalysisOptions<'_>,
) -> Result<Analysis<'n>, DomainError> {
    let limits = Limits::new(options.observer, options.time_limit, options.memory_limit);
    let budget = limits.whole();
    if let Some(samples) = options.samples {
        Domain::count_samples(samples, network.input())?;
    }
    let mut analysis = ChannelAnalysis {
        network,
        options,
        budget: &budget,
        checker: Checker::new(network, domain)?,
        seen: Seen::new(network),
        by_intervals: Vec::new(),
        times: Vec::new(),
        steps: BTreeMap::new(),
    };
    analysis.intervals();
    let looks = !matches!(options.engine, Engine::Tighten | Engine::Milp) && network.layers().len() > 0;
    if looks && !budget.is_exhausted() {
        analysis.look();
    }
    let is_open = looks && !budget.is_exhausted();
    let channel_bounds = if is_open { analysis.linear_bounds() } else { Vec::new() };
    let ChannelAnalysis { checker, seen, by_intervals, times, steps, .. } = analysis;
    let facts = checker.finish();
    let layer = |(layer, time): (LayerId, Duration)| {
        let range = facts.range(network.pre_activation(layer));
        let by_intervals = &by_intervals[layer.index()];
        let unit = |channel: usize| seen.unit(layer, channel, range, by_intervals[channel]);
        Layer { id: layer, units: (0..network.width(layer)).map(unit).collect(), time }
    };
    let layers: Vec<Layer> = network.layers().zip(times).map(layer).collect();
    let is_open = layers.iter().flat_map(|layer| &layer.units).any(|unit| unit.status == Status::Undecided);
    let outputs = network.outputs().iter().filter(|_| options.outputs);
    let outputs = outputs.map(|&value| facts.range(value).clone()).collect();
    let stopped = limits.stopped().filter(|_| is_open);
    Ok(Analysis { layers, outputs, stopped, steps, facts, proof: Proof::default(), channel_bounds })
}

/// An analysis on its way.
struct ChannelAnalysis<'a, 'n> {
    network: &'n Network,
    options: &'a AnalysisOptions<'a>,
    budget: &'a Budget<'a>,
    checker: Checker<'n>,
    seen: Seen<'n>,
    /// For each layer and channel, whether intervals decide it: then nothing else is to be said to have decided it.
    by_intervals: Vec<Vec<bool>>,
    /// How long each layer took.
    times: Vec<Duration>,
    steps: BTreeMap<Technique, Duration>,
}

impl ChannelAnalysis<'_, '_> {
    fn begin(&self, technique: Technique, layer: usize, left: usize) {
        let Some(observer) = self.options.observer else { return };
        let decided = self.by_intervals.iter().take(layer).flatten().filter(|decided| **decided).count();
        let (technique, layers) = (technique.in_words, self.network.layers().len());
        observer.begin(Step::Search { technique, layer, layers, decided, left }, left.max(1));
    }

    fn intervals(&mut self) {
        loop {
            self.begin(Technique::INTERVAL, self.times.len() + 1, 0);
            let start = Instant::now();
            if self.checker.next_layer().is_none() {
                break;
            }
            self.times.push(start.elapsed());
        }
        self.checker.go_to_end();
        self.by_intervals = self.seen.decided(&self.checker);
        self.steps.insert(Technique::INTERVAL, self.times.iter().sum());
    }

    /// Looks for points that show channels on both sides.
    fn look(&mut self) {
        let layers = self.network.layers().len();
        self.begin(Technique::WITNESS, layers, 0);
        let start = Instant::now();
        self.seen.errors = evaluation_errors(self.network, self.checker.ranges(), Precision::DOUBLE);
        let points = Points::new(self.network, self.checker.domain(), self.options);
        points.look(self.network, &mut self.seen, self.budget);
        let missing = |seen: &Seen<'_>| seen.missing(&self.by_intervals);
        let open = missing(&self.seen).len();
        if open > 0 {
            self.begin(Technique::WITNESS, layers, open);
            let advance = |parts: usize| self.options.observer.into_iter().for_each(|observer| observer.advance(parts));
            points.look_closely(&mut self.seen, missing, self.budget);
            Ascents::new(self.network, &points).run(&mut self.seen, missing, self.budget, &advance);
        }
        self.steps.insert(Technique::WITNESS, start.elapsed());
    }

    /// Proves channels to be off, or on, that intervals leave open, and returns what is to be told of them.
    fn linear_bounds(&mut self) -> Vec<ChannelBounds> {
        let mut search = PatchSearch::new(self.network);
        let start = Instant::now();
        for layer in self.network.layers() {
            let begun = Instant::now();
            if search.has_found() {
                self.checker.next_layer();
            }
            let candidates = search.candidates(layer, &self.checker, &self.seen);
            if candidates.is_empty() || self.budget.is_exhausted() {
                continue;
            }
            self.begin(Technique::LINEAR, layer.index() + 1, candidates.len());
            let advance = |parts: usize| self.options.observer.into_iter().for_each(|observer| observer.advance(parts));
            search.try_layer(layer, &candidates, &mut self.checker, &mut self.seen, self.budget, &advance);
            self.times[layer.index()] += begun.elapsed();
        }
        self.steps.insert(Technique::LINEAR, start.elapsed());
        search.found
    }
}

/// For each layer and channel, whether it is below its first knot, and above its last one, at some position.
pub(crate) type Sides = Vec<Vec<[bool; 2]>>;

/// For each layer and channel, the least and the greatest pre-activation, each with something that tells where.
pub(crate) type BestSeen = Vec<Vec<[(f64, usize); 2]>>;

/// On which sides of their knots channels were seen.
pub(crate) struct Seen<'n> {
    network: &'n Network,
    evaluator: Evaluator<f64>,
    sides: Sides,
    /// Of points that have a number, those where channels were least and greatest.
    best: BestSeen,
    /// How far each element of a value that is computed in double precision can be off.
    errors: ValueMap<Vec<f64>>,
}

impl<'n> Seen<'n> {
    fn new(network: &'n Network) -> Self {
        let sides = network.hidden().into_iter().map(|width| vec![[false; 2]; width]).collect();
        let best = network.hidden().into_iter().map(|width| vec![NOWHERE; width]).collect();
        Self { network, evaluator: Evaluator::new(network), sides, best, errors: ValueMap::default() }
    }

    pub(crate) fn evaluator(&self) -> &Evaluator<f64> {
        &self.evaluator
    }

    /// How many signs of channels were seen.
    pub(crate) fn signs(&self) -> usize {
        self.sides.iter().flatten().flatten().filter(|seen| **seen).count()
    }

    /// The number of the point where a channel was greatest, or least.
    pub(crate) fn best(&self, layer: LayerId, channel: usize, is_greatest: bool) -> usize {
        self.best[layer.index()][channel][usize::from(is_greatest)].1
    }

    /// On which sides a channel was seen: off, and on.
    pub(crate) fn sides(&self, layer: LayerId, channel: usize) -> [bool; 2] {
        self.sides[layer.index()][channel]
    }

    /// Whether a channel may be on one side everywhere, as bounds from this side would prove.
    pub(crate) fn may_be(&self, layer: LayerId, channel: usize, side: Side) -> bool {
        let [off, on] = self.sides(layer, channel);
        if side == Side::Upper { !on } else { !off }
    }

    /// Whether a channel with such a range is decided.
    pub(crate) fn is_decided(&self, layer: LayerId, lower: f64, upper: f64) -> bool {
        Status::of_range(self.network.activation(layer), &lower, &upper).is_some()
    }

    /// The channels that are seen on one side only, or on none, and those sides that they lack.
    fn missing(&self, decided: &[Vec<bool>]) -> Vec<MissingSign> {
        let mut all = Vec::new();
        for layer in self.network.layers() {
            for (channel, _) in decided[layer.index()].iter().enumerate().filter(|(_, decided)| !**decided) {
                let sides = self.sides(layer, channel);
                all.extend(
                    [false, true]
                        .into_iter()
                        .filter(|side| !sides[usize::from(*side)])
                        .map(|side| (layer, channel, side)),
                );
            }
        }
        all
    }

    /// For each layer and channel, whether its range decides it.
    fn decided(&self, checker: &Checker<'_>) -> Vec<Vec<bool>> {
        let of_layer = |layer: LayerId| {
            let of_channel = |channel: usize| {
                let (lower, upper) = self.range(layer, channel, checker.range(layer));
                self.is_decided(layer, lower, upper)
            };
            (0..self.network.width(layer)).map(of_channel).collect()
        };
        self.network.layers().map(of_layer).collect()
    }

    /// Looks at points, which may have numbers, on all threads.
    pub(crate) fn look_at(&mut self, points: &[Vec<f64>], numbers: Option<&[usize]>) {
        let found = points.par_iter().with_max_len(1).map_init(
            || self.evaluator.workspace(),
            |workspace, point| self.at(self.evaluator.forward(workspace, point)),
        );
        for (index, (sides, extremes)) in found.collect::<Vec<_>>().into_iter().enumerate() {
            self.note(&sides);
            let Some(&number) = numbers.and_then(|numbers| numbers.get(index)) else { continue };
            for (known, [(least, _), (most, _)]) in self.best.iter_mut().flatten().zip(extremes.into_iter().flatten()) {
                if least < known[0].0 {
                    known[0] = (least, number);
                }
                if most > known[1].0 {
                    known[1] = (most, number);
                }
            }
        }
    }

    /// Looks at a point by intervals, which are narrow there: where numbers grow from layer to layer, what an
    /// evaluation may be off by anywhere on the domain says little of a single point.
    pub(crate) fn look_closely(&mut self, point: &[f64]) {
        let Ok(mut checker) =
            Domain::new(point.to_vec(), point.to_vec()).and_then(|point| Checker::new(self.network, &point))
        else {
            return;
        };
        while let Some(layer) = checker.next_layer() {
            let range = checker.range(layer);
            let knots = self.network.activation(layer).knots();
            let (Some(&first), Some(&last)) = (knots.first(), knots.last()) else { continue };
            let channels = self.network.channels(self.network.pre_activation(layer));
            let sides = &mut self.sides[layer.index()];
            for (element, (&lower, &upper)) in range.lower.iter().zip(&range.upper).enumerate() {
                let side = &mut sides[channels.of(element)];
                *side = [side[0] | (upper < first), side[1] | (lower > last)];
            }
        }
    }

    /// Notes what a point showed.
    pub(crate) fn note(&mut self, sides: &Sides) {
        for (known, found) in self.sides.iter_mut().flatten().zip(sides.iter().flatten()) {
            *known = [known[0] | found[0], known[1] | found[1]];
        }
    }

    /// On which sides channels are where values are these, and at which elements they are least and greatest. A number
    /// counts if it is further from a knot than it can be off.
    pub(crate) fn at(&self, values: Values<'_, f64>) -> (Sides, BestSeen) {
        let of_layer = |layer: LayerId| {
            let value = self.network.pre_activation(layer);
            let knots = self.network.activation(layer).knots();
            let (channels, errors) = (self.network.channels(value), &self.errors[value]);
            let mut sides = vec![[false; 2]; channels.count()];
            let mut extremes = vec![NOWHERE; channels.count()];
            let (Some(&first), Some(&last)) = (knots.first(), knots.last()) else { return (sides, extremes) };
            for (element, &number) in values.get(value).iter().enumerate() {
                let channel = channels.of(element);
                let [least, most] = &mut extremes[channel];
                if number < least.0 {
                    *least = (number, element);
                }
                if number > most.0 {
                    *most = (number, element);
                }
                let side = &mut sides[channel];
                side[0] |= (number + errors[element]).next_up() < first;
                side[1] |= (number - errors[element]).next_down() > last;
            }
            (sides, extremes)
        };
        self.network.layers().map(of_layer).unzip()
    }

    /// Where the positions of a channel lie, all together.
    pub(crate) fn range(&self, layer: LayerId, channel: usize, range: &Range) -> (f64, f64) {
        let channels = self.network.channels(self.network.pre_activation(layer));
        channels.elements(channel).fold((f64::INFINITY, f64::NEG_INFINITY), |(lower, upper), at| {
            (lower.min(range.lower[at]), upper.max(range.upper[at]))
        })
    }

    /// What is known of a channel, by where its positions lie, whether intervals alone say so, and what was seen of
    /// them.
    fn unit(&self, layer: LayerId, channel: usize, range: &Range, by_intervals: bool) -> Unit {
        let (lower, upper) = self.range(layer, channel, range);
        let stable = Status::of_range(self.network.activation(layer), &lower, &upper);
        let proved = if by_intervals { Technique::INTERVAL } else { Technique::LINEAR };
        let (status, by) = match stable {
            Some(status) => (status, Some(proved)),
            None if self.sides(layer, channel) == [true; 2] => (Status::Unstable, Some(Technique::WITNESS)),
            None => (Status::Undecided, None),
        };
        let positions = Some(self.positions(layer, channel, range));
        Unit { status, by, trusted: false, lower, upper, witnesses: None, positions }
    }

    /// How many positions of a channel are stable.
    fn positions(&self, layer: LayerId, channel: usize, range: &Range) -> Positions {
        let (value, of) = (self.network.pre_activation(layer), self.network.activation(layer));
        let mut found = Positions::default();
        for at in self.network.channels(value).elements(channel) {
            let status = Status::of_range(of, &range.lower[at], &range.upper[at]);
            found.all += 1;
            found.off += usize::from(status == Some(Status::OFF));
            found.on += usize::from(status.is_some_and(|status| status != Status::OFF));
        }
        found
    }
}
