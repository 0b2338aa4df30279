//! The report: one page of HTML that needs nothing else, no server, no network.
//!
//! What it shows of a unit stands once, as a row of a table (`units.rs`); the drawing of the network (`network.rs`) and
//! the ranges (`ranges.rs`) point to that row, and a script of a few lines shows it where the pointer is. Without the
//! script everything is there still, in the tables.

mod channels;
mod graph;
mod grid;
mod network;
mod outputs;
mod ranges;
pub mod stability;
mod stages;
mod units;

use leo::StagesReport;
use leo_compress::{History, Staying};
use leo_network::Network;
use leo_stability::Layer;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::terminal::number::{duration, percent, short, upper};
use crate::terminal::output::{counted, grouped, one_line};
use network::Picture;
use units::Marks;

/// What the page is about.
pub struct Page<'a> {
    /// The name of the file.
    pub model: String,
    /// The command that made the page.
    pub command: String,
    /// The domain, in words.
    pub domain: String,
    pub network: &'a Network,
    /// What is known of its units.
    pub layers: &'a [Layer],
    /// Of a network with convolutions, its stages, and what each takes of a device.
    pub stages: StagesReport,
    /// What is known of its outputs, if that was asked for.
    pub outputs: &'a [leo::OutputBounds],
    /// What was done to it, if something was to be.
    pub outcome: Option<ReportedChange<'a>>,
    /// What nobody should miss.
    pub warnings: Vec<String>,
    /// What else there is to say.
    pub notes: Vec<String>,
    /// The steps, and how many seconds each took.
    pub steps: Vec<(&'static str, f64)>,
    /// How many seconds it took in all.
    pub seconds: f64,
}

/// What a network has become.
pub struct ReportedChange<'a> {
    pub network: &'a Network,
    pub history: &'a History,
    /// Stable units that are still there, and why.
    pub staying: &'a [Staying],
    pub changed: bool,
    /// Proved: no output moves by more.
    pub delta: f64,
    /// How much of it was left out on purpose, and how much is rounding.
    pub parts: [f64; 2],
    /// The largest difference seen.
    pub observed: f64,
    /// More numbers, in sentences.
    pub details: Vec<String>,
    /// What is measured, before and after.
    pub sizes: Vec<(&'static str, usize, usize)>,
    /// The two files, each with its SHA-256.
    pub files: [(String, String); 2],
    /// The file that holds the certificate, if it was written.
    pub certificate: Option<String>,
    /// The command that checks it.
    pub check: Option<String>,
}

