//! What a terminal shows while something takes time: what it is, how far it has come, and how long it will take.
//! Nothing in a pipe, nothing with `--quiet`, and nothing that is left when it is done.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use indicatif::{HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use leo::{Observer, Step};
use leo_train::{DataSet, Job, Progress, Training, TrainingOutcome};

use crate::terminal::console::Console;
use crate::terminal::interrupt;

/// How far all trainings are together, and how the last of them to say something goes.
pub struct TrainingBar {
    bar: ProgressBar,
    inputs: usize,
    classes: usize,
    jobs: usize,
    done: AtomicUsize,
}

impl TrainingBar {
    pub fn new(console: &Console, jobs: &[Job], data: &DataSet) -> Self {
        let bar = ProgressBar::with_draw_target(None, target(console));
        bar.set_style(style("{wide_bar} {percent:>3}%{left}\n{wide_msg}"));
        bar.enable_steady_tick(Duration::from_millis(200));
        let (inputs, classes) = (data.inputs(), data.classes());
        bar.set_message("beginning ...");
        let progress = Self { bar, inputs, classes, jobs: jobs.len(), done: AtomicUsize::new(0) };
        progress.bar.set_length(jobs.iter().map(|job| progress.work(job, job.recipe.epochs)).sum());
        progress
    }

    /// What some epochs of a job cost, roughly: their multiplications.
    fn work(&self, job: &Job, epochs: u32) -> u64 {
        u64::from(epochs) * job.recipe.weights(self.inputs, self.classes) as u64
    }

    /// Takes the bar from the terminal.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for TrainingBar {
    fn begins(&self, job: &Job, epochs: u32) {
        // The bar is about what this run has to do, so that its guess of the time left is right.
        self.bar.dec_length(self.work(job, epochs));
    }

    fn epoch(&self, job: &Job, training: &Training<'_>) {
        self.bar.inc(self.work(job, 1));
        let (name, last) = (job.path.file_stem().unwrap_or_default().to_string_lossy(), training.last());
        let (epoch, loss, accuracy) = (training.epochs(), last.loss, 100.0 * last.accuracy);
        let others = match self.jobs {
            1 => String::new(),
            jobs => format!("{}/{jobs} done; ", self.done.load(Ordering::Relaxed)),
        };
        self.bar.set_message(format!("{others}epoch {epoch}, loss {loss:.4}, accuracy {accuracy:.2}%: {name}"));
    }

    fn done(&self, _job: &Job, _outcome: &TrainingOutcome) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// How many networks are compressed.
pub struct CompressionBar {
    bar: ProgressBar,
}

impl CompressionBar {
    pub fn new(console: &Console) -> Self {
        Self { bar: patient_bar(console, "compressing {wide_bar} {pos}/{len}{left}") }
    }

    pub fn set(&self, done: usize, all: usize) {
        self.bar.set_length(all as u64);
        self.bar.set_position(done as u64);
    }

    /// Takes the bar from the terminal.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

/// Where bars are drawn, if they are.
fn target(console: &Console) -> ProgressDrawTarget {
    if console.is_watched() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}

/// A step of a command, shown on the terminal if it takes more than a moment. What is shown goes when this does.
pub struct Phase {
    bar: ProgressBar,
}

impl Console {
    /// Says what is being done, until what this returns is dropped.
    pub fn phase(&self, what: impl Into<Cow<'static, str>>) -> Phase {
        let bar = patient_bar(self, WAITING);
        bar.set_message(what);
        Phase { bar }
    }

    /// The same for something that has so many parts.
    pub fn counting_phase(&self, what: impl Into<Cow<'static, str>>, parts: usize) -> Phase {
        let bar = patient_bar(self, counting(self));
        bar.set_message(what);
        bar.set_length(parts as u64);
        Phase { bar }
    }
}

impl Phase {
    /// So many parts more are done.
    pub fn done(&self, parts: usize) {
        self.bar.inc(parts as u64);
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Below this width there is no room for a bar beside the words.
const LEAST_BAR_WIDTH: u16 = 80;

/// Something that cannot be counted.
const WAITING: &str = "{spinner} {wide_msg} {elapsed}";

/// Something that can: what it is, how far it has come, and how long it will take.
fn counting(console: &Console) -> &'static str {
    match console.bar_width() {
        ..LEAST_BAR_WIDTH => "{wide_msg} {pos}/{len}{left}",
        LEAST_BAR_WIDTH.. => "{msg} {wide_bar} {pos}/{len}{left}",
    }
}

fn style(template: &str) -> ProgressStyle {
    // Before anything is done there is nothing to judge by.
    let left = |state: &ProgressState, out: &mut dyn fmt::Write| match state.pos() {
        0 => drop(write!(out, ", {:#} so far", HumanDuration(state.elapsed()))),
        _ => drop(write!(out, ", {:#} left", HumanDuration(state.eta()))),
    };
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()).with_key("left", left)
}

/// One bar for several steps after each other.
struct Steps {
    bar: ProgressBar,
    counting: ProgressStyle,
    waiting: ProgressStyle,
}

impl Steps {
    fn new(console: &Console) -> Self {
        Self { bar: patient_bar(console, WAITING), counting: style(counting(console)), waiting: style(WAITING) }
    }

    /// Goes on to the next step, of so many parts.
    fn begin(&self, what: String, parts: usize) {
        self.bar.set_style(if parts > 1 { self.counting.clone() } else { self.waiting.clone() });
        self.bar.set_position(0);
        self.bar.set_length(parts as u64);
        self.bar.reset_eta();
        self.bar.set_message(what);
    }

    fn done(&self, parts: usize) {
        self.bar.inc(parts as u64);
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How long a bar waits before it appears.
const DELAY: Duration = Duration::from_millis(500);

/// A bar that waits a moment: what is through before anybody could read it needs none.
fn patient_bar(console: &Console, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    bar.set_style(style(template));
    if !console.is_watched() {
        return bar;
    }
    let shown = bar.clone();
    thread::spawn(move || {
        thread::sleep(DELAY);
        if !shown.is_finished() {
            shown.set_draw_target(ProgressDrawTarget::stderr());
            shown.enable_steady_tick(Duration::from_millis(200));
            if shown.is_finished() {
                // It was finished in between, and had nothing to clear yet.
                shown.finish_and_clear();
            }
        }
    });
    bar
}

/// Shows how far the step that a command is at has come, and hears Ctrl-C for it while it searches.
pub struct Watcher {
    steps: Steps,
}

impl Watcher {
    pub fn new(console: &Console) -> Self {
        Self { steps: Steps::new(console) }
    }

    /// One that listens from now on, and not only once the search begins.
    pub fn listening(console: &Console) -> Self {
        interrupt::watch(STOPPING);
        Self::new(console)
    }

    /// Takes the bar from the terminal; from now on Ctrl-C ends the program at once.
    pub fn finish(&self) {
        self.steps.bar.finish_and_clear();
        interrupt::unwatch();
    }
}

/// What is said to the first Ctrl-C during a search.
const STOPPING: &str = "stopping; Ctrl-C again stops at once and says nothing";

impl Observer for Watcher {
    fn begin(&self, step: Step, parts: usize) {
        if matches!(step, Step::Search { .. }) {
            interrupt::watch(STOPPING);
        } else {
            interrupt::unwatch();
        }
        self.steps.begin(step.to_string(), parts);
    }

    fn advance(&self, parts: usize) {
        self.steps.done(parts);
    }

    fn is_stopped(&self) -> bool {
        interrupt::is_asked()
    }
}
