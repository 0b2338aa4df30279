//! Channels that leave together, because a node treats them one by one.

use leo_network::op::{Action, Op};
use leo_network::{Network, Node, ValueId, ValueMap};

/// Sets of channels, joined as they are found to belong together (Tarjan 1975).
pub(crate) struct Joined(pub(crate) Vec<usize>);

impl Joined {
    pub(crate) fn find(&mut self, mut place: usize) -> usize {
        while self.0[place] != place {
            self.0[place] = self.0[self.0[place]];
            place = self.0[place];
        }
        place
    }

    pub(crate) fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.find(a), self.find(b));
        // By the smaller one, so that a group is called the same however it came to be.
        self.0[a.max(b)] = a.min(b);
    }
}

/// Joins the channels that a node reads and makes, if it treats them one by one, or in groups that are no smaller.
pub(crate) fn tie(network: &Network, node: &Node, value: ValueId, first: &ValueMap<usize>, joined: &mut Joined) {
    let made = node.channels();
    let mut last = (usize::MAX, usize::MAX);
    let mut pair = |element: usize, operand: ValueId, source: usize| {
        let (a, b) = (first[value] + made.of(element), first[operand] + network.channels(operand).of(source));
        if (a, b) != last {
            joined.join(a, b);
            last = (a, b);
        }
    };
    let elements = 0..node.shape().elements();
    match node.op() {
        Op::Activation(_) | Op::Sum(_) => {
            node.operands().iter().for_each(|&operand| elements.clone().for_each(|at| pair(at, operand, at)));
        }
        Op::Concat(concat) => {
            let sources = concat.sources(&network.operand_shapes(node)).into_iter().enumerate();
            sources.for_each(|(element, (index, source))| pair(element, node.operands()[index], source));
        }
        Op::MaxPool(pool) => {
            let operand = node.operands()[0];
            let windows = pool.windows(network.shape(operand));
            elements.for_each(|element| windows.of(element).for_each(|source| pair(element, operand, source)));
        }
        Op::Affine(map) if !map.ties_channels() => {}
        Op::Affine(map) => {
            let operand = node.operands()[0];
            match map.action(network.shape(operand)) {
                Action::Move(moves) => elements.for_each(|element| pair(element, operand, moves.source(element))),
                Action::Each(..) => elements.for_each(|element| pair(element, operand, element)),
                Action::Sums(sums) => {
                    elements
                        .for_each(|element| sums.terms(element).for_each(|(source, _)| pair(element, operand, source)));
                }
            }
        }
    }
}
