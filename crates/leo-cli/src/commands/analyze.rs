//! `leo analyze`

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use leo::{BoundsFormat, Engine, HAS_SOLVER, ModelFile, StabilityReport, StagesReport, Totals};

use crate::args::{Analyze, EngineName};
use crate::report::{Page, stability};
use crate::request::{domain, files, inputs, model, search};
use crate::terminal::console::Console;
use crate::terminal::interrupt::Interrupted;
use crate::terminal::output::{Negative, counted, listed, one_line};
use crate::terminal::progress::Watcher;

pub fn run(arguments: &Analyze, console: &Console) -> Result<()> {
    let start = Instant::now();
    check_request(arguments)?;
    search::check(&arguments.search)?;
    let written = || arguments.outputs.iter().chain(&arguments.report.page).map(PathBuf::as_path);
    let console = &console.beside(written(), arguments.json)?;
    let phase = console.phase("reading");
    let file = model::open(&arguments.model, &arguments.shape)?;
    let read = file.files();
    let read: Vec<&Path> = arguments.domain.files().chain(read.iter().map(PathBuf::as_path)).collect();
    let formats = check_files(arguments, &read)?;
    search::check_resume(arguments.resume.as_deref(), &arguments.search, read.into_iter().chain(written()))?;
    let mut inputs = inputs::load(&arguments.domain, &[&file])?;
    let watcher = Arc::new(Watcher::listening(console));
    let mut options = search::options(&arguments.search, start, &mut inputs, &watcher)
        .trust_solver(arguments.trust_solver)
        .witnesses(arguments.witnesses)
        .resume(arguments.resume.clone());
    if arguments.bounds_only {
        options = options.engine(Engine::Tighten);
    }
    drop(phase);
    let reading = start.elapsed().as_secs_f64();
    let analyzed = file.analyze_with(&inputs.domain, &options);
    watcher.finish();
    let mut report = analyzed.map_err(|error| inputs.explain(error))?;
    report.seconds = start.elapsed().as_secs_f64();
    let page = arguments.report.page.is_some().then(|| Summary(&report).page(&file, reading, console).render());
    write(arguments, &report, &formats, page)?;
    report.seconds = start.elapsed().as_secs_f64();
    if arguments.json { console.json_by_line(&report) } else { Summary(&report).print(console) }?;
    verdict(arguments, &report)
}

/// Whether what is asked for makes sense together.
fn check_request(arguments: &Analyze) -> Result<()> {
    let Analyze { search, trust_solver, bounds_only, .. } = arguments;
    let asks_solver = search.engine != EngineName::Bounds;
    ensure!(asks_solver || !trust_solver, "--trust-solver: with --engine bounds there is no solver to trust");
    ensure!(HAS_SOLVER || !trust_solver, "--trust-solver: {}", search::NO_SOLVER);
    let searches = [
        ("--engine milp", search.engine == EngineName::Milp),
        ("--trust-solver", *trust_solver),
        ("--witnesses", arguments.witnesses),
        ("--node-limit", search.node_limit.is_some()),
        ("--resume", arguments.resume.is_some()),
    ];
    for (flag, is_given) in searches {
        ensure!(
            !(*bounds_only && is_given),
            "{flag}: not with --bounds-only, which proves bounds and searches nothing"
        );
    }
    Ok(())
}

/// Sees to it that nothing is lost by what is to be written: in which formats.
fn check_files(arguments: &Analyze, read: &[&Path]) -> Result<Vec<BoundsFormat>> {
    let outputs = arguments.outputs.iter().map(|path| ("--output", path.as_path()));
    let pages = arguments.report.page.iter().map(|path| ("--report", path.as_path()));
    let mut taken = read.to_vec();
    for (flag, path) in outputs.chain(pages) {
        files::ensure_other(path, flag, taken.iter().copied())?;
        files::ensure_free(path, arguments.report.force)?;
        taken.push(path);
    }
    arguments.outputs.iter().map(|path| Ok(BoundsFormat::of(path)?)).collect()
}

