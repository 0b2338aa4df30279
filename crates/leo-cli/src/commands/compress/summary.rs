//! What `leo compress` says, for people.

use std::io::Write;

use anyhow::Result;
use comfy_table::CellAlignment::{Left, Right};
use leo::{Accuracy, Compression, CompressionReport, DeltaParts, OutputReport, PinnedLayer, Seconds, Totals};

use super::{outputs, reasons};
use crate::report::stability;
use crate::request::{domain, inputs, model};
use crate::terminal::console::{Console, good};
use crate::terminal::number::{duration, percent, short, upper};
use crate::terminal::output::{counted, grouped, listed, one_line};

/// A report, in words.
pub struct Summary<'a>(pub &'a CompressionReport);

/// Of how many layers it is said why stable units stay.
const MOST_LAYERS: usize = 12;
/// Of how many outputs it is said what single precision makes of them.
const MOST_OUTPUTS: usize = 4;
/// How much may be left out on purpose before it is worth a warning.
const NOTABLE_APPROXIMATION: f64 = 1e-3;

impl Summary<'_> {
    /// What is measured, before and after.
    pub fn sizes(&self) -> Vec<(&'static str, usize, usize)> {
        let (before, after) = (&self.0.before, &self.0.after);
        let units = if self.0.has_channels { "channels" } else { "units" };
        let mut sizes = vec![
            (units, before.units, after.units),
            ("parameters", before.parameters, after.parameters),
            ("multiply-adds", before.multiply_adds, after.multiply_adds),
            ("bytes", before.bytes, after.bytes),
        ];
        // How many numbers a device has to have room for at once: what dense layers need is little.
        let activations = ("activations", before.peak_activations, after.peak_activations);
        sizes.extend(self.0.has_channels.then_some(activations));
        sizes
    }

    /// What one should not miss.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        warnings.extend(inputs::outside(self.0.samples));
        let accuracy = self.0.accuracy.as_ref().filter(|accuracy| accuracy.changed > 0);
        warnings.extend(accuracy.map(answers_in_words));
        if self.0.delta_parts.approximation >= NOTABLE_APPROXIMATION {
            let left_out = short(self.0.delta_parts.approximation);
            warnings.push(format!(
                "{left_out} was left out on purpose: little beside the largest numbers that the outputs were seen to reach, perhaps much beside yours; \
                 --tolerance 0 leaves nothing out"
            ));
        }
        warnings.extend(self.0.stale_certificate.as_deref().map(|path| {
            let (path, network) = (one_line(path), one_line(&self.0.output));
            format!("{path} is from before, and is no certificate of what {network} is now")
        }));
        warnings
    }

    /// What else there is to know.
    pub fn notes(&self) -> Vec<String> {
        let (mut notes, noun) = (Vec::new(), if self.0.has_channels { "channel" } else { "unit" });
        notes.extend(model::listed_constants(&self.0.model, self.0.listed_constants));
        if self.0.flushed > 0 {
            notes.push(format!(
                "flushed: {} became 0, which is part of delta",
                counted(self.0.flushed, "denormal weight")
            ));
        }
        let denormals = model::denormals(&self.0.output, self.0.after.denormals);
        notes.extend(denormals.map(|note| match self.0.flushed {
            0 => note + " (--flush-denormals sets them to 0)",
            _ => note,
        }));
        for PinnedLayer { layer, units, reason } in self.0.kept.iter().take(MOST_LAYERS) {
            notes.push(format!("kept: {:?} ({}): {}", one_line(layer), counted(*units, noun), one_line(reason)));
        }
        if self.0.kept.len() > MOST_LAYERS {
            let more = counted(self.0.kept.len() - MOST_LAYERS, "more layer");
            notes.push(format!("kept: {more} (--json has them all)"));
        }
        notes.extend(self.0.stays.iter().take(MOST_LAYERS).map(|stays| reasons::staying(stays, noun)));
        if let Some(more) = self.0.stays.get(MOST_LAYERS..).filter(|more| !more.is_empty()) {
            let units: usize = more.iter().map(|stays| stays.units.len()).sum();
            notes.push(format!(
                "{} more of other layers stay (--json has them all)",
                counted(units, &format!("stable {noun}"))
            ));
        }
        let accuracy = self.0.accuracy.as_ref().filter(|accuracy| accuracy.changed == 0);
        notes.extend(accuracy.map(answers_in_words));
        if let (Some(settled), Some(samples)) = (self.0.settled, self.0.samples) {
            let (settled, samples) = (grouped(settled), counted(samples.count, "sample"));
            notes.push(format!("{settled} of {samples} are proved to keep their answer: its lead is larger than what both numbers can have moved, in real arithmetic"));
        }
        if self.0.unread_inputs > 0 {
            notes.push(format!("{} no part in it any more", take(self.0.unread_inputs)));
        }
        if self.0.undecided > 0 {
            let why = self.0.stopped.map_or_else(String::new, |stopped| format!(" ({stopped})"));
            let kept = match self.0.undecided_kept {
                kept if kept == self.0.undecided => "and kept".to_owned(),
                kept => format!("{} of them kept", grouped(kept)),
            };
            notes.push(format!("{} undecided{why}, {kept}", counted(self.0.undecided, noun)));
        }
        if self.0.few {
            notes.extend(reasons::what_else(
                &self.0.would_go,
                self.0.one_sided.as_deref(),
                &counted(self.0.before.units, noun),
                self.0.unstable,
            ));
        }
        notes
    }

    /// More about how far outputs can move.
    pub fn details(&self) -> Vec<String> {
        let by_relative = |a: &&OutputReport, b: &&OutputReport| {
            let relative = |output: &OutputReport| output.worst.relative.unwrap_or(f64::INFINITY);
            relative(a).total_cmp(&relative(b))
        };
        let worst = self.0.outputs.iter().max_by(by_relative).and_then(outputs::worst);
        let is_only = self.0.outputs.len() == 1;
        let single =
            self.0.outputs.iter().take(MOST_OUTPUTS).filter_map(move |output| outputs::single(output, is_only));
        let more = self.0.outputs.len().saturating_sub(MOST_OUTPUTS);
        let more = (more > 0).then(|| format!("{}: --json has what was measured", counted(more, "more output")));
        let before = (!self.0.before_operators.is_empty() && self.0.delta > 0.0).then(|| {
            let operators = listed(self.0.before_operators.iter().map(|operator| one_line(operator)));
            format!("that is before {operators}, which may make more of a difference, or less")
        });
        before.into_iter().chain(worst).chain(single).chain(more).collect()
    }

    /// Prints it for people.
    pub fn print(&self, compression: &Compression, console: &Console) -> Result<()> {
        let out = &mut console.report();
        writeln!(out, "{}: domain {}", one_line(&self.0.model), domain::in_words(&self.0.domain))?;
        if console.is_verbose() && self.0.before.units > 0 {
            let totals = Totals::of(compression.compressed().history.layers.iter().flat_map(|layer| &layer.units));
            stability::print(&compression.layers(), &totals, self.0.steps.stability, console)?;
        }
        if compression.is_changed() {
            self.print_change(console)?;
        } else {
            writeln!(out, "nothing to remove: {} is the same network, in the same numbers", one_line(&self.0.output))?;
        }
        for note in self.notes() {
            writeln!(out, "{note}")?;
        }
        for warning in self.warnings() {
            console.warn(warning)?;
        }
        if console.is_verbose() {
            for stays in &self.0.stays {
                writeln!(out, "stay in {}", reasons::named(stays))?;
            }
            let steps = steps(&self.0.steps).map(|(step, seconds)| format!("{step} {}", duration(seconds)));
            writeln!(out, "time: {}", listed(steps))?;
        }
        write!(out, "wrote {}", one_line(&self.0.output))?;
        if let Some(path) = &self.0.certificate {
            write!(out, ", its certificate {}", one_line(path))?;
        }
        if let Some(path) = &self.0.report {
            write!(out, ", the report {}", one_line(path))?;
        }
        writeln!(out, "; {} in all", duration(self.0.seconds))?;
        Ok(())
    }

    fn print_change(&self, console: &Console) -> Result<()> {
        let out = &mut console.report();
        let mut sizes = console.table(&[("", Left), ("before", Right), ("after", Right), ("left", Right)]);
        let widths = |hidden: &[usize]| if hidden.is_empty() { "none".to_owned() } else { listed(hidden) };
        sizes.add_row(["hidden layers", &widths(&self.0.before.hidden), &widths(&self.0.after.hidden), ""]);
        for (name, before, after) in self.sizes() {
            sizes.add_row([name, &grouped(before), &grouped(after), &percent(after, before)]);
        }
        writeln!(out, "{sizes}\n")?;
        let removed = self.0.removed.iter().map(|(rule, &count)| format!("{} {rule}", grouped(count)));
        let nothing = self.0.removed.is_empty().then(|| match self.0.flushed {
            0 => "no unit, but numbers that nobody reads".to_owned(),
            _ => "no unit".to_owned(),
        });
        write!(out, "removed: {}", listed(removed.chain(nothing)))?;
        if self.0.carriers > 0 {
            write!(out, "; {} linear functions past their layers", carry(self.0.carriers))?;
        }
        if self.0.paths > 0 {
            write!(out, "; {} beside layers, by no ReLU", pass(self.0.paths))?;
        }
        writeln!(out)?;
        if self.0.delta == 0.0 {
            let claim = "on the whole domain all outputs are exactly what they were, in real arithmetic";
            writeln!(out, "{}: {claim}", good("proved"))?;
            return self.print_details(out);
        }
        let DeltaParts { approximation, rounding } = self.0.delta_parts;
        let [approximation, rounding, observed] = [approximation, rounding, self.0.observed].map(short);
        let delta = upper(self.0.delta);
        writeln!(out, "{}: on the whole domain no output moves by more than {delta}", good("proved"))?;
        let tolerance = &self.0.tolerance;
        writeln!(
            out,
            "  {approximation} left out on purpose (--tolerance {tolerance}), {rounding} rounding, and a margin"
        )?;
        match self.0.observed {
            0.0 => writeln!(out, "  no difference was seen, with twice the digits of doubles")?,
            _ => writeln!(out, "  the largest difference seen is {observed}")?,
        }
        self.print_details(out)
    }

    fn print_details(&self, out: &mut impl Write) -> Result<()> {
        self.details().into_iter().try_for_each(|detail| Ok(writeln!(out, "  {detail}")?))
    }
}

