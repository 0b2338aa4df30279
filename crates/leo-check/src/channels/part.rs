//! The dense part of a network with convolutions: what comes after a value through which everything goes, if that is a
//! network of dense layers.
//!
//! Write the first network as `T(v)`, where `v` is that value, and the second as `T'(v')`. Up to there, intervals of
//! differences are carried through both, so that `v' = k + d`, where `k` has the elements of `v` that stay, and `d`
//! lies in an interval. Let `T''` be `T'` with weights 0 for the elements that are gone, so that `T''(v) = T'(k)`. Then
//!
//! ```text
//! T'(v') - T(v)  =  (T'(k + d) - T'(k))  +  (T''(v) - T(v))
//! ```
//!
//! The second of these is about two dense networks that read the same, and as far as dense networks can be apart on a
//! box in which `v` lies for every input ([`mod@crate::deviation`]). The first is how far one network moves when what
//! it reads does: intervals of differences again, of a network and itself. Where `d` is nothing, it is nothing.

use leo_network::op::{Dense, Matrix};
use leo_network::{Network, Shape, ValueId, ValueMap};

use super::expressions::Expressed;
use super::pairs::{NodePair, sum_of};
use super::{ChannelSelection, StandIn, StandIns};
use crate::checker::{Checker, ProvedBounds};
use crate::correspondence::{Correspondence, Mismatch};
use crate::deviation::{Difference, difference};
use crate::number::Number;
use crate::proof::Proof;
use crate::range::Range;

/// What is said of what comes after a value, in the first network and in the second.
#[derive(Clone, Debug, PartialEq)]
pub struct PartClaims {
    /// The value, which is at the same place in both.
    pub value: ValueId,
    /// What is known of the first network's units there, on the box in which the value lies.
    pub proof: Proof,
    /// What corresponds to what. Values and layers are those of [the parts](Network::after).
    pub pairs: Correspondence,
}

/// What is proved of the first network after a value, and said of both.
#[derive(Debug)]
pub struct PartPair<'a, N = f64> {
    /// The value, which is at the same place in both.
    pub value: ValueId,
    /// What is proved of what comes after it, on a box in which the value lies.
    pub facts: &'a ProvedBounds<'a, N>,
    /// What corresponds to what.
    pub pairs: &'a Correspondence,
}

/// How many weights may be filled in for elements that are gone: a small file could ask for more than any machine has.
const MOST_WEIGHTS: usize = 1 << 28;

