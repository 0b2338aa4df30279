//! The normal form, and its realisation with as few units as possible.
//!
//! A layer needs its units that are neither constant nor linear nor multiples of others, and *carriers*, units that are always on, for the linear
//! functions that layers after it need of what comes before it. As many as the rank of these functions suffice, and fewer cannot do. A layer
//! without units of its own vanishes: what it carried goes into the next.
//!
//! Carriers are some of the functions themselves, chosen by a QR decomposition with pivoting; the others are combinations of these. If a layer's own
//! linear units are no more than the carriers would be, they stay, as they are.

use leo_check::Claim;
use leo_network::add_product;
use leo_network::onnx::Float;

use crate::affine::Affine;
use crate::linear::{Allowance, Decomposition, decompose};
use crate::normal::{Choices, Column, NormalForm, Rows};
use crate::plan::{Fate, Map, Origin, Plan, Planned, Rule};
use crate::region::{Layer, Region};

/// What errors cost, and how much may be spent.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// For each layer and channel, what an error of 1 in its pre-activation costs each output at the most.
    pub(crate) units: Vec<Vec<Vec<f64>>>,
    /// The same for each port.
    pub(crate) ports: Vec<Vec<Vec<f64>>>,
    /// What all errors together may cost any output.
    pub(crate) total: f64,
}

impl Budget {
    /// How large an error in a unit's pre-activation can be that costs no more than this.
    pub(crate) fn affordable(&self, layer: usize, unit: usize, cost: f64) -> f64 {
        let most = self.units[layer][unit].iter().copied().fold(0.0, f64::max);
        if most > 0.0 { cost / most } else { 0.0 }
    }
}

/// What share of a budget may go to units that are nearly constant or nearly linear, and what to those that are nearly multiples of others. The
/// rest is for functions that are nearly combinations of others.
const SHARE_OF_UNITS: f64 = 0.25;
const SHARE_OF_MULTIPLES: f64 = 0.0625;

/// A region in normal form, and which functions its layers carry: all but the numbers themselves.
pub(crate) struct Outline<'a> {
    region: &'a Region,
    form: NormalForm,
    /// For each layer that is not to vanish.
    carriers: Vec<Option<Carriers>>,
}

impl<'a> Outline<'a> {
    /// With as few units as possible.
    pub(crate) fn new(region: &'a Region, budget: &Budget) -> Self {
        let (mut choices, mut left) = choices(region, budget);
        let (mut best, mut fewest) = retained(region, &choices, budget, left);
        let mut form = NormalForm::new(region, &best);
        // A negative multiple is worth replacing only if the linear function that comes with it needs no unit of its own.
        let is_opposite = |fate: &Fate| matches!(fate, Fate::Gone(Rule::Opposite, _));
        for layer in 0..region.layers.len() {
            if form.fates[layer].iter().any(is_opposite) {
                choices.opposites[layer] = false;
                let (without, units) = retained(region, &choices, budget, left);
                if units <= fewest {
                    (best, fewest) = (without, units);
                } else {
                    choices.opposites[layer] = true;
                }
            }
        }
        if best.opposites.contains(&false) {
            form = NormalForm::new(region, &best);
        }
        let carriers = |layer: usize| {
            (form.kept(layer) > 0).then(|| {
                let traffic = Traffic::past(region, &form, layer);
                let Decomposition { pivots, factors, cost } = traffic.decompose(budget, left);
                left -= cost;
                let functions = pivots.iter().map(|&pivot| traffic.targets[pivot]).collect();
                Carriers { functions, needed: traffic.targets.into_iter().zip(factors).collect() }
            })
        };
        let carriers = (0..region.layers.len()).map(carriers).collect();
        Self { region, form, carriers }
    }

    /// How many units it takes.
    pub(crate) fn units(&self) -> usize {
        let layers = self.region.layers.iter().zip(&self.carriers).enumerate();
        let units = |(index, (layer, carriers)): (usize, (&Layer, &Option<Carriers>))| {
            let carriers = carriers.as_ref().map_or(0, |carriers| carriers.functions.len());
            (self.form.kept(index) + carriers) * layer.positions
        };
        layers.map(units).sum()
    }

    /// With numbers of this type.
    pub(crate) fn plan(&self, float: Float) -> Plan {
        let places = vec![None; self.region.layers.len()];
        let Self { region, form, carriers } = self;
        let realisation = Realisation {
            region,
            form,
            float,
            carriers,
            places,
            kept: Vec::new(),
            made: Vec::new(),
            layers: Vec::new(),
        };
        realisation.finish()
    }
}

