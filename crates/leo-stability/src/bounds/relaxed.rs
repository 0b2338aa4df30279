//! The relaxed network: every unit that is not stable replaced by a line, chosen for each bound.
//!
//! Bounds by backward substitution, as `leo-check` has them (CROWN, Zhang et al. 2018; DeepPoly, Singh et al. 2019),
//! and the way forward again, to see where they come from. All of it in plain floating point: what comes out are
//! proposals, and the checker decides what they are worth.
//!
//! What is free in such a bound can also be read off a linear program over the triangle relaxation (Ehlers 2017): its
//! dual solution is a set of slopes (alpha) and multipliers (beta) with which backward substitution comes to the
//! program's bound (Salman et al. 2019, arXiv:1902.08722). See [`RelaxedPass::follow`].

use std::sync::Arc;

use leo_check::{LowerSlopes, Range, Side, SplitTree, Target, beyond, default_slope, touched};
use leo_network::op::{Action, Arithmetic, Op};
use leo_network::{Activation, Domain, LayerId, Network, UnitId, ValueId, ValueMap};

use crate::adjoint;
use crate::bounds::KnownRanges;
use crate::bounds::input_layer::{InputLayer, Tilted};
use crate::search::Split;
use crate::search::reduced::Reduced;

/// Whether a unit may be unstable: its range does not show that it is stable.
pub(crate) fn is_open(of: &Activation, range: &Range, unit: usize) -> bool {
    let [first, last] = touched(of, &range.lower[unit], &range.upper[unit]);
    first < last
}

/// Whether the line for a unit with this coefficient may have any slope.
pub(crate) fn is_free(of: &Activation, coefficient: f64) -> bool {
    coefficient != 0.0 && of.has_free_slope(coefficient > 0.0, [0, of.pieces().len() - 1])
}

/// The nearest slope that lies between those of the pieces.
pub(crate) fn within(of: &Activation, slope: f64) -> f64 {
    of.within(slope, [0, of.pieces().len() - 1])
}

/// The line that stands for a unit with this coefficient and range, if it has this slope where that is free: its slope,
/// and its constant.
fn line(of: &Activation, range: &Range, unit: usize, coefficient: f64, free: f64) -> (f64, f64) {
    let (l, u) = (range.lower[unit], range.upper[unit]);
    let [first, last] = touched(of, &l, &u);
    let [left, right] = [first, last].map(|piece| &of.pieces()[piece]);
    if first == last {
        return (left.slope, left.constant);
    }
    if coefficient == 0.0 || is_free(of, coefficient) {
        let beside = || beyond(of, &range.at(unit), free, 0.0);
        let constant = match of.is_homogeneous() {
            true => 0.0,
            false if coefficient < 0.0 => beside().lower,
            false => beside().upper,
        };
        return (free, constant);
    }
    let [low, high] = [left.slope * l + left.constant, right.slope * u + right.constant];
    ((high - low) / (u - l), (low * u - high * l) / (u - l))
}

/// The lines that stand for a layer's units, for each bound.
pub(crate) struct RelaxationLines {
    pub(crate) layer: LayerId,
    /// The slopes that can be chosen.
    pub(crate) free: Vec<Vec<f64>>,
    /// The coefficients of the units' outputs, in the last substitution.
    pub(crate) coefficients: Vec<f64>,
    /// The lines that were used: slopes and constants.
    slopes: Vec<f64>,
    constants: Vec<f64>,
    /// The pre-activations in the relaxed network, at the point where it was evaluated last.
    pub(crate) values: Vec<f64>,
}

impl RelaxationLines {
    /// Takes slopes that come as near as possible to dual values, for a single bound with these coefficients.
    fn follow(&mut self, flow: &[f64], reduced: &Reduced, duals: &[f64]) {
        for (unit, dual) in reduced.units_of(self.layer, duals).filter(|&(unit, _)| flow[unit] != 0.0) {
            self.free[0][unit] = (dual / flow[unit]).clamp(0.0, 1.0);
        }
    }

