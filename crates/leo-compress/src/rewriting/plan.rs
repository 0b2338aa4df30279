//! What a region is to become.

use leo_check::Expression;
use leo_formats::onnx::Float;
use leo_network::op::{Reshape, Sum};
use leo_network::{Builder, LayerId, Network, NetworkError, UnitId, ValueId};

use crate::normal_form::affine::Affine;
use crate::rewriting::history::RemovedUnit;
use crate::rewriting::region::{Region, RegionLayer};

/// Why a unit is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// It is always off.
    Inactive,
    /// Its output is always the same.
    Constant,
    /// It is always on, and a linear combination of others.
    Merged,
    /// It is always on, and so is its whole layer.
    Folded,
    /// All layers are gone, because the function is constant.
    Collapsed,
    /// It is always on, and what it carries takes another way.
    Linear,
    /// Nobody reads it.
    Dead,
    /// It is a multiple of another unit.
    Multiple,
    /// It is a negative multiple of another unit: the same ReLU and a linear function.
    Opposite,
    /// It does too little to matter, within the tolerance.
    Negligible,
}

impl Rule {
    /// Every rule. `docs/removal.md` explains each.
    pub const ALL: [Self; 10] = [
        Self::Inactive,
        Self::Constant,
        Self::Merged,
        Self::Folded,
        Self::Collapsed,
        Self::Linear,
        Self::Dead,
        Self::Multiple,
        Self::Opposite,
        Self::Negligible,
    ];

    /// What reports call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Inactive => "inactive",
            Self::Constant => "constant",
            Self::Merged => "merged",
            Self::Folded => "folded",
            Self::Collapsed => "collapsed",
            Self::Linear => "linear",
            Self::Dead => "dead",
            Self::Multiple => "multiple",
            Self::Opposite => "opposite",
            Self::Negligible => "negligible",
        }
    }
}

/// What becomes of a channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ChannelFate {
    /// It stays.
    Kept,
    /// It stays, and is to be seen as the linear function that it is, because others that depend on it are gone.
    KeptLinear,
    /// It goes, and this stands for it.
    Gone(Rule, Expression<usize>),
}

impl ChannelFate {
    /// What stands for it, by channels of its layer.
    pub(crate) fn expression(self) -> Expression<usize> {
        match self {
            Self::Kept => Expression::Itself,
            Self::KeptLinear => Expression::linear(0.0),
            Self::Gone(_, expression) => expression,
        }
    }

    pub(crate) fn is_kept(self) -> bool {
        matches!(self, Self::Kept | Self::KeptLinear)
    }
}

/// A region as it will be.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Each after the one it reads.
    pub(crate) layers: Vec<Planned>,
    /// For each port of the region, the layer that it reads, or the entry, and how.
    pub(crate) ports: Vec<(Option<usize>, PlannedMap)>,
    /// For each layer of the region, what becomes of its channels.
    pub(crate) fates: Vec<Vec<ChannelFate>>,
}

/// A layer as it will be, and the linear path beside it.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    /// Which of the region's layers it comes from.
    pub(crate) layer: usize,
    pub(crate) parent: Option<usize>,
    /// Its first rows are the units' pre-activations, the others are what takes the path. What reads this layer reads
    /// both, in this order.
    pub(crate) map: PlannedMap,
    /// For each unit, the channel of that layer that it is. Where it is none, it is new and always on: it carries a
    /// linear function past the layer.
    pub(crate) units: Vec<Option<usize>>,
}

impl Planned {
    /// How many linear functions pass the layer beside its units, by no ReLU.
    pub(crate) fn path(&self) -> usize {
        self.map.last.rows - self.units.len()
    }
}

/// An affine map, in one step or, if that takes fewer numbers, in two.
#[derive(Clone, Debug)]
pub(crate) struct PlannedMap {
    pub(crate) first: Option<Affine>,
    pub(crate) last: Affine,
}

impl From<Affine> for PlannedMap {
    fn from(last: Affine) -> Self {
        Self { first: None, last }
    }
}

/// What a map reads.
#[derive(Clone, Copy)]
struct MapSource {
    /// A layer's units, or a region's entry.
    value: ValueId,
    /// How many units these are, and the linear path beside them, if there is one.
    path: Option<(usize, ValueId)>,
}

impl From<ValueId> for MapSource {
    fn from(value: ValueId) -> Self {
        Self { value, path: None }
    }
}

/// Nodes in the making, with numbers of one type.
struct Assembly {
    builder: Builder,
    float: Float,
}

impl Assembly {
    /// Adds what comes before a map's last step.
    fn add_first(&mut self, name: &str, map: &PlannedMap, source: MapSource) -> Result<MapSource, NetworkError> {
        match &map.first {
            Some(first) => Ok(self.add(&format!("{name}_narrow"), first, source)?.into()),
            None => Ok(source),
        }
    }

    /// Adds an affine function of a layer's units and of the path beside them.
    fn add(&mut self, name: &str, map: &Affine, source: MapSource) -> Result<ValueId, NetworkError> {
        let round = |number| self.float.round(number);
        let Some((units, path)) = source.path else {
            return self.builder.add(name, map.to_dense(round)?, &[source.value]);
        };
        let (of_units, of_path) = map.split_columns(units);
        let direct = self.builder.add(name, of_units.to_dense(round)?, &[source.value])?;
        if of_path.weight.iter().all(|weight| *weight == 0.0) {
            return Ok(direct);
        }
        let past = self.builder.add(format!("{name}_past"), of_path.to_matrix(round)?, &[path])?;
        self.builder.add(format!("{name}_sum"), Sum, &[direct, past])
    }
}

