//! `leo analyze`

use std::io::{Write, stdout};
use std::time::Instant;

use anyhow::{Context, Result};
use comfy_table::CellAlignment::{Left, Right};
use leo_network::{Domain, Model};
use leo_stability::{By, Layer, Options, Status, Unit, analyze};
use serde::Serialize;

use crate::args::Analyze;
use crate::domain::{self, Bounds};
use crate::output::{Undecided, counted, one_line, table};
use crate::samples;

/// What was found out. Also the shape of the JSON: fields may join, these stay.
#[derive(Serialize)]
struct Report {
    version: u32,
    model: String,
    domain: Bounds,
    seconds: f64,
    engine: &'static str,
    layers: Vec<LayerReport>,
    totals: Totals,
}

#[derive(Serialize)]
struct LayerReport {
    name: String,
    width: usize,
    seconds: f64,
    units: Vec<UnitReport>,
    #[serde(skip)]
    totals: Totals,
}

#[derive(Serialize)]
struct UnitReport {
    status: &'static str,
    lower: f64,
    upper: f64,
    by: Option<&'static str>,
}

/// How many units there are of each kind, and what decided how many.
#[derive(Default, Serialize)]
struct Totals {
    units: usize,
    inactive: usize,
    active: usize,
    unstable: usize,
    undecided: usize,
    by_interval: usize,
    by_linear: usize,
    by_slopes: usize,
    by_split: usize,
    by_witness: usize,
}

pub fn run(arguments: &Analyze) -> Result<()> {
    let start = Instant::now();
    let model = Model::load(&arguments.model)?;
    let domain = domain::load(&arguments.domain, &model)?;
    let domain = domain.context("give the inputs that matter: --domain LO,HI, or see --help for other ways")?;
    let samples = match &arguments.domain.data {
        Some(path) => samples::load(path, arguments.domain.divide, &model)?.to_vec(),
        None => Vec::new(),
    };
    let layers = analyze(model.network(), &domain, &Options { seed: arguments.seed, samples })?;
    let mut report = Report::new(arguments.model.display().to_string(), &model, &domain, &layers);
    report.seconds = start.elapsed().as_secs_f64();
    let mut out = stdout().lock();
    if arguments.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&report)?)?;
    } else {
        report.print(&mut out)?;
    }
    match report.totals.undecided {
        0 => Ok(()),
        undecided => Err(Undecided(undecided).into()),
    }
}

impl Report {
    fn new(file: String, model: &Model, domain: &Domain, layers: &[Layer]) -> Self {
        let layer = |layer: &Layer| LayerReport {
            name: model.network().nodes()[layer.node].name().to_owned(),
            width: layer.units.len(),
            seconds: layer.time.as_secs_f64(),
            units: layer.units.iter().map(UnitReport::new).collect(),
            totals: Totals::of(&layer.units),
        };
        let all: Vec<Unit> = layers.iter().flat_map(|layer| layer.units.iter().copied()).collect();
        Self {
            version: 1,
            model: file,
            domain: Bounds::new(domain),
            seconds: 0.0,
            engine: "bounds",
            layers: layers.iter().map(layer).collect(),
            totals: Totals::of(&all),
        }
    }

    fn print(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "{}: domain {}", one_line(&self.model), self.domain)?;
        let mut table = table(&[
            ("layer", Left),
            ("units", Right),
            ("inactive", Right),
            ("active", Right),
            ("unstable", Right),
            ("undecided", Right),
            ("ms", Right),
        ]);
        for layer in &self.layers {
            let Totals { units, inactive, active, unstable, undecided, .. } = layer.totals;
            let numbers = [units, inactive, active, unstable, undecided].map(|number| number.to_string());
            let time = format!("{:.1}", 1e3 * layer.seconds);
            table.add_row([one_line(&layer.name)].into_iter().chain(numbers).chain([time]));
        }
        if !self.layers.is_empty() {
            writeln!(out, "{table}")?;
        }
        let Totals { units, inactive, active, by_interval, by_linear, by_slopes, by_split, by_witness, .. } =
            self.totals;
        let stable = 100.0 * (inactive + active) as f64 / units.max(1) as f64;
        writeln!(
            out,
            "{}: {stable:.1}% stable; decided by intervals {by_interval}, linear bounds {by_linear}, better slopes {by_slopes}, splits {by_split}, witnesses {by_witness}; {:.1} ms",
            counted(units, "unit"),
            1e3 * self.seconds
        )?;
        Ok(())
    }
}

impl UnitReport {
    fn new(unit: &Unit) -> Self {
        let status = match unit.status {
            Status::Inactive => "inactive",
            Status::Active => "active",
            Status::Unstable => "unstable",
            Status::Undecided => "undecided",
        };
        let by = unit.by.map(|by| match by {
            By::Interval => "interval",
            By::Linear => "linear",
            By::Slopes => "slopes",
            By::Split => "split",
            By::Witness => "witness",
        });
        Self { status, lower: unit.lower, upper: unit.upper, by }
    }
}

impl Totals {
    fn of(units: &[Unit]) -> Self {
        let status = |status| units.iter().filter(|unit| unit.status == status).count();
        let by = |by| units.iter().filter(|unit| unit.by == Some(by)).count();
        Self {
            units: units.len(),
            inactive: status(Status::Inactive),
            active: status(Status::Active),
            unstable: status(Status::Unstable),
            undecided: status(Status::Undecided),
            by_interval: by(By::Interval),
            by_linear: by(By::Linear),
            by_slopes: by(By::Slopes),
            by_split: by(By::Split),
            by_witness: by(By::Witness),
        }
    }
}
