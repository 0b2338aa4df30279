//! Rewriting: which parts of a network can change, what they are to become, and what became of every unit.

pub(crate) mod certify;
pub(crate) mod channels;
pub(crate) mod dense_part;
pub(crate) mod draft;
pub(crate) mod flush;
pub(crate) mod history;
pub(crate) mod plan;
pub(crate) mod region;
pub(crate) mod rewrite;
pub(crate) mod round;
