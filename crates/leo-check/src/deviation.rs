//! How far two networks can be apart, anywhere on a domain.
//!
//! Both networks are written as functions of the same basis ([`crate::forms`]): the input, outputs of some of the first
//! network's units, and what else is said to be the same in both (*anchors*). What is not in the basis is expressed by
//! it. What an expression misses is a new element of the basis, an *error symbol*, whose range is computed in
//! [`crate::claims`], from ranges that are proved.
//!
//! So nothing that is said can be wrong, only useless: a bad correspondence makes the bound larger. What reaches the
//! outputs is the answer; where an output is made in the same way in both networks ([`crate::same`]), the answer is 0,
//! however its expressions are rounded.
//!
//! That differences are carried through both networks side by side, and not found by bounding each network alone, is
//! differential verification: ReluDiff and NeuroDiff (Paulsen et al. 2020, arXiv:2001.03662 and arXiv:2009.09943) do so
//! with intervals and lines, VeryDiff (Teuber et al. 2025, arXiv:2410.20207) with zonotopes. There, the
//! units of two networks of one shape are paired; here any unit of the second may be expressed by any of the first, in
//! whatever layer that is.

use std::collections::{BTreeMap, HashMap, HashSet};

use leo_network::{Activation, Network, ValueId, ValueMap};

use crate::basis::{Basis, BasisSource, MemoryBudget};
use crate::checker::ProvedBounds;
use crate::claims::{PreActivationPair, Units, affine, scaled, within};
use crate::correspondence::{Correspondence, Expression, Mismatch, check_anchors, check_widths};
use crate::forms::{AffineForms, Gap, Multiple, UnitForm};
use crate::number::Number;
use crate::range::{Interval, Range};
use crate::same::same_outputs;

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

/// As [`deviation()`], and if `with_ranges` asks for that, where all values of the second network lie.
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
    if !(first.is_dense() && second.is_dense()) {
        // Units are elements here, and channels there.
        return Err(Mismatch::NotDense);
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

/// What part of an output's size its deviation may be for rounding to have made all of it.
const ROUNDING_TOLERANCE: f64 = 1e-4;

/// Where rounding may be all that is left of how far an output can be apart, looks whether it is made in the same way
/// in both networks: then nothing is.
fn settle_rounding<N: Number>(deviation: &mut [Vec<N>], facts: &ProvedBounds<'_, N>, second: &Network) {
    let first = facts.network();
    let sizes: Vec<&Range<N>> = first.outputs().iter().map(|&value| facts.range(value)).collect();
    let is_doubtful = |output: usize, element: usize, far: &N| {
        N::ROUNDS && !far.is_zero() && *far <= sizes[output].magnitude(element).times(&N::of(ROUNDING_TOLERANCE))
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

    /// What each value of the second network is; values that nothing reads any more are left out. If `ranges` has that
    /// of the input, it gets those of all values.
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

/// For each value of a network, the last node that reads it; none if it is an output, or if nothing does.
pub(crate) fn last_readers(network: &Network) -> ValueMap<Option<usize>> {
    let mut last = ValueMap::from(vec![None; network.nodes().len() + 1]);
    for (index, node) in network.nodes().iter().enumerate() {
        node.operands().iter().for_each(|operand| last[*operand] = Some(index));
    }
    network.outputs().iter().for_each(|output| last[*output] = None);
    last
}
