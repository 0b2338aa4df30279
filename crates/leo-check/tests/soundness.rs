//! Proved ranges hold, and are as tight as they should be.

use std::sync::Arc;

use fastrand::Rng;
use leo_check::{
    BoundProof, Checker, Exact, LowerSlopes, MixedInequality, Number, Relaxation, Side, SplitTree, Target, pieces_at,
};
use leo_network::op::{
    Arithmetic, Broadcast, Dense, Elementwise, Matrix, MaxPool, Relu, Select, Sum, SumPool, Window, WindowAxis,
};
use leo_network::{Domain, Evaluator, LayerId, Network, NetworkError, Shape, UnitId, ValueId};
use proptest::prelude::*;

type Anything = Result<(), Box<dyn std::error::Error>>;

/// A dense map with weights on a grid of eighths, so that doubles compute with them exactly.
fn dense(random: &mut Rng, inputs: usize, outputs: usize) -> Result<Dense, NetworkError> {
    let mut numbers = |count: usize| (0..count).map(|_| f64::from(random.i8(-16..17)) / 8.0).collect::<Vec<_>>();
    Dense::new(Matrix::new(outputs, inputs, numbers(inputs * outputs))?, Some(numbers(outputs)))
}

/// Two inputs, three layers of ReLUs, a residual sum and a normalisation.
fn random_network(seed: u64) -> Result<Network, NetworkError> {
    let mut random = Rng::with_seed(seed);
    let mut builder = Network::builder(Shape::new([2])?);
    let mut value = ValueId::INPUT;
    if random.bool() {
        let operation = [Arithmetic::Add, Arithmetic::Multiply, Arithmetic::Divide][random.usize(0..3)];
        let constant = Broadcast::new(Shape::new([2])?, vec![0.5, 3.0])?;
        value = builder.add("normalise", Elementwise::new(operation, constant)?, &[value])?;
    }
    value = builder.add("fc1", dense(&mut random, 2, 5)?, &[value])?;
    let first = builder.add("relu1", Relu, &[value])?;
    value = builder.add("fc2", dense(&mut random, 5, 5)?, &[first])?;
    value = builder.add("relu2", Relu, &[value])?;
    if random.bool() {
        value = builder.add("sum", Sum, &[value, first])?;
    }
    value = builder.add("fc3", dense(&mut random, 5, 4)?, &[value])?;
    value = builder.add("relu3", Relu, &[value])?;
    builder.finish(vec![value])
}

/// The pre-activations of each layer at many points of the domain: corners, edges and inside.
fn observed(network: &Network, domain: &Domain, random: &mut Rng) -> Vec<(LayerId, Vec<f64>)> {
    let inputs = domain.len();
    let mut points = Vec::new();
    for sample in 0..400 {
        for input in 0..inputs {
            let (lo, hi) = (domain.hull().lo()[input], domain.hull().hi()[input]);
            let at = match sample % 4 {
                0 => random.f64(),
                _ => f64::from(random.u8(0..3)) / 2.0,
            };
            points.push((lo + at * (hi - lo)).clamp(lo, hi));
        }
    }
    let evaluator = Evaluator::<f64>::new(network);
    let mut workspace = evaluator.workspace();
    let mut found: Vec<(LayerId, Vec<f64>)> = network.layers().map(|layer| (layer, Vec::new())).collect();
    for block in points.chunks(evaluator.block_rows() * inputs) {
        let values = evaluator.forward(&mut workspace, block);
        for (layer, numbers) in &mut found {
            numbers.extend_from_slice(values.get(network.pre_activation(*layer)));
        }
    }
    found
}

fn all_bounds(width: usize) -> Vec<Target> {
    (0..width).flat_map(Target::both).collect()
}

/// Anything at all, sensible or not: it may only loosen bounds.
fn random_slopes(random: &mut Rng, layers: &[(LayerId, usize)]) -> LowerSlopes {
    let mut slope = || [random.f64(), 0.0, 1.0, -3.0, 7.0, f64::NAN][random.usize(0..6)];
    layers
        .iter()
        .flat_map(|&(layer, units)| (0..units).map(move |unit| UnitId { layer, unit }))
        .map(|place| (place, slope()))
        .collect()
}

/// Any lines. Those above units are tilted toward any point.
fn random_lines(random: &mut Rng, network: &Network, layers: &[(LayerId, usize)]) -> Relaxation {
    let slopes = if random.bool() { LowerSlopes::new() } else { random_slopes(random, layers) };
    let tilt = layers.get(random.usize(0..layers.len() + 1)).and_then(|&(layer, units)| {
        let inputs = MixedInequality::map(network, layer)?.0.weight().columns();
        let mut number = || [random.u8(..), 0, 255][random.usize(0..3)];
        let (position, on) = ((0..inputs).map(|_| number()).collect(), (0..units).map(|_| number()).collect());
        let softness = [1.0, 0.1, 1e-300, 1e300][random.usize(0..4)];
        Some(Arc::new(MixedInequality { layer, position, on, softness }))
    });
    Relaxation { slopes, tilt }
}

