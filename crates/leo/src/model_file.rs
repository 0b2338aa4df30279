//! A model's file, opened: where everything begins.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use leo_check::HashedModel;
use leo_formats::onnx::{Document, GivenShape};
use leo_formats::{Model, read_file};
use leo_network::{Array, Domain, Evaluator, Network};

use crate::analysis::{self, StabilityReport};
use crate::compression::{self, Compression};
use crate::domain::DomainSpec;
use crate::equivalence::{self, Equivalence};
use crate::inspection::Inspection;
use crate::scan::{self, ScanReport};
use crate::{Error, Options};

/// Reads a network: ONNX or NNet by its suffix, gzip or not.
///
/// # Errors
/// If the file cannot be read, is not what its suffix says, or holds what Leo does not read.
pub fn open(path: impl AsRef<Path>) -> Result<ModelFile, Error> {
    open_for_shape(path, None)
}

/// Reads a network as [`open`] does, for an input of this shape where the file leaves that open, such as its height and
/// width: `"1,3,240,320".parse()`, or `"H=240,W=320".parse()` if these axes have names. The network is the function for
/// inputs of this shape, and what is said of it holds for these. A batch of any size stays one.
///
/// # Errors
/// As for [`open`], or if the input cannot have this shape.
pub fn open_for_shape(path: impl AsRef<Path>, shape: Option<&GivenShape>) -> Result<ModelFile, Error> {
    let path = path.as_ref();
    let file = HashedModel::from_bytes_for_shape(read_file(path)?, path, shape)?;
    Ok(ModelFile { path: path.to_owned(), file: Arc::new(file) })
}

/// For how long evaluations are timed.
const TIMED_FOR: Duration = Duration::from_millis(500);

/// A network's file as it was when it was read. Copies share what they hold.
#[derive(Clone, Debug)]
pub struct ModelFile {
    path: PathBuf,
    file: Arc<HashedModel>,
}

impl ModelFile {
    /// The content of an ONNX file that stands alone.
    ///
    /// # Errors
    /// If it is none, or holds what Leo does not read.
    pub fn from_onnx(bytes: Vec<u8>) -> Result<Self, Error> {
        Ok(Self { path: PathBuf::from("model.onnx"), file: Arc::new(HashedModel::from_onnx(bytes)?) })
    }

    /// Where it was read.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The network, what comes after it, and the file around both.
    pub fn model(&self) -> &Model {
        &self.file.model
    }

    /// The network.
    pub fn network(&self) -> &Network {
        self.model().network()
    }

    /// The file and its fingerprint.
    pub fn hashed(&self) -> &HashedModel {
        &self.file
    }

    /// The SHA-256 of the file, unpacked if it was gzip.
    pub fn sha256(&self) -> &str {
        &self.file.sha256
    }

    /// The network as an ONNX file; for an NNet file, what it is as one.
    ///
    /// # Errors
    /// If numbers of an NNet file do not fit into ONNX.
    pub fn document(&self) -> Result<Document, Error> {
        Ok(self.model().as_document()?.into_owned())
    }

    /// All files that were read for it: its own, and those that it has data in.
    pub fn files(&self) -> Vec<PathBuf> {
        let mut files = vec![self.path.clone()];
        files.extend(self.model().external_files());
        files
    }

    /// What is in it.
    pub fn inspect(&self) -> Inspection {
        Inspection::new(self)
    }

    /// The domain of this network that is asked for: with bounds for each of its inputs.
    ///
    /// # Errors
    /// If it is another network's, or there is none.
    pub fn domain(&self, domain: impl Into<DomainSpec>) -> Result<Domain, Error> {
        domain.into().for_model(self.model())
    }

    /// Finds out which units are always on or always off on a domain, with the default options.
    ///
    /// # Errors
    /// As for [`analyze_with`](Self::analyze_with).
    pub fn analyze(&self, domain: impl Into<DomainSpec>) -> Result<StabilityReport, Error> {
        self.analyze_with(domain, &Options::new())
    }

