//! Which parts of a network can be rewritten.
//!
//! A *region* begins at one value, its entry, and is a tree of layers: each layer of units reads an affine function of
//! one layer before it, or of the entry. It ends at its *ports*, affine functions of one layer that something else
//! needs: outputs, and summands where branches meet. Within a region widths are free. A plain network is one region; in
//! a residual network each branch is one, and so is what lies between two sums.
//!
//! A layer whose outputs themselves are needed outside, because they are summands or outputs, cannot change its width.
//! It stays as it is, and ends the region before it. If all its units are stable it is no layer at all, but an affine
//! map.
//!
//! Values with several axes are many vectors that go the same way. The units in the same place of each, a *channel*,
//! stay or go together.

use std::collections::{BTreeMap, BTreeSet};

use leo_check::{ProvedBounds, Range, stable_piece};
use leo_formats::onnx::{Aside, Document};
use leo_network::activation::Piece;
use leo_network::op::{Action, ActionKind, AffineMap, Arithmetic, Op, Operator};
use leo_network::{Activation, Channels, LayerId, Network, Node, ValueId};

use crate::normal_form::affine::Affine;

/// A tree of layers.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    pub(crate) entry: ValueId,
    /// Ranges of the entry's channels.
    pub(crate) range: Range,
    /// Each after the one it reads.
    pub(crate) layers: Vec<RegionLayer>,
    /// Layers that are part of the maps between the others, because all their units are stable.
    pub(crate) linear: Vec<AffineLayer>,
    pub(crate) ports: Vec<RegionOutput>,
}

impl Region {
    /// How many units it has.
    pub(crate) fn units(&self) -> usize {
        let layers = self.layers.iter().map(|layer| layer.map.rows * layer.channels.positions());
        layers.chain(self.linear.iter().map(|linear| linear.pieces.len())).sum()
    }
}

/// A layer that is an affine map.
#[derive(Clone, Debug)]
pub(crate) struct AffineLayer {
    pub(crate) id: LayerId,
    /// The piece that each of its units stays on.
    pub(crate) pieces: Vec<Piece>,
}

/// A layer of units.
#[derive(Clone, Debug)]
pub(crate) struct RegionLayer {
    pub(crate) id: LayerId,
    pub(crate) activation: Activation,
    /// The layer that it reads; the region's entry if there is none.
    pub(crate) parent: Option<usize>,
    pub(crate) pre_activation: ValueId,
    /// From what it reads to its pre-activations.
    pub(crate) map: Affine,
    /// Whether the map is several matrices in a row in the file.
    pub(crate) is_product: bool,
    /// Ranges of its channels' pre-activations, and of what they give.
    pub(crate) range: Range,
    pub(crate) output: Range,
    /// Where its channels lie.
    pub(crate) channels: Channels,
}

impl RegionLayer {
    /// The piece that a channel stays on, if it does.
    fn piece(&self, unit: usize) -> Option<&Piece> {
        let piece = stable_piece(&self.activation, &self.range.lower[unit], &self.range.upper[unit])?;
        Some(&self.activation.pieces()[piece])
    }

    /// Whether a channel is always 0.
    pub(crate) fn is_inactive(&self, unit: usize) -> bool {
        self.piece(unit).is_some_and(Piece::is_zero)
    }

    /// Whether a channel is always the same linear function, and no constant.
    pub(crate) fn is_active(&self, unit: usize) -> bool {
        self.piece(unit).is_some_and(|piece| piece.slope != 0.0)
    }

    /// What a channel that is stable multiplies its pre-activation by, and adds to it.
    pub(crate) fn line(&self, unit: usize) -> (f64, f64) {
        self.piece(unit).map_or((0.0, 0.0), |piece| (piece.slope, piece.constant))
    }
}

/// Where a region's results leave it.
#[derive(Clone, Debug)]
pub(crate) struct RegionOutput {
    pub(crate) value: ValueId,
    /// The layer that it reads; the region's entry if there is none.
    pub(crate) parent: Option<usize>,
    pub(crate) map: Affine,
    /// Whether the map is several matrices in a row in the file.
    pub(crate) is_product: bool,
    /// Where its channels lie.
    pub(crate) channels: Channels,
}

/// Why a layer keeps its width.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pinned {
    /// The layer.
    pub layer: LayerId,
    /// Why.
    pub reason: String,
}

/// What can be rewritten, and what cannot.
#[derive(Debug, Default)]
pub(crate) struct Regions {
    /// The regions that have layers.
    pub(crate) regions: Vec<Region>,
    /// The layers in none, in their order.
    pub(crate) pinned: Vec<Pinned>,
    /// Values with a name that no rewriting changes.
    pub(crate) outside: Vec<ValueId>,
}

