//! Values as affine functions of a basis, with a bound on how far each is from what it stands for.
//!
//! A *basis* is a set of numbers that are known on the domain up to their ranges: the input, and outputs of some units. A row of
//! [`Forms`] says that an element of a value is, everywhere on the domain, `constant + Σ coefficient · basis element`, give or take its
//! *radius*. Every rounding that happens on the way is added to the radius: for single sums and products as much as was rounded
//! away, which is nothing where they are exact, and for matrix products the bound of [`crate::sound`].

use std::collections::BTreeMap;

use leo_network::op::{Arithmetic, Dense, Op};
use leo_network::{Network, Node};

use crate::number::Number;
use crate::range::Range;
use crate::sound::{Upper, slack, underflow};

/// The numbers that forms are functions of: for each value that is in the basis, by its index, the ranges of its elements.
pub(crate) type Basis<N> = BTreeMap<usize, Range<N>>;

/// What the elements of one value are, one a row.
#[derive(Clone, Debug)]
pub(crate) struct Forms<N> {
    /// Coefficients on the elements of the values in the basis.
    blocks: BTreeMap<usize, Block<N>>,
    constants: Vec<N>,
    radii: Vec<N>,
}

/// The coefficients of all rows on the elements of one value.
#[derive(Clone, Debug)]
enum Block<N> {
    /// At most one a row: on which element, and how much.
    Sparse(Vec<Option<(usize, N)>>),
    /// Row-major.
    Full(Vec<N>),
}

impl<N: Number> Block<N> {
    /// The coefficients of one row that are not 0.
    fn row(&self, row: usize, width: usize) -> impl Iterator<Item = (usize, &N)> {
        let (single, full): (_, &[N]) = match self {
            Self::Sparse(rows) => (rows[row].as_ref().map(|(column, coefficient)| (*column, coefficient)), &[]),
            Self::Full(numbers) => (None, &numbers[row * width..][..width]),
        };
        single.into_iter().chain(full.iter().enumerate()).filter(|(_, coefficient)| !coefficient.is_zero())
    }

    fn into_full(self, width: usize) -> Vec<N> {
        match self {
            Self::Full(numbers) => numbers,
            Self::Sparse(rows) => {
                let mut numbers = vec![N::default(); rows.len() * width];
                for (row, entry) in rows.into_iter().enumerate() {
                    if let Some((column, coefficient)) = entry {
                        numbers[row * width + column] = coefficient;
                    }
                }
                numbers
            }
        }
    }
}

/// A multiple of a row of some forms.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Multiple<'a, N> {
    pub(crate) forms: &'a Forms<N>,
    pub(crate) row: usize,
    pub(crate) factor: f64,
}

/// The sum of multiples of rows and a constant, give or take a radius.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sum<'a, N> {
    pub(crate) terms: Vec<Multiple<'a, N>>,
    pub(crate) constant: f64,
    pub(crate) radius: N,
}

/// How many more numbers expressions may take: a small file could ask for more than any machine has.
#[derive(Debug)]
pub(crate) struct Room(usize);

/// What a block takes at least, in numbers.
const BLOCK: usize = 16;

impl Room {
    /// Four gibibytes, or about as much of exact numbers of a few hundred bits.
    pub(crate) fn new<N: Number>() -> Self {
        Self(if N::ROUNDS { 1 << 29 } else { 1 << 25 })
    }

    /// Takes room for a block of so many rows and columns; none if there is not as much left.
    fn take(&mut self, rows: usize, columns: usize) -> Option<()> {
        self.0 = self.0.checked_sub(rows.checked_mul(columns)?.checked_add(BLOCK)?)?;
        Some(())
    }

    /// Takes room for as much as some expressions take.
    fn take_as<N: Number>(&mut self, forms: &Forms<N>) -> Option<()> {
        forms.blocks.values().try_for_each(|block| match block {
            Block::Sparse(rows) => self.take(rows.len(), 1),
            Block::Full(numbers) => self.take(numbers.len(), 1),
        })
    }
}

