//! One picture with two panels: the time of the analysis over width and over depth, both axes logarithmic.

use std::fmt::Write;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 368.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 80.0;
const BOTTOM: f64 = 48.0;
/// Between the panels, and between a panel's edge and its outermost dots.
const GAP: f64 = 32.0;
const INSET: f64 = 24.0;
/// How wide a panel is.
const ACROSS: f64 = (WIDTH - LEFT - GAP - RIGHT) / 2.0;

/// One network.
pub struct Dot {
    pub size: f64,
    /// In seconds.
    pub time: f64,
    pub stopped: bool,
    pub name: String,
}

/// `time = factor * size^exponent`, by least squares in the logarithms.
pub struct Fit {
    pub exponent: f64,
    pub factor: f64,
    pub r_squared: f64,
}

/// The networks that differ in one size.
pub struct Panel {
    pub title: &'static str,
    /// What that size is.
    pub by: &'static str,
    pub dots: Vec<Dot>,
    pub fit: Fit,
}

impl Fit {
    /// None if all sizes are the same.
    pub fn of(dots: &[Dot]) -> Option<Self> {
        let mean = |value: &dyn Fn(&Dot) -> f64| dots.iter().map(value).sum::<f64>() / dots.len() as f64;
        let (x, y) = (mean(&|dot| dot.size.ln()), mean(&|dot| dot.time.ln()));
        let xx = mean(&|dot| (dot.size.ln() - x).powi(2));
        let xy = mean(&|dot| (dot.size.ln() - x) * (dot.time.ln() - y));
        let yy = mean(&|dot| (dot.time.ln() - y).powi(2));
        let exponent = xy / xx;
        (xx > 0.0).then(|| Self { exponent, factor: (y - exponent * x).exp(), r_squared: xy * xy / (xx * yy) })
    }

    fn at(&self, size: f64) -> f64 {
        self.factor * size.powf(self.exponent)
    }
}

/// An SVG with the panels beside each other. They share the axis of times.
pub fn growth(panels: &[Panel; 2], limit: f64) -> String {
    let times = Times::of(panels);
    let stopped = panels.iter().flat_map(|panel| &panel.dots).any(|dot| dot.stopped);
    let mut svg = head(stopped.then_some(limit));
    for tick in &times.ticks {
        let (x, y) = (LEFT - 8.0, times.y(*tick) + 4.0);
        let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y:.1}\" text-anchor=\"end\">{}</text>", in_words(*tick));
    }
    for (index, panel) in panels.iter().enumerate() {
        let left = LEFT + index as f64 * (ACROSS + GAP);
        Drawing { panel, times: &times, left, ends: panel.ends() }.draw(&mut svg);
    }
    svg.push_str("</svg>\n");
    svg
}

/// The title, and what the dots are; the limit, if it stopped any.
fn head(limit: Option<f64>) -> String {
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n\
         <title>How the time of the analysis grows with width and depth</title>\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"#fff\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"15\" fill=\"#111\">Time of leo analyze on networks trained on MNIST, domain [0, 1]</text>\n\
         <circle cx=\"{}\" cy=\"40\" r=\"3.5\" fill=\"#1f6fb2\" fill-opacity=\"0.6\"/><text x=\"{}\" y=\"44\">a network</text>\n",
        LEFT + 4.0,
        LEFT + 14.0,
    );
    if let Some(limit) = limit {
        let _ = writeln!(
            svg,
            "<circle cx=\"{}\" cy=\"40\" r=\"3.5\" fill=\"#fff\" stroke=\"#1f6fb2\"/><text x=\"{}\" y=\"44\">stopped by the limit of {limit} s</text>",
            LEFT + 92.0,
            LEFT + 102.0
        );
    }
    svg
}

impl Panel {
    /// The smallest and the largest size.
    fn ends(&self) -> (f64, f64) {
        range(self.dots.iter().map(|dot| dot.size))
    }
}

/// The axis of times.
struct Times {
    ticks: Vec<f64>,
    bottom: f64,
    top: f64,
}

impl Times {
    fn of(panels: &[Panel]) -> Self {
        let (fastest, slowest) = range(panels.iter().flat_map(|panel| {
            let (first, last) = panel.ends();
            panel.dots.iter().map(|dot| dot.time).chain([panel.fit.at(first), panel.fit.at(last)])
        }));
        let ticks = ticks(fastest, slowest);
        let (bottom, top) = range(ticks.iter().copied());
        Self { ticks, bottom, top }
    }

