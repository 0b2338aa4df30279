//! How far an evaluation in floating point can be off, at whatever point of the domain.
//!
//! Let `u` be the unit roundoff, and `γ(n) = n u / (1 - n u)` (Higham, *Accuracy and Stability of Numerical
//! Algorithms*, 2002, chapter 3). A sum of `k` products that are not 0 and one more number, computed in any order, with
//! or without fused multiply-adds, misses the exact sum by at most `γ(k + 1)` times the sum of absolute values: no term
//! is rounded more than `k + 1` times. These absolute values follow from the ranges of the operands, which are proved,
//! and from how far these are off themselves. Errors of operands pass through affine maps with the weights' absolute
//! values, and through an activation with its steepest slope: through a ReLU as they are. Numbers that are too small to
//! be normal may be rounded or taken for 0, whether they are read or written: each time by no more than the smallest
//! normal number. Where something can overflow, nothing is known, not even of what multiplies it by 0.
//!
//! A mean of `k` numbers is their sum over `n`, or times `1 / n` as that is rounded, or each number over `n` or times
//! that before they are added up: nobody knows which. In all of these each number is rounded at most `k` times as part
//! of a sum and twice besides, so that the mean is a sum of products with `1 / n` of which no term is rounded more than
//! `k + 3` times. Sums before the division must not overflow either.

use leo_network::activation::Piece;
use leo_network::op::{Action, AffineMap, Arithmetic, Op, Sums};
use leo_network::{Activation, Network, Node, ValueMap};

use crate::number::Number;
use crate::range::Range;

/// The numbers that a network is evaluated in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Precision {
    /// How much of a number rounding takes at the most.
    roundoff: f64,
    /// The smallest normal number.
    smallest: f64,
    /// More than this may overflow.
    largest: f64,
}

impl Precision {
    /// 32 bit floats.
    pub const SINGLE: Self = Self {
        roundoff: f32::EPSILON as f64 / 2.0,
        smallest: f32::MIN_POSITIVE as f64,
        largest: f32::MAX as f64 / 2.0,
    };
    /// 64 bit floats.
    pub const DOUBLE: Self =
        Self { roundoff: f64::EPSILON / 2.0, smallest: f64::MIN_POSITIVE, largest: f64::MAX / 2.0 };

    /// `γ(n)`, rounded up.
    fn gamma(self, n: usize) -> f64 {
        let all = n as f64 * self.roundoff;
        if all < 0.5 { all / (1.0 - all) * (1.0 + 8.0 * f64::EPSILON) } else { f64::INFINITY }
    }
}

/// For each element of the input, and of what each node makes: how far a number that is computed in this precision can
/// be from the exact one, at whatever point of the domain where the values lie in these ranges. As many values as there
/// are ranges.
pub fn evaluation_errors(network: &Network, ranges: &ValueMap<Range>, precision: Precision) -> ValueMap<Vec<f64>> {
    let mut errors = ValueMap::default();
    extend_errors(network, ranges, precision, &mut errors);
    errors
}

/// For each element of each output of a network whose values lie in these ranges, how far off it can be when it is
/// computed in single precision.
pub fn single_errors<N: Number>(network: &Network, ranges: &ValueMap<Range<N>>) -> Vec<Vec<f64>> {
    let ranges = ValueMap::from(ranges.iter().map(Range::outward).collect::<Vec<Range>>());
    let errors = evaluation_errors(network, &ranges, Precision::SINGLE);
    network.outputs().iter().map(|value| errors[*value].clone()).collect()
}

/// How far outputs of two networks can be apart in single precision that are this far apart in real arithmetic, if each
/// network is off by its own errors.
pub fn apart_in_single(apart: &[Vec<f64>], errors: &[Vec<Vec<f64>>]) -> Vec<Vec<f64>> {
    let mut sums = apart.to_vec();
    for errors in errors {
        let pairs = sums.iter_mut().flatten().zip(errors.iter().flatten());
        pairs.for_each(|(sum, error)| *sum = if *error == 0.0 { *sum } else { (*sum + error).next_up() });
    }
    sums
}

