//! The program `leo`: parse, call, print.

mod accuracy;
mod args;
mod commands;
mod console;
mod domain;
mod grid;
mod interrupt;
mod output;
mod progress;
mod samples;
mod search;
mod seeds;
mod session;

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use args::{Arguments, Command};
use console::Console;

/// A negative answer.
const NEGATIVE: u8 = 1;

/// Bad usage or input, as `--help` documents. The parser of arguments uses the same code.
const BAD_INPUT: u8 = 2;

/// Stopped by Ctrl-C: what shells report for it.
const INTERRUPTED: u8 = 130;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // The parser does not see a conflict between flags before and after the command.
    if arguments.quiet && arguments.verbose {
        let conflict = "the argument '--quiet' cannot be used with '--verbose'";
        Arguments::command().error(ErrorKind::ArgumentConflict, conflict).exit();
    }
    let console = Console::new(arguments.quiet, arguments.verbose);
    let done = match &arguments.command {
        Command::Inspect(inspect) => commands::inspect::run(inspect, &console),
        Command::Compress(compress) => commands::compress::run(compress, &console),
        Command::Check(check) => commands::check::run(check, &console),
        Command::Analyze(analyze) => commands::analyze::run(analyze, &console),
        Command::Equiv(equiv) => commands::equiv::run(equiv, &console),
        Command::Run(run) => commands::run::run(run, &console),
        Command::Convert(convert) => commands::convert::run(convert, &console),
        Command::Train(train) => commands::train::run(train, &console),
        Command::Reproduce(reproduce) => commands::reproduce::run(reproduce, &console),
        Command::Data(data) => commands::data::run(data, &console),
    };
    match done.and_then(|()| console.finish()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads our output has seen enough.
        Err(error) if console::is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            console::complain(&output::one_line(&format!("{error:#}")));
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
