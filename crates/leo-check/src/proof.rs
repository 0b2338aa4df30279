//! What is known of a network's units, and all that it takes to prove it again.

use std::cmp::Ordering;

use leo_network::{Domain, Network, Node};
use rayon::prelude::*;

use crate::checker::{Checker, Facts};
use crate::deviation::Claim;
use crate::facts::{Side, Tree};
use crate::number::Number;
use crate::progress::{Progress, Step};
use crate::verify::{Refusal, rounded};
use crate::witness::signs;

/// Whether a unit can be on, and whether it can be off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Its pre-activation is nowhere above 0: the unit is always 0.
    Inactive,
    /// Its pre-activation is nowhere below 0: the unit is a linear function.
    Active,
    /// Inputs are known for both signs.
    Unstable,
    /// Neither proved nor refuted. It is kept, like an unstable unit.
    Undecided,
}

impl Status {
    /// What such a unit is expressed by if nothing else is said.
    pub fn claim(self) -> Claim {
        match self {
            Self::Inactive => Claim::Constant(0.0),
            Self::Active => Claim::Linear(0.0),
            Self::Unstable | Self::Undecided => Claim::Itself,
        }
    }
}

/// What is known of the units of a network, layer by layer, and how to prove it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proof {
    /// For each layer of ReLUs, from the first to the last.
    pub layers: Vec<LayerProof>,
    /// Inputs that show units on or off.
    pub points: Vec<Vec<f64>>,
}

/// What is known of the units of a layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerProof {
    /// Each unit.
    pub units: Vec<Status>,
    /// Whether linear bounds with the default slopes are to be proved for all units: upper bounds of all, and lower bounds of those that are not always off.
    pub linear: bool,
    /// More bounds to be proved. A leaf alone is a linear bound with slopes of its own.
    pub bounds: Vec<(usize, Side, Tree)>,
    /// For each unstable unit, in their order, which point shows it off, and which one shows it on.
    pub witnesses: Vec<[usize; 2]>,
}

/// How many products the bounds of a layer may take: what takes minutes. A small file could ask for years.
fn most_work<N: Number>() -> f64 {
    if N::ROUNDS { 5e11 } else { 2e10 }
}

impl Proof {
    /// Proves it all again, and returns the ranges that follow.
    ///
    /// # Errors
    /// If something is not as it says.
    pub fn check<'n, N: Number>(&self, network: &'n Network, domain: &Domain) -> Result<Facts<'n, N>, Refusal> {
        self.check_watched(network, domain, &())
    }

    /// The same, and says how far it has come.
    pub(crate) fn check_watched<'n, N: Number>(
        &self,
        network: &'n Network,
        domain: &Domain,
        progress: &dyn Progress,
    ) -> Result<Facts<'n, N>, Refusal> {
        let mut checker = Checker::<N>::begin(network, domain)?;
        let layers = network.relu_layers().count();
        if layers != self.layers.len() {
            return Err(Refusal::Network(format!(
                "{} layers are described, and there are {layers}",
                self.layers.len()
            )));
        }
        // How many products it takes to come back from a layer to the input.
        let (mut way, mut from) = (network.input().elements() as f64, 0);
        for (index, layer) in self.layers.iter().enumerate() {
            let Some(node) = checker.next_layer() else { break };
            layer.check_form(network, index, node)?;
            way += network.nodes()[from..node].iter().map(|node| products(network, node)).sum::<f64>();
            from = node;
            if layer.rows() as f64 * way > most_work::<N>() {
                let reason = "its bounds take too much work".to_owned();
                return Err(Refusal::Layer { layer: index, reason });
            }
            progress.begins(Step::Bounds { layer: index + 1, layers }, layer.parts());
            layer.prove(&mut checker, progress);
            let range = checker.range(node);
            for (unit, status) in layer.units.iter().enumerate() {
                let (lower, upper) = (&range.lower[unit], &range.upper[unit]);
                let holds = match status {
                    Status::Inactive => *upper <= N::default(),
                    Status::Active => *lower >= N::default(),
                    Status::Unstable | Status::Undecided => true,
                };
                if !holds {
                    let always = if *status == Status::Inactive { "off" } else { "on" };
                    let (lower, upper) = (-lower.negative().rounded_up(), upper.rounded_up());
                    let (lower, upper) = (rounded(lower), rounded(upper));
                    let reason = format!("is said to be always {always}, and proved to lie in [{lower}, {upper}]");
                    return Err(Refusal::Unit { layer: index, unit, reason });
                }
            }
        }
        self.check_witnesses::<N>(network, domain, progress)?;
        Ok(checker.finish())
    }

    /// The point that shows a unit of a layer of ReLUs, counted from 0, on, or off, if there is one.
    pub fn witness(&self, layer: usize, unit: usize, on: bool) -> Option<&[f64]> {
        let layer = self.layers.get(layer).filter(|layer| layer.units.get(unit) == Some(&Status::Unstable))?;
        let place = layer.units[..unit].iter().filter(|status| **status == Status::Unstable).count();
        let point = layer.witnesses.get(place)?[usize::from(on)];
        self.points.get(point).map(Vec::as_slice)
    }

    /// Checks that every unstable unit is shown off and on.
    fn check_witnesses<N: Number>(
        &self,
        network: &Network,
        domain: &Domain,
        progress: &dyn Progress,
    ) -> Result<(), Refusal> {
        progress.begins(Step::Points, self.points.len());
        // For each point: the layer and the unit, the layer's node, and the sign that it is said to show.
        let mut shown: Vec<Vec<(usize, usize, usize, Ordering)>> = vec![Vec::new(); self.points.len()];
        for (index, (layer, node)) in self.layers.iter().zip(network.relu_layers()).enumerate() {
            let unstable = layer.units.iter().enumerate().filter(|(_, status)| **status == Status::Unstable);
            for ((unit, _), points) in unstable.zip(&layer.witnesses) {
                for (&point, sign) in points.iter().zip([Ordering::Less, Ordering::Greater]) {
                    let missing = || Refusal::unit(index, unit, "is shown by a point that is not there");
                    shown.get_mut(point).ok_or_else(missing)?.push((index, unit, node, sign));
                }
            }
        }
        self.points.par_iter().zip(shown).try_for_each(|(point, shown)| {
            let units: Vec<(usize, usize)> = shown.iter().map(|&(_, unit, node, _)| (node, unit)).collect();
            let Some(found) = signs::<N>(network, domain, point, &units) else {
                return Err(Refusal::Network("a point that shows units on or off is not in the domain".to_owned()));
            };
            for ((layer, unit, _, sign), found) in shown.into_iter().zip(found) {
                if sign != found {
                    let state = if sign == Ordering::Less { "off" } else { "on" };
                    return Err(Refusal::unit(layer, unit, &format!("is not {state} where it is said to be")));
                }
            }
            progress.done(1);
            Ok(())
        })
    }
}

