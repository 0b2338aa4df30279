//! Ways to rewrite a file: what each region could become, and what is proved and measured of that.

use std::rc::Rc;
use std::time::Instant;

use leo_formats::onnx::Float;
use leo_network::{LayerId, Network};

use crate::compare::reference::Reference;
use crate::compress::{CompressError, CompressOptions, Compressed, Method};
use crate::deltas::{are_within, are_zero, largest};
use crate::method::exact;
use crate::method::full::{Outline, Style};
use crate::method::leo;
use crate::method::narrow::{self, Narrowing};
use crate::method::styles::VISIBLE_SHARE;
use crate::normal_form::linear::Weighing;
use crate::rewriting::plan::Plan;
use crate::rewriting::region::Region;
use crate::rewriting::rewrite::{Original, Plans, Rewritten, RewrittenFile};
use crate::rewriting::round::ensure_wanted;
use crate::tolerance::{Costs, ErrorBudget};
use crate::why::Obstacles;

/// What parts of the tolerance are tried for approximations, if the proof shows that the part before was too much. What
/// they cost is estimated from above, so that more than all of it may be affordable.
pub(crate) const PARTS: [f64; 6] = [16.0, 4.0, 2.0, 1.0, 0.25, 1.0 / 64.0];

/// What was rewritten or written, unless a number gets too large or the file does not let it be: then why.
fn possible<T>(made: Result<T, CompressError>) -> Result<Result<T, String>, CompressError> {
    match made {
        Ok(made) => Ok(Ok(made)),
        Err(why @ (CompressError::Network(_) | CompressError::Onnx(_))) => Ok(Err(why.to_string())),
        Err(other) => Err(other),
    }
}

/// What a region is to become, up to the type of its numbers.
#[derive(Clone)]
pub(crate) enum Sketch<'r> {
    BitExact { as_in_paper: bool },
    Leo(Rc<Plan>),
    Full(Rc<Outline<'r>>, Weighing),
}

impl Sketch<'_> {
    pub(crate) fn plan(&self, region: &Region, float: Float) -> Plan {
        match self {
            Self::BitExact { as_in_paper } => exact::plan(region, float, *as_in_paper),
            Self::Leo(plan) => Plan::clone(plan),
            Self::Full(outline, weighing) => outline.plan(float, *weighing),
        }
    }

    /// For each layer of the region that stays, how many linear functions have to get past it, where that is known.
    pub(crate) fn ranks(&self) -> Vec<Option<usize>> {
        match self {
            Self::Full(outline, _) => outline.ranks().to_vec(),
            Self::BitExact { .. } | Self::Leo(_) => Vec::new(),
        }
    }

    /// The layers in which units are replaced by negative multiples of others.
    pub(crate) fn with_opposites(&self) -> Vec<LayerId> {
        match self {
            Self::Full(outline, _) => outline.with_opposites().collect(),
            Self::BitExact { .. } | Self::Leo(_) => Vec::new(),
        }
    }

    /// This sketch with other carriers, if there is a choice.
    pub(crate) fn recarried(&self) -> Option<Self> {
        match self {
            Self::Full(outline, _) => outline.has_choice().then(|| Self::Full(outline.clone(), Weighing::Sizes)),
            Self::BitExact { .. } | Self::Leo(_) => None,
        }
    }

    pub(crate) fn units(&self, region: &Region) -> usize {
        match self {
            Self::BitExact { .. } => 0,
            Self::Leo(plan) => plan.units(region),
            Self::Full(outline, _) => outline.units(),
        }
    }
}

/// The plans of sketches that gain anything.
pub(crate) fn planned<'a>(sketches: &[(&'a Region, &Sketch<'a>)], float: Float) -> Plans<'a> {
    let plans = sketches.iter().map(|&(region, sketch)| (region, sketch.plan(region, float)));
    plans.filter(|(region, plan)| plan.gains(region)).collect()
}

/// The smaller one of a number, if there is one already, and another.
fn least(known: Option<f64>, other: f64) -> Option<f64> {
    Some(known.map_or(other, |known| known.min(other)))
}

/// Ways to rewrite a file, one after the other, until the proof of what one does is good enough.
pub(crate) struct Attempts<'a> {
    pub(crate) options: &'a CompressOptions<'a>,
    pub(crate) original: Original<'a>,
    pub(crate) reference: &'a Reference<'a>,
    /// For each element of each output, how far it may be moved on purpose.
    pub(crate) tolerances: Vec<Vec<f64>>,
    /// What errors cost, if something may be moved.
    pub(crate) costs: Option<Costs>,
    /// When to try nothing more.
    pub(crate) deadline: Option<Instant>,
    /// What kept it from more.
    pub(crate) obstacles: Obstacles,
}

