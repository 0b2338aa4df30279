//! What can be claimed about a unit, and what proves it.

use std::collections::BTreeMap;

use leo_network::Network;

use crate::number::Number;

/// Which side of a pre-activation a bound is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// It is nowhere less.
    Lower,
    /// It is nowhere more.
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

/// For one linear bound, the slopes of the lines below earlier units that can be on or off: by the layer's node, and the unit. Where nothing is said, or
/// something that is not a number, it is the [default](default_slope).
pub type Slopes = BTreeMap<(usize, usize), f64>;

/// The slope of the line below a unit whose pre-activation has this range, if nothing else is said: 1 if it reaches clearly further above 0 than below it, otherwise 0.
///
/// Clearly, or rounding would decide where it reaches as far, which is common, and another arithmetic would come to another bound.
pub fn default_slope<N: Number>(lower: &N, upper: &N) -> f64 {
    if *upper > lower.negative().times(&N::of(1.0 + CLEARLY)) { 1.0 } else { 0.0 }
}

/// How much further.
const CLEARLY: f64 = 1.0 / (1 << 20) as f64;

/// A case distinction: the domain is cut where an earlier unit turns on, again and again, and a bound is proved for every piece.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// A linear bound, on what is left of the domain here.
    Leaf {
        /// For each cut on the way here, from the first to the last: how much of the pre-activation that has a known sign here is added
        /// to what is to be bounded. Missing ones are 0.
        multipliers: Vec<f64>,
        /// The slopes.
        slopes: Slopes,
    },
    /// Where the pre-activation of a unit is at most 0, and where it is at least 0: together, everywhere.
    Split {
        /// The layer's node.
        layer: usize,
        /// Which of its units.
        unit: usize,
        /// The proof for inputs where it is off.
        off: Box<Tree>,
        /// The proof for inputs where it is on.
        on: Box<Tree>,
    },
}

impl Tree {
    /// How many pieces it has.
    pub(crate) fn leaves(&self) -> usize {
        match self {
            Self::Leaf { .. } => 1,
            Self::Split { off, on, .. } => off.leaves() + on.leaves(),
        }
    }

    /// Whether it distinguishes cases only by units of layers before this one.
    pub(crate) fn is_about(&self, network: &Network, before: usize) -> bool {
        match self {
            Self::Leaf { .. } => true,
            Self::Split { layer, unit, off, on } => {
                let is_earlier = *layer < before && network.relu_layers().any(|node| node == *layer);
                is_earlier
                    && *unit < network.nodes()[*layer].shape().elements()
                    && off.is_about(network, before)
                    && on.is_about(network, before)
            }
        }
    }
}

/// A piece of the domain: a unit's pre-activation is at least 0 there, or at most 0, and how much of it a bound makes use of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Cut {
    pub(crate) layer: usize,
    pub(crate) unit: usize,
    pub(crate) on: bool,
    pub(crate) multiplier: f64,
}

impl Cut {
    /// What to add to the coefficient of the pre-activation: nothing that is not on the safe side.
    pub(crate) fn addend(&self) -> f64 {
        let multiplier = if self.multiplier > 0.0 && self.multiplier.is_finite() { self.multiplier } else { 0.0 };
        if self.on { multiplier } else { -multiplier }
    }
}
