//! Linear bounds, by backward substitution: CROWN (Zhang et al. 2018, arXiv:1811.00866), DeepPoly (Singh et al. 2019).
//!
//! To bound a linear function of a value from above, replace the value by what it was computed from, node by node,
//! until only the input is left, where the domain gives the maximum. Affine nodes are replaced exactly. A unit `h =
//! f(z)` with a range of `z` proved, and coefficient `c` on it, is replaced by a line above `c h`
//! ([`crate::activation`]): for any slope `d`, `c f(z) <= d z + max(c f(x) - d x)`, where the maximum is over the ends
//! of the range and the knots within. For a ReLU with `l <= z <= u`:
//!
//! - `l >= 0`: `h` is `z`, and the coefficient stays. `u <= 0`: `h` is 0.
//! - `c >= 0`: the least of these lines is the chord, `d = c u / (u - l)`.
//! - `c < 0`: `d = c a` with the slope `a` of the unit, anything from 0 to 1, and the maximum is 0. A proof may choose
//!   it (the alpha of alpha-CROWN, Xu et al. 2021, arXiv:2011.13824); a bad choice makes the bound worse, never wrong.
//! - `c >= 0`, if the pre-activations are an affine function of one value `x` with a known range: `c h <= c a x + c d`
//!   with a [tilted](MixedInequality) line (Anderson et al. 2020, Tjandraatmadja et al. 2020), if `a x + d >= 0` and `a
//!   x + d >= z` for all `x` in that range. Each needs `d` to be at least the maximum of a linear function over a box.
//!
//! On a piece of the domain where `z >= k` is known, any multiple `m (z - k)` with `m >= 0` may be added: it only makes
//! the sum larger there. So may `-m (z - k)` where `z <= k`. A proof may choose the multipliers (the beta of
//! beta-CROWN, Wang et al. 2021, arXiv:2103.06624); whatever the sum of coefficients is rounded to, it is the sum for
//! some other multiplier of the same sign, and how much the constant differs for that one is taken into account.
//!
//! What matters for soundness is thus only that the constant
//! is an upper bound for that very `d`, however it was rounded. The other source of error is the products of
//! coefficients and weights: if `C` holds the coefficients and `P` the computed product `C W`, then `(C W) z <= P z +
//! |P - C W| |z|`, where `|P - C W|` is at most [`slack`] times `|C| |W|` and `|z|` is bounded by the range of `z`;
//! [`Upper`] collects these errors.

use leo_network::op::{Action, Arithmetic, Op, Sums};
use leo_network::{Activation, Domain, LayerId, Network, Node, UnitId, ValueId, ValueMap};

use crate::activation::{SlopeRange, above, line_above, touched};
use crate::number::Number;
use crate::range::{Interval, Range};
use crate::relaxation::{KnownPhase, MixedInequality, Relaxation, Target};
use crate::sound::{Bound, Upper, slack, underflow};

/// What bounds of a value's elements are proved from.
pub(crate) struct BackwardContext<'a, N> {
    pub(crate) network: &'a Network,
    pub(crate) domain: &'a Domain,
    /// A layer's pre-activations, an output, or any other.
    pub(crate) value: ValueId,
    /// A proved range for every value before it.
    pub(crate) ranges: &'a ValueMap<Range<N>>,
    /// What each of the targets has chosen, in their order. Missing ones are the default.
    pub(crate) lines: &'a [&'a Relaxation],
    /// On which piece of the domain the bounds are to hold.
    pub(crate) cuts: &'a [KnownPhase],
}

/// For each target an upper bound, of its element or, if it is a lower bound that is asked for, of its negative.
pub(crate) fn bounds<N: Number>(setting: &BackwardContext<'_, N>, targets: &[Target]) -> Vec<Bound<N>> {
    let start = setting.value;
    let mut pass = BackwardPass {
        setting,
        rows: targets.len(),
        coefficients: vec![None; start.index() + 1].into(),
        constants: vec![Upper::default(); targets.len()],
    };
    pass.begin(start, targets);
    for node in (0..start.index()).rev() {
        if let Some(coefficients) = pass.coefficients[setting.network.result_of(node)].take() {
            pass.replace(node, coefficients);
        }
    }
    pass.concretise()
}

/// A batch of linear functions on its way to the input, one a row: each is at most the sum over all values of its
/// coefficients times the value, plus its constant. Lower bounds are upper bounds of the negative.
struct BackwardPass<'a, N> {
    setting: &'a BackwardContext<'a, N>,
    rows: usize,
    coefficients: ValueMap<Option<Vec<N>>>,
    constants: Vec<Upper<N>>,
}