/// How many answers are right, and how many are others.
fn answers_in_words(accuracy: &Accuracy) -> String {
    let &Accuracy { samples, right, changed, ties, outside } = accuracy;
    let mut words = right.map_or_else(String::new, |right| {
        format!("accuracy {:.2}% before, {:.2}% after; ", 100.0 * right.before, 100.0 * right.after)
    });
    words += &format!("{} of {} predictions changed", grouped(changed), grouped(samples));
    if changed > 0 {
        words += &format!(" ({ties} of them closer calls than delta and rounding");
        if outside > 0 {
            words += &format!("; {outside} outside the domain, of which nothing is claimed");
        }
        words += ")";
    }
    words
}

fn carry(units: usize) -> String {
    format!("{} {}", counted(units, "unit"), if units == 1 { "carries" } else { "carry" })
}

fn pass(functions: usize) -> String {
    format!("{} {}", counted(functions, "linear function"), if functions == 1 { "passes" } else { "pass" })
}

fn take(inputs: usize) -> String {
    format!("{} {}", counted(inputs, "input"), if inputs == 1 { "has" } else { "have" })
}

/// The steps in their order, and how many seconds each took.
pub fn steps(steps: &Seconds) -> [(&'static str, f64); 6] {
    [
        ("reading", steps.reading),
        ("finding stable units", steps.stability),
        ("planning", steps.planning),
        ("rewriting and checking", steps.rewriting_and_checking),
        ("comparing", steps.comparing),
        ("certifying", steps.certifying),
    ]
}
