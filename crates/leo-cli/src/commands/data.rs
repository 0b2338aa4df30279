//! `leo data`

use std::cell::RefCell;
use std::io::Write;

use anyhow::Result;
use leo_train::library;
use serde::Serialize;

use crate::args::Data;
use crate::terminal::console::Console;

/// What is where now. Also the shape of the JSON: fields may join, these stay.
#[derive(Serialize)]
struct Report<'a> {
    version: u32,
    name: &'a str,
    folder: String,
    /// Whether it was not there before.
    fetched: bool,
    /// Whether its SHA-256 is right. Otherwise there is no report.
    checked: bool,
}

pub fn run(arguments: &Data, console: &Console) -> Result<()> {
    let phase = RefCell::new(None);
    let say = |what: &str| drop(phase.replace(Some(console.phase(what.to_owned()))));
    let (folder, fetched) = library::fetch(&arguments.name, arguments.to.as_deref(), &say)?;
    drop(phase);
    if arguments.json {
        let folder = folder.display().to_string();
        return console.json(&Report { version: 1, name: &arguments.name, folder, fetched, checked: true });
    }
    let how = if fetched { "is now" } else { "was already" };
    writeln!(console.report(), "{} {how} in {}, with the right SHA-256", arguments.name, folder.display())?;
    Ok(())
}
