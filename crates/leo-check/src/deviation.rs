//! How far two networks can be apart, anywhere on a domain.
//!
//! Both networks are written as functions of the same basis ([`crate::forms`]): the input, outputs of some of the first network's units, and
//! what else is said to be the same in both (*anchors*). What is not in the basis is expressed by it. What an expression misses is a new element of the basis, an
//! *error symbol*, whose range is computed here, from ranges that are proved:
//!
//! - a unit of the first network is said to be a constant, or its pre-activation and a constant, or a multiple of another unit. How far `relu(g)`
//!   can be from that follows from the range of `g`: nothing if a unit that is said to be 0 is proved to be off, or one that is said to be its
//!   pre-activation is proved to be on;
//! - a unit of the second network is said to be a multiple of a unit of the first. Or it is said to be its pre-activation, or a
//!   constant: how far it can be from that follows from the bounds of its expression.
//!
//! # Two ReLUs that are nearly the same
//!
//! Let `g'` and `g` be two pre-activations, and `e = g' - g`. Then `relu(g') - relu(g) = λ e` with `λ` from 0 to 1, because a ReLU is nowhere decreasing and brings no
//! two numbers further apart. So the second unit is the first plus `e / 2`, which is an expression like any other and passes on through affine maps,
//! where it may cancel with others, plus a symbol of size `|e| / 2`. Where both units are always on it is the first plus all of `e`, and where
//! both are always off it is the first: what the symbol can be is then nothing. [`near`] takes what leaves least.
//!
//! So nothing that is said can be wrong, only useless: a bad correspondence makes the bound larger. What reaches the outputs is the answer; where an output is
//! made in the same way in both networks ([`crate::same`]), the answer is 0, however its expressions are rounded.

use std::collections::{BTreeMap, HashMap, HashSet};

use leo_network::{Network, Node, ValueId};

use crate::basis::{Basis, Room, Source};
use crate::checker::Facts;
use crate::forms::{Forms, Gap, Multiple, Sum};
use crate::number::Number;
use crate::range::Range;
use crate::same::same_outputs;

/// What a unit of the first network is expressed by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Claim {
    /// It is in the basis.
    Itself,
    /// A constant.
    Constant(f64),
    /// Its pre-activation, plus a constant.
    Linear(f64),
    /// A unit of the same layer that is in the basis has a pre-activation that is this one's, but for a factor: `relu(c g) = c relu(g)`, and for
    /// a negative factor `relu(-c g) = c relu(g) - c g`.
    Multiple {
        /// Which unit.
        of: usize,
        /// What its pre-activation is to be multiplied by.
        factor: f64,
    },
}

/// What a unit of the second network is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Role {
    /// A multiple of a unit of the first network, whatever that is expressed by.
    Copy {
        /// Its layer's node in the first network.
        layer: usize,
        /// Which of its units.
        unit: usize,
        /// More than 0.
        factor: f64,
    },
    /// Its pre-activation, because it is always on.
    Linear,
    /// A constant, such as 0 because it is always off.
    Constant(f64),
}

/// Which parts of two networks belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Correspondence {
    /// Values that are about the same in both networks, besides their inputs.
    pub anchors: Vec<(ValueId, ValueId)>,
    /// For each layer of ReLUs of the first network, what its units are expressed by.
    pub claims: Vec<Vec<Claim>>,
    /// For each layer of ReLUs of the second network, what its units are.
    pub roles: Vec<Vec<Role>>,
}

/// Why a correspondence makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// The networks take other inputs, or give other outputs.
    #[error("the two networks do not have inputs and outputs of the same shapes")]
    Interface,
    /// A layer has another number of units than something is said of.
    #[error("something is said of {said} units of layer {layer}, which has {units}")]
    Layer {
        /// Which of the layers of ReLUs, counted from 0.
        layer: usize,
        /// Its units.
        units: usize,
        /// Those that something is said of.
        said: usize,
    },
    /// Something is said of more layers or fewer than there are.
    #[error("something is said of {said} layers, and there are {layers}")]
    Layers {
        /// How many layers of ReLUs there are.
        layers: usize,
        /// How many something is said of.
        said: usize,
    },
    /// A unit is expressed by one that is not in the basis, or that there is not, or by a factor that makes no sense.
    #[error("unit {unit} of layer {layer} is expressed by what it cannot be expressed by")]
    Expression {
        /// Which layer, counted from 0.
        layer: usize,
        /// Which unit.
        unit: usize,
    },
    /// An anchor is no pair of values of the same size, or a value is in two of them.
    #[error("an anchor that does not fit the networks")]
    Anchor,
    /// The expressions take more memory than they may.
    #[error("the networks are too large to be compared")]
    TooLarge,
}

