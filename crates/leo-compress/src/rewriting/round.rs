//! One round: from the search for stable units to a rewritten file, and the proof of what that does.

use std::time::Instant;

use leo_check::{Difference, ProvedBounds, difference, single_errors};
use leo_formats::onnx::Document;
use leo_network::{Domain, Observer};
use leo_stability::{Analysis, Status, analyze};
use sha2::{Digest, Sha256};

use crate::compare::reference::Reference;
use crate::compress::{CompressError, CompressOptions, Compressed, Method};
use crate::deltas;
use crate::method::attempts::{Attempts, Taken};
use crate::rewriting::certify::{Reasoning, RewriteStep};
use crate::rewriting::history::History;
use crate::rewriting::region::{self, Regions};
use crate::rewriting::rewrite::{Original, RewrittenFile};
use crate::tolerance::{Costs, Tolerance};
use crate::why::{Obstacles, Why, staying};

/// Where files say how far they may have been approximated. They say so too if nothing was: in the smaller network
/// something might be, and twice would not be once.
const SPENT_KEY: &str = "leo.approximated";

/// Whether a file says that it was approximated already on this domain, with a tolerance no smaller than this.
pub(crate) fn is_spent(document: &Document, tolerance: Tolerance, domain: &Domain) -> bool {
    let spent = document.metadata(SPENT_KEY).and_then(|spent| spent.split_once(" on "));
    spent.is_some_and(|(spent, on)| {
        on == fingerprint(domain) && spent.parse().is_ok_and(|spent| tolerance.is_within(spent))
    })
}

/// A file that says that it was approximated on this domain, with this tolerance, if that is more than nothing.
pub(crate) fn spent(document: Document, tolerance: Tolerance, domain: &Domain) -> Document {
    match tolerance {
        Tolerance::Zero => document,
        _ => document.with_metadata(SPENT_KEY, &format!("{tolerance} on {}", fingerprint(domain))),
    }
}

/// Which inputs a domain has, in a few letters.
fn fingerprint(domain: &Domain) -> String {
    let mut hash = Sha256::new();
    domain.identity().iter().for_each(|number| hash.update(number.to_le_bytes()));
    format!("{:.16x}", hash.finalize())
}

/// Once from the search for stable units to a rewritten file.
pub(crate) struct Round<'a> {
    pub(crate) domain: &'a Domain,
    pub(crate) options: &'a CompressOptions<'a>,
    pub(crate) tolerance: Tolerance,
    /// What is seen of the network that was given.
    pub(crate) reference: &'a Reference<'a>,
    pub(crate) is_first: bool,
    /// When no more ways to rewrite are to be tried.
    pub(crate) deadline: Option<Instant>,
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
        let regions = region::find(&analysis.facts, &document, !self.options.bit_exact);
        if self.is_first {
            begin(compressed, &analysis, &regions);
        }
        let mut attempts = self.attempts(Original { document: &document, facts: &analysis.facts, regions: &regions });
        let taken = attempts.run(compressed)?;
        ensure_wanted(self.options)?;
        let prospects = if self.is_first { attempts.prospects(taken.as_ref())? } else { Vec::new() };
        if let Some(taken) = &taken {
            note(compressed, &analysis.facts, taken)?;
        }
        if self.is_first {
            compressed.staying = staying(&compressed.history, &regions, &attempts.obstacles);
            compressed.prospects = prospects;
        }
        let Some(Taken { written: RewrittenFile { document: new, pairs, .. }, .. }) = taken else {
            if self.is_first {
                compressed.steps.push(RewriteStep::nothing(document.clone(), analysis.proof));
            }
            return Ok(None);
        };
        let reasoning = Reasoning::Units(analysis.proof, pairs);
        compressed.steps.push(RewriteStep { before: document.clone(), reasoning });
        Ok(Some(spent(new, self.tolerance, self.domain)))
    }

    /// Ways to rewrite a file, none of which has been tried yet.
    fn attempts<'a>(&'a self, original: Original<'a>) -> Attempts<'a> {
        let tolerances = self.tolerance.of_outputs(&self.reference.scales, original.document.float());
        let is_exact = self.tolerance == Tolerance::Zero;
        Attempts {
            options: self.options,
            original,
            reference: self.reference,
            costs: (!is_exact).then(|| Costs::new(original.facts, &tolerances)),
            tolerances,
            deadline: self.deadline,
            obstacles: Obstacles {
                otherwise: match (self.options.bit_exact, self.options.method) {
                    (true, _) => Some(Why::NewNumbers),
                    (false, Method::Leo) => Some(Why::NoRule),
                    (false, Method::Full) => None,
                },
                ..Obstacles::default()
            },
        }
    }
}

/// Notes what was found of the file that was given.
fn begin(compressed: &mut Compressed, analysis: &Analysis<'_>, regions: &Regions) {
    let units = analysis.layers.iter().flat_map(|layer| &layer.units);
    compressed.undecided = units.filter(|unit| unit.status == Status::Undecided).count();
    compressed.stopped = analysis.stopped;
    compressed.history = History::begin(&analysis.layers);
    compressed.pinned.clone_from(&regions.pinned);
    let errors = || single_errors(analysis.facts.network(), analysis.facts.ranges());
    compressed.errors = compressed.document.is_plainly_single().then(errors).map(|errors| [errors.clone(), errors]);
}

/// Notes what became of a file of which this was known.
fn note(compressed: &mut Compressed, facts: &ProvedBounds<'_>, taken: &Taken) -> Result<(), CompressError> {
    let Taken { written: RewrittenFile { document: new, removed, deviation, pairs }, approximation } = taken;
    if let Some([_, errors]) = &mut compressed.errors {
        let Difference { ranges, .. } = difference(facts, new.network(), pairs, true)?;
        *errors = single_errors(new.network(), &ranges);
    }
    compressed.errors.take_if(|_| !new.is_plainly_single());
    compressed.history.add(removed, pairs);
    deltas::add(&mut compressed.delta, deviation);
    compressed.approximation += approximation;
    Ok(())
}

/// Sees to it that nobody has asked it to stop.
pub(crate) fn ensure_wanted(options: &CompressOptions<'_>) -> Result<(), CompressError> {
    let is_stopped = options.stability.observer.is_some_and(Observer::is_stopped);
    if is_stopped { Err(CompressError::Interrupted) } else { Ok(()) }
}
