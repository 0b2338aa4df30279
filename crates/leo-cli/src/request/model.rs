//! What is to be known of a model's file, whatever is done with it.

use crate::terminal::output::{counted, one_line};

/// What one should know of constants that a file lists as inputs, too, if it does.
pub fn listed_constants(file: &str, count: usize) -> Option<String> {
    let constants = counted(count, "constant");
    let claim = "listed as inputs, too, and taken for what the file says";
    (count > 0).then(|| format!("{}: {constants} {claim}", one_line(file)))
}
