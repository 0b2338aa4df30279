//! Two networks side by side: how far they can be apart, how far they were seen to be, and what samples show.

pub(crate) mod channels;
pub(crate) mod equiv;
mod evidence;
pub(crate) mod falsify;
mod fingerprint;
pub(crate) mod input_splits;
pub(crate) mod reference;
pub(crate) mod samples;
mod tracks;
