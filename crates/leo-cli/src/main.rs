//! The program `leo`: parse, call, print.

mod args;
mod commands;
mod report;
mod request;
mod terminal;

use std::ffi::OsString;
use std::io::{ErrorKind::BrokenPipe, Write, stdout};
use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use args::{Arguments, Command};
use terminal::console::{self, Console};
use terminal::{interrupt, output};

/// A negative answer.
const NEGATIVE: u8 = 1;

/// Bad usage or input, as `--help` documents. The parser of arguments uses the same code.
const BAD_INPUT: u8 = 2;

/// Stopped by Ctrl-C: what shells report for it.
const INTERRUPTED: u8 = 130;

/// Prints the help that was asked for, or what is wrong with the arguments.
fn say(message: &clap::Error) -> ExitCode {
    match message.print().and_then(|()| stdout().flush()) {
        _ if message.use_stderr() => ExitCode::from(BAD_INPUT),
        Err(error) if error.kind() != BrokenPipe => ExitCode::from(BAD_INPUT),
        _ => ExitCode::SUCCESS,
    }
}

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    let arguments = match Arguments::try_parse_from(&words) {
        Ok(arguments) => arguments,
        Err(message) => return say(&message),
    };
    // The parser does not see a conflict between flags before and after the command.
    if arguments.quiet && arguments.verbose {
        let conflict = "the argument '--quiet' cannot be used with '--verbose'";
        return say(&Arguments::command().error(ErrorKind::ArgumentConflict, conflict));
    }
    let console = Console::new(arguments.quiet, arguments.verbose, &words);
    interrupt::listen(&console);
    match perform(&arguments.command, &console).and_then(|()| console.finish()) {
        Ok(()) => ExitCode::SUCCESS,
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

/// Does what a command says.
fn perform(command: &Command, console: &Console) -> anyhow::Result<()> {
    match command {
        Command::Inspect(inspect) => commands::inspect::run(inspect, console),
        Command::Scan(scan) => commands::scan::run(scan, console),
        Command::Compress(compress) => commands::compress::run(compress, console),
        Command::Check(check) => commands::check::run(check, console),
        Command::Analyze(analyze) => commands::analyze::run(analyze, console),
        Command::Equiv(equiv) => commands::equiv::run(equiv, console),
        Command::Run(run) => commands::run::run(run, console),
        Command::Convert(convert) => commands::convert::run(convert, console),
        Command::Train(train) => commands::train::run(train, console),
        Command::Reproduce(reproduce) => commands::reproduce::run(reproduce, console),
        Command::Demo(demo) => commands::demo::run(demo, console),
        Command::Data(data) => commands::data::run(data, console),
        Command::Completions(completions) => commands::completions::run(completions, console),
        Command::Man(man) => commands::man::run(man, console),
    }
}
