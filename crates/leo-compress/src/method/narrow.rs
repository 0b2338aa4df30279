//! What can go without any new number: channels that are always 0, and channels that nobody reads, whatever the layout
//! of the network is.
//!
//! Values that nodes make of each other channel by channel (ReLUs, arithmetic with constants, changes of shape) have
//! their channels in common: they are one *strand*. It begins with the value that a matrix makes, and ends at the
//! matrices that read it. A channel of a strand is *needed* if one of its values is read there where it is not always
//! 0, by a weight that is not 0, for a channel that is needed in turn. What is not needed goes, from all values of the
//! strand at once: a row of the matrix before, numbers of the constants on the way, and columns of the matrices after.
//! Every number that stays is the one that it was, so nothing is rounded.
//!
//! Strands that begin otherwise, or that outputs, sums of branches or other operators need as they are, stay whole.

use std::collections::BTreeMap;

use leo_check::{Correspondence, Expression, ProvedBounds, stable_piece};
use leo_formats::onnx::{Aside, Document};
use leo_network::op::{ActionKind, AffineMap, Op};
use leo_network::{Network, Node, Spliced, UnitId, ValueId, ValueMap};

use crate::rewriting::history::RemovedUnit;
use crate::rewriting::plan::Rule;
use crate::rewriting::region::{Regions, diagonal, of_channels};

/// Which channels of a network can go.
#[derive(Debug)]
pub(crate) struct Narrowing {
    /// Of values of which not all channels stay, which ones do.
    pub(crate) kept: BTreeMap<ValueId, Vec<usize>>,
    /// The units that go, and why.
    pub(crate) removed: Vec<RemovedUnit>,
}

impl Narrowing {
    /// What is always 0 goes, and what nobody reads, unless it is to be as in the paper, which does not know that.
    pub(crate) fn new(facts: &ProvedBounds<'_>, document: &Document, as_in_paper: bool) -> Self {
        let network = facts.network();
        let strands = Strands::new(facts);
        // A shape that a strand gives itself is written anew.
        let is_own = |aside: &Aside<'_>| {
            let in_strand = |value: &ValueId| strands.of[*value] == strands.of[aside.value];
            aside.reshapes.as_ref().is_some_and(|reshapes| reshapes.iter().all(in_strand))
        };
        let aside = document.read_aside().into_iter().filter(|aside| !is_own(aside)).map(|aside| aside.value);
        let aside: Vec<ValueId> = aside.collect();
        let needed = strands.needed(network, &aside, as_in_paper);
        let mut kept = BTreeMap::new();
        for (value, &strand) in network.values().zip(strands.of.iter()) {
            let channels: Vec<usize> = (0..needed[strand].len()).filter(|&channel| needed[strand][channel]).collect();
            if channels.len() < needed[strand].len() {
                kept.insert(value, channels);
            }
        }
        let mut removed = Vec::new();
        for layer in network.layers() {
            let output = network.output_of(layer);
            let (channels, needed) = (network.channels(output), &needed[strands.of[output]]);
            for unit in (0..network.width(layer)).filter(|&unit| !needed[channels.of(unit)]) {
                let is_zero = strands.is_zero[output][channels.of(unit)];
                let rule = if is_zero { Rule::Inactive } else { Rule::Dead };
                removed.push(RemovedUnit { unit: UnitId { layer, unit }, rule });
            }
        }
        Self { kept, removed }
    }

    /// What corresponds to what in the network before and in the file after.
    pub(crate) fn correspondence(&self, old: &Network, new: &Spliced<Document>, regions: &Regions) -> Correspondence {
        let same = |value: ValueId| new.values[value];
        let elements = |network: &Network, value: ValueId| network.shape(value).elements();
        let unchanged = regions.outside.iter().filter(|&&value| value != ValueId::INPUT);
        let pairs = unchanged.filter_map(|&value| Some((value, same(value)?)));
        let is_whole = |&(before, after): &_| elements(old, before) == elements(new.made.network(), after);
        let anchors = pairs.filter(is_whole).collect();
        let removed: BTreeMap<UnitId, Rule> = self.removed.iter().map(|removed| (removed.unit, removed.rule)).collect();
        let (mut claims, mut roles) = (Vec::new(), BTreeMap::new());
        for layer in old.layers() {
            let units = || (0..old.width(layer)).map(|unit| UnitId { layer, unit });
            let claim = |unit: UnitId| match removed.get(&unit) {
                Some(Rule::Inactive) => Expression::constant(0.0),
                _ => Expression::Itself,
            };
            claims.push(units().map(claim).collect());
            let copies = units().filter(|unit| !removed.contains_key(unit)).map(Expression::copy).collect();
            roles.extend(same(old.output_of(layer)).map(|value| (value, copies)));
        }
        Correspondence { anchors, claims, roles: roles.into_values().collect() }
    }
}

