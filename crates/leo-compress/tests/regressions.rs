//! Mistakes that were made once, one test each.

mod support;

use leo_compress::{CompressError, CompressOptions, Compressed, Method, Tolerance, compress};
use leo_formats::onnx::proto::NodeProto;
use leo_formats::onnx::{Document, Float};
use leo_network::op::{Dense, Matrix, Relu, Reshape};
use leo_network::{Builder, Domain, Network, NetworkError, Shape, ValueId};
use prost::Message;
use support::{document, evaluate, exact, shrink};

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn add(builder: &mut Builder, rows: &[&[f64]], bias: &[f64], value: ValueId) -> Result<ValueId, NetworkError> {
    let dense = Dense::new(Matrix::new(rows.len(), rows[0].len(), rows.concat())?, Some(bias.to_vec()))?;
    builder.add("", dense, &[value])
}

/// One layer of units, and outputs of it.
fn one_layer(rows: &[&[f64]], bias: &[f64], outputs: &[&[f64]]) -> Result<Network, NetworkError> {
    let mut builder = Network::builder(Shape::new([rows[0].len()])?);
    let g = add(&mut builder, rows, bias, ValueId::INPUT)?;
    let h = builder.add("", Relu, &[g])?;
    let y = add(&mut builder, outputs, &vec![0.0; outputs.len()], h)?;
    builder.finish(vec![y])
}

fn exactly(method: Method) -> CompressOptions<'static> {
    CompressOptions { method, tolerance: Some(Tolerance::Zero), ..CompressOptions::default() }
}

/// What is proved at a point, and what is true there, output by output.
fn at(before: &Document, after: &Compressed, point: &[f64]) -> Vec<(f64, bool)> {
    let [a, b] = [before.network(), after.document.network()].map(|network| evaluate(network, point).concat());
    let deltas = after.delta.concat();
    let holds = |((a, b), delta): ((_, _), &f64)| (*delta, if a > b { a - b } else { b - a } <= exact(*delta));
    a.into_iter().zip(b).zip(&deltas).map(holds).collect()
}

/// The checker took a unit that others were merged into for something that has nothing to do with them.
#[test]
fn merged_units_depend_on_what_they_are_merged_into() -> Anything {
    let network = one_layer(&[&[1.0], &[1.0], &[1.0]], &[1.0, 1.0, -0.5], &[&[1.0, 1.0, 1.0]])?;
    let after = shrink(&document(&network, Float::F32), &Domain::uniform(1, 0.0, 1.0)?, &exactly(Method::Leo));
    assert_eq!(after.document.network().hidden(), [2]);
    assert!(after.largest_delta() < 1e-12, "{:e}", after.largest_delta());
    Ok(())
}

/// A pre-activation that is an output, too, was taken for something that what is rewritten still reads.
#[test]
fn outputs_within_a_region_are_no_anchors() -> Anything {
    let mut builder = Network::builder(Shape::new([1])?);
    let g = add(&mut builder, &[&[1.0]], &[1.0], ValueId::INPUT)?;
    let h = builder.add("", Relu, &[g])?;
    let y = add(&mut builder, &[&[1.0]], &[0.0], h)?;
    let network = builder.finish(vec![y, g])?;
    for method in [Method::Leo, Method::Full] {
        let after = shrink(&document(&network, Float::F32), &Domain::uniform(1, 0.0, 1.0)?, &exactly(method));
        assert!(after.document.network().hidden().is_empty());
        assert!(after.largest_delta() < 1e-12, "{:e}", after.largest_delta());
    }
    Ok(())
}

/// With operators after them, outputs changed places when one of them was rewritten and the other was not, and each got
/// the other's delta.
#[test]
fn outputs_keep_their_places() -> Anything {
    let mut builder = Network::builder(Shape::new([1])?);
    let g = add(&mut builder, &[&[0.1]], &[0.0], ValueId::INPUT)?;
    let h = builder.add("", Relu, &[g])?;
    let rewritten = add(&mut builder, &[&[0.1]], &[0.0], h)?;
    let linear = add(&mut builder, &[&[0.1]], &[0.0], ValueId::INPUT)?;
    let network = builder.finish(vec![rewritten, linear])?;
    let mut model = document(&network, Float::F32).model().clone();
    let graph = model.graph.as_mut().ok_or("a graph")?;
    for (index, operator) in ["Tanh", "Sigmoid"].into_iter().enumerate() {
        graph.output[index].name = Some(format!("z{index}"));
        graph.node.push(NodeProto {
            op_type: Some(operator.to_owned()),
            input: vec![format!("y{index}")],
            output: vec![format!("z{index}")],
            ..NodeProto::default()
        });
    }
    let before = Document::from_bytes(model.encode_to_vec(), None)?;
    let domain = Domain::uniform(1, 0.5, 1.0)?;
    let after = shrink(&before, &domain, &exactly(Method::Full));
    assert!(after.changed && after.delta[0][0] > 0.0 && after.delta[1][0] == 0.0, "{:?}", after.delta);
    assert!(at(&before, &after, &[1.0]).iter().all(|(_, holds)| *holds), "{:?}", after.delta);
    Ok(())
}

