//! ONNX in and out.
//!
//! A [`Document`] is a file: its messages ([`proto`], with every one of ONNX's fields) and the network that Leo reads
//! in them.
//!
//! # Reading
//!
//! Each node that an output depends on is lowered to operators of a [`Network`] by a function for its operator, in the
//! private modules `import` and `lower`. Constants are folded on the way.
//!
//! ONNX tensors carry their batch as an axis like any other. The reader follows that axis through the file, through
//! reshapes, transpositions and broadcasts, and what is left without it is the network's sample. The first axis of
//! the input is the batch if it has no fixed extent, or an extent above 1 and the file keeps its samples apart. An
//! operator that would mix the samples of a batch of any size is refused.
//!
//! An operator that Leo does not know is kept as it is where nothing affine and no ReLU depends on it (the
//! [`tail`](crate::tail)), and refused by name anywhere else.
//!
//! # Writing
//!
//! The messages are kept, and written back as they were read. A rewrite replaces parts of the network and leaves
//! everything else untouched, names and doc strings included ([`Document::splice`]); or it leaves out channels, and
//! changes no number that stays ([`Document::narrow`]). Here a layer that adds up its inputs gets a better one:
//!
//! ```
//! use leo_formats::onnx::{Document, Export, Float, Part};
//! use leo_network::op::{Dense, Matrix};
//! use leo_network::{Network, Shape, ValueId};
//!
//! let affine = |weights: &[f64]| -> Result<Network, leo_network::NetworkError> {
//!     let mut builder = Network::builder(Shape::new([2])?);
//!     let dense = Dense::new(Matrix::new(1, 2, weights.to_vec())?, None)?;
//!     let y = builder.add("fc", dense, &[ValueId::INPUT])?;
//!     builder.finish(vec![y])
//! };
//! let export = Export { float: Float::F32, input: "x".into(), outputs: vec!["y".into()], metadata: vec![] };
//! let document = Document::from_network(&affine(&[1.0, 1.0])?, &export)?;
//!
//! let y = document.network().outputs()[0];
//! let part = Part { from: ValueId::INPUT, to: vec![y], network: affine(&[0.5, 0.25])? };
//! let better = document.splice(&[part], None)?.made;
//! assert_eq!(better.network(), &affine(&[0.5, 0.25])?);
//! let written = better.to_bytes()?;
//! assert_eq!(Document::from_bytes(written, None)?.network(), better.network());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod compose;
mod declare;
mod denormals;
mod dims;
mod element;
mod emit;
mod emit_window;
mod error;
mod external;
mod given_shape;
mod graph;
mod import;
mod interface;
mod lower;
mod made_up;
mod narrow;
pub mod proto;
mod single;
mod splice;
mod tensor;
pub mod wire;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prost::Message;
use prost::bytes::Bytes;

pub(crate) use dims::{Axis, Dims};
pub use element::Float;
pub use emit::Export;
pub use error::{Hindrance, OnnxError, Reason};
pub use given_shape::GivenShape;
pub use interface::InterfaceDifference;
pub use made_up::{MadeUp, Share};
pub use tensor::TensorError;
pub use wire::WireError;

use crate::tail::{Source, Tail};
use import::{Constants, Imported};
use leo_network::{Network, ValueId};
pub use leo_network::{Part, Spliced};
use proto::{
    DimensionValue, FunctionProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, TypeValue,
    ValueInfoProto,
};

/// The oldest set of operators that Leo reads.
pub const OLDEST_OPSET: i64 = 7;

/// The newest set of operators that Leo knows the meaning of.
pub const NEWEST_OPSET: i64 = 28;

/// An axis as a file declares it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeclaredAxis {
    /// Of this extent.
    Fixed(usize),
    /// Of any extent, by this name.
    Named(String),
    /// Of any extent.
    Any,
}

/// A value of a network that a node reads for something else than to compute other values of it.
#[derive(Clone, Debug)]
pub struct Aside<'a> {
    /// The value.
    pub value: ValueId,
    /// What the node does.
    pub operator: &'a str,
    /// The values of the network that are given a shape by what comes of it, if nothing else comes of it.
    pub reshapes: Option<Vec<ValueId>>,
}

/// An ONNX file: its messages, and the network that Leo reads in them. Both are shared by all clones.
#[derive(Clone, Debug)]
pub struct Document {
    model: Arc<ModelProto>,
    opset: i64,
    /// Where external data lie.
    folder: Option<PathBuf>,
    read: Arc<Imported>,
}

