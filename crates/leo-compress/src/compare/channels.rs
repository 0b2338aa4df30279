//! How far two networks with convolutions can be apart, of which one may be the other with fewer channels, or with
//! other numbers.
//!
//! Which channel is which is guessed, as units are for dense networks ([`crate::compare::equiv`]), and what follows
//! from that is proved. Channels leave a network in whole tracks ([`crate::compare::tracks`]), and those that stay are
//! in their order. So for each track, all channels of the narrower network are matched at once with as many of the
//! wider one, in order, by what makes them most alike in all ([`crate::compare::evidence`]): a shortest path, as for
//! the alignment of two sequences (S. Needleman, C. Wunsch, 1970). Tracks are gone through twice, against the data, so
//! that it is known what reads a track, and with them, so that it is known what it reads, too. If that is not enough to
//! prove much, it is done again with more points. Where the networks do not have the same nodes, all that is known is
//! where the outputs of each lie.

use std::mem::discriminant;
use std::time::Instant;

use leo_check::{ChannelSelection, KeptChannels, ProvedBounds, channel_difference, complete};
use leo_network::op::{Op, Operator};
use leo_network::{Domain, Network, Node, Observer, ValueId};
use leo_stability::{Analysis, AnalysisOptions, StopReason, analyze};

use crate::compare::equiv::{Comparison, EquivError, Unmatched};
use crate::compare::evidence::{ChannelNumbers, Evidence, Looks, Matched};
use crate::compare::falsify::random_points;
use crate::compare::tracks::Tracks;
use crate::deltas::{largest, take_less};
use crate::method::dependence::filters_by_others;

/// How many points channels are told apart by: at first, and if that is not enough.
const POINTS: [usize; 2] = [4, 16];

/// What part of how far outputs could be apart, by where they lie, is little enough for a guess to be a good one.
const GOOD_PART: f64 = 1e-6;

/// Channels that differ by more than this part of what they reach are not the same.
const LIKENESS: f64 = 1e-3;

/// Bounds the difference between two networks whose inputs and outputs have the same shapes.
pub(crate) fn comparison(
    networks: [&Network; 2],
    domain: &Domain,
    options: &AnalysisOptions<'_>,
) -> Result<Comparison, EquivError> {
    let start = Instant::now();
    let [first, second] = networks;
    let analyses = [analyze(first, domain, options)?, analyze(second, domain, options)?];
    let is_stopped = || options.observer.is_some_and(Observer::is_stopped);
    if is_stopped() {
        return Err(EquivError::Interrupted);
    }
    let mut found = Comparison {
        deviation: apart(&analyses[0].facts, &analyses[1].facts),
        unmatched: [Vec::new(), Vec::new()],
        obstacle: None,
        stopped: analyses.iter().find_map(|analysis| analysis.stopped),
        guess: None,
    };
    let far = largest(&found.deviation);
    let is_late = || options.time_limit.is_some_and(|limit| start.elapsed() >= limit);
    match ensure_alike(networks).and_then(|()| wider(networks, &Tracks::new(networks))) {
        Err(why) => found.obstacle = Some(why),
        Ok(sides) => {
            for (round, points) in POINTS.into_iter().enumerate() {
                let points = random_points(analyses[0].facts.domain(), points, options.seed);
                for &side in &sides {
                    Pair::new(networks, &analyses, side).compare(&points, &mut found);
                }
                let is_good = largest(&found.deviation) <= GOOD_PART * far;
                if is_stopped() {
                    return Err(EquivError::Interrupted);
                }
                if is_good || sides.len() > 1 || is_late() && round + 1 < POINTS.len() {
                    break;
                }
            }
        }
    }
    if is_late() {
        found.stopped = found.stopped.or(Some(StopReason::OutOfTime));
    }
    Ok(found)
}

/// How far outputs can be apart, by where they lie.
fn apart(first: &ProvedBounds<'_>, second: &ProvedBounds<'_>) -> Vec<Vec<f64>> {
    let outputs = first.network().outputs().iter().zip(second.network().outputs());
    let of_output = |(&a, &b): (&ValueId, &ValueId)| {
        let (a, b) = (first.range(a), second.range(b));
        let far = |element: usize| {
            let (above, below) = (a.upper[element] - b.lower[element], b.upper[element] - a.lower[element]);
            // Nothing is rounded where both are one number, and the same.
            let far = above.max(below);
            if far == 0.0 { 0.0 } else { far.next_up() }
        };
        (0..a.lower.len()).map(far).collect()
    };
    outputs.map(of_output).collect()
}

