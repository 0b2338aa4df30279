//! Channels that are linear functions of other channels of their value.
//!
//! Two filters of which one is a multiple of the other make channels that are multiples of each other, before a ReLU
//! and behind it, if the factor is positive. Filters that are linearly dependent make channels that are, too, and where
//! all of them are always on, so are the channels behind the ReLU. What reads such a channel can read the others
//! instead, by other weights ([`leo_formats::onnx::MadeUp`]).
//!
//! Filters are looked at in the order of the network, each with what is known of the channels that it reads put in: so
//! a depthwise convolution of two channels that are multiples of each other makes two more, if its kernels are. All of
//! this is a proposal, in floating point. What it misses is for the checker to say.

use std::collections::BTreeMap;

use leo_check::{
    ChannelExpression, ChannelExpressions, KeptChannels, ProvedBounds, carried, has_filters, stable_piece,
};
use leo_network::op::{Action, AffineMap, Op};
use leo_network::{Network, Node, ValueId, ValueMap};

use crate::normal_form::linear::{Allowance, Decomposition, Weighing, decompose};

/// A filter counts as a multiple of another if no weight is further from it than this part of the largest: weights in
/// single precision are that far from what they were rounded from.
const LIKENESS: f64 = 1e-6;

/// How many times larger than what rounding doubles makes a remainder may be, for a filter to count as a combination of
/// others: weights are in single precision.
const SINGLE: f64 = (1_u64 << 21) as f64;

/// How many times longer filters count whose channels are to stay, where those are looked for that others can be made
/// of.
const FIRST: f64 = 1e6;

/// Combinations with larger numbers would lose in rounding what they gain.
const LARGEST_FACTOR: f64 = 64.0;

/// How many products it may take to look for combinations among the filters of one node.
const MOST_PRODUCTS: usize = 1 << 31;

/// The weights of a filter that are not 0, by their places: all that a channel is made of, with what stands for the
/// channels that it reads put in.
struct Filter {
    weights: Vec<(usize, f64)>,
    bias: f64,
}

/// For each value, what channels are by others. `comes_first` says of which of several that are alike the others are to
/// be multiples, and `has_bias` whether whatever reads a value's channel can make up for a constant.
pub(crate) fn expressions(
    facts: &ProvedBounds<'_>,
    comes_first: impl Fn(ValueId, usize) -> bool,
    has_bias: impl Fn(ValueId, usize) -> bool,
) -> ValueMap<ChannelExpressions> {
    let network = facts.network();
    let linear = linear_channels(facts);
    let mut all = ValueMap::from(vec![ChannelExpressions::new()]);
    for (index, node) in network.nodes().iter().enumerate() {
        let value = network.result_of(index);
        let found = match filters(network, node, &all[node.operands()[0]]) {
            Some(filters) => {
                let is_first = |channel: usize| comes_first(value, channel);
                let mut found = multiples(&filters, is_first);
                let others: Vec<usize> = (0..filters.len())
                    .filter(|&channel| linear[value][channel] && !found.contains_key(&channel))
                    .filter(|&channel| !filters[channel].weights.is_empty())
                    .collect();
                let with_bias = !others.iter().all(|&channel| has_bias(value, channel));
                let others: Vec<(usize, bool)> =
                    others.into_iter().map(|channel| (channel, is_first(channel))).collect();
                let combined = combinations(&filters, &others, with_bias, facts, node.operands()[0]);
                // What is a multiple of something that is a combination is that combination, times a number.
                for of in found.values_mut() {
                    if let [(other, factor)] = of.terms[..]
                        && let Some(combination) = combined.get(&other)
                    {
                        *of = scaled(combination, factor);
                    }
                }
                found.extend(combined);
                found
            }
            None => {
                let read: Vec<&ChannelExpressions> = node.operands().iter().map(|&operand| &all[operand]).collect();
                agreed(node, carried(facts, value, &read), &read)
            }
        };
        all.push(found);
    }
    all
}

