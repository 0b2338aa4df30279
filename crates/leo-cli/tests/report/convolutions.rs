//! A network with convolutions and a branch, and what the page says of it.

use std::path::Path;

use leo_formats::onnx::{Document, Export, Float};
use leo_network::op::{Convolution, Dense, Matrix, Relu, Reshape, Sum, Window, WindowAxis};
use leo_network::{Network, Shape, ValueId};

use crate::compress;
use crate::support::{Anything, leo};

/// Writes a network of 2 by 4 by 4 inputs: a convolution of ten channels, of which five are always off, one is always
/// on and four can be both; a depthwise one; a third one, of 1 by 1; a residual sum around a fourth one; and a
/// dense layer. Returns its name.
pub fn branches(folder: &Path) -> Anything<String> {
    let mut builder = Network::builder(Shape::new([2, 4, 4])?);
    let padded = || Window::new(vec![WindowAxis { before: 1, after: 1, ..WindowAxis::new(3, 1) }; 2]);
    let point = || Window::new(vec![WindowAxis::new(1, 1); 2]);
    let bias = [-100.0, -100.0, -100.0, -100.0, -100.0, 100.0, 0.0, 0.0, 0.0, 0.0];
    let weights = |count: usize| (0..count).map(|index| ((index * 7 % 11) as f64 - 5.0) / 8.0).collect::<Vec<f64>>();
    let first = Convolution::new(padded(), 1, 10, weights(10 * 2 * 9), Some(bias.to_vec()))?;
    let made = builder.add("conv_first", first, &[ValueId::INPUT])?;
    let units = builder.add("relu_first", Relu, &[made])?;
    let apart = Convolution::new(padded(), 10, 10, weights(10 * 9), Some(vec![-0.25; 10]))?;
    let made = builder.add("conv_apart", apart, &[units])?;
    let units = builder.add("relu_apart", Relu, &[made])?;
    let made = builder.add("conv_point", Convolution::new(point(), 1, 6, weights(60), None)?, &[units])?;
    let units = builder.add("relu_point", Relu, &[made])?;
    let branch = Convolution::new(point(), 1, 6, weights(36), None)?;
    let branch = builder.add("conv_branch", branch, &[units])?;
    let sum = builder.add("sum", Sum, &[units, branch])?;
    let units = builder.add("relu_sum", Relu, &[sum])?;
    let flat = builder.add("flat", Reshape::new(Shape::new([96])?), &[units])?;
    let last = builder.add("fc", Dense::new(Matrix::new(3, 96, weights(288))?, None)?, &[flat])?;
    let network = builder.finish(vec![last])?;
    let export = Export { float: Float::F32, input: "x".to_owned(), outputs: vec!["y".to_owned()], metadata: vec![] };
    let path = folder.join("branches.onnx");
    std::fs::write(&path, Document::from_network(&network, &export)?.to_bytes()?)?;
    Ok("branches.onnx".to_owned())
}

#[test]
fn a_page_draws_channels_and_says_what_stages_take() -> Anything {
    let folder = tempfile::tempdir()?;
    let network = branches(folder.path())?;
    let (path, json) = compress(folder.path(), &network, "small")?;
    let page = std::fs::read_to_string(path)?;
    let stages = &json["stages"]["all"];
    let operators: Vec<_> = (0..7).map(|stage| stages[stage]["operator"].as_str().unwrap_or_default()).collect();
    let expected =
        ["input", "Conv 3x3 + Relu", "Conv 3x3 depthwise + Relu", "Conv 1x1 + Relu", "Conv 1x1", "Add + Relu", "dense"];
    assert_eq!(operators, expected);
    assert_eq!(stages[5]["reads"], serde_json::json!([3, 4]), "the branch and what goes past it");
    assert_eq!(stages[1]["positions"], serde_json::json!([4, 4]));
    let sum = |key: &str, side: usize| (0..7).filter_map(|stage| stages[stage][key][side].as_u64()).sum::<u64>();
    for (side, size) in ["before", "after"].into_iter().enumerate() {
        assert_eq!(sum("parameters", side), json[size]["parameters"]);
        assert_eq!(sum("multiply_adds", side), json[size]["multiply_adds"]);
        let peak = json[size]["peak_activations"].as_u64().unwrap_or_default();
        assert_eq!(json["stages"]["peak_activation_bytes"][side], 4 * peak, "in single precision");
    }
    let [before, after] = ["before", "after"].map(|size| json[size]["units"].as_u64().unwrap_or_default());
    assert!(after < before, "channels go");
    for expected in [
        &format!("<h1>{before} channels became {after}</h1>"),
        "32 inputs of 2x4x4",
        "<b>Conv 3x3 depthwise + Relu</b>, 10 channels of 4x4",
        "outputs: 3 outputs",
        "relu_apart",
        "kept for a width that runtimes are fast with (",
        "all that a channel's sums can be",
        "<td class=\"n\">10 \u{2192}\u{a0}8</td>",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    assert_eq!(page.matches("class=\"stage\"").count(), 2 * 8, "seven stages and the outputs, before and after");
    let said = page.split("<script>").next().unwrap_or_default().replace("finding stable units", "");
    assert!(!said.contains(" unit") && !said.contains("unit</th>"), "what has channels has no units");
    Ok(())
}

#[test]
fn analyze_draws_channels_too() -> Anything {
    let folder = tempfile::tempdir()?;
    let network = branches(folder.path())?;
    leo(folder.path(), &["analyze", &network, "--domain", "0,1", "--report", "page.html"]);
    let page = std::fs::read_to_string(folder.path().join("page.html"))?;
    assert!(page.contains("What each stage takes") && !page.contains("became") && !page.contains('\u{2192}'));
    assert_eq!(page.matches("class=\"stage\"").count(), 8);
    Ok(())
}
