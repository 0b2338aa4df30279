//! What can be claimed about a unit, and what proves it.
//!
//! A proof of a bound names what a linear bound is free to choose: slopes (alpha-CROWN, Xu et al. 2021), tilted lines
//! ([`MixedInequality`]; Anderson et al. 2020), and, on the pieces of a tree of splits (branch and bound, Bunel et al.
//! 2018), multipliers for what the splits say (beta-CROWN, Wang et al. 2021).

use std::collections::BTreeMap;
use std::sync::Arc;

use leo_network::op::Dense;
use leo_network::{LayerId, Network, UnitId, ValueId};

/// A side of a number: of what a bound excludes, of a knot where a unit is, of 0 where a pre-activation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Less.
    Lower,
    /// More.
    Upper,
}

impl Side {
    /// What to multiply a pre-activation by so that a bound on this side is an upper bound.
    pub fn sign(self) -> f64 {
        match self {
            Self::Lower => -1.0,
            Self::Upper => 1.0,
        }
    }
}

/// Something to bound: a unit's pre-activation, or an element of another value, from one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// Which unit of its layer.
    pub unit: usize,
    /// From which side.
    pub side: Side,
}

impl Target {
    /// Both bounds of a unit.
    pub fn both(unit: usize) -> [Self; 2] {
        [Side::Lower, Side::Upper].map(|side| Self { unit, side })
    }
}

/// A bound of a unit, and what proves it.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundProof {
    /// What is bounded.
    pub target: Target,
    /// How.
    pub tree: SplitTree,
}

/// For one linear bound, the slopes of the lines on the side of earlier units where they are free. Where nothing is
/// said, or something that is not a number, it is the [default](crate::default_slope).
pub type LowerSlopes = BTreeMap<UnitId, f64>;

/// What a linear bound is free to choose: the lines that stand for earlier units that are unstable.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Relaxation {
    /// The slopes of the lines below units.
    pub slopes: LowerSlopes,
    /// The lines above the units of one layer, if they are not the chords.
    pub tilt: Option<Arc<MixedInequality>>,
}

/// For one linear bound, lines above the units of a layer that is made by one affine map, as functions of what that map
/// reads.
///
/// The chord above a unit only knows the least and the greatest pre-activation. A function `a z + d` of what the map
/// reads is above `max(0, w z + b)` on all the box that `z` lies in if it is nowhere below 0 there and nowhere below `w
/// z + b`, which are two sums to compute. Any `a` will do, with the `d` that it needs. The best ones have the form that
/// is described here: each weight of the unit times a share from 0 to 1, which is the larger the less the input helps
/// to turn the unit on, at the point where the line is to be near the unit. This is what the inequalities of Anderson
/// et al. (2020) come to when they are mixed.
#[derive(Clone, Debug, PartialEq)]
pub struct MixedInequality {
    /// The layer.
    pub layer: LayerId,
    /// The point: for each element that the affine map reads, how far it is from the lower end of its range, of 255
    /// parts of the range.
    pub position: Vec<u8>,
    /// For each unit of the layer, about how much of it is on there, of 255 parts.
    pub on: Vec<u8>,
    /// Over which difference of shares the weights go from all to nothing.
    pub softness: f64,
}

impl MixedInequality {
    /// The share that `parts` of 255 parts are.
    pub fn share(parts: u8) -> f64 {
        f64::from(parts) / 255.0
    }

    /// About how many of 255 parts a `share` is.
    pub fn parts(share: f64) -> u8 {
        (share * 255.0).round() as u8
    }

    /// The affine map that makes the pre-activations of a layer of ReLUs, and what it reads, if lines above the layer's
    /// units can be tilted.
    pub fn map(network: &Network, layer: LayerId) -> Option<(&Dense, ValueId)> {
        let node = &network.nodes()
            [network.pre_activation(layer).node().filter(|_| network.activation(layer).is_rectifier())?];
        let dense = node.op().as_dense().filter(|dense| node.shape().elements() == dense.weight().rows())?;
        Some((dense, node.operands()[0]))
    }

    /// Whether the network has the tilted layer, it comes `before` this one, and there are as many numbers as it needs.
    pub(crate) fn is_about(&self, network: &Network, before: LayerId) -> bool {
        self.layer < before && self.fits(network)
    }

    /// Whether the network has such a layer, and there are as many numbers as it needs.
    pub(crate) fn fits(&self, network: &Network) -> bool {
        let fits = |(dense, _): (&Dense, ValueId)| {
            (dense.weight().columns(), dense.weight().rows()) == (self.position.len(), self.on.len())
        };
        let is_soft = self.softness > 0.0 && self.softness.is_finite();
        Self::map(network, self.layer).is_some_and(fits) && is_soft
    }

    /// What to multiply the weights of a unit by.
    pub(crate) fn shares<'a>(&'a self, unit: usize, weights: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let on = Self::share(self.on[unit]);
        weights.iter().zip(&self.position).map(move |(&weight, &position)| {
            let position = Self::share(position);
            let helps = if weight > 0.0 { position } else { 1.0 - position };
            (0.5 + (on - helps) / self.softness).clamp(0.0, 1.0)
        })
    }
}

/// A case distinction: the domain is cut where an earlier unit passes a knot, again and again, and a bound is proved
/// for every piece.
#[derive(Clone, Debug, PartialEq)]
pub enum SplitTree {
    /// A linear bound, on what is left of the domain here.
    Leaf {
        /// For each cut on the way here, from the first to the last: how much of what has a known sign here is added
        /// to what is to be bounded. Missing ones are 0.
        multipliers: Vec<f64>,
        /// The lines that stand for units.
        lines: Relaxation,
    },
    /// Where the pre-activation of a unit is at most at a knot, and where it is at least there: together, everywhere.
    Split {
        /// The unit.
        unit: UnitId,
        /// Which of its knots, from the left.
        knot: usize,
        /// The proofs for inputs where it is below the knot, and where it is above.
        halves: [Box<SplitTree>; 2],
    },
}

impl SplitTree {
    /// How many pieces it has.
    pub(crate) fn leaves(&self) -> usize {
        match self {
            Self::Leaf { .. } => 1,
            Self::Split { halves, .. } => halves.iter().map(|half| half.leaves()).sum(),
        }
    }

    /// Whether all that it names is there, in layers `before` this one.
    pub(crate) fn is_about(&self, network: &Network, before: LayerId) -> bool {
        match self {
            Self::Leaf { lines, .. } => lines.tilt.as_ref().is_none_or(|tilt| tilt.is_about(network, before)),
            Self::Split { unit: UnitId { layer, unit }, knot, halves } => {
                *layer < before
                    && *unit < network.width(*layer)
                    && *knot < network.activation(*layer).knots().len()
                    && halves.iter().all(|half| half.is_about(network, before))
            }
        }
    }
}

/// A piece of the domain: a unit's pre-activation lies on one side of a knot there, and how much of that a bound makes
/// use of. Any linear function of a value with a known sign could stand here.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct KnownPhase {
    pub(crate) unit: UnitId,
    pub(crate) knot: f64,
    pub(crate) side: Side,
    pub(crate) multiplier: f64,
}

impl KnownPhase {
    /// What to add to the coefficient of the pre-activation, less the knot: nothing that is not on the safe side.
    pub(crate) fn addend(&self) -> f64 {
        let multiplier = if self.multiplier > 0.0 && self.multiplier.is_finite() { self.multiplier } else { 0.0 };
        self.side.sign() * multiplier
    }
}
