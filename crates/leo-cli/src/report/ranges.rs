//! The proven range of every unit's pre-activation, against zero.

use maud::{Markup, PreEscaped, html};

use super::Page;
use super::units::{Mark, Marks, in_words};
use crate::terminal::number::short;
use crate::terminal::output::{counted, one_line};

/// What is below this part of the largest number of a layer is drawn in proportion; above it, by powers of ten.
const LINEAR_PART: f64 = 1e-3;

/// How thin a bar may be, of 100.
const LEAST_BAR: f64 = 2.5;

pub fn section(page: &Page<'_>, known: &Marks) -> Markup {
    html! {
        section #ranges {
            h2 { "Proven ranges" }
            @if known.layers.is_empty() {
                p { "The network has no ReLU units." }
            } @else {
                p {
                    @if page.network.is_dense() { "A bar is all that a unit's sum can be on the domain, before the ReLU, and a little more. A unit" }
                    @else { "A bar is all that a channel's sums can be on the domain, at any position, before the ReLU, and a little more. A channel" }
                    " whose bar stays below zero is always off; one whose bar stays
                    above zero is always on. Away from zero the scale goes by powers of ten. "
                    @if page.network.is_dense() { "Units" } @else { "Channels" }
                    " are counted from 0, as in JSON and in certificates."
                }
            }
            @for (layer, marks) in page.layers.iter().zip(&known.layers) {
                @let name = one_line(&leo::layer_name(page.network, layer.id));
                h3 { (name) ", " (counted(layer.units.len(), page.noun())) }
                (chart(marks, page.noun()))
                details {
                    summary { @if marks.len() < layer.units.len() { "Its " (page.noun()) "s, some of them together" } @else { "Every " (page.noun()) } }
                    (table(&name, marks, page.noun()))
                }
            }
        }
    }
}

/// One bar a mark, in a drawing that stretches with the page; the numbers beside it do not.
fn chart(marks: &[Mark], noun: &str) -> Markup {
    let scale = Scale::new(marks);
    let bars = marks.iter().enumerate().map(|(place, mark)| {
        let (top, bottom) = (scale.place(mark.upper), scale.place(mark.lower));
        // What is as thin as a line must be seen all the same.
        let (top, height) =
            if bottom - top < LEAST_BAR { ((top + bottom - LEAST_BAR) / 2.0, LEAST_BAR) } else { (top, bottom - top) };
        let class = mark.class();
        format!(
            "<rect class=\"{class}\" data-u=\"{}\" x=\"{}.1\" y=\"{top:.2}\" width=\".8\" height=\"{height:.2}\"/>",
            mark.id, place
        )
    });
    html! {
        div .chart {
            div .ticks { @for tick in scale.ticks() { span style=(format!("top:{:.2}%", scale.place(tick))) { (short(tick)) } } }
            svg role="img" aria-label={ "Proven ranges of the layer's " (noun) "s" } preserveAspectRatio="none" viewBox=(format!("0 0 {} 100", marks.len())) {
                @for tick in scale.ticks() {
                    line .zero[tick == 0.0] x1="0" x2=(marks.len()) y1=(format!("{:.2}", scale.place(tick))) y2=(format!("{:.2}", scale.place(tick))) {}
                }
                @for bar in bars { (PreEscaped(bar)) }
            }
        }
    }
}

fn table(layer: &str, marks: &[Mark], noun: &str) -> Markup {
    let is_done = marks.iter().any(|mark| !mark.became.is_empty());
    html! {
        div .scroll {
            table data-layer=(layer) {
                thead { tr { th .n { (noun) } th { "is" } th { "range" } th { "decided by" } @if is_done { th { "fate" } } } }
                tbody {
                    @for mark in marks {
                        tr id=(mark.id) {
                            td .n { (mark.numbers(noun)) }
                            td { (in_words(mark.status)) }
                            td { (mark.range()) }
                            td { (mark.by) }
                            @if is_done { td { (mark.became) } }
                        }
                    }
                }
            }
        }
    }
}

/// Where numbers lie between the top of a chart, 0, and its bottom, 100.
struct Scale {
    /// Where proportion ends and powers of ten begin.
    knee: f64,
    top: f64,
    bottom: f64,
}

impl Scale {
    fn new(marks: &[Mark]) -> Self {
        let finite = |number: f64| number.clamp(-f64::MAX, f64::MAX);
        let top = finite(marks.iter().map(|mark| mark.upper).fold(0.0, f64::max));
        let bottom = finite(marks.iter().map(|mark| mark.lower).fold(0.0, f64::min));
        let largest = top.max(-bottom);
        let knee = if largest > 0.0 { 10f64.powf((largest * LINEAR_PART).log10().floor()) } else { 1.0 };
        Self { knee, top, bottom }
    }

    fn bent(&self, number: f64) -> f64 {
        (number.abs() / self.knee).ln_1p().copysign(number)
    }

    fn place(&self, number: f64) -> f64 {
        let [top, bottom, number] = [self.top, self.bottom, number.clamp(self.bottom, self.top)].map(|x| self.bent(x));
        // A little room above and below.
        if top > bottom { 4.0 + 92.0 * (top - number) / (top - bottom) } else { 50.0 }
    }

    /// Zero, and powers of ten far enough from each other.
    fn ticks(&self) -> Vec<f64> {
        let powers = [1e1, 1e2, 1e3, 1e4].map(|factor| factor * self.knee);
        let all = powers.iter().copied().chain(powers.iter().map(|power| -power));
        let mut ticks = vec![0.0];
        let mut far: Vec<f64> = all.filter(|tick| (self.bottom..=self.top).contains(tick)).collect();
        far.sort_by(|a, b| b.abs().total_cmp(&a.abs()));
        for tick in far {
            if ticks.iter().all(|&other| (self.place(tick) - self.place(other)).abs() >= 10.0) {
                ticks.push(tick);
            }
        }
        ticks
    }
}
