//! The network before and after, in the manner of the LEO paper's first figure: units that are always off are white,
//! units that are always on blue, and those that can be both grey.

use leo_network::{Network, UnitId, ValueId};
use maud::{Markup, html};

use super::units::{Mark, Marks, class, in_words};
use super::{Page, graph, grid};
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

pub struct Picture<'a> {
    pub page: &'a Page<'a>,
    pub known: &'a Marks,
}

impl<'a> Picture<'a> {
    pub fn section(&self) -> Markup {
        let page = self.page;
        let after = page.outcome.as_ref().filter(|outcome| outcome.changed).map(|outcome| outcome.network);
        let is_chain = |network| graph::wires(network).is_some();
        let is_small = graph::is_small(page.network);
        let draw = |shown: &dyn Fn(bool) -> Shown<'a>, is_chain: bool| match is_small && is_chain {
            true => graph::draw(&shown(true)),
            false => grid::draw(&shown(false), is_chain),
        };
        html! {
            section #network {
                h2 { @if after.is_some() { "The network, before and after" } @else { "The network" } }
                (self.legend())
                div .pictures.wide[page.layers.len() > 2] {
                    figure {
                        @if after.is_some() { figcaption { "before" } }
                        (draw(&|in_order| self.before(in_order), is_chain(page.network)))
                    }
                    @if let Some(network) = after {
                        figure {
                            figcaption { "after" }
                            (draw(&|in_order| self.after(network, in_order), is_chain(network)))
                        }
                    }
                }
                @if ![page.network].into_iter().chain(after).all(is_chain) { p .note { "The network has branches; its layers are drawn in the order in which they are computed." } }
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
                @if counts.removed > 0 { (entry("u off gone removed", format!("removed ({})", grouped(counts.removed)))) }
                @if counts.merged > 0 { (entry("u on gone merged", format!("merged or folded into others ({})", grouped(counts.merged)))) }
                @if carriers > 0 { (entry("u on carrier", format!("new, carries a linear function ({})", grouped(carriers)))) }
            }
            @if several > 1 { p .note { "Layers are wide: a dot stands for up to " (several) " units of a kind." } }
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
                dots = grid::binned(dots);
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