/// A case distinction on units of earlier layers, with any multipliers: some help, most do not, none may do harm.
fn random_tree(random: &mut Rng, network: &Network, layers: &[(LayerId, usize)], depth: usize) -> SplitTree {
    if depth == 4 || layers.is_empty() || random.u8(0..4) == 0 {
        let mut multiplier =
            || [random.f64(), 10.0 * random.f64(), 0.0, -1.0, f64::NAN, f64::INFINITY][random.usize(0..6)];
        let multipliers = (0..depth).map(|_| multiplier()).collect();
        return SplitTree::Leaf { multipliers, lines: random_lines(random, network, layers) };
    }
    let (layer, units) = layers[random.usize(0..layers.len())];
    let unit = random.usize(0..units);
    let halves = [(); 2].map(|()| Box::new(random_tree(random, network, layers, depth + 1)));
    SplitTree::Split { unit: UnitId { layer, unit }, knot: 0, halves }
}

/// Proves ranges of all layers with whatever slopes and case distinctions, and finds no input that leaves one.
fn assert_sound<N: Number>(network: &Network, domain: &Domain, seed: u64, chosen: bool) {
    let mut random = Rng::with_seed(seed);
    let mut checker = Checker::<N>::begin(network, domain).expect("two inputs");
    let mut passed: Vec<(LayerId, usize)> = Vec::new();
    while let Some(layer) = checker.next_layer() {
        let units = checker.range(layer).lower.len();
        let bounds = all_bounds(units);
        let lines = |_| if chosen { random_lines(&mut random, network, &passed) } else { Relaxation::default() };
        let lines: Vec<Relaxation> = bounds.iter().map(lines).collect();
        checker.prove_linear(&bounds, &lines.iter().collect::<Vec<_>>());
        if chosen {
            let tree = |&target| BoundProof { target, tree: random_tree(&mut random, network, &passed, 0) };
            checker.prove_splits(&bounds.iter().map(tree).collect::<Vec<_>>());
        }
        passed.push((layer, units));
    }
    let width = domain.hull().hi()[0] - domain.hull().lo()[0];
    for (layer, numbers) in observed(network, domain, &mut random) {
        let range = checker.range(layer);
        let units = range.lower.len();
        for (index, &number) in numbers.iter().enumerate() {
            let (lower, upper) = (&range.lower[index % units], &range.upper[index % units]);
            // The evaluation rounds too, unlike the proof.
            let rounding = 1e-13 * (1.0 + number.abs() + width);
            let is_inside = *lower <= N::of(number + rounding) && N::of(number - rounding) <= *upper;
            assert!(is_inside, "{number} is not in [{lower:?}, {upper:?}]");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_input_leaves_a_proved_range(
        seed in any::<u64>(),
        lo in -3.0..3.0,
        width in prop_oneof![Just(0.0), Just(1e-9), 0.0..4.0, Just(1e6)],
        chosen in any::<bool>(),
    ) {
        let network = random_network(seed).expect("shapes fit");
        let domain = Domain::new(vec![lo, -lo], vec![lo + width, width - lo]).expect("not reversed");
        assert_sound::<f64>(&network, &domain, seed, chosen);
        assert_sound::<Exact>(&network, &domain, seed, chosen);
    }
}

fn layer_of(rows: &[&[f64]], bias: &[f64]) -> Result<Dense, NetworkError> {
    Dense::new(Matrix::new(rows.len(), rows[0].len(), rows.concat())?, Some(bias.to_vec()))
}

#[test]
fn bounds_that_are_exactly_zero_are_found_to_be() -> Anything {
    let mut builder = Network::builder(Shape::new([2])?);
    // 0.1 + 0.7 is no double: what the bias takes away is a little more than that, or a little less.
    let sum = 0.1_f64 + 0.7;
    let rows: [&[f64]; 5] = [&[-1.0, -3.0], &[0.25, 0.5], &[0.1, 0.7], &[0.1, 0.7], &[0.0, 0.0]];
    let first = layer_of(&rows, &[0.0, -0.75, -sum.next_up(), -sum.next_down(), 0.0])?;
    let g = builder.add("fc1", first, &[ValueId::INPUT])?;
    let h = builder.add("relu1", Relu, &[g])?;
    // Always on, always off, and both by nothing at all.
    let second = layer_of(&[&[0.0, 0.0, 0.0, 0.0, 5.0], &[3.0, 2.0, 0.0, 0.0, 1.0]], &[0.0, 0.0])?;
    let g = builder.add("fc2", second, &[h])?;
    let h = builder.add("relu2", Relu, &[g])?;
    let network = builder.finish(vec![h])?;
    let mut checker = Checker::new(&network, &Domain::uniform(2, 0.0, 1.0)?)?;
    let layer = checker.next_layer().ok_or("two layers")?;
    checker.prove_linear(&all_bounds(5), &[]);
    let range = checker.range(layer);
    assert_eq!(range.upper[0], 0.0);
    assert!(range.lower[0] <= -4.0 && range.lower[0] > -4.000001);
    assert_eq!(range.upper[1], 0.0);
    assert!(range.upper[2] < 0.0 && range.upper[2] > -1e-15, "barely stable: {}", range.upper[2]);
    assert!(range.upper[3] > 0.0 && range.upper[3] < 1e-15, "barely unstable: {}", range.upper[3]);
    assert_eq!((range.lower[4], range.upper[4]), (0.0, 0.0));
    let layer = checker.next_layer().ok_or("two layers")?;
    checker.prove_linear(&all_bounds(2), &[]);
    assert_eq!(checker.range(layer).upper, [0.0, 0.0]);
    Ok(())
}

/// The proved range of the last layer's only unit, in a network of these dense maps with ReLUs between them.
fn proved(maps: &[Dense], lo: f64, hi: f64) -> Result<(f64, f64), Box<dyn std::error::Error>> {
    let mut builder = Network::builder(Shape::new([1])?);
    let mut value = ValueId::INPUT;
    for (index, map) in maps.iter().enumerate() {
        value = builder.add(format!("fc{index}"), map.clone(), &[value])?;
        value = builder.add(format!("relu{index}"), Relu, &[value])?;
    }
    let network = builder.finish(vec![value])?;
    let mut checker = Checker::new(&network, &Domain::uniform(1, lo, hi)?)?;
    let mut last = LayerId::new(0);
    while let Some(layer) = checker.next_layer() {
        let width = checker.range(layer).lower.len();
        checker.prove_linear(&all_bounds(width), &[]);
        last = layer;
    }
    Ok((checker.range(last).lower[0], checker.range(last).upper[0]))
}

#[test]
fn numbers_that_cancel_exactly_are_zero_however_large() -> Anything {
    // x - 2^950 is 0 at the lower end.
    let (large, larger) = (2.0_f64.powi(950), 2.0_f64.powi(951));
    let (lower, upper) = proved(&[layer_of(&[&[1.0]], &[-large])?], large, larger)?;
    assert!(lower <= 0.0 && upper >= large, "[{lower}, {upper}]");
    Ok(())
}

#[test]
fn coefficients_that_overflow_prove_nothing() -> Anything {
    // 1e308 x (2 - 2 + 1) - 1e290 is 1e298 at x = 1e-10, but 2e308 is no double.
    let first = layer_of(&[&[1e308], &[1e308], &[1e308]], &[0.0; 3])?;
    let second = layer_of(&[&[2.0, -2.0, 1.0]], &[-1e290])?;
    let (lower, upper) = proved(&[first, second], 0.0, 1e-10)?;
    assert!(lower <= -1e290 && upper >= 1e298, "[{lower}, {upper}]");
    Ok(())
}

#[test]
fn products_that_underflow_are_not_zero() -> Anything {
    let mut builder = Network::builder(Shape::new([1])?);
    let mut value = ValueId::INPUT;
    for index in 0..3 {
        let tiny = Elementwise::new(Arithmetic::Multiply, Broadcast::new(Shape::new([1])?, vec![1e-200])?)?;
        value = builder.add(format!("tiny{index}"), tiny, &[value])?;
    }
    let h = builder.add("relu", Relu, &[value])?;
    let network = builder.finish(vec![h])?;
    let mut checker = Checker::new(&network, &Domain::uniform(1, 0.0, 1.0)?)?;
    let layer = checker.next_layer().ok_or("a layer")?;
    checker.prove_linear(&all_bounds(1), &[]);
    // 1e-600 at x = 1.
    assert!(checker.range(layer).upper[0] > 0.0);

    // 0.1 0.3 x minus its multiple by the rounded product, on inputs so small that errors vanish: above 0 at the upper
    // end.
    let mut builder = Network::builder(Shape::new([1])?);
    let scaled = |by: f64| -> Result<Elementwise, NetworkError> {
        Elementwise::new(Arithmetic::Multiply, Broadcast::new(Shape::new([1])?, vec![by])?)
    };
    let part = builder.add("a", scaled(0.1)?, &[ValueId::INPUT])?;
    let part = builder.add("b", scaled(0.3)?, &[part])?;
    let other = builder.add("c", scaled(-(0.1 * 0.3))?, &[ValueId::INPUT])?;
    let sum = builder.add("sum", Sum, &[part, other])?;
    let h = builder.add("relu", Relu, &[sum])?;
    let network = builder.finish(vec![h])?;
    let mut checker = Checker::new(&network, &Domain::uniform(1, 0.0, 1e-310)?)?;
    let layer = checker.next_layer().ok_or("a layer")?;
    checker.prove_linear(&all_bounds(1), &[]);
    assert!(checker.range(layer).upper[0] > 0.0);
    Ok(())
}

/// In doubles 0.1 + 0.2 is more than 0.3 and the same as the next double, but the exact sum lies between the two.
#[test]
fn signs_at_a_point_are_exact() -> Anything {
    let (below, above) = (0.3_f64, 0.3_f64.next_up());
    assert_eq!(0.1 + 0.2, above);
    let mut builder = Network::builder(Shape::new([2])?);
    let weights = Matrix::new(3, 2, vec![1.0, 1.0, 1.0, 1.0, 1.0, -2.0])?;
    let g = builder.add("fc", Dense::new(weights, Some(vec![-below, -above, 0.3]))?, &[ValueId::INPUT])?;
    let h = builder.add("relu", Relu, &[g])?;
    let network = builder.finish(vec![h])?;
    let domain = Domain::uniform(2, 0.0, 1.0)?;
    for pieces_at in [pieces_at::<f64>, pieces_at::<Exact>] {
        let found = pieces_at(&network, &domain, &[0.1, 0.2], &[1, 0, 2, 1].map(|unit| UnitId::new(0, unit)));
        // 0.3 as a double is a little less than 0.4 - 0.1, all three as doubles.
        assert_eq!(found, Some(vec![Some(0), Some(1), Some(0), Some(0)]));
        let equal = pieces_at(&network, &domain, &[0.0, 0.15], &[UnitId::new(0, 2)]);
        assert_eq!(equal, Some(vec![None]), "twice 0.15 is the double 0.3");
        assert_eq!(pieces_at(&network, &domain, &[0.1, 1.5], &[UnitId::new(0, 0)]), None, "not in the domain");
    }
    Ok(())
}

/// The largest of each window is the same element for all of them, so that its coefficient is a sum of many: 1, and
/// numbers that are nothing to it in doubles, one by one.
#[test]
fn coefficients_that_meet_below_windows_are_rounded() -> Anything {
    let count = 2000;
    let small = 1.0 / (1_u64 << 53) as f64;
    let constant = |shape: &[usize], numbers: Vec<f64>| Broadcast::new(Shape::new(shape)?, numbers);
    let mut builder = Network::builder(Shape::new([1, 2 * count + 1])?);
    let peak = (0..=2 * count).map(|at| f64::from(u8::from(at == count))).collect();
    let peak = Elementwise::new(Arithmetic::Add, constant(&[1, 2 * count + 1], peak)?)?;
    let peak = builder.add("peak", peak, &[ValueId::INPUT])?;
    let window = Window::new([WindowAxis::new(count + 1, 1)]);
    let largest = builder.add("largest", MaxPool::new(window.clone()), &[peak])?;
    let first = builder.add("first", Select::new(vec![vec![Some(0)]; 2]), &[largest])?;
    let sum = builder.add("sum", SumPool::new(window), &[largest])?;
    let sum = builder.add("small", Elementwise::new(Arithmetic::Multiply, constant(&[1, 1], vec![small])?)?, &[sum])?;
    let sum = builder.add("both", Sum, &[first, sum])?;
    // It is at most 2 (1 + (count + 1) small), and less than half as far above 2 when coefficients are rounded.
    let bias = vec![-(2.0 + count as f64 * small)];
    let sum = builder.add("bias", Elementwise::new(Arithmetic::Add, constant(&[1, 1], bias)?)?, &[sum])?;
    let last = builder.add("relu", Relu, &[sum])?;
    let network = builder.finish(vec![last])?;
    let domain = Domain::uniform(2 * count + 1, 0.0, 1.0)?;
    let mut checker = Checker::new(&network, &domain)?;
    let layer = checker.next_layer().ok_or("a layer")?;
    assert!(!checker.prove_channel(layer, 0, Side::Upper, 0, f64::INFINITY).is_proved, "it is more than 0");
    Ok(())
}
