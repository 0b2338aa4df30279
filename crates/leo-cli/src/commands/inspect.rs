//! `leo inspect`

use std::io::Write;

use anyhow::{Result, ensure};
use comfy_table::CellAlignment::{Left, Right};
use leo::{DomainSummary, Extent, Inspection, PortSummary};

use crate::args::Inspect;
use crate::request::{domain, model};
use crate::terminal::console::{Console, bold};
use crate::terminal::output::{counted, grouped, listed, one_line};

pub fn run(arguments: &Inspect, console: &Console) -> Result<()> {
    let both = arguments.domain.domain.is_some() && arguments.domain.data.is_some();
    ensure!(!both, "the domain comes from --domain or from --data, not from both");
    let reading = console.phase("reading");
    let file = model::open(&arguments.model, &arguments.shape)?;
    let domain = domain::load(&arguments.domain, file.model())?;
    drop(reading);
    let report =
        Inspection { domain: domain.as_ref().map(|domain| DomainSummary::new(domain, file.model())), ..file.inspect() };
    if arguments.json { console.json(&report) } else { print(&report, console) }
}

fn print(report: &Inspection, console: &Console) -> Result<()> {
    let out = &mut console.report();
    let opset = report.opset.map(|opset| format!(", operator set {opset}")).unwrap_or_default();
    writeln!(out, "{}: {}{opset}, {}", one_line(&report.file), report.format, report.dtype)?;
    for (kind, interface) in
        std::iter::once(("input", &report.input)).chain(report.outputs.iter().map(|o| ("output", o)))
    {
        writeln!(out, "{kind:<7} {}", describe(interface))?;
    }
    if let Some(note) = model::listed_constants(&report.file, report.listed_constants) {
        writeln!(out, "{note}")?;
    }
    if let Some(note) = model::denormals(&report.file, report.denormals) {
        writeln!(out, "{note}")?;
    }
    if !report.layers.is_empty() {
        let columns = [("node", Right), ("operator", Left), ("name", Left), ("shape", Left), ("parameters", Right)];
        let mut table = console.table(&columns);
        for (index, layer) in report.layers.iter().enumerate() {
            table.add_row([
                index.to_string(),
                layer.operator.to_owned(),
                one_line(&layer.name),
                format!("{:?}", layer.shape),
                if layer.parameters == 0 { String::new() } else { grouped(layer.parameters) },
            ]);
        }
        writeln!(out, "{table}")?;
    }
    if !report.tail.is_empty() {
        writeln!(out, "tail, kept as it is: {}", one_line(&listed(&report.tail)))?;
    }
    let hidden = match report.hidden.as_slice() {
        [] => "no hidden layers".to_owned(),
        widths => format!("{} of {}", counted(widths.len(), "hidden layer"), listed(widths)),
    };
    let [units, parameters] = [counted(report.units, "ReLU unit"), counted(report.parameters, "parameter")].map(bold);
    writeln!(out, "{hidden}; {units}, {parameters}")?;
    if let Some(domain) = &report.domain {
        writeln!(out, "domain: {}", domain::in_words(domain))?;
    }
    Ok(())
}

fn describe(port: &PortSummary) -> String {
    let extents = port.shape.iter().flatten().map(|extent| match extent {
        Extent::Fixed(extent) => extent.to_string(),
        Extent::Named(name) => name.clone(),
    });
    let shape = if port.shape.is_some() { format!("[{}]", listed(extents)) } else { String::new() };
    one_line(&format!("{} {shape}", port.name))
}
