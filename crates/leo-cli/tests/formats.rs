//! What exporters leave in files, from one end to the other: compressed, checked twice, and run by ONNX Runtime.
//!
//! As in `crosscheck.rs`, `make test` names a Python with ONNX Runtime in LEO_PYTHON; without it these tests say so and
//! stop.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use support::{Anything, leo};

/// Runs a script of Python in a folder, or says that it cannot.
fn python(folder: &Path, script: &str, arguments: &[&str]) -> Anything<Option<Output>> {
    let Ok(interpreter) = std::env::var("LEO_PYTHON") else {
        eprintln!("skipped: LEO_PYTHON names no Python with ONNX Runtime; `make test` makes one");
        return Ok(None);
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join(script);
    Ok(Some(Command::new(interpreter).arg(script).args(arguments).current_dir(folder).output()?))
}

/// A folder with all files, if there is a Python to make them.
fn made() -> Anything<Option<tempfile::TempDir>> {
    let folder = tempfile::tempdir()?;
    let Some(output) = python(folder.path(), FORMATS, &["make", "."])? else { return Ok(None) };
    if output.status.success() { Ok(Some(folder)) } else { Err(format!("{output:?}").into()) }
}

/// A change of a certificate.
type Change = fn(&mut Value);

const FORMATS: &str = "tests/crosscheck/formats.py";

/// What `leo compress` reports of a file, once its certificate has been verified by all checkers. The smaller network
/// is `small.onnx`.
fn compress(folder: &Path, model: &str, options: &[&str]) -> Anything<Value> {
    let fixed = ["compress", model, "-o", "small.onnx", "--domain=-1,1", "--json", "--force"];
    let output = leo(folder, &[&fixed[..], options].concat());
    assert!(output.status.success(), "{model}: {output:?}");
    for exact in [&[][..], &["--exact"]] {
        let checked = leo(folder, &[&["check", model, "small.onnx"][..], exact].concat());
        assert!(checked.status.success(), "{model}: {checked:?}");
    }
    let second = python(folder, "../../tools/check.py", &[model, "small.onnx", "small.leo"])?;
    assert!(second.is_some_and(|output| output.status.success()), "{model}: tools/check.py");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// How far outputs of two files are apart in ONNX Runtime, for inputs of some shapes.
fn apart(folder: &Path, files: [&str; 2], shapes: &[&str]) -> Anything<Vec<f64>> {
    let output = python(folder, FORMATS, &[&["compare", files[0], files[1], "-1", "1"], shapes].concat())?;
    let output = output.ok_or("no Python")?;
    assert!(output.status.success(), "{output:?}");
    let found: Result<Vec<f64>, _> = String::from_utf8(output.stdout)?.split_whitespace().map(str::parse).collect();
    Ok(found?)
}

/// What an unsuccessful run complains of: one line, and the exit code.
fn complaint(output: &Output) -> (Option<i32>, String) {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said.lines().count(), 1, "{said}");
    (output.status.code(), said.trim_end().to_owned())
}

/// Changes a certificate, as JSON.
fn change(folder: &Path, change: impl FnOnce(&mut Value)) -> Anything<PathBuf> {
    let mut certificate: Value = serde_json::from_slice(&std::fs::read(folder.join("small.leo"))?)?;
    change(&mut certificate);
    let path = folder.join("changed.leo");
    std::fs::write(&path, certificate.to_string())?;
    Ok(path)
}

#[test]
fn constants_that_are_listed_as_inputs_are_constants() -> Anything {
    let Some(folder) = made()? else { return Ok(()) };
    let folder = folder.path();
    let report = compress(folder, "listed.onnx", &["--align", "1"])?;
    assert_eq!((&report["listed_constants"], &report["after"]["units"]), (&json!(4), &json!(4)));
    assert!(apart(folder, ["listed.onnx", "small.onnx"], &["2,3,6,6"])?[0] < 1e-6);
    let small: Value = serde_json::from_slice(&leo(folder, &["inspect", "small.onnx", "--json"]).stdout)?;
    assert_eq!(small["listed_constants"], json!(0), "the smaller file has its real input alone");
    let note = "listed.onnx: 4 constants listed as inputs, too, and taken for what the file says";
    for command in [
        &["check", "listed.onnx", "small.onnx"][..],
        &["equiv", "listed.onnx", "small.onnx", "--domain=-1,1"],
        &["analyze", "listed.onnx", "--domain=-1,1"],
        &["scan", "listed.onnx", "--domain=-1,1"],
        &["inspect", "listed.onnx"],
        &["compress", "listed.onnx", "-o", "again.onnx", "--domain=-1,1"],
    ] {
        let output = leo(folder, command);
        let said = String::from_utf8(output.stdout)?;
        assert_eq!(said.lines().filter(|line| *line == note).count(), 1, "{command:?}: {said}");
    }
    Ok(())
}

#[test]
fn open_sizes_are_those_that_are_given() -> Anything {
    let Some(folder) = made()? else { return Ok(()) };
    let folder = folder.path();
    for (model, shape) in [("open.onnx", "H=8,W=8"), ("open.onnx", "1,3,8,8"), ("unnamed.onnx", "1,3,8,8")] {
        let report = compress(folder, model, &["--align", "1", "--shape", shape])?;
        assert_eq!(report["domain"]["shape"], json!([1, 3, 8, 8]));
        assert_eq!(report["after"]["units"], json!(4));
        // The smaller file has the axes that the file had.
        let distances = apart(folder, [model, "small.onnx"], &["1,3,8,8", "3,3,8,8", "2,3,5,9"])?;
        assert!(distances.iter().all(|distance| *distance < 1e-6), "{distances:?}");
        let same = leo(folder, &["equiv", model, "small.onnx", "--domain=-1,1", "--shape", "1,3,8,8"]);
        assert!(same.status.success(), "{same:?}");
    }
    compress(folder, "open.onnx", &["--shape", "H=8,W=8"])?;
    let sentence = String::from_utf8(leo(folder, &["check", "open.onnx", "small.onnx"]).stdout)?;
    assert!(sentence.contains("(192 inputs of shape 1 x 3 x 8 x 8, within [-1, 1])"), "{sentence}");
    for (command, reason) in [
        (&["inspect", "open.onnx"][..], "has no fixed size along axis 2 (\"H\"); give the shape with --shape"),
        (&["inspect", "open.onnx", "--shape", "1,3,8"], "it has 4 axes, and the shape that is given 3"),
        (&["run", "open.onnx", "--input", "x.npy", "--shape", "1,3,0,8"], "--shape 1,3,0,8: no axis has the size 0"),
        (&["scan", "open.onnx", "--shape=-1,3,8,8"], "--shape -1,3,8,8: \"-1\" is no size"),
        (&["analyze", "open.onnx", "--domain=0,1", "--shape", "1,4,8,8"], "it has the size 3 along axis 1, and not 4"),
        (&["convert", "open.onnx", "-o", "c.onnx", "--shape", "1,3,16777216,16777216"], "is larger than the 16777216"),
    ] {
        let output = leo(folder, command);
        let said = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(reason) && output.status.code() == Some(2), "{command:?}: {output:?}");
    }
    Ok(())
}

