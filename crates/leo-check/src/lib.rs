//! What counts as proof, and the checker of it.
//!
//! This is the only code that must be right for "lossless" to be true, and it shares nothing with the code that looks
//! for proofs.
//!
//! # The theorem, and why it holds
//!
//! If [`verify()`] returns, then at every point of the certificate's domain every element of every output of the second
//! network differs from that of the first by at most the certificate's delta, in real arithmetic. Nothing that the
//! certificate says is an assumption of this; it only tells where to look.
//!
//! 1. *Every value of the first network lies in its range.* The input does, because the range is the domain. What a
//!    node makes does, by interval arithmetic (`range.rs`), if its operands do; and a range is narrowed only by linear
//!    bounds that hold whatever slopes and multipliers are given (`backward.rs`), on pieces that together are the whole
//!    domain (`checker.rs`).
//! 2. *Every expression is as far from its value as its radius says, at the most.* True of the basis, whose elements
//!    are values; kept by affine nodes (`forms.rs`); and at activations, each expression gets the radius that follows
//!    from ranges and expressions that are proved already (`deviation.rs`). In either network a value is expressed by
//!    what comes before it only, so there is no circle.
//! 3. *So the outputs are no further apart than their expressions*, plus both radii; and the difference of two
//!    expressions is bounded by the ranges of the basis. Links add up by the triangle inequality (`verify.rs`). Where
//!    an output is made in the same way in both networks, but for units that are proved to be off, they are not apart
//!    at all (`same.rs`). Of a network with convolutions and one that has fewer of its channels, no expressions are
//!    made: intervals of their difference are carried through both (`channels.rs`), from ranges that intervals prove,
//!    and linear bounds of single positions (`patches.rs`); and from a value on behind which everything is dense,
//!    expressions again, on the box in which that value lies.
//! 4. *Rounding only ever makes bounds worse.* In doubles, what each sum, product and matrix product may have lost is
//!    bounded and added (`sound.rs`); with [`Exact`] numbers nothing is lost. What overflows, or gets too long, is not
//!    known, and nothing follows from it.
//! 5. *The files are what they are compared as.* Both are read by `leo-formats`, which refuses what it does not
//!    understand, and must be the same to the outside
//!    ([`Model::check_interface`](leo_formats::Model::check_interface)).
//!
//! # One step at a time
//!
//! A [`Checker`] goes through a network layer by layer. For the pre-activations of each layer it proves a range by
//! interval arithmetic, and better ones by linear bounds, on request. Here is `relu(x + y) - relu(x + y)` in disguise:
//! the second layer's unit is always 0, which intervals cannot see and a linear bound can.
//!
//! ```
//! use leo_check::{Checker, Side, Target};
//! use leo_network::op::{Dense, Matrix, Relu};
//! use leo_network::{Domain, Network, Shape, ValueId};
//!
//! let mut builder = Network::builder(Shape::new([2])?);
//! let first = Dense::new(Matrix::new(2, 2, vec![1.0, 1.0, 2.0, 2.0])?, None)?;
//! let g = builder.add("fc1", first, &[ValueId::INPUT])?;
//! let h = builder.add("relu1", Relu, &[g])?;
//! let g = builder.add("fc2", Dense::new(Matrix::new(1, 2, vec![2.0, -1.0])?, None)?, &[h])?;
//! let h = builder.add("relu2", Relu, &[g])?;
//! let network = builder.finish(vec![h])?;
//!
//! let mut checker = Checker::new(&network, &Domain::uniform(2, 0.0, 1.0)?)?;
//! checker.next_layer();
//! let second = checker.next_layer().expect("there are two");
//! assert!(checker.range(second).upper[0] >= 4.0);
//! checker.prove_linear(&[Target { unit: 0, side: Side::Upper }], &[]);
//! assert_eq!(checker.range(second).upper[0], 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod activation;
mod backward;
mod basis;
mod certificate;
mod channel_proof;
mod channels;
mod checker;
mod claims;
mod correspondence;
mod deviation;
mod evaluation;
mod exact;
mod forms;
mod number;
mod patches;
mod plain;
mod proof;
mod range;
mod relaxation;
mod same;
mod sound;
mod verify;
mod witness;

pub use activation::{beyond, default_slope, stable_piece, touched};
pub use certificate::{Certificate, CertificateError, ChannelLink, Link, Point, UnitLink, WrittenProof};
pub use channel_proof::{ChannelBounds, ChannelOutcome};
pub use channels::{
    ChannelExpression, ChannelExpressions, ChannelSelection, KeptChannels, PartClaims, PartPair, carried,
    channel_difference, complete, has_filters,
};
pub use checker::{Checker, ProvedBounds};
pub use correspondence::{Correspondence, Expression, Mismatch};
pub use deviation::{Difference, deviation, difference};
pub use evaluation::{Precision, apart_in_single, evaluation_errors, extend_errors, single_errors};
pub use exact::Exact;
pub use number::Number;
pub use patches::PatchBound;
pub use proof::{LayerProof, Proof, Status};
pub use range::{Interval, Range};
pub use relaxation::{BoundProof, LowerSlopes, MixedInequality, Relaxation, Side, SplitTree, Target};
pub use verify::{HashedModel, Refusal, Verified, verify, verify_exactly};
pub use witness::pieces_at;
