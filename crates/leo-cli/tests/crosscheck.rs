//! Leo against the programs that people use: ONNX's own checker, ONNX Runtime, scikit-learn and PyTorch.
//!
//! `make test` installs them into a Python environment and names its interpreter in LEO_PYTHON. Without that variable
//! the tests that need it say so and stop; the files that PyTorch exported come with the project.

use std::path::{Path, PathBuf};
use std::process::Command;

use leo_formats::ArrayFile;
use leo_formats::onnx::{Document, Part};
use leo_formats::{Format, Model};
use leo_network::op::{Dense, Matrix, Relu};
use leo_network::{Array, Network, ValueId};

#[path = "crosscheck/mutants.rs"]
mod mutants;

use mutants::mutants;

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn scripts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/crosscheck")
}

/// Runs one of the scripts, or says that it cannot.
fn python(script: &str, arguments: &[PathBuf]) -> Anything<Option<String>> {
    let Ok(interpreter) = std::env::var("LEO_PYTHON") else {
        eprintln!("skipped: LEO_PYTHON names no Python with ONNX Runtime; `make test` makes one");
        return Ok(None);
    };
    let output = Command::new(interpreter).arg(scripts().join(script)).args(arguments).output()?;
    let (printed, errors) = (String::from_utf8(output.stdout)?, String::from_utf8(output.stderr)?);
    if output.status.success() { Ok(Some(printed)) } else { Err(format!("{script}: {printed}{errors}").into()) }
}

fn leo(arguments: &[&str]) -> Anything {
    let output = Command::new(assert_cmd::cargo::cargo_bin!("leo")).args(arguments).output()?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8(output.stderr)?.into()) }
}

/// `leo run`, with its answer compared to `expected`.
fn assert_runs_like(model: &Path, samples: &Path, output: Option<&str>, expected: &Path, tolerance: f64) -> Anything {
    let found = tempfile::NamedTempFile::with_suffix(".npy")?;
    let [model, samples, target] = [model, samples, found.path()].map(|path| path.to_string_lossy().into_owned());
    let mut arguments = vec!["run", &model, "--input", &samples, "--output", &target];
    arguments.extend(output.iter().flat_map(|name| ["--output-name", name]));
    leo(&arguments)?;
    assert_close(&Array::load(found.path())?, &Array::load(expected)?, tolerance, &model);
    Ok(())
}

/// The same shape, and every number within `tolerance` of the largest.
fn assert_close(found: &Array, expected: &Array, tolerance: f64, what: &str) {
    assert_eq!(found.shape(), expected.shape(), "{what}");
    let scale = expected.iter().fold(0.0_f64, |scale, value| scale.max(value.abs()));
    for (found, expected) in found.iter().zip(expected.iter()) {
        assert!((found - expected).abs() <= tolerance * scale, "{what}: {found}, not {expected}");
    }
}

#[test]
fn models_of_many_shapes_agree_with_onnx_runtime() -> Anything {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let Some(manifest) = python("models.py", &[folder.path().to_owned()])? else { return Ok(()) };
    let mut pairs = Vec::new();
    for line in manifest.lines() {
        let [name, output, tolerance] = line.split('\t').collect::<Vec<_>>()[..] else { return Err(line.into()) };
        let model = path(&format!("{name}.onnx"));
        let [samples, expected] = ["x", "y"].map(|which| path(&format!("{name}.{which}.npy")));
        assert_runs_like(&model, &samples, Some(output), &expected, tolerance.parse()?)?;

        let written = path(&format!("{name}.written.onnx"));
        leo(&["convert", &model.to_string_lossy(), "--output", &written.to_string_lossy()])?;
        assert_eq!(Model::load(&written)?.network(), Model::load(&model)?.network(), "{name}");
        pairs.extend([model, written]);
    }
    assert!(pairs.len() >= 2 * 30, "{} models", pairs.len() / 2);
    python("compare.py", &pairs)?;
    Ok(())
}

#[test]
fn models_exported_by_pytorch_agree_with_pytorch() -> Anything {
    let mut count = 0;
    let folder = scripts().join("exported");
    for entry in std::fs::read_dir(&folder)? {
        let model = entry?.path();
        if model.extension().is_none_or(|suffix| suffix != "onnx") {
            continue;
        }
        let [samples, expected] = ["x.npy", "y.npy"].map(|suffix| model.with_extension(suffix));
        assert_runs_like(&model, &samples, None, &expected, 1e-5)?;
        count += 1;
    }
    assert_eq!(count, 10);
    Ok(())
}

