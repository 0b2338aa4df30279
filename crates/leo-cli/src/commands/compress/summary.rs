//! What `leo compress` says: tables for people, and JSON.

use std::collections::BTreeMap;
use std::io::Write;

use anyhow::Result;
use comfy_table::CellAlignment::{Left, Right};
use leo_compress::Compressed;
use leo_formats::onnx::Document;
use leo_network::Network;
use serde::Serialize;

use crate::report::stability::{self, LayerReport, Totals};
use crate::request::accuracy::Accuracy;
use crate::request::domain::DomainSummary;
use crate::request::samples::SampleCount;
use crate::terminal::console::{Console, good};
use crate::terminal::number::{duration, percent, short, upper};
use crate::terminal::output::{counted, grouped, listed, one_line};

use super::outputs::OutputReport;
use super::reasons::{Silent, Stays, Would, what_else};

/// What was done. Also the shape of the JSON: fields may join, these stay.
#[derive(Serialize)]
pub struct Report {
    pub version: u32,
    pub model: String,
    pub output: String,
    pub method: &'static str,
    pub tolerance: String,
    pub bit_exact: bool,
    pub domain: DomainSummary,
    /// With --data, what the samples were good for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples: Option<SampleCount>,
    pub before: Size,
    pub after: Size,
    /// How many units each rule removed.
    pub removed: BTreeMap<&'static str, usize>,
    /// How many of the units that are there carry linear functions past their layer.
    pub carriers: usize,
    /// How many linear functions pass beside layers instead, by no ReLU.
    pub paths: usize,
    /// Layers that could not change, and why.
    pub kept: Vec<PinnedLayer>,
    /// Units that are always on or off, and stay.
    pub stays: Vec<Stays>,
    /// Whether few units went.
    pub few: bool,
    /// If so, how many would go with larger tolerances; and with --data, which units the samples show one side only of.
    pub would_go: Vec<Would>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub one_sided: Option<Vec<Silent>>,
    /// Inputs that the new network does not depend on.
    pub unread_inputs: usize,
    /// Proved: no output moves by more, anywhere on the domain.
    pub delta: f64,
    pub delta_parts: Parts,
    /// The largest difference seen.
    pub observed: f64,
    /// The operators after the network: what is said of outputs is said of what these read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub before_operators: Vec<String>,
    /// Each output.
    pub outputs: Vec<OutputReport>,
    /// With --data, of how many samples it is proved that the largest number of the only output is still the same one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settled: Option<usize>,
    pub undecided: usize,
    /// How many of these are still there: nobody may need them.
    pub undecided_kept: usize,
    /// How many units were seen to be on and off.
    pub unstable: usize,
    /// What stopped the search for stable units, if something did.
    pub stopped: Option<&'static str>,
    /// With --data, if the outputs are a choice among answers; the shares of right ones with --labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Accuracy>,
    /// Where the proof was written.
    pub certificate: Option<String>,
    pub certificate_bytes: usize,
    /// A file that has the name of this network's certificate, and is another one's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stale_certificate: Option<String>,
    /// Where the page was written.
    pub report: Option<String>,
    /// Whether the certificate was checked. Without that nothing is written.
    pub checked: bool,
    pub seconds: f64,
    pub steps: Steps,
}

#[derive(Serialize)]
pub struct Size {
    /// The widths of the layers of ReLUs.
    pub hidden: Vec<usize>,
    pub units: usize,
    pub parameters: usize,
    pub multiply_adds: usize,
    pub bytes: usize,
}

impl Size {
    pub fn of(document: &Document) -> Result<Self> {
        let network = document.network();
        let hidden = network.hidden();
        Ok(Self {
            units: hidden.iter().sum(),
            hidden,
            parameters: network.parameters(),
            multiply_adds: network.multiply_adds(),
            bytes: document.to_bytes()?.len(),
        })
    }
}

#[derive(Serialize)]
pub struct PinnedLayer {
    pub layer: String,
    pub units: usize,
    pub reason: String,
}

/// Where delta comes from.
#[derive(Serialize)]
pub struct Parts {
    /// What was left out on purpose, within the tolerance.
    pub approximation: f64,
    /// Weights that had to be rounded.
    pub rounding: f64,
}

/// Seconds.
#[derive(Serialize)]
pub struct Steps {
    pub reading: f64,
    pub stability: f64,
    pub planning: f64,
    pub rewriting_and_checking: f64,
    pub comparing: f64,
    pub certifying: f64,
}

