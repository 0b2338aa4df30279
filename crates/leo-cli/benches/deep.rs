//! Deep and wide networks, from the start of the process to its end: `leo analyze` beside the paper's mixed-integer
//! programs, `leo compress` and `leo check` on 784-100x5-10 and 784-800-800-10, and how the time of the analysis grows
//! with width and depth. Prints tables and draws `docs/growth.svg`.
//!
//! `LEO_DEEP` names the folder of the networks; `make deep` trains them into one and starts this. Every command may
//! take two minutes for each network; `LEO_DEEP_SECONDS` gives another limit.

#[path = "deep/plot.rs"]
mod plot;
mod support;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use plot::{Dot, Fit, Panel};
use serde_json::Value;
use support::{median, models};

/// How often an analysis of less than a second is measured. The median counts.
const REPEATS: usize = 5;
/// The l1 weight of the networks that show the growth.
const L1: &str = "0.0001";
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A network as its file's name describes it, and its analysis.
struct Network {
    path: PathBuf,
    name: String,
    hidden: Vec<usize>,
    l1: String,
    auto: Analysis,
}

struct Analysis {
    time: Duration,
    memory: Option<u64>,
    report: Value,
}

/// A process that has ended.
struct Run {
    time: Duration,
    /// The most memory it had, in KiB, where the system tells.
    memory: Option<u64>,
    output: Output,
}

fn main() -> Result<(), Box<dyn Error>> {
    let limit: f64 = std::env::var("LEO_DEEP_SECONDS").map_or(Ok(120.0), |text| text.parse())?;
    // Cargo starts benchmarks in the folder of the package, not where its user is.
    let folder = std::env::var_os("LEO_DEEP").map(|folder| Path::new(ROOT).join(folder));
    let paths = folder.as_deref().map(models).transpose().map_err(|error| format!("LEO_DEEP: {error}"))?;
    let Some(paths) = paths.filter(|paths| !paths.is_empty()) else {
        println!("LEO_DEEP names no folder with deep networks to measure; make deep trains and measures them");
        return Ok(());
    };
    let mut networks = Vec::new();
    for path in paths {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let Some((hidden, rest)) = name.split_once("-l1-") else { continue };
        let Some((l1, _)) = rest.split_once("-seed-") else { continue };
        let hidden: Vec<usize> = hidden.split('-').map(str::parse).collect::<Result<_, _>>()?;
        let l1 = l1.to_owned();
        let mut auto = analyze(&path, limit, &[])?;
        if auto.time < Duration::from_secs(1) {
            auto.time = median(REPEATS, || Ok(analyze(&path, limit, &[])?.time))?;
        }
        eprintln!("{name}: {}, {} undecided", seconds(auto.time), auto.undecided());
        networks.push(Network { path, name, hidden, l1, auto });
    }
    println!("leo analyze --domain 0,1 --time-limit {limit}; milp is the same with --engine milp --trust-solver\n");
    let accepted: Vec<&Network> =
        networks.iter().filter(|network| [&[100; 5][..], &[800; 2]].contains(&&*network.hidden)).collect();
    analyses(&accepted, limit)?;
    steps(&accepted);
    certificates(&accepted, limit)?;
    growth(&networks, limit)
}

