//! The bound on how far two networks are apart holds whatever is claimed, and is nothing where nothing differs.

use fastrand::Rng;
use leo_check::{Checker, Correspondence, Exact, Expression, Mismatch, Number, ProvedBounds, Target, deviation};
use leo_network::op::{
    Arithmetic, Broadcast, Dense, Elementwise, Matrix, Relu, Reshape, Sum, SumPool, Transpose, Window, WindowAxis,
};
use leo_network::{Domain, Evaluator, LayerId, Network, NetworkError, Shape, UnitId, ValueId};
use proptest::prelude::*;

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn chain(layers: &[(&[&[f64]], &[f64])]) -> Result<Network, NetworkError> {
    let mut builder = Network::builder(Shape::new([layers[0].0[0].len()])?);
    let mut value = ValueId::INPUT;
    for (index, (rows, bias)) in layers.iter().enumerate() {
        let dense = Dense::new(Matrix::new(rows.len(), rows[0].len(), rows.concat())?, Some(bias.to_vec()))?;
        value = builder.add("fc", dense, &[value])?;
        if index + 1 < layers.len() {
            value = builder.add("relu", Relu, &[value])?;
        }
    }
    builder.finish(vec![value])
}

fn facts<'n>(network: &'n Network, domain: &Domain) -> Anything<ProvedBounds<'n>> {
    facts_in(network, domain)
}

fn facts_in<'n, N: Number>(network: &'n Network, domain: &Domain) -> Anything<ProvedBounds<'n, N>> {
    let mut checker = Checker::begin(network, domain)?;
    while let Some(layer) = checker.next_layer() {
        let units = checker.range(layer).lower.len();
        let bounds: Vec<_> = (0..units).flat_map(Target::both).collect();
        checker.prove_linear(&bounds, &[]);
    }
    Ok(checker.finish())
}

/// x -> relu(x) - relu(-x) + relu(x + 3) + relu(x - 3) on [-1, 1] is 2 x + 3: each unit for another reason.
#[test]
fn every_unit_can_go_for_its_own_reason() -> Anything {
    let four =
        chain(&[(&[&[1.0], &[-1.0], &[1.0], &[1.0]], &[0.0, 0.0, 3.0, -3.0]), (&[&[1.0, -1.0, 1.0, 1.0]], &[0.0])])?;
    let line = chain(&[(&[&[2.0]], &[3.0])])?;
    let domain = Domain::uniform(1, -1.0, 1.0)?;
    let facts = facts(&four, &domain)?;
    let opposite = Expression::Multiple { of: UnitId::new(0, 0), factor: -1.0 };
    let claims = vec![vec![Expression::Itself, opposite, Expression::linear(0.0), Expression::constant(0.0)]];
    let pairs = Correspondence { anchors: vec![], claims, roles: vec![] };
    let found = deviation(&facts, &line, &pairs)?;
    assert!(found[0][0] <= 1e-14, "{found:?}");

    // The same without the reason for the pair: relu(x) - relu(-x) is then anything from -1 to 1, and x is not.
    let claims = vec![vec![Expression::Itself, Expression::Itself, Expression::linear(0.0), Expression::constant(0.0)]];
    let found = deviation(&facts, &line, &Correspondence { claims, ..pairs.clone() })?;
    assert!(found[0][0] >= 1.0, "{found:?}");

    // What is wrong costs as much as it is wrong by.
    let claims = vec![vec![Expression::Itself, opposite, Expression::constant(3.0), Expression::constant(0.0)]];
    let found = deviation(&facts, &line, &Correspondence { claims, ..pairs.clone() })?;
    assert!(found[0][0] >= 1.0, "{found:?}");
    Ok(())
}

#[test]
fn a_network_is_no_distance_from_itself() -> Anything {
    let mut builder = Network::builder(Shape::new([2])?);
    let thirds = Elementwise::new(Arithmetic::Divide, Broadcast::new(Shape::new([1])?, vec![3.0])?)?;
    let x = builder.add("thirds", thirds, &[ValueId::INPUT])?;
    let first = Dense::new(Matrix::new(2, 2, vec![0.1, 0.7, -0.3, 0.2])?, Some(vec![0.05, 0.01]))?;
    let g = builder.add("fc1", first, &[x])?;
    let h = builder.add("relu1", Relu, &[g])?;
    let sum = builder.add("sum", Sum, &[x, h])?;
    let network = builder.finish(vec![sum])?;
    let domain = Domain::uniform(2, -1.0, 1.0)?;
    let facts = facts(&network, &domain)?;
    let roles = (0..2).map(|unit| Expression::copy(UnitId::new(0, unit))).collect();
    let same = |value: ValueId| (value, value);
    let pairs = Correspondence {
        anchors: vec![same(x), same(sum)],
        claims: vec![vec![Expression::Itself; 2]],
        roles: vec![roles],
    };
    assert_eq!(deviation(&facts, &network, &pairs)?, [[0.0, 0.0]], "exactly, division or not");
    Ok(())
}