/// What Leo writes anew, ONNX Runtime must run: a whole network, or a part with more units, put into files of every
/// layout.
#[test]
fn what_leo_rewrites_runs_in_onnx_runtime() -> Anything {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let Some(manifest) = python("models.py", &[folder.path().to_owned()])? else { return Ok(()) };
    let mut runs = Vec::new();
    let (mut anew, mut doubled) = (0, 0);
    // A name with a dot is another output of the same file.
    for name in manifest.lines().filter_map(|line| line.split('\t').next()).filter(|name| !name.contains('.')) {
        let model = Model::load(&path(&format!("{name}.onnx")))?;
        let Format::Onnx(document) = model.format() else { return Err(name.into()) };
        let network = document.network();
        let whole = Part { from: ValueId::INPUT, to: network.outputs().to_vec(), network: network.clone() };
        let whole = document.splice(&[whole], None).ok().map(|spliced| spliced.made);
        let part = with_units_doubled(document)?;
        anew += usize::from(whole.is_some());
        doubled += usize::from(part.is_some());
        for (kind, rewritten) in [("whole", whole), ("part", part)] {
            let Some(rewritten) = rewritten else { continue };
            let written = path(&format!("{name}.{kind}.onnx"));
            std::fs::write(&written, rewritten.to_bytes()?)?;
            runs.push((name, [written, path(&format!("{name}.x.npy")), path(&format!("{name}.{kind}.npy"))]));
        }
    }
    // The others have the batch somewhere else than first at an output, or no two dense maps around a ReLU.
    assert!(anew >= 30 && doubled >= 12, "{anew} networks written anew, {doubled} parts");
    assert_run_alike(folder.path(), &runs)
}

/// Runs rewritten models in ONNX Runtime, each with its samples and a place for its outputs, which are to be those of
/// the model with this name.
fn assert_run_alike(folder: &Path, runs: &[(&str, [PathBuf; 3])]) -> Anything {
    python("run.py", &runs.iter().flat_map(|(_, paths)| paths.clone()).collect::<Vec<_>>())?;
    for (name, [written, _, outputs]) in runs {
        let first = folder.join(format!("{name}.y.npy"));
        let tolerance = if name.starts_with("halves") { 1e-2 } else { 1e-5 };
        // scikit-learn's files have their label first, which is no number to compare.
        if !name.starts_with("sklearn") {
            assert_close(&Array::load(outputs)?, &Array::load(&first)?, tolerance, &written.to_string_lossy());
        }
    }
    Ok(())
}

/// What Leo makes smaller, ONNX Runtime must run, with the same answers: files of every layout, as they are and with
/// units that are there twice.
#[test]
fn what_leo_compresses_runs_in_onnx_runtime() -> Anything {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let Some(manifest) = python("models.py", &[folder.path().to_owned()])? else { return Ok(()) };
    let mut runs = Vec::new();
    let (mut smaller, mut halved) = (0, 0);
    for name in manifest.lines().filter_map(|line| line.split('\t').next()).filter(|name| !name.contains('.')) {
        let before = path(&format!("{name}.onnx"));
        let samples = path(&format!("{name}.x.npy"));
        let Format::Onnx(document) = Model::load(&before)?.format().clone() else { return Err(name.into()) };
        let units = |network: &Network| network.hidden().iter().sum::<usize>();
        let mut files = vec![(before.clone(), units(document.network()))];
        if let Some(doubled) = with_units_doubled(&document)? {
            let written = path(&format!("{name}.doubled.onnx"));
            std::fs::write(&written, doubled.to_bytes()?)?;
            let layer = doubled.network().nodes().iter().find(|node| node.name() == "doubled").ok_or("its layer")?;
            files.push((written, units(doubled.network()) - layer.shape().elements() / 2));
        }
        for (index, (file, many)) in files.iter().enumerate() {
            for (kind, options) in [("full", &[][..]), ("leo", &["--method", "leo"]), ("double", &["--dtype", "f64"])] {
                let written = path(&format!("{name}.{index}.{kind}.onnx"));
                let [from, to, data] = [file, &written, &samples].map(|path| path.to_string_lossy().into_owned());
                let arguments = ["compress", &from, "-o", &to, "--data", &data, "--margin", "0.25"];
                leo(&[&arguments[..], options].concat())?;
                let few = units(Model::load(&written)?.network());
                smaller += usize::from(index == 0 && few < *many);
                if index == 1 && kind != "leo" {
                    assert!(few <= *many, "{name}: {few} units, not {many}");
                    halved += 1;
                }
                let outputs = path(&format!("{name}.{index}.{kind}.npy"));
                runs.push((name, [written, samples.clone(), outputs]));
            }
        }
    }
    assert!(smaller >= 15 && halved >= 24, "{smaller} became smaller, and {halved} of those with more units");
    assert_run_alike(folder.path(), &runs)
}

