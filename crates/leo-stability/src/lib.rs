//! Decides for every ReLU unit of a network whether it can be on, and whether it can be off, on a domain.
//!
//! Cheapest first, and stop at the sign: a unit's optimum is never needed. Inputs with both signs settle a unit as unstable; bounds
//! proved by `leo-check` settle it as stable. What neither settles is undecided, and kept.

mod gradient;
mod relaxed;
mod search;
mod slopes;
mod verdict;
mod witness;

use std::time::{Duration, Instant};

use leo_check::{Checker, Side, Slopes};
use leo_network::{Domain, DomainError, Network};

pub use verdict::{By, Status, Unit};

use search::Search;

/// Into how many pieces the domain may be cut for one bound.
const PIECES: usize = 2000;

/// How to go about it.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// What random points are drawn from.
    pub seed: u64,
    /// Points to begin with, one after the other. Where they leave the domain, the point of it next to them is taken.
    pub samples: Vec<f64>,
}

/// A layer of units.
#[derive(Clone, Debug)]
pub struct Layer {
    /// Its node in the network.
    pub node: usize,
    /// Its units, in the order of the values.
    pub units: Vec<Unit>,
    /// How long it took.
    pub time: Duration,
}

/// Decides every unit it can.
///
/// # Errors
/// If the domain does not have as many inputs as the network.
pub fn analyze(network: &Network, domain: &Domain, options: &Options) -> Result<Vec<Layer>, DomainError> {
    let mut start = Instant::now();
    let mut checker = Checker::new(network, domain)?;
    let mut witnesses = witness::Witnesses::new(network, domain, &options.samples, options.seed);
    let last = network.relu_layers().last();
    let mut layers = Vec::new();
    while let Some(node) = checker.next_layer() {
        let width = checker.range(node).lower.len();
        let mut decided: Vec<Option<(Status, By)>> = vec![None; width];
        settle(&checker, node, &mut decided, By::Interval);
        find_unstable(&checker, &witnesses, layers.len(), &mut decided);
        // Ranges of unstable units matter to the layers after, and in the last one to nobody.
        let wanted = |unit: &usize| node != last.unwrap_or(node) || decided[*unit].is_none();
        let bounds: Vec<(usize, Side)> =
            (0..width).filter(wanted).flat_map(|unit| [(unit, Side::Lower), (unit, Side::Upper)]).collect();
        checker.prove_linear(&bounds, &Slopes::Default);
        settle(&checker, node, &mut decided, By::Linear);
        let open: Vec<usize> = (0..width).filter(|&unit| decided[unit].is_none()).collect();
        witnesses.climb(&checker, layers.len(), &open);
        find_unstable(&checker, &witnesses, layers.len(), &mut decided);
        let open: Vec<(usize, Side)> = (0..width)
            .filter(|&unit| decided[unit].is_none())
            .flat_map(|unit| [(unit, Side::Lower), (unit, Side::Upper)])
            .filter(|&(unit, side)| witnesses.may_hold(&checker, layers.len(), unit, side))
            .collect();
        if !open.is_empty() {
            checker.prove_linear(&open, &slopes::improved(network, node, checker.ranges(), &open));
            settle(&checker, node, &mut decided, By::Slopes);
        }
        for (unit, side) in open.into_iter().filter(|&(unit, _)| decided[unit].is_none()) {
            let ranges = checker.ranges().to_vec();
            let mut refutes = |point: &[f64]| {
                witnesses.look_at(point);
                !witnesses.may_hold(&checker, layers.len(), unit, side)
            };
            let mut search =
                Search { network, layer: node, target: (unit, side), budget: PIECES, refutes: &mut refutes };
            if let search::Outcome::Proved(tree) = search.run(&ranges, &mut Vec::new()) {
                checker.prove_split(unit, side, &tree);
            }
        }
        settle(&checker, node, &mut decided, By::Split);
        find_unstable(&checker, &witnesses, layers.len(), &mut decided);
        let range = checker.range(node);
        let unit = |(unit, verdict): (usize, &Option<(Status, By)>)| Unit {
            status: verdict.map_or(Status::Undecided, |(status, _)| status),
            by: verdict.map(|(_, by)| by),
            lower: range.lower[unit],
            upper: range.upper[unit],
        };
        let units = decided.iter().enumerate().map(unit).collect();
        let now = Instant::now();
        layers.push(Layer { node, units, time: now - start });
        start = now;
    }
    Ok(layers)
}

/// Decides what the proved ranges decide.
fn settle(checker: &Checker<'_>, node: usize, decided: &mut [Option<(Status, By)>], by: By) {
    let range = checker.range(node);
    for (unit, verdict) in decided.iter_mut().enumerate() {
        if verdict.is_none() {
            *verdict = Status::of_range(range.lower[unit], range.upper[unit]).map(|status| (status, by));
        }
    }
}

/// Decides what the witnesses decide.
fn find_unstable(
    checker: &Checker<'_>,
    witnesses: &witness::Witnesses<'_>,
    layer: usize,
    decided: &mut [Option<(Status, By)>],
) {
    for (unit, verdict) in decided.iter_mut().enumerate() {
        if verdict.is_none() && witnesses.is_unstable(checker, layer, unit) {
            *verdict = Some((Status::Unstable, By::Witness));
        }
    }
}
