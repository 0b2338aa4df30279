//! The normal form, and its realisation with as few units as possible.
//!
//! A layer needs its units that are neither constant nor linear nor multiples of others, and *carriers*, units that are
//! always on, for the linear functions that layers after it need of what comes before it. As many as the rank of these
//! functions suffice, and fewer cannot do. A layer without units of its own vanishes: what it carried goes into the
//! next.
//!
//! Carriers are some of the functions themselves, chosen by a QR decomposition with pivoting; the others are
//! combinations of these. If a layer's own linear units are no more than the carriers would be, they stay, as they are.

use std::collections::BTreeSet;

use leo_check::{Expression, beyond, touched};
use leo_formats::onnx::Float;
use leo_network::LayerId;
use leo_network::activation::Piece;

use crate::normal_form::affine::Affine;
use crate::normal_form::linear::{Decomposition, Weighing};
use crate::normal_form::normal::{Choices, NormalForm};
use crate::normal_form::pass_through::{Carriers, PassThrough};
use crate::normal_form::realise::Realisation;
use crate::rewriting::plan::{ChannelFate, Plan, Rule};
use crate::rewriting::region::{Region, RegionLayer};
use crate::tolerance::ErrorBudget;

/// What share of a budget may go to units that are nearly constant or nearly linear.
const SHARE_OF_UNITS: f64 = 0.25;

/// What share of a budget may go to units that are nearly multiples of others. The rest is for functions that are
/// nearly combinations of others.
const SHARE_OF_MULTIPLES: f64 = 0.0625;

/// What a region may be rewritten with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Style {
    /// Layers in which no unit is replaced by a negative multiple of another: the linear functions that come with that
    /// can be large numbers that cancel.
    pub(crate) without_opposites: BTreeSet<LayerId>,
    /// Whether units that are always on stay as they are, instead of fewer new ones that carry linear functions.
    pub(crate) keep_linear: bool,
    /// Whether linear functions pass a layer beside it, by no ReLU: they need no shift then, which can be a large
    /// number that cancels.
    pub(crate) paths: bool,
}

/// A region in normal form, and which functions its layers carry: all but the numbers themselves.
pub(crate) struct Outline<'a> {
    region: &'a Region,
    form: NormalForm,
    /// For each layer that is not to vanish, chosen by what errors cost.
    carriers: Vec<Option<Carriers>>,
    /// The carriers as they would be chosen by their sizes, if these are others, and as many.
    by_size: Option<Vec<Option<Carriers>>>,
    /// For each such layer, how many linear functions have to get past it: their rank.
    ranks: Vec<Option<usize>>,
    /// Whether they pass beside the layers.
    paths: bool,
}

impl<'a> Outline<'a> {
    /// With as few units as possible, in this style.
    pub(crate) fn new(region: &'a Region, budget: &ErrorBudget, style: &Style) -> Self {
        let (mut choices, left) = choices(region, budget);
        for (layer, opposites) in region.layers.iter().zip(&mut choices.opposites) {
            *opposites = !style.without_opposites.contains(&layer.id);
        }
        if style.keep_linear {
            let on = |layer: &RegionLayer| (0..layer.map.rows).map(|unit| layer.is_active(unit)).collect();
            choices.retained = region.layers.iter().map(on).collect();
        }
        let Retained { choices: mut best, units: mut fewest, mut ranks } = retained(region, &choices, budget, left);
        let mut form = NormalForm::new(region, &best);
        // A negative multiple is worth replacing only if the linear function that comes with it needs no unit of its
        // own.
        for layer in 0..region.layers.len() {
            if form.fates[layer].iter().any(is_opposite) {
                choices.opposites[layer] = false;
                let without = retained(region, &choices, budget, left);
                if without.units <= fewest {
                    (best, fewest, ranks) = (without.choices, without.units, without.ranks);
                } else {
                    choices.opposites[layer] = true;
                }
            }
        }
        if best.opposites.contains(&false) {
            form = NormalForm::new(region, &best);
        }
        let carriers = carriers(region, &form, budget, left, Weighing::Costs);
        let by_size = self::carriers(region, &form, budget, left, Weighing::Sizes);
        let functions = |of: &Option<Carriers>| of.as_ref().map(|carriers| carriers.functions.clone());
        let pairs = || carriers.iter().zip(&by_size).map(|(mine, others)| (functions(mine), functions(others)));
        let are_as_many = pairs().all(|(mine, others)| mine.map(|of| of.len()) == others.map(|of| of.len()));
        let are_others = pairs().any(|(mine, others)| mine != others);
        let by_size = (are_as_many && are_others).then_some(by_size);
        Self { region, form, carriers, by_size, ranks, paths: style.paths }
    }

