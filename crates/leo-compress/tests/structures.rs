//! Networks with a structure that is known to be removable, or known not to be.

#[path = "support/chains.rs"]
mod chains;
#[path = "support/points.rs"]
mod points;
mod support;

use chains::{Layers, chain, dense, paired};
use fastrand::Rng;
use leo_compress::{CompressOptions, Compressed, Method, Rule, Tolerance};
use leo_formats::onnx::Float;
use leo_network::op::{Dense, Relu, Sum};
use leo_network::{Domain, Network, Shape, ValueId};
use points::random_point;
use support::{document, evaluate, exact, shrink};

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Layers of these widths whose units are all unstable on [-1, 1], in general position.
fn random_layers(random: &mut Rng, widths: &[usize]) -> Layers {
    widths.windows(2).map(|pair| layer(pair, random)).collect()
}

fn layer(pair: &[usize], random: &mut Rng) -> (Vec<Vec<f64>>, Vec<f64>) {
    let mut number = || f64::from(random.i16(-512..512)) / 256.0;
    let rows = (0..pair[1]).map(|_| (0..pair[0]).map(|_| number()).collect()).collect();
    (rows, (0..pair[1]).map(|_| number() / 8.0).collect())
}

fn negated(row: &[f64]) -> Vec<f64> {
    row.iter().map(|number| -number).collect()
}

/// Before each layer of ReLUs but the first, or only where `at` says, another one comes in: what it passes on, `z`, is
/// put together again from `relu(z - t)` and `relu(t - z)`.
fn with_pairs(layers: &Layers, at: &[usize]) -> Layers {
    let mut split = Layers::new();
    for (index, (rows, bias)) in layers.iter().enumerate() {
        if !at.contains(&index) {
            split.push((rows.clone(), bias.clone()));
            continue;
        }
        let shifted: Vec<f64> = bias.iter().enumerate().map(|(unit, bias)| bias - 0.25 * (unit as f64 - 1.0)).collect();
        let pairs = rows.iter().flat_map(|row| [row.clone(), negated(row)]).collect();
        split.push((pairs, shifted.iter().flat_map(|&bias| [bias, -bias]).collect()));
        let joined = |unit: usize| {
            let mut row = vec![0.0; 2 * rows.len()];
            (row[2 * unit], row[2 * unit + 1]) = (1.0, -1.0);
            row
        };
        let back = bias.iter().zip(&shifted).map(|(bias, shifted)| bias - shifted).collect();
        split.push(((0..rows.len()).map(joined).collect(), back));
    }
    split
}

fn unit_box(inputs: usize) -> Anything<Domain> {
    Ok(Domain::uniform(inputs, -1.0, 1.0)?)
}

fn compressed(network: &Network, domain: &Domain, options: &CompressOptions<'_>) -> Anything<Compressed> {
    let before = document(network, Float::F32);
    let after = shrink(&before, domain, options);
    let mut random = Rng::with_seed(7);
    for _ in 0..50 {
        let point = random_point(&mut random, domain);
        let [a, b] = [network, after.document.network()].map(|network| evaluate(network, &point).concat());
        let deltas = after.delta.concat();
        for ((a, b), delta) in a.iter().zip(&b).zip(deltas) {
            let difference = if a > b { a - b } else { b - a };
            assert!(difference <= exact(delta), "{difference} apart at {point:?}, {delta:e} is proved");
        }
    }
    Ok(after)
}

fn tolerances() -> [CompressOptions<'static>; 2] {
    [None, Some(Tolerance::Zero)].map(|tolerance| CompressOptions {
        tolerance,
        allow_noise: Some(f64::INFINITY),
        ..CompressOptions::default()
    })
}

