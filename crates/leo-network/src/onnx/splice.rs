//! Replacing a part of a file's network, and nothing else.

use std::collections::HashSet;

use super::dims::Dims;
use super::emit::Emitter;
use super::graph::{live_order, sort};
use super::import::Computed;
use super::proto::GraphProto;
use super::{Document, OnnxError};
use crate::network::{Network, ValueId};

impl Document {
    /// This file with everything between the value `from` and the values `to` replaced by `part`: a network whose input
    /// is `from` and whose outputs are `to`, in this order.
    ///
    /// Nodes that only the replaced part needed go, and their constants with them. Everything else stays as it is.
    /// Weights are rounded to the file's type. The result is read again, as any file is.
    ///
    /// # Errors
    /// If `part` has other shapes than what it is to replace, or a value has no name in the file.
    pub fn splice(&self, from: ValueId, to: &[ValueId], part: &Network) -> Result<Self, OnnxError> {
        let (from_name, from_value) = self.named(from)?;
        let mut outputs = Vec::new();
        for &value in to {
            outputs.push(self.named(value)?);
        }
        self.check_shapes(from, to, part)?;
        let batched = from_value.dims.batch_axis().is_some();
        let all = || outputs.iter().map(|(_, value)| *value).chain([from_value]);
        if !all().all(|value| batch_leads(&value.dims, batched)) {
            return Err(OnnxError::Splice("the batch is not the first axis there".to_owned()));
        }
        let Some((_, first)) = outputs.first() else {
            return Err(OnnxError::Splice("nothing is to be computed".to_owned()));
        };
        if outputs.iter().any(|(_, value)| value.float != first.float) {
            return Err(OnnxError::Splice("the values to compute have different types".to_owned()));
        }

        let mut model = self.model.clone();
        let Some(graph) = model.graph.as_mut() else { return Err(OnnxError::NoGraph) };
        super::embed(graph, self.folder.as_deref())?;
        let names: Vec<String> = outputs.iter().map(|(name, _)| (*name).to_owned()).collect();
        let before = live_names(graph)?;
        graph.node.retain(|node| !node.output.iter().any(|output| names.contains(output)));

        let mut emitter = Emitter::new(part, first.float, self.opset, batched, all_names(self.graph()));
        let input = if from_value.float == first.float { from_name.to_owned() } else { emitter.cast(from_name) };
        emitter.emit(&input, &names);
        graph.node.append(&mut emitter.nodes);
        graph.initializer.append(&mut emitter.constants);
        sort(graph);
        drop_dead(graph, &before)?;
        Self::from_model(model, None)
    }

    fn named(&self, value: ValueId) -> Result<(&str, &Computed), OnnxError> {
        let named = self.names.get(&value).map(|(name, computed)| (name.as_str(), computed));
        named.ok_or_else(|| OnnxError::Splice(format!("value {} has no name in the file", value.index())))
    }

    fn check_shapes(&self, from: ValueId, to: &[ValueId], part: &Network) -> Result<(), OnnxError> {
        let wanted = [from].iter().chain(to).map(|&value| self.network.shape(value)).collect::<Vec<_>>();
        let given = std::iter::once(part.input()).chain(part.outputs().iter().map(|&value| part.shape(value)));
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

/// Every name in a graph.
fn all_names(graph: &GraphProto) -> HashSet<String> {
    let nodes = graph.node.iter().flat_map(|node| node.input.iter().chain(&node.output));
    let others = graph.input.iter().chain(&graph.output).chain(&graph.value_info).map(|value| value.name());
    let constants = graph.initializer.iter().map(|tensor| tensor.name());
    nodes.map(String::as_str).chain(others).chain(constants).map(str::to_owned).collect()
}

/// The names that the nodes behind the outputs read and make.
fn live_names(graph: &GraphProto) -> Result<HashSet<String>, OnnxError> {
    let live = live_order(graph)?;
    Ok(live
        .iter()
        .flat_map(|&index| graph.node[index].input.iter().chain(&graph.node[index].output))
        .cloned()
        .collect())
}

/// Removes what the outputs depended on before and do not depend on any more, and what reads such a value in vain.
fn drop_dead(graph: &mut GraphProto, before: &HashSet<String>) -> Result<(), OnnxError> {
    let mut after = live_names(graph)?;
    after.extend(graph.input.iter().chain(&graph.output).map(|value| value.name().to_owned()));
    let constants: HashSet<&str> = graph.initializer.iter().map(|tensor| tensor.name()).collect();
    let mut gone: HashSet<String> =
        before.difference(&after).filter(|name| !constants.contains(name.as_str())).cloned().collect();
    // In sorted order, one pass finds everything downstream.
    graph.node.retain(|node| {
        let dead = node.input.iter().chain(&node.output).any(|name| gone.contains(name));
        if dead {
            gone.extend(node.output.iter().cloned());
        }
        !dead
    });
    let read: HashSet<String> = graph.node.iter().flat_map(|node| node.input.iter().cloned()).collect();
    let unread = |name: &str| before.contains(name) && !read.contains(name);
    let outputs: HashSet<String> = graph.output.iter().map(|output| output.name().to_owned()).collect();
    let dropped: HashSet<String> = graph
        .initializer
        .iter()
        .map(|tensor| tensor.name().to_owned())
        .filter(|name| unread(name) && !outputs.contains(name))
        .collect();
    graph.initializer.retain(|tensor| !dropped.contains(tensor.name()));
    graph.input.retain(|input| !dropped.contains(input.name()));
    graph.value_info.retain(|value| !gone.contains(value.name()) && !dropped.contains(value.name()));
    graph
        .quantization_annotation
        .retain(|annotation| !gone.contains(annotation.tensor_name()) && !dropped.contains(annotation.tensor_name()));
    Ok(())
}