#[test]
fn what_makes_no_sense_is_refused() -> Anything {
    let one = chain(&[(&[&[1.0]], &[0.0]), (&[&[1.0]], &[0.0])])?;
    let two = chain(&[(&[&[1.0, 1.0]], &[0.0]), (&[&[1.0]], &[0.0])])?;
    let twice = chain(&[(&[&[2.0]], &[0.0]), (&[&[1.0]], &[0.0])])?;
    let domain = Domain::uniform(1, -1.0, 1.0)?;
    let facts = facts(&one, &domain)?;
    let copy = Expression::copy(UnitId::new(0, 0));
    let pairs = |claim, role| Correspondence { anchors: vec![], claims: vec![vec![claim]], roles: vec![vec![role]] };
    assert_eq!(deviation(&facts, &two, &pairs(Expression::Itself, copy)), Err(Mismatch::Interface));
    let missing = Expression::copy(UnitId::new(0, 1));
    assert_eq!(
        deviation(&facts, &twice, &pairs(Expression::Itself, missing)),
        Err(Mismatch::Expression { layer: 0, unit: 0 }),
        "a copy of what there is not"
    );
    for factor in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let copy = Expression::Multiple { of: UnitId::new(0, 0), factor };
        assert!(deviation(&facts, &twice, &pairs(Expression::Itself, copy)).is_err(), "{factor}");
    }
    let itself = Expression::Multiple { of: UnitId::new(0, 0), factor: 1.0 };
    assert!(deviation(&facts, &twice, &pairs(itself, Expression::linear(0.0))).is_err(), "a multiple of itself");
    let none = Correspondence::default();
    assert_eq!(deviation(&facts, &twice, &none), Err(Mismatch::Layers { layers: 1, said: 0 }));
    let long = chain(&[(&[&[1.0]], &[0.0]), (&[&[1.0]], &[0.0]), (&[&[1.0]], &[0.0])])?;
    let beyond =
        Correspondence { anchors: vec![(long.outputs()[0], one.outputs()[0])], ..pairs(Expression::Itself, copy) };
    assert_eq!(deviation(&facts, &twice, &beyond), Err(Mismatch::Anchor), "a value that the network does not have");
    Ok(())
}

/// What a value of the second network is expressed by is one thing, and an operator does the same only to the same
/// shapes.
#[test]
fn anchors_do_not_vouch_for_each_other() -> Anything {
    let number = |number: f64| Broadcast::new(Shape::new([1])?, vec![number]);
    let times = |factor| Elementwise::new(Arithmetic::Multiply, number(factor)?);
    let plus_one = || Elementwise::new(Arithmetic::Add, number(1.0)?);
    let domain = Domain::uniform(1, 0.0, 1.0)?;
    let mut builder = Network::builder(Shape::new([1])?);
    let five = builder.add("five", times(5.0)?, &[ValueId::INPUT])?;
    let two = builder.add("two", times(2.0)?, &[ValueId::INPUT])?;
    let shifted = builder.add("shifted", plus_one()?, &[two])?;
    let output = builder.add("sum", Sum, &[shifted, five])?;
    let first = builder.finish(vec![output])?;
    let mut builder = Network::builder(Shape::new([1])?);
    let only = builder.add("five", times(5.0)?, &[ValueId::INPUT])?;
    let theirs = builder.add("shifted", plus_one()?, &[only])?;
    let output = builder.add("sum", Sum, &[theirs, only])?;
    let second = builder.finish(vec![output])?;
    let facts = facts(&first, &domain)?;
    let anchored = |anchors: &[_]| Correspondence { anchors: anchors.to_vec(), ..Correspondence::default() };
    // 7 x + 1 and 10 x + 1.
    for anchors in [&[(five, only), (two, only), (shifted, theirs)][..], &[(two, ValueId::INPUT), (shifted, theirs)]] {
        assert_eq!(deviation(&facts, &second, &anchored(anchors)), Err(Mismatch::Anchor));
    }
    assert!(deviation(&facts, &second, &anchored(&[(two, only), (shifted, theirs)]))?[0][0] >= 3.0);

    let turned = |rows: usize, columns: usize| -> Result<Network, NetworkError> {
        let mut builder = Network::builder(Shape::new([6])?);
        let value = builder.add("in", Reshape::new(Shape::new([rows, columns])?), &[ValueId::INPUT])?;
        let value = builder.add("turn", Transpose::new(vec![1, 0])?, &[value])?;
        let value = builder.add("out", Reshape::new(Shape::new([6])?), &[value])?;
        builder.finish(vec![value])
    };
    let (first, second) = (turned(2, 3)?, turned(3, 2)?);
    let domain = Domain::uniform(6, 0.0, 1.0)?;
    let facts = facts_in::<f64>(&first, &domain)?;
    let anchors: Vec<_> = first.values().zip(second.values()).skip(1).take(2).collect();
    assert!(deviation(&facts, &second, &anchored(&anchors))?[0].iter().any(|delta| *delta >= 1.0));
    Ok(())
}

