//! What is known of a network's units and outputs: as tables for people.

use std::io::Write;

use anyhow::Result;
use comfy_table::CellAlignment::{Left, Right};
use leo::{LayerReport, OutputBounds, PositionCounts, Technique, Totals};

use crate::terminal::console::Console;
use crate::terminal::number::{lower, upper};
use crate::terminal::output::{counted, one_line};

/// Prints how many units of each layer are of which kind, and what decided them.
pub fn print(layers: &[LayerReport], totals: &Totals, seconds: f64, console: &Console) -> Result<()> {
    let out = &mut console.report();
    let rows = || {
        // The name that the file has for it, as `layer_name` gives it.
        let name = |index, layer: &LayerReport| match layer.name.as_str() {
            "" => format!("layer {index}"),
            name => one_line(name),
        };
        let layers =
            layers.iter().enumerate().map(move |(index, layer)| (name(index, layer), &layer.totals, layer.seconds));
        layers.chain([("all".to_owned(), totals, seconds)])
    };
    let noun = if totals.positions.is_some() { "channels" } else { "units" };
    let mut kinds = console.table(&[
        ("layer", Left),
        (noun, Right),
        ("inactive", Right),
        ("active", Right),
        ("unstable", Right),
        ("undecided", Right),
        ("ms", Right),
    ]);
    for (name, totals, seconds) in rows() {
        let Totals { units, inactive, active, unstable, undecided, .. } = *totals;
        let numbers = [units, inactive, active, unstable, undecided].map(|number| number.to_string());
        kinds.add_row([name].into_iter().chain(numbers).chain([format!("{:.1}", 1e3 * seconds)]));
    }
    writeln!(out, "{kinds}")?;
    let used: Vec<&str> =
        Technique::all().into_iter().map(|by| by.name).filter(|name| totals.by.contains_key(name)).collect();
    if !used.is_empty() {
        let columns: Vec<_> =
            [("decided by", Left)].into_iter().chain(used.iter().map(|&name| (name, Right))).collect();
        let mut steps = console.table(&columns);
        for (name, totals, _) in rows() {
            let counts = used.iter().map(|step| totals.by.get(step).unwrap_or(&0).to_string());
            steps.add_row([name].into_iter().chain(counts));
        }
        writeln!(out, "\n{steps}\n")?;
    }
    // Of channels that are not stable, some positions may be.
    if totals.positions.is_some_and(|PositionCounts { all, off, on }| off + on > 0 && off + on < all) {
        let mut positions = console.table(&[("layer", Left), ("positions", Right), ("off", Right), ("on", Right)]);
        for (name, totals, _) in rows() {
            let PositionCounts { all, off, on } = totals.positions.unwrap_or_default();
            positions.add_row([name].into_iter().chain([all, off, on].map(|number| number.to_string())));
        }
        writeln!(out, "{positions}\n")?;
    }
    Ok(())
}

/// What to call an output.
pub fn title(output: &OutputBounds) -> String {
    let name = output.name.as_ref().or(output.value.as_ref());
    name.map_or_else(|| format!("output {}", output.index), |name| format!("output {}", one_line(name)))
}

/// The smallest interval that holds all elements of an output, rounded outward.
pub fn interval(output: &OutputBounds) -> String {
    let least = output.lower.iter().copied().fold(f64::INFINITY, f64::min);
    let most = output.upper.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    format!("[{}, {}]", lower(least), upper(most))
}

/// Says of each output where it lies.
pub fn print_outputs(outputs: &[OutputBounds], console: &Console) -> Result<()> {
    let out = &mut console.report();
    for output in outputs {
        let what = counted(output.lower.len(), "number");
        writeln!(out, "{}: {what}, proved to lie within {}", title(output), interval(output))?;
    }
    Ok(())
}