/// Prints the default analysis beside the paper's.
fn analyses(networks: &[&Network], limit: f64) -> Result<(), Box<dyn Error>> {
    println!(
        "| network | auto | undecided | memory | milp | undecided | milp / auto | open | decided by auto | by milp \
         | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let mut totals = [0; 3];
    for network in networks {
        let auto = &network.auto;
        let milp = analyze(&network.path, limit, &["--engine", "milp", "--trust-solver"])?;
        let times = milp.time.as_secs_f64() / auto.time.as_secs_f64();
        let times = match (auto.stopped(), milp.stopped()) {
            (true, _) => "-".to_owned(),
            (false, true) => format!("more than {times:.1}"),
            (false, false) => format!("{times:.1}"),
        };
        let bounds = analyze(&network.path, limit, &["--engine", "bounds", "--node-limit", "0"])?;
        let both = auto.units().zip(milp.units()).map(<[_; 2]>::from);
        let open = both.zip(bounds.units()).filter(|(_, unit)| unit["status"] == "undecided");
        let open: Vec<[&Value; 2]> = open.map(|(units, _)| units).collect();
        let decided = |of: usize| open.iter().filter(|units| units[of]["status"] != "undecided").count();
        let [by_auto, by_milp] = [0, 1].map(decided);
        totals.iter_mut().zip([open.len(), by_auto, by_milp]).for_each(|(total, count)| *total += count);
        let ratio = if by_milp == 0 { "-".to_owned() } else { format!("{:.1}", by_auto as f64 / by_milp as f64) };
        println!(
            "| {} | {} | {} | {} | {} | {} | {times} | {} | {by_auto} | {by_milp} | {ratio} |",
            network.name,
            seconds(auto.time),
            auto.undecided(),
            auto.memory.map_or("-".to_owned(), |kib| format!("{} MB", kib * 1024 / 1_000_000)),
            seconds(milp.time),
            milp.undecided(),
            open.len(),
        );
    }
    let [open, by_auto, by_milp] = totals;
    println!(
        "\nOpen is what --engine bounds --node-limit 0 leaves undecided: {open} in all, of which auto decides \
         {by_auto} and milp {by_milp}."
    );
    Ok(())
}

/// Prints what decided how many units, and what took how long.
fn steps(networks: &[&Network]) {
    println!("\n| network | decided by | time of each step | time of each layer |\n|---|---|---|---|");
    for Network { name, auto: Analysis { report, .. }, .. } in networks {
        let decided = largest_first(&report["totals"]["by"], |count| format!("{count}"));
        let times = largest_first(&report["steps"], |time| seconds(Duration::from_secs_f64(time)));
        let layers = report["layers"].as_array().into_iter().flatten().filter_map(|layer| layer["seconds"].as_f64());
        let layers: Vec<String> = layers.map(|time| seconds(Duration::from_secs_f64(time))).collect();
        println!("| {name} | {decided} | {times} | {} |", layers.join(", "));
    }
}

/// The numbers of a JSON object with their names, or a dash if there are none.
fn largest_first(object: &Value, show: impl Fn(f64) -> String) -> String {
    let mut entries: Vec<(&String, f64)> =
        object.as_object().into_iter().flatten().filter_map(|(name, value)| Some((name, value.as_f64()?))).collect();
    entries.sort_by(|a, b| b.1.total_cmp(&a.1));
    let shown: Vec<String> = entries.into_iter().map(|(name, value)| format!("{name} {}", show(value))).collect();
    if shown.is_empty() { "-".to_owned() } else { shown.join(", ") }
}

/// Prints how long it takes to compress and to check, and how large the certificates are.
fn certificates(networks: &[&Network], limit: f64) -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let small = folder.path().join("small.onnx");
    println!("\n| network | hidden layers after | compress | check | certificate |\n|---|---|---|---|---|");
    for Network { name, path, .. } in networks {
        let compressed = run(leo("compress", path, limit).arg("-o").arg(&small).arg("--force"))?;
        let report = compressed.report()?;
        let checked = run(Command::new(env!("CARGO_BIN_EXE_leo")).arg("check").arg(path).arg(&small))?;
        println!(
            "| {name} | {} | {} | {} | {} bytes |",
            report["after"]["hidden"].to_string().trim_matches(['[', ']']).replace(',', ", "),
            seconds(compressed.time),
            if checked.output.status.success() { seconds(checked.time) } else { "refused".to_owned() },
            report["certificate_bytes"],
        );
    }
    Ok(())
}

