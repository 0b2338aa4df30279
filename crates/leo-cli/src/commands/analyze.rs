//! `leo analyze`

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use comfy_table::CellAlignment::{Left, Right};
use leo_network::{Domain, Model};
use leo_stability::{Analysis, By, HAS_SOLVER, Layer, Options, Status, Stopped, Unit, analyze};
use serde::Serialize;

use crate::args::{Analyze, EngineName};
use crate::console::Console;
use crate::domain::{self, Bounds};
use crate::interrupt::Interrupted;
use crate::output::{Negative, counted, listed, one_line};
use crate::progress::AnalysisBar;
use crate::samples::{self, Samples};
use crate::search;

/// What was found out. Also the shape of the JSON: fields may join, these stay.
#[derive(Serialize)]
struct Report {
    version: u32,
    model: String,
    domain: Bounds,
    seconds: f64,
    engine: &'static str,
    /// With --data, what the samples were good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<Samples>,
    /// Why it stopped before it was through, if it did.
    stopped: Option<&'static str>,
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
    /// Only if this is what the solver says, and nothing confirms it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    trusted: bool,
    /// Only on request, and for unstable units.
    #[serde(skip_serializing_if = "Option::is_none")]
    witnesses: Option<WitnessReport>,
}

/// Inputs where a unit is off, and where it is on.
#[derive(Serialize)]
struct WitnessReport {
    off: Vec<f64>,
    on: Vec<f64>,
}

/// How many units there are of each kind, and what decided how many.
#[derive(Serialize)]
struct Totals {
    units: usize,
    inactive: usize,
    active: usize,
    unstable: usize,
    undecided: usize,
    /// How many of these verdicts are only what the solver says.
    trusted: usize,
    by: BTreeMap<&'static str, usize>,
}

pub fn run(arguments: &Analyze, console: &Console) -> Result<()> {
    let start = Instant::now();
    let asks_solver = arguments.search.engine != EngineName::Bounds;
    ensure!(asks_solver || !arguments.trust_solver, "--trust-solver: with --engine bounds there is no solver to trust");
    ensure!(HAS_SOLVER || !arguments.trust_solver, "--trust-solver: {}", search::NO_SOLVER);
    search::check(&arguments.search)?;
    let model = Model::load(&arguments.model)?;
    let domain = domain::load(&arguments.domain, &model)?;
    let domain = domain.context("give the inputs that matter: --domain LO,HI, or see --help for other ways")?;
    let data = arguments.domain.data.as_deref();
    let samples = data.map(|path| samples::load(path, arguments.domain.divide, &model)).transpose()?;
    let outside = samples.as_ref().map(|samples| samples::count_outside(samples, &domain)).transpose();
    let outside = outside.with_context(|| data.unwrap_or(&arguments.model).display().to_string())?;
    let bar = AnalysisBar::new(console);
    let options = Options {
        trust_solver: arguments.trust_solver,
        witnesses: arguments.witnesses,
        ..search::options(&arguments.search, start, samples.as_ref(), &bar)?
    };
    let analysis = analyze(model.network(), &domain, &options)
        .with_context(|| data.unwrap_or(&arguments.model).display().to_string())?;
    bar.finish();
    let mut report = Report::new(arguments, &model, &domain, &analysis);
    report.samples = outside;
    report.seconds = start.elapsed().as_secs_f64();
    if arguments.json { console.json(&report) } else { report.print(console) }?;
    let undecided = report.totals.undecided;
    match (analysis.stopped, report.stopped) {
        (Some(Stopped::Interrupted), _) => Err(Interrupted(format!("{} undecided", counted(undecided, "unit"))).into()),
        _ if undecided == 0 => Ok(()),
        (_, stopped) => {
            let why = match stopped {
                Some(stopped) => format!(", stopped by the {stopped}"),
                None => "; a larger --node-limit may help".to_owned(),
            };
            Err(Negative(format!("{} undecided{why}", counted(undecided, "unit"))).into())
        }
    }
}

