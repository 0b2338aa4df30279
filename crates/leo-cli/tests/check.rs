//! `leo check`: certificates that `leo compress` writes, and what is left of them after a change.

mod support;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

use support::{Anything, leo, models, three_units, trained};

/// A compressed network with its certificate, in a folder: three.nnet, small.onnx, small.leo.
fn compressed() -> Anything<tempfile::TempDir> {
    let folder = three_units()?;
    let output = leo(folder.path(), &["compress", "three.nnet", "-o", "small.onnx", "--domain", "0,1"]);
    assert!(output.status.success(), "{output:?}");
    Ok(folder)
}

fn check(folder: &Path, options: &[&str]) -> Output {
    leo(folder, &[&["check", "three.nnet", "small.onnx"], options].concat())
}

/// The exit code of a check, and what it says on standard error.
fn complaint(folder: &Path, options: &[&str]) -> Anything<(Option<i32>, String)> {
    let output = check(folder, options);
    assert!(output.stdout.is_empty(), "{output:?}");
    Ok((output.status.code(), String::from_utf8(output.stderr)?))
}

#[test]
fn a_certificate_is_verified_in_one_sentence() -> Anything {
    insta::assert_snapshot!("help_check", String::from_utf8(leo(Path::new("."), &["check", "--help"]).stdout)?);
    let folder = compressed()?;
    for options in [&[][..], &["small.leo"], &["--exact"]] {
        let output = check(folder.path(), options);
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let sentence = String::from_utf8(output.stdout)?;
        let rounding = if options == ["--exact"] { ", without any rounding" } else { "" };
        let claim = "all outputs of small.onnx are exactly those of three.nnet in real arithmetic";
        let domain = "for all inputs of the domain (1 input, within [0, 1])";
        assert_eq!(sentence, format!("verified{rounding}: {domain} {claim}\n"));
    }
    let json: Value = serde_json::from_slice(&check(folder.path(), &["--json"]).stdout)?;
    assert_eq!((&json["version"], &json["verified"], &json["exact"]), (&1.into(), &true.into(), &false.into()));
    assert_eq!((&json["delta"], &json["proved"]), (&serde_json::json!([0.0]), &serde_json::json!([0.0])));
    assert_eq!(json["domain"]["upper"], serde_json::json!([1.0]));
    Ok(())
}