#[test]
fn opposite_pairs_come_back_as_what_they_were() -> Anything {
    let mut random = Rng::with_seed(1);
    for round in 0..10 {
        let widths = [vec![4, 6, 5, 3], vec![3, 8, 2], vec![2, 3, 4, 3, 2]][round % 3].clone();
        let layers = random_layers(&mut random, &widths);
        let domain = unit_box(widths[0])?;
        let original = chain(&layers)?;
        for options in tolerances() {
            // What is in general position can hardly be made smaller; where it can, the pairs shall not stand in the
            // way.
            let expected = compressed(&original, &domain, &options)?.document.network().hidden();
            for at in [vec![0], vec![1], (0..layers.len() - 1).collect(), (0..layers.len()).collect()] {
                let split = chain(&with_pairs(&layers, &at))?;
                let after = compressed(&split, &domain, &options)?;
                assert_eq!(after.document.network().hidden(), expected, "{widths:?} split at {at:?}");
                assert!(after.largest_delta() < 1e-4, "{:e}", after.largest_delta());
            }
        }
    }
    Ok(())
}

/// What has to get past these layers is far smaller than what can be proved of it, so that carriers would be shifted by
/// large numbers. Beside the layers nothing is shifted.
#[test]
fn linear_functions_pass_beside_layers_where_carriers_would_be_noisy() -> Anything {
    let network = chain(&paired(4, 2.0, &[-0.5, -0.25, 0.0, 0.25]))?;
    let loud = CompressOptions { allow_noise: Some(f64::INFINITY), ..CompressOptions::default() };
    let shape = |after: &Compressed| (after.document.network().hidden(), after.history.carriers(), after.history.paths);
    let noise = |after: &Compressed| after.single.iter().flatten().map(|output| output.factor).fold(0.0, f64::max);
    let carried = compressed(&network, &unit_box(1)?, &loud)?;
    assert_eq!((carried.document.network().hidden(), carried.history.paths), (vec![4, 4, 4, 4], 0));
    assert!(carried.history.carriers() > 0);
    assert!(noise(&carried) > 2.0, "{}", noise(&carried));
    let beside = compressed(&network, &unit_box(1)?, &CompressOptions::default())?;
    assert_eq!(shape(&beside), (vec![4, 3, 3, 3], 0, 3));
    assert!(noise(&beside) <= 2.0, "{}", noise(&beside));
    assert_eq!(beside.history.count().values().sum::<usize>(), 32 - 13, "what goes is what is missing");
    // Once more finds nothing.
    let again = shrink(&beside.document, &unit_box(1)?, &CompressOptions::default());
    assert!(!again.changed);
    // On half the domain more goes, and what passed beside layers takes no more numbers than before.
    let half = Domain::uniform(1, 0.0, 1.0)?;
    let smaller = shrink(&beside.document, &half, &CompressOptions::default());
    let [before, after] = [&beside, &smaller].map(|file| file.document.network().multiply_adds());
    assert!(smaller.changed && after < before, "{before} {after}");
    Ok(())
}

/// Units that are always on can be split into pairs without another layer.
#[test]
fn pairs_that_stand_for_linear_units_are_linear_again() -> Anything {
    let mut random = Rng::with_seed(2);
    for _ in 0..10 {
        let mut layers = random_layers(&mut random, &[3, 4, 5, 2]);
        // Two of the units of the first layer are always on.
        layers[0].1[0] = 16.0;
        layers[0].1[1] = 24.0;
        let domain = unit_box(3)?;
        let original = chain(&layers)?;
        let mut split = layers.clone();
        for unit in [0, 1] {
            // relu(z) = z = relu(z - t) - relu(t - z) + t, with t in the middle of the range of z.
            let (row, t) = (layers[0].0[unit].clone(), layers[0].1[unit]);
            split[0].1[unit] = 0.0;
            split[0].0.push(negated(&row));
            split[0].1.push(0.0);
            let (rows, biases) = &mut split[1];
            for (reader, bias) in rows.iter_mut().zip(biases) {
                *bias += reader[unit] * t;
                let opposite = -reader[unit];
                reader.push(opposite);
            }
        }
        for options in tolerances() {
            let expected = compressed(&original, &domain, &options)?.document.network().hidden();
            let after = compressed(&chain(&split)?, &domain, &options)?;
            assert_eq!(after.document.network().hidden(), expected);
        }
    }
    Ok(())
}