impl Report {
    fn new(arguments: &Analyze, model: &Model, domain: &Domain, analysis: &Analysis<'_>) -> Self {
        let layer = |layer: &Layer| LayerReport {
            name: model.network().nodes()[layer.node].name().to_owned(),
            width: layer.units.len(),
            seconds: layer.time.as_secs_f64(),
            units: layer.units.iter().map(UnitReport::new).collect(),
            totals: Totals::of(layer.units.iter()),
        };
        Self {
            version: 1,
            model: arguments.model.display().to_string(),
            domain: Bounds::new(domain),
            seconds: 0.0,
            engine: search::name_of(arguments.search.engine),
            samples: None,
            stopped: analysis.stopped.map(search::reason),
            layers: analysis.layers.iter().map(layer).collect(),
            totals: Totals::of(analysis.layers.iter().flat_map(|layer| &layer.units)),
        }
    }

    fn print(&self, console: &Console) -> Result<()> {
        let out = &mut console.report();
        writeln!(out, "{}: domain {}", one_line(&self.model), self.domain)?;
        if let Some(samples) = self.samples.filter(|samples| samples.outside > 0) {
            writeln!(out, "{samples}")?;
        }
        if self.layers.is_empty() {
            writeln!(out, "the network has no ReLU units")?;
            return Ok(());
        }
        let all = ("all", &self.totals, self.seconds);
        let rows = || {
            let layers = self.layers.iter().map(|layer| (layer.name.as_str(), &layer.totals, layer.seconds));
            layers.chain([all])
        };
        let mut kinds = console.table(&[
            ("layer", Left),
            ("units", Right),
            ("inactive", Right),
            ("active", Right),
            ("unstable", Right),
            ("undecided", Right),
            ("ms", Right),
        ]);
        for (name, totals, seconds) in rows() {
            let Totals { units, inactive, active, unstable, undecided, .. } = *totals;
            let numbers = [units, inactive, active, unstable, undecided].map(|number| number.to_string());
            kinds.add_row([one_line(name)].into_iter().chain(numbers).chain([format!("{:.1}", 1e3 * seconds)]));
        }
        writeln!(out, "{kinds}")?;
        let used: Vec<&str> =
            By::ALL.into_iter().map(name_of).filter(|name| self.totals.by.contains_key(name)).collect();
        if !used.is_empty() {
            let columns: Vec<_> =
                [("decided by", Left)].into_iter().chain(used.iter().map(|&name| (name, Right))).collect();
            let mut steps = console.table(&columns);
            for (name, totals, _) in rows() {
                let counts = used.iter().map(|step| totals.by.get(step).unwrap_or(&0).to_string());
                steps.add_row([one_line(name)].into_iter().chain(counts));
            }
            writeln!(out, "\n{steps}\n")?;
        }
        let Totals { units, inactive, active, trusted, .. } = self.totals;
        let stable = 100.0 * (inactive + active) as f64 / units.max(1) as f64;
        write!(out, "{stable:.1}% of {} stable", counted(units, "unit"))?;
        if active > 0 {
            let by_layer = listed(self.layers.iter().map(|layer| layer.totals.active));
            write!(out, "; stably active units, layer by layer: {by_layer}")?;
        }
        writeln!(out)?;
        if trusted > 0 {
            writeln!(
                out,
                "{} not proved: the solver says so, to its tolerances, and can be wrong (--trust-solver)",
                counted(trusted, "verdict")
            )?;
        }
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
        let witnesses = unit.witnesses.clone().map(|[off, on]| WitnessReport { off, on });
        let (by, trusted) = (unit.by.map(name_of), unit.trusted);
        Self { status, lower: unit.lower, upper: unit.upper, by, trusted, witnesses }
    }
}

fn name_of(by: By) -> &'static str {
    match by {
        By::Interval => "interval",
        By::Linear => "linear",
        By::Slopes => "slopes",
        By::Lp => "lp",
        By::Split => "split",
        By::Milp => "milp",
        By::Witness => "witness",
    }
}

impl Totals {
    fn of<'a>(units: impl Iterator<Item = &'a Unit>) -> Self {
        let mut totals =
            Self { units: 0, inactive: 0, active: 0, unstable: 0, undecided: 0, trusted: 0, by: BTreeMap::new() };
        for unit in units {
            totals.units += 1;
            *match unit.status {
                Status::Inactive => &mut totals.inactive,
                Status::Active => &mut totals.active,
                Status::Unstable => &mut totals.unstable,
                Status::Undecided => &mut totals.undecided,
            } += 1;
            totals.trusted += usize::from(unit.trusted);
            if let Some(by) = unit.by {
                *totals.by.entry(name_of(by)).or_default() += 1;
            }
        }
        totals
    }
}
