//! How many answers of two networks are right, and how many differ.

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use leo_formats::ArrayFile;
use leo_formats::{Model, RunError};
use leo_network::Elements;
use leo_network::{Array, Domain, Evaluator};
use serde::Serialize;

use crate::terminal::output::{counted, grouped};

/// The answers of a network before and after.
#[derive(Clone, Debug, Serialize)]
pub struct Accuracy {
    samples: usize,
    /// The share of right answers, if these are known.
    #[serde(flatten)]
    right: Option<Right>,
    /// How many answers are others than before.
    pub changed: usize,
    /// How many of these had another answer as near as delta and rounding.
    ties: usize,
    /// How many of these are for samples outside the domain, of which nothing is claimed.
    outside: usize,
}

/// Shares of right answers.
#[derive(Clone, Copy, Debug, Serialize)]
struct Right {
    before: f64,
    after: f64,
}

/// A classifier's answer: the place of the largest of its scores.
struct Answer {
    class: i64,
    /// How far ahead of the next it is.
    margin: f64,
    /// The largest score there is.
    size: f64,
    /// How many answers there are; 0 if that is not known.
    classes: usize,
}

/// What single precision makes of a sum of a few hundred terms of size 1.
const ROUNDING: f64 = 1e-5;

impl Accuracy {
    /// Both networks' answers for samples, whose right answers may be known. On the domain outputs differ by no more than `delta`, but for rounding. If what
    /// comes out is no choice among answers, there is nothing to compare.
    pub fn of(
        models: &[Model; 2],
        samples: &Array,
        labels: Option<&[f64]>,
        domain: &Domain,
        delta: f64,
    ) -> Result<Option<Self>> {
        let [before, after] = [answers(&models[0], samples)?, answers(&models[1], samples)?];
        let (Some(before), Some(after)) = (before, after) else {
            ensure!(labels.is_none(), "--labels: a single output is no choice among answers");
            return Ok(None);
        };
        let classes = before.iter().chain(&after).map(|answer| answer.classes).max().unwrap_or(0);
        let is_answer = |label: f64| classes == 0 || (0.0..classes as f64).contains(&label);
        if let Some(label) = labels.into_iter().flatten().find(|&&label| !is_answer(label)) {
            bail!(
                "--labels: {label} is no answer of a network with {}: labels count them from 0",
                counted(classes, "output")
            );
        }
        let right = labels.map(|labels| {
            let share = |answers: &[Answer]| {
                let right = answers.iter().zip(labels).filter(|(answer, label)| answer.class as f64 == **label).count();
                right as f64 / labels.len().max(1) as f64
            };
            Right { before: share(&before), after: share(&after) }
        });
        let numbers: Vec<f64> = samples.to_vec();
        let is_inside = |sample: usize| domain.contains(&numbers[sample * domain.len()..][..domain.len()]);
        let is_tie = |answer: &Answer| answer.margin <= 2.0 * delta + ROUNDING * answer.size;
        let changed: Vec<usize> =
            (0..before.len()).filter(|&sample| before[sample].class != after[sample].class).collect();
        Ok(Some(Self {
            samples: before.len(),
            right,
            changed: changed.len(),
            ties: changed.iter().filter(|&&sample| is_inside(sample) && is_tie(&before[sample])).count(),
            outside: changed.iter().filter(|&&sample| !is_inside(sample)).count(),
        }))
    }
}

/// Labels from a file, one for each sample.
pub fn labels(path: &Path, samples: usize) -> Result<Vec<f64>> {
    let labels: Vec<f64> = Array::load(path)?.to_vec();
    let shown = || path.display().to_string();
    ensure!(
        labels.len() == samples,
        "{}: {} for {}",
        shown(),
        counted(labels.len(), "label"),
        counted(samples, "sample")
    );
    if let Some(label) = labels.iter().find(|label| label.fract() != 0.0) {
        bail!("{}: holds {label}, and labels are whole numbers", shown());
    }
    Ok(labels)
}

/// The answers for samples, if what comes out is a choice among answers.
fn answers(model: &Model, samples: &Array) -> Result<Option<Vec<Answer>>> {
    let rows = samples.count_samples(model.network().input()).unwrap_or(0).max(1);
    // If what comes after the network is beyond Leo, its own first output has to do: the scores that labels are made from.
    let (numbers, are_labels) = match model.run(samples, None) {
        Ok(outputs) => (outputs.to_vec(), matches!(outputs.elements(), Elements::I64(_))),
        Err(RunError::Tail { .. }) => {
            let outputs = Evaluator::<f32>::new(model.network()).run(&samples.to_vec());
            (outputs[0].iter().map(|&score| f64::from(score)).collect::<Vec<f64>>(), false)
        }
        Err(other) => return Err(other.into()),
    };
    let width = numbers.len() / rows;
    if width <= 1 {
        if !are_labels {
            return Ok(None);
        }
        let answer = |&class: &f64| Answer { class: class as i64, margin: 0.0, size: 0.0, classes: 0 };
        return Ok(Some(numbers.iter().map(answer).collect()));
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
        let size = scores.iter().fold(0.0, |most: f64, score| most.max(score.abs()));
        Answer { class, margin: best - next, size, classes: scores.len() }
    };
    Ok(Some(numbers.chunks_exact(width).map(answer).collect()))
}

impl fmt::Display for Accuracy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { samples, right, changed, ties, outside } = *self;
        if let Some(Right { before, after }) = right {
            write!(formatter, "accuracy {:.2}% before, {:.2}% after; ", 100.0 * before, 100.0 * after)?;
        }
        write!(formatter, "{} of {} predictions changed", grouped(changed), grouped(samples))?;
        if changed > 0 {
            write!(formatter, " ({ties} of them closer calls than delta and rounding")?;
            if outside > 0 {
                write!(formatter, "; {outside} outside the domain, of which nothing is claimed")?;
            }
            write!(formatter, ")")?;
        }
        Ok(())
    }
}
