//! How far any two networks can be apart: which unit is which is guessed, and what follows from that is proved.
//!
//! `leo-check` bounds the difference of two networks, given what corresponds to what, and nothing that it is given can
//! be wrong, only useless. So a guess is enough: units that look alike at some points ([`crate::compare::fingerprint`])
//! are taken for the same, whichever layers they are in. What the first network's units are expressed by follows from
//! what is proved of them: nothing if they are always off, their pre-activation if they are always on. There are a few
//! ways to guess, and either network can be the first. Every bound that comes of it holds, and the least of them is the
//! answer.
//!
//! The field calls this differential, or equivalence, verification: ReluDiff (B. Paulsen, J. Wang, C. Wang, ICSE 2020),
//! NeuroDiff (B. Paulsen, J. Wang, J. Wang, C. Wang, ASE 2020) and VeryDiff (S. Teuber, P. Kern, M. Janzen, B. Beckert,
//! *Revisiting Differential Verification*, TACAS 2025) bound the differences of units in the same places of two
//! networks that are structurally similar. Here units need not be in the same places, and the second network may have
//! fewer of them. With few inputs, [`crate::compare::input_splits`] refines what comes out by splitting the inputs.

use std::time::{Duration, Instant};

use leo_check::{Correspondence, Expression, Interval, Mismatch, beyond, deviation, touched};
use leo_network::{Activation, Domain, DomainError, LayerId, Network, Observer, UnitId};
use leo_stability::{Analysis, AnalysisOptions, StopReason, Unit, analyze};

use crate::compare::channels;
use crate::compare::fingerprint::{Fingerprints, Likeness, points};
use crate::deltas::{largest, take_less};

/// How far two networks are from each other.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// For each element of each output, how far the two networks can be apart, anywhere on the domain: proved.
    pub deviation: Vec<Vec<f64>>,
    /// Units of the first network that look like none of the second's, and the other way round. Stable units need no
    /// counterpart.
    pub unmatched: [Vec<Unmatched>; 2],
    /// Of networks with convolutions: why no channels of the one are taken for channels of the other, if none are. All
    /// that is known then is where the outputs of each lie.
    pub obstacle: Option<String>,
    /// What stopped the search for stable units before it was through.
    pub stopped: Option<StopReason>,
    /// What led to the best bound.
    pub(crate) guess: Option<Guess>,
}

/// What corresponds to what in two networks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Guess {
    /// Whether the second network was taken for the first.
    pub(crate) is_reversed: bool,
    pub(crate) pairs: Correspondence,
}

impl Comparison {
    /// The largest of all bounds.
    pub fn largest_deviation(&self) -> f64 {
        largest(&self.deviation)
    }

    /// This comparison, stopped by `by` if it was not stopped before.
    #[must_use]
    pub fn or_stopped(mut self, by: StopReason) -> Self {
        self.stopped = self.stopped.or(Some(by));
        self
    }

    /// What this and a later comparison of the same networks show together: of two bounds the lesser one, and of units
    /// what the later one knows.
    #[must_use]
    pub fn with_later(self, mut later: Self) -> Self {
        take_less(&mut later.deviation, &self.deviation);
        later
    }
}

/// Units of a layer that look like none of another network's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmatched {
    /// The layer.
    pub layer: LayerId,
    /// Which of its units.
    pub units: Vec<usize>,
}

/// Why two networks cannot be compared.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EquivError {
    /// The domain or the samples are another network's.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// Networks that take or give something else.
    #[error("the networks have inputs or outputs of other shapes: {0} and {1}")]
    Shapes(String, String),
    /// Stopped from outside.
    #[error("stopped before it was through")]
    Interrupted,
    /// A mistake in Leo.
    #[error("a mistake in Leo, please report it with the files: {0}")]
    Internal(String),
}

/// How much of the time both analyses have together; the rest is for comparing.
const SHARE_OF_ANALYSES: f64 = 0.8;