impl<N: Number> Forms<N> {
    /// A value of the basis, give or take radii.
    pub(crate) fn identity(value: usize, radii: Vec<N>) -> Self {
        let rows = radii.len();
        let block = Block::Sparse((0..rows).map(|row| Some((row, N::of(1.0)))).collect());
        Self { blocks: BTreeMap::from([(value, block)]), constants: vec![N::default(); rows], radii }
    }

    pub(crate) fn len(&self) -> usize {
        self.constants.len()
    }

    pub(crate) fn radii(&self) -> &[N] {
        &self.radii
    }

    /// How far each row can be from what it stands for, as a value of its own: 0, give or take the radii.
    pub(crate) fn errors(&self) -> Self {
        Self { blocks: BTreeMap::new(), constants: vec![N::default(); self.len()], radii: self.radii.clone() }
    }

    /// What a node makes of its operands, if it is not a ReLU, and if there is room for that.
    pub(crate) fn of_node(
        network: &Network,
        node: &Node,
        operands: &[&Self],
        basis: &Basis<N>,
        room: &mut Room,
    ) -> Option<Self> {
        match node.op() {
            Op::Dense(_) | Op::Sum(_) => {}
            _ => room.take_as(operands[0])?,
        }
        Some(match node.op() {
            Op::Dense(dense) => return operands[0].mapped(dense, basis, room),
            Op::Sum(_) => return operands[0].plus(operands[1], basis, room),
            Op::Reshape(_) => operands[0].clone(),
            Op::Transpose(transpose) => {
                operands[0].reordered(&transpose.sources(network.shape(node.operands()[0]).extents()), basis)
            }
            Op::Elementwise(elementwise) => {
                let constants = elementwise.constant().expand(node.shape());
                match elementwise.arithmetic() {
                    Arithmetic::Add => operands[0].shifted(&constants),
                    Arithmetic::Multiply => operands[0].scaled(&constants, basis, N::product_and_error),
                    Arithmetic::Divide => operands[0].scaled(&constants, basis, N::quotient_and_error),
                }
            }
            Op::Relu(_) => unreachable!("what a ReLU makes is claimed, not computed"),
        })
    }

