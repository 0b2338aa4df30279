//! Smaller networks that compute the same.
//!
//! [`compress()`] takes a file and a domain, has the stable units found and proved, and rewrites what it can: as the
//! algorithm LEO does (`leo.rs`), or by the normal form (`normal.rs`, `full.rs`), which removes more. Whatever it does,
//! `leo-check` then proves how far any output can have moved, from the two networks themselves.
//!
//! # Three units, by hand
//!
//! On inputs from [0, 1], `relu(x + y + 1)` and `relu(x - y + 2)` are always on, and `relu(x - y)` is unstable, on or
//! off. A network adds them up. LEO keeps all three: neither of the two that are on is a multiple of the other. In
//! normal form the network is
//!
//! ```text
//! (x + y + 1) + (x - y + 2) + relu(x - y) = 2 x + 3 + relu(x - y)
//! ```
//!
//! and all that has to get past the layer, besides the unstable unit, is one linear function, `2 x`. A
//! unit that is always on carries it, so that two are enough.
//!
//! ```
//! use leo_compress::{Method, CompressOptions, compress};
//! use leo_formats::onnx::{Document, Export, Float};
//! use leo_network::op::{Dense, Matrix, Relu};
//! use leo_network::{Domain, Network, Shape, ValueId};
//!
//! let mut builder = Network::builder(Shape::new([2])?);
//! let first = Matrix::new(3, 2, vec![1.0, 1.0, 1.0, -1.0, 1.0, -1.0])?;
//! let g = builder.add("fc1", Dense::new(first, Some(vec![1.0, 2.0, 0.0]))?, &[ValueId::INPUT])?;
//! let h = builder.add("relu", Relu, &[g])?;
//! let y = builder.add("fc2", Dense::new(Matrix::new(1, 3, vec![1.0; 3])?, None)?, &[h])?;
//! let network = builder.finish(vec![y])?;
//! let export = Export { float: Float::F32, input: "x".into(), outputs: vec!["y".into()], metadata: vec![] };
//! let document = Document::from_network(&network, &export)?;
//!
//! let domain = Domain::uniform(2, 0.0, 1.0)?;
//! let leo = compress(&document, &domain, &CompressOptions { method: Method::Leo, ..CompressOptions::default() })?;
//! assert!(!leo.changed);
//! let full = compress(&document, &domain, &CompressOptions::default())?;
//! assert_eq!(full.document.network().hidden(), [2]);
//! assert!(full.largest_delta() < 1e-12, "in numbers as round as these, nothing is lost");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compare;
mod compress;
mod deltas;
mod method;
mod normal_form;
mod prospects;
mod rewriting;
mod tolerance;
mod why;

pub use compare::equiv::{Comparison, EquivError, Unmatched, equivalent};
pub use compare::falsify::{LargestDifference, SeenDifference, largest_difference, observe, observe_with_deadline};
pub use compare::input_splits::{has_few_inputs, refine_by_pieces};
pub use compare::reference::Measured;
pub use compare::samples::{OneSided, settled_answers};
pub use compress::{CompressError, CompressOptions, Compressed, Method, Times, compress};
pub use rewriting::history::History;
pub use rewriting::plan::Rule;
pub use rewriting::region::Pinned;
pub use tolerance::Tolerance;
pub use why::{Prospect, Staying, Why};