/// Prints and draws how the time of the analysis grows.
fn growth(networks: &[Network], limit: f64) -> Result<(), Box<dyn Error>> {
    println!("\n| hidden layers | networks | median time | slowest | median undecided | stopped by the limit |");
    println!("|---|---|---|---|---|---|");
    let even =
        networks.iter().filter(|network| network.l1 == L1 && network.hidden.windows(2).all(|two| two[0] == two[1]));
    let mut even: Vec<&Network> = even.collect();
    even.sort_by_key(|network| (network.hidden.len(), network.hidden[0]));
    for same in even.chunk_by(|a, b| a.hidden == b.hidden) {
        let times = sorted(same.iter().map(|network| network.auto.time.as_secs_f64()));
        let undecided = sorted(same.iter().map(|network| network.auto.undecided() as f64));
        println!(
            "| {} x {} | {} | {} | {} | {} | {} |",
            same[0].hidden.len(),
            same[0].hidden[0],
            same.len(),
            seconds(Duration::from_secs_f64(middle(&times))),
            seconds(Duration::from_secs_f64(times[times.len() - 1])),
            middle(&undecided),
            same.iter().filter(|network| network.auto.stopped()).count(),
        );
    }
    println!();
    let panel = |by, title, belongs: fn(&Network) -> bool, size: fn(&Network) -> usize| {
        let networks = even.iter().filter(|network| belongs(network));
        let dots: Vec<Dot> = networks
            .map(|network| Dot {
                size: size(network) as f64,
                time: network.auto.time.as_secs_f64(),
                stopped: network.auto.stopped(),
                name: network.name.clone(),
            })
            .collect();
        let fit = Fit::of(&dots)?;
        let stopped = dots.iter().filter(|dot| dot.stopped).count();
        println!(
            "{title}: time ~ {by}^{:.2}, R² = {:.2}, {} networks, {stopped} of them stopped by the limit.\n",
            fit.exponent,
            fit.r_squared,
            dots.len()
        );
        Some(Panel { by, title, dots, fit })
    };
    let width = panel("width", "Two hidden layers", |network| network.hidden.len() == 2, |network| network.hidden[0]);
    let depth =
        panel("depth", "Layers of 100 units", |network| network.hidden[0] == 100, |network| network.hidden.len());
    if let (Some(width), Some(depth)) = (width, depth) {
        std::fs::write(Path::new(ROOT).join("docs/growth.svg"), plot::growth(&[width, depth], limit))?;
    } else {
        println!("No picture: it needs networks of two widths and of two depths.");
    }
    Ok(())
}

impl Analysis {
    fn undecided(&self) -> u64 {
        self.report["totals"]["undecided"].as_u64().unwrap_or_default()
    }

    fn stopped(&self) -> bool {
        !self.report["stopped"].is_null()
    }

    fn units(&self) -> impl Iterator<Item = &Value> {
        self.report["layers"].as_array().into_iter().flatten().filter_map(|layer| layer["units"].as_array()).flatten()
    }
}

impl Run {
    /// The JSON that it printed, or else what it complained of.
    fn report(&self) -> Result<Value, Box<dyn Error>> {
        let Output { stdout, stderr, .. } = &self.output;
        serde_json::from_slice(stdout).map_err(|_| String::from_utf8_lossy(stderr).trim().into())
    }
}

fn analyze(model: &Path, limit: f64, arguments: &[&str]) -> Result<Analysis, Box<dyn Error>> {
    let run = run(leo("analyze", model, limit).args(arguments))?;
    Ok(Analysis { time: run.time, memory: run.memory, report: run.report()? })
}

fn leo(command: &str, model: &Path, limit: f64) -> Command {
    let mut leo = Command::new(env!("CARGO_BIN_EXE_leo"));
    leo.arg(command).arg(model).args(["--domain", "0,1", "--json", "--time-limit", &limit.to_string()]);
    leo
}

fn run(command: &mut Command) -> Result<Run, Box<dyn Error>> {
    let start = Instant::now();
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let process = child.id();
    let watcher = thread::spawn(move || peak(process));
    let output = child.wait_with_output()?;
    let time = start.elapsed();
    let memory = watcher.join().map_err(|_| "the watcher failed")?;
    Ok(Run { time, memory, output })
}

/// The most memory a process has, in KiB, until it ends.
fn peak(process: u32) -> Option<u64> {
    let status = format!("/proc/{process}/status");
    // A process that has ended has no such line.
    let now = || {
        std::fs::read_to_string(&status)
            .ok()?
            .lines()
            .find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok())
    };
    let mut peak = None;
    while let Some(more) = now() {
        peak = Some(more);
        thread::sleep(Duration::from_millis(2));
    }
    peak
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The median of sorted numbers, of which there is at least one.
fn middle(sorted: &[f64]) -> f64 {
    (sorted[(sorted.len() - 1) / 2] + sorted[sorted.len() / 2]) / 2.0
}

fn seconds(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 1.0 { format!("{:.1} ms", 1e3 * seconds) } else { format!("{seconds:.1} s") }
}
