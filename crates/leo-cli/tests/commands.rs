//! The program as people meet it: what it prints, its exit codes, and what it does with bad input.

#[path = "support/mod.rs"]
mod program;
#[path = "../../leo-formats/tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Output;

use leo_formats::ArrayFile;
use leo_formats::onnx::proto::{GraphProto, StringStringEntryProto};
use leo_network::Array;

use program::{Anything, leo};

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).expect("output is text")
}

fn models() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models")
}

#[test]
fn help_is_worth_reading() {
    let text = |arguments: &[&str]| stdout(&leo(Path::new("."), arguments));
    insta::assert_snapshot!("help", text(&["--help"]));
    insta::assert_snapshot!("help_inspect", text(&["inspect", "--help"]));
    insta::assert_snapshot!("help_run", text(&["run", "--help"]));
    insta::assert_snapshot!("help_convert", text(&["convert", "--help"]));
    let (version, solver) = (env!("CARGO_PKG_VERSION"), text(&["--version"]));
    let solver = solver.strip_prefix(&format!("leo {version}\n")).expect("the version comes first");
    assert!(
        solver.starts_with(if cfg!(feature = "highs") { "solver: HiGHS\n" } else { "solver: none (`make build`" }),
        "{solver}"
    );
    assert_eq!(text(&["-V"]), format!("leo {version}\n"));
}

#[test]
fn inspect_shows_layers_and_domain() {
    insta::assert_snapshot!("inspect", stdout(&leo(&models(), &["inspect", "digits.onnx", "--domain", "0,1"])));
    let arguments = ["inspect", "digits.onnx", "--data", "digits.npy", "--margin", "0.5", "--json"];
    insta::assert_snapshot!("inspect_json", stdout(&leo(&models(), &arguments)));
}

#[test]
fn domains_come_from_every_source() -> Anything {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("net.nnet"), support::NNET)?;
    std::fs::write(path("box.vnnlib"), support::VNNLIB_1)?;
    std::fs::write(path("data.idx"), [0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 2, 0, 51, 255, 102])?;
    Array::new(vec![2], vec![-1.0_f64, -2.0])?.save(&path("lo.npy"))?;
    Array::new(vec![2], vec![3.0_f32, 4.0])?.save(&path("hi.npy"))?;
    let domain = |arguments: &[&str]| {
        let output = stdout(&leo(folder.path(), &[&["inspect", "net.nnet"], arguments].concat()));
        output.lines().last().unwrap_or_default().to_owned()
    };
    assert_eq!(domain(&[]), "domain: 2 inputs, within [-2, 2]");
    assert_eq!(domain(&["--domain", "-3,7"]), "domain: 2 inputs, within [-3, 7]");
    assert_eq!(domain(&["--domain", "lo.npy,hi.npy"]), "domain: 2 inputs, within [-2, 4]");
    assert_eq!(domain(&["--domain", "net.nnet", "--margin", "1"]), "domain: 2 inputs, within [-3, 3]");
    assert_eq!(domain(&["--domain", "box.vnnlib", "--hull"]), "domain: 2 inputs, within [-1, 10]");
    assert_eq!(domain(&["--data", "data.idx", "--divide", "51"]), "domain: 2 inputs, within [0, 5]");
    assert_eq!(domain(&["--domain", "0.5,0.5"]), "domain: 2 inputs, 2 of them fixed, within [0.5, 0.5]");
    Ok(())
}