/// How far each element of each output of `second` can be from what `facts` are about, anywhere on the domain of these.
///
/// # Errors
/// If the correspondence is not about these networks.
pub fn deviation<N: Number>(
    facts: &Facts<'_, N>,
    second: &Network,
    pairs: &Correspondence,
) -> Result<Vec<Vec<N>>, Mismatch> {
    Ok(difference(facts, second, pairs, false)?.deviation)
}

/// What is known of two networks.
#[derive(Clone, Debug)]
pub struct Difference<N> {
    /// How far each element of each output can be apart.
    pub deviation: Vec<Vec<N>>,
    /// Where all values of the second network lie, if that was asked for.
    pub ranges: Vec<Range<N>>,
}

/// The same as [`deviation`], and if that is asked for, where all values of the second network lie.
///
/// # Errors
/// If the correspondence is not about these networks.
pub fn difference<N: Number>(
    facts: &Facts<'_, N>,
    second: &Network,
    pairs: &Correspondence,
    with_ranges: bool,
) -> Result<Difference<N>, Mismatch> {
    let first = facts.network();
    let shapes = |network: &Network| {
        let outputs = network.outputs().iter().map(|&value| network.shape(value).clone());
        [network.input().clone()].into_iter().chain(outputs).collect::<Vec<_>>()
    };
    if shapes(first) != shapes(second) {
        return Err(Mismatch::Interface);
    }
    check_widths(first, pairs.claims.iter().map(Vec::len))?;
    check_widths(second, pairs.roles.iter().map(Vec::len))?;
    check_anchors(first, second, &pairs.anchors)?;
    if is_same(first, second) {
        let nothing = |&value: &ValueId| vec![N::default(); first.shape(value).elements()];
        let deviation = first.outputs().iter().map(nothing).collect();
        return Ok(Difference { deviation, ranges: facts.ranges().to_vec() });
    }
    let mut room = Room::new::<N>();
    let mut basis = Basis::new();
    let expressed = Expressed::new(facts, pairs, &mut basis, &mut room)?;
    let mut ranges = Vec::new();
    let input = with_ranges.then(|| facts.range(ValueId::INPUT).clone());
    ranges.extend(input);
    let made = expressed.of_second(facts, second, pairs, &mut basis, &mut ranges, &mut room)?;
    let outputs = first.outputs().iter().zip(second.outputs());
    let distances = |(a, b): (&ValueId, &ValueId)| {
        let (first, second) = (&expressed.forms[a.index()], &made[b.index()]);
        let row = |row| second.distance(row, Multiple { forms: first, row, factor: 1.0 }, &basis);
        (0..second.len()).map(row).collect::<Vec<N>>()
    };
    let mut deviation: Vec<Vec<N>> = outputs.map(distances).collect();
    settle_rounding(&mut deviation, facts, second);
    Ok(Difference { deviation, ranges })
}

/// How much of its size what is left of an output may be for rounding to have made all of it.
const MERELY_ROUNDED: f64 = 1e-4;

