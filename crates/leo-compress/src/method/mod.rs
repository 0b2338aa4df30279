//! The methods: which units go, and in which of several ways a file is rewritten.

pub(crate) mod attempts;
pub(crate) mod exact;
pub(crate) mod full;
pub(crate) mod groups;
pub(crate) mod leo;
pub(crate) mod narrow;
mod styles;
