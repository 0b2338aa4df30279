//! The program `leo`: parse, call, print.

mod args;
mod commands;
mod domain;
mod output;
mod samples;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};

/// Bad usage or input, as `--help` documents. The parser of arguments uses the same code.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.command {
        Command::Inspect(inspect) => commands::inspect::run(inspect),
        Command::Run(run) => commands::run::run(run),
        Command::Convert(convert) => commands::convert::run(convert),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has seen enough.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("leo: {}", output::one_line(&format!("{error:#}")));
            ExitCode::from(BAD_INPUT)
        }
    }
}
