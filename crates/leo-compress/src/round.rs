//! One round: from the search for stable units to a rewritten file, and the proof of what that does.

use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use leo_check::Facts;
use leo_network::Domain;
use leo_network::onnx::{Document, Float};
use leo_stability::{Status, analyze};
use sha2::{Digest, Sha256};

use crate::certify::Step;
use crate::compress::{CompressError, Compressed, Method, Options, largest};
use crate::full::Outline;
use crate::history::History;
use crate::plan::Plan;
use crate::region::{self, Region, Regions};
use crate::rewrite::{Plans, Rewritten, rewrite};
use crate::tolerance::{Budget, Tolerance, costs};
use crate::{exact, leo};

/// What parts of the tolerance are tried for approximations, if the proof shows that the part before was too much. What they cost is estimated from above, so
/// that more than all of it may be affordable.
const PARTS: [f64; 4] = [2.0, 1.0, 0.25, 1.0 / 64.0];

/// Where files say how far they may have been approximated. They say so too if nothing was: in the smaller network something might be, and twice would not
/// be once.
const SPENT: &str = "leo.approximated";

/// Whether a file says that it was approximated already on this domain, with a tolerance no smaller than this.
pub(crate) fn is_spent(document: &Document, tolerance: Tolerance, domain: &Domain) -> bool {
    let spent = document.metadata(SPENT).and_then(|spent| spent.split_once(" on "));
    spent.is_some_and(|(spent, on)| {
        on == fingerprint(domain) && spent.parse().is_ok_and(|spent| tolerance.is_within(spent))
    })
}

/// Which inputs a domain has, in a few letters.
fn fingerprint(domain: &Domain) -> String {
    let mut hash = Sha256::new();
    domain.lo().iter().chain(domain.hi()).for_each(|bound| hash.update(bound.to_le_bytes()));
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Once from the search for stable units to a rewritten file.
pub(crate) struct Round<'a> {
    pub(crate) domain: &'a Domain,
    pub(crate) options: &'a Options<'a>,
    pub(crate) tolerance: Tolerance,
    pub(crate) is_first: bool,
}

impl Round<'_> {
    /// The rewritten file, if anything is gained.
    pub(crate) fn go(&self, compressed: &mut Compressed) -> Result<Option<Document>, CompressError> {
        let start = Instant::now();
        let document = compressed.document.clone();
        let analysis = analyze(document.network(), self.domain, &self.options.stability)?;
        // Whoever asked it to stop does not want a result, even if everything happened to be decided by then.
        ensure_wanted(self.options)?;
        compressed.times.stability += start.elapsed();
        let is_named = |value| document.name_of(value).is_some();
        let regions = region::find(&analysis.facts, is_named, !self.options.bit_exact);
        if self.is_first {
            let units = analysis.layers.iter().flat_map(|layer| &layer.units);
            compressed.undecided = units.filter(|unit| unit.status == Status::Undecided).count();
            compressed.stopped = analysis.stopped;
            compressed.history = History::begin(&analysis.layers);
            compressed.pinned.clone_from(&regions.pinned);
        }
        let is_exact = self.tolerance == Tolerance::Zero;
        let tolerances = self.tolerance.of_outputs(&analysis.facts, document.float());
        let attempts = Attempts {
            options: self.options,
            document: &document,
            facts: &analysis.facts,
            regions: &regions,
            costs: if is_exact { Vec::new() } else { costs(&analysis.facts, &tolerances) },
            tolerances,
        };
        let success = attempts.run(compressed)?;
        ensure_wanted(self.options)?;
        let Some(Success { plans, rewritten, approximation }) = success else {
            if self.is_first {
                compressed.steps.push(Step::nothing(document.clone(), analysis.proof));
            }
            return Ok(None);
        };
        compressed.history.add(document.network(), &plans, &rewritten.pairs);
        compressed.add_delta(&rewritten);
        compressed.steps.push(Step { before: document.clone(), proof: analysis.proof, pairs: rewritten.pairs });
        compressed.approximation += approximation;
        let spent = format!("{} on {}", self.tolerance, fingerprint(self.domain));
        let document = rewritten.document;
        Ok(Some(if is_exact { document } else { document.with_metadata(SPENT, &spent) }))
    }
}

