//! The first layer, where every input lies in a range of its own, and lines above units can follow the units closely
//! ([`MixedInequality`]).
//!
//! The concave envelope of a unit `max(0, w x + b)` over the box is known (Anderson et al. 2020, arXiv:1811.01988).
//! With each input written as its share of the box's width, `x` from 0 to 1, and `r` the share of the way to the end
//! where `w x` is greatest, it is the maximum over `p` from 0 to 1 of
//!
//! `p top - sum of |w_i| max(0, p - r_i)`, where `top` is the greatest pre-activation.
//!
//! So a linear program over these envelopes has only the inputs and one `p` for each unit as its variables, and the
//! function that is maximised is concave, and a sum of functions of a single input and a single `p`. Made smooth
//! (Nesterov 2005), over differences of [`Tilted::softness`], it is climbed fast, by accelerated projected gradients
//! (Nesterov 1983, FISTA of Beck and Teboulle 2009), each variable with a step of its own; and at every point its
//! gradient is a set of lines, which give a bound. The best point gives, nearly, the best bound.
//!
//! Tjandraatmadja et al. (2020, arXiv:2006.14076) bound networks by the same inequalities, as cutting planes of a
//! linear program (OptC2V) or by one for each unit in a pass backward (FastC2V).

use std::sync::Arc;

use leo_check::{MixedInequality, Range};
use leo_network::op::{Action, Arithmetic};
use leo_network::{Bounds, LayerId, Network, ValueId, ValueMap, dot, vectors};
use pulp::{Arch, Simd, WithSimd};

use crate::adjoint;
use crate::bounds::relaxed::is_open;

/// How many numbers are worked on side by side at the most. Rows are as long as a multiple of it, with zeros at the
/// end.
const LANES: usize = 8;

/// The nearest share that a proof may have.
fn rounded(share: f64) -> f64 {
    MixedInequality::share(MixedInequality::parts(share))
}

/// The nearest slope of few digits: it shall be short in a file.
pub(crate) fn short_slope(slope: f64) -> f64 {
    (slope.clamp(0.0, 1.0) * 1000.0).round() / 1000.0
}

/// The units of the first layer that may be unstable, as functions of shares of the box's widths.
pub(crate) struct InputLayer {
    pub(crate) layer: LayerId,
    /// Which units these are.
    units: Vec<usize>,
    /// How many units the layer has.
    width: usize,
    /// A row for each of them.
    weights: Vec<f64>,
    /// The pre-activations where all shares are 0.
    bases: Vec<f64>,
    /// The sums of the weights' absolute values.
    sizes: Vec<f64>,
    /// The greatest pre-activations.
    tops: Vec<f64>,
    /// For each input, whether what the layer's affine map reads falls as it grows.
    is_reversed: Vec<bool>,
}

impl InputLayer {
    /// The first layer, if its units are affine functions of inputs that do not meet before one matrix brings them
    /// together.
    pub(crate) fn new(network: &Network, bounds: &Bounds, ranges: &ValueMap<Range>) -> Option<Self> {
        let layer = network.layers().next()?;
        let (_, operand) = MixedInequality::map(network, layer)?;
        let is_reversed = reversals(network, operand)?;
        let range = &ranges[network.pre_activation(layer)];
        let width = range.lower.len();
        let units: Vec<usize> = (0..width).filter(|&unit| is_open(network.activation(layer), range, unit)).collect();
        let first = adjoint::elements(width, units.iter().map(|&unit| (unit, 1.0)));
        let linear = adjoint::back(network, network.pre_activation(layer), first, |_, _, _| ());
        let mut bases = linear.constants;
        let (mut weights, mut sizes, mut tops) = (Vec::new(), Vec::new(), Vec::new());
        for (row, base) in linear.coefficients.chunks_exact(bounds.lo().len()).zip(&mut bases) {
            let (mut size, mut above) = (0.0, 0.0);
            for (c, (lo, hi)) in row.iter().zip(bounds.sides()) {
                let weight: f64 = c * (hi - lo);
                *base += c * lo;
                size += weight.abs();
                above += weight.max(0.0);
                weights.push(weight);
            }
            weights.resize(weights.len().next_multiple_of(LANES), 0.0);
            sizes.push(size);
            tops.push(*base + above);
        }
        let is_finite = sizes.iter().chain(&tops).chain(&bases).all(|number| number.is_finite());
        is_finite.then_some(Self { layer, units, width, weights, bases, sizes, tops, is_reversed })
    }