#[test]
fn a_layer_that_is_always_on_goes() -> Anything {
    let mut random = Rng::with_seed(3);
    for _ in 0..10 {
        let layers = random_layers(&mut random, &[3, 5, 4, 2]);
        let domain = unit_box(3)?;
        for at in 0..layers.len() {
            // z + 100 is above 0, and 100 is taken off again.
            let mut longer = layers.clone();
            longer[at].1.iter_mut().for_each(|bias| *bias += 100.0);
            let width = longer[at].1.len();
            let identity = |unit: usize| (0..width).map(|other| f64::from(u8::from(other == unit))).collect();
            longer.insert(at + 1, ((0..width).map(identity).collect(), vec![-100.0; width]));
            for method in [Method::Leo, Method::Full] {
                let options =
                    CompressOptions { method, tolerance: Some(Tolerance::Zero), ..CompressOptions::default() };
                let expected = compressed(&chain(&layers)?, &domain, &options)?.document.network().hidden();
                let after = compressed(&chain(&longer)?, &domain, &options)?;
                assert_eq!(after.document.network().hidden(), expected, "{method:?} at {at}");
            }
        }
    }
    Ok(())
}

/// A narrow layer that is always on goes, but what it computes does not become more work for that: the two matrices
/// around it stay two.
#[test]
fn a_narrow_layer_leaves_no_wide_matrix() -> Anything {
    let mut random = Rng::with_seed(8);
    let mut layers = random_layers(&mut random, &[12, 2, 9, 1]);
    layers[0].1.fill(100.0);
    let (rows, biases) = &mut layers[1];
    biases.iter_mut().zip(rows).for_each(|(bias, row)| *bias = -100.0 * row.iter().sum::<f64>());
    let network = chain(&layers)?;
    let options = CompressOptions { tolerance: Some(Tolerance::Zero), ..CompressOptions::default() };
    let after = compressed(&network, &unit_box(12)?, &options)?;
    assert_eq!(after.document.network().hidden(), [9]);
    assert_eq!(after.document.network().multiply_adds(), network.multiply_adds());
    // A constant is a small one, too.
    layers[2].0[0].fill(0.0);
    let after = compressed(&chain(&layers)?, &unit_box(12)?, &options)?;
    assert_eq!((after.document.network().hidden(), after.document.network().multiply_adds()), (vec![], 12));
    Ok(())
}

/// Four units always on, of which two are combinations of the others: LEO keeps two. Only one function of them is read:
/// the normal form keeps one.
#[test]
fn leo_merges_what_depends_and_the_normal_form_carries_what_is_read() -> Anything {
    let on = |a: f64, b: f64| vec![a, b];
    let layers: Layers = vec![
        (vec![on(1.0, 2.0), on(2.0, -1.0), on(3.0, 1.0), on(1.0, -3.0), on(1.0, 1.0)], vec![8.0, 8.0, 9.0, 10.0, 0.25]),
        (vec![vec![1.0, 2.0, 0.5, -1.0, 3.0]], vec![0.5]),
    ];
    let network = chain(&layers)?;
    let domain = unit_box(2)?;
    let zero = Some(Tolerance::Zero);
    let leo = compressed(&network, &domain, &CompressOptions { method: Method::Leo, ..CompressOptions::default() })?;
    assert_eq!((leo.document.network().hidden(), leo.history.count()[&Rule::Merged]), (vec![3], 2));
    let full = compressed(&network, &domain, &CompressOptions { tolerance: zero, ..CompressOptions::default() })?;
    assert_eq!((full.document.network().hidden(), full.history.carriers()), (vec![2], 1));
    assert_eq!(full.history.count()[&Rule::Linear], 3);
    let bit_exact = compressed(&network, &domain, &CompressOptions { bit_exact: true, ..CompressOptions::default() })?;
    assert!(!bit_exact.changed, "merging rounds");
    Ok(())
}

