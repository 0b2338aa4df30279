//! Which units of two networks look alike: those whose pre-activations are proportional at some points.
//!
//! `relu(c g) = c relu(g)` for `c > 0`, so a unit can stand for another one if its pre-activation is a multiple of that
//! one's. All pre-activations of a network at a few hundred points are the rows of a matrix. Divided by their lengths,
//! rows that are proportional have a product of 1 or -1, so the matrix product of two networks' rows shows which units
//! belong together. What is found this way is a guess, and nobody has to believe it.
//!
//! SAT sweeping does so with circuits: random simulation finds gates that may be equivalent, and a proof decides
//! (A. Mishchenko et al., *FRAIGs: A Unifying Representation for Logic Synthesis and Verification*, 2005). The product
//! of two rows of length 1 is their cosine similarity.

use leo_check::Interval;
use leo_network::op::Op;
use leo_network::{Activation, Array, Domain, Evaluator, LayerId, Network, UnitId, ValueId, add_product_transposed};

use crate::compare::falsify::random_points;

/// How many points are looked at, besides samples.
const RANDOM_POINTS: usize = 192;

/// How many samples are looked at.
const SAMPLE_POINTS: usize = 64;

/// How many numbers all fingerprints of a network may take: large networks are looked at at fewer points.
const FINGERPRINT_NUMBERS: usize = 1 << 25;

/// At how many points a network is looked at, however large it is.
const FEWEST_POINTS: usize = 16;

/// How many rows go through one product.
const BLOCK_ROWS: usize = 128;

/// How many units that look alike are looked at closely.
const CANDIDATES: usize = 8;

/// How far a multiple may be off what it is taken for, relative to how much that varies.
const CLOSENESS: f64 = 1e-4;

/// How many times closer a factor must come to be better than a rounder one.
const TIE_FACTOR: f64 = 16.0;

/// What rounding may make of a pre-activation, relative to the largest one seen.
const ROUNDING_ERROR: f64 = 1e-14;

/// Points to compare two networks at, row by row.
pub(crate) fn points(networks: [&Network; 2], domain: &Domain, samples: Option<&Array>, seed: u64) -> Vec<f64> {
    let widest = networks.map(|network| network.values().map(|value| network.shape(value).elements()).sum::<usize>());
    let count =
        (FINGERPRINT_NUMBERS / widest[0].max(widest[1]).max(1)).clamp(FEWEST_POINTS, RANDOM_POINTS + SAMPLE_POINTS);
    let mut points = random_points(domain, count.min(RANDOM_POINTS), seed);
    if let Some(samples) = samples {
        let mut numbers = samples.iter();
        let mut next = || Some(numbers.by_ref().take(domain.len()).collect::<Vec<f64>>());
        let whole = std::iter::from_fn(&mut next).take_while(|sample| sample.len() == domain.len());
        points.extend(whole.take(count / 4));
    }
    let mut points = points.concat();
    domain.clamp(&mut points);
    points
}

/// The values of a network at some points.
pub(crate) struct Fingerprints {
    points: usize,
    layers: Vec<LayerSamples>,
    sums: Vec<(ValueId, Vec<f64>)>,
}

/// The pre-activations of a layer's units.
struct LayerSamples {
    activation: Activation,
    /// One a unit.
    rows: Vec<f64>,
    /// The rows with length 1; a row of zeros stays one.
    directions: Vec<f64>,
}

/// What a unit looks like a multiple of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Likeness {
    pub(crate) place: UnitId,
    /// What the pre-activation there is to be multiplied by.
    pub(crate) factor: f64,
    /// How far that is off at the most, at the points.
    pub(crate) error: f64,
    /// Whether that is little.
    pub(crate) is_close: bool,
}

impl Fingerprints {
    /// At rows of points.
    pub(crate) fn new(network: &Network, points: &[f64]) -> Self {
        let evaluator = Evaluator::<f64>::new(network);
        let mut workspace = evaluator.workspace();
        let values = evaluator.forward(&mut workspace, points);
        let points = points.len() / network.input().elements();
        let layer = |layer: LayerId| {
            let columns = values.get(network.pre_activation(layer));
            let units = columns.len() / points;
            let numbers = (0..units).flat_map(|unit| (0..points).map(move |point| columns[point * units + unit]));
            let rows: Vec<f64> = numbers.collect();
            let directions = rows.chunks_exact(points).flat_map(direction).collect();
            LayerSamples { activation: network.activation(layer).clone(), rows, directions }
        };
        let is_sum =
            |value: &ValueId| value.node().is_some_and(|node| matches!(network.nodes()[node].op(), Op::Sum(_)));
        let sums = network.values().filter(is_sum).map(|value| (value, values.get(value).to_vec()));
        Self { points, layers: network.layers().map(layer).collect(), sums: sums.collect() }
    }

