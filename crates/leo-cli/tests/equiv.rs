//! `leo equiv`: what is equal, what is not, what it cannot tell, and what other programs may rely on.

mod support;

use std::path::Path;
use std::process::Output;

use leo_formats::ArrayFile;
use leo_formats::Model;
use leo_formats::onnx::proto::{ModelProto, StringStringEntryProto};
use leo_network::Array;
use prost::Message;
use serde_json::Value;

use support::{Anything, leo, model, models, printed};

fn equiv(folder: &Path, files: [&str; 2], options: &[&str]) -> Output {
    leo(folder, &[&["equiv", files[0], files[1]], options].concat())
}

/// The report of a comparison, and its exit code.
fn report(folder: &Path, files: [&str; 2], options: &[&str]) -> Anything<(Value, Option<i32>)> {
    let output = equiv(folder, files, &[options, &["--json"]].concat());
    let complaint = String::from_utf8_lossy(&output.stderr);
    let json = serde_json::from_slice(&output.stdout).map_err(|error| format!("{files:?}: {error}: {complaint}"))?;
    Ok((json, output.status.code()))
}

/// An NNet file with inputs from [0, 1] and one output: weights and biases of each layer.
fn nnet(inputs: usize, layers: &[(&[&[f64]], &[f64])]) -> String {
    let listed = |numbers: &[f64]| numbers.iter().map(|number| format!("{number},")).collect::<String>() + "\n";
    let sizes: Vec<f64> =
        std::iter::once(inputs).chain(layers.iter().map(|(_, bias)| bias.len())).map(|size| size as f64).collect();
    let mut text = format!("// made by hand\n{},{inputs},1,9,\n{}0,\n", layers.len(), listed(&sizes));
    for (number, count) in [(0.0, inputs), (1.0, inputs), (0.0, inputs + 1), (1.0, inputs + 1)] {
        text += &listed(&vec![number; count]);
    }
    for (rows, bias) in layers {
        rows.iter().for_each(|row| text += &listed(row));
        bias.iter().for_each(|bias| text += &listed(&[*bias]));
    }
    text
}

/// Files to compare: three units on [0, 1], one of them off, one on; the same without the one that is off; and with a
/// weight that is a little larger.
fn small_files() -> Anything<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text);
    write("three.nnet", nnet(1, &[(&[&[-1.0], &[1.0], &[1.0]], &[-1.0, 1.0, -0.5]), (&[&[1.0, 1.0, 1.0]], &[0.0])]))?;
    write("two.nnet", nnet(1, &[(&[&[1.0], &[1.0]], &[-0.5, 1.0]), (&[&[1.0, 1.0]], &[0.0])]))?;
    write("more.nnet", nnet(1, &[(&[&[1.0], &[1.0]], &[-0.5, 1.0]), (&[&[1.0, 1.25]], &[0.0])]))?;
    Ok(folder)
}

#[test]
fn every_model_equals_what_it_is_compressed_to() -> Anything {
    let folder = tempfile::tempdir()?;
    let mut files: Vec<String> = Vec::new();
    for entry in std::fs::read_dir(models().join("mnist"))? {
        files.push(entry?.path().to_string_lossy().into_owned());
    }
    files.push(models().join("digits.onnx").to_string_lossy().into_owned());
    assert!(files.len() > 10);
    for file in &files {
        for options in [&[][..], &["--dtype", "f64"]] {
            let compress = ["compress", file, "-o", "small.onnx", "--domain", "0,1", "--json", "--force"];
            let output = leo(folder.path(), &[&compress[..], options].concat());
            let delta = serde_json::from_slice::<Value>(&output.stdout)?["delta"].as_f64().ok_or("a number")?;
            for pair in [[file.as_str(), "small.onnx"], ["small.onnx", file]] {
                let (json, code) = report(folder.path(), pair, &["--domain", "0,1"])?;
                assert_eq!((&json["verdict"], code), (&"equal".into(), Some(0)), "{pair:?}: {json}");
                let [proved, seen] = ["proved", "seen"].map(|key| json[key].as_f64().unwrap_or(f64::NAN));
                assert!(seen <= proved && proved <= 4.0 * delta + 1e-12, "{pair:?}: {proved:e}, and not {delta:e}");
            }
        }
    }
    Ok(())
}