impl Document {
    /// Decodes and reads an ONNX file. External data are looked for in `folder`.
    ///
    /// # Errors
    /// If the file is broken, or holds what Leo does not read.
    pub fn from_bytes(bytes: impl Into<Bytes>, folder: Option<&Path>) -> Result<Self, OnnxError> {
        Self::from_bytes_for_shape(bytes, folder, None)
    }

    /// Decodes and reads an ONNX file as [`from_bytes`](Self::from_bytes) does, for an input of this shape where the
    /// file leaves that open.
    ///
    /// # Errors
    /// If the file is broken, or holds what Leo does not read, or its input cannot have this shape.
    pub fn from_bytes_for_shape(
        bytes: impl Into<Bytes>,
        folder: Option<&Path>,
        shape: Option<&GivenShape>,
    ) -> Result<Self, OnnxError> {
        let bytes = bytes.into();
        wire::check::<ModelProto>(&bytes).map_err(|error| match error.fault.is_fatal() {
            true => OnnxError::Decode(error.to_string()),
            false => OnnxError::Wire(error),
        })?;
        let model = ModelProto::decode(bytes).map_err(|error| OnnxError::Decode(error.to_string()))?;
        Self::from_model(model, folder, shape)
    }

    fn from_model(model: ModelProto, folder: Option<&Path>, shape: Option<&GivenShape>) -> Result<Self, OnnxError> {
        let graph = model.graph.as_ref().ok_or(OnnxError::NoGraph)?;
        let opset = opset(&model)?;
        if graph.output.is_empty() {
            return Err(OnnxError::NoOutputs);
        }
        if let Some(own) = model.functions.iter().find(|function| is_known(function)) {
            return Err(OnnxError::Redefined { operator: own.name().to_owned() });
        }
        graph::check_given_once(graph)?;
        let (read, _) = import::import(graph, opset, folder, shape)?;
        Ok(Self { model: Arc::new(model), opset, folder: folder.map(Path::to_owned), read: Arc::new(read) })
    }

    /// Checks that another network can stand in this one's place: that nothing which is no part of the network, and
    /// would not be there any more, has a say in what the file computes.
    ///
    /// # Errors
    /// If something has.
    pub fn check_rewritable(&self) -> Result<(), OnnxError> {
        self.read.hindrance.clone().map_or(Ok(()), |hindrance| Err(OnnxError::Hindered(hindrance)))
    }

    /// How many constants are listed as inputs, too, although they need not be. They are taken for the constants that
    /// they are, and no file that is made from this one lists them.
    pub fn listed_constants(&self) -> usize {
        graph::listed_constants(&self.model).len()
    }

    /// This file without inputs that have a constant in their place where nothing is put there. They are that constant
    /// from now on.
    #[must_use]
    pub fn with_fixed_constants(mut self) -> Self {
        graph::unlist_constants(Arc::make_mut(&mut self.model));
        self
    }

    /// How long each axis of the input is, 1 for a batch of any size.
    pub fn extents(&self) -> &[usize] {
        &self.read.extents
    }

    /// The same, if it takes more than the file to know it.
    pub fn given_shape(&self) -> Option<&[usize]> {
        self.read.was_given.then_some(&self.read.extents)
    }

    /// The file's messages, to be changed: with all external data in them, and without constants that are inputs, too.
    fn to_rewrite(&self) -> Result<ModelProto, OnnxError> {
        self.check_rewritable()?;
        let mut model = self.embedded()?;
        graph::unlist_constants(&mut model);
        Ok(model)
    }

    /// Reads a file that was made of this one, for the same shape.
    fn read_again(&self, model: ModelProto) -> Result<Self, OnnxError> {
        let shape = self.given_shape().map(|extents| GivenShape::Extents(extents.to_vec()));
        Self::from_model(model, None, shape.as_ref())
    }

    /// The constants of this file's graph, once all data are in it.
    fn constants(&self, graph: &GraphProto) -> Result<Constants, OnnxError> {
        let shape = GivenShape::Extents(self.extents().to_vec());
        Ok(import::import(graph, self.opset, None, Some(&shape))?.1)
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.read.network
    }

    /// What comes after it.
    pub fn tail(&self) -> &Tail {
        &self.read.tail
    }

    /// The version of the operator set.
    pub fn opset(&self) -> i64 {
        self.opset
    }

    /// The file's messages.
    pub fn model(&self) -> &ModelProto {
        &self.model
    }

    /// The type of the input's elements.
    pub fn float(&self) -> Float {
        self.read.input.float
    }

