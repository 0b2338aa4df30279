//! The shape of the input, for every command that reads a network.

use clap::Args;

/// How long the axes of the input are that a file leaves open.
#[derive(Debug, Args)]
pub struct ShapeArguments {
    /// How long the axes of the input are, where the file leaves some open: `1,3,240,320`, or `H=240,W=320` for those
    /// that have names. What is said then holds for inputs of this shape. A batch of any size is 1 here, and stays so
    #[arg(long, value_name = "SIZES")]
    pub shape: Option<String>,
}
