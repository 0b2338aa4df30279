//! What is known of a network's units, and all that it takes to prove it again.

use std::collections::HashMap;

use leo_network::{Activation, Domain, LayerId, Network, Observer, Step, UnitId};
use rayon::prelude::*;

use crate::activation::stable_piece;
use crate::checker::{Checker, ProvedBounds};
use crate::correspondence::Expression;
use crate::number::Number;
use crate::relaxation::{BoundProof, SplitTree, Target};
use crate::verify::{Refusal, rounded};
use crate::witness::pieces_at;

/// On which pieces of its activation a unit can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Only on this one, from the left.
    Stable(usize),
    /// Inputs are known for two of them.
    Unstable,
    /// Neither proved nor refuted. It is kept, like an unstable unit.
    Undecided,
}

impl Status {
    /// A ReLU whose pre-activation is nowhere above 0: the unit is always 0.
    pub const OFF: Self = Self::Stable(0);
    /// A ReLU whose pre-activation is nowhere below 0: the unit is a linear function.
    pub const ON: Self = Self::Stable(1);

    /// Whether the unit is a linear function.
    pub fn is_stable(self) -> bool {
        matches!(self, Self::Stable(_))
    }

    /// What is proved of a unit whose pre-activation has these bounds, if that decides it.
    pub fn of_range<N: Number>(of: &Activation, lower: &N, upper: &N) -> Option<Self> {
        stable_piece(of, lower, upper).map(Self::Stable)
    }

    /// What a unit with this status is expressed by if nothing else is said.
    pub fn expression(self, of: &Activation) -> Expression {
        match self {
            Self::Stable(piece) => of.pieces().get(piece).map_or(Expression::Itself, Expression::of_piece),
            Self::Unstable | Self::Undecided => Expression::Itself,
        }
    }
}

/// What is known of the units of a network, layer by layer, and how to prove it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Proof {
    /// For each layer, from the first to the last.
    pub layers: Vec<LayerProof>,
    /// Inputs that show units on several pieces.
    pub points: Vec<Vec<f64>>,
}

/// What is known of the units of a layer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerProof {
    /// Each unit.
    pub units: Vec<Status>,
    /// Whether linear bounds with the default slopes are to be proved for all units: upper bounds of all, and lower
    /// bounds of those that are not always off.
    pub linear: bool,
    /// More bounds to be proved. A leaf alone is a linear bound with slopes of its own.
    pub bounds: Vec<BoundProof>,
    /// For each unstable unit, in their order, which point shows it on a piece, and which one on another further to the
    /// right: off, and on.
    pub witnesses: Vec<[usize; 2]>,
}

/// How many products the bounds of a layer may take at the most: what takes minutes. A small file could ask for years.
fn most_work<N: Number>() -> f64 {
    if N::ROUNDS { 5e11 } else { 2e10 }
}