/// Where rounding may be all that is left of how far an output can be apart, looks whether it is made in the same way in both networks: then nothing is.
fn settle_rounding<N: Number>(deviation: &mut [Vec<N>], facts: &Facts<'_, N>, second: &Network) {
    let first = facts.network();
    let sizes: Vec<&Range<N>> = first.outputs().iter().map(|&value| facts.range(value)).collect();
    let is_doubtful = |output: usize, element: usize, far: &N| {
        N::ROUNDS && !far.is_zero() && *far <= sizes[output].magnitude(element).times(&N::of(MERELY_ROUNDED))
    };
    let mut all = deviation
        .iter()
        .enumerate()
        .flat_map(|(output, far)| far.iter().enumerate().map(move |(element, far)| (output, element, far)));
    if !all.any(|(output, element, far)| is_doubtful(output, element, far)) {
        return;
    }
    for (output, (far, same)) in deviation.iter_mut().zip(same_outputs(facts, second)).enumerate() {
        for (element, far) in far.iter_mut().enumerate() {
            if same[element] && is_doubtful(output, element, far) {
                *far = N::default();
            }
        }
    }
}

/// Checks that anchors are pairs of values of the same size, that no value is in two different ones, and that the input is in none: what a value of the second network is
/// expressed by must be one thing.
fn check_anchors(first: &Network, second: &Network, anchors: &[(ValueId, ValueId)]) -> Result<(), Mismatch> {
    let made = |network: &Network, value: ValueId| value.node().is_some_and(|node| node < network.nodes().len());
    let (mut mine, mut theirs) = (HashSet::new(), HashSet::new());
    for &(a, b) in anchors.iter().collect::<HashSet<_>>() {
        let fit = made(first, a) && made(second, b) && first.shape(a).elements() == second.shape(b).elements();
        if !fit || !mine.insert(a) || !theirs.insert(b) {
            return Err(Mismatch::Anchor);
        }
    }
    Ok(())
}

/// Whether two networks are the same, but for the names of their nodes.
fn is_same(first: &Network, second: &Network) -> bool {
    let is_same_node = |(a, b): (&Node, &Node)| a.op() == b.op() && a.operands() == b.operands();
    first.outputs() == second.outputs()
        && first.nodes().len() == second.nodes().len()
        && first.nodes().iter().zip(second.nodes()).all(is_same_node)
}

fn check_widths(network: &Network, said: impl ExactSizeIterator<Item = usize>) -> Result<(), Mismatch> {
    let layers: Vec<usize> = network.relu_layers().collect();
    if layers.len() != said.len() {
        return Err(Mismatch::Layers { layers: layers.len(), said: said.len() });
    }
    for (layer, (node, said)) in layers.into_iter().zip(said).enumerate() {
        let units = network.nodes()[node].shape().elements();
        if units != said {
            return Err(Mismatch::Layer { layer, units, said });
        }
    }
    Ok(())
}

/// The first network, expressed by the basis.
struct Expressed<N> {
    /// What each value is. An anchor is in the basis.
    forms: Vec<Forms<N>>,
    /// What each anchor was before it was put into the basis.
    anchors: BTreeMap<ValueId, Forms<N>>,
}

impl<N: Number> Expressed<N> {
    fn new(
        facts: &Facts<'_, N>,
        pairs: &Correspondence,
        basis: &mut Basis<N>,
        room: &mut Room,
    ) -> Result<Self, Mismatch> {
        let network = facts.network();
        let input = Source::Value(ValueId::INPUT.index());
        basis.insert(input, facts.range(ValueId::INPUT).clone(), 0);
        let mut forms = vec![Forms::identity(input, network.input().elements())];
        let is_anchor: HashSet<ValueId> = pairs.anchors.iter().map(|&(anchor, _)| anchor).collect();
        let mut anchors = BTreeMap::new();
        let mut layers = pairs.claims.iter().enumerate();
        let mut depth = 0;
        for (index, node) in network.nodes().iter().enumerate() {
            let value = network.result_of(index);
            let source = Source::Value(value.index());
            let mut made = if node.op().is_relu() {
                let (layer, claims) = layers.next().expect("as many as there are layers");
                depth = layer + 1;
                let range = facts.range(node.operands()[0]);
                basis.insert(source, range.positive(), depth);
                let units = Units {
                    claims,
                    given: &forms[node.operands()[0].index()],
                    own: &Forms::identity(source, claims.len()),
                    range,
                };
                let claimed = |unit| units.claimed(unit, basis).ok_or(Mismatch::Expression { layer, unit });
                let outputs = (0..claims.len()).map(claimed).collect::<Result<Vec<_>, _>>()?;
                Forms::collected(&outputs, Source::Claim(index), depth, basis, room).ok_or(Mismatch::TooLarge)?
            } else {
                let operands: Vec<&Forms<N>> = node.operands().iter().map(|operand| &forms[operand.index()]).collect();
                Forms::of_node(network, node, &operands, basis, room).ok_or(Mismatch::TooLarge)?
            };
            if is_anchor.contains(&value) {
                basis.insert(source, facts.range(value).clone(), depth);
                let identity = Forms::identity(source, made.len());
                anchors.insert(value, std::mem::replace(&mut made, identity));
            }
            forms.push(made);
        }
        Ok(Self { forms, anchors })
    }

