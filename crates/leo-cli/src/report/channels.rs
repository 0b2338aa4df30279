//! A network with convolutions: a row for each stage, from the input down to the outputs, with a dot for each channel;
//! and beside the rows a rail, which leads from each stage to those that read it.
//!
//! Most stages read the one above: that is a line from dot to dot. What is read further down, because branches are
//! added up or put beside each other, goes past the stages between on a lane of its own, as branches do in drawings of
//! version histories. Each row draws its own part of the rail, as high as the row is, so that rows may be of any
//! height, and wrap in narrow windows.

use leo::{StageReport, StagesReport};
use maud::{Markup, PreEscaped, html};

use super::grid::{binned, mark};
use super::network::{About, Shown, UnitMark, inputs, outputs};
use crate::terminal::output::{counted, listed, one_line};

/// How many dots a row has before it goes on below.
const DOTS: usize = 64;
/// From one dot to the next.
const PITCH: usize = 7;
/// The radius of a dot.
const RADIUS: usize = 3;
/// From one lane of the rail to the next.
const LANE: usize = 9;
/// How far below the top of a row its point on the rail is.
const POINT: usize = 12;

/// Draws a network: as it was, or, if `is_after`, as it is.
pub fn draw(shown: &Shown<'_>, stages: &StagesReport, is_after: bool) -> Markup {
    let rails = Rails::new(stages);
    let ends = format!("outputs: {}", outputs(shown.network));
    html! {
        div .stages {
            @for (index, stage) in stages.all.iter().enumerate() {
                div .stage {
                    (rails.part(index))
                    div .about {
                        (title(shown, stage, index, is_after))
                        @match stage.layer.map(|layer| &shown.layers[layer]) {
                            Some(dots) => (row(dots)),
                            None if is_linear(stage) => (row(&binned(plain(stage, is_after), "channel"))),
                            None => {}
                        }
                    }
                }
            }
            div .stage { (rails.part(stages.all.len())) div .about { p .what { (ends) } } }
        }
    }
}

/// Whether it has weights for pairs of channels, and no ReLU.
pub fn is_linear(stage: &StageReport) -> bool {
    stage.layer.is_none() && stage.parameters[0] > 0 && stage.multiply_adds[0] > 0
}

/// What a stage is, in a line: its number, its operator, how many channels it makes, at how many positions.
fn title(shown: &Shown<'_>, stage: &StageReport, index: usize, is_after: bool) -> Markup {
    let name = one_line(&stage.name);
    let channels = counted(stage.channels[usize::from(is_after)], "channel");
    html! {
        p .what data-tip=[(!name.is_empty()).then_some(&name)] {
            @if stage.channels[0] == 0 { (inputs(shown.network)) } @else { span .number { (index) } " " b { (stage.operator) } ", " (channels) }
            (positions(stage))
        }
    }
}

fn positions(stage: &StageReport) -> String {
    match stage.positions.as_slice() {
        [] => String::new(),
        positions => format!(" of {}", listed_by_x(positions)),
    }
}

/// `3x3`.
pub fn listed_by_x(numbers: &[usize]) -> String {
    listed(numbers).replace(", ", "x")
}

/// Channels of which nothing is known but how many there are, and how many go.
fn plain(stage: &StageReport, is_after: bool) -> Vec<UnitMark> {
    let [before, after] = stage.channels;
    let dot = |channel: usize| {
        let (class, text) = match channel < after {
            true => ("u plain", "a channel without a ReLU"),
            false => ("u plain gone removed", "a channel without a ReLU: removed"),
        };
        UnitMark { class: class.to_owned(), about: About::Text(text.to_owned()), number: None }
    };
    (0..if is_after { after } else { before }).map(dot).collect()
}

/// The channels of a stage, those of a kind side by side.
fn row(dots: &[UnitMark]) -> Markup {
    let place = |index: usize| (index % DOTS * PITCH + PITCH / 2 + 1, index / DOTS * PITCH + PITCH / 2 + 1);
    let (width, height) = (dots.len().min(DOTS) * PITCH + 1, dots.len().div_ceil(DOTS) * PITCH + 1);
    html! {
        svg role="img" aria-label=(counted(dots.len(), "channel")) width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) {
            @for (index, dot) in dots.iter().enumerate() { (PreEscaped(mark(dot, place(index), RADIUS))) }
        }
    }
}