    /// Sums as rows, if there is room for them.
    pub(crate) fn collected(sums: &[Sum<'_, N>], basis: &Basis<N>, room: &mut Room) -> Option<Self> {
        let mut radii = vec![Upper::default(); sums.len()];
        let mut constants: Vec<N> = sums.iter().map(|sum| N::of(sum.constant)).collect();
        let mut values: BTreeMap<usize, bool> = BTreeMap::new();
        for ((radius, constant), sum) in radii.iter_mut().zip(&mut constants).zip(sums) {
            radius.add_error(&sum.radius);
            for Multiple { forms, row, factor } in &sum.terms {
                radius.add_product(&N::of(factor.abs()), &forms.radii[*row]);
                add_tracked(constant, &forms.constants[*row], *factor, radius, &N::of(1.0));
            }
            // Whether no sum has more than one coefficient on a value.
            let mut seen: Vec<usize> = Vec::new();
            for (&value, block) in sum.terms.iter().flat_map(|term| &term.forms.blocks) {
                let single = matches!(block, Block::Sparse(_)) && !seen.contains(&value);
                *values.entry(value).or_insert(true) &= single;
                seen.push(value);
            }
        }
        let mut blocks = BTreeMap::new();
        for (value, is_sparse) in values {
            let range = &basis[&value];
            let width = range.len();
            room.take(sums.len(), if is_sparse { 1 } else { width })?;
            let mut entries: Vec<Option<(usize, N)>> = vec![None; if is_sparse { sums.len() } else { 0 }];
            let mut numbers = vec![N::default(); if is_sparse { 0 } else { sums.len() * width }];
            for (index, (sum, radius)) in sums.iter().zip(&mut radii).enumerate() {
                for Multiple { forms, row, factor } in &sum.terms {
                    for (column, c) in forms.blocks.get(&value).into_iter().flat_map(|block| block.row(*row, width)) {
                        let number = match is_sparse {
                            true => &mut entries[index].insert((column, N::default())).1,
                            false => &mut numbers[index * width + column],
                        };
                        add_tracked(number, c, *factor, radius, &range.magnitude(column));
                    }
                }
            }
            blocks.insert(value, if is_sparse { Block::Sparse(entries) } else { Block::Full(numbers) });
        }
        Some(Self { blocks, constants, radii: limits(&radii) })
    }

    fn mapped(&self, dense: &Dense, basis: &Basis<N>, room: &mut Room) -> Option<Self> {
        let (weight, inner, outer) = (dense.weight(), dense.weight().columns(), dense.weight().rows());
        let positions = self.len() / inner;
        let mut radii = vec![Upper::default(); positions * outer];
        let mut constants = Vec::with_capacity(positions * outer);
        for (row, radius) in radii.iter_mut().enumerate() {
            let (start, output) = (row / outer * inner, row % outer);
            let mut constant = N::of(dense.bias().map_or(0.0, |bias| bias[output]));
            for (index, &w) in weight.row(output).iter().enumerate() {
                radius.add_product(&N::of(w.abs()), &self.radii[start + index]);
                add_tracked(&mut constant, &self.constants[start + index], w, radius, &N::of(1.0));
            }
            constants.push(constant);
        }
        let mut blocks = BTreeMap::new();
        for (&value, block) in &self.blocks {
            let range = &basis[&value];
            let width = range.len();
            room.take(positions * outer, width)?;
            let mut made = vec![N::default(); positions * outer * width];
            match block {
                Block::Sparse(entries) => {
                    let sizes: Vec<N> = (0..width).map(|column| range.magnitude(column)).collect();
                    for (row, (made, radius)) in made.chunks_exact_mut(width).zip(&mut radii).enumerate() {
                        let entries = &entries[row / outer * inner..][..inner];
                        for (&w, entry) in weight.row(row % outer).iter().zip(entries) {
                            if let Some((column, c)) = entry {
                                add_tracked(&mut made[*column], c, w, radius, &sizes[*column]);
                            }
                        }
                    }
                }
                Block::Full(numbers) => {
                    for position in 0..positions {
                        let operand = &numbers[position * inner * width..][..inner * width];
                        let result = &mut made[position * outer * width..][..outer * width];
                        N::add_weights_times_rows(result, weight.values(), operand, inner, width);
                    }
                    if N::ROUNDS {
                        let sizes: Vec<N> = numbers.chunks_exact(width).map(|row| size_of(row, range)).collect();
                        let underflow = underflow::<N>(inner).times(&size_of(&vec![N::of(1.0); width], range));
                        for (row, radius) in radii.iter_mut().enumerate() {
                            let sizes = &sizes[row / outer * inner..][..inner];
                            let mut size = Upper::default();
                            let terms = weight.row(row % outer).iter().zip(sizes);
                            terms.for_each(|(w, s)| size.add_product(&N::of(w.abs()), s));
                            let size = size.bound().limit;
                            if !size.is_zero() {
                                radius.add_error(&slack::<N>(inner).times(&size).plus(&underflow));
                            }
                        }
                    }
                }
            }
            blocks.insert(value, Block::Full(made));
        }
        Some(Self { blocks, constants, radii: limits(&radii) })
    }

    fn plus(&self, other: &Self, basis: &Basis<N>, room: &mut Room) -> Option<Self> {
        let mut radii = vec![Upper::default(); self.len()];
        let mut constants = self.constants.clone();
        for (row, radius) in radii.iter_mut().enumerate() {
            radius.add_error(&self.radii[row]);
            radius.add_error(&other.radii[row]);
            add_tracked(&mut constants[row], &other.constants[row], 1.0, radius, &N::of(1.0));
        }
        room.take_as(self)?;
        room.take_as(other)?;
        let mut blocks = self.blocks.clone();
        for (&value, block) in &other.blocks {
            let range = &basis[&value];
            let width = range.len();
            let sum = match blocks.remove(&value) {
                None => block.clone(),
                Some(present) => {
                    room.take(self.len(), width)?;
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
            let range = &basis[value];
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

    fn reordered(&self, sources: &[usize], basis: &Basis<N>) -> Self {
        let blocks = self.blocks.iter().map(|(&value, block)| {
            let width = basis[&value].len();
            let block = match block {
                Block::Sparse(entries) => {
                    Block::Sparse(sources.iter().map(|&source| entries[source].clone()).collect())
                }
                Block::Full(numbers) => Block::Full(
                    sources.iter().flat_map(|&source| numbers[source * width..][..width].to_vec()).collect(),
                ),
            };
            (value, block)
        });
        let moved = |numbers: &[N]| sources.iter().map(|&source| numbers[source].clone()).collect();
        Self { blocks: blocks.collect(), constants: moved(&self.constants), radii: moved(&self.radii) }
    }

    /// Bounds of a row on the domain.
    pub(crate) fn bounds(&self, row: usize, basis: &Basis<N>) -> (N, N) {
        let nothing = Self { blocks: BTreeMap::new(), constants: vec![N::default()], radii: vec![N::default()] };
        self.difference(row, Multiple { forms: &nothing, row: 0, factor: 0.0 }, basis)
    }

    /// How far a row can be from a multiple of a row of other forms, anywhere on the domain.
    pub(crate) fn distance(&self, row: usize, other: Multiple<'_, N>, basis: &Basis<N>) -> N {
        let (lower, upper) = self.difference(row, other, basis);
        lower.abs().larger(&upper.abs())
    }

    /// Bounds of a row less a multiple of a row of other forms.
    fn difference(&self, row: usize, other: Multiple<'_, N>, basis: &Basis<N>) -> (N, N) {
        let Multiple { forms, row: theirs, factor } = other;
        let (mut above, mut below, mut error) = (Upper::default(), Upper::default(), Upper::default());
        error.add_error(&self.radii[row]);
        error.add_product(&N::of(factor.abs()), &forms.radii[theirs]);
        let mut constant = self.constants[row].clone();
        add_tracked(&mut constant, &forms.constants[theirs], -factor, &mut error, &N::of(1.0));
        above.add(&constant);
        below.add(&constant.negative());
        let mut coefficients = Vec::new();
        for (value, range) in basis {
            let (mine, other) = (self.blocks.get(value), forms.blocks.get(value));
            if mine.is_none() && other.is_none() {
                continue;
            }
            coefficients.clear();
            coefficients.resize(range.len(), N::default());
            for (column, c) in mine.into_iter().flat_map(|block| block.row(row, range.len())) {
                coefficients[column] = c.clone();
            }
            for (column, c) in other.into_iter().flat_map(|block| block.row(theirs, range.len())) {
                add_tracked(&mut coefficients[column], c, -factor, &mut error, &range.magnitude(column));
            }
            for (column, c) in coefficients.iter().enumerate().filter(|(_, c)| !c.is_zero()) {
                if !c.is_finite() && !range.magnitude(column).is_zero() {
                    // Which end of the range matters is not known, nor how much it does.
                    error.add_error(&N::of(f64::INFINITY));
                }
                let (low, high) = (&range.lower[column], &range.upper[column]);
                let (least, most) = if c.is_positive() { (low, high) } else { (high, low) };
                above.add_product(c, most);
                below.add_product(&c.negative(), least);
            }
        }
        let error = error.bound().limit;
        above.add_error(&error);
        below.add_error(&error);
        (N::default().minus(&below.bound().limit), above.bound().limit)
    }
}

fn limits<N: Number>(radii: &[Upper<N>]) -> Vec<N> {
    radii.iter().map(|radius| radius.bound().limit).collect()
}

/// Upper bound of a row's absolute value if all its terms have the same sign.
fn size_of<N: Number>(row: &[N], range: &Range<N>) -> N {
    let mut size = Upper::default();
    row.iter().enumerate().for_each(|(column, c)| size.add_product(&c.abs(), &range.magnitude(column)));
    size.bound().limit
}

/// Adds a product to a sum, and to `radius` what is rounded away, times a magnitude.
fn add_tracked<N: Number>(sum: &mut N, a: &N, b: f64, radius: &mut Upper<N>, magnitude: &N) {
    if a.is_zero() || b == 0.0 {
        return;
    }
    let (product, product_error) = a.product_and_error(&N::of(b));
    let sum_error;
    (*sum, sum_error) = sum.sum_and_error(&product);
    radius.add_product(&product_error, magnitude);
    radius.add_product(&sum_error, magnitude);
}