/// The answer, as exit codes have it.
fn verdict(arguments: &Analyze, report: &StabilityReport) -> Result<()> {
    let noun = if report.has_channels { "channel" } else { "unit" };
    let undecided = counted(report.totals.undecided, noun);
    match (report.is_interrupted, report.stopped) {
        (true, _) => Err(Interrupted(format!("{undecided} undecided")).into()),
        _ if report.totals.undecided == 0 || arguments.bounds_only => Ok(()),
        (_, stopped) => {
            let why = match stopped {
                Some(stopped) => format!(", stopped by the {stopped}"),
                None if report.has_channels => {
                    "; of convolutions, intervals, points and linear bounds are all that is tried".to_owned()
                }
                None => "; a larger --node-limit may help".to_owned(),
            };
            Err(Negative(format!("{undecided} undecided{why}")).into())
        }
    }
}

/// Writes the files that are asked for.
fn write(arguments: &Analyze, report: &StabilityReport, formats: &[BoundsFormat], page: Option<String>) -> Result<()> {
    let tables = formats.iter().map(|format| format.encode(report)).collect::<Result<Vec<Vec<u8>>, leo::Error>>()?;
    let contents = tables.into_iter().chain(page.map(String::into_bytes)).collect::<Vec<Vec<u8>>>();
    let paths = arguments.outputs.iter().chain(&arguments.report.page);
    let file = |(path, bytes)| files::output(path, bytes, arguments.report.force);
    files::write(&paths.map(PathBuf::as_path).zip(contents.iter().map(Vec::as_slice)).map(file).collect::<Vec<_>>())
}

/// A report, in words.
struct Summary<'a>(&'a StabilityReport);

impl<'a> Summary<'a> {
    /// The page that tells the same.
    fn page(&self, model: &'a ModelFile, reading: f64, console: &Console) -> Page<'a> {
        let stopped = self.0.stopped.map(|stopped| format!("stopped before it was through: {stopped}"));
        Page {
            model: self.0.model.clone(),
            command: console.command().to_owned(),
            domain: domain::in_words(&self.0.domain),
            network: model.network(),
            layers: &self.0.verdicts,
            stages: StagesReport::new(model.network(), model.network(), model.model().float()),
            outputs: &self.0.outputs,
            outcome: None,
            warnings: self.warnings().into_iter().chain(stopped).collect(),
            notes: self.notes(),
            steps: vec![("reading", reading), ("finding stable units", self.0.seconds - reading)],
            seconds: self.0.seconds,
        }
    }

    fn print(&self, console: &Console) -> Result<()> {
        let out = &mut console.report();
        writeln!(out, "{}: domain {}", one_line(&self.0.model), domain::in_words(&self.0.domain))?;
        if !self.0.layers.is_empty() {
            stability::print(&self.0.layers, &self.0.totals, self.0.seconds, console)?;
        }
        stability::print_outputs(&self.0.outputs, console)?;
        if self.0.layers.is_empty() {
            writeln!(out, "the network has no ReLU units")?;
            return Ok(());
        }
        let Totals { units, inactive, active, .. } = self.0.totals;
        let noun = if self.0.has_channels { "channel" } else { "unit" };
        let stable = 100.0 * (inactive + active) as f64 / units.max(1) as f64;
        write!(out, "{stable:.1}% of {} stable", counted(units, noun))?;
        if active > 0 {
            let by_layer = listed(self.0.layers.iter().map(|layer| layer.totals.active));
            write!(out, "; stably active {noun}s, layer by layer: {by_layer}")?;
        }
        writeln!(out)?;
        for note in self.notes() {
            writeln!(out, "{note}")?;
        }
        for warning in self.warnings() {
            console.warn(warning)?;
        }
        Ok(())
    }

    /// What else there is to know.
    fn notes(&self) -> Vec<String> {
        model::listed_constants(&self.0.model, self.0.listed_constants).into_iter().collect()
    }

    /// What one should not miss.
    fn warnings(&self) -> Vec<String> {
        let outside = inputs::outside(self.0.samples);
        let trusted = (self.0.totals.trusted > 0).then(|| {
            let verdicts = counted(self.0.totals.trusted, "verdict");
            format!("{verdicts} not proved: the solver says so, to its tolerances, and can be wrong (--trust-solver)")
        });
        outside.into_iter().chain(trusted).collect()
    }
}
