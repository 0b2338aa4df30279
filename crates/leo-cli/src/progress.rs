//! A bar on the terminal while networks are trained or analysed, and nothing in a pipe.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use leo_stability::By;
use leo_train::{DataSet, Job, Outcome, Progress, Training};

use crate::console::Console;

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
        let style = ProgressStyle::with_template("{wide_bar} {percent:>3}%, {eta} left\n{wide_msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
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

    fn done(&self, _job: &Job, _outcome: &Outcome) {
        self.done.fetch_add(1, Ordering::Relaxed);
    }
}

/// How many networks are compressed.
pub struct CompressionBar {
    bar: ProgressBar,
}

impl CompressionBar {
    pub fn new(console: &Console) -> Self {
        Self { bar: patient_bar(console, "compressing {wide_bar} {pos}/{len}, {eta} left") }
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

/// A step of unknown length, named on the terminal if it takes more than a moment. The name goes when this does.
pub struct Phase {
    bar: ProgressBar,
}

impl Console {
    /// Says what is being done, until what this returns is dropped.
    pub fn phase(&self, what: &'static str) -> Phase {
        let bar = patient_bar(self, "{spinner} {wide_msg} {elapsed}");
        bar.set_message(what);
        Phase { bar }
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// How long a bar waits before it appears.
const PATIENCE: Duration = Duration::from_millis(500);

/// A bar that waits a moment: what is through before anybody could read it needs none.
fn patient_bar(console: &Console, template: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
    let style = ProgressStyle::with_template(template);
    bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
    if !console.is_watched() {
        return bar;
    }
    let shown = bar.clone();
    thread::spawn(move || {
        thread::sleep(PATIENCE);
        if !shown.is_finished() {
            shown.set_draw_target(ProgressDrawTarget::stderr());
            shown.enable_steady_tick(Duration::from_millis(200));
        }
    });
    bar
}

/// How far the step that an analysis is at has come.
pub struct AnalysisBar {
    bar: ProgressBar,
}

impl AnalysisBar {
    pub fn new(console: &Console) -> Self {
        Self { bar: patient_bar(console, "{msg} {wide_bar} {pos}/{len}, {elapsed}") }
    }

    /// Takes the bar from the terminal.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl leo_stability::Progress for AnalysisBar {
    fn begins(&self, layer: usize, layers: usize, step: By, units: usize) {
        let step = match step {
            By::Interval => "intervals",
            By::Linear => "linear bounds",
            By::Slopes => "better slopes",
            By::Lp => "linear programs",
            By::Split => "case distinctions",
            By::Milp => "mixed-integer programs",
            By::Witness => "looking for inputs",
        };
        self.bar.set_message(format!("layer {layer} of {layers}, {step}:"));
        self.bar.set_length(units as u64);
        self.bar.set_position(0);
    }

    fn one_done(&self) {
        self.bar.inc(1);
    }
}
