//! `leo equiv`

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use leo_check::HashedModel;
use leo_compress::{
    Comparison, EquivError, LargestDifference, SeenDifference, Unmatched, equivalent, has_few_inputs,
    observe_with_deadline, refine_by_pieces,
};
use leo_formats::ArrayFile;
use leo_formats::{Format, Model};
use leo_network::{Array, Network};
use leo_stability::{AnalysisOptions, Engine, StopReason};
use serde::Serialize;

use crate::args::Equiv;
use crate::request::domain::DomainSummary;
use crate::request::files;
use crate::request::inputs::{self, Inputs};
use crate::request::samples::SampleCount;
use crate::request::search;
use crate::terminal::console::{Console, bad, doubtful, good};
use crate::terminal::interrupt::{self, Interrupted};
use crate::terminal::number::{short, upper};
use crate::terminal::output::{Negative, counted, listed, one_line};
use crate::terminal::progress::AnalysisBar;

/// What was found out. Also the shape of the JSON: fields may join, these stay.
#[derive(Serialize)]
struct Report {
    version: u32,
    first: String,
    second: String,
    domain: DomainSummary,
    /// With --data, what the samples were good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<SampleCount>,
    verdict: EquivVerdict,
    /// Proved: no output differs by more, anywhere on the domain, whether the networks are equal or not. The least of all bounds that were found; none
    /// if there is none.
    proved: Option<f64>,
    /// The largest difference seen.
    seen: f64,
    outputs: Vec<ComparedOutput>,
    /// Where outputs are seen to be furthest apart, measured by what is tolerated, if they are anywhere.
    furthest: Option<Furthest>,
    /// Units without a counterpart in the other network.
    unmatched: [Vec<Alone>; 2],
    /// What stopped the search for stable units, if something did.
    stopped: Option<&'static str>,
    seconds: f64,
    steps: EquivSteps,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum EquivVerdict {
    Equal,
    Different,
    Unknown,
}

/// A value that leaves the networks.
#[derive(Serialize)]
struct ComparedOutput {
    name: String,
    tolerance: f64,
    proved: Option<f64>,
    seen: f64,
}

/// A point where the networks differ.
#[derive(Serialize)]
struct Furthest {
    output: String,
    /// Which of its elements, counted from 0.
    element: usize,
    first: f64,
    second: f64,
    input: Vec<f64>,
}

/// Units of a layer that have no counterpart.
#[derive(Serialize)]
struct Alone {
    /// Its name in the file, which may be empty, and its number, as `leo inspect` counts.
    layer: String,
    number: usize,
    units: Vec<usize>,
}

/// Seconds.
#[derive(Serialize)]
struct EquivSteps {
    reading: f64,
    looking: f64,
    proving: f64,
}

/// How far outputs may be apart, relative to the largest number seen in them, if nothing else is said.
const TOLERANCE: f64 = 1e-5;

pub fn run(arguments: &Equiv, console: &Console) -> Result<()> {
    let start = Instant::now();
    search::check(&arguments.search)?;
    let phase = console.phase("reading");
    let files = [HashedModel::load(&arguments.first)?, HashedModel::load(&arguments.second)?];
    let is_one_file = are_same_to_the_byte(&files);
    let models = files.map(|file| file.model);
    let [first, second] = [&models[0], &models[1]];
    let names = [&arguments.first, &arguments.second].map(|path| path.display().to_string());
    if !is_one_file {
        first.check_interface(second).with_context(|| format!("{} and {} cannot be compared", names[0], names[1]))?;
    }
    let inputs = inputs::load(&arguments.domain, &[(first, &arguments.first), (second, &arguments.second)])?;
    if let Some(path) = &arguments.counterexample {
        let read = [files::read_for(&arguments.first, first), files::read_for(&arguments.second, second)].concat();
        let read = read.iter().map(PathBuf::as_path).chain(arguments.domain.files());
        files::ensure_other(path, "--counterexample", read)?;
    }
    drop(phase);
    let reading = start.elapsed();
    let found = if is_one_file || first.network() == second.network() {
        Findings::of_one_network(first, arguments.tolerance)
    } else {
        Equivalence { arguments, models: [first, second], inputs: &inputs, start, console }.run()?
    };
    let is_interrupted = found.stopped == Some(StopReason::Interrupted);
    let report = Report::new(names, &inputs, found, start, reading);
    if arguments.json {
        console.json(&report)?;
    } else {
        report.print(console, arguments.counterexample.as_deref())?;
        if console.is_verbose() && report.verdict == EquivVerdict::Equal {
            report.print_outputs(&mut console.report())?;
        }
    }
    let negative = match report.verdict {
        EquivVerdict::Equal => return Ok(()),
        EquivVerdict::Different => "the networks are different".to_owned(),
        EquivVerdict::Unknown => "neither proved equal nor seen to be different".to_owned(),
    };
    Err(if is_interrupted { Interrupted(negative).into() } else { Negative(negative).into() })
}

/// Whether two files have the same content, and no other file has a part in what they mean.
fn are_same_to_the_byte([first, second]: &[HashedModel; 2]) -> bool {
    let stands_alone = |file: &HashedModel| file.model.external_files().is_empty();
    first.sha256 == second.sha256 && stands_alone(first) && stands_alone(second)
}

/// What was found out of two networks.
struct Findings {
    outputs: Vec<ComparedOutput>,
    furthest: Option<Furthest>,
    unmatched: [Vec<Alone>; 2],
    stopped: Option<StopReason>,
    /// How long it took to look for differences.
    looking: Duration,
}

impl Findings {
    /// Of a network and itself: there is nothing to look for. Nothing is tolerated, unless it is said how much.
    fn of_one_network(model: &Model, tolerance: Option<f64>) -> Self {
        let output = |index: usize| ComparedOutput {
            name: name_of(model, index),
            tolerance: tolerance.unwrap_or(0.0),
            proved: Some(0.0),
            seen: 0.0,
        };
        Self {
            outputs: (0..model.network().outputs().len()).map(output).collect(),
            furthest: None,
            unmatched: [vec![], vec![]],
            stopped: None,
            looking: Duration::ZERO,
        }
    }
}

/// Two networks, and all that it takes to compare them.
struct Equivalence<'a> {
    arguments: &'a Equiv,
    models: [&'a Model; 2],
    inputs: &'a Inputs,
    start: Instant,
    console: &'a Console,
}

impl Equivalence<'_> {
    /// Looks for a difference, then proves how large it can be.
    fn run(&self) -> Result<Findings> {
        let begin = Instant::now();
        let phase = self.console.phase("looking for differences");
        let observed = self.observe()?;
        drop(phase);
        let mut outputs: Vec<ComparedOutput> = observed
            .iter()
            .enumerate()
            .map(|(output, observed)| ComparedOutput {
                name: name_of(self.models[0], output),
                tolerance: self.arguments.tolerance.unwrap_or_else(|| default_tolerance(observed)),
                proved: None,
                seen: distance(observed),
            })
            .collect();
        let furthest = furthest(&outputs, &observed);
        // Before a proof that may take long, and be stopped.
        if let (Some(path), Some(furthest), true) = (&self.arguments.counterexample, &furthest, is_seen(&outputs)) {
            save(path, self.models[0].network(), &furthest.input)?;
        }
        let looking = begin.elapsed();
        let (compared, stopped) = self.prove(&outputs)?;
        let mut unmatched = [vec![], vec![]];
        if let Some(compared) = &compared {
            take_bounds(&mut outputs, compared)?;
            unmatched = [0, 1].map(|index| alone(self.models[index].network(), &compared.unmatched[index]));
        }
        Ok(Findings { outputs, furthest, unmatched, stopped, looking })
    }

