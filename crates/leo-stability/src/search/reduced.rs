//! The reduced network: units that are proved to be stable are replaced by what they are, so that each pre-activation
//! is a linear function of the input and of the outputs of earlier units that are unstable.

use leo_check::{Range, Target};
use leo_network::{LayerId, Network, UnitId, ValueId, ValueMap};

use crate::adjoint;
use crate::bounds::relaxed::is_open;

/// A linear function of the input and of the units' outputs.
#[derive(Clone, Debug)]
pub(crate) struct ReducedFunction {
    pub(crate) inputs: Vec<f64>,
    pub(crate) units: Vec<f64>,
    pub(crate) constant: f64,
}

impl ReducedFunction {
    /// Finite if all its numbers are, and do not add up to too much.
    pub(crate) fn size(&self) -> f64 {
        self.inputs.iter().chain(&self.units).map(|c| c.abs()).sum::<f64>() + self.constant.abs()
    }
}

/// How many numbers a reduced network may be made of.
const MAX_NUMBERS: usize = 1 << 26;

/// An unstable unit, as far as is known.
#[derive(Clone, Debug)]
pub(crate) struct ReducedUnit {
    pub(crate) id: UnitId,
    pub(crate) lower: f64,
    pub(crate) upper: f64,
    pub(crate) pre_activation: ReducedFunction,
}

/// All there is before a layer.
#[derive(Clone, Debug)]
pub(crate) struct Reduced {
    /// From the first layer to the last.
    pub(crate) units: Vec<ReducedUnit>,
    pub(crate) lower: Vec<f64>,
    pub(crate) upper: Vec<f64>,
}

impl Reduced {
    /// What is before a layer, where `ranges` hold. `None` if that is too much to write down, or numbers have
    /// overflowed, or units are no ReLUs.
    pub(crate) fn new(network: &Network, layer: LayerId, ranges: &ValueMap<Range>) -> Option<Self> {
        let input = &ranges[ValueId::INPUT];
        let before = || network.layers().take_while(|&before| before < layer);
        let range_of = |layer: LayerId| &ranges[network.pre_activation(layer)];
        let open_units = |layer: LayerId| {
            let (range, of) = (range_of(layer), network.activation(layer));
            (0..range.lower.len()).filter(move |&unit| is_open(of, range, unit))
        };
        if !before().all(|layer| network.activation(layer).is_rectifier()) {
            return None;
        }
        let units: usize = before().map(|layer| open_units(layer).count()).sum();
        if units.saturating_mul(units + input.lower.len()) > MAX_NUMBERS {
            return None;
        }
        let mut reduced = Self { units: Vec::new(), lower: input.lower.clone(), upper: input.upper.clone() };
        for before in before() {
            let range = range_of(before);
            let open: Vec<usize> = open_units(before).collect();
            let wanted: Vec<(usize, f64)> = open.iter().map(|&unit| (unit, 1.0)).collect();
            let rows = reduced.elements(network, network.pre_activation(before), ranges, &wanted);
            let unit = |(unit, pre_activation): (usize, ReducedFunction)| ReducedUnit {
                id: UnitId { layer: before, unit },
                lower: range.lower[unit],
                upper: range.upper[unit],
                pre_activation,
            };
            reduced.units.extend(open.into_iter().zip(rows).map(unit));
        }
        let widths = reduced.lower.iter().zip(&reduced.upper).map(|(lower, upper)| upper - lower);
        let sizes = reduced.units.iter().map(|unit| unit.upper - unit.lower + unit.pre_activation.size());
        widths.chain(sizes).all(f64::is_finite).then_some(reduced)
    }

    /// What is to be shown to be nowhere above 0.
    pub(crate) fn target(
        &self,
        network: &Network,
        value: ValueId,
        ranges: &ValueMap<Range>,
        bound: Target,
    ) -> ReducedFunction {
        self.elements(network, value, ranges, &[(bound.unit, bound.side.sign())]).remove(0)
    }

    /// Multiples of some elements of a value, which comes after all units.
    fn elements(
        &self,
        network: &Network,
        value: ValueId,
        ranges: &ValueMap<Range>,
        wanted: &[(usize, f64)],
    ) -> Vec<ReducedFunction> {
        let first = adjoint::elements(network.shape(value).elements(), wanted.iter().copied());
        let mut units = vec![vec![0.0; self.units.len()]; wanted.len()];
        let relax = |layer: LayerId, flow: &mut [f64], _: &mut [f64]| {
            let range = &ranges[network.pre_activation(layer)];
            for (row, coefficients) in flow.chunks_exact_mut(range.lower.len()).zip(&mut units) {
                for (known, coefficient) in
                    self.units.iter().zip(coefficients).filter(|(known, _)| known.id.layer == layer)
                {
                    *coefficient = row[known.id.unit];
                }
                for (c, &lower) in row.iter_mut().zip(&range.lower) {
                    // Neither an inactive unit nor an unstable one is any function of the values before.
                    if lower < 0.0 {
                        *c = 0.0;
                    }
                }
            }
        };
        let linear = adjoint::back(network, value, first, relax);
        let rows = linear.coefficients.chunks_exact(network.input().elements()).zip(linear.constants).zip(units);
        rows.map(|((inputs, constant), units)| ReducedFunction { inputs: inputs.to_vec(), units, constant }).collect()
    }

    /// About how many numbers it is made of.
    pub(crate) fn size(&self) -> usize {
        self.units.len() * (self.units.len() + self.lower.len())
    }

    /// A layer's units, with what a list has for each of them.
    pub(crate) fn units_of(&self, layer: LayerId, list: &[f64]) -> impl Iterator<Item = (usize, f64)> {
        self.units
            .iter()
            .zip(list)
            .filter(move |(unit, _)| unit.id.layer == layer)
            .map(|(unit, &number)| (unit.id.unit, number))
    }

    /// Where a unit stands in the list.
    pub(crate) fn position(&self, unit: UnitId) -> Option<usize> {
        self.units.iter().position(|known| known.id == unit)
    }

    /// The pre-activations of the units at a point.
    pub(crate) fn evaluate(&self, point: &[f64]) -> Vec<f64> {
        let mut found: Vec<f64> = Vec::with_capacity(self.units.len());
        for unit in &self.units {
            let ReducedFunction { inputs, units, constant } = &unit.pre_activation;
            let inputs: f64 = inputs.iter().zip(point).map(|(c, x)| c * x).sum();
            let units: f64 = units.iter().zip(&found).map(|(c, g)| c * g.max(0.0)).sum();
            found.push(constant + inputs + units);
        }
        found
    }
}
