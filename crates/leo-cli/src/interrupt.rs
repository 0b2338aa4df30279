//! Ctrl-C: the first asks to stop at the next good place, the second stops at once.

use std::io::{IsTerminal, stderr};
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result};

/// The error of a command that stopped because it was asked to.
#[derive(Debug)]
pub struct Interrupted(pub String);

impl std::fmt::Display for Interrupted {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "stopped; {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

static STOP: AtomicBool = AtomicBool::new(false);

/// Whether Ctrl-C was pressed.
pub fn is_asked() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// From now on Ctrl-C sets the flag that this returns, and says this on the terminal.
pub fn watch(message: &'static str) -> Result<&'static AtomicBool> {
    ctrlc::set_handler(move || {
        if STOP.swap(true, Ordering::Relaxed) {
            exit(i32::from(crate::INTERRUPTED));
        }
        if stderr().is_terminal() {
            eprintln!("\n{message}");
        }
    })
    .context("cannot listen for Ctrl-C")?;
    Ok(&STOP)
}
