//! What comes after convolutions, rewritten as a dense network of its own.
//!
//! From a value on through which everything goes, and behind which everything is dense, a network is a dense network of
//! that value, on the box in which it lies. So it is written to a file of its own and compressed as any dense network
//! is, and what comes of that takes its place in the file. What is seen of it is seen at values that real inputs lead
//! to: the box has far larger ones.

use leo_check::{PartClaims, PartPair, ProvedBounds, Status};
use leo_formats::onnx::{Document, Export};
use leo_network::{Array, Domain, Evaluator, Network, Part, ValueId};
use leo_stability::AnalysisOptions;

use crate::compare::falsify::{for_samples, random_points};
use crate::compress::{CompressError, CompressOptions, Compressed, LaterRounds, compress_in_rounds};
use crate::rewriting::certify::{Reasoning, RewriteStep};
use crate::rewriting::round::spent;

/// At how many samples a value is looked at, at the most, and at how many random points if there are none.
const MOST_SAMPLES: usize = 512;
const RANDOM_SAMPLES: usize = 256;

/// How many of them are evaluated at once.
const BATCH: usize = 32;

/// How many products of a weight and an expression's coefficient it may take to plan a part: some minutes' worth.
/// Larger ones are left to what is done with channels, which takes no more than one pass.
const MOST_PRODUCTS: f64 = 1e11;

/// What comes after a value of a network.
pub(crate) struct DensePart {
    value: ValueId,
    network: Network,
    /// A box in which the value lies.
    domain: Domain,
}

/// A file with another dense part than before.
pub(crate) struct RewrittenPart<'n> {
    pub(crate) document: Document,
    pub(crate) claims: PartClaims,
    /// What is proved of the part as it was.
    facts: ProvedBounds<'n>,
    /// What was done to the part alone.
    pub(crate) compressed: Compressed,
}

impl RewrittenPart<'_> {
    /// What the checker is told.
    pub(crate) fn pair(&self) -> PartPair<'_> {
        PartPair { value: self.claims.value, facts: &self.facts, pairs: &self.claims.pairs }
    }
}

/// The first value through which everything goes, that a matrix reads, and behind which everything is dense, with at
/// least one layer.
fn beginning(network: &Network) -> Option<ValueId> {
    let nodes = network.nodes();
    let last = nodes.iter().rposition(|node| !node.op().is_dense())?;
    let begins = |value: &ValueId| {
        let next = nodes.get(value.index());
        let is_read = next.is_some_and(|next| next.op().as_dense().is_some() && next.operands() == [*value]);
        is_read
            && network.shape(*value).rank() == 1
            && nodes[value.index()..].iter().any(|node| node.op().is_layer())
            && network.after(*value).is_ok()
    };
    network.values().skip(last + 1).find(begins)
}

impl DensePart {
    /// The dense part of a file of which this is known, if it has one that can be taken by itself.
    pub(crate) fn of(document: &Document, facts: &ProvedBounds<'_>) -> Option<Self> {
        let whole = document.network();
        let value = beginning(whole)?;
        let network = whole.after(value).ok()?;
        let basis = network.input().elements() + network.hidden().iter().sum::<usize>();
        let is_small = network.multiply_adds() as f64 * basis as f64 <= MOST_PRODUCTS;
        // What the file reads there for something else than to compute with it has to stay; and what only made shapes
        // for nodes that go would be left behind, reading channels that go.
        let is_there = |reshaped: &Vec<ValueId>| reshaped.iter().any(|made| *made > value);
        let mut aside = document.read_aside().into_iter();
        let is_read = aside.any(|aside| aside.value >= value || aside.reshapes.as_ref().is_none_or(is_there));
        // Units are elements here, and channels there.
        let first = whole.layers().len() - network.layers().len();
        let is_own = is_small && !is_read && whole.hidden()[first..] == network.hidden();
        let part = Self { value, network, domain: facts.domain_at(value).ok()? };
        is_own.then_some(part)
    }

    /// How many layers come before it in a network that it is a part of.
    pub(crate) fn first_layer(&self, whole: &Network) -> usize {
        whole.layers().len() - self.network.layers().len()
    }