/// Bounds the difference between two networks on a domain, without being told what they have to do with each other.
///
/// The time limit holds for all of it. However short it is, intervals are computed, and one guess is looked into.
///
/// # Errors
/// If the networks have other shapes, or the domain does not fit them, or it is stopped.
pub fn equivalent(
    first: &Network,
    second: &Network,
    domain: &Domain,
    options: &AnalysisOptions<'_>,
) -> Result<Comparison, EquivError> {
    let start = Instant::now();
    let networks = [first, second];
    let [mine, theirs] = networks.map(shapes);
    if mine != theirs {
        return Err(EquivError::Shapes(mine, theirs));
    }
    if !networks.iter().all(|network| network.is_dense()) {
        return channels::comparison(networks, domain, options);
    }
    let analyses = analyses(networks, domain, options)?;
    let points = points(networks, domain, options.samples, options.seed);
    let prints = networks.map(|network| Fingerprints::new(network, &points));
    let likenesses = [prints[0].likenesses(&prints[1]), prints[1].likenesses(&prints[0])];

    let widths = first.outputs().iter().map(|&value| first.shape(value).elements());
    let mut least: Vec<Vec<f64>> = widths.map(|width| vec![f64::INFINITY; width]).collect();
    let mut stopped = analyses.iter().find_map(|analysis| analysis.stopped);
    let mut guess: Option<(f64, Guess)> = None;
    let (mut has_bound, is_late) = (false, || options.time_limit.is_some_and(|limit| start.elapsed() >= limit));
    for (one, other) in [(0, 1), (1, 0)] {
        let guesses = Guesses {
            analysis: &analyses[one],
            prints: [&prints[one], &prints[other]],
            likenesses: &likenesses[other],
        };
        for pairs in guesses.correspondences() {
            if has_bound && is_late() {
                stopped = stopped.or(Some(StopReason::OutOfTime));
                break;
            }
            match deviation(&analyses[one].facts, networks[other], &pairs) {
                Ok(found) => {
                    has_bound = true;
                    let worst = largest(&found);
                    if guess.as_ref().is_none_or(|(best, _)| worst < *best) {
                        guess = Some((worst, Guess { is_reversed: one == 1, pairs }));
                    }
                    take_less(&mut least, &found);
                }
                Err(Mismatch::TooLarge) => {}
                Err(mismatch) => return Err(EquivError::Internal(mismatch.to_string())),
            }
        }
    }
    let unmatched = |index: usize| unmatched(&analyses[index], &likenesses[index]);
    Ok(Comparison {
        deviation: least,
        unmatched: [unmatched(0), unmatched(1)],
        obstacle: None,
        stopped,
        guess: guess.map(|(_, guess)| guess),
    })
}

/// The shapes of a network's input and outputs.
fn shapes(network: &Network) -> String {
    let outputs = network.outputs().iter().map(|&value| format!("{:?}", network.shape(value).extents()));
    format!("{:?} to {}", network.input().extents(), outputs.collect::<Vec<_>>().join(" and "))
}

/// What is proved of both networks. The first one has half of the time, the second one what is left.
fn analyses<'n>(
    [first, second]: [&'n Network; 2],
    domain: &Domain,
    options: &AnalysisOptions<'_>,
) -> Result<[Analysis<'n>; 2], EquivError> {
    let (start, limit) = (Instant::now(), options.time_limit.map(|limit| limit.mul_f64(SHARE_OF_ANALYSES)));
    let within = |time_limit: Option<Duration>| AnalysisOptions { tighten_last_layer: true, time_limit, ..*options };
    let first = analyze(first, domain, &within(limit.map(|limit| limit / 2)))?;
    let second = analyze(second, domain, &within(limit.map(|limit| limit.saturating_sub(start.elapsed()))))?;
    let analyses = [first, second];
    if options.observer.is_some_and(Observer::is_stopped) {
        return Err(EquivError::Interrupted);
    }
    Ok(analyses)
}

fn unmatched(analysis: &Analysis<'_>, likenesses: &[Vec<Option<Likeness>>]) -> Vec<Unmatched> {
    let of_layer = |(layer, likenesses): (&leo_stability::Layer, &Vec<Option<Likeness>>)| {
        let pairs = layer.units.iter().zip(likenesses).enumerate();
        let alone =
            pairs.filter(|(_, (unit, like))| !unit.status.is_stable() && !like.is_some_and(|like| like.is_close));
        Unmatched { layer: layer.id, units: alone.map(|(unit, _)| unit).collect() }
    };
    let layers = analysis.layers.iter().zip(likenesses).map(of_layer);
    layers.filter(|unmatched| !unmatched.units.is_empty()).collect()
}

/// What is known to guess from, for two networks in a certain order.
struct Guesses<'a> {
    /// What is proved of the first.
    analysis: &'a Analysis<'a>,
    prints: [&'a Fingerprints; 2],
    /// For each unit of the second, what it looks like.
    likenesses: &'a [Vec<Option<Likeness>>],
}

/// How stable units of the first network that have a counterpart are seen.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    /// As themselves: where the second network has the same units, nothing needs to be rounded.
    Copied,
    /// As the functions that they are: where the second network has something else in their place, that can be seen.
    Linear,
}

/// How small a unit's range is on one side, relative to the other, for it to be nearly stable.
const STABILITY_RATIO: f64 = 1.0 / 64.0;