/// Random networks of all operators with windows: as ONNX Runtime computes them, and smaller with the same answers.
/// (Set LEO_CONVOLUTIONS for more of them.)
#[test]
fn convolutional_networks_agree_with_onnx_runtime() -> Anything {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let count = std::env::var("LEO_CONVOLUTIONS").unwrap_or_else(|_| "120".to_owned());
    let Some(names) = python("convolutions.py", &[folder.path().to_owned(), PathBuf::from(&count)])? else {
        return Ok(());
    };
    let (mut runs, mut cases, mut singles, mut smaller, mut parts) = (Vec::new(), Vec::new(), Vec::new(), 0, 0);
    for (index, name) in names.lines().enumerate() {
        let [before, after] = ["onnx", "small.onnx"].map(|suffix| path(&format!("{name}.{suffix}")));
        let [samples, expected] = ["x", "y"].map(|which| path(&format!("{name}.{which}.npy")));
        assert_runs_like(&before, &samples, None, &expected, 1e-5)?;
        let [from, to] = [&before, &after].map(|path| path.to_string_lossy().into_owned());
        let align = (1 + index % 4).to_string();
        leo(&["compress", &from, "-o", &to, "--domain=-1,1", "--align", &align])?;
        leo(&["check", &from, &to, "--exact"])?;
        let units =
            |path: &Path| Ok::<usize, Box<dyn std::error::Error>>(Model::load(path)?.network().hidden().iter().sum());
        smaller += usize::from(units(&after)? < units(&before)?);
        let certificate = path(&format!("{name}.small.leo"));
        parts += usize::from(std::fs::read_to_string(&certificate)?.contains("\"part\""));
        cases.extend(mutants(&certificate, index)?.into_iter().map(|changed| [before.clone(), after.clone(), changed]));
        cases.push([before, after.clone(), certificate]);
        singles.push((path(&format!("{name}.small.leo")), expected, path(&format!("{name}.small.npy"))));
        runs.push((name, [after, samples, path(&format!("{name}.small.npy"))]));
    }
    assert_checkers_agree(folder.path(), &cases)?;
    println!("{} cases of {} networks, {parts} of which have a dense part that was rewritten", cases.len(), runs.len());
    assert!(parts * 10 > runs.len(), "{parts} of {} have a dense part that was rewritten", runs.len());
    assert!(runs.len().to_string() == count && smaller * 2 > runs.len(), "{smaller} of {} got smaller", runs.len());
    assert_run_alike(folder.path(), &runs)?;
    let mut claimed = 0;
    for (certificate, before, after) in &singles {
        claimed += usize::from(is_within_single(certificate, &Array::load(before)?, &Array::load(after)?)?);
    }
    // The others have batch normalisation.
    assert!(claimed * 3 > singles.len(), "{claimed} of {} say something of single precision", singles.len());
    Ok(())
}

/// Whether a certificate says how far outputs in single precision are apart; and it holds of those of ONNX Runtime.
fn is_within_single(certificate: &Path, before: &Array, after: &Array) -> Anything<bool> {
    let certificate: serde_json::Value = serde_json::from_slice(&std::fs::read(certificate)?)?;
    let Some(delta) = certificate["delta_f32"].get(0) else { return Ok(false) };
    let width = before.shape().last().copied().ok_or("an axis")?;
    for (index, (before, after)) in before.iter().zip(after.iter()).enumerate() {
        let most = delta.as_f64().or_else(|| delta.get(index % width)?.as_f64()).ok_or("a number")?;
        assert!((before - after).abs() <= most, "{before} and {after}: {most:e} is proved");
    }
    Ok(true)
}

