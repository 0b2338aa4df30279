//! What can be claimed about a unit, and what proves it.

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

/// For a linear bound, the slopes of the lines below earlier units that can be on or off.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Slopes {
    /// 1 where a unit's proved range reaches further above 0 than below it, otherwise 0.
    #[default]
    Default,
    /// Chosen ones.
    Chosen(Vec<LayerSlopes>),
}

/// The slopes of one layer: for each bound of a batch, one for each unit.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSlopes {
    /// The layer's node.
    pub layer: usize,
    /// A row for each bound of the batch, of one slope for each unit of the layer.
    pub rows: Vec<Vec<f64>>,
}

impl Slopes {
    /// What was chosen for a layer's units and one of the bounds.
    pub(crate) fn of(&self, layer: usize, bound: usize) -> Option<&[f64]> {
        let Self::Chosen(layers) = self else { return None };
        let rows = &layers.iter().find(|slopes| slopes.layer == layer)?.rows;
        rows.get(bound).map(Vec::as_slice)
    }
}

/// A case distinction: the domain is cut where an earlier unit turns on, again and again, and a bound is proved for every piece.
#[derive(Clone, Debug, PartialEq)]
pub enum Tree {
    /// A linear bound, on what is left of the domain here.
    Leaf {
        /// For each cut on the way here, from the first to the last: how much of the pre-activation that has a known sign here is added
        /// to what is to be bounded. Missing ones are 0.
        multipliers: Vec<f64>,
        /// The slopes of this one bound.
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
