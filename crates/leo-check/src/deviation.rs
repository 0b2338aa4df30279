//! How far two networks can be apart, anywhere on a domain.
//!
//! Both networks are written as functions of the same basis ([`crate::forms`]): the input, outputs of some of the first network's units, and
//! what else is said to be the same in both (*anchors*). What is not in the basis is expressed by it. What an expression misses is a new element of the basis, an
//! *error symbol*, whose range is computed here, from ranges that are proved:
//!
//! - a unit of the first network is said to be an affine function of its pre-activation `g`, or a multiple of another
//!   unit. How far `f(g)` can be from that follows from the range of `g`: nothing if a ReLU that is said to be 0 is
//!   proved to be off, or one that is said to be its pre-activation is proved to be on;
//! - a unit of the second network is said to be a multiple of a unit of the first. Or it is said to be an affine
//!   function of its pre-activation: how far it can be from that follows from the bounds of its expression.
//!
//! # Two units that are nearly the same
//!
//! Let `g'` and `g` be two pre-activations, and `e = g' - g`. Then `f(g') - f(g) = λ e` with `λ` between the least and
//! the greatest slope of the pieces that they touch: for a ReLU from 0 to 1. So the second unit is the first plus `e /
//! 2`, which is an expression like any other and passes on through affine maps, where it may cancel with others, plus a
//! symbol of size `|e| / 2`. Where both units are always on it is the first plus all of `e`, and where both are always
//! off it is the first: what the symbol can be is then nothing. [`near`] takes what leaves least.
//!
//! So nothing that is said can be wrong, only useless: a bad correspondence makes the bound larger. What reaches the outputs is the answer; where an output is
//! made in the same way in both networks ([`crate::same`]), the answer is 0, however its expressions are rounded.

use std::collections::{BTreeMap, HashMap, HashSet};

use leo_network::activation::Piece;
use leo_network::{Activation, LayerId, Network, UnitId, ValueId, ValueMap, product_and_error, sum_and_error};

use crate::activation::{beyond, touched};
use crate::basis::{Basis, BasisSource, MemoryBudget};
use crate::checker::ProvedBounds;
use crate::forms::{AffineForms, Gap, Multiple, UnitForm};
use crate::number::Number;
use crate::range::{Interval, Range};
use crate::same::same_outputs;

/// What a unit is expressed by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Expression<U = UnitId> {
    /// A unit of the first network that is in the basis.
    Itself,
    /// Its pre-activation times a slope, plus a constant: what it is as long as it stays on one piece.
    Affine {
        /// 0 for a constant.
        slope: f64,
        /// 0 where it is one of a ReLU's pieces.
        constant: f64,
    },
    /// Another unit of the first network has a pre-activation that is this one's, but for a factor: `relu(c g) = c
    /// relu(g)`, and for a negative factor `relu(-c g) = c relu(g) - c g`. For a unit of the first network it is one of
    /// the same layer that is in the basis; for one of the second, any unit, whatever that is expressed by, and the
    /// factor is more than 0.
    Multiple {
        /// Which unit.
        of: U,
        /// What its pre-activation is to be multiplied by.
        factor: f64,
    },
}

impl<U> Expression<U> {
    /// A constant.
    pub const fn constant(constant: f64) -> Self {
        Self::Affine { slope: 0.0, constant }
    }

    /// The pre-activation, plus a constant.
    pub const fn linear(constant: f64) -> Self {
        Self::Affine { slope: 1.0, constant }
    }

    /// What a unit is that stays on a piece.
    pub fn of_piece(piece: &Piece) -> Self {
        Self::Affine { slope: piece.slope, constant: piece.constant }
    }

    /// A unit of the first network, as it is.
    pub fn copy(of: U) -> Self {
        Self::Multiple { of, factor: 1.0 }
    }

    /// The same by units that are called otherwise.
    pub fn map<V>(self, name: impl Fn(U) -> V) -> Expression<V> {
        match self {
            Self::Itself => Expression::Itself,
            Self::Affine { slope, constant } => Expression::Affine { slope, constant },
            Self::Multiple { of, factor } => Expression::Multiple { of: name(of), factor },
        }
    }
}

