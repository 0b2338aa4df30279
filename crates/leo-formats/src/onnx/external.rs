//! Which other files an ONNX file has data in.
//!
//! All tensors count, also those that Leo does not read: in graphs within graphs, in functions, in what is for training
//! only. Decoding has bounded how deep graphs are nested.

use std::collections::BTreeSet;

use super::proto::{AttributeProto, GraphProto, ModelProto, SparseTensorProto, TensorProto};
use super::tensor::external_location;

/// The names of these files, relative to the model's folder.
pub(super) fn locations(model: &ModelProto) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let training = model.training_info.iter().flat_map(|info| info.initialization.iter().chain(&info.algorithm));
    model.graph.iter().chain(training).for_each(|graph| in_graph(graph, &mut found));
    for function in &model.functions {
        let nodes = function.node.iter().flat_map(|node| &node.attribute);
        nodes.chain(&function.attribute_proto).for_each(|attribute| in_attribute(attribute, &mut found));
    }
    found
}

fn in_graph<'a>(graph: &'a GraphProto, found: &mut BTreeSet<&'a str>) {
    let sparse = graph.sparse_initializer.iter().flat_map(tensors_of);
    found.extend(graph.initializer.iter().chain(sparse).filter_map(external_location));
    let attributes = graph.node.iter().flat_map(|node| &node.attribute);
    attributes.for_each(|attribute| in_attribute(attribute, found));
}

fn in_attribute<'a>(attribute: &'a AttributeProto, found: &mut BTreeSet<&'a str>) {
    let sparse = attribute.sparse_tensor.iter().chain(&attribute.sparse_tensors).flat_map(tensors_of);
    let tensors = attribute.t.iter().chain(&attribute.tensors).chain(sparse);
    found.extend(tensors.filter_map(external_location));
    attribute.g.iter().map(|graph| &**graph).chain(&attribute.graphs).for_each(|graph| in_graph(graph, found));
}

fn tensors_of(sparse: &SparseTensorProto) -> impl Iterator<Item = &TensorProto> {
    sparse.values.iter().chain(&sparse.indices)
}
