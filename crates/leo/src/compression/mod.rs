//! From a file to a smaller one that is proved to compute the same.

pub mod outputs;
pub mod reasons;
pub mod report;

use std::path::Path;
use std::time::{Duration, Instant};

use leo_check::{Certificate, HashedModel, Refusal, verify};
use leo_compress::{Compressed, LargestDifference, OneSided, observe, settled_answers};
use leo_formats::onnx::Document;
use leo_formats::{Model, NewFile, is_same_file, write_together};
use leo_network::{Array, Domain, Network, Numbers, Step};

use crate::accuracy::Accuracy;
use crate::search_file::{Keeper, SearchFile};
use crate::{Error, LayerReport, ModelFile, Options, SampleCount, Size, certificate_of, has_suffix};

/// A network that was made smaller, certified, and whose certificate was verified.
#[derive(Clone, Debug)]
pub struct Compression {
    source: ModelFile,
    options: Requested,
    domain: Domain,
    samples: Option<SampleCount>,
    original: Document,
    compressed: Compressed,
    before: Size,
    after: Size,
    comparison: PointComparison,
    bytes: Vec<u8>,
    sha256: String,
    certificate: Certificate,
    certificate_bytes: Vec<u8>,
    comparing: Duration,
    certifying: Duration,
}

/// What was asked for, as far as reports say it.
#[derive(Clone, Debug)]
struct Requested {
    method: leo_compress::Method,
    tolerance: leo_compress::Tolerance,
    bit_exact: bool,
}

/// What points and samples show of both networks.
#[derive(Clone, Debug)]
struct PointComparison {
    seen: Vec<LargestDifference>,
    accuracy: Option<Accuracy>,
    settled: Option<usize>,
    one_sided: Option<Vec<OneSided>>,
}

/// Compresses a file on a domain: see [`ModelFile::compress_with`].
pub(crate) fn compress(source: &ModelFile, domain: &Domain, options: &Options) -> Result<Compression, Error> {
    let start = Instant::now();
    options.check(source.network())?;
    let samples = options.count_samples(domain)?;
    options.check_labels(samples)?;
    let original = source.document()?;
    if original.check_rewritable().is_ok() {
        // What cannot be compared with itself cannot be compared with anything smaller.
        let same = source.model().check_interface(source.model());
        same.map_err(|error| Error::from(error).about(source.path().display().to_string()))?;
    }
    let compressed = search(source, &original, domain, options, start)?;
    let begin = Instant::now();
    options.watcher().begin(Step::Comparison, 1);
    let comparison = PointComparison::new(&original, &compressed, domain, options)?;
    let comparing = begin.elapsed();
    let begin = Instant::now();
    let bytes = compressed.document.to_bytes()?;
    let (certificate, sha256) = certify(source.hashed(), &bytes, &compressed, domain, options)?;
    let certificate_bytes = certificate.to_bytes()?;
    let requested = options.compression(leo_stability::AnalysisOptions::default());
    Ok(Compression {
        options: Requested { method: options.method, tolerance: requested.tolerance(), bit_exact: options.bit_exact },
        before: Size::of(&original)?,
        after: Size::of(&compressed.document)?,
        source: source.clone(),
        domain: domain.clone(),
        certifying: begin.elapsed(),
        samples,
        original,
        compressed,
        comparison,
        bytes,
        sha256,
        certificate,
        certificate_bytes,
        comparing,
    })
}

/// The search for stable units and the rewriting, with what is kept of the search.
fn search(
    source: &ModelFile,
    original: &Document,
    domain: &Domain,
    options: &Options,
    start: Instant,
) -> Result<Compressed, Error> {
    let file = options.search_file(source, domain)?;
    let observer = Keeper { observer: options.watcher(), file: file.as_ref() };
    let checkpoint = file.as_ref().and_then(SearchFile::checkpoint);
    let stability = options.analysis(start, checkpoint, &observer);
    let compressed = leo_compress::compress(original, domain, &options.compression(stability));
    file.as_ref().map_or(Ok(()), SearchFile::finish)?;
    Ok(compressed?)
}

impl PointComparison {
    /// Looks for differences, and sees to it that none is larger than is proved.
    fn new(original: &Document, compressed: &Compressed, domain: &Domain, options: &Options) -> Result<Self, Error> {
        let (old, new) = (original.network(), compressed.document.network());
        let samples = options.samples.as_deref();
        let seen = match compressed.changed {
            true => observe(old, new, domain, samples, options.seed)?,
            false => Vec::new(),
        };
        for (apart, delta) in
            seen.iter().zip(&compressed.delta).filter_map(|(seen, delta)| Some((seen.furthest.as_ref()?, delta)))
        {
            let (observed, proved) = (apart.distance, delta[apart.element]);
            if observed > proved {
                let what = format!("an output differs by {observed:e}, and {proved:e} is proved");
                return Err(Error::Mistake(what));
            }
        }
        let settled = match samples {
            Some(samples) if original.keeps_largest() && compressed.changed => {
                settled_answers(old, domain, samples, &compressed.delta)?
            }
            _ => None,
        };
        let one_sided = match samples {
            Some(samples) if compressed.removes_little() => Some(compressed.one_sided(domain, samples)?),
            _ => None,
        };
        Ok(Self { accuracy: answers(original, compressed, domain, options)?, seen, settled, one_sided })
    }
}