#[test]
fn what_is_not_proved_is_refused_with_a_reason() -> Anything {
    let folder = compressed()?;
    let path = folder.path().join("small.leo");
    let whole = std::fs::read_to_string(&path)?;
    for (old, new, reason) in [
        (
            r#""units":"-+~""#,
            r#""units":"--~""#,
            "layer 0, unit 1: is said to be always off, and proved to lie in [1, 2]",
        ),
        (r#""units":"-+~""#, r#""units":"++~""#, "layer 0, unit 0: is said to be always on"),
        (r#"[[0,1]]"#, r#"[[1,0]]"#, "layer 0, unit 2: is not o"),
        (r#""lo":0.0"#, r#""lo":-3.0"#, "layer 0, unit 0: is said to be always off"),
        (r#"[0,2]"#, r#"[0,1]"#, "output 0, element 0: delta is said to be 0, and only"),
    ] {
        assert!(whole.contains(old), "{old} is not in {whole}");
        std::fs::write(&path, whole.replacen(old, new, 1))?;
        let (code, complaint) = complaint(folder.path(), &[])?;
        assert_eq!(code, Some(1), "{new}: {complaint}");
        assert!(complaint.starts_with("leo: refused: small.leo: ") && complaint.contains(reason), "{complaint}");
        assert_eq!(complaint.lines().count(), 1);
    }
    let json: Value = serde_json::from_slice(&check(folder.path(), &["--json", "--exact"]).stdout)?;
    assert!(json["verified"] == false && json["refused"].is_string() && json["delta"].is_null(), "{json}");

    std::fs::write(&path, &whole)?;
    let other = ["check", "small.onnx", "small.onnx", "small.leo"];
    let output = leo(folder.path(), &other);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr)?.contains("is about another file than the first one"));
    let output = leo(folder.path(), &["check", "small.onnx", "three.nnet", "small.leo"]);
    assert_eq!(output.status.code(), Some(1));
    let complaint = String::from_utf8(output.stderr)?;
    assert!(complaint.contains("in the other order: are the two networks swapped?"), "{complaint}");
    Ok(())
}

#[test]
fn files_that_cannot_be_read_are_no_answer() -> Anything {
    let folder = compressed()?;
    let path = folder.path().join("small.leo");
    let whole = std::fs::read_to_string(&path)?;
    for (content, reason) in [
        (whole[..whole.len() / 2].to_owned(), "small.leo: is not a certificate: "),
        (whole.replace("\"version\":2", "\"version\":9"), "of a version that this program knows"),
        ("\u{0}\u{1}".to_owned(), "small.leo: is not a certificate"),
        (String::new(), "small.leo: is empty"),
    ] {
        std::fs::write(&path, content)?;
        let (code, complaint) = complaint(folder.path(), &[])?;
        assert_eq!(code, Some(2), "{complaint}");
        assert!(complaint.contains(reason), "{complaint}");
    }
    let (code, complaint) = complaint(folder.path(), &["missing.leo"])?;
    assert!(code == Some(2) && complaint.contains("missing.leo: cannot be read"), "{complaint}");
    std::fs::rename(&path, folder.path().join("moved.leo"))?;
    let (code, complaint) = crate::complaint(folder.path(), &[])?;
    assert_eq!(code, Some(2));
    assert!(complaint.contains("small.leo: there is no certificate beside the smaller network"), "{complaint}");
    std::fs::write(folder.path().join("small.onnx"), "no network")?;
    assert_eq!(check(folder.path(), &[]).status.code(), Some(2));
    Ok(())
}

#[test]
fn certificates_go_where_they_are_wanted() -> Anything {
    let folder = three_units()?;
    let compress =
        |options: &[&str]| leo(folder.path(), &[&["compress", "three.nnet", "--domain", "0,1"], options].concat());
    let exists = |name: &str| folder.path().join(name).exists();
    assert!(compress(&["-o", "a.onnx", "--no-certificate"]).status.success() && !exists("a.leo"));
    assert!(compress(&["-o", "a.onnx", "--certificate", "proof.json", "--force"]).status.success());
    assert!(exists("proof.json") && !exists("a.leo"));
    assert!(leo(folder.path(), &["check", "three.nnet", "a.onnx", "proof.json"]).status.success());
    for options in [
        ["-o", "leo.onnx", "--certificate", "./leo.onnx"],
        ["-o", "b.onnx", "--certificate", "b.onnx"],
        ["-o", "b.onnx", "--certificate", "three.nnet"],
    ] {
        let output = compress(&options);
        assert_eq!(output.status.code(), Some(2), "{options:?}");
        assert!(String::from_utf8(output.stderr)?.contains("would overwrite "), "{options:?}");
    }
    assert!(!exists("b.onnx") && !exists("b.leo"));
    // A network that cannot be written leaves no certificate behind.
    assert_eq!(compress(&["-o", "no/where.onnx", "--certificate", "c.leo"]).status.code(), Some(2));
    assert!(!exists("c.leo"));
    Ok(())
}

/// All networks that come with the project, compressed: for each, its name, and the paths of the three files.
fn compressed_models(folder: &Path) -> Anything<BTreeMap<String, [PathBuf; 3]>> {
    let mut found = BTreeMap::new();
    for path in trained()?.into_iter().chain([models().join("digits.onnx")]) {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let small = folder.join(format!("{name}.onnx"));
        let output =
            leo(folder, &["compress", &path.to_string_lossy(), "-o", &small.to_string_lossy(), "--domain", "0,1"]);
        assert!(output.status.success(), "{output:?}");
        let certificate = small.with_extension("leo");
        found.insert(name, [path, small, certificate]);
    }
    Ok(found)
}

#[test]
fn certificates_of_all_models_are_verified() -> Anything {
    let folder = tempfile::tempdir()?;
    let all = compressed_models(folder.path())?;
    assert!(all.len() >= 14);
    let mut list = String::new();
    for (name, paths) in &all {
        let [model, small, certificate] = paths.each_ref().map(|path| path.to_string_lossy());
        for options in [&[][..], &["--exact"]] {
            let output = leo(folder.path(), &[&["check", &*model, &small, &certificate], options].concat());
            assert!(output.status.success(), "{name}, {options:?}: {output:?}");
        }
        assert!(std::fs::metadata(&paths[2])?.len() < 16_000, "{name}: small networks have small certificates");
        list += &format!("{model}\t{small}\t{certificate}\n");
    }
    // The second checker, which was written from the description of the format.
    let Ok(interpreter) = std::env::var("LEO_PYTHON") else {
        eprintln!("skipped: LEO_PYTHON names no Python with NumPy; `make test` makes one");
        return Ok(());
    };
    std::fs::write(folder.path().join("list"), list)?;
    let script = models().join("../tools/check.py");
    let output = Command::new(interpreter).arg(script).arg("--batch").arg(folder.path().join("list")).output()?;
    let printed = String::from_utf8(output.stdout)?;
    assert_eq!(printed.lines().count(), all.len(), "{}", String::from_utf8_lossy(&output.stderr));
    for (line, name) in printed.lines().zip(all.keys()) {
        assert!(line.starts_with("verified"), "{name}: {line}");
    }
    Ok(())
}
