//! Channels as linear functions of others, so that these can stand for them.
//!
//! A filter that is a multiple of another one makes a channel that is a multiple of another; filters that are linearly
//! dependent make channels that are, if none of them is ever off. Such a channel may go if what reads it reads the
//! others instead. What stands for it is, at each position,
//!
//! ```text
//! h_j = c + Σ c_k h_k + e
//! ```
//!
//! over channels `k` of the same value, which are said to be nothing else. The numbers `c` are said, for what
//! convolutions and matrices make; for other values they follow ([`carried`]). They need not be right: `e` is what they
//! miss, and where it lies is proved here. For a sum, that is a linear function of what the node reads, in which
//! everything cancels if the numbers are right. A unit that is always on misses what its pre-activation misses; and
//! because `relu(c z) = c relu(z)` for `c > 0`, a unit whose pre-activation is `c z + e` differs from `c` times the
//! other by no more than from 0 to `e`.

use std::collections::{BTreeMap, HashMap};

use leo_network::op::{Action, AffineMap, Arithmetic, MaxWindows, Op, Sums};
use leo_network::{Activation, Network, Node, ValueId, ValueMap};
use rayon::prelude::*;

use super::form::LinearForm;
use super::pairs::of_activation;
use crate::activation::{above, stable_piece};
use crate::checker::ProvedBounds;
use crate::number::Number;
use crate::range::{Interval, Range};

/// What a channel is said to be by others of its value, position by position.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChannelExpression {
    /// What is added at each position.
    pub constant: f64,
    /// Other channels, in ascending order, and what they are multiplied by.
    pub terms: Vec<(usize, f64)>,
}

/// For channels of a value, what they are said to be.
pub type ChannelExpressions = BTreeMap<usize, ChannelExpression>;

/// What stands for channels of a value.
#[derive(Debug)]
pub(super) struct Expressed<N> {
    /// What it is, and at each position between what numbers lies what it misses.
    pub(super) of: BTreeMap<usize, (ChannelExpression, Range<N>)>,
}

impl<N> Default for Expressed<N> {
    fn default() -> Self {
        Self { of: BTreeMap::new() }
    }
}

/// Whether something has to be said of the channels that a node makes, for some to be expressed by others: that takes
/// filters. What other nodes make follows from what they read.
pub fn has_filters(node: &Node) -> bool {
    matches!(node.op(), Op::Affine(AffineMap::Convolution(_) | AffineMap::Dense(_)))
}

/// What the channels are that a node makes, which has no filters, by what is said of those that it reads.
pub fn carried<N: Number>(
    facts: &ProvedBounds<'_, N>,
    value: ValueId,
    read: &[&ChannelExpressions],
) -> ChannelExpressions {
    let network = facts.network();
    let Some(node) = value.node().map(|node| &network.nodes()[node]) else { return BTreeMap::new() };
    if read.iter().all(|read| read.is_empty()) {
        return BTreeMap::new();
    }
    let mut found = following(facts, node, read);
    // A window over channels makes others than it reads.
    let count = node.channels().count();
    found.retain(|&channel, of| channel < count && of.terms.iter().all(|&(other, _)| other < count));
    found
}

