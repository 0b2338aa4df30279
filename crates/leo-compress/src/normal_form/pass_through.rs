//! What has to get past a layer: the linear functions that what comes after it needs of what comes before it, and which
//! of them suffice to make all of them.

use std::collections::HashMap;

use crate::normal_form::linear::{Allowance, Decomposition, Weighing, decompose};
use crate::normal_form::normal::{NormalForm, NormalRows};
use crate::rewriting::region::Region;
use crate::tolerance::ErrorBudget;

/// A row of the normal form that matters: of a unit that stays, or of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CarriedRow {
    Unit { layer: usize, unit: usize },
    RegionOutput { port: usize, row: usize },
}

/// The linear functions that what comes after a layer needs of what comes before it.
pub(crate) struct PassThrough {
    pub(crate) targets: Vec<CarriedRow>,
    /// In units of half the widths of the columns' ranges.
    rows: Vec<Vec<f64>>,
    width: usize,
    sizes: Vec<f64>,
}

impl PassThrough {
    pub(crate) fn past(region: &Region, form: &NormalForm, layer: usize) -> Self {
        let width = form.starts[layer];
        let mut traffic = Self { targets: Vec::new(), rows: Vec::new(), width, sizes: Vec::new() };
        let mut below = vec![false; region.layers.len()];
        below[layer] = true;
        for (index, after) in region.layers.iter().enumerate().skip(layer + 1) {
            below[index] = after.parent.is_some_and(|parent| below[parent]);
            if below[index] {
                let kept = (0..after.map.rows).filter(|&unit| form.fates[index][unit].is_kept());
                kept.for_each(|unit| traffic.add(form, CarriedRow::Unit { layer: index, unit }));
            }
        }
        for (index, port) in region.ports.iter().enumerate() {
            if port.parent.is_some_and(|parent| below[parent]) {
                (0..port.map.rows).for_each(|row| traffic.add(form, CarriedRow::RegionOutput { port: index, row }));
            }
        }
        traffic
    }

    fn add(&mut self, form: &NormalForm, target: CarriedRow) {
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
    pub(crate) fn decompose(&self, budget: &ErrorBudget, left: f64, weighing: Weighing) -> Decomposition {
        let cost = |target: &CarriedRow| match *target {
            CarriedRow::Unit { layer, unit } => budget.units[layer][unit].as_slice(),
            CarriedRow::RegionOutput { port, row } => budget.ports[port][row].as_slice(),
        };
        let costs: Vec<&[(usize, f64)]> = self.targets.iter().map(cost).collect();
        let parties = budget.parties;
        let allowance = Allowance { costs: &costs, parties, budget: left.max(0.0), sizes: &self.sizes, weighing };
        decompose(&self.rows, self.width, allowance)
    }
}

/// Where a row is.
pub(crate) fn rows_of(form: &NormalForm, target: CarriedRow) -> (&NormalRows, usize) {
    match target {
        CarriedRow::Unit { layer, unit } => (&form.layers[layer], unit),
        CarriedRow::RegionOutput { port, row } => (&form.ports[port], row),
    }
}

/// The carriers of a layer.
pub(crate) struct Carriers {
    /// Which functions they are, as far as these depend on what comes before the layer.
    pub(crate) functions: Vec<CarriedRow>,
    /// All functions that need them, and their factors.
    pub(crate) needed: HashMap<CarriedRow, Vec<f64>>,
}

impl Carriers {
    /// The factors of a function on the carriers.
    pub(crate) fn of(&self, target: CarriedRow) -> Option<&[f64]> {
        self.needed.get(&target).map(Vec::as_slice)
    }
}