/// Which units do too little to matter, how far multiples may be off, and what is left of the budget then.
fn choices(region: &Region, budget: &Budget) -> (Choices, f64) {
    let mut choices = Choices::new(region);
    if budget.total <= 0.0 {
        return (choices, 0.0);
    }
    let mut candidates = Vec::new();
    for (index, layer) in region.layers.iter().enumerate() {
        for unit in 0..layer.map.rows {
            let (lower, upper) = (layer.range.lower[unit], layer.range.upper[unit]);
            if lower < 0.0 && upper > 0.0 {
                let error = upper.min(-lower) / 2.0;
                candidates.push((error / budget.affordable(index, unit, 1.0), index, unit));
            }
        }
    }
    candidates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut spent = 0.0;
    for &(cost, index, unit) in &candidates {
        spent += cost;
        if spent.is_nan() || spent > budget.total * SHARE_OF_UNITS {
            spent -= cost;
            break;
        }
        let range = &region.layers[index].range;
        let (lower, upper) = (range.lower[unit], range.upper[unit]);
        let claim = if upper <= -lower { Claim::Constant(upper / 2.0) } else { Claim::Linear(-lower / 2.0) };
        choices.negligible[index][unit] = Some(claim);
    }
    let each = budget.total * SHARE_OF_MULTIPLES / candidates.len().max(1) as f64;
    for (layer, allowance) in choices.allowance.iter_mut().enumerate() {
        *allowance = (0..allowance.len()).map(|unit| budget.affordable(layer, unit, each)).collect();
    }
    (choices, budget.total * (1.0 - SHARE_OF_MULTIPLES) - spent)
}

/// Decides in which layers the linear units stay, and counts the units that are needed then.
fn retained(region: &Region, choices: &Choices, budget: &Budget, mut left: f64) -> (Choices, usize) {
    let mut choices = choices.clone();
    let form = NormalForm::new(region, &choices);
    let live = live_linear(region, &form);
    let mut units = 0;
    for (index, layer) in region.layers.iter().enumerate() {
        let kept = form.kept(index);
        if kept == 0 {
            continue;
        }
        let decomposition = Traffic::past(region, &form, index).decompose(budget, left);
        let carriers = decomposition.pivots.len();
        let own = live[index].iter().filter(|live| **live).count();
        let has_opposites = form.fates[index].iter().any(|fate| matches!(fate, Fate::Gone(Rule::Opposite, _)));
        let mut needed = kept + carriers;
        if own <= carriers && !has_opposites {
            choices.retained[index].clone_from(&live[index]);
            needed = kept + own;
        } else {
            left -= decomposition.cost;
        }
        units += needed * layer.positions;
    }
    (choices, units)
}

/// Which units that are always on are read by something that matters.
fn live_linear(region: &Region, form: &NormalForm) -> Vec<Vec<bool>> {
    let mut live: Vec<Vec<bool>> = region.layers.iter().map(|layer| vec![false; layer.map.rows]).collect();
    let mark = |live: &mut Vec<bool>, map: &Affine, row: usize| {
        live.iter_mut().zip(map.row(row)).for_each(|(live, weight)| *live |= *weight != 0.0);
    };
    for port in &region.ports {
        if let Some(parent) = port.parent {
            (0..port.map.rows).for_each(|row| mark(&mut live[parent], &port.map, row));
        }
    }
    for (index, layer) in region.layers.iter().enumerate().rev() {
        let fates = &form.fates[index];
        for (unit, fate) in fates.iter().enumerate() {
            let matters = match fate {
                Fate::Kept | Fate::Gone(Rule::Opposite, _) => true,
                Fate::Gone(Rule::Linear | Rule::Negligible, Claim::Linear(_)) => live[index][unit],
                Fate::Gone(..) => false,
            };
            if let (true, Some(parent)) = (matters, layer.parent) {
                mark(&mut live[parent], &layer.map, unit);
            }
        }
        let is_linear = |fate: &Fate| matches!(fate, Fate::Gone(Rule::Linear, _));
        live[index].iter_mut().zip(fates).for_each(|(live, fate)| *live &= is_linear(fate));
    }
    live
}

/// A row of the normal form that matters: of a unit that stays, or of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Unit { layer: usize, unit: usize },
    Port { port: usize, row: usize },
}