impl Plan {
    /// How many units are left.
    pub(crate) fn units(&self, region: &Region) -> usize {
        self.layers.iter().map(|planned| planned.units.len() * region.layers[planned.layer].channels.positions()).sum()
    }

    /// How many linear functions take a path beside a layer.
    pub(crate) fn paths(&self, region: &Region) -> usize {
        self.layers.iter().map(|planned| planned.path() * region.layers[planned.layer].channels.positions()).sum()
    }

    /// Whether anything is gained. A function beside a layer takes as many numbers as a unit.
    pub(crate) fn gains(&self, region: &Region) -> bool {
        self.units(region) + self.paths(region) < region.units()
    }

    /// The units that go.
    pub(crate) fn removed(&self, region: &Region) -> Vec<RemovedUnit> {
        let mut removed = Vec::new();
        for (layer, fates) in region.layers.iter().zip(&self.fates) {
            for (channel, fate) in fates.iter().enumerate() {
                let ChannelFate::Gone(rule, _) = *fate else { continue };
                let units = layer.channels.elements(channel).map(|unit| UnitId { layer: layer.id, unit });
                removed.extend(units.map(|unit| RemovedUnit { unit, rule }));
            }
        }
        for linear in &region.linear {
            let units = linear.pieces.iter().enumerate().map(|(unit, piece)| RemovedUnit {
                unit: UnitId { layer: linear.id, unit },
                rule: if piece.slope != 0.0 { Rule::Folded } else { Rule::Inactive },
            });
            removed.extend(units);
        }
        removed
    }

    /// The network to put in the region's place, and its layers' names.
    pub(crate) fn network(
        &self,
        region: &Region,
        network: &Network,
        float: Float,
        name: impl Fn(LayerId) -> String,
    ) -> Result<Network, NetworkError> {
        let builder = Network::builder(network.shape(region.entry).clone());
        let mut assembly = Assembly { builder, float };
        let mut layers: Vec<MapSource> = Vec::new();
        let before =
            |layers: &[MapSource], parent: Option<usize>| parent.map_or(ValueId::INPUT.into(), |parent| layers[parent]);
        for planned in &self.layers {
            let layer = &region.layers[planned.layer];
            let matrix = matrix_before(network, network.pre_activation(layer.id));
            let source = assembly.add_first(&matrix, &planned.map, before(&layers, planned.parent))?;
            let (of_units, of_path) = planned.map.last.split_rows(planned.units.len());
            let made = assembly.add(&matrix, &of_units, source)?;
            let value = assembly.builder.add(name(layer.id), layer.activation.clone(), &[made])?;
            let mut path = None;
            if of_path.rows > 0 {
                path = Some((planned.units.len(), assembly.add(&format!("{matrix}_path"), &of_path, source)?));
            }
            layers.push(MapSource { value, path });
        }
        let mut outputs = Vec::new();
        for (port, (parent, map)) in region.ports.iter().zip(&self.ports) {
            let matrix = matrix_before(network, port.value);
            let source = assembly.add_first(&matrix, map, before(&layers, *parent))?;
            let mut made = assembly.add(&matrix, &map.last, source)?;
            let shape = network.shape(port.value);
            if assembly.builder.shape(made) != shape {
                made = assembly.builder.add("", Reshape::new(shape.clone()), &[made])?;
            }
            outputs.push(made);
        }
        assembly.builder.finish(outputs)
    }

    /// What the units of a layer are expressed by.
    pub(crate) fn claims(&self, region: &Region, layer: usize) -> Vec<Expression> {
        let (fates, RegionLayer { id, channels, .. }) = (&self.fates[layer], &region.layers[layer]);
        let claim = |unit: usize| {
            let at = |channel| UnitId { layer: *id, unit: channels.element(channel, channels.position(unit)) };
            fates[channels.of(unit)].expression().map(at)
        };
        (0..channels.count() * channels.positions()).map(claim).collect()
    }

    /// What the units of a new layer are expressed by.
    pub(crate) fn roles(&self, region: &Region, planned: usize) -> Vec<Expression> {
        let Planned { layer, units, .. } = &self.layers[planned];
        let RegionLayer { id, channels, .. } = &region.layers[*layer];
        let new = channels.with_count(units.len());
        let role = |unit: usize| match units[new.of(unit)] {
            Some(channel) => {
                let position = new.position(unit);
                Expression::copy(UnitId { layer: *id, unit: channels.element(channel, position) })
            }
            None => Expression::linear(0.0),
        };
        (0..new.count() * new.positions()).map(role).collect()
    }
}

/// What the last matrix before a value is called.
fn matrix_before(network: &Network, mut value: ValueId) -> String {
    while let Some(node) = value.node().map(|node| &network.nodes()[node]) {
        if node.op().has_sums() {
            return node.name().to_owned();
        }
        value = node.operands()[0];
    }
    String::new()
}