/// What came of an attempt.
#[expect(clippy::large_enum_variant, reason = "there is only ever one")]
pub(crate) enum Attempt<'a> {
    Success(Success<'a>),
    /// Single precision would make more of it than is allowed: this many times the error of the original.
    Noisy(f64),
    /// It cannot be written, for this reason.
    Impossible(String),
    /// It moves outputs too far, or saves nothing.
    Failure,
}

/// A way to rewrite a file that is good enough.
pub(crate) struct Success<'a> {
    pub(crate) rewritten: Rewritten<'a>,
    /// How far outputs would move with numbers in double precision.
    pub(crate) approximation: f64,
    /// How far outputs can move at the most, in units of what each element was seen to reach.
    pub(crate) relative: f64,
}

/// What became of a file in the end.
pub(crate) struct Taken {
    pub(crate) written: RewrittenFile,
    /// How far outputs would move with numbers in double precision.
    pub(crate) approximation: f64,
}

/// Rounding to single precision moves outputs by less than this part of their size. If it is more, it must be shown
/// that rounding it was.
const SINGLE_ROUNDING: f64 = 1e-5;

/// Rounding to double precision moves outputs by less than this part of their size.
const DOUBLE_ROUNDING: f64 = 1e-9;

impl<'a> Attempts<'a> {
    pub(crate) fn run(&mut self, compressed: &mut Compressed) -> Result<Option<Taken>, CompressError> {
        if !self.options.bit_exact {
            return self.run_plans(compressed);
        }
        let start = Instant::now();
        let narrowing = Narrowing::new(self.original.facts, self.original.document, self.options.method == Method::Leo);
        let plans_first = self.gains_more(&narrowing);
        compressed.times.planning += start.elapsed();
        let taken = if plans_first { self.run_plans(compressed)? } else { self.narrowed(&narrowing, compressed)? };
        match taken {
            Some(taken) => Ok(Some(taken)),
            None if plans_first => self.narrowed(&narrowing, compressed),
            None => self.run_plans(compressed),
        }
    }

    /// Whether layers keep their layout if they are written anew, and more units go then than by leaving out channels
    /// alone.
    fn gains_more(&self, narrowing: &Narrowing) -> bool {
        let float = self.float();
        let gain = |region: &Region| {
            let plan = exact::plan(region, float, self.options.method == Method::Leo);
            region.units().saturating_sub(plan.units(region))
        };
        narrow::is_plain(self.original.document.network())
            && self.regions().iter().map(gain).sum::<usize>() > narrowing.removed.len()
    }

    /// The file without channels that can go without any new number, if the proof shows that nothing moves.
    fn narrowed(&self, narrowing: &Narrowing, compressed: &mut Compressed) -> Result<Option<Taken>, CompressError> {
        let is_type_kept = self.float() == self.original.document.float();
        if narrowing.removed.is_empty() || !is_type_kept {
            return Ok(None);
        }
        ensure_wanted(self.options)?;
        let start = Instant::now();
        let written = possible(self.original.narrow(narrowing))?;
        compressed.times.rewriting += start.elapsed();
        let exact = written.ok().filter(|written| are_zero(&written.deviation));
        Ok(exact.map(|written| Taken { written, approximation: 0.0 }))
    }

    /// Rewrites regions by plans.
    fn run_plans(&mut self, compressed: &mut Compressed) -> Result<Option<Taken>, CompressError> {
        let start = Instant::now();
        let exact = self.sketches(&[], 0.0, &Style::default());
        self.obstacles.ranks = exact.iter().map(Sketch::ranks).collect();
        compressed.times.planning += start.elapsed();
        let parts: &[f64] = if self.costs.is_none() { &[] } else { &PARTS };
        for &part in parts {
            if self.is_late() {
                break;
            }
            let start = Instant::now();
            let sketches = self.sketches(&exact, part, &Style::default());
            compressed.times.planning += start.elapsed();
            if !self.gain(&sketches) {
                // Nor does a smaller part.
                return Ok(None);
            }
            let start = Instant::now();
            let taken = self.attempt_quietly(&sketches, part, &self.tolerances.clone());
            compressed.times.rewriting += start.elapsed();
            if let Some(taken) = taken? {
                self.obstacles.ranks = sketches.iter().map(Sketch::ranks).collect();
                return Ok(Some(taken));
            }
            if self.obstacles.visible.is_some() {
                // Rounding does it, whatever is left out on purpose.
                break;
            }
        }
        if !self.gain(&exact) {
            return Ok(None);
        }
        // Nothing is approximated. If rounding does too much harm, fewer regions are rewritten, and these as the paper
        // does.
        let start = Instant::now();
        let as_in_paper = |region| match self.options.bit_exact {
            true => Sketch::BitExact { as_in_paper: true },
            false => self.leo(region, 0.0),
        };
        let as_in_paper: Vec<Sketch<'a>> = self.regions().iter().map(as_in_paper).collect();
        let mut taken = self.attempt_quietly(&exact, 0.0, &[])?;
        if taken.is_none() {
            taken = self.attempt_each(&exact)?;
        }
        if taken.is_none() && self.options.method == Method::Full {
            taken = self.attempt_each(&as_in_paper)?;
        }
        compressed.times.rewriting += start.elapsed();
        self.obstacles.rounding |= taken.is_none();
        Ok(taken)
    }

