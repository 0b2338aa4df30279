//! The program, as tests start it, and networks for it.

// Not every test needs all of it.
#![allow(dead_code)]

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

pub type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The program, about to run in a folder.
pub fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("leo"));
    command.current_dir(folder).args(arguments);
    forget_terminal(&mut command);
    command
}

/// Where the tests run must not show.
pub fn forget_terminal(command: &mut Command) {
    for name in ["COLUMNS", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE"] {
        command.env_remove(name);
    }
}

/// What a run in a folder gives.
pub fn leo(folder: &Path, arguments: &[&str]) -> Output {
    command(folder, arguments).output().expect("the program runs")
}

/// What is printed, without the times.
pub fn printed(output: &Output) -> Anything<String> {
    let text = String::from_utf8(output.stdout.clone())?;
    let without_time = |line: &str| match line.rsplit_once("; ") {
        Some((rest, time)) if time.ends_with("s in all") => rest.to_owned(),
        _ if line.contains(" ms: ") => "(times)".to_owned(),
        _ => line.to_owned(),
    };
    let lines = text.lines().map(without_time);
    Ok(lines.collect::<Vec<_>>().join("\n"))
}

/// The networks that come with the project.
pub fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

/// One of those that were trained on MNIST.
pub fn model(name: &str) -> String {
    models().join("mnist").join(format!("{name}-seed-0.onnx")).to_string_lossy().into_owned()
}

/// All that were trained on MNIST, with convolutions and without.
pub fn trained() -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for folder in ["mnist", "convolutional"] {
        let files = std::fs::read_dir(models().join(folder))?.map(|entry| entry.map(|entry| entry.path()));
        found.extend(files.collect::<io::Result<Vec<_>>>()?);
    }
    found.sort();
    Ok(found)
}

/// Always off on [0, 1], always on, and both: -x - 1, x + 1 and x - 1/2. The output is their sum.
pub const THREE: &str =
    "// three units\n2,1,1,3,\n1,3,1,\n0,\n0,\n1,\n0,0,\n1,1,\n-1,\n1,\n1,\n-1,\n1,\n-0.5,\n1,1,1,\n0,\n";

/// A folder with the network of three units.
pub fn three_units() -> Anything<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("three.nnet"), THREE)?;
    Ok(folder)
}

/// Writes a data set like MNIST, but small and made up: blurred random patterns in 28 by 28 pixels.
pub fn write_data(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u8
    };
    let patterns: Vec<Vec<bool>> = (0..10).map(|_| (0..784).map(|_| random() < 50).collect()).collect();
    for (name, samples) in [("train", 640_u32), ("t10k", 100)] {
        let labels: Vec<u8> = (0..samples).map(|_| random() % 10).collect();
        let pixels = labels.iter().flat_map(|&label| &patterns[usize::from(label)]);
        let pixels: Vec<u8> = pixels.map(|&on| if on != (random() < 40) { random() | 1 } else { 0 }).collect();
        let extents = |extents: &[u32]| extents.iter().flat_map(|extent| extent.to_be_bytes()).collect::<Vec<u8>>();
        let images = [vec![0, 0, 8, 3], extents(&[samples, 28, 28]), pixels].concat();
        std::fs::write(folder.join(format!("{name}-images-idx3-ubyte")), images)?;
        std::fs::write(
            folder.join(format!("{name}-labels-idx1-ubyte")),
            [vec![0, 0, 8, 1], extents(&[samples]), labels].concat(),
        )?;
    }
    Ok(())
}