/// What channels of a network are by others of which some stay, if everything could make up for constants: what can be
/// said of the values that filters make.
pub(crate) fn filters_by_others(
    facts: &ProvedBounds<'_>,
    kept: &KeptChannels,
) -> BTreeMap<ValueId, ChannelExpressions> {
    let stays =
        |value: ValueId, channel: usize| kept.get(&value).is_none_or(|kept| kept.binary_search(&channel).is_ok());
    let all = expressions(facts, stays, |_, _| true);
    let has_filters = |value: ValueId| value.node().is_some_and(|node| has_filters(&facts.network().nodes()[node]));
    let of_filters = facts.network().values().filter(|&value| has_filters(value) && !all[value].is_empty());
    of_filters.map(|value| (value, all[value].clone())).collect()
}

/// Where a sum of two values makes of channels what the first one says of them, both have to say so.
fn agreed(node: &Node, made: ChannelExpressions, read: &[&ChannelExpressions]) -> ChannelExpressions {
    let says_the_same = |channel: usize, of: &ChannelExpression| {
        let Some(other) = read[1].get(&channel) else { return false };
        let is_same = |(a, b): (&(usize, f64), &(usize, f64))| a.0 == b.0 && (a.1 - b.1).abs() <= LIKENESS * a.1.abs();
        of.terms.len() == other.terms.len() && of.terms.iter().zip(&other.terms).all(is_same)
    };
    match node.op() {
        Op::Sum(_) => made.into_iter().filter(|(channel, of)| says_the_same(*channel, of)).collect(),
        _ => made,
    }
}

fn scaled(of: &ChannelExpression, factor: f64) -> ChannelExpression {
    let terms = of.terms.iter().map(|&(channel, by)| (channel, by * factor)).collect();
    ChannelExpression { constant: of.constant * factor, terms }
}

/// The filters of a node, if it has some, by the channels that are left of what it reads.
fn filters(network: &Network, node: &Node, read: &ChannelExpressions) -> Option<Vec<Filter>> {
    if !has_filters(node) {
        return None;
    }
    let (operand, rank) = (network.channels(node.operands()[0]), network.shape(node.operands()[0]).rank());
    let (weights, bias, inputs, entries, groups, behind) = match node.op() {
        Op::Affine(AffineMap::Convolution(of)) => {
            let window = of.window();
            (of.weights(), of.bias(), of.inputs() / of.groups(), window.entries()?, of.groups(), window.axes().len())
        }
        Op::Affine(AffineMap::Dense(of)) => (of.weight().values(), of.bias(), of.weight().columns(), 1, 1, 0),
        _ => return None,
    };
    let outputs = weights.len() / (inputs * entries);
    if node.channels().count() != outputs {
        return None;
    }
    // The channels that are known of are columns of the weights only if they lie along the axis that these are for.
    let none = ChannelExpressions::new();
    let read = if operand.axis() + behind + 1 == rank { read } else { &none };
    let filter = |output: usize| {
        let first = output / (outputs / groups) * inputs;
        let mut found: BTreeMap<usize, f64> = BTreeMap::new();
        let mut sum = bias.map_or(0.0, |bias| bias[output]);
        for input in 0..inputs {
            let own = &weights[(output * inputs + input) * entries..][..entries];
            let mut add = |channel: usize, factor: f64| {
                for (entry, &weight) in own.iter().enumerate().filter(|(_, weight)| **weight != 0.0) {
                    *found.entry(channel * entries + entry).or_default() += factor * weight;
                }
            };
            match read.get(&(first + input)) {
                None => add(first + input, 1.0),
                Some(of) => {
                    of.terms.iter().for_each(|&(channel, factor)| add(channel, factor));
                    sum += of.constant * own.iter().sum::<f64>();
                }
            }
        }
        Filter { weights: found.into_iter().filter(|(_, weight)| *weight != 0.0).collect(), bias: sum }
    };
    Some((0..outputs).map(filter).collect())
}

