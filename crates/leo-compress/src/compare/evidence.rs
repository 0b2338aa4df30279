//! What tells channels of two networks apart: what they are at some points, and the weights that they are read and made
//! by.
//!
//! Values at points tell most channels. They do not tell one that is always 0 from another, or two that are made in the
//! same way; there the weights of their own do (of depthwise convolutions), those that they are read by, if it is known
//! which channels read them, and those that they are made of, if it is known which channels are read.

use leo_network::op::{Action, AffineMap, Op};
use leo_network::{Evaluator, Network, ValueId, ValueMap};

use crate::compare::tracks::Tracks;

/// How many elements of a channel are compared at each point.
const ELEMENTS: usize = 64;

/// For each channel of a track, some numbers, in the same order in both networks.
pub(crate) type ChannelNumbers = Vec<Vec<f64>>;

/// Which channels of the first network the second one has, track by track; nothing where it is not known yet.
pub(crate) type Matched = [Option<Vec<usize>>];

/// What the channels of a network's values are at some points.
pub(crate) struct Looks {
    /// For each value, for each channel, some of its elements at each point.
    pub(crate) of: ValueMap<ChannelNumbers>,
}

impl Looks {
    pub(crate) fn new(network: &Network, points: &[Vec<f64>]) -> Self {
        let evaluator = Evaluator::<f64>::new(network);
        let mut workspace = evaluator.workspace();
        let none = network.values().map(|value| vec![Vec::new(); network.channels(value).count()]);
        let mut of: ValueMap<ChannelNumbers> = none.collect();
        // Point by point: all values of many points at once may be too much.
        for point in points {
            let values = evaluator.forward(&mut workspace, point);
            for value in network.values() {
                let (channels, numbers) = (network.channels(value), values.get(value));
                let step = (channels.positions() / ELEMENTS).max(1);
                for (channel, known) in of[value].iter_mut().enumerate() {
                    let positions = (0..channels.positions()).step_by(step);
                    known.extend(positions.map(|position| numbers[channels.element(channel, position)]));
                }
            }
        }
        Self { of }
    }
}

