//! The methods: which units go, and in which of several ways a file is rewritten.

pub(crate) mod attempts;
pub(crate) mod dependence;
pub(crate) mod exact;
pub(crate) mod full;
pub(crate) mod groups;
pub(crate) mod leo;
pub(crate) mod narrow;
mod reading;
pub(crate) mod styles;
mod ties;
