//! Where values can lie, and what that says about the values computed from them: interval arithmetic, rounded outward.
//!
//! For networks that is interval bound propagation (IBP, Gowal et al. 2018, arXiv:1810.12715).

use leo_network::op::{Action, Arithmetic, Op, Sums};
use leo_network::{Activation, Domain, Network, ValueMap};
use rayon::prelude::*;

use crate::activation::image;
use crate::exact::Exact;
use crate::number::Number;
use crate::sound::Upper;

/// Where a number lies for every input of the domain.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval<N = f64> {
    /// It is nowhere less.
    pub lower: N,
    /// It is nowhere more.
    pub upper: N,
}

/// For each element of a value, an interval that holds it for every input of the domain.
#[derive(Clone, Debug, PartialEq)]
pub struct Range<N = f64> {
    /// What no element is below.
    pub lower: Vec<N>,
    /// What no element is above.
    pub upper: Vec<N>,
}

impl<N: Number> Range<N> {
    /// The range of the input.
    pub(crate) fn of_domain(domain: &Domain) -> Self {
        let (lower, upper) = domain.hull().sides().map(|(lo, hi)| (N::of(lo), N::of(hi))).unzip();
        Self { lower, upper }
    }

    /// Anywhere.
    pub(crate) fn unknown(elements: usize) -> Self {
        let infinite = N::of(f64::INFINITY);
        Self { lower: vec![infinite.negative(); elements], upper: vec![infinite; elements] }
    }

    /// A single point.
    pub(crate) fn of_point(point: &[f64]) -> Self {
        let numbers: Vec<N> = point.iter().copied().map(N::of).collect();
        Self { lower: numbers.clone(), upper: numbers }
    }

    pub(crate) fn len(&self) -> usize {
        self.lower.len()
    }

    /// Where an element lies.
    pub fn at(&self, element: usize) -> Interval<N> {
        Interval { lower: self.lower[element].clone(), upper: self.upper[element].clone() }
    }

    /// The largest absolute value that any element can have.
    pub fn size(&self) -> N {
        (0..self.len()).map(|element| self.magnitude(element)).fold(N::default(), |most, size| most.larger(&size))
    }

    /// The largest absolute value that an element can have.
    pub(crate) fn magnitude(&self, element: usize) -> N {
        self.lower[element].abs().larger(&self.upper[element].abs())
    }

    /// The smallest range in doubles that holds it.
    pub(crate) fn outward(&self) -> Range {
        let lower = self.lower.iter().map(|bound| -bound.negative().rounded_up()).collect();
        Range { lower, upper: self.upper.iter().map(N::rounded_up).collect() }
    }

    /// The same range in exact numbers, if it is finite.
    pub(crate) fn exactly(&self) -> Option<Range<Exact>> {
        let exactly = |bounds: &[N]| bounds.iter().map(N::exactly).collect::<Option<Vec<Exact>>>();
        Some(Range { lower: exactly(&self.lower)?, upper: exactly(&self.upper)? })
    }

    /// The range of what a node computes, from those of its operands.
    pub(crate) fn of_node(network: &Network, node: usize, ranges: &ValueMap<Self>) -> Self {
        let made = &network.nodes()[node];
        let operand = |index: usize| -> &Self { &ranges[made.operands()[index]] };
        let x = operand(0);
        match made.op() {
            Op::Activation(of) => x.activated(of),
            Op::Sum(_) => Self::combined(x, operand(1)),
            Op::Concat(concat) => {
                let sources = concat.sources(&network.operand_shapes(made));
                let of = |bounds: fn(&Self) -> &Vec<N>| {
                    sources.iter().map(|&(index, element)| bounds(operand(index))[element].clone()).collect()
                };
                Self { lower: of(|range| &range.lower), upper: of(|range| &range.upper) }
            }
            Op::MaxPool(pool) => {
                let windows = pool.windows(network.shape(made.operands()[0]));
                let largest = |bounds: &[N]| {
                    let of = |output| windows.of(output).map(|input| bounds[input].clone()).reduce(|a, b| a.larger(&b));
                    (0..made.shape().elements()).map(|output| of(output).unwrap_or_default()).collect()
                };
                Self { lower: largest(&x.lower), upper: largest(&x.upper) }
            }
            Op::Affine(map) => match map.action(network.shape(made.operands()[0])) {
                Action::Move(moves) => Self { lower: moves.forward(&x.lower), upper: moves.forward(&x.upper) },
                Action::Each(Arithmetic::Add, constants) => Self::combined(x, &Self::of_point(&constants)),
                Action::Each(Arithmetic::Multiply, constants) => x.scaled(&constants, N::times),
                Action::Each(Arithmetic::Divide, constants) => x.scaled(&constants, N::over),
                Action::Sums(sums) => x.summed(&sums),
            },
        }
    }