/// The same, whether there are such channels or not.
fn following<N: Number>(facts: &ProvedBounds<'_, N>, node: &Node, read: &[&ChannelExpressions]) -> ChannelExpressions {
    let network = facts.network();
    match node.op() {
        Op::Activation(of) => {
            let is_on = always_on(facts, node.operands()[0], of);
            let holds = |channel: usize, expression: &ChannelExpression| {
                let is_linear = is_on[channel] && expression.terms.iter().all(|&(of, _)| is_on[of]);
                is_linear || multiple(expression).is_some_and(|factor| factor > 0.0) && of.is_homogeneous()
            };
            read[0].iter().filter(|(channel, of)| holds(**channel, of)).map(|(at, of)| (*at, of.clone())).collect()
        }
        Op::MaxPool(_) => {
            let holds = |of: &ChannelExpression| of.terms.len() == 1 && of.terms[0].1 > 0.0;
            read[0].iter().filter(|(_, of)| holds(of)).map(|(at, of)| (*at, of.clone())).collect()
        }
        Op::Sum(_) => {
            let sum = |(channel, one): (&usize, &ChannelExpression)| {
                let constant = one.constant + read[1].get(channel)?.constant;
                Some((*channel, ChannelExpression { constant, terms: one.terms.clone() }))
            };
            read[0].iter().filter_map(sum).collect()
        }
        Op::Concat(concat) => {
            let sources = concat.sources(&network.operand_shapes(node));
            moved(network, node, read, |element| Some(sources[element]))
        }
        Op::Affine(map) => match map.action(network.shape(node.operands()[0])) {
            Action::Move(moves) => moved(network, node, read, |element| Some((0, moves.source(element)))),
            Action::Each(arithmetic, constants) => {
                let at = |channel: usize| constants[node.channels().element(channel, 0)];
                read[0]
                    .iter()
                    .filter_map(|(&channel, of)| Some((channel, changed(arithmetic, at, channel, of)?)))
                    .collect()
            }
            Action::Sums(_) if has_filters(node) => BTreeMap::new(),
            Action::Sums(sums) if matches!(map, AffineMap::Select(_)) => {
                moved(network, node, read, |element| Some((0, sums.terms(element).next()?.0)))
            }
            Action::Sums(sums) => {
                let summed = |of: &ChannelExpression| {
                    let constant = of.constant * sums.longest() as f64;
                    ChannelExpression { constant, terms: of.terms.clone() }
                };
                read[0].iter().map(|(&channel, of)| (channel, summed(of))).collect()
            }
        },
    }
}

/// The factor, if it is one of a single channel and nothing else.
fn multiple(expression: &ChannelExpression) -> Option<f64> {
    match expression.terms[..] {
        [(_, factor)] if expression.constant == 0.0 => Some(factor),
        _ => None,
    }
}

/// Which channels of pre-activations are, at every position, where an activation changes nothing.
fn always_on<N: Number>(facts: &ProvedBounds<'_, N>, value: ValueId, of: &Activation) -> Vec<bool> {
    let (channels, range) = (facts.network().channels(value), facts.range(value));
    let is_on = |at: usize| {
        stable_piece(of, &range.lower[at], &range.upper[at]).is_some_and(|piece| of.pieces()[piece].is_identity())
    };
    (0..channels.count()).map(|channel| channels.elements(channel).all(is_on)).collect()
}

/// A channel plus, times or over a constant.
fn changed(
    arithmetic: Arithmetic,
    at: impl Fn(usize) -> f64,
    channel: usize,
    of: &ChannelExpression,
) -> Option<ChannelExpression> {
    let own = at(channel);
    let changed = match arithmetic {
        Arithmetic::Add => {
            let others = of.terms.iter().fold(0.0, |sum, &(other, factor)| sum + factor * at(other));
            ChannelExpression { constant: of.constant + own - others, terms: of.terms.clone() }
        }
        Arithmetic::Multiply => {
            let terms = of.terms.iter().map(|&(other, factor)| (other, own * factor / at(other))).collect();
            ChannelExpression { constant: of.constant * own, terms }
        }
        Arithmetic::Divide => {
            let terms = of.terms.iter().map(|&(other, factor)| (other, factor * at(other) / own)).collect();
            ChannelExpression { constant: of.constant / own, terms }
        }
    };
    let is_finite = changed.constant.is_finite() && changed.terms.iter().all(|(_, factor)| factor.is_finite());
    is_finite.then_some(changed)
}

