//! How many answers of two networks are right, and how many differ.

use leo_formats::{Model, RunError};
use leo_network::{Array, Domain, Elements, Evaluator};
use serde::Serialize;

use crate::Error;

/// The answers of a network before and after.
#[derive(Clone, Debug, Serialize)]
pub struct Accuracy {
    /// How many samples there are.
    pub samples: usize,
    /// The share of right answers, if these are known.
    #[serde(flatten)]
    pub right: Option<RightAnswers>,
    /// How many answers are others than before.
    pub changed: usize,
    /// How many of these had another answer as near as delta and rounding.
    pub ties: usize,
    /// How many of these are for samples outside the domain, of which nothing is claimed.
    pub outside: usize,
}

/// Shares of right answers.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RightAnswers {
    /// Of the network that was given.
    pub before: f64,
    /// Of the smaller one.
    pub after: f64,
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
const ROUNDING_TOLERANCE: f64 = 1e-5;

impl Accuracy {
    /// Both networks' answers for samples, whose right answers may be known. On the domain outputs differ by no more
    /// than `delta`, but for rounding. If what comes out is no choice among answers, there is nothing to compare.
    pub fn of(
        models: &[Model; 2],
        samples: &Array,
        labels: Option<&[f64]>,
        domain: &Domain,
        delta: f64,
    ) -> Result<Option<Self>, Error> {
        let [before, after] = [answers(&models[0], samples)?, answers(&models[1], samples)?];
        let (Some(before), Some(after)) = (before, after) else {
            return match labels {
                Some(_) => Err(Error::Request("a single output is no choice among answers".to_owned()).about("labels")),
                None => Ok(None),
            };
        };
        let classes = before.iter().chain(&after).map(|answer| answer.classes).max().unwrap_or(0);
        let is_answer = |label: f64| classes == 0 || (0.0..classes as f64).contains(&label);
        if let Some(label) = labels.into_iter().flatten().find(|&&label| !is_answer(label)) {
            let what = format!("{label} is no answer of a network with {classes} outputs: labels count them from 0");
            return Err(Error::Request(what).about("labels"));
        }
        let right = labels.map(|labels| {
            let share = |answers: &[Answer]| {
                let right = answers.iter().zip(labels).filter(|(answer, label)| answer.class as f64 == **label).count();
                right as f64 / labels.len().max(1) as f64
            };
            RightAnswers { before: share(&before), after: share(&after) }
        });
        let numbers: Vec<f64> = samples.to_vec();
        let is_inside = |sample: usize| domain.contains(&numbers[sample * domain.len()..][..domain.len()]);
        let is_tie = |answer: &Answer| answer.margin <= 2.0 * delta + ROUNDING_TOLERANCE * answer.size;
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

/// The answers for samples, if what comes out is a choice among answers.
fn answers(model: &Model, samples: &Array) -> Result<Option<Vec<Answer>>, Error> {
    let rows = samples.count_samples(model.network().input()).unwrap_or(0).max(1);
    // If what comes after the network is beyond Leo, its own first output has to do: the scores that labels are made
    // from.
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