impl<N: Number> BackwardPass<'_, N> {
    fn begin(&mut self, start: ValueId, targets: &[Target]) {
        let width = self.setting.network.shape(start).elements();
        let mut coefficients = vec![N::default(); self.rows * width];
        for (row, target) in coefficients.chunks_exact_mut(width).zip(targets) {
            row[target.unit] = N::of(target.side.sign());
        }
        self.coefficients[start] = Some(coefficients);
    }

    /// Adds coefficients, `given` to a value, to what it has already.
    ///
    /// All coefficients come by here, so this is where those that overflowed are caught: nothing is known of such a row
    /// any more.
    fn give(&mut self, value: ValueId, given: Vec<N>) {
        let range = &self.setting.ranges[value];
        let width = range.len();
        for (row, constant) in given.chunks_exact(width).zip(&mut self.constants) {
            if row.iter().any(|c| !c.is_finite()) {
                constant.add_error(&N::of(f64::INFINITY));
            }
        }
        let Some(present) = &mut self.coefficients[value] else {
            self.coefficients[value] = Some(given);
            return;
        };
        for ((present, given), constant) in
            present.chunks_exact_mut(width).zip(given.chunks_exact(width)).zip(&mut self.constants)
        {
            for (element, (present, given)) in present.iter_mut().zip(given).enumerate() {
                let exact = present.is_zero() || given.is_zero();
                present.add(given);
                if !exact {
                    constant.add_error(&rounding(present, &range.magnitude(element)));
                }
            }
        }
    }

    /// Replaces what a node made, with these coefficients on it, by what it was made from.
    fn replace(&mut self, node: usize, mut coefficients: Vec<N>) {
        let made = &self.setting.network.nodes()[node];
        let operand = made.operands()[0];
        match made.op() {
            Op::Activation(_) => {
                self.setting.network.layer_at(node).into_iter().for_each(|layer| self.relax(layer, &mut coefficients));
            }
            Op::Sum(_) => self.give(made.operands()[1], coefficients.clone()),
            Op::Concat(concat) => {
                return self.divide(made, &concat.sources(&self.setting.network.operand_shapes(made)), &coefficients);
            }
            Op::MaxPool(_) => return self.concretise_at(node, &coefficients),
            Op::Affine(map) => match map.action(self.setting.network.shape(operand)) {
                Action::Move(moves) => coefficients = moves.backward(coefficients),
                Action::Each(arithmetic, constants) => {
                    self.change_each(operand, arithmetic, &constants, &mut coefficients)
                }
                Action::Sums(sums) => {
                    let product = sums.backward(&coefficients);
                    let range = &self.setting.ranges[operand];
                    add_errors_of_product(&mut self.constants, &coefficients, &sums, range);
                    if sums.has_bias() {
                        for (row, constant) in coefficients.chunks_exact(sums.outputs()).zip(&mut self.constants) {
                            let terms = row.iter().enumerate();
                            terms.for_each(|(output, c)| constant.add_product(c, &N::of(sums.bias(output))));
                        }
                    }
                    coefficients = product;
                }
            },
        }
        self.give(operand, coefficients);
    }

    /// Gives coefficients on values side by side to each of them.
    fn divide(&mut self, made: &Node, sources: &[(usize, usize)], coefficients: &[N]) {
        for (index, &operand) in made.operands().iter().enumerate() {
            let width = self.setting.network.shape(operand).elements();
            let mut given = vec![N::default(); coefficients.len() / sources.len() * width];
            for (row, given) in coefficients.chunks_exact(sources.len()).zip(given.chunks_exact_mut(width)) {
                let own = row.iter().zip(sources).filter(|(_, (of, _))| *of == index);
                own.for_each(|(c, &(_, element))| given[element] = c.clone());
            }
            self.give(operand, given);
        }
    }

    /// Replaces coefficients on what a node made by where that lies.
    fn concretise_at(&mut self, node: usize, coefficients: &[N]) {
        let range = &self.setting.ranges[self.setting.network.result_of(node)];
        for (row, constant) in coefficients.chunks_exact(range.len()).zip(&mut self.constants) {
            for (element, c) in row.iter().enumerate() {
                let at = if c.is_positive() { &range.upper[element] } else { &range.lower[element] };
                constant.add_product(c, at);
            }
        }
    }

    /// Replaces coefficients on elements of a value plus, times or over constants.
    fn change_each(&mut self, operand: ValueId, arithmetic: Arithmetic, constants: &[f64], coefficients: &mut [N]) {
        let range = &self.setting.ranges[operand];
        for (row, constant) in coefficients.chunks_exact_mut(constants.len()).zip(&mut self.constants) {
            for (element, (c, &k)) in row.iter_mut().zip(constants).enumerate() {
                let factor = N::of(k);
                let scaled = match arithmetic {
                    Arithmetic::Add => {
                        constant.add_product(c, &factor);
                        continue;
                    }
                    Arithmetic::Multiply => c.times(&factor),
                    Arithmetic::Divide => c.over(&factor),
                };
                if !c.is_zero() && k != 0.0 {
                    constant.add_error(&rounding(&scaled, &range.magnitude(element)));
                }
                *c = scaled;
            }
        }
    }

    /// Replaces coefficients on a layer's outputs by those on pre-activations that stand for them.
    fn relax(&mut self, layer: LayerId, coefficients: &mut [N]) {
        let (network, of) = (self.setting.network, self.setting.network.activation(layer));
        let range = &self.setting.ranges[network.pre_activation(layer)];
        self.tilt(layer, coefficients);
        let units: Vec<(Interval<N>, SlopeRange)> = (0..range.len())
            .map(|unit| range.at(unit))
            .map(|at| {
                let slopes = SlopeRange::new(of, &at);
                (at, slopes)
            })
            .collect();
        for (index, row) in coefficients.chunks_exact_mut(range.len()).enumerate() {
            let lines = self.setting.lines.get(index);
            let constant = &mut self.constants[index];
            let slopes = lines.map(|lines| &lines.slopes).filter(|slopes| !slopes.is_empty());
            for (unit, c) in row.iter_mut().enumerate() {
                if c.is_zero() || !c.is_finite() {
                    continue;
                }
                let (at, free) = &units[unit];
                let chosen = slopes.and_then(|slopes| slopes.get(&UnitId { layer, unit }).copied());
                replace_unit(of, c, at, free, chosen, constant);
            }
            for cut in self.setting.cuts.iter().filter(|cut| cut.unit.layer == layer) {
                let coefficient = &mut row[cut.unit.unit];
                coefficient.add(&N::of(cut.addend()));
                if cut.knot != 0.0 {
                    constant.add_product(&N::of(cut.addend()), &N::of(-cut.knot));
                    // The multiplier that is in the coefficient may be another one than this, by what was rounded.
                    constant.add_error(&rounding(coefficient, &N::of(cut.knot.abs())));
                }
            }
        }
    }

    /// Where lines above a layer's units are tilted: replaces positive coefficients on outputs of unstable units by
    /// coefficients on what the layer's affine map reads.
    fn tilt(&mut self, layer: LayerId, coefficients: &mut [N]) {
        let BackwardContext { network, ranges, lines, .. } = *self.setting;
        let tilt = |row: usize| lines.get(row)?.tilt.as_deref().filter(|tilt| tilt.layer == layer);
        let Some((dense, operand)) =
            MixedInequality::map(network, layer).filter(|_| (0..lines.len()).any(|row| tilt(row).is_some()))
        else {
            return;
        };
        let range = &ranges[network.pre_activation(layer)];
        let operands = &ranges[operand];
        let (inner, width) = (operands.len(), range.len());
        let mut product = vec![N::default(); self.rows * inner];
        let rows = coefficients.chunks_exact_mut(width).zip(product.chunks_exact_mut(inner)).zip(&mut self.constants);
        for (row, ((coefficients, product), constant)) in rows.enumerate() {
            let Some(tilt) = tilt(row).filter(|tilt| tilt.fits(network)) else { continue };
            let (mut taken, mut lines) = (Vec::new(), Vec::new());
            for (unit, c) in coefficients.iter_mut().enumerate() {
                let [first, last] = touched(network.activation(layer), &range.lower[unit], &range.upper[unit]);
                if c.is_positive() && c.is_finite() && first < last {
                    let first = lines.len();
                    let weights = dense.weight().row(unit);
                    lines.extend(weights.iter().zip(tilt.shares(unit, weights)).map(|(weight, share)| weight * share));
                    let bias = dense.bias().map_or(0.0, |bias| bias[unit]);
                    constant.add_product(c, &constant_above(&lines[first..], weights, bias, operands));
                    taken.push(std::mem::take(c));
                }
            }
            if !taken.is_empty() {
                let sums = Sums::of_rows(&lines, inner);
                product.clone_from_slice(&sums.backward(&taken));
                add_errors_of_product(std::slice::from_mut(constant), &taken, &sums, operands);
            }
        }
        self.give(operand, product);
    }

    /// The maximum over the domain.
    fn concretise(&self) -> Vec<Bound<N>> {
        let domain = self.setting.domain;
        let Some(coefficients) = &self.coefficients[ValueId::INPUT] else {
            return self.constants.iter().map(Upper::bound).collect();
        };
        let mut point = domain.hull().lo().to_vec();
        let rows = coefficients.chunks_exact(domain.len()).zip(&self.constants);
        rows.map(|(row, constant)| {
            let mut sum = constant.clone();
            domain.maximise(row, &mut point);
            row.iter().zip(&point).for_each(|(c, &x)| sum.add_product(c, &N::of(x)));
            sum.bound()
        })
        .collect()
    }
}

