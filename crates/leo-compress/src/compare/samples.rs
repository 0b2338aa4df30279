//! What samples show of a network that was made smaller: whose answers cannot have changed, and which units never
//! change their minds.

use leo_check::{Checker, Precision, evaluation_errors};
use leo_network::{Array, Domain, DomainError, Evaluator, Network, UnitId};
use leo_stability::{Layer, Status};

use crate::compare::falsify::for_samples;

/// How many samples there are whose answer, which is the place of the largest number of the only output, is proved to
/// be what it was: it is ahead of every other number by more than both can have moved. Nothing if there is no choice
/// among answers. A sample outside the domain proves nothing.
///
/// # Errors
/// If samples or domain are another network's.
pub fn settled_answers(
    network: &Network,
    domain: &Domain,
    samples: &Array,
    delta: &[Vec<f64>],
) -> Result<Option<usize>, DomainError> {
    let ([output], [delta]) = (network.outputs(), delta) else { return Ok(None) };
    if delta.len() < 2 {
        return Ok(None);
    }
    Domain::count_samples(samples, network.input())?;
    let facts = Checker::new(network, domain)?.finish();
    // What doubles make of a number comes on top of how far it can have moved.
    let errors = evaluation_errors(network, facts.ranges(), Precision::DOUBLE);
    let moved: Vec<f64> = delta.iter().zip(&errors[*output]).map(|(delta, error)| delta + error).collect();
    let evaluator = Evaluator::<f64>::new(network);
    let numbers: Vec<f64> = samples.to_vec();
    let mut settled = 0;
    for some in numbers.chunks(domain.len() * evaluator.block_rows()) {
        let outputs = evaluator.run(some);
        for (sample, scores) in some.chunks_exact(domain.len()).zip(outputs[0].chunks_exact(delta.len())) {
            settled += usize::from(domain.contains(sample) && is_settled(scores, &moved));
        }
    }
    Ok(Some(settled))
}

/// Whether the largest of some scores stays ahead, however far each has moved.
fn is_settled(scores: &[f64], moved: &[f64]) -> bool {
    let Some(best) = (0..scores.len()).max_by(|&a, &b| scores[a].total_cmp(&scores[b])) else { return false };
    (0..scores.len()).filter(|&other| other != best).all(|other| {
        let margin = (scores[best] - scores[other]).next_down();
        margin > (moved[best] + moved[other]).next_up()
    })
}

/// A unit that is unstable on the domain, and only on, or only off, on samples.
#[derive(Clone, Debug, PartialEq)]
pub struct OneSided {
    /// Which unit.
    pub unit: UnitId,
    /// Whether it is on, on every sample.
    pub on: bool,
    /// Inputs that have to leave the range that the samples have, at a point that shows it otherwise, if one is known.
    /// None if that point is in the midst of the samples.
    pub inputs: Option<Vec<usize>>,
}

/// Units of which samples show one side only, and what is known of where the other side is: `witness` may know a point
/// that shows a unit off, or on.
///
/// # Errors
/// If the samples are another network's.
pub(crate) fn one_sided<'w>(
    network: &Network,
    layers: &[Layer],
    domain: &Domain,
    samples: &Array,
    witness: impl Fn(UnitId, bool) -> Option<&'w [f64]>,
) -> Result<Vec<OneSided>, DomainError> {
    let mut seen: Vec<Vec<[bool; 2]>> = layers.iter().map(|layer| vec![[false; 2]; layer.units.len()]).collect();
    let mut range: Vec<(f64, f64)> = vec![(f64::INFINITY, f64::NEG_INFINITY); domain.len()];
    let evaluator = Evaluator::<f64>::new(network);
    let mut workspace = evaluator.workspace();
    for_samples(samples, network, domain, |some| {
        for sample in some {
            range.iter_mut().zip(sample).for_each(|(range, &x)| *range = (range.0.min(x), range.1.max(x)));
        }
        let points = some.concat();
        let values = evaluator.forward(&mut workspace, &points);
        for (layer, seen) in layers.iter().zip(&mut seen) {
            let numbers = values.get(network.pre_activation(layer.id));
            let first_knot = network.activation(layer.id).knots().first().copied().unwrap_or(0.0);
            for (index, &number) in numbers.iter().enumerate() {
                let unit = index % layer.units.len();
                seen[unit][usize::from(number > first_knot)] = true;
            }
        }
    })?;
    let mut found = Vec::new();
    for (layer, seen) in layers.iter().zip(&seen) {
        for (unit, (known, seen)) in layer.units.iter().zip(seen).enumerate() {
            let can_be_both = matches!(known.status, Status::Unstable);
            if can_be_both && seen[0] != seen[1] {
                let (unit, on) = (UnitId { layer: layer.id, unit }, seen[1]);
                let is_beyond = |(input, (&x, &(least, most))): (usize, (&f64, &(f64, f64)))| {
                    (x < least || x > most).then_some(input)
                };
                let beyond = |point: &[f64]| point.iter().zip(&range).enumerate().filter_map(is_beyond).collect();
                found.push(OneSided { unit, on, inputs: witness(unit, !on).map(beyond) });
            }
        }
    }
    Ok(found)
}
