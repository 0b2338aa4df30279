//! A region that is being rewritten: its layers with the weights that they have by now, and what has become of their
//! units.

use leo_check::{Expression, Range};

use crate::normal_form::affine::Affine;
use crate::rewriting::plan::{ChannelFate, Plan, Planned, Rule};
use crate::rewriting::region::Region;

/// A region on its way to a plan, layer by layer and unit by unit.
pub(crate) struct RegionDraft<'a> {
    pub(crate) region: &'a Region,
    /// Weights and biases as they are by now. Columns of units that are gone are still there, with zeros.
    pub(crate) maps: Vec<Affine>,
    pub(crate) ports: Vec<Affine>,
    pub(crate) parents: Vec<Option<usize>>,
    pub(crate) port_parents: Vec<Option<usize>>,
    pub(crate) fates: Vec<Vec<ChannelFate>>,
    pub(crate) gone: Vec<bool>,
}

impl<'a> RegionDraft<'a> {
    pub(crate) fn new(region: &'a Region) -> Self {
        Self {
            region,
            maps: region.layers.iter().map(|layer| layer.map.clone()).collect(),
            ports: region.ports.iter().map(|port| port.map.clone()).collect(),
            parents: region.layers.iter().map(|layer| layer.parent).collect(),
            port_parents: region.ports.iter().map(|port| port.parent).collect(),
            fates: region.layers.iter().map(|layer| vec![ChannelFate::Kept; layer.map.rows]).collect(),
            gone: vec![false; region.layers.len()],
        }
    }

    /// How large what a layer reads can be.
    pub(crate) fn magnitudes(&self, index: usize) -> Vec<f64> {
        match self.parents[index] {
            Some(parent) => magnitudes(&self.region.layers[parent].output),
            None => magnitudes(&self.region.range),
        }
    }

    /// The maps that read a layer.
    pub(crate) fn readers(&mut self, index: usize) -> impl Iterator<Item = &mut Affine> {
        let layers = self.maps.iter_mut().zip(&self.parents);
        let ports = self.ports.iter_mut().zip(&self.port_parents);
        layers.chain(ports).filter(move |(_, parent)| **parent == Some(index)).map(|(map, _)| map)
    }

    pub(crate) fn add_constant(&mut self, index: usize, unit: usize, output: f64) {
        for reader in self.readers(index) {
            for row in 0..reader.rows {
                let weight = std::mem::take(&mut reader.row_mut(row)[unit]);
                reader.bias[row] += weight * output;
            }
        }
    }

    pub(crate) fn merge(&mut self, index: usize, unit: usize, stable: &[usize], combination: &[f64]) {
        // Or the checker would not see that they depend on each other.
        stable.iter().for_each(|&kept| self.fates[index][kept] = ChannelFate::KeptLinear);
        let biases = &self.maps[index].bias;
        let left: f64 = stable.iter().zip(combination).map(|(&kept, alpha)| alpha * biases[kept]).sum();
        let constant = biases[unit] - left;
        for reader in self.readers(index) {
            for row in 0..reader.rows {
                let weight = std::mem::take(&mut reader.row_mut(row)[unit]);
                for (&kept, alpha) in stable.iter().zip(combination) {
                    reader.row_mut(row)[kept] += alpha * weight;
                }
                reader.bias[row] += weight * constant;
            }
        }
    }

    pub(crate) fn fold(&mut self, index: usize, stable: &[usize]) {
        let inner = self.maps[index].with_rows(stable);
        for reader in self.readers(index) {
            *reader = reader.with_columns(stable).after(&inner);
        }
        self.leave_out(index);
        for &unit in stable {
            self.fates[index][unit] = ChannelFate::Gone(Rule::Folded, Expression::linear(0.0));
        }
    }

    /// A layer that has no units left gives nothing, and whatever reads it has biases only.
    pub(crate) fn leave_out_if_empty(&mut self, index: usize) {
        if self.fates[index].iter().any(|fate| fate.is_kept()) {
            return;
        }
        let columns = self.maps[index].columns;
        for reader in self.readers(index) {
            *reader = Affine { bias: reader.bias.clone(), ..Affine::zero(reader.rows, columns) };
        }
        self.leave_out(index);
    }

