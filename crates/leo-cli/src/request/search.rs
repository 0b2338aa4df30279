//! From arguments to the search for stable units.

use std::time::Instant;

use anyhow::{Context, Result, ensure};
use leo_network::Array;
use leo_stability::{AnalysisOptions, Engine, HAS_SOLVER, StopReason};
use rayon::ThreadPoolBuilder;

use crate::args::{EngineName, SearchArguments};
use crate::terminal::interrupt;
use crate::terminal::progress::AnalysisBar;

/// What this build lacks.
pub const NO_SOLVER: &str = "this Leo was built without HiGHS, the solver that this needs";

/// Whether this build can do what is asked for, and on as many threads.
pub fn check(arguments: &SearchArguments) -> Result<()> {
    ensure!(HAS_SOLVER || arguments.engine != EngineName::Milp, "--engine milp: {NO_SOLVER}");
    if let Some(threads) = arguments.threads {
        let pool = ThreadPoolBuilder::new().num_threads(threads.get()).build_global();
        pool.with_context(|| format!("--threads {threads}"))?;
    }
    Ok(())
}

/// What is asked for. From now on Ctrl-C ends the search.
pub fn options<'a>(
    arguments: &SearchArguments,
    start: Instant,
    samples: Option<&'a Array>,
    bar: &'a AnalysisBar,
) -> AnalysisOptions<'a> {
    AnalysisOptions {
        engine: match arguments.engine {
            EngineName::Auto => Engine::Auto,
            EngineName::Bounds => Engine::Bounds,
            EngineName::Milp => Engine::Milp,
        },
        seed: arguments.seed,
        samples,
        nodes: arguments.node_limit.map(|nodes| usize::try_from(nodes).unwrap_or(usize::MAX)),
        time_limit: arguments.time_limit.map(|limit| limit.saturating_sub(start.elapsed())),
        memory_limit: arguments.memory_limit.map(|mebibytes| mebibytes.saturating_mul(1 << 20)),
        stop: Some(interrupt::watch("stopping; Ctrl-C again stops at once and says nothing")),
        progress: Some(bar),
        ..AnalysisOptions::default()
    }
}

/// What reports call an engine.
pub fn name_of(engine: EngineName) -> &'static str {
    match engine {
        EngineName::Auto => "auto",
        EngineName::Bounds => "bounds",
        EngineName::Milp => "milp",
    }
}

/// What reports say of a search that was stopped.
pub fn reason(stopped: StopReason) -> &'static str {
    match stopped {
        StopReason::Interrupted => "interrupted",
        StopReason::OutOfTime => "time limit",
        StopReason::OutOfMemory => "memory limit",
    }
}
