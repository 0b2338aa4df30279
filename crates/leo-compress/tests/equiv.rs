//! Networks that compute the same are found to, whatever was done to one of them; and what is not the same is never
//! said to be.

#[path = "support/chains.rs"]
mod chains;
#[path = "support/points.rs"]
mod points;
#[path = "laws/random.rs"]
mod random;
mod support;

use chains::{Layers, chain, dense};
use fastrand::Rng;
use leo_compress::{
    Comparison, CompressOptions, EquivError, Method, Tolerance, equivalent, largest_difference, observe,
};
use leo_formats::onnx::Float;
use leo_network::op::{Dense, Matrix, Op, Relu, Sum};
use leo_network::{Domain, Network, NetworkError, Observer, Shape, ValueId};
use num_traits::Signed;
use points::random_point;
use proptest::prelude::*;
use random::{random_domain, random_network};
use support::{document, evaluate, exact, largest_number, shrink};

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Layers of these widths, with weights that are no round numbers.
fn random_layers(random: &mut Rng, widths: &[usize]) -> Layers {
    let layer = |pair: &[usize], random: &mut Rng| {
        let mut number = || f64::from((random.f32() * 2.0 - 1.0) / (pair[0] as f32).sqrt());
        let rows = (0..pair[1]).map(|_| (0..pair[0]).map(|_| number()).collect()).collect();
        (rows, (0..pair[1]).map(|_| number() / 4.0).collect())
    };
    widths.windows(2).map(|pair| layer(pair, random)).collect()
}

fn compared(first: &Network, second: &Network, domain: &Domain) -> Comparison {
    let options = leo_stability::AnalysisOptions::default();
    let there = equivalent(first, second, domain, &options).expect("the networks fit");
    let back = equivalent(second, first, domain, &options).expect("the networks fit");
    assert_eq!(there.deviation, back.deviation, "the order does not matter");
    there
}

/// What is proved holds at points, exactly.
fn check_bound(random: &mut Rng, networks: [&Network; 2], domain: &Domain, found: &Comparison) {
    let mut points: Vec<Vec<f64>> = (0..12).map(|_| random_point(random, domain)).collect();
    let seen = observe(networks[0], networks[1], domain, None, 1).expect("the domain fits");
    points.extend(seen.into_iter().filter_map(|output| output.furthest).map(|apart| apart.point));
    for point in points {
        let [a, b] = networks.map(|network| evaluate(network, &point).concat());
        for ((a, b), bound) in a.iter().zip(&b).zip(found.deviation.concat()) {
            let holds = bound == f64::INFINITY || (a - b).abs() <= exact(bound);
            assert!(holds, "{bound:e} is proved, and not true at {point:?}");
        }
    }
    let seen = largest_difference(networks[0], networks[1], domain, None, 2).expect("the domain fits");
    assert!(seen <= found.largest_deviation(), "{seen:e} seen, {:e} proved", found.largest_deviation());
}

/// The units of a layer in another order, each times a factor.
fn rearranged(layers: &Layers, layer: usize, order: &[usize], factors: &[f64]) -> Layers {
    let mut layers = layers.clone();
    let (rows, bias) = layers[layer].clone();
    let scaled = |&unit: &usize| rows[unit].iter().map(|weight| weight * factors[unit]).collect();
    layers[layer] =
        (order.iter().map(scaled).collect(), order.iter().map(|&unit| bias[unit] * factors[unit]).collect());
    for row in &mut layers[layer + 1].0 {
        *row = order.iter().map(|&unit| row[unit] / factors[unit]).collect();
    }
    layers
}

#[test]
fn units_may_change_places_and_scales() -> Anything {
    let mut random = Rng::with_seed(1);
    for widths in [vec![6, 9, 3], vec![4, 12, 10, 2], vec![3, 8, 8, 8, 8, 8, 8, 8, 8, 8, 2]] {
        let layers = random_layers(&mut random, &widths);
        let mut moved = layers.clone();
        let mut scaled = layers.clone();
        for (layer, &width) in widths[1..widths.len() - 1].iter().enumerate() {
            let mut order: Vec<usize> = (0..width).collect();
            random.shuffle(&mut order);
            let factors: Vec<f64> = (0..width).map(|_| 2_f64.powi(random.i32(-3..4))).collect();
            moved = rearranged(&moved, layer, &order, &vec![1.0; width]);
            scaled = rearranged(&scaled, layer, &order, &factors);
        }
        let domain = Domain::uniform(widths[0], -1.0, 1.0)?;
        let original = chain(&layers)?;
        for other in [chain(&moved)?, chain(&scaled)?] {
            let found = compared(&original, &other, &domain);
            assert!(found.largest_deviation() <= 1e-12, "{:e}", found.largest_deviation());
            assert_eq!(found.unmatched, [[], []]);
            check_bound(&mut random, [&original, &other], &domain, &found);
        }
        assert_eq!(compared(&original, &original, &domain).largest_deviation(), 0.0);
    }
    Ok(())
}

