//! Where the program speaks: reports on standard output, complaints and progress on standard error.
//!
//! A [`Console`] is made once, from the flags that every command has. It knows how much to say, how wide, and in which
//! colours: none where nobody would see them.

use std::ffi::{OsStr, OsString};
use std::fmt::{self, Display};
use std::io::{self, IsTerminal, Stdout, Write, stderr, stdout};
use std::path::{Path, PathBuf};

use anstream::AutoStream;
use anstyle::{AnsiColor, Style};
use anyhow::{Result, ensure};
use comfy_table::CellAlignment;
use serde::Serialize;
use terminal_size::{Width, terminal_size_of};

use crate::request::files;
use crate::terminal::grid::Grid;
use crate::terminal::json;

/// How wide lines are where nothing says so.
const DEFAULT_WIDTH: u16 = 80;
/// How wide lines are at least.
const LEAST_WIDTH: u16 = 40;
/// How wide lines are at most.
const MOST_WIDTH: u16 = 100;

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verbosity {
    /// Only errors, and what was asked for.
    Quiet,
    /// A report.
    Normal,
    /// A report with more detail.
    Verbose,
}

/// The two ends that people read.
#[derive(Clone, Debug)]
pub struct Console {
    verbosity: Verbosity,
    width: u16,
    /// Whether somebody is there to watch a bar.
    is_watched: bool,
    /// How wide it may be.
    bar_width: u16,
    /// What was typed.
    command: String,
}

impl Console {
    /// The console that the flags of this command ask for.
    pub fn new(quiet: bool, verbose: bool, words: &[OsString]) -> Self {
        let verbosity = match (quiet, verbose) {
            (true, _) => Verbosity::Quiet,
            (false, true) => Verbosity::Verbose,
            (false, false) => Verbosity::Normal,
        };
        let of_terminal = terminal_size_of(stdout()).map(|(Width(columns), _)| columns);
        let of_bars = terminal_size_of(stderr()).map(|(Width(columns), _)| columns);
        let of_environment = || std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        Self {
            verbosity,
            width: of_terminal.or_else(of_environment).unwrap_or(DEFAULT_WIDTH).clamp(LEAST_WIDTH, MOST_WIDTH),
            is_watched: verbosity != Verbosity::Quiet && stderr().is_terminal(),
            command: in_shell(words.iter().skip(1)),
            bar_width: of_bars.unwrap_or(DEFAULT_WIDTH),
        }
    }

    /// The command, as one would type it.
    pub fn command(&self) -> &str {
        &self.command
    }

    /// The same console, while another command is done on it.
    pub fn during(&self, words: &[OsString]) -> Self {
        Self { command: in_shell(words.iter().skip(1)), ..self.clone() }
    }

    /// The same console without reports, if standard output is where one of these files goes: they would be mixed up.
    ///
    /// # Errors
    /// If JSON is to go there, too.
    pub fn beside<'a>(&self, paths: impl IntoIterator<Item = &'a Path>, json: bool) -> Result<Self> {
        let Some(path) = paths.into_iter().find(|path| files::is_standard_output(path)) else {
            return Ok(self.clone());
        };
        ensure!(!json, "{}: --json goes there, too; give the file another name", path.display());
        Ok(Self { verbosity: Verbosity::Quiet, is_watched: false, ..self.clone() })
    }

    /// Whether more detail is asked for.
    pub fn is_verbose(&self) -> bool {
        self.verbosity == Verbosity::Verbose
    }

    /// Whether bars are drawn.
    pub fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// How wide a bar may be.
    pub fn bar_width(&self) -> u16 {
        self.bar_width
    }

    /// Where a report goes. What nobody reads, because of `--quiet` or a closed pipe, is no error.
    pub fn report(&self) -> Printer {
        Printer { stream: (self.verbosity != Verbosity::Quiet).then(|| AutoStream::auto(stdout())) }
    }

    /// Says what one should not miss.
    ///
    /// # Errors
    /// If standard output cannot be written to.
    pub fn warn(&self, what: impl Display) -> Result<()> {
        Ok(writeln!(self.report(), "{} {what}", doubtful("beware:"))?)
    }

    /// Where an answer goes that was asked for, whatever else is said.
    pub fn answer(&self) -> Printer {
        Printer { stream: Some(AutoStream::never(stdout())) }
    }

    /// Prints what was asked for, whatever else is said.
    ///
    /// # Errors
    /// If standard output cannot be written to.
    pub fn json(&self, report: &impl Serialize) -> Result<()> {
        let text = serde_json::to_string_pretty(report)?;
        Ok(writeln!(self.answer(), "{text}")?)
    }

    /// Prints what was asked for, with a line for each entry of its lists.
    ///
    /// # Errors
    /// If standard output cannot be written to.
    pub fn json_by_line(&self, report: &impl Serialize) -> Result<()> {
        let mut text = json::by_line(report)?;
        text.push(b'\n');
        Ok(self.answer().write_all(&text)?)
    }

    /// A table with these columns, as wide as lines can be; numbers stand to the right in those marked so.
    pub fn table(&self, columns: &[(&str, CellAlignment)]) -> Grid {
        Grid::new(columns, self.width)
    }

    /// Sees to it that everything printed has arrived.
    ///
    /// # Errors
    /// If standard output cannot be written to.
    pub fn finish(&self) -> Result<()> {
        Ok(self.answer().flush()?)
    }
}