/// Filters that are positive multiples of others, of which those come first that are to stay.
fn multiples(filters: &[Filter], comes_first: impl Fn(usize) -> bool) -> ChannelExpressions {
    let mut marks: Vec<(f64, bool, usize)> = (0..filters.len())
        .filter(|&channel| !filters[channel].weights.is_empty())
        .filter_map(|channel| Some((filters[channel].mark()?, !comes_first(channel), channel)))
        .collect();
    marks.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut found = ChannelExpressions::new();
    let mut start = 0;
    while start < marks.len() {
        let mut end = start + 1;
        while end < marks.len() && marks[end].0 - marks[end - 1].0 <= LIKENESS {
            end += 1;
        }
        let mut alike = marks[start..end].iter().map(|&(_, late, channel)| (late, channel)).collect::<Vec<_>>();
        alike.sort_unstable();
        let mut kept: Vec<usize> = Vec::new();
        for (_, channel) in alike {
            let multiple = |&other: &usize| Some((other, filters[channel].over(&filters[other])?));
            match kept.iter().find_map(multiple) {
                Some(term) => {
                    found.insert(channel, ChannelExpression { constant: 0.0, terms: vec![term] });
                }
                None => kept.push(channel),
            }
        }
        start = end;
    }
    found
}

impl Filter {
    /// A number that is nearly the same for multiples of the filter: where its direction lies along another one.
    fn mark(&self) -> Option<f64> {
        let all = || self.weights.iter().copied().chain([(usize::MAX, self.bias)]);
        let length = all().map(|(_, weight)| weight * weight).sum::<f64>().sqrt();
        let mark = all().map(|(place, weight)| weight / length * direction(place)).sum::<f64>();
        (length > 0.0 && mark.is_finite()).then_some(mark)
    }

    /// How many times another filter it is, if it is.
    fn over(&self, other: &Self) -> Option<f64> {
        let largest = |of: &Self| of.weights.iter().fold(0.0_f64, |most, (_, weight)| most.max(weight.abs()));
        let (own, others) = (largest(self), largest(other));
        let &(place, weight) = other.weights.iter().find(|(_, weight)| weight.abs() == others)?;
        let at = self.weights.binary_search_by_key(&place, |&(place, _)| place).ok()?;
        let factor = self.weights[at].1 / weight;
        let is_near = |a: f64, b: f64, size: f64| (a - factor * b).abs() <= LIKENESS * size;
        let (mut mine, mut theirs) = (self.weights.iter().peekable(), other.weights.iter().peekable());
        let mut is_same =
            factor > 0.0 && factor.is_finite() && is_near(self.bias, other.bias, own.max(self.bias.abs()));
        while let Some(place) = [mine.peek(), theirs.peek()].into_iter().flatten().map(|(place, _)| *place).min() {
            let at = |weights: &mut std::iter::Peekable<std::slice::Iter<'_, (usize, f64)>>| {
                weights.next_if(|(other, _)| *other == place).map_or(0.0, |(_, weight)| *weight)
            };
            is_same &= is_near(at(&mut mine), at(&mut theirs), own);
        }
        is_same.then_some(factor)
    }
}

/// A direction in as many dimensions as one likes: numbers between -1 and 1 that look random.
fn direction(place: usize) -> f64 {
    let mut bits = (place as u64).wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 29)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}

