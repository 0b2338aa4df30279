//! What became of every unit, in however many rounds.

use std::collections::{BTreeMap, BTreeSet};

use leo_check::{Correspondence, Expression};
use leo_network::op::Op;
use leo_network::{Network, Node, UnitId, ValueId};
use leo_stability::{Layer, Status};

use crate::rewriting::plan::Rule;

/// How many linear functions pass beside layers: the numbers in affine functions that matrices read, where what these
/// make of them is added to what others make of a layer.
pub(crate) fn beside(network: &Network) -> usize {
    let op = |value: ValueId| value.node().map(|node| network.nodes()[node].op());
    let is_affine = |value: &ValueId| op(*value).is_some_and(|op| op.has_sums() || matches!(op, Op::Sum(_)));
    let sums = network.nodes().iter().filter(|node| matches!(node.op(), Op::Sum(_)));
    let matrices = |sum: &Node| -> Vec<ValueId> {
        let nodes = sum.operands().iter().filter_map(|summand| summand.node()).map(|node| &network.nodes()[node]);
        nodes.filter(|node| node.op().has_sums()).map(|matrix| matrix.operands()[0]).collect()
    };
    let with_layers = sums.map(matrices).filter(|read| read.iter().any(|&value| op(value).is_some_and(Op::is_layer)));
    let read: BTreeSet<ValueId> = with_layers.flatten().filter(is_affine).collect();
    read.into_iter().map(|value| network.shape(value).elements()).sum()
}

/// A unit that a round removes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemovedUnit {
    /// Which one, in the file before the round.
    pub(crate) unit: UnitId,
    /// Why.
    pub(crate) rule: Rule,
}

/// What became of the units of the file that was given, and where those of the new one come from.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The layers as they were found, before anything was removed.
    pub layers: Vec<Layer>,
    /// For each of their units, the rule that removed it, if one did.
    pub removed: Vec<Vec<Option<Rule>>>,
    /// For each unit of each layer of the new file, which unit it was. Where it was none, it carries a linear function
    /// past its layer.
    pub origins: Vec<Vec<Option<UnitId>>>,
    /// How many linear functions of the new file pass beside layers, by no ReLU, that did not before.
    pub paths: usize,
}

impl History {
    /// Begins with a file to which nothing was done yet.
    pub(crate) fn begin(layers: &[Layer]) -> Self {
        let units = |found: &Layer| {
            (0..found.units.len()).map(|unit| Some(UnitId { layer: found.id, unit })).collect::<Vec<_>>()
        };
        Self {
            layers: layers.to_vec(),
            removed: layers.iter().map(|layer| vec![None; layer.units.len()]).collect(),
            origins: layers.iter().map(units).collect(),
            paths: 0,
        }
    }

    /// Whether all units were decided, and the stable ones without a search.
    pub(crate) fn is_plain(&self) -> bool {
        self.layers.iter().flat_map(|layer| &layer.units).all(|unit| match unit.status {
            Status::Stable(_) => unit.by.is_some_and(|by| by.is_plain),
            Status::Unstable => true,
            Status::Undecided => false,
        })
    }

    /// Adds what a round did to the file before it.
    pub(crate) fn add(&mut self, removed: &[RemovedUnit], pairs: &Correspondence) {
        for RemovedUnit { unit, rule } in removed {
            // What no unit was is not missed.
            if let Some(UnitId { layer, unit }) = self.origins[unit.layer.index()][unit.unit] {
                self.removed[layer.index()][unit] = Some(*rule);
            }
        }
        let origin = |role: &Expression| match *role {
            Expression::Multiple { of, .. } => self.origins[of.layer.index()][of.unit],
            Expression::Itself | Expression::Affine { .. } => None,
        };
        self.origins = pairs.roles.iter().map(|roles| roles.iter().map(origin).collect()).collect();
    }

    /// Takes over what is proved of units of the layers from this one on, of which nothing has gone yet.
    pub(crate) fn learn(&mut self, first: usize, layers: &[Layer]) {
        let units = self.layers[first..].iter_mut().flat_map(|layer| &mut layer.units);
        for (known, found) in units.zip(layers.iter().flat_map(|layer| &layer.units)) {
            // What is unstable where a part is given anything in a box need not be so in the network.
            if found.status.is_stable() && !known.status.is_stable() {
                *known = found.clone();
            }
        }
    }

    /// Adds what was done to the layers from this one on, as a network of its own.
    pub(crate) fn add_part(&mut self, first: usize, part: &Self) {
        for (index, removed) in part.removed.iter().enumerate() {
            let gone = removed.iter().enumerate().filter(|(_, rule)| rule.is_some());
            for (unit, rule) in gone {
                if let Some(UnitId { layer, unit }) = self.origins[first + index][unit] {
                    self.removed[layer.index()][unit] = *rule;
                }
            }
        }
        let origin = |origin: &Option<UnitId>| {
            origin.and_then(|UnitId { layer, unit }| self.origins[first + layer.index()][unit])
        };
        let of_part: Vec<Vec<Option<UnitId>>> =
            part.origins.iter().map(|layer| layer.iter().map(origin).collect()).collect();
        self.origins.truncate(first);
        self.origins.extend(of_part);
        self.paths += part.paths;
    }

    /// How many units of the new file carry linear functions past their layers.
    pub fn carriers(&self) -> usize {
        self.origins.iter().flatten().filter(|origin| origin.is_none()).count()
    }

    /// How many units each rule removed, whatever took their place.
    pub fn by_rule(&self) -> BTreeMap<Rule, usize> {
        let mut counts: BTreeMap<Rule, usize> = BTreeMap::new();
        for rule in self.removed.iter().flatten().flatten() {
            *counts.entry(*rule).or_default() += 1;
        }
        counts
    }

    /// How many units each rule removed. Units that are always on count as far as nothing had to take their place.
    pub fn count(&self) -> BTreeMap<Rule, usize> {
        let mut counts = self.by_rule();
        // Whose place carriers took: that of linear units first, then of negative multiples, which have a linear part
        // too.
        let mut carriers = self.carriers();
        for rule in [Rule::Linear, Rule::Opposite, Rule::Dead, Rule::Multiple, Rule::Negligible] {
            if let Some(count) = counts.get_mut(&rule) {
                let part = carriers.min(*count);
                (*count, carriers) = (*count - part, carriers - part);
            }
        }
        counts.retain(|_, count| *count > 0);
        counts
    }
}
