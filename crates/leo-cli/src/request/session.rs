//! From arguments to trainings, with a bar on the terminal and an ear for Ctrl-C.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use std::time::Duration;

use anyhow::Result;
use leo_train::{DataSet, Existing, Job, Session, library};

use crate::args::SessionArguments;
use crate::terminal::console::Console;
use crate::terminal::interrupt;
use crate::terminal::progress::TrainingBar;

/// Runs `work` in a session for these jobs, and hands over what it returns.
pub fn run<T>(
    console: &Console,
    arguments: &SessionArguments,
    jobs: &[Job],
    existing: Existing,
    work: impl FnOnce(&Session<'_>) -> Result<T>,
) -> Result<T> {
    for job in jobs {
        job.recipe.check()?;
    }
    let data = DataSet::load(&library::locate(&arguments.data)?)?;
    let bar = TrainingBar::new(console, jobs, &data);
    let result = work(&Session {
        data: &data,
        threads: arguments.threads.or_else(|| available_parallelism().ok()).unwrap_or(NonZeroUsize::MIN),
        existing,
        checkpoint_every: Duration::from_secs(arguments.checkpoint_every),
        stop: interrupt::watch("stopping at the end of the epoch; Ctrl-C again stops at once"),
        progress: &bar,
    });
    bar.finish();
    result
}
