//! How far outputs may move on purpose, and what an error in a value does to them.

use std::fmt;

use leo_check::Facts;
use leo_network::onnx::Float;
use leo_network::op::{Arithmetic, Op};
use leo_network::{ValueId, add_product};

use crate::region::Region;

/// How far approximations may move any output, anywhere on the domain. What rounding of weights does comes on top.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Not at all.
    Zero,
    /// Half a unit in the last place, in single precision, of the largest number that the output can hold: less than it can show. For files in
    /// double precision, in double precision.
    Ulp,
    /// This much.
    Absolute(f64),
}

impl Tolerance {
    /// For each output of a network.
    pub(crate) fn of_outputs(self, facts: &Facts<'_>, float: Float) -> Vec<f64> {
        let outputs = facts.network().outputs();
        let of = |&value: &ValueId| match self {
            Self::Zero => 0.0,
            Self::Absolute(tolerance) => tolerance,
            Self::Ulp => {
                let largest = facts.range(value).size();
                let digits = if float == Float::F64 { 53 } else { 24 };
                if largest.is_finite() { 2_f64.powi(exponent(largest) - digits) } else { 0.0 }
            }
        };
        outputs.iter().map(of).collect()
    }

    /// Whether what this allows is no more than what another does.
    pub(crate) fn is_within(self, other: Self) -> bool {
        match (self, other) {
            (Self::Zero, _) | (Self::Ulp, Self::Ulp) => true,
            (Self::Absolute(mine), Self::Absolute(theirs)) => mine <= theirs,
            _ => false,
        }
    }
}

/// The power of two that a number above 0 begins with; for 0 the least there is.
fn exponent(number: f64) -> i32 {
    ((number.to_bits() >> 52 & 0x7ff) as i32 - 1023).max(-900)
}

impl fmt::Display for Tolerance {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zero => formatter.write_str("0"),
            Self::Ulp => formatter.write_str("ulp"),
            Self::Absolute(tolerance) => write!(formatter, "{tolerance}"),
        }
    }
}

impl std::str::FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match (text, text.parse::<f64>()) {
            ("ulp", _) => Ok(Self::Ulp),
            (_, Ok(0.0)) => Ok(Self::Zero),
            (_, Ok(tolerance)) if tolerance > 0.0 && tolerance.is_finite() => Ok(Self::Absolute(tolerance)),
            _ => Err("should be 0, ulp, or a number above 0".to_owned()),
        }
    }
}

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
    /// For a region, from the [`costs`] of all values, with so much of the tolerance.
    pub(crate) fn new(region: &Region, costs: &[Vec<f64>], part: f64) -> Self {
        // A channel is off at all its positions at once.
        let of_value = |value: ValueId, channels: usize, positions: usize| {
            let rows: Vec<&[f64]> = costs
                .get(value.index())
                .map_or_else(Vec::new, |costs| costs.chunks_exact(channels * positions).collect());
            let cost = |channel: usize| -> Vec<f64> {
                rows.iter().map(|row| row.iter().skip(channel).step_by(channels).sum()).collect()
            };
            (0..channels).map(cost).collect::<Vec<_>>()
        };
        let layers = region.layers.iter();
        Self {
            units: layers.map(|layer| of_value(layer.pre_activation, layer.map.rows, layer.positions)).collect(),
            ports: region.ports.iter().map(|port| of_value(port.value, port.map.rows, port.positions)).collect(),
            total: if costs.is_empty() { 0.0 } else { part },
        }
    }

    /// How large an error in a unit's pre-activation can be that costs no more than this.
    pub(crate) fn affordable(&self, layer: usize, unit: usize, cost: f64) -> f64 {
        let most = self.units[layer][unit].iter().copied().fold(0.0, f64::max);
        if most > 0.0 { cost / most } else { 0.0 }
    }
}

/// For each value, a row for each element of an output: by how much an error of 1 in each element of the value can move that output at the most, in
/// units of its tolerance. That is the sum over all ways to the output of the products of absolute weights.
pub(crate) fn costs(facts: &Facts<'_>, tolerances: &[f64]) -> Vec<Vec<f64>> {
    let network = facts.network();
    let rows: usize = network.outputs().iter().map(|&value| network.shape(value).elements()).sum();
    let mut flows: Vec<Option<Vec<f64>>> = vec![None; network.nodes().len() + 1];
    let mut start = 0;
    for (&value, &tolerance) in network.outputs().iter().zip(tolerances) {
        let width = network.shape(value).elements();
        let flow = flows[value.index()].get_or_insert_with(|| vec![0.0; rows * width]);
        for element in 0..width {
            flow[(start + element) * width + element] += 1.0 / tolerance;
        }
        start += width;
    }
    let mut costs: Vec<Vec<f64>> = vec![Vec::new(); network.nodes().len() + 1];
    for value in network.values().collect::<Vec<_>>().into_iter().rev() {
        let Some(flow) = flows[value.index()].take() else { continue };
        let width = network.shape(value).elements();
        costs[value.index()].clone_from(&flow);
        let Some(node) = value.node().map(|node| &network.nodes()[node]) else { continue };
        let operand = node.operands()[0];
        let before = match node.op() {
            Op::Relu(_) => {
                let upper = &facts.range(operand).upper;
                let on = |(index, effect): (usize, f64)| if upper[index % width] > 0.0 { effect } else { 0.0 };
                flow.into_iter().enumerate().map(on).collect()
            }
            Op::Dense(dense) => {
                let (outer, inner) = (dense.weight().rows(), dense.weight().columns());
                let weight: Vec<f64> = dense.weight().values().iter().map(|weight| weight.abs()).collect();
                let vectors = flow.len() / outer;
                let mut product = vec![0.0; vectors * inner];
                add_product(&mut product, &flow, &weight, vectors, outer, inner);
                product
            }
            Op::Elementwise(elementwise) => {
                let constants = elementwise.constant().expand(node.shape());
                let scaled = |(index, effect): (usize, f64)| match elementwise.arithmetic() {
                    Arithmetic::Add => effect,
                    Arithmetic::Multiply => effect * constants[index % width].abs(),
                    Arithmetic::Divide => effect / constants[index % width].abs(),
                };
                flow.into_iter().enumerate().map(scaled).collect()
            }
            Op::Reshape(_) => flow,
            Op::Transpose(transpose) => {
                let sources = transpose.sources(network.shape(operand).extents());
                let mut moved = vec![0.0; flow.len()];
                for (row, moved) in flow.chunks_exact(width).zip(moved.chunks_exact_mut(width)) {
                    row.iter().zip(&sources).for_each(|(&effect, &source)| moved[source] = effect);
                }
                moved
            }
            Op::Sum(_) => {
                give(&mut flows, node.operands()[1], flow.clone());
                flow
            }
        };
        give(&mut flows, operand, before);
    }
    costs
}

fn give(flows: &mut [Option<Vec<f64>>], value: ValueId, given: Vec<f64>) {
    match &mut flows[value.index()] {
        Some(present) => present.iter_mut().zip(&given).for_each(|(present, given)| *present += given),
        empty => *empty = Some(given),
    }
}