    /// Whether something that is kept reads a unit.
    pub(crate) fn is_read(&self, index: usize, unit: usize) -> bool {
        let mut layers = self.maps.iter().zip(&self.parents).zip(&self.fates);
        let by_layer = |map: &Affine, fates: &[ChannelFate]| {
            fates.iter().enumerate().any(|(row, fate)| fate.is_kept() && map.at(row, unit) != 0.0)
        };
        layers.any(|((map, parent), fates)| *parent == Some(index) && by_layer(map, fates))
            || self
                .ports
                .iter()
                .zip(&self.port_parents)
                .any(|(map, parent)| *parent == Some(index) && (0..map.rows).any(|row| map.at(row, unit) != 0.0))
    }

    /// Whatever reads a layer reads what the layer reads.
    fn leave_out(&mut self, index: usize) {
        let parent = self.parents[index];
        self.gone[index] = true;
        let all = self.parents.iter_mut().chain(&mut self.port_parents);
        all.filter(|reader| **reader == Some(index)).for_each(|reader| *reader = parent);
    }

    /// A layer is constant, and so is everything that reads it.
    pub(crate) fn collapse(&mut self, index: usize) {
        let constant = |fate: &ChannelFate| match fate.expression() {
            Expression::Affine { slope: 0.0, constant } => constant,
            _ => 0.0,
        };
        let outputs: Vec<f64> = self.fates[index].iter().map(constant).collect();
        self.gone[index] = true;
        for next in index + 1..self.maps.len() {
            if self.parents[next] == Some(index) {
                let pre_activations = at(&self.maps[next], &outputs);
                let of = &self.region.layers[next].activation;
                let fate = |g: f64| ChannelFate::Gone(Rule::Collapsed, Expression::constant(of.of(g)));
                self.fates[next] = pre_activations.into_iter().map(fate).collect();
                self.collapse(next);
            }
        }
        let entry = self.region.range.lower.len();
        for (map, parent) in self.ports.iter_mut().zip(&mut self.port_parents) {
            if *parent == Some(index) {
                *map = Affine { bias: at(map, &outputs), ..Affine::zero(map.rows, entry) };
                *parent = None;
            }
        }
        // Layers before that nobody reads any more.
        for before in (0..index).rev() {
            let is_read = self.parents.iter().zip(&self.gone).any(|(parent, gone)| *parent == Some(before) && !gone);
            if !self.gone[before] && !is_read && !self.port_parents.contains(&Some(before)) {
                self.gone[before] = true;
                for fate in self.fates[before].iter_mut().filter(|fate| fate.is_kept()) {
                    *fate = ChannelFate::Gone(Rule::Collapsed, Expression::Itself);
                }
            }
        }
    }

    pub(crate) fn finish(self) -> Plan {
        let mut places = vec![None; self.maps.len()];
        let kept = |layer: usize| -> Vec<usize> {
            (0..self.fates[layer].len()).filter(|&unit| self.fates[layer][unit].is_kept()).collect()
        };
        let reading = |map: &Affine, parent: Option<usize>| match parent {
            Some(parent) => map.with_columns(&kept(parent)),
            None => map.clone(),
        };
        let mut layers = Vec::new();
        for (layer, map) in self.maps.iter().enumerate().filter(|&(layer, _)| !self.gone[layer]) {
            let parent = self.parents[layer];
            let map = reading(map, parent).with_rows(&kept(layer));
            places[layer] = Some(layers.len());
            let units = kept(layer).into_iter().map(Some).collect();
            let parent = parent.and_then(|parent| places[parent]);
            layers.push(Planned { layer, parent, map: map.into(), units });
        }
        let port = |(map, parent): (&Affine, &Option<usize>)| {
            (parent.and_then(|parent| places[parent]), reading(map, *parent).into())
        };
        let ports = self.ports.iter().zip(&self.port_parents).map(port).collect();
        Plan { layers, ports, fates: self.fates }
    }
}

/// How large the elements of a value can be.
fn magnitudes(range: &Range) -> Vec<f64> {
    range.lower.iter().zip(&range.upper).map(|(lower, upper)| lower.abs().max(upper.abs())).collect()
}

fn at(map: &Affine, point: &[f64]) -> Vec<f64> {
    let row = |row: usize| map.bias[row] + map.row(row).iter().zip(point).map(|(w, x)| w * x).sum::<f64>();
    (0..map.rows).map(row).collect()
}