    /// Finds out which units are always on or always off on a domain. Stopped by an observer, it says what it knows.
    ///
    /// # Errors
    /// If the domain or samples do not fit, or a file of `options` cannot be used.
    pub fn analyze_with(&self, domain: impl Into<DomainSpec>, options: &Options) -> Result<StabilityReport, Error> {
        analysis::analyze(self, &self.domain(domain)?, options)
    }

    /// Takes a quick look at how much of the network is dead weight on a domain, by bounds that cost next to nothing.
    ///
    /// # Errors
    /// If the domain does not fit, or the file cannot be rewritten.
    pub fn scan(&self, domain: impl Into<DomainSpec>) -> Result<ScanReport, Error> {
        scan::scan(self, &self.domain(domain)?)
    }

    /// Makes the network smaller without changing what it computes on a domain, with the default options.
    ///
    /// # Errors
    /// As for [`compress_with`](Self::compress_with).
    pub fn compress(&self, domain: impl Into<DomainSpec>) -> Result<Compression, Error> {
        self.compress_with(domain, &Options::new())
    }

    /// Makes the network smaller without changing what it computes on a domain: what comes out is rewritten, certified,
    /// and the certificate verified against both files as they are when they are read again.
    ///
    /// # Errors
    /// If that cannot be done, or an observer stops it. Nothing is written in any case, but to a file of
    /// [`Options::resume`].
    pub fn compress_with(&self, domain: impl Into<DomainSpec>, options: &Options) -> Result<Compression, Error> {
        compression::compress(self, &self.domain(domain)?, options)
    }

    /// How far this network and another can be apart on a domain, whatever they have to do with each other, with the
    /// default options and tolerances.
    ///
    /// # Errors
    /// As for [`equivalent_with`](Self::equivalent_with).
    pub fn equivalent(&self, other: &Self, domain: impl Into<DomainSpec>) -> Result<Equivalence, Error> {
        self.equivalent_with(other, domain, None, &Options::new())
    }

    /// How far this network and another can be apart on a domain. They count as equal if no output is proved to be
    /// further apart than `tolerance`; if nothing is said, 1e-5 of the largest number seen in it. An input that shows
    /// them to be different can be had before the proof begins: see [`compare`](crate::compare).
    ///
    /// # Errors
    /// If they take or give something else, or the domain or samples do not fit.
    pub fn equivalent_with(
        &self,
        other: &Self,
        domain: impl Into<DomainSpec>,
        tolerance: Option<f64>,
        options: &Options,
    ) -> Result<Equivalence, Error> {
        equivalence::compare([self, other], &self.domain(domain)?, tolerance, options, &mut |_| Ok(()))
    }

    /// How many seconds the network takes for one of some samples, in single precision, on the calling thread: the
    /// fastest of many times, for half a second. What comes after the network is not run; without samples it is
    /// infinite.
    pub fn seconds_a_sample(&self, samples: &Array) -> f64 {
        let samples: Vec<f32> = samples.to_vec();
        let evaluator = Evaluator::<f32>::new(self.network());
        let mut workspace = evaluator.workspace();
        let (start, mut fastest) = (Instant::now(), f64::INFINITY);
        for row in samples.chunks_exact(self.network().input().elements()).cycle() {
            let begin = Instant::now();
            evaluator.forward(&mut workspace, row);
            fastest = fastest.min(begin.elapsed().as_secs_f64());
            if start.elapsed() > TIMED_FOR {
                break;
            }
        }
        fastest
    }

    /// Runs the network on samples; what counts as samples is said [there](Array::count_samples).
    ///
    /// # Errors
    /// If the samples do not fit, or what comes after the network is beyond Leo.
    pub fn run(&self, samples: &Array) -> Result<Array, Error> {
        Ok(self.model().run(samples, None)?)
    }
}
