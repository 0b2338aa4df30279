//! What is known about a unit, and by what.

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

/// The step that decided a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// Interval arithmetic.
    Interval,
    /// A linear bound with the default slopes.
    Linear,
    /// A linear bound with slopes chosen for it.
    Slopes,
    /// A case distinction with linear bounds.
    Split,
    /// Two inputs.
    Witness,
}

/// A unit, its proved range and the verdict.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// The verdict.
    pub status: Status,
    /// What decided it, if anything did.
    pub by: Option<By>,
    /// Proved: its pre-activation is nowhere less on the domain.
    pub lower: f64,
    /// Proved: its pre-activation is nowhere more on the domain.
    pub upper: f64,
}

impl Status {
    /// What a proved range says.
    pub(crate) fn of_range(lower: f64, upper: f64) -> Option<Self> {
        if upper <= 0.0 {
            Some(Self::Inactive)
        } else if lower >= 0.0 {
            Some(Self::Active)
        } else {
            None
        }
    }
}
