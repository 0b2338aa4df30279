//! A small network: every unit a circle, every weight that is not 0 a line.

use leo_network::op::{Action, Op, Sums};
use leo_network::{Network, ValueId};
use maud::{Markup, PreEscaped, html};

use super::grid::mark;
use super::network::{Shown, UnitMark, inputs, outputs};
use super::stages::ending;
use crate::terminal::output::one_line;

/// The most units of a layer that can be told apart.
const MOST_UNITS: usize = 12;
/// The most layers that can be told apart.
const MOST_LAYERS: usize = 6;
/// The radius of a unit.
const RADIUS: usize = 12;
/// From one layer to the next.
const COLUMN: usize = 120;
/// From one unit to the next.
const ROW: usize = 38;
/// Room for what stands below a column.
const CAPTION: usize = 26;
/// How many characters of it fit.
const LONGEST_CAPTION: usize = 16;

/// For each unit of a layer, which units of the one before it reads; nothing if that is not known.
pub type Wires = Option<Vec<Vec<bool>>>;

/// If each layer reads the one before and nothing else, and the only output reads the last one: how. The last are the
/// output's.
pub fn wires(network: &Network) -> Option<Vec<Wires>> {
    let &[output] = network.outputs() else { return None };
    let targets = network.layers().map(|layer| network.pre_activation(layer)).chain([output]);
    let sources = [ValueId::INPUT].into_iter().chain(network.layers().map(|layer| network.output_of(layer)));
    targets.zip(sources).map(|(target, source)| between(network, target, source)).collect()
}

fn between(network: &Network, target: ValueId, source: ValueId) -> Option<Wires> {
    let width = network.shape(target).elements();
    let identity = || (0..width).map(|to| (0..width).map(|from| from == to).collect()).collect();
    // Nobody can follow the lines of wide layers.
    let mut wires: Wires = (width <= MOST_UNITS).then(identity);
    let mut value = target;
    while value != source {
        let node = &network.nodes()[value.node()?];
        match node.op() {
            Op::Activation(_) | Op::Sum(_) | Op::Concat(_) | Op::MaxPool(_) => return None,
            Op::Affine(map) => match map.action(network.shape(node.operands()[0])) {
                Action::Sums(sums) => wires = wires.map(|wires| through(&wires, &sums)),
                Action::Move(moves) if !moves.is_in_order() => wires = None,
                Action::Move(_) | Action::Each(..) => {}
            },
        }
        value = node.operands()[0];
    }
    Some(wires)
}

/// What reads something, and that by these sums.
fn through(wires: &[Vec<bool>], sums: &Sums<'_>) -> Vec<Vec<bool>> {
    let reads = |unit: &Vec<bool>| {
        let mut reads = vec![false; sums.inputs()];
        for (output, _) in unit.iter().enumerate().filter(|(_, reads)| **reads) {
            sums.terms(output).for_each(|(input, weight)| reads[input] |= weight != 0.0);
        }
        reads
    };
    wires.iter().map(reads).collect()
}

/// Whether its units can be told apart in a drawing.
pub fn is_small(network: &Network) -> bool {
    let hidden = network.hidden();
    hidden.len() <= MOST_LAYERS && hidden.iter().all(|&width| width <= MOST_UNITS)
}

/// What stands in a column.
enum GraphColumn<'a> {
    Dots(Vec<&'a UnitMark>),
    Ends(usize),
    /// Too many inputs or outputs to draw.
    Box,
}

impl GraphColumn<'_> {
    fn ends(count: usize) -> Self {
        if count <= MOST_UNITS { Self::Ends(count) } else { Self::Box }
    }

    fn len(&self) -> usize {
        match self {
            Self::Dots(dots) => dots.len(),
            Self::Ends(count) => *count,
            Self::Box => 1,
        }
    }

    /// How many rows it needs.
    fn height(&self) -> usize {
        if matches!(self, Self::Box) { 2 } else { self.len() }
    }

    fn is_gone(&self, row: usize) -> bool {
        matches!(self, Self::Dots(dots) if dots[row].class.contains("gone"))
    }
}

/// Draws a network.
pub fn draw(shown: &Shown<'_>) -> Markup {
    let network = shown.network;
    let outputs_of = |value: &ValueId| network.shape(*value).elements();
    let mut columns = vec![GraphColumn::ends(network.input().elements())];
    columns.extend(shown.layers.iter().map(|dots| GraphColumn::Dots(dots.iter().collect())));
    columns.push(GraphColumn::ends(network.outputs().iter().map(outputs_of).sum()));
    let tallest = columns.iter().map(GraphColumn::height).max().unwrap_or(1);
    let (width, height) = (columns.len() * COLUMN, tallest * ROW + CAPTION + 8);
    let x = |column: usize| column * COLUMN + COLUMN / 2;
    let y = |column: usize, row: usize| ROW / 2 + 4 + ((tallest - columns[column].len()) * ROW) / 2 + row * ROW;
    let names: Vec<String> = network.layers().map(|layer| one_line(&leo::layer_name(network, layer))).collect();
    let caption = |column: usize| match column {
        0 => inputs(network),
        last if last == columns.len() - 1 => outputs(network),
        column => names.get(column - 1).map_or_else(String::new, |name| ending(name, LONGEST_CAPTION)),
    };
    let wires = wires(network).unwrap_or_default();
    html! {
        svg .graph role="img" aria-label="The network's units and weights" width=(width) height=(height) viewBox=(format!("0 0 {width} {height}")) {
            @for (index, wires) in wires.iter().enumerate() {
                @for (from, to) in lines(&columns[index], &columns[index + 1], wires) {
                    @let is_dim = columns[index].is_gone(from) || columns[index + 1].is_gone(to);
                    line .dim[is_dim] x1=(x(index)) y1=(y(index, from)) x2=(x(index + 1)) y2=(y(index + 1, to)) {}
                }
            }
            @for (index, column) in columns.iter().enumerate() {
                @match column {
                    GraphColumn::Box => rect .io x=(x(index) - 10) y=(y(index, 0) - 30) width="20" height="60" rx="4" {},
                    GraphColumn::Ends(count) => @for row in 0..*count {
                        circle .io cx=(x(index)) cy=(y(index, row)) r=(RADIUS / 2) {}
                    },
                    GraphColumn::Dots(dots) => @for (row, dot) in dots.iter().enumerate() {
                        (PreEscaped(mark(dot, (x(index), y(index, row)), RADIUS)))
                        @if let Some(number) = dot.number {
                            text .number.light[dot.class.starts_with("u on")] x=(x(index)) y=(y(index, row) + 4) { (number) }
                        }
                    }
                }
                text .caption x=(x(index)) y=(height - 8) { (caption(index)) }
            }
        }
    }
}

/// Which rows of two columns are connected.
fn lines(before: &GraphColumn<'_>, after: &GraphColumn<'_>, wires: &Wires) -> Vec<(usize, usize)> {
    let reads = |from: usize, to: usize| match (wires, before, after) {
        (None, ..) | (_, GraphColumn::Box, _) | (.., GraphColumn::Box) => true,
        (Some(wires), ..) => wires[to].get(from).copied().unwrap_or(true),
    };
    let pairs = (0..after.len()).flat_map(|to| (0..before.len()).map(move |from| (from, to)));
    pairs.filter(|&(from, to)| reads(from, to)).collect()
}