/// Which parts of two networks belong together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Correspondence {
    /// Values that are about the same in both networks, besides their inputs.
    pub anchors: Vec<(ValueId, ValueId)>,
    /// For each layer of the first network, what its units are expressed by.
    pub claims: Vec<Vec<Expression>>,
    /// For each layer of the second network, what its units are expressed by.
    pub roles: Vec<Vec<Expression>>,
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
        /// Which of the layers, counted from 0.
        layer: usize,
        /// Its units.
        units: usize,
        /// Those that something is said of.
        said: usize,
    },
    /// Something is said of more layers or fewer than there are.
    #[error("something is said of {said} layers, and there are {layers}")]
    Layers {
        /// How many layers there are.
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
    facts: &ProvedBounds<'_, N>,
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
    pub ranges: ValueMap<Range<N>>,
}

/// The same as [`deviation`], and if that is asked for, where all values of the second network lie.
///
/// # Errors
/// If the correspondence is not about these networks.
pub fn difference<N: Number>(
    facts: &ProvedBounds<'_, N>,
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
    if first.is_alike(second) {
        let nothing = |&value: &ValueId| vec![N::default(); first.shape(value).elements()];
        let deviation = first.outputs().iter().map(nothing).collect();
        return Ok(Difference { deviation, ranges: facts.ranges().clone() });
    }
    let mut room = MemoryBudget::new::<N>();
    let mut basis = Basis::new();
    let expressed = Expressed::new(facts, pairs, &mut basis, &mut room)?;
    let mut ranges = ValueMap::default();
    let input = with_ranges.then(|| facts.range(ValueId::INPUT).clone());
    ranges.extend(input);
    let made = expressed.of_second(facts, second, pairs, &mut basis, &mut ranges, &mut room)?;
    let outputs = first.outputs().iter().zip(second.outputs());
    let distances = |(a, b): (&ValueId, &ValueId)| {
        let (first, second) = (&expressed.forms[*a], &made[*b]);
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
fn settle_rounding<N: Number>(deviation: &mut [Vec<N>], facts: &ProvedBounds<'_, N>, second: &Network) {
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

fn check_widths(network: &Network, said: impl ExactSizeIterator<Item = usize>) -> Result<(), Mismatch> {
    let layers = network.layers().len();
    if layers != said.len() {
        return Err(Mismatch::Layers { layers, said: said.len() });
    }
    for (layer, (units, said)) in network.hidden().into_iter().zip(said).enumerate() {
        if units != said {
            return Err(Mismatch::Layer { layer, units, said });
        }
    }
    Ok(())
}

/// The first network, expressed by the basis.
struct Expressed<N> {
    /// What each value is. An anchor is in the basis.
    forms: ValueMap<AffineForms<N>>,
    /// What each anchor was before it was put into the basis.
    anchors: BTreeMap<ValueId, AffineForms<N>>,
}

impl<N: Number> Expressed<N> {
    fn new(
        facts: &ProvedBounds<'_, N>,
        pairs: &Correspondence,
        basis: &mut Basis<N>,
        room: &mut MemoryBudget,
    ) -> Result<Self, Mismatch> {
        let network = facts.network();
        let input = BasisSource::Value(ValueId::INPUT);
        basis.insert(input, facts.range(ValueId::INPUT).clone(), 0);
        let mut forms = ValueMap::from(vec![AffineForms::identity(input, network.input().elements())]);
        let is_anchor: HashSet<ValueId> = pairs.anchors.iter().map(|&(anchor, _)| anchor).collect();
        let mut anchors = BTreeMap::new();
        let mut depth = 0;
        for (index, node) in network.nodes().iter().enumerate() {
            let value = network.result_of(index);
            let source = BasisSource::Value(value);
            let mut made = if let Some(layer) = network.layer_at(index) {
                let (of, claims) = (network.activation(layer), &pairs.claims[layer.index()]);
                depth = layer.index() + 1;
                let range = facts.range(node.operands()[0]);
                basis.insert(source, range.activated(of), depth);
                let own = &AffineForms::identity(source, claims.len());
                let units = Units { layer, of, claims, given: &forms[node.operands()[0]], own, range };
                let impossible = |unit| Mismatch::Expression { layer: layer.index(), unit };
                let claimed = |unit| units.claimed(unit, basis).ok_or(impossible(unit));
                let outputs = (0..claims.len()).map(claimed).collect::<Result<Vec<_>, _>>()?;
                AffineForms::collected(&outputs, BasisSource::Claim(layer), depth, basis, room)
                    .ok_or(Mismatch::TooLarge)?
            } else {
                let operands: Vec<&AffineForms<N>> = node.operands().iter().map(|operand| &forms[*operand]).collect();
                AffineForms::of_node(network, node, &operands, basis, room).ok_or(Mismatch::TooLarge)?
            };
            if is_anchor.contains(&value) {
                basis.insert(source, facts.range(value).clone(), depth);
                let identity = AffineForms::identity(source, made.len());
                anchors.insert(value, std::mem::replace(&mut made, identity));
            }
            forms.push(made);
        }
        Ok(Self { forms, anchors })
    }

    /// What each value of the second network is. Those that nothing reads any more are left out. If the range of the input is there, so are those of all values then.
    fn of_second(
        &self,
        facts: &ProvedBounds<'_, N>,
        second: &Network,
        pairs: &Correspondence,
        basis: &mut Basis<N>,
        ranges: &mut ValueMap<Range<N>>,
        room: &mut MemoryBudget,
    ) -> Result<ValueMap<AffineForms<N>>, Mismatch> {
        let mut forms = ValueMap::from(vec![self.forms[ValueId::INPUT].clone()]);
        let last_reader = last_readers(second);
        let anchors: HashMap<ValueId, ValueId> = pairs.anchors.iter().map(|&(anchor, value)| (value, anchor)).collect();
        let mut depth = 0;
        for (index, node) in second.nodes().iter().enumerate() {
            let value = second.result_of(index);
            let mut made = if let Some(layer) = second.layer_at(index) {
                depth = layer.index() + 1;
                let (given, of) = (&forms[node.operands()[0]], second.activation(layer));
                let played = |(unit, &role): (usize, &Expression)| {
                    let impossible = Mismatch::Expression { layer: layer.index(), unit };
                    self.played(facts, of, given, unit, role, basis).ok_or(impossible)
                };
                let outputs =
                    pairs.roles[layer.index()].iter().enumerate().map(played).collect::<Result<Vec<_>, _>>()?;
                AffineForms::collected(&outputs, BasisSource::Role(layer), depth, basis, room)
                    .ok_or(Mismatch::TooLarge)?
            } else {
                let operands: Vec<&AffineForms<N>> = node.operands().iter().map(|operand| &forms[*operand]).collect();
                AffineForms::of_node(second, node, &operands, basis, room).ok_or(Mismatch::TooLarge)?
            };
            if let Some(anchor) = anchors.get(&value) {
                let difference = |row: usize| self.anchored(&made, *anchor, row);
                let sums: Vec<_> = (0..made.len()).map(difference).collect();
                made = AffineForms::collected(&sums, BasisSource::Anchor(value), depth, basis, room)
                    .ok_or(Mismatch::TooLarge)?;
            }
            if !ranges.is_empty() {
                let mut range = Range::of_node(second, index, ranges);
                for row in 0..made.len() {
                    let Interval { lower, upper } = made.bounds(row, basis);
                    range.tighten(row, Some(lower), Some(upper));
                }
                ranges.push(range);
            }
            forms.push(made);
            for operand in node.operands().iter().filter(|operand| last_reader[**operand] == Some(index)) {
                let read = std::mem::replace(&mut forms[*operand], AffineForms::nothing());
                room.give_back(read.size());
            }
        }
        Ok(forms)
    }

    /// What a row of an anchor is in the second network: the anchor, and what it differs by.
    fn anchored<'f>(&'f self, made: &'f AffineForms<N>, anchor: ValueId, row: usize) -> UnitForm<'f, N> {
        let [identity, aside] = [&self.forms[anchor], &self.anchors[&anchor]];
        let of_row = |forms| Multiple { forms, row, factor: 1.0 };
        let gap = Gap { of: of_row(made), from: of_row(aside), part: 1.0 };
        UnitForm { gap: Some(gap), ..UnitForm::exactly(vec![of_row(identity)]) }
    }

    /// What a unit of the second network gives, if it can have this role.
    fn played<'f>(
        &'f self,
        facts: &ProvedBounds<'_, N>,
        of: &Activation,
        given: &'f AffineForms<N>,
        unit: usize,
        role: Expression,
        basis: &Basis<N>,
    ) -> Option<UnitForm<'f, N>> {
        let (copied, factor) = match role {
            Expression::Itself => return None,
            Expression::Affine { slope, constant } => {
                return affine(
                    of,
                    Multiple { forms: given, row: unit, factor: slope },
                    constant,
                    given.bounds(unit, basis),
                );
            }
            Expression::Multiple { of, factor } => (of, factor),
        };
        let first = facts.network();
        let (layer, row) = (first.layer(copied.layer.index())?, copied.unit);
        let is_same = first.activation(layer) == of && (factor == 1.0 || of.is_homogeneous());
        let theirs = &self.forms[first.pre_activation(layer)];
        let can_be = is_same && row < theirs.len() && factor > 0.0 && factor.is_finite();
        can_be.then(|| {
            let result = first.output_of(layer);
            let output = self.anchors.get(&result).unwrap_or(&self.forms[result]);
            let bounds = within(facts.range(first.pre_activation(layer)), theirs, row, basis);
            let pair = PreActivationPair {
                of,
                mine: Multiple { forms: given, row: unit, factor: 1.0 },
                theirs: Multiple { forms: theirs, row, factor },
                bounds: [given.bounds(unit, basis), scaled(&bounds, factor)],
            };
            let (gap, rest) = pair.gap(basis);
            UnitForm { gap, rest, ..UnitForm::exactly(vec![Multiple { forms: output, row, factor }]) }
        })
    }
}

/// A multiple of a unit's pre-activation, which has these bounds, and a constant, in place of the unit.
fn affine<'f, N: Number>(
    of: &Activation,
    linear: Multiple<'f, N>,
    constant: f64,
    bounds: Interval<N>,
) -> Option<UnitForm<'f, N>> {
    (linear.factor.is_finite() && constant.is_finite()).then(|| {
        let rest = beyond(of, &bounds, linear.factor, constant);
        let terms = if linear.factor == 0.0 { Vec::new() } else { vec![linear] };
        UnitForm { constant, rest, ..UnitForm::exactly(terms) }
    })
}