    /// What each value of the second network is. Those that nothing reads any more are left out. If the range of the input is there, so are those of all values then.
    fn of_second(
        &self,
        facts: &Facts<'_, N>,
        second: &Network,
        pairs: &Correspondence,
        basis: &mut Basis<N>,
        ranges: &mut Vec<Range<N>>,
        room: &mut Room,
    ) -> Result<Vec<Forms<N>>, Mismatch> {
        let mut forms = vec![self.forms[ValueId::INPUT.index()].clone()];
        let last_reader = last_readers(second);
        let anchors: HashMap<ValueId, ValueId> = pairs.anchors.iter().map(|&(anchor, value)| (value, anchor)).collect();
        let mut layers = pairs.roles.iter().enumerate();
        let mut depth = 0;
        for (index, node) in second.nodes().iter().enumerate() {
            let value = second.result_of(index);
            let mut made = if node.op().is_relu() {
                let (layer, roles) = layers.next().expect("as many as there are layers");
                depth = layer + 1;
                let given = &forms[node.operands()[0].index()];
                let played = |(unit, &role): (usize, &Role)| {
                    self.played(facts, given, unit, role, basis).ok_or(Mismatch::Expression { layer, unit })
                };
                let outputs = roles.iter().enumerate().map(played).collect::<Result<Vec<_>, _>>()?;
                Forms::collected(&outputs, Source::Role(index), depth, basis, room).ok_or(Mismatch::TooLarge)?
            } else {
                let operands: Vec<&Forms<N>> = node.operands().iter().map(|operand| &forms[operand.index()]).collect();
                Forms::of_node(second, node, &operands, basis, room).ok_or(Mismatch::TooLarge)?
            };
            if let Some(anchor) = anchors.get(&value) {
                let difference = |row: usize| self.anchored(&made, *anchor, row);
                let sums: Vec<_> = (0..made.len()).map(difference).collect();
                made = Forms::collected(&sums, Source::Anchor(index), depth, basis, room).ok_or(Mismatch::TooLarge)?;
            }
            if !ranges.is_empty() {
                let mut range = Range::of_node(second, index, ranges);
                for row in 0..made.len() {
                    let (least, most) = made.bounds(row, basis);
                    range.tighten(row, Some(least), Some(most));
                }
                ranges.push(range);
            }
            forms.push(made);
            for operand in node.operands().iter().filter(|operand| last_reader[operand.index()] == Some(index)) {
                let read = std::mem::replace(&mut forms[operand.index()], Forms::nothing());
                room.give_back(read.size());
            }
        }
        Ok(forms)
    }

    /// What a row of an anchor is in the second network: the anchor, and what it differs by.
    fn anchored<'f>(&'f self, made: &'f Forms<N>, anchor: ValueId, row: usize) -> Sum<'f, N> {
        let [identity, aside] = [&self.forms[anchor.index()], &self.anchors[&anchor]];
        let of_row = |forms| Multiple { forms, row, factor: 1.0 };
        let gap = Gap { of: of_row(made), from: of_row(aside), part: 1.0 };
        Sum { gap: Some(gap), ..Sum::exactly(vec![of_row(identity)]) }
    }

