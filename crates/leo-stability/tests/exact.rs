//! Verdicts against exact enumeration.
//!
//! A network with one input is a list of piecewise linear functions of it, and rational arithmetic finds their extremes exactly.

use fastrand::Rng;
use leo_network::op::{Dense, Matrix, Relu};
use leo_network::{Domain, Network, NetworkError, Shape, ValueId};
use leo_stability::{By, Options, Status, analyze};
use num_rational::BigRational as Ratio;
use num_traits::{Signed, ToPrimitive, Zero};
use proptest::prelude::*;

/// A continuous function, linear between its points.
type Function = Vec<(Ratio, Ratio)>;

fn whole(number: i64) -> Ratio {
    Ratio::from_integer(number.into())
}

fn at(function: &Function, x: &Ratio) -> Ratio {
    let after = function.iter().position(|point| point.0 >= *x).unwrap_or(function.len() - 1);
    if function[after].0 == *x {
        return function[after].1.clone();
    }
    let ((x0, y0), (x1, y1)) = (&function[after - 1], &function[after]);
    y0 + (y1 - y0) * (x - x0) / (x1 - x0)
}

/// A sum of multiples of functions, plus a constant.
fn affine(functions: &[Function], weights: &[i64], bias: &Ratio) -> Function {
    let mut places: Vec<Ratio> = functions.iter().flatten().map(|point| point.0.clone()).collect();
    places.sort();
    places.dedup();
    let value = |x: &Ratio| {
        let terms = functions.iter().zip(weights).map(|(function, &weight)| at(function, x) * whole(weight));
        bias + terms.sum::<Ratio>()
    };
    places.into_iter().map(|x| (x.clone(), value(&x))).collect()
}

fn relu(function: &Function) -> Function {
    let mut points: Function = Vec::new();
    for (index, (x, y)) in function.iter().enumerate() {
        if let Some((x0, y0)) = index.checked_sub(1).map(|before| &function[before])
            && (y0 * y).is_negative()
        {
            points.push((x0 - y0 * (x - x0) / (y - y0), Ratio::zero()));
        }
        points.push((x.clone(), y.clone().max(Ratio::zero())));
    }
    points
}

/// What a unit with this pre-activation is. One that is always 0 is both of two things.
fn truth(function: &Function) -> &'static [Status] {
    match (function.iter().any(|point| point.1.is_positive()), function.iter().any(|point| point.1.is_negative())) {
        (false, false) => &[Status::Inactive, Status::Active],
        (false, true) => &[Status::Inactive],
        (true, false) => &[Status::Active],
        (true, true) => &[Status::Unstable],
    }
}

/// What the units of each layer are.
type Truths = Vec<Vec<&'static [Status]>>;

