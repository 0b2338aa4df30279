//! Verdicts against exhaustive enumeration, for networks with several inputs.
//!
//! A pre-activation is a piecewise linear function of the input, so its extremes lie at corners of its pieces: where as
//! many of the planes that bound the pieces meet as there are inputs. The planes are the faces of the box, and those
//! where a unit of an earlier layer turns on, which depend on which units before it are on. Rational arithmetic finds
//! all of them.

use fastrand::Rng;
use leo_network::op::{Dense, Matrix, Relu};
use leo_network::{Domain, Network, NetworkError, Shape, ValueId};
use leo_stability::{AnalysisOptions, Engine, HAS_SOLVER, Status, analyze};
use num_rational::BigRational as Ratio;
use num_traits::{Signed, ToPrimitive, Zero};
use proptest::prelude::*;

/// Coefficients and a constant.
type Affine = (Vec<Ratio>, Ratio);
/// A layer's weights and biases.
type Layer = Vec<Affine>;

fn exact(number: f64) -> Ratio {
    Ratio::from_float(number).expect("finite")
}

fn at((coefficients, constant): &Affine, point: &[Ratio]) -> Ratio {
    coefficients.iter().zip(point).map(|(c, x)| c * x).sum::<Ratio>() + constant
}

/// The pre-activations of the layer after `layers`, or what else reads them, at a point.
fn hidden(layers: &[Layer], point: &[Ratio]) -> Vec<Ratio> {
    layers
        .iter()
        .fold(point.to_vec(), |values, layer| layer.iter().map(|unit| at(unit, &values).max(Ratio::zero())).collect())
}

/// Where planes meet, if they meet in one point: Gaussian elimination.
fn meet(planes: &[&Affine]) -> Option<Vec<Ratio>> {
    let size = planes.len();
    let mut rows: Vec<Vec<Ratio>> = planes
        .iter()
        .map(|(coefficients, constant)| coefficients.iter().cloned().chain([-constant.clone()]).collect())
        .collect();
    for column in 0..size {
        let pivot = (column..size).find(|&row| !rows[row][column].is_zero())?;
        rows.swap(column, pivot);
        let pivot_row = rows[column].clone();
        for (index, row) in rows.iter_mut().enumerate() {
            if index != column && !row[column].is_zero() {
                let factor = &row[column] / &pivot_row[column];
                row.iter_mut().zip(&pivot_row).for_each(|(number, pivot)| *number -= &factor * pivot);
            }
        }
    }
    Some((0..size).map(|row| &rows[row][size] / &rows[row][row]).collect())
}

/// All subsets of so many indices.
fn subsets(of: usize, size: usize) -> Vec<Vec<usize>> {
    if size == 0 {
        return vec![Vec::new()];
    }
    let last = |last: usize| {
        subsets(last, size - 1).into_iter().map(move |mut subset| {
            subset.push(last);
            subset
        })
    };
    (0..of).flat_map(last).collect()
}

/// A box, exactly.
struct Sides {
    lower: Vec<Ratio>,
    upper: Vec<Ratio>,
}

