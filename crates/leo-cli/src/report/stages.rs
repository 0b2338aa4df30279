//! What each stage of a network with convolutions takes of a device, before and after.

use leo::StageReport;
use leo_stability::Status;
use maud::{Markup, html};

use super::Page;
use super::channels::listed_by_x;
use super::units::{Counts, Marks, in_words};
use crate::terminal::output::{grouped, one_line};

/// How many characters of a name are shown: the last ones, which tell it from others.
const LONGEST_NAME: usize = 32;

pub fn section(page: &Page<'_>, known: &Marks) -> Markup {
    let stages = &page.stages;
    let is_done = page.outcome.is_some();
    let counts = |stage: &StageReport| stage.layer.map(|layer| Counts::of(&known.layers[layer]));
    let sum = |of: fn(&StageReport) -> [usize; 2]| {
        stages.all.iter().map(of).fold([0; 2], |[before, after], [b, a]| [before + b, after + a])
    };
    let channels = stages.all.iter().filter(|stage| stage.layer.is_some()).map(|stage| stage.channels);
    let channels = channels.fold([0; 2], |[before, after], [b, a]| [before + b, after + a]);
    html! {
        @if !stages.is_empty() {
            section #stages {
                h2 { "What each stage takes" }
                p {
                    "A stage is an operator with what treats its numbers one by one, as a ReLU does. Weights are counted with biases; bytes are those of what a stage hands on, for one sample. "
                    "At the bottom, bytes are those of all values that are there at once, at the most, if they are computed in this order and dropped as soon as nobody needs them: what a device has to have room for besides the weights."
                }
                div .scroll .whole {
                    table {
                        thead {
                            tr {
                                th .n { "" } th { "stage" } th .n { "shape" } th .n { "channels" }
                                @for status in KINDS { th .n { (in_words(status)) } }
                                th .n { "weights" } th .n { "multiply-adds" } th .n { "bytes" }
                            }
                        }
                        tbody {
                            @for (index, stage) in stages.all.iter().enumerate() {
                                tr {
                                    td .n { (index) }
                                    td title=(one_line(&stage.name)) {
                                        (stage.operator) br; span .note { (ending(&one_line(&stage.name), LONGEST_NAME)) }
                                    }
                                    td .n { (shape(stage)) }
                                    td .n { (change(stage.channels, is_done)) }
                                    (kinds(counts(stage)))
                                    td .n { (change(stage.parameters, is_done)) }
                                    td .n { (change(stage.multiply_adds, is_done)) }
                                    td .n { (change(stage.activation_bytes, is_done)) }
                                }
                            }
                        }
                        tfoot {
                            tr {
                                td {} td { "all" } td {}
                                td .n { (change(channels, is_done)) }
                                (kinds(Some(known.count())))
                                td .n { (change(sum(|stage| stage.parameters), is_done)) }
                                td .n { (change(sum(|stage| stage.multiply_adds), is_done)) }
                                td .n { (change(stages.peak_activation_bytes, is_done)) " at once" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The kinds of channels, in the order of the table.
const KINDS: [Status; 4] = [Status::OFF, Status::ON, Status::Unstable, Status::Undecided];

fn kinds(counts: Option<Counts>) -> Markup {
    html! { @for status in KINDS { td .n { @if let Some(counts) = counts { (grouped(counts.with(status))) } } } }
}

/// `16x48x48`: channels, and positions along each axis.
fn shape(stage: &StageReport) -> String {
    let channels: Vec<usize> = stage.channels.into_iter().take(1).filter(|count| *count > 0).collect();
    listed_by_x(&[channels, stage.positions.clone()].concat())
}

/// What a number was, and what it is, in one line or two; nothing where there is none of it.
fn change([before, after]: [usize; 2], is_done: bool) -> String {
    match (before, is_done && before != after) {
        (0, _) => String::new(),
        (_, false) => grouped(before),
        (_, true) => format!("{} →\u{a0}{}", grouped(before), grouped(after)),
    }
}

/// The end of a long name.
pub fn ending(name: &str, longest: usize) -> String {
    let cut = name.chars().count().saturating_sub(longest);
    if cut == 0 {
        name.to_owned()
    } else {
        name.chars().skip(cut + 1).fold("…".to_owned(), |text, c| text + &c.to_string())
    }
}