/// For each value of a network, the last node that reads it; none if it is an output, or if nothing does.
fn last_readers(network: &Network) -> ValueMap<Option<usize>> {
    let mut last = ValueMap::from(vec![None; network.nodes().len() + 1]);
    for (index, node) in network.nodes().iter().enumerate() {
        node.operands().iter().for_each(|operand| last[*operand] = Some(index));
    }
    network.outputs().iter().for_each(|output| last[*output] = None);
    last
}

/// Where a pre-activation can lie: two bounds are known on each side, by its range and by its expression.
fn within<N: Number>(range: &Range<N>, forms: &AffineForms<N>, unit: usize, basis: &Basis<N>) -> Interval<N> {
    let Interval { lower, upper } = forms.bounds(unit, basis);
    Interval { lower: range.lower[unit].larger(&lower), upper: range.upper[unit].smaller(&upper) }
}

/// Two pre-activations that are said to be the same.
struct PreActivationPair<'a, 'n, N> {
    of: &'n Activation,
    mine: Multiple<'a, N>,
    theirs: Multiple<'a, N>,
    /// Where each of them lies.
    bounds: [Interval<N>; 2],
}

impl<'a, N: Number> PreActivationPair<'a, '_, N> {
    /// How far the unit of the first is from that of the second: a part of the difference of the pre-activations, and
    /// between what the rest lies.
    fn gap(&self, basis: &Basis<N>) -> (Option<Gap<'a, N>>, Interval<N>) {
        let error = self.mine.forms.difference(self.mine.row, self.theirs, basis);
        let (part, rest) = near(self.of, &error, &self.bounds[0], &self.bounds[1]);
        let gap = Gap { of: self.mine, from: self.theirs, part };
        ((part != 0.0).then_some(gap), rest)
    }
}