/// Sums that overflow in both directions are no numbers, and no bounds.
#[test]
fn coefficients_that_overflow_prove_nothing() -> Anything {
    let rows: [&[f64]; 2] = [&[1e300, 0.0], &[1e300, 1.0]];
    let first = chain(&[(&rows, &[10.0, 10.0]), (&[&[1e10, -1e10]], &[0.0]), (&[&[1.0]], &[0.0])])?;
    let second = chain(&[(&rows, &[10.0, 10.0]), (&[&[0.0, 0.0]], &[0.0]), (&[&[1.0]], &[0.0])])?;
    let domain = Domain::new(vec![0.0, -1.0], vec![1e-320, 1.0])?;
    let facts = facts(&first, &domain)?;
    let roles = vec![vec![Expression::linear(0.0); 2], vec![Expression::constant(0.0)]];
    for claim in [Expression::linear(0.0), Expression::constant(0.0)] {
        let claims = vec![vec![Expression::linear(0.0); 2], vec![claim]];
        let pairs = Correspondence { anchors: vec![], claims, roles: roles.clone() };
        // At (0, -1) the first is 1e10.
        assert!(deviation(&facts, &second, &pairs)?[0][0] >= 1e10, "{claim:?}");
    }
    Ok(())
}

/// A copy of a unit of the first layer in the second layer, beside a unit that is linear in the same unit.
#[test]
fn copies_beside_linear_units_count() -> Anything {
    let one = chain(&[(&[&[1.0]], &[0.0]), (&[&[1.0]], &[0.0])])?;
    let both: [&[f64]; 2] = [&[1.0], &[1.0]];
    let twisted: [&[f64]; 2] = [&[0.0, 1.0], &[1.0, 0.0]];
    let two = chain(&[(&both, &[10.0, 0.0]), (&twisted, &[0.0, -10.0]), (&[&[1.0, 1.0]], &[0.0])])?;
    let domain = Domain::uniform(1, -1.0, 1.0)?;
    let facts = facts(&one, &domain)?;
    let roles = vec![vec![Expression::linear(0.0), Expression::copy(UnitId::new(0, 0))]; 2];
    let pairs = Correspondence { anchors: vec![], claims: vec![vec![Expression::Itself]], roles };
    // It is 2 relu(x).
    assert!(deviation(&facts, &two, &pairs)?[0][0] >= 1.0);
    let input = Correspondence { anchors: vec![(ValueId::INPUT, ValueId::INPUT)], ..pairs };
    assert_eq!(deviation(&facts, &two, &input), Err(Mismatch::Anchor), "the input is the same as it is");
    Ok(())
}

fn number(random: &mut Rng) -> f64 {
    f64::from(random.i8(-16..17)) / 8.0
}

fn random_network(random: &mut Rng, widths: &[usize]) -> Result<Network, NetworkError> {
    let mut builder = Network::builder(Shape::new([widths[0]])?);
    let mut value = ValueId::INPUT;
    for (index, pair) in widths.windows(2).enumerate() {
        let weights = (0..pair[0] * pair[1]).map(|_| number(random)).collect();
        let bias = (0..pair[1]).map(|_| number(random)).collect();
        value = builder.add("fc", Dense::new(Matrix::new(pair[1], pair[0], weights)?, Some(bias))?, &[value])?;
        if index + 2 < widths.len() {
            value = builder.add("relu", Relu, &[value])?;
        }
    }
    builder.finish(vec![value])
}

