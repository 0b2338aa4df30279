//! Decides for every unit of a network on which pieces of its activation it can be on a domain: whether a ReLU can be
//! on, and whether it can be off.
//!
//! A unit that stays on one piece is *stable*: a ReLU that is always off, or always on. One that is seen on two pieces
//! is *unstable*. [`analyze`] goes through the network layer by layer and decides units by ever more expensive means,
//! all of them known from the verification of neural networks. There a property of the outputs is asked for; here, two
//! questions are asked of every unit: can its pre-activation be above 0, and can it be below?
//!
//! # What is certain, and what is only proposed
//!
//! Nothing that this crate computes is believed. All of it is in plain floating point, and comes to one of two things:
//!
//! - *A proposal for a proof*: slopes, tilted lines, multipliers, a tree of splits. `leo-check` carries the proof out,
//!   with all rounding bounded, and what it finds is the proved range of a pre-activation. A unit counts as stable if
//!   that range lies on one piece. A bad proposal gives a worse bound, never a wrong one.
//! - *An input*: it counts as a witness if the computed pre-activation is further from 0 than rounding can explain,
//!   anywhere on the domain, or if the checker has settled its sign exactly. Two of them, one with each sign, make a
//!   unit unstable.
//!
//! What neither settles is [undecided](Status::Undecided), and kept like an unstable unit. What a solver says of a
//! linear or mixed-integer program is a hint where to look. Only [`AnalysisOptions::trust_solver`] lets it count, and
//! [`Unit::trusted`] then says so.
//!
//! # Step by step
//!
//! Before the first layer, samples (if there are any) and random points are evaluated, once for all units. Then every
//! layer goes through the steps below. Each works on bounds that are still open, if it does not say otherwise, and
//! stops at the sign: an optimum is never needed. The name that a step begins with is that of its [`Technique`].
//!
//! 1. `interval`: reads off what intervals prove (IBP, Gowal et al. 2018). For a first layer over a box, that is all
//!    there is to know.
//! 2. `linear`: bounds every unit of the layer by backward substitution (CROWN, Zhang et al. 2018; DeepPoly, Singh et
//!    al. 2019), in a few matrix products; also unstable ones, because the layers after need their ranges.
//! 3. `witness`: evaluates the corners of the domain where these bounds are attained, which are nearly always the
//!    inputs that were missing, and climbs along gradients from the best points that are known (Frank and Wolfe 1956;
//!    FGSM, Goodfellow et al. 2015).
//! 4. `slopes`: chooses the slopes of lines below units for each bound, by gradients (alpha-CROWN, Xu et al. 2021).
//! 5. `witness`: many climbs at once, by shrinking steps with momentum, from good points and random ones (PGD, Madry et
//!    al. 2018; momentum, Dong et al. 2018).
//! 6. `tilt`: goes back to make the ranges of earlier layers narrower (below); then lets the lines above units of the
//!    first layer follow the units, with slopes to suit (Anderson et al. 2020, Tjandraatmadja et al. 2020).
//! 7. `lp`: a linear program over the triangle relaxation (Ehlers 2017) for each bound, where programs are small. Its
//!    dual values are the slopes of a proof.
//! 8. `witness`: climbs again, for longer.
//! 9. `split`: branch and bound (Bunel et al. 2018). The domain is split where a unit passes 0, again and again, the
//!    piece with the worst bound first; units are chosen by filtered smart branching (De Palma et al. 2021), and bounds
//!    make use of the signs that are known on a piece (beta-CROWN, Wang et al. 2021).
//! 10. `milp`: a mixed-integer program for each bound (Tjeng et al. 2019, Serra et al. 2020), which finds a witness, or
//!     a reason to look longer for a proof.
//!
//! The order is that of what a step costs for what it decides. Up to `slopes`, everything is done for many bounds at
//! once, and most networks need no more. From `tilt` on there is a search for each bound; the two searches for
//! witnesses stand in front of what they may make unnecessary. Without the feature `highs` there are no programs, and
//! all else is there. [`Engine::Milp`] is the paper's way instead: a program for each unit and sign, whose answers are
//! then proved.
//!
//! Networks with convolutions have a way of their own, channel by channel: `interval` and `witness` for all layers, and
//! then `linear`, for the channels that are nearest to a sign, one position after the other.
//!
//! # Going back
//!
//! How good a bound is depends on the ranges of all layers before: in the field's words, the intermediate bounds. These
//! can be tightened by the same means, but that is a search for each bound of each unstable unit. So layers are first
//! gone through without. Where a unit stays open, the analysis goes back to the first layer whose ranges were not
//! tightened yet, and from there on tightens every layer on its way, each one once. Witnesses that were found stay
//! found.
//!
//! # Time and memory
//!
//! With [`AnalysisOptions::time_limit`], the steps that can take long have a share of what is left: what remains,
//! divided by the number of layers to come that may need it. When the last layer is through and time is left over, the
//! analysis goes back to the first layer that had too little, and takes what is known of all others along. `split`
//! gives every bound 64 pieces before any gets more, so that one that is hopeless does not keep the others waiting.
//! [`Analysis::stopped`] says what ran out, if that may have cost a verdict. [`AnalysisOptions::observer`] is given a
//! [`Checkpoint`], and [`AnalysisOptions::checkpoint`] takes it again: proofs are then carried out again, points are
//! evaluated again, and trees go on where they ended.
//!
//! The same options give the same answers on any number of threads: what is worked on together does not depend on it.
//!
//! # What comes out
//!
//! [`Analysis::layers`] has the verdicts and the proved ranges; [`Analysis::facts`], the ranges of all values, for
//! whoever rewrites the network; and [`Analysis::proof`], how to prove all of it again, for the certificate: which
//! bounds, which slopes, which trees, and two points for each unstable unit.
//!
//! # An example
//!
//! With `x` and `y` from 0 to 1, `x + y` is never negative, and `x - y` and `y - x` can be both. The second layer has a
//! unit `relu(x - y) + relu(y - x) - (x + y) - 0.1`, which is `|x - y| - x - y - 0.1`: always off, which neither
//! intervals nor linear bounds with chords can see. Lines that are tilted can: `relu(x - y) <= x`, and `relu(y - x) <=
//! y`.
//!
//! ```
//! use leo_network::op::{Dense, Matrix, Relu};
//! use leo_network::{Domain, Network, Shape, ValueId};
//! use leo_stability::{AnalysisOptions, Status, Unit, analyze};
//!
//! let mut builder = Network::builder(Shape::new([2])?);
//! let first = Matrix::new(3, 2, vec![1.0, 1.0, 1.0, -1.0, -1.0, 1.0])?;
//! let g = builder.add("fc1", Dense::new(first, None)?, &[ValueId::INPUT])?;
//! let h = builder.add("relu1", Relu, &[g])?;
//! let second = Matrix::new(1, 3, vec![-1.0, 1.0, 1.0])?;
//! let g = builder.add("fc2", Dense::new(second, Some(vec![-0.1]))?, &[h])?;
//! let h = builder.add("relu2", Relu, &[g])?;
//! let network = builder.finish(vec![h])?;
//!
//! let options = AnalysisOptions { report_witnesses: true, ..AnalysisOptions::default() };
//! let analysis = analyze(&network, &Domain::uniform(2, 0.0, 1.0)?, &options)?;
//! let by = |unit: &Unit| unit.by.map(|technique| technique.name);
//! let [first, second] = &analysis.layers[..] else { panic!("two layers") };
//!
//! let [sum, difference, _] = &first.units[..] else { panic!("three units") };
//! assert_eq!((sum.status, by(sum)), (Status::ON, Some("interval")));
//! assert_eq!((difference.status, by(difference)), (Status::Unstable, Some("witness")));
//! let [off, on] = difference.witnesses.as_ref().expect("they were asked for");
//! assert!(off[0] < off[1] && on[0] > on[1]);
//!
//! let unit = &second.units[0];
//! assert_eq!((unit.status, by(unit)), (Status::OFF, Some("tilt")));
//! assert!(unit.upper <= 0.0, "and that is proved");
//!
//! // Whoever does not believe it proves it again.
//! let facts = analysis.proof.check::<f64>(&network, &Domain::uniform(2, 0.0, 1.0)?)?;
//! assert!(facts.range(g).upper[0] <= 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Papers
//!
//! - Anderson et al., *Strong mixed-integer programming formulations for trained neural networks*, Mathematical
//!   Programming 2020, arXiv:1811.01988
//! - Bunel et al., *A unified view of piecewise linear neural network verification*, NeurIPS 2018, arXiv:1711.00455
//! - De Palma et al., *Improved branch and bound for neural network verification via Lagrangian decomposition*, 2021,
//!   arXiv:2104.06718
//! - Dong et al., *Boosting adversarial attacks with momentum*, CVPR 2018, arXiv:1710.06081
//! - Ehlers, *Formal verification of piece-wise linear feed-forward neural networks*, ATVA 2017, arXiv:1705.01320
//! - Goodfellow et al., *Explaining and harnessing adversarial examples*, ICLR 2015, arXiv:1412.6572
//! - Gowal et al., *On the effectiveness of interval bound propagation for training verifiably robust models*, 2018,
//!   arXiv:1810.12715
//! - Madry et al., *Towards deep learning models resistant to adversarial attacks*, ICLR 2018, arXiv:1706.06083
//! - Serra et al., *Lossless compression of deep neural networks* ("the paper"), CPAIOR 2020, arXiv:2001.00218
//! - Singh et al., *An abstract domain for certifying neural networks*, POPL 2019
//! - Tjandraatmadja et al., *The convex relaxation barrier, revisited*, NeurIPS 2020, arXiv:2006.14076
//! - Tjeng et al., *Evaluating robustness of neural networks with mixed integer programming*, ICLR 2019,
//!   arXiv:1711.07356
//! - Wang et al., *Beta-CROWN*, NeurIPS 2021, arXiv:2103.06624
//! - Xu et al., *Fast and complete* (alpha-CROWN), ICLR 2021, arXiv:2011.13824
//! - Zhang et al., *Efficient neural network robustness certification with general activation functions* (CROWN),
//!   NeurIPS 2018, arXiv:1811.00866