/// The regions of the network in a file. They begin and end at values that have a name. A layer that cannot change its
/// width is an affine map if all its units are stable, and if that is wanted.
pub(crate) fn find(facts: &ProvedBounds<'_>, document: &Document, fold: bool) -> Regions {
    let aside = document.read_aside();
    let is_named = |value| document.name_of(value).is_some();
    let network = facts.network();
    let mut kinds = BTreeMap::new();
    loop {
        let mut search = RegionSearch::new(facts, &kinds, fold);
        for index in 0..network.nodes().len() {
            search.visit(index);
        }
        for &output in network.outputs() {
            search.escape(output, "it is an output");
        }
        let left = search.left(&is_named);
        for aside in &aside {
            if !search.is_own_shape(aside, &left) {
                search.escape(aside.value, &format!("{} reads it as it is", aside.operator));
            }
        }
        if search.changed.is_empty() {
            return search.finish(&is_named);
        }
        let changed = search.changed;
        kinds.extend(changed);
    }
}

/// What a layer is to regions.
#[derive(Clone, Debug)]
enum LayerKind {
    /// Its outputs are needed as they are.
    Pinned(String),
    /// All its units are stable, and it is only an affine map.
    Linear,
}

/// What a value is to regions.
#[derive(Clone, Debug)]
enum ValueRole {
    /// The beginning of a region, if a matrix reads it.
    Entry,
    /// An affine function, `map`, of a layer of a region, or of its entry, made by `matrices` matrices. Without a map
    /// it is the layer itself.
    Within { entry: ValueId, layer: Option<usize>, map: Option<Affine>, matrices: usize },
}

struct RegionSearch<'a> {
    facts: &'a ProvedBounds<'a>,
    network: &'a Network,
    kinds: &'a BTreeMap<LayerId, LayerKind>,
    places: Vec<ValueRole>,
    fold: bool,
    layers: BTreeMap<ValueId, Vec<RegionLayer>>,
    linear: BTreeMap<ValueId, Vec<AffineLayer>>,
    escapes: BTreeSet<ValueId>,
    pinned: Vec<Pinned>,
    changed: BTreeMap<LayerId, LayerKind>,
}

impl<'a> RegionSearch<'a> {
    fn new(facts: &'a ProvedBounds<'a>, kinds: &'a BTreeMap<LayerId, LayerKind>, fold: bool) -> Self {
        Self {
            fold,
            linear: BTreeMap::new(),
            facts,
            network: facts.network(),
            kinds,
            places: vec![ValueRole::Entry],
            layers: BTreeMap::new(),
            escapes: BTreeSet::new(),
            pinned: Vec::new(),
            changed: BTreeMap::new(),
        }
    }

    /// Values of regions that come last of what is written anew, or after it, and stay as they are. (A Reshape may make
    /// of a value the same one.)
    fn left(&self, is_named: &impl Fn(ValueId) -> bool) -> BTreeSet<ValueId> {
        let mut left = BTreeSet::new();
        for &escape in &self.escapes {
            let port = self.port(escape, is_named);
            let mut value = escape;
            while left.insert(value) && Some(value) != port {
                let Some(node) = value.node().map(|node| &self.network.nodes()[node]) else { break };
                value = node.operands()[0];
            }
        }
        left
    }

    /// Whether something is read only for the shape of values of the same region, all of which is written anew.
    fn is_own_shape(&self, aside: &Aside<'_>, left: &BTreeSet<ValueId>) -> bool {
        let region = |value: ValueId| match self.places[value.index()] {
            ValueRole::Entry => None,
            ValueRole::Within { entry, .. } => Some(entry),
        };
        let (Some(entry), Some(reshapes)) = (region(aside.value), &aside.reshapes) else { return false };
        reshapes.iter().all(|value| region(*value) == Some(entry) && !left.contains(value))
    }

    fn visit(&mut self, index: usize) {
        let node = &self.network.nodes()[index];
        let operand = node.operands()[0];
        let place = match (node.op(), &self.places[operand.index()]) {
            (Op::Affine(map), place) => self.after_map(node, map, operand, place),
            (Op::Activation(of), ValueRole::Within { matrices: 1.., .. }) if can_carry(of) => self.layer(index),
            (Op::Activation(_) | Op::Sum(_) | Op::Concat(_) | Op::MaxPool(_), _) => None,
        };
        let place = place.unwrap_or_else(|| {
            let reason = match node.op() {
                Op::Sum(_) => format!("its outputs are a summand of {:?}", node.name()),
                op => format!("{:?} ({}) reads it as it is", node.name(), op.name()),
            };
            node.operands().iter().for_each(|&operand| self.escape(operand, &reason));
            ValueRole::Entry
        });
        if let (Some(layer), ValueRole::Entry) = (self.network.layer_at(index), &place)
            && !self.kinds.contains_key(&layer)
        {
            let reason = "what it reads is no affine function of one layer".to_owned();
            self.pinned.push(Pinned { layer, reason });
        }
        self.places.push(place);
    }