    /// The name that the file has for a value of the network, if it has one; the first, if it has several.
    pub fn name_of(&self, value: ValueId) -> Option<&str> {
        self.read.names.get(&value).map(|(name, _)| name.as_str())
    }

    /// The value of the network that the file has this name for. Several names may stand for one value: what passes
    /// through an Identity or a Cast stays the same.
    pub fn value_named(&self, name: &str) -> Option<ValueId> {
        self.read.computed.get(name).map(|computed| computed.id)
    }

    /// Values of the network that nodes read for something else than to compute other values of it, such as their
    /// shape.
    pub fn read_aside(&self) -> Vec<Aside<'_>> {
        let graph = self.graph();
        let mut readers: HashMap<&str, Vec<&NodeProto>> = HashMap::new();
        for node in &graph.node {
            node.input.iter().for_each(|name| readers.entry(name).or_default().push(node));
        }
        let outputs: HashSet<&str> = graph.output.iter().map(|output| output.name()).collect();
        let is_used = |name: &str| readers.contains_key(name) || outputs.contains(name);
        let is_aside = |name: &String| is_used(name) && !self.read.computed.contains_key(name);
        let mut found = Vec::new();
        for node in graph.node.iter().filter(|node| node.output.iter().any(is_aside)) {
            let values: Vec<ValueId> = node.input.iter().filter_map(|name| self.value_named(name)).collect();
            if !values.is_empty() {
                let reshapes = self.reshapes_alone(node, &readers, &outputs);
                let aside = |value| Aside { value, operator: node.op_type(), reshapes: reshapes.clone() };
                found.extend(values.into_iter().map(aside));
            }
        }
        found
    }

    /// What is reshaped by what a node makes, if that is all that becomes of it.
    fn reshapes_alone(
        &self,
        node: &NodeProto,
        readers: &HashMap<&str, Vec<&NodeProto>>,
        outputs: &HashSet<&str>,
    ) -> Option<Vec<ValueId>> {
        /// Exporters take half a dozen nodes from the one to the other.
        const MOST_NODES: usize = 64;
        let (mut reshapes, mut open, mut seen) = (Vec::new(), vec![node], 0);
        while let Some(node) = open.pop() {
            seen += 1;
            for name in node.output.iter().filter(|name| !self.read.computed.contains_key(*name)) {
                if seen > MOST_NODES || outputs.contains(name.as_str()) {
                    return None;
                }
                for reader in readers.get(name.as_str()).into_iter().flatten() {
                    if open.len() + reshapes.len() > MOST_NODES {
                        return None;
                    }
                    match reader.output.first().and_then(|made| self.value_named(made)) {
                        None => open.push(reader),
                        Some(made) if reader.op_type() == "Reshape" && reader.input.get(1) == Some(name) => {
                            reshapes.push(made);
                        }
                        Some(_) => return None,
                    }
                }
            }
        }
        Some(reshapes)
    }

    /// Whether the file's answer is which of the numbers of its network's first output is largest, in whatever form: a
    /// row of scores, probabilities, or a label.
    pub fn keeps_largest(&self) -> bool {
        let constants: HashSet<&str> = self.graph().initializer.iter().map(|tensor| tensor.name()).collect();
        // Labels are looked up by their number; scores that are picked out are other scores.
        let looks_up = |node: &NodeProto| node.input.first().is_some_and(|labels| constants.contains(labels.as_str()));
        let mut picks = self.graph().node.iter().filter(|node| node.op_type() == "ArrayFeatureExtractor");
        let first = self.read.network.outputs().first();
        first.is_some_and(|&output| self.read.network.shape(output).extents().len() == 1)
            && self.read.tail.keeps_largest()
            && picks.all(looks_up)
    }

    /// What the file's metadata say under this key.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.model.metadata_props.iter().find(|entry| entry.key() == key).map(|entry| entry.value())
    }

    /// This file with `value` in its metadata under this key, instead of what is there already.
    #[must_use]
    pub fn with_metadata(mut self, key: &str, value: &str) -> Self {
        let entries = &mut Arc::make_mut(&mut self.model).metadata_props;
        let place = entries.iter().position(|entry| entry.key() == key).unwrap_or(entries.len());
        entries.retain(|entry| entry.key() != key);
        entries.insert(place, emit::entry(key, value));
        self
    }

    /// For each output of the file: where it comes from, and its axes where they are known.
    pub(crate) fn outputs(&self) -> &[(Source, Option<Dims>)] {
        &self.read.outputs
    }

    /// Values that leave the network or come after it: their names, where they come from, and their axes.
    pub(crate) fn inner(&self) -> &[(String, Source, Option<Dims>)] {
        &self.read.inner
    }

    fn graph(&self) -> &GraphProto {
        self.model.graph.as_ref().expect("checked when the file was read")
    }

    /// The input as the file declares it: its name and its axes.
    pub fn declared_input(&self) -> (&str, Option<Vec<DeclaredAxis>>) {
        let inputs = graph::true_inputs(self.graph());
        (inputs[0].name(), declared_axes(inputs[0]))
    }

    /// The outputs as the file declares them: their names and, where they are given, their axes.
    pub fn declared_outputs(&self) -> impl Iterator<Item = (&str, Option<Vec<DeclaredAxis>>)> {
        self.graph().output.iter().map(|output| (output.name(), declared_axes(output)))
    }

    /// The files that it has data in, each once. Whoever overwrites one of them changes what this file means.
    pub fn external_files(&self) -> Vec<PathBuf> {
        let Some(folder) = &self.folder else { return Vec::new() };
        external::locations(&self.model).into_iter().map(|location| folder.join(location)).collect()
    }

    /// Encodes the file, with all external data in it, so that it stands alone.
    ///
    /// # Errors
    /// If external data cannot be read any more.
    pub fn to_bytes(&self) -> Result<Vec<u8>, OnnxError> {
        Ok(self.embedded()?.encode_to_vec())
    }

    /// The file's messages with all external data in them.
    fn embedded(&self) -> Result<ModelProto, OnnxError> {
        let mut model = ModelProto::clone(&self.model);
        embed(&mut model, self.folder.as_deref())?;
        Ok(model)
    }
}

