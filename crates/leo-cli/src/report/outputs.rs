//! The proven ranges of the outputs.

use leo::OutputBounds;
use maud::{Markup, html};

use crate::report::stability::{interval, title};
use crate::terminal::number::{lower, upper};
use crate::terminal::output::{counted, grouped};

/// How many elements of an output have a row.
const MOST_ROWS: usize = 400;

pub fn section(outputs: &[OutputBounds]) -> Markup {
    html! {
        @if !outputs.is_empty() {
            section #outputs {
                h2 { "Outputs" }
                p { "On the whole domain, outputs lie within these ranges. Elements are counted from 0." }
                @for output in outputs { (table(output)) }
            }
        }
    }
}

fn table(output: &OutputBounds) -> Markup {
    let elements = output.lower.len();
    let ranges = output.lower.iter().zip(&output.upper).enumerate();
    html! {
        h3 { (title(output)) ", " (counted(elements, "number")) ", within " (interval(output)) }
        details {
            summary { "Every element" @if elements > MOST_ROWS { " of the first " (grouped(MOST_ROWS)) } }
            div .scroll {
                table {
                    thead { tr { th .n { "element" } th { "range" } } }
                    tbody {
                        @for (index, (least, most)) in ranges.clone().take(MOST_ROWS) {
                            tr { td .n { (index) } td { "[" (lower(*least)) ", " (upper(*most)) "]" } }
                        }
                    }
                }
            }
        }
    }
}
