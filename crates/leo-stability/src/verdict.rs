//! What is known about a unit, and by what.

use leo_check::Status;

use crate::technique::Technique;

/// A unit, its proved range and the verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// The verdict.
    pub status: Status,
    /// What decided it, if anything did.
    pub by: Option<Technique>,
    /// Whether the verdict is only what a solver said, which no proof or input confirms; see
    /// [`crate::AnalysisOptions::trust_solver`].
    pub trusted: bool,
    /// Proved: its pre-activation is nowhere less on the domain.
    pub lower: f64,
    /// Proved: its pre-activation is nowhere more on the domain.
    pub upper: f64,
    /// If they were asked for and the unit is unstable, an input where it is off, and one where it is on.
    pub witnesses: Option<[Vec<f64>; 2]>,
    /// What is known of its positions, if it is a channel.
    pub positions: Option<Positions>,
}

/// How many positions channels have, and how many of these are stable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Positions {
    /// All of them.
    pub all: usize,
    /// How many are always off.
    pub off: usize,
    /// How many are always on.
    pub on: usize,
}

/// A verdict in the making.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) status: Status,
    pub(crate) by: Technique,
    pub(crate) trusted: bool,
}