/// Sees to it that nobody has asked it to stop.
fn ensure_wanted(options: &Options<'_>) -> Result<(), CompressError> {
    match options.stability.stop {
        Some(stop) if stop.load(Ordering::Relaxed) => Err(CompressError::Interrupted),
        _ => Ok(()),
    }
}

/// What a region is to become, up to the type of its numbers.
#[derive(Clone)]
enum Sketch<'r> {
    BitExact { as_in_paper: bool },
    Leo(Rc<Plan>),
    Full(Rc<Outline<'r>>),
}

impl Sketch<'_> {
    fn plan(&self, region: &Region, float: Float) -> Plan {
        match self {
            Self::BitExact { as_in_paper } => exact::plan(region, float, *as_in_paper),
            Self::Leo(plan) => Plan::clone(plan),
            Self::Full(outline) => outline.plan(float),
        }
    }

    fn units(&self, region: &Region) -> usize {
        match self {
            Self::BitExact { .. } => 0,
            Self::Leo(plan) => plan.units(region),
            Self::Full(outline) => outline.units(),
        }
    }
}

/// Ways to rewrite a file, one after the other, until the proof of what one does is good enough.
struct Attempts<'a> {
    options: &'a Options<'a>,
    document: &'a Document,
    facts: &'a Facts<'a>,
    regions: &'a Regions,
    /// For each output, how far it may be moved on purpose.
    tolerances: Vec<f64>,
    /// What errors cost, if something may be moved.
    costs: Vec<Vec<f64>>,
}

/// What came of an attempt.
struct Success<'a> {
    plans: Plans<'a>,
    rewritten: Rewritten,
    /// How far outputs would move with numbers in double precision.
    approximation: f64,
}

/// Rounding to single precision moves outputs by less than this part of their size. If it is more, it must be shown that rounding it was.
const UNSUSPICIOUS: f64 = 1e-5;
/// The same for double precision.
const MERELY_ROUNDING: f64 = 1e-9;

