//! `leo train`

use std::fs::create_dir_all;
use std::io::Write;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use comfy_table::CellAlignment::{Left, Right};
use leo_train::{End, Existing, Job, Recipe, TrainingOutcome};
use serde::Serialize;

use crate::args::Train;
use crate::request::session;
use crate::terminal::console::Console;
use crate::terminal::interrupt::Interrupted;
use crate::terminal::output::{listed, one_line};

/// What came of it. Also the shape of the JSON: fields may join, these stay.
#[derive(Serialize)]
struct Report {
    version: u32,
    networks: Vec<TrainedNetwork>,
    seconds: f64,
}

#[derive(Serialize)]
struct TrainedNetwork {
    file: String,
    recipe: Recipe,
    /// `done`, `stopped` or `diverged`.
    end: &'static str,
    /// Only if it is done: loss, train_accuracy and test_accuracy, which are shares.
    outcome: Option<TrainingOutcome>,
    /// Only if it diverged: in which epoch.
    diverged: Option<u32>,
}

impl TrainedNetwork {
    fn new(job: &Job, end: End) -> Self {
        let (end, outcome, diverged) = match end {
            End::Done(outcome) => ("done", Some(outcome), None),
            End::Stopped => ("stopped", None, None),
            End::Diverged(epoch) => ("diverged", None, Some(epoch)),
        };
        Self { file: job.path.display().to_string(), recipe: job.recipe.clone(), end, outcome, diverged }
    }
}

pub fn run(arguments: &Train, console: &Console) -> Result<()> {
    let start = Instant::now();
    let jobs = jobs(arguments)?;
    let existing = if arguments.resume { Existing::Continue } else { Existing::Replace };
    let ends = session::run(console, &arguments.session, &jobs, existing, |session| {
        if jobs.iter().all(|job| job.path != arguments.output) {
            create_dir_all(&arguments.output)
                .with_context(|| format!("{}: cannot be made", arguments.output.display()))?;
        }
        Ok(session.train(&jobs)?)
    })?;
    let networks = jobs.iter().zip(ends).map(|(job, end)| TrainedNetwork::new(job, end)).collect();
    let report = Report { version: 1, networks, seconds: start.elapsed().as_secs_f64() };
    if arguments.json { console.json(&report) } else { report.print(console) }?;
    let stopped = report.networks.iter().filter(|network| network.end == "stopped").count();
    if stopped > 0 {
        bail!(Interrupted(format!("{stopped} of {} networks are not done; add --resume to go on", jobs.len())));
    }
    let diverged = |network: &TrainedNetwork| Some(format!("{} in epoch {}", network.file, network.diverged?));
    let diverged: Vec<String> = report.networks.iter().filter_map(diverged).collect();
    ensure!(diverged.is_empty(), "{}: the training diverged; try a smaller learning rate", listed(diverged));
    Ok(())
}

impl Report {
    fn print(&self, console: &Console) -> Result<()> {
        let columns = [("network", Left), ("loss", Right), ("train %", Right), ("test %", Right)];
        let mut results = console.table(&columns);
        for TrainedNetwork { file, outcome, .. } in &self.networks {
            let Some(TrainingOutcome { loss, train_accuracy, test_accuracy }) = outcome else { continue };
            let [train, test] = [train_accuracy, test_accuracy].map(|share| format!("{:.2}", 100.0 * share));
            results.add_row([one_line(file), format!("{loss:.4}"), train, test]);
        }
        if !results.is_empty() {
            writeln!(console.report(), "{results}")?;
        }
        Ok(())
    }
}

/// A network for each weight and seed.
fn jobs(arguments: &Train) -> Result<Vec<Job>> {
    let seeds = arguments.seeds.as_ref().map_or_else(|| vec![arguments.seed], |seeds| seeds.0.clone());
    let recipe = |l1, seed| Recipe {
        hidden: arguments.hidden.clone(),
        l1,
        seed,
        epochs: arguments.epochs,
        batch: arguments.batch,
        learning_rate: arguments.learning_rate,
        decay: arguments.decay,
        decay_every: arguments.decay_every,
        momentum: arguments.momentum,
    };
    let mut weights: Vec<f64> = Vec::new();
    for &l1 in &arguments.l1 {
        if !weights.contains(&l1) {
            weights.push(l1);
        }
    }
    let recipes: Vec<Recipe> = weights.iter().flat_map(|&l1| seeds.iter().map(move |&seed| recipe(l1, seed))).collect();
    let output = &arguments.output;
    let is_file = output.extension().is_some_and(|suffix| suffix == "onnx") && !output.is_dir();
    let several = recipes.len() > 1 || arguments.seeds.is_some();
    ensure!(!(several && is_file), "{}: several networks need a folder, not a file", output.display());
    ensure!(
        several || is_file || output.is_dir(),
        "{}: should end in .onnx, or be a folder that is there",
        output.display()
    );
    let path = |recipe: &Recipe| if is_file { output.clone() } else { output.join(recipe.file_name()) };
    Ok(recipes.into_iter().map(|recipe| Job { path: path(&recipe), recipe }).collect())
}