/// The linear functions that what comes after a layer needs of what comes before it.
struct Traffic {
    targets: Vec<Target>,
    /// In units of half the widths of the columns' ranges.
    rows: Vec<Vec<f64>>,
    width: usize,
    sizes: Vec<f64>,
}

impl Traffic {
    fn past(region: &Region, form: &NormalForm, layer: usize) -> Self {
        let width = form.starts[layer];
        let mut traffic = Self { targets: Vec::new(), rows: Vec::new(), width, sizes: Vec::new() };
        let mut below = vec![false; region.layers.len()];
        below[layer] = true;
        for (index, after) in region.layers.iter().enumerate().skip(layer + 1) {
            below[index] = after.parent.is_some_and(|parent| below[parent]);
            if below[index] {
                let kept = (0..after.map.rows).filter(|&unit| form.fates[index][unit].is_kept());
                kept.for_each(|unit| traffic.add(form, Target::Unit { layer: index, unit }));
            }
        }
        for (index, port) in region.ports.iter().enumerate() {
            if port.parent.is_some_and(|parent| below[parent]) {
                (0..port.map.rows).for_each(|row| traffic.add(form, Target::Port { port: index, row }));
            }
        }
        traffic
    }

    fn add(&mut self, form: &NormalForm, target: Target) {
        let (rows, row) = rows_of(form, target);
        let columns = form.columns[..self.width].iter().enumerate();
        let scaled: Vec<f64> = columns.map(|(index, column)| rows.at(row, index) * column.half_width()).collect();
        if scaled.iter().any(|number| *number != 0.0) {
            self.targets.push(target);
            self.rows.push(scaled);
            self.sizes.push(rows.sizes[row]);
        }
    }

    /// As combinations of few functions, if errors may cost no more than what is left of the budget.
    fn decompose(&self, budget: &Budget, left: f64) -> Decomposition {
        let cost = |target: &Target| match *target {
            Target::Unit { layer, unit } => budget.units[layer][unit].as_slice(),
            Target::Port { port, row } => budget.ports[port][row].as_slice(),
        };
        let costs: Vec<&[f64]> = self.targets.iter().map(cost).collect();
        let allowance = Allowance { costs: &costs, budget: left.max(0.0), sizes: &self.sizes };
        decompose(&self.rows, self.width, allowance)
    }
}

fn rows_of(form: &NormalForm, target: Target) -> (&Rows, usize) {
    match target {
        Target::Unit { layer, unit } => (&form.layers[layer], unit),
        Target::Port { port, row } => (&form.ports[port], row),
    }
}

/// The carriers of a layer.
struct Carriers {
    /// Which functions they are, as far as these depend on what comes before the layer.
    functions: Vec<Target>,
    /// All functions that need them, and their factors.
    needed: Vec<(Target, Vec<f64>)>,
}

impl Carriers {
    fn of(&self, target: Target) -> Option<&[f64]> {
        self.needed.iter().find(|(needing, _)| *needing == target).map(|(_, factors)| factors.as_slice())
    }
}

/// A unit of a new layer as a function of the normal form's columns, and between what its pre-activation is for sure, seen from the layer before.
struct Made {
    coefficients: Vec<f64>,
    constant: f64,
    range: Column,
}

/// New layers in the making.
struct Realisation<'a> {
    region: &'a Region,
    form: &'a NormalForm,
    float: Float,
    carriers: &'a [Option<Carriers>],
    /// For each layer of the region, its place among the new ones.
    places: Vec<Option<usize>>,
    /// For each new layer, the units that stay.
    kept: Vec<Vec<usize>>,
    /// For each new layer, what its carriers are, with the weights that they have, rounded.
    made: Vec<Vec<Made>>,
    layers: Vec<Planned>,
}

