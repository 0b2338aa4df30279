//! `leo data`

use std::io::Write;

use anyhow::Result;
use leo_train::library;

use crate::args::Data;
use crate::console::{Console, complain};

pub fn run(arguments: &Data, console: &Console) -> Result<()> {
    let (folder, fetched) = library::fetch(&arguments.name, arguments.to.as_deref(), &|what| complain(what))?;
    let how = if fetched { "is now" } else { "was already" };
    writeln!(console.report(), "{} {how} in {}, with the right SHA-256", arguments.name, folder.display())?;
    Ok(())
}