/// The channels that a node makes which only moves numbers, by where the first of their elements comes from that is
/// none of its own.
fn moved(
    network: &Network,
    node: &Node,
    read: &[&ChannelExpressions],
    source: impl Fn(usize) -> Option<(usize, usize)>,
) -> ChannelExpressions {
    let made = node.channels();
    let first = |channel: usize| made.elements(channel).find_map(&source);
    let channel_of: HashMap<(usize, usize), usize> =
        (0..made.count()).filter_map(|channel| Some((first(channel)?, channel))).collect();
    let of_channel = |channel: usize| {
        let (operand, element) = first(channel)?;
        let channels = network.channels(node.operands()[operand]);
        let ChannelExpression { constant, terms } = read[operand].get(&channels.of(element))?;
        let place = |&(other, factor): &(usize, f64)| {
            let element = channels.element(other, channels.position(element));
            Some((*channel_of.get(&(operand, element))?, factor))
        };
        let mut terms = terms.iter().map(place).collect::<Option<Vec<_>>>()?;
        terms.sort_by_key(|&(channel, _)| channel);
        Some((channel, ChannelExpression { constant: *constant, terms }))
    };
    (0..made.count()).filter_map(of_channel).collect()
}

/// What a node does to its operands, found once for all its elements.
enum NodeAction<'a> {
    Activated(&'a Activation, Vec<bool>),
    Largest(MaxWindows),
    Added,
    /// Each element is one of an operand.
    Picked(Vec<(usize, usize)>),
    Changed(Arithmetic, Vec<f64>),
    Summed(Sums<'a>),
}

/// A node of the first network, whose channels are to be expressed.
struct ExpressedNode<'a, N> {
    facts: &'a ProvedBounds<'a, N>,
    node: &'a Node,
    making: NodeAction<'a>,
    /// What stands for channels of the values before that are gone.
    expressed: &'a ValueMap<Expressed<N>>,
}

/// What stands for the channels of a value that are gone, by what is said of them, or follows.
pub(super) fn expressed<N: Number>(
    facts: &ProvedBounds<'_, N>,
    value: ValueId,
    said: Option<&ChannelExpressions>,
    expressed: &ValueMap<Expressed<N>>,
) -> Expressed<N> {
    let Some(node) = value.node().map(|node| &facts.network().nodes()[node]) else { return Expressed::default() };
    let expressions = if has_filters(node) {
        said.cloned().unwrap_or_default()
    } else {
        let read = |operand: &ValueId| -> ChannelExpressions {
            expressed[*operand].of.iter().map(|(&channel, (of, _))| (channel, of.clone())).collect()
        };
        let read: Vec<ChannelExpressions> = node.operands().iter().map(read).collect();
        carried(facts, value, &read.iter().collect::<Vec<_>>())
    };
    if expressions.is_empty() {
        return Expressed::default();
    }
    let node = ExpressedNode { facts, node, making: NodeAction::new(facts, node), expressed };
    let missing = |(channel, of): (usize, ChannelExpression)| {
        let positions = (0..node.node.channels().positions()).into_par_iter().with_min_len(16);
        let missing = positions.map(|position| node.missing(channel, position, &of));
        let (lower, upper) = missing.map(|at| (at.lower, at.upper)).unzip();
        (channel, (of, Range { lower, upper }))
    };
    Expressed { of: expressions.into_iter().map(missing).collect() }
}

impl<'a> NodeAction<'a> {
    fn new<N: Number>(facts: &ProvedBounds<'a, N>, node: &'a Node) -> Self {
        let (network, operand) = (facts.network(), node.operands()[0]);
        match node.op() {
            Op::Activation(of) => Self::Activated(of, always_on(facts, operand, of)),
            Op::MaxPool(pool) => Self::Largest(pool.windows(network.shape(operand))),
            Op::Sum(_) => Self::Added,
            Op::Concat(concat) => Self::Picked(concat.sources(&network.operand_shapes(node))),
            Op::Affine(map) => match map.action(network.shape(operand)) {
                Action::Move(moves) => {
                    Self::Picked((0..node.shape().elements()).map(|element| (0, moves.source(element))).collect())
                }
                Action::Each(arithmetic, constants) => Self::Changed(arithmetic, constants),
                Action::Sums(sums) => Self::Summed(sums),
            },
        }
    }
}