/// Denormal weights, in one file that gets smaller besides and in one that does not, of convolutions and dense layers.
#[test]
fn denormal_weights_are_counted_and_flushed() -> Anything {
    let Some(folder) = made()? else { return Ok(()) };
    let folder = folder.path();
    for (model, shape, before, left) in [
        ("denormal-convolution.onnx", "2,3,6,6", 6, 4),
        ("denormal-alone.onnx", "2,3,6,6", 1, 1),
        ("denormal-dense.onnx", "4,3", 3, 2),
        ("denormal-dense-alone.onnx", "4,3", 1, 1),
        ("denormal-tail.onnx", "4,3", 1, 1),
    ] {
        let report = compress(folder, model, &["--align", "1"])?;
        assert_eq!(report["before"]["denormals"], json!(before), "{model}: {report}");
        let kept = report["after"]["denormals"].as_u64().ok_or("a number")?;
        assert!(kept <= left && report["flushed"] == json!(0), "{model}: {report}");
        let report = compress(folder, model, &["--align", "1", "--flush-denormals"])?;
        assert_eq!((&report["after"]["denormals"], &report["flushed"]), (&json!(0), &json!(kept)), "{model}: {report}");
        if kept > 0 {
            let delta = report["delta"].as_f64().ok_or("a number")?;
            assert!(delta > 0.0 && delta < 1e-6, "{model}: {report}");
        }
        let distances = apart(folder, [model, "small.onnx"], &[shape])?;
        assert!(distances.iter().all(|distance| *distance < 1e-6), "{model}: {distances:?}");
        let inspected: Value = serde_json::from_slice(&leo(folder, &["inspect", model, "--json"]).stdout)?;
        assert_eq!(inspected["denormals"], json!(before), "{model}");
    }
    let scanned = String::from_utf8(leo(folder, &["scan", "denormal-alone.onnx", "--domain=-1,1"]).stdout)?;
    assert!(
        scanned.contains("denormal-alone.onnx: 1 weight is denormal, which many processors are slow with"),
        "{scanned}"
    );
    let both = leo(folder, &["compress", "denormal-alone.onnx", "--domain=0,1", "--bit-exact", "--flush-denormals"]);
    assert_eq!(both.status.code(), Some(2));
    Ok(())
}

