//! `leo analyze`: verdicts, limits, and what other programs may rely on.

mod support;

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread::sleep;
use std::time::Duration;

use leo_formats::ArrayFile;
use leo_formats::Model;
use leo_network::{Array, Evaluator};
use serde_json::Value;

use support::{Anything, models, three_units};

fn command(folder: &Path, arguments: &[&str]) -> Command {
    support::command(folder, &[&["analyze"], arguments].concat())
}

fn analyze(folder: &Path, arguments: &[&str]) -> Output {
    support::leo(folder, &[&["analyze"], arguments].concat())
}

/// The report, for an exit code. Nothing but complaints goes to standard error, and here there is no terminal.
fn report(folder: &Path, arguments: &[&str], code: i32) -> Anything<Value> {
    let output = analyze(folder, &[arguments, &["--json"]].concat());
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(code), "{complaint}");
    assert_eq!(complaint.lines().count(), usize::from(code != 0), "{complaint}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// The units of all layers.
fn units(report: &Value) -> Vec<&Value> {
    let layers = report["layers"].as_array().into_iter().flatten();
    layers.flat_map(|layer| layer["units"].as_array().into_iter().flatten()).collect()
}

#[test]
fn every_unit_gets_a_verdict() -> Anything {
    insta::assert_snapshot!("help_analyze", String::from_utf8(analyze(Path::new("."), &["--help"]).stdout)?);
    let folder = three_units()?;
    let output = analyze(folder.path(), &["three.nnet", "--domain", "0,1"]);
    let printed = String::from_utf8(output.stdout)?;
    // The first table's last column is the time.
    let (kinds, rest) = printed.split_once("\n\n").ok_or("two tables")?;
    let without_time =
        |line: &str| line.trim_end_matches('|').rsplit_once('|').map_or(line.to_owned(), |(line, _)| line.to_owned());
    let kinds: Vec<String> = kinds.lines().map(without_time).collect();
    insta::assert_snapshot!("analyze", format!("{}\n\n{rest}", kinds.join("\n")));

    let json = report(folder.path(), &["three.nnet", "--domain", "0,1", "--witnesses"], 0)?;
    let statuses: Vec<_> = units(&json).iter().map(|unit| unit["status"].as_str().unwrap_or_default()).collect();
    assert_eq!(statuses, ["inactive", "active", "unstable"]);
    assert_eq!((&json["version"], &json["engine"], &json["stopped"]), (&1.into(), &"auto".into(), &Value::Null));
    assert_eq!(json["totals"]["by"], serde_json::json!({"interval": 2, "witness": 1}));
    assert!(units(&json).iter().all(|unit| unit["by"].is_string() && unit["lower"].as_f64() <= unit["upper"].as_f64()));
    let witnesses = &units(&json)[2]["witnesses"];
    assert!(witnesses["off"][0].as_f64() < Some(0.5) && witnesses["on"][0].as_f64() > Some(0.5), "{witnesses}");

    let output = analyze(&models().join("mnist"), &["25-25-l1-0-seed-0.onnx"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr)?.contains("give the inputs that matter: --domain LO,HI"));
    Ok(())
}

/// Every unit of the networks that ship is decided, and nothing that was proved is seen to fail.
#[test]
fn the_models_that_ship_are_decided() -> Anything {
    for entry in std::fs::read_dir(models().join("mnist"))? {
        let path = entry?.path();
        let name = path.to_string_lossy().into_owned();
        let json = report(Path::new("."), &[&name, "--domain", "0,1"], 0)?;
        assert_eq!(json["totals"]["undecided"], 0, "{name}");

        let model = Model::load(&path)?;
        let network = model.network();
        let mut state = 1_u64;
        let points: Vec<f64> = (0..64 * 784)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                f64::from((state >> 33) as u32 % 3) / 2.0
            })
            .collect();
        let evaluator = Evaluator::<f64>::new(network);
        let mut workspace = evaluator.workspace();
        let values = evaluator.forward(&mut workspace, &points);
        for layer in network.layers() {
            let units = json["layers"][layer.index()]["units"].as_array().ok_or("units")?;
            for row in values.get(network.pre_activation(layer)).chunks(units.len()) {
                for (unit, &number) in units.iter().zip(row) {
                    let bound = |key: &str| unit[key].as_f64().unwrap_or(f64::NAN);
                    assert!(
                        bound("lower") - 1e-9 <= number && number <= bound("upper") + 1e-9,
                        "{name}: {unit} at {number}"
                    );
                }
            }
        }
    }
    Ok(())
}