impl<'a> Attempts<'a> {
    fn run(&self, compressed: &mut Compressed) -> Result<Option<Success<'a>>, CompressError> {
        let start = Instant::now();
        let exact = self.sketches(&[], 0.0);
        compressed.times.planning += start.elapsed();
        let parts: &[f64] = if self.costs.is_empty() { &[] } else { &PARTS };
        for &part in parts {
            let start = Instant::now();
            let sketches = self.sketches(&exact, part);
            compressed.times.planning += start.elapsed();
            if !self.gain(&sketches) {
                // Nor does a smaller part.
                return Ok(None);
            }
            let start = Instant::now();
            let success = self.attempt(&sketches, &self.tolerances);
            compressed.times.rewriting += start.elapsed();
            if let Some(success) = success? {
                return Ok(Some(success));
            }
        }
        if !self.gain(&exact) {
            return Ok(None);
        }
        // Nothing is approximated. If rounding does too much harm, fewer regions are rewritten, and these as the paper does.
        let start = Instant::now();
        let as_in_paper = |region| match self.options.bit_exact {
            true => Sketch::BitExact { as_in_paper: true },
            false => self.leo(region, 0.0),
        };
        let mut success = self.attempt(&exact, &[])?;
        if success.is_none() {
            success = self.attempt_each(&exact)?;
        }
        if success.is_none() && self.options.method == Method::Full {
            success = self.attempt_each(&self.regions.regions.iter().map(as_in_paper).collect::<Vec<_>>())?;
        }
        compressed.times.rewriting += start.elapsed();
        Ok(success)
    }

    /// Whether units are saved, as far as can be seen before numbers are rounded.
    fn gain(&self, sketches: &[Sketch<'a>]) -> bool {
        let mut pairs = self.regions.regions.iter().zip(sketches);
        pairs.any(|(region, sketch)| sketch.units(region) < region.units())
    }

    /// Rewrites all regions where something is gained, if that moves no output further than it may: on purpose, by no more than these tolerances.
    fn attempt(&self, sketches: &[Sketch<'a>], tolerances: &[f64]) -> Result<Option<Success<'a>>, CompressError> {
        let pairs = self.regions.regions.iter().zip(sketches).collect::<Vec<_>>();
        self.attempt_some(&pairs, tolerances)
    }

    /// Rewrites all regions that can be rewritten alone.
    fn attempt_each(&self, sketches: &[Sketch<'a>]) -> Result<Option<Success<'a>>, CompressError> {
        let mut good = Vec::new();
        for pair in self.regions.regions.iter().zip(sketches) {
            if self.attempt_some(&[pair], &[])?.is_some() {
                good.push(pair);
            }
        }
        self.attempt_some(&good, &[])
    }

    fn attempt_some(
        &self,
        sketches: &[(&'a Region, &Sketch<'a>)],
        tolerances: &[f64],
    ) -> Result<Option<Success<'a>>, CompressError> {
        let plans = |float: Float| -> Plans<'a> {
            let plans = sketches.iter().map(|&(region, sketch)| (region, sketch.plan(region, float)));
            plans.filter(|(region, plan)| plan.gains(region)).collect()
        };
        let float = self.options.float.unwrap_or(self.document.float());
        let planned = plans(float);
        if planned.is_empty() {
            return Ok(None);
        }
        let mut approximation = Vec::new();
        if !tolerances.is_empty() {
            let Some(rewritten) = self.rewritten(&plans(Float::F64), Float::F64)? else { return Ok(None) };
            approximation = rewritten.deviation;
            let mut pairs = approximation.iter().zip(tolerances);
            if !pairs.all(|(deltas, tolerance)| deltas.iter().all(|delta| delta <= tolerance)) {
                return Ok(None);
            }
        }
        let Some(rewritten) = self.rewritten(&planned, float)? else { return Ok(None) };
        if self.options.bit_exact {
            let is_exact = rewritten.deviation.iter().flatten().all(|delta| *delta == 0.0);
            return Ok(is_exact.then_some(Success { plans: planned, rewritten, approximation: 0.0 }));
        }
        if !self.is_within(&rewritten.deviation, UNSUSPICIOUS) {
            let precise = self.rewritten(&plans(Float::F64), Float::F64)?;
            let is_rounding =
                |precise: &Rewritten| !tolerances.is_empty() || self.is_within(&precise.deviation, MERELY_ROUNDING);
            let is_finite = rewritten.deviation.iter().flatten().all(|delta| delta.is_finite());
            if !is_finite || !precise.as_ref().is_some_and(is_rounding) {
                return Ok(None);
            }
        }
        Ok(Some(Success { plans: planned, rewritten, approximation: largest(&approximation) }))
    }

    /// Whether outputs move by no more than this part of their size.
    fn is_within(&self, deviation: &[Vec<f64>], part: f64) -> bool {
        let outputs = deviation.iter().zip(self.facts.network().outputs());
        outputs.into_iter().all(|(deltas, &value)| {
            let size = self.facts.range(value).size();
            deltas.iter().all(|delta| *delta == 0.0 || *delta <= part * size && size.is_finite())
        })
    }

    /// The file with these plans carried out, unless a number gets too large or the file does not let it be.
    fn rewritten(&self, plans: &Plans<'a>, float: Float) -> Result<Option<Rewritten>, CompressError> {
        ensure_wanted(self.options)?;
        match rewrite(self.document, self.facts, self.regions, plans, float) {
            Ok(rewritten) => Ok(Some(rewritten)),
            Err(CompressError::Network(_) | CompressError::Onnx(_)) => Ok(None),
            Err(other) => Err(other),
        }
    }

    /// What regions are to become if a part of the tolerance may be spent: something else than without only where that saves units.
    fn sketches(&self, without: &[Sketch<'a>], part: f64) -> Vec<Sketch<'a>> {
        let mut sketches = Vec::new();
        for (index, region) in self.regions.regions.iter().enumerate() {
            let mut candidates: Vec<Sketch<'a>> = without.get(index).cloned().into_iter().collect();
            match (self.options.bit_exact, self.options.method) {
                (true, method) => candidates.push(Sketch::BitExact { as_in_paper: method == Method::Leo }),
                (false, Method::Leo) => candidates.push(self.leo(region, part)),
                (false, Method::Full) => {
                    candidates.push(Sketch::Full(Rc::new(Outline::new(region, &self.budget(region, part)))));
                    // Only if numbers are extreme.
                    candidates.push(self.leo(region, part));
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

    fn budget(&self, region: &Region, part: f64) -> Budget {
        Budget::new(region, &self.costs, part / self.regions.regions.len() as f64)
    }
}
