//! How long an analysis may go on, and how much memory it may take.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Why an analysis stopped before it was through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stopped {
    /// It was asked to.
    Interrupted,
    /// Its time was up.
    OutOfTime,
    /// It took too much memory.
    OutOfMemory,
}

/// What is left. Once it is exhausted it stays so.
#[derive(Debug, Default)]
pub(crate) struct Budget<'a> {
    stop: Option<&'a AtomicBool>,
    deadline: Option<Instant>,
    /// In bytes.
    memory: Option<u64>,
    stopped: OnceLock<Stopped>,
}

impl<'a> Budget<'a> {
    pub(crate) fn new(stop: Option<&'a AtomicBool>, time: Option<Duration>, memory: Option<u64>) -> Self {
        let deadline = time.and_then(|time| Instant::now().checked_add(time));
        Self { stop, deadline, memory, stopped: OnceLock::new() }
    }

    /// Whether there is nothing left. Cheap enough to be asked before every small piece of work.
    pub(crate) fn is_exhausted(&self) -> bool {
        if self.stopped.get().is_some() {
            return true;
        }
        let used = || memory_stats::memory_stats().map_or(0, |stats| stats.physical_mem as u64);
        let cause = if self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed)) {
            Stopped::Interrupted
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            Stopped::OutOfTime
        } else if self.memory.is_some_and(|memory| used() > memory) {
            Stopped::OutOfMemory
        } else {
            return false;
        };
        let _ = self.stopped.set(cause);
        true
    }

    /// What it was that ran out.
    pub(crate) fn stopped(&self) -> Option<Stopped> {
        self.stopped.get().copied()
    }
}
