//! For units that neither bounds nor witnesses settle: linear programs, branch and bound, and the paper's mixed-integer
//! programs.
//!
//! All of them work on the [`reduced`] network, where units that are proved to be stable are gone. What they find is
//! worth nothing until the checker has carried out the proof, or evaluated the witness.

pub(crate) mod branch_and_bound;
pub(crate) mod reduced;

#[cfg_attr(feature = "highs", path = "highs.rs")]
#[cfg_attr(not(feature = "highs"), path = "none.rs")]
pub(crate) mod solver;

use leo_check::{Side, SplitTree};
use leo_network::UnitId;

/// A unit of an earlier layer, and on which side of 0 its pre-activation is on a piece of the domain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Split {
    pub(crate) unit: UnitId,
    pub(crate) side: Side,
}

/// The solution of a linear program over the relaxed network.
pub(crate) struct Optimum {
    /// The input where its maximum is attained.
    pub(crate) point: Vec<f64>,
    /// For each unit of the reduced network, how far its output is above what it should be.
    pub(crate) gaps: Vec<f64>,
    /// For each unit of the reduced network, the coefficient of its pre-activation in the proof of the maximum.
    pub(crate) duals: Vec<f64>,
}

/// What a mixed-integer program said, to be believed or not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Claim {
    /// The best bound on the maximum.
    pub(crate) bound: f64,
    /// The best value of a solution.
    pub(crate) value: f64,
    /// A solution that is certain to be above 0.
    pub(crate) point: Option<Vec<f64>>,
}

/// What was found about one bound.
pub(crate) enum SearchOutcome {
    /// This proves it, if the checker agrees.
    Proved(SplitTree),
    /// An input with the sign that was to be excluded.
    Refuted(Vec<f64>),
    /// Neither, within the budget.
    Open,
}
