//! `leo inspect`

use std::io::Write;

use anyhow::{Result, ensure};
use comfy_table::CellAlignment::{Left, Right};
use leo_formats::onnx::DeclaredAxis;
use leo_formats::{Format, Model, Port};
use leo_network::Domain;
use leo_network::op::Operator;
use serde::Serialize;

use crate::args::Inspect;
use crate::request::domain::{self, DomainSummary};
use crate::terminal::console::{Console, bold};
use crate::terminal::output::{counted, grouped, listed, one_line};

/// What there is to say about a model. Also the shape of the JSON: fields may join, these stay.
#[derive(Serialize)]
struct Report {
    version: u32,
    file: String,
    format: &'static str,
    opset: Option<i64>,
    dtype: &'static str,
    input: Interface,
    outputs: Vec<Interface>,
    layers: Vec<LayerSummary>,
    /// The widths of the layers of ReLUs.
    hidden: Vec<usize>,
    units: usize,
    parameters: usize,
    tail: Vec<String>,
    domain: Option<DomainSummary>,
}

#[derive(Serialize)]
struct Interface {
    name: String,
    /// The axes, those of no fixed extent by their name or as `?`; missing where the file gives none.
    shape: Option<Vec<Extent>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Extent {
    Fixed(usize),
    Named(String),
}

#[derive(Serialize)]
struct LayerSummary {
    name: String,
    operator: &'static str,
    shape: Vec<usize>,
    width: usize,
    parameters: usize,
}

pub fn run(arguments: &Inspect, console: &Console) -> Result<()> {
    let both = arguments.domain.domain.is_some() && arguments.domain.data.is_some();
    ensure!(!both, "the domain comes from --domain or from --data, not from both");
    let reading = console.phase("reading");
    let model = Model::load(&arguments.model)?;
    let domain = domain::load(&arguments.domain, &model)?;
    drop(reading);
    let report = Report::new(arguments.model.display().to_string(), &model, domain.as_ref());
    if arguments.json { console.json(&report) } else { report.print(console) }
}

impl Report {
    fn new(file: String, model: &Model, domain: Option<&Domain>) -> Self {
        let network = model.network();
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
            file,
            format,
            opset,
            dtype: model.float().name(),
            input: Interface::new(model.input()),
            outputs: model.outputs().map(Interface::new).collect(),
            layers: layers.collect(),
            units: hidden.iter().sum(),
            hidden,
            parameters: network.parameters(),
            tail: model.tail().nodes().iter().map(|node| node.operator().to_owned()).collect(),
            domain: domain.map(DomainSummary::new),
        }
    }

    fn print(&self, console: &Console) -> Result<()> {
        let out = &mut console.report();
        let opset = self.opset.map(|opset| format!(", operator set {opset}")).unwrap_or_default();
        writeln!(out, "{}: {}{opset}, {}", one_line(&self.file), self.format, self.dtype)?;
        for (kind, interface) in
            std::iter::once(("input", &self.input)).chain(self.outputs.iter().map(|o| ("output", o)))
        {
            writeln!(out, "{kind:<7} {}", interface.describe())?;
        }
        if !self.layers.is_empty() {
            let columns =
                [("layer", Right), ("operator", Left), ("name", Left), ("shape", Left), ("parameters", Right)];
            let mut table = console.table(&columns);
            for (index, layer) in self.layers.iter().enumerate() {
                table.add_row([
                    (index + 1).to_string(),
                    layer.operator.to_owned(),
                    one_line(&layer.name),
                    format!("{:?}", layer.shape),
                    if layer.parameters == 0 { String::new() } else { grouped(layer.parameters) },
                ]);
            }
            writeln!(out, "{table}")?;
        }
        if !self.tail.is_empty() {
            writeln!(out, "tail, kept as it is: {}", one_line(&listed(&self.tail)))?;
        }
        let hidden = match self.hidden.as_slice() {
            [] => "no hidden layers".to_owned(),
            widths => format!("{} of {}", counted(widths.len(), "hidden layer"), listed(widths)),
        };
        let [units, parameters] = [counted(self.units, "ReLU unit"), counted(self.parameters, "parameter")].map(bold);
        writeln!(out, "{hidden}; {units}, {parameters}")?;
        if let Some(domain) = &self.domain {
            writeln!(out, "domain: {domain}")?;
        }
        Ok(())
    }
}

impl Interface {
    fn new(port: &Port) -> Self {
        let extent = |axis: &DeclaredAxis| match axis {
            DeclaredAxis::Fixed(extent) => Extent::Fixed(*extent),
            DeclaredAxis::Named(name) => Extent::Named(name.clone()),
            DeclaredAxis::Any => Extent::Named("?".to_owned()),
        };
        let shape = port.axes.as_ref().map(|axes| axes.iter().map(extent).collect());
        Self { name: port.name.clone(), shape }
    }

    fn describe(&self) -> String {
        let extents = self.shape.iter().flatten().map(|extent| match extent {
            Extent::Fixed(extent) => extent.to_string(),
            Extent::Named(name) => name.clone(),
        });
        let shape = if self.shape.is_some() { format!("[{}]", listed(extents)) } else { String::new() };
        one_line(&format!("{} {shape}", self.name))
    }
}
