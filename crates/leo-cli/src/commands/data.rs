//! `leo data`

use std::io::{Write, stdout};

use anyhow::Result;
use leo_train::library;

use crate::args::Data;

pub fn run(arguments: &Data) -> Result<()> {
    let (folder, fetched) = library::fetch(&arguments.name, arguments.to.as_deref(), &|what| eprintln!("leo: {what}"))?;
    let how = if fetched { "is now" } else { "was already" };
    writeln!(stdout(), "{} {how} in {}, with the right SHA-256", arguments.name, folder.display())?;
    Ok(())
}