/// Sees to it that nodes do and read the same, whatever their numbers and widths are; or says where they do not.
fn ensure_alike(networks: [&Network; 2]) -> Result<(), String> {
    let [first, second] = networks;
    let counts = networks.map(|network| network.nodes().len());
    let kind = |node: &Node| match node.op() {
        Op::Affine(map) => (discriminant(node.op()), Some(discriminant(map))),
        op => (discriminant(op), None),
    };
    for (index, (one, other)) in first.nodes().iter().zip(second.nodes()).enumerate() {
        let is_same = one.op().as_activation() == other.op().as_activation() && kind(one) == kind(other);
        if !is_same || one.operands() != other.operands() {
            let [one, other] = [one, other].map(|node| format!("{} {:?}", node.op().name(), node.name()));
            let what = if is_same { ", which reads something else" } else { "" };
            return Err(format!("node {index} is {one} in one network and {other} in the other{what}"));
        }
    }
    if counts[0] != counts[1] || first.outputs() != second.outputs() {
        return Err(format!("one network has {} nodes and the other {}, or others leave them", counts[0], counts[1]));
    }
    Ok(())
}

/// Which network can be the one that has all channels of the other: mostly one of them, both if they have as many.
fn wider(networks: [&Network; 2], tracks: &Tracks) -> Result<Vec<usize>, String> {
    let has_more = |side: usize| tracks.widths.iter().position(|width| width[side] > width[1 - side]);
    match (has_more(0), has_more(1)) {
        (None, None) => Ok(vec![0, 1]),
        (Some(_), None) => Ok(vec![0]),
        (None, Some(_)) => Ok(vec![1]),
        (Some(one), Some(other)) => {
            let of = |track: usize| {
                let node = tracks.begins[track].node().map(|node| networks[0].nodes()[node].name());
                let [first, second] = tracks.widths[track];
                format!(
                    "{:?} makes {first} channels in the first network and {second} in the second",
                    node.unwrap_or("input")
                )
            };
            Err(format!("neither network is the other one with fewer channels: {}, and {}", of(one), of(other)))
        }
    }
}

/// Two networks, the one with more channels first.
struct Pair<'a> {
    networks: [&'a Network; 2],
    analyses: [&'a Analysis<'a>; 2],
    tracks: Tracks,
    /// Which of the two that are compared comes first.
    side: usize,
}