/// Claims and roles without any sense, but for what is refused.
fn random_pairs(random: &mut Rng, first: &Network, second: &Network) -> Correspondence {
    let mut claims = Vec::new();
    for &units in &first.hidden() {
        let mut layer = vec![Expression::Itself];
        for _ in 1..units {
            layer.push(match random.u8(0..4) {
                0 => Expression::Itself,
                1 => Expression::constant(number(random)),
                2 => Expression::linear(number(random)),
                _ => Expression::Multiple { of: UnitId::new(claims.len(), 0), factor: number(random) + 0.001 },
            });
        }
        claims.push(layer);
    }
    let layers: Vec<LayerId> = first.layers().collect();
    let role = |random: &mut Rng| match random.u8(0..5) {
        0 => Expression::constant(number(random)),
        1 | 2 => Expression::linear(0.0),
        _ => Expression::Multiple {
            of: UnitId { layer: layers[random.usize(0..layers.len())], unit: 0 },
            factor: number(random).abs() + 0.5,
        },
    };
    let roles = second.hidden().iter().map(|&units| (0..units).map(|_| role(random)).collect()).collect();
    let values = |network: &Network| network.values().collect::<Vec<_>>();
    let mut anchors = Vec::new();
    for (&a, &b) in values(first).iter().zip(&values(second)).skip(1) {
        if random.u8(0..3) == 0 && first.shape(a).elements() == second.shape(b).elements() {
            anchors.push((a, b));
        }
    }
    Correspondence { anchors, claims, roles }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_claim_makes_the_bound_too_small(seed in any::<u64>()) {
        let mut random = Rng::with_seed(seed);
        let widths: Vec<usize> = (0..random.usize(3..6)).map(|_| random.usize(1..4)).collect();
        let first = random_network(&mut random, &widths).expect("shapes fit");
        let second = match random.bool() {
            true => first.clone(),
            false => random_network(&mut random, &widths).expect("shapes fit"),
        };
        let reach = number(&mut random).abs();
        let domain = Domain::uniform(widths[0], -reach, reach + 0.5).expect("not reversed");
        let facts = facts(&first, &domain).expect("the domain fits");
        let pairs = random_pairs(&mut random, &first, &second);
        let Ok(bounds) = deviation(&facts, &second, &pairs) else { return Ok(()) };
        let exact_facts = facts_in::<Exact>(&first, &domain).expect("the domain fits");
        let exact = deviation(&exact_facts, &second, &pairs).expect("as before");
        let exact: Vec<f64> = exact[0].iter().map(Number::rounded_up).collect();
        let points: Vec<f64> = (0..200 * widths[0])
            .map(|_| match random.u8(0..3) {
                0 => -reach,
                1 => reach + 0.5,
                _ => -reach + random.f64() * (2.0 * reach + 0.5),
            })
            .collect();
        let [a, b] = [&first, &second].map(|network| Evaluator::<f64>::new(network).run(&points));
        for (index, (a, b)) in a[0].iter().zip(&b[0]).enumerate() {
            let bound = bounds[0][index % bounds[0].len()];
            let exact = exact[index % exact.len()];
            // Where a range ends just at 0, rounding decides which of two ways is taken. Either is sound, and the other
            // one may be a little better.
            prop_assert!(exact <= bound * 1.05 + 1e-9, "without rounding {exact}, with it {bound}");
            for proved in [exact, bound] {
                prop_assert!((a - b).abs() <= proved + 1e-9 * (1.0 + a.abs() + b.abs()), "{a} and {b}, {proved}");
            }
        }
    }
}

/// A map of each element by itself takes little room in a file, and its expression as much as a full matrix.
#[test]
fn expressions_that_need_too_much_room_are_refused() -> Anything {
    fn compare<N: Number>(elements: usize) -> Anything<Result<Vec<Vec<N>>, Mismatch>> {
        let scaled = |factor: f64| -> Anything<Network> {
            let mut builder = Network::builder(Shape::new([elements, 1])?);
            let dense = Dense::new(Matrix::new(1, 1, vec![factor])?, None)?;
            let value = builder.add("fc", dense, &[ValueId::INPUT])?;
            Ok(builder.finish(vec![value])?)
        };
        let (first, second) = (scaled(1.0)?, scaled(2.0)?);
        let facts = facts_in::<N>(&first, &Domain::uniform(elements, -1.0, 1.0)?)?;
        Ok(deviation(&facts, &second, &Correspondence::default()))
    }
    assert!(compare::<f64>(100)?.is_ok());
    assert_eq!(compare::<f64>(25_000)?, Err(Mismatch::TooLarge));
    assert_eq!(compare::<Exact>(6_000)?, Err(Mismatch::TooLarge));
    Ok(())
}