impl Proof {
    /// Proves it all again, and returns the ranges that follow.
    ///
    /// # Errors
    /// If something is not as it says.
    pub fn check<'n, N: Number>(&self, network: &'n Network, domain: &Domain) -> Result<ProvedBounds<'n, N>, Refusal> {
        self.check_with_observer(network, domain, &())
    }

    /// As [`Self::check`], and tells `observer` how far it has come.
    pub(crate) fn check_with_observer<'n, N: Number>(
        &self,
        network: &'n Network,
        domain: &Domain,
        observer: &dyn Observer,
    ) -> Result<ProvedBounds<'n, N>, Refusal> {
        let mut checker = Checker::<N>::begin(network, domain)?;
        let layers = network.layers().len();
        if layers != self.layers.len() {
            return Err(Refusal::Network(format!(
                "{} layers are described, and there are {layers}",
                self.layers.len()
            )));
        }
        // How many products it takes to come back from a layer to the input.
        let (mut way, mut from) = (network.input().elements() as f64, 0);
        for (layer, proof) in network.layers().zip(&self.layers) {
            checker.next_layer();
            proof.check_form(network, layer)?;
            let node = network.output_of(layer).index() - 1;
            let products = |node| network.multiply_adds_of(node).max(node.shape().elements()) as f64;
            way += network.nodes()[from..node].iter().map(products).sum::<f64>();
            from = node;
            if proof.rows() as f64 * way > most_work::<N>() {
                return Err(Refusal::layer(layer, "its bounds take too much work".to_owned()));
            }
            observer.begin(Step::Bounds { layer: layer.index() + 1, layers }, proof.parts());
            proof.prove(&mut checker, observer);
            let (range, of) = (checker.range(layer), network.activation(layer));
            for (unit, status) in proof.units.iter().enumerate() {
                let Status::Stable(piece) = *status else { continue };
                let (lower, upper) = (&range.lower[unit], &range.upper[unit]);
                let is_above = piece.checked_sub(1).is_none_or(|left| *lower >= N::of(of.knots()[left]));
                let is_below = of.knots().get(piece).is_none_or(|right| *upper <= N::of(*right));
                if !(is_above && is_below) {
                    let (lower, upper) = (-lower.negative().rounded_up(), upper.rounded_up());
                    let (lower, upper) = (rounded(lower), rounded(upper));
                    let always = of.pieces()[piece].name;
                    let reason = format!("is said to be always {always}, and proved to lie in [{lower}, {upper}]");
                    return Err(Refusal::unit(UnitId { layer, unit }, &reason));
                }
            }
        }
        self.check_witnesses::<N>(network, domain, observer)?;
        Ok(checker.finish())
    }

    /// The point that shows a unit on the left of the pieces that it was seen on (off), or on the right (on), if there
    /// is one.
    pub fn witness(&self, UnitId { layer, unit }: UnitId, on: bool) -> Option<&[f64]> {
        let layer = self.layers.get(layer.index()).filter(|layer| layer.units.get(unit) == Some(&Status::Unstable))?;
        let place = layer.units[..unit].iter().filter(|status| **status == Status::Unstable).count();
        let point = layer.witnesses.get(place)?[usize::from(on)];
        self.points.get(point).map(Vec::as_slice)
    }

    /// Checks that every unstable unit is shown on two pieces.
    fn check_witnesses<N: Number>(
        &self,
        network: &Network,
        domain: &Domain,
        observer: &dyn Observer,
    ) -> Result<(), Refusal> {
        observer.begin(Step::Points, self.points.len());
        let mut shown: Vec<Vec<UnitId>> = vec![Vec::new(); self.points.len()];
        let mut unstable: Vec<(UnitId, [usize; 2])> = Vec::new();
        for (layer, proof) in network.layers().zip(&self.layers) {
            let units = proof.units.iter().enumerate().filter(|(_, status)| **status == Status::Unstable);
            for ((unit, _), &points) in units.zip(&proof.witnesses) {
                let unit = UnitId { layer, unit };
                for point in points {
                    let missing = || Refusal::unit(unit, "is shown by a point that is not there");
                    shown.get_mut(point).ok_or_else(missing)?.push(unit);
                }
                unstable.push((unit, points));
            }
        }
        let found = self.points.par_iter().zip(&shown).map(|(point, units)| {
            let Some(pieces) = pieces_at::<N>(network, domain, point, units) else {
                return Err(Refusal::Network("a point that shows units on or off is not in the domain".to_owned()));
            };
            observer.advance(1);
            Ok(units.iter().copied().zip(pieces).collect())
        });
        let found = found.collect::<Result<Vec<HashMap<UnitId, Option<usize>>>, Refusal>>()?;
        for (unit, points) in unstable {
            let pieces = network.activation(unit.layer).pieces();
            let [left, right] = points.map(|point| found[point].get(&unit).copied().flatten());
            if left.is_none_or(|piece| piece + 1 == pieces.len()) || right.is_none() || right <= left {
                let is_left_wrong = left.is_none_or(|piece| piece + 1 == pieces.len());
                let state = if is_left_wrong { &pieces[0] } else { &pieces[pieces.len() - 1] }.name;
                return Err(Refusal::unit(unit, &format!("is not {state} where it is said to be")));
            }
        }
        Ok(())
    }
}

impl LayerProof {
    /// Checks that nothing is said of what is not there.
    fn check_form(&self, network: &Network, layer: LayerId) -> Result<(), Refusal> {
        let (units, pieces) = (network.width(layer), network.activation(layer).pieces().len());
        if self.units.len() != units {
            let reason = format!("{} units are described, and there are {units}", self.units.len());
            return Err(Refusal::layer(layer, reason));
        }
        let unstable = self.units.iter().filter(|status| **status == Status::Unstable).count();
        if unstable != self.witnesses.len() {
            let reason = format!("{unstable} units are said to be on or off, and {} are shown", self.witnesses.len());
            return Err(Refusal::layer(layer, reason));
        }
        let is_there = |status: &Status| !matches!(status, Status::Stable(piece) if *piece >= pieces);
        if let Some(unit) = self.units.iter().position(|status| !is_there(status)) {
            return Err(Refusal::unit(
                UnitId { layer, unit },
                "is said to be on a piece that its activation does not have",
            ));
        }
        for BoundProof { target: Target { unit, .. }, tree } in &self.bounds {
            if *unit >= units || !tree.is_about(network, layer) {
                let unit = UnitId { layer, unit: *unit };
                return Err(Refusal::unit(unit, "its bound is about a unit that is not there, or not earlier"));
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
        linear + self.bounds.iter().map(|bound| bound.tree.leaves()).sum::<usize>()
    }

    fn prove<N: Number>(&self, checker: &mut Checker<'_, N>, observer: &dyn Observer) {
        let done = |bounds| observer.advance(bounds);
        if self.linear {
            let all: Vec<Target> = (0..self.units.len()).flat_map(Target::both).collect();
            checker.prove_linear_with_progress(&all, &[], &done);
        }
        let (mut bounds, mut chosen, mut trees) = (Vec::new(), Vec::new(), Vec::new());
        for bound in &self.bounds {
            match &bound.tree {
                SplitTree::Leaf { lines, .. } => {
                    bounds.push(bound.target);
                    chosen.push(lines);
                }
                SplitTree::Split { .. } => trees.push(bound.clone()),
            }
        }
        checker.prove_linear_with_progress(&bounds, &chosen, &done);
        checker.prove_splits_with_progress(&trees, &done, &|| false);
    }
}
