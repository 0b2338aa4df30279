//! Replacing parts of a network by other networks, and saying what became of which value.
//!
//! All values of the network and of the parts get a place each. Where a part begins stands for the value that it reads,
//! and a value where a part ends stands for what the part makes of it; every other place is made by its own node. What
//! is still needed is put into an order in which it can be evaluated, and built anew.

use std::collections::{BTreeSet, HashMap};

use crate::network::{Network, Node, ValueId, ValueMap};
use crate::shape::{NetworkError, Shape};

/// A part of a network, between one value and some others, and what is to stand there instead.
#[derive(Clone, Debug)]
pub struct Part {
    /// Where the part begins, and what `network` has as its input.
    pub from: ValueId,
    /// Where the part ends, and what the outputs of `network` are, in this order.
    pub to: Vec<ValueId>,
    /// What is to stand there.
    pub network: Network,
}

/// What came of a network, or of the file around it, and what became of which value.
#[derive(Clone, Debug)]
pub struct Spliced<T> {
    /// The new one.
    pub made: T,
    /// For each value of the old network, which one it is in the new network, if it is still there. A value where a
    /// part ends is what the part makes of it. (In a file, names tell values apart: one without a name counts as gone.)
    pub values: ValueMap<Option<ValueId>>,
    /// For each part, for each value of its network, which one it became, if anything needs it.
    pub parts: Vec<ValueMap<Option<ValueId>>>,
}

impl Network {
    /// This network with everything between where each part begins and where it ends replaced by the part's network.
    ///
    /// A part may begin where another one begins or ends, but every value is the end of one part at the most. Nodes
    /// that only the replaced parts needed go. Everything else stays as it is, and where it may, before what is new.
    ///
    /// # Errors
    /// If a part has other shapes than what it is to replace, or two parts end at the same value, or one at the input,
    /// or if a value would depend on itself, or the network gets too large.
    pub fn splice(&self, parts: &[Part]) -> Result<Spliced<Self>, NetworkError> {
        let places = Places::new(self, parts)?;
        let mut builder = Self::builder(self.input().clone());
        let mut became = HashMap::from([(ValueId::INPUT.index(), ValueId::INPUT)]);
        let order = in_order(&places.needed(self), |place| places.read_by(place));
        for place in order.map_err(|_| NetworkError::mismatch("a value would depend on itself"))? {
            let Some((node, _)) = places.makers[place] else { continue };
            let operands: Vec<ValueId> = places.read_by(place).map(|read| became[&read]).collect();
            became.insert(place, builder.add(node.name(), node.op().clone(), &operands)?);
        }
        let all: Vec<Option<ValueId>> = places.stands_for.iter().map(|place| became.get(place).copied()).collect();
        let (values, mut rest) = all.split_at(self.nodes().len() + 1);
        let mut of_parts = Vec::new();
        for part in parts {
            let (own, others) = rest.split_at(part.network.nodes().len() + 1);
            of_parts.push(own.to_vec().into());
            rest = others;
        }
        let outputs = self.outputs().iter().filter_map(|output| values[output.index()]).collect();
        Ok(Spliced { made: builder.finish(outputs)?, values: values.to_vec().into(), parts: of_parts })
    }
}

impl Part {
    /// Checks that it has the shapes of what it is to replace in `old`.
    ///
    /// # Errors
    /// If it has not.
    pub fn check_shapes(&self, old: &Network) -> Result<(), NetworkError> {
        let wanted: Vec<&Shape> = [self.from].iter().chain(&self.to).map(|&value| old.shape(value)).collect();
        let network = &self.network;
        let outputs = network.outputs().iter().map(|&value| network.shape(value));
        let given: Vec<&Shape> = std::iter::once(network.input()).chain(outputs).collect();
        if wanted == given {
            return Ok(());
        }
        Err(NetworkError::mismatch(format!("a part with shapes {given:?} cannot stand where shapes {wanted:?} are")))
    }
}

/// All values of a network and of the parts that go into it, in this order.
struct Places<'a> {
    /// For each, the node that makes it, and the place of the first value of its network.
    makers: Vec<Option<(&'a Node, usize)>>,
    /// For each, the place that it stands for: mostly itself.
    stands_for: Vec<usize>,
}