#[test]
fn run_writes_and_prints() -> Anything {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("net.nnet"), support::NNET)?;
    Array::new(vec![2, 2], vec![1.5_f64, -3.0, 0.5, 1.0])?.save(&folder.path().join("x.npy"))?;
    assert_eq!(stdout(&leo(folder.path(), &["run", "net.nnet", "--input", "x.npy"])), "15.25\n7.75\n");
    stdout(&leo(folder.path(), &["run", "net.nnet", "-i", "x.npy", "-o", "y.npy"]));
    let written = Array::load(&folder.path().join("y.npy"))?;
    assert_eq!((written.shape(), written.iter().collect::<Vec<_>>()), (&[2, 1][..], vec![15.25, 7.75]));
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&leo(folder.path(), &["run", "net.nnet", "-i", "x.npy", "--json", "-q"])))?;
    assert_eq!((&json["version"], &json["samples"], &json["output"]), (&1.into(), &2.into(), &().into()));
    assert_eq!((&json["shape"], &json["outputs"]), (&[2, 1][..].into(), &serde_json::json!([[15.25], [7.75]])));
    // An NNet file becomes an ONNX file that computes the same.
    stdout(&leo(folder.path(), &["convert", "net.nnet", "-o", "net.onnx"]));
    assert_eq!(stdout(&leo(folder.path(), &["run", "net.onnx", "-i", "x.npy"])), "15.25\n7.75\n");
    Ok(())
}

#[test]
fn convert_replaces_only_what_it_may() -> Anything {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("net.nnet"), support::NNET)?;
    std::fs::write(folder.path().join("there.onnx"), "mine")?;
    let refused = leo(folder.path(), &["convert", "net.nnet", "-o", "there.onnx"]);
    assert_eq!(refused.status.code(), Some(2));
    assert_eq!(String::from_utf8(refused.stderr)?, "leo: there.onnx: is there already; --force overwrites it\n");
    assert_eq!(std::fs::read(folder.path().join("there.onnx"))?, b"mine");
    let forced = stdout(&leo(folder.path(), &["convert", "net.nnet", "-o", "there.onnx", "--force", "--json"]));
    let json: serde_json::Value = serde_json::from_str(&forced)?;
    assert_eq!((&json["version"], &json["format"], &json["output"]), (&1.into(), &"NNet".into(), &"there.onnx".into()));
    assert_eq!(json["bytes"], std::fs::metadata(folder.path().join("there.onnx"))?.len());
    let refused = leo(folder.path(), &["convert", "there.onnx", "-o", "./there.onnx", "--force"]);
    assert!(String::from_utf8(refused.stderr)?.contains("would overwrite "));
    // What is no file keeps nothing that could be lost.
    stdout(&leo(folder.path(), &["convert", "net.nnet", "-o", "/dev/null"]));
    Ok(())
}

#[test]
fn what_stands_before_an_unknown_tail_can_be_asked_for() -> Anything {
    let folder = tempfile::tempdir()?;
    let mut model = support::small();
    model.graph.as_mut().ok_or("a graph")?.node[4].op_type = Some("Exp".into());
    std::fs::write(folder.path().join("exp.onnx"), support::bytes(&model))?;
    Array::new(vec![1, 3], vec![1.0_f32, 0.0, 1.0])?.save(&folder.path().join("x.npy"))?;
    let refused = leo(folder.path(), &["run", "exp.onnx", "-i", "x.npy"]);
    assert_eq!(
        String::from_utf8(refused.stderr)?,
        "leo: exp.onnx: output \"p\" comes from Exp, which Leo keeps but does not evaluate here; \
         what can be asked for instead: [\"y\"]\n"
    );
    // Hidden (2, 1.5): outputs 2 + 3 and -2 + 0.75 + 1.
    let asked = leo(folder.path(), &["run", "exp.onnx", "-i", "x.npy", "--output-name", "y"]);
    assert_eq!(stdout(&asked), "5 -0.25\n");
    Ok(())
}

#[test]
fn gzip_is_seen_through() -> Anything {
    use std::io::Write;
    let folder = tempfile::tempdir()?;
    let file = std::fs::File::create(folder.path().join("net.nnet.gz"))?;
    let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
    let (first, second) = support::NNET.as_bytes().split_at(40);
    packer.write_all(first)?;
    // A second member, as `cat a.gz b.gz` makes it.
    let mut packer = flate2::write::GzEncoder::new(packer.finish()?, flate2::Compression::fast());
    packer.write_all(second)?;
    packer.finish()?;
    assert!(stdout(&leo(folder.path(), &["inspect", "net.nnet.gz"])).starts_with("net.nnet.gz: NNet, f64\n"));
    Ok(())
}

