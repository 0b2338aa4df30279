//! `leo reproduce`

use std::fs::canonicalize;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use comfy_table::CellAlignment;
use leo_train::reproduce::{self, Estimate, Experiment, Measure, PAPER, Way};
use leo_train::{Existing, Recipe};
use serde::Serialize;

use crate::args::Reproduce;
use crate::request::seeds::MOST_SEEDS;
use crate::request::session;
use crate::terminal::console::Console;
use crate::terminal::interrupt::Interrupted;
use crate::terminal::output::{listed, one_line};
use crate::terminal::progress::CompressionBar;

/// What came of it. Also the shape of the JSON: fields may join, these stay. The tables in the folder have more.
#[derive(Serialize)]
struct Report {
    version: u32,
    folder: String,
    networks_wanted: usize,
    networks: usize,
    lines: Vec<SettingLine>,
    seconds: f64,
}

/// A setting, with means of percentages and their standard errors.
#[derive(Serialize)]
struct SettingLine {
    width: usize,
    l1: f64,
    accuracy: PaperAndOurs,
    stable: PaperAndOurs,
    removed: PaperAndOurs,
    /// By the normal form, which the paper does not have.
    removed_full: Option<Estimate>,
}

#[derive(Serialize)]
struct PaperAndOurs {
    ours: Option<Estimate>,
    paper: Estimate,
}

impl SettingLine {
    fn new(line: &reproduce::Line) -> Self {
        let pair = |measure| PaperAndOurs { ours: line.ours(measure, Way::Leo), paper: line.paper.get(measure) };
        Self {
            width: line.setting().width,
            l1: line.setting().l1,
            accuracy: pair(Measure::Accuracy),
            stable: pair(Measure::Stability),
            removed: pair(Measure::Compression),
            removed_full: line.ours(Measure::Compression, Way::Full),
        }
    }
}

pub fn run(arguments: &Reproduce, console: &Console) -> Result<()> {
    let start = Instant::now();
    for width in &arguments.widths {
        ensure!(paper_widths().contains(width), "--widths {width}: the paper's are {}", listed(paper_widths()));
    }
    let networks = arguments.networks;
    ensure!((1..=MOST_SEEDS).contains(&networks), "--networks {networks}: should be from 1 to {MOST_SEEDS}");
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
    let report = Report {
        version: 1,
        folder: arguments.out.display().to_string(),
        networks_wanted: jobs.len(),
        networks: tables.networks.len(),
        lines: tables.lines.iter().map(SettingLine::new).collect(),
        seconds: start.elapsed().as_secs_f64(),
    };
    if arguments.json { console.json(&report) } else { report.print(console) }?;
    if report.networks < report.networks_wanted {
        bail!(Interrupted("the same command goes on".to_owned()));
    }
    Ok(())
}

impl Report {
    fn print(&self, console: &Console) -> Result<()> {
        let columns = ["width", "l1", "accuracy %", "paper", "stable %", "paper", "LEO %", "paper", "full %"];
        let mut lines = console.table(&columns.map(|title| (title, CellAlignment::Right)));
        let mean = |estimate: Option<Estimate>, decimals: usize| {
            estimate.map_or_else(|| "-".to_owned(), |estimate| format!("{:.decimals$}", estimate.mean))
        };
        for SettingLine { width, l1, accuracy, stable, removed, removed_full } in &self.lines {
            lines.add_row([
                width.to_string(),
                l1.to_string(),
                mean(accuracy.ours, 2),
                mean(Some(accuracy.paper), 2),
                mean(stable.ours, 1),
                mean(Some(stable.paper), 1),
                mean(removed.ours, 1),
                mean(Some(removed.paper), 1),
                mean(*removed_full, 1),
            ]);
        }
        let (Self { networks, networks_wanted, folder, .. }, out) = (self, &mut console.report());
        writeln!(out, "{lines}\nLEO and full: units removed, as in the paper and by the normal form")?;
        writeln!(out, "{networks} of {networks_wanted} networks; tables and picture in {}", one_line(folder))?;
        Ok(())
    }
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
fn data_name(data: &Path) -> String {
    let path = canonicalize(data).unwrap_or_else(|_| data.into());
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
