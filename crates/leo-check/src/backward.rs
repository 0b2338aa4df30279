//! Linear bounds, by backward substitution.
//!
//! To bound a linear function of a value from above, replace the value by what it was computed from, node by node, until only the
//! input is left, where the box gives the maximum. Affine nodes are replaced exactly. A ReLU `h = max(0, g)` with
//! `l <= g <= u` proved, and coefficient `c` on it, is replaced by a line above `c h`:
//!
//! - `l >= 0`: `h` is `g`, and the coefficient stays. `u <= 0`: `h` is 0.
//! - `c >= 0`: for every `0 <= d <= c`, `c h <= d g + max(-d l, (c - d) u)` at both ends of `[l, u]`, hence between
//!   them, because `c h` is convex in `g`. The chord, `d = c u / (u - l)`, is the least of these.
//! - `c < 0`: for every `c <= d <= 0`, `c h <= d g`: if `g >= 0` because `c <= d`, if `g < 0` because `d g >= 0`. `d = c a` with
//!   the slope `a` of the unit, anything from 0 to 1. A proof may choose it; a bad choice makes the bound
//!   worse, never wrong.
//! - On a piece of the domain where `g >= 0` is known, any multiple `m g` with `m >= 0` may be added: it only makes the sum larger there. So
//!   may `-m g` where `g <= 0`. A proof may choose the multipliers; whatever the sum of coefficients is rounded to, it is the sum for
//!   some other multiplier of the same sign.
//!
//! What matters for soundness is thus only that `d` lies in its range, however it was rounded, and that the constant
//! is an upper bound for that very `d`. The other source of error is the products of coefficients and weights: if `C` holds the
//! coefficients and `P` the computed product `C W`, then `(C W) z <= P z + |P - C W| |z|`, where `|P - C W|` is at most
//! [`slack`] times `|C| |W|` and `|z|` is bounded by the range of `z`; [`Upper`] collects these errors.

use leo_network::op::{Arithmetic, Op};
use leo_network::{Network, ValueId, add_product};

use crate::facts::{Cut, Side, Slopes};
use crate::range::Range;
use crate::sound::{Bound, Upper, slack};

/// Something to bound: one element of a value, from one side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) element: usize,
    pub(crate) side: Side,
}

/// What bounds of a layer's pre-activations are proved from.
#[derive(Clone, Copy)]
pub(crate) struct Setting<'a> {
    pub(crate) network: &'a Network,
    pub(crate) layer: usize,
    /// A proved range for every value before the layer.
    pub(crate) ranges: &'a [Range],
    pub(crate) slopes: &'a Slopes,
    /// On which piece of the domain the bounds are to hold.
    pub(crate) cuts: &'a [Cut],
}

/// For each target an upper bound, of its element or, if it is a lower bound that is asked for, of its negative. Chosen slopes have a row
/// for each target, and the first of these is the one after `skipped` others.
pub(crate) fn bounds(setting: Setting<'_>, targets: &[Target], skipped: usize) -> Vec<Bound> {
    let start = setting.network.pre_activation(setting.layer);
    let mut pass = Pass {
        setting,
        skipped,
        rows: targets.len(),
        coefficients: vec![None; start.index() + 1],
        constants: vec![Upper::default(); targets.len()],
    };
    pass.begin(start, targets);
    for node in (0..start.index()).rev() {
        if let Some(coefficients) = pass.coefficients[node + 1].take() {
            pass.replace(node, &coefficients);
        }
    }
    pass.concretise()
}

/// A batch of linear functions on its way to the input, one a row: each is at most the sum over all values of its coefficients times
/// the value, plus its constant. Lower bounds are upper bounds of the negative.
struct Pass<'a> {
    setting: Setting<'a>,
    skipped: usize,
    rows: usize,
    coefficients: Vec<Option<Vec<f64>>>,
    constants: Vec<Upper>,
}

