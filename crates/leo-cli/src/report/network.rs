//! The network before and after, in the manner of the LEO paper's first figure: units that are always off are white,
//! units that are always on blue, and those that can be both grey.

use leo_network::{Network, UnitId, ValueId};
use maud::{Markup, html};

use super::units::{Mark, Marks, UnitFate, class, in_words};
use super::{Page, channels, graph, grid};
use crate::terminal::output::{counted, grouped};

/// What is drawn for a unit.
pub struct UnitMark {
    /// What the style calls it.
    pub class: String,
    /// The row that tells about it, or what to say.
    pub about: About,
    /// Its number, from 0, if it has one.
    pub number: Option<usize>,
}

pub enum About {
    Row(String),
    Text(String),
    Nothing,
}

/// A network as it is drawn.
pub struct Shown<'a> {
    pub network: &'a Network,
    pub layers: Vec<Vec<UnitMark>>,
}

/// Channels that are always off and stay.
const HELD: [(UnitFate, &str, &str); 2] = [
    (UnitFate::Aligned, "aligned", "kept for a width that runtimes are fast with"),
    (UnitFate::Tied, "tied", "kept with others that are needed"),
];

pub struct Picture<'a> {
    pub page: &'a Page<'a>,
    pub known: &'a Marks,
}

impl<'a> Picture<'a> {
    pub fn section(&self) -> Markup {
        let page = self.page;
        let after = page.outcome.as_ref().filter(|outcome| outcome.changed).map(|outcome| outcome.network);
        let is_chain = |network: &Network| graph::wires(network).is_some();
        let is_small = graph::is_small(page.network);
        let stages = &page.stages;
        let draw = |shown: &dyn Fn(bool) -> Shown<'a>, network: &Network, is_after: bool| match is_chain(network) {
            _ if !stages.is_empty() => channels::draw(&shown(false), stages, is_after),
            true if is_small => graph::draw(&shown(true)),
            is_chain => grid::draw(&shown(false), is_chain),
        };
        let is_branched = |network: &Network| stages.is_empty() && !is_chain(network);
        html! {
            section #network {
                h2 { @if after.is_some() { "The network, before and after" } @else { "The network" } }
                (self.legend())
                div .pictures.wide[page.layers.len() > 2 && stages.is_empty()] {
                    figure {
                        @if after.is_some() { figcaption { "before" } }
                        (draw(&|in_order| self.before(in_order), page.network, false))
                    }
                    @if let Some(network) = after {
                        figure {
                            figcaption { "after" }
                            (draw(&|in_order| self.after(network, in_order), network, true))
                        }
                    }
                }
                @if [page.network].into_iter().chain(after).any(&is_branched) { p .note { "The network has branches; its layers are drawn in the order in which they are computed." } }
            }
        }
    }

    fn legend(&self) -> Markup {
        let counts = self.known.count();
        let carriers = self.page.outcome.as_ref().map_or(0, |outcome| outcome.history.carriers());
        let several = self.known.layers.iter().flatten().map(|mark| mark.units.len()).max().unwrap_or(1);
        let entry = |class: &str, text: String| html! { li { (grid::sample(class)) (text) } };
        html! {
            ul .legend {
                @for (status, count) in counts.styled() {
                    (entry(&format!("u {}", class(status)), format!("{} ({})", in_words(status), grouped(count))))
                }
                @if counts.with_fate(UnitFate::Removed) > 0 { (entry("u off gone removed", format!("removed ({})", grouped(counts.with_fate(UnitFate::Removed))))) }
                @if counts.with_fate(UnitFate::Merged) > 0 { (entry("u on gone merged", format!("merged or folded into others ({})", grouped(counts.with_fate(UnitFate::Merged))))) }
                @for (fate, class, text) in HELD {
                    @if counts.with_fate(fate) > 0 { (entry(&format!("u off {class}"), format!("{text} ({})", grouped(counts.with_fate(fate))))) }
                }
                @if carriers > 0 { (entry("u on carrier", format!("new, carries a linear function ({})", grouped(carriers)))) }
            }
            @if several > 1 { p .note { "Layers are wide: a dot stands for up to " (several) " " (self.page.noun()) "s of a kind." } }
            @if self.page.stages.all.iter().any(channels::is_linear) { p .note { "Channels of stages without a ReLU have the colour of the page." } }
        }
    }

    fn before(&self, in_order: bool) -> Shown<'a> {
        let dot = |mark: &Mark| UnitMark {
            class: mark.class(),
            about: About::Row(mark.id.clone()),
            number: mark.units.first().copied().filter(|_| mark.units.len() == 1),
        };
        let mut layers: Vec<Vec<UnitMark>> =
            self.known.layers.iter().map(|marks| marks.iter().map(dot).collect()).collect();
        if in_order {
            layers.iter_mut().for_each(|dots| dots.sort_by_key(|dot| dot.number));
        }
        Shown { network: self.page.network, layers }
    }

    fn after<'n>(&self, network: &'n Network, in_order: bool) -> Shown<'n> {
        let origins = self.page.outcome.as_ref().map_or(&[][..], |outcome| &outcome.history.origins);
        let layer = |origins: &Vec<Option<UnitId>>| {
            let dot = |origin: &Option<UnitId>| match *origin {
                None => UnitMark {
                    class: "u on carrier".to_owned(),
                    about: About::Text("new: always on, it carries a linear function past its layer".to_owned()),
                    number: None,
                },
                Some(unit) => {
                    let mark = self.known.mark(unit);
                    UnitMark { class: mark.class(), about: About::Row(mark.id.clone()), number: Some(unit.unit) }
                }
            };
            let mut dots: Vec<UnitMark> = origins.iter().map(dot).collect();
            if !in_order {
                dots.sort_by(|a, b| a.class.cmp(&b.class));
                dots = grid::binned(dots, self.page.noun());
            }
            dots
        };
        Shown { network, layers: origins.iter().map(layer).collect() }
    }
}

/// `784 inputs`.
pub fn inputs(network: &Network) -> String {
    counted(network.input().elements(), "input")
}

/// `10 outputs`.
pub fn outputs(network: &Network) -> String {
    counted(network.outputs().iter().map(|&value: &ValueId| network.shape(value).elements()).sum(), "output")
}
