//! One picture: the accuracy of every network, beside the paper's means.

use std::fmt::Write;

use super::Way;
use super::paper::{Measure, Setting};
use super::tables::{Line, Tables};

/// The width of the picture.
const WIDTH: f64 = 760.0;
/// Its height.
const HEIGHT: f64 = 420.0;
/// The margin on the left, with the numbers of the axis.
const LEFT: f64 = 64.0;
/// The margin on the right.
const RIGHT: f64 = 16.0;
/// The margin above, with the title.
const TOP: f64 = 56.0;
/// The margin below, with the names of the settings.
const BOTTOM: f64 = 64.0;

/// An SVG with a column of dots for each setting.
pub(super) fn accuracy(tables: &Tables) -> String {
    let axis = PlotAxis::of(tables);
    let mut svg = head(tables);
    axis.draw(&mut svg);
    let width = (WIDTH - LEFT - RIGHT) / tables.lines.len().max(1) as f64;
    for (index, line) in tables.lines.iter().enumerate() {
        let column = PlotColumn { middle: LEFT + (index as f64 + 0.5) * width, width };
        column.draw_networks(&mut svg, &axis, tables, line.setting());
        column.draw_line(&mut svg, &axis, line);
    }
    svg.push_str("</svg>\n");
    svg
}

/// The title, and what the marks are.
fn head(tables: &Tables) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"15\" fill=\"#111\">Test accuracy (%), two hidden layers of n units, {} epochs on {}</text>\n\
         <circle cx=\"{}\" cy=\"38\" r=\"3\" fill=\"#1f6fb2\" fill-opacity=\"0.6\"/><text x=\"{}\" y=\"42\" fill=\"#333\">a network trained by Leo ({} in all)</text>\n\
         <path d=\"M{} 38h20\" stroke=\"#c0392b\" stroke-width=\"2\"/><text x=\"{}\" y=\"42\" fill=\"#333\">the paper's mean over 31</text>\n",
        tables.epochs,
        escaped(&tables.data),
        LEFT + 4.0,
        LEFT + 14.0,
        tables.networks.len(),
        LEFT + 260.0,
        LEFT + 286.0,
    )
}

/// The axis of accuracies, in percent.
struct PlotAxis {
    bottom: f64,
    top: f64,
    step: f64,
}

impl PlotAxis {
    /// From a round number below all that is shown to one above.
    fn of(tables: &Tables) -> Self {
        let paper = tables.lines.iter().map(|line| line.paper.get(Measure::Accuracy).mean);
        let ours = tables.networks.iter().map(|network| network.get(Measure::Accuracy, Way::Leo));
        let (lowest, highest) = paper
            .chain(ours)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
        let step = if highest - lowest > 8.0 { 5.0 } else { 0.5 };
        let (bottom, top) = ((lowest / step).floor() * step, (highest / step).ceil() * step + 0.0);
        Self { bottom, top: if top > bottom { top } else { bottom + step }, step }
    }

    fn y(&self, value: f64) -> f64 {
        TOP + (self.top - value) / (self.top - self.bottom) * (HEIGHT - TOP - BOTTOM)
    }

    fn draw(&self, svg: &mut String) {
        let ticks = ((self.top - self.bottom) / self.step).round() as usize;
        for tick in 0..=ticks {
            let value = self.bottom + tick as f64 * self.step;
            let (at, right) = (self.y(value), WIDTH - RIGHT);
            let _ = writeln!(
                svg,
                "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#333\">{value:.1}</text>",
                LEFT - 8.0,
                at + 4.0
            );
        }
    }
}

/// Where the networks of a setting stand.
struct PlotColumn {
    middle: f64,
    width: f64,
}

impl PlotColumn {
    /// Side by side in the order of their seeds, so that dots do not hide each other.
    fn draw_networks(&self, svg: &mut String, axis: &PlotAxis, tables: &Tables, setting: Setting) {
        let Setting { width, l1 } = setting;
        let networks: Vec<_> = tables.networks.iter().filter(|network| network.setting == setting).collect();
        for (place, network) in networks.iter().enumerate() {
            let value = network.get(Measure::Accuracy, Way::Leo);
            let aside = ((place as f64 + 0.5) / networks.len() as f64 - 0.5) * self.width * 0.5;
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"#1f6fb2\" fill-opacity=\"0.6\"><title>n = {width}, l1 = {l1}, seed {}: {value:.2}</title></circle>",
                self.middle + aside,
                axis.y(value),
                network.seed
            );
        }
    }

    /// The paper's mean, and what the setting is.
    fn draw_line(&self, svg: &mut String, axis: &PlotAxis, line: &Line) {
        let (Setting { width, l1 }, middle) = (line.setting(), self.middle);
        let _ = writeln!(
            svg,
            "<path d=\"M{:.1} {:.1}h{:.1}\" stroke=\"#c0392b\" stroke-width=\"2\"/>\n\
             <text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#333\">n = {width}</text>\n\
             <text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#333\">l1 = {l1}</text>",
            middle - self.width * 0.35,
            axis.y(line.paper.get(Measure::Accuracy).mean),
            self.width * 0.7,
            HEIGHT - BOTTOM + 22.0,
            HEIGHT - BOTTOM + 40.0,
        );
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
