//! The program `leo`: parse, call, print.

mod accuracy;
mod args;
mod commands;
mod domain;
mod interrupt;
mod output;
mod progress;
mod samples;
mod search;
mod seeds;
mod session;

use std::process::ExitCode;

use clap::Parser;

use args::{Arguments, Command};

/// A negative answer.
const NEGATIVE: u8 = 1;

/// Bad usage or input, as `--help` documents. The parser of arguments uses the same code.
const BAD_INPUT: u8 = 2;

/// Stopped by Ctrl-C: what shells report for it.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.command {
        Command::Inspect(inspect) => commands::inspect::run(inspect),
        Command::Compress(compress) => commands::compress::run(compress),
        Command::Check(check) => commands::check::run(check),
        Command::Analyze(analyze) => commands::analyze::run(analyze),
        Command::Equiv(equiv) => commands::equiv::run(equiv),
        Command::Run(run) => commands::run::run(run),
        Command::Convert(convert) => commands::convert::run(convert),
        Command::Train(train) => commands::train::run(train),
        Command::Reproduce(reproduce) => commands::reproduce::run(reproduce),
        Command::Data(data) => commands::data::run(data),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has seen enough.
        Err(error) if output::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("leo: {}", output::one_line(&format!("{error:#}")));
            ExitCode::from(if error.is::<interrupt::Interrupted>() {
                INTERRUPTED
            } else if error.is::<output::Negative>() {
                NEGATIVE
            } else {
                BAD_INPUT
            })
        }
    }
}
