//! Why stable units are still there, and what else could go.

use std::fmt;

use leo_network::LayerId;
use leo_stability::{Layer, Status};

use crate::rewriting::history::History;
use crate::rewriting::region::Regions;

/// Units that are always on or always off, and stay.
#[derive(Clone, Debug, PartialEq)]
pub struct Staying {
    /// Their layer.
    pub layer: LayerId,
    /// Which of its units.
    pub units: Vec<usize>,
    /// Why.
    pub why: Why,
}

/// Why stable units stay.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// Something needs the layer's outputs as they are.
    Pinned(String),
    /// This many linear functions have to get past the layer, none of which is a combination of the others, and a unit
    /// is needed for each.
    Rank(usize),
    /// Single precision would make this many times the error of the original network's in what would be left.
    Noise(f64),
    /// Weights would have to be rounded, and as far as that can be proved, outputs would move by this part of what they
    /// reach.
    Visible(f64),
    /// Weights would have to be rounded, and outputs would move by more than that should do.
    Rounding,
    /// The file cannot be written with anything else there, for this reason.
    Impossible(String),
    /// Weights would have to be computed, and none may be.
    NewNumbers,
    /// The paper's algorithm knows no rule for them.
    NoRule,
    /// There was no time left.
    OutOfTime,
    /// Channels of a convolution that are always off: they are added to others, or stand beside them, in this node, and
    /// leave together with these or not at all.
    Coupled(String),
    /// Channels that are always off, and make their number a multiple of this one.
    Aligned(usize),
    /// Channels of a convolution that are always on are linear functions, and these are none of others.
    LinearChannel,
}

impl fmt::Display for Why {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pinned(reason) | Self::Impossible(reason) => formatter.write_str(reason),
            Self::Rank(1) => formatter.write_str("a linear function has to get past this layer, and is carried here"),
            Self::Rank(rank) => {
                write!(formatter, "{rank} linear functions have to get past this layer, and are carried here")
            }
            Self::Noise(factor) => write!(
                formatter,
                "otherwise single precision would make {factor:.1} times the error that it makes in the original (see \
                 --allow-noise)"
            ),
            Self::Visible(part) => write!(
                formatter,
                "otherwise rounding could move outputs by {part:.1e} of what they reach, as far as is proved (a larger \
                 --tolerance may allow that)"
            ),
            Self::Rounding => formatter.write_str("rounding the weights that would be left moves outputs too far"),
            Self::NewNumbers => formatter.write_str("otherwise other weights would have to change (--bit-exact)"),
            Self::NoRule => {
                formatter.write_str("no combination of other units gives the same (--method full may do without)")
            }
            Self::Coupled(node) => write!(
                formatter,
                "{node:?} adds others to these channels, or puts others beside them, and those are needed: they would \
                 have to leave together"
            ),
            Self::Aligned(align) => {
                write!(formatter, "runtimes are faster with multiples of {align} channels (see --align)")
            }
            Self::LinearChannel => formatter.write_str(
                "these linear functions are no combination of others that stay, or nothing can make up for them here",
            ),
            Self::OutOfTime => formatter.write_str("the time limit left no time to rewrite them"),
        }
    }
}

/// What kept regions from being rewritten, or parts of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Obstacles {
    /// How many times larger errors in single precision would have got at the least, if that was too much.
    pub(crate) noise: Option<f64>,
    /// By what part of what they reach outputs could have moved, if that was too much.
    pub(crate) visible: Option<f64>,
    /// Why what was planned could not be written.
    pub(crate) impossible: Option<String>,
    /// Whether rounding did too much harm.
    pub(crate) rounding: bool,
    /// Whether there was no time left.
    pub(crate) out_of_time: bool,
    /// What remains to be said where none of that is the case.
    pub(crate) otherwise: Option<Why>,
    /// For each region and each of its layers that stays, how many linear functions have to get past it.
    pub(crate) ranks: Vec<Vec<Option<usize>>>,
}

/// The stable units of a file that are still there, and why.
pub(crate) fn staying(history: &History, regions: &Regions, obstacles: &Obstacles) -> Vec<Staying> {
    let mut staying = Vec::new();
    for (layer, removed) in history.layers.iter().zip(&history.removed) {
        let units =
            (0..layer.units.len()).filter(|&unit| layer.units[unit].status.is_stable() && removed[unit].is_none());
        let (off, on): (Vec<usize>, Vec<usize>) = units.partition(|&unit| layer.units[unit].status == Status::OFF);
        for (units, is_on) in [(off, false), (on, true)] {
            if !units.is_empty() {
                let why = why(layer, is_on.then_some(units.len()), regions, obstacles);
                staying.push(Staying { layer: layer.id, units, why });
            }
        }
    }
    staying
}

/// Why units of a layer are still there: the units that are always on, if `on` says how many these are, or those that
/// are always off.
fn why(layer: &Layer, on: Option<usize>, regions: &Regions, obstacles: &Obstacles) -> Why {
    if let Ok(place) = regions.pinned.binary_search_by_key(&layer.id, |pinned| pinned.layer) {
        return Why::Pinned(regions.pinned[place].reason.clone());
    }
    let rank = regions.regions.iter().zip(&obstacles.ranks).find_map(|(region, ranks)| {
        let place = region.layers.binary_search_by_key(&layer.id, |of_region| of_region.id).ok()?;
        ranks.get(place).copied().flatten()
    });
    if let (Some(on), Some(rank)) = (on, rank)
        && on <= rank
    {
        return Why::Rank(rank);
    }
    match (obstacles, rank) {
        (Obstacles { out_of_time: true, .. }, _) => Why::OutOfTime,
        (Obstacles { otherwise: Some(otherwise), .. }, _) => otherwise.clone(),
        (Obstacles { noise: Some(factor), .. }, _) => Why::Noise(*factor),
        (Obstacles { visible: Some(part), .. }, _) => Why::Visible(*part),
        (Obstacles { impossible: Some(reason), .. }, _) => Why::Impossible(reason.clone()),
        (Obstacles { rounding: true, .. }, _) => Why::Rounding,
        (_, Some(rank)) if on.is_some() && rank > 0 => Why::Rank(rank),
        _ => Why::Rounding,
    }
}

/// How many units would go with another tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prospect {
    /// The tolerance: a part of what each output was seen to reach.
    pub tolerance: f64,
    /// How many units would go in all.
    pub units: usize,
}
