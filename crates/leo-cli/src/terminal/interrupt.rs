//! Ctrl-C. A command that can stop at a good place asks to be told ([`watch`]): the first Ctrl-C is for it, and the
//! second ends the program. Any other command ends at once. Either way nothing half written stays behind.

use std::io::{Write, stderr};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use leo_formats::abandon_unfinished;

use crate::terminal::console::{Console, complain};

/// The error of a command that stopped because it was asked to.
#[derive(Debug)]
pub struct Interrupted(pub String);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "stopped; {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// How long the last word may take.
const LAST_WORD_TIME: Duration = Duration::from_millis(200);

/// Whether Ctrl-C was pressed.
static STOP: AtomicBool = AtomicBool::new(false);

/// What to say to the first Ctrl-C, if a command is to be told.
static MESSAGE: Mutex<Option<&'static str>> = Mutex::new(None);

fn set_message(message: Option<&'static str>) {
    *MESSAGE.lock().unwrap_or_else(PoisonError::into_inner) = message;
}

/// Listens for Ctrl-C from now on.
pub fn listen(console: &Console) {
    let console = console.clone();
    let handler = move || {
        let message = *MESSAGE.lock().unwrap_or_else(PoisonError::into_inner);
        match message {
            Some(message) if !STOP.swap(true, Ordering::Relaxed) => {
                if console.is_watched() {
                    drop(writeln!(stderr(), "\n{message}"));
                }
            }
            _ => end(&console),
        }
    };
    // Where nobody can listen, Ctrl-C still ends the program.
    drop(ctrlc::set_handler(handler));
}

fn end(console: &Console) -> ! {
    abandon_unfinished();
    let is_watched = console.is_watched();
    let said = thread::spawn(move || {
        if is_watched {
            // The terminal has written ^C, or a bar, into this line.
            drop(writeln!(stderr()));
        }
        complain("stopped");
    });
    // A pipe that nobody empties does not keep the program from ending.
    let asked = Instant::now();
    while !said.is_finished() && asked.elapsed() < LAST_WORD_TIME {
        thread::sleep(Duration::from_millis(5));
    }
    exit(i32::from(crate::INTERRUPTED))
}

/// From now on the first Ctrl-C sets the flag that this returns, and says this on the terminal.
pub fn watch(message: &'static str) -> &'static AtomicBool {
    set_message(Some(message));
    &STOP
}

/// Whether Ctrl-C was heard.
pub fn is_asked() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// From now on Ctrl-C ends the program at once: nobody looks at the flag any more.
pub fn unwatch() {
    set_message(None);
}