    /// How many inputs there are, filled up to whole groups of [`LANES`].
    fn stride(&self) -> usize {
        self.is_reversed.len().next_multiple_of(LANES)
    }

    fn row(&self, index: usize) -> &[f64] {
        &self.weights[index * self.stride()..][..self.stride()]
    }
}

/// For each element of a value whether it falls as the input grows that it is made from, if it is made from one input,
/// and all of them are in the same order.
fn reversals(network: &Network, mut value: ValueId) -> Option<Vec<bool>> {
    let mut reversed = vec![false; network.input().elements()];
    while let Some(node) = value.node().map(|node| &network.nodes()[node]) {
        let operand = network.shape(node.operands()[0]);
        match node.op().as_affine()?.action(operand) {
            Action::Move(moves) if moves.is_in_order() => {}
            Action::Each(Arithmetic::Add, _) => {}
            Action::Each(Arithmetic::Multiply | Arithmetic::Divide, factors) => {
                reversed.iter_mut().zip(factors).for_each(|(reversed, factor)| *reversed ^= factor < 0.0);
            }
            Action::Move(_) | Action::Sums(_) => return None,
        }
        value = node.operands()[0];
    }
    Some(reversed)
}

/// The lines of the first layer for one bound, on their way to the best.
#[derive(Clone)]
pub(crate) struct Tilted {
    front: Arc<InputLayer>,
    /// Where lines are to be near the units: for each input the share of the box's width.
    pub(crate) position: Vec<f64>,
    /// For each unit of the front, how much of it is on there.
    on: Vec<f64>,
    pub(crate) softness: f64,
    /// Where the last step ended, from which the next one gains momentum.
    last_position: Vec<f64>,
    last_on: Vec<f64>,
    momentum: f64,
    /// In the last substitution, the coefficients that the lines made of shares of inputs.
    flow: Vec<f64>,
    /// For each input, how far the gradient changed there at the most if the input moved by the softness.
    curvature: Vec<f64>,
    /// The gradient there with respect to `on`.
    lack: Vec<f64>,
    /// For each unit, how far the gradient changed there at the most if `on` moved by the softness.
    weight_of_unit: Vec<f64>,
}

impl Tilted {
    /// As good as chords.
    pub(crate) fn new(front: &Arc<InputLayer>) -> Self {
        let position = vec![0.5; front.stride()];
        let on: Vec<f64> =
            front.tops.iter().zip(&front.sizes).map(|(top, size)| (top / size).clamp(0.0, 1.0)).collect();
        Self {
            front: Arc::clone(front),
            last_position: position.clone(),
            last_on: on.clone(),
            position,
            softness: 1.0,
            momentum: 1.0,
            flow: vec![0.0; front.stride()],
            curvature: vec![0.0; front.stride()],
            lack: vec![0.0; on.len()],
            weight_of_unit: vec![0.0; on.len()],
            on,
        }
    }

    /// As a proof has them.
    pub(crate) fn of(front: &Arc<InputLayer>, tilt: &MixedInequality) -> Self {
        let mut tilted = Self::new(front);
        let parts = tilt.position.iter().zip(&front.is_reversed);
        let shares =
            parts.map(|(&parts, reversed)| MixedInequality::share(if *reversed { u8::MAX - parts } else { parts }));
        tilted.position.iter_mut().zip(shares).for_each(|(position, share)| *position = share);
        for (on, &unit) in tilted.on.iter_mut().zip(&front.units) {
            *on = tilt.on.get(unit).map_or(*on, |&parts| MixedInequality::share(parts));
        }
        tilted.softness = tilt.softness;
        tilted.rest();
        tilted
    }

    /// The layer.
    pub(crate) fn layer(&self) -> LayerId {
        self.front.layer
    }

