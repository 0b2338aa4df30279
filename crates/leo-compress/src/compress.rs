//! From a file to a smaller one.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use leo_check::Mismatch;
use leo_network::onnx::{Document, Float, OnnxError};
use leo_network::{Domain, DomainError, NetworkError, ValueId};
use leo_stability::{Status, Stopped, analyze};
use sha2::{Digest, Sha256};

use crate::full::{Budget, Outline};
use crate::plan::{Fate, Plan, Rule};
use crate::region::{self, Pinned, Region};
use crate::rewrite::{Plans, Rewritten, rewrite};
use crate::tolerance::{Tolerance, costs};
use crate::{exact, leo};

/// How to go about removing units.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// As in the paper: remove, merge, fold, collapse.
    Leo,
    /// The normal form, realised with as few units as possible.
    #[default]
    Full,
}

/// What to do, and what not.
#[derive(Clone, Copy, Default)]
pub struct Options<'a> {
    /// Which algorithm.
    pub method: Method,
    /// How far approximations may move an output; if nothing is said, [`Tolerance::Ulp`] for the normal form and [`Tolerance::Zero`] for LEO.
    pub tolerance: Option<Tolerance>,
    /// Only what needs no rounding of any weight.
    pub bit_exact: bool,
    /// The type of rewritten weights, if not the file's own.
    pub float: Option<Float>,
    /// How to find out which units are stable.
    pub stability: leo_stability::Options<'a>,
}

impl Options<'_> {
    /// The tolerance that holds.
    pub fn tolerance(&self) -> Tolerance {
        let default = if self.method == Method::Full { Tolerance::Ulp } else { Tolerance::Zero };
        if self.bit_exact { Tolerance::Zero } else { self.tolerance.unwrap_or(default) }
    }
}

/// A file, perhaps smaller, and what was done to it.
#[derive(Clone, Debug)]
pub struct Compressed {
    /// The file.
    pub document: Document,
    /// Whether it is another one than before.
    pub changed: bool,
    /// How many units each rule removed. Units that are always on count as far as nothing had to take their place.
    pub removed: BTreeMap<Rule, usize>,
    /// How many units carry linear functions past their layers, among those that are there.
    pub carriers: usize,
    /// For each element of each output, how far it can be from what it was, anywhere on the domain: proved.
    pub delta: Vec<Vec<f64>>,
    /// How much of that would remain with weights in double precision: what was approximated on purpose.
    pub approximation: f64,
    /// Units of the file that was given for which it is not known whether they are stable.
    pub undecided: usize,
    /// What stopped the search for stable units before it was through.
    pub stopped: Option<Stopped>,
    /// Layers of the file that was given that could not be rewritten.
    pub pinned: Vec<Pinned>,
    /// How long each step took.
    pub times: Times,
}

impl Compressed {
    /// The largest of all bounds on how far an output can move.
    pub fn largest_delta(&self) -> f64 {
        largest(&self.delta)
    }
}

/// How long each step took.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Finding stable units.
    pub stability: Duration,
    /// Making plans.
    pub planning: Duration,
    /// Rewriting the file, and proving what that does.
    pub rewriting: Duration,
}

/// Why nothing came of it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompressError {
    /// The domain or the samples are another network's.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The file cannot be rewritten.
    #[error(transparent)]
    Onnx(#[from] OnnxError),
    /// A weight has become too large.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// Stopped from outside.
    #[error("stopped before it was through; nothing was rewritten")]
    Interrupted,
    /// A mistake in Leo.
    #[error("a mistake in Leo, please report it with the file: {0}")]
    Internal(String),
}

impl From<Mismatch> for CompressError {
    fn from(mismatch: Mismatch) -> Self {
        Self::Internal(mismatch.to_string())
    }
}

/// The most rounds. One does nearly all, the second finds that nothing is left to do.
const ROUNDS: usize = 8;
/// What parts of the tolerance are tried for approximations, if their proof shows that the part before was too much.
const PARTS: [f64; 5] = [2.0, 1.0, 0.25, 1.0 / 64.0, 0.0];
/// Where files say how far they were approximated.
const SPENT: &str = "leo.approximated";