impl Pass<'_> {
    fn begin(&mut self, start: ValueId, targets: &[Target]) {
        let width = self.setting.network.shape(start).elements();
        let mut coefficients = vec![0.0; self.rows * width];
        for (row, target) in coefficients.chunks_exact_mut(width).zip(targets) {
            row[target.element] = target.side.sign();
        }
        self.coefficients[start.index()] = Some(coefficients);
    }

    /// Adds coefficients to those that a value has already.
    ///
    /// All coefficients come by here, so this is where those that overflowed are caught: nothing is known of such a row any more.
    fn give(&mut self, value: ValueId, given: Vec<f64>) {
        let range = &self.setting.ranges[value.index()];
        let width = range.len();
        for (row, constant) in given.chunks_exact(width).zip(&mut self.constants) {
            if row.iter().any(|c| !c.is_finite()) {
                constant.add_error(f64::INFINITY);
            }
        }
        let Some(present) = &mut self.coefficients[value.index()] else {
            self.coefficients[value.index()] = Some(given);
            return;
        };
        for ((present, given), constant) in
            present.chunks_exact_mut(width).zip(given.chunks_exact(width)).zip(&mut self.constants)
        {
            for (element, (present, given)) in present.iter_mut().zip(given).enumerate() {
                let exact = *present == 0.0 || *given == 0.0;
                *present += given;
                if !exact {
                    constant.add_error(rounding(*present, range.magnitude(element)));
                }
            }
        }
    }

    /// Replaces what a node made, with these coefficients on it, by what it was made from.
    fn replace(&mut self, node: usize, coefficients: &[f64]) {
        let made = &self.setting.network.nodes()[node];
        let operand = made.operands()[0];
        let width = made.shape().elements();
        match made.op() {
            Op::Relu(_) => {
                let relaxed = self.relax(node, coefficients);
                self.give(operand, relaxed);
            }
            Op::Dense(dense) => {
                let (weight, bias) = (dense.weight(), dense.bias());
                let (outer, inner) = (weight.rows(), weight.columns());
                let positions = width / outer;
                let mut product = vec![0.0; self.rows * positions * inner];
                add_product(&mut product, coefficients, weight.values(), self.rows * positions, outer, inner);
                // How large each output can be if all its terms have the same sign: what errors are relative to.
                let range = &self.setting.ranges[operand.index()];
                let mut weights_times_magnitudes = Vec::with_capacity(width);
                for position in 0..positions {
                    for output in 0..outer {
                        let terms = weight.row(output).iter().enumerate();
                        let sum: f64 = terms.map(|(i, w)| w.abs() * range.magnitude(position * inner + i)).sum();
                        // What underflowed is more than made up for.
                        weights_times_magnitudes.push(sum + 2.0 * inner as f64 * f64::MIN_POSITIVE);
                    }
                }
                let slack = slack(outer) * (1.0 + slack(inner));
                let magnitude: f64 = (0..range.len()).map(|element| range.magnitude(element)).sum();
                let underflow = 2.0 * outer as f64 * f64::MIN_POSITIVE * (magnitude + 1.0);
                for (row, constant) in coefficients.chunks_exact(width).zip(&mut self.constants) {
                    let (mut error, mut zero) = (0.0, true);
                    for (index, (&c, sum)) in row.iter().zip(&weights_times_magnitudes).enumerate() {
                        if c == 0.0 {
                            continue;
                        }
                        zero = false;
                        error += c.abs() * sum;
                        if let Some(bias) = bias {
                            constant.add_product(c, bias[index % outer]);
                        }
                    }
                    if !zero {
                        constant.add_error(error * slack * (1.0 + self::slack(width)) + underflow);
                    }
                }
                self.give(operand, product);
            }
            Op::Elementwise(elementwise) => {
                let constants = elementwise.constant().expand(made.shape());
                let mut scaled = coefficients.to_vec();
                let range = &self.setting.ranges[operand.index()];
                for (row, constant) in scaled.chunks_exact_mut(width).zip(&mut self.constants) {
                    for (element, (c, &k)) in row.iter_mut().zip(&constants).enumerate() {
                        let given = *c;
                        match elementwise.arithmetic() {
                            Arithmetic::Add => {
                                constant.add_product(given, k);
                                continue;
                            }
                            Arithmetic::Multiply => *c *= k,
                            Arithmetic::Divide => *c /= k,
                        }
                        if given != 0.0 && k != 0.0 {
                            constant.add_error(rounding(*c, range.magnitude(element)));
                        }
                    }
                }
                self.give(operand, scaled);
            }
            Op::Reshape(_) => self.give(operand, coefficients.to_vec()),
            Op::Transpose(transpose) => {
                let sources = transpose.sources(self.setting.network.shape(operand).extents());
                let mut moved = vec![0.0; coefficients.len()];
                for (row, target) in coefficients.chunks_exact(width).zip(moved.chunks_exact_mut(width)) {
                    for (&c, &source) in row.iter().zip(&sources) {
                        target[source] = c;
                    }
                }
                self.give(operand, moved);
            }
            Op::Sum(_) => {
                self.give(operand, coefficients.to_vec());
                self.give(made.operands()[1], coefficients.to_vec());
            }
        }
    }

    /// The coefficients on pre-activations that stand for those on a layer's outputs.
    fn relax(&mut self, layer: usize, coefficients: &[f64]) -> Vec<f64> {
        let range = &self.setting.ranges[self.setting.network.pre_activation(layer).index()];
        let width = range.len();
        let mut relaxed = coefficients.to_vec();
        for (index, (row, constant)) in relaxed.chunks_exact_mut(width).zip(&mut self.constants).enumerate() {
            let slopes = self.setting.slopes.of(layer, self.skipped + index);
            for (unit, c) in row.iter_mut().enumerate() {
                let (l, u) = (range.lower[unit], range.upper[unit]);
                if l >= 0.0 || *c == 0.0 || c.is_nan() {
                    continue;
                }
                if u <= 0.0 {
                    *c = 0.0;
                } else if *c > 0.0 {
                    let d = (*c * (u / (u - l))).clamp(0.0, *c);
                    // Both are products of non-negative numbers, `c - d` rounded up first.
                    let left = rounded_up(d * -l);
                    let right = rounded_up((*c - d).next_up() * u);
                    constant.add_excess(left.max(right));
                    *c = d;
                } else {
                    let chosen = slopes.and_then(|slopes| slopes.get(unit).copied());
                    let slope = chosen.unwrap_or(if u > -l { 1.0 } else { 0.0 });
                    *c = if slope.is_nan() { 0.0 } else { (*c * slope).clamp(*c, 0.0) };
                }
            }
            for cut in self.setting.cuts.iter().filter(|cut| cut.layer == layer) {
                row[cut.unit] += cut.addend();
            }
        }
        relaxed
    }

    /// The maximum over the domain.
    fn concretise(&self) -> Vec<Bound> {
        let range = &self.setting.ranges[ValueId::INPUT.index()];
        let Some(coefficients) = &self.coefficients[ValueId::INPUT.index()] else {
            return self.constants.iter().map(Upper::bound).collect();
        };
        let rows = coefficients.chunks_exact(range.len()).zip(&self.constants);
        rows.map(|(row, &constant)| {
            let mut sum = constant;
            for ((&c, &lo), &hi) in row.iter().zip(&range.lower).zip(&range.upper) {
                sum.add_product(c, if c > 0.0 { hi } else { lo });
            }
            sum.bound()
        })
        .collect()
    }
}

/// How far a coefficient that is a rounded product, quotient or sum of doubles can move the result, on a value of this magnitude: more than 0,
/// unless the value is 0.
fn rounding(coefficient: f64, magnitude: f64) -> f64 {
    if magnitude == 0.0 { 0.0 } else { rounded_up((coefficient.abs() * f64::EPSILON + f64::MIN_POSITIVE) * magnitude) }
}

fn rounded_up(product: f64) -> f64 {
    if product == 0.0 { f64::MIN_POSITIVE } else { product.next_up() }
}