    /// Begins a substitution, in which the units' outputs have these coefficients.
    fn begin(&mut self, flow: &[f64]) {
        self.coefficients.clear();
        self.coefficients.extend_from_slice(flow);
        self.slopes.resize(flow.len(), 0.0);
        self.constants.resize(flow.len(), 0.0);
    }

    /// Replaces the coefficients of the units' outputs, for the bound with this index (`row`), by those of their
    /// pre-activations. Returns the constant that it had, with what the lines' constants add to it.
    fn replace(&mut self, of: &Activation, range: &Range, row: usize, flow: &mut [f64], mut constant: f64) -> f64 {
        let width = flow.len();
        for (unit, c) in flow.iter_mut().enumerate() {
            let (slope, intercept) = line(of, range, unit, *c, self.free[row][unit]);
            constant += *c * intercept;
            *c *= slope;
            self.slopes[row * width + unit] = slope;
            self.constants[row * width + unit] = intercept;
        }
        constant
    }

    /// For a single bound, how far a unit's line is from the unit at the point where the relaxed network was evaluated
    /// last.
    pub(crate) fn gap(&self, of: &Activation, unit: usize) -> f64 {
        let Some(&value) = self.values.get(unit) else { return 0.0 };
        (self.slopes[unit] * value + self.constants[unit] - of.of(value)).abs()
    }
}

/// Takes multipliers of the cuts at a layer that come as near as possible to dual values, for a single bound with these
/// coefficients.
fn follow_with_multipliers(
    multipliers: &mut [f64],
    cuts: &[Split],
    layer: LayerId,
    flow: &[f64],
    reduced: &Reduced,
    duals: &[f64],
) {
    for (cut, multiplier) in cuts.iter().zip(multipliers).filter(|(cut, _)| cut.unit.layer == layer) {
        let dual = reduced.position(cut.unit).map_or(0.0, |position| duals[position]);
        *multiplier = match cut.side {
            Side::Upper => dual - flow[cut.unit.unit],
            Side::Lower => -dual,
        }
        .max(0.0);
    }
}

/// The slopes that were chosen for one of the bounds.
pub(crate) fn chosen_slopes(lines: &[RelaxationLines], row: usize) -> LowerSlopes {
    let of_layer = |lines: &RelaxationLines| {
        let layer = lines.layer;
        lines.free[row]
            .iter()
            .enumerate()
            .map(move |(unit, &slope)| (UnitId { layer, unit }, slope))
            .collect::<Vec<_>>()
    };
    lines.iter().flat_map(of_layer).collect()
}

/// All that a single bound is free to choose: slopes, layer by layer, multipliers, and the lines of the first layer.
#[derive(Clone)]
pub(crate) struct RelaxationParameters {
    slopes: Vec<Vec<f64>>,
    multipliers: Vec<f64>,
    tilted: Option<Tilted>,
    scales: Vec<f64>,
}

impl RelaxationParameters {
    /// This choice with other `lines`, as a proof has them, and other `multipliers`. `layers` says in which order
    /// slopes are.
    pub(crate) fn with(
        &self,
        lines: &leo_check::Relaxation,
        multipliers: Vec<f64>,
        layers: &[RelaxationLines],
        front: Option<&Arc<InputLayer>>,
    ) -> Self {
        let mut slopes = self.slopes.clone();
        for (&UnitId { layer, unit }, &slope) in &lines.slopes {
            let place = layers.iter().position(|lines| lines.layer == layer);
            if let Some(known) = place.and_then(|place| slopes[place].get_mut(unit)) {
                *known = slope;
            }
        }
        let tilted = front.zip(lines.tilt.as_ref()).map(|(front, tilt)| Tilted::of(front, tilt));
        Self { slopes, multipliers, tilted: tilted.or_else(|| front.map(Tilted::new)), scales: self.scales.clone() }
    }
}

