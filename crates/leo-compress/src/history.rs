//! What became of every unit, in however many rounds.

use std::collections::{BTreeMap, BTreeSet};

use leo_check::{Correspondence, Role};
use leo_network::op::Op;
use leo_network::{Network, Node, ValueId};
use leo_stability::{By, Layer, Status};

use crate::plan::Rule;

/// How many linear functions pass beside layers: the numbers in affine functions that matrices read, where what these make of them is added to what others make of a layer.
pub(crate) fn beside(network: &Network) -> usize {
    let op = |value: ValueId| value.node().map(|node| network.nodes()[node].op());
    let is_affine = |value: &ValueId| op(*value).is_some_and(|op| op.has_sums() || matches!(op, Op::Sum(_)));
    let sums = network.nodes().iter().filter(|node| matches!(node.op(), Op::Sum(_)));
    let matrices = |sum: &Node| -> Vec<ValueId> {
        let nodes = sum.operands().iter().filter_map(|summand| summand.node()).map(|node| &network.nodes()[node]);
        nodes.filter(|node| node.op().has_sums()).map(|matrix| matrix.operands()[0]).collect()
    };
    let with_layers = sums.map(matrices).filter(|read| read.iter().any(|&value| op(value).is_some_and(Op::is_relu)));
    let read: BTreeSet<ValueId> = with_layers.flatten().filter(is_affine).collect();
    read.into_iter().map(|value| network.shape(value).elements()).sum()
}

/// Which unit of the file that was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Its layer of ReLUs, counted from 0.
    pub layer: usize,
    /// Its number in the layer, from 0.
    pub unit: usize,
}

/// A unit that a round removes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Removed {
    /// Its layer's node, and its number there, in the file before the round.
    pub(crate) node: usize,
    pub(crate) unit: usize,
    /// Why.
    pub(crate) rule: Rule,
}

/// What became of the units of the file that was given, and where those of the new one come from.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The layers of ReLUs as they were found, before anything was removed.
    pub layers: Vec<Layer>,
    /// For each of their units, the rule that removed it, if one did.
    pub removed: Vec<Vec<Option<Rule>>>,
    /// For each unit of each layer of the new file, which unit it was. Where it was none, it carries a linear function past its layer.
    pub origins: Vec<Vec<Option<Place>>>,
    /// How many linear functions of the new file pass beside layers, by no ReLU, that did not before.
    pub paths: usize,
}

impl History {
    /// Begins with a file to which nothing was done yet.
    pub(crate) fn begin(layers: &[Layer]) -> Self {
        let places = |(layer, found): (usize, &Layer)| {
            (0..found.units.len()).map(|unit| Some(Place { layer, unit })).collect::<Vec<_>>()
        };
        Self {
            layers: layers.to_vec(),
            removed: layers.iter().map(|layer| vec![None; layer.units.len()]).collect(),
            origins: layers.iter().enumerate().map(places).collect(),
            paths: 0,
        }
    }

    /// Whether all units were decided, and the stable ones without a search.
    pub(crate) fn is_plain(&self) -> bool {
        self.layers.iter().flat_map(|layer| &layer.units).all(|unit| match unit.status {
            Status::Inactive | Status::Active => {
                matches!(unit.by, Some(By::Interval | By::Linear | By::Slopes))
            }
            Status::Unstable => true,
            Status::Undecided => false,
        })
    }

    /// Adds what a round did to the file before it.
    pub(crate) fn add(&mut self, before: &Network, removed: &[Removed], pairs: &Correspondence) {
        let layers: BTreeMap<usize, usize> =
            before.relu_layers().enumerate().map(|(index, node)| (node, index)).collect();
        for Removed { node, unit, rule } in removed {
            self.remove(layers[node], *unit, *rule);
        }
        let origin = |role: &Role| match *role {
            Role::Copy { layer, unit, .. } => self.origins[layers[&layer]][unit],
            Role::Linear | Role::Constant(_) => None,
        };
        self.origins = pairs.roles.iter().map(|roles| roles.iter().map(origin).collect()).collect();
    }

    /// A unit of the file as it is at this point goes. What no unit was is not missed.
    fn remove(&mut self, layer: usize, unit: usize, rule: Rule) {
        if let Some(Place { layer, unit }) = self.origins[layer][unit] {
            self.removed[layer][unit] = Some(rule);
        }
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
        // Whose place carriers took: that of linear units first, then of negative multiples, which have a linear part too.
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
