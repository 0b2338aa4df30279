//! Numbers that are denormal in their type: too small to be stored with all their digits. Many processors take a
//! hundred times as long to compute with them, and a network that has a few of them crawls.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use super::graph::live_order;
use super::proto::{GraphProto, NodeProto, TensorProto};
use super::tensor::{Tensor, TensorNumbers, encode_floats};
use super::{Document, OnnxError, TensorError, is_native};

/// What nodes do with a constant.
#[derive(Clone, Copy, Default)]
struct Uses {
    /// Whether nodes of the network read it, or what is computed from it when the file is loaded.
    is_network: bool,
    /// Whether something else is done with it than to multiply it, or to add it up.
    is_otherwise: bool,
}

impl Document {
    /// How many numbers are denormal among the constants that the network reads.
    ///
    /// # Errors
    /// If external data cannot be read any more.
    pub fn denormals(&self) -> Result<usize, OnnxError> {
        let uses = self.uses()?;
        let count = |(name, tensor): (&str, &TensorProto)| match uses.get(name) {
            Some(Uses { is_network: true, .. }) => {
                let flushed = flushed(tensor, self.folder.as_deref());
                flushed.map(|flushed| flushed.map_or(0, |(_, count)| count)).map_err(|error| at(name, error))
            }
            _ => Ok(0),
        };
        constants(self.graph()).map(count).sum()
    }

    /// This file with zeros in place of the denormal numbers that are only multiplied and added up by the network, and
    /// how many these are. What is divided by, or read by what comes after the network, stays as it is.
    ///
    /// # Errors
    /// If the file [cannot be rewritten](Self::check_rewritable).
    pub fn flushed(&self) -> Result<(Self, usize), OnnxError> {
        let uses = self.uses()?;
        let mut model = self.to_rewrite()?;
        let Some(graph) = model.graph.as_mut() else { return Err(OnnxError::NoGraph) };
        let mut count = 0;
        let made = graph.node.iter_mut().filter(|node| node.op_type() == "Constant").filter_map(|node| {
            let name = node.output.first()?.clone();
            let attributes = node.attribute.iter_mut().filter(|attribute| attribute.name() == "value");
            attributes.filter_map(|attribute| attribute.t.as_mut()).next().map(|tensor| (name, tensor))
        });
        let given = graph.initializer.iter_mut().map(|tensor| (tensor.name().to_owned(), tensor));
        for (name, tensor) in given.chain(made) {
            if !matches!(uses.get(&name), Some(Uses { is_network: true, is_otherwise: false })) {
                continue;
            }
            if let Some((zeros, some)) = flushed(tensor, None).map_err(|error| at(&name, error))? {
                *tensor = zeros;
                count += some;
            }
        }
        if count == 0 { Ok((self.clone(), 0)) } else { Ok((self.read_again(model)?, count)) }
    }

    /// What is done with each constant, by nodes that an output depends on.
    fn uses(&self) -> Result<HashMap<String, Uses>, OnnxError> {
        let graph = self.graph();
        let mut known: HashSet<&str> = graph.initializer.iter().map(|tensor| tensor.name()).collect();
        let mut uses: HashMap<String, Uses> = HashMap::new();
        for index in live_order(graph)? {
            let node = &graph.node[index];
            let is_constant = node.input.iter().all(|name| name.is_empty() || known.contains(name.as_str()));
            let is_computed = node.output.iter().any(|name| self.read.computed.contains_key(name));
            for (input, name) in node.input.iter().enumerate().filter(|(_, name)| known.contains(name.as_str())) {
                let found = uses.entry(name.clone()).or_default();
                found.is_network |= is_constant || is_computed;
                found.is_otherwise |= !(is_computed && only_multiplies(node, input));
            }
            if is_constant {
                known.extend(node.output.iter().map(String::as_str));
            }
        }
        for output in &graph.output {
            uses.entry(output.name().to_owned()).or_default().is_otherwise = true;
        }
        Ok(uses)
    }
}

fn at(name: &str, error: TensorError) -> OnnxError {
    OnnxError::Tensor { name: name.to_owned(), error }
}

/// Whether an input of a node is only multiplied and added up.
fn only_multiplies(node: &NodeProto, input: usize) -> bool {
    let (first, last) = match node.op_type() {
        "Conv" | "ConvTranspose" => (1, 2),
        "Gemm" => (0, 2),
        "MatMul" | "Add" | "Sub" | "Mul" => (0, 1),
        // The scale, the bias and the mean; a variance is divided by.
        "BatchNormalization" => (1, 3),
        _ => return false,
    };
    is_native(node.domain()) && (first..=last).contains(&input)
}

/// The constants that stand in a graph, with their names.
fn constants(graph: &GraphProto) -> impl Iterator<Item = (&str, &TensorProto)> {
    let given = graph.initializer.iter().map(|tensor| (tensor.name(), tensor));
    let made = graph.node.iter().filter(|node| node.op_type() == "Constant").filter_map(|node| {
        let value = node.attribute.iter().find(|attribute| attribute.name() == "value")?;
        Some((node.output.first()?.as_str(), value.t.as_ref()?))
    });
    given.chain(made)
}

/// A tensor with zeros in place of denormal numbers, and how many these are, if there are any.
fn flushed(tensor: &TensorProto, folder: Option<&Path>) -> Result<Option<(TensorProto, usize)>, TensorError> {
    let decoded = Tensor::decode(tensor, folder)?;
    let TensorNumbers::Float(float, numbers) = &decoded.numbers else { return Ok(None) };
    let is_denormal = |number: &f64| *number != 0.0 && number.abs() < float.smallest_normal();
    let count = numbers.iter().filter(|number| is_denormal(number)).count();
    if count == 0 {
        return Ok(None);
    }
    let zeros: Vec<f64> = numbers.iter().map(|number| if is_denormal(number) { 0.0 } else { *number }).collect();
    let zeros = encode_floats(tensor.name(), *float, &decoded.dims, &zeros);
    let (doc_string, metadata_props) = (tensor.doc_string.clone(), tensor.metadata_props.clone());
    Ok(Some((TensorProto { doc_string, metadata_props, ..zeros }, count)))
}