    /// What an affine map makes of an operand in this place, if it treats channels the same at each position.
    fn after_map(&self, node: &Node, map: &AffineMap, operand: ValueId, place: &ValueRole) -> Option<ValueRole> {
        let place = place.clone();
        match map.action(self.network.shape(operand)) {
            Action::Sums(sums) => {
                let next = Affine::of(&sums)?;
                Some(match place {
                    ValueRole::Entry => ValueRole::Within { entry: operand, layer: None, map: Some(next), matrices: 1 },
                    ValueRole::Within { entry, layer, map, matrices } => {
                        let map = Some(map.map_or(next.clone(), |map| next.after(&map)));
                        ValueRole::Within { entry, layer, map, matrices: matrices + 1 }
                    }
                })
            }
            Action::Move(_) | Action::Each(..) => {
                let ValueRole::Within { entry, layer, map, matrices } = place else { return None };
                let diagonal = diagonal(self.network, node)?;
                let map = Some(scaled(&map.unwrap_or_else(|| Affine::identity(diagonal.len())), &diagonal));
                Some(ValueRole::Within { entry, layer, map, matrices })
            }
        }
    }

    /// A layer whose pre-activations are an affine function of a layer.
    fn layer(&mut self, index: usize) -> Option<ValueRole> {
        let id = self.network.layer_at(index)?;
        let pre_activation = self.network.pre_activation(id);
        let ValueRole::Within { entry, layer, map: Some(map), matrices } = self.places[pre_activation.index()].clone()
        else {
            return None;
        };
        let (activation, channels) = (self.network.activation(id).clone(), self.network.channels(pre_activation));
        let all = self.facts.range(pre_activation);
        let [range, output] = [all, self.facts.range(self.network.output_of(id))].map(|of| of_channels(of, channels));
        let parent = layer;
        let layer = RegionLayer {
            id,
            activation,
            parent,
            pre_activation,
            map,
            is_product: matrices > 1,
            range,
            output,
            channels,
        };
        match self.kinds.get(&id) {
            Some(LayerKind::Pinned(reason)) => {
                self.pinned.push(Pinned { layer: id, reason: reason.clone() });
                self.escapes.insert(pre_activation);
                Some(ValueRole::Entry)
            }
            Some(LayerKind::Linear) => {
                let lines: Vec<(f64, f64)> = (0..channels.count()).map(|channel| layer.line(channel)).collect();
                let piece = |unit: usize| layer.piece(channels.of(unit)).copied();
                let pieces = (0..all.lower.len()).map(piece).collect::<Option<Vec<Piece>>>()?;
                self.linear.entry(entry).or_default().push(AffineLayer { id, pieces });
                Some(ValueRole::Within { entry, layer: parent, map: Some(scaled(&layer.map, &lines)), matrices })
            }
            None => {
                let layers = self.layers.entry(entry).or_default();
                layers.push(layer);
                let layer = Some(layers.len() - 1);
                Some(ValueRole::Within { entry, layer, map: None, matrices: 0 })
            }
        }
    }

    /// A value is needed outside of its region.
    fn escape(&mut self, value: ValueId, reason: &str) {
        match &self.places[value.index()] {
            ValueRole::Within { matrices: 1.., .. } => {
                self.escapes.insert(value);
            }
            ValueRole::Within { entry, layer: Some(layer), .. } => {
                let layer = &self.layers[entry][*layer];
                let stable = (0..layer.map.rows).all(|unit| layer.is_inactive(unit) || layer.is_active(unit));
                let kind = if stable && self.fold { LayerKind::Linear } else { LayerKind::Pinned(reason.to_owned()) };
                self.changed.insert(layer.id, kind);
            }
            ValueRole::Within { layer: None, .. } | ValueRole::Entry => {}
        }
    }