/// A network with one input, and what its units really are.
fn planted(seed: u64, lo: i64, hi: i64) -> Result<(Network, Truths), NetworkError> {
    let mut random = Rng::with_seed(seed);
    let mut functions: Vec<Function> = vec![vec![(whole(lo), whole(lo)), (whole(hi), whole(hi))]];
    functions[0].dedup();
    let mut builder = Network::builder(Shape::new([1])?);
    let (mut value, mut statuses) = (ValueId::INPUT, Vec::new());
    for layer in 0..3 {
        let (mut rows, mut biases, mut made): (Vec<Vec<i64>>, Vec<f64>, Vec<Function>) = Default::default();
        for unit in 0..5 {
            let mut weights: Vec<i64> = functions.iter().map(|_| i64::from(random.i8(-3..4))).collect();
            let mut bias = f64::from(random.i8(-6..7)) / 2.0;
            match random.u8(0..8) {
                // Zero, perhaps with a constant.
                0 => weights.fill(0),
                // The same as its neighbour, or its negative.
                1 if unit > 0 => weights.clone_from(&rows[unit - 1]),
                2 if unit > 0 => weights = rows[unit - 1].iter().map(|weight| -weight).collect(),
                // Its maximum, or its minimum, is 0, or next to it.
                kind @ 3..6 => {
                    let function = affine(&functions, &weights, &Ratio::zero());
                    let values = function.iter().map(|point| &point.1);
                    let extreme = if random.bool() { values.max() } else { values.min() };
                    let extreme = extreme.and_then(Ratio::to_f64).unwrap_or(0.0);
                    bias = [0.0, 1e-9, -1e-9][usize::from(kind) - 3] - extreme;
                }
                _ => {}
            }
            made.push(affine(&functions, &weights, &Ratio::from_float(bias).unwrap_or_default()));
            rows.push(weights);
            biases.push(bias);
        }
        let numbers = rows.concat().iter().map(|&weight| weight as f64).collect();
        let dense = Dense::new(Matrix::new(rows.len(), functions.len(), numbers)?, Some(biases))?;
        let g = builder.add(format!("fc{layer}"), dense, &[value])?;
        value = builder.add(format!("relu{layer}"), Relu, &[g])?;
        statuses.push(made.iter().map(truth).collect());
        functions = made.iter().map(relu).collect();
    }
    Ok((builder.finish(vec![value])?, statuses))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_verdict_is_wrong(seed in any::<u64>(), lo in -4_i8..4, width in prop_oneof![Just(0_i16), 0_i16..5, Just(1000)]) {
        let (lo, hi) = (i64::from(lo), i64::from(lo) + i64::from(width));
        let (network, truths) = planted(seed, lo, hi).expect("shapes fit");
        let domain = Domain::uniform(1, lo as f64, hi as f64).expect("not reversed");
        let layers = analyze(&network, &domain, &Options::default()).expect("one input").layers;
        for (depth, (layer, truths)) in layers.iter().zip(&truths).enumerate() {
            for (unit, (found, truth)) in layer.units.iter().zip(truths).enumerate() {
                // Bounds are exact for the first layer, and nothing is left open there.
                let open = found.status == Status::Undecided && depth > 0;
                prop_assert!(open || truth.contains(&found.status), "layer {depth}, unit {unit}: {found:?}, not {truth:?}");
            }
        }
    }
}

/// Solvers work to tolerances of about 1e-6, and call this unit always off: its weights are near 1e-7, its bias is near -6e-6.
#[test]
fn a_unit_just_above_zero_is_not_taken_for_stable() -> Result<(), Box<dyn std::error::Error>> {
    let mut random = Rng::with_seed(0);
    let mut weights: Vec<f64> = (0..784).map(|_| f64::from((random.f32() - 0.7) * 3e-7)).collect();
    let positive: f64 = weights.iter().filter(|&&weight| weight > 0.0).sum();
    let bias = f64::from((2.7e-6 - positive) as f32);
    assert!(bias < -1e-7, "off at 0: {bias}");
    // The same unit once more, but never on.
    weights.extend_from_within(..);
    let dense = Dense::new(Matrix::new(2, 784, weights)?, Some(vec![bias, bias - 3e-6]))?;
    let mut builder = Network::builder(Shape::new([784])?);
    let g = builder.add("fc", dense, &[ValueId::INPUT])?;
    let h = builder.add("relu", Relu, &[g])?;
    let network = builder.finish(vec![h])?;
    let layers = analyze(&network, &Domain::uniform(784, 0.0, 1.0)?, &Options::default())?.layers;
    assert_eq!(
        layers[0].units.iter().map(|unit| unit.status).collect::<Vec<_>>(),
        [Status::Unstable, Status::Inactive]
    );
    assert!((layers[0].units[0].upper - 2.7e-6).abs() < 1e-9);
    Ok(())
}

/// `relu(x) - relu(x - 1/2)` is at most 1/2, but no line above it and below the other is less than 3/4 on [-1, 1].
#[test]
fn what_no_line_shows_a_case_distinction_proves() -> Result<(), Box<dyn std::error::Error>> {
    let mut builder = Network::builder(Shape::new([1])?);
    let first = Dense::new(Matrix::new(2, 1, vec![1.0, 1.0])?, Some(vec![0.0, -0.5]))?;
    let g = builder.add("fc1", first, &[ValueId::INPUT])?;
    let h = builder.add("relu1", Relu, &[g])?;
    let second = Dense::new(Matrix::new(1, 2, vec![1.0, -1.0])?, Some(vec![-0.6]))?;
    let g = builder.add("fc2", second, &[h])?;
    let h = builder.add("relu2", Relu, &[g])?;
    let network = builder.finish(vec![h])?;
    let layers = analyze(&network, &Domain::uniform(1, -1.0, 1.0)?, &Options::default())?.layers;
    let unit = &layers[1].units[0];
    assert_eq!((unit.status, unit.by), (Status::Inactive, Some(By::Split)), "{unit:?}");
    Ok(())
}