    fn y(&self, time: f64) -> f64 {
        TOP + (self.top / time).ln() / (self.top / self.bottom).ln() * (HEIGHT - TOP - BOTTOM)
    }
}

/// A panel, and where it stands.
struct Drawing<'a> {
    panel: &'a Panel,
    times: &'a Times,
    left: f64,
    /// The smallest and the largest size.
    ends: (f64, f64),
}

impl Drawing<'_> {
    fn draw(&self, svg: &mut String) {
        self.draw_sizes(svg);
        self.draw_dots(svg);
        self.draw_fit(svg);
    }

    fn right(&self) -> f64 {
        self.left + ACROSS
    }

    fn x(&self, size: f64) -> f64 {
        let (first, last) = self.ends;
        self.left + INSET + (size / first).ln() / (last / first).ln() * (ACROSS - 2.0 * INSET)
    }

    /// The lines of the times, and the axis of sizes with its titles.
    fn draw_sizes(&self, svg: &mut String) {
        let (left, right) = (self.left, self.right());
        for &tick in &self.times.ticks {
            let _ = writeln!(svg, "<path d=\"M{left} {:.1}H{right}\" stroke=\"#ddd\"/>", self.times.y(tick));
        }
        let mut sizes: Vec<f64> = self.panel.dots.iter().map(|dot| dot.size).collect();
        sizes.sort_by(f64::total_cmp);
        sizes.dedup();
        for size in sizes {
            let (x, floor) = (self.x(size), HEIGHT - BOTTOM);
            let _ = writeln!(
                svg,
                "<path d=\"M{x:.1} {floor}v4\" stroke=\"#999\"/><text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{size}</text>",
                floor + 18.0
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{left}\" y=\"{}\" fill=\"#111\">{}</text>\n\
             <text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            TOP - 8.0,
            self.panel.title,
            (left + right) / 2.0,
            HEIGHT - 10.0,
            self.panel.by,
        );
    }

    fn draw_dots(&self, svg: &mut String) {
        for Dot { size, time, stopped, name } in &self.panel.dots {
            let look =
                if *stopped { "fill=\"#fff\" stroke=\"#1f6fb2\"" } else { "fill=\"#1f6fb2\" fill-opacity=\"0.6\"" };
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3.5\" {look}><title>{name}: {}</title></circle>",
                self.x(*size),
                self.times.y(*time),
                in_words((time * 1e4).round() / 1e4)
            );
        }
    }

    /// The line, and above its middle the exponent: to the left, where it rises.
    fn draw_fit(&self, svg: &mut String) {
        let (Panel { by, fit, .. }, (first, last)) = (self.panel, self.ends);
        let centre = (first * last).sqrt();
        let _ = writeln!(
            svg,
            "<path d=\"M{:.1} {:.1}L{:.1} {:.1}\" stroke=\"#c0392b\" stroke-width=\"1.5\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"13\" fill=\"#c0392b\" stroke=\"#fff\" stroke-width=\"4\" paint-order=\"stroke\">time ~ {by}<tspan dy=\"-5\" font-size=\"10\">{:.2}</tspan><tspan dy=\"5\">, R² = {:.2}</tspan></text>",
            self.x(first),
            self.times.y(fit.at(first)),
            self.x(last),
            self.times.y(fit.at(last)),
            self.x(centre) - 6.0,
            self.times.y(fit.at(centre)) - 12.0,
            fit.exponent,
            fit.r_squared,
        );
    }
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// Round times around these two: powers of ten, or 1, 2 and 5 of each where powers alone would be few.
fn ticks(fastest: f64, slowest: f64) -> Vec<f64> {
    let steps: &[f64] = if slowest / fastest > 1000.0 { &[1.0] } else { &[1.0, 2.0, 5.0] };
    let all: Vec<f64> = (-6..7)
        .flat_map(|power| steps.iter().map(move |step| (step * 10f64.powi(power) * 1e6).round() / 1e6))
        .collect();
    let first = all.iter().rposition(|&tick| tick < fastest).unwrap_or(0);
    let last = all.iter().position(|&tick| tick > slowest).unwrap_or(all.len() - 1);
    all[first..=last].to_vec()
}

fn in_words(time: f64) -> String {
    if time < 1.0 { format!("{} ms", (time * 1e4).round() / 10.0) } else { format!("{time} s") }
}
