//! Other ways to write the same plan, where single precision or rounding does too much harm: linear functions beside
//! layers instead of through them, fewer negative multiples, units that are always on as they are. And, where there is
//! a choice of carriers, those that move outputs less.

use std::collections::BTreeSet;

use leo_network::LayerId;

use crate::compress::CompressError;
use crate::deltas::largest;
use crate::method::attempts::{Attempt, Attempts, Sketch, Success, Taken};
use crate::method::full::Style;

/// By what part of what it reaches an output may move before one could see it.
pub(crate) const VISIBLE_SHARE: f64 = 1e-4;

/// By what part of what it reaches an output may move before single precision could show it.
const SINGLE_HALF_ULP: f64 = 1.0 / (1_u64 << 24) as f64;

/// How many ways to do with fewer negative multiples are tried.
const MOST_STYLES: usize = 16;

/// What speaks against an attempt, the least first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Objection {
    None,
    Visible,
    Noisy,
    Failed,
}

impl Attempt<'_> {
    fn doubt(&self) -> Objection {
        match self {
            Self::Success(success) if success.relative > VISIBLE_SHARE => Objection::Visible,
            Self::Success(_) => Objection::None,
            Self::Noisy(_) => Objection::Noisy,
            Self::Impossible(_) | Self::Failure => Objection::Failed,
        }
    }

    /// Whether single precision or rounding does what one could see.
    fn is_doubtful(&self) -> bool {
        matches!(self.doubt(), Objection::Visible | Objection::Noisy)
    }
}

/// The sketches with other carriers, if there is a choice anywhere.
fn recarried<'a>(sketches: &[Sketch<'a>]) -> Option<Vec<Sketch<'a>>> {
    let others: Vec<Option<Sketch<'a>>> = sketches.iter().map(Sketch::recarried).collect();
    let has_choice = others.iter().any(Option::is_some);
    has_choice.then(|| {
        others.into_iter().zip(sketches).map(|(other, sketch)| other.unwrap_or_else(|| sketch.clone())).collect()
    })
}

impl Success<'_> {
    /// Whether outputs move less: in units of what they reach, as far as single precision could show it, and then at
    /// all.
    fn is_calmer_than(&self, other: &Self) -> bool {
        let moved = |success: &Self| (success.relative.max(SINGLE_HALF_ULP), largest(&success.rewritten.deviation));
        moved(self) < moved(other)
    }
}

impl<'a> Attempts<'a> {
    /// Rewrites all regions where something is gained, if that moves no output further than it may: on purpose, by no
    /// more than these tolerances. If single precision makes too much of that, or if rounding moves outputs by what one
    /// could see, in other styles.
    pub(crate) fn attempt_quietly(
        &mut self,
        sketches: &[Sketch<'a>],
        part: f64,
        tolerances: &[Vec<f64>],
    ) -> Result<Option<Taken>, CompressError> {
        let mut attempt = self.attempt(sketches, tolerances)?;
        if let (Attempt::Success(success), Some(others)) = (&attempt, recarried(sketches)) {
            // Which functions carry the others changes what rounding does, and nothing else.
            let other = if self.is_late() { Attempt::Failure } else { self.attempt(&others, tolerances)? };
            if matches!(&other, Attempt::Success(other) if other.is_calmer_than(success)) {
                attempt = other;
            }
        }
        let is_full = sketches.iter().any(|sketch| matches!(sketch, Sketch::Full(..)));
        if is_full && attempt.is_doubtful() {
            let beside = self.in_style(part, tolerances, &Style { paths: true, ..Style::default() })?;
            self.prefer(&mut attempt, beside);
        }
        let with_opposites: BTreeSet<LayerId> = sketches.iter().flat_map(Sketch::with_opposites).collect();
        if let (Attempt::Noisy(_), false) = (&attempt, with_opposites.is_empty()) {
            let fewer = self.with_some_opposites(with_opposites.clone(), part, tolerances)?;
            self.prefer(&mut attempt, fewer);
        }
        // However late it is: this is quickly planned, and what is doubtful should not be all that there is.
        if is_full && attempt.is_doubtful() {
            let calm = Style { without_opposites: with_opposites, keep_linear: true, paths: false };
            let calm = self.in_style(part, tolerances, &calm)?;
            self.prefer(&mut attempt, calm);
        }
        self.write(attempt)
    }

    /// What comes of another style, if units are saved.
    fn in_style(&self, part: f64, tolerances: &[Vec<f64>], style: &Style) -> Result<Attempt<'a>, CompressError> {
        let sketches = self.sketches(&[], part, style);
        if self.gain(&sketches) { self.attempt(&sketches, tolerances) } else { Ok(Attempt::Failure) }
    }

    /// Takes another attempt instead, if there is less doubt about it.
    fn prefer(&mut self, attempt: &mut Attempt<'a>, other: Attempt<'a>) {
        if other.doubt() < attempt.doubt() {
            self.taken(std::mem::replace(attempt, other));
        }
    }

    /// What comes of it without negative multiples; and then, as far as that is not too noisy, with those of one layer
    /// after the other.
    fn with_some_opposites(
        &self,
        layers: BTreeSet<LayerId>,
        part: f64,
        tolerances: &[Vec<f64>],
    ) -> Result<Attempt<'a>, CompressError> {
        let mut style = Style { without_opposites: layers.clone(), keep_linear: false, paths: true };
        let units = |sketches: &[Sketch<'a>]| -> usize {
            self.regions().iter().zip(sketches).map(|(region, sketch)| sketch.units(region)).sum()
        };
        let sketches = self.sketches(&[], part, &style);
        let mut fewest = units(&sketches);
        let mut best = if self.gain(&sketches) { self.attempt(&sketches, tolerances)? } else { Attempt::Failure };
        for layer in layers.into_iter().take(MOST_STYLES) {
            if self.is_late() {
                break;
            }
            style.without_opposites.remove(&layer);
            let sketches = self.sketches(&[], part, &style);
            let attempt =
                if units(&sketches) < fewest { self.attempt(&sketches, tolerances)? } else { Attempt::Failure };
            if let Attempt::Success(_) = attempt {
                (best, fewest) = (attempt, units(&sketches));
            } else {
                style.without_opposites.insert(layer);
            }
        }
        Ok(best)
    }
}