/// Replaces a coefficient on a unit by one on its pre-activation, which lies in an interval, and adds what belongs to
/// it.
pub(crate) fn replace_unit<N: Number>(
    of: &Activation,
    c: &mut N,
    at: &Interval<N>,
    free: &SlopeRange,
    chosen: Option<f64>,
    constant: &mut Upper<N>,
) {
    let [first, last] = free.touched;
    let piece = &of.pieces()[first];
    if first == last && piece.is_identity() {
        return;
    }
    if first == last && piece.is_zero() {
        *c = N::default();
        return;
    }
    let (line, excess) = line_above(of, c, at, free, chosen);
    match excess < N::default() {
        true => constant.add(&excess),
        false => constant.add_excess(&excess),
    }
    *c = line;
}

/// What to add to `a z` so that it is nowhere below 0, and nowhere below `w z + b`, for all `z` in this range. `a` is
/// `w`, each times a share from 0 to 1.
fn constant_above<N: Number>(above: &[f64], weights: &[f64], bias: f64, range: &Range<N>) -> N {
    let (mut for_zero, mut for_unit) = (Upper::default(), Upper::default());
    for_unit.add(&N::of(bias));
    for (element, (&weight, &a)) in weights.iter().zip(above).enumerate() {
        let (lo, hi) = (&range.lower[element], &range.upper[element]);
        // Where a weight is positive, the first takes most where the element is least, the second where it is greatest.
        let (least, most) = if weight > 0.0 { (lo, hi) } else { (hi, lo) };
        let a = N::of(-a);
        for_zero.add_product(&a, least);
        for_unit.add_product(&N::of(weight), most);
        for_unit.add_product(&a, most);
    }
    for_zero.bound().limit.larger(&for_unit.bound().limit)
}

