//! The best choice of lines and multipliers for a single bound, on the domain or on a piece of it.
//!
//! A linear bound chooses slopes for lines below units (alpha-CROWN, Xu et al. 2021),
//! [tilts](crate::bounds::input_layer) lines above units of the first layer (Anderson et al. 2020), and has multipliers
//! for signs that are known on its piece (beta-CROWN, Wang et al. 2021, arXiv:2103.06624). Each step substitutes
//! backward, evaluates the relaxed network at the position that the lines are near to, and moves everything at once:
//! the position uphill, with momentum; each slope up where its unit's pre-activation is positive there, and down where
//! it is negative; each multiplier up where the sign is not what it should be.
//!
//! What is found at any time is a bound, exactly as the proof would have it, so the search ends as soon as the bound is
//! below 0.

use leo_check::{Range, Relaxation, Target};

use leo_network::UnitId;

use super::BoundProblem;
use crate::bounds::input_layer::{Tilted, short_slope};
use crate::bounds::relaxed::{RelaxationParameters, RelaxedPass, is_free, is_open, within};

/// What part of the last change goes into the next.
const MOMENTUM: f64 = 0.7;
/// How far a slope goes in a step if the pre-activation is as large as its range is wide.
const SLOPE_RATE: f64 = 3.0;
/// How far a multiplier goes in such a step, in typical coefficients of its layer.
const MULTIPLIER_RATE: f64 = 3.0;
/// The largest multiplier, in typical coefficients: more would drown the bound in rounding.
const MAX_MULTIPLIER: f64 = 1e4;
/// How far rounding moves a sum, as a part of its terms.
const ROUNDING_ERROR: f64 = 1e-13;
/// How many steps are taken at the most.
const MAX_STEPS: usize = 60;
/// After how many steps it is seen, again and again, whether they were worth it.
const CHECK_INTERVAL: usize = 10;
/// By what part of itself a bound must have become better from one check to the next for the search to go on.
const MIN_GAIN: f64 = 3e-3;
/// How soft tilted lines are at the end.
const LAST_SOFTNESS: f64 = 0.1;
/// What is left of the softness of tilted lines after a step, until it is [`LAST_SOFTNESS`].
const SOFTNESS_DECAY: f64 = 0.85;
/// By what part of the first bound a bound may be worse than the best one before the search goes back to that.
const MAX_SETBACK: f64 = 0.3;
/// What is left of the pace after going back.
const PACE_DECAY: f64 = 0.5;

/// A bound in the making.
pub(crate) struct Refinement<'p, 'a> {
    pub(crate) pass: &'p mut RelaxedPass<'a>,
    target: Target,
    /// For each layer before, and each cut, how it changed last.
    changes: Vec<Vec<f64>>,
    multiplier_changes: Vec<f64>,
    pace: f64,
    /// The bound at first, the best one, and how it was made.
    first: f64,
    pub(crate) least: f64,
    best: Option<RelaxationParameters>,
}

impl<'p, 'a> Refinement<'p, 'a> {
    pub(crate) fn new(pass: &'p mut RelaxedPass<'a>, target: Target) -> Self {
        let changes = pass.lines.iter().map(|lines| vec![0.0; lines.free[0].len()]).collect();
        let multiplier_changes = vec![0.0; pass.cuts.len()];
        Self {
            pass,
            target,
            changes,
            multiplier_changes,
            pace: 1.0,
            first: f64::INFINITY,
            least: f64::INFINITY,
            best: None,
        }
    }

    /// The bound with the choice as it is.
    pub(crate) fn bound(&mut self) -> f64 {
        let found = self.pass.backward(&[self.target])[0];
        let bound = if found.is_nan() { f64::INFINITY } else { found };
        if self.best.is_none() {
            self.first = bound;
        }
        if bound < self.least || self.best.is_none() {
            self.least = bound;
            self.best = Some(self.pass.choice());
        } else if bound > self.least + MAX_SETBACK * self.first.abs() && self.pace > 1e-3 {
            self.rest_at_best();
            self.pace *= PACE_DECAY;
            return self.pass.backward(&[self.target])[0];
        }
        bound
    }

    /// About how far rounding can have moved the bound.
    pub(crate) fn noise(&self) -> f64 {
        let Range { lower, upper } = self.pass.input();
        let sizes = lower.iter().zip(upper).map(|(lower, upper)| upper.max(-lower));
        ROUNDING_ERROR * self.pass.coefficients.iter().zip(sizes).map(|(c, size)| c.abs() * size).sum::<f64>()
    }

