//! `leo reproduce`

use std::fs::canonicalize;
use std::io::Write;

use anyhow::{Result, bail, ensure};
use comfy_table::CellAlignment;
use leo_train::reproduce::{Experiment, Measure, PAPER, Way};
use leo_train::{Existing, Recipe};

use crate::args::Reproduce;
use crate::console::Console;
use crate::interrupt::Interrupted;
use crate::output::listed;
use crate::progress::CompressionBar;
use crate::seeds::MOST;
use crate::session;

pub fn run(arguments: &Reproduce, console: &Console) -> Result<()> {
    for width in &arguments.widths {
        ensure!(paper_widths().contains(width), "--widths {width}: the paper's are {}", listed(paper_widths()));
    }
    let networks = arguments.networks;
    ensure!((1..=MOST).contains(&networks), "--networks {networks}: should be from 1 to {MOST}");
    let data = data_name(&arguments.session.data);
    let experiment = Experiment {
        networks,
        settings: PAPER.into_iter().filter(|line| arguments.widths.contains(&line.setting.width)).collect(),
        epochs: arguments.epochs,
        command: command(arguments, &data),
        data,
    };
    let jobs = experiment.jobs(&arguments.out);
    let tables = session::run(console, &arguments.session, &jobs, Existing::Continue, |session| {
        let bar = CompressionBar::new(console);
        let tables = experiment.run(&arguments.out, session, |done, all| bar.set(done, all));
        bar.finish();
        Ok(tables?)
    })?;
    let columns = ["width", "l1", "accuracy %", "paper", "stable %", "paper", "LEO %", "paper", "full %"];
    let mut lines = console.table(&columns.map(|title| (title, CellAlignment::Right)));
    for line in &tables.lines {
        let ours = |measure: Measure, way: Way, decimals: usize| {
            line.ours(measure, way).map_or_else(|| "-".to_owned(), |ours| format!("{:.decimals$}", ours.mean))
        };
        let paper = |measure: Measure, decimals: usize| format!("{:.decimals$}", line.paper.get(measure).mean);
        lines.add_row([
            line.setting().width.to_string(),
            line.setting().l1.to_string(),
            ours(Measure::Accuracy, Way::Leo, 2),
            paper(Measure::Accuracy, 2),
            ours(Measure::Stability, Way::Leo, 1),
            paper(Measure::Stability, 1),
            ours(Measure::Compression, Way::Leo, 1),
            paper(Measure::Compression, 1),
            ours(Measure::Compression, Way::Full, 1),
        ]);
    }
    let (done, folder) = (tables.networks.len(), arguments.out.display());
    let out = &mut console.report();
    writeln!(out, "{lines}\nLEO and full: units removed, as in the paper and by the normal form")?;
    writeln!(out, "{done} of {} networks; tables and picture in {folder}", jobs.len())?;
    if done < jobs.len() {
        bail!(Interrupted("the same command goes on".to_owned()));
    }
    Ok(())
}

/// The shortest command that does the same, wherever it is run.
fn command(arguments: &Reproduce, data: &str) -> String {
    let mut command = format!("leo reproduce --networks {}", arguments.networks);
    if data != "mnist" {
        command += &format!(" --data {data}");
    }
    if arguments.widths != paper_widths() {
        command += &format!(" --widths {}", listed(&arguments.widths).replace(", ", ","));
    }
    if arguments.epochs != Recipe::default().epochs {
        command += &format!(" --epochs {}", arguments.epochs);
    }
    command
}

/// Each width of the paper's networks once.
fn paper_widths() -> Vec<usize> {
    let mut widths: Vec<usize> = PAPER.iter().map(|line| line.setting.width).collect();
    widths.dedup();
    widths
}

/// What to call a data set, without the way to it.
fn data_name(data: &str) -> String {
    let path = canonicalize(data).unwrap_or_else(|_| data.into());
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
