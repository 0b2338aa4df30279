//! `leo equiv`

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use leo_compress::{Apart, Comparison, EquivError, Observed, Unmatched, equivalent, observe};
use leo_network::{Array, Format, Model, Network};
use leo_stability::{Engine, Options};
use serde::Serialize;

use crate::args::Equiv;
use crate::console::{Console, bad, doubtful, good};
use crate::domain::Bounds;
use crate::files;
use crate::inputs::{self, Inputs};
use crate::interrupt::{self, Interrupted};
use crate::number::{short, upper};
use crate::output::{Negative, counted, listed, one_line};
use crate::progress::AnalysisBar;
use crate::samples::Samples;
use crate::search;

/// What was found out. Also the shape of the JSON: fields may join, these stay.
#[derive(Serialize)]
struct Report {
    version: u32,
    first: String,
    second: String,
    domain: Bounds,
    /// With --data, what the samples were good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    samples: Option<Samples>,
    verdict: Verdict,
    /// Proved: no output differs by more, anywhere on the domain. Nothing is proved of networks that are seen to be different.
    proved: Option<f64>,
    /// The largest difference seen.
    seen: f64,
    outputs: Vec<Output>,
    /// Where outputs are seen to be furthest apart, measured by what is tolerated, if they are anywhere.
    furthest: Option<Furthest>,
    /// Units without a counterpart in the other network.
    unmatched: [Vec<Alone>; 2],
    /// What stopped the search for stable units, if something did.
    stopped: Option<&'static str>,
    seconds: f64,
    steps: Steps,
}

#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Equal,
    Different,
    Unknown,
}

/// A value that leaves the networks.
#[derive(Serialize)]
struct Output {
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
struct Steps {
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
    let models = [Model::load(&arguments.first)?, Model::load(&arguments.second)?];
    let [first, second] = [&models[0], &models[1]];
    let files = [&arguments.first, &arguments.second].map(|path| path.display().to_string());
    first.check_interface(second).with_context(|| format!("{} and {} cannot be compared", files[0], files[1]))?;
    let inputs = inputs::load(&arguments.domain, &[(first, &arguments.first), (second, &arguments.second)])?;
    let Inputs { domain, samples, .. } = &inputs;
    if let Some(path) = &arguments.counterexample {
        let others = [arguments.first.as_path(), &arguments.second];
        files::ensure_other(path, "--counterexample", others.into_iter().chain(arguments.domain.files()))?;
    }
    drop(phase);
    let reading = start.elapsed();

    let networks = [first.network(), second.network()];
    let seed = arguments.search.seed;
    let phase = console.phase("looking for differences");
    let observed =
        observe(networks[0], networks[1], domain, samples.as_ref(), seed).with_context(|| inputs.source.clone())?;
    let mut outputs: Vec<Output> = observed
        .iter()
        .enumerate()
        .map(|(output, observed)| Output {
            name: name_of(first, output),
            tolerance: arguments.tolerance.unwrap_or_else(|| default_tolerance(observed)),
            proved: None,
            seen: distance(observed),
        })
        .collect();
    drop(phase);
    let looking = start.elapsed() - reading;
    let is_different = outputs.iter().any(|output| output.seen > output.tolerance);