impl Realisation<'_> {
    fn finish(mut self) -> Plan {
        for index in 0..self.region.layers.len() {
            if self.carriers[index].is_some() {
                self.layer(index);
            }
        }
        let ports = (0..self.region.ports.len()).map(|port| self.port(port)).collect();
        let fates = self.form.fates.clone();
        let linear = fates.iter().map(|fates| vec![false; fates.len()]).collect();
        Plan { layers: self.layers, ports, fates, linear }
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
        let units = kept.iter().map(|&unit| Target::Unit { layer: index, unit });
        let targets: Vec<Target> = units.chain(functions.iter().copied()).collect();
        let mut map = self.map(parent, self.region.layers[index].parent, &targets);
        let mut carriers = Vec::new();
        for (row, &target) in targets.iter().enumerate() {
            let mut made = self.made(parent, &map, row);
            map.last.bias[row] = if row < kept.len() { self.bias(target, &made) } else { self.shift(&made) };
            if row >= kept.len() {
                let shift = map.last.bias[row];
                made.constant += shift;
                made.range = Column { lower: 0.0, upper: made.range.upper + shift };
                carriers.push(made);
            }
        }
        let origins = kept.iter().map(|&unit| Origin::Unit(unit));
        let units = origins.chain(functions.iter().map(|_| Origin::Carrier)).collect();
        self.places[index] = Some(self.layers.len());
        self.layers.push(Planned { layer: index, parent: parent.and_then(|parent| self.places[parent]), map, units });
        self.kept.push(kept);
        self.made.push(carriers);
    }

    fn port(&self, port: usize) -> (Option<usize>, Map) {
        let parent = self.parent(self.region.ports[port].parent);
        let rows = self.region.ports[port].map.rows;
        let targets: Vec<Target> = (0..rows).map(|row| Target::Port { port, row }).collect();
        let mut map = self.map(parent, self.region.ports[port].parent, &targets);
        for (row, &target) in targets.iter().enumerate() {
            map.last.bias[row] = self.bias(target, &self.made(parent, &map, row));
        }
        (parent.and_then(|parent| self.places[parent]), map)
    }

    /// The weights of functions on a layer's units, or on the entry, rounded; no biases yet. Where layers have vanished between, it may take fewer numbers to
    /// go in two steps, as they did.
    fn map(&self, parent: Option<usize>, original: Option<usize>, targets: &[Target]) -> Map {
        let width = self.width(parent);
        let weight: Vec<f64> = targets.iter().flat_map(|&target| self.weights(parent, target)).collect();
        let whole = Affine { weight, ..Affine::zero(targets.len(), width) };
        let two_steps = (parent != original).then(|| in_two_steps(&whole)).flatten();
        let round = |mut affine: Affine| {
            affine.weight.iter_mut().for_each(|weight| *weight = self.float.round(*weight));
            affine
        };
        match two_steps {
            Some((first, last)) => Map { first: Some(round(first)), last: round(last) },
            None => Map { first: None, last: round(whole) },
        }
    }

    /// How many numbers something reads that reads this layer, or the entry.
    fn width(&self, parent: Option<usize>) -> usize {
        match parent.and_then(|parent| self.places[parent]) {
            Some(place) => self.layers[place].units.len(),
            None => self.region.range.lower.len(),
        }
    }

    /// The weights of a function on a layer's units, or on the entry.
    fn weights(&self, parent: Option<usize>, target: Target) -> Vec<f64> {
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
    fn made(&self, parent: Option<usize>, map: &Map, row: usize) -> Made {
        let weights = match &map.first {
            Some(first) => {
                let mut weights = vec![0.0; first.columns];
                add_product(&mut weights, map.last.row(row), &first.weight, 1, first.rows, first.columns);
                weights
            }
            None => map.last.row(row).to_vec(),
        };
        let mut made = Made {
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

    /// The bias that makes a function what it should be, in the middle of the domain, whatever its rounded weights make of it.
    fn bias(&self, target: Target, made: &Made) -> f64 {
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

    /// What to add to a function so that it is nowhere negative: as little as can be seen to be safe from the ranges of the units before, so that whoever
    /// looks for stable units sees it at once.
    fn shift(&self, made: &Made) -> f64 {
        let least = made.range.lower;
        // Room for what units before are off by, and for the rounding of this number itself.
        let size = made.range.magnitude();
        let room = (0..).map(|doubled| size * SAFETY * f64::from(1_u32 << doubled.min(30)));
        let mut shifts = room.map(|room| self.float.round(room - least)).take(32);
        shifts.find(|shift| *shift >= -least).unwrap_or(f64::INFINITY)
    }
}

/// A matrix as the product of two, if these have fewer numbers. Something is always left of the first.
fn in_two_steps(whole: &Affine) -> Option<(Affine, Affine)> {
    let rows: Vec<Vec<f64>> = (0..whole.rows).map(|row| whole.row(row).to_vec()).collect();
    let sizes: Vec<f64> = rows.iter().map(|row| row.iter().map(|number| number.abs()).sum()).collect();
    let allowance = Allowance { costs: &vec![&[][..]; whole.rows], budget: 0.0, sizes: &sizes };
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

/// How much of its size a carrier stays above 0.
const SAFETY: f64 = 1.0 / 4096.0;
