//! What is in a model's file.

use leo_formats::onnx::DeclaredAxis;
use leo_formats::{Format, Port};
use leo_network::op::Operator;
use serde::Serialize;

use crate::{DomainSummary, ModelFile};

/// What there is to say about a model. Also the shape of the JSON: fields may join, these stay.
#[derive(Clone, Debug, Serialize)]
pub struct Inspection {
    /// The version of this shape.
    pub version: u32,
    /// The file.
    pub file: String,
    /// `ONNX` or `NNet`.
    pub format: &'static str,
    /// The operator set of an ONNX file.
    pub opset: Option<i64>,
    /// The type of its numbers.
    pub dtype: &'static str,
    /// The input.
    pub input: PortSummary,
    /// The outputs.
    pub outputs: Vec<PortSummary>,
    /// How many constants the file lists as inputs, too: they are taken for the constants that they are.
    pub listed_constants: usize,
    /// The operators of the network, in order.
    pub layers: Vec<LayerSummary>,
    /// The widths of the layers of ReLUs.
    pub hidden: Vec<usize>,
    /// How many units there are.
    pub units: usize,
    /// How many numbers there are in weights and biases.
    pub parameters: usize,
    /// How many numbers of an ONNX file are denormal: too small to be stored with all their digits.
    pub denormals: usize,
    /// The operators after the network.
    pub tail: Vec<String>,
    /// The domain, if one was asked for or the file has one.
    pub domain: Option<DomainSummary>,
}

/// An input or an output.
#[derive(Clone, Debug, Serialize)]
pub struct PortSummary {
    /// Its name.
    pub name: String,
    /// The axes, those of no fixed extent by their name or as `?`; missing where the file gives none.
    pub shape: Option<Vec<Extent>>,
}

/// How long an axis is.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum Extent {
    /// So long.
    Fixed(usize),
    /// Of any length.
    Named(String),
}

/// An operator of the network.
#[derive(Clone, Debug, Serialize)]
pub struct LayerSummary {
    /// What the file calls it.
    pub name: String,
    /// What it does.
    pub operator: &'static str,
    /// The shape of what it makes, for one sample.
    pub shape: Vec<usize>,
    /// How many numbers that are.
    pub width: usize,
    /// How many numbers there are in its weights and biases.
    pub parameters: usize,
}

impl Inspection {
    pub(crate) fn new(file: &ModelFile) -> Self {
        let (model, network) = (file.model(), file.network());
        let (format, opset) = match model.format() {
            Format::Onnx(document) => ("ONNX", Some(document.opset())),
            Format::Nnet(_) => ("NNet", None),
        };
        let layers = network.nodes().iter().map(|node| LayerSummary {
            name: node.name().to_owned(),
            operator: node.op().name(),
            shape: node.shape().extents().to_vec(),
            width: node.shape().elements(),
            parameters: node.op().parameters(),
        });
        let hidden = network.hidden();
        Self {
            version: 1,
            file: file.path().display().to_string(),
            format,
            opset,
            dtype: model.float().name(),
            input: PortSummary::new(model.input()),
            outputs: model.outputs().map(PortSummary::new).collect(),
            listed_constants: model.listed_constants(),
            layers: layers.collect(),
            units: hidden.iter().sum(),
            hidden,
            parameters: network.parameters(),
            denormals: match model.format() {
                // Data that were there a moment ago are counted when they are there again.
                Format::Onnx(document) => document.denormals().unwrap_or_default(),
                Format::Nnet(_) => 0,
            },
            tail: model.tail().nodes().iter().map(|node| node.operator().to_owned()).collect(),
            domain: None,
        }
    }
}

impl PortSummary {
    fn new(port: &Port) -> Self {
        let extent = |axis: &DeclaredAxis| match axis {
            DeclaredAxis::Fixed(extent) => Extent::Fixed(*extent),
            DeclaredAxis::Named(name) => Extent::Named(name.clone()),
            DeclaredAxis::Any => Extent::Named("?".to_owned()),
        };
        let shape = port.axes.as_ref().map(|axes| axes.iter().map(extent).collect());
        Self { name: port.name.clone(), shape }
    }
}