    /// Goes back to the best choice.
    pub(crate) fn rest_at_best(&mut self) {
        if let Some(best) = &self.best {
            self.pass.begin_with(best);
        }
        self.changes.iter_mut().flatten().chain(&mut self.multiplier_changes).for_each(|change| *change = 0.0);
    }

    /// The point that the lines are near to.
    pub(crate) fn point(&self) -> Vec<f64> {
        match &self.pass.tilted {
            Some(tilted) => tilted.point(self.pass.input()),
            None => self.pass.corners.clone(),
        }
    }

    /// The corner where the bound is attained.
    pub(crate) fn corner(&self) -> &[f64] {
        &self.pass.corners
    }

    /// Changes the choice for the better, after a substitution.
    pub(crate) fn step(&mut self) {
        let point = self.point();
        self.pass.forward(point);
        let tilted_layer = self.pass.tilted.as_ref().map(Tilted::layer);
        self.pass.measure_scales();
        for (index, changes) in self.changes.iter_mut().enumerate() {
            let layer = self.pass.lines[index].layer;
            let (range, of) = (self.pass.range(layer), self.pass.activation(layer));
            let lines = &mut self.pass.lines[index];
            if lines.values.is_empty() || Some(lines.layer) == tilted_layer {
                continue;
            }
            for (unit, change) in changes.iter_mut().enumerate() {
                if is_open(of, range, unit) && is_free(of, lines.coefficients[unit]) {
                    *change = MOMENTUM * *change + lines.values[unit] / (range.upper[unit] - range.lower[unit]);
                    let slope = &mut lines.free[0][unit];
                    *slope = within(of, short_slope(*slope + self.pace * SLOPE_RATE * *change));
                }
            }
        }
        let cuts = self.pass.cuts;
        for (index, (cut, change)) in cuts.iter().zip(&mut self.multiplier_changes).enumerate() {
            let UnitId { layer, unit } = cut.unit;
            let range = self.pass.range(layer);
            let lines = self.pass.lines.iter().zip(&self.pass.scales);
            let Some((lines, scale)) =
                lines.into_iter().find(|(lines, _)| lines.layer == layer && !lines.values.is_empty())
            else {
                continue;
            };
            let value = -cut.side.sign() * lines.values[unit];
            let width = (range.upper[unit] - range.lower[unit]).max(f64::MIN_POSITIVE);
            *change = MOMENTUM * *change + scale * value / width;
            let multiplier = &mut self.pass.multipliers[index];
            *multiplier =
                short((*multiplier + self.pace * MULTIPLIER_RATE * *change).max(0.0).min(MAX_MULTIPLIER * scale));
        }
        let input = self.pass.input();
        if let Some(tilted) = &mut self.pass.tilted {
            let softness = (tilted.softness * SOFTNESS_DECAY).max(LAST_SOFTNESS);
            tilted.climb(&self.pass.coefficients, input, softness);
        }
    }
}

/// Lines that make a bound about as good as lines can, or put it below 0 if nothing more is wanted. The search begins
/// with these lines, if there are any.
pub(crate) fn best_lines(question: &BoundProblem<'_>, start: Option<&Relaxation>, stop_at_sign: bool) -> Relaxation {
    let mut pass = RelaxedPass::new(question.known, &[], 1);
    pass.tilted = question.front.map(Tilted::new);
    if let Some(lines) = start {
        let start = pass.choice().with(lines, Vec::new(), &pass.lines, question.front);
        pass.begin_with(&start);
    }
    let mut refinement = Refinement::new(&mut pass, question.target);
    let mut before = f64::INFINITY;
    for step in 0..MAX_STEPS {
        if step > 0 {
            refinement.step();
        }
        refinement.bound();
        let least = refinement.least;
        if step % CHECK_INTERVAL == CHECK_INTERVAL - 1 {
            if before - least < MIN_GAIN * least.abs() {
                break;
            }
            before = least;
        }
        if least < 0.0 && stop_at_sign || question.budget.is_exhausted() {
            break;
        }
    }
    refinement.rest_at_best();
    pass.chosen()
}

