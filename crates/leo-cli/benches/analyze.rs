//! `leo analyze` on every network in `models/mnist`, from the start of the process to its end: the default engine
//! beside the paper's mixed-integer programs, and beside what cannot be avoided.
//!
//! The programs may take a minute for each network; `LEO_MILP_SECONDS` gives another limit, and 0 leaves them out.

mod support;

use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use leo_formats::Model;
use leo_network::op::{Dense, Matrix};
use leo_network::{Evaluator, add_product};
use support::{median, models};

const MODELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/mnist");
/// How often what is fast is measured. The median counts.
const REPEATS: usize = 25;
/// How many inputs the one forward product is for.
const POINTS: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let limit: f64 = std::env::var("LEO_MILP_SECONDS").map_or(Ok(60.0), |text| text.parse())?;
    println!("leo analyze --domain 0,1; milp is --engine milp --trust-solver --time-limit {limit}\n");
    let start = median(REPEATS, || {
        let start = Instant::now();
        Command::new(env!("CARGO_BIN_EXE_leo")).arg("--version").stdout(Stdio::null()).status()?;
        Ok(start.elapsed())
    })?;
    println!("| network | auto | undecided | unavoidable | auto / unavoidable | milp | undecided | milp / auto |");
    println!("|---|---|---|---|---|---|---|---|");
    for model in models(MODELS.as_ref())? {
        let name = model.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let (_, undecided) = analyze(&model, &[])?;
        let auto = median(REPEATS, || analyze(&model, &[]).map(|(time, _)| time))?;
        let unavoidable = start + median(REPEATS, || unavoidable(&model))?;
        let [auto_ms, unavoidable_ms] = [auto, unavoidable].map(|time| 1e3 * time.as_secs_f64());
        print!("| {name} | {auto_ms:.1} ms | {undecided} | {unavoidable_ms:.1} ms | {:.1} |", auto_ms / unavoidable_ms);
        if limit == 0.0 {
            println!(" - | - | - |");
            continue;
        }
        let arguments = ["--engine", "milp", "--trust-solver", "--time-limit", &limit.to_string()];
        let (time, open) = analyze(&model, &arguments)?;
        let at_least = if time.as_secs_f64() >= limit { "more than " } else { "" };
        println!(" {:.1} s | {open} | {at_least}{:.0} |", time.as_secs_f64(), time.as_secs_f64() / auto.as_secs_f64());
    }
    Ok(())
}

/// How long an analysis takes, and how many units it leaves undecided.
fn analyze(model: &Path, arguments: &[&str]) -> Result<(Duration, u64), Box<dyn Error>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leo"));
    command.arg("analyze").arg(model).args(["--domain", "0,1", "--json"]).args(arguments).stderr(Stdio::null());
    let start = Instant::now();
    let output = command.output()?;
    let time = start.elapsed();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    Ok((time, report["totals"]["undecided"].as_u64().ok_or("no totals")?))
}

/// The time of what no analysis can do without, once the process has started: reading the file, taking some points
/// forward through the network, and taking the bounds of every layer back to the input.
fn unavoidable(path: &Path) -> Result<Duration, Box<dyn Error>> {
    let start = Instant::now();
    let model = Model::load(path)?;
    let network = model.network();
    let evaluator = Evaluator::<f64>::new(network);
    let points = vec![0.5; POINTS * network.input().elements()];
    black_box(evaluator.forward(&mut evaluator.workspace(), &points).get(network.outputs()[0]));
    let weights: Vec<&Matrix> =
        network.nodes().iter().filter_map(|node| node.op().as_dense().map(Dense::weight)).collect();
    // The last matrix makes the outputs.
    for layer in 0..weights.len() - 1 {
        let mut rows = weights[layer].values().to_vec();
        for before in weights[..layer].iter().rev() {
            let count = rows.len() / before.rows();
            let mut product = vec![0.0; count * before.columns()];
            add_product(&mut product, &rows, before.values(), count, before.rows(), before.columns());
            rows = product;
        }
        black_box(rows);
    }
    Ok(start.elapsed())
}
