//! What people see and do while a command runs: how much is said, tables, words and numbers, progress, Ctrl-C.

pub mod console;
pub mod grid;
pub mod interrupt;
pub mod json;
pub mod number;
pub mod output;
pub mod progress;