mod analysis;
mod bounds;
mod budget;
mod channel_points;
mod channels;
mod findings;
mod outputs;
mod patches;
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

use leo_check::{ChannelBounds, Proof, ProvedBounds, Range};
use leo_network::{Array, Domain, DomainError, LayerId, Network, Observer};

pub use budget::StopReason;
pub use checkpoint::Checkpoint;
pub use leo_check::Status;
pub use technique::Technique;
pub use verdict::{Positions, Unit};
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
    /// Only mixed-integer programs, one a unit and sign from the first layer to the last, as in the paper. Their
    /// answers still count only once a proof or an input confirms them.
    Milp,
    /// None: ranges are made as narrow as lines can make them, of all units and of the outputs if these are asked for,
    /// until that gains nothing more. What they do not decide is undecided, and the proof leaves open what they do.
    Tighten,
}

/// How to go about it.
#[derive(Clone, Copy, Default)]
pub struct AnalysisOptions<'a> {
    /// Which ways are open.
    pub engine: Engine,
    /// Whether what a mixed-integer program says counts even if it cannot be confirmed. It works to tolerances, and may
    /// be wrong.
    pub trust_solver: bool,
    /// What random points are drawn from.
    pub seed: u64,
    /// Points to begin with. Where they leave the domain, the point of it next to them is taken.
    pub samples: Option<&'a Array>,
    /// Whether to report inputs for both signs of every unstable unit.
    pub report_witnesses: bool,
    /// Whether the proof shall have inputs that show every unstable unit on and off. Without them, it says nothing of
    /// these.
    pub certify_witnesses: bool,
    /// Whether the ranges of units in the last layer shall be narrow too. No verdict needs that.
    pub tighten_last_layer: bool,
    /// Whether to prove ranges of the outputs too. The last layer's ranges are narrow then.
    pub outputs: bool,
    /// For one bound of one unit, how many subproblems branch and bound may have, and how many nodes a mixed-integer
    /// program's search tree.
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
    /// Where the network's outputs lie, in their order, if that was asked for.
    pub outputs: Vec<Range>,
    /// If some units are undecided, and more time or memory might have changed that: what was first used up. With a
    /// time limit, every layer's search has its share. With [`Engine::Tighten`], what kept it from making ranges
    /// narrower.
    pub stopped: Option<StopReason>,
    /// How long the techniques took that can take long, in all layers together.
    pub steps: BTreeMap<Technique, Duration>,
    /// All that is proved.
    pub facts: ProvedBounds<'n>,
    /// How to prove it again.
    pub proof: Proof,
    /// Of a network with convolutions, the channels that linear bounds decide, layer by layer: all else there is proved
    /// by intervals.
    pub channel_bounds: Vec<ChannelBounds>,
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
    if network.is_dense() { analysis::run(network, domain, options) } else { channels::run(network, domain, options) }
}