    /// Forgets where it came from.
    pub(crate) fn rest(&mut self) {
        self.last_position.clone_from(&self.position);
        self.last_on.clone_from(&self.on);
        self.momentum = 1.0;
    }

    /// Takes the coefficients of the units that may still be unstable, as `is_open` says, from `flow`, and leaves 0
    /// instead. For each, `tell` is given the unit, a slope if the coefficient is negative, and the line's value at the
    /// position. Returns what the constants of the lines add up to.
    pub(crate) fn take(
        &mut self,
        flow: &mut [f64],
        is_open: impl Fn(usize) -> bool,
        mut tell: impl FnMut(usize, f64, f64),
    ) -> f64 {
        let (front, softness) = (&*self.front, self.softness);
        let position: Vec<f64> = self.position.iter().copied().map(rounded).collect();
        let scaled: Vec<f64> = position.iter().map(|x| (x - 0.5) / softness).collect();
        self.flow.fill(0.0);
        self.curvature.fill(0.0);
        let (made, curvature) = (&mut self.flow[..], &mut self.curvature[..]);
        let (mut total, arch) = (0.0, Arch::new());
        for (index, &unit) in front.units.iter().enumerate() {
            let c = flow[unit];
            (self.lack[index], self.weight_of_unit[index]) = (0.0, 0.0);
            if c == 0.0 || !is_open(unit) {
                continue;
            }
            flow[unit] = 0.0;
            let (weights, top) = (front.row(index), front.tops[index]);
            if c > 0.0 {
                let share = 0.5 + (rounded(self.on[index]) - 0.5) / softness;
                let sums =
                    arch.dispatch(AddLine { weights, scaled: &scaled, position: &position, share, c, made, curvature });
                // What it takes to be nowhere below 0, and nowhere below the pre-activation.
                let constant = (0.5 * (sums.size - sums.sum)).max(top - 0.5 * (sums.size + sums.sum));
                total += c * constant;
                self.lack[index] = c * (top - sums.size);
                self.weight_of_unit[index] = c * front.sizes[index];
                tell(unit, 0.0, sums.value + constant);
            } else {
                let value = front.bases[index] + dot(weights, &position);
                let slope = short_slope(0.5 + value / (softness * front.sizes[index]));
                arch.dispatch(AddScaledRow { weights, c, slope, made, curvature });
                total += c * slope * front.bases[index];
                tell(unit, slope, slope * value);
            }
        }
        total
    }

    /// What the lines made of inputs, as coefficients of the inputs themselves, is added to others. With the constant
    /// that belongs to it.
    pub(crate) fn give(&self, input: &Range, coefficients: &mut [f64]) -> f64 {
        let mut constant = 0.0;
        for (index, (c, flow)) in coefficients.iter_mut().zip(&self.flow).enumerate() {
            let (lo, hi) = (input.lower[index], input.upper[index]);
            if hi > lo {
                let slope = flow / (hi - lo);
                *c += slope;
                constant -= slope * lo;
            }
        }
        constant
    }

    /// Climbs, given the coefficients of all inputs in the last substitution.
    pub(crate) fn climb(&mut self, coefficients: &[f64], input: &Range, softness: f64) {
        let next = 0.5 * (1.0 + (1.0 + 4.0 * self.momentum * self.momentum).sqrt());
        let carry = (self.momentum - 1.0) / next;
        self.momentum = next;
        let half = 0.5 * self.softness;
        let step = |gradient: f64, curvature: f64| {
            if curvature > 0.0 { half * gradient / curvature } else { gradient.signum() }
        };
        for (index, (position, last)) in self.position.iter_mut().zip(&mut self.last_position).enumerate() {
            let Some(&c) = coefficients.get(index) else { break };
            let gradient = c * (input.upper[index] - input.lower[index]);
            advance(position, last, step(gradient, self.curvature[index]), carry);
        }
        for (index, (on, last)) in self.on.iter_mut().zip(&mut self.last_on).enumerate() {
            if self.weight_of_unit[index] > 0.0 {
                advance(on, last, step(self.lack[index], self.weight_of_unit[index]), carry);
            }
        }
        self.softness = softness;
    }