/// How many answers for the samples are right, and how many are others than before.
fn answers(
    original: &Document,
    compressed: &Compressed,
    domain: &Domain,
    options: &Options,
) -> Result<Option<Accuracy>, Error> {
    // Of what else comes after a network, nobody knows what the answer is.
    let (is_choice, labels) = (original.keeps_largest(), options.labels.as_deref());
    if labels.is_some() && !is_choice {
        let what = "what comes out is no choice among answers, by the largest of some numbers";
        return Err(Error::Request(what.to_owned()).about("labels"));
    }
    let Some(samples) = options.samples.as_deref().filter(|_| is_choice) else { return Ok(None) };
    if !compressed.changed && labels.is_none() {
        return Ok(None);
    }
    let models = [Model::from(original.clone()), Model::from(compressed.document.clone())];
    match (Accuracy::of(&models, samples, labels, domain, compressed.largest_delta()), labels) {
        (compared, Some(_)) => compared,
        // Nobody asked for it: what cannot be run, because it takes another batch, say, is not compared.
        (compared, None) => Ok(compared.unwrap_or(None)),
    }
}

/// The certificate, as it is when it is read again, checked against both files as they are when they are read again;
/// and the second file's fingerprint.
fn certify(
    first: &HashedModel,
    bytes: &[u8],
    compressed: &Compressed,
    domain: &Domain,
    options: &Options,
) -> Result<(Certificate, String), Error> {
    let second = HashedModel::from_onnx_for_shape(bytes.to_vec(), compressed.document.given_shape())?;
    let certificate = compressed.certificate(first.sha256.clone(), second.sha256.clone(), domain)?;
    let certificate = Certificate::from_bytes(&certificate.to_bytes()?)?;
    let refused = |refusal: Refusal| Error::Mistake(format!("the checker refused the certificate ({refusal})"));
    verify(first, &second, &certificate, options.watcher()).map_err(refused)?;
    Ok((certificate, second.sha256))
}

impl Compression {
    /// How large the network was.
    pub fn before(&self) -> &Size {
        &self.before
    }

    /// How large it is now.
    pub fn after(&self) -> &Size {
        &self.after
    }

    /// How many units are left.
    pub fn units(&self) -> usize {
        self.after.units
    }

    /// Proved: no output moves by more, anywhere on the domain.
    pub fn delta(&self) -> f64 {
        self.certificate.delta.iter().map(Numbers::largest).fold(0.0, f64::max)
    }

    /// The largest difference that was seen.
    pub fn observed(&self) -> f64 {
        let apart = self.comparison.seen.iter().filter_map(|seen| seen.furthest.as_ref());
        apart.map(|apart| apart.distance).fold(0.0, f64::max)
    }

    /// Whether it is another network than before.
    pub fn is_changed(&self) -> bool {
        self.compressed.changed
    }

    /// The inputs for which that holds.
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// The network as it was.
    pub fn original(&self) -> &Network {
        self.original.network()
    }

    /// The network as it is now.
    pub fn network(&self) -> &Network {
        self.compressed.document.network()
    }

    /// What is known of the units of the network as it was.
    pub fn layers(&self) -> Vec<LayerReport> {
        let model = Model::from(self.original.clone());
        self.compressed.history.layers.iter().map(|layer| LayerReport::new(&model, layer)).collect()
    }

    /// What became of each unit, and why.
    pub fn compressed(&self) -> &Compressed {
        &self.compressed
    }

    /// The file: ONNX.
    pub fn to_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The SHA-256 of the file.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The proof.
    pub fn certificate(&self) -> &Certificate {
        &self.certificate
    }

    /// The file of the proof.
    pub fn certificate_bytes(&self) -> &[u8] {
        &self.certificate_bytes
    }

    /// Runs the smaller network on samples.
    ///
    /// # Errors
    /// If the samples do not fit, or what comes after the network is beyond Leo.
    pub fn run(&self, samples: &Array) -> Result<Array, Error> {
        Ok(Model::from(self.compressed.document.clone()).run(samples, None)?)
    }

    /// Writes the smaller network, and its certificate beside it: `small.leo` for `small.onnx`. Both appear whole or
    /// not at all.
    ///
    /// **Files of these names are replaced**, but never the one that the network came from. The program asks for
    /// `--force` first; whoever wants that here looks whether they are there, or writes [`to_bytes`](Self::to_bytes)
    /// and [`certificate_bytes`](Self::certificate_bytes).
    ///
    /// # Errors
    /// If the name does not end in `.onnx`, or that cannot be done.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let path = path.as_ref();
        if !has_suffix(path, "onnx") {
            return Err(Error::Request(format!("{}: the file to write should end in .onnx", path.display())));
        }
        if self.source.files().iter().any(|read| is_same_file(path, read)) {
            let what = format!("{}: is the network that was read; give another name", path.display());
            return Err(Error::Request(what));
        }
        let certificate = certificate_of(path);
        let files = [(path, self.to_bytes()), (certificate.as_path(), self.certificate_bytes())];
        Ok(write_together(&files.map(|(path, bytes)| NewFile { path, bytes, may_replace: true }))?)
    }
}