/// The good network with its graph changed.
fn with(edit: impl Fn(&mut GraphProto)) -> Vec<u8> {
    let mut model = support::small();
    model.graph.iter_mut().for_each(edit);
    support::bytes(&model)
}

/// The good network with weights in another file.
fn external(location: &str) -> Vec<u8> {
    with(|graph| {
        let entry = StringStringEntryProto { key: Some("location".into()), value: Some(location.into()) };
        let weights = &mut graph.initializer[0];
        weights.raw_data = None;
        weights.data_location = Some(1);
        weights.external_data = vec![entry];
    })
}

/// Files that are not what their names say, and some that are.
fn files_of_all_kinds() -> Vec<(&'static str, Vec<u8>)> {
    let good = support::bytes(&support::small());
    vec![
        ("truncated.onnx", good[..good.len() - 30].to_vec()),
        ("corrupt.onnx", good.iter().map(|byte| byte ^ 0x55).collect()),
        ("empty.onnx", vec![]),
        ("empty.npy", vec![]),
        ("text.onnx", b"hello, this is no network\n".to_vec()),
        ("page.onnx", b"<!DOCTYPE html><html></html>".to_vec()),
        ("zip.onnx", b"PK\x03\x04\x00\x00".to_vec()),
        ("binary.nnet", good.clone()),
        ("broken.onnx.gz", b"\x1f\x8b\x08\x00broken".to_vec()),
        ("model.txt", good.clone()),
        ("good.onnx", good.clone()),
        ("net.nnet", support::NNET.into()),
        ("cut.nnet", support::NNET[..60].into()),
        ("or.vnnlib", support::VNNLIB_1.into()),
        ("broken.vnnlib", "(assert (<= X_0 1)".into()),
    ]
}

/// Files that are what their names say, and hold what Leo does not take.
fn networks_that_are_refused() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("lstm.onnx", with(|g| g.node[1].op_type = Some("LSTM".into()))),
        ("conv.onnx", with(|g| g.node[1].op_type = Some("Conv".into()))),
        ("inner_tanh.onnx", with(|g| g.node[2].op_type = Some("Tanh".into()))),
        ("nan.onnx", with(|g| g.initializer[0].raw_data = Some(f32::NAN.to_le_bytes().repeat(6).into()))),
        ("infinite.onnx", with(|g| g.initializer[3].raw_data = Some(f32::INFINITY.to_le_bytes().repeat(2).into()))),
        ("shapes.onnx", with(|g| g.initializer[2].dims = vec![1, 4])),
        ("cycle.onnx", with(|g| g.node[1].input[0] = "y".into())),
        ("huge_input.onnx", with(|g| g.input[0] = support::value("x", &[0, 1 << 50]))),
        ("huge_tensor.onnx", with(|g| g.initializer[0].dims = vec![1 << 31, 1 << 31])),
        ("outside.onnx", external("../secret.bin")),
        ("missing_data.onnx", external("weights.bin")),
        ("escape\n\u{1b}[31m.onnx", with(|g| g.node[1].op_type = Some("Co\nnv".into()))),
    ]
}

/// Arrays that fit nothing.
fn write_arrays(folder: &Path) -> Anything {
    let path = |name: &str| folder.join(name);
    Array::new(vec![3], vec![0.0_f64; 3])?.save(&path("three.npy"))?;
    Array::new(vec![2], vec![0.0_f64, f64::NAN])?.save(&path("nan.npy"))?;
    Array::new(vec![2, 4], vec![0.0_f32; 8])?.save(&path("four.npy"))?;
    std::fs::write(path("cut.npy"), &std::fs::read(path("four.npy"))?[..130])?;
    Ok(())
}

