//! From a normal form to layers: weights and biases, rounded to the type that they are written in.

use leo_formats::onnx::Float;
use leo_network::add_product;

use crate::normal_form::affine::Affine;
use crate::normal_form::linear::{Allowance, Decomposition, Weighing, decompose};
use crate::normal_form::normal::{Column, NormalForm};
use crate::normal_form::pass_through::{CarriedRow, Carriers, rows_of};
use crate::rewriting::plan::{Plan, Planned, PlannedMap};
use crate::rewriting::region::Region;

/// How much of its size a carrier stays above 0.
const SAFETY_MARGIN: f64 = 1.0 / 4096.0;

/// A unit of a new layer as a function of the normal form's columns, and between what its pre-activation is for sure,
/// seen from the layer before.
struct RealisedUnit {
    coefficients: Vec<f64>,
    constant: f64,
    range: Column,
}

/// New layers in the making.
pub(crate) struct Realisation<'a> {
    region: &'a Region,
    form: &'a NormalForm,
    float: Float,
    carriers: &'a [Option<Carriers>],
    /// Whether carriers are no units, but pass beside the layer.
    paths: bool,
    /// For each layer of the region, its place among the new ones.
    places: Vec<Option<usize>>,
    /// For each new layer, the units that stay.
    kept: Vec<Vec<usize>>,
    /// For each new layer, what its carriers are, with the weights that they have, rounded.
    made: Vec<Vec<RealisedUnit>>,
    layers: Vec<Planned>,
}

impl<'a> Realisation<'a> {
    pub(crate) fn new(
        region: &'a Region,
        form: &'a NormalForm,
        carriers: &'a [Option<Carriers>],
        paths: bool,
        float: Float,
    ) -> Self {
        let places = vec![None; region.layers.len()];
        Self { region, form, float, carriers, paths, places, kept: Vec::new(), made: Vec::new(), layers: Vec::new() }
    }

    pub(crate) fn finish(mut self) -> Plan {
        for index in 0..self.region.layers.len() {
            if self.carriers[index].is_some() {
                self.layer(index);
            }
        }
        let ports = (0..self.region.ports.len()).map(|port| self.port(port)).collect();
        Plan { layers: self.layers, ports, fates: self.form.fates.clone() }
    }

    /// The nearest layer before that is still there.
    fn parent(&self, mut layer: Option<usize>) -> Option<usize> {
        while let Some(index) = layer {
            if self.carriers[index].is_some() {
                return layer;
            }
            layer = self.region.layers[index].parent;
        }
        None
    }

    fn layer(&mut self, index: usize) {
        let parent = self.parent(self.region.layers[index].parent);
        let kept: Vec<usize> =
            (0..self.form.fates[index].len()).filter(|&unit| self.form.fates[index][unit].is_kept()).collect();
        let functions = self.carriers[index].as_ref().map_or(&[][..], |carriers| &carriers.functions);
        let units = kept.iter().map(|&unit| CarriedRow::Unit { layer: index, unit });
        let targets: Vec<CarriedRow> = units.chain(functions.iter().copied()).collect();
        let layer = &self.region.layers[index];
        let mut map = self.map(parent, parent != layer.parent || layer.is_product, &targets);
        let mut carriers = Vec::new();
        for (row, &target) in targets.iter().enumerate() {
            let mut made = self.made(parent, &map, row);
            if row < kept.len() {
                map.last.bias[row] = self.bias(target, &made);
                continue;
            }
            if !self.paths {
                let shift = self.shift(&made);
                map.last.bias[row] = shift;
                made.constant += shift;
                made.range = Column { lower: 0.0, upper: made.range.upper + shift };
            }
            carriers.push(made);
        }
        let mut units: Vec<Option<usize>> = kept.iter().copied().map(Some).collect();
        if !self.paths {
            units.resize(targets.len(), None);
        }
        self.places[index] = Some(self.layers.len());
        self.layers.push(Planned { layer: index, parent: parent.and_then(|parent| self.places[parent]), map, units });
        self.kept.push(kept);
        self.made.push(carriers);
    }

    fn port(&self, port: usize) -> (Option<usize>, PlannedMap) {
        let original = &self.region.ports[port];
        let parent = self.parent(original.parent);
        let targets: Vec<CarriedRow> =
            (0..original.map.rows).map(|row| CarriedRow::RegionOutput { port, row }).collect();
        let mut map = self.map(parent, parent != original.parent || original.is_product, &targets);
        for (row, &target) in targets.iter().enumerate() {
            map.last.bias[row] = self.bias(target, &self.made(parent, &map, row));
        }
        (parent.and_then(|parent| self.places[parent]), map)
    }

    /// The weights of functions on a layer's units, or on the entry, rounded; no biases yet. Where there were several
    /// steps, because layers have vanished between or because the file has several matrices in a row, it may take fewer
    /// numbers to go in two.
    fn map(&self, parent: Option<usize>, were_several: bool, targets: &[CarriedRow]) -> PlannedMap {
        let width = self.width(parent);
        let weight: Vec<f64> = targets.iter().flat_map(|&target| self.weights(parent, target)).collect();
        let whole = Affine { weight, ..Affine::zero(targets.len(), width) };
        let two_steps = were_several.then(|| in_two_steps(&whole)).flatten();
        let round = |mut affine: Affine| {
            affine.weight.iter_mut().for_each(|weight| *weight = self.float.round(*weight));
            affine
        };
        match two_steps {
            Some((first, last)) => PlannedMap { first: Some(round(first)), last: round(last) },
            None => PlannedMap { first: None, last: round(whole) },
        }
    }