/// The paper's way comes to the same verdicts, unit by unit.
#[test]
fn mixed_integer_programs_agree() -> Anything {
    for model in ["25-25-l1-0-seed-0.onnx", "25-25-l1-0.0002-seed-0.onnx", "25-25-l1-0.001-seed-0.onnx"] {
        let statuses = |engine: &[&str]| -> Anything<Vec<Value>> {
            let json = report(&models().join("mnist"), &[&[model, "--domain", "0,1"], engine].concat(), 0)?;
            Ok(units(&json).iter().map(|unit| unit["status"].clone()).collect())
        };
        let auto = statuses(&[])?;
        assert_eq!(auto, statuses(&["--engine", "milp"])?, "{model}");
    }
    Ok(())
}

#[test]
fn limits_leave_the_rest_undecided() -> Anything {
    let network = "100-100-l1-0.0001-seed-0.onnx";
    let cases = [
        (&["--time-limit", "0"][..], "time limit"),
        (&["--memory-limit", "1"], "memory limit"),
        (&["--engine", "milp", "--time-limit", "0.5"], "time limit"),
    ];
    for (limit, stopped) in cases {
        let json = report(&models().join("mnist"), &[&[network, "--domain", "0,1"], limit].concat(), 1)?;
        assert_eq!(json["stopped"], stopped, "{limit:?}");
        let undecided = units(&json).iter().filter(|unit| unit["status"] == "undecided").count();
        assert_eq!((units(&json).len(), &json["totals"]["undecided"]), (200, &undecided.into()), "{limit:?}");
        assert!(undecided > 0 && units(&json).iter().all(|unit| unit["lower"].as_f64() < unit["upper"].as_f64()));
    }
    Ok(())
}

#[test]
fn ctrl_c_reports_what_is_decided() -> Anything {
    let arguments = ["100-100-l1-0.0001-seed-0.onnx", "--domain", "0,1", "--engine", "milp", "--json"];
    let mut command = command(&models().join("mnist"), &arguments);
    let child: Child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // Long enough for the first layer, and far too short for the second.
    sleep(Duration::from_secs(4));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status()?;
    let output = child.wait_with_output()?;
    let complaint = String::from_utf8(output.stderr)?;
    assert_eq!(output.status.code(), Some(130), "{complaint}");
    assert!(complaint.contains("undecided"), "{complaint}");
    let json: Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(json["stopped"], "interrupted");
    let decided = |layer: usize| {
        let units = json["layers"][layer]["units"].as_array().map(Vec::as_slice).unwrap_or_default();
        units.iter().filter(|unit| unit["status"] != "undecided").count()
    };
    assert_eq!(decided(0), 100);
    assert!(decided(1) < 100);
    Ok(())
}

#[test]
fn samples_are_inputs_to_begin_with() -> Anything {
    let folder = three_units()?;
    Array::new(vec![2, 1], vec![0.25_f64, 7.0])?.save(&folder.path().join("x.npy"))?;
    let json = report(folder.path(), &["three.nnet", "--domain", "0,1", "--data", "x.npy"], 0)?;
    assert_eq!(json["domain"]["upper"], serde_json::json!([1.0]), "the samples are not the domain");
    assert_eq!(json["samples"], serde_json::json!({"count": 2, "outside": 1}));
    let printed = analyze(folder.path(), &["three.nnet", "--domain", "0,1", "--data", "x.npy"]).stdout;
    assert!(String::from_utf8(printed)?.contains("\nbeware: 1 of 2 samples not in the domain"));
    let json = report(folder.path(), &["three.nnet", "--data", "x.npy"], 0)?;
    assert_eq!(json["domain"]["upper"], serde_json::json!([7.0]), "here they are");
    Array::new(vec![2, 3], vec![0.25_f32; 6])?.save(&folder.path().join("bad.npy"))?;
    Array::new(vec![2, 1], vec![0.5, f64::NAN])?.save(&folder.path().join("nan.npy"))?;
    for (file, why) in [("bad.npy", "[2, 3]"), ("nan.npy", "sample 1 has an entry that is not a number")] {
        let complaint = refusal(folder.path(), &["three.nnet", "--domain", "0,1", "--data", file])?;
        assert!(complaint.starts_with(&format!("leo: {file}: ")) && complaint.contains(why), "{complaint}");
    }
    Ok(())
}

