//! What is known about a unit, and by what.

use leo_check::Status;

/// The step that decided a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum By {
    /// Interval arithmetic.
    Interval,
    /// A linear bound with the default slopes.
    Linear,
    /// A linear bound with slopes chosen for it.
    Slopes,
    /// A linear bound with slopes chosen for it and tilted lines, from ranges that are as narrow as such lines can make them.
    Tilt,
    /// A linear program.
    Lp,
    /// A case distinction with linear bounds.
    Split,
    /// A mixed-integer program.
    Milp,
    /// Two inputs.
    Witness,
}

impl By {
    /// All of them, from the cheapest to the most expensive.
    pub const ALL: [Self; 8] =
        [Self::Interval, Self::Witness, Self::Linear, Self::Slopes, Self::Tilt, Self::Lp, Self::Split, Self::Milp];
}

/// A unit, its proved range and the verdict.
#[derive(Clone, Debug, PartialEq)]
pub struct Unit {
    /// The verdict.
    pub status: Status,
    /// What decided it, if anything did.
    pub by: Option<By>,
    /// Whether the verdict is only what a solver said, which no proof or input confirms; see [`crate::Options::trust_solver`].
    pub trusted: bool,
    /// Proved: its pre-activation is nowhere less on the domain.
    pub lower: f64,
    /// Proved: its pre-activation is nowhere more on the domain.
    pub upper: f64,
    /// If they were asked for and the unit is unstable, an input where it is off, and one where it is on.
    pub witnesses: Option<[Vec<f64>; 2]>,
}

/// A verdict in the making.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Verdict {
    pub(crate) status: Status,
    pub(crate) by: By,
    pub(crate) trusted: bool,
}
