//! Networks, their evaluation and their domain: the room that the rest of Leo stands on.
//!
//! # A network is a function of one sample
//!
//! A [`Network`] is a graph of operators ([`op`]) in topological order: affine maps, [activations](activation), and the
//! sum of two branches. Each shape is checked as its node is added, so a network that exists can be evaluated. Here is
//! `x -> relu(x - 1) - relu(1 - x)`, made by hand:
//!
//! ```
//! use leo_network::op::{Dense, Matrix, Relu};
//! use leo_network::{Evaluator, Network, Shape, NetworkError, ValueId};
//!
//! let mut builder = Network::builder(Shape::new([1])?);
//! let first = Dense::new(Matrix::new(2, 1, vec![1.0, -1.0])?, Some(vec![-1.0, 1.0]))?;
//! let g = builder.add("fc1", first, &[ValueId::INPUT])?;
//! let h = builder.add("relu", Relu, &[g])?;
//! let y = builder.add("fc2", Dense::new(Matrix::new(1, 2, vec![1.0, -1.0])?, None)?, &[h])?;
//! let network = builder.finish(vec![y])?;
//!
//! let outputs = Evaluator::<f64>::new(&network).run(&[0.0, 1.0, 5.0]);
//! assert_eq!(outputs, [[-1.0, 0.0, 4.0]]);
//! # Ok::<(), NetworkError>(())
//! ```
//!
//! It has two units, and computes nothing but `x - 1`. Finding that out, and proving it, is what Leo is for.
//!
//! Weights are kept as doubles, which hold every 16, 32 and 64 bit float of a file exactly. An [`Evaluator`] runs a
//! network on batches in single or double precision, by matrix products.
//!
//! # The inputs that matter
//!
//! A [`Domain`] is a convex set with finite bounds, so far a box: one pair of bounds for each element of a sample. It
//! comes from a constant, from two arrays, or from the range of a data set ([`Array`]). Files are read and written by
//! the crate `leo-formats`; nothing here touches one.

pub mod activation;
mod array;
mod channels;
mod cut;
mod domain;
mod evaluate;
mod network;
mod observer;
pub mod op;
mod precise;
mod product;
mod rounding;
mod shape;
mod splice;
mod vector;

pub use activation::Activation;
pub use array::{Array, Elements};
pub use channels::Channels;
pub use domain::{Bounds, Domain, DomainError, Numbers, WrittenDomain, between};
pub use evaluate::{Evaluator, Values, Workspace};
pub use network::{Builder, LayerId, Network, Node, UnitId, ValueId, ValueMap};
pub use observer::{Observer, Step};
pub use precise::evaluate_precisely;
pub use product::{Real, Scalar, add_product, add_product_transposed};
pub use rounding::{Enclosure, product_and_error, quotient_and_error, sum_and_error};
pub use shape::{MAX_ELEMENTS, MAX_RANK, MAX_TOTAL_ELEMENTS, NetworkError, Shape, product};
pub use splice::{Part, Spliced, in_order};
pub use twofloat::TwoFloat;
pub use vector::{add_multiple, dot, vectors};
