//! How far two networks can be apart, piece by piece of the domain: for networks with few inputs.
//!
//! Where units are unstable, a bound has to allow for on and off, and what that costs grows from layer to layer. On a
//! small piece of the domain most units are one or the other. So the domain is cut in two, and the halves again, always
//! where the bound is worst, along the input that the first layer feels most; and what holds on all pieces holds on the
//! domain.
//!
//! That is branch and bound by input splitting, as in ReluVal (S. Wang et al., *Formal Security Analysis of Neural
//! Networks using Symbolic Intervals*, USENIX Security 2018), which bisects inputs too, and picks them by width and
//! gradient; here it refines a bound on a difference, as in ReluDiff (see [`crate::compare::equiv`]).

use std::collections::BinaryHeap;
use std::time::Instant;

use leo_check::{Checker, Correspondence, Target, deviation};
use leo_network::{Domain, Evaluator, Network, Observer};
use leo_stability::{AnalysisOptions, StopReason};
use rayon::prelude::*;

use crate::compare::equiv::{Comparison, Guess};
use crate::compare::falsify::gradients_at;
use crate::deltas::{largest, take_less, take_more};

/// For how many inputs that is worth trying: beyond that, halves are hardly smaller than the whole.
const MOST_INPUTS: usize = 16;

/// How many pieces there may be.
const MOST_PIECES: usize = 1 << 13;

/// How many pieces are cut at once, on however many threads.
const PIECES_A_STEP: usize = 16;

/// Whether a network has so few inputs that pieces of its domain may help.
pub fn has_few_inputs(network: &Network) -> bool {
    network.input().elements() <= MOST_INPUTS
}

/// Makes the bounds of a comparison better, by cutting the domain, until they are good enough or a limit is reached.
pub fn refine_by_pieces(
    [first, second]: [&Network; 2],
    domain: &Domain,
    mut comparison: Comparison,
    options: &AnalysisOptions<'_>,
    is_enough: impl Fn(&[Vec<f64>]) -> bool,
) -> Comparison {
    let Some(Guess { is_reversed, pairs }) = comparison.guess.take() else { return comparison };
    let Ok(domain) = domain.clone().for_inputs(first.input().elements()) else { return comparison };
    let networks = if is_reversed { [second, first] } else { [first, second] };
    let pair = NetworkPair { networks, pairs: &pairs, weights: weights(networks[0], &domain) };
    let end = options.time_limit.and_then(|limit| Instant::now().checked_add(limit));
    let closed = comparison.deviation.iter().map(|bounds| vec![0.0; bounds.len()]).collect();
    let mut search = SubdomainSearch { open: BinaryHeap::new(), closed, pieces: 1 };
    search.add(Subdomain { bounds: comparison.deviation.clone(), domain }, &is_enough);
    comparison.stopped = None;
    while !search.open.is_empty() && search.pieces < MOST_PIECES {
        if options.observer.is_some_and(Observer::is_stopped) {
            comparison.stopped = Some(StopReason::Interrupted);
            break;
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            comparison.stopped = Some(StopReason::OutOfTime);
            break;
        }
        search.step(&pair, &is_enough);
    }
    take_less(&mut comparison.deviation, &search.bounds());
    comparison
}

/// How much the first layer of a network feels each input.
fn weights(network: &Network, domain: &Domain) -> Vec<f64> {
    let Some(layer) = network.layers().next() else { return vec![1.0; domain.len()] };
    let value = network.pre_activation(layer);
    let units: Vec<usize> = (0..network.shape(value).elements()).collect();
    let evaluator = Evaluator::<f64>::new(network);
    let points = domain.at(|| 0.5).repeat(units.len());
    let slopes = gradients_at(network, &evaluator, value, &points, &units);
    let mut weights = vec![0.0; domain.len()];
    for row in slopes.chunks_exact(domain.len()) {
        weights.iter_mut().zip(row).for_each(|(weight, slope)| *weight += slope.abs());
    }
    weights
}

/// Two networks, and what corresponds to what.
struct NetworkPair<'a> {
    networks: [&'a Network; 2],
    pairs: &'a Correspondence,
    /// For each input, how much it matters.
    weights: Vec<f64>,
}

impl NetworkPair<'_> {
    /// How far the networks can be apart on a piece; nothing if that is too much work.
    fn bounds(&self, piece: &Domain) -> Option<Vec<Vec<f64>>> {
        let mut checker = Checker::new(self.networks[0], piece).ok()?;
        while let Some(layer) = checker.next_layer() {
            let units = 0..checker.range(layer).lower.len();
            let sides = units.flat_map(Target::both);
            checker.prove_linear(&sides.collect::<Vec<_>>(), &[]);
        }
        deviation(&checker.finish(), self.networks[1], self.pairs).ok()
    }

    /// Both halves of a piece, unless it is too narrow for a number between its ends.
    fn halves(&self, piece: &Domain) -> Option<[Domain; 2]> {
        let widths = piece.hull().sides().zip(&self.weights);
        let felt = widths.map(|((lo, hi), weight)| (hi - lo) * (weight + f64::MIN_POSITIVE)).enumerate();
        piece.halves(felt.max_by(|(_, a), (_, b)| a.total_cmp(b))?.0)
    }
}

/// A piece of the domain, and what is proved on it.
struct Subdomain {
    bounds: Vec<Vec<f64>>,
    domain: Domain,
}

impl Subdomain {
    fn worst(&self) -> f64 {
        largest(&self.bounds)
    }
}

impl PartialEq for Subdomain {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Subdomain {}

impl PartialOrd for Subdomain {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Subdomain {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.worst().total_cmp(&other.worst())
    }
}

/// All pieces.
struct SubdomainSearch {
    /// The pieces whose bounds could be better.
    open: BinaryHeap<Subdomain>,
    /// The largest bounds on the other pieces.
    closed: Vec<Vec<f64>>,
    pieces: usize,
}

impl SubdomainSearch {
    fn add(&mut self, piece: Subdomain, is_enough: &impl Fn(&[Vec<f64>]) -> bool) {
        if is_enough(&piece.bounds) { self.close(&piece) } else { self.open.push(piece) }
    }

    fn close(&mut self, piece: &Subdomain) {
        take_more(&mut self.closed, &piece.bounds);
    }

    /// Cuts the worst pieces.
    fn step(&mut self, pair: &NetworkPair<'_>, is_enough: &impl Fn(&[Vec<f64>]) -> bool) {
        let mut halves = Vec::new();
        for _ in 0..PIECES_A_STEP {
            let Some(piece) = self.open.pop() else { break };
            match pair.halves(&piece.domain) {
                Some(both) => {
                    self.pieces += 1;
                    halves.extend(both.map(|domain| Subdomain { bounds: piece.bounds.clone(), domain }));
                }
                None => self.close(&piece),
            }
        }
        // What holds on the whole holds on its half.
        halves.par_iter_mut().for_each(|half| {
            if let Some(bounds) = pair.bounds(&half.domain) {
                take_less(&mut half.bounds, &bounds);
            }
        });
        halves.into_iter().for_each(|half| self.add(half, is_enough));
    }

    /// What holds on all pieces.
    fn bounds(self) -> Vec<Vec<f64>> {
        let mut most = self.closed;
        self.open.iter().for_each(|piece| take_more(&mut most, &piece.bounds));
        most
    }
}
