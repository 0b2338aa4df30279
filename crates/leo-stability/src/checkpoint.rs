//! What an analysis has found, so that another one can go on from there: a checkpoint.
//!
//! Nothing in it is believed: bounds are proved again, points are looked at again, and a case distinction that was
//! begun counts only once it is whole and the checker has accepted it.

use leo_check::{BoundProof, Point, WrittenProof};
use leo_network::{Domain, LayerId, Network};
use serde::{Deserialize, Serialize};

/// Proved bounds, inputs that show signs, and case distinctions that are not finished.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    layers: Vec<LayerCheckpoint>,
    points: Vec<Point>,
}

/// What is kept of a layer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LayerCheckpoint {
    /// Whether all linear bounds with the default slopes were proved.
    linear: bool,
    /// Whether its ranges are as narrow as lines can make them: its intermediate bounds were tightened.
    narrow: bool,
    facts: Vec<WrittenProof>,
    begun: Vec<UnfinishedFact>,
    /// How many of its units are undecided.
    undecided: usize,
}

/// A case distinction that is not finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct UnfinishedFact {
    fact: WrittenProof,
    /// Which of its leaves are still open, in the order of a walk.
    open: Vec<usize>,
}

/// A case distinction of which some leaves are open, in the order of a walk.
#[derive(Clone)]
pub(crate) struct UnfinishedTree {
    pub(crate) proof: BoundProof,
    pub(crate) open: Vec<usize>,
}

/// What is known of a layer.
#[derive(Default)]
pub(crate) struct RecalledLayer {
    pub(crate) linear: bool,
    pub(crate) narrow: bool,
    pub(crate) bounds: Vec<BoundProof>,
    pub(crate) drafts: Vec<UnfinishedTree>,
}

impl Checkpoint {
    /// A checkpoint that an [`Observer`](leo_network::Observer) was given.
    ///
    /// # Errors
    /// If it is something else.
    pub fn from_bytes(bytes: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(bytes)
    }

    /// As an observer is given it: JSON.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("numbers, words and lists of them have a form in JSON")
    }

    /// Nothing but points.
    pub(crate) fn new(points: &[impl AsRef<[f64]>], domain: &Domain) -> Self {
        Self { layers: Vec::new(), points: points.iter().map(|point| Point::new(point.as_ref(), domain)).collect() }
    }

    /// Adds what is known of the next layer.
    pub(crate) fn keep(&mut self, recalled: &RecalledLayer, undecided: usize) {
        let begun =
            |draft: &UnfinishedTree| UnfinishedFact { fact: WrittenProof::new(&draft.proof), open: draft.open.clone() };
        self.layers.push(LayerCheckpoint {
            linear: recalled.linear,
            narrow: recalled.narrow,
            facts: recalled.bounds.iter().map(WrittenProof::new).collect(),
            begun: recalled.drafts.iter().map(begun).collect(),
            undecided,
        });
    }

    /// Adds what another one knows of the next layer, as it is.
    pub(crate) fn take_from(&mut self, other: Option<&Self>) {
        let index = self.layers.len();
        self.layers.push(other.and_then(|other| other.layers.get(index)).cloned().unwrap_or_default());
    }

    /// The points of the domain that it has, one after the other.
    pub(crate) fn points(&self, domain: &Domain) -> Vec<f64> {
        let points = self.points.iter().filter_map(|point| point.numbers(domain));
        points.filter(|point| point.len() == domain.len()).flatten().collect()
    }

    /// How many layers after this one have undecided units.
    pub(crate) fn open_after(&self, layer: LayerId) -> usize {
        self.layers.iter().skip(layer.index() + 1).filter(|layer| layer.undecided > 0).count()
    }

    /// How many layers have narrow ranges, from the first on.
    pub(crate) fn narrow(&self) -> usize {
        self.layers.iter().take_while(|layer| layer.narrow).count()
    }

    /// What was known of a layer, as far as it makes sense.
    pub(crate) fn recall(&self, network: &Network, layer: LayerId) -> RecalledLayer {
        let Some(kept) = self.layers.get(layer.index()) else { return RecalledLayer::default() };
        let draft = |begun: &UnfinishedFact| {
            Some(UnfinishedTree { proof: begun.fact.of_layer(network, layer)?, open: begun.open.clone() })
        };
        RecalledLayer {
            linear: kept.linear,
            narrow: kept.narrow,
            bounds: kept.facts.iter().filter_map(|fact| fact.of_layer(network, layer)).collect(),
            drafts: kept.begun.iter().filter_map(draft).collect(),
        }
    }
}