#[test]
fn duplicates_may_be_merged() -> Anything {
    let mut random = Rng::with_seed(2);
    for _ in 0..10 {
        let layers = random_layers(&mut random, &[4, 5, 6, 2]);
        let mut longer = layers.clone();
        for layer in 0..2 {
            // Unit 0 again, twice as large: half of what was read of it is read from there.
            let (rows, bias) = (longer[layer].0[0].clone(), longer[layer].1[0]);
            longer[layer].0.push(rows.iter().map(|weight| 2.0 * weight).collect());
            longer[layer].1.push(2.0 * bias);
            for row in &mut longer[layer + 1].0 {
                let half = row[0] / 4.0;
                row[0] -= 2.0 * half;
                row.push(half);
            }
        }
        let (few, many) = (chain(&layers)?, chain(&longer)?);
        let domain = Domain::uniform(4, -1.0, 1.0)?;
        let found = compared(&few, &many, &domain);
        assert!(found.largest_deviation() <= 1e-12, "{:e}", found.largest_deviation());
        check_bound(&mut random, [&few, &many], &domain, &found);
    }
    Ok(())
}

/// A unit and its negative make up a linear function, which needs no unit.
#[test]
fn opposite_units_may_become_linear() -> Anything {
    let mut random = Rng::with_seed(3);
    for _ in 0..10 {
        let first = random_layers(&mut random, &[3, 4, 2]);
        let [(rows, bias), (outer, outer_bias)] = [&first[0], &first[1]];
        let negative: Vec<Vec<f64>> = rows.iter().map(|row| row.iter().map(|weight| -weight).collect()).collect();
        let pairs =
            ([rows.clone(), negative].concat(), [bias.clone(), bias.iter().map(|bias| -bias).collect()].concat());
        let joined = outer.iter().map(|row| row.iter().copied().chain(row.iter().map(|weight| -weight)).collect());
        let split = chain(&vec![pairs, (joined.collect(), outer_bias.clone())])?;
        let mut builder = Network::builder(Shape::new([3])?);
        let g = builder.add("", dense(rows, bias)?, &[ValueId::INPUT])?;
        let y = builder.add("", dense(outer, outer_bias)?, &[g])?;
        let line = builder.finish(vec![y])?;
        let found = compared(&split, &line, &Domain::uniform(3, -1.0, 1.0)?);
        assert!(found.largest_deviation() <= 1e-12, "{:e}", found.largest_deviation());
    }
    Ok(())
}

/// Either network may have stable units that the other does without.
#[test]
fn stable_units_need_no_counterpart() -> Anything {
    let mut random = Rng::with_seed(4);
    for _ in 0..10 {
        let layers = random_layers(&mut random, &[4, 6, 6, 2]);
        let domain = Domain::uniform(4, -1.0, 1.0)?;
        let with_extra = |layer: usize, shift: f64, random: &mut Rng| {
            let mut layers = layers.clone();
            let row: Vec<f64> = layers[layer].0[0].iter().map(|_| f64::from(random.f32())).collect();
            layers[layer].0.push(row);
            layers[layer].1.push(shift);
            // What is always off may be read; what is always on is read by nobody.
            layers[layer + 1].0.iter_mut().for_each(|row| row.push(if shift < 0.0 { 1.0 } else { 0.0 }));
            chain(&layers)
        };
        let (off, on) = (with_extra(0, -50.0, &mut random)?, with_extra(1, 50.0, &mut random)?);
        for [a, b] in [[&off, &on], [&off, &chain(&layers)?], [&chain(&layers)?, &on]] {
            let found = compared(a, b, &domain);
            assert!(found.largest_deviation() <= 1e-12, "{:e}", found.largest_deviation());
            assert_eq!(found.unmatched, [[], []]);
        }
    }
    Ok(())
}

/// What is added up in a deep residual network is the same in both, and no error grows on the way more than it has to.
#[test]
fn residual_networks_are_compared() -> Anything {
    let mut random = Rng::with_seed(5);
    let blocks: Vec<Layers> = (0..6).map(|_| random_layers(&mut random, &[5, 4, 5])).collect();
    let build = |change: &dyn Fn(&Layers) -> Layers| -> Result<Network, NetworkError> {
        let mut builder = Network::builder(Shape::new([5])?);
        let mut value = ValueId::INPUT;
        for block in blocks.iter().map(change) {
            let g = builder.add("", dense(&block[0].0, &block[0].1)?, &[value])?;
            let h = builder.add("", Relu, &[g])?;
            let branch = builder.add("", dense(&block[1].0, &block[1].1)?, &[h])?;
            value = builder.add("", Sum, &[value, branch])?;
        }
        builder.finish(vec![value])
    };
    let plain = build(&|block| block.clone())?;
    let turned = build(&|block| rearranged(block, 0, &[2, 0, 3, 1], &[1.0, 0.5, 4.0, 1.0]))?;
    let rounded = build(&|block| rearranged(block, 0, &[0, 1, 2, 3], &[1.0, 3.0, 0.7, 1.1]))?;
    let domain = Domain::uniform(5, -1.0, 1.0)?;
    assert!(compared(&plain, &turned, &domain).largest_deviation() <= 1e-12);
    let found = compared(&plain, &rounded, &domain);
    assert!(found.largest_deviation() <= 1e-12, "{:e}", found.largest_deviation());
    check_bound(&mut random, [&plain, &rounded], &domain, &found);
    Ok(())
}