impl<N: Number> ExpressedNode<'_, N> {
    /// Between what numbers lies what an expression misses at a position.
    fn missing(&self, channel: usize, position: usize, expression: &ChannelExpression) -> Interval<N> {
        let (channels, operand) = (self.node.channels(), self.node.operands()[0]);
        let element = channels.element(channel, position);
        let given = self.expressed[operand].of.get(&channel).map(|(_, errors)| errors);
        match (&self.making, given) {
            (NodeAction::Activated(_, is_on), Some(errors))
                if is_on[channel] && expression.terms.iter().all(|&(other, _)| is_on[other]) =>
            {
                errors.at(position)
            }
            (NodeAction::Activated(of, _), Some(errors)) => {
                let Some(factor) = multiple(expression).filter(|_| of.is_homogeneous()) else { return unknown() };
                let other = channels.element(expression.terms[0].0, position);
                of_activation(of, &times(factor, &self.facts.range(operand).at(other)), &errors.at(position))
            }
            (NodeAction::Largest(windows), Some(errors)) => {
                let read = self.facts.network().channels(operand);
                // What it reads has to be the same positions of the channels in question, and of no others.
                let of = |channel: usize| {
                    let inputs = windows.of(channels.element(channel, position));
                    inputs.map(move |input| (read.of(input) == channel).then(|| read.position(input)))
                };
                let mut all = [channel].into_iter().chain(expression.terms.iter().map(|&(other, _)| other));
                if !all.all(|other| of(other).eq(of(channel)) && of(other).all(|place| place.is_some())) {
                    return unknown();
                }
                let window = windows.of(element).map(|input| errors.at(read.position(input)));
                let joined = window.reduce(|all, at| Interval {
                    lower: all.lower.smaller(&at.lower),
                    upper: all.upper.larger(&at.upper),
                });
                joined.unwrap_or_else(unknown)
            }
            (NodeAction::Activated(..) | NodeAction::Largest(_), None) => unknown(),
            _ => {
                let expressed = self.node.operands().iter().map(|&operand| &self.expressed[operand]).collect();
                let mut form = LinearForm::new(self.facts, self.node.operands(), expressed);
                self.add_element(&mut form, element, 1.0);
                for &(other, factor) in &expression.terms {
                    self.add_element(&mut form, channels.element(other, position), -factor);
                }
                form.add_constant(-1.0, expression.constant);
                form.bounds()
            }
        }
    }

    /// Adds an element that the node makes, times a factor, as a function of what it reads.
    fn add_element(&self, form: &mut LinearForm<'_, N>, element: usize, factor: f64) {
        let (one, nothing) = (N::of(1.0), N::default());
        match &self.making {
            NodeAction::Activated(..) | NodeAction::Largest(_) => {}
            NodeAction::Added => (0..2).for_each(|operand| form.add((operand, element), (&one, &nothing), factor)),
            NodeAction::Picked(sources) => form.add(sources[element], (&one, &nothing), factor),
            NodeAction::Changed(Arithmetic::Add, constants) => {
                form.add((0, element), (&one, &nothing), factor);
                form.add_constant(factor, constants[element]);
            }
            NodeAction::Changed(Arithmetic::Multiply, constants) => {
                form.add((0, element), (&N::of(constants[element]), &nothing), factor);
            }
            NodeAction::Changed(Arithmetic::Divide, constants) => {
                let (over, error) = one.quotient_and_error(&N::of(constants[element]));
                form.add((0, element), (&over, &error), factor);
            }
            NodeAction::Summed(sums) => {
                for (input, weight) in sums.terms(element) {
                    form.add((0, input), (&N::of(weight), &nothing), factor);
                }
                form.add_constant(factor, sums.bias(element));
            }
        }
    }
}

/// Anywhere.
fn unknown<N: Number>() -> Interval<N> {
    Interval { lower: N::of(f64::INFINITY).negative(), upper: N::of(f64::INFINITY) }
}

/// Where a positive multiple of a number between two others lies.
fn times<N: Number>(factor: f64, at: &Interval<N>) -> Interval<N> {
    let most = |end: &N| match factor {
        1.0 => end.clone(),
        _ if end.is_zero() => N::default(),
        _ => above(end.times(&N::of(factor))),
    };
    Interval { lower: most(&at.lower.negative()).negative(), upper: most(&at.upper) }
}
