//! How far two networks can be apart, anywhere on a domain.
//!
//! Both networks are written as functions of the same basis ([`crate::forms`]): the input, outputs of some of the first network's units, and
//! what else is said to be the same in both (*anchors*). What is not in the basis is expressed by it, and each expression has a radius
//! that is computed here, from ranges that are proved:
//!
//! - a unit of the first network is said to be a constant, or its pre-activation and a constant, or a multiple of another unit. How far `relu(g)`
//!   can be from that follows from the range of `g`: nothing if a unit that is said to be 0 is proved to be off, or one that is said to be its
//!   pre-activation is proved to be on;
//! - a unit of the second network is said to be a multiple of a unit of the first. A ReLU brings no two numbers further apart, so the outputs differ by
//!   no more than the pre-activations, and how far these can be apart follows from their expressions. Or it is said to be its pre-activation, or a
//!   constant: how far it can be from that follows from the bounds of its expression.
//!
//! So nothing that is said can be wrong, only useless: a bad correspondence makes the bound larger. What reaches the outputs is the answer.

use std::collections::{BTreeMap, HashSet};

use leo_network::op::Op;
use leo_network::{Network, Node, ValueId};

use crate::checker::Facts;
use crate::forms::{Basis, Forms, Multiple, Room, Sum};
use crate::number::Number;
use crate::range::Range;

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
        let width = |&value: &ValueId| first.shape(value).elements();
        return Ok(first.outputs().iter().map(|value| vec![N::default(); width(value)]).collect());
    }
    let mut room = Room::new::<N>();
    let expressed = Expressed::new(facts, pairs, &mut room)?;
    let made = expressed.of_second(facts, second, pairs, &mut room)?;
    let outputs = first.outputs().iter().zip(second.outputs());
    let distances = |(a, b): (&ValueId, &ValueId)| expressed.distances(&expressed.forms[a.index()], &made[b.index()]);
    Ok(outputs.map(distances).collect())
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
    basis: Basis<N>,
    /// What each value is. An anchor is in the basis.
    forms: Vec<Forms<N>>,
    /// What each anchor was before it was put into the basis.
    anchors: BTreeMap<ValueId, Forms<N>>,
}

impl<N: Number> Expressed<N> {
    fn new(facts: &Facts<'_, N>, pairs: &Correspondence, room: &mut Room) -> Result<Self, Mismatch> {
        let network = facts.network();
        let input = ValueId::INPUT.index();
        let mut basis = Basis::from([(input, facts.range(ValueId::INPUT).clone())]);
        let mut forms = vec![Forms::identity(input, vec![N::default(); network.input().elements()])];
        let mut anchors = BTreeMap::new();
        let mut layers = pairs.claims.iter().enumerate();
        for (index, node) in network.nodes().iter().enumerate() {
            let value = network.result_of(index);
            let mut made = if let Op::Relu(_) = node.op() {
                let (layer, claims) = layers.next().expect("as many as there are layers");
                let range = facts.range(node.operands()[0]);
                basis.insert(value.index(), range.positive());
                let units = Units {
                    claims,
                    given: &forms[node.operands()[0].index()],
                    own: &Forms::identity(value.index(), vec![N::default(); claims.len()]),
                    range,
                    basis: &basis,
                };
                let claimed = |unit| units.claimed(unit).ok_or(Mismatch::Expression { layer, unit });
                let outputs = (0..claims.len()).map(claimed).collect::<Result<Vec<_>, _>>()?;
                Forms::collected(&outputs, &basis, room).ok_or(Mismatch::TooLarge)?
            } else {
                let operands: Vec<&Forms<N>> = node.operands().iter().map(|operand| &forms[operand.index()]).collect();
                Forms::of_node(network, node, &operands, &basis, room).ok_or(Mismatch::TooLarge)?
            };
            if pairs.anchors.iter().any(|&(anchor, _)| anchor == value) {
                basis.insert(value.index(), facts.range(value).clone());
                let identity = Forms::identity(value.index(), vec![N::default(); made.len()]);
                anchors.insert(value, std::mem::replace(&mut made, identity));
            }
            forms.push(made);
        }
        Ok(Self { basis, forms, anchors })
    }