#[test]
fn small_and_odd_networks() -> Anything {
    let hidden = |layers: &Layers, inputs: usize, lo: f64, hi: f64| -> Anything<Vec<Vec<usize>>> {
        let domain = Domain::uniform(inputs, lo, hi)?;
        let network = chain(layers)?;
        let mut found = Vec::new();
        for method in [Method::Leo, Method::Full] {
            let after = compressed(&network, &domain, &CompressOptions { method, ..CompressOptions::default() })?;
            found.push(after.document.network().hidden());
        }
        Ok(found)
    };
    // One unit: unstable, on, off.
    let one = |bias: f64| vec![(vec![vec![1.0]], vec![bias]), (vec![vec![2.0]], vec![1.0])];
    assert_eq!(hidden(&one(0.0), 1, -1.0, 1.0)?, [[1], [1]]);
    assert_eq!(hidden(&one(3.0), 1, -1.0, 1.0)?, [[], []] as [[usize; 0]; 2]);
    assert_eq!(hidden(&one(-3.0), 1, -1.0, 1.0)?, [[], []] as [[usize; 0]; 2]);
    // Constant, because the last layer before the output is; the layer before that is not.
    let constant = vec![
        (vec![vec![1.0], vec![-1.0]], vec![0.0, 0.0]),
        (vec![vec![1.0, 1.0], vec![0.0, 0.0]], vec![-9.0, 4.0]),
        (vec![vec![2.0, 0.5]], vec![1.0]),
    ];
    assert_eq!(hidden(&constant, 1, -1.0, 1.0)?, [[], []] as [[usize; 0]; 2]);
    // |x| needs both its units; x + |x| needs one; x + |x| - x - |x| none. LEO sees none of that.
    let absolute = |a: f64, b: f64| vec![(vec![vec![1.0], vec![-1.0]], vec![0.0, 0.0]), (vec![vec![a, b]], vec![0.0])];
    assert_eq!(hidden(&absolute(1.0, 1.0), 1, -1.0, 1.0)?, [[2], [2]]);
    assert_eq!(hidden(&absolute(1.0, 0.0), 1, -1.0, 1.0)?, [[2], [1]]);
    assert_eq!(hidden(&absolute(1.0, -1.0), 1, -1.0, 1.0)?, [vec![2], vec![]]);
    // No ReLU at all.
    let linear: Layers = vec![(vec![vec![1.0, 2.0]], vec![3.0])];
    assert_eq!(hidden(&linear, 2, -1.0, 1.0)?, [[], []] as [[usize; 0]; 2]);
    // A single point is a constant.
    assert_eq!(hidden(&absolute(1.0, 1.0), 1, 0.5, 0.5)?, [[], []] as [[usize; 0]; 2]);
    Ok(())
}

/// Two outputs that read the same layer, and one that reads an earlier one.
#[test]
fn several_outputs_share_what_they_read() -> Anything {
    let mut random = Rng::with_seed(4);
    let mut first = layer(&[2, 5], &mut random);
    (first.1[0], first.1[1]) = (-20.0, 20.0);
    let mut builder = Network::builder(Shape::new([2])?);
    let g = builder.add("fc0", dense(&first.0, &first.1)?, &[ValueId::INPUT])?;
    let h = builder.add("relu0", Relu, &[g])?;
    let mut second = layer(&[5, 3], &mut random);
    second.0.iter_mut().for_each(|row| row[1] = 0.0);
    let g = builder.add("fc1", dense(&second.0, &second.1)?, &[h])?;
    let deep = builder.add("relu1", Relu, &[g])?;
    let mut outputs = Vec::new();
    for (index, (from, width)) in [(h, 5), (deep, 3), (deep, 3)].into_iter().enumerate() {
        let last = layer(&[width, 1], &mut random);
        outputs.push(builder.add(format!("head{index}"), dense(&last.0, &last.1)?, &[from])?);
    }
    let network = builder.finish(outputs)?;
    let options = CompressOptions { tolerance: Some(Tolerance::Zero), ..CompressOptions::default() };
    let after = compressed(&network, &unit_box(2)?, &options)?;
    // The unit that is always off goes. The one that is always on stays: the first output reads it, and needs nothing
    // of the second layer.
    assert_eq!(after.document.network().hidden(), [4, 3]);
    assert_eq!(after.document.network().outputs().len(), 3);
    Ok(())
}