/// Two matrices in a row, and factors that no double holds the products of: expressions are rounded, and yet nothing
/// moves if units that are off are left out. Where a number differs in its last bit, or a unit is not off, something
/// does.
#[test]
fn what_is_made_in_the_same_way_is_no_distance_apart() -> Anything {
    let build = |kept: &[usize], nudge: f64, low: f64| -> Anything<Network> {
        let number = |index: usize| (index as f64 * 0.7).sin();
        let mut builder = Network::builder(Shape::new([2])?);
        let first = Dense::new(Matrix::new(3, 2, (0..6).map(number).collect())?, None)?;
        let x = builder.add("first", first, &[ValueId::INPUT])?;
        let rows = kept.iter().flat_map(|row| (0..3).map(move |column| number(10 + 3 * row + column))).collect();
        let bias = kept.iter().map(|&row| if row == 1 { low } else { 0.1 }).collect();
        let g = builder.add("second", Dense::new(Matrix::new(kept.len(), 3, rows)?, Some(bias))?, &[x])?;
        let factors = kept.iter().map(|&row| 1.0 / (3.0 + row as f64) + nudge).collect();
        let constant = Broadcast::new(Shape::new([kept.len()])?, factors)?;
        let g = builder.add("scale", Elementwise::new(Arithmetic::Multiply, constant)?, &[g])?;
        let h = builder.add("relu", Relu, &[g])?;
        let last = kept.iter().map(|&row| number(30 + row)).collect();
        let y = builder.add("last", Dense::new(Matrix::new(1, kept.len(), last)?, None)?, &[h])?;
        Ok(builder.finish(vec![y])?)
    };
    let domain = Domain::uniform(2, -1.0, 1.0)?;
    let claims = vec![vec![Expression::Itself, Expression::constant(0.0), Expression::Itself]];
    let roles = vec![[0, 2].map(|unit| Expression::copy(UnitId::new(0, unit))).to_vec()];
    let pairs = Correspondence { anchors: vec![], claims, roles };
    let apart = |low: f64, nudge: f64| -> Anything<f64> {
        let (first, second) = (build(&[0, 1, 2], 0.0, low)?, build(&[0, 2], nudge, low)?);
        Ok(deviation(&facts(&first, &domain)?, &second, &pairs)?[0][0])
    };
    assert_eq!(apart(-9.0, 0.0)?, 0.0);
    assert!(apart(-9.0, 1e-16)? > 0.0);
    assert!(apart(1.0, 0.0)? > 0.0);
    Ok(())
}

/// A difference that is too long to be kept as an expression becomes a symbol. That of an anchor once took the place of
/// the symbol of the ReLU that is the anchor.
#[test]
fn the_symbols_of_an_anchor_are_not_those_of_its_units() -> Anything {
    fn apart<N: Number>() -> Anything<f64> {
        let network = |of_first: f64| -> Anything<(Network, ValueId)> {
            let mut builder = Network::builder(Shape::new([2])?);
            // More layers side by side than differences are kept for.
            let mut sum = builder.add("", Relu, &[ValueId::INPUT])?;
            for _ in 0..70 {
                let another = builder.add("", Relu, &[ValueId::INPUT])?;
                sum = builder.add("", Sum, &[sum, another])?;
            }
            let nothing = Elementwise::new(Arithmetic::Multiply, Broadcast::new(Shape::new([1])?, vec![0.0])?)?;
            let nothing = builder.add("", nothing, &[sum])?;
            let dense = Dense::new(Matrix::new(2, 2, vec![1.0, 0.0, 0.0, 1e-12])?, None)?;
            let g = builder.add("", dense, &[ValueId::INPUT])?;
            let g = builder.add("", Sum, &[g, nothing])?;
            let h = builder.add("", Relu, &[g])?;
            let y = builder.add("", Dense::new(Matrix::new(1, 2, vec![of_first, 0.0])?, None)?, &[h])?;
            Ok((builder.finish(vec![y])?, h))
        };
        let ((first, anchor), (second, _)) = (network(0.0)?, network(1.0)?);
        let layers: Vec<LayerId> = first.layers().collect();
        let copies = |&layer: &LayerId| [0, 1].map(|unit| Expression::copy(UnitId { layer, unit })).to_vec();
        let mut roles: Vec<Vec<Expression>> = layers.iter().map(copies).collect();
        roles[layers.len() - 1] = vec![Expression::constant(0.0), Expression::linear(0.0)];
        let pairs = Correspondence {
            anchors: vec![(anchor, anchor)],
            claims: vec![vec![Expression::Itself; 2]; layers.len()],
            roles,
        };
        let facts = facts_in::<N>(&first, &Domain::uniform(2, -1.0, 1.0)?)?;
        Ok(deviation(&facts, &second, &pairs)?[0][0].rounded_up())
    }
    // One is always 0, the other relu(x).
    assert!(apart::<f64>()? >= 1.0);
    assert!(apart::<Exact>()? >= 1.0);
    Ok(())
}

