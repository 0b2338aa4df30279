//! What can be wrong with an ONNX file, or is beyond Leo, each on one line.

use super::{Float, NEWEST_OPSET, OLDEST_OPSET, TensorError, WireError};
use leo_network::NetworkError;

/// What is wrong with an ONNX file, or beyond Leo.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum OnnxError {
    /// Not the encoding.
    #[error("is not a whole ONNX file: {0}")]
    Decode(String),
    /// An encoding of which programs could see different files.
    #[error("is not an ONNX file that all programs read alike: {0}")]
    Wire(WireError),
    /// Nothing to run.
    #[error("is not an ONNX model: it has no graph")]
    NoGraph,
    /// Operators from another time.
    #[error("uses operator set {found}; Leo knows {OLDEST_OPSET} to {NEWEST_OPSET}")]
    Opset {
        /// The set it uses.
        found: i64,
    },
    /// No operators at all.
    #[error("does not say which operator set it uses")]
    NoOpset,
    /// Operators from several times.
    #[error("uses several versions of ONNX's operator set at once")]
    ManyOpsets,
    /// An operator of ONNX's own that the file gives another meaning.
    #[error("defines the operator {operator:?} of ONNX's own set anew, which Leo does not read")]
    Redefined {
        /// Its name.
        operator: String,
    },
    /// Not exactly one input.
    #[error("has {} inputs {names:?}; Leo takes networks with one", .names.len())]
    Inputs {
        /// Their names.
        names: Vec<String>,
    },
    /// An input that Leo cannot take.
    #[error("input {name:?}: {reason}")]
    Input {
        /// Its name.
        name: String,
        /// Why not.
        reason: String,
    },
    /// No outputs.
    #[error("has no outputs")]
    NoOutputs,
    /// An output that nothing makes.
    #[error("output {output:?} is made by no node")]
    MissingOutput {
        /// Its name.
        output: String,
    },
    /// An output that does not depend on the input.
    #[error("output {output:?} does not depend on the input, so there is no network behind it")]
    ConstantOutput {
        /// Its name.
        output: String,
    },
    /// A value that nothing makes.
    #[error("{node} reads {input:?}, which nothing makes")]
    MissingInput {
        /// The node that reads it.
        node: String,
        /// Its name.
        input: String,
    },
    /// Two constants or two inputs with one name.
    #[error("{what} {name:?} is there twice; programs take the first, the last or neither")]
    GivenTwice {
        /// Constants, or inputs.
        what: &'static str,
        /// Their name.
        name: String,
    },
    /// A value that is made twice.
    #[error("{value:?} is made twice")]
    MadeTwice {
        /// Its name.
        value: String,
    },
    /// A value that depends on itself.
    #[error("{node} depends on itself: the graph has a cycle")]
    Cycle {
        /// A node on the cycle.
        node: String,
    },
    /// A constant that cannot be read.
    #[error("tensor {name:?} {error}")]
    Tensor {
        /// Its name.
        name: String,
        /// Why not.
        error: TensorError,
    },
    /// A node that cannot be read.
    #[error("{node} ({operator}): {reason}")]
    Node {
        /// Which one.
        node: String,
        /// What it does.
        operator: String,
        /// Why not.
        reason: Reason,
    },
    /// Something that a rewrite could not keep.
    #[error("cannot be rewritten: {0}")]
    Hindered(Hindrance),
    /// A part that does not fit where it is meant to go.
    #[error("cannot be rewritten: {0}")]
    Splice(String),
}

/// What is in the way of rewriting a file: its network is not all that it does between its input and its outputs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Hindrance {
    /// Numbers that lose their last bits, or overflow, on the way.
    #[error(
        "{node} reads numbers that were cut down to {} and cast back, which a network without that would not do alike",
        .float.name()
    )]
    Narrowed {
        /// The node that reads them.
        node: String,
        /// What they were cut down to.
        float: Float,
    },
}

/// Why a node cannot be read.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Reason {
    /// An operator that Leo has no function for, somewhere else than after the last affine map.
    #[error("the operator is not supported here; docs/supported.md says which are, and where")]
    Unsupported,
    /// The samples of a batch would influence one another.
    #[error("it mixes the samples of a batch, or cuts them apart")]
    MixesBatch,
    /// Not affine.
    #[error("it {0}, which no affine map does")]
    NotAffine(&'static str),
    /// An input or attribute that cannot be used.
    #[error("it {0}")]
    Unusable(String),
    /// A constant that cannot be read.
    #[error("tensor {name:?} {error}")]
    Tensor {
        /// Its name.
        name: String,
        /// Why not.
        error: TensorError,
    },
    /// Shapes that do not fit.
    #[error(transparent)]
    Shape(#[from] NetworkError),
}