    /// Whether there is another choice of carriers.
    pub(crate) fn has_choice(&self) -> bool {
        self.by_size.is_some()
    }

    /// For each layer of the region that stays, how many linear functions have to get past it.
    pub(crate) fn ranks(&self) -> &[Option<usize>] {
        &self.ranks
    }

    /// The layers in which units are replaced by negative multiples of others.
    pub(crate) fn with_opposites(&self) -> impl Iterator<Item = LayerId> {
        let layers = self.region.layers.iter().zip(&self.form.fates);
        layers.filter(|(_, fates)| fates.iter().any(is_opposite)).map(|(layer, _)| layer.id)
    }

    /// How many units it takes, and functions that pass beside them.
    pub(crate) fn units(&self) -> usize {
        let layers = self.region.layers.iter().zip(&self.carriers).enumerate();
        let units = |(index, (layer, carriers)): (usize, (&RegionLayer, &Option<Carriers>))| {
            let carriers = carriers.as_ref().map_or(0, |carriers| carriers.functions.len());
            (self.form.kept(index) + carriers) * layer.channels.positions()
        };
        layers.map(units).sum()
    }

    /// With numbers of this type, and carriers chosen this way.
    pub(crate) fn plan(&self, float: Float, weighing: Weighing) -> Plan {
        let carriers = match (weighing, &self.by_size) {
            (Weighing::Sizes, Some(by_size)) => by_size,
            (Weighing::Costs, _) | (Weighing::Sizes, None) => &self.carriers,
        };
        Realisation::new(self.region, &self.form, carriers, self.paths, float).finish()
    }
}

/// For each layer that is not to vanish, the functions that carry all those that have to get past it.
fn carriers(
    region: &Region,
    form: &NormalForm,
    budget: &ErrorBudget,
    mut left: f64,
    weighing: Weighing,
) -> Vec<Option<Carriers>> {
    let of_layer = |layer: usize| {
        (form.kept(layer) > 0).then(|| {
            let traffic = PassThrough::past(region, form, layer);
            let Decomposition { pivots, factors, cost } = traffic.decompose(budget, left, weighing);
            left -= cost;
            let functions = pivots.iter().map(|&pivot| traffic.targets[pivot]).collect();
            Carriers { functions, needed: traffic.targets.into_iter().zip(factors).collect() }
        })
    };
    (0..region.layers.len()).map(of_layer).collect()
}

/// Whether a unit is replaced by a negative multiple of another.
fn is_opposite(fate: &ChannelFate) -> bool {
    matches!(fate, ChannelFate::Gone(Rule::Opposite, _))
}