#[test]
fn the_verdict_is_one_sentence() -> Anything {
    insta::assert_snapshot!("help_equiv", String::from_utf8(leo(Path::new("."), &["equiv", "--help"]).stdout)?);
    let folder = small_files()?;
    let output = equiv(folder.path(), ["three.nnet", "two.nnet"], &[]);
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0));
    insta::assert_snapshot!("equiv_equal", printed(&output)?);

    let output = equiv(folder.path(), ["three.nnet", "more.nnet"], &["--counterexample", "input.npy"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(String::from_utf8(output.stderr.clone())?, "leo: the networks are different\n");
    insta::assert_snapshot!("equiv_different", printed(&output)?);
    // The input shows it.
    let input = Array::load(&folder.path().join("input.npy"))?;
    assert_eq!(input.shape(), [1, 1]);
    let outputs = ["three.nnet", "more.nnet"].map(|name| Model::load(&folder.path().join(name)));
    let [a, b] = outputs;
    let [a, b] = [a?.run(&input, None)?, b?.run(&input, None)?].map(|outputs| outputs.to_vec::<f64>()[0]);
    assert!((a - b).abs() > 0.4, "{a} and {b}");

    let output = equiv(folder.path(), ["three.nnet", "more.nnet"], &["--counterexample", "./more.nnet"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr)?.contains("--counterexample ./more.nnet: would overwrite more.nnet"));

    // What differs by less than is tolerated is equal, as far as that goes.
    let (json, code) = report(folder.path(), ["three.nnet", "more.nnet"], &["--tolerance", "0.75"])?;
    assert_eq!((&json["verdict"], code), (&"equal".into(), Some(0)));
    assert_eq!(json["outputs"][0]["tolerance"], 0.75);
    Ok(())
}

#[test]
fn networks_of_other_seeds_are_different() -> Anything {
    let folder = tempfile::tempdir()?;
    let files = [model("25-25-l1-0"), model("25-25-l1-0.0002")];
    let (json, code) = report(folder.path(), [&files[0], &files[1]], &["--domain", "0,1"])?;
    assert_eq!((&json["verdict"], code), (&"different".into(), Some(1)));
    // How different is between what is seen and what is proved.
    let [proved, seen] = ["proved", "seen"].map(|key| json[key].as_f64().unwrap_or(f64::NAN));
    assert!(seen > 1.0 && seen <= proved, "{seen} and {proved}");
    let furthest = &json["furthest"];
    let input: Vec<f64> = furthest["input"].as_array().ok_or("a list")?.iter().filter_map(Value::as_f64).collect();
    let input = Array::new(vec![1, 784], input)?;
    for (file, key) in files.iter().zip(["first", "second"]) {
        let scores = Model::load(Path::new(file))?.run(&input, None)?.to_vec::<f64>();
        let element = furthest["element"].as_u64().ok_or("a number")? as usize;
        let said = furthest[key].as_f64().ok_or("a number")?;
        assert!((scores[element] - said).abs() <= 1e-3 * said.abs().max(1.0), "{file}");
    }
    Ok(())
}

/// The largest of three numbers, whichever two are compared first: no unit of the one is a unit of the other.
#[test]
fn what_takes_a_finer_argument_is_unknown() -> Anything {
    let folder = tempfile::tempdir()?;
    let write = |name: &str, text: String| std::fs::write(folder.path().join(name), text);
    let first: &[&[f64]] = &[&[1.0, -1.0, 0.0], &[0.0, 1.0, 0.0], &[0.0, 0.0, 1.0]];
    let second: &[&[f64]] = &[&[1.0, 1.0, -1.0], &[0.0, 0.0, 1.0]];
    write("left.nnet", nnet(3, &[(first, &[0.0; 3]), (second, &[0.0; 2]), (&[&[1.0, 1.0]], &[0.0])]))?;
    let first: &[&[f64]] = &[&[0.0, 1.0, -1.0], &[1.0, 0.0, 0.0], &[0.0, 0.0, 1.0]];
    let second: &[&[f64]] = &[&[-1.0, 1.0, -1.0], &[1.0, 0.0, 1.0]];
    write("right.nnet", nnet(3, &[(first, &[0.0; 3]), (second, &[0.0; 2]), (&[&[1.0, 1.0]], &[0.0])]))?;
    let output = equiv(folder.path(), ["left.nnet", "right.nnet"], &[]);
    let said = printed(&output)?;
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!(String::from_utf8(output.stderr)?, "leo: neither proved equal nor seen to be different\n");
    assert!(said.contains("unknown: neither proved equal nor seen to be different"), "{said}");
    assert!(said.contains("seen up to 0, "), "{said}");
    assert!(said.contains("in right.nnet, without a counterpart in left.nnet: layer \"relu1\": "), "{said}");
    // Files need not name their nodes.
    let mut nameless = ModelProto::decode(Model::load(&folder.path().join("right.nnet"))?.to_onnx()?.as_slice())?;
    nameless.graph.iter_mut().flat_map(|graph| &mut graph.node).for_each(|node| node.name = None);
    std::fs::write(folder.path().join("nameless.onnx"), nameless.encode_to_vec())?;
    let said = printed(&equiv(folder.path(), ["left.nnet", "nameless.onnx"], &[]))?;
    assert!(said.contains("in nameless.onnx, without a counterpart in left.nnet: layer 1: "), "{said}");
    let (json, code) = report(folder.path(), ["left.nnet", "right.nnet"], &[])?;
    assert_eq!((&json["verdict"], code), (&"unknown".into(), Some(1)));
    assert!(json["proved"].as_f64() > Some(0.1) && json["seen"] == 0.0, "{json}");
    Ok(())
}

#[test]
fn what_cannot_be_compared_is_refused() -> Anything {
    let folder = small_files()?;
    let path = |name: &str| folder.path().join(name);
    let refusal = |files: [&str; 2], options: &[&str]| -> Anything<String> {
        let output = equiv(folder.path(), files, options);
        let complaint = String::from_utf8(output.stderr)?;
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{files:?}: {complaint}");
        assert_eq!(complaint.lines().count(), 1, "{complaint}");
        Ok(complaint)
    };
    std::fs::write(path("broken.onnx"), "no network")?;
    std::fs::write(path("wide.nnet"), nnet(2, &[(&[&[1.0, 1.0]], &[0.0]), (&[&[1.0]], &[0.0])]))?;
    assert!(refusal(["three.nnet", "missing.onnx"], &[])?.contains("missing.onnx"));
    assert!(refusal(["broken.onnx", "three.nnet"], &[])?.contains("broken.onnx"));
    let complaint = refusal(["three.nnet", "wide.nnet"], &[])?;
    assert_eq!(
        complaint,
        "leo: three.nnet and wide.nnet cannot be compared: the inputs have other shapes: [N, 1] and [N, 2]\n"
    );

    // The same network with another end.
    let digits = models().join("digits.onnx");
    let mut changed = ModelProto::decode(std::fs::read(&digits)?.as_slice())?;
    let nodes = changed.graph.iter_mut().flat_map(|graph| &mut graph.node);
    nodes.filter(|node| node.op_type() == "Softmax").for_each(|node| node.op_type = Some("LogSoftmax".to_owned()));
    std::fs::write(path("logs.onnx"), changed.encode_to_vec())?;
    let complaint = refusal([&digits.to_string_lossy(), "logs.onnx"], &["--domain", "0,1"])?;
    assert!(complaint.contains("is made by Softmax in one and by LogSoftmax in the other"), "{complaint}");

    leo(folder.path(), &["convert", "three.nnet", "-o", "three.onnx"]);
    let complaint = refusal(["three.onnx", "three.onnx"], &[])?;
    assert!(complaint.contains("give the inputs that matter: --domain LO,HI"), "{complaint}");
    // Either file's own domain will do.
    assert_eq!(equiv(folder.path(), ["three.onnx", "three.nnet"], &[]).status.code(), Some(0));
    let output = equiv(folder.path(), ["three.nnet", "two.nnet"], &["--tolerance", "-1"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr)?.contains("should be 0 or a number above 0"));
    Ok(())
}

/// Samples are looked at, too.
#[test]
fn samples_are_compared() -> Anything {
    let folder = small_files()?;
    Array::new(vec![3, 1], vec![0.25_f64, 0.5, 3.0])?.save(&folder.path().join("samples.npy"))?;
    let (json, code) =
        report(folder.path(), ["three.nnet", "two.nnet"], &["--domain", "0,1", "--data", "samples.npy"])?;
    assert_eq!((code, &json["samples"]), (Some(0), &serde_json::json!({"count": 3, "outside": 1})));
    Ok(())
}

/// Files that are equal to the byte used to be analysed as any others.
#[test]
fn a_network_and_itself_need_no_search() -> Anything {
    let folder = small_files()?;
    // Deep enough to take minutes, if anybody looked.
    let unit = |rng: &mut fastrand::Rng| (0..60).map(|_| rng.f64() - 0.5).collect::<Vec<f64>>();
    let mut rng = fastrand::Rng::with_seed(1);
    let rows: Vec<Vec<f64>> = (0..60).map(|_| unit(&mut rng)).collect();
    let rows: Vec<&[f64]> = rows.iter().map(Vec::as_slice).collect();
    let (bias, last) = (unit(&mut rng), unit(&mut rng));
    let mut layers: Vec<(&[&[f64]], &[f64])> = vec![(&rows, &bias); 12];
    let last: &[&[f64]] = &[&last];
    layers.push((last, &[0.0]));
    std::fs::write(folder.path().join("deep.nnet"), nnet(60, &layers))?;
    std::fs::copy(folder.path().join("deep.nnet"), folder.path().join("copy.nnet"))?;
    leo(folder.path(), &["convert", "deep.nnet", "-o", "deep.onnx"]);
    for files in [["deep.nnet", "deep.nnet"], ["deep.nnet", "copy.nnet"], ["deep.onnx", "deep.onnx"]] {
        let (json, code) = report(folder.path(), files, &["--domain", "0,1"])?;
        assert_eq!((&json["verdict"], code), (&"equal".into(), Some(0)), "{files:?}: {json}");
        assert_eq!((&json["proved"], &json["seen"], &json["furthest"]), (&0.0.into(), &0.0.into(), &Value::Null));
        assert_eq!(json["outputs"][0]["proved"], 0.0);
        assert_eq!(json["steps"]["looking"], 0.0);
    }
    let said = printed(&equiv(folder.path(), ["deep.nnet", "copy.nnet"], &["--domain", "0,1"]))?;
    assert!(said.contains("equal: on the whole domain all outputs are exactly the same"), "{said}");
    Ok(())
}

/// The same bytes in two folders, beside other data, are two networks.
#[test]
fn files_with_other_external_data_are_not_the_same() -> Anything {
    let folder = small_files()?;
    let mut model = ModelProto::decode(Model::load(&folder.path().join("two.nnet"))?.to_onnx()?.as_slice())?;
    // One that does not begin with 0, nor with -0, so that a sign matters.
    let mut tensors = model.graph.iter_mut().flat_map(|graph| &mut graph.initializer);
    let tensor = tensors.find(|tensor| tensor.raw_data.as_ref().is_some_and(|raw| raw[7] & 0x7f != 0)).ok_or("one")?;
    let mut data = tensor.raw_data.take().ok_or("raw data")?.to_vec();
    tensor.data_location = Some(1);
    tensor.external_data = vec![StringStringEntryProto { key: Some("location".into()), value: Some("w".into()) }];
    for (place, change) in [("a", 0), ("b", 0), ("c", 0x80)] {
        std::fs::create_dir(folder.path().join(place))?;
        data[7] ^= change;
        std::fs::write(folder.path().join(place).join("w"), &data)?;
        std::fs::write(folder.path().join(place).join("x.onnx"), model.encode_to_vec())?;
    }
    for (other, verdict) in [("a/x.onnx", "equal"), ("b/x.onnx", "equal"), ("c/x.onnx", "different")] {
        let (json, _) = report(folder.path(), ["a/x.onnx", other], &["--domain", "0,1"])?;
        assert_eq!(json["verdict"], verdict, "{other}: {json}");
    }
    Ok(())
}

/// However much is tolerated, and whatever is tried, the bound that is reported is the least one that was proved.
#[test]
fn the_best_bound_is_reported() -> Anything {
    let folder = small_files()?;
    let files = ["three.nnet", "more.nnet"];
    let bound = |tolerance: &str| -> Anything<f64> {
        let (json, _) = report(folder.path(), files, &["--tolerance", tolerance])?;
        Ok(json["proved"].as_f64().ok_or_else(|| json.to_string())?)
    };
    // The second output weight is 1.25 in place of 1, of a unit that is at most 2.
    for tolerance in ["0", "0.25", "0.5", "10"] {
        let proved = bound(tolerance)?;
        assert!((0.5..0.51).contains(&proved), "{tolerance}: {proved}");
    }
    Ok(())
}

/// The time limit holds for both attempts together, and for looking, too.
#[test]
fn without_time_there_is_still_an_answer() -> Anything {
    let folder = small_files()?;
    let files = [model("100-100-l1-0.0005"), model("100-100-l1-0.0001")];
    let (json, code) = report(folder.path(), [&files[0], &files[1]], &["--domain", "0,1", "--time-limit", "0"])?;
    assert_eq!((&json["verdict"], code), (&"different".into(), Some(1)));
    assert!(json["seen"].as_f64() <= json["proved"].as_f64(), "{json}");
    assert_eq!(json["stopped"], "time limit");
    let (json, code) = report(folder.path(), ["three.nnet", "two.nnet"], &["--time-limit", "0", "--tolerance", "0"])?;
    assert!(code == Some(0) || json["stopped"] == "time limit", "{json}");
    Ok(())
}