    /// How many numbers something reads that reads this layer, or the entry.
    fn width(&self, parent: Option<usize>) -> usize {
        match parent.and_then(|parent| self.places[parent]) {
            Some(place) => self.layers[place].map.last.rows,
            None => self.region.range.lower.len(),
        }
    }

    /// The weights of a function on a layer's units, or on the entry.
    fn weights(&self, parent: Option<usize>, target: CarriedRow) -> Vec<f64> {
        let (rows, row) = rows_of(self.form, target);
        let Some((parent, place)) = parent.and_then(|parent| Some((parent, self.places[parent]?))) else {
            return (0..self.width(None)).map(|column| rows.at(row, column)).collect();
        };
        let column = |&unit: &usize| self.form.column_of[parent][unit].map_or(0.0, |column| rows.at(row, column));
        let factors = self.carriers[parent].as_ref().and_then(|carriers| carriers.of(target));
        let carried = (0..self.made[place].len()).map(|index| factors.map_or(0.0, |factors| factors[index]));
        self.kept[place].iter().map(column).chain(carried).collect()
    }

    /// What a row of weights on a layer's units, or on the entry, makes of the columns.
    fn made(&self, parent: Option<usize>, map: &PlannedMap, row: usize) -> RealisedUnit {
        let weights = match &map.first {
            Some(first) => {
                let mut weights = vec![0.0; first.columns];
                add_product(&mut weights, map.last.row(row), &first.weight, 1, first.rows, first.columns);
                weights
            }
            None => map.last.row(row).to_vec(),
        };
        let mut made = RealisedUnit {
            coefficients: vec![0.0; self.form.columns.len()],
            constant: 0.0,
            range: self.range(parent, &weights),
        };
        let Some((parent, place)) = parent.and_then(|parent| Some((parent, self.places[parent]?))) else {
            made.coefficients[..weights.len()].copy_from_slice(&weights);
            return made;
        };
        let (direct, carried) = weights.split_at(self.kept[place].len());
        for (&unit, &weight) in self.kept[place].iter().zip(direct) {
            if let Some(column) = self.form.column_of[parent][unit] {
                made.coefficients[column] = weight;
            }
        }
        for (carrier, &weight) in self.made[place].iter().zip(carried).filter(|(_, weight)| **weight != 0.0) {
            let pairs = made.coefficients.iter_mut().zip(&carrier.coefficients);
            pairs.for_each(|(sum, coefficient)| *sum += weight * coefficient);
            made.constant += weight * carrier.constant;
        }
        made
    }

    /// Between what a sum of multiples of a layer's units, or of the entry, lies.
    fn range(&self, parent: Option<usize>, weights: &[f64]) -> Column {
        let columns: Vec<Column> = match parent.and_then(|parent| Some((parent, self.places[parent]?))) {
            None => self.form.columns[..weights.len()].to_vec(),
            Some((parent, place)) => {
                let kept = self.kept[place].iter().filter_map(|&unit| self.form.column_of[parent][unit]);
                let carriers = self.made[place].iter().map(|carrier| carrier.range);
                kept.map(|column| self.form.columns[column]).chain(carriers).collect()
            }
        };
        let mut range = Column { lower: 0.0, upper: 0.0 };
        for (weight, column) in weights.iter().zip(columns) {
            let ends = [weight * column.lower, weight * column.upper];
            range.lower += ends[0].min(ends[1]);
            range.upper += ends[0].max(ends[1]);
        }
        range
    }

    /// The bias that makes a function what it should be, in the middle of the domain, whatever its rounded weights make
    /// of it.
    fn bias(&self, target: CarriedRow, made: &RealisedUnit) -> f64 {
        let (rows, row) = rows_of(self.form, target);
        let mut bias = rows.map.bias[row] - made.constant;
        for (index, column) in self.form.columns.iter().enumerate() {
            let missing = rows.at(row, index) - made.coefficients[index];
            if missing != 0.0 {
                bias += missing * column.middle();
            }
        }
        self.float.round(bias)
    }

    /// What to add to a function so that it is nowhere negative: as little as can be seen to be safe from the ranges of
    /// the units before, so that whoever looks for stable units sees it at once.
    fn shift(&self, made: &RealisedUnit) -> f64 {
        let least = made.range.lower;
        // Room for what units before are off by, and for the rounding of this number itself.
        let size = made.range.magnitude();
        let room = (0..).map(|doubled| size * SAFETY_MARGIN * f64::from(1_u32 << doubled.min(30)));
        let mut shifts = room.map(|room| self.float.round(room - least)).take(32);
        shifts.find(|shift| *shift >= -least).unwrap_or(f64::INFINITY)
    }
}

/// A matrix as the product of two, if these have fewer numbers. Something is always left of the first.
fn in_two_steps(whole: &Affine) -> Option<(Affine, Affine)> {
    let rows: Vec<Vec<f64>> = (0..whole.rows).map(|row| whole.row(row).to_vec()).collect();
    let sizes: Vec<f64> = rows.iter().map(|row| row.iter().map(|number| number.abs()).sum()).collect();
    let costs = vec![&[][..]; whole.rows];
    let allowance = Allowance { costs: &costs, parties: 0, budget: 0.0, sizes: &sizes, weighing: Weighing::Costs };
    let Decomposition { pivots, factors, .. } = decompose(&rows, whole.columns, allowance);
    let rank = pivots.len().max(1);
    if rank * (whole.rows + whole.columns) >= whole.rows * whole.columns {
        return None;
    }
    if pivots.is_empty() {
        return Some((Affine::zero(1, whole.columns), Affine::zero(whole.rows, 1)));
    }
    Some((whole.with_rows(&pivots), Affine { weight: factors.concat(), ..Affine::zero(whole.rows, rank) }))
}
