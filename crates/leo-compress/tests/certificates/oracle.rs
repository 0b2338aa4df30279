//! What is true of networks with one input, found out without any rounding: between the places where units turn on or
//! off, everything is a line.

use leo_network::{Domain, Evaluator, LayerId, Network, ValueId};
use num_rational::BigRational as Ratio;
use num_traits::{Signed, ToPrimitive, Zero};

use crate::support::{exact, values_at};

/// The ends of the domain, and all places between where a unit of one of the networks turns on or off.
fn places(networks: &[&Network], domain: &Domain) -> Vec<Ratio> {
    let mut places = vec![exact(domain.hull().lo()[0]), exact(domain.hull().hi()[0])];
    places.dedup();
    for network in networks {
        for layer in network.layers() {
            // Up to here, the layer's pre-activations are lines between places.
            let value = network.pre_activation(layer).index();
            let numbers: Vec<_> = places.iter().map(|x| values_at(network, vec![x.clone()])[value].clone()).collect();
            let mut more = Vec::new();
            for (ends, numbers) in places.windows(2).zip(numbers.windows(2)) {
                for (a, b) in numbers[0].iter().zip(&numbers[1]) {
                    if (a.is_positive() && b.is_negative()) || (a.is_negative() && b.is_positive()) {
                        more.push(&ends[0] + (&ends[1] - &ends[0]) * a / (a - b));
                    }
                }
            }
            places.extend(more);
            places.sort();
            places.dedup();
        }
    }
    places
}

/// For each element of each output of two networks, the most that it differs by anywhere on the domain.
pub fn differences(first: &Network, second: &Network, domain: &Domain) -> Vec<Vec<Ratio>> {
    let width = |&output: &ValueId| first.shape(output).elements();
    let mut most: Vec<Vec<Ratio>> = first.outputs().iter().map(|output| vec![Ratio::zero(); width(output)]).collect();
    for place in places(&[first, second], domain) {
        let [a, b] = [first, second].map(|network| {
            let values = values_at(network, vec![place.clone()]);
            network.outputs().iter().map(|output| values[output.index()].clone()).collect::<Vec<_>>()
        });
        for ((most, a), b) in most.iter_mut().flatten().zip(a.iter().flatten()).zip(b.iter().flatten()) {
            *most = most.clone().max((a - b).abs());
        }
    }
    most
}

/// The same in single precision, as far as it is seen: at numbers of that precision near the places where units turn on
/// or off.
pub fn differences_in_single(first: &Network, second: &Network, domain: &Domain) -> Vec<Vec<f64>> {
    let near = |place: Ratio| {
        let place = place.to_f32().unwrap_or(0.0);
        [place.next_down(), place, place.next_up()]
    };
    let places = places(&[first, second], domain).into_iter().flat_map(near);
    let points: Vec<f32> = places.filter(|&x| domain.contains(&[f64::from(x)])).collect();
    let [a, b] = [first, second].map(|network| Evaluator::<f32>::new(network).run(&points));
    let most = |(a, b): (&Vec<f32>, &Vec<f32>)| {
        let width = a.len() / points.len().max(1);
        let mut most = vec![0.0; width];
        for (index, (a, b)) in a.iter().zip(b).enumerate() {
            most[index % width] = f64::max(most[index % width], (f64::from(*a) - f64::from(*b)).abs());
        }
        most
    };
    a.iter().zip(&b).map(most).collect()
}

/// For each layer and unit, the least and the most that its pre-activation is.
pub fn ranges(network: &Network, domain: &Domain) -> Vec<Vec<(Ratio, Ratio)>> {
    let places = places(&[network], domain);
    let values: Vec<_> = places.iter().map(|place| values_at(network, vec![place.clone()])).collect();
    let of_layer = |layer: LayerId| {
        let value = network.pre_activation(layer).index();
        let of_unit = |unit: usize| {
            let numbers = values.iter().map(|values| values[value][unit].clone());
            (numbers.clone().min().expect("an end"), numbers.max().expect("an end"))
        };
        (0..values[0][value].len()).map(of_unit).collect()
    };
    network.layers().map(of_layer).collect()
}