/// Adds the errors of the values that ranges are known of now.
pub fn extend_errors(
    network: &Network,
    ranges: &ValueMap<Range>,
    precision: Precision,
    errors: &mut ValueMap<Vec<f64>>,
) {
    if errors.is_empty() {
        // The input itself is exact.
        errors.push(vec![0.0; network.input().elements()]);
    }
    for node in network.nodes().iter().take(ranges.len() - 1).skip(errors.len() - 1) {
        let made = errors_of_node(network, node, ranges, precision, errors);
        errors.push(made);
    }
}

/// A sum of products in the making: bounds of all that makes its evaluation miss it.
struct Missing {
    precision: Precision,
    terms: usize,
    /// The sum of absolute values, as they are computed.
    size: f64,
    inherited: f64,
}

impl Missing {
    /// Begins with a number that is added.
    fn new(precision: Precision, summand: f64) -> Self {
        Self { precision, terms: 0, size: summand.abs(), inherited: 0.0 }
    }

    /// A weight times an operand that is no larger than this, as it is computed, and off by no more than its error.
    fn add(&mut self, weight: f64, size: f64, error: f64) {
        if weight != 0.0 {
            let tiny = self.precision.smallest;
            self.terms += 1;
            self.size += weight.abs() * size;
            self.inherited += weight.abs() * (error + tiny) + tiny * (size + tiny);
        } else if !size.is_finite() {
            // What may overflow may be infinite, and that times 0 is no number.
            self.size = f64::INFINITY;
        }
    }

    /// How far the sum can be from what it should be.
    fn bound(self) -> f64 {
        self.bound_with(0)
    }

    /// The same for a sum whose terms are rounded so many times more.
    fn bound_with(self, more: usize) -> f64 {
        let Self { precision, terms, size, inherited } = self;
        // Each of these sums was rounded itself.
        let up = 1.0 + 4.0 * (terms as f64 + 4.0) * f64::EPSILON;
        let size = size * up;
        if size.is_nan() || size > precision.largest {
            return f64::INFINITY;
        }
        let underflow = (2.0 * (terms + more) as f64 + 2.0) * precision.smallest;
        // What changes numbers as they are read and written is rounded with them.
        let gamma = precision.gamma(terms + 1 + more);
        let bound = ((inherited * up + underflow) * (1.0 + gamma) + gamma * size) * up;
        // A number alone is not computed.
        if terms == 0 && (size == 0.0 || size >= precision.smallest) { 0.0 } else { bound }
    }
}

/// What is known of the operands of a node: their ranges, and how far they are off.
#[derive(Clone, Copy)]
struct OperandErrors<'a> {
    node: &'a Node,
    ranges: &'a ValueMap<Range>,
    errors: &'a ValueMap<Vec<f64>>,
}

impl<'a> OperandErrors<'a> {
    /// How far the elements of the operand with this index can be off.
    fn errors(self, index: usize) -> &'a [f64] {
        &self.errors[self.node.operands()[index]]
    }

    /// How large an element of the operand with this index can be, as it is computed.
    fn size(self, index: usize, element: usize) -> f64 {
        let range = &self.ranges[self.node.operands()[index]];
        (range.lower[element].abs().max(range.upper[element].abs()) + self.errors(index)[element]).next_up()
    }
}

/// How far what a node computes can be off, from how far its operands are.
fn errors_of_node(
    network: &Network,
    node: &Node,
    ranges: &ValueMap<Range>,
    precision: Precision,
    errors: &ValueMap<Vec<f64>>,
) -> Vec<f64> {
    let operands = OperandErrors { node, ranges, errors };
    match node.op() {
        Op::Activation(of) => errors_of_units(of, operands, precision),
        Op::Sum(_) => {
            let sum = |element: usize| {
                let mut missing = Missing::new(precision, 0.0);
                (0..2).for_each(|index| {
                    missing.add(1.0, operands.size(index, element), operands.errors(index)[element]);
                });
                missing.bound()
            };
            (0..operands.errors(0).len()).map(sum).collect()
        }
        Op::Concat(concat) => {
            let sources = concat.sources(&network.operand_shapes(node)).into_iter();
            sources.map(|(index, element)| operands.errors(index)[element]).collect()
        }
        Op::MaxPool(pool) => {
            // Numbers are compared, and one of them is handed on.
            let windows = pool.windows(network.shape(node.operands()[0]));
            let larger = |a: f64, b: f64| if a.is_nan() || b.is_nan() { f64::INFINITY } else { a.max(b) };
            let most = |output| windows.of(output).map(|input| operands.errors(0)[input]).fold(0.0, larger);
            (0..node.shape().elements()).map(|output| (most(output) + precision.smallest).next_up()).collect()
        }
        Op::Affine(map) => {
            let action = map.action(network.shape(node.operands()[0]));
            let is_mean = matches!(map, AffineMap::Elementwise(quotient) if quotient.is_fixed());
            match mean_of(network, node).filter(|_| is_mean) {
                Some((pool, sums)) => {
                    errors_of_means(sums, action, OperandErrors { node: pool, ..operands }, precision)
                }
                None => errors_of_map(action, operands, precision),
            }
        }
    }
}

