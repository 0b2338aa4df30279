//! `leo train`

use std::fs::create_dir_all;
use std::io::Write;

use anyhow::{Context, Result, bail, ensure};
use comfy_table::CellAlignment;
use leo_train::{End, Existing, Job, Outcome, Recipe};

use crate::args::Train;
use crate::console::Console;
use crate::interrupt::Interrupted;
use crate::output::listed;
use crate::session;

pub fn run(arguments: &Train, console: &Console) -> Result<()> {
    let jobs = jobs(arguments)?;
    let existing = if arguments.resume { Existing::Continue } else { Existing::Replace };
    let ends = session::run(console, &arguments.session, &jobs, existing, |session| {
        if jobs.iter().all(|job| job.path != arguments.output) {
            create_dir_all(&arguments.output)
                .with_context(|| format!("{}: cannot be made", arguments.output.display()))?;
        }
        Ok(session.train(&jobs)?)
    })?;
    let mut results = console.table(&[
        ("network", CellAlignment::Left),
        ("loss", CellAlignment::Right),
        ("train %", CellAlignment::Right),
        ("test %", CellAlignment::Right),
    ]);
    let (mut stopped, mut diverged) = (0, Vec::new());
    for (Job { path, .. }, end) in jobs.iter().zip(ends) {
        match end {
            End::Done(Outcome { loss, train_accuracy, test_accuracy }) => {
                let percent = |share: f64| format!("{:.2}", 100.0 * share);
                let (train, test) = (percent(train_accuracy), percent(test_accuracy));
                results.add_row([path.display().to_string(), format!("{loss:.4}"), train, test]);
            }
            End::Stopped => stopped += 1,
            End::Diverged(epoch) => diverged.push(format!("{} in epoch {epoch}", path.display())),
        }
    }
    if !results.is_empty() {
        writeln!(console.report(), "{results}")?;
    }
    if stopped > 0 {
        bail!(Interrupted(format!("{stopped} of {} networks are not done; add --resume to go on", jobs.len())));
    }
    ensure!(diverged.is_empty(), "{}: the training diverged; try a smaller learning rate", listed(diverged));
    Ok(())
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