/// Commands that read these files, or are wrong in themselves.
fn bad_calls<'a>(files: &[(&'a str, Vec<u8>)]) -> Vec<Vec<&'a str>> {
    let is_bad_network =
        |name: &&str| (name.contains(".onnx") || name.contains(".nnet")) && !["good.onnx", "net.nnet"].contains(name);
    let networks = files.iter().map(|(name, _)| *name).filter(is_bad_network);
    let networks = networks.chain(["folder.onnx", "model.txt", "missing.onnx"]);
    let mut calls: Vec<Vec<&str>> = networks.map(|name| vec!["convert", name, "-o", "out.onnx"]).collect();
    let domains = [
        "1,0",
        "nan,1",
        "0,inf",
        "lo.npy,hi.npy",
        "three.npy,three.npy",
        "three.npy,nan.npy",
        "or.vnnlib",
        "broken.vnnlib",
        "0.5",
    ];
    calls.extend(domains.map(|domain| vec!["inspect", "net.nnet", "--domain", domain]));
    calls.extend(
        ["nan.npy", "empty.npy", "cut.npy", "net.nnet"].map(|data| vec!["inspect", "net.nnet", "--data", data]),
    );
    let others = [
        &["inspect", "net.nnet", "--domain", "0,1", "--margin", "-1"][..],
        &["inspect", "good.onnx", "--margin", "1"],
        &["inspect", "good.onnx", "--data", "four.npy", "--divide", "0"],
        &["run", "good.onnx", "--input", "four.npy", "-o", "out.npy"],
        &["run", "good.onnx", "--input", "three.npy", "-o", "out.npy", "--output-name", "z"],
        &["run", "good.onnx", "--input", "three.npy", "-o", "nowhere/out.npy"],
        &["convert", "good.onnx", "-o", "out.txt"],
        &["convert", "good.onnx", "-o", "folder.onnx"],
    ];
    calls.extend(others.map(<[&str]>::to_vec));
    calls
}

/// Every way to be wrong: one line that says which file, where and why; exit code 2; nothing written.
#[test]
fn bad_input_gets_one_clear_line() -> Anything {
    let folder = tempfile::tempdir()?;
    let files = [files_of_all_kinds(), networks_that_are_refused()].concat();
    for (name, bytes) in &files {
        std::fs::write(folder.path().join(name), bytes)?;
    }
    std::fs::create_dir(folder.path().join("folder.onnx"))?;
    write_arrays(folder.path())?;
    let before = std::fs::read_dir(folder.path())?.count();
    let mut transcript = String::new();
    for arguments in &bad_calls(&files) {
        let output = leo(folder.path(), arguments);
        let errors = String::from_utf8(output.stderr)?;
        transcript += &format!("$ leo {}\n{errors}", arguments.join(" ").escape_debug());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {errors}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert_eq!(errors.lines().count(), 1, "{arguments:?}: {errors}");
    }
    assert_eq!(std::fs::read_dir(folder.path())?.count(), before, "nothing may be written");
    insta::assert_snapshot!("bad_input", transcript);
    Ok(())
}

#[test]
fn bad_usage_has_the_same_exit_code() {
    for arguments in [&["frobnicate"][..], &["run"], &["inspect"], &[]] {
        assert_eq!(leo(Path::new("."), arguments).status.code(), Some(2), "{arguments:?}");
    }
}

#[test]
fn nobody_reading_is_no_error() -> Anything {
    use std::process::{Command, Stdio};
    let mut child = Command::new(assert_cmd::cargo::cargo_bin!("leo"))
        .args(["inspect", "--json"])
        .arg(models().join("digits.onnx"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    drop(child.stdout.take());
    let output = child.wait_with_output()?;
    assert_eq!((output.status.code(), String::from_utf8(output.stderr)?.as_str()), (Some(0), ""));
    Ok(())
}
