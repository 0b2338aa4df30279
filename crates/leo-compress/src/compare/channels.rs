//! How far two networks with convolutions can be apart, of which one may be the other with fewer channels.
//!
//! Which channel is which is guessed, as units are for dense networks ([`crate::compare::equiv`]): channels that look
//! alike at some points are taken for the same, one after the other. What follows from that is proved. Where the
//! networks do not have the same nodes, all that is known is where the outputs of each lie.

use std::time::Instant;

use leo_check::{ChannelSelection, KeptChannels, ProvedBounds, channel_difference};
use leo_network::op::Op;
use leo_network::{Domain, Evaluator, Network, Observer, ValueId, ValueMap};
use leo_stability::{AnalysisOptions, StopReason, analyze};

use crate::compare::equiv::{Comparison, EquivError};
use crate::compare::falsify::random_points;
use crate::deltas::take_less;

/// How many points channels are told apart by.
const POINTS: usize = 4;

/// How many elements of a channel are compared at each point.
const ELEMENTS: usize = 64;

/// Two channels look alike if they differ by less than this part of what they reach.
const LIKENESS: f64 = 1e-6;

/// Bounds the difference between two networks whose inputs and outputs have the same shapes.
pub(crate) fn comparison(
    networks: [&Network; 2],
    domain: &Domain,
    options: &AnalysisOptions<'_>,
) -> Result<Comparison, EquivError> {
    let start = Instant::now();
    let [first, second] = networks;
    let analyses = [analyze(first, domain, options)?, analyze(second, domain, options)?];
    if options.observer.is_some_and(Observer::is_stopped) {
        return Err(EquivError::Interrupted);
    }
    let mut least = apart(&analyses[0].facts, &analyses[1].facts);
    let points = random_points(analyses[0].facts.domain(), POINTS, options.seed).concat();
    let values = networks.map(|network| Looks::new(network, &points));
    for [one, other] in [[0, 1], [1, 0]] {
        let Some(kept) = guess([networks[one], networks[other]], [&values[one], &values[other]]) else { continue };
        let selection = ChannelSelection { kept, ..ChannelSelection::default() };
        if let Ok(found) = channel_difference(&analyses[one].facts, networks[other], &selection, None, false) {
            take_less(&mut least, &found.deviation);
        }
    }
    let mut stopped = analyses.iter().find_map(|analysis| analysis.stopped);
    if options.time_limit.is_some_and(|limit| start.elapsed() >= limit) {
        stopped = stopped.or(Some(StopReason::OutOfTime));
    }
    Ok(Comparison { deviation: least, unmatched: [Vec::new(), Vec::new()], stopped, guess: None })
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

/// What the channels of a network's values are at some points.
struct Looks {
    /// For each value, for each channel, some of its elements at each point.
    of: ValueMap<Vec<Vec<f64>>>,
}

impl Looks {
    fn new(network: &Network, points: &[f64]) -> Self {
        let evaluator = Evaluator::<f64>::new(network);
        let mut workspace = evaluator.workspace();
        let values = evaluator.forward(&mut workspace, points);
        let of_value = |value: ValueId| {
            let (channels, numbers) = (network.channels(value), values.get(value));
            let width = network.shape(value).elements();
            let of_channel = |channel: usize| {
                let step = (channels.positions() / ELEMENTS).max(1);
                let elements =
                    move || (0..channels.positions()).step_by(step).map(move |at| channels.element(channel, at));
                numbers.chunks_exact(width).flat_map(|row| elements().map(|element| row[element])).collect()
            };
            (0..channels.count()).map(of_channel).collect()
        };
        Self { of: network.values().map(of_value).collect() }
    }
}

/// Which channels of the first network the second one has, if it has the same nodes, and fewer channels.
fn guess([first, second]: [&Network; 2], [old, new]: [&Looks; 2]) -> Option<KeptChannels> {
    if first.nodes().len() != second.nodes().len() {
        return None;
    }
    let mut kept = KeptChannels::new();
    for (index, node) in first.nodes().iter().enumerate() {
        let value = first.result_of(index);
        let counts = [first, second].map(|network| network.channels(value).count());
        if counts[0] == counts[1] {
            continue;
        }
        let of_operand = |operand: ValueId| {
            let all = || (0..first.channels(operand).count()).collect();
            kept.get(&operand).cloned().unwrap_or_else(all)
        };
        let carried: Option<Vec<usize>> = match node.op() {
            Op::Concat(concat) if concat.axis() == node.channels().axis() => {
                let mut start = 0;
                let mut joined = Vec::new();
                for &operand in node.operands() {
                    joined.extend(of_operand(operand).into_iter().map(|channel| start + channel));
                    start += first.channels(operand).count();
                }
                Some(joined)
            }
            Op::Affine(map) if map.channel_reads(first.shape(node.operands()[0])).is_some() => None,
            _ => {
                Some(of_operand(node.operands()[0])).filter(|_| first.channels(node.operands()[0]).count() == counts[0])
            }
        };
        let carried = carried.filter(|channels| channels.len() == counts[1]);
        kept.insert(value, carried.or_else(|| alike(&old.of[value], &new.of[value]))?);
    }
    Some(kept)
}

/// For each channel of a few, one of many, each after the one before: the first that looks like it, or else the one
/// that looks most like it.
fn alike(many: &[Vec<f64>], few: &[Vec<f64>]) -> Option<Vec<usize>> {
    let mut found = Vec::new();
    let mut next = 0;
    for (index, channel) in few.iter().enumerate() {
        let last = (many.len() + index + 1).checked_sub(few.len())?;
        let distance = |other: &[f64]| {
            let pairs = channel.iter().zip(other);
            pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
        };
        let size = channel.iter().map(|number| number.abs()).fold(f64::MIN_POSITIVE, f64::max);
        let mut distances = (next..last).map(|place| (place, distance(&many[place])));
        let close = distances.clone().find(|(_, distance)| *distance <= LIKENESS * size);
        let nearest = |best: (usize, f64), other: (usize, f64)| if other.1 < best.1 { other } else { best };
        let (place, _) = match close {
            Some(close) => close,
            None => distances.next().map(|first| distances.fold(first, nearest))?,
        };
        found.push(place);
        next = place + 1;
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_found_in_their_order() {
        let many: Vec<Vec<f64>> = [1.0, 2.0, 2.0, 3.0].iter().map(|&x| vec![x; 3]).collect();
        let few: Vec<Vec<f64>> = [2.0, 3.0].iter().map(|&x| vec![x; 3]).collect();
        assert_eq!(alike(&many, &few), Some(vec![1, 3]));
        assert_eq!(alike(&many, &many), Some(vec![0, 1, 2, 3]));
        assert_eq!(alike(&few, &many), None);
    }
}
