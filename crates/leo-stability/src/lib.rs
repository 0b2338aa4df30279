//! Decides for every unit of a network on which pieces of its activation it can be on a domain: whether a ReLU can be
//! on, and whether it can be off.
//!
//! Cheapest first, and stop at the sign: a unit's optimum is never needed. Inputs with both signs settle a unit as unstable; bounds
//! proved by `leo-check` settle it as stable. What neither settles is undecided, and kept.

mod analysis;
mod bounds;
mod budget;
mod proof_log;
// Without a solver, what only it needs is not used.
mod adjoint;
mod checkpoint;
#[cfg_attr(not(feature = "highs"), allow(dead_code))]
mod search;
mod technique;
mod verdict;
mod witness;

use std::collections::BTreeMap;
use std::time::Duration;

use leo_check::{Proof, ProvedBounds};
use leo_network::{Array, Domain, DomainError, LayerId, Network, Observer};

pub use budget::StopReason;
pub use checkpoint::Checkpoint;
pub use leo_check::Status;
pub use technique::Technique;
pub use verdict::Unit;
pub use witness::gradient::gradients;

/// Whether this build can solve linear and mixed-integer programs.
pub const HAS_SOLVER: bool = cfg!(feature = "highs");

/// Which ways of deciding a unit are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Engine {
    /// All of them, the cheapest first.
    #[default]
    Auto,
    /// All that need no solver.
    Bounds,
    /// Only mixed-integer programs, one a unit and sign from the first layer to the last, as in the paper. Their answers still count only once
    /// a proof or an input confirms them.
    Milp,
}

/// How to go about it.
#[derive(Clone, Copy, Default)]
pub struct AnalysisOptions<'a> {
    /// Which ways are open.
    pub engine: Engine,
    /// Whether what a mixed-integer program says counts even if it cannot be confirmed. It works to tolerances, and may be wrong.
    pub trust_solver: bool,
    /// What random points are drawn from.
    pub seed: u64,
    /// Points to begin with. Where they leave the domain, the point of it next to them is taken.
    pub samples: Option<&'a Array>,
    /// Whether to report inputs for both signs of every unstable unit.
    pub witnesses: bool,
    /// Whether the proof shall have inputs that show every unstable unit on and off. Without them, it says nothing of these.
    pub shown: bool,
    /// Whether the ranges of units in the last layer shall be narrow too. No verdict needs that.
    pub narrow: bool,
    /// For one bound of one unit, how many pieces a case distinction may have, and how many nodes a mixed-integer program's search tree.
    pub nodes: Option<usize>,
    /// What another analysis of the same network on the same domain has found, to go on from there. Not for
    /// [`Engine::Milp`].
    pub checkpoint: Option<&'a Checkpoint>,
    /// When to stop.
    pub time_limit: Option<Duration>,
    /// How many bytes of memory the whole process may have in use before the analysis stops.
    pub memory_limit: Option<u64>,
    /// Who is told how it goes, may stop it, and is given a [`Checkpoint`] in the end.
    pub observer: Option<&'a dyn Observer>,
}

/// A layer of units.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Which one.
    pub id: LayerId,
    /// Its units, in the order of the values.
    pub units: Vec<Unit>,
    /// How long it took.
    pub time: Duration,
}

/// What was found out.
#[derive(Clone, Debug)]
pub struct Analysis<'n> {
    /// All layers, from the first to the last.
    pub layers: Vec<Layer>,
    /// If some units are undecided, and more time or memory might have changed that: what was first used up. With a time limit, every layer's
    /// search has its share.
    pub stopped: Option<StopReason>,
    /// How long the techniques took that can take long, in all layers together.
    pub steps: BTreeMap<Technique, Duration>,
    /// All that is proved.
    pub facts: ProvedBounds<'n>,
    /// How to prove it again.
    pub proof: Proof,
}

/// Decides every unit it can.
///
/// The same options give the same answers, whatever the number of threads, unless it is stopped on the way.
///
/// # Errors
/// If the domain does not have as many inputs as the network, or the samples have another shape than its input.
pub fn analyze<'n>(
    network: &'n Network,
    domain: &Domain,
    options: &AnalysisOptions<'_>,
) -> Result<Analysis<'n>, DomainError> {
    analysis::run(network, domain, options)
}
