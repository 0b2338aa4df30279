//! Channels that are always off, or always on, as linear bounds of each of their positions prove it.
//!
//! A channel is on one side of the knots of its activation if it is so at every position. Where the range leaves that
//! open, each position gets a linear bound of its own ([`mod@crate::patches`]), those that are furthest on the wrong
//! side first, and the first that stays there ends it: nothing is kept then. What is proved makes the ranges of all
//! layers after narrower.

use leo_network::{Domain, LayerId, Network, Observer, Step, UnitId};

use crate::checker::{Checker, ProvedBounds};
use crate::number::Number;
use crate::relaxation::{Side, Target};
use crate::verify::Refusal;

/// How many positions are bounded before one looks whether all of them are on the right side. (Not as many as there are
/// threads: what comes out is not to depend on that.)
const BATCH: usize = 16;

/// How many products the bounds of all channels may take at the most: what takes minutes. A small file could ask for
/// years.
fn most_work<N: Number>() -> f64 {
    if N::ROUNDS { 5e11 } else { 5e9 }
}

/// Channels of a layer that are always on one side of the knots of their activation: off, or on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChannelBounds {
    /// The layer.
    pub layer: LayerId,
    /// Which bounds prove it: upper ones that they are off, lower ones that they are on.
    pub side: Side,
    /// How far bounds need to go back: not through layers before this one.
    pub first: usize,
    /// Which channels, in ascending order.
    pub channels: Vec<usize>,
}

/// What came of bounding all positions of a channel.
#[derive(Clone, Debug)]
pub struct ChannelOutcome {
    /// Whether all of them are on the right side.
    pub is_proved: bool,
    /// The earliest layer that a bound went back through; where none went through any, how many layers there are.
    pub first: usize,
    /// How many products it took.
    pub products: f64,
}

impl<N: Number> Checker<'_, N> {
    /// The positions of a channel that the range leaves open from one side: those that are furthest on the wrong side
    /// first.
    ///
    /// # Panics
    /// If it has not come to the layer yet, or that has no such channel.
    pub fn open_positions(&self, layer: LayerId, channel: usize, side: Side) -> Vec<Target> {
        let channels = self.network().channels(self.network().pre_activation(layer));
        assert!(channel < channels.count(), "a channel that is there");
        let (range, goal) = (self.range(layer), N::of(self.goal(layer, side)));
        let beyond = |unit: usize| match side {
            Side::Lower => range.lower[unit].negative(),
            Side::Upper => range.upper[unit].clone(),
        };
        // What is not known is not reached.
        let is_reached = |at: &N| *at <= goal;
        let open = channels.elements(channel).map(|unit| (unit, beyond(unit))).filter(|(_, at)| !is_reached(at));
        let mut open: Vec<(usize, f64)> = open.map(|(unit, at)| (unit, at.rounded_up())).collect();
        open.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        open.into_iter().map(|(unit, _)| Target { unit, side }).collect()
    }

    /// Proves that a channel of a layer that it has come to is always on one side, and keeps that, if bounds that go
    /// back through no layer before `first` prove it at all positions with at most so many products.
    ///
    /// # Panics
    /// If it has not come to the layer yet, or that has no such channel.
    pub fn prove_channel(
        &mut self,
        layer: LayerId,
        channel: usize,
        side: Side,
        first: usize,
        most_products: f64,
    ) -> ChannelOutcome {
        let goal = N::of(self.goal(layer, side));
        let mut outcome = ChannelOutcome { is_proved: true, first: self.network().layers().len(), products: 0.0 };
        let mut bounds = Vec::new();
        for targets in self.open_positions(layer, channel, side).chunks(BATCH) {
            for (&target, found) in targets.iter().zip(self.patch_bounds(layer, targets, first)) {
                outcome.products += found.products;
                outcome.is_proved &= found.limit <= goal;
                outcome.first = found.first.map_or(outcome.first, |first| outcome.first.min(first.index()));
                bounds.push((target, found.limit));
            }
            outcome.is_proved &= outcome.products <= most_products;
            if !outcome.is_proved {
                return outcome;
            }
        }
        self.keep_bounds(layer, bounds);
        outcome
    }
}

impl<'n, N: Number> ProvedBounds<'n, N> {
    /// What intervals prove of all values, and linear bounds of these channels.
    ///
    /// # Errors
    /// If the domain is about another network, or one of the channels is not proved to be always off, or on, as it is
    /// said to be.
    pub fn of_channels(
        network: &'n Network,
        domain: &Domain,
        bounds: &[ChannelBounds],
        observer: &dyn Observer,
    ) -> Result<Self, Refusal> {
        let mut checker = Checker::<N>::begin(network, domain)?;
        let (layers, mut work) = (network.layers().len(), most_work::<N>());
        if !bounds.is_empty() {
            for layer in network.layers() {
                checker.next_layer();
                let own: Vec<&ChannelBounds> = bounds.iter().filter(|bounds| bounds.layer == layer).collect();
                let parts = own.iter().map(|bounds| bounds.channels.len()).sum();
                if parts > 0 {
                    observer.begin(Step::Bounds { layer: layer.index() + 1, layers }, parts);
                }
                for &ChannelBounds { side, first, ref channels, .. } in own {
                    for &channel in channels {
                        let outcome = checker.prove_channel(layer, channel, side, first, work);
                        work -= outcome.products;
                        observer.advance(1);
                        if outcome.is_proved {
                            continue;
                        }
                        let reason = match (work > 0.0, side) {
                            (false, _) => "its bounds take too much work",
                            (true, Side::Upper) => "a channel is said to be always off, and that is not proved",
                            (true, Side::Lower) => "a channel is said to be always on, and that is not proved",
                        };
                        return Err(Refusal::unit(UnitId { layer, unit: channel }, reason));
                    }
                }
            }
        }
        checker.go_to_end();
        Ok(checker.finish())
    }
}