    /// The input at the position.
    pub(crate) fn point(&self, input: &Range) -> Vec<f64> {
        let bounds = input.lower.iter().zip(&input.upper);
        self.position.iter().zip(bounds).map(|(share, (lo, hi))| lo + share * (hi - lo)).collect()
    }

    /// The lines as a proof has them.
    pub(crate) fn tilt(&self) -> Arc<MixedInequality> {
        let InputLayer { layer, units, width, is_reversed, .. } = &*self.front;
        let mut on = vec![0; *width];
        units.iter().zip(&self.on).for_each(|(&unit, &share)| on[unit] = MixedInequality::parts(share));
        let parts = self.position.iter().map(|&share| MixedInequality::parts(share)).zip(is_reversed);
        let position = parts.map(|(parts, reversed)| if *reversed { u8::MAX - parts } else { parts }).collect();
        Arc::new(MixedInequality { layer: *layer, position, on, softness: self.softness })
    }
}

/// Moves a share by a step, and further by a part of what it moved before.
fn advance(share: &mut f64, last: &mut f64, step: f64, carry: f64) {
    let reached = (*share + step).clamp(0.0, 1.0);
    *share = (reached + carry * (reached - *last)).clamp(0.0, 1.0);
    *last = reached;
}

/// Sums over a line's coefficients.
struct CoefficientSums {
    /// Of them, and of their absolute values.
    sum: f64,
    size: f64,
    /// Of their products with the position.
    value: f64,
}

/// Adds a line, times a coefficient, to what is made of the inputs. Like the others, it is compiled for several
/// generations of processors.
struct AddLine<'a> {
    weights: &'a [f64],
    scaled: &'a [f64],
    position: &'a [f64],
    share: f64,
    c: f64,
    made: &'a mut [f64],
    curvature: &'a mut [f64],
}

impl WithSimd for AddLine<'_> {
    type Output = CoefficientSums;

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) -> CoefficientSums {
        let [share, c, zero, one] = [self.share, self.c, 0.0, 1.0].map(|number| simd.splat_f64s(number));
        let sign = simd.splat_f64s(-0.0);
        let (mut sum, mut size, mut value) = (zero, zero, zero);
        let columns = vectors::<S>(self.weights)
            .zip(vectors::<S>(self.scaled))
            .zip(vectors::<S>(self.position))
            .zip(S::as_mut_simd_f64s(self.made).0)
            .zip(S::as_mut_simd_f64s(self.curvature).0);
        for ((((weight, scaled), position), made), curvature) in columns {
            let toward = simd.xor_f64s(scaled, simd.and_f64s(weight, sign));
            let part = simd.min_f64s(simd.max_f64s(simd.sub_f64s(share, toward), zero), one);
            let line = simd.mul_f64s(part, weight);
            *made = simd.mul_add_f64s(c, line, *made);
            *curvature = simd.mul_add_f64s(c, simd.abs_f64s(weight), *curvature);
            sum = simd.add_f64s(sum, line);
            size = simd.add_f64s(size, simd.abs_f64s(line));
            value = simd.mul_add_f64s(line, position, value);
        }
        let [sum, size, value] = [sum, size, value].map(|lanes| simd.reduce_sum_f64s(lanes));
        CoefficientSums { sum, size, value }
    }
}

/// Adds a unit's weights, times a negative coefficient and a slope.
struct AddScaledRow<'a> {
    weights: &'a [f64],
    c: f64,
    slope: f64,
    made: &'a mut [f64],
    curvature: &'a mut [f64],
}

impl WithSimd for AddScaledRow<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (factor, size) = (simd.splat_f64s(self.c * self.slope), simd.splat_f64s(-self.c));
        let columns =
            vectors::<S>(self.weights).zip(S::as_mut_simd_f64s(self.made).0).zip(S::as_mut_simd_f64s(self.curvature).0);
        for ((weight, made), curvature) in columns {
            *made = simd.mul_add_f64s(factor, weight, *made);
            *curvature = simd.mul_add_f64s(size, simd.abs_f64s(weight), *curvature);
        }
    }
}
