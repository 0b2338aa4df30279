//! Points that show channels on and off: where to look first, and where to go from there.
//!
//! Noise that is independent from pixel to pixel tells little of a deep layer, which sees only its mean: so half of the
//! points are made of blocks, of all sizes. From the point where a channel was nearest to the sign that it lacks, a few
//! full steps along the gradient lead to corners of the domain (FGSM, Goodfellow et al. 2015; Frank and Wolfe 1956).
//! The gradient of one position lives on a window, like the coefficients of its bounds.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use fastrand::Rng;
use leo_check::touched;
use leo_network::op::{Action, Arithmetic, MaxWindows, Op, Patch};
use leo_network::{Array, Domain, LayerId, Network, ValueId, ValueMap, Values};
use rayon::prelude::*;

use crate::AnalysisOptions;
use crate::budget::Budget;
use crate::channels::{Seen, Sides};

/// How many points are looked at besides samples: at the least, and if the network is small enough for
/// [`POINT_PRODUCTS`].
const POINTS: [usize; 2] = [8, 64];

/// How many products it may take to look at more than the fewest points.
const POINT_PRODUCTS: usize = 1 << 28;

/// How many times more points are looked at, as few as at the least, as long as they show something new.
const MOST_ROUNDS: usize = 2;

/// How many samples are looked at, at the most.
const MOST_SAMPLES: usize = 1024;

/// How many points are looked at again, by intervals; and how many ends of ascents.
const MOST_CLOSE: usize = 2;

/// How many steps an ascent has.
const STEPS: usize = 3;

/// How many ascents go together. (Not as many as there are threads: what comes out is not to depend on that.)
const BATCH: usize = 8;

/// How many ascents there may be, at the least and for so many products of an evaluation: the larger a network is, the
/// longer it takes in any case.
const ASCENTS: usize = 6;
const PRODUCTS: usize = 1 << 23;

/// Points by their numbers, each of which can be made again.
pub(crate) struct Points<'a> {
    domain: &'a Domain,
    extents: Vec<usize>,
    samples: Vec<Vec<f64>>,
    seed: u64,
}

impl<'a> Points<'a> {
    pub(crate) fn new(network: &Network, domain: &'a Domain, options: &AnalysisOptions<'_>) -> Self {
        let mut numbers = options.samples.into_iter().flat_map(Array::iter);
        let mut samples: Vec<Vec<f64>> = Vec::new();
        while samples.len() < MOST_SAMPLES {
            let mut sample: Vec<f64> = numbers.by_ref().take(domain.len()).collect();
            if sample.len() < domain.len() {
                break;
            }
            domain.clamp(&mut sample);
            samples.push(sample);
        }
        Self { domain, extents: network.input().extents().to_vec(), samples, seed: options.seed }
    }

    /// Samples first; then two opposite corners, other corners, points in between, and blocks of either.
    pub(crate) fn point(&self, number: usize) -> Vec<f64> {
        if let Some(sample) = self.samples.get(number) {
            return sample.clone();
        }
        let number = number - self.samples.len();
        let mut random = Rng::with_seed(self.seed.wrapping_add(number as u64));
        match number {
            0 | 1 => self.domain.at(|| number as f64),
            _ if number % 4 == 2 => self.domain.at(|| f64::from(random.bool())),
            _ if number % 4 == 3 => self.domain.at(|| random.f64()),
            _ => {
                let is_corner = number % 8 < 4;
                let mut blocks = self.blocks(&mut random, is_corner).into_iter();
                self.domain.at(|| blocks.next().unwrap_or(0.0))
            }
        }
    }

    /// Shares that are the same for all elements of a block, whose extents are powers of 2.
    fn blocks(&self, random: &mut Rng, is_corner: bool) -> Vec<f64> {
        let sizes: Vec<usize> =
            self.extents.iter().map(|&extent| 1 << random.u32(..=extent.next_power_of_two().ilog2())).collect();
        let counts: Vec<usize> = self.extents.iter().zip(&sizes).map(|(extent, size)| extent.div_ceil(*size)).collect();
        let share = |random: &mut Rng| if is_corner { f64::from(random.bool()) } else { random.f64() };
        let shares: Vec<f64> = (0..counts.iter().product()).map(|_| share(random)).collect();
        let mut places = vec![0];
        for ((&extent, size), count) in self.extents.iter().zip(sizes).zip(counts) {
            places = places.iter().flat_map(|place| (0..extent).map(move |at| place * count + at / size)).collect();
        }
        places.into_iter().map(|place| shares[place]).collect()
    }