/// What is known of two networks with the same nodes.
pub(crate) struct Evidence<'a> {
    pub(crate) networks: [&'a Network; 2],
    pub(crate) tracks: &'a Tracks,
    pub(crate) looks: [&'a Looks; 2],
    /// All nodes that have weights for pairs of channels.
    readers: Vec<ChannelWeights<'a>>,
}

/// A node with weights for pairs of channels, in both networks.
struct ChannelWeights<'a> {
    /// What it makes.
    made: ValueId,
    /// The value whose channels it reads, perhaps as positions of one.
    read: ValueId,
    /// In either network, a row of weights for each channel that it makes.
    rows: [Vec<&'a [f64]>; 2],
    /// For each channel that it reads, the places of its weights in a row.
    places: [Vec<Vec<usize>>; 2],
}

impl<'a> Evidence<'a> {
    pub(crate) fn new(networks: [&'a Network; 2], tracks: &'a Tracks, looks: [&'a Looks; 2]) -> Self {
        let reader = |index: usize| ChannelWeights::new(networks, tracks, index);
        let readers = (0..networks[0].nodes().len()).filter_map(reader).collect();
        Self { networks, tracks, looks, readers }
    }

    /// What tells the channels of a track apart, given what is known of others.
    pub(crate) fn of(&self, track: usize, matched: &Matched) -> Vec<[ChannelNumbers; 2]> {
        let mut found = Vec::new();
        for value in self.networks[0].values() {
            for (_, first) in self.tracks.parts(value).into_iter().filter(|(of, _)| *of == track) {
                found.push(self.of_track(track, first, |side, channel| self.looks[side].of[value][channel].clone()));
                let own = [0, 1].map(|side| value.node().and_then(|node| own_weights(self.networks[side], node)));
                if let [Some(one), Some(other)] = own {
                    let own = [one, other];
                    found.push(self.of_track(track, first, |side, channel| own[side][channel].to_vec()));
                }
            }
        }
        for reader in &self.readers {
            for (_, first) in self.tracks.parts(reader.read).into_iter().filter(|(of, _)| *of == track) {
                if let Some(pairs) = self.pairs(reader.made, matched) {
                    let weights = |side: usize, channel: usize| reader.column(side, channel, &pairs);
                    found.push(self.of_track(track, first, weights));
                }
            }
            for (_, first) in self.tracks.parts(reader.made).into_iter().filter(|(of, _)| *of == track) {
                if let Some(pairs) = self.pairs(reader.read, matched) {
                    found.push(self.of_track(track, first, |side, channel| reader.row(side, channel, &pairs)));
                }
            }
        }
        found
    }

    /// ChannelNumbers of all channels of a track, in both networks.
    fn of_track(&self, track: usize, first: [usize; 2], of: impl Fn(usize, usize) -> Vec<f64>) -> [ChannelNumbers; 2] {
        [0, 1].map(|side| (0..self.tracks.widths[track][side]).map(|channel| of(side, first[side] + channel)).collect())
    }

    /// The channels of a value that are the same in both networks, if that is known of all that the second one has.
    pub(crate) fn pairs(&self, value: ValueId, matched: &Matched) -> Option<Vec<[usize; 2]>> {
        self.tracks.of[value].as_ref()?;
        let mut pairs = Vec::new();
        for (track, first) in self.tracks.parts(value) {
            let channels = matched[track].as_ref()?.iter().enumerate();
            pairs.extend(channels.map(|(mine, theirs)| [first[0] + theirs, first[1] + mine]));
        }
        Some(pairs)
    }
}

/// The weights of each channel of a depthwise convolution.
fn own_weights(network: &Network, node: usize) -> Option<Vec<&[f64]>> {
    match network.nodes()[node].op() {
        Op::Affine(AffineMap::Convolution(map)) if map.groups() > 1 && map.groups() == map.outputs() => {
            Some(map.weights().chunks_exact(map.weights().len() / map.outputs()).collect())
        }
        _ => None,
    }
}

impl<'a> ChannelWeights<'a> {
    fn new(networks: [&'a Network; 2], tracks: &Tracks, index: usize) -> Option<Self> {
        let [one, other] = networks.map(|network| Reading::new(network, tracks, index));
        let (one, other) = (one?, other?);
        let (rows, places) = ([one.rows, other.rows], [one.places, other.places]);
        Some(Self { made: networks[0].result_of(index), read: one.read, rows, places })
    }

    /// The weights that a channel is read by, for channels that are made in both networks.
    fn column(&self, side: usize, channel: usize, made: &[[usize; 2]]) -> Vec<f64> {
        let rows = made.iter().map(|pair| self.rows[side][pair[side]]);
        rows.flat_map(|row| self.places[side][channel].iter().map(|&place| row[place])).collect()
    }

    /// The weights that a channel is made by, of channels that are read in both networks.
    fn row(&self, side: usize, channel: usize, read: &[[usize; 2]]) -> Vec<f64> {
        let row = self.rows[side][channel];
        read.iter().flat_map(|pair| self.places[side][pair[side]].iter().map(|&place| row[place])).collect()
    }
}

/// What a node reads by weights for pairs of channels.
struct Reading<'a> {
    read: ValueId,
    rows: Vec<&'a [f64]>,
    places: Vec<Vec<usize>>,
}

impl<'a> Reading<'a> {
    fn new(network: &'a Network, tracks: &Tracks, index: usize) -> Option<Self> {
        let node = &network.nodes()[index];
        let operand = node.operands()[0];
        let channels = network.channels(operand);
        let rank = network.shape(operand).rank();
        match node.op() {
            Op::Affine(AffineMap::Convolution(map)) if map.groups() == 1 => {
                let entries = map.window().entries()?;
                let is_along = channels.axis() + map.window().axes().len() + 1 == rank && tracks.of[operand].is_some();
                let places =
                    (0..channels.count()).map(|channel| (channel * entries..(channel + 1) * entries).collect());
                let rows = map.weights().chunks_exact(map.inputs() * entries).collect();
                is_along.then(|| Self { read: operand, rows, places: places.collect() })
            }
            Op::Affine(AffineMap::Dense(map)) => {
                let rows = (0..map.weight().rows()).map(|row| map.weight().row(row)).collect();
                if tracks.of[operand].is_some() {
                    let places = (0..channels.count()).map(|channel| vec![channel]).collect();
                    return (channels.axis() + 1 == rank).then_some(Self { read: operand, rows, places });
                }
                let (read, sources) = origin(network, tracks, operand).filter(|_| rank == 1)?;
                let channels = network.channels(read);
                let mut places = vec![vec![0; channels.positions()]; channels.count()];
                for (place, &source) in sources.iter().enumerate() {
                    places[channels.of(source)][channels.position(source)] = place;
                }
                Some(Self { read, rows, places })
            }
            _ => None,
        }
    }
}

/// The value that the elements of another one are, in another order perhaps, and which of them each is.
fn origin(network: &Network, tracks: &Tracks, value: ValueId) -> Option<(ValueId, Vec<usize>)> {
    let mut sources: Vec<usize> = (0..network.shape(value).elements()).collect();
    let mut value = value;
    while tracks.of[value].is_none() {
        let node = &network.nodes()[value.node()?];
        let operand = node.operands()[0];
        match node.op() {
            Op::Activation(_) => {}
            Op::Affine(map) => match map.action(network.shape(operand)) {
                Action::Move(moves) => sources.iter_mut().for_each(|source| *source = moves.source(*source)),
                Action::Each(..) => {}
                Action::Sums(_) => return None,
            },
            Op::Sum(_) | Op::Concat(_) | Op::MaxPool(_) => return None,
        }
        value = operand;
    }
    (sources.len() == network.shape(value).elements()).then_some((value, sources))
}