/// Filters of some channels that are combinations of others of these, rather of those that are to stay. Where no bias
/// can make up for a constant, that is to be a combination, too.
fn combinations(
    filters: &[Filter],
    channels: &[(usize, bool)],
    with_bias: bool,
    facts: &ProvedBounds<'_>,
    operand: ValueId,
) -> ChannelExpressions {
    let mut columns: Vec<usize> =
        channels.iter().flat_map(|&(channel, _)| filters[channel].weights.iter().map(|&(place, _)| place)).collect();
    columns.sort_unstable();
    columns.dedup();
    let width = columns.len() + usize::from(with_bias);
    let products = channels.len().saturating_mul(channels.len()).saturating_mul(width);
    if channels.len() < 2 || products > MOST_PRODUCTS {
        return ChannelExpressions::new();
    }
    let range = facts.range(operand);
    let largest = range.lower.iter().chain(&range.upper).fold(f64::MIN_POSITIVE, |most, end| most.max(end.abs()));
    let row = |&(channel, _): &(usize, bool)| {
        let mut row = vec![0.0; width];
        for &(place, weight) in &filters[channel].weights {
            row[columns.binary_search(&place).unwrap_or_default()] = weight;
        }
        if with_bias {
            row[columns.len()] = filters[channel].bias / largest;
        }
        row
    };
    let mut rows: Vec<Vec<f64>> = channels.iter().map(row).collect();
    // All of one length, but for those that come first.
    let scale = |(row, (_, comes_first)): (&mut Vec<f64>, &(usize, bool))| {
        let size = row.iter().map(|weight| weight.abs()).sum::<f64>();
        let scale = if *comes_first { FIRST } else { 1.0 } / size;
        row.iter_mut().for_each(|weight| *weight *= scale);
        scale
    };
    let scales: Vec<f64> = rows.iter_mut().zip(channels).map(scale).collect();
    let sizes: Vec<f64> =
        channels.iter().map(|(_, comes_first)| SINGLE * if *comes_first { FIRST } else { 1.0 }).collect();
    let costs: Vec<&[(usize, f64)]> = vec![&[(0, 1.0)]; rows.len()];
    let allowance = Allowance { costs: &costs, parties: 1, budget: 0.0, sizes: &sizes, weighing: Weighing::Sizes };
    let Decomposition { pivots, factors, .. } = decompose(&rows, width, allowance);
    let mut found = ChannelExpressions::new();
    for (row, factors) in factors.iter().enumerate().filter(|(row, _)| !pivots.contains(row)) {
        let of = factors.iter().zip(&pivots);
        let mut terms: Vec<(usize, f64)> =
            of.map(|(factor, &pivot)| (channels[pivot].0, rounded(factor * scales[pivot] / scales[row]))).collect();
        if factors.len() != pivots.len() || !terms.iter().all(|(_, factor)| factor.abs() <= LARGEST_FACTOR) {
            continue;
        }
        // Factors that are nothing but rounding would be nothing but work.
        terms.retain(|(_, factor)| factor.abs() > 1e-9);
        terms.sort_by_key(|&(channel, _)| channel);
        let others: f64 = terms.iter().map(|&(channel, factor)| factor * filters[channel].bias).sum();
        let channel = channels[row].0;
        let missing = filters[channel].bias - others;
        let constant = if with_bias { 0.0 } else { missing };
        found.insert(channel, ChannelExpression { constant, terms });
    }
    found
}

/// A factor without the last bits, which are noise: numbers that people choose come out as they were.
fn rounded(factor: f64) -> f64 {
    let short = (factor * 1024.0).round() / 1024.0;
    if (short - factor).abs() <= 1e-11 { short } else { factor }
}

/// For each value, which of its channels may be any linear function of others, so that what reads them may read these
/// instead: no activation that is not always on comes before the next weights, and nothing that takes the largest.
fn linear_channels(facts: &ProvedBounds<'_>) -> ValueMap<Vec<bool>> {
    let network = facts.network();
    let mut linear: ValueMap<Vec<bool>> =
        network.values().map(|value| vec![true; network.channels(value).count()]).collect();
    for (index, node) in network.nodes().iter().enumerate().rev() {
        let (made, operand) = (network.result_of(index), node.operands()[0]);
        let behind = linear[made].clone();
        let channels = network.channels(operand);
        match node.op() {
            _ if has_filters(node) => {}
            Op::Activation(of) => {
                let range = facts.range(operand);
                let is_on = |element: usize| {
                    let piece = stable_piece(of, &range.lower[element], &range.upper[element]);
                    piece.is_some_and(|piece| of.pieces()[piece].is_identity())
                };
                for (channel, known) in linear[operand].iter_mut().enumerate() {
                    *known &= behind[channel] && channels.elements(channel).all(is_on);
                }
            }
            Op::Affine(map) => match map.action(network.shape(operand)) {
                Action::Move(moves) => {
                    for element in 0..node.shape().elements() {
                        linear[operand][channels.of(moves.source(element))] &= behind[node.channels().of(element)];
                    }
                }
                Action::Each(..) | Action::Sums(_) if behind.len() == channels.count() => {
                    linear[operand].iter_mut().zip(&behind).for_each(|(known, behind)| *known &= behind);
                }
                Action::Each(..) | Action::Sums(_) => linear[operand].fill(false),
            },
            Op::Sum(_) | Op::Concat(_) | Op::MaxPool(_) => {
                node.operands().iter().for_each(|&operand| linear[operand].fill(false));
            }
        }
    }
    linear
}
