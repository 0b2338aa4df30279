//! `leo scan`

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result, bail};
use comfy_table::CellAlignment::{Left, Right};
use leo::ScanReport;
use serde::Serialize;

use crate::args;
use crate::request::model;
use crate::terminal::console::Console;
use crate::terminal::number::percent;
use crate::terminal::output::{grouped, one_line};

/// A file, and what was found in it or why it was refused.
#[derive(Serialize)]
struct ScannedFile {
    file: String,
    #[serde(flatten)]
    found: Option<ScanReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

pub fn run(arguments: &args::Scan, console: &Console) -> Result<()> {
    let domain = leo::Domain::parse(&arguments.domain)?;
    let look = |path: &Path| {
        let file = model::open(path, &arguments.shape)?;
        file.scan(domain.clone()).with_context(|| path.display().to_string())
    };
    let mut rows = Vec::new();
    for path in &arguments.models {
        let file = path.display().to_string();
        let phase = console.phase("looking");
        let found = look(path);
        drop(phase);
        rows.push(match found {
            Ok(found) => ScannedFile { file, found: Some(found), refused: None },
            Err(error) => ScannedFile { refused: Some(format!("{error:#}")), file, found: None },
        });
    }
    match (arguments.json, arguments.csv) {
        (true, _) => console.json(&rows)?,
        (_, true) => write!(console.answer(), "{}", csv(&rows))?,
        _ => print(&rows, console)?,
    }
    if rows.iter().all(|row| row.found.is_none()) {
        bail!("none of the files could be looked at");
    }
    Ok(())
}

fn print(rows: &[ScannedFile], console: &Console) -> Result<()> {
    let columns = [
        ("file", Left),
        ("units", Right),
        ("off", Right),
        ("on", Right),
        ("go", Right),
        ("weights left", Right),
        ("products left", Right),
        ("s", Right),
    ];
    let mut table = console.table(&columns);
    let out = &mut console.report();
    // Folders are said only where names alone would not tell files apart.
    let name = |file: &str| Path::new(file).file_name().map(|name| name.to_string_lossy().into_owned());
    let is_clear = |file: &str| rows.iter().filter(|row| name(&row.file) == name(file)).count() == 1;
    let shown = |file: &str| name(file).filter(|_| is_clear(file)).unwrap_or_else(|| file.to_owned());
    for row in rows {
        let Some(found) = &row.found else { continue };
        // What part would be left.
        let share = |[before, after]: [usize; 2]| match before {
            0 => String::new(),
            _ => percent(after, before),
        };
        table.add_row([
            one_line(&shown(&row.file)),
            grouped(found.units),
            grouped(found.inactive),
            grouped(found.active),
            grouped(found.removed),
            share(found.parameters),
            share(found.multiply_adds),
            format!("{:.1}", found.seconds),
        ]);
    }
    if !table.is_empty() {
        writeln!(out, "{table}")?;
    }
    for row in rows {
        let listed = row.found.as_ref().and_then(|found| model::listed_constants(&row.file, found.listed_constants));
        let denormals = row.found.as_ref().and_then(|found| model::denormals(&row.file, found.denormals));
        listed.into_iter().chain(denormals).try_for_each(|note| writeln!(out, "{note}"))?;
        if let Some(refused) = &row.refused {
            writeln!(out, "refused: {}", one_line(refused))?;
        }
    }
    Ok(())
}

/// A line for each file, after one with the names of the columns.
fn csv(rows: &[ScannedFile]) -> String {
    let mut text = "file,units,always_off,always_on,removed,parameters_before,parameters_after,multiply_adds_before,\
                    multiply_adds_after,denormals,seconds,refused\n"
        .to_owned();
    // A quote within quotes is written twice.
    let quoted = |words: &str| format!("\"{}\"", words.replace('"', "\"\""));
    for ScannedFile { file, found, refused } in rows {
        let numbers = found.as_ref().map_or_else(
            || ",".repeat(9),
            |ScanReport { units, inactive, active, removed, parameters, multiply_adds, denormals, seconds, .. }| {
                let ([p, q], [m, n]) = (parameters, multiply_adds);
                format!("{units},{inactive},{active},{removed},{p},{q},{m},{n},{denormals},{seconds:.3}")
            },
        );
        let refused = refused.as_deref().map(quoted).unwrap_or_default();
        text.push_str(&format!("{},{numbers},{refused}\n", quoted(&one_line(file))));
    }
    text
}
