//! How many answers of two networks are right, and how many differ.

use std::fmt;

use anyhow::{Result, ensure};
use leo_network::array::Elements;
use leo_network::{Array, Model};
use serde::Serialize;

use crate::output::{counted, grouped};

/// The answers of a network before and after.
#[derive(Clone, Debug, Serialize)]
pub struct Accuracy {
    samples: usize,
    /// The share of right answers.
    before: f64,
    after: f64,
    /// How many answers are others than before.
    changed: usize,
    /// How many of these had another answer so near that rounding decides.
    ties: usize,
}

/// A classifier's answer: the place of the largest of its scores.
struct Answer {
    class: i64,
    /// How far ahead of the next it is.
    margin: f64,
    /// The largest score there is.
    size: f64,
}

/// What single precision makes of a sum of a few hundred terms of size 1.
const ROUNDING: f64 = 1e-5;

impl Accuracy {
    /// Both networks' answers for samples, whose right answers are known. Outputs differ by no more than `delta`, but for rounding.
    pub fn of(models: &[Model; 2], samples: &Array, labels: &Array, delta: f64) -> Result<Self> {
        let [before, after] = [answers(&models[0], samples)?, answers(&models[1], samples)?];
        let labels: Vec<f64> = labels.to_vec();
        ensure!(
            labels.len() == before.len(),
            "{} for {}",
            counted(labels.len(), "label"),
            counted(before.len(), "sample")
        );
        let right = |answers: &[Answer]| {
            let right = answers.iter().zip(&labels).filter(|(answer, label)| answer.class as f64 == **label).count();
            right as f64 / labels.len().max(1) as f64
        };
        let changed = || before.iter().zip(&after).filter(|(before, after)| before.class != after.class);
        let is_tie = |(before, _): &(&Answer, &Answer)| before.margin <= 2.0 * delta + ROUNDING * before.size;
        Ok(Self {
            samples: labels.len(),
            before: right(&before),
            after: right(&after),
            changed: changed().count(),
            ties: changed().filter(is_tie).count(),
        })
    }
}

fn answers(model: &Model, samples: &Array) -> Result<Vec<Answer>> {
    let outputs = model.run(samples, None)?;
    let rows = samples.count_samples(model.network().input()).unwrap_or(0).max(1);
    let numbers: Vec<f64> = outputs.to_vec();
    let width = numbers.len() / rows;
    ensure!(width > 0, "the network has no outputs to compare");
    if width == 1 {
        ensure!(matches!(outputs.elements(), Elements::I64(_)), "a single output is no choice among answers");
        let answer = |&class: &f64| Answer { class: class as i64, margin: 0.0, size: 0.0 };
        return Ok(numbers.iter().map(answer).collect());
    }
    let answer = |scores: &[f64]| {
        let (mut class, mut best, mut next) = (0, f64::NEG_INFINITY, f64::NEG_INFINITY);
        for (place, &score) in scores.iter().enumerate() {
            if score > best {
                (class, next, best) = (place as i64, best, score);
            } else if score > next {
                next = score;
            }
        }
        Answer { class, margin: best - next, size: scores.iter().fold(0.0, |most, score| most.max(score.abs())) }
    };
    Ok(numbers.chunks_exact(width).map(answer).collect())
}

impl fmt::Display for Accuracy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, before, after, changed, ties } = *self;
        let (before, after) = (100.0 * before, 100.0 * after);
        write!(formatter, "accuracy {before:.2}% before, {after:.2}% after; ")?;
        write!(formatter, "{} of {} predictions changed", grouped(changed), grouped(samples))?;
        if changed > 0 {
            write!(formatter, " ({ties} of them ties, where rounding decides)")?;
        }
        Ok(())
    }
}