    /// Looks at points as long as they show something.
    pub(crate) fn look(&self, network: &Network, seen: &mut Seen<'_>, budget: &Budget<'_>) {
        let [fewest, most] = POINTS;
        let count = (POINT_PRODUCTS / network.multiply_adds().max(1)).clamp(fewest, most);
        let mut end = self.samples.len() + count;
        let mut begin = 0;
        for _ in 0..=MOST_ROUNDS {
            let before = seen.signs();
            for numbers in (begin..end).collect::<Vec<usize>>().chunks(most) {
                let points: Vec<Vec<f64>> = numbers.iter().map(|&number| self.point(number)).collect();
                seen.look_at(&points, Some(numbers));
            }
            if seen.signs() == before || budget.is_exhausted() {
                break;
            }
            (begin, end) = (end, end + fewest);
        }
    }
}

impl Points<'_> {
    /// Looks again, by intervals, at the points that came nearest to showing what most channels lack.
    pub(crate) fn look_closely(
        &self,
        seen: &mut Seen<'_>,
        missing: impl Fn(&Seen<'_>) -> Vec<MissingSign>,
        budget: &Budget<'_>,
    ) {
        let mut known = Vec::new();
        while known.len() < MOST_CLOSE && !budget.is_exhausted() {
            let mut votes: BTreeMap<usize, usize> = BTreeMap::new();
            for (layer, channel, is_on) in missing(seen) {
                let number = seen.best(layer, channel, is_on);
                if !known.contains(&number) {
                    *votes.entry(number).or_default() += 1;
                }
            }
            let more = |best: (usize, usize), other: (usize, usize)| if other.1 > best.1 { other } else { best };
            let Some((number, _)) = votes.into_iter().reduce(more) else { break };
            seen.look_closely(&self.point(number));
            known.push(number);
        }
    }
}

/// A channel, and on which side it has not been seen yet: above its knots, or below.
pub(crate) type MissingSign = (LayerId, usize, bool);

/// What an ascent shows, point by point, and where it ended in doubt.
type Climbed = (Vec<Sides>, Option<Vec<f64>>);

/// Ascents from the best points that are known.
pub(crate) struct Ascents<'a, 'n> {
    pub(crate) network: &'n Network,
    pub(crate) points: &'a Points<'a>,
    pub(crate) actions: Vec<OnceLock<NodeWay<'n>>>,
}

/// How gradients go back through a node.
pub(crate) enum NodeWay<'n> {
    Map(Action<'n>),
    Joined(Vec<(usize, usize)>),
    Largest(MaxWindows),
    Plain,
}

impl<'a, 'n> Ascents<'a, 'n> {
    pub(crate) fn new(network: &'n Network, points: &'a Points<'a>) -> Self {
        Self { network, points, actions: network.nodes().iter().map(|_| OnceLock::new()).collect() }
    }

    /// Climbs for channels that lack a sign, until that has taken what it may.
    pub(crate) fn run(
        &self,
        seen: &mut Seen<'_>,
        missing: impl Fn(&Seen<'_>) -> Vec<MissingSign>,
        budget: &Budget<'_>,
        advance: &dyn Fn(usize),
    ) {
        let effort = 1 + self.network.multiply_adds() / PRODUCTS;
        let (mut left, mut closely) = (ASCENTS * effort, MOST_CLOSE * effort);
        let all = missing(seen);
        // Signs of a late layer show signs of those before it, too.
        let mut rest = all.iter().rev();
        let is_missing =
            |seen: &Seen<'_>, &(layer, channel, is_on): &MissingSign| !seen.sides(layer, channel)[usize::from(is_on)];
        while left > 0 && !budget.is_exhausted() {
            let batch = rest.by_ref().filter(|missing| is_missing(seen, missing)).take(BATCH.min(left));
            let batch: Vec<MissingSign> = batch.copied().collect();
            if batch.is_empty() {
                break;
            }
            left -= batch.len();
            let climbed = batch.par_iter().with_max_len(1).map(|&missing| self.climb(seen, missing));
            let mut doubtful = Vec::new();
            for (missing, (shown, end)) in batch.iter().zip(climbed.collect::<Vec<Climbed>>()) {
                shown.iter().for_each(|sides| seen.note(sides));
                doubtful.extend(end.map(|end| (missing, end)));
            }
            for (missing, end) in doubtful {
                if closely > 0 && is_missing(seen, missing) && !budget.is_exhausted() {
                    seen.look_closely(&end);
                    closely -= 1;
                }
            }
            advance(batch.len());
        }
    }

    /// What the points of one ascent show, and where it ended, if an evaluation leaves a doubt there.
    fn climb(&self, seen: &Seen<'_>, (layer, channel, is_on): MissingSign) -> Climbed {
        let mut shown = Vec::new();
        let (side, value) = (usize::from(is_on), self.network.pre_activation(layer));
        let knots = self.network.activation(layer).knots();
        let knot = if is_on { knots.last() } else { knots.first() };
        let mut point = self.points.point(seen.best(layer, channel, is_on));
        let mut workspace = seen.evaluator().workspace();
        for step in 0..=STEPS {
            let values = seen.evaluator().forward(&mut workspace, &point);
            let (sides, extremes) = seen.at(values);
            let (is_reached, (number, element)) =
                (sides[layer.index()][channel][side], extremes[layer.index()][channel][side]);
            shown.push(sides);
            if is_reached {
                break;
            }
            if knot.is_some_and(|knot| if is_on { number > *knot } else { number < *knot }) {
                return (shown, Some(point));
            }
            let gradient = if step == STEPS { None } else { self.gradient(values, value, element) };
            let Some(gradient) = gradient else { break };
            let mut row = vec![0.0; point.len()];
            let sign = if is_on { 1.0 } else { -1.0 };
            gradient.iter().for_each(|(input, c)| row[input] = sign * c);
            self.points.domain.maximise(&row, &mut point);
        }
        (shown, None)
    }

    fn way(&self, node: usize) -> &NodeWay<'n> {
        self.actions[node].get_or_init(|| {
            let made = &self.network.nodes()[node];
            let shape = self.network.shape(made.operands()[0]);
            match made.op() {
                Op::Activation(_) | Op::Sum(_) => NodeWay::Plain,
                Op::Concat(concat) => NodeWay::Joined(concat.sources(&self.network.operand_shapes(made))),
                Op::MaxPool(pool) => NodeWay::Largest(pool.windows(shape)),
                Op::Affine(map) => NodeWay::Map(map.action(shape)),
            }
        })
    }

