//! Replacing parts of a file's network, and nothing else.
//!
//! First every part is looked up in the file as it was read. Then all that is to be replaced goes at once, and only then
//! the new nodes are written. So no part takes away what another one needs, and new nodes may have the names of
//! old ones, whichever part these were in.

use std::collections::HashSet;

use super::dims::Dims;
use super::element::Float;
use super::emit::{Piece, emit, value_info};
use super::graph::{CONSTANTS_ALONE, live_order, order_for, sort};
use super::import::Computed;
use super::proto::{DimensionValue, GraphProto};
use super::{Document, OnnxError};
use crate::network::{Network, ValueId};

/// A part of a file's network, between one value and some others, and what is to stand there instead.
#[derive(Clone, Debug)]
pub struct Part {
    /// Where the part begins, and what `network` has as its input.
    pub from: ValueId,
    /// Where the part ends, and what the outputs of `network` are, in this order.
    pub to: Vec<ValueId>,
    /// What is to stand there.
    pub network: Network,
}

impl Document {
    /// This file with everything between where each part begins and where it ends replaced by the part's network.
    ///
    /// All values are values of [`network`](Self::network). A part may begin where another one begins or ends, but every
    /// value is the end of one part at the most.
    ///
    /// Weights are rounded to the type of the values where the part ends, or to `float` if that is given. Where `float`
    /// is not the type of a value that a part begins or ends with, the part casts that value, so that outside the
    /// parts all types stay as they are.
    ///
    /// Nodes that only the replaced parts needed go, and their constants with them. Everything else stays as it is.
    /// New nodes have the names that they have in the part's network, with a number behind it where such a node is
    /// there already. The result is read again, as any file is; without parts, it is this file.
    ///
    /// # Errors
    /// If the file [cannot be rewritten](Self::check_rewritable), or a part has other shapes than what it is to
    /// replace, or a value has no name in the file, or two parts end at the same value, or the values where a part ends
    /// have different types and `float` does not say which to take.
    pub fn splice(&self, parts: &[Part], float: Option<Float>) -> Result<Self, OnnxError> {
        if parts.is_empty() {
            return Ok(self.clone());
        }
        self.check_rewritable()?;
        let pieces = parts.iter().map(|part| self.piece(part, float)).collect::<Result<Vec<_>, _>>()?;
        let from: Vec<&str> = pieces.iter().map(|piece| piece.input.0).collect();
        let to = ends(&pieces)?;

        let mut model = self.model.clone();
        super::embed(&mut model, self.folder.as_deref())?;
        let Some(graph) = model.graph.as_mut() else { return Err(OnnxError::NoGraph) };
        remove(graph, &from, &to)?;
        let (mut nodes, mut constants) = emit(&pieces, self.opset, graph);
        if self.model.ir_version() < CONSTANTS_ALONE {
            let declared = constants.iter().map(|tensor| {
                value_info(tensor.name(), tensor.data_type(), tensor.dims.iter().copied().map(DimensionValue::Value))
            });
            graph.input.extend(declared);
        }
        graph.node.append(&mut nodes);
        graph.initializer.append(&mut constants);
        sort(graph);
        Self::from_model(model, None)
    }

    /// A part by the file's names and types, if it fits.
    fn piece<'a>(&'a self, part: &'a Part, float: Option<Float>) -> Result<Piece<'a>, OnnxError> {
        let (input, from) = self.named(part.from)?;
        let to = part.to.iter().map(|&value| self.named(value)).collect::<Result<Vec<_>, _>>()?;
        self.check_shapes(part)?;
        let batched = from.dims.batch_axis().is_some();
        if !to.iter().map(|(_, value)| *value).chain([from]).all(|value| batch_leads(&value.dims, batched)) {
            return Err(OnnxError::Splice("the batch is not the first axis there".to_owned()));
        }
        let Some((_, first)) = to.first() else {
            return Err(OnnxError::Splice("nothing is to be computed".to_owned()));
        };
        if float.is_none() && to.iter().any(|(_, value)| value.float != first.float) {
            return Err(OnnxError::Splice("the values to compute have different types".to_owned()));
        }
        Ok(Piece {
            network: &part.network,
            float: float.unwrap_or(first.float),
            batched,
            input: (input, from.float),
            outputs: to.iter().map(|(name, value)| (*name, value.float)).collect(),
        })
    }