/// Some bounds, each on its way to the input and back.
pub(crate) struct RelaxedPass<'a> {
    network: &'a Network,
    domain: &'a Domain,
    start: ValueId,
    ranges: &'a ValueMap<Range>,
    rows: usize,
    pub(crate) lines: Vec<RelaxationLines>,
    /// Where the domain was cut, with a multiplier for each.
    pub(crate) cuts: &'a [Split],
    pub(crate) multipliers: Vec<f64>,
    /// The lines of the first layer, for a single bound.
    pub(crate) tilted: Option<Tilted>,
    /// How large coefficients of each layer's units are on the whole domain: what multipliers are to be compared with.
    pub(crate) scales: Vec<f64>,
    /// For each bound, the coefficients of the inputs in the last substitution, and the corner where it is attained.
    pub(crate) coefficients: Vec<f64>,
    pub(crate) corners: Vec<f64>,
}

impl<'a> RelaxedPass<'a> {
    /// On the piece of the domain that `cuts` leave, where the known ranges hold.
    pub(crate) fn new(known: KnownRanges<'a>, cuts: &'a [Split], rows: usize) -> Self {
        let KnownRanges { network, domain, value: start, ranges } = known;
        let lines = network.layers().take_while(|&before| network.output_of(before) <= start).map(|layer| {
            let (range, of) = (&ranges[network.pre_activation(layer)], network.activation(layer));
            let slope = |(l, u): (&f64, &f64)| default_slope(of, l, u);
            let first: Vec<f64> = range.lower.iter().zip(&range.upper).map(slope).collect();
            RelaxationLines {
                layer,
                free: vec![first; rows],
                coefficients: Vec::new(),
                slopes: Vec::new(),
                constants: Vec::new(),
                values: Vec::new(),
            }
        });
        Self {
            network,
            domain,
            start,
            ranges,
            rows,
            lines: lines.collect(),
            cuts,
            multipliers: vec![0.0; cuts.len()],
            tilted: None,
            scales: Vec::new(),
            coefficients: Vec::new(),
            corners: Vec::new(),
        }
    }

    /// For a single bound, begins with a choice that may have been made for fewer cuts.
    pub(crate) fn begin_with(&mut self, choice: &RelaxationParameters) {
        for (lines, slopes) in self.lines.iter_mut().zip(&choice.slopes) {
            lines.free[0].clone_from(slopes);
        }
        self.multipliers[..choice.multipliers.len()].copy_from_slice(&choice.multipliers);
        self.scales.clone_from(&choice.scales);
        self.tilted.clone_from(&choice.tilted);
        self.tilted.iter_mut().for_each(Tilted::rest);
    }

    /// The choice that a single bound has made.
    pub(crate) fn choice(&self) -> RelaxationParameters {
        let slopes = self.lines.iter().map(|lines| lines.free[0].clone()).collect();
        RelaxationParameters {
            slopes,
            multipliers: self.multipliers.clone(),
            tilted: self.tilted.clone(),
            scales: self.scales.clone(),
        }
    }

    /// The choice of a single bound on the whole domain, which was just found, with nothing chosen yet.
    pub(crate) fn plain_choice(&mut self) -> RelaxationParameters {
        self.measure_scales();
        self.choice()
    }

    /// Finds out how large coefficients are, if that is not known.
    pub(crate) fn measure_scales(&mut self) {
        if self.scales.is_empty() {
            self.scales = self.lines.iter().map(|lines| typical(&lines.coefficients)).collect();
        }
    }

    /// The lines of a single bound, as a proof has them.
    pub(crate) fn chosen(&self) -> leo_check::Relaxation {
        let tilt = self.tilted.as_ref().map(Tilted::tilt);
        leo_check::Relaxation { slopes: chosen_slopes(&self.lines, 0), tilt }
    }