    /// What each value of the second network is.
    fn of_second(
        &self,
        facts: &Facts<'_, N>,
        second: &Network,
        pairs: &Correspondence,
        room: &mut Room,
    ) -> Result<Vec<Forms<N>>, Mismatch> {
        let mut forms = vec![self.forms[ValueId::INPUT.index()].clone()];
        let mut layers = pairs.roles.iter().enumerate();
        for (index, node) in second.nodes().iter().enumerate() {
            let value = second.result_of(index);
            let mut made = if let Op::Relu(_) = node.op() {
                let (layer, roles) = layers.next().expect("as many as there are layers");
                let given = &forms[node.operands()[0].index()];
                let played = |(unit, &role): (usize, &Role)| {
                    self.played(facts.network(), given, unit, role).ok_or(Mismatch::Expression { layer, unit })
                };
                let outputs = roles.iter().enumerate().map(played).collect::<Result<Vec<_>, _>>()?;
                Forms::collected(&outputs, &self.basis, room).ok_or(Mismatch::TooLarge)?
            } else {
                let operands: Vec<&Forms<N>> = node.operands().iter().map(|operand| &forms[operand.index()]).collect();
                Forms::of_node(second, node, &operands, &self.basis, room).ok_or(Mismatch::TooLarge)?
            };
            if let Some((anchor, _)) = pairs.anchors.iter().find(|&&(_, anchor)| anchor == value) {
                let mut distances = self.distances(&self.anchors[anchor], &made);
                if let Some(passed) = self.passed_on(facts.network(), *anchor, second, node, &forms, pairs) {
                    distances
                        .iter_mut()
                        .zip(passed)
                        .for_each(|(distance, passed)| *distance = distance.smaller(&passed));
                }
                made = Forms::identity(anchor.index(), distances);
            }
            forms.push(made);
        }
        Ok(forms)
    }

    /// If an anchor is made by the same operator in both networks, from operands that are anchors too: how far it can be apart because these are.
    fn passed_on(
        &self,
        first: &Network,
        anchor: ValueId,
        second: &Network,
        node: &Node,
        forms: &[Forms<N>],
        pairs: &Correspondence,
    ) -> Option<Vec<N>> {
        let same = &first.nodes()[anchor.node()?];
        // The same operator does something else to another shape: it turns other axes, or stretches its constant in another way.
        let belong = |(a, b): (&ValueId, &ValueId)| {
            let is_pair = pairs.anchors.contains(&(*a, *b)) || (*a, *b) == (ValueId::INPUT, ValueId::INPUT);
            is_pair && first.shape(*a) == second.shape(*b)
        };
        if same.op() != node.op() || !same.operands().iter().zip(node.operands()).all(belong) {
            return None;
        }
        let errors: Vec<Forms<N>> = node.operands().iter().map(|operand| forms[operand.index()].errors()).collect();
        Some(match node.op() {
            // A ReLU brings no two numbers further apart.
            Op::Relu(_) => errors[0].radii().to_vec(),
            // An affine map passes differences on; what it adds is the same for both.
            // These have no coefficients, and need no room.
            _ => {
                let errors: Vec<&Forms<N>> = errors.iter().collect();
                Forms::of_node(second, node, &errors, &self.basis, &mut Room::new::<N>())?.radii().to_vec()
            }
        })
    }

    /// How far the rows of two values can be apart.
    fn distances(&self, first: &Forms<N>, second: &Forms<N>) -> Vec<N> {
        let row = |row| second.distance(row, Multiple { forms: first, row, factor: 1.0 }, &self.basis);
        (0..second.len()).map(row).collect()
    }

