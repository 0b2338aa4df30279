//! One round: from the search for stable units to a rewritten file, and the proof of what that does.

use std::rc::Rc;
use std::time::Instant;

use leo_check::Facts;
use leo_network::onnx::{Document, Float};
use leo_network::{Domain, ValueId};
use leo_stability::{Status, Stopped, analyze};
use sha2::{Digest, Sha256};

use crate::compress::{CompressError, Compressed, Method, Options, largest};
use crate::full::{Budget, Outline};
use crate::plan::Plan;
use crate::region::{self, Region, Regions};
use crate::rewrite::{Plans, Rewritten, rewrite};
use crate::tolerance::{Tolerance, costs};
use crate::{exact, leo};

/// What parts of the tolerance are tried for approximations, if the proof shows that the part before was too much. What they cost is estimated from above, so
/// that more than all of it may be affordable.
const PARTS: [f64; 4] = [2.0, 1.0, 0.25, 1.0 / 64.0];

/// Where files say how far they were approximated.
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
        if analysis.stopped == Some(Stopped::Interrupted) {
            return Err(CompressError::Interrupted);
        }
        compressed.times.stability += start.elapsed();
        let is_named = |value| document.name_of(value).is_some();
        let regions = region::find(&analysis.facts, is_named, !self.options.bit_exact);
        if self.is_first {
            let units = analysis.layers.iter().flat_map(|layer| &layer.units);
            compressed.undecided = units.filter(|unit| unit.status == Status::Undecided).count();
            compressed.stopped = analysis.stopped;
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
        let Some((plans, rewritten, approximation)) = attempts.run(!is_exact, compressed)? else { return Ok(None) };
        compressed.account(&plans, &rewritten);
        compressed.approximation += approximation;
        let spent = format!("{} on {}", self.tolerance, fingerprint(self.domain));
        let document = rewritten.document;
        Ok(Some(if is_exact { document } else { document.with_metadata(SPENT, &spent) }))
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

impl<'a> Attempts<'a> {
    /// The plans that were carried out, the file, and how much was approximated.
    fn run(
        &self,
        approximate: bool,
        compressed: &mut Compressed,
    ) -> Result<Option<(Plans<'a>, Rewritten, f64)>, CompressError> {
        let float = self.options.float.unwrap_or(self.document.float());
        let start = Instant::now();
        let exact: Vec<Sketch<'a>> = self.regions.regions.iter().map(|region| self.sketch(region, 0.0)).collect();
        compressed.times.planning += start.elapsed();
        let parts = PARTS.into_iter().take(if approximate { PARTS.len() } else { 0 }).chain([0.0]);
        for part in parts {
            let start = Instant::now();
            let sketches = self.better(&exact, part);
            let plans = self.plans(&sketches, float);
            compressed.times.planning += start.elapsed();
            if plans.is_empty() {
                return Ok(None);
            }
            let start = Instant::now();
            let deviation = match part > 0.0 {
                true => self.rewritten(&self.plans(&sketches, Float::F64), Float::F64)?.deviation,
                false => Vec::new(),
            };
            let is_within = |(delta, tolerance): (&Vec<f64>, &f64)| delta.iter().all(|delta| delta <= tolerance);
            let is_tolerable = deviation.iter().zip(&self.tolerances).all(is_within);
            let rewritten = if is_tolerable { Some(self.rewritten(&plans, float)?) } else { None };
            compressed.times.rewriting += start.elapsed();
            if let Some(rewritten) = rewritten.filter(|rewritten| self.is_acceptable(rewritten)) {
                return Ok(Some((plans, rewritten, largest(&deviation))));
            }
        }
        Ok(None)
    }

    fn rewritten(&self, plans: &Plans<'a>, float: Float) -> Result<Rewritten, CompressError> {
        rewrite(self.document, self.facts, self.regions, plans, float)
    }

    fn is_acceptable(&self, rewritten: &Rewritten) -> bool {
        let mut deltas = rewritten.deviation.iter().flatten();
        deltas.all(|delta| if self.options.bit_exact { *delta == 0.0 } else { delta.is_finite() })
    }

    /// What regions are to become if a part of the tolerance may be spent: something else only where that saves units.
    fn better(&self, exact: &[Sketch<'a>], part: f64) -> Vec<Sketch<'a>> {
        let pairs = self.regions.regions.iter().zip(exact);
        let one = |(region, exact): (&'a Region, &Sketch<'a>)| match (exact, part > 0.0) {
            (_, false) => exact.clone(),
            (Sketch::Full(outline), true) => match self.sketch(region, part) {
                Sketch::Full(other) if other.units() < outline.units() => Sketch::Full(other),
                _ => exact.clone(),
            },
            (_, true) => self.sketch(region, part),
        };
        pairs.map(one).collect()
    }

    fn sketch(&self, region: &'a Region, part: f64) -> Sketch<'a> {
        let budget = || budget(region, &self.costs, part, self.regions.regions.len());
        match (self.options.bit_exact, self.options.method) {
            (true, method) => Sketch::BitExact { as_in_paper: method == Method::Leo },
            (false, Method::Full) => Sketch::Full(Rc::new(Outline::new(region, &budget()))),
            (false, Method::Leo) => {
                let budget = budget();
                let units: usize = region.layers.iter().map(|layer| layer.map.rows).sum();
                let each = budget.total / units.max(1) as f64;
                Sketch::Leo(Rc::new(leo::plan(region, |layer, unit| budget.affordable(layer, unit, each))))
            }
        }
    }

    /// The plans for regions where something is gained.
    fn plans(&self, sketches: &[Sketch<'a>], float: Float) -> Plans<'a> {
        let pairs = self.regions.regions.iter().zip(sketches);
        let plans = pairs.map(|(region, sketch)| (region, sketch.plan(region, float)));
        plans.filter(|(region, plan)| plan.gains(region)).collect()
    }
}

/// What errors in a region cost, and its share of a part of the tolerance.
fn budget(region: &Region, costs: &[Vec<f64>], part: f64, regions: usize) -> Budget {
    // A channel is off at all its positions at once.
    let of_value = |value: ValueId, channels: usize, positions: usize| {
        let rows: Vec<&[f64]> =
            costs.get(value.index()).map_or_else(Vec::new, |costs| costs.chunks_exact(channels * positions).collect());
        let cost = |channel: usize| -> Vec<f64> {
            rows.iter().map(|row| row.iter().skip(channel).step_by(channels).sum()).collect()
        };
        (0..channels).map(cost).collect::<Vec<_>>()
    };
    let layers = region.layers.iter();
    Budget {
        units: layers.map(|layer| of_value(layer.pre_activation, layer.map.rows, layer.positions)).collect(),
        ports: region.ports.iter().map(|port| of_value(port.value, port.map.rows, port.positions)).collect(),
        total: if costs.is_empty() { 0.0 } else { part / regions.max(1) as f64 },
    }
}
