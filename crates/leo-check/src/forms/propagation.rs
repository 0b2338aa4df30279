//! What nodes that are no units make of forms: affine maps of them, and sums.
//!
//! Coefficients go through a matrix as values do, and radii through its absolute values. What each operation rounds is
//! added to the radius, times the magnitude of the basis element that it was a coefficient of.

use std::collections::BTreeMap;

use leo_network::op::{Action, ActionKind, Arithmetic, Moves, Op, Sums};
use leo_network::{Network, Node};

use super::{AffineForms, Block, add_tracked, limits};
use crate::basis::{Basis, MemoryBudget};
use crate::number::Number;
use crate::range::Range;
use crate::sound::{Upper, slack, underflow};

impl<N: Number> AffineForms<N> {
    /// What a node makes of its operands, if it is no layer of units, and if there is room for that.
    pub(crate) fn of_node(
        network: &Network,
        node: &Node,
        operands: &[&Self],
        basis: &Basis<N>,
        room: &mut MemoryBudget,
    ) -> Option<Self> {
        let map = match node.op() {
            Op::Affine(map) => map,
            Op::Sum(_) => return operands[0].plus(operands[1], basis, room),
            // What no affine form is, or not without a row for each position: see `channels`.
            Op::Concat(_) | Op::MaxPool(_) => return None,
            Op::Activation(_) => unreachable!("what a unit makes is claimed, not computed"),
        };
        let action = map.action(network.shape(node.operands()[0]));
        if map.kind() != ActionKind::Sums {
            room.take(operands[0].size())?;
        }
        Some(match action {
            Action::Move(moves) => operands[0].moved(&moves, basis),
            Action::Each(Arithmetic::Add, constants) => operands[0].shifted(&constants),
            Action::Each(Arithmetic::Multiply, constants) => {
                operands[0].scaled(&constants, basis, N::product_and_error)
            }
            Action::Each(Arithmetic::Divide, constants) => operands[0].scaled(&constants, basis, N::quotient_and_error),
            Action::Sums(sums) => return operands[0].summed(&sums, basis, room),
        })
    }

    fn summed(&self, sums: &Sums<'_>, basis: &Basis<N>, room: &mut MemoryBudget) -> Option<Self> {
        let outputs = sums.outputs();
        let mut radii = vec![Upper::default(); outputs];
        let mut constants = Vec::with_capacity(outputs);
        for (output, radius) in radii.iter_mut().enumerate() {
            let mut constant = N::of(sums.bias(output));
            for (input, weight) in sums.terms(output) {
                radius.add_product(&N::of(weight.abs()), &self.radii[input]);
                add_tracked(&mut constant, &self.constants[input], weight, radius, &N::of(1.0));
            }
            constants.push(constant);
        }
        let mut blocks = BTreeMap::new();
        for (&value, block) in &self.blocks {
            let range = basis.range(value);
            let width = range.len();
            room.take_block(outputs, width)?;
            let made = match block {
                Block::Sparse(entries) => {
                    let mut made = vec![N::default(); outputs * width];
                    let sizes: Vec<N> = (0..width).map(|column| range.magnitude(column)).collect();
                    for (output, (made, radius)) in made.chunks_exact_mut(width).zip(&mut radii).enumerate() {
                        for (input, weight) in sums.terms(output) {
                            if let Some((column, c)) = &entries[input] {
                                add_tracked(&mut made[*column], c, weight, radius, &sizes[*column]);
                            }
                        }
                    }
                    made
                }
                Block::Full(numbers) => {
                    room.take_work(numbers, sums.readers())?;
                    if N::ROUNDS {
                        let sizes: Vec<N> = numbers.chunks_exact(width).map(|row| size_of(row, range)).collect();
                        let underflow = underflow::<N>(sums.longest()).times(&size_of(&vec![N::of(1.0); width], range));
                        for (output, radius) in radii.iter_mut().enumerate() {
                            let mut size = Upper::default();
                            let terms = sums.terms(output);
                            terms.for_each(|(input, weight)| size.add_product(&N::of(weight.abs()), &sizes[input]));
                            let size = size.bound().limit;
                            if !size.is_zero() {
                                radius.add_error(&slack::<N>(sums.longest()).times(&size).plus(&underflow));
                            }
                        }
                    }
                    sums.of_wide_inputs(numbers, width)
                }
            };
            blocks.insert(value, Block::Full(made));
        }
        Some(Self { blocks, constants, radii: limits(&radii) })
    }