/// Of how many layers it is said why stable units stay.
const MOST_LAYERS: usize = 12;
/// Of how many outputs it is said what single precision makes of them.
const MOST_OUTPUTS: usize = 4;
/// How much may be left out on purpose before it is worth a warning.
const VISIBLE: f64 = 1e-3;

impl Report {
    /// What is measured, before and after.
    pub fn sizes(&self) -> [(&'static str, usize, usize); 4] {
        let (before, after) = (&self.before, &self.after);
        [
            ("units", before.units, after.units),
            ("parameters", before.parameters, after.parameters),
            ("multiply-adds", before.multiply_adds, after.multiply_adds),
            ("bytes", before.bytes, after.bytes),
        ]
    }

    /// What one should not miss.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if let Some(samples) = self.samples.filter(|samples| samples.outside > 0) {
            warnings.push(samples.to_string());
        }
        let accuracy = self.accuracy.as_ref().filter(|accuracy| accuracy.changed > 0);
        warnings.extend(accuracy.map(Accuracy::to_string));
        if self.delta_parts.approximation >= VISIBLE {
            let left_out = short(self.delta_parts.approximation);
            warnings.push(format!(
                "{left_out} was left out on purpose: little beside the largest numbers that the outputs were seen to reach, perhaps much beside yours; \
                 --tolerance 0 leaves nothing out"
            ));
        }
        warnings.extend(self.stale_certificate.as_deref().map(|path| {
            let (path, network) = (one_line(path), one_line(&self.output));
            format!("{path} is from before, and is no certificate of what {network} is now")
        }));
        warnings
    }

    /// What else there is to know.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for PinnedLayer { layer, units, reason } in self.kept.iter().take(MOST_LAYERS) {
            notes.push(format!("kept: {:?} ({}): {}", one_line(layer), counted(*units, "unit"), one_line(reason)));
        }
        if self.kept.len() > MOST_LAYERS {
            let more = counted(self.kept.len() - MOST_LAYERS, "more layer");
            notes.push(format!("kept: {more} (--json has them all)"));
        }
        notes.extend(self.stays.iter().take(MOST_LAYERS).map(Stays::in_words));
        if let Some(more) = self.stays.get(MOST_LAYERS..).filter(|more| !more.is_empty()) {
            let units: usize = more.iter().map(|stays| stays.units.len()).sum();
            notes.push(format!("{} more of other layers stay (--json has them all)", counted(units, "stable unit")));
        }
        let accuracy = self.accuracy.as_ref().filter(|accuracy| accuracy.changed == 0);
        notes.extend(accuracy.map(Accuracy::to_string));
        if let (Some(settled), Some(samples)) = (self.settled, self.samples) {
            let (settled, samples) = (grouped(settled), counted(samples.count, "sample"));
            notes.push(format!("{settled} of {samples} are proved to keep their answer: its lead is larger than what both numbers can have moved, in real arithmetic"));
        }
        if self.unread_inputs > 0 {
            notes.push(format!("{} no part in it any more", take(self.unread_inputs)));
        }
        if self.undecided > 0 {
            let why = self.stopped.map_or_else(String::new, |stopped| format!(" ({stopped})"));
            let kept = match self.undecided_kept {
                kept if kept == self.undecided => "and kept".to_owned(),
                kept => format!("{} of them kept", grouped(kept)),
            };
            notes.push(format!("{} undecided{why}, {kept}", counted(self.undecided, "unit")));
        }
        if self.few {
            notes.extend(what_else(&self.would_go, self.one_sided.as_deref(), self.before.units, self.unstable));
        }
        notes
    }

    /// More about how far outputs can move.
    pub fn details(&self) -> Vec<String> {
        let by_relative = |a: &&OutputReport, b: &&OutputReport| {
            let relative = |output: &OutputReport| output.worst.relative.unwrap_or(f64::INFINITY);
            relative(a).total_cmp(&relative(b))
        };
        let worst = self.outputs.iter().max_by(by_relative).and_then(OutputReport::worst_in_words);
        let is_only = self.outputs.len() == 1;
        let single = self.outputs.iter().take(MOST_OUTPUTS).filter_map(move |output| output.single_in_words(is_only));
        let more = self.outputs.len().saturating_sub(MOST_OUTPUTS);
        let more = (more > 0).then(|| format!("{}: --json has what was measured", counted(more, "more output")));
        let before = (!self.before_operators.is_empty() && self.delta > 0.0).then(|| {
            let operators = listed(&self.before_operators);
            format!("that is before {operators}, which may make more of a difference, or less")
        });
        before.into_iter().chain(worst).chain(single).chain(more).collect()
    }

    /// Prints it for people.
    pub fn print(&self, compressed: &Compressed, before: &Network, console: &Console) -> Result<()> {
        let out = &mut console.report();
        writeln!(out, "{}: domain {}", one_line(&self.model), self.domain)?;
        if console.is_verbose() && self.before.units > 0 {
            let layers = &compressed.history.layers;
            let reports: Vec<LayerReport> = layers.iter().map(|layer| LayerReport::new(before, layer)).collect();
            let totals = Totals::of(layers.iter().flat_map(|layer| &layer.units));
            stability::print(&reports, &totals, self.steps.stability, console)?;
        }
        if compressed.changed {
            self.print_change(console)?;
        } else {
            writeln!(out, "nothing to remove: {} is the same network, in the same numbers", one_line(&self.output))?;
        }
        for note in self.notes() {
            writeln!(out, "{note}")?;
        }
        for warning in self.warnings() {
            console.warn(warning)?;
        }
        if console.is_verbose() {
            for stays in &self.stays {
                writeln!(out, "stay in {}", stays.named())?;
            }
            let steps = self.steps.named().map(|(step, seconds)| format!("{step} {}", duration(seconds)));
            writeln!(out, "time: {}", listed(steps))?;
        }
        write!(out, "wrote {}", one_line(&self.output))?;
        if let Some(path) = &self.certificate {
            write!(out, ", its certificate {}", one_line(path))?;
        }
        if let Some(path) = &self.report {
            write!(out, ", the report {}", one_line(path))?;
        }
        writeln!(out, "; {} in all", duration(self.seconds))?;
        Ok(())
    }

    fn print_change(&self, console: &Console) -> Result<()> {
        let out = &mut console.report();
        let mut sizes = console.table(&[("", Left), ("before", Right), ("after", Right), ("left", Right)]);
        let widths = |hidden: &[usize]| if hidden.is_empty() { "none".to_owned() } else { listed(hidden) };
        sizes.add_row(["hidden layers", &widths(&self.before.hidden), &widths(&self.after.hidden), ""]);
        for (name, before, after) in self.sizes() {
            sizes.add_row([name, &grouped(before), &grouped(after), &percent(after, before)]);
        }
        writeln!(out, "{sizes}\n")?;
        let removed = self.removed.iter().map(|(rule, &count)| format!("{} {rule}", grouped(count)));
        write!(out, "removed: {}", listed(removed))?;
        if self.carriers > 0 {
            write!(out, "; {} linear functions past their layers", carry(self.carriers))?;
        }
        if self.paths > 0 {
            write!(out, "; {} beside layers, by no ReLU", pass(self.paths))?;
        }
        writeln!(out)?;
        if self.delta == 0.0 {
            let claim = "on the whole domain all outputs are exactly what they were, in real arithmetic";
            writeln!(out, "{}: {claim}", good("proved"))?;
            return self.print_details(out);
        }
        let Parts { approximation, rounding } = self.delta_parts;
        let [approximation, rounding, observed] = [approximation, rounding, self.observed].map(short);
        let delta = upper(self.delta);
        writeln!(out, "{}: on the whole domain no output moves by more than {delta}", good("proved"))?;
        let tolerance = &self.tolerance;
        writeln!(
            out,
            "  {approximation} left out on purpose (--tolerance {tolerance}), {rounding} rounding, and a margin"
        )?;
        match self.observed {
            0.0 => writeln!(out, "  no difference was seen, with twice the digits of doubles")?,
            _ => writeln!(out, "  the largest difference seen is {observed}")?,
        }
        self.print_details(out)
    }

    fn print_details(&self, out: &mut impl Write) -> Result<()> {
        self.details().into_iter().try_for_each(|detail| Ok(writeln!(out, "  {detail}")?))
    }
}

impl Steps {
    /// The steps in their order, and how many seconds each took.
    pub fn named(&self) -> [(&'static str, f64); 6] {
        [
            ("reading", self.reading),
            ("finding stable units", self.stability),
            ("planning", self.planning),
            ("rewriting and checking", self.rewriting_and_checking),
            ("comparing", self.comparing),
            ("certifying", self.certifying),
        ]
    }
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
