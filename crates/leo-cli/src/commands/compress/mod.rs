//! `leo compress`

mod outputs;
mod reasons;
mod summary;

use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use leo_check::{Certificate, HashedModel, verify_with_observer};
use leo_compress::{CompressError, CompressOptions, Compressed, Method, Pinned, compress, observe, settled_answers};
use leo_formats::onnx::{Document, Float};
use leo_formats::{Format, Model, is_same_file, read_text_file};
use leo_network::{Domain, Numbers};
use leo_stability::Status;

use crate::args::{Compress, FloatName, MethodName};
use crate::report::{Page, ReportedChange};
use crate::request::accuracy::{self, Accuracy};
use crate::request::domain::DomainSummary;
use crate::request::files;
use crate::request::inputs::{self, Inputs};
use crate::request::resume::Resume;
use crate::request::search;
use crate::terminal::console::{Console, as_argument, in_shell};
use crate::terminal::interrupt::{self, Interrupted};
use crate::terminal::output::operators;
use crate::terminal::progress::{AnalysisBar, CheckBar};
use summary::{Parts, PinnedLayer, Report, Size, Steps};

pub fn run(arguments: &Compress, console: &Console) -> Result<()> {
    let start = Instant::now();
    search::check(&arguments.search)?;
    let phase = console.phase("reading");
    let sealed = HashedModel::load(&arguments.model)?;
    let external = sealed.model.external_files();
    let read = read_by(arguments, &external);
    let targets = Targets::new(arguments, &read)?;
    let console = &console.beside(targets.paths(), arguments.json)?;
    let model = &sealed.model;
    let inputs = inputs::load(&arguments.domain, &[(model, &arguments.model)])?;
    let Inputs { domain, samples, .. } = &inputs;
    let count = inputs.counted.map_or(0, |samples| samples.count);
    let labels = arguments.labels.as_deref().map(|path| accuracy::labels(path, count)).transpose()?;
    let before = match model.format() {
        Format::Onnx(document) => document.clone(),
        Format::Nnet(_) => Document::from_bytes(model.to_onnx()?, None)?,
    };
    let others = read.into_iter().chain(targets.paths());
    let resume = Resume::open(arguments.resume.as_deref(), &arguments.model, domain, &arguments.search, others)?;
    drop(phase);
    let reading = start.elapsed();

    let bar = AnalysisBar::new(console);
    let options = CompressOptions {
        method: match arguments.method {
            MethodName::Full => Method::Full,
            MethodName::Leo => Method::Leo,
        },
        tolerance: arguments.tolerance,
        bit_exact: arguments.bit_exact,
        allow_noise: arguments.allow_noise,
        float: arguments.dtype.map(|dtype| match dtype {
            FloatName::F32 => Float::F32,
            FloatName::F64 => Float::F64,
        }),
        stability: {
            let options = search::options(&arguments.search, start, samples.as_ref(), &bar);
            resume.as_ref().map_or(options, |resume| resume.options(options))
        },
    };
    if before.check_rewritable().is_ok() {
        // What cannot be compared with itself cannot be compared with anything smaller.
        model.check_interface(model).with_context(|| arguments.model.display().to_string())?;
    }
    let compressed = compress(&before, domain, &options);
    bar.finish();
    interrupt::unwatch();
    let compressed = match compressed {
        Err(CompressError::Interrupted) => {
            let kept = resume.as_ref().map(Resume::finish).transpose()?;
            let written = kept.map_or("nothing was written", |()| "nothing but the file of --resume was written");
            return Err(Interrupted(written.to_owned()).into());
        }
        other => other.with_context(|| inputs.source.clone())?,
    };
    let compared = Instant::now();
    let phase = console.phase("comparing");
    let (old, new) = (before.network(), compressed.document.network());
    let seed = arguments.search.seed;
    let seen = match compressed.changed {
        true => observe(old, new, domain, samples.as_ref(), seed).with_context(|| inputs.source.clone())?,
        false => Vec::new(),
    };
    for (apart, delta) in
        seen.iter().zip(&compressed.delta).filter_map(|(seen, delta)| Some((seen.furthest.as_ref()?, delta)))
    {
        let (observed, proved) = (apart.distance, delta[apart.element]);
        if observed > proved {
            bail!(
                "a mistake in Leo, please report it with the file: an output differs by {observed:e}, and {proved:e} is proved; nothing was written"
            );
        }
    }
    let proved = compressed.largest_delta();
    // Of what else comes after a network, nobody knows what the answer is.
    let is_choice = before.keeps_largest();
    if labels.is_some() && !is_choice {
        bail!("--labels: what comes out is no choice among answers, by the largest of some numbers");
    }
    let accuracy = match samples {
        Some(samples) if is_choice && (compressed.changed || labels.is_some()) => {
            let models = [Model::from(before.clone()), Model::from(compressed.document.clone())];
            match (Accuracy::of(&models, samples, labels.as_deref(), domain, proved), &labels) {
                (compared, Some(_)) => compared?,
                // Nobody asked for it: what cannot be run, because it takes another batch, say, is not compared.
                (compared, None) => compared.unwrap_or(None),
            }
        }
        _ => None,
    };
    let settled = match samples {
        Some(samples) if is_choice && compressed.changed => settled_answers(old, domain, samples, &compressed.delta)?,
        _ => None,
    };
    let few = compressed.removes_little();
    let silent = match samples {
        Some(samples) if few => Some(reasons::silent(old, &compressed.one_sided(domain, samples)?)),
        _ => None,
    };
    drop(phase);
    let comparing = compared.elapsed();
    let compared = Instant::now();
    let bytes = compressed.document.to_bytes()?;
    let (certificate, second_sha256) = certify(&sealed, &bytes, &compressed, domain, console)?;
    let certifying = compared.elapsed();
    let certificate_bytes = certificate.to_bytes()?;
    let names = reasons::layer_names(old);
    let kept = |pinned: &Pinned| {
        let units = old.width(pinned.layer);
        PinnedLayer { layer: names[pinned.layer.index()].clone(), units, reason: pinned.reason.clone() }
    };
    let units = compressed.history.layers.iter().flat_map(|layer| &layer.units);
    let unstable = units.filter(|unit| unit.status == Status::Unstable).count();
    let Compressed { times, approximation, .. } = compressed;
    let report = Report {
        version: 1,
        model: arguments.model.display().to_string(),
        output: targets.network.display().to_string(),
        method: match arguments.method {
            MethodName::Full => "full",
            MethodName::Leo => "leo",
        },
        tolerance: options.tolerance().to_string(),
        bit_exact: arguments.bit_exact,
        domain: DomainSummary::new(domain),
        samples: inputs.counted,
        before: Size::of(&before)?,
        after: Size::of(&compressed.document)?,
        removed: compressed.history.count().iter().map(|(rule, &count)| (rule.name(), count)).collect(),
        carriers: compressed.history.carriers(),
        paths: compressed.history.paths,
        kept: compressed.pinned.iter().map(kept).collect(),
        unread_inputs: new.unread_inputs().len(),
        stays: reasons::stays(old, &compressed),
        few,
        would_go: compressed.prospects.iter().map(Into::into).collect(),
        one_sided: silent,
        delta: certificate.delta.iter().map(Numbers::largest).fold(0.0, f64::max),
        delta_parts: Parts { approximation, rounding: (proved - approximation).max(0.0) },
        observed: seen.iter().filter_map(|seen| seen.furthest.as_ref()).map(|apart| apart.distance).fold(0.0, f64::max),
        before_operators: operators(before.tail()),
        outputs: outputs::outputs(&before, &compressed, &certificate, &seen),
        settled,
        undecided: compressed.undecided,
        undecided_kept: compressed.undecided_kept(),
        unstable,
        stopped: compressed.stopped.map(search::reason),
        accuracy,
        certificate: targets.certificate.as_deref().map(|path| path.display().to_string()),
        certificate_bytes: certificate_bytes.len(),
        stale_certificate: targets.stale_certificate(&second_sha256).map(|path| path.display().to_string()),
        report: targets.page.as_deref().map(|path| path.display().to_string()),
        checked: true,
        seconds: start.elapsed().as_secs_f64(),
        steps: Steps {
            reading: reading.as_secs_f64(),
            stability: times.stability.as_secs_f64(),
            planning: times.planning.as_secs_f64(),
            rewriting_and_checking: times.rewriting.as_secs_f64(),
            comparing: comparing.as_secs_f64(),
            certifying: certifying.as_secs_f64(),
        },
    };
    let page = targets.page.as_ref().map(|_| {
        let hashes = [sealed.sha256.clone(), second_sha256];
        targets.page(&report, &before, &compressed, hashes, console).render()
    });
    let files = [
        (Some(targets.network.as_path()), Some(&bytes[..])),
        (targets.certificate.as_deref(), Some(&certificate_bytes[..])),
        (targets.page.as_deref(), page.as_ref().map(String::as_bytes)),
    ];
    let force = arguments.report.force;
    let files = files.into_iter().filter_map(|(path, bytes)| Some(files::output(path?, bytes?, force)));
    files::write(&files.collect::<Vec<_>>())?;
    match arguments.json {
        true => console.json(&report),
        false => report.print(&compressed, old, console),
    }?;
    resume.as_ref().map_or(Ok(()), Resume::finish)
}

