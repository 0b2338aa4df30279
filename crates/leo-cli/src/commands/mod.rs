//! The commands, one file each.

pub mod analyze;
pub mod check;
pub mod completions;
pub mod compress;
pub mod convert;
pub mod data;
pub mod demo;
pub mod equiv;
pub mod inspect;
pub mod man;
pub mod reproduce;
pub mod run;
pub mod scan;
pub mod train;