/// A file's name as an argument: one that begins like a flag is none.
pub fn as_argument(path: &Path) -> PathBuf {
    if path.as_os_str().as_encoded_bytes().starts_with(b"-") { Path::new(".").join(path) } else { path.to_owned() }
}

/// A command of this program, as one would type it.
pub fn in_shell<T: AsRef<OsStr>>(words: impl IntoIterator<Item = T>) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./,:=+@%".contains(letter);
    let quoted = words.into_iter().map(|word| {
        let word = word.as_ref().to_string_lossy();
        if !word.is_empty() && word.chars().all(is_plain) {
            return word.into_owned();
        }
        // Only what has a zero byte cannot be quoted, and no argument has.
        shlex::try_quote(&word).map_or_else(|_| word.to_string(), |quoted| quoted.into_owned())
    });
    ["leo".to_owned()].into_iter().chain(quoted).collect::<Vec<_>>().join(" ")
}

/// Standard output, without colours where it is no terminal; or nothing.
pub struct Printer {
    stream: Option<AutoStream<Stdout>>,
}

impl Printer {
    /// Whether anybody reads, as far as is known.
    pub fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    fn attempt<T>(&mut self, nothing: T, act: impl FnOnce(&mut AutoStream<Stdout>) -> io::Result<T>) -> io::Result<T> {
        let Some(stream) = &mut self.stream else { return Ok(nothing) };
        match act(stream) {
            // Whoever reads has seen enough, and the answer is also in the exit code.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                self.stream = None;
                Ok(nothing)
            }
            Err(error) => Err(io::Error::new(error.kind(), format!("standard output cannot be written: {error}"))),
            done => done,
        }
    }
}

impl Write for Printer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.attempt(bytes.len(), |stream| stream.write(bytes))
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.attempt((), |stream| stream.write_all(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.attempt((), Write::flush)
    }
}

/// A word in a style, for a [`Printer`], which leaves the style out where it would be noise.
pub struct Styled<T>(Style, T);

impl<T: Display> Display for Styled<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}{:#}", self.0, self.1, self.0)
    }
}

/// What one likes to hear: verified, proved, equal.
pub fn good<T: Display>(word: T) -> Styled<T> {
    Styled(Style::new().bold().fg_color(Some(AnsiColor::Green.into())), word)
}

/// What one does not: refused, different, an error.
pub fn bad<T: Display>(word: T) -> Styled<T> {
    Styled(Style::new().bold().fg_color(Some(AnsiColor::Red.into())), word)
}

/// Neither: undecided, unknown.
pub fn doubtful<T: Display>(word: T) -> Styled<T> {
    Styled(Style::new().bold().fg_color(Some(AnsiColor::Yellow.into())), word)
}

/// What to read if one reads nothing else.
pub fn bold<T: Display>(word: T) -> Styled<T> {
    Styled(Style::new().bold(), word)
}

/// Says one line on standard error. Where that is closed, there is nobody left to tell.
pub fn complain(line: &str) {
    drop(writeln!(AutoStream::auto(stderr()), "{} {line}", bad("leo:")));
}