/// All corners of the pieces on which the layers are linear.
fn corners(layers: &[Layer], sides: &Sides) -> Vec<Vec<Ratio>> {
    let inputs = sides.lower.len();
    let axis = |index: usize| (0..inputs).map(|i| exact(if i == index { 1.0 } else { 0.0 })).collect::<Vec<_>>();
    let faces: Vec<Affine> = (0..inputs)
        .flat_map(|index| [&sides.lower[index], &sides.upper[index]].map(|side| (axis(index), -side.clone())))
        .collect();
    let units: usize = layers.iter().map(Vec::len).sum();
    let mut found = Vec::new();
    // Which units are on decides what the later layers' planes are. Those of the last layer need not be known.
    let free = units - layers.last().map_or(0, Vec::len);
    for pattern in 0..1_usize << free {
        let mut planes = faces.clone();
        let mut values: Vec<Affine> = (0..inputs).map(|index| (axis(index), Ratio::zero())).collect();
        let mut bit = 0;
        for layer in layers {
            let made: Vec<Affine> = layer.iter().map(|unit| composed(unit, &values, inputs)).collect();
            planes.extend(made.iter().cloned());
            values = made
                .into_iter()
                .map(|unit| {
                    let on = bit >= free || pattern >> bit & 1 == 1;
                    bit += 1;
                    if on { unit } else { (vec![Ratio::zero(); inputs], Ratio::zero()) }
                })
                .collect();
        }
        for subset in subsets(planes.len(), inputs) {
            let chosen: Vec<&Affine> = subset.iter().map(|&index| &planes[index]).collect();
            let Some(point) = meet(&chosen) else { continue };
            let inside = |(x, (lower, upper)): (&Ratio, (&Ratio, &Ratio))| lower <= x && x <= upper;
            if point.iter().zip(sides.lower.iter().zip(&sides.upper)).all(inside) {
                found.push(point);
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

/// A linear function of linear functions.
fn composed((coefficients, constant): &Affine, values: &[Affine], inputs: usize) -> Affine {
    let mut result = (vec![Ratio::zero(); inputs], constant.clone());
    for (c, (inner, shift)) in coefficients.iter().zip(values) {
        result.0.iter_mut().zip(inner).for_each(|(sum, number)| *sum += c * number);
        result.1 += c * shift;
    }
    result
}

/// A network, and the least and the greatest pre-activation of each unit.
struct Planted {
    network: Network,
    extremes: Vec<Vec<(Ratio, Ratio)>>,
}

fn planted(random: &mut Rng, domain: &Domain, widths: &[usize]) -> Result<Planted, NetworkError> {
    let sides = Sides {
        lower: domain.hull().lo().iter().copied().map(exact).collect(),
        upper: domain.hull().hi().iter().copied().map(exact).collect(),
    };
    let mut builder = Network::builder(Shape::new([domain.len()])?);
    let (mut value, mut layers, mut extremes) = (ValueId::INPUT, Vec::<Layer>::new(), Vec::new());
    for (depth, &width) in widths.iter().enumerate() {
        let before = layers.last().map_or(domain.len(), Vec::len);
        let points: Vec<Vec<Ratio>> = corners(&layers, &sides).iter().map(|point| hidden(&layers, point)).collect();
        let range = |unit: &Affine| {
            let values: Vec<Ratio> = points.iter().map(|point| at(unit, point)).collect();
            let (least, most) = (values.iter().min(), values.iter().max());
            (least.cloned().unwrap_or_default(), most.cloned().unwrap_or_default())
        };
        let (mut rows, mut biases): (Vec<Vec<f64>>, Vec<f64>) = Default::default();
        for unit in 0..width {
            let mut weights: Vec<f64> = (0..before).map(|_| f64::from(random.i8(-8..9)) / 4.0).collect();
            let mut bias = f64::from(random.i8(-12..13)) / 4.0;
            match random.u8(0..10) {
                // Zero, perhaps with a constant.
                0 => weights.fill(0.0),
                // The same as its neighbour, or its opposite.
                1 if unit > 0 => (weights, bias) = (rows[unit - 1].clone(), biases[unit - 1]),
                2 if unit > 0 => weights = rows[unit - 1].iter().map(|weight| -weight).collect(),
                // Its maximum, or its minimum, is 0, or next to it.
                kind @ 3..7 => {
                    let (least, most) = range(&(weights.iter().copied().map(exact).collect(), Ratio::zero()));
                    let extreme = if random.bool() { most } else { least }.to_f64().unwrap_or(0.0);
                    bias = [0.0, 0.0, 1e-9, -1e-9][usize::from(kind) - 3] - extreme;
                }
                _ => {}
            }
            rows.push(weights);
            biases.push(bias);
        }
        let layer: Layer = rows
            .iter()
            .zip(&biases)
            .map(|(row, &bias)| (row.iter().copied().map(exact).collect(), exact(bias)))
            .collect();
        extremes.push(layer.iter().map(range).collect());
        let dense = Dense::new(Matrix::new(width, before, rows.concat())?, Some(biases))?;
        let g = builder.add(format!("fc{depth}"), dense, &[value])?;
        value = builder.add(format!("relu{depth}"), Relu, &[g])?;
        layers.push(layer);
    }
    Ok(Planted { network: builder.finish(vec![value])?, extremes })
}

/// Points, thin, huge, one-sided and plain boxes; each input has its own kind.
fn random_domain(random: &mut Rng, inputs: usize) -> Domain {
    let (mut lower, mut upper) = (Vec::new(), Vec::new());
    let common = random.u8(0..7);
    for _ in 0..inputs {
        let place = f64::from(random.i8(-8..9)) / 4.0;
        let kind = if random.u8(0..3) == 0 { random.u8(0..7) } else { common };
        let (lo, hi) = match kind {
            0 => (place, place),
            1 => (place, place + 2_f64.powi(-30)),
            2 => (-2_f64.powi(20), 2_f64.powi(20)),
            3 => (0.0, place.abs() + 0.25),
            4 => (-place.abs() - 0.25, 0.0),
            _ => (place, place + f64::from(random.u8(1..9)) / 4.0),
        };
        lower.push(lo);
        upper.push(hi);
    }
    Domain::new(lower, upper).expect("not reversed")
}

/// What a unit is that has these extremes. One that is always 0 is both of two things.
fn truth((least, most): &(Ratio, Ratio)) -> &'static [Status] {
    match (least.is_negative(), most.is_positive()) {
        (false, false) => &[Status::OFF, Status::ON],
        (true, false) => &[Status::OFF],
        (false, true) => &[Status::ON],
        (true, true) => &[Status::Unstable],
    }
}

/// How near to 0 an extreme may be for a unit to be left undecided.
///
/// Proofs and points are made of doubles, and an extreme of 0 between the corners of the box may need thirds.
const ROUNDING_TOLERANCE: f64 = 1e-13;

/// No verdict is wrong, and nothing is left open unless an extreme is within `margin` of 0, for a range of size 1.
/// Without a margin, anything may be.
fn check(seed: u64, inputs: usize, widths: &[usize], engine: Engine, margin: Option<f64>) -> Result<(), TestCaseError> {
    let mut random = Rng::with_seed(seed);
    let domain = random_domain(&mut random, inputs);
    let planted = planted(&mut random, &domain, widths).expect("shapes fit");
    let options = AnalysisOptions { engine, ..AnalysisOptions::default() };
    let analysis = analyze(&planted.network, &domain, &options).expect("the domain fits");
    for (depth, (layer, extremes)) in analysis.layers.iter().zip(&planted.extremes).enumerate() {
        for (unit, (found, extremes)) in layer.units.iter().zip(extremes).enumerate() {
            let scale = 1.0 + found.lower.abs().max(found.upper.abs());
            let nearest = extremes.0.abs().min(extremes.1.abs());
            let near = |margin: f64| depth > 0 && nearest <= exact(margin * scale);
            let open = found.status == Status::Undecided && margin.is_none_or(near);
            prop_assert!(
                open || truth(extremes).contains(&found.status),
                "layer {depth}, unit {unit}: {found:?}, but it is within [{}, {}]; {domain:?}",
                extremes.0.to_f64().unwrap_or(f64::NAN),
                extremes.1.to_f64().unwrap_or(f64::NAN)
            );
            let proved = exact(found.lower) <= extremes.0 && extremes.1 <= exact(found.upper);
            prop_assert!(proved, "layer {depth}, unit {unit}: {found:?} misses [{}, {}]", extremes.0, extremes.1);
        }
    }
    Ok(())
}

/// Without a solver more is left open.
fn margin(margin: f64) -> Option<f64> {
    HAS_SOLVER.then_some(margin)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn one_input_and_three_layers(seed in any::<u64>()) {
        check(seed, 1, &[5, 5, 5], Engine::Auto, margin(1e-6))?;
    }

    #[test]
    fn two_inputs_and_three_layers(seed in any::<u64>()) {
        check(seed, 2, &[3, 3, 4], Engine::Auto, margin(1e-6))?;
    }

    #[test]
    fn three_inputs_and_two_layers(seed in any::<u64>()) {
        check(seed, 3, &[4, 5], Engine::Auto, margin(1e-6))?;
    }

    #[test]
    fn bounds_alone_are_right_too(seed in any::<u64>()) {
        check(seed, 2, &[3, 3, 4], Engine::Bounds, None)?;
    }

    #[test]
    fn what_mixed_integer_programs_say_is_confirmed(seed in any::<u64>()) {
        check(seed, 2, &[3, 3], Engine::Milp, None)?;
    }
}

/// Of units that are stable or unstable by 1e-9, a few in a hundred thousand need numbers that a solver's tolerance
/// does not give. Not among these.
#[test]
fn barely_stable_and_barely_unstable_units_are_decided() {
    for seed in (0..200_u64).map(|seed| seed.wrapping_mul(0x9E37_79B9_7F4A_7C15)) {
        for (inputs, widths) in [(2, &[3, 3, 4][..]), (3, &[4, 5])] {
            check(seed, inputs, widths, Engine::Auto, margin(ROUNDING_TOLERANCE)).expect("all are");
        }
    }
}