    /// The gradient of an element of a value, where values are these, if it depends on the input there.
    fn gradient(&self, values: Values<'_, f64>, value: ValueId, element: usize) -> Option<Patch<f64>> {
        let network = self.network;
        let mut flows: ValueMap<Option<Patch<f64>>> = vec![None; value.index() + 1].into();
        flows[value] = Some(Patch::of_element(network.channels(value), element, 1.0));
        for index in (0..value.index()).rev() {
            let Some(mut flow) = flows[network.result_of(index)].take() else { continue };
            let made = &network.nodes()[index];
            let operand = made.operands()[0];
            let numbers = values.get(operand);
            let flow = match (self.way(index), made.op()) {
                (NodeWay::Plain, Op::Activation(of)) => {
                    for (unit, c) in flow.iter_mut() {
                        let [_, piece] = touched(of, &numbers[unit], &numbers[unit]);
                        *c *= of.pieces()[piece].slope;
                    }
                    flow
                }
                (NodeWay::Joined(sources), _) => {
                    for (index, &operand) in made.operands().iter().enumerate() {
                        let own = flow.iter().filter(|(at, _)| sources[*at].0 == index);
                        let own = own.map(|(at, c)| (sources[at].1, *c)).collect();
                        self.give(&mut flows, operand, Patch::of_elements(network.channels(operand), own));
                    }
                    continue;
                }
                (NodeWay::Largest(windows), _) => {
                    let largest = |output: usize| {
                        let all = windows.of(output).map(|input| (input, numbers[input]));
                        all.reduce(|a, b| if b.1 > a.1 { b } else { a }).map_or(0, |(input, _)| input)
                    };
                    let given = flow.iter().map(|(output, c)| (largest(output), *c)).collect();
                    Patch::of_elements(network.channels(operand), given)
                }
                (NodeWay::Map(Action::Move(moves)), _) => {
                    let given = flow.iter().map(|(output, c)| (moves.source(output), *c)).collect();
                    Patch::of_elements(network.channels(operand), given)
                }
                (NodeWay::Map(Action::Each(arithmetic, constants)), _) => {
                    for (at, c) in flow.iter_mut() {
                        match arithmetic {
                            Arithmetic::Add => {}
                            Arithmetic::Multiply => *c *= constants[at],
                            Arithmetic::Divide => *c /= constants[at],
                        }
                    }
                    flow
                }
                (NodeWay::Map(Action::Sums(sums)), _) => sums.backward_of_patch(flow).0,
                (NodeWay::Plain, _) => {
                    for &other in &made.operands()[1..] {
                        self.give(&mut flows, other, flow.clone());
                    }
                    flow
                }
            };
            self.give(&mut flows, operand, flow);
        }
        flows[ValueId::INPUT].take().filter(|patch| patch.coefficients().iter().any(|c| *c != 0.0))
    }

    fn give(&self, flows: &mut ValueMap<Option<Patch<f64>>>, value: ValueId, flow: Patch<f64>) {
        let flow = flow.with_layout(self.network.channels(value));
        flows[value] = Some(match flows[value].take() {
            Some(present) => present.add(flow, |_, _, _| ()),
            None => flow,
        });
    }
}