/// Takes into account how far coefficients on inputs of sums, on a value with this range, can be off that were computed
/// from those on the sums.
fn add_errors_of_product<N: Number>(constants: &mut [Upper<N>], coefficients: &[N], sums: &Sums<'_>, range: &Range<N>) {
    if !N::ROUNDS {
        return;
    }
    let sizes: Vec<N> = (0..range.len()).map(|element| range.magnitude(element)).collect();
    // How large each output can be if all its terms have the same sign: what errors are relative to.
    let largest = |output: usize| {
        // What underflowed is more than made up for.
        let mut sum = underflow::<N>(sums.longest());
        sums.terms(output).for_each(|(input, weight)| sum.add(&N::of(weight.abs()).times(&sizes[input])));
        sum
    };
    let largest: Vec<N> = (0..sums.outputs()).map(largest).collect();
    let total = sizes.iter().fold(N::of(1.0), |total, size| total.plus(size));
    let (width, one) = (sums.outputs(), N::of(1.0));
    let relative = [sums.longest(), width].map(|terms| one.plus(&slack(terms)));
    let factor = slack::<N>(sums.readers()).times(&relative[0]).times(&relative[1]);
    for (row, constant) in coefficients.chunks_exact(width).zip(constants) {
        let mut size = N::default();
        row.iter().zip(&largest).for_each(|(c, sum)| size.add(&c.abs().times(sum)));
        if row.iter().any(|c| !c.is_zero()) {
            constant.add_error(&size.times(&factor).plus(&underflow::<N>(sums.readers()).times(&total)));
        }
    }
}

/// How far a coefficient that is a rounded product, quotient or sum of doubles can move the result, on a value of this
/// magnitude: more than 0, unless the value is 0.
pub(crate) fn rounding<N: Number>(coefficient: &N, magnitude: &N) -> N {
    if !N::ROUNDS || magnitude.is_zero() {
        return N::default();
    }
    above(coefficient.abs().times(&N::of(f64::EPSILON)).plus(&underflow(1)).times(magnitude))
}