    /// What the units of a layer make of their pre-activations.
    pub(crate) fn activation(&self, layer: LayerId) -> &Activation {
        &self.layers[layer.index()].activation
    }

    /// How many units each layer has.
    pub(crate) fn widths(&self) -> Vec<usize> {
        self.layers.iter().map(|layer| layer.rows.len() / self.points).collect()
    }

    fn row(&self, place: UnitId) -> &[f64] {
        &self.layers[place.layer.index()].rows[place.unit * self.points..][..self.points]
    }

    /// The least and the largest pre-activation of a unit that is seen.
    pub(crate) fn range(&self, place: UnitId) -> Interval {
        let (lower, upper) = extremes(self.row(place));
        Interval { lower, upper }
    }

    /// For each unit of each layer, the unit of another network, wherever it is, that it looks most like a positive
    /// multiple of.
    pub(crate) fn likenesses(&self, other: &Self) -> Vec<Vec<Option<Likeness>>> {
        let every: Vec<usize> = (0..other.layers.len()).collect();
        let best = |found: Vec<Likeness>| found.into_iter().find(|like| like.factor > 0.0);
        let of_layer = |layer: usize| self.of_layer(layer, other, &every, false).into_iter().map(best).collect();
        (0..self.layers.len()).map(of_layer).collect()
    }

    /// For each unit of a layer, other units of it that it is close to being a multiple of, whatever the sign.
    pub(crate) fn duplicates(&self, layer: usize) -> Vec<Vec<Likeness>> {
        let others = |(unit, found): (usize, Vec<Likeness>)| {
            found.into_iter().filter(|like| like.is_close && like.place.unit != unit).collect()
        };
        self.of_layer(layer, self, &[layer], true).into_iter().enumerate().map(others).collect()
    }

    /// For each unit of a layer, what it looks like among layers of another network, the closest first.
    fn of_layer(&self, layer: usize, other: &Self, layers: &[usize], signed: bool) -> Vec<Vec<Likeness>> {
        let units = self.layers[layer].rows.len() / self.points;
        let places: Vec<UnitId> = (0..units).map(|unit| UnitId::new(layer, unit)).collect();
        let of_block = |block: &[UnitId]| {
            let found = self.candidates(block, other, layers, signed);
            block.iter().zip(found).map(|(&place, found)| self.closest(place, other, &found)).collect::<Vec<_>>()
        };
        places.chunks(BLOCK_ROWS).flat_map(of_block).collect()
    }

    /// For some units of one layer, the units in layers of another network that look most like multiples of them, by
    /// one product.
    fn candidates(&self, block: &[UnitId], other: &Self, layers: &[usize], signed: bool) -> Vec<Vec<UnitId>> {
        let (Some(first), points) = (block.first(), self.points) else { return Vec::new() };
        let rows = &self.layers[first.layer.index()].directions[first.unit * points..][..block.len() * points];
        let mut found: Vec<Vec<(f64, UnitId)>> = vec![Vec::new(); block.len()];
        for &layer in layers {
            for (skipped, columns) in other.layers[layer].directions.chunks(BLOCK_ROWS * points).enumerate() {
                let units = columns.len() / points;
                let mut products = vec![0.0; block.len() * units];
                add_product_transposed(&mut products, rows, columns, block.len(), points, units);
                for (found, products) in found.iter_mut().zip(products.chunks_exact(units)) {
                    for (unit, &product) in products.iter().enumerate() {
                        let score = if signed { product.abs() } else { product };
                        if score > 0.0 && (found.len() < CANDIDATES || score > found[CANDIDATES - 1].0) {
                            let place = found.partition_point(|(other, _)| *other >= score);
                            found.insert(place, (score, UnitId::new(layer, skipped * BLOCK_ROWS + unit)));
                            found.truncate(CANDIDATES);
                        }
                    }
                }
            }
        }
        let places = |found: Vec<(f64, UnitId)>| found.into_iter().map(|(_, place)| place).collect();
        found.into_iter().map(places).collect()
    }

