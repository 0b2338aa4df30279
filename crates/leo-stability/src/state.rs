//! What an analysis has found, so that another one can go on from there.
//!
//! Nothing in it is believed: bounds are proved again, points are looked at again, and a case distinction that was begun counts only once it is
//! whole and the checker has accepted it.

use leo_check::{Fact, Point, Side, Tree};
use leo_network::{Domain, Network};
use serde::{Deserialize, Serialize};

/// Proved bounds, inputs that show signs, and case distinctions that are not finished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    layers: Vec<Kept>,
    points: Vec<Point>,
}

/// What is kept of a layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    /// Whether all linear bounds with the default slopes were proved.
    linear: bool,
    /// Whether its ranges are as narrow as lines can make them.
    narrow: bool,
    facts: Vec<Fact>,
    begun: Vec<Begun>,
    /// How many of its units are undecided.
    undecided: usize,
}

/// A case distinction that is not finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Begun {
    fact: Fact,
    /// Which of its leaves are still open, in the order of a walk.
    open: Vec<usize>,
}

/// A case distinction for one side of a unit, of which some leaves are open.
pub(crate) type Draft = (usize, Side, Tree, Vec<usize>);

/// What is known of a layer.
#[derive(Default)]
pub(crate) struct Recalled {
    pub(crate) linear: bool,
    pub(crate) narrow: bool,
    pub(crate) bounds: Vec<(usize, Side, Tree)>,
    pub(crate) drafts: Vec<Draft>,
}

impl State {
    /// Nothing but points.
    pub(crate) fn new(points: &[impl AsRef<[f64]>], domain: &Domain) -> Self {
        Self { layers: Vec::new(), points: points.iter().map(|point| Point::new(point.as_ref(), domain)).collect() }
    }

    /// Adds what is known of the next layer.
    pub(crate) fn keep(&mut self, network: &Network, recalled: &Recalled, undecided: usize) {
        let fact = |bound: &(usize, Side, Tree)| Fact::new(bound, network);
        let begun = |(unit, side, tree, open): &Draft| Begun {
            fact: Fact::new(&(*unit, *side, tree.clone()), network),
            open: open.clone(),
        };
        self.layers.push(Kept {
            linear: recalled.linear,
            narrow: recalled.narrow,
            facts: recalled.bounds.iter().map(fact).collect(),
            begun: recalled.drafts.iter().map(begun).collect(),
            undecided,
        });
    }

    /// Adds what another one knows of the next layer, which comes after so many, as it is.
    pub(crate) fn take_from(&mut self, other: Option<&Self>, depth: usize) {
        self.layers.push(other.and_then(|other| other.layers.get(depth)).cloned().unwrap_or_default());
    }

    /// The points of the domain that it has, one after the other.
    pub(crate) fn points(&self, domain: &Domain) -> Vec<f64> {
        let points = self.points.iter().filter_map(|point| point.numbers(domain));
        points.filter(|point| point.len() == domain.len()).flatten().collect()
    }

    /// How many layers have undecided units, of those after so many and one more.
    pub(crate) fn open_after(&self, depth: usize) -> usize {
        self.layers.iter().skip(depth + 1).filter(|layer| layer.undecided > 0).count()
    }

    /// How many layers have narrow ranges, from the first on.
    pub(crate) fn narrow(&self) -> usize {
        self.layers.iter().take_while(|layer| layer.narrow).count()
    }

    /// What was known of a layer, which is the one after so many, as far as it makes sense.
    pub(crate) fn recall(&self, network: &Network, layer: usize, depth: usize) -> Recalled {
        let Some(kept) = self.layers.get(depth) else { return Recalled::default() };
        let draft = |begun: &Begun| {
            let (unit, side, tree) = begun.fact.of_layer(network, layer)?;
            Some((unit, side, tree, begun.open.clone()))
        };
        Recalled {
            linear: kept.linear,
            narrow: kept.narrow,
            bounds: kept.facts.iter().filter_map(|fact| fact.of_layer(network, layer)).collect(),
            drafts: kept.begun.iter().filter_map(draft).collect(),
        }
    }
}