impl<N: Number> PartPair<'_, N> {
    /// How far outputs of both networks can be apart, if elements of the value in the second stand for those of the
    /// first and differ `by` so much. If there are `ranges`, they are those of the second network up to there, and get
    /// the others.
    pub(super) fn difference(
        &self,
        facts: &ProvedBounds<'_, N>,
        second: &Network,
        stands_for: &StandIn,
        by: &Range<N>,
        mut ranges: ValueMap<Range<N>>,
    ) -> Result<Difference<N>, Mismatch> {
        let after = |network: &Network| network.after(self.value).map_err(|_| Mismatch::Part);
        let (first, second) = (after(facts.network())?, after(second)?);
        let (given, assumed) = (facts.range(self.value), self.facts.range(ValueId::INPUT));
        let lies_within = |element: usize| {
            assumed.lower[element] <= given.lower[element] && given.upper[element] <= assumed.upper[element]
        };
        // What is proved has to be of this part, and of all that comes to it.
        if !self.facts.network().is_alike(&first) || !(0..given.len()).all(lies_within) {
            return Err(Mismatch::Part);
        }
        let second = widened(second, stands_for, first.input())?;
        let found = difference(self.facts, &second, self.pairs, !ranges.is_empty())?;
        let moved = self.moved(&second, stands_for, by)?;
        let movement = |value: ValueId| moved.as_ref().map(|moved| &moved[value]);
        if !ranges.is_empty() {
            let range = |value: ValueId| {
                let own = &found.ranges[value];
                movement(value).map_or_else(|| own.clone(), |by| own.widened(by))
            };
            ranges.extend(second.values().skip(1).map(range));
        }
        let mut deviation = found.deviation;
        for (far, &value) in deviation.iter_mut().zip(second.outputs()) {
            let Some(by) = movement(value) else { continue };
            for (element, far) in far.iter_mut().enumerate().filter(|(element, _)| !by.magnitude(*element).is_zero()) {
                *far = far.plus(&by.magnitude(element)).up();
            }
        }
        Ok(Difference { deviation, ranges })
    }

    /// How far each value of the second part moves where what it reads is `by` so much beside what it stands for;
    /// nothing if that is nowhere.
    fn moved(
        &self,
        second: &Network,
        stands_for: &StandIn,
        by: &Range<N>,
    ) -> Result<Option<ValueMap<Range<N>>>, Mismatch> {
        if (0..by.len()).all(|element| by.magnitude(element).is_zero()) {
            return Ok(None);
        }
        let nothing = vec![N::default(); second.input().elements()];
        let mut input = Range { lower: nothing.clone(), upper: nothing };
        for element in 0..by.len() {
            let at = stands_for.source(element);
            (input.lower[at], input.upper[at]) = (by.lower[element].clone(), by.upper[element].clone());
        }
        let mut checker = Checker::begin(second, self.facts.domain()).map_err(|_| Mismatch::Part)?;
        checker.go_to_end();
        let facts = checker.finish();
        let values = StandIns::new(second, second, &ChannelSelection::default(), None)?;
        let expressed: ValueMap<Expressed<N>> = second.values().map(|_| Expressed::default()).collect();
        let mut differences = ValueMap::from(vec![input]);
        for (index, node) in second.nodes().iter().enumerate() {
            let pair = NodePair {
                first: second,
                second,
                one: node,
                other: node,
                facts: &facts,
                values: &values,
                differences: &differences,
                expressed: &expressed,
            };
            let made = pair.difference(second.result_of(index))?;
            differences.push(made);
        }
        Ok(Some(differences))
    }
}

impl<N: Number> Range<N> {
    /// Where a number of this range lies once it is moved.
    fn widened(&self, by: &Self) -> Self {
        let at = |element: usize| sum_of(&self.at(element), &by.at(element));
        let (lower, upper) = (0..self.len()).map(at).map(|at| (at.lower, at.upper)).unzip();
        Self { lower, upper }
    }
}

/// A part that reads only some elements of a value, as one that reads all of them, the others with weight 0.
fn widened(part: Network, stands_for: &StandIn, whole: &Shape) -> Result<Network, Mismatch> {
    if part.input() == whole {
        return Ok(part);
    }
    let (few, all) = (part.input().elements(), whole.elements());
    if part.input().rank() != 1 || whole.rank() != 1 {
        return Err(Mismatch::Part);
    }
    let mut weights = 0_usize;
    let mut builder = Network::builder(whole.clone());
    for node in part.nodes() {
        let op = match (node.operands().contains(&ValueId::INPUT), node.op().as_dense()) {
            (false, _) => node.op().clone(),
            (true, None) => return Err(Mismatch::Part),
            (true, Some(dense)) => {
                let rows = dense.weight().rows();
                weights = weights.saturating_add(rows.saturating_mul(all));
                if weights > MOST_WEIGHTS {
                    return Err(Mismatch::TooLarge);
                }
                let mut values = vec![0.0; rows * all];
                for (row, element) in (0..rows).flat_map(|row| (0..few).map(move |element| (row, element))) {
                    values[row * all + stands_for.source(element)] = dense.weight().row(row)[element];
                }
                let weight = Matrix::new(rows, all, values).map_err(|_| Mismatch::Part)?;
                Dense::new(weight, dense.bias().map(<[f64]>::to_vec)).map_err(|_| Mismatch::Part)?.into()
            }
        };
        builder.add(node.name(), op, node.operands()).map_err(|_| Mismatch::Part)?;
    }
    builder.finish(part.outputs().to_vec()).map_err(|_| Mismatch::Part)
}