    /// How much time there is still; none if there is no limit.
    fn time_left(&self) -> Option<Duration> {
        self.arguments.search.time_limit.map(|limit| limit.saturating_sub(self.start.elapsed()))
    }

    /// What is seen in half of the time.
    fn observe(&self) -> Result<Vec<LargestDifference>> {
        let [first, second] = self.models.map(Model::network);
        let Inputs { domain, samples, source, .. } = self.inputs;
        let end = self.time_left().and_then(|left| Instant::now().checked_add(left / 2));
        let seed = self.arguments.search.seed;
        observe_with_deadline(first, second, domain, samples.as_ref(), seed, end).with_context(|| source.clone())
    }

    /// Bounds the difference, unless that is stopped; and says what stopped it, or a part of it.
    fn prove(&self, outputs: &[ComparedOutput]) -> Result<(Option<Comparison>, Option<StopReason>)> {
        let bar = AnalysisBar::new(self.console);
        let options = search::options(&self.arguments.search, self.start, self.inputs.samples.as_ref(), &bar);
        let compared = self.compare(outputs, &options);
        bar.finish();
        interrupt::unwatch();
        match compared {
            Ok(compared) => {
                let stopped = compared.stopped;
                Ok((Some(compared), stopped))
            }
            // That they are different is known all the same.
            Err(EquivError::Interrupted) if is_seen(outputs) => Ok((None, Some(StopReason::Interrupted))),
            Err(EquivError::Interrupted) => Err(Interrupted("nothing is proved".to_owned()).into()),
            Err(error) => Err(error).with_context(|| self.inputs.source.clone()),
        }
    }

