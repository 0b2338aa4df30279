//! The commands, one file each.

pub mod convert;
pub mod inspect;
pub mod run;