    /// The range of a layer's pre-activations.
    pub(crate) fn range(&self, layer: LayerId) -> &'a Range {
        &self.ranges[self.network.pre_activation(layer)]
    }

    /// What a layer's units make of their pre-activations.
    pub(crate) fn activation(&self, layer: LayerId) -> &'a Activation {
        self.network.activation(layer)
    }

    /// The box around the domain.
    pub(crate) fn input(&self) -> &'a Range {
        &self.ranges[ValueId::INPUT]
    }

    /// Substitutes down to the input; upper bounds of each target or of its negative.
    pub(crate) fn backward(&mut self, bounds: &[Target]) -> Vec<f64> {
        self.substitute(bounds, None)
    }

    /// As [`Self::backward`] for a single bound, with slopes and multipliers that come as near as possible to the dual
    /// values of a linear program over the reduced network: for each of its units, the coefficient that its
    /// pre-activation should have.
    pub(crate) fn follow(&mut self, bound: Target, reduced: &Reduced, duals: &[f64]) -> f64 {
        self.substitute(&[bound], Some((reduced, duals)))[0]
    }

    fn substitute(&mut self, bounds: &[Target], aim: Option<(&Reduced, &[f64])>) -> Vec<f64> {
        let Self { network, start, ranges, ref mut lines, cuts, ref mut multipliers, ref mut tilted, .. } = *self;
        let width = network.shape(start).elements();
        let first = adjoint::elements(width, bounds.iter().map(|target| (target.unit, target.side.sign())));
        let relax = |layer: LayerId, flow: &mut [f64], constants: &mut [f64]| {
            let (range, of) = (&ranges[network.pre_activation(layer)], network.activation(layer));
            let Some(lines) = lines.iter_mut().find(|lines| lines.layer == layer) else { return };
            if let Some((reduced, duals)) = aim {
                lines.follow(flow, reduced, duals);
                follow_with_multipliers(multipliers, cuts, layer, flow, reduced, duals);
            }
            lines.begin(flow);
            let mut told = Vec::new();
            if let Some(tilted) = tilted.as_mut().filter(|tilted| tilted.layer() == layer) {
                let mut tell = |unit: usize, slope: f64, value: f64| {
                    lines.free[0][unit] = slope;
                    told.push((unit, value));
                };
                constants[0] += tilted.take(flow, |unit| is_open(of, range, unit), &mut tell);
            }
            for (row, flow) in flow.chunks_exact_mut(range.lower.len()).enumerate() {
                constants[row] = lines.replace(of, range, row, flow, constants[row]);
                for &(unit, value) in &told {
                    (lines.slopes[unit], lines.constants[unit]) = (0.0, value);
                }
                for (cut, multiplier) in cuts.iter().zip(&*multipliers).filter(|(cut, _)| cut.unit.layer == layer) {
                    flow[cut.unit.unit] += cut.side.sign() * multiplier;
                }
            }
        };
        let linear = adjoint::back(network, start, first, relax);
        self.coefficients = linear.coefficients;
        self.attained(linear.constants)
    }

    /// The bounds, from what backward substitution has left of them: the coefficients of the inputs, and these
    /// constants.
    fn attained(&mut self, mut sums: Vec<f64>) -> Vec<f64> {
        self.corners.clear();
        if let Some(tilted) = &self.tilted {
            sums[0] += tilted.give(&self.ranges[ValueId::INPUT], &mut self.coefficients);
        }
        for (sum, row) in sums.iter_mut().zip(self.coefficients.chunks_exact(self.domain.len())) {
            let first = self.corners.len();
            self.corners.extend_from_slice(self.domain.hull().lo());
            self.domain.maximise(row, &mut self.corners[first..]);
            row.iter().zip(&self.corners[first..]).for_each(|(c, x)| *sum += c * x);
        }
        sums
    }

    /// A solution of a linear program, with inputs that are at a bound moved to the one where the bound of this single
    /// row is attained: solvers do not mind which, if it makes little difference.
    pub(crate) fn sharpened(&self, point: &[f64]) -> Vec<f64> {
        let range = self.input();
        let bounds = range.lower.iter().zip(&range.upper).zip(&self.corners);
        point.iter().zip(bounds).map(|(&x, ((&lo, &hi), &corner))| if lo < x && x < hi { x } else { corner }).collect()
    }

    /// The proof that the bound of this single row is, with the multipliers and lines it has now.
    pub(crate) fn leaf(&self) -> SplitTree {
        SplitTree::Leaf { multipliers: self.multipliers.clone(), lines: self.chosen() }
    }

    /// Evaluates the relaxed network at a point for each bound.
    pub(crate) fn forward(&mut self, points: Vec<f64>) {
        let mut values = ValueMap::from(vec![points]);
        for index in 0..self.start.index() {
            let node = &self.network.nodes()[index];
            let operand = &values[node.operands()[0]];
            let layer = self.network.layer_at(index);
            let made = match node.op() {
                Op::Activation(of) => match self.lines.iter_mut().find(|lines| Some(lines.layer) == layer) {
                    Some(lines) if !lines.slopes.is_empty() => {
                        lines.values.clone_from(operand);
                        let line = operand.iter().zip(&lines.slopes).zip(&lines.constants);
                        line.map(|((x, slope), constant)| slope * x + constant).collect()
                    }
                    // A layer that the bound does not depend on.
                    _ => operand.iter().map(|&x| of.of(x)).collect(),
                },
                Op::Sum(_) => operand.iter().zip(&values[node.operands()[1]]).map(|(x, y)| x + y).collect(),
                Op::Concat(_) | Op::MaxPool(_) => unreachable!("such networks are searched channel by channel"),
                Op::Affine(map) => match map.action(self.network.shape(node.operands()[0])) {
                    Action::Move(moves) => moves.forward(operand),
                    Action::Each(arithmetic, constants) => {
                        let apply: fn(f64, f64) -> f64 = match arithmetic {
                            Arithmetic::Add => |x, k| x + k,
                            Arithmetic::Multiply => |x, k| x * k,
                            Arithmetic::Divide => |x, k| x / k,
                        };
                        operand.iter().zip(constants.iter().cycle()).map(|(&x, &k)| apply(x, k)).collect()
                    }
                    Action::Sums(sums) => sums.forward_fast(operand),
                },
            };
            values.push(made);
        }
    }

    /// Moves the multipliers of a single bound against its derivative, as far as would lower it by `step` if it were
    /// linear.
    pub(crate) fn descend_multipliers(&mut self, step: f64) {
        let derivative = |cut: &Split| {
            let lines = self.lines.iter().find(|lines| lines.layer == cut.unit.layer);
            let value = lines.and_then(|lines| lines.values.get(cut.unit.unit)).copied().unwrap_or(0.0);
            cut.side.sign() * value
        };
        // A multiplier of 0 cannot be lowered.
        let free = |(cut, &multiplier): (_, &f64)| Some(derivative(cut)).filter(|&d| multiplier > 0.0 || d < 0.0);
        let derivatives: Vec<f64> =
            self.cuts.iter().zip(&self.multipliers).map(|pair| free(pair).unwrap_or(0.0)).collect();
        let norm = derivatives.iter().map(|d| d * d).sum::<f64>();
        if norm > 0.0 {
            for (multiplier, derivative) in self.multipliers.iter_mut().zip(derivatives) {
                *multiplier = (*multiplier - step * derivative / norm).max(0.0);
            }
        }
    }

    /// Moves every free slope against the bound's derivative, by at most `step` for the one that matters most.
    pub(crate) fn descend(&mut self, step: f64) {
        for row in 0..self.rows {
            let mut largest = 0.0_f64;
            for moving in [false, true] {
                for lines in self.lines.iter_mut().filter(|lines| !lines.values.is_empty()) {
                    let range = &self.ranges[self.network.pre_activation(lines.layer)];
                    let (width, of) = (range.lower.len(), self.network.activation(lines.layer));
                    for unit in 0..width {
                        let c = lines.coefficients[row * width + unit];
                        if !is_free(of, c) || !is_open(of, range, unit) {
                            continue;
                        }
                        let derivative = c * lines.values[row * width + unit];
                        if moving && largest > 0.0 {
                            let slope = &mut lines.free[row][unit];
                            *slope = within(of, *slope - step * derivative / largest);
                        } else {
                            largest = largest.max(derivative.abs());
                        }
                    }
                }
            }
        }
    }
}

/// The root of the mean square of all numbers that are not 0.
fn typical(numbers: &[f64]) -> f64 {
    let count = numbers.iter().filter(|number| **number != 0.0).count();
    (numbers.iter().map(|number| number * number).sum::<f64>() / count.max(1) as f64).sqrt()
}
