//! One picture: the accuracy of every network, beside the paper's means.

use std::fmt::Write;

use super::Way;
use super::paper::{Measure, Setting};
use super::tables::Tables;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 64.0;

/// An SVG with a column of dots for each setting.
pub(super) fn accuracy(tables: &Tables) -> String {
    let paper = |measure| tables.lines.iter().map(move |line| line.paper.get(measure).mean);
    let ours = tables.networks.iter().map(|network| network.get(Measure::Accuracy, Way::Leo));
    let (lowest, highest) = paper(Measure::Accuracy)
        .chain(ours)
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    let step = if highest - lowest > 8.0 { 5.0 } else { 0.5 };
    let (bottom, top) = ((lowest / step).floor() * step, (highest / step).ceil() * step + 0.0);
    let top = if top > bottom { top } else { bottom + step };
    let y = |value: f64| TOP + (top - value) / (top - bottom) * (HEIGHT - TOP - BOTTOM);
    let column = (WIDTH - LEFT - RIGHT) / tables.lines.len().max(1) as f64;

    let mut svg = format!(
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
    );
    let ticks = ((top - bottom) / step).round() as usize;
    for tick in 0..=ticks {
        let value = bottom + tick as f64 * step;
        let (at, right) = (y(value), WIDTH - RIGHT);
        let _ = writeln!(
            svg,
            "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#ddd\"/><text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#333\">{value:.1}</text>",
            LEFT - 8.0,
            at + 4.0
        );
    }
    for (index, line) in tables.lines.iter().enumerate() {
        let Setting { width, l1 } = line.setting();
        let middle = LEFT + (index as f64 + 0.5) * column;
        let mean = line.paper.get(Measure::Accuracy).mean;
        let networks: Vec<_> = tables.networks.iter().filter(|network| network.setting == line.setting()).collect();
        for (place, network) in networks.iter().enumerate() {
            let value = network.get(Measure::Accuracy, Way::Leo);
            // Side by side in the order of their seeds, so that dots do not hide each other.
            let aside = ((place as f64 + 0.5) / networks.len() as f64 - 0.5) * column * 0.5;
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"#1f6fb2\" fill-opacity=\"0.6\"><title>n = {width}, l1 = {l1}, seed {}: {value:.2}</title></circle>",
                middle + aside,
                y(value),
                network.seed
            );
        }
        let _ = writeln!(
            svg,
            "<path d=\"M{:.1} {:.1}h{:.1}\" stroke=\"#c0392b\" stroke-width=\"2\"/>\n\
             <text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#333\">n = {width}</text>\n\
             <text x=\"{middle:.1}\" y=\"{}\" text-anchor=\"middle\" fill=\"#333\">l1 = {l1}</text>",
            middle - column * 0.35,
            y(mean),
            column * 0.7,
            HEIGHT - BOTTOM + 22.0,
            HEIGHT - BOTTOM + 40.0,
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
