//! Smaller networks that compute the same.
//!
//! [`compress`] takes a file and a domain, has the stable units found and proved, and rewrites what it can: as the algorithm LEO does
//! (`leo.rs`), or by the normal form (`normal.rs`, `full.rs`), which removes more. Whatever it does, `leo-check` then proves how far any output can have moved,
//! from the two networks themselves.

mod affine;
mod compress;
mod draft;
mod exact;
mod full;
mod leo;
mod linear;
mod normal;
mod observe;
mod plan;
mod region;
mod rewrite;
mod round;
mod tolerance;

pub use compress::{CompressError, Compressed, Method, Options, compress};
pub use observe::largest_difference;
pub use plan::Rule;
pub use region::Pinned;
pub use tolerance::Tolerance;
