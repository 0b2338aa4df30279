//! From arguments to the search for stable units.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use leo::{Engine, HAS_SOLVER, Options};
use rayon::ThreadPoolBuilder;

use crate::args::{EngineName, SearchArguments};
use crate::request::files;
use crate::request::inputs::Inputs;
use crate::terminal::progress::Watcher;

/// What this build lacks, and how to get it.
pub const NO_SOLVER: &str = "this Leo was built without the solver HiGHS; `make build` in Leo's folder, or `cargo install --path \
                             crates/leo-cli`, builds it with it";

/// Whether this build can do what is asked for, and on as many threads.
pub fn check(arguments: &SearchArguments) -> Result<()> {
    ensure!(HAS_SOLVER || arguments.engine != EngineName::Milp, "--engine milp: {NO_SOLVER}");
    if let Some(threads) = arguments.threads {
        let pool = ThreadPoolBuilder::new().num_threads(threads.get()).build_global();
        pool.with_context(|| format!("--threads {threads}"))?;
    }
    Ok(())
}

/// Whether the file of --resume, if there is one, is none of the others, and can be gone on with.
pub fn check_resume<'a>(
    path: Option<&Path>,
    arguments: &SearchArguments,
    others: impl IntoIterator<Item = &'a Path>,
) -> Result<()> {
    let Some(path) = path else { return Ok(()) };
    files::ensure_other(path, "--resume", others)?;
    ensure!(arguments.engine != EngineName::Milp, "--resume: not with --engine milp");
    Ok(())
}

/// What is asked for, by a command that began some time ago.
pub fn options(arguments: &SearchArguments, start: Instant, inputs: &mut Inputs, watcher: &Arc<Watcher>) -> Options {
    let options = Options::new()
        .engine(match arguments.engine {
            EngineName::Auto => Engine::Auto,
            EngineName::Bounds => Engine::Bounds,
            EngineName::Milp => Engine::Milp,
        })
        .seed(arguments.seed)
        .samples(inputs.samples.take())
        .node_limit(arguments.node_limit.map(|nodes| usize::try_from(nodes).unwrap_or(usize::MAX)))
        .time_limit(arguments.time_limit.map(|limit| limit.saturating_sub(start.elapsed())))
        .memory_limit(arguments.memory_limit.map(|mebibytes| mebibytes.saturating_mul(1 << 20)));
    options.observer(Arc::clone(watcher) as _)
}
