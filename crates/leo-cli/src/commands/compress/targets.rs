//! The files that `leo compress` writes.

use std::path::{Path, PathBuf};

use anyhow::Result;
use leo::{Certificate, Compression, CompressionReport};
use leo_formats::{is_same_file, read_text_file};

use super::summary::{self, Summary};
use crate::args::Compress;
use crate::report::{Page, ReportedChange};
use crate::request::{domain, files, search};
use crate::terminal::console::{Console, as_argument, in_shell};

/// What is to be written where.
pub struct Targets<'a> {
    arguments: &'a Compress,
    network: PathBuf,
    certificate: Option<PathBuf>,
    page: Option<PathBuf>,
}

impl<'a> Targets<'a> {
    /// Those that the arguments ask for, unless they are among the files that are read: these of the model, and others.
    pub fn new(arguments: &'a Compress, model: &[PathBuf]) -> Result<Self> {
        let others = arguments.domain.files().chain(arguments.labels.as_deref());
        let read: Vec<&Path> = others.chain(model.iter().map(PathBuf::as_path)).collect();
        let network = arguments.output.clone().unwrap_or_else(|| leo::smaller_than(&arguments.model));
        files::ensure_onnx(&network)?;
        let certificate = match &arguments.certificate {
            Some(path) => Some(path.clone()),
            // Beside what is no file, there is no place for one.
            None if arguments.no_certificate || files::is_special(&network) => None,
            None => Some(leo::certificate_of(&network)),
        };
        let page = arguments.report.page.clone();
        files::ensure_other(&network, "-o", read.iter().copied())?;
        if let Some(path) = &certificate {
            files::ensure_other(path, "--certificate", read.iter().copied().chain([network.as_path()]))?;
        }
        if let Some(path) = &page {
            let written = [Some(network.as_path()), certificate.as_deref()].into_iter().flatten();
            files::ensure_other(path, "--report", read.iter().copied().chain(written))?;
        }
        let targets = Self { arguments, network, certificate, page };
        let all = read.into_iter().chain(targets.paths());
        search::check_resume(arguments.resume.as_deref(), &arguments.search, all)?;
        targets.paths().try_for_each(|path| files::ensure_free(path, arguments.report.force))?;
        Ok(targets)
    }

    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        [Some(self.network.as_path()), self.certificate.as_deref(), self.page.as_deref()].into_iter().flatten()
    }

    /// What was done, with the files that it is written to.
    pub fn report(&self, compression: &Compression) -> CompressionReport {
        let name = |path: &Path| path.display().to_string();
        CompressionReport {
            output: name(&self.network),
            certificate: self.certificate.as_deref().map(name),
            stale_certificate: self.stale_certificate(compression.sha256()).as_deref().map(name),
            report: self.page.as_deref().map(name),
            ..compression.report()
        }
    }

    /// A file that is taken for the certificate of the network that is written, because of its name, and is that of
    /// another one.
    fn stale_certificate(&self, sha256: &str) -> Option<PathBuf> {
        let usual = leo::certificate_of(&self.network);
        let is_written = self.paths().any(|path| is_same_file(path, &usual));
        if is_written || files::is_special(&self.network) || !usual.is_file() {
            return None;
        }
        let bytes = read_text_file(&usual).ok();
        let certificate = bytes.and_then(|bytes| Certificate::from_bytes(&bytes).ok());
        certificate.is_none_or(|certificate| certificate.second != sha256).then_some(usual)
    }

    /// Writes all files, or none.
    pub fn write(&self, compression: &Compression, report: &CompressionReport, console: &Console) -> Result<()> {
        let page = self.page.as_ref().map(|_| self.page(compression, report, console).render());
        let files = [
            (Some(self.network.as_path()), Some(compression.to_bytes())),
            (self.certificate.as_deref(), Some(compression.certificate_bytes())),
            (self.page.as_deref(), page.as_ref().map(String::as_bytes)),
        ];
        let force = self.arguments.report.force;
        let files = files.into_iter().filter_map(|(path, bytes)| Some(files::output(path?, bytes?, force)));
        files::write(&files.collect::<Vec<_>>())
    }

    /// The page that tells what a report does, of every unit.
    fn page<'b>(&self, compression: &'b Compression, report: &CompressionReport, console: &Console) -> Page<'b> {
        let check = self.certificate.as_ref().map(|certificate| {
            let files = [&self.arguments.model, &self.network, certificate].map(|path| as_argument(path));
            in_shell([PathBuf::from("check")].into_iter().chain(files))
        });
        let (compressed, summary) = (compression.compressed(), Summary(report));
        let hashes = &compression.certificate();
        Page {
            model: report.model.clone(),
            command: console.command().to_owned(),
            domain: domain::in_words(&report.domain),
            network: compression.original(),
            layers: &compressed.history.layers,
            stages: report.stages.clone(),
            outputs: &[],
            outcome: Some(ReportedChange {
                network: compression.network(),
                history: &compressed.history,
                // Of units there are too many reasons for a page.
                staying: if report.has_channels { &compressed.staying } else { &[] },
                changed: compressed.changed,
                delta: report.delta,
                parts: [report.delta_parts.approximation, report.delta_parts.rounding],
                observed: report.observed,
                details: summary.details(),
                sizes: summary.sizes(),
                files: [(report.model.clone(), hashes.first.clone()), (report.output.clone(), hashes.second.clone())],
                certificate: report.certificate.clone(),
                check,
            }),
            warnings: summary.warnings(),
            notes: summary.notes(),
            steps: summary::steps(&report.steps).to_vec(),
            seconds: report.seconds,
        }
    }
}