    /// The regions that can be rewritten.
    pub(crate) fn regions(&self) -> &'a [Region] {
        &self.original.regions.regions
    }

    /// The type that new numbers are to have.
    fn float(&self) -> Float {
        self.options.float.unwrap_or(self.original.document.float())
    }

    /// Whether the time is up.
    pub(crate) fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }

    /// Whether units are saved, as far as can be seen before numbers are rounded.
    pub(crate) fn gain(&self, sketches: &[Sketch<'a>]) -> bool {
        let mut pairs = self.regions().iter().zip(sketches);
        pairs.any(|(region, sketch)| sketch.units(region) < region.units())
    }

    /// What succeeded, if it did, and nobody could see that outputs move; and if not, why not.
    pub(crate) fn taken(&mut self, attempt: Attempt<'a>) -> Option<Success<'a>> {
        match attempt {
            Attempt::Success(success) if success.relative > VISIBLE_SHARE => {
                self.obstacles.visible = least(self.obstacles.visible, success.relative);
            }
            Attempt::Success(success) => return Some(success),
            Attempt::Noisy(factor) => self.obstacles.noise = least(self.obstacles.noise, factor),
            Attempt::Impossible(why) => self.obstacles.impossible = Some(why),
            Attempt::Failure => {}
        }
        None
    }

    /// Writes the file, if an attempt succeeded.
    pub(crate) fn write(&mut self, attempt: Attempt<'a>) -> Result<Option<Taken>, CompressError> {
        let Some(Success { rewritten, approximation, .. }) = self.taken(attempt) else { return Ok(None) };
        match possible(self.original.write(rewritten))? {
            Ok(written) if self.is_acceptable(&written.deviation) => Ok(Some(Taken { written, approximation })),
            Ok(_) => Ok(None),
            Err(why) => {
                self.obstacles.impossible = Some(why);
                Ok(None)
            }
        }
    }

    /// Whether nothing moves if nothing may, and nobody could see it if something may.
    fn is_acceptable(&self, deviation: &[Vec<f64>]) -> bool {
        match self.options.bit_exact {
            true => are_zero(deviation),
            false => self.relative(deviation) <= VISIBLE_SHARE,
        }
    }

    /// How far outputs can move, in units of what each element was seen to reach.
    fn relative(&self, deviation: &[Vec<f64>]) -> f64 {
        self.reference.relative(deviation, &self.tolerances, 1.0 / VISIBLE_SHARE)
    }

    /// Rewrites all regions, if that moves no output further than these tolerances.
    pub(crate) fn attempt(
        &self,
        sketches: &[Sketch<'a>],
        tolerances: &[Vec<f64>],
    ) -> Result<Attempt<'a>, CompressError> {
        self.attempt_some(&self.regions().iter().zip(sketches).collect::<Vec<_>>(), tolerances)
    }

    /// Rewrites all regions that can be rewritten alone.
    fn attempt_each(&mut self, sketches: &[Sketch<'a>]) -> Result<Option<Taken>, CompressError> {
        let mut good = Vec::new();
        for pair in self.regions().iter().zip(sketches) {
            if self.is_late() {
                self.obstacles.out_of_time = true;
                return Ok(None);
            }
            let attempt = self.attempt_some(&[pair], &[])?;
            if self.taken(attempt).is_some() {
                good.push(pair);
            }
        }
        let attempt = self.attempt_some(&good, &[])?;
        self.write(attempt)
    }

    fn attempt_some(
        &self,
        sketches: &[(&'a Region, &Sketch<'a>)],
        tolerances: &[Vec<f64>],
    ) -> Result<Attempt<'a>, CompressError> {
        let float = self.float();
        let plans = planned(sketches, float);
        if plans.is_empty() {
            return Ok(Attempt::Failure);
        }
        let mut approximation = Vec::new();
        if !tolerances.is_empty() {
            let precise = self.rewritten(planned(sketches, Float::F64), Float::F64)?;
            match precise {
                Ok(precise) if are_within(&precise.deviation, tolerances) => approximation = precise.deviation,
                Ok(_) => return Ok(Attempt::Failure),
                Err(why) => return Ok(Attempt::Impossible(why)),
            }
        }
        let rewritten = match self.rewritten(plans, float)? {
            Ok(rewritten) => rewritten,
            Err(why) => return Ok(Attempt::Impossible(why)),
        };
        if self.options.bit_exact {
            let is_exact = are_zero(&rewritten.deviation);
            let success = Success { rewritten, approximation: 0.0, relative: 0.0 };
            return Ok(if is_exact { Attempt::Success(success) } else { Attempt::Failure });
        }
        if !self.is_within(&rewritten.deviation, SINGLE_ROUNDING) {
            let precise = self.rewritten(planned(sketches, Float::F64), Float::F64)?;
            let is_rounding =
                |precise: &Rewritten<'_>| !tolerances.is_empty() || self.is_within(&precise.deviation, DOUBLE_ROUNDING);
            let is_finite = rewritten.deviation.iter().flatten().all(|delta| delta.is_finite());
            if !is_finite || !precise.as_ref().is_ok_and(is_rounding) {
                return Ok(Attempt::Failure);
            }
        }
        let noise = if float == Float::F32 { self.noise(&rewritten) } else { 0.0 };
        if noise > self.options.noise_limit() {
            return Ok(Attempt::Noisy(noise));
        }
        let relative = self.relative(&rewritten.deviation);
        Ok(Attempt::Success(Success { rewritten, approximation: largest(&approximation), relative }))
    }

    /// How many times the original's error single precision makes in what was rewritten, as far as that is measured.
    fn noise(&self, rewritten: &Rewritten<'_>) -> f64 {
        let measured = self.reference.compare(&rewritten.network, self.options.noise_limit());
        measured.iter().map(|output| output.factor).fold(0.0, f64::max)
    }

    /// Whether outputs move by no more than this part of their size.
    fn is_within(&self, deviation: &[Vec<f64>], part: f64) -> bool {
        let facts = self.original.facts;
        let outputs = deviation.iter().zip(facts.network().outputs());
        outputs.into_iter().all(|(deltas, &value)| {
            let size = facts.range(value).size();
            deltas.iter().all(|delta| *delta == 0.0 || *delta <= part * size && size.is_finite())
        })
    }

    /// The network with these plans carried out, unless a number or the network gets too large or the file does not let
    /// it be: then why.
    pub(crate) fn rewritten(
        &self,
        plans: Plans<'a>,
        float: Float,
    ) -> Result<Result<Rewritten<'a>, String>, CompressError> {
        ensure_wanted(self.options)?;
        let rewritten = possible(self.original.rewrite(plans, float))?;
        // Where a matrix is read twice, and written for each reader, fewer units can mean more work.
        let is_no_larger = |new: &Rewritten<'_>| {
            let [new, old] = [&new.network, self.original.document.network()].map(Network::multiply_adds);
            new <= old || self.options.bit_exact
        };
        let larger = "what would be left takes more multiply-adds than before";
        Ok(rewritten.and_then(|new| if is_no_larger(&new) { Ok(new) } else { Err(larger.to_owned()) }))
    }

    /// What regions are to become if a part of the tolerance may be spent: something else than without only where that
    /// saves units.
    pub(crate) fn sketches(&self, without: &[Sketch<'a>], part: f64, style: &Style) -> Vec<Sketch<'a>> {
        let mut sketches = Vec::new();
        for (index, region) in self.regions().iter().enumerate() {
            let mut candidates: Vec<Sketch<'a>> = without.get(index).cloned().into_iter().collect();
            match (self.options.bit_exact, self.options.method) {
                (true, method) => candidates.push(Sketch::BitExact { as_in_paper: method == Method::Leo }),
                (false, Method::Leo) => candidates.push(self.leo(region, part)),
                (false, Method::Full) => {
                    let outline = Outline::new(region, &self.budget(region, part), style);
                    candidates.push(Sketch::Full(Rc::new(outline), Weighing::Costs));
                    if *style == Style::default() {
                        // Only if numbers are extreme.
                        candidates.push(self.leo(region, part));
                    }
                }
            }
            sketches.extend(candidates.into_iter().min_by_key(|sketch| sketch.units(region)));
        }
        sketches
    }

    fn leo(&self, region: &'a Region, part: f64) -> Sketch<'a> {
        let budget = self.budget(region, part);
        let units: usize = region.layers.iter().map(|layer| layer.map.rows).sum();
        let each = budget.total / units.max(1) as f64;
        Sketch::Leo(Rc::new(leo::plan(region, |layer, unit| budget.affordable(layer, unit, each))))
    }

    fn budget(&self, region: &Region, part: f64) -> ErrorBudget {
        ErrorBudget::new(region, self.costs.as_ref(), part / self.regions().len() as f64)
    }
}
