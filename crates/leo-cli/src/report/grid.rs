//! A network of wide layers: for each layer a block of dots, those of a kind side by side.

use maud::{Markup, PreEscaped, html};

use super::network::{About, Shown, UnitMark, inputs, outputs};
use super::units::MOST_MARKS;
use crate::terminal::output::{counted, grouped};

/// The distance between two dots.
const PITCH: usize = 11;

/// Draws a network; with arrows between the layers if each reads the one before.
pub fn draw(shown: &Shown<'_>, is_chain: bool) -> Markup {
    let widths = shown.network.hidden();
    html! {
        div .blocks {
            div .block { div .end { (inputs(shown.network)) } (arrow(is_chain)) }
            @for (dots, width) in shown.layers.iter().zip(widths) {
                div .block { div .layer { (block(dots)) span .width { (grouped(width)) } } (arrow(is_chain)) }
            }
            div .block { div .end { (outputs(shown.network)) } }
        }
    }
}

fn arrow(is_chain: bool) -> Markup {
    html! { span .arrow aria-hidden="true" { @if is_chain { "→" } } }
}

fn block(dots: &[UnitMark]) -> Markup {
    let columns = (dots.len() as f64).sqrt().ceil() as usize;
    let rows = dots.len().div_ceil(columns.max(1));
    let place = |index: usize| (index % columns * PITCH + PITCH / 2 + 1, index / columns * PITCH + PITCH / 2 + 1);
    let (width, height) = (columns * PITCH + 1, rows * PITCH + 1);
    html! {
        svg role="img" aria-label=(counted(dots.len(), "unit")) width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) {
            @for (index, dot) in dots.iter().enumerate() { (PreEscaped(mark(dot, place(index), 4))) }
        }
    }
}

/// A dot alone, for the legend.
pub fn sample(class: &str) -> Markup {
    let dot = UnitMark { class: class.to_owned(), about: About::Nothing, number: None };
    html! { svg aria-hidden="true" width="14" height="14" viewBox="0 0 14 14" { (PreEscaped(mark(&dot, (7, 7), 5))) } }
}

/// A dot around a point: a circle, struck out if the unit is gone; with a dot in it, or half of it filled, if it could
/// go but for its number, or but for others.
pub fn mark(dot: &UnitMark, (x, y): (usize, usize), radius: usize) -> String {
    let about = match &dot.about {
        About::Row(row) => format!(" data-u=\"{row}\""),
        About::Text(text) => format!(" data-tip=\"{text}\""),
        About::Nothing => String::new(),
    };
    let (class, r) = (&dot.class, radius);
    let ring =
        if class.contains("carrier") { format!("<circle class=\"ring\" r=\"{}\"/>", r / 2) } else { String::new() };
    let strike = match class {
        class if class.contains("removed") => {
            let r = 0.72 * r as f64;
            format!("<path d=\"M-{r:.1}-{r:.1}L{r:.1} {r:.1}M-{r:.1} {r:.1}L{r:.1}-{r:.1}\"/>")
        }
        class if class.contains("merged") => format!("<path d=\"M-{r} 0H{r}\"/>"),
        class if class.contains("aligned") => format!("<circle class=\"core\" r=\"{:.1}\"/>", 0.45 * r as f64),
        class if class.contains("tied") => format!("<path class=\"core\" d=\"M0-{r}A{r} {r} 0 0 1 0 {r}\"/>"),
        _ => String::new(),
    };
    format!("<g class=\"{class}\"{about} transform=\"translate({x} {y})\"><circle r=\"{r}\"/>{ring}{strike}</g>")
}

/// Dots side by side that look alike, several of them as one where there are very many.
pub fn binned(dots: Vec<UnitMark>, noun: &str) -> Vec<UnitMark> {
    let size = dots.len().div_ceil(MOST_MARKS);
    if size <= 1 {
        return dots;
    }
    let groups = dots.chunk_by(|a, b| a.class == b.class).flat_map(|alike| alike.chunks(size));
    let merged = |group: &[UnitMark]| UnitMark {
        class: group[0].class.clone(),
        about: About::Text(counted(group.len(), noun)),
        number: None,
    };
    groups.map(merged).collect()
}
