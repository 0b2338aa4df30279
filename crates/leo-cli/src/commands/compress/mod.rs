//! `leo compress`

mod outputs;
mod reasons;
mod summary;
mod targets;

use std::sync::Arc;
use std::time::Instant;

use anyhow::Result;
use leo::{Float, Method, Options};

use crate::args::{Compress, FloatName, MethodName};
use crate::console::Console;
use crate::request::inputs::{self, Inputs};
use crate::request::model as request;
use crate::request::search;
use crate::terminal::interrupt::Interrupted;
use crate::terminal::progress::Watcher;
use summary::Summary;
use targets::Targets;

pub fn run(arguments: &Compress, console: &Console) -> Result<()> {
    let start = Instant::now();
    search::check(&arguments.search)?;
    let phase = console.phase("reading");
    let model = request::open(&arguments.model, &arguments.shape)?;
    let targets = Targets::new(arguments, &model.files())?;
    let console = &console.beside(targets.paths(), arguments.json)?;
    let mut inputs = inputs::load(&arguments.domain, &[&model])?;
    let watcher = Arc::new(Watcher::listening(console));
    let options = options(arguments, start, &mut inputs, &watcher)?;
    drop(phase);
    let reading = start.elapsed();
    let compressed = model.compress_with(&inputs.domain, &options);
    watcher.finish();
    let compression = compressed.map_err(|error| explain(error, arguments, &inputs))?;
    let mut report = targets.report(&compression);
    report.steps.reading = reading.as_secs_f64();
    report.seconds = start.elapsed().as_secs_f64();
    targets.write(&compression, &report, console)?;
    match arguments.json {
        true => console.json(&report),
        false => Summary(&report).print(&compression, console),
    }
}

/// What is asked for.
fn options(arguments: &Compress, start: Instant, inputs: &mut Inputs, watcher: &Arc<Watcher>) -> Result<Options> {
    let count = inputs.samples.as_ref().map_or(0, |samples| samples.len() / inputs.domain.len());
    let labels = arguments.labels.as_deref().map(|path| leo::read_labels(path, count)).transpose()?;
    let options = search::options(&arguments.search, start, inputs, watcher);
    let options = options
        .method(match arguments.method {
            MethodName::Full => Method::Full,
            MethodName::Leo => Method::Leo,
        })
        .float(arguments.dtype.map(|dtype| match dtype {
            FloatName::F32 => Float::F32,
            FloatName::F64 => Float::F64,
        }))
        .tolerance(arguments.tolerance)
        .bit_exact(arguments.bit_exact)
        .allow_noise(arguments.allow_noise)
        .align(arguments.align.map(usize::from))
        .flush_denormals(arguments.flush_denormals)
        .labels(labels)
        .resume(arguments.resume.clone());
    Ok(options)
}

/// Why nothing came of it.
fn explain(error: leo::Error, arguments: &Compress, inputs: &Inputs) -> anyhow::Error {
    match (error, &arguments.resume) {
        (leo::Error::Interrupted, None) => Interrupted("nothing was written".to_owned()).into(),
        (leo::Error::Interrupted, Some(_)) => {
            Interrupted("nothing but the file of --resume was written".to_owned()).into()
        }
        (error, _) => inputs.explain(error),
    }
}