    /// A file with this part rewritten, if something is gained; and whether everything about the part as it was is
    /// known without a search.
    pub(crate) fn rewritten(
        &self,
        document: &Document,
        domain: &Domain,
        options: &CompressOptions<'_>,
    ) -> Result<(bool, Option<RewrittenPart<'_>>), CompressError> {
        let outputs = (0..self.network.outputs().len()).map(|output| format!("y{output}")).collect();
        let export = Export { float: document.float(), input: "x".to_owned(), outputs, metadata: Vec::new() };
        let alone = Document::from_network(&self.network, &export);
        // What is rounded when it is written would be another network.
        let Some(alone) = alone.ok().filter(|alone| alone.network().is_alike(&self.network)) else {
            return Ok((false, None));
        };
        let samples = self.samples(document.network(), domain, &options.stability)?;
        let observer = options.stability.observer.map(LaterRounds);
        let stability = AnalysisOptions {
            samples: Some(&samples),
            checkpoint: None,
            observer: observer.as_ref().map(|observer| observer as _),
            ..options.stability
        };
        // Denormal numbers are set to 0 in the whole file, at the end of the step.
        let own = CompressOptions { stability, float: None, flush_denormals: false, ..*options };
        let compressed = match compress_in_rounds(&alone, &self.domain, &own, 1) {
            Ok(compressed) => compressed,
            Err(error @ (CompressError::Interrupted | CompressError::Internal(_))) => return Err(error),
            // Too large, or in another way not to be rewritten: channels can still go.
            Err(_) => return Ok((false, None)),
        };
        let is_plain = compressed.history.is_plain();
        let grafted = if compressed.changed { self.grafted(document, compressed) } else { None };
        let marked = |RewrittenPart { document, claims, facts, compressed }| RewrittenPart {
            document: spent(document, options.tolerance(), domain),
            claims,
            facts,
            compressed,
        };
        Ok((is_plain, grafted.map(marked)))
    }

    /// A file with what came of this part in its place, if it is read there as it is alone, and proved again.
    fn grafted(&self, document: &Document, compressed: Compressed) -> Option<RewrittenPart<'_>> {
        let RewriteStep { reasoning: Reasoning::Units(proof, pairs), .. } = compressed.steps.first()? else {
            return None;
        };
        let network = compressed.document.network();
        let part = Part { from: self.value, to: document.network().outputs().to_vec(), network: network.clone() };
        let made = document.splice(&[part], None).ok()?.made;
        let name = document.name_of(self.value)?;
        let is_there = made.value_named(name) == Some(self.value) && made.name_of(self.value) == Some(name);
        let is_alike = made.network().after(self.value).is_ok_and(|after| after.is_alike(network));
        if !is_there || !is_alike {
            return None;
        }
        let mut proof = proof.clone();
        // Inputs that show units on and off are corners of the box, to which perhaps nothing leads.
        proof.points.clear();
        for layer in &mut proof.layers {
            layer.witnesses.clear();
            let unstable = layer.units.iter_mut().filter(|status| **status == Status::Unstable);
            unstable.for_each(|status| *status = Status::Undecided);
        }
        let facts = proof.check(&self.network, &self.domain).ok()?;
        let claims = PartClaims { value: self.value, proof, pairs: pairs.clone() };
        Some(RewrittenPart { document: made, claims, facts, compressed })
    }

    /// What the part reads at samples, or at random points of the domain.
    fn samples(&self, whole: &Network, domain: &Domain, options: &AnalysisOptions<'_>) -> Result<Array, CompressError> {
        let domain = domain.clone().for_inputs(whole.input().elements())?;
        let mut points: Vec<Vec<f64>> = Vec::new();
        match options.samples {
            None => points = random_points(&domain, RANDOM_SAMPLES, options.seed),
            Some(samples) => for_samples(samples, whole, &domain, |some| {
                points.extend(some.iter().take(MOST_SAMPLES.saturating_sub(points.len())).cloned());
            })?,
        }
        let first = whole.up_to(self.value)?;
        let evaluator = Evaluator::<f64>::new(&first);
        let values = points.chunks(BATCH).flat_map(|some| evaluator.run(&some.concat()).swap_remove(0));
        let values: Vec<f64> = values.collect();
        Ok(Array::new(vec![points.len(), self.network.input().elements()], values)?)
    }
}