/// About how many products it takes to go back through a node.
fn products(network: &Network, node: &Node) -> f64 {
    network.multiply_adds_of(node).max(node.shape().elements()) as f64
}

impl LayerProof {
    /// Checks that nothing is said of what is not there.
    fn check_form(&self, network: &Network, layer: usize, node: usize) -> Result<(), Refusal> {
        let units = network.nodes()[node].shape().elements();
        if self.units.len() != units {
            let reason = format!("{} units are described, and there are {units}", self.units.len());
            return Err(Refusal::Layer { layer, reason });
        }
        let unstable = self.units.iter().filter(|status| **status == Status::Unstable).count();
        if unstable != self.witnesses.len() {
            let reason = format!("{unstable} units are said to be on or off, and {} are shown", self.witnesses.len());
            return Err(Refusal::Layer { layer, reason });
        }
        for (unit, _, tree) in &self.bounds {
            if *unit >= units || !tree.is_about(network, node) {
                return Err(Refusal::unit(layer, *unit, "its bound is about a unit that is not there, or not earlier"));
            }
        }
        Ok(())
    }

    /// How many bounds there are to be proved.
    fn parts(&self) -> usize {
        self.bounds.len() + if self.linear { 2 * self.units.len() } else { 0 }
    }

    /// How many times it takes to go back to the input to prove the bounds.
    fn rows(&self) -> usize {
        let linear = if self.linear { 2 * self.units.len() } else { 0 };
        linear + self.bounds.iter().map(|(_, _, tree)| tree.leaves()).sum::<usize>()
    }

    fn prove<N: Number>(&self, checker: &mut Checker<'_, N>, progress: &dyn Progress) {
        let done = |bounds| progress.done(bounds);
        if self.linear {
            let both = |unit| [(unit, Side::Lower), (unit, Side::Upper)];
            checker.prove_linear_telling(&(0..self.units.len()).flat_map(both).collect::<Vec<_>>(), &[], &done);
        }
        let (mut bounds, mut chosen, mut trees) = (Vec::new(), Vec::new(), Vec::new());
        for (unit, side, tree) in &self.bounds {
            match tree {
                Tree::Leaf { lines, .. } => {
                    bounds.push((*unit, *side));
                    chosen.push(lines);
                }
                Tree::Split { .. } => trees.push((*unit, *side, tree.clone())),
            }
        }
        checker.prove_linear_telling(&bounds, &chosen, &done);
        checker.prove_splits_telling(&trees, &done, &|| false);
    }
}