/// Makes a file's network smaller on a domain, until nothing more can be removed.
///
/// # Errors
/// If the domain does not fit, or the file cannot be rewritten, or it is stopped.
pub fn compress(document: &Document, domain: &Domain, options: &Options<'_>) -> Result<Compressed, CompressError> {
    let start = Instant::now();
    let outputs = document.network().outputs().iter();
    let mut compressed = Compressed {
        document: document.clone(),
        changed: false,
        removed: BTreeMap::new(),
        carriers: 0,
        delta: outputs.map(|&value| vec![0.0; document.network().shape(value).elements()]).collect(),
        approximation: 0.0,
        undecided: 0,
        stopped: None,
        pinned: Vec::new(),
        times: Times::default(),
    };
    let mut tolerance = options.tolerance();
    let spent = document.metadata(SPENT).and_then(|spent| spent.split_once(" on "));
    if let Some((spent, on)) = spent
        && on == fingerprint(domain)
        && spent.parse().is_ok_and(|spent| tolerance.is_within(spent))
    {
        tolerance = Tolerance::Zero;
    }
    for round in 0..ROUNDS {
        let time_limit = options.stability.time_limit.map(|limit| limit.saturating_sub(start.elapsed()));
        if round > 0 && time_limit.is_some_and(|limit| limit.is_zero()) {
            break;
        }
        let stability = leo_stability::Options { time_limit, narrow: true, ..options.stability };
        let round = Round { domain, options: &Options { stability, ..*options }, tolerance, is_first: round == 0 };
        match round.go(&mut compressed)? {
            Some(rewritten) => compressed.document = rewritten,
            None => break,
        }
        compressed.changed = true;
        tolerance = Tolerance::Zero;
    }
    Ok(compressed)
}

/// Which inputs a domain has, in a few letters.
fn fingerprint(domain: &Domain) -> String {
    let mut hash = Sha256::new();
    domain.lo().iter().chain(domain.hi()).for_each(|bound| hash.update(bound.to_le_bytes()));
    hash.finalize().iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Once from the search for stable units to a rewritten file.
struct Round<'a> {
    domain: &'a Domain,
    options: &'a Options<'a>,
    tolerance: Tolerance,
    is_first: bool,
}

