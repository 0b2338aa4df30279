//! Whether a runtime computes a file's network in single precision just as Leo reads it: node by node, each a sum of
//! products of numbers that the file has.

use std::collections::HashSet;

use super::element::Float;
use super::{Document, is_native};

/// Operators that compute what Leo's nodes do, or nothing. Others compute the same in real arithmetic by another
/// formula. (Means are computed by several, which are all accounted for where errors are bounded.)
const PLAIN_OPERATORS: &[&str] = &[
    "Add",
    "AveragePool",
    "Cast",
    "Concat",
    "Conv",
    "ConvTranspose",
    "Div",
    "Dropout",
    "Flatten",
    "Gather",
    "Gemm",
    "GlobalAveragePool",
    "GlobalMaxPool",
    "Identity",
    "MatMul",
    "MaxPool",
    "Mul",
    "Pad",
    "ReduceMean",
    "ReduceSum",
    "Relu",
    "Reshape",
    "Resize",
    "Slice",
    "Split",
    "Squeeze",
    "Sub",
    "Transpose",
    "Unsqueeze",
    "Upsample",
];

/// Operators among [`PLAIN_OPERATORS`] that have numbers of the file as operands.
const ARITHMETIC_OPERATORS: &[&str] = &["Add", "Conv", "ConvTranspose", "Div", "Gemm", "MatMul", "Mul", "Sub"];

impl Document {
    /// Whether every number of the network is a 32 bit float in the file, and every node that computes one does with
    /// single numbers what Leo's network does with real ones. Batch normalisation, for one, does not: its factors are
    /// computed first. Nor do numbers that the file computes from others.
    pub fn is_plainly_single(&self) -> bool {
        let graph = self.graph();
        let given: HashSet<&str> = graph.initializer.iter().map(|tensor| tensor.name()).collect();
        let constants = graph.node.iter().filter(|node| node.op_type() == "Constant");
        let constants: HashSet<&str> = constants.flat_map(|node| &node.output).map(String::as_str).collect();
        let is_given = |name: &String| {
            let name = name.as_str();
            name.is_empty() || self.read.computed.contains_key(name) || given.contains(name) || constants.contains(name)
        };
        let is_single = self.read.computed.values().all(|computed| computed.float == Float::F32);
        let mut nodes = self.graph().node.iter().filter(|node| {
            // What is never computed has no value here.
            node.output.iter().any(|name| self.read.computed.contains_key(name))
        });
        is_single
            && nodes.all(|node| {
                let scaled = ["alpha", "beta"].map(|name| node.attribute.iter().find(|given| given.name() == name));
                let is_scaled = scaled.into_iter().flatten().any(|factor| factor.f() != 1.0);
                let is_arithmetic = ARITHMETIC_OPERATORS.contains(&node.op_type());
                is_native(node.domain())
                    && PLAIN_OPERATORS.contains(&node.op_type())
                    && !is_scaled
                    && (!is_arithmetic || node.input.iter().all(is_given))
            })
    }
}