    /// The sums of elements, each times a weight.
    fn summed(&self, sums: &Sums<'_>) -> Self {
        // What a kernel makes at each position is many numbers, and they come to be the operands of as many again:
        // exact ones would grow without end.
        let is_dense = sums.as_matrix().is_some();
        let kept = |limit: N| if is_dense { limit } else { limit.shortened_up() };
        let sum = |output: usize| {
            let (mut above, mut below) = (Upper::default(), Upper::default());
            for (input, weight) in sums.terms(output) {
                let (lo, hi) = (&self.lower[input], &self.upper[input]);
                let (most, least) = if weight > 0.0 { (hi, lo) } else { (lo, hi) };
                above.add_product(&N::of(weight), most);
                below.add_product(&N::of(-weight), least);
            }
            let bias = sums.bias(output);
            above.add(&N::of(bias));
            below.add(&N::of(-bias));
            (N::default().minus(&kept(below.bound().limit)), kept(above.bound().limit))
        };
        let (lower, upper) = match is_dense {
            true => (0..sums.outputs()).map(sum).unzip(),
            false => (0..sums.outputs()).into_par_iter().with_min_len(64).map(sum).unzip(),
        };
        Self { lower, upper }
    }

    /// The range of what an activation makes of the elements.
    pub(crate) fn activated(&self, of: &Activation) -> Self {
        let (lower, upper) =
            (0..self.len()).map(|unit| image(of, &self.at(unit))).map(|of| (of.lower, of.upper)).unzip();
        Self { lower, upper }
    }

    /// The sums of elements that lie in two ranges.
    fn combined(x: &Self, y: &Self) -> Self {
        let sum = |x: &N, y: &N| {
            let mut sum = Upper::default();
            sum.add(x);
            sum.add(y);
            sum.bound().limit
        };
        let below = |x: &N, y: &N| N::default().minus(&sum(&x.negative(), &y.negative()));
        Self {
            lower: x.lower.iter().zip(&y.lower).map(|(x, y)| below(x, y)).collect(),
            upper: x.upper.iter().zip(&y.upper).map(|(x, y)| sum(x, y)).collect(),
        }
    }

    /// Elements times or over constants.
    fn scaled(&self, constants: &[f64], operation: fn(&N, &N) -> N) -> Self {
        let mut range = Self { lower: Vec::new(), upper: Vec::new() };
        for ((lower, upper), &constant) in self.lower.iter().zip(&self.upper).zip(constants) {
            // A product or quotient of doubles is off by less than the distance to its neighbours. Zero is exact
            // unless something underflowed to it.
            let above = |x: &N, sign: f64| match x.is_zero() || constant == 0.0 {
                true => N::default(),
                false => operation(x, &N::of(sign * constant)).up(),
            };
            range.upper.push(above(lower, 1.0).larger(&above(upper, 1.0)));
            range.lower.push(N::default().minus(&above(lower, -1.0).larger(&above(upper, -1.0))));
        }
        range
    }

    /// Takes what another range of the same value knows better.
    pub(crate) fn tighten(&mut self, element: usize, lower: Option<N>, upper: Option<N>) {
        if let Some(lower) = lower.filter(|lower| *lower > self.lower[element]) {
            self.lower[element] = lower;
        }
        if let Some(upper) = upper.filter(|upper| *upper < self.upper[element]) {
            self.upper[element] = upper;
        }
    }
}