    fn named(&self, value: ValueId) -> Result<(&str, &Computed), OnnxError> {
        let named = self.names.get(&value).map(|(name, computed)| (name.as_str(), computed));
        named.ok_or_else(|| OnnxError::Splice(format!("value {} has no name in the file", value.index())))
    }

    fn check_shapes(&self, part: &Part) -> Result<(), OnnxError> {
        let wanted = [part.from].iter().chain(&part.to).map(|&value| self.network.shape(value)).collect::<Vec<_>>();
        let network = &part.network;
        let given = std::iter::once(network.input()).chain(network.outputs().iter().map(|&value| network.shape(value)));
        let given = given.collect::<Vec<_>>();
        if wanted == given {
            return Ok(());
        }
        Err(OnnxError::Splice(format!("a part with shapes {given:?} cannot stand where shapes {wanted:?} are")))
    }
}

fn batch_leads(dims: &Dims, batched: bool) -> bool {
    dims.batch_axis() == batched.then_some(0)
}

/// The names of the values where the pieces end.
fn ends<'a>(pieces: &[Piece<'a>]) -> Result<HashSet<&'a str>, OnnxError> {
    let mut ends = HashSet::new();
    for (name, _) in pieces.iter().flat_map(|piece| &piece.outputs) {
        if !ends.insert(*name) {
            return Err(OnnxError::Splice(format!("{name:?} is to be computed twice")));
        }
    }
    Ok(ends)
}

/// Removes the nodes that make the values called `to`, everything that only these needed, and everything that would read
/// what is gone. What makes the values called `from` stays, unless they are among those called `to` themselves.
fn remove(graph: &mut GraphProto, from: &[&str], to: &HashSet<&str>) -> Result<(), OnnxError> {
    let needed_before = names_at(graph, &live_order(graph)?);
    graph.node.retain(|node| !node.output.iter().any(|output| to.contains(output.as_str())));
    let needed = names_at(graph, &order_for(graph, from, to)?);
    let stays = |name: &str| {
        let interface = graph.input.iter().chain(&graph.output).any(|value| value.name() == name);
        needed.contains(name) || to.contains(name) || from.contains(&name) || interface
    };
    let constant = |name: &str| graph.initializer.iter().any(|tensor| tensor.name() == name);
    let mut gone: HashSet<String> =
        needed_before.iter().filter(|name| !stays(name) && !constant(name)).cloned().collect();
    remove_readers(graph, &mut gone);
    let read: HashSet<&str> = graph.node.iter().flat_map(|node| node.input.iter().map(String::as_str)).collect();
    let output = |name: &str| graph.output.iter().any(|output| output.name() == name);
    let unread = |name: &str| needed_before.contains(name) && !read.contains(name) && !output(name);
    gone.extend(graph.initializer.iter().map(|tensor| tensor.name()).filter(|name| unread(name)).map(str::to_owned));
    graph.initializer.retain(|tensor| !gone.contains(tensor.name()));
    graph.input.retain(|input| !gone.contains(input.name()));
    graph.value_info.retain(|value| !gone.contains(value.name()));
    graph.quantization_annotation.retain(|annotation| !gone.contains(annotation.tensor_name()));
    Ok(())
}

/// The names of all that these nodes read and make.
pub(super) fn names_at(graph: &GraphProto, nodes: &[usize]) -> HashSet<String> {
    let nodes = nodes.iter().map(|&index| &graph.node[index]);
    nodes.flat_map(|node| node.input.iter().chain(&node.output)).filter(|name| !name.is_empty()).cloned().collect()
}

/// Removes the nodes that read or make what is gone, after which what they made is gone too.
fn remove_readers(graph: &mut GraphProto, gone: &mut HashSet<String>) {
    // In sorted order, the first pass finds them all.
    sort(graph);
    loop {
        let before = graph.node.len();
        graph.node.retain(|node| {
            let dead = node.input.iter().chain(&node.output).any(|name| gone.contains(name));
            if dead {
                // The empty name stands for inputs and outputs that are not there, in other nodes too.
                gone.extend(node.output.iter().filter(|name| !name.is_empty()).cloned());
            }
            !dead
        });
        if graph.node.len() == before {
            break;
        }
    }
}
