//! `leo equiv`

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use leo::{
    Array, ArrayFile, ComparedOutput, Equivalence, EquivalenceSeconds, EquivalenceVerdict, Furthest, ModelFile,
    Unpaired,
};

use crate::args::Equiv;
use crate::request::inputs::{self, Inputs};
use crate::request::{domain, files, model, search};
use crate::terminal::console::{Console, bad, doubtful, good};
use crate::terminal::interrupt::Interrupted;
use crate::terminal::number::{short, upper};
use crate::terminal::output::{Negative, counted, listed, one_line};
use crate::terminal::progress::Watcher;

pub fn run(arguments: &Equiv, console: &Console) -> Result<()> {
    let start = Instant::now();
    search::check(&arguments.search)?;
    let phase = console.phase("reading");
    let open = |path| model::open(path, &arguments.shape);
    let files = [open(&arguments.first)?, open(&arguments.second)?];
    let [first, second] = &files;
    leo::check_comparable([first, second])?;
    let mut inputs = inputs::load(&arguments.domain, &[first, second])?;
    if let Some(path) = &arguments.counterexample {
        let read = [first.files(), second.files()].concat();
        let read = read.iter().map(|path| path.as_path()).chain(arguments.domain.files());
        files::ensure_other(path, "--counterexample", read)?;
    }
    drop(phase);
    let reading = start.elapsed().as_secs_f64();
    let watcher = Arc::new(Watcher::new(console));
    let options = search::options(&arguments.search, start, &mut inputs, &watcher);
    let mut save = |furthest: &Furthest| match &arguments.counterexample {
        Some(path) => save(path, first, &furthest.input),
        None => Ok(()),
    };
    let compared = leo::compare([first, second], &inputs.domain, arguments.tolerance, &options, &mut save);
    watcher.finish();
    let mut report = compared.map_err(|error| explain(error, &inputs))?;
    report.steps.reading = reading;
    report.seconds = start.elapsed().as_secs_f64();
    if arguments.json { console.json(&report) } else { Summary(&report).print(arguments, console) }?;
    let negative = match report.verdict {
        EquivalenceVerdict::Equal => return Ok(()),
        EquivalenceVerdict::Different => "the networks are different".to_owned(),
        EquivalenceVerdict::Unknown => "neither proved equal nor seen to be different".to_owned(),
    };
    Err(if report.is_interrupted { Interrupted(negative).into() } else { Negative(negative).into() })
}

/// Why nothing came of it.
fn explain(error: leo::Error, inputs: &Inputs) -> anyhow::Error {
    match error {
        leo::Error::Interrupted => Interrupted("nothing is proved".to_owned()).into(),
        error => inputs.explain(error),
    }
}

/// Writes an input as a batch of one sample.
fn save(path: &Path, first: &ModelFile, input: &[f64]) -> Result<(), leo::Error> {
    let shape = [&[1], first.network().input().extents()].concat();
    Ok(Array::new(shape, input.to_vec())?.save(path)?)
}

/// How many units of a layer are named.
const MOST_NAMED: usize = 10;

/// Units without a counterpart.
fn unpaired(alone: &Unpaired) -> String {
    let more = if alone.units.len() > MOST_NAMED { ", ..." } else { "" };
    let named = listed(alone.units.iter().take(MOST_NAMED));
    let name = match alone.layer.as_str() {
        "" => alone.index.to_string(),
        name => format!("{:?}", one_line(name)),
    };
    format!("layer {name}: {} ({named}{more})", counted(alone.units.len(), "unit"))
}
/// A comparison, in words.
struct Summary<'a>(&'a Equivalence);

impl Summary<'_> {
    fn print(&self, arguments: &Equiv, console: &Console) -> Result<()> {
        let counterexample = arguments.counterexample.as_deref();
        let out = &mut console.report();
        writeln!(
            out,
            "{} and {}: domain {}",
            one_line(&self.0.first),
            one_line(&self.0.second),
            domain::in_words(&self.0.domain)
        )?;
        for (name, listed) in [&self.0.first, &self.0.second].into_iter().zip(self.0.listed_constants) {
            model::listed_constants(name, listed).map_or(Ok(()), |note| writeln!(out, "{note}"))?;
        }
        if let Some(outside) = inputs::outside(self.0.samples) {
            console.warn(outside)?;
        }
        match (self.0.verdict, self.0.proved) {
            (EquivalenceVerdict::Equal, Some(0.0)) => {
                writeln!(
                    out,
                    "{}: on the whole domain all outputs are exactly the same, in real arithmetic (proved)",
                    good("equal")
                )?;
            }
            (EquivalenceVerdict::Equal, proved) => {
                let proved = proved.unwrap_or(f64::INFINITY);
                let equal = good("equal");
                writeln!(
                    out,
                    "{equal}: on the whole domain no output differs by more than {} (proved)",
                    upper(proved)
                )?;
                writeln!(out, "  the largest difference seen is {}", short(self.0.seen))?;
            }
            (EquivalenceVerdict::Different, _) => self.print_difference(out, counterexample)?,
            (EquivalenceVerdict::Unknown, _) => self.print_doubt(out)?,
        }
        if console.is_verbose() && self.0.verdict == EquivalenceVerdict::Equal {
            self.print_outputs(out)?;
        }
        let ms = |seconds: f64| format!("{:.1}", 1e3 * seconds);
        let EquivalenceSeconds { reading, looking, proving } = self.0.steps;
        let (all, reading, looking, proving) = (ms(self.0.seconds), ms(reading), ms(looking), ms(proving));
        writeln!(out, "{all} ms: reading {reading}, looking for differences {looking}, proving {proving}")?;
        Ok(())
    }

    fn print_difference(&self, out: &mut impl Write, counterexample: Option<&Path>) -> Result<()> {
        let Some(Furthest { output, element, first, second, .. }) = &self.0.furthest else { return Ok(()) };
        let named = |furthest: &&ComparedOutput| furthest.name == *output;
        let tolerance = self.0.outputs.iter().find(named).map_or(0.0, |output| output.tolerance);
        let different = bad("different");
        writeln!(out, "{different}: there is an input where element {element} of {:?} is", one_line(output))?;
        writeln!(out, "  {first} in {}", one_line(&self.0.first))?;
        writeln!(out, "  {second} in {}", one_line(&self.0.second))?;
        let (apart, tolerance) = (short((first - second).abs()), short(tolerance));
        writeln!(out, "  {apart} apart, where {tolerance} is tolerated")?;
        if let Some(proved) = self.0.proved.filter(|proved| proved.is_finite()) {
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
        if let Some(obstacle) = &self.0.obstacle {
            writeln!(out, "  channels of the one are not matched with those of the other: {}", one_line(obstacle))?;
        }
        let files = [&self.0.second, &self.0.first];
        for (alone, [file, other]) in self.0.unmatched.iter().rev().zip([files, [files[1], files[0]]]) {
            for layer in alone {
                writeln!(
                    out,
                    "  in {}, without a counterpart in {}: {}",
                    one_line(file),
                    one_line(other),
                    unpaired(layer)
                )?;
            }
        }
        if let Some(stopped) = self.0.stopped {
            writeln!(out, "  some units are undecided ({stopped})")?;
        }
        Ok(())
    }

    fn print_outputs(&self, out: &mut impl Write) -> Result<()> {
        for ComparedOutput { name, tolerance, proved, seen } in &self.0.outputs {
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