/// Puts all external data of a file into it.
fn embed(model: &mut ModelProto, folder: Option<&Path>) -> Result<(), OnnxError> {
    let graph = model.graph.get_or_insert_default();
    let nodes = graph.node.iter_mut().chain(model.functions.iter_mut().flat_map(|function| &mut function.node));
    let attributes = nodes.flat_map(|node| &mut node.attribute).flat_map(|attribute| {
        let sparse = attribute.sparse_tensor.iter_mut().chain(&mut attribute.sparse_tensors);
        attribute.t.iter_mut().chain(&mut attribute.tensors).chain(sparse.flat_map(tensors_of))
    });
    let sparse = graph.sparse_initializer.iter_mut().flat_map(tensors_of);
    for tensor in graph.initializer.iter_mut().chain(sparse).chain(attributes) {
        tensor::embed(tensor, folder).map_err(|error| OnnxError::Tensor { name: tensor.name().to_owned(), error })?;
    }
    Ok(())
}

fn tensors_of(sparse: &mut SparseTensorProto) -> impl Iterator<Item = &mut TensorProto> {
    sparse.values.iter_mut().chain(&mut sparse.indices)
}

/// Whether a domain is that of ONNX's own operators.
fn is_native(domain: &str) -> bool {
    matches!(domain, "" | "ai.onnx")
}

/// Whether a function has the name of an operator that is not the file's to define.
fn is_known(function: &FunctionProto) -> bool {
    is_native(function.domain()) || lower::lowering(function.domain(), function.name()).is_some()
}

/// The set of ONNX's own operators. Some exporters name it twice.
fn opset(model: &ModelProto) -> Result<i64, OnnxError> {
    let mut sets = model.opset_import.iter().filter(|set| is_native(set.domain())).map(|set| set.version());
    match sets.next() {
        Some(version) if sets.any(|other| other != version) => Err(OnnxError::ManyOpsets),
        Some(version) if (OLDEST_OPSET..=NEWEST_OPSET).contains(&version) => Ok(version),
        Some(found) => Err(OnnxError::Opset { found }),
        None => Err(OnnxError::NoOpset),
    }
}

fn declared_axes(value: &ValueInfoProto) -> Option<Vec<DeclaredAxis>> {
    let TypeValue::Tensor(tensor) = value.r#type.as_ref()?.value.as_ref()? else { return None };
    let axes = tensor.shape.as_ref()?.dim.iter().map(|dimension| match &dimension.value {
        Some(DimensionValue::Value(extent)) if *extent > 0 => DeclaredAxis::Fixed(*extent as usize),
        Some(DimensionValue::Param(name)) if !name.is_empty() => DeclaredAxis::Named(name.clone()),
        _ => DeclaredAxis::Any,
    });
    Some(axes.collect())
}