/// What `leo check` and tools/check.py say of each triple of a network, a smaller one and a certificate.
fn assert_checkers_agree(folder: &Path, cases: &[[PathBuf; 3]]) -> Anything {
    let list = folder.join("cases");
    let line = |paths: &[PathBuf; 3]| paths.each_ref().map(|path| path.to_string_lossy()).join("\t");
    std::fs::write(&list, cases.iter().map(line).collect::<Vec<_>>().join("\n"))?;
    let checker = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/check.py");
    let interpreter = std::env::var("LEO_PYTHON")?;
    let output = Command::new(interpreter).arg(checker).arg("--batch").arg(&list).output()?;
    let answers = String::from_utf8(output.stdout)?;
    let (mut verified, mut rounded) = (0, 0);
    for (case, answer) in cases.iter().zip(answers.lines()) {
        let [first, second, certificate] = case.each_ref().map(|path| path.as_os_str());
        let check = |options: &[&str]| -> Anything<Option<i32>> {
            let mut leo = Command::new(assert_cmd::cargo::cargo_bin!("leo"));
            Ok(leo.arg("check").args([first, second, certificate]).args(options).output()?.status.code())
        };
        let is_mutant = case[2].file_name().is_some_and(|name| name.to_string_lossy().matches('.').count() > 2);
        let mut code = check(&[])?;
        let said = ["verified", "refused", "broken"].iter().position(|word| answer.split('\t').next() == Some(word));
        if code == Some(1) && said == Some(0) && is_mutant {
            // Of a mutant, doubles may prove less than exact numbers do.
            code = check(&["--exact"])?;
            rounded += 1;
        }
        assert_eq!(code, said.map(|code| code as i32), "{case:?}: the other checker says {answer}");
        verified += usize::from(code == Some(0));
    }
    assert!(answers.lines().count() == cases.len() && verified < cases.len(), "{answers}");
    println!("{verified} of {} verified, {rounded} of them in exact numbers alone", cases.len());
    assert!(100 * rounded <= cases.len(), "{rounded} of {} are verified in exact numbers alone", cases.len());
    Ok(())
}

/// The networks that ship give the same answers in ONNX Runtime when they are smaller, and sooner. How much sooner is
/// printed, not asserted.
#[test]
fn smaller_networks_are_faster_in_onnx_runtime() -> Anything {
    let folder = tempfile::tempdir()?;
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../models/mnist");
    let samples = folder.path().join("x.npy");
    let pixels = (0..32 * 784_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 24) as f32 / 255.0);
    Array::new(vec![32, 784], pixels.collect::<Vec<f32>>())?.save(&samples)?;
    let (mut runs, mut pairs) = (Vec::new(), Vec::new());
    for name in ["25-25-l1-0.001", "50-50-l1-0.001", "100-100-l1-0.0005"] {
        let before = models.join(format!("{name}-seed-0.onnx"));
        let after = folder.path().join(format!("{name}.onnx"));
        let [from, to] = [&before, &after].map(|path| path.to_string_lossy().into_owned());
        leo(&["compress", &from, "-o", &to, "--domain", "0,1"])?;
        for file in [&before, &after] {
            let outputs = folder.path().join(format!("{}.npy", runs.len()));
            runs.push([file.clone(), samples.clone(), outputs]);
        }
        pairs.extend([before, after]);
    }
    if python("run.py", &runs.concat())?.is_none() {
        return Ok(());
    }
    for pair in runs.chunks(2) {
        let [before, after] = [&pair[0][2], &pair[1][2]].map(|path| Array::load(path));
        assert_close(&after?, &before?, 1e-5, &pair[1][0].to_string_lossy());
    }
    let printed = python("speed.py", &pairs)?.unwrap_or_default();
    assert_eq!(printed.lines().count(), 6, "{printed}");
    println!("network, batch, microseconds a sample before, after, ratio\n{printed}");
    Ok(())
}