    /// What a unit of the second network gives, if it can have this role.
    fn played<'f>(
        &'f self,
        facts: &Facts<'_, N>,
        given: &'f Forms<N>,
        unit: usize,
        role: Role,
        basis: &Basis<N>,
    ) -> Option<Sum<'f, N>> {
        let first = facts.network();
        match role {
            Role::Linear => {
                let (least, most) = given.bounds(unit, basis);
                let itself = Sum::exactly(vec![Multiple { forms: given, row: unit, factor: 1.0 }]);
                let [least, most] = [most, least].map(|bound| bound.negative().positive_part());
                Some(Sum { rest: (least, most), ..itself })
            }
            Role::Constant(constant) if constant.is_finite() => {
                let (least, most) = given.bounds(unit, basis);
                let rest = less(&least.positive_part(), &most.positive_part(), constant);
                Some(Sum { constant, rest, ..Sum::exactly(Vec::new()) })
            }
            Role::Copy { layer, unit: copied, factor } => {
                let node = first.nodes().get(layer).filter(|node| node.op().is_relu())?;
                let theirs = &self.forms[node.operands()[0].index()];
                let can_be = copied < theirs.len() && factor > 0.0 && factor.is_finite();
                can_be.then(|| {
                    let result = first.result_of(layer);
                    let output = self.anchors.get(&result).unwrap_or(&self.forms[result.index()]);
                    let bounds = within(facts.range(node.operands()[0]), theirs, copied, basis);
                    let pair = Pair {
                        mine: Multiple { forms: given, row: unit, factor: 1.0 },
                        theirs: Multiple { forms: theirs, row: copied, factor },
                        bounds: [given.bounds(unit, basis), scaled(&bounds, factor)],
                    };
                    let (gap, rest) = pair.gap(basis);
                    let copy = Sum::exactly(vec![Multiple { forms: output, row: copied, factor }]);
                    Sum { gap, rest, ..copy }
                })
            }
            Role::Constant(_) => None,
        }
    }
}

/// For each value of a network, the last node that reads it; none if it is an output, or if nothing does.
fn last_readers(network: &Network) -> Vec<Option<usize>> {
    let mut last = vec![None; network.nodes().len() + 1];
    for (index, node) in network.nodes().iter().enumerate() {
        node.operands().iter().for_each(|operand| last[operand.index()] = Some(index));
    }
    network.outputs().iter().for_each(|output| last[output.index()] = None);
    last
}

/// Between what a number lies.
type Bounds<N> = (N, N);

/// Where a pre-activation can lie: two bounds are known on each side, by its range and by its expression.
fn within<N: Number>(range: &Range<N>, forms: &Forms<N>, unit: usize, basis: &Basis<N>) -> Bounds<N> {
    let (least, most) = forms.bounds(unit, basis);
    (range.lower[unit].larger(&least), range.upper[unit].smaller(&most))
}

/// Two pre-activations that are said to be the same.
struct Pair<'a, N> {
    mine: Multiple<'a, N>,
    theirs: Multiple<'a, N>,
    /// Where each of them lies.
    bounds: [Bounds<N>; 2],
}

impl<'a, N: Number> Pair<'a, N> {
    /// How far the ReLU of the first is from that of the second: a part of the difference of the pre-activations, and between what the rest lies.
    fn gap(&self, basis: &Basis<N>) -> (Option<Gap<'a, N>>, Bounds<N>) {
        let error = self.mine.forms.difference(self.mine.row, self.theirs, basis);
        let (part, rest) = near(&error, &self.bounds[0], &self.bounds[1]);
        let gap = Gap { of: self.mine, from: self.theirs, part };
        ((part > 0.0).then_some(gap), rest)
    }
}

