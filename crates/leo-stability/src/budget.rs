//! How long an analysis may go on, and how much memory it may take.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use leo_network::Observer;

/// Why an analysis stopped before it was through.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopReason {
    /// It was asked to.
    Interrupted,
    /// Its time was up.
    OutOfTime,
    /// It took too much memory.
    OutOfMemory,
}

/// What stops an analysis as a whole.
#[derive(Default)]
pub(crate) struct Limits<'a> {
    observer: Option<&'a dyn Observer>,
    deadline: Option<Instant>,
    /// In bytes.
    memory: Option<u64>,
    /// What it was that first ran out.
    stopped: Mutex<Option<StopReason>>,
}

impl<'a> Limits<'a> {
    pub(crate) fn new(observer: Option<&'a dyn Observer>, time: Option<Duration>, memory: Option<u64>) -> Self {
        let deadline = time.and_then(|time| Instant::now().checked_add(time));
        Self { observer, deadline, memory, stopped: Mutex::default() }
    }

    /// Everything.
    pub(crate) fn whole(&self) -> Budget<'_> {
        Budget { limits: self, deadline: self.deadline, exhausted: AtomicBool::new(false) }
    }

    /// Everything, however late it is.
    pub(crate) fn timeless(&self) -> Budget<'_> {
        Budget { deadline: None, ..self.whole() }
    }

    /// Of the time that is left, one of `parts` equal parts.
    pub(crate) fn part(&self, parts: usize) -> Budget<'_> {
        let now = Instant::now();
        let share = |deadline: Instant| {
            now + deadline.saturating_duration_since(now) / u32::try_from(parts).unwrap_or(u32::MAX)
        };
        Budget { deadline: self.deadline.map(share), ..self.whole() }
    }

    /// What it was that first ran out, if anything did.
    pub(crate) fn stopped(&self) -> Option<StopReason> {
        *self.what_stopped()
    }

    /// Forgets that a share of the time was used up.
    pub(crate) fn go_on(&self) {
        *self.what_stopped() = None;
    }

    fn what_stopped(&self) -> MutexGuard<'_, Option<StopReason>> {
        self.stopped.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is left for some of the work. Once it is exhausted it stays so.
pub(crate) struct Budget<'a> {
    limits: &'a Limits<'a>,
    deadline: Option<Instant>,
    exhausted: AtomicBool,
}

impl Budget<'_> {
    /// How much time is left, if there is a limit.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()))
    }

    /// Whether there is nothing left. Cheap enough to be asked before every small piece of work.
    pub(crate) fn is_exhausted(&self) -> bool {
        if self.exhausted.load(Ordering::Relaxed) {
            return true;
        }
        let used = || memory_stats::memory_stats().map_or(0, |stats| stats.physical_mem as u64);
        let cause = if self.limits.observer.is_some_and(Observer::is_stopped) {
            StopReason::Interrupted
        } else if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            StopReason::OutOfTime
        } else if self.limits.memory.is_some_and(|memory| used() > memory) {
            StopReason::OutOfMemory
        } else {
            return false;
        };
        self.limits.what_stopped().get_or_insert(cause);
        self.exhausted.store(true, Ordering::Relaxed);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_ends_before_the_whole() {
        let limits = Limits::new(None, Some(Duration::from_secs(3600)), None);
        let (whole, part) = (limits.whole(), limits.part(2));
        assert!(part.deadline < whole.deadline && !part.is_exhausted() && limits.stopped().is_none());
        let late = Limits::new(None, Some(Duration::ZERO), None);
        assert!(late.part(3).is_exhausted() && late.whole().is_exhausted());
        assert_eq!(late.stopped(), Some(StopReason::OutOfTime));
    }

    #[test]
    fn flags_and_memory_stop_everything() {
        struct Flag(AtomicBool);
        impl Observer for Flag {
            fn is_stopped(&self) -> bool {
                self.0.load(Ordering::Relaxed)
            }
        }
        let stop = Flag(AtomicBool::new(false));
        let limits = Limits::new(Some(&stop), None, None);
        let budget = limits.whole();
        assert!(!budget.is_exhausted());
        stop.0.store(true, Ordering::Relaxed);
        assert!(budget.is_exhausted() && limits.part(2).is_exhausted());
        assert_eq!(limits.stopped(), Some(StopReason::Interrupted));
        let small = Limits::new(None, None, Some(1 << 10));
        assert!(small.whole().is_exhausted());
        assert_eq!(small.stopped(), Some(StopReason::OutOfMemory));
    }
}