/// Which units do too little to matter, how far multiples may be off, and what is left of the budget then.
fn choices(region: &Region, budget: &ErrorBudget) -> (Choices, f64) {
    let mut choices = Choices::new(region);
    if budget.total <= 0.0 {
        return (choices, 0.0);
    }
    let mut candidates = Vec::new();
    for (index, layer) in region.layers.iter().enumerate() {
        for unit in 0..layer.map.rows {
            if let Some((error, line)) = nearest_line(layer, unit) {
                candidates.push((error / budget.affordable(index, unit, 1.0), index, unit, line));
            }
        }
    }
    candidates.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut spent = 0.0;
    for &(cost, index, unit, line) in &candidates {
        spent += cost;
        if spent.is_nan() || spent > budget.total * SHARE_OF_UNITS {
            spent -= cost;
            break;
        }
        choices.negligible[index][unit] = Some(line);
    }
    let each = budget.total * SHARE_OF_MULTIPLES / candidates.len().max(1) as f64;
    for (layer, allowance) in choices.allowance.iter_mut().enumerate() {
        *allowance = (0..allowance.len()).map(|unit| budget.affordable(layer, unit, each)).collect();
    }
    (choices, budget.total * (1.0 - SHARE_OF_MULTIPLES) - spent)
}

/// For a unit that is not stable, the line along one of its pieces that it is nearest to, and how far it can be from
/// that.
fn nearest_line(layer: &RegionLayer, unit: usize) -> Option<(f64, Expression<usize>)> {
    let (at, of) = (layer.range.at(unit), &layer.activation);
    let [first, last] = touched(of, &at.lower, &at.upper);
    let line = |piece: &Piece| {
        let beyond = beyond(of, &at, piece.slope, piece.constant);
        let (error, middle) = ((beyond.upper - beyond.lower) / 2.0, (beyond.upper + beyond.lower) / 2.0);
        (error, Expression::Affine { slope: piece.slope, constant: piece.constant + middle })
    };
    let lines = of.pieces()[first..=last].iter().map(line);
    lines.reduce(|best, next| if next.0 < best.0 { next } else { best }).filter(|_| first < last)
}

/// What stays of a region.
struct Retained {
    /// With the layers in which the linear units stay.
    choices: Choices,
    /// How many units are needed then.
    units: usize,
    /// For each layer that stays, how many linear functions have to get past it.
    ranks: Vec<Option<usize>>,
}

/// Decides in which layers the linear units stay, and counts the units that are needed then.
fn retained(region: &Region, choices: &Choices, budget: &ErrorBudget, mut left: f64) -> Retained {
    let mut choices = choices.clone();
    let form = NormalForm::new(region, &choices);
    let live = live_linear(region, &form);
    let (mut units, mut ranks) = (0, vec![None; region.layers.len()]);
    for (index, layer) in region.layers.iter().enumerate() {
        let kept = form.kept(index);
        if kept == 0 {
            continue;
        }
        let decomposition = PassThrough::past(region, &form, index).decompose(budget, left, Weighing::Costs);
        let carriers = decomposition.pivots.len();
        ranks[index] = Some(carriers);
        let own = live[index].iter().filter(|live| **live).count();
        let has_opposites = form.fates[index].iter().any(is_opposite);
        let mut needed = kept + carriers;
        if own <= carriers && !has_opposites {
            choices.retained[index].iter_mut().zip(&live[index]).for_each(|(retained, live)| *retained |= live);
            needed = kept + own;
        } else {
            left -= decomposition.cost;
        }
        units += needed * layer.channels.positions();
    }
    Retained { choices, units, ranks }
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
                ChannelFate::Kept | ChannelFate::KeptLinear | ChannelFate::Gone(Rule::Opposite, _) => true,
                ChannelFate::Gone(Rule::Linear | Rule::Negligible, Expression::Affine { slope, .. })
                    if *slope != 0.0 =>
                {
                    live[index][unit]
                }
                ChannelFate::Gone(..) => false,
            };
            if let (true, Some(parent)) = (matters, layer.parent) {
                mark(&mut live[parent], &layer.map, unit);
            }
        }
        let is_linear = |fate: &ChannelFate| matches!(fate, ChannelFate::Gone(Rule::Linear, _));
        live[index].iter_mut().zip(fates).for_each(|(live, fate)| *live &= is_linear(fate));
    }
    live
}