/// What the compressor proved with all that it knew, is proved again from the two networks alone.
#[test]
fn what_was_compressed_is_recognised() -> Anything {
    for seed in 0..90 {
        let mut random = Rng::with_seed(seed);
        let (inputs, depth) = (1 + seed as usize % 3, 1 + seed as usize / 3 % 5);
        let network = random_network(&mut random, inputs, depth)?;
        let domain = random_domain(&mut random, inputs);
        let before = document(&network, Float::F32);
        let scale = 1.0 + largest_number(&network, &domain);
        for (method, tolerance, bit_exact) in [
            (Method::Leo, None, false),
            (Method::Full, Some(Tolerance::Zero), false),
            (Method::Full, None, false),
            (Method::Full, Some(Tolerance::Absolute(0.01)), false),
            (Method::Full, None, true),
        ] {
            let after = shrink(
                &before,
                &domain,
                &CompressOptions { method, tolerance, bit_exact, ..CompressOptions::default() },
            );
            let networks = [before.network(), after.document.network()];
            let found = compared(networks[0], networks[1], &domain);
            let (bound, delta) = (found.largest_deviation(), after.largest_delta());
            assert!(bound <= 8.0 * delta + 1e-9 * scale, "seed {seed}, {method:?}: {bound:e}, and not {delta:e}");
            check_bound(&mut random, networks, &domain, &found);
        }
    }
    Ok(())
}

/// The network with one number changed.
fn disturbed(random: &mut Rng, network: &Network) -> Result<Network, NetworkError> {
    let dense_nodes: Vec<usize> =
        (0..network.nodes().len()).filter(|&node| network.nodes()[node].op().has_sums()).collect();
    let chosen = dense_nodes[random.usize(0..dense_nodes.len())];
    let mut builder = Network::builder(network.input().clone());
    for (index, node) in network.nodes().iter().enumerate() {
        let op: Op = match node.op().as_dense() {
            Some(dense) if index == chosen => {
                let weight = dense.weight();
                let mut numbers = weight.values().to_vec();
                let place = random.usize(0..numbers.len());
                numbers[place] += 2_f64.powi(-random.i32(0..30));
                let matrix = Matrix::new(weight.rows(), weight.columns(), numbers)?;
                Dense::new(matrix, dense.bias().map(<[f64]>::to_vec))?.into()
            }
            _ => node.op().clone(),
        };
        builder.add(node.name(), op, node.operands())?;
    }
    builder.finish(network.outputs().to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Whatever two networks are, no difference is larger than what is proved.
    #[test]
    fn what_differs_is_never_proved_equal(seed in any::<u64>(), inputs in 1_usize..4, depth in 1_usize..6) {
        let mut random = Rng::with_seed(seed);
        let network = random_network(&mut random, inputs, depth).expect("shapes fit");
        let domain = random_domain(&mut random, inputs);
        let other = disturbed(&mut random, &network).expect("shapes fit");
        let found = compared(&network, &other, &domain);
        check_bound(&mut random, [&network, &other], &domain, &found);
    }
}

#[test]
fn strangers_are_unmatched() -> Anything {
    let mut random = Rng::with_seed(6);
    let [a, b] = [0, 1].map(|_| chain(&random_layers(&mut random, &[4, 6, 5, 2])));
    let (a, b) = (a?, b?);
    let domain = Domain::uniform(4, -1.0, 1.0)?;
    let found = compared(&a, &b, &domain);
    check_bound(&mut random, [&a, &b], &domain, &found);
    assert!(found.unmatched[1].iter().any(|layer| layer.units.len() >= 4), "{:?}", found.unmatched);

    let wider = chain(&random_layers(&mut random, &[4, 6, 3]))?;
    let options = leo_stability::AnalysisOptions::default();
    let error = equivalent(&a, &wider, &domain, &options).expect_err("other outputs");
    assert_eq!(error.to_string(), "the networks have inputs or outputs of other shapes: [4] to [2] and [4] to [3]");
    let small = Domain::uniform(3, -1.0, 1.0)?;
    assert!(matches!(equivalent(&a, &b, &small, &options), Err(EquivError::Domain(_))));
    let stopped = leo_stability::AnalysisOptions { observer: Some(&Impatient), ..options };
    assert_eq!(equivalent(&a, &b, &domain, &stopped), Err(EquivError::Interrupted));
    Ok(())
}

/// Stops everything at once.
struct Impatient;

impl Observer for Impatient {
    fn is_stopped(&self) -> bool {
        true
    }
}
