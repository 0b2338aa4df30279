//! What has to get past a layer: the linear functions that what comes after it needs of what comes before it, and which of them suffice to make all of them.

use std::collections::HashMap;

use crate::linear::{Allowance, Decomposition, Weighing, decompose};
use crate::normal::{NormalForm, Rows};
use crate::region::Region;
use crate::tolerance::Budget;

/// A row of the normal form that matters: of a unit that stays, or of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Target {
    Unit { layer: usize, unit: usize },
    Port { port: usize, row: usize },
}

/// The linear functions that what comes after a layer needs of what comes before it.
pub(crate) struct Traffic {
    pub(crate) targets: Vec<Target>,
    /// In units of half the widths of the columns' ranges.
    rows: Vec<Vec<f64>>,
    width: usize,
    sizes: Vec<f64>,
}

impl Traffic {
    pub(crate) fn past(region: &Region, form: &NormalForm, layer: usize) -> Self {
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
    pub(crate) fn decompose(&self, budget: &Budget, left: f64, weighing: Weighing) -> Decomposition {
        let cost = |target: &Target| match *target {
            Target::Unit { layer, unit } => budget.units[layer][unit].as_slice(),
            Target::Port { port, row } => budget.ports[port][row].as_slice(),
        };
        let costs: Vec<&[(usize, f64)]> = self.targets.iter().map(cost).collect();
        let parties = budget.parties;
        let allowance = Allowance { costs: &costs, parties, budget: left.max(0.0), sizes: &self.sizes, weighing };
        decompose(&self.rows, self.width, allowance)
    }
}

/// Where a row is.
pub(crate) fn rows_of(form: &NormalForm, target: Target) -> (&Rows, usize) {
    match target {
        Target::Unit { layer, unit } => (&form.layers[layer], unit),
        Target::Port { port, row } => (&form.ports[port], row),
    }
}

/// The carriers of a layer.
pub(crate) struct Carriers {
    /// Which functions they are, as far as these depend on what comes before the layer.
    pub(crate) functions: Vec<Target>,
    /// All functions that need them, and their factors.
    pub(crate) needed: HashMap<Target, Vec<f64>>,
}

impl Carriers {
    /// The factors of a function on the carriers.
    pub(crate) fn of(&self, target: Target) -> Option<&[f64]> {
        self.needed.get(&target).map(Vec::as_slice)
    }
}
