//! Certificates of every network in `models/mnist`: how large they are, and how long it takes to find and to check
//! them, from the start of the process to its end. `leo compress` checks what it writes; that is not part of finding
//! it.

mod support;

use std::error::Error;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::{median, models};

const MODELS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/mnist");
/// How often each is measured, and how often what takes longer. The median counts.
const REPEATS: usize = 25;
const FEW: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let small = folder.path().join("small.onnx");
    println!("| network | certificate | find | check | check / find | check --exact |");
    println!("|---|---|---|---|---|---|");
    for model in models(MODELS.as_ref())? {
        let find = median(REPEATS, || find(&model, &small))?;
        let bytes = std::fs::metadata(small.with_extension("leo"))?.len();
        let checked = median(REPEATS, || check(&model, &small, &[]))?;
        let exact = median(FEW, || check(&model, &small, &["--exact"]))?;
        let [find, checked, exact] = [find, checked, exact].map(|time| 1e3 * time.as_secs_f64());
        let name = model.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        println!("| {name} | {bytes} bytes | {find:.1} ms | {checked:.1} ms | {:.2} | {exact:.0} ms |", checked / find);
    }
    Ok(())
}

/// How long it takes to compress a network, without checking the certificate.
fn find(model: &Path, small: &Path) -> Result<Duration, Box<dyn Error>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leo"));
    command.arg("compress").arg(model).arg("-o").arg(small).args(["--domain", "0,1", "--json", "--force"]);
    let start = Instant::now();
    let output = command.output()?;
    let time = start.elapsed();
    let report: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let certifying = report["steps"]["certifying"].as_f64().ok_or("no steps")?;
    Ok(time - Duration::from_secs_f64(certifying))
}

fn check(model: &Path, small: &Path, options: &[&str]) -> Result<Duration, Box<dyn Error>> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leo"));
    command.arg("check").arg(model).arg(small).args(options).stdout(Stdio::null());
    let start = Instant::now();
    if !command.status()?.success() {
        return Err("refused".into());
    }
    Ok(start.elapsed())
}
