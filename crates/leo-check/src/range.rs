//! Where values can lie, and what that says about the values computed from them: interval arithmetic, rounded outward.

use leo_network::op::{Arithmetic, Op};
use leo_network::{Domain, Network};

use crate::sound::Upper;

/// For each element of a value, an interval that holds it for every input of the domain.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// What no element is below.
    pub lower: Vec<f64>,
    /// What no element is above.
    pub upper: Vec<f64>,
}

impl Range {
    /// The domain as the range of the input.
    pub(crate) fn of_domain(domain: &Domain) -> Self {
        Self { lower: domain.lo().to_vec(), upper: domain.hi().to_vec() }
    }

    pub(crate) fn len(&self) -> usize {
        self.lower.len()
    }

    /// The largest absolute value that any element can have.
    pub fn size(&self) -> f64 {
        (0..self.len()).map(|element| self.magnitude(element)).fold(0.0, f64::max)
    }

    /// The largest absolute value that an element can have.
    pub(crate) fn magnitude(&self, element: usize) -> f64 {
        self.lower[element].abs().max(self.upper[element].abs())
    }

    /// The range of what a node computes, from those of its operands.
    pub(crate) fn of_node(network: &Network, node: usize, ranges: &[Self]) -> Self {
        let made = &network.nodes()[node];
        let operand = |index: usize| -> &Self { &ranges[made.operands()[index].index()] };
        match made.op() {
            Op::Relu(_) => operand(0).positive(),
            Op::Dense(dense) => {
                let x = operand(0);
                let (weight, inner) = (dense.weight(), dense.weight().columns());
                let mut range = Self { lower: Vec::new(), upper: Vec::new() };
                for start in (0..x.len()).step_by(inner) {
                    let (lower, upper) = (&x.lower[start..][..inner], &x.upper[start..][..inner]);
                    for row in 0..weight.rows() {
                        let (mut above, mut below) = (Upper::default(), Upper::default());
                        for ((&w, &lo), &hi) in weight.row(row).iter().zip(lower).zip(upper) {
                            let (most, least) = if w > 0.0 { (hi, lo) } else { (lo, hi) };
                            above.add_product(w, most);
                            below.add_product(-w, least);
                        }
                        let bias = dense.bias().map_or(0.0, |bias| bias[row]);
                        above.add(bias);
                        below.add(-bias);
                        range.upper.push(above.bound().limit);
                        range.lower.push(0.0 - below.bound().limit);
                    }
                }
                range
            }
            Op::Sum(_) => Self::combined(operand(0), operand(1)),
            Op::Reshape(_) => operand(0).clone(),
            Op::Transpose(transpose) => {
                let sources = transpose.sources(network.shape(made.operands()[0]).extents());
                let x = operand(0);
                let moved = |bounds: &[f64]| sources.iter().map(|&source| bounds[source]).collect();
                Self { lower: moved(&x.lower), upper: moved(&x.upper) }
            }
            Op::Elementwise(elementwise) => {
                let x = operand(0);
                let constants = elementwise.constant().expand(made.shape());
                match elementwise.arithmetic() {
                    Arithmetic::Add => Self::combined(x, &Self { lower: constants.clone(), upper: constants }),
                    Arithmetic::Multiply => x.scaled(&constants, |x, c| x * c),
                    Arithmetic::Divide => x.scaled(&constants, |x, c| x / c),
                }
            }
        }
    }

    /// The range of the elements' ReLUs.
    pub(crate) fn positive(&self) -> Self {
        let positive = |bounds: &[f64]| bounds.iter().map(|bound| bound.max(0.0)).collect();
        Self { lower: positive(&self.lower), upper: positive(&self.upper) }
    }

    /// The sums of elements that lie in two ranges.
    fn combined(x: &Self, y: &Self) -> Self {
        let sum = |x: f64, y: f64| {
            let mut sum = Upper::default();
            sum.add(x);
            sum.add(y);
            sum.bound().limit
        };
        Self {
            lower: x.lower.iter().zip(&y.lower).map(|(&x, &y)| 0.0 - sum(-x, -y)).collect(),
            upper: x.upper.iter().zip(&y.upper).map(|(&x, &y)| sum(x, y)).collect(),
        }
    }

    /// Elements times or over constants.
    fn scaled(&self, constants: &[f64], operation: fn(f64, f64) -> f64) -> Self {
        let mut range = Self { lower: Vec::new(), upper: Vec::new() };
        for ((&lower, &upper), &constant) in self.lower.iter().zip(&self.upper).zip(constants) {
            let ends = [operation(lower, constant), operation(upper, constant)];
            // A product or quotient of doubles is off by less than the distance to its neighbours. Zero is exact
            // unless something underflowed to it.
            let exact = |end: f64, x: f64| end == 0.0 && (x == 0.0 || constant == 0.0);
            let outward = |end: f64, x: f64, up: bool| match exact(end, x) {
                true => 0.0,
                false if up => end.next_up(),
                false => end.next_down(),
            };
            let above = outward(ends[0], lower, true).max(outward(ends[1], upper, true));
            let below = outward(ends[0], lower, false).min(outward(ends[1], upper, false));
            range.upper.push(if ends.iter().any(|end| end.is_nan()) { f64::INFINITY } else { above });
            range.lower.push(if ends.iter().any(|end| end.is_nan()) { f64::NEG_INFINITY } else { below });
        }
        range
    }

    /// Takes what another range of the same value knows better.
    pub(crate) fn tighten(&mut self, element: usize, lower: f64, upper: f64) {
        if lower > self.lower[element] {
            self.lower[element] = lower;
        }
        if upper < self.upper[element] {
            self.upper[element] = upper;
        }
    }
}
