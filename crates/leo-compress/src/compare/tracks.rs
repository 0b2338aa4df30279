//! Which channels of a network belong together whatever its numbers are, for two networks with the same nodes.
//!
//! What treats channels one by one has those of what it reads: an activation, a pool, a depthwise convolution. Where
//! branches are added up, both have the same ones, and values side by side have those of each, one after the other. So
//! the channels of every value are those of some *tracks*, each of which begins where weights for pairs of channels
//! make it. If the second network is the first with fewer channels, it has some of each track's, and the same ones
//! wherever the track goes.

use leo_network::op::{Action, AffineMap, Op};
use leo_network::{Network, Node, ValueId, ValueMap};

/// The tracks of two networks with the same nodes.
pub(crate) struct Tracks {
    /// For each track, how many channels it has in either network.
    pub(crate) widths: Vec<[usize; 2]>,
    /// For each track, the value that it begins with.
    pub(crate) begins: Vec<ValueId>,
    /// For each value, the tracks that it has, one after the other. None where its channels are parts of others, or
    /// several of them, as when positions become channels.
    pub(crate) of: ValueMap<Option<Vec<usize>>>,
}

/// Tracks as they are found.
#[derive(Default)]
struct Found {
    widths: Vec<[usize; 2]>,
    begins: Vec<ValueId>,
    /// The tracks that each one turned out to be; itself if there are none.
    is: Vec<Vec<usize>>,
}

impl Found {
    fn begin(&mut self, value: ValueId, widths: [usize; 2]) -> usize {
        self.widths.push(widths);
        self.begins.push(value);
        self.is.push(Vec::new());
        self.is.len() - 1
    }

    /// What tracks have turned out to be.
    fn resolved(&self, tracks: &[usize]) -> Vec<usize> {
        let of = |&track: &usize| match self.is[track].as_slice() {
            [] => vec![track],
            others => self.resolved(others),
        };
        tracks.iter().flat_map(of).collect()
    }

    fn width(&self, tracks: &[usize]) -> [usize; 2] {
        tracks.iter().fold([0; 2], |[a, b], &track| [a + self.widths[track][0], b + self.widths[track][1]])
    }

    /// Notes that both are the same channels: where several tracks are one, that one is made of them.
    fn join(&mut self, one: &[usize], other: &[usize]) {
        let [mut one, mut other] = [one, other].map(|tracks| {
            let mut tracks = self.resolved(tracks);
            tracks.reverse();
            tracks
        });
        while let (Some(a), Some(b)) = (one.pop(), other.pop()) {
            let (mut mine, mut theirs) = (vec![a], vec![b]);
            while self.width(&mine) != self.width(&theirs) {
                let is_shorter = self.width(&mine)[0] < self.width(&theirs)[0];
                let next = if is_shorter { one.pop() } else { other.pop() };
                let Some(next) = next else { return };
                if is_shorter { mine.push(next) } else { theirs.push(next) }
            }
            match (mine.as_slice(), theirs.as_slice()) {
                (&[a], &[b]) if a == b => {}
                // The later one is the earlier one.
                (&[a], &[b]) => self.is[a.max(b)] = vec![a.min(b)],
                (&[whole], parts) | (parts, &[whole]) if !parts.contains(&whole) => self.is[whole] = parts.to_vec(),
                _ => {}
            }
        }
    }
}

impl Tracks {
    /// Those of two networks, of which the nodes read and do the same.
    pub(crate) fn new(networks: [&Network; 2]) -> Self {
        let counts = |value: ValueId| networks.map(|network| network.channels(value).count());
        let mut found = Found::default();
        let mut of: Vec<Option<Vec<usize>>> = vec![Some(vec![found.begin(ValueId::INPUT, counts(ValueId::INPUT))])];
        for index in 0..networks[0].nodes().len() {
            let nodes = networks.map(|network| &network.nodes()[index]);
            let value = networks[0].result_of(index);
            let operands: Option<Vec<Vec<usize>>> =
                nodes[0].operands().iter().map(|operand| of[operand.index()].clone()).collect();
            let tracks = match (nodes[0].op(), operands) {
                (_, Some(operands)) if keeps_channels(networks, nodes) => {
                    operands[1..].iter().for_each(|other| found.join(&operands[0], other));
                    Some(operands[0].clone())
                }
                (Op::Concat(concat), Some(operands)) if concat.axis() == nodes[0].channels().axis() => {
                    Some(operands.concat())
                }
                (Op::Affine(AffineMap::Dense(_) | AffineMap::Convolution(_)), _) => {
                    Some(vec![found.begin(value, counts(value))])
                }
                _ => None,
            };
            // What does not have as many channels as that is something else.
            of.push(tracks.filter(|tracks| found.width(&found.resolved(tracks)) == counts(value)));
        }
        let of = of.into_iter().map(|tracks| tracks.map(|tracks| found.resolved(&tracks))).collect();
        Self { widths: found.widths, begins: found.begins, of }
    }

    /// For each track that a value has, its number and its first channel in either network.
    pub(crate) fn parts(&self, value: ValueId) -> Vec<(usize, [usize; 2])> {
        let mut first = [0; 2];
        let tracks = self.of[value].iter().flatten();
        let part = |&track: &usize| {
            let (at, width) = (first, self.widths[track]);
            first = [at[0] + width[0], at[1] + width[1]];
            (track, at)
        };
        tracks.map(part).collect()
    }
}

/// Whether the nodes treat channels one by one, so that they make as many of them as they read, and in the same order.
fn keeps_channels(networks: [&Network; 2], nodes: [&Node; 2]) -> bool {
    (0..2).all(|index| {
        let (network, node) = (networks[index], nodes[index]);
        let operand = node.operands()[0];
        let (read, made) = (network.channels(operand), node.channels());
        match node.op() {
            Op::Activation(_) | Op::Sum(_) => true,
            Op::MaxPool(_) => read.count() == made.count() && read.axis() == made.axis(),
            Op::Concat(concat) => {
                let axes = || node.operands().iter().map(|&operand| network.channels(operand).axis());
                concat.axis() != made.axis() && axes().all(|axis| axis == made.axis())
            }
            Op::Affine(AffineMap::Dense(_)) => false,
            Op::Affine(AffineMap::Convolution(map)) => {
                let is_depthwise = map.groups() == map.inputs() && map.groups() == map.outputs();
                is_depthwise && map.groups() > 1 && read.count() == map.inputs() && read.axis() == made.axis()
            }
            Op::Affine(AffineMap::Select(select)) => {
                let along = select.axes().get(made.axis());
                along.is_some_and(|along| along.iter().copied().eq((0..read.count()).map(Some)))
            }
            Op::Affine(map) => match map.action(network.shape(operand)) {
                Action::Move(moves) => {
                    let is_same = |element: usize| made.of(element) == read.of(moves.source(element));
                    read.count() == made.count() && (0..node.shape().elements()).all(is_same)
                }
                Action::Each(..) | Action::Sums(_) => read.count() == made.count() && read.axis() == made.axis(),
            },
        }
    })
}