/// What is said when the command line or a file is bad.
fn refusal(folder: &Path, arguments: &[&str]) -> Anything<String> {
    let output = analyze(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    Ok(String::from_utf8(output.stderr)?)
}

#[test]
fn numbers_that_make_no_sense_are_refused() -> Anything {
    let folder = three_units()?;
    let cases = [
        (&["--threads", "0"][..], "should be a whole number from 1 to 256"),
        (&["--threads", "100000"], "should be a whole number from 1 to 256"),
        (&["--time-limit", "-1"], "should be a number of seconds"),
        (&["--time-limit", "inf"], "should be a number of seconds"),
        (&["--memory-limit", "1G"], "should be a whole number"),
        (&["--engine", "bounds", "--trust-solver"], "there is no solver to trust"),
    ];
    for (arguments, why) in cases {
        let complaint = refusal(folder.path(), &[&["three.nnet", "--domain", "0,1"], arguments].concat())?;
        assert!(complaint.contains(why), "{arguments:?}: {complaint}");
    }
    Ok(())
}

#[test]
fn a_network_without_units_is_no_error() -> Anything {
    let folder = tempfile::tempdir()?;
    // One output, 2 x + 1.
    std::fs::write(folder.path().join("line.nnet"), "// a line\n1,1,1,1,\n1,1,\n0,\n0,\n1,\n0,0,\n1,1,\n2,\n1,\n")?;
    let output = analyze(folder.path(), &["line.nnet", "--domain", "0,1"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let printed = String::from_utf8(output.stdout)?;
    assert!(printed.ends_with("within [1, 3]\nthe network has no ReLU units\n"), "{printed}");
    Ok(())
}

/// A search that was given too little goes on where it ended, and comes to the same as one that was given enough.
#[test]
fn a_search_goes_on_from_a_file() -> Anything {
    let folder = tempfile::tempdir()?;
    let model = support::model("100-100-100-100-100-l1-0.0002");
    let search = ["--domain=-1,1", "--engine", "bounds", "--resume", "deep.search"];
    let arguments = |more: &[&'static str]| [&[model.as_str()][..], &search, more].concat();
    let first = report(folder.path(), &arguments(&["--node-limit", "4"]), 1)?;
    let undecided = |report: &Value| report["totals"]["undecided"].as_u64();
    assert!(undecided(&first) > Some(0), "{first}");
    let whole = report(folder.path(), &[&model, "--domain=-1,1", "--engine", "bounds"], 0)?;
    for _ in 0..2 {
        // The second time everything is known from the file.
        let second = report(folder.path(), &arguments(&[]), 0)?;
        let verdicts = |report| units(report).iter().map(|unit| unit["status"].clone()).collect::<Vec<_>>();
        assert_eq!(verdicts(&second), verdicts(&whole));
    }
    let output = support::leo(
        folder.path(),
        &["compress", &model, "--domain=-1,1", "--resume", "deep.search", "-o", "small.onnx", "-q"],
    );
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[test]
fn files_of_other_searches_are_refused() -> Anything {
    let folder = three_units()?;
    let model = "three.nnet";
    let written = report(folder.path(), &[model, "--domain", "0,1", "--resume", "a.search"], 0)?;
    assert_eq!(written["totals"]["undecided"], 0);
    let refusal = |arguments: &[&str]| refusal(folder.path(), arguments);
    assert!(refusal(&[model, "--domain", "0,2", "--resume", "a.search"])?.contains("another domain"));
    let other = support::model("25-25-l1-0.001");
    assert!(refusal(&[&other, "--domain", "0,1", "--resume", "a.search"])?.contains("another network"));
    assert!(refusal(&[model, "--domain", "0,1", "--resume", model])?.contains("would overwrite"));
    assert!(
        refusal(&[model, "--domain", "0,1", "--resume", "a.search", "--engine", "milp"])?.contains("--engine milp")
    );
    let text = std::fs::read_to_string(folder.path().join("a.search"))?;
    for broken in [
        "",
        "{}",
        "[]",
        &text[..text.len() / 2],
        &text.replace("leo search", "leo"),
        &text.replace("\"version\":2", "\"version\":1"),
    ] {
        std::fs::write(folder.path().join("b.search"), broken)?;
        refusal(&[model, "--domain", "0,1", "--resume", "b.search"])?;
    }
    Ok(())
}

/// Bounds alone: no unit is called unstable, none that stays open is a failure, and ranges are as narrow as a search's.
#[test]
fn bounds_alone_are_narrow_and_never_fail() -> Anything {
    let model = support::model("25-25-l1-0.0002");
    let searched = report(Path::new("."), &[&model, "--domain", "0,1"], 0)?;
    let on = |threads: &'static str| {
        report(Path::new("."), &[&model, "--domain", "0,1", "--bounds-only", "--threads", threads], 0)
    };
    let alone = on("1")?;
    assert_eq!((&alone["engine"], &alone["stopped"]), (&"bounds-only".into(), &Value::Null));
    assert_eq!(alone["totals"]["undecided"], searched["totals"]["unstable"]);
    assert_eq!(
        [&on("2")?["layers"][1]["lower"], &on("2")?["outputs"]],
        [&alone["layers"][1]["lower"], &alone["outputs"]]
    );
    let width = |report: &Value, list: &str, index: usize| {
        let side = |key: &str| report[list][index][key].as_array().into_iter().flatten().filter_map(Value::as_f64);
        side("upper").sum::<f64>() - side("lower").sum::<f64>()
    };
    assert!(width(&alone, "layers", 1) <= width(&searched, "layers", 1));
    assert!(width(&alone, "outputs", 0) < width(&searched, "outputs", 0));

    let hurried = report(Path::new("."), &[&model, "--domain", "0,1", "--bounds-only", "--time-limit", "0"], 0)?;
    assert_eq!(hurried["stopped"], "time limit");
    assert!(width(&alone, "outputs", 0) < width(&hurried, "outputs", 0));
    Ok(())
}

#[test]
fn bounds_alone_refuse_what_asks_for_a_search() -> Anything {
    let folder = three_units()?;
    for flags in [
        &["--engine", "milp"][..],
        &["--trust-solver"],
        &["--json", "--witnesses"],
        &["--node-limit", "9"],
        &["--resume", "a.search"],
    ] {
        let complaint = refusal(folder.path(), &[&["three.nnet", "--domain", "0,1", "--bounds-only"], flags].concat())?;
        assert!(complaint.contains("not with --bounds-only") && complaint.lines().count() == 1, "{complaint}");
    }
    Ok(())
}

/// The numbers of an array in a report.
fn numbers(list: &Value) -> Vec<f64> {
    list.as_array().into_iter().flatten().map(|number| number.as_f64().unwrap_or(f64::NAN)).collect()
}

/// The JSON, the arrays and the table hold the same numbers, and the JSON has a line for each layer and output.
#[test]
fn files_of_bounds_hold_the_same_numbers() -> Anything {
    let folder = tempfile::tempdir()?;
    let model = models().join("digits.onnx").to_string_lossy().into_owned();
    let files = ["-o", "bounds.npz", "-o", "bounds.csv", "--report", "page.html"];
    let arguments = [&[&model, "--domain", "0,1", "--bounds-only", "--json"][..], &files].concat();
    let printed = String::from_utf8(analyze(folder.path(), &arguments).stdout)?;
    let json: Value = serde_json::from_str(&printed)?;
    assert_eq!(printed.lines().filter(|line| line.starts_with("    {\"index\": ")).count(), 3, "{printed}");
    let (first, output) = (&json["layers"][0], &json["outputs"][0]);
    assert_eq!((&first["pre_activation"], &first["value"]), (&"add_result".into(), &"next_activations".into()));
    assert_eq!((&output["name"], &output["value"]), (&Value::Null, &"add_result2".into()), "a softmax comes after it");
    assert_eq!((&first["shape"], &output["shape"]), (&serde_json::json!([32]), &serde_json::json!([10])));

    let mut archive = zip::ZipArchive::new(std::fs::File::open(folder.path().join("bounds.npz"))?)?;
    let mut array = |name: String| -> Anything<Vec<f64>> {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut archive.by_name(&format!("{name}.npy"))?, &mut bytes)?;
        Ok(Array::from_bytes(&bytes)?.to_vec())
    };
    let table = std::fs::read_to_string(folder.path().join("bounds.csv"))?;
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0].join(","), "kind,index,name,value,element,lower,upper,status");
    assert_eq!(rows.len(), 1 + 64 + 48 + 10);
    let column = |kind: &str, index: usize, column: usize| -> Vec<&str> {
        let wanted = |row: &&Vec<&str>| row[0] == kind && row[1] == index.to_string();
        rows.iter().filter(wanted).map(|row| row[column]).collect()
    };
    for (side, place) in [("lower", 5), ("upper", 6)] {
        let parsed = |kind: &str, index: usize| -> Vec<f64> {
            column(kind, index, place).iter().filter_map(|text| text.parse().ok()).collect()
        };
        let input = numbers(&json["domain"][side]);
        assert_eq!([array(format!("input_{side}"))?, parsed("input", 0)], [input.clone(), input]);
        let found = numbers(&output[side]);
        assert_eq!([array(format!("output_{side}_0"))?, parsed("output", 0)], [found.clone(), found]);
        for layer in 0..2 {
            let found = numbers(&json["layers"][layer][side]);
            let units: Vec<f64> = units(&serde_json::json!({"layers": [json["layers"][layer]]}))
                .iter()
                .filter_map(|unit| unit[side].as_f64())
                .collect();
            assert_eq!(
                [array(format!("{side}_{layer}"))?, parsed("unit", layer), units],
                [(); 3].map(|()| found.clone())
            );
            assert_eq!(array(format!("status_{layer}"))?, numbers(&json["layers"][layer]["status"]));
        }
    }
    let words: Vec<&str> = units(&json).iter().filter_map(|unit| unit["status"].as_str()).collect();
    assert_eq!([column("unit", 0, 7), column("unit", 1, 7)].concat(), words);
    let page = std::fs::read_to_string(folder.path().join("page.html"))?;
    assert!(page.contains("output add_result2, 10 numbers, within ["));
    Ok(())
}

#[test]
fn files_of_bounds_overwrite_nothing() -> Anything {
    let folder = three_units()?;
    let arguments = |more: &[&'static str]| [&["three.nnet", "--domain", "0,1"], more].concat();
    assert!(refusal(folder.path(), &arguments(&["-o", "bounds.txt"]))?.contains("are written as .npz or as .csv"));
    assert!(refusal(folder.path(), &arguments(&["-o", "bounds"]))?.contains("are written as .npz or as .csv"));
    assert_eq!(analyze(folder.path(), &arguments(&["-o", "a.csv"])).status.code(), Some(0));
    let first = std::fs::read(folder.path().join("a.csv"))?;
    let there = refusal(folder.path(), &arguments(&["-o", "b.npz", "-o", "a.csv"]))?;
    assert!(there.contains("is there already; --force overwrites it"), "{there}");
    assert!(!folder.path().join("b.npz").exists(), "all or none");
    let twice = refusal(folder.path(), &arguments(&["-o", "c.csv", "-o", "./c.csv"]))?;
    assert!(twice.contains("would overwrite"), "{twice}");
    assert_eq!(analyze(folder.path(), &arguments(&["-o", "a.csv", "--force"])).status.code(), Some(0));
    assert_eq!(std::fs::read(folder.path().join("a.csv"))?, first, "the same search writes the same bytes");
    Ok(())
}