    // What is seen to be different needs no proof.
    let (mut unmatched, mut stopped) = ([vec![], vec![]], None);
    if !is_different {
        let bar = AnalysisBar::new(console);
        let options = search::options(&arguments.search, start, samples.as_ref(), &bar);
        // Mostly that is enough without a search for units that are hard to decide.
        let quick = Options { engine: Engine::Bounds, nodes: Some(0), ..options };
        let mut compared = equivalent(networks[0], networks[1], domain, &quick);
        let is_close = |compared: &Comparison| {
            let mut pairs = compared.deviation.iter().zip(&outputs);
            pairs.all(|(bounds, output)| bounds.iter().all(|bound| *bound <= output.tolerance))
        };
        if compared.as_ref().is_ok_and(|compared| !is_close(compared)) {
            compared = equivalent(networks[0], networks[1], domain, &options);
        }
        bar.finish();
        interrupt::unwatch();
        let compared = match compared {
            Err(EquivError::Interrupted) => return Err(Interrupted("nothing is proved".to_owned()).into()),
            other => other.with_context(|| inputs.source.clone())?,
        };
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
        unmatched = [0, 1].map(|index| alone(networks[index], &compared.unmatched[index]));
        stopped = compared.stopped.map(search::reason);
    }
    let is_within = |output: &Output| output.proved.is_some_and(|proved| proved <= output.tolerance);
    let report = Report {
        version: 1,
        domain: Bounds::new(domain),
        samples: inputs.counted,
        verdict: match is_different {
            true => Verdict::Different,
            false if outputs.iter().all(is_within) => Verdict::Equal,
            false => Verdict::Unknown,
        },
        proved: outputs.iter().map(|output| output.proved).try_fold(0.0, |most: f64, proved| Some(most.max(proved?))),
        seen: outputs.iter().map(|output| output.seen).fold(0.0, f64::max),
        furthest: furthest(&outputs, &observed),
        outputs,
        unmatched,
        stopped,
        seconds: start.elapsed().as_secs_f64(),
        steps: Steps {
            reading: reading.as_secs_f64(),
            looking: looking.as_secs_f64(),
            proving: (start.elapsed() - reading - looking).as_secs_f64(),
        },
        first: files[0].clone(),
        second: files[1].clone(),
    };
    if let (Some(path), Some(furthest), true) = (&arguments.counterexample, &report.furthest, is_different) {
        save(path, networks[0], &furthest.input)?;
    }
    if arguments.json {
        console.json(&report)?;
    } else {
        let out = &mut console.report();
        report.print(console, arguments.counterexample.as_deref())?;
        if console.is_verbose() && report.verdict == Verdict::Equal {
            report.print_outputs(out)?;
        }
    }
    match report.verdict {
        Verdict::Equal => Ok(()),
        Verdict::Different => Err(Negative("the networks are different".to_owned()).into()),
        Verdict::Unknown => Err(Negative("neither proved equal nor seen to be different".to_owned()).into()),
    }
}

/// What is tolerated of an output if nothing is said: nothing where numbers overflow.
fn default_tolerance(observed: &Observed) -> f64 {
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

fn distance(observed: &Observed) -> f64 {
    observed.furthest.as_ref().map_or(0.0, |apart| apart.distance)
}

/// The point with the largest difference, measured by what is tolerated.
fn furthest(outputs: &[Output], observed: &[Observed]) -> Option<Furthest> {
    let seen = outputs.iter().zip(observed).filter_map(|(output, seen)| Some((output, seen.furthest.as_ref()?)));
    let by_tolerance = |(output, apart): &(&Output, &Apart)| apart.distance / output.tolerance;
    let (output, apart) = seen.max_by(|a, b| by_tolerance(a).total_cmp(&by_tolerance(b)))?;
    let [first, second] = apart.values;
    Some(Furthest { output: output.name.clone(), element: apart.element, first, second, input: apart.point.clone() })
}

fn alone(network: &Network, unmatched: &[Unmatched]) -> Vec<Alone> {
    let of = |unmatched: &Unmatched| Alone {
        layer: network.nodes()[unmatched.layer].name().to_owned(),
        number: unmatched.layer + 1,
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
    fn print(&self, console: &Console, counterexample: Option<&Path>) -> Result<()> {
        let out = &mut console.report();
        writeln!(out, "{} and {}: domain {}", one_line(&self.first), one_line(&self.second), self.domain)?;
        if let Some(samples) = self.samples.filter(|samples| samples.outside > 0) {
            console.warn(samples)?;
        }
        match (self.verdict, self.proved) {
            (Verdict::Equal, Some(0.0)) => {
                writeln!(
                    out,
                    "{}: on the whole domain all outputs are exactly the same, in real arithmetic (proved)",
                    good("equal")
                )?;
            }
            (Verdict::Equal, proved) => {
                let proved = proved.unwrap_or(f64::INFINITY);
                let equal = good("equal");
                writeln!(
                    out,
                    "{equal}: on the whole domain no output differs by more than {} (proved)",
                    upper(proved)
                )?;
                writeln!(out, "  the largest difference seen is {}", short(self.seen))?;
            }
            (Verdict::Different, _) => self.print_difference(out, counterexample)?,
            (Verdict::Unknown, _) => self.print_doubt(out)?,
        }
        let ms = |seconds: f64| format!("{:.1}", 1e3 * seconds);
        let Steps { reading, looking, proving } = self.steps;
        let (all, reading, looking, proving) = (ms(self.seconds), ms(reading), ms(looking), ms(proving));
        writeln!(out, "{all} ms: reading {reading}, looking for differences {looking}, proving {proving}")?;
        Ok(())
    }

    fn print_difference(&self, out: &mut impl Write, counterexample: Option<&Path>) -> Result<()> {
        let Some(Furthest { output, element, first, second, .. }) = &self.furthest else { return Ok(()) };
        let named = |furthest: &&Output| furthest.name == *output;
        let tolerance = self.outputs.iter().find(named).map_or(0.0, |output| output.tolerance);
        let different = bad("different");
        writeln!(out, "{different}: there is an input where element {element} of {:?} is", one_line(output))?;
        writeln!(out, "  {first} in {}", one_line(&self.first))?;
        writeln!(out, "  {second} in {}", one_line(&self.second))?;
        let (apart, tolerance) = (short((first - second).abs()), short(tolerance));
        writeln!(out, "  {apart} apart, where {tolerance} is tolerated")?;
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
        for Output { name, tolerance, proved, seen } in &self.outputs {
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