/// A ReLU reads numbers and writes them. Anything else has factors and summands: on whatever piece it is evaluated, it
/// is as far off as the steepest makes it.
fn errors_of_units(of: &Activation, operands: OperandErrors<'_>, precision: Precision) -> Vec<f64> {
    let errors = operands.errors(0);
    if of.pieces().iter().all(|piece| piece.is_zero() || piece.is_identity()) {
        return errors.iter().map(|error| (error + precision.smallest).next_up()).collect();
    }
    let most = |number: fn(&Piece) -> f64| of.pieces().iter().map(|piece| number(piece).abs()).fold(0.0, f64::max);
    let (slope, constant) = (most(|piece| piece.slope), most(|piece| piece.constant));
    let computed = |(element, error): (usize, &f64)| {
        let mut missing = Missing::new(precision, constant);
        missing.add(slope, operands.size(0, element), *error);
        missing.bound()
    };
    errors.iter().enumerate().map(computed).collect()
}

/// If a node divides what a pool added up, as an operator that makes means does: the pool, and its sums.
fn mean_of<'a>(network: &'a Network, node: &Node) -> Option<(&'a Node, Sums<'a>)> {
    let mut before = &network.nodes()[node.operands()[0].node()?];
    // Axes that are no more, or are to be there again.
    while let Op::Affine(AffineMap::Reshape(_)) = before.op() {
        before = &network.nodes()[before.operands()[0].node()?];
    }
    let Op::Affine(map @ AffineMap::SumPool(_)) = before.op() else { return None };
    match map.action(network.shape(before.operands()[0])) {
        Action::Sums(sums) => Some((before, sums)),
        _ => None,
    }
}

/// How far means can be off of which the sums are these, from how far what these read is.
fn errors_of_means(sums: Sums<'_>, over: Action<'_>, pooled: OperandErrors<'_>, precision: Precision) -> Vec<f64> {
    let Action::Each(_, counts) = over else { return vec![f64::INFINITY; sums.outputs()] };
    let mean = |(output, count): (usize, f64)| {
        let share = (1.0 / count.abs()).next_up();
        let (mut mean, mut sum) = (Missing::new(precision, 0.0), Missing::new(precision, 0.0));
        sums.terms(output).for_each(|(input, weight)| {
            let (size, error) = (pooled.size(0, input), pooled.errors(0)[input]);
            mean.add(weight * share, size, error);
            sum.add(weight, size, error);
        });
        // What is not finite is no bound, whatever it is divided by.
        if sum.bound().is_finite() { mean.bound_with(2) } else { f64::INFINITY }
    };
    counts.into_iter().enumerate().map(mean).collect()
}