    fn finish(mut self, is_named: &impl Fn(ValueId) -> bool) -> Regions {
        let mut ports: BTreeMap<ValueId, Option<BTreeSet<ValueId>>> = BTreeMap::new();
        for &value in &self.escapes {
            let ValueRole::Within { entry, .. } = self.places[value.index()] else { continue };
            let port = self.port(value, is_named);
            let ports = ports.entry(entry).or_insert_with(|| Some(BTreeSet::new()));
            match (port, &mut *ports) {
                (Some(port), Some(ports)) => {
                    ports.insert(port);
                }
                _ => *ports = None,
            }
        }
        let entries = self.network.values().zip(&self.places).filter(|(_, place)| matches!(place, ValueRole::Entry));
        let outside = entries.map(|(value, _)| value).filter(|&value| is_named(value)).collect();
        let mut regions = Vec::new();
        let entries: BTreeSet<ValueId> = self.layers.keys().chain(self.linear.keys()).copied().collect();
        for entry in entries {
            let layers = self.layers.remove(&entry).unwrap_or_default();
            let linear = self.linear.remove(&entry).unwrap_or_default();
            let Some(Some(ports)) = ports.remove(&entry).filter(|_| is_named(entry)) else {
                let reason = "values around it have no name in the file".to_owned();
                let ids = layers.iter().map(|layer| layer.id).chain(linear.iter().map(|linear| linear.id));
                self.pinned.extend(ids.map(|layer| Pinned { layer, reason: reason.clone() }));
                continue;
            };
            let port = |value: ValueId| match &self.places[value.index()] {
                ValueRole::Within { layer, map: Some(map), matrices, .. } => {
                    let channels = self.network.channels(value);
                    Some(RegionOutput { value, parent: *layer, map: map.clone(), is_product: *matrices > 1, channels })
                }
                ValueRole::Within { map: None, .. } | ValueRole::Entry => None,
            };
            let range = of_channels(self.facts.range(entry), self.network.channels(entry));
            let ports = ports.into_iter().filter_map(port).collect();
            regions.push(Region { entry, range, layers, linear, ports });
        }
        self.pinned.sort_by_key(|pinned| pinned.layer);
        Regions { regions, pinned: self.pinned, outside }
    }

    /// Where to leave the region for a value that is needed outside: right after its last matrix and what is added
    /// there, if that has a name; what is done to it then needs no change.
    fn port(&self, value: ValueId, is_named: &impl Fn(ValueId) -> bool) -> Option<ValueId> {
        let mut path = vec![value];
        while let Some(node) = path.last().and_then(|value| value.node()).map(|node| &self.network.nodes()[node]) {
            if node.op().has_sums() || node.op().is_layer() {
                break;
            }
            path.push(node.operands()[0]);
        }
        path.reverse();
        let adds = |value: &&ValueId| {
            let map = value.node().and_then(|node| self.network.nodes()[node].op().as_affine());
            map.is_some_and(|map| map.kind() == ActionKind::Each(Arithmetic::Add))
        };
        let sums = path[1..].iter().take_while(adds).count();
        let first = path[..=sums].iter().rev().find(|&&value| is_named(value));
        first.or_else(|| path[sums..].iter().find(|&&value| is_named(value))).copied()
    }
}

/// The smallest range for each channel that holds all its elements.
pub(crate) fn of_channels(range: &Range, channels: Channels) -> Range {
    let hull = |bounds: &[f64], pick: fn(f64, f64) -> f64| {
        let channel = |channel: usize| channels.elements(channel).map(|element| bounds[element]).reduce(pick);
        (0..channels.count()).map(|index| channel(index).unwrap_or(0.0)).collect()
    };
    Range { lower: hull(&range.lower, f64::min), upper: hull(&range.upper, f64::max) }
}

/// For a node that treats all channels alone, and the same at each position: what each is multiplied by, and what is
/// added then.
pub(crate) fn diagonal(network: &Network, node: &Node) -> Option<Vec<(f64, f64)>> {
    let (operand, channels) = (node.operands()[0], node.channels());
    if network.channels(operand).count() != channels.count() {
        return None;
    }
    match node.op().as_affine()?.action(network.shape(operand)) {
        Action::Move(moves) => moves.is_in_order().then(|| vec![(1.0, 0.0); channels.count()]),
        Action::Each(arithmetic, constants) => {
            let at_first = |channel: usize| constants[channels.element(channel, 0)];
            let is_same = |(element, &constant): (usize, &f64)| constant == at_first(channels.of(element));
            if !constants.iter().enumerate().all(is_same) {
                return None;
            }
            let entry = |constant: f64| match arithmetic {
                Arithmetic::Add => (1.0, constant),
                Arithmetic::Multiply => (constant, 0.0),
                Arithmetic::Divide => (1.0 / constant, 0.0),
            };
            Some((0..channels.count()).map(at_first).map(entry).collect())
        }
        Action::Sums(_) => None,
    }
}

/// Whether a unit can pass on a linear function: then its activation changes nothing beyond its last knot.
fn can_carry(of: &Activation) -> bool {
    of.pieces().last().is_some_and(Piece::is_identity)
}

/// A map with its rows multiplied, and something added to them.
pub(crate) fn scaled(map: &Affine, diagonal: &[(f64, f64)]) -> Affine {
    let mut scaled = map.clone();
    for (row, &(factor, summand)) in diagonal.iter().enumerate() {
        scaled.row_mut(row).iter_mut().for_each(|weight| *weight *= factor);
        scaled.bias[row] = scaled.bias[row] * factor + summand;
    }
    scaled
}