/// Half of the smallest double is no double.
#[test]
fn parts_of_tiny_factors_are_not_rounded_away() -> Anything {
    fn apart<N: Number>() -> Anything<f64> {
        let power = |exponent: i32| 2.0_f64.powi(exponent);
        let first = chain(&[(&[&[power(920)]], &[0.0]), (&[&[power(-919)]], &[0.0])])?;
        let mut builder = Network::builder(Shape::new([1])?);
        let dense = |weight: f64, bias: f64| Dense::new(Matrix::new(1, 1, vec![weight])?, Some(vec![bias]));
        let g = builder.add("", dense(power(-154), power(-300))?, &[ValueId::INPUT])?;
        let h = builder.add("", Relu, &[g])?;
        let p = builder.add("", dense(power(155), 0.0)?, &[h])?;
        let x = builder.add("", dense(-1.0, 0.0)?, &[ValueId::INPUT])?;
        let y = builder.add("", Sum, &[p, x])?;
        let second = builder.finish(vec![y])?;
        let copy = Expression::Multiple { of: UnitId::new(0, 0), factor: power(-1074) };
        let pairs = Correspondence { anchors: vec![], claims: vec![vec![Expression::Itself]], roles: vec![vec![copy]] };
        let facts = facts_in::<N>(&first, &Domain::uniform(1, -1.0, 1.0)?)?;
        Ok(deviation(&facts, &second, &pairs)?[0][0].rounded_up())
    }
    // One is 2 relu(x), the other the absolute value of x.
    assert!(apart::<f64>()? >= 1.0);
    assert!(apart::<Exact>()? >= 1.0);
    Ok(())
}

/// In a network with a pool, units are channels: a claim for each of these once left the other elements of an output
/// out of what was compared.
#[test]
fn claims_of_channels_prove_nothing_of_elements() -> Anything {
    let relu = |scale: f64, pools: bool| -> Result<Network, NetworkError> {
        let mut builder = Network::builder(Shape::new([4])?);
        let mut value = ValueId::INPUT;
        if pools {
            value = builder.add("rows", Reshape::new(Shape::new([1, 4])?), &[value])?;
            value = builder.add("pool", SumPool::new(Window::new([WindowAxis::new(1, 1)])), &[value])?;
            value = builder.add("flat", Reshape::new(Shape::new([4])?), &[value])?;
        }
        let rows = (0..16).map(|i| if i % 5 == 0 { scale } else { 0.0 }).collect();
        value = builder.add("fc", Dense::new(Matrix::new(4, 4, rows)?, None)?, &[value])?;
        value = builder.add("table", Reshape::new(Shape::new([2, 2])?), &[value])?;
        let units = builder.add("relu", Relu, &[value])?;
        builder.finish(vec![units])
    };
    let (first, second) = (relu(1.0, false)?, relu(100.0, true)?);
    assert_eq!((first.hidden(), second.hidden()), (vec![4], vec![2]));
    let facts = facts(&first, &Domain::uniform(4, -1.0, 1.0)?)?;
    let copies = (0..2).map(|unit| Expression::copy(UnitId::new(0, unit))).collect();
    let pairs = Correspondence { anchors: vec![], claims: vec![vec![Expression::Itself; 4]], roles: vec![copies] };
    assert_eq!(deviation(&facts, &second, &pairs), Err(Mismatch::NotDense));
    Ok(())
}
