//! How far outputs may move on purpose, and what an error in a value does to them.

use std::fmt;

use leo_check::{ProvedBounds, touched};
use leo_formats::onnx::Float;
use leo_network::op::{Action, Arithmetic, Moves, Op, Sums};
use leo_network::{Channels, ValueId};

use crate::rewriting::region::Region;

/// How far approximations may move any output, anywhere on the domain. What rounding of weights does comes on top.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Not at all.
    Zero,
    /// For each element, half a unit in the last place, in single precision, of the largest number that it was seen to
    /// reach: less than it can show. For files in double precision, in double precision.
    Ulp,
    /// This much.
    Absolute(f64),
    /// For each element, this part of the largest number that it was seen to reach.
    Relative(f64),
}

impl Tolerance {
    /// For each element of each output of a network, of which it is known how large they were seen to be.
    pub(crate) fn of_outputs(self, scales: &[Vec<f64>], float: Float) -> Vec<Vec<f64>> {
        let digits = if float == Float::F64 { 53 } else { 24 };
        let of = |&scale: &f64| match self {
            Self::Zero => 0.0,
            Self::Absolute(tolerance) => tolerance,
            Self::Relative(part) if scale.is_finite() => part * scale,
            Self::Ulp if scale.is_finite() => 2_f64.powi(exponent(scale) - digits),
            Self::Relative(_) | Self::Ulp => 0.0,
        };
        scales.iter().map(|scales| scales.iter().map(of).collect()).collect()
    }

    /// Whether what this allows is no more than what another does.
    pub(crate) fn is_within(self, other: Self) -> bool {
        match (self, other) {
            (Self::Zero, _) | (Self::Ulp, Self::Ulp) => true,
            (Self::Absolute(mine), Self::Absolute(theirs)) | (Self::Relative(mine), Self::Relative(theirs)) => {
                mine <= theirs
            }
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
            Self::Relative(part) => write!(formatter, "{}%", part * 100.0),
        }
    }
}

impl std::str::FromStr for Tolerance {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some(percent) = text.strip_suffix('%') {
            let part = percent.parse().ok().filter(|percent: &f64| *percent > 0.0 && percent.is_finite());
            return part.map(|percent| Self::Relative(percent / 100.0)).ok_or_else(|| EXPECTED_FORM.to_owned());
        }
        match (text, text.parse::<f64>()) {
            ("ulp", _) => Ok(Self::Ulp),
            (_, Ok(0.0)) => Ok(Self::Zero),
            (_, Ok(tolerance)) if tolerance > 0.0 && tolerance.is_finite() => Ok(Self::Absolute(tolerance)),
            _ => Err(EXPECTED_FORM.to_owned()),
        }
    }
}

/// What a tolerance should be.
const EXPECTED_FORM: &str =
    "should be 0, ulp, a number above 0, or a percentage of what each output reaches, such as 0.01%";

/// What an error of 1 costs: pairs of a party and what it costs that party.
pub(crate) type Costly = Vec<(usize, f64)>;

/// What errors cost, and how much may be spent.
///
/// Those who bear the costs are *parties*: the elements of the outputs, or, where these are many, groups of neighbours,
/// each of which bears what its dearest member does.
#[derive(Clone, Debug)]
pub(crate) struct ErrorBudget {
    /// For each layer and channel, what an error of 1 in its pre-activation costs at the most.
    pub(crate) units: Vec<Vec<Costly>>,
    /// For each port and channel, what an error of 1 in it costs at the most.
    pub(crate) ports: Vec<Vec<Costly>>,
    /// How many parties there are.
    pub(crate) parties: usize,
    /// What all errors together may cost any party.
    pub(crate) total: f64,
}

impl ErrorBudget {
    /// For a region, from what errors in all values cost, with `part` of the tolerance.
    pub(crate) fn new(region: &Region, costs: Option<&Costs>, part: f64) -> Self {
        // A channel is off at all its positions at once.
        let of_value = |value: ValueId, channels: Channels| -> Vec<Costly> {
            let none = || vec![Vec::new(); channels.count()];
            costs.map_or_else(none, |costs| costs.of_channels(value, channels))
        };
        let layers = region.layers.iter();
        Self {
            units: layers.map(|layer| of_value(layer.pre_activation, layer.channels)).collect(),
            ports: region.ports.iter().map(|port| of_value(port.value, port.channels)).collect(),
            parties: costs.map_or(0, |costs| costs.parties),
            total: if costs.is_some() { part } else { 0.0 },
        }
    }

    /// How large an error in a unit's pre-activation can be that costs no more than `cost`.
    pub(crate) fn affordable(&self, layer: usize, unit: usize, cost: f64) -> f64 {
        let most = self.units[layer][unit].iter().map(|&(_, cost)| cost).fold(0.0, f64::max);
        if most > 0.0 { cost / most } else { 0.0 }
    }
}

/// The most parties: with more, what they cost would take more room than the network.
const MAX_PARTIES: usize = 1024;

/// For each value, by how much an error of 1 in each of its elements can move outputs at the most, in units of their
/// tolerances. That is the sum over all ways to the output of the products of absolute weights: a Lipschitz constant
/// for each pair of an element and a party, by one pass back through the network (its adjoint, in absolute values).
pub(crate) struct Costs {
    parties: usize,
    /// By the indices of values; nothing for what no output depends on.
    flows: Vec<Option<Flow>>,
}

/// What errors in the elements of a value cost.
#[derive(Clone)]
enum Flow {
    /// Each element one party.
    Single(Vec<(usize, f64)>),
    /// A row for each party.
    All(Vec<f64>),
}