/// A number of few digits nearby, if there is one.
fn short(number: f64) -> f64 {
    let short = number as f32;
    if short.is_finite() { f64::from(short) } else { number }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fastrand::Rng;
    use leo_check::{Checker, Side};
    use leo_network::op::{Arithmetic, Broadcast, Dense, Elementwise, Matrix, Relu};
    use leo_network::{Domain, Evaluator, Network, NetworkError, Shape, ValueId};

    use super::*;
    use crate::bounds::KnownRanges;
    use crate::bounds::input_layer::InputLayer;
    use crate::budget::Limits;

    /// How many inputs the network has.
    const INPUTS: usize = 6;

    /// Inputs that are scaled, some of them with a negative factor, and two layers of ReLUs.
    fn network(random: &mut Rng) -> Result<Network, NetworkError> {
        let mut builder = Network::builder(Shape::new([INPUTS])?);
        let factors = (0..INPUTS).map(|_| random.f64() + if random.bool() { 0.5 } else { -1.5 }).collect();
        let scale = Elementwise::new(Arithmetic::Multiply, Broadcast::new(Shape::new([INPUTS])?, factors)?)?;
        let mut value = builder.add("scale", scale, &[ValueId::INPUT])?;
        let mut before = INPUTS;
        for (name, width) in [("first", 8), ("second", 4)] {
            let mut numbers = |count: usize| (0..count).map(|_| 2.0 * random.f64() - 1.0).collect::<Vec<_>>();
            let dense = Dense::new(Matrix::new(width, before, numbers(width * before))?, Some(numbers(width)))?;
            value = builder.add(name, dense, &[value])?;
            value = builder.add(name, Relu, &[value])?;
            before = width;
        }
        builder.finish(vec![value])
    }

    /// What the search takes for a bound is what the checker proves, it is better than with chords and never wrong.
    #[test]
    fn tilted_lines_are_what_the_checker_proves() -> Result<(), Box<dyn std::error::Error>> {
        let (mut chords, mut lines) = (0.0, 0.0);
        for seed in 0..40 {
            let mut random = Rng::with_seed(seed);
            let (network, domain) = (network(&mut random)?, Domain::uniform(INPUTS, -0.5, 1.0)?);
            let mut checker = Checker::new(&network, &domain)?;
            checker.next_layer();
            let layer = checker.next_layer().ok_or("two layers")?;
            let front =
                domain.as_box().and_then(|bounds| InputLayer::new(&network, bounds, checker.ranges())).map(Arc::new);
            assert!(front.is_some(), "scaled inputs do not meet");
            let (limits, ranges) = (Limits::default(), checker.ranges().clone());
            let budget = limits.whole();
            let points: Vec<f64> =
                (0..400 * INPUTS).map(|_| [-0.5, 1.0, random.f64() - 0.2][random.usize(0..3)]).collect();
            let evaluator = Evaluator::<f64>::new(&network);
            let mut workspace = evaluator.workspace();
            for unit in 0..4 {
                for side in [Side::Lower, Side::Upper] {
                    let target = Target { unit, side };
                    let value = network.pre_activation(layer);
                    let known = KnownRanges { network: &network, domain: &domain, value, ranges: &ranges };
                    let question = |front| BoundProblem { known, target, front, budget: &budget };
                    let bound = |checker: &Checker<'_>| match side {
                        Side::Lower => -checker.range(layer).lower[unit],
                        Side::Upper => checker.range(layer).upper[unit],
                    };
                    let [chord, tilted] = [None, front.as_ref()].map(|front| {
                        let mut checker = checker.clone();
                        let chosen = best_lines(&question(front), None, false);
                        checker.prove_linear(&[target], &[&chosen]);
                        assert_eq!(chosen.tilt.is_some(), front.is_some());
                        bound(&checker)
                    });
                    (chords, lines) = (chords + chord, lines + tilted);
                    let mut pass = RelaxedPass::new(known, &[], 1);
                    pass.tilted = front.as_ref().map(Tilted::new);
                    let mut refinement = Refinement::new(&mut pass, target);
                    for _ in 0..5 {
                        let found = refinement.bound();
                        let mut checker = checker.clone();
                        checker.prove_linear(&[target], &[&refinement.pass.chosen()]);
                        assert!(bound(&checker) <= found + 1e-9, "{} {found}", bound(&checker));
                        refinement.step();
                    }
                    for block in points.chunks(evaluator.block_rows() * INPUTS) {
                        let values = evaluator.forward(&mut workspace, block);
                        let numbers = values.get(network.pre_activation(layer)).chunks_exact(4);
                        assert!(numbers.into_iter().all(|row| side.sign() * row[unit] <= tilted));
                    }
                }
            }
        }
        assert!(lines < 0.95 * chords, "{lines} {chords}");
        Ok(())
    }
}
