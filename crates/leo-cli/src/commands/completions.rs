//! `leo completions`

use std::io::Write;

use anyhow::Result;
use clap::CommandFactory;
use clap_complete::generate;

use crate::args::{Arguments, Completions};
use crate::terminal::console::Console;

pub fn run(arguments: &Completions, console: &Console) -> Result<()> {
    // The generator panics where it cannot write, and a full disk is no bug: so it writes to memory.
    let mut script = Vec::new();
    generate(arguments.shell, &mut Arguments::command(), "leo", &mut script);
    Ok(console.answer().write_all(&script)?)
}