    /// Mostly a quick way is enough, without a search for units that are hard to decide. Where the networks are different it has to be: then the bound only
    /// says how different they are at most.
    fn compare(&self, outputs: &[ComparedOutput], options: &AnalysisOptions<'_>) -> Result<Comparison, EquivError> {
        let [first, second] = self.models.map(Model::network);
        let compare = |options: &AnalysisOptions<'_>| equivalent(first, second, &self.inputs.domain, options);
        let quick = compare(&AnalysisOptions { engine: Engine::Bounds, nodes: Some(0), ..*options })?;
        if is_seen(outputs) || are_within(&quick.deviation, outputs) {
            return Ok(quick);
        }
        let mut quick = quick;
        if has_few_inputs(first) {
            let (domain, options) = (&self.inputs.domain, AnalysisOptions { time_limit: self.time_left(), ..*options });
            let is_enough = |bounds: &[Vec<f64>]| are_within(bounds, outputs);
            quick = refine_by_pieces([first, second], domain, quick, &options, is_enough);
            if is_enough(&quick.deviation) || quick.stopped.is_some() {
                return Ok(quick);
            }
        }
        let time_limit = self.time_left();
        if time_limit.is_some_and(|left| left.is_zero()) {
            return Ok(quick.or_stopped(StopReason::OutOfTime));
        }
        match compare(&AnalysisOptions { time_limit, ..*options }) {
            Err(EquivError::Interrupted) => Ok(quick.or_stopped(StopReason::Interrupted)),
            longer => Ok(quick.with_later(longer?)),
        }
    }
}

/// Whether outputs are seen to be further apart than is tolerated.
fn is_seen(outputs: &[ComparedOutput]) -> bool {
    outputs.iter().any(|output| output.seen > output.tolerance)
}

/// Whether no bound, for any element of any output, is more than is tolerated.
fn are_within(deviation: &[Vec<f64>], outputs: &[ComparedOutput]) -> bool {
    deviation.iter().zip(outputs).all(|(bounds, output)| bounds.iter().all(|bound| *bound <= output.tolerance))
}

/// Notes what is proved of each output.
fn take_bounds(outputs: &mut [ComparedOutput], compared: &Comparison) -> Result<()> {
    for (output, bounds) in outputs.iter_mut().zip(&compared.deviation) {
        let proved = bounds.iter().copied().fold(0.0, f64::max);
        if output.seen > proved {
            bail!(
                "a mistake in Leo, please report it with the files: output {:?} differs by {:e}, and {proved:e} is proved",
                output.name,
                output.seen
            );
        }
        output.proved = Some(proved);
    }
    Ok(())
}