/// Weights that are too large for the file's type when they are multiplied were an error, and not a reason to leave
/// them alone.
#[test]
fn what_would_overflow_stays() -> Anything {
    let network = one_layer(&[&[300.0]], &[0.0], &[&[300.0]])?;
    for options in [exactly(Method::Leo), exactly(Method::Full), CompressOptions::default()] {
        let after = shrink(&document(&network, Float::F16), &Domain::uniform(1, 0.0, 1.0)?, &options);
        assert!(!after.changed);
    }
    Ok(())
}

/// What is small beside something else in its row is no rounding, as long as nothing was rounded.
#[test]
fn numbers_of_the_file_are_no_noise() -> Anything {
    let network = one_layer(&[&[1.0, 1.0], &[1.0, -1.0]], &[0.0, 0.0], &[&[1.0, -1.0]])?;
    let size = 2_f64.powi(46);
    let domain = Domain::new(vec![-size, -1.0], vec![size, 1.0])?;
    let before = document(&network, Float::F64);
    let after = shrink(&before, &domain, &exactly(Method::Full));
    assert_eq!(after.document.network().hidden(), [2]);
    assert!(at(&before, &after, &[size, 1.0]).iter().all(|(delta, holds)| *holds && *delta < 0.1));
    Ok(())
}

/// That the checker does not take on a network was taken for a sign that there is nothing to remove.
#[test]
fn too_large_is_not_nothing_to_remove() -> Anything {
    let positions = 17_000;
    let mut builder = Network::builder(Shape::new([positions, 1])?);
    let g = add(&mut builder, &[&[1.0], &[-1.0]], &[1.0, -2.0], ValueId::INPUT)?;
    let h = builder.add("", Relu, &[g])?;
    let sums = add(&mut builder, &[&[1.0, 1.0]], &[0.0], h)?;
    let flat = builder.add("", Reshape::new(Shape::new([positions])?), &[sums])?;
    let y = add(&mut builder, &[&vec![1.0; positions]], &[0.0], flat)?;
    let document = document(&builder.finish(vec![y])?, Float::F32);
    for method in [Method::Leo, Method::Full] {
        let compressed = compress(&document, &Domain::uniform(positions, 0.0, 1.0)?, &exactly(method));
        assert!(matches!(compressed, Err(CompressError::TooLarge)), "{method:?}: {:?}", compressed.map(|_| ()));
    }
    Ok(())
}

/// What only asks for the shape of a layer kept the old layer in the file, beside the new one.
#[test]
fn layers_whose_shape_is_read_keep_their_width() -> Anything {
    let network = one_layer(&[&[1.0], &[-1.0], &[1.0]], &[0.0, -9.0, 0.25], &[&[1.0, 2.0, 3.0]])?;
    let mut model = document(&network, Float::F32).model().clone();
    if let Some(graph) = &mut model.graph {
        let layer = graph.node.iter().find(|node| node.op_type() == "Relu").map(|node| node.output.clone());
        graph.node.push(NodeProto {
            op_type: Some("Shape".into()),
            input: layer.unwrap_or_default(),
            output: vec!["shape".into()],
            ..NodeProto::default()
        });
        let mut output = graph.output[0].clone();
        (output.name, output.r#type) = (Some("shape".into()), None);
        graph.output.push(output);
    }
    let before = Document::from_bytes(model.encode_to_vec(), None)?;
    for options in [
        CompressOptions::default(),
        exactly(Method::Leo),
        CompressOptions { bit_exact: true, ..CompressOptions::default() },
    ] {
        let after = compress(&before, &Domain::uniform(1, -1.0, 1.0)?, &options)?;
        assert!(!after.changed);
        assert!(after.pinned.iter().any(|pinned| pinned.reason.contains("Shape")), "{:?}", after.pinned);
    }
    Ok(())
}

/// A unit that is nowhere more than 0 was taken for linear with a lower bound that the certificate did not ask the
/// checker for.
#[test]
fn both_bounds_of_units_that_are_off_are_proved_again() -> Anything {
    // At one position the unit is 0, at the other it is on, so that the channel is linear; intervals know less than
    // lines do.
    let mut builder = Network::builder(Shape::new([2, 1])?);
    let g = add(&mut builder, &[&[1.0], &[1.0]], &[0.0, 1.0], ValueId::INPUT)?;
    let h = builder.add("", Relu, &[g])?;
    let g = add(&mut builder, &[&[1.0, -1.0], &[1.0, 1.0]], &[1.0, -0.5], h)?;
    let h = builder.add("", Relu, &[g])?;
    let y = add(&mut builder, &[&[1.0, 1.0]], &[0.0], h)?;
    let network = builder.finish(vec![y])?;
    let domain = Domain::new(vec![0.0, 0.5], vec![1.0, 1.0])?;
    for method in [Method::Leo, Method::Full] {
        // The checker sees to the certificate in there.
        shrink(&document(&network, Float::F32), &domain, &exactly(method));
    }
    Ok(())
}
