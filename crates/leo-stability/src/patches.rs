//! Linear bounds of channels, by patches (CROWN, Zhang et al. 2018, as in the Patches mode of auto_LiRPA, Xu et al.
//! 2020), for those that intervals and points leave open.
//!
//! Layer by layer, the channels that are nearest to a sign go first. Of each, the position that is furthest on the
//! wrong side is bounded. If it stays there, no more is tried: the corner of the domain where its bound is attained is
//! evaluated instead, which often shows that the channel cannot be decided. Otherwise all of its positions are bounded,
//! until one fails or none does: then the channel is proved to be off, or on, and all later ranges are narrower.
//!
//! Work is counted in products, and each layer has its share of what is left, so that what comes out depends on neither
//! the machine nor the number of threads.

use leo_check::{ChannelBounds, Checker, PatchBound, Side, Target};
use leo_network::{LayerId, Network};

use crate::budget::Budget;
use crate::channels::Seen;

/// How many products all bounds may take, for each that an evaluation has.
const MOST_EVALUATIONS: f64 = 20.0;

/// Where more than that part of a channel's range is on the wrong side, bounds are not tried.
const MOST_WRONG: f64 = 0.75;

/// How many products it counts as to look at a corner, for each that an evaluation has.
const EVALUATION: f64 = 2.0;

/// How many channels are tried before corners are evaluated.
const BATCH: usize = 16;

/// A channel that may be on one side of its knots everywhere.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Candidate {
    channel: usize,
    /// The side whose bounds would prove it.
    side: Side,
    /// What part of its range is on the wrong side.
    wrong: f64,
}

/// A search for channels that linear bounds decide.
pub(crate) struct PatchSearch<'n> {
    network: &'n Network,
    /// How many products are left.
    left: f64,
    /// What was proved.
    pub(crate) found: Vec<ChannelBounds>,
}

impl<'n> PatchSearch<'n> {
    pub(crate) fn new(network: &'n Network) -> Self {
        Self { network, left: MOST_EVALUATIONS * network.multiply_adds() as f64, found: Vec::new() }
    }

    /// Whether anything is proved, so that later ranges are to be found again.
    pub(crate) fn has_found(&self) -> bool {
        !self.found.is_empty()
    }

    /// The channels of a layer that are neither decided nor seen on both sides, nearest to a sign first.
    pub(crate) fn candidates(&self, layer: LayerId, checker: &Checker<'_>, seen: &Seen<'_>) -> Vec<Candidate> {
        let mut all = Vec::new();
        for channel in 0..self.network.width(layer) {
            let (lower, upper) = seen.range(layer, channel, checker.range(layer));
            if seen.is_decided(layer, lower, upper) || !(upper - lower).is_finite() {
                continue;
            }
            for (side, beyond) in [(Side::Upper, upper), (Side::Lower, -lower)] {
                let wrong = beyond / (upper - lower);
                if seen.may_be(layer, channel, side) && wrong <= MOST_WRONG {
                    all.push(Candidate { channel, side, wrong });
                }
            }
        }
        all.sort_by(|a, b| a.wrong.total_cmp(&b.wrong).then(a.channel.cmp(&b.channel)));
        all
    }

    /// Tries candidates of a layer. The checker has come to the end before, and goes back to the layer with the first
    /// that is proved.
    pub(crate) fn try_layer(
        &mut self,
        layer: LayerId,
        candidates: &[Candidate],
        checker: &mut Checker<'n>,
        seen: &mut Seen<'n>,
        budget: &Budget<'_>,
        advance: &dyn Fn(usize),
    ) {
        let share = self.left / (self.network.layers().len() - layer.index()) as f64;
        let mut spent = 0.0;
        let mut rest = candidates.iter();
        while spent < share && !budget.is_exhausted() {
            // What corners have shown meanwhile needs no bounds any more, nor does what is proved.
            let is_open = |candidate: &&Candidate| {
                seen.may_be(layer, candidate.channel, candidate.side)
                    && !self
                        .found
                        .iter()
                        .any(|known| known.layer == layer && known.channels.contains(&candidate.channel))
            };
            let worst = |&candidate: &Candidate| {
                let target = checker.open_positions(layer, candidate.channel, candidate.side).first().copied()?;
                Some((candidate, target))
            };
            let batch = rest.by_ref().filter(is_open).take(BATCH).filter_map(worst);
            let (batch, targets): (Vec<Candidate>, Vec<Target>) = batch.unzip();
            if batch.is_empty() {
                break;
            }
            let bounds = checker.patch_bounds(layer, &targets, 0);
            spent += bounds.iter().map(|bound| bound.products).sum::<f64>();
            let reaches =
                |(candidate, bound): &(Candidate, PatchBound)| bound.limit <= checker.goal(layer, candidate.side);
            let (near, far): (Vec<_>, Vec<_>) = batch.into_iter().zip(bounds).partition(reaches);
            let corners = corners(layer, &far, checker, seen);
            seen.look_at(&corners, None);
            spent += EVALUATION * (corners.len() * self.network.multiply_adds()) as f64;
            for (candidate, _) in near {
                if !budget.is_exhausted() {
                    spent += self.prove(layer, candidate, share - spent, checker);
                }
            }
            advance(targets.len());
        }
        self.left -= spent;
    }

    /// Bounds all positions of a channel, and returns how many products that took.
    fn prove(
        &mut self,
        layer: LayerId,
        Candidate { channel, side, .. }: Candidate,
        most_products: f64,
        checker: &mut Checker<'n>,
    ) -> f64 {
        let outcome = checker.prove_channel(layer, channel, side, 0, most_products);
        if outcome.is_proved {
            if self.found.is_empty() {
                // What was known of later values was found without this.
                checker.go_back(layer);
            }
            let first = outcome.first;
            let same = |known: &&mut ChannelBounds| (known.layer, known.side, known.first) == (layer, side, first);
            match self.found.iter_mut().find(same) {
                Some(known) => {
                    known.channels.push(channel);
                    known.channels.sort_unstable();
                }
                None => self.found.push(ChannelBounds { layer, side, first, channels: vec![channel] }),
            }
        }
        outcome.products
    }
}

/// The corners of the domain where bounds are attained that did not reach, if they may show something.
fn corners(layer: LayerId, far: &[(Candidate, PatchBound)], checker: &Checker<'_>, seen: &Seen<'_>) -> Vec<Vec<f64>> {
    let domain = checker.domain();
    let corner = |(candidate, bound): &(Candidate, PatchBound)| {
        let mut corner = domain.at(|| 0.5);
        let may_show = seen.may_be(layer, candidate.channel, candidate.side);
        (may_show && bound.move_to_corner(domain, &mut corner)).then_some(corner)
    };
    far.iter().filter_map(corner).collect()
}
