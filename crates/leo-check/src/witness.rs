//! Which signs pre-activations have at a point.

use std::cmp::Ordering;

use leo_network::{Domain, Network};

use crate::exact::Exact;
use crate::number::Number;
use crate::range::Range;

/// Whether pre-activations of some units, each with its layer's node, are above, below or at 0 at a point: by intervals, which are narrow at a point, and
/// where that leaves a doubt, exactly. Slow, compared with an evaluation in double precision: for few points. `None` if the point is not in the domain.
///
/// # Panics
/// If there is no such unit.
pub fn signs<N: Number>(
    network: &Network,
    domain: &Domain,
    point: &[f64],
    units: &[(usize, usize)],
) -> Option<Vec<Ordering>> {
    if point.len() != network.input().elements() || !domain.contains(point) {
        return None;
    }
    let last = units.iter().map(|&(layer, _)| layer).max().unwrap_or(0);
    let ranges = ranges_at_point::<N>(network, last, point);
    let certain = |&(layer, unit): &(usize, usize)| {
        let range = &ranges[network.pre_activation(layer).index()];
        match (range.lower[unit].is_positive(), range.upper[unit] < N::default()) {
            (true, _) => Some(Ordering::Greater),
            (_, true) => Some(Ordering::Less),
            _ => None,
        }
    };
    let is_certain = units.iter().all(|unit| certain(unit).is_some());
    let exact = if is_certain { Vec::new() } else { ranges_at_point::<Exact>(network, last, point) };
    let exactly = |&(layer, unit): &(usize, usize)| {
        let number = &exact[network.pre_activation(layer).index()].lower[unit];
        number.partial_cmp(&Exact::default()).unwrap_or(Ordering::Equal)
    };
    Some(units.iter().map(|unit| certain(unit).unwrap_or_else(|| exactly(unit))).collect())
}

/// Where the values before a layer lie at a point, up to rounding.
fn ranges_at_point<N: Number>(network: &Network, layer: usize, point: &[f64]) -> Vec<Range<N>> {
    let mut ranges = vec![Range::of_point(point)];
    for node in 0..layer {
        ranges.push(Range::of_node(network, node, &ranges));
    }
    ranges
}