/// For two numbers that lie between bounds, and whose difference `e` does: a part of `e`, and between what the difference of their ReLUs lies without that
/// part. Of nothing, half and all the one that leaves least.
fn near<N: Number>(error: &Bounds<N>, mine: &Bounds<N>, theirs: &Bounds<N>) -> (f64, Bounds<N>) {
    let on = |bounds: &Bounds<N>| bounds.1.positive_part();
    let off = |bounds: &Bounds<N>| bounds.0.negative().positive_part();
    let (most, least) = (on(error), off(error));
    let half = most.larger(&least).times(&N::of(0.5)).up();
    // The difference of the ReLUs lies between 0 and `e`. Without all of `e` it is the difference of what the two numbers are below 0, with the other sign.
    let all = (off(theirs).smaller(&most).negative(), off(mine).smaller(&least));
    let nothing = (on(theirs).smaller(&least).negative(), on(mine).smaller(&most));
    let width = |bounds: &Bounds<N>| bounds.1.minus(&bounds.0);
    let mut best = (0.5, (half.negative(), half));
    for other in [(0.0, nothing), (1.0, all)] {
        // Where one is as good as another, which is common, rounding must not decide.
        if width(&other.1) < width(&best.1).times(&N::of(CLEARLY_LESS)) {
            best = other;
        }
    }
    // Where nothing differs, there is nothing to take a part of.
    if most.is_zero() && least.is_zero() { (0.0, (N::default(), N::default())) } else { best }
}

/// What part of a number is clearly less than it.
const CLEARLY_LESS: f64 = 1.0 - 1.0 / (1 << 20) as f64;

/// Bounds of a number times a factor.
fn scaled<N: Number>(bounds: &Bounds<N>, factor: f64) -> Bounds<N> {
    if factor == 1.0 {
        return bounds.clone();
    }
    let (least, most) = if factor > 0.0 { (&bounds.0, &bounds.1) } else { (&bounds.1, &bounds.0) };
    let times = |bound: &N, factor: f64| match bound.is_zero() {
        true => N::default(),
        false => bound.times(&N::of(factor)).up(),
    };
    (times(least, -factor).negative(), times(most, factor))
}

/// A layer of the first network, and what is said of its units.
struct Units<'a, N> {
    claims: &'a [Claim],
    /// The pre-activations.
    given: &'a Forms<N>,
    /// The units themselves, as elements of the basis.
    own: &'a Forms<N>,
    /// Proved ranges of the pre-activations.
    range: &'a Range<N>,
}

impl<'a, N: Number> Units<'a, N> {
    /// What a unit gives, in terms of the basis, if that is a claim that can be made.
    fn claimed(&self, unit: usize, basis: &Basis<N>) -> Option<Sum<'a, N>> {
        let linear = |row: usize, factor: f64| Multiple { forms: self.given, row, factor };
        let element = |row: usize, factor: f64| Multiple { forms: self.own, row, factor };
        let bounds = |unit: usize| within(self.range, self.given, unit, basis);
        match self.claims[unit] {
            Claim::Itself => Some(Sum::exactly(vec![element(unit, 1.0)])),
            Claim::Constant(constant) if constant.is_finite() => {
                let (lower, upper) = bounds(unit);
                let rest = less(&lower.positive_part(), &upper.positive_part(), constant);
                Some(Sum { constant, rest, ..Sum::exactly(Vec::new()) })
            }
            Claim::Linear(constant) if constant.is_finite() => {
                let (lower, upper) = bounds(unit);
                let [least, most] = [upper, lower].map(|bound| bound.negative().positive_part());
                let rest = less(&least, &most, constant);
                Some(Sum { constant, rest, ..Sum::exactly(vec![linear(unit, 1.0)]) })
            }
            Claim::Multiple { of, factor } => {
                if *self.claims.get(of)? != Claim::Itself || factor == 0.0 || !factor.is_finite() {
                    return None;
                }
                let pair = Pair {
                    mine: linear(unit, 1.0),
                    theirs: linear(of, factor),
                    bounds: [bounds(unit), scaled(&bounds(of), factor)],
                };
                let (gap, rest) = pair.gap(basis);
                let mut terms = vec![element(of, factor.abs())];
                if factor < 0.0 {
                    terms.push(linear(of, factor));
                }
                Some(Sum { gap, rest, ..Sum::exactly(terms) })
            }
            Claim::Constant(_) | Claim::Linear(_) => None,
        }
    }
}

/// Bounds of a number that lies between others, less a constant.
fn less<N: Number>(least: &N, most: &N, constant: f64) -> Bounds<N> {
    let constant = N::of(constant);
    let up = |difference: N| if difference.is_zero() { difference } else { difference.up() };
    (up(constant.minus(least)).negative(), up(most.minus(&constant)))
}
