//! On which pieces of their activations units are at a point.

use leo_network::{Domain, LayerId, Network, UnitId, ValueMap};

use crate::activation::touched;
use crate::exact::Exact;
use crate::number::Number;
use crate::range::{Interval, Range};

/// On which piece of its activation each of some units is at a point, and not at a knot: by intervals, which are narrow
/// at a point, and where that leaves a doubt, exactly. Slow, compared with an evaluation in double precision: for few
/// points. `None` if the point is not in the domain.
///
/// # Panics
/// If there is no such unit.
pub fn pieces_at<N: Number>(
    network: &Network,
    domain: &Domain,
    point: &[f64],
    units: &[UnitId],
) -> Option<Vec<Option<usize>>> {
    if point.len() != network.input().elements() || !domain.contains(point) {
        return None;
    }
    let last = units.iter().map(|unit| unit.layer).max();
    let ranges = ranges_at_point::<N>(network, last, point);
    let certain = |unit: &UnitId| piece_of(network, *unit, &ranges);
    let is_certain = units.iter().all(|unit| certain(unit).is_some());
    let exact = if is_certain { ValueMap::default() } else { ranges_at_point::<Exact>(network, last, point) };
    Some(units.iter().map(|unit| certain(unit).or_else(|| piece_of(network, *unit, &exact))).collect())
}

/// The piece that a unit's pre-activation is on, and not at either end.
fn piece_of<N: Number>(
    network: &Network,
    UnitId { layer, unit }: UnitId,
    ranges: &ValueMap<Range<N>>,
) -> Option<usize> {
    let Interval { lower, upper } = ranges[network.pre_activation(layer)].at(unit);
    let of = network.activation(layer);
    let [first, last] = touched(of, &lower, &upper);
    let is_off = |knot: &f64| lower > N::of(*knot) || upper < N::of(*knot);
    (first == last && of.knots().iter().all(is_off)).then_some(first)
}

/// Where the values before a layer lie at a point, up to rounding.
fn ranges_at_point<N: Number>(network: &Network, layer: Option<LayerId>, point: &[f64]) -> ValueMap<Range<N>> {
    let mut ranges = ValueMap::from(vec![Range::of_point(point)]);
    for node in 0..layer.map_or(0, |layer| network.pre_activation(layer).index()) {
        let range = Range::of_node(network, node, &ranges);
        ranges.push(range);
    }
    ranges
}