/// What is tolerated of an output if nothing is said: nothing where numbers overflow.
fn default_tolerance(observed: &LargestDifference) -> f64 {
    if observed.size.is_finite() { TOLERANCE * observed.size } else { 0.0 }
}

/// What the file calls a value that leaves its network.
fn name_of(model: &Model, output: usize) -> String {
    let name = match model.format() {
        Format::Onnx(document) => document.name_of(document.network().outputs()[output]),
        Format::Nnet(_) => model.outputs().nth(output).map(|port| port.name.as_str()),
    };
    name.map_or_else(|| format!("output {output}"), str::to_owned)
}

fn distance(observed: &LargestDifference) -> f64 {
    observed.furthest.as_ref().map_or(0.0, |apart| apart.distance)
}

/// The point with the largest difference, measured by what is tolerated.
fn furthest(outputs: &[ComparedOutput], observed: &[LargestDifference]) -> Option<Furthest> {
    let seen = outputs.iter().zip(observed).filter_map(|(output, seen)| Some((output, seen.furthest.as_ref()?)));
    let by_tolerance = |(output, apart): &(&ComparedOutput, &SeenDifference)| apart.distance / output.tolerance;
    let (output, apart) = seen.max_by(|a, b| by_tolerance(a).total_cmp(&by_tolerance(b)))?;
    let [first, second] = apart.values;
    Some(Furthest { output: output.name.clone(), element: apart.element, first, second, input: apart.point.clone() })
}

fn alone(network: &Network, unmatched: &[Unmatched]) -> Vec<Alone> {
    let of = |unmatched: &Unmatched| Alone {
        layer: network.node_of(unmatched.layer).name().to_owned(),
        number: network.output_of(unmatched.layer).index(),
        units: unmatched.units.clone(),
    };
    unmatched.iter().map(of).collect()
}

/// Writes an input as a batch of one sample.
fn save(path: &Path, network: &Network, input: &[f64]) -> Result<()> {
    let shape = [&[1], network.input().extents()].concat();
    Ok(Array::new(shape, input.to_vec())?.save(path)?)
}

/// How many units of a layer are named.
const NAMED: usize = 10;

impl fmt::Display for Alone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let more = if self.units.len() > NAMED { ", ..." } else { "" };
        let named = listed(self.units.iter().take(NAMED));
        let name = match self.layer.as_str() {
            "" => self.number.to_string(),
            name => format!("{:?}", one_line(name)),
        };
        write!(formatter, "layer {name}: {} ({named}{more})", counted(self.units.len(), "unit"))
    }
}

impl Report {
    fn new([first, second]: [String; 2], inputs: &Inputs, found: Findings, start: Instant, reading: Duration) -> Self {
        let Findings { outputs, furthest, unmatched, stopped, looking } = found;
        let is_within = |output: &ComparedOutput| output.proved.is_some_and(|proved| proved <= output.tolerance);
        Self {
            version: 1,
            domain: DomainSummary::new(&inputs.domain),
            samples: inputs.counted,
            verdict: match is_seen(&outputs) {
                true => EquivVerdict::Different,
                false if outputs.iter().all(is_within) => EquivVerdict::Equal,
                false => EquivVerdict::Unknown,
            },
            proved: outputs
                .iter()
                .map(|output| output.proved)
                .try_fold(0.0, |most: f64, proved| Some(most.max(proved?))),
            seen: outputs.iter().map(|output| output.seen).fold(0.0, f64::max),
            furthest,
            outputs,
            unmatched,
            stopped: stopped.map(search::reason),
            seconds: start.elapsed().as_secs_f64(),
            steps: EquivSteps {
                reading: reading.as_secs_f64(),
                looking: looking.as_secs_f64(),
                proving: (start.elapsed() - reading - looking).as_secs_f64(),
            },
            first,
            second,
        }
    }

