//! From arguments to what is asked of the library: domains, samples, options of a search, files to write.

pub mod domain;
pub mod files;
pub mod inputs;
pub mod model;
pub mod search;
pub mod seeds;
pub mod session;
