//! What is true of networks with one input, found out without any rounding: between the places where units turn on or off, everything is a line.

use leo_network::{Domain, Network};
use num_rational::BigRational as Ratio;
use num_traits::{Signed, Zero};

use crate::support::{exact, values_at};

/// The ends of the domain, and all places between where a unit of one of the networks turns on or off.
fn places(networks: &[&Network], domain: &Domain) -> Vec<Ratio> {
    let mut places = vec![exact(domain.lo()[0]), exact(domain.hi()[0])];
    places.dedup();
    for network in networks {
        for layer in network.relu_layers() {
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

/// For each output of two networks, the most that it differs by anywhere on the domain.
pub fn differences(first: &Network, second: &Network, domain: &Domain) -> Vec<Ratio> {
    let mut most = vec![Ratio::zero(); first.outputs().len()];
    for place in places(&[first, second], domain) {
        let [a, b] = [first, second].map(|network| {
            let values = values_at(network, vec![place.clone()]);
            network.outputs().iter().map(|output| values[output.index()].clone()).collect::<Vec<_>>()
        });
        for ((most, a), b) in most.iter_mut().zip(&a).zip(&b) {
            for (a, b) in a.iter().zip(b) {
                *most = most.clone().max((a - b).abs());
            }
        }
    }
    most
}

/// For each layer and unit, the least and the most that its pre-activation is.
pub fn ranges(network: &Network, domain: &Domain) -> Vec<Vec<(Ratio, Ratio)>> {
    let places = places(&[network], domain);
    let values: Vec<_> = places.iter().map(|place| values_at(network, vec![place.clone()])).collect();
    let of_layer = |layer: usize| {
        let value = network.pre_activation(layer).index();
        let of_unit = |unit: usize| {
            let numbers = values.iter().map(|values| values[value][unit].clone());
            (numbers.clone().min().expect("an end"), numbers.max().expect("an end"))
        };
        (0..values[0][value].len()).map(of_unit).collect()
    };
    network.relu_layers().map(of_layer).collect()
}