/// Whatever a certificate says of the shape, both checkers come to the same answer.
#[test]
fn a_claim_is_about_one_shape() -> Anything {
    let Some(folder) = made()? else { return Ok(()) };
    let folder = folder.path();
    compress(folder, "open.onnx", &["--shape", "H=8,W=8"])?;
    let changes: [(Change, i32); 7] = [
        (|said| said["shape"] = json!([1, 3, 4, 16]), 0),
        (|said| said["shape"] = json!([1, 3, 8, 9]), 1),
        (|said| said["shape"] = json!([1, 3, 8]), 2),
        (|said| said["shape"] = json!([1, 3, 8, 0]), 2),
        (|said| said["shape"] = json!([1, 4, 8, 6]), 2),
        (|said| said["version"] = json!(3), 2),
        (
            |said| {
                said.as_object_mut().map(|fields| fields.remove("shape"));
            },
            2,
        ),
    ];
    for (index, (make, code)) in changes.into_iter().enumerate() {
        let path = change(folder, make)?;
        let path = path.to_string_lossy();
        let checked = leo(folder, &["check", "open.onnx", "small.onnx", &path]);
        let second = python(folder, "../../tools/check.py", &["open.onnx", "small.onnx", &path])?.ok_or("Python")?;
        assert_eq!((checked.status.code(), second.status.code()), (Some(code), Some(code)), "{index}: {second:?}");
    }
    let (code, said) = complaint(&leo(folder, &["check", "open.onnx", "small.onnx", "--shape", "H=8,W=9"]));
    assert_eq!(code, Some(1));
    assert!(
        said.contains("the shape [1, 3, 8, 8] is said of the input, and the first file has [1, 3, 8, 9]"),
        "{said}"
    );
    // Files that say their shapes themselves need none, and may be told them.
    compress(folder, "listed.onnx", &["--shape", "1,3,6,6"])?;
    let certificate: Value = serde_json::from_slice(&std::fs::read(folder.join("small.leo"))?)?;
    assert_eq!((&certificate["version"], &certificate["shape"]), (&json!(3), &Value::Null));
    Ok(())
}
