//! The techniques of the search, a file each, and the order in which they are tried.
//!
//! A file has what its [`Technique`] is called, and its [`TechniqueStep`]s: when they are worth trying, whether they
//! spend the layer's share of the time, and what they do. A new technique is such a file, and a line in [`PIPELINE`].
//! What they have in common, from asking the checker to keeping a proof, is [`Analyzer`]'s.

mod interval;
mod linear;
mod lp;
mod milp;
mod slopes;
mod split;
mod tighten;
mod tilt;
mod witness;

use crate::Engine;
use crate::analysis::Analyzer;

pub(crate) use tighten::Refinement;

/// A way to decide units.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Technique {
    /// What files call it.
    pub name: &'static str,
    /// What people call it.
    pub in_words: &'static str,
    /// Whether it decides what it decides without a search.
    pub is_plain: bool,
}

impl Technique {
    /// Interval arithmetic.
    pub const INTERVAL: Self = interval::TECHNIQUE;
    /// Linear bounds with the default slopes.
    pub const LINEAR: Self = linear::TECHNIQUE;
    /// Two inputs, one on either side of a knot.
    pub const WITNESS: Self = witness::TECHNIQUE;
    /// A case distinction with linear bounds.
    pub const SPLIT: Self = split::TECHNIQUE;
    /// Linear bounds with chosen slopes.
    pub const SLOPES: Self = slopes::TECHNIQUE;
    /// A linear program.
    pub const LP: Self = lp::TECHNIQUE;

    /// All of them, from the cheapest to the most expensive.
    pub fn all() -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for step in PIPELINE {
            if !all.contains(&step.technique) {
                all.push(step.technique);
            }
        }
        all
    }
}

/// What a step may spend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cost {
    /// Nothing worth measuring: it makes use of what is known.
    Nothing,
    /// What it takes.
    Little,
    /// The layer's share of the time that is left, which it shares with the steps after it.
    Share,
}

/// A part of a technique, as it is tried on a layer.
pub(crate) struct TechniqueStep {
    pub(crate) technique: Technique,
    pub(crate) cost: Cost,
    /// Whether there is anything to do.
    pub(crate) when: fn(&Analyzer<'_, '_>) -> bool,
    pub(crate) attempt: fn(&mut Analyzer<'_, '_>),
}

/// What is tried, in this order.
const PIPELINE: &[TechniqueStep] = &[
    interval::READ_OFF,
    witness::READ_OFF,
    linear::RECALL,
    linear::BOUND,
    witness::CLIMB,
    slopes::IMPROVE,
    tilt::NARROW,
    witness::ASCEND,
    tilt::GO_BACK,
    tilt::TILT,
    lp::RELAX,
    witness::ASCEND_LONGER,
    split::SPLIT,
    milp::ASK,
];

/// What is tried, in this order, if it is to be the paper's way.
const PAPER: &[TechniqueStep] = &[milp::DECIDE];

/// What comes before ranges are tightened ([`Analyzer::tighten`]).
const BOUNDS_ALONE: &[TechniqueStep] = &[interval::READ_OFF, linear::BOUND];

/// What an engine tries.
pub(crate) fn pipeline(engine: Engine) -> &'static [TechniqueStep] {
    match engine {
        Engine::Auto | Engine::Bounds => PIPELINE,
        Engine::Milp => PAPER,
        Engine::Tighten => BOUNDS_ALONE,
    }
}
