//! `leo analyze`

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use leo_formats::Model;
use leo_network::Domain;
use leo_stability::{Analysis, AnalysisOptions, HAS_SOLVER, StopReason, analyze};
use serde::Serialize;

use crate::args::{Analyze, EngineName};
use crate::report::Page;
use crate::report::stability::{self, LayerReport, Totals};
use crate::request::domain::DomainSummary;
use crate::request::files;
use crate::request::inputs::{self, Inputs};
use crate::request::resume::Resume;
use crate::request::samples::SampleCount;
use crate::request::search;
use crate::terminal::console::Console;
use crate::terminal::interrupt::{self, Interrupted};
use crate::terminal::output::{Negative, counted, listed, one_line};
use crate::terminal::progress::AnalysisBar;

/// What was found out. Also the shape of the JSON: fields may join, these stay.
#[derive(Serialize)]
struct Report {
    version: u32,
    model: String,
    domain: DomainSummary,
    seconds: f64,
    engine: &'static str,
    /// With --data, what the samples were good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<SampleCount>,
    /// Why it stopped before it was through, if it did.
    stopped: Option<&'static str>,
    layers: Vec<LayerReport>,
    totals: Totals,
    /// How many seconds each step took that can take long.
    steps: BTreeMap<&'static str, f64>,
}

pub fn run(arguments: &Analyze, console: &Console) -> Result<()> {
    let start = Instant::now();
    let asks_solver = arguments.search.engine != EngineName::Bounds;
    ensure!(asks_solver || !arguments.trust_solver, "--trust-solver: with --engine bounds there is no solver to trust");
    ensure!(HAS_SOLVER || !arguments.trust_solver, "--trust-solver: {}", search::NO_SOLVER);
    search::check(&arguments.search)?;
    let console = &console.beside(arguments.report.page.as_deref(), arguments.json)?;
    let phase = console.phase("reading");
    let model = Model::load(&arguments.model)?;
    let read = files::read_for(&arguments.model, &model);
    let read: Vec<&Path> = arguments.domain.files().chain(read.iter().map(PathBuf::as_path)).collect();
    if let Some(path) = &arguments.report.page {
        files::ensure_other(path, "--report", read.iter().copied())?;
        files::ensure_free(path, arguments.report.force)?;
    }
    let inputs = inputs::load(&arguments.domain, &[(&model, &arguments.model)])?;
    let Inputs { domain, samples, .. } = &inputs;
    let others = read.into_iter().chain(arguments.report.page.as_deref());
    let resume = Resume::open(arguments.resume.as_deref(), &arguments.model, domain, &arguments.search, others)?;
    drop(phase);
    let reading = start.elapsed().as_secs_f64();
    let bar = AnalysisBar::new(console);
    let options = AnalysisOptions {
        trust_solver: arguments.trust_solver,
        witnesses: arguments.witnesses,
        ..search::options(&arguments.search, start, samples.as_ref(), &bar)
    };
    let options = resume.as_ref().map_or(options, |resume| resume.options(options));
    let analysis = analyze(model.network(), domain, &options).with_context(|| inputs.source.clone())?;
    bar.finish();
    interrupt::unwatch();
    let mut report = Report::new(arguments, &model, domain, &analysis);
    report.samples = inputs.counted;
    report.seconds = start.elapsed().as_secs_f64();
    if let Some(path) = &arguments.report.page {
        let page = report.page(&model, &analysis, reading, console).render();
        files::write(&[files::output(path, page.as_bytes(), arguments.report.force)])?;
        report.seconds = start.elapsed().as_secs_f64();
    }
    if arguments.json { console.json(&report) } else { report.print(console) }?;
    resume.as_ref().map_or(Ok(()), Resume::finish)?;
    let undecided = report.totals.undecided;
    match (analysis.stopped, report.stopped) {
        (Some(StopReason::Interrupted), _) => {
            Err(Interrupted(format!("{} undecided", counted(undecided, "unit"))).into())
        }
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
        Self {
            version: 1,
            model: arguments.model.display().to_string(),
            domain: DomainSummary::new(domain),
            seconds: 0.0,
            engine: search::name_of(arguments.search.engine),
            samples: None,
            stopped: analysis.stopped.map(search::reason),
            layers: analysis.layers.iter().map(|layer| LayerReport::new(model.network(), layer)).collect(),
            totals: Totals::of(analysis.layers.iter().flat_map(|layer| &layer.units)),
            steps: analysis.steps.iter().map(|(&step, time)| (step.name, time.as_secs_f64())).collect(),
        }
    }

    /// The page that tells the same.
    fn page<'a>(&self, model: &'a Model, analysis: &'a Analysis<'_>, reading: f64, console: &Console) -> Page<'a> {
        let stopped = self.stopped.map(|stopped| format!("stopped before it was through: {stopped}"));
        Page {
            model: self.model.clone(),
            command: console.command().to_owned(),
            domain: self.domain.to_string(),
            network: model.network(),
            layers: &analysis.layers,
            outcome: None,
            warnings: self.warnings().into_iter().chain(stopped).collect(),
            notes: Vec::new(),
            steps: vec![("reading", reading), ("finding stable units", self.seconds - reading)],
            seconds: self.seconds,
        }
    }

    fn print(&self, console: &Console) -> Result<()> {
        let out = &mut console.report();
        writeln!(out, "{}: domain {}", one_line(&self.model), self.domain)?;
        if self.layers.is_empty() {
            writeln!(out, "the network has no ReLU units")?;
            return Ok(());
        }
        stability::print(&self.layers, &self.totals, self.seconds, console)?;
        let Totals { units, inactive, active, .. } = self.totals;
        let stable = 100.0 * (inactive + active) as f64 / units.max(1) as f64;
        write!(out, "{stable:.1}% of {} stable", counted(units, "unit"))?;
        if active > 0 {
            let by_layer = listed(self.layers.iter().map(|layer| layer.totals.active));
            write!(out, "; stably active units, layer by layer: {by_layer}")?;
        }
        writeln!(out)?;
        for warning in self.warnings() {
            console.warn(warning)?;
        }
        Ok(())
    }

    /// What one should not miss.
    fn warnings(&self) -> Vec<String> {
        let outside = self.samples.filter(|samples| samples.outside > 0).map(|samples| samples.to_string());
        let trusted = (self.totals.trusted > 0).then(|| {
            let verdicts = counted(self.totals.trusted, "verdict");
            format!("{verdicts} not proved: the solver says so, to its tolerances, and can be wrong (--trust-solver)")
        });
        outside.into_iter().chain(trusted).collect()
    }
}