    fn print(&self, console: &Console, counterexample: Option<&Path>) -> Result<()> {
        let out = &mut console.report();
        writeln!(out, "{} and {}: domain {}", one_line(&self.first), one_line(&self.second), self.domain)?;
        if let Some(samples) = self.samples.filter(|samples| samples.outside > 0) {
            console.warn(samples)?;
        }
        match (self.verdict, self.proved) {
            (EquivVerdict::Equal, Some(0.0)) => {
                writeln!(
                    out,
                    "{}: on the whole domain all outputs are exactly the same, in real arithmetic (proved)",
                    good("equal")
                )?;
            }
            (EquivVerdict::Equal, proved) => {
                let proved = proved.unwrap_or(f64::INFINITY);
                let equal = good("equal");
                writeln!(
                    out,
                    "{equal}: on the whole domain no output differs by more than {} (proved)",
                    upper(proved)
                )?;
                writeln!(out, "  the largest difference seen is {}", short(self.seen))?;
            }
            (EquivVerdict::Different, _) => self.print_difference(out, counterexample)?,
            (EquivVerdict::Unknown, _) => self.print_doubt(out)?,
        }
        let ms = |seconds: f64| format!("{:.1}", 1e3 * seconds);
        let EquivSteps { reading, looking, proving } = self.steps;
        let (all, reading, looking, proving) = (ms(self.seconds), ms(reading), ms(looking), ms(proving));
        writeln!(out, "{all} ms: reading {reading}, looking for differences {looking}, proving {proving}")?;
        Ok(())
    }

    fn print_difference(&self, out: &mut impl Write, counterexample: Option<&Path>) -> Result<()> {
        let Some(Furthest { output, element, first, second, .. }) = &self.furthest else { return Ok(()) };
        let named = |furthest: &&ComparedOutput| furthest.name == *output;
        let tolerance = self.outputs.iter().find(named).map_or(0.0, |output| output.tolerance);
        let different = bad("different");
        writeln!(out, "{different}: there is an input where element {element} of {:?} is", one_line(output))?;
        writeln!(out, "  {first} in {}", one_line(&self.first))?;
        writeln!(out, "  {second} in {}", one_line(&self.second))?;
        let (apart, tolerance) = (short((first - second).abs()), short(tolerance));
        writeln!(out, "  {apart} apart, where {tolerance} is tolerated")?;
        if let Some(proved) = self.proved.filter(|proved| proved.is_finite()) {
            writeln!(out, "  on the whole domain no output differs by more than {} (proved)", upper(proved))?;
        }
        match counterexample {
            Some(path) => writeln!(out, "wrote the input to {}", one_line(&path.display().to_string()))?,
            None => writeln!(out, "  --counterexample FILE writes the input to a file, --json prints it")?,
        }
        Ok(())
    }

    fn print_doubt(&self, out: &mut impl Write) -> Result<()> {
        writeln!(out, "{}: neither proved equal nor seen to be different", doubtful("unknown"))?;
        self.print_outputs(out)?;
        let files = [&self.second, &self.first];
        for (alone, [file, other]) in self.unmatched.iter().rev().zip([files, [files[1], files[0]]]) {
            for layer in alone {
                writeln!(out, "  in {}, without a counterpart in {}: {layer}", one_line(file), one_line(other))?;
            }
        }
        if let Some(stopped) = self.stopped {
            writeln!(out, "  some units are undecided ({stopped})")?;
        }
        Ok(())
    }

    fn print_outputs(&self, out: &mut impl Write) -> Result<()> {
        for ComparedOutput { name, tolerance, proved, seen } in &self.outputs {
            let proved = upper(proved.unwrap_or(f64::INFINITY));
            let (seen, tolerance) = (short(*seen), short(*tolerance));
            writeln!(
                out,
                "  {:?}: proved up to {proved}, seen up to {seen}, {tolerance} is tolerated",
                one_line(name)
            )?;
        }
        Ok(())
    }
}