impl Page<'_> {
    /// The page.
    pub fn render(&self) -> String {
        let known = Marks::new(self);
        let picture = Picture { page: self, known: &known };
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    // Nothing is ever fetched, whatever a file's names may try.
                    meta http-equiv="Content-Security-Policy"
                        content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";
                    meta name="color-scheme" content="light dark";
                    meta name="generator" content={ "Leo " (env!("CARGO_PKG_VERSION")) };
                    title { (one_line(&self.model)) ": Leo" }
                    style { (PreEscaped(include_str!("style.css"))) }
                }
                body {
                    (self.head(&known))
                    main {
                        (picture.section())
                        (stages::section(self, &known))
                        (ranges::section(self, &known))
                        (outputs::section(self.outputs))
                        (self.removed())
                        (self.sizes())
                        (self.time())
                        (self.proof())
                        section {
                            h2 { "The command" }
                            pre { code { (self.command) } }
                        }
                    }
                    footer { p { "Made by Leo " (env!("CARGO_PKG_VERSION")) ". This page is complete in itself and fetches nothing." } }
                    div #tip role="tooltip" hidden {}
                    script { (PreEscaped(include_str!("script.js"))) }
                }
            }
        };
        page.into_string()
    }

    fn units(&self) -> usize {
        self.layers.iter().map(|layer| layer.units.len()).sum()
    }

    /// What its units are: whole channels in a network with convolutions.
    fn noun(&self) -> &'static str {
        if self.network.is_dense() { "unit" } else { "channel" }
    }

    fn head(&self, known: &Marks) -> Markup {
        let counts = known.count();
        html! {
            header {
                p .brand { "Leo" }
                @match &self.outcome {
                    Some(outcome) if outcome.changed => {
                        h1 { (counted(self.units(), self.noun())) " became " (outcome.units()) }
                        p .lede { (outcome.verdict()) }
                    }
                    Some(_) => {
                        h1 { "Nothing to remove" }
                        p .lede { "All " (counted(self.units(), self.noun())) " stay, and so does every number." }
                    }
                    None if self.units() == 0 => h1 { "No ReLU units" },
                    None => {
                        h1 { (counted(counts.stable(), &format!("stable {}", self.noun()))) " of " (grouped(self.units())) }
                        p .lede {
                            "A stable " (self.noun()) " is always on, or always off, "
                            @if !self.network.is_dense() { "at every position, " }
                            "on the whole domain"
                            @if self.layers.iter().flat_map(|layer| &layer.units).any(|unit| unit.trusted) { "." } @else { ": proved." }
                        }
                    }
                }
                p { b { (one_line(&self.model)) } ", domain: " (self.domain) }
                @for warning in &self.warnings { p .warning { (warning) } }
                @for note in &self.notes { p .note { (note) } }
                ul .tiles {
                    @match &self.outcome {
                        Some(outcome) => {
                            @for &(name, before, after) in &outcome.sizes {
                                li {
                                    span { (name) }
                                    b { @if before == after { (grouped(after)) } @else { (grouped(before)) " → " (grouped(after)) } }
                                    @if before != after { span { (percent(after, before)) " left" } }
                                }
                            }
                            li { span { "delta, proved" } b { (upper(outcome.delta)) } span { (short(outcome.observed)) " seen" } }
                        }
                        None => @for (name, number) in counts.named() {
                            li { span { (name) } b { (grouped(number)) } span { (percent(number, self.units())) } }
                        }
                    }
                }
            }
        }
    }

    fn removed(&self) -> Markup {
        let Some(outcome) = self.outcome.as_ref().filter(|outcome| outcome.changed) else { return html! {} };
        let carriers = outcome.history.carriers();
        html! {
            section {
                h2 { "What went, and why" }
                table {
                    tbody {
                        tr { td { (self.noun()) "s before" } td .n { (grouped(self.units())) } }
                        @for (rule, count) in outcome.history.by_rule() {
                            tr { td { (units::what_became(rule).1) } td .n { "− " (grouped(count)) } }
                        }
                        @if carriers > 0 {
                            tr { td { "new: always on, to carry linear functions past their layers" } td .n { "+ " (grouped(carriers)) } }
                        }
                    }
                    tfoot { tr { td { (self.noun()) "s after" } td .n { (outcome.units()) } } }
                }
                p .note { "What these words mean, with examples: docs/removal.md." }
                @if outcome.history.paths > 0 {
                    p .note { "Beside layers, by no ReLU: " (counted(outcome.history.paths, "linear function")) "." }
                }
            }
        }
    }

    fn sizes(&self) -> Markup {
        let Some(outcome) = &self.outcome else { return html! {} };
        html! {
            section {
                h2 { "Sizes" }
                p .note {
                    "Bytes are those of an ONNX file with all its weights in it, not packed."
                    @if !self.stages.is_empty() { " Activations are the numbers that are there at once, at the most, while a sample is computed." }
                }
                table .bars {
                    thead { tr { th { "" } th .n { "before" } th .n { "after" } th .n { "left" } th {} } }
                    tbody {
                        @for &(name, before, after) in &outcome.sizes {
                            tr {
                                td { (name) }
                                td .n { (grouped(before)) }
                                td .n { (grouped(after)) }
                                td .n { (percent(after, before)) }
                                td .bar { (bar(after as f64 / before.max(1) as f64)) }
                            }
                        }
                    }
                }
            }
        }
    }

    fn time(&self) -> Markup {
        html! {
            section {
                h2 { "Time" }
                table .bars {
                    tbody {
                        @for &(step, seconds) in &self.steps {
                            tr { td { (step) } td .n { (duration(seconds)) } td .bar { (bar(seconds / self.seconds)) } }
                        }
                    }
                    tfoot { tr { td { "all" } td .n { (duration(self.seconds)) } td {} } }
                }
            }
        }
    }

    fn proof(&self) -> Markup {
        let Some(outcome) = &self.outcome else { return html! {} };
        html! {
            section {
                h2 { "The proof" }
                @if outcome.delta == 0.0 {
                    p { "On the whole domain all outputs are exactly what they were, in real arithmetic." }
                } @else {
                    p {
                        "On the whole domain no output moves by more than " b { (upper(outcome.delta)) } ". Of that "
                        (short(outcome.parts[0])) " was left out on purpose and " (short(outcome.parts[1]))
                        " is the rounding of weights; the rest is a margin. The largest difference seen is " (short(outcome.observed)) "."
                    }
                }
                @if !outcome.details.is_empty() {
                    ul { @for detail in &outcome.details { li { (detail) } } }
                }
                p { "The certificate was checked, before anything was written, against these two files (their SHA-256, unpacked if they are gzip):" }
                dl {
                    @for (name, sha256) in &outcome.files { dt { (one_line(name)) } dd { code { (sha256) } } }
                }
                @if let (Some(certificate), Some(check)) = (&outcome.certificate, &outcome.check) {
                    p { "It is in " b { (one_line(certificate)) } ". To check it again, trusting nobody:" }
                    pre { code { (check) } }
                }
            }
        }
    }
}

impl ReportedChange<'_> {
    fn units(&self) -> String {
        grouped(self.network.hidden().iter().sum())
    }

    fn verdict(&self) -> Markup {
        html! {
            @if self.delta == 0.0 {
                "All outputs are exactly what they were, on the whole domain, in real arithmetic. "
            } @else {
                "No output moves by more than " b { (upper(self.delta)) } ", on the whole domain. "
            }
            span .good { "Proved, and the proof was checked." }
        }
    }
}

/// A part of 1, as a bar.
fn bar(part: f64) -> Markup {
    html! { i style=(format!("width:{:.1}%", 100.0 * part.clamp(0.0, 1.0))) {} }
}