impl Guesses<'_> {
    /// What may correspond to what.
    fn correspondences(&self) -> Vec<Correspondence> {
        let layers = (0..self.likenesses.len()).map(LayerId::new);
        let roles: Vec<Vec<Expression>> = layers.map(|layer| self.roles(layer)).collect();
        let copied = self.copied();
        let anchors = self.prints[0].shared_sums(self.prints[1]);
        let mut ways = vec![vec![]];
        if !anchors.is_empty() {
            ways.push(anchors);
        }
        let mut correspondences = Vec::new();
        for view in [View::Copied, View::Linear] {
            let layers = (0..copied.len()).map(LayerId::new);
            let claims: Vec<Vec<Expression>> =
                layers.zip(&copied).map(|(layer, copied)| self.claims(layer, copied, view)).collect();
            let with = |anchors: &Vec<_>| Correspondence {
                anchors: anchors.clone(),
                claims: claims.clone(),
                roles: roles.clone(),
            };
            correspondences.extend(ways.iter().map(with));
        }
        correspondences.dedup();
        correspondences
    }

    /// What the units of a layer of the second network are.
    fn roles(&self, layer: LayerId) -> Vec<Expression> {
        let of = self.prints[1].activation(layer);
        let role = |(unit, like): (usize, &Option<Likeness>)| {
            let copy = |like: Likeness| Expression::Multiple { of: like.place, factor: like.factor };
            let like = like.filter(|like| like.factor > 0.0);
            if let Some(like) = like.filter(|like| like.is_close) {
                return copy(like);
            }
            let seen = self.prints[1].range(UnitId { layer, unit });
            let off = |slope: f64, constant: f64| size(&beyond(of, &seen, slope, constant));
            let pieces = of.pieces().iter().map(|piece| (off(piece.slope, piece.constant), piece));
            let best = pieces.reduce(|best, next| if next.0 <= best.0 { next } else { best });
            match (like, best) {
                (Some(like), Some((error, _))) if like.error < error => copy(like),
                (_, Some((_, piece))) => Expression::of_piece(piece),
                (_, None) => Expression::linear(0.0),
            }
        };
        self.likenesses[layer.index()].iter().enumerate().map(role).collect()
    }

    /// Which units of the first network have a counterpart in the second.
    fn copied(&self) -> Vec<Vec<bool>> {
        let mut copied: Vec<Vec<bool>> = self.prints[0].widths().into_iter().map(|units| vec![false; units]).collect();
        for like in self.likenesses.iter().flatten().flatten().filter(|like| like.is_close) {
            copied[like.place.layer.index()][like.place.unit] = true;
        }
        copied
    }

    /// What the units of a layer of the first network are expressed by.
    fn claims(&self, layer: LayerId, copied: &[bool], view: View) -> Vec<Expression> {
        let (units, of) = (&self.analysis.layers[layer.index()].units, self.prints[0].activation(layer));
        let alone = |(unit, &copied): (&Unit, &bool)| match copied && view == View::Copied {
            true => Expression::Itself,
            false => unit.status.expression(of),
        };
        let mut claims: Vec<Expression> = units.iter().zip(copied).map(alone).collect();
        // Those that have a counterpart first: they stand for the others.
        let (mut order, others): (Vec<usize>, Vec<usize>) = (0..claims.len()).partition(|&unit| copied[unit]);
        order.extend(others);
        let duplicates = self.prints[0].duplicates(layer.index());
        let mut is_decided = vec![false; claims.len()];
        for unit in order {
            is_decided[unit] = true;
            if claims[unit] != Expression::Itself || (copied[unit] && view == View::Copied) {
                continue;
            }
            let stands_for = |like: &Likeness| match claims[like.place.unit] {
                _ if !is_decided[like.place.unit] => None,
                Expression::Itself => Some(like.place),
                Expression::Multiple { of, .. } => Some(of),
                Expression::Affine { .. } => None,
            };
            let as_multiple = |of: UnitId| {
                let like = self.prints[0].likeness(UnitId { layer, unit }, self.prints[0], of);
                like.filter(|like| like.is_close).map(|like| Expression::Multiple { of, factor: like.factor })
            };
            let multiple = duplicates[unit].iter().filter_map(stands_for).find_map(as_multiple);
            claims[unit] = match multiple {
                Some(multiple) => multiple,
                None if copied[unit] => Expression::Itself,
                None => nearly(of, &units[unit]),
            };
        }
        claims
    }
}

/// The largest absolute value in an interval.
fn size(of: &Interval) -> f64 {
    of.upper.max(-of.lower)
}

/// What a unit without a counterpart is best seen as: nearly always on one piece, or itself.
fn nearly(of: &Activation, unit: &Unit) -> Expression {
    let at = Interval { lower: unit.lower, upper: unit.upper };
    let [first, last] = touched(of, &at.lower, &at.upper);
    let lines = of.pieces()[first..=last].iter().map(|piece| (beyond(of, &at, piece.slope, piece.constant), piece));
    let lines: Vec<_> = lines.collect();
    let worst = lines.iter().map(|(beyond, _)| size(beyond)).fold(0.0, f64::max);
    match lines.iter().find(|(beyond, _)| worst.is_finite() && size(beyond) <= STABILITY_RATIO * worst) {
        Some((Interval { lower, upper }, piece)) => {
            Expression::Affine { slope: piece.slope, constant: piece.constant + (lower + upper) / 2.0 }
        }
        None => Expression::Itself,
    }
}
