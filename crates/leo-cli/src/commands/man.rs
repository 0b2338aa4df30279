//! `leo man`

use std::fs::create_dir_all;
use std::io::Write;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_mangen::Man as Page;
use leo_formats::write_atomically;

use crate::args::{Arguments, Man};
use crate::terminal::console::Console;
use crate::terminal::output::{counted, one_line};

pub fn run(arguments: &Man, console: &Console) -> Result<()> {
    // A page about `leo help` would say nothing.
    let mut leo = Arguments::command().disable_help_subcommand(true).long_version(None);
    leo.build();
    let commands: Vec<_> = leo.get_subcommands().cloned().collect();
    let Some(folder) = &arguments.to else {
        return Ok(console.answer().write_all(&render(&Page::new(leo))?)?);
    };
    create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    let pages: Vec<Page> = std::iter::once(leo).chain(commands).map(Page::new).collect();
    for page in &pages {
        write_atomically(&folder.join(page.get_filename()), &render(page)?)?;
    }
    let shown = folder.display().to_string();
    writeln!(console.report(), "wrote {} to {}", counted(pages.len(), "page"), one_line(&shown))?;
    Ok(())
}

fn render(page: &Page) -> Result<Vec<u8>> {
    let mut roff = Vec::new();
    page.render(&mut roff)?;
    Ok(roff)
}