/// What leads past stages.
struct Branch {
    from: usize,
    /// The stages further down that read it, in their order.
    to: Vec<usize>,
    lane: usize,
}

/// The rail beside the rows. The outputs are a row more.
struct Rails {
    /// For each row, whether it reads the one above.
    reads_above: Vec<bool>,
    branches: Vec<Branch>,
    lanes: usize,
}

impl Rails {
    fn new(stages: &StagesReport) -> Self {
        let reads: Vec<&Vec<usize>> = stages.all.iter().map(|stage| &stage.reads).chain([&stages.outputs]).collect();
        let reads_above = reads.iter().enumerate().map(|(row, reads)| row > 0 && reads.contains(&(row - 1))).collect();
        let mut branches: Vec<Branch> = Vec::new();
        for from in 0..stages.all.len() {
            let to: Vec<usize> = (from + 2..reads.len()).filter(|&row| reads[row].contains(&from)).collect();
            if !to.is_empty() {
                let is_free = |lane: &usize| {
                    let mut taken = branches.iter().filter(|branch| branch.lane == *lane);
                    taken.all(|branch| branch.to.last().is_none_or(|&last| last <= from))
                };
                let lane = (1..).find(is_free).unwrap_or(1);
                branches.push(Branch { from, to, lane });
            }
        }
        let lanes = 1 + branches.iter().map(|branch| branch.lane).max().unwrap_or(0);
        Self { reads_above, branches, lanes }
    }

    /// The part of it that is beside a row.
    fn part(&self, row: usize) -> Markup {
        let x = |lane: usize| (self.lanes - 1 - lane) * LANE + LANE / 2 + 1;
        let (mine, width) = (x(0), self.lanes * LANE);
        let is_read_below = self.reads_above.get(row + 1).is_some_and(|reads| *reads);
        let past =
            self.branches.iter().filter(|branch| branch.from < row && branch.to.last().is_some_and(|&to| row < to));
        let into = self.branches.iter().filter(|branch| branch.to.contains(&row));
        let out = self.branches.iter().filter(|branch| branch.from == row);
        html! {
            div .rail style=(format!("width:{width}px")) {
                svg aria-hidden="true" {
                    @if self.reads_above[row] { line x1=(mine) x2=(mine) y1="0" y2=(POINT) {} }
                    @if is_read_below { line x1=(mine) x2=(mine) y1=(POINT) y2="100%" {} }
                    @for x in past.map(|branch| x(branch.lane)) { line x1=(x) x2=(x) y1="0" y2="100%" {} }
                    @for x in into.map(|branch| x(branch.lane)) { path d=(format!("M{x} 0Q{x} {POINT} {mine} {POINT}")) {} }
                    @for x in out.map(|branch| x(branch.lane)) {
                        path d=(format!("M{mine} {POINT}Q{x} {POINT} {x} {}", 2 * POINT)) {}
                        line x1=(x) x2=(x) y1=(2 * POINT) y2="100%" {}
                    }
                    circle cx=(mine) cy=(POINT) r="3" {}
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_have_lanes_of_their_own_while_they_last() {
        let stage = |reads: &[usize]| StageReport {
            name: String::new(),
            operator: String::new(),
            layer: None,
            reads: reads.to_vec(),
            positions: Vec::new(),
            channels: [1; 2],
            parameters: [0; 2],
            multiply_adds: [0; 2],
            activation_bytes: [0; 2],
        };
        // A residual sum (3 reads 1 and 2), a branch within it, and another one behind it.
        let all = [&[][..], &[0], &[1], &[1, 2], &[0, 3], &[4], &[4, 5]].map(stage).to_vec();
        let stages = StagesReport { all, outputs: vec![6], peak_activation_bytes: [0; 2] };
        let rails = Rails::new(&stages);
        assert_eq!(rails.reads_above, [false, true, true, true, true, true, true, true]);
        let branches: Vec<_> = rails.branches.iter().map(|branch| (branch.from, &branch.to[..], branch.lane)).collect();
        assert_eq!(branches, [(0, &[4][..], 1), (1, &[3], 2), (4, &[6], 1)]);
        assert_eq!(rails.lanes, 3);
    }
}