/// Whether no two affine maps follow each other, so that writing layers anew keeps the layout that they have.
pub(crate) fn is_plain(network: &Network) -> bool {
    network.nodes().iter().all(|node| match node.op().as_affine().map(AffineMap::kind) {
        Some(ActionKind::Sums) => !follows(network, node, |op| op.as_affine().is_some()),
        Some(ActionKind::Each(_)) => !follows(network, node, |op| op.has_sums() || op.is_layer()),
        Some(ActionKind::Move) | None => true,
    })
}

/// Whether the first operator before a node that is more than a change of shape is one of these.
fn follows(network: &Network, node: &Node, is_one: impl Fn(&Op) -> bool) -> bool {
    let mut value = node.operands()[0];
    while let Some(before) = value.node().map(|before| &network.nodes()[before]) {
        if before.op().as_affine().map(AffineMap::kind) != Some(ActionKind::Move) {
            return is_one(before.op());
        }
        value = before.operands()[0];
    }
    false
}

/// The strands of a network.
struct Strands {
    /// For each value, the one that its strand begins with.
    of: ValueMap<ValueId>,
    /// For each value, which of its channels are always 0.
    is_zero: ValueMap<Vec<bool>>,
    /// By the values that they begin with: whether a strand has a layer of units.
    has_units: ValueMap<bool>,
}

impl Strands {
    fn new(facts: &ProvedBounds<'_>) -> Self {
        let network = facts.network();
        let mut strands = Self {
            of: vec![ValueId::INPUT].into(),
            is_zero: vec![vec![false; network.channels(ValueId::INPUT).count()]].into(),
            has_units: vec![false; network.nodes().len() + 1].into(),
        };
        for (index, node) in network.nodes().iter().enumerate() {
            let (operand, value) = (node.operands()[0], network.result_of(index));
            let (strand, channels) = (strands.of[operand], network.channels(value));
            if let Some(of) = node.op().as_activation() {
                let range = of_channels(facts.range(operand), channels);
                let is_off = strands.is_zero[operand].iter().enumerate().map(|(channel, &zero)| {
                    let piece = stable_piece(of, &range.lower[channel], &range.upper[channel]);
                    zero && of.of(0.0) == 0.0 || piece.is_some_and(|piece| of.pieces()[piece].is_zero())
                });
                let is_off = is_off.collect();
                strands.has_units[strand] = true;
                strands.push(strand, is_off);
            } else if let Some(diagonal) = diagonal(network, node) {
                let stays_zero = |(&zero, (_, summand)): (&bool, (f64, f64))| zero && summand == 0.0;
                let is_zero = strands.is_zero[operand].iter().zip(diagonal).map(stays_zero).collect();
                strands.push(strand, is_zero);
            } else {
                strands.push(value, vec![false; channels.count()]);
            }
        }
        strands
    }

    fn push(&mut self, strand: ValueId, is_zero: Vec<bool>) {
        self.of.push(strand);
        self.is_zero.push(is_zero);
    }

    /// For each strand, by the value it begins with, which channels are needed, if these values are, besides the
    /// outputs.
    fn needed(&self, network: &Network, aside: &[ValueId], as_in_paper: bool) -> ValueMap<Vec<bool>> {
        let none = network.values().map(|value| vec![false; network.channels(value).count()]);
        let mut needed = ValueMap::from(none.collect::<Vec<_>>());
        let all = |needed: &mut ValueMap<Vec<bool>>, value: ValueId| needed[self.of[value]].fill(true);
        network.outputs().iter().chain(aside).for_each(|&value| all(&mut needed, value));
        all(&mut needed, ValueId::INPUT);
        // All that reads a strand comes after the value that it begins with.
        for (index, node) in network.nodes().iter().enumerate().rev() {
            let value = network.result_of(index);
            if self.of[value] != value {
                continue;
            }
            let Some(dense) = node.op().as_dense() else {
                all(&mut needed, value);
                node.operands().iter().for_each(|&operand| all(&mut needed, operand));
                continue;
            };
            let rows = &mut needed[value];
            if !self.has_units[value] {
                rows.fill(true);
            } else if !rows.contains(&true) {
                // A value cannot be nothing.
                rows[0] = true;
            }
            let rows: Vec<usize> = (0..rows.len()).filter(|&row| rows[row]).collect();
            let operand = node.operands()[0];
            let is_zero = &self.is_zero[operand];
            for (channel, needed) in needed[self.of[operand]].iter_mut().enumerate() {
                let is_read = || as_in_paper || rows.iter().any(|&row| dense.weight().row(row)[channel] != 0.0);
                *needed |= !is_zero[channel] && is_read();
            }
        }
        needed
    }
}