impl<'a> Places<'a> {
    fn new(network: &'a Network, parts: &'a [Part]) -> Result<Self, NetworkError> {
        let mut places = Self { makers: Vec::new(), stands_for: Vec::new() };
        places.add(network);
        let mut ends = BTreeSet::new();
        for part in parts {
            part.check_shapes(network)?;
            let first = places.makers.len();
            places.add(&part.network);
            places.stands_for[first] = part.from.index();
            for (end, made) in part.to.iter().zip(part.network.outputs()) {
                if *end == ValueId::INPUT || !ends.insert(*end) {
                    return Err(NetworkError::mismatch(format!("value {} is to be computed twice", end.index())));
                }
                places.stands_for[end.index()] = first + made.index();
            }
        }
        places.follow()?;
        Ok(places)
    }

    fn add(&mut self, network: &'a Network) {
        let first = self.makers.len();
        self.makers.push(None);
        self.makers.extend(network.nodes().iter().map(|node| Some((node, first))));
        self.stands_for.extend(first..self.makers.len());
    }

    /// Lets each place stand for one that stands for itself.
    fn follow(&mut self) -> Result<(), NetworkError> {
        for place in 0..self.stands_for.len() {
            let mut way = std::iter::successors(Some(place), |&place| Some(self.stands_for[place]));
            let end = way.by_ref().take(self.stands_for.len()).find(|&place| self.stands_for[place] == place);
            let end = end.ok_or_else(|| NetworkError::mismatch("a value would depend on itself"))?;
            self.stands_for[place] = end;
        }
        Ok(())
    }

    /// What the node reads that makes a place.
    fn read_by(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        let operands =
            self.makers[place].map(|(node, first)| node.operands().iter().map(move |read| first + read.index()));
        operands.into_iter().flatten().map(|read| self.stands_for[read])
    }

    /// What the outputs need, and what nothing needed before: that was not there for what is replaced.
    fn needed(&self, network: &Network) -> BTreeSet<usize> {
        let outputs = || network.outputs().iter().map(|output| output.index());
        let operands = |place: usize| self.makers[place].into_iter().flat_map(|(node, _)| node.operands());
        let before = closure(outputs(), |place| operands(place).map(|read| read.index()).collect());
        let unneeded = network.values().map(ValueId::index).filter(|place| !before.contains(place));
        let roots = outputs().chain(unneeded).map(|place| self.stands_for[place]);
        closure(roots, |place| self.read_by(place).collect())
    }
}

/// All that can be reached from some places.
fn closure(roots: impl Iterator<Item = usize>, next: impl Fn(usize) -> Vec<usize>) -> BTreeSet<usize> {
    let mut open: Vec<usize> = roots.collect();
    let mut reached = BTreeSet::new();
    while let Some(place) = open.pop() {
        if reached.insert(place) {
            open.extend(next(place));
        }
    }
    reached
}

/// These nodes, each after those it reads, otherwise in their own order; or one that depends on itself.
pub fn in_order<I: Iterator<Item = usize>>(
    nodes: &BTreeSet<usize>,
    read_by: impl Fn(usize) -> I,
) -> Result<Vec<usize>, usize> {
    let mut waiting_for: HashMap<usize, usize> = HashMap::new();
    let mut readers: HashMap<usize, Vec<usize>> = HashMap::new();
    for &node in nodes {
        let sources: BTreeSet<usize> = read_by(node).filter(|source| nodes.contains(source)).collect();
        waiting_for.insert(node, sources.len());
        for source in sources {
            readers.entry(source).or_default().push(node);
        }
    }
    let mut ready: BTreeSet<usize> = nodes.iter().copied().filter(|node| waiting_for[node] == 0).collect();
    let mut order = Vec::with_capacity(nodes.len());
    while let Some(node) = ready.pop_first() {
        order.push(node);
        for reader in readers.remove(&node).unwrap_or_default() {
            if let Some(count) = waiting_for.get_mut(&reader) {
                *count -= 1;
                if *count == 0 {
                    ready.insert(reader);
                }
            }
        }
    }
    let stuck = nodes.iter().copied().find(|node| waiting_for[node] > 0);
    stuck.map_or(Ok(order), Err)
}