    /// What a unit of the second network gives, if it can have this role.
    fn played<'f>(&'f self, first: &Network, given: &'f Forms<N>, unit: usize, role: Role) -> Option<Sum<'f, N>> {
        match role {
            Role::Linear => {
                let (least, _) = given.bounds(unit, &self.basis);
                let terms = vec![Multiple { forms: given, row: unit, factor: 1.0 }];
                Some(Sum { terms, radius: least.negative().positive_part(), constant: 0.0 })
            }
            Role::Constant(constant) if constant.is_finite() => {
                let (least, most) = given.bounds(unit, &self.basis);
                let radius = furthest(&least.positive_part(), &most.positive_part(), constant);
                Some(Sum { terms: Vec::new(), constant, radius })
            }
            Role::Copy { layer, unit: copied, factor } => {
                let node = first.relu_layers().find(|&node| node == layer)?;
                let theirs = &self.forms[first.pre_activation(node).index()];
                let can_be = copied < theirs.len() && factor > 0.0 && factor.is_finite();
                can_be.then(|| {
                    let radius = given.distance(unit, Multiple { forms: theirs, row: copied, factor }, &self.basis);
                    let result = first.result_of(node);
                    let output = self.anchors.get(&result).unwrap_or(&self.forms[result.index()]);
                    Sum { terms: vec![Multiple { forms: output, row: copied, factor }], radius, constant: 0.0 }
                })
            }
            Role::Constant(_) => None,
        }
    }
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
    basis: &'a Basis<N>,
}

impl<'a, N: Number> Units<'a, N> {
    /// What a unit gives, in terms of the basis, if that is a claim that can be made.
    fn claimed(&self, unit: usize) -> Option<Sum<'a, N>> {
        let linear = |row: usize, factor: f64| Multiple { forms: self.given, row, factor };
        let element = |row: usize, factor: f64| Multiple { forms: self.own, row, factor };
        match self.claims[unit] {
            Claim::Itself => Some(Sum { terms: vec![element(unit, 1.0)], constant: 0.0, radius: N::default() }),
            Claim::Constant(constant) if constant.is_finite() => {
                let (lower, upper) = self.bounds(unit);
                let radius = furthest(&lower.positive_part(), &upper.positive_part(), constant);
                Some(Sum { terms: Vec::new(), constant, radius })
            }
            Claim::Linear(constant) if constant.is_finite() => {
                let (lower, upper) = self.bounds(unit);
                let [least, most] = [upper, lower].map(|bound| bound.negative().positive_part());
                let radius = furthest(&least, &most, constant);
                Some(Sum { terms: vec![linear(unit, 1.0)], constant, radius })
            }
            Claim::Multiple { of, factor } => {
                if *self.claims.get(of)? != Claim::Itself || factor == 0.0 || !factor.is_finite() {
                    return None;
                }
                let radius = self.given.distance(unit, linear(of, factor), self.basis);
                let mut terms = vec![element(of, factor.abs())];
                if factor < 0.0 {
                    terms.push(linear(of, factor));
                }
                Some(Sum { terms, radius, constant: 0.0 })
            }
            Claim::Constant(_) | Claim::Linear(_) => None,
        }
    }

    /// Where a pre-activation can lie: two bounds are known on each side, by its range and by its expression.
    fn bounds(&self, unit: usize) -> (N, N) {
        let (least, most) = self.given.bounds(unit, self.basis);
        (self.range.lower[unit].larger(&least), self.range.upper[unit].smaller(&most))
    }
}

/// How far anything between two numbers can be from a third, rounded up.
fn furthest<N: Number>(least: &N, most: &N, number: f64) -> N {
    let apart = |end: &N| {
        let distance = end.minus(&N::of(number)).abs();
        if distance.is_zero() { distance } else { distance.up() }
    };
    apart(least).larger(&apart(most))
}