/// The files that are read, with those that the model has data in.
fn read_by<'a>(arguments: &'a Compress, external: &'a [PathBuf]) -> Vec<&'a Path> {
    let model = [arguments.model.as_path()].into_iter().chain(external.iter().map(PathBuf::as_path));
    arguments.domain.files().chain(arguments.labels.as_deref()).chain(model).collect()
}

/// The files to write.
struct Targets<'a> {
    arguments: &'a Compress,
    network: PathBuf,
    certificate: Option<PathBuf>,
    page: Option<PathBuf>,
}

impl<'a> Targets<'a> {
    /// Those that the arguments ask for, unless they are among those that are read.
    fn new(arguments: &'a Compress, read: &[&Path]) -> Result<Self> {
        let model = arguments.model.as_path();
        let network = arguments.output.clone().unwrap_or_else(|| files::smaller_than(model));
        files::ensure_onnx(&network)?;
        let certificate = match &arguments.certificate {
            Some(path) => Some(path.clone()),
            // Beside what is no file, there is no place for one.
            None if arguments.no_certificate || files::is_special(&network) => None,
            None => Some(files::certificate_of(&network)),
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
        targets.paths().try_for_each(|path| files::ensure_free(path, arguments.report.force))?;
        Ok(targets)
    }

    fn paths(&self) -> impl Iterator<Item = &Path> {
        [Some(self.network.as_path()), self.certificate.as_deref(), self.page.as_deref()].into_iter().flatten()
    }

    /// A file that is taken for the certificate of the network that is written, because of its name, and is that of another one.
    fn stale_certificate(&self, sha256: &str) -> Option<PathBuf> {
        let usual = files::certificate_of(&self.network);
        let is_written = self.paths().any(|path| is_same_file(path, &usual));
        if is_written || files::is_special(&self.network) || !usual.is_file() {
            return None;
        }
        let bytes = read_text_file(&usual).ok();
        let certificate = bytes.and_then(|bytes| Certificate::from_bytes(&bytes).ok());
        certificate.is_none_or(|certificate| certificate.second != sha256).then_some(usual)
    }

    /// The page that tells what a report does, of every unit.
    fn page<'b>(
        &self,
        report: &Report,
        before: &'b Document,
        compressed: &'b Compressed,
        [first, second]: [String; 2],
        console: &Console,
    ) -> Page<'b> {
        let check = self.certificate.as_ref().map(|certificate| {
            let files = [&self.arguments.model, &self.network, certificate].map(|path| as_argument(path));
            in_shell([PathBuf::from("check")].into_iter().chain(files))
        });
        Page {
            model: report.model.clone(),
            command: console.command().to_owned(),
            domain: report.domain.to_string(),
            network: before.network(),
            layers: &compressed.history.layers,
            outcome: Some(ReportedChange {
                network: compressed.document.network(),
                history: &compressed.history,
                changed: compressed.changed,
                delta: report.delta,
                parts: [report.delta_parts.approximation, report.delta_parts.rounding],
                observed: report.observed,
                details: report.details(),
                sizes: report.sizes().to_vec(),
                files: [(report.model.clone(), first), (report.output.clone(), second)],
                certificate: report.certificate.clone(),
                check,
            }),
            warnings: report.warnings(),
            notes: report.notes(),
            steps: report.steps.named().to_vec(),
            seconds: report.seconds,
        }
    }
}

/// The certificate, as it is when it is read again, checked against both files as they are when they are read again; and the second file's fingerprint.
fn certify(
    first: &HashedModel,
    bytes: &[u8],
    compressed: &Compressed,
    domain: &Domain,
    console: &Console,
) -> Result<(Certificate, String)> {
    let second = HashedModel::from_bytes(bytes.to_vec(), Path::new("small.onnx"))?;
    let certificate = compressed.certificate(first.sha256.clone(), second.sha256.clone(), domain)?;
    let certificate = Certificate::from_bytes(&certificate.to_bytes()?)?;
    if let Err(refusal) = verify_with_observer::<f64>(first, &second, &certificate, &CheckBar::new(console)) {
        bail!(
            "a mistake in Leo, please report it with the file: the checker refused the certificate ({refusal}); nothing was written"
        );
    }
    Ok((certificate, second.sha256))
}
