//! Replacing a part of a file's network, and nothing else.

use std::collections::HashSet;

use super::dims::Dims;
use super::emit::{Emitter, value_info};
use super::graph::{live_order, order_for, sort};
use super::import::Computed;
use super::proto::{DimensionValue, GraphProto};
use super::{Document, OnnxError};
use crate::network::{Network, ValueId};

/// The first version of the format in which constants need not be listed as inputs too.
const CONSTANTS_ALONE: i64 = 4;

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
        super::embed(&mut model, self.folder.as_deref())?;
        let Some(graph) = model.graph.as_mut() else { return Err(OnnxError::NoGraph) };
        let names: Vec<String> = outputs.iter().map(|(name, _)| (*name).to_owned()).collect();
        remove(graph, from_name, &names)?;

        let mut emitter = Emitter::new(part, first.float, self.opset, batched, graph);
        let input = if from_value.float == first.float { from_name.to_owned() } else { emitter.cast(from_name) };
        emitter.emit(&input, &names);
        let Emitter { mut nodes, mut constants, .. } = emitter;
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

/// Removes the nodes that make the values called `to`, everything that only these needed, and everything that would read
/// what is gone. What made the value called `from` stays.
fn remove(graph: &mut GraphProto, from: &str, to: &[String]) -> Result<(), OnnxError> {
    let names = |graph: &GraphProto, nodes: &[usize]| -> HashSet<String> {
        nodes
            .iter()
            .flat_map(|&index| graph.node[index].input.iter().chain(&graph.node[index].output))
            .cloned()
            .collect()
    };
    let needed_before = names(graph, &live_order(graph)?);
    graph.node.retain(|node| !node.output.iter().any(|output| to.contains(output)));
    let needed = names(graph, &order_for(graph, &[from], &to.iter().map(String::as_str).collect())?);
    let stays = |name: &str| {
        let interface = graph.input.iter().chain(&graph.output).any(|value| value.name() == name);
        needed.contains(name) || to.iter().any(|made| made == name) || name == from || interface
    };
    let constant = |name: &str| graph.initializer.iter().any(|tensor| tensor.name() == name);
    let mut gone: HashSet<String> =
        needed_before.iter().filter(|name| !stays(name) && !constant(name)).cloned().collect();
    // Everything downstream of what is gone goes too: in sorted order, the first pass finds it all.
    sort(graph);
    loop {
        let before = graph.node.len();
        graph.node.retain(|node| {
            let dead = node.input.iter().chain(&node.output).any(|name| gone.contains(name));
            if dead {
                gone.extend(node.output.iter().cloned());
            }
            !dead
        });
        if graph.node.len() == before {
            break;
        }
    }
    let read: HashSet<&str> = graph.node.iter().flat_map(|node| node.input.iter().map(String::as_str)).collect();
    let output = |name: &str| graph.output.iter().any(|output| output.name() == name);
    let unread = |name: &str| needed_before.contains(name) && !read.contains(name) && name != from && !output(name);
    gone.extend(graph.initializer.iter().map(|tensor| tensor.name()).filter(|name| unread(name)).map(str::to_owned));
    graph.initializer.retain(|tensor| !gone.contains(tensor.name()));
    graph.input.retain(|input| !gone.contains(input.name()));
    graph.value_info.retain(|value| !gone.contains(value.name()));
    graph.quantization_annotation.retain(|annotation| !gone.contains(annotation.tensor_name()));
    Ok(())
}