impl Round<'_> {
    /// The rewritten file, if anything is gained.
    fn go(&self, compressed: &mut Compressed) -> Result<Option<Document>, CompressError> {
        let start = Instant::now();
        let document = compressed.document.clone();
        let analysis = analyze(document.network(), self.domain, &self.options.stability)?;
        if analysis.stopped == Some(Stopped::Interrupted) {
            return Err(CompressError::Interrupted);
        }
        compressed.times.stability += start.elapsed();
        let regions = region::find(&analysis.facts, |value| document.name_of(value).is_some(), !self.options.bit_exact);
        if self.is_first {
            let units = analysis.layers.iter().flat_map(|layer| &layer.units);
            compressed.undecided = units.filter(|unit| unit.status == Status::Undecided).count();
            compressed.stopped = analysis.stopped;
            compressed.pinned.clone_from(&regions.pinned);
        }
        let float = self.options.float.unwrap_or(document.float());
        let tolerances = self.tolerance.of_outputs(&analysis.facts, document.float());
        let costs = if self.tolerance == Tolerance::Zero { Vec::new() } else { costs(&analysis.facts, &tolerances) };
        let skipped = if self.tolerance == Tolerance::Zero { PARTS.len() - 1 } else { 0 };
        for part in &PARTS[skipped..] {
            let start = Instant::now();
            let budget = |region| budget(region, &costs, *part, regions.regions.len());
            let outlines: Vec<Draw> =
                regions.regions.iter().map(|region| self.outline(region, budget(region))).collect();
            let plans = |float: Float| -> Plans<'_> {
                let plans = regions.regions.iter().zip(&outlines).map(|(region, outline)| (region, outline(float)));
                plans.filter(|(region, plan)| plan.gains(region)).collect()
            };
            let planned = plans(float);
            compressed.times.planning += start.elapsed();
            if planned.is_empty() {
                return Ok(None);
            }
            let start = Instant::now();
            let rewritten = rewrite(&document, &analysis.facts, &regions, &planned, float)?;
            let approximation = if *part > 0.0 {
                rewrite(&document, &analysis.facts, &regions, &plans(Float::F64), Float::F64)?.deviation
            } else {
                Vec::new()
            };
            compressed.times.rewriting += start.elapsed();
            let is_finite = rewritten.deviation.iter().flatten().all(|delta| delta.is_finite());
            let is_exact = rewritten.deviation.iter().flatten().all(|delta| *delta == 0.0);
            let is_within = |(delta, tolerance): (&Vec<f64>, &f64)| delta.iter().all(|delta| delta <= tolerance);
            let is_tolerable = approximation.iter().zip(&tolerances).all(is_within);
            if is_finite && is_tolerable && (is_exact || !self.options.bit_exact) {
                compressed.account(&planned, &rewritten);
                compressed.approximation += largest(&approximation);
                let spent = format!("{} on {}", self.tolerance, fingerprint(self.domain));
                let document = rewritten.document;
                let is_spent = self.tolerance != Tolerance::Zero;
                return Ok(Some(if is_spent { document.with_metadata(SPENT, &spent) } else { document }));
            }
        }
        Ok(None)
    }

    /// What a region is to become, up to the type of its numbers.
    fn outline<'r>(&self, region: &'r Region, budget: Budget) -> Draw<'r> {
        match (self.options.bit_exact, self.options.method) {
            (true, method) => Box::new(move |float| exact::plan(region, float, method == Method::Leo)),
            (false, Method::Leo) => {
                let units: usize = region.layers.iter().map(|layer| layer.map.rows).sum();
                let each = budget.total / units.max(1) as f64;
                let plan = leo::plan(region, |layer, unit| budget.affordable(layer, unit, each));
                Box::new(move |_| plan.clone())
            }
            (false, Method::Full) => {
                let outline = Outline::new(region, &budget);
                // What is approximated shall be worth it.
                let exact = (budget.total > 0.0).then(|| Outline::new(region, &Budget { total: 0.0, ..budget }));
                let outline = exact.filter(|exact| exact.units() <= outline.units()).unwrap_or(outline);
                Box::new(move |float| outline.plan(float))
            }
        }
    }
}

/// Makes a plan with numbers of some type.
type Draw<'r> = Box<dyn Fn(Float) -> Plan + 'r>;

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

impl Compressed {
    /// Counts what was removed, and adds up how far outputs can have moved.
    fn account(&mut self, plans: &Plans<'_>, rewritten: &Rewritten) {
        let mut replaced = 0;
        for (region, plan) in plans {
            replaced += plan.carriers(region);
            for (layer, fates) in region.layers.iter().zip(&plan.fates) {
                for fate in fates {
                    if let Fate::Gone(rule, _) = fate {
                        *self.removed.entry(*rule).or_default() += layer.positions;
                    }
                }
            }
        }
        for &on in plans.iter().flat_map(|(region, _)| &region.linear).flat_map(|linear| &linear.on) {
            *self.removed.entry(if on { Rule::Folded } else { Rule::Inactive }).or_default() += 1;
        }
        self.carriers += replaced;
        // Whose place they took: that of linear units first, then of negative multiples, which have a linear part too.
        for rule in [Rule::Linear, Rule::Opposite, Rule::Dead, Rule::Multiple, Rule::Negligible] {
            if let Some(count) = self.removed.get_mut(&rule) {
                let part = replaced.min(*count);
                (*count, replaced) = (*count - part, replaced - part);
            }
        }
        self.removed.retain(|_, count| *count > 0);
        for (sums, deltas) in self.delta.iter_mut().zip(&rewritten.deviation) {
            sums.iter_mut()
                .zip(deltas)
                .for_each(|(sum, delta)| *sum = if *sum == 0.0 { *delta } else { (*sum + delta).next_up() });
        }
    }
}

fn largest(deltas: &[Vec<f64>]) -> f64 {
    deltas.iter().flatten().copied().fold(0.0, f64::max)
}