/// For two numbers that lie between bounds, and whose difference `e` does: a part of `e`, and between what the
/// difference of what an activation makes of them lies without that part. Of the slopes of the pieces that they touch
/// and the one in the middle, the one that leaves least.
fn near<N: Number>(
    of: &Activation,
    error: &Interval<N>,
    mine: &Interval<N>,
    theirs: &Interval<N>,
) -> (f64, Interval<N>) {
    let (most, least) = (error.upper.positive_part(), error.lower.negative().positive_part());
    if most.is_zero() && least.is_zero() {
        // Where nothing differs, there is nothing to take a part of.
        return (0.0, Interval { lower: N::default(), upper: N::default() });
    }
    let [first, last] = touched(of, &mine.lower.smaller(&theirs.lower), &mine.upper.larger(&theirs.upper));
    let slopes: Vec<f64> = of.pieces()[first..=last].iter().map(|piece| piece.slope).collect();
    let steepest = slopes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let flattest = slopes.iter().copied().fold(f64::INFINITY, f64::min);
    let middle = flattest / 2.0 + steepest / 2.0;
    // Without a part of `e`, what is left is a multiple of it: by the steepest slope less the part at the most, and by
    // the flattest at the least.
    let left = |part: f64| {
        let [more, fewer] = [(steepest, part), (part, flattest)].map(|(a, b)| less(a, b));
        let largest = |one: &N, other: &N| times(more, one).larger(&times(fewer, other));
        Interval { lower: largest(&least, &most).negative(), upper: largest(&most, &least) }
    };
    let width = |of: &Interval<N>| of.upper.minus(&of.lower);
    let mut best = (middle, left(middle));
    for part in slopes {
        // It is no more than what each of the two numbers alone can be off by, either.
        let [mine, theirs] = [mine, theirs].map(|at| beyond(of, at, part, 0.0));
        let Interval { lower, upper } = left(part);
        let far = |a: &N, b: &N| if b.is_zero() { a.clone() } else { a.minus(b).up() };
        let lower = far(&theirs.upper, &mine.lower).smaller(&lower.negative()).negative();
        let other = Interval { lower, upper: far(&mine.upper, &theirs.lower).smaller(&upper) };
        // Where one is as good as another, which is common, rounding must not decide.
        if width(&other) < width(&best.1).times(&N::of(CLEARLY_LESS)) {
            best = (part, other);
        }
    }
    best
}

