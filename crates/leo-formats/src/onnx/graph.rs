//! The graph of an ONNX file: who makes what, and an order to evaluate in.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::OnnxError;
use super::proto::{GraphProto, ModelProto, NodeProto, ValueInfoProto};
use leo_network::in_order;

/// What a node is called in messages: its name, or what it makes if it has none.
pub(super) fn label(node: &NodeProto) -> String {
    match (node.name(), node.output.first()) {
        ("", Some(output)) => format!("the node that makes {output:?}"),
        (name, _) => format!("node {name:?}"),
    }
}

/// The nodes that the outputs depend on, each after those it depends on, otherwise in the file's order.
pub(super) fn live_order(graph: &GraphProto) -> Result<Vec<usize>, OnnxError> {
    order_for(graph, &[], &HashSet::new())
}

/// The nodes that the outputs and the values in `also` depend on, where the values in `apart` come from elsewhere.
pub(super) fn order_for(graph: &GraphProto, also: &[&str], apart: &HashSet<&str>) -> Result<Vec<usize>, OnnxError> {
    let producers = producers(graph)?;
    let mut given = given_names(graph);
    given.extend(apart);
    let mut live = HashSet::new();
    let mut wanted = Vec::new();
    for output in graph.output.iter().map(|output| output.name()).chain(also.iter().copied()) {
        match producers.get(output) {
            Some(&node) => wanted.push(node),
            None if given.contains(output) => {}
            None => return Err(OnnxError::MissingOutput { output: output.to_owned() }),
        }
    }
    while let Some(index) = wanted.pop() {
        if !live.insert(index) {
            continue;
        }
        for input in graph.node[index].input.iter().filter(|input| !input.is_empty()) {
            match producers.get(input.as_str()) {
                Some(&node) => wanted.push(node),
                None if given.contains(input.as_str()) => {}
                None => {
                    let node = label(&graph.node[index]);
                    return Err(OnnxError::MissingInput { node, input: input.clone() });
                }
            }
        }
    }
    sorted(graph, &live.into_iter().collect(), &producers)
        .map_err(|stuck| OnnxError::Cycle { node: label(&graph.node[stuck]) })
}

/// These nodes, each after those it depends on, otherwise in the file's order; or a node on a cycle.
fn sorted(graph: &GraphProto, nodes: &BTreeSet<usize>, producers: &HashMap<&str, usize>) -> Result<Vec<usize>, usize> {
    in_order(nodes, |index| graph.node[index].input.iter().filter_map(|input| producers.get(input.as_str()).copied()))
}

/// Puts all nodes of a graph into an order in which they can be evaluated, unless some of them, on which then no output
/// depends, form a cycle.
pub(super) fn sort(graph: &mut GraphProto) {
    let all: BTreeSet<usize> = (0..graph.node.len()).collect();
    let Ok(producers) = producers(graph) else { return };
    if let Ok(order) = sorted(graph, &all, &producers) {
        graph.node = order.into_iter().map(|index| graph.node[index].clone()).collect();
    }
}

/// Which node makes each value.
fn producers(graph: &GraphProto) -> Result<HashMap<&str, usize>, OnnxError> {
    let given = given_names(graph);
    let mut producers = HashMap::new();
    for (index, node) in graph.node.iter().enumerate() {
        for output in node.output.iter().filter(|output| !output.is_empty()) {
            if given.contains(output.as_str()) || producers.insert(output.as_str(), index).is_some() {
                return Err(OnnxError::MadeTwice { value: output.clone() });
            }
        }
    }
    Ok(producers)
}

/// Refuses a graph in which two constants or two inputs have the same name.
pub(super) fn check_given_once(graph: &GraphProto) -> Result<(), OnnxError> {
    let inputs = graph.input.iter().map(|input| input.name());
    twice("constant", constant_names(graph))?;
    twice("input", inputs)
}

fn twice<'a>(what: &'static str, mut names: impl Iterator<Item = &'a str>) -> Result<(), OnnxError> {
    let mut seen = HashSet::new();
    match names.find(|name| !seen.insert(*name)) {
        Some(name) => Err(OnnxError::GivenTwice { what, name: name.to_owned() }),
        None => Ok(()),
    }
}

/// The names of constants, sparse ones included.
fn constant_names(graph: &GraphProto) -> impl Iterator<Item = &str> {
    let sparse = graph.sparse_initializer.iter().filter_map(|sparse| sparse.values.as_ref());
    graph.initializer.iter().chain(sparse).map(|tensor| tensor.name())
}

/// The names that no node needs to make: constants and inputs.
pub(super) fn given_names(graph: &GraphProto) -> HashSet<&str> {
    constant_names(graph).chain(graph.input.iter().map(|input| input.name())).collect()
}

/// The first version of the format in which constants need not be listed as inputs too.
pub(super) const CONSTANTS_ALONE: i64 = 4;

/// The constants that are listed as inputs although they need not be, as exporters do that keep to what had to be
/// before version 4. Whoever runs the file could put others in their place; to Leo they are the constants that they
/// are.
pub(super) fn listed_constants(model: &ModelProto) -> HashSet<&str> {
    let Some(graph) = model.graph.as_ref().filter(|_| model.ir_version() >= CONSTANTS_ALONE) else {
        return HashSet::new();
    };
    let constants: HashSet<&str> = constant_names(graph).collect();
    graph.input.iter().map(|input| input.name()).filter(|name| constants.contains(name)).collect()
}

/// Sees to it that constants are listed as inputs only where they have to be.
pub(super) fn unlist_constants(model: &mut ModelProto) {
    let listed: HashSet<String> = listed_constants(model).into_iter().map(str::to_owned).collect();
    let inputs = model.graph.iter_mut().map(|graph| &mut graph.input);
    inputs.for_each(|inputs| inputs.retain(|input| !listed.contains(input.name())));
}

/// The inputs that are not constants with a default, as files before IR version 4 list these too.
pub(super) fn true_inputs(graph: &GraphProto) -> Vec<&ValueInfoProto> {
    let constants: HashSet<&str> = constant_names(graph).collect();
    graph.input.iter().filter(|input| !constants.contains(input.name())).collect()
}
