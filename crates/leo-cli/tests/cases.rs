//! Files that Leo got wrong once, and networks that other people ship: what was wrong with each, and that it is no
//! more. They are no part of the project; where they are not beside it, in `shared/`, tests say so and are skipped.

mod support;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use fastrand::Rng;
use leo_formats::Model;
use leo_network::op::{AffineMap, Op};
use leo_network::{Domain, Evaluator, Network};
use serde_json::Value;

use support::{Anything, leo};

/// A file of `shared/`, if it is there.
fn shared(name: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(name);
    if !path.exists() {
        eprintln!("skipped: there is no shared/{name} beside the project");
    }
    path.exists().then_some(path)
}

/// What `leo compress` says of a file, as JSON; the smaller network is `small.onnx` in the folder.
fn compress(folder: &Path, model: &Path, options: &[&str]) -> Anything<Value> {
    let model = model.to_string_lossy();
    let fixed = ["compress", &*model, "-o", "small.onnx", "--json", "--force"];
    let output = leo(folder, &[&fixed[..], options].concat());
    assert!(output.status.success(), "{output:?}");
    let small = ["check", &*model, "small.onnx"];
    assert!(leo(folder, &small).status.success(), "the certificate of {model}");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Runs the program with so many kibibytes of memory to address.
fn with_memory(folder: &Path, kibibytes: usize, arguments: &[&str]) -> std::io::Result<Output> {
    let limited = format!("ulimit -v {kibibytes}; exec \"$0\" \"$@\"");
    Command::new("sh")
        .arg("-c")
        .arg(limited)
        .arg(env!("CARGO_BIN_EXE_leo"))
        .args(arguments)
        .current_dir(folder)
        .output()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(f64::NAN)
}

/// Random points of a domain, in single precision, corners among them.
fn points(domain: &Domain, count: usize) -> Vec<f32> {
    let mut random = Rng::with_seed(5);
    let mut points = Vec::new();
    for index in 0..count {
        for (&lo, &hi) in domain.hull().lo().iter().zip(domain.hull().hi()) {
            let share = if index % 2 == 0 { f64::from(u8::from(random.bool())) } else { random.f64() };
            points.push((lo + share * (hi - lo)) as f32);
        }
    }
    points
}

/// The largest error that single precision makes in the only output of a network at some points.
fn single_error(network: &Network, points: &[f32]) -> f64 {
    let precise: Vec<f64> = points.iter().copied().map(f64::from).collect();
    let (single, precise) = (Evaluator::<f32>::new(network).run(points), Evaluator::<f64>::new(network).run(&precise));
    single[0].iter().zip(&precise[0]).map(|(a, b)| (f64::from(*a) - b).abs()).fold(0.0, f64::max)
}

#[test]
fn what_decoders_see_differently_or_twice_is_refused() -> Anything {
    let folder = tempfile::tempdir()?;
    for (name, reason) in [
        ("t2.onnx", "is not an ONNX file that all programs read alike: graph is there twice"),
        ("dup.onnx", "constant \"W\" is there twice"),
        ("sx_quant.onnx", "reads numbers that were cut down to f16 and cast back"),
        ("ra100.onnx", "constants that are read again and again take too much room"),
    ] {
        let Some(path) = shared(&format!("cases/{name}")) else { continue };
        let path = path.to_string_lossy();
        let output =
            with_memory(folder.path(), 1 << 20, &["compress", &path, "-o", "small.onnx", "--domain", "0.5,1"])?;
        let said = String::from_utf8(output.stderr)?;
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(said.matches(reason).count() == 1 && said.lines().count() == 1, "{name}: {said}");
        assert!(!folder.path().join("small.onnx").exists(), "{name}");
    }
    Ok(())
}

/// A weight that is listed as an input, too, is a weight: that of the file.
#[test]
fn a_weight_that_could_be_replaced_is_the_weight_that_is_there() -> Anything {
    let Some(path) = shared("cases/ovr.onnx") else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let report = compress(folder.path(), &path, &["--domain", "0.5,1"])?;
    assert!(number(&report["listed_constants"]) >= 1.0, "{report}");
    Ok(())
}

#[test]
fn a_small_output_beside_a_large_one_keeps_its_digits() -> Anything {
    let Some(path) = shared("cases/mixed.onnx") else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let report = compress(folder.path(), &path, &["--domain", "0,1"])?;
    // Half a unit in the last place of single precision, or a little more, with the rounding of weights.
    assert!(number(&report["outputs"][0]["worst"]["relative"]) < 1e-6, "{report}");
    assert!(number(&report["after"]["units"]) < number(&report["before"]["units"]), "{report}");
    Ok(())
}

#[test]
fn a_bound_that_nothing_reaches_buys_no_tolerance() -> Anything {
    let Some(path) = shared("cases/canc.onnx") else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let report = compress(folder.path(), &path, &["--domain", "0,1"])?;
    assert!(number(&report["delta_parts"]["approximation"]) <= 2_f64.powi(-24), "{report}");
    Ok(())
}

/// Differences that are there are seen, and delta is within a hundred times of them; or the outputs are exactly what
/// they were.
#[test]
fn delta_is_near_what_is_seen() -> Anything {
    let folder = tempfile::tempdir()?;
    for (name, domain) in [
        ("mlperf-tiny-ad.onnx", None),
        ("acasxu-1-1.onnx", Some("networks/acasxu-1-1-property-1.vnnlib")),
        ("tll-8.onnx", Some("networks/tll-8.vnnlib")),
    ] {
        let Some(path) = shared(&format!("networks/{name}")) else { continue };
        let domain = match domain {
            Some(domain) => shared(domain).ok_or("its domain")?.to_string_lossy().into_owned(),
            None => "0,1".to_owned(),
        };
        let hull = if domain == "0,1" { &[][..] } else { &["--hull"] };
        let limit = ["--domain", &domain, "--time-limit", "20"];
        let report = compress(folder.path(), &path, &[&limit[..], hull].concat())?;
        let (delta, seen) = (number(&report["delta"]), number(&report["observed"]));
        assert!(number(&report["after"]["units"]) < 0.9 * number(&report["before"]["units"]), "{name}: {report}");
        assert!(delta == 0.0 || (seen > 0.0 && delta <= 100.0 * seen), "{name}: {delta:e} proved, {seen:e} seen");
    }
    Ok(())
}

#[test]
fn the_smaller_network_is_no_noisier_in_single_precision() -> Anything {
    let folder = tempfile::tempdir()?;
    for (name, domain) in [("tll-8.onnx", Some("networks/tll-8.vnnlib")), ("mlperf-tiny-ad.onnx", None)] {
        let Some(path) = shared(&format!("networks/{name}")) else { continue };
        let spec = match domain {
            Some(domain) => shared(domain).ok_or("its domain")?.to_string_lossy().into_owned(),
            None => "0,1".to_owned(),
        };
        let hull = if domain.is_some() { &["--hull"][..] } else { &[] };
        let limit = ["--domain", &spec, "--time-limit", "20"];
        let report = compress(folder.path(), &path, &[&limit[..], hull].concat())?;
        let bounds = |side: &str| -> Vec<f64> {
            report["domain"][side].as_array().into_iter().flatten().filter_map(Value::as_f64).collect()
        };
        let networks = [path, folder.path().join("small.onnx")].map(|path| Model::load(&path));
        let [before, after] = networks.map(|model| model.map(|model| model.network().clone()));
        let (before, after) = (before?, after?);
        let domain = Domain::new(bounds("lower"), bounds("upper"))?.for_inputs(before.input().elements())?;
        let points = points(&domain, 4096);
        let [old, new] = [&before, &after].map(|network| single_error(network, &points));
        println!("{name}: single precision is off by {old:e} before, {new:e} after");
        assert!(new <= 2.0 * old, "{name}: {old:e} before, {new:e} after");
    }
    Ok(())
}

#[test]
fn units_that_are_always_off_go_without_a_new_number() -> Anything {
    let (Some(path), Some(domain)) = (shared("networks/tll-8.onnx"), shared("networks/tll-8.vnnlib")) else {
        return Ok(());
    };
    let folder = tempfile::tempdir()?;
    let domain = domain.to_string_lossy();
    let options = ["--domain", &domain, "--hull", "--bit-exact", "--time-limit", "20"];
    let report = compress(folder.path(), &path, &options)?;
    assert_eq!(number(&report["delta"]), 0.0, "{report}");
    assert!(number(&report["removed"]["inactive"]) >= 40.0, "{report}");
    Ok(())
}

#[test]
fn wide_outputs_and_long_chains_take_what_their_files_do() -> Anything {
    let folder = tempfile::tempdir()?;
    for name in ["wide20000.onnx", "chain.onnx"] {
        let Some(path) = shared(&format!("cases/{name}")) else { continue };
        let path = path.to_string_lossy();
        let arguments = ["compress", &path, "-o", "small.onnx", "--force", "--domain", "0,1", "--threads", "2"];
        let output = with_memory(folder.path(), 1 << 20, &arguments)?;
        assert!(output.status.success(), "{name}: {output:?}");
    }
    Ok(())
}

#[test]
fn small_files_cannot_ask_for_much_work_or_memory() -> Anything {
    let folder = tempfile::tempdir()?;
    for (files, options) in
        [(["t1b.onnx", "t1bs.onnx", "bomb100.leo"], &[][..]), (["ex1.onnx", "ex2.onnx", "ex.leo"], &["--exact"])]
    {
        let paths: Vec<PathBuf> = files.iter().filter_map(|name| shared(&format!("cases/{name}"))).collect();
        let [first, second, certificate] = &paths[..] else { continue };
        let paths = [first, second, certificate].map(|path| path.to_string_lossy());
        let arguments = [&["check", &*paths[0], &paths[1], &paths[2]][..], options].concat();
        let output = with_memory(folder.path(), 1 << 20, &arguments)?;
        assert!(matches!(output.status.code(), Some(1 | 2)), "{files:?}: {output:?}");
    }
    Ok(())
}

/// Of the Visual Wake Words network of MLPerf Tiny, 1,528 of 2,736 channels are always off by plain intervals. Pruned
/// by hand, its convolutions have 29,536 weights of 207,600; other numbers are 3,250 before, and fewer after.
#[test]
fn a_network_that_is_mostly_dead_weight_shrinks() -> Anything {
    let Some(path) = shared("networks/mlperf-tiny-vww.onnx") else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    for (domain, align, most) in
        [("0,1", "4", 30_600.0), ("0,1", "1", 29_600.0), ("-1,1", "4", 30_600.0), ("0,255", "4", 30_600.0)]
    {
        let domain = format!("--domain={domain}");
        let report = compress(folder.path(), &path, &[&domain, "--align", align])?;
        let small = Model::load(&folder.path().join("small.onnx"))?;
        let convolutions = small.network().nodes().iter().filter_map(|node| match node.op() {
            Op::Affine(AffineMap::Convolution(map)) => Some(map.weights().len()),
            _ => None,
        });
        let weights = convolutions.sum::<usize>() as f64;
        assert!(weights <= most, "{domain}, multiples of {align}: {weights} weights");
        for output in report["outputs"].as_array().ok_or("outputs")? {
            let half_ulp = number(&output["worst"]["relative"]) * f64::from(1 << 24);
            assert!(half_ulp <= 1.0, "{domain}: moves by {half_ulp} half ulps");
        }
        assert!(number(&report["certificate_bytes"]) < 100_000.0, "{report}");
        let model = path.to_string_lossy();
        let checked = leo(folder.path(), &["check", &model, "small.onnx", "--exact"]);
        assert!(checked.status.success(), "{checked:?}");
    }
    Ok(())
}

/// What is claimed of single precision is of all that a runtime may do, and so of what ONNX Runtime does.
#[test]
fn single_precision_moves_no_output_further_than_is_proved() -> Anything {
    let Some(path) = shared("networks/mlperf-tiny-vww.onnx") else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    compress(folder.path(), &path, &["--domain", "0,1"])?;
    let certificate: Value = serde_json::from_slice(&std::fs::read(folder.path().join("small.leo"))?)?;
    let delta = certificate["delta_f32"].as_array().ok_or("an average pool is plain enough")?;
    let most = |bound: &Value| bound.as_array().map_or(number(bound), |all| all.iter().map(number).fold(0.0, f64::max));
    let most = delta.iter().map(most).fold(0.0, f64::max);
    let Ok(interpreter) = std::env::var("LEO_PYTHON") else { return Ok(()) };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crosscheck/formats.py");
    let files = [path.to_string_lossy().into_owned(), "small.onnx".to_owned()];
    let shape = ["0", "1", "1,96,96,3"].map(str::to_owned);
    let mut run = Command::new(interpreter);
    let output = run.arg(script).arg("compare").args(files).args(shape).current_dir(folder.path()).output()?;
    assert!(output.status.success(), "{output:?}");
    let apart: f64 = String::from_utf8(output.stdout)?.trim().parse()?;
    println!("{apart:e} apart in ONNX Runtime, {most:e} proved");
    assert!(apart <= most && most.is_finite(), "{apart:e} apart, {most:e} proved");
    Ok(())
}

#[test]
fn convolutional_networks_that_people_ship_are_taken() -> Anything {
    let folder = tempfile::tempdir()?;
    for (name, domain, least) in [
        ("mlperf-tiny-resnet8", "0,255", 0.0),
        ("mlperf-tiny-resnet8-large", "0,255", 22.0),
        ("mlperf-tiny-kws", "-100,100", 0.0),
        ("mnist-cnn", "0,1", 0.0),
    ] {
        let Some(path) = shared(&format!("networks/{name}.onnx")) else { continue };
        let report = compress(folder.path(), &path, &[&format!("--domain={domain}"), "--align", "1"])?;
        let removed: f64 = report["removed"].as_object().ok_or("an object")?.values().map(number).sum();
        assert!(removed >= least, "{name}: {removed} channels");
        let model = path.to_string_lossy();
        let checked = leo(folder.path(), &["check", &model, "small.onnx"]);
        assert!(checked.status.success(), "{name}: {checked:?}");
        let same = leo(folder.path(), &["equiv", &model, "small.onnx", &format!("--domain={domain}")]);
        assert!(same.status.success(), "{name}: {same:?}");
    }
    Ok(())
}

/// Asked for the paper's programs, it must not seem to have used them.
#[test]
fn programs_of_a_solver_know_no_convolutions() -> Anything {
    let Some(path) = shared("networks/mnist-cnn.onnx") else { return Ok(()) };
    let folder = tempfile::tempdir()?;
    let output = leo(folder.path(), &["analyze", &path.to_string_lossy(), "--domain", "0,1", "--engine", "milp"]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    Ok(())
}
