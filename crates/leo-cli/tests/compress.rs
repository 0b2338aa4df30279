//! `leo compress`: what is removed, what is proved, and what other programs may rely on.

mod support;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use leo_formats::ArrayFile;
use leo_formats::Model;
use leo_network::Array;
use leo_train::library;
use serde_json::Value;

use support::{Anything, model, models, printed, three_units, trained};

fn command(folder: &Path, arguments: &[&str]) -> Command {
    support::command(folder, &[&["compress"], arguments].concat())
}

fn leo(folder: &Path, arguments: &[&str]) -> Output {
    support::leo(folder, &[&["compress"], arguments].concat())
}

/// The report of a run that is through.
fn report(folder: &Path, arguments: &[&str]) -> Anything<Value> {
    let force: &[&str] = if arguments.contains(&"--force") { &[] } else { &["--force"] };
    let output = leo(folder, &[arguments, &["--json"], force].concat());
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaint.is_empty(), "{arguments:?}: {complaint}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// What is said when the command line or a file is bad.
fn refusal(folder: &Path, arguments: &[&str]) -> Anything<String> {
    let output = leo(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    Ok(String::from_utf8(output.stderr)?)
}

/// The share of units that are removed, in percent.
fn removed(report: &Value) -> f64 {
    let units = |key: &str| report[key]["units"].as_f64().unwrap_or(f64::NAN);
    100.0 * (units("before") - units("after")) / units("before")
}

#[test]
fn a_network_becomes_smaller_and_the_report_says_how() -> Anything {
    insta::assert_snapshot!("help_compress", String::from_utf8(leo(Path::new("."), &["--help"]).stdout)?);
    let folder = three_units()?;
    let arguments = ["three.nnet", "-o", "small.onnx", "--domain", "0,1"];
    insta::assert_snapshot!("compress", printed(&leo(folder.path(), &arguments))?);

    let json = report(folder.path(), &arguments)?;
    assert_eq!((&json["version"], &json["checked"], &json["undecided"]), (&1.into(), &true.into(), &0.into()));
    assert_eq!(json["before"]["hidden"], serde_json::json!([3]));
    // The unit that is always on is all that carries x past the layer, and stays.
    assert_eq!(
        (&json["after"]["hidden"], &json["removed"]),
        (&serde_json::json!([2]), &serde_json::json!({"inactive": 1}))
    );
    assert_eq!(
        (&json["delta"], &json["observed"], &json["certificate"]),
        (&0.0.into(), &0.0.into(), &"small.leo".into())
    );
    for key in ["parameters", "multiply_adds"] {
        assert!(json["after"][key].as_u64() < json["before"][key].as_u64(), "{key}: {json}");
    }
    assert!(json["seconds"].is_f64() && json["steps"]["stability"].is_f64());

    // On [1, 2] all are stable: no layer is left.
    let json = report(folder.path(), &["three.nnet", "-o", "line.onnx", "--domain", "1,2"])?;
    assert_eq!(json["after"]["hidden"], serde_json::json!([]));
    let line = Model::load(&folder.path().join("line.onnx"))?;
    let outputs = line.run(&Array::new(vec![2, 1], vec![1.0, 2.0])?, None)?;
    assert_eq!(outputs.to_vec::<f64>(), [2.5, 4.5]);
    Ok(())
}

/// Where nothing is gained nothing changes, not a byte; and what Leo made cannot be made smaller by making it again.
#[test]
fn nothing_changes_where_nothing_is_gained() -> Anything {
    let folder = tempfile::tempdir()?;
    let network = model("50-50-l1-0");
    let output = leo(folder.path(), &[&network, "-o", "same.onnx", "--domain", "0,1"]);
    assert!(
        printed(&output)?.contains("nothing to remove: same.onnx is the same network, in the same numbers"),
        "{output:?}"
    );
    assert!(std::fs::read(folder.path().join("same.onnx"))? == std::fs::read(&network)?);

    let network = model("50-50-l1-0.001");
    for options in [&[][..], &["--tolerance", "0"], &["--method", "leo"], &["--bit-exact"], &["--dtype", "f64"]] {
        let first = report(folder.path(), &[&[&network, "-o", "once.onnx", "--domain", "0,1"], options].concat())?;
        let again = report(folder.path(), &[&["once.onnx", "-o", "twice.onnx", "--domain", "0,1"], options].concat())?;
        assert!(removed(&first) > 20.0 && removed(&again) == 0.0, "{options:?}: {again}");
        assert!(std::fs::read(folder.path().join("once.onnx"))? == std::fs::read(folder.path().join("twice.onnx"))?);
    }
    Ok(())
}

/// At least as many units as the paper's range for its algorithm, and close to all stable units for the normal form.
#[test]
fn the_models_that_ship_shrink_as_they_should() -> Anything {
    let folder = tempfile::tempdir()?;
    // Width and l1; what LEO removes in the paper, with three times the spread of single networks (31 times the
    // standard error squared, rooted); the share of stable units; what the normal form removes at least.
    let cases = [
        ("25-25-l1-0.001", 22.0, 1.0, 44.0, 44.0),
        ("25-25-l1-0.0002", 8.3, 0.7, 6.0, 4.0),
        ("50-50-l1-0.001", 29.4, 0.7, 68.0, 64.0),
        ("50-50-l1-0.0002", 15.1, 0.6, 25.0, 20.0),
        ("100-100-l1-0.0005", 30.8, 0.5, 76.5, 75.0),
        ("100-100-l1-0.0001", 14.9, 0.4, 29.5, 23.5),
        ("25-25-l1-0", 0.0, 0.0, 0.0, 0.0),
        ("50-50-l1-0", 0.0, 0.0, 0.0, 0.0),
        ("100-100-l1-0", 0.0, 0.0, 0.0, 0.0),
    ];
    for (name, mean, error, stable, least) in cases {
        let network = model(name);
        let run = |options: &[&str]| {
            report(folder.path(), &[&[&network, "-o", "small.onnx", "--domain", "0,1"], options].concat())
        };
        let leo = run(&["--method", "leo"])?;
        let spread = error * f64::sqrt(31.0);
        assert!((removed(&leo) - mean).abs() <= 3.0 * spread, "{name}: {}", removed(&leo));
        let full = run(&[])?;
        assert!(removed(&full) >= least && removed(&full) <= stable, "{name}: {}", removed(&full));
        let zero = run(&["--tolerance", "0"])?;
        assert!(removed(&leo) <= removed(&zero) && removed(&zero) <= removed(&full), "{name}");
        let approximation = |report: &Value| report["delta_parts"]["approximation"].as_f64();
        assert!(approximation(&zero) == Some(0.0) && approximation(&full) < Some(4e-6), "{name}: {full}");
        for report in [&leo, &zero, &full] {
            assert!(report["observed"].as_f64() <= report["delta"].as_f64(), "{name}: {report}");
            assert!(report["delta"].as_f64() < Some(1e-5), "{name}: {report}");
        }
        if name == "100-100-l1-0.0005" {
            assert!(removed(&zero) >= 55.0, "{}", removed(&zero));
        }
        if name == "50-50-l1-0.001" {
            assert!(removed(&zero) >= 38.0, "{}", removed(&zero));
        }
    }
    Ok(())
}

/// What models/README.md says of the convolutional networks holds, or more goes by now.
#[test]
fn convolutional_models_are_what_their_table_says() -> Anything {
    let folder = tempfile::tempdir()?;
    let page = std::fs::read_to_string(models().join("README.md"))?;
    let section = page.split("\n## ").find(|section| section.starts_with("Convolutional networks\n"));
    let rows = section.ok_or("a section")?.lines().filter_map(|line| line.strip_prefix("| `"));
    let mut found = 0;
    for row in rows {
        let (name, numbers) = row.split_once("` | ").ok_or("a name")?;
        // "12 of 34", "1,234 to 567": every number of the row, in order.
        let numbers = numbers.replace(',', "");
        let numbers: Vec<u64> = numbers.split([' ', '|']).filter_map(|word| word.parse().ok()).collect();
        let [channels, off, on, neither, aligned, left, parameters, fewer, bytes, smaller] = numbers[..] else {
            return Err(format!("{name}: {numbers:?}").into());
        };
        let network = models().join("convolutional").join(name).to_string_lossy().into_owned();
        let said = support::leo(folder.path(), &["analyze", &network, "--domain", "0,1", "--json"]);
        let totals = &serde_json::from_slice::<Value>(&said.stdout)?["totals"];
        let count = |key: &str| totals[key].as_u64();
        assert!(count("inactive") >= Some(off) && count("active") >= Some(on), "{name}: {totals}");
        assert_eq!((count("units"), off + on + neither), (Some(channels), channels), "{name}: {totals}");
        for (align, left) in [("1", left), ("4", aligned)] {
            let json = report(folder.path(), &[&network, "-o", "small.onnx", "--domain", "0,1", "--align", align])?;
            let before = ["units", "parameters", "bytes"].map(|key| json["before"][key].as_u64());
            assert_eq!(before, [channels, parameters, bytes].map(Some), "{name}: {json}");
            assert!(json["after"]["units"].as_u64() <= Some(left), "{name}, multiples of {align}: {json}");
            assert!(json["observed"].as_f64() <= json["delta"].as_f64() && json["delta"].as_f64() < Some(1e-5));
            if align == "4" {
                assert!(json["after"]["parameters"].as_u64() <= Some(fewer), "{name}: {json}");
                assert!(json["after"]["bytes"].as_u64() <= Some(smaller), "{name}: {json}");
            }
            let checked = support::leo(folder.path(), &["check", &network, "small.onnx"]);
            assert!(checked.status.success(), "{name}, multiples of {align}: {checked:?}");
        }
        found += 1;
    }
    assert_eq!(found, std::fs::read_dir(models().join("convolutional"))?.count(), "a row for each file");
    Ok(())
}

/// Not one of 10,000 predictions changes, and as many are right as models/README.md says.
#[test]
fn no_prediction_changes() -> Anything {
    let Ok(mnist) = library::locate("mnist") else {
        eprintln!("skipped: no MNIST here; `make mnist` fetches it");
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let file = |name: &str| mnist.join(name).to_string_lossy().into_owned();
    let packed = |name: &str| if mnist.join(name).exists() { file(name) } else { file(&format!("{name}.gz")) };
    let (images, labels) = (packed("t10k-images-idx3-ubyte"), packed("t10k-labels-idx1-ubyte"));
    let page = std::fs::read_to_string(models().join("README.md"))?;
    for path in trained()? {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let network = path.to_string_lossy().into_owned();
        let samples = ["--data", &images, "--divide", "255", "--labels", &labels];
        let arguments = [&[&network, "-o", "small.onnx", "--domain", "0,1"], &samples[..]].concat();
        let json = report(folder.path(), &arguments)?;
        let accuracy = &json["accuracy"];
        assert_eq!((&accuracy["samples"], &accuracy["changed"]), (&10_000.into(), &0.into()), "{network}");
        assert!(accuracy["before"].as_f64() > Some(0.95) && accuracy["before"] == accuracy["after"], "{network}");
        let row = format!("| `{name}` | {:.2} |", 100.0 * accuracy["before"].as_f64().ok_or("a number")?);
        assert!(page.contains(&row), "models/README.md does not say {row}");
        assert!(json["observed"].as_f64() <= json["delta"].as_f64());
    }
    Ok(())
}

/// A softmax at the end, samples with labels, and what is wrong with them.
#[test]
fn samples_and_labels_are_compared() -> Anything {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| models().join(name).to_string_lossy().into_owned();
    let (network, digits) = (path("digits.onnx"), path("digits.npy"));
    let samples = Array::load(Path::new(&digits))?;
    let count = samples.shape()[0];
    let labels: Vec<i64> = (0..i64::try_from(count)?).collect();
    Array::new(vec![count], labels.clone())?.save(&folder.path().join("labels.npy"))?;
    let arguments = [network.as_str(), "-o", "small.onnx", "--domain", "0,1", "--data", &digits, "--force"];
    let with_labels = |file| [&arguments[..], &["--labels", file]].concat();
    let json = report(folder.path(), &with_labels("labels.npy"))?;
    assert_eq!((&json["accuracy"]["samples"], &json["accuracy"]["changed"]), (&count.into(), &0.into()));
    let output = leo(folder.path(), &with_labels("labels.npy"));
    assert!(printed(&output)?.contains("0 of 10 predictions changed"), "{output:?}");

    Array::new(vec![2], vec![0_i64, 1])?.save(&folder.path().join("few.npy"))?;
    let complaint = refusal(folder.path(), &with_labels("few.npy"))?;
    assert!(complaint.contains("few.npy: 2 labels for 10 samples"), "{complaint}");
    Array::new(vec![10], vec![10_i64; 10])?.save(&folder.path().join("eleventh.npy"))?;
    let complaint = refusal(folder.path(), &with_labels("eleventh.npy"))?;
    assert!(
        complaint.contains("10 is no answer of a network with 10 outputs: labels count them from 0"),
        "{complaint}"
    );
    Array::new(vec![10], vec![0.5_f64; 10])?.save(&folder.path().join("halves.npy"))?;
    let complaint = refusal(folder.path(), &with_labels("halves.npy"))?;
    assert!(complaint.contains("halves.npy: holds 0.5, and labels are whole numbers"), "{complaint}");
    assert!(refusal(folder.path(), &[&arguments[..5], &["--labels", "few.npy"]].concat())?.contains("--data"));
    Ok(())
}

#[test]
fn what_makes_no_sense_is_refused() -> Anything {
    let folder = three_units()?;
    let cases = [
        (&["--tolerance", "-1"][..], "should be 0, ulp, a number above 0, or a percentage"),
        (&["--tolerance", "nan"], "should be 0, ulp, a number above 0, or a percentage"),
        (&["--tolerance", "0", "--bit-exact"], "cannot be used with"),
        (&["--method", "none"], "invalid value 'none'"),
        (&["--dtype", "f16"], "invalid value 'f16'"),
    ];
    for (arguments, why) in cases {
        let all = [&["three.nnet", "-o", "small.onnx", "--domain", "0,1"], arguments].concat();
        let complaint = refusal(folder.path(), &all)?;
        assert!(complaint.contains(why), "{arguments:?}: {complaint}");
    }
    leo(folder.path(), &["three.nnet", "-o", "small.onnx", "--domain", "0,1"]);
    let complaint = refusal(folder.path(), &["small.onnx", "-o", "./small.onnx", "--domain", "0,1"])?;
    assert!(complaint.contains("-o ./small.onnx: would overwrite small.onnx; give another name"), "{complaint}");
    let complaint = refusal(folder.path(), &["small.onnx", "-o", "small.model", "--domain", "0,1"])?;
    assert!(complaint.contains("small.model: the file to write should end in .onnx"), "{complaint}");
    let complaint = refusal(folder.path(), &["small.onnx", "-o", "small2.onnx"])?;
    assert!(complaint.contains("give the inputs that matter: --domain LO,HI"), "{complaint}");
    let complaint = refusal(folder.path(), &["small.onnx", "-o", "no/such/folder.onnx", "--domain", "0,1"])?;
    assert!(complaint.contains("no/such"), "{complaint}");
    Ok(())
}

/// Names follow from the network's, and nothing that is there is lost unless that is asked for.
#[test]
fn files_have_names_and_are_not_overwritten() -> Anything {
    let folder = three_units()?;
    let path = |name: &str| folder.path().join(name);
    let arguments = ["three.nnet", "--domain", "0,1"];
    assert!(leo(folder.path(), &arguments).status.success());
    Model::load(&path("three.leo.onnx"))?;
    assert!(path("three.leo").exists());
    assert!(support::leo(folder.path(), &["check", "three.nnet", "three.leo.onnx"]).status.success());

    for name in ["three.leo.onnx", "three.leo", "page.html"] {
        for other in ["three.leo.onnx", "three.leo", "page.html"] {
            drop(std::fs::remove_file(path(other)));
        }
        std::fs::write(path(name), "mine")?;
        let arguments = [&arguments[..], &["--report", "page.html"]].concat();
        let complaint = refusal(folder.path(), &arguments)?;
        assert_eq!(complaint, format!("leo: {name}: is there already; --force overwrites it\n"));
        assert_eq!(std::fs::read_to_string(path(name))?, "mine");
        assert_eq!(std::fs::read_dir(folder.path())?.count(), 2, "nothing else is written");
        report(folder.path(), &arguments)?;
        assert_ne!(std::fs::read_to_string(path(name)).ok().as_deref(), Some("mine"));
    }
    Ok(())
}

/// A link is followed, and a pipe is written to.
#[cfg(unix)]
#[test]
fn only_regular_files_are_replaced() -> Anything {
    let folder = three_units()?;
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("real.onnx"), "old")?;
    std::os::unix::fs::symlink("real.onnx", path("link.onnx"))?;
    report(folder.path(), &["three.nnet", "-o", "link.onnx", "--domain", "0,1"])?;
    assert!(path("link.onnx").is_symlink());
    Model::load(&path("real.onnx"))?;
    assert!(Command::new("mkfifo").arg(path("pipe")).status()?.success());
    let reader = Command::new("cat").arg(path("pipe")).stdout(Stdio::piped()).spawn()?;
    report(folder.path(), &["three.nnet", "-o", "pipe", "--domain", "0,1"])?;
    assert!(reader.wait_with_output()?.stdout == std::fs::read(path("real.onnx"))?);
    Ok(())
}

/// Predictions are compared also where nobody knows the right ones.
#[test]
fn samples_alone_are_compared_too() -> Anything {
    let folder = three_units()?;
    Array::new(vec![3, 784], vec![0.5_f32; 3 * 784])?.save(&folder.path().join("grey.npy"))?;
    let network = model("100-100-l1-0.0005");
    let json = report(folder.path(), &[&network, "-o", "small.onnx", "--domain", "0,1", "--data", "grey.npy"])?;
    assert_eq!(json["accuracy"], serde_json::json!({"samples": 3, "changed": 0, "ties": 0, "outside": 0}));
    // A single output is no choice.
    Array::new(vec![2, 1], vec![0.0_f32, 1.0])?.save(&folder.path().join("x.npy"))?;
    let json = report(folder.path(), &["three.nnet", "-o", "small.onnx", "--domain", "0,1", "--data", "x.npy"])?;
    assert!(json.get("accuracy").is_none());
    Ok(())
}

/// On a box where outputs can be astronomical, what is left out may matter.
#[test]
fn a_box_that_is_too_large_is_warned_about() -> Anything {
    let folder = tempfile::tempdir()?;
    let network = model("100-100-l1-0.0005");
    let said = |domain: &str| printed(&leo(folder.path(), &[&network, "-o", "small.onnx", domain, "--force"]));
    assert!(!said("--domain=0,1")?.contains("beware"));
    let large = said("--domain=-1e9,1e9")?;
    assert!(large.contains("beware: ") && large.contains("--tolerance 0 leaves nothing out"), "{large}");
    Ok(())
}

/// What is not decided in time stays, and what was asked to stop writes nothing.
#[test]
fn limits_keep_units_and_ctrl_c_writes_nothing() -> Anything {
    let folder = tempfile::tempdir()?;
    let network = model("100-100-l1-0.0001");
    let json = report(folder.path(), &[&network, "-o", "small.onnx", "--domain", "0,1", "--time-limit", "0"])?;
    assert_eq!(json["stopped"], "time limit");
    let decided = 200 - json["undecided"].as_u64().ok_or("a number")?;
    assert!(removed(&json) <= decided as f64 / 2.0, "{json}");

    let mut command = command(folder.path(), &[&network, "-o", "none.onnx", "--domain", "0,1", "--engine", "milp"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    sleep(Duration::from_secs(2));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status()?;
    let output = child.wait_with_output()?;
    let complaint = String::from_utf8(output.stderr)?;
    assert_eq!((output.status.code(), complaint.as_str()), (Some(130), "leo: stopped; nothing was written\n"));
    assert!(!folder.path().join("none.onnx").exists());
    Ok(())
}