impl Flow {
    /// As rows for all parties.
    fn into_all(self, parties: usize) -> Vec<f64> {
        match self {
            Self::All(rows) => rows,
            Self::Single(costs) => {
                let width = costs.len();
                let mut rows = vec![0.0; parties * width];
                costs.iter().enumerate().for_each(|(element, &(party, cost))| rows[party * width + element] = cost);
                rows
            }
        }
    }

    /// With every cost times the factor of its element.
    fn scaled(self, factor: impl Fn(usize) -> f64, width: usize) -> Self {
        match self {
            Self::All(rows) => {
                let scaled = |(index, cost): (usize, f64)| cost * factor(index % width);
                Self::All(rows.into_iter().enumerate().map(scaled).collect())
            }
            Self::Single(costs) => {
                let scaled = |(element, (party, cost)): (usize, (usize, f64))| (party, cost * factor(element));
                Self::Single(costs.into_iter().enumerate().map(scaled).collect())
            }
        }
    }

    /// What errors cost in what sums are made of.
    fn before(self, sums: &Sums<'_>, parties: usize) -> Self {
        let sums = sums.magnitudes();
        match self {
            Self::All(rows) => Self::All(sums.backward(&rows)),
            Self::Single(costs) => {
                let width = sums.inputs();
                let mut rows = vec![0.0_f64; parties * width];
                for (output, &(party, cost)) in costs.iter().enumerate() {
                    let row = &mut rows[party * width..][..width];
                    // Each member of a party bears its own.
                    sums.terms(output).for_each(|(input, weight)| row[input] = row[input].max(weight * cost));
                }
                Self::All(rows)
            }
        }
    }

    /// What errors cost in what was only moved.
    fn moved(self, moves: &Moves) -> Self {
        match self {
            Self::Single(costs) => Self::Single(moves.backward(costs)),
            Self::All(rows) => Self::All(moves.backward(rows)),
        }
    }
}

impl Costs {
    /// With what each element of each output may be moved by.
    pub(crate) fn new(facts: &ProvedBounds<'_>, tolerances: &[Vec<f64>]) -> Self {
        let network = facts.network();
        let elements: usize = tolerances.iter().map(Vec::len).sum();
        let parties = elements.min(MAX_PARTIES);
        let mut costs = Self { parties, flows: vec![None; network.nodes().len() + 1] };
        let mut start = 0;
        for (&value, tolerances) in network.outputs().iter().zip(tolerances) {
            let single = |(element, tolerance): (usize, &f64)| {
                ((start + element) * parties / elements, 1.0 / tolerance.max(f64::MIN_POSITIVE))
            };
            let flow = Flow::Single(tolerances.iter().enumerate().map(single).collect());
            costs.give(value, flow);
            start += tolerances.len();
        }
        for value in network.values().collect::<Vec<_>>().into_iter().rev() {
            let Some(flow) = costs.flows[value.index()].clone() else { continue };
            let width = network.shape(value).elements();
            let Some(node) = value.node().map(|node| &network.nodes()[node]) else { continue };
            let operand = node.operands()[0];
            let before = match node.op() {
                Op::Activation(of) => {
                    let range = facts.range(operand);
                    let steepest = |element: usize| {
                        let [first, last] = touched(of, &range.lower[element], &range.upper[element]);
                        of.pieces()[first..=last].iter().map(|piece| piece.slope.abs()).fold(0.0, f64::max)
                    };
                    flow.scaled(steepest, width)
                }
                Op::Affine(map) => match map.action(network.shape(operand)) {
                    Action::Move(moves) => flow.moved(&moves),
                    Action::Each(arithmetic, constants) => {
                        let factor = |element: usize| match arithmetic {
                            Arithmetic::Add => 1.0,
                            Arithmetic::Multiply => constants[element].abs(),
                            Arithmetic::Divide => 1.0 / constants[element].abs(),
                        };
                        flow.scaled(factor, width)
                    }
                    Action::Sums(sums) => flow.before(&sums, parties),
                },
                Op::Concat(_) | Op::MaxPool(_) => unreachable!("such networks are rewritten channel by channel"),
                Op::Sum(_) => {
                    costs.give(node.operands()[1], flow.clone());
                    flow
                }
            };
            costs.give(operand, before);
        }
        costs
    }

    /// Adds to what errors in a value cost.
    fn give(&mut self, value: ValueId, given: Flow) {
        let place = &mut self.flows[value.index()];
        *place = Some(match place.take() {
            None => given,
            Some(present) => {
                let [mut sums, given] = [present, given].map(|flow| flow.into_all(self.parties));
                sums.iter_mut().zip(&given).for_each(|(sum, given)| *sum += given);
                Flow::All(sums)
            }
        });
    }

    /// For each channel of a value, what an error of 1 in all its elements costs.
    fn of_channels(&self, value: ValueId, channels: Channels) -> Vec<Costly> {
        let mut costs: Vec<Costly> = vec![Vec::new(); channels.count()];
        match &self.flows[value.index()] {
            None => {}
            Some(Flow::Single(singles)) => {
                for (element, &(party, cost)) in singles.iter().enumerate() {
                    costs[channels.of(element)].push((party, cost));
                }
            }
            Some(Flow::All(rows)) => {
                for (party, row) in rows.chunks_exact(rows.len() / self.parties).enumerate() {
                    for (channel, costs) in costs.iter_mut().enumerate() {
                        let cost: f64 = channels.elements(channel).map(|element| row[element]).sum();
                        if cost > 0.0 {
                            costs.push((party, cost));
                        }
                    }
                }
            }
        }
        costs
    }
}