/// Within a branch units go; what is added up keeps its width, and the report says why.
#[test]
fn branches_of_a_sum_are_rewritten_alone() -> Anything {
    let mut random = Rng::with_seed(5);
    let mut builder = Network::builder(Shape::new([3])?);
    let first = layer(&[3, 4], &mut random);
    let g = builder.add("fc0", dense(&first.0, &first.1)?, &[ValueId::INPUT])?;
    let h = builder.add("relu0", Relu, &[g])?;
    let mut inner = layer(&[4, 6], &mut random);
    inner.1[..3].fill(-50.0);
    let g = builder.add("fc1", dense(&inner.0, &inner.1)?, &[h])?;
    let branch = builder.add("relu1", Relu, &[g])?;
    let back = layer(&[6, 4], &mut random);
    let branch = builder.add("fc2", dense(&back.0, &back.1)?, &[branch])?;
    let sum = builder.add("sum", Sum, &[h, branch])?;
    let h = builder.add("relu2", Relu, &[sum])?;
    let last = layer(&[4, 2], &mut random);
    let y = builder.add("fc3", dense(&last.0, &last.1)?, &[h])?;
    let network = builder.finish(vec![y])?;
    for options in tolerances().into_iter().chain([CompressOptions { bit_exact: true, ..CompressOptions::default() }]) {
        let after = compressed(&network, &unit_box(3)?, &options)?;
        assert_eq!(after.document.network().hidden(), [4, 3, 4]);
        let reasons: Vec<&str> = after.pinned.iter().map(|pinned| pinned.reason.as_str()).collect();
        assert_eq!(
            reasons,
            ["its outputs are a summand of \"sum\"", "what it reads is no affine function of one layer"]
        );
        // Nothing in the branch had to be rounded.
        assert_eq!(after.largest_delta(), 0.0);
    }
    Ok(())
}

/// Nothing changes where nothing is gained: units that stay have the weights that they had.
#[test]
fn units_that_stay_keep_their_weights() -> Anything {
    let mut random = Rng::with_seed(6);
    let mut layers = random_layers(&mut random, &[4, 6, 5, 3]);
    layers[0].1[2] = -40.0;
    layers[1].1[4] = 500.0;
    let network = chain(&layers)?;
    let after = compressed(&network, &unit_box(4)?, &CompressOptions::default())?;
    assert_eq!(after.document.network().hidden(), [5, 5], "the unit that is always on carries what nothing else can");
    let maps: Vec<&Dense> = after.document.network().nodes().iter().filter_map(|node| node.op().as_dense()).collect();
    let kept = [0, 1, 3, 4, 5];
    for (row, &unit) in kept.iter().enumerate() {
        assert_eq!(maps[0].weight().row(row), layers[0].0[unit]);
    }
    for row in 0..5 {
        let without: Vec<f64> = kept.iter().map(|&unit| layers[1].0[row][unit]).collect();
        assert_eq!(maps[1].weight().row(row), without);
    }
    assert_eq!(maps[2].weight().values(), layers[2].0.concat());
    assert_eq!(after.largest_delta(), 0.0);
    Ok(())
}