/// The model with every unit of a hidden layer there twice, each counted half by the next layer; `None` where no layer
/// is a dense map, a ReLU and another dense map.
fn with_units_doubled(document: &Document) -> Anything<Option<Document>> {
    let network = document.network();
    let node = |value: ValueId| value.node().map(|index| &network.nodes()[index]);
    let second = network.nodes().iter().position(|node| {
        node.op().has_sums() && {
            let operand = node.operands()[0];
            operand.node().is_some_and(|index| network.nodes()[index].op().is_layer())
        }
    });
    let Some(second) = second else { return Ok(None) };
    let relu = network.nodes()[second].operands()[0];
    let Some(pre) = node(relu).map(|relu| relu.operands()[0]) else { return Ok(None) };
    let (Some(first), Some(last)) =
        (node(pre).and_then(|node| node.op().as_dense()), network.nodes()[second].op().as_dense())
    else {
        return Ok(None);
    };
    let Some(input) = node(pre).map(|node| node.operands()[0]) else { return Ok(None) };
    if network.outputs().contains(&relu)
        || document.name_of(network.result_of(second)).is_none()
        || document.name_of(input).is_none()
    {
        return Ok(None);
    }

    let weight = first.weight();
    let twice = Matrix::new(2 * weight.rows(), weight.columns(), weight.values().repeat(2))?;
    let halved = |row: usize| last.weight().row(row).iter().map(|value| value / 2.0).collect::<Vec<f64>>().repeat(2);
    let rows = last.weight().rows();
    let halves = Matrix::new(rows, 2 * weight.rows(), (0..rows).flat_map(halved).collect())?;
    let mut part = Network::builder(network.shape(input).clone());
    let g = part.add("doubled", Dense::new(twice, first.bias().map(|bias| bias.repeat(2)))?, &[ValueId::INPUT])?;
    let h = part.add("", Relu, &[g])?;
    let y = part.add("halved", Dense::new(halves, last.bias().map(<[f64]>::to_vec))?, &[h])?;
    let part = Part { from: input, to: vec![network.result_of(second)], network: part.finish(vec![y])? };
    Ok(Some(document.splice(&[part], None)?.made))
}

#[test]
fn nnet_files_become_onnx_files() -> Anything {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let text = "2,2,1,2,\n2,2,1,\n0,\n-1,-2,\n1,2,\n0.5,1,10,\n2,4,3,\n1,0,\n0,-1,\n0.25,\n0,\n1,2,\n-1,\n";
    std::fs::write(path("net.nnet"), text)?;
    leo(&["convert", &path("net.nnet").to_string_lossy(), "--output", &path("net.onnx").to_string_lossy()])?;
    Array::new(vec![1, 2], vec![1.5_f64, -3.0])?.save(&path("x.npy"))?;
    if python("run.py", &[path("net.onnx"), path("x.npy"), path("y.npy")])?.is_some() {
        assert_eq!(Array::load(&path("y.npy"))?.iter().collect::<Vec<_>>(), [15.25]);
    }
    Ok(())
}

/// What `leo analyze` prints keeps to its schema, NumPy reads the same numbers, and in ONNX Runtime the values that it
/// names are where it says.
#[test]
fn analyses_keep_to_their_schema_and_name_values_of_the_file() -> Anything {
    let folder = tempfile::tempdir()?;
    let path = |name: &str| folder.path().join(name);
    let Some(manifest) = python("models.py", &[folder.path().to_owned()])? else { return Ok(()) };
    let mut arguments = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/analysis.schema.json")];
    let names = manifest.lines().filter_map(|line| line.split('\t').next()).filter(|name| !name.contains('.'));
    for (index, name) in names.enumerate() {
        let [model, samples] = ["onnx", "x.npy"].map(|suffix| path(&format!("{name}.{suffix}")));
        let [report, bounds] = ["json", "npz"].map(|suffix| path(&format!("{name}.{suffix}")));
        let mode = [&["--bounds-only"][..], &["--witnesses"], &["--engine", "bounds"]][index % 3];
        let texts = [&model, &samples, &bounds].map(|path| path.to_string_lossy().into_owned());
        let request = ["analyze", &texts[0], "--data", &texts[1], "--json", "--output", &texts[2]];
        let output = Command::new(assert_cmd::cargo::cargo_bin!("leo")).args([&request[..], mode].concat()).output()?;
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
        std::fs::write(&report, output.stdout)?;
        arguments.extend([model, samples, report, bounds]);
    }
    let printed = python("analysis.py", &arguments)?.unwrap_or_default();
    let counts = printed.split_whitespace().map(str::parse).collect::<Result<Vec<usize>, _>>()?;
    assert!(counts[0] >= 30 && counts[1] >= 60, "{printed}: networks, and values that were looked at");
    Ok(())
}