/// What an affine map makes of errors: numbers that are moved keep theirs, and all others are sums of products.
fn errors_of_map(action: Action<'_>, operands: OperandErrors<'_>, precision: Precision) -> Vec<f64> {
    let errors = operands.errors(0);
    match action {
        Action::Move(moves) => moves.forward(errors),
        Action::Each(arithmetic, constants) => {
            let of = |(element, k): (usize, f64)| {
                let (factor, summand) = match arithmetic {
                    Arithmetic::Add => (1.0, k),
                    Arithmetic::Multiply => (k, 0.0),
                    // A divisor that may be taken for 0 makes everything infinite.
                    Arithmetic::Divide if k.abs() < precision.smallest => (f64::INFINITY, 0.0),
                    Arithmetic::Divide => ((1.0 / k.abs()).next_up(), 0.0),
                };
                let mut missing = Missing::new(precision, summand);
                missing.add(factor, operands.size(0, element), errors[element]);
                missing.bound()
            };
            constants.into_iter().enumerate().map(of).collect()
        }
        Action::Sums(sums) => {
            let sizes: Vec<f64> = (0..errors.len()).map(|element| operands.size(0, element)).collect();
            let sum = |output: usize| {
                let mut missing = Missing::new(precision, sums.bias(output));
                sums.terms(output).for_each(|(input, weight)| missing.add(weight, sizes[input], errors[input]));
                missing.bound()
            };
            (0..sums.outputs()).map(sum).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use leo_network::op::{Broadcast, Elementwise, Relu, SumPool, Window, WindowAxis};
    use leo_network::{Shape, ValueId};

    use super::*;

    /// What single precision can make of an input from 0 to 1 that goes through these, one after the other.
    fn error_after(ops: Vec<Op>) -> Result<f64, leo_network::NetworkError> {
        let mut builder = Network::builder(Shape::new([1])?);
        let mut value = ValueId::INPUT;
        for op in ops {
            value = builder.add("", op, &[value])?;
        }
        let network = builder.finish(vec![value])?;
        let mut ranges = ValueMap::from(vec![Range { lower: vec![0.0], upper: vec![1.0] }]);
        for index in 0..network.nodes().len() {
            let range = Range::of_node(&network, index, &ranges);
            ranges.push(range);
        }
        Ok(single_errors(&network, &ranges)[0][0])
    }

    fn by(arithmetic: Arithmetic, constant: f64) -> Result<Op, leo_network::NetworkError> {
        Ok(Elementwise::new(arithmetic, Broadcast::new(Shape::new([1])?, vec![constant])?)?.into())
    }

    #[test]
    fn what_may_be_infinite_is_not_forgotten_by_a_factor_of_0() -> Result<(), leo_network::NetworkError> {
        let times = |factor| by(Arithmetic::Multiply, factor);
        assert!(error_after(vec![times(1e15)?, times(1e15)?, times(0.0)?])?.is_finite());
        assert!(error_after(vec![times(1e30)?, times(1e30)?, times(0.0)?])?.is_infinite());
        Ok(())
    }

    /// The mean of two inputs from 0 to 1, by the operator or in two steps.
    #[test]
    fn means_are_computed_in_several_ways() -> Result<(), leo_network::NetworkError> {
        let two = Broadcast::new(Shape::new([1, 1])?, vec![2.0])?;
        let error = |quotient: Elementwise| -> Result<f64, leo_network::NetworkError> {
            let mut builder = Network::builder(Shape::new([1, 2])?);
            let sum = builder.add("", SumPool::new(Window::new([WindowAxis::new(2, 1)])), &[ValueId::INPUT])?;
            let mean = builder.add("", quotient, &[sum])?;
            let network = builder.finish(vec![mean])?;
            let mut ranges = ValueMap::from(vec![Range { lower: vec![0.0; 2], upper: vec![1.0; 2] }]);
            for index in 0..network.nodes().len() {
                let range = Range::of_node(&network, index, &ranges);
                ranges.push(range);
            }
            Ok(single_errors(&network, &ranges)[0][0])
        };
        let mean = error(Elementwise::of_operator(Arithmetic::Divide, two.clone())?)?;
        let unit = f64::from(f32::EPSILON) / 2.0;
        assert!(mean >= 5.0 * unit && mean <= 5.1 * unit, "no number is rounded more than five times: {mean:e}");
        assert!(mean >= error(Elementwise::new(Arithmetic::Divide, two)?)?, "which is one of the ways");
        Ok(())
    }

    #[test]
    fn numbers_that_are_taken_for_0() -> Result<(), leo_network::NetworkError> {
        assert!(error_after(vec![Relu.into()])? >= f64::from(f32::MIN_POSITIVE), "a ReLU may do so");
        assert!(error_after(vec![by(Arithmetic::Divide, 1e-40)?])?.is_infinite(), "a divisor");
        assert!(error_after(vec![by(Arithmetic::Divide, 1e-30)?])?.is_finite());
        Ok(())
    }
}
