//! What counts as proof, and the checker of it.
//!
//! This is the only code that must be right for "lossless" to be true, and it shares nothing with the code that looks for proofs.
//!
//! A [`Checker`] goes through a network layer by layer. For the pre-activations of each layer of ReLUs it proves a range by interval
//! arithmetic, and better ones by linear bounds, on request. Here is `relu(x + y) - relu(x + y)` in disguise: the second layer's unit
//! is always 0, which intervals cannot see and a linear bound can.
//!
//! ```
//! use leo_check::{Checker, Side};
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
//! checker.prove_linear(&[(0, Side::Upper)], &[]);
//! assert_eq!(checker.range(second).upper[0], 0.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod backward;
mod certificate;
mod checker;
mod deviation;
mod exact;
mod facts;
mod forms;
mod number;
mod proof;
mod range;
mod sound;
mod verify;
mod witness;

pub use certificate::{Certificate, CertificateError, Link};
pub use checker::{Checker, Facts};
pub use deviation::{Claim, Correspondence, Mismatch, Role, deviation};
pub use exact::Exact;
pub use facts::{Side, Slopes, Tree, default_slope};
pub use number::Number;
pub use proof::{LayerProof, Proof, Status};
pub use range::Range;
pub use verify::{Refusal, Sealed, Verified, verify};
pub use witness::signs;