/// What part of a number is clearly less than it.
const CLEARLY_LESS: f64 = 1.0 - 1.0 / (1 << 20) as f64;

/// How much a number is more than another, rounded up.
fn less(a: f64, b: f64) -> f64 {
    let (difference, missing) = sum_and_error(a, -b);
    if missing == 0.0 { difference } else { difference.next_up() }
}

/// A number that is not negative times a factor that is not, rounded up.
fn times<N: Number>(factor: f64, number: &N) -> N {
    match factor {
        0.0 => N::default(),
        1.0 => number.clone(),
        _ if number.is_zero() => N::default(),
        _ => number.times(&N::of(factor)).up(),
    }
}

/// Bounds of a number times a factor.
fn scaled<N: Number>(bounds: &Interval<N>, factor: f64) -> Interval<N> {
    if factor == 1.0 {
        return bounds.clone();
    }
    let (lower, upper) = (&bounds.lower, &bounds.upper);
    let (least, most) = if factor > 0.0 { (lower, upper) } else { (upper, lower) };
    let times = |bound: &N, factor: f64| match bound.is_zero() {
        true => N::default(),
        false => bound.times(&N::of(factor)).up(),
    };
    Interval { lower: times(least, -factor).negative(), upper: times(most, factor) }
}

/// A layer of the first network, and what is said of its units.
struct Units<'a, N> {
    layer: LayerId,
    of: &'a Activation,
    claims: &'a [Expression],
    /// The pre-activations.
    given: &'a AffineForms<N>,
    /// The units themselves, as elements of the basis.
    own: &'a AffineForms<N>,
    /// Proved ranges of the pre-activations.
    range: &'a Range<N>,
}

impl<'a, N: Number> Units<'a, N> {
    /// What a unit gives, in terms of the basis, if that is a claim that can be made.
    fn claimed(&self, unit: usize, basis: &Basis<N>) -> Option<UnitForm<'a, N>> {
        let linear = |row: usize, factor: f64| Multiple { forms: self.given, row, factor };
        let element = |row: usize, factor: f64| Multiple { forms: self.own, row, factor };
        let bounds = |unit: usize| within(self.range, self.given, unit, basis);
        match self.claims[unit] {
            Expression::Itself => Some(UnitForm::exactly(vec![element(unit, 1.0)])),
            Expression::Affine { slope, constant } => affine(self.of, linear(unit, slope), constant, bounds(unit)),
            Expression::Multiple { of: UnitId { layer, unit: of }, factor } => {
                let is_in_basis = layer == self.layer && *self.claims.get(of)? == Expression::Itself;
                if !is_in_basis || factor == 0.0 || !factor.is_finite() || !self.of.is_homogeneous() {
                    return None;
                }
                let pair = PreActivationPair {
                    of: self.of,
                    mine: linear(unit, 1.0),
                    theirs: linear(of, factor),
                    bounds: [bounds(unit), scaled(&bounds(of), factor)],
                };
                let (gap, rest) = pair.gap(basis);
                let mut terms = vec![element(of, factor.abs())];
                if factor < 0.0 {
                    let slopes = self.of.pieces().iter().map(|piece| piece.slope);
                    let (slopes, missing) = slopes.fold((0.0, 0.0), |(sum, lost), slope| {
                        let (sum, missing) = sum_and_error(sum, slope);
                        (sum, lost + missing)
                    });
                    let (product, rounding) = product_and_error(factor, slopes);
                    // Nothing is rounded here for a ReLU, and elsewhere nothing may be.
                    terms.push((missing == 0.0 && rounding == 0.0).then(|| linear(of, product))?);
                }
                Some(UnitForm { gap, rest, ..UnitForm::exactly(terms) })
            }
        }
    }
}
