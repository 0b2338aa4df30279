//! The files that networks, domains and samples come in.
//!
//! [`Model::load`] reads [ONNX](onnx) and [NNet](nnet) files. A model is a network, what comes after it ([`tail`]), and
//! the file around both. Writing an ONNX file back changes only what was [spliced](onnx::Document::splice). Domains
//! come from [VNN-LIB](vnnlib) properties and NNet files ([`read_domain`]), samples from NumPy's and MNIST's formats
//! ([`ArrayFile`]).
//!
//! All files are written under another name first and renamed when they are whole. What is wrong with a file is said on
//! one line: which file, where in it, why ([`FileError`]). Sizes are checked before anything is allocated for them; no
//! number in a file is believed until its data are there.

mod array;
mod domain;
mod file;
mod model;
pub mod nnet;
pub mod onnx;
mod place;
pub mod tail;
mod temporary_files;
pub mod vnnlib;
mod writing;

pub use array::{ArrayError, ArrayFile};
pub use domain::read_domain;
pub use file::{FileError, Problem, read_file, read_text_file};
pub use model::{Format, Model, Port, RunError};
pub use place::is_same_file;
pub use temporary_files::{Unfinished, abandon_unfinished};
pub use writing::{NewFile, write_atomically, write_together};
