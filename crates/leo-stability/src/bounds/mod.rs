//! Bounds in plain floating point, as proposals for the checker: the network with lines for ReLUs, and better slopes for the lines.

pub(crate) mod relaxed;
pub(crate) mod slopes;