    fn plus(&self, other: &Self, basis: &Basis<N>, room: &mut MemoryBudget) -> Option<Self> {
        let mut radii = vec![Upper::default(); self.len()];
        let mut constants = self.constants.clone();
        for (row, radius) in radii.iter_mut().enumerate() {
            radius.add_error(&self.radii[row]);
            radius.add_error(&other.radii[row]);
            add_tracked(&mut constants[row], &other.constants[row], 1.0, radius, &N::of(1.0));
        }
        room.take(self.size() + other.size())?;
        let mut blocks = self.blocks.clone();
        for (&value, block) in &other.blocks {
            let range = basis.range(value);
            let width = range.len();
            let sum = match blocks.remove(&value) {
                None => block.clone(),
                Some(present) => {
                    room.take_block(self.len(), width)?;
                    let mut numbers = present.into_full(width);
                    for (row, (numbers, radius)) in numbers.chunks_exact_mut(width).zip(&mut radii).enumerate() {
                        for (column, c) in block.row(row, width) {
                            add_tracked(&mut numbers[column], c, 1.0, radius, &range.magnitude(column));
                        }
                    }
                    Block::Full(numbers)
                }
            };
            blocks.insert(value, sum);
        }
        Some(Self { blocks, constants, radii: limits(&radii) })
    }

    fn shifted(&self, constants: &[f64]) -> Self {
        let mut shifted = self.clone();
        for (row, &constant) in constants.iter().enumerate() {
            let mut radius = Upper::default();
            radius.add_error(&self.radii[row]);
            add_tracked(&mut shifted.constants[row], &N::of(constant), 1.0, &mut radius, &N::of(1.0));
            shifted.radii[row] = radius.bound().limit;
        }
        shifted
    }

    /// Rows times or over constants, by an operation that says how much it rounded.
    fn scaled(&self, factors: &[f64], basis: &Basis<N>, operation: fn(&N, &N) -> (N, N)) -> Self {
        let mut scaled = self.clone();
        let mut radii = vec![Upper::default(); self.len()];
        for (row, radius) in radii.iter_mut().enumerate() {
            let factor = N::of(factors[row]);
            let (constant, error) = operation(&self.constants[row], &factor);
            scaled.constants[row] = constant;
            radius.add_error(&error);
            let (size, error) = operation(&self.radii[row], &factor);
            radius.add_error(&size.abs());
            radius.add_error(&error);
        }
        for (value, block) in &mut scaled.blocks {
            let range = basis.range(*value);
            let width = range.len();
            let mut scale = |row: usize, column: usize, c: &mut N| {
                let (product, error) = operation(c, &N::of(factors[row]));
                *c = product;
                radii[row].add_product(&error, &range.magnitude(column));
            };
            match block {
                Block::Sparse(entries) => {
                    for (row, entry) in entries.iter_mut().enumerate() {
                        if let Some((column, c)) = entry {
                            scale(row, *column, c);
                        }
                    }
                }
                Block::Full(numbers) => {
                    for (index, c) in numbers.iter_mut().enumerate() {
                        scale(index / width, index % width, c);
                    }
                }
            }
        }
        scaled.radii = limits(&radii);
        scaled
    }

    fn moved(&self, moves: &Moves, basis: &Basis<N>) -> Self {
        if moves.is_in_order() {
            return self.clone();
        }
        let blocks = self.blocks.iter().map(|(&value, block)| {
            let width = basis.range(value).len();
            let block = match block {
                Block::Sparse(entries) => Block::Sparse(moves.forward(entries)),
                Block::Full(numbers) => {
                    let row = |row: usize| numbers[moves.source(row) * width..][..width].to_vec();
                    Block::Full((0..self.len()).flat_map(row).collect())
                }
            };
            (value, block)
        });
        let (constants, radii) = (moves.forward(&self.constants), moves.forward(&self.radii));
        Self { blocks: blocks.collect(), constants, radii }
    }
}

/// Upper bound of a row's absolute value if all its terms have the same sign.
fn size_of<N: Number>(row: &[N], range: &Range<N>) -> N {
    let mut size = Upper::default();
    row.iter().enumerate().for_each(|(column, c)| size.add_product(&c.abs(), &range.magnitude(column)));
    size.bound().limit
}