    /// These units of another network as likenesses, the closest first; among those that are as close, first what is
    /// the same in the same place.
    fn closest(&self, place: UnitId, other: &Self, candidates: &[UnitId]) -> Vec<Likeness> {
        let same_place =
            other.layers.get(place.layer.index()).filter(|layer| place.unit * self.points < layer.rows.len());
        let candidates = candidates.iter().copied().chain(same_place.map(|_| place));
        let mut found: Vec<Likeness> =
            candidates.filter_map(|candidate| self.likeness(place, other, candidate)).collect();
        let size = self.row(place).iter().fold(0.0, |size: f64, number| size.max(number.abs()));
        let least = found.iter().fold(f64::INFINITY, |least, like| least.min(like.error));
        let is_among_closest = |like: &Likeness| like.error <= TIE_FACTOR * least + ROUNDING_ERROR * size;
        found.sort_by(|a, b| {
            let worth = |like: &Likeness| (is_among_closest(like), like.factor == 1.0, like.place == place);
            worth(b).cmp(&worth(a)).then_with(|| a.error.total_cmp(&b.error))
        });
        found
    }

    /// What one unit is in terms of another.
    pub(crate) fn likeness(&self, place: UnitId, other: &Self, candidate: UnitId) -> Option<Likeness> {
        let of = self.activation(place.layer);
        if of != other.activation(candidate.layer) {
            return None;
        }
        let (mine, theirs) = (self.row(place), other.row(candidate));
        let product: f64 = mine.iter().zip(theirs).map(|(a, b)| a * b).sum();
        let size: f64 = theirs.iter().map(|b| b * b).sum();
        let ratio = product / size;
        let error = |factor: f64| {
            let errors = mine.iter().zip(theirs).map(|(a, b)| (a - factor * b).abs());
            errors.fold(0.0, f64::max)
        };
        // Round numbers first: where they are right, they are exactly right, and what is off by as much either way is
        // better off by plain numbers.
        let factors = [ratio.signum(), f64::from(ratio as f32), ratio].into_iter();
        let factors = factors.filter(|factor| *factor == 1.0 || of.is_homogeneous());
        let factors =
            factors.filter(|factor| factor.is_finite() && *factor != 0.0).map(|factor| (factor, error(factor)));
        let (factor, error) = factors.reduce(|best, next| if TIE_FACTOR * next.1 < best.1 { next } else { best })?;
        let (least, most) = extremes(mine);
        let variation = if most > least { most - least } else { most.abs() };
        Some(Likeness { place: candidate, factor, error, is_close: error <= CLOSENESS * variation })
    }

    /// Sums of the first network that are the same in the second, as far as can be seen.
    pub(crate) fn shared_sums(&self, other: &Self) -> Vec<(ValueId, ValueId)> {
        let mut shared: Vec<(ValueId, ValueId)> = Vec::new();
        for (value, numbers) in &self.sums {
            let size = numbers.iter().fold(0.0, |size: f64, number| size.max(number.abs()));
            let alike = |(_, theirs): &&(ValueId, Vec<f64>)| {
                let mut pairs = numbers.iter().zip(theirs);
                theirs.len() == numbers.len() && pairs.all(|(a, b)| (a - b).abs() <= CLOSENESS * size)
            };
            let free = other.sums.iter().filter(|(theirs, _)| shared.iter().all(|(_, taken)| taken != theirs));
            shared.extend(free.into_iter().find(alike).map(|(theirs, _)| (*value, *theirs)));
        }
        shared
    }
}

fn direction(row: &[f64]) -> Vec<f64> {
    let length = row.iter().map(|number| number * number).sum::<f64>().sqrt();
    // What overflows is like nothing.
    let scale = if length > 0.0 && length.is_finite() { 1.0 / length } else { 0.0 };
    row.iter().map(|number| if scale == 0.0 { 0.0 } else { number * scale }).collect()
}

fn extremes(numbers: &[f64]) -> (f64, f64) {
    numbers.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), &x| (least.min(x), most.max(x)))
}
