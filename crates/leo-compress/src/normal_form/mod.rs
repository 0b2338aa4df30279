//! The normal form: rows over the units that stay, what has to be carried past layers, and layers again.

pub(crate) mod affine;
pub(crate) mod linear;
pub(crate) mod normal;
pub(crate) mod pass_through;
pub(crate) mod realise;