impl<'a> Pair<'a> {
    fn new(networks: [&'a Network; 2], analyses: &'a [Analysis<'a>; 2], side: usize) -> Self {
        let networks = [networks[side], networks[1 - side]];
        Self { networks, analyses: [&analyses[side], &analyses[1 - side]], tracks: Tracks::new(networks), side }
    }

    /// Matches channels by what they are at some points, and bounds what follows.
    fn compare(&self, points: &[Vec<f64>], found: &mut Comparison) {
        let looks = self.networks.map(|network| Looks::new(network, points));
        let evidence = Evidence::new(self.networks, &self.tracks, [&looks[0], &looks[1]]);
        let mut best = f64::INFINITY;
        let guesses = guesses(&evidence);
        let selections = guesses.iter().flat_map(|matched| {
            let selection = ChannelSelection { kept: kept(&evidence, matched), ..ChannelSelection::default() };
            let expressions = filters_by_others(&self.analyses[0].facts, &selection.kept);
            let with_others = (!expressions.is_empty()).then(|| ChannelSelection { expressions, ..selection.clone() });
            [Some(selection), with_others].into_iter().flatten().map(move |selection| (matched, selection))
        });
        for (matched, selection) in selections {
            match channel_difference(&self.analyses[0].facts, self.networks[1], &selection, None, false) {
                Ok(difference) => {
                    found.obstacle = None;
                    let worst = largest(&difference.deviation);
                    if worst < best || best.is_infinite() {
                        best = worst;
                        let [wider, narrower] = self.unmatched(&evidence, matched);
                        found.unmatched = if self.side == 0 { [wider, narrower] } else { [narrower, wider] };
                    }
                    take_less(&mut found.deviation, &difference.deviation);
                }
                Err(mismatch) if best.is_infinite() => found.obstacle = Some(mismatch.to_string()),
                Err(_) => {}
            }
        }
    }

    /// Channels of either network that are neither always on nor always off, and look like none of the other.
    fn unmatched(&self, evidence: &Evidence<'_>, matched: &Matched) -> [Vec<Unmatched>; 2] {
        let mut all = [Vec::new(), Vec::new()];
        for layer in self.networks[0].layers() {
            let value = self.networks[0].output_of(layer);
            let Some(pairs) = evidence.pairs(value, matched) else { continue };
            let looks = [0, 1].map(|side| &evidence.looks[side].of[value]);
            let is_alike = |pair: &&[usize; 2]| distance(&looks[0][pair[0]], &looks[1][pair[1]]) <= LIKENESS;
            let alike: Vec<&[usize; 2]> = pairs.iter().filter(is_alike).collect();
            for (side, all) in all.iter_mut().enumerate() {
                let units = &self.analyses[side].layers[layer.index()].units;
                let is_alone = |unit: &usize| {
                    let is_seen_to_move = looks[side][*unit].windows(2).any(|pair| pair[0] != pair[1]);
                    !units[*unit].status.is_stable() && is_seen_to_move && alike.iter().all(|pair| pair[side] != *unit)
                };
                let units: Vec<usize> = (0..units.len()).filter(is_alone).collect();
                if !units.is_empty() {
                    all.push(Unmatched { layer, units });
                }
            }
        }
        all
    }
}

/// Which channels of the first network the second one may have, track by track.
fn guesses(evidence: &Evidence<'_>) -> Vec<Vec<Option<Vec<usize>>>> {
    let widths = &evidence.tracks.widths;
    let whole = widths.iter().map(|&[more, fewer]| (more == fewer).then(|| (0..more).collect()));
    let mut matched: Vec<Option<Vec<usize>>> = whole.collect();
    let open: Vec<usize> = (0..widths.len()).filter(|&track| matched[track].is_none()).collect();
    open.iter().rev().for_each(|&track| matched[track] = assigned(widths[track], &evidence.of(track, &matched)));
    let mut guesses = vec![matched.clone()];
    open.iter().for_each(|&track| matched[track] = assigned(widths[track], &evidence.of(track, &matched)));
    guesses.push(matched);
    guesses.dedup();
    guesses
}

/// The channels that stay, of all values that lose some.
fn kept(evidence: &Evidence<'_>, matched: &Matched) -> KeptChannels {
    let first = evidence.networks[0];
    let of_value = |value: ValueId| {
        let pairs = evidence.pairs(value, matched)?;
        (pairs.len() < first.channels(value).count()).then(|| (value, pairs.iter().map(|pair| pair[0]).collect()))
    };
    complete(first, None, first.values().filter_map(of_value).collect())
}

/// For each channel of a few, one of many, each after the one before, so that all together differ least.
fn assigned([many, few]: [usize; 2], evidence: &[[ChannelNumbers; 2]]) -> Option<Vec<usize>> {
    let cost = |one: usize, other: usize| -> f64 {
        evidence.iter().map(|[many, few]| distance(&many[one], &few[other])).sum()
    };
    // The least that the first few cost, for channels up to one of many.
    let columns = many + 1;
    let mut least = vec![f64::INFINITY; columns * (few + 1)];
    least[..columns].fill(0.0);
    for other in 0..few {
        for one in other..=many.checked_sub(few)? + other {
            let with = least[other * columns + one] + cost(one, other);
            let without = least[(other + 1) * columns + one];
            least[(other + 1) * columns + one + 1] = with.min(without);
        }
    }
    let mut found = vec![0; few];
    let mut one = many;
    for other in (0..few).rev() {
        let row = &least[(other + 1) * columns..][..columns];
        while one > other + 1 && row[one - 1] <= row[one] {
            one -= 1;
        }
        one -= 1;
        found[other] = one;
    }
    Some(found)
}

/// How far apart numbers are, as a part of the largest of them.
fn distance(one: &[f64], other: &[f64]) -> f64 {
    let size = one.iter().chain(other).fold(0.0, |size: f64, number| size.max(number.abs()));
    let apart = one.iter().zip(other).fold(0.0, |apart: f64, (a, b)| apart.max((a - b).abs()));
    match apart / size {
        part if part.is_finite() => part,
        _ if size == 0.0 => 0.0,
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channels(numbers: &[f64]) -> ChannelNumbers {
        numbers.iter().map(|&number| vec![number; 3]).collect()
    }

    #[test]
    fn channels_are_found_in_their_order() {
        let matched = |many: &[f64], few: &[f64]| assigned([many.len(), few.len()], &[[channels(many), channels(few)]]);
        assert_eq!(matched(&[1.0, 2.0, 2.0, 3.0], &[2.0, 3.0]), Some(vec![1, 3]));
        assert_eq!(matched(&[1.0, 2.0, 2.0, 3.0], &[1.0, 2.0, 2.0, 3.0]), Some(vec![0, 1, 2, 3]));
        assert_eq!(matched(&[2.0, 3.0], &[1.0, 2.0, 3.0]), None);
        // The first one that is near is not the right one if all are to have a place.
        assert_eq!(matched(&[1.0, 5.0, 1.01, 5.0], &[1.01, 5.0]), Some(vec![2, 3]));
        assert_eq!(matched(&[0.0, 0.0, 4.0], &[0.0, 4.0]), Some(vec![0, 2]));
    }

    #[test]
    fn what_looks_the_same_is_told_apart_by_its_weights() {
        let zeros = [channels(&[0.0, 0.0, 0.0]), channels(&[0.0])];
        let weights = [channels(&[1.0, -2.0, 3.0]), channels(&[-2.0])];
        assert_eq!(assigned([3, 1], &[zeros, weights]), Some(vec![1]));
    }
}
