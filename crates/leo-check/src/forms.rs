//! Values as affine functions of a basis, with a bound on how far each is from what it stands for.
//!
//! A *basis* is a set of numbers that are known on the domain up to their ranges: the input, outputs of some units, and *error symbols*, one for each unit
//! that is not quite what it is said to be ([`mod@crate::deviation`]). A row of [`AffineForms`] says that an element of a value is, everywhere on the
//! domain, `constant + Σ coefficient · basis element`, give or take its *radius*. A symbol passes through affine maps as any other element of the basis does, so
//! that errors that cancel are seen to. The radius is for rounding alone: for single sums and products as much as was rounded
//! away, which is nothing where they are exact, and for matrix products the bound of [`crate::sound`].

use std::collections::BTreeMap;

use leo_network::op::{Action, ActionKind, Arithmetic, Moves, Op, Sums};
use leo_network::{Network, Node};

use crate::basis::{Basis, BasisSource, MemoryBudget};
use crate::number::Number;
use crate::range::{Interval, Range};
use crate::sound::{Upper, slack, underflow};

/// What the elements of one value are, one a row.
#[derive(Clone, Debug)]
pub(crate) struct AffineForms<N> {
    /// Coefficients on the elements of the basis.
    blocks: BTreeMap<BasisSource, Block<N>>,
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
#[derive(Debug)]
pub(crate) struct Multiple<'a, N> {
    pub(crate) forms: &'a AffineForms<N>,
    pub(crate) row: usize,
    pub(crate) factor: f64,
}

/// What a unit gives: a sum of multiples of rows and a constant, and what else it can be.
#[derive(Clone, Debug)]
pub(crate) struct UnitForm<'a, N> {
    pub(crate) terms: Vec<Multiple<'a, N>>,
    pub(crate) constant: f64,
    /// A part of how far one row is from another: which part, of which rows.
    pub(crate) gap: Option<Gap<'a, N>>,
    /// Between what all the rest lies.
    pub(crate) rest: Interval<N>,
}

/// A multiple of the difference of two rows.
#[derive(Debug)]
pub(crate) struct Gap<'a, N> {
    pub(crate) of: Multiple<'a, N>,
    pub(crate) from: Multiple<'a, N>,
    pub(crate) part: f64,
}

// Derived, these would ask for numbers that can be copied.
impl<N> Clone for Multiple<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<N> Copy for Multiple<'_, N> {}
impl<N> Clone for Gap<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<N> Copy for Gap<'_, N> {}

impl<'a, N: Number> UnitForm<'a, N> {
    /// A sum of multiples of rows, exactly.
    pub(crate) fn exactly(terms: Vec<Multiple<'a, N>>) -> Self {
        Self { terms, constant: 0.0, gap: None, rest: Interval { lower: N::default(), upper: N::default() } }
    }

    /// The gap as parts of multiples of rows. A part of a factor is no double if the factor is small enough, so they stay two numbers.
    fn parts_of_gap(&self) -> impl Iterator<Item = (Multiple<'a, N>, f64)> {
        self.gap.into_iter().flat_map(|Gap { of, from, part }| [(of, part), (from, -part)])
    }
}

/// Which blocks the gaps of some sums have coefficients on, and which of these are kept: the others are only known by their bounds. So that neither memory nor
/// time grows with the square of the number of layers, those that come from far before are not kept.
struct Gaps(BTreeMap<BasisSource, bool>);

/// How many blocks are kept at the most, and how many numbers in all of them.
const GAP_BLOCKS: usize = 64;
const GAP_NUMBERS: usize = 1 << 23;

impl Gaps {
    fn new<N: Number>(sums: &[UnitForm<'_, N>], basis: &Basis<N>) -> Self {
        let mut sources: BTreeMap<BasisSource, bool> = BTreeMap::new();
        // Most gaps are between rows of the same two values.
        let mut seen: Vec<*const AffineForms<N>> = Vec::new();
        for (Multiple { forms, .. }, _) in sums.iter().flat_map(UnitForm::parts_of_gap) {
            let place: *const AffineForms<N> = forms;
            if seen.last() != Some(&place) && !seen.contains(&place) {
                sources.extend(forms.blocks.keys().map(|&source| (source, false)));
                seen.push(place);
            }
        }
        let mut order: Vec<BasisSource> = sources.keys().copied().collect();
        order.sort_by_key(|&source| std::cmp::Reverse(basis.depth(source)));
        let mut numbers = 0;
        for source in order.into_iter().take(GAP_BLOCKS) {
            numbers += sums.len() * basis.range(source).len();
            sources.insert(source, numbers <= GAP_NUMBERS);
        }
        Self(sources)
    }
}

impl<N: Number> AffineForms<N> {
    /// So many elements of the basis.
    pub(crate) fn identity(source: BasisSource, rows: usize) -> Self {
        let block = Block::Sparse((0..rows).map(|row| Some((row, N::of(1.0)))).collect());
        let nothing = vec![N::default(); rows];
        Self { blocks: BTreeMap::from([(source, block)]), constants: nothing.clone(), radii: nothing }
    }

    /// No rows.
    pub(crate) fn nothing() -> Self {
        Self { blocks: BTreeMap::new(), constants: Vec::new(), radii: Vec::new() }
    }

    pub(crate) fn len(&self) -> usize {
        self.constants.len()
    }

    /// How many numbers its blocks take.
    pub(crate) fn size(&self) -> usize {
        let numbers = |block: &Block<N>| match block {
            Block::Sparse(rows) => rows.len(),
            Block::Full(numbers) => numbers.len(),
        };
        self.blocks.values().map(|block| numbers(block) + MemoryBudget::BLOCK).sum()
    }

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

    /// Sums as rows, if there is room for them. What is left over of each is a symbol of its own: an element of a new block of the basis, which comes after
    /// so many layers.
    pub(crate) fn collected(
        sums: &[UnitForm<'_, N>],
        symbols: BasisSource,
        depth: usize,
        basis: &mut Basis<N>,
        room: &mut MemoryBudget,
    ) -> Option<Self> {
        let mut radii = vec![Upper::default(); sums.len()];
        let mut constants: Vec<N> = sums.iter().map(|sum| N::of(sum.constant)).collect();
        for ((radius, constant), sum) in radii.iter_mut().zip(&mut constants).zip(sums) {
            let terms = sum.terms.iter().map(|term| (*term, 1.0));
            for (Multiple { forms, row, factor }, part) in terms.chain(sum.parts_of_gap()) {
                let (size, error) = N::of(factor.abs()).product_and_error(&N::of(part.abs()));
                radius.add_product(&size, &forms.radii[row]);
                radius.add_product(&error, &forms.radii[row]);
                add_part_tracked(constant, &forms.constants[row], (factor, part), radius, &N::of(1.0));
            }
        }
        let mut made = Self { blocks: BTreeMap::new(), constants, radii: Vec::new() };
        let gaps = Gaps::new(sums, basis);
        let rests = made.add_gaps(sums, &gaps, basis, &mut radii, room)?;
        made.add_terms(sums, basis, &mut radii, room)?;
        made.radii = limits(&radii);
        if let Some(range) = rests {
            room.take_block(sums.len(), 1)?;
            let symbol = |row: usize| (!range.magnitude(row).is_zero()).then(|| (row, N::of(1.0)));
            made.blocks.insert(symbols, Block::Sparse((0..sums.len()).map(symbol).collect()));
            basis.insert(symbols, range, depth);
        }
        Some(made)
    }

    /// Adds the multiples of rows that are terms of sums.
    fn add_terms(
        &mut self,
        sums: &[UnitForm<'_, N>],
        basis: &Basis<N>,
        radii: &mut [Upper<N>],
        room: &mut MemoryBudget,
    ) -> Option<()> {
        let mut sources: BTreeMap<BasisSource, bool> = BTreeMap::new();
        for sum in sums {
            // Whether no sum has more than one coefficient on a value.
            let mut seen: Vec<BasisSource> = Vec::new();
            for (&source, block) in sum.terms.iter().flat_map(|term| &term.forms.blocks) {
                let single = matches!(block, Block::Sparse(_)) && !seen.contains(&source);
                *sources.entry(source).or_insert(true) &= single;
                seen.push(source);
            }
        }
        for (source, is_sparse) in sources {
            let range = basis.range(source);
            let width = range.len();
            let present = self.blocks.remove(&source);
            let is_sparse = is_sparse && present.is_none();
            room.take_block(sums.len(), if is_sparse { 1 } else { width })?;
            let mut entries: Vec<Option<(usize, N)>> = vec![None; if is_sparse { sums.len() } else { 0 }];
            let mut numbers = match present {
                Some(present) => present.into_full(width),
                None => vec![N::default(); if is_sparse { 0 } else { sums.len() * width }],
            };
            for (index, (sum, radius)) in sums.iter().zip(&mut *radii).enumerate() {
                for Multiple { forms, row, factor } in &sum.terms {
                    for (column, c) in forms.coefficients(source, *row, width) {
                        let number = match is_sparse {
                            true => &mut entries[index].insert((column, N::default())).1,
                            false => &mut numbers[index * width + column],
                        };
                        add_tracked(number, c, *factor, radius, &range.magnitude(column));
                    }
                }
            }
            self.blocks.insert(source, if is_sparse { Block::Sparse(entries) } else { Block::Full(numbers) });
        }
        Some(())
    }

    /// Adds the gaps of sums, and returns between what lies all that is left of each sum, unless that is nothing.
    fn add_gaps(
        &mut self,
        sums: &[UnitForm<'_, N>],
        gaps: &Gaps,
        basis: &Basis<N>,
        radii: &mut [Upper<N>],
        room: &mut MemoryBudget,
    ) -> Option<Option<Range<N>>> {
        let mut rests: Vec<[Upper<N>; 2]> = vec![<[Upper<N>; 2]>::default(); sums.len()];
        for (sum, [below, above]) in sums.iter().zip(&mut rests) {
            below.add(&sum.rest.lower.negative());
            above.add(&sum.rest.upper);
        }
        for (&source, &is_kept) in &gaps.0 {
            let range = basis.range(source);
            let width = range.len();
            room.take_block(sums.len(), if is_kept { width } else { 1 })?;
            let mut numbers = vec![N::default(); if is_kept { sums.len() * width } else { 0 }];
            let mut row = vec![N::default(); width];
            let mut is_nothing = true;
            for (index, (sum, radius)) in sums.iter().zip(&mut *radii).enumerate() {
                row.fill(N::default());
                for (Multiple { forms, row: theirs, factor }, part) in sum.parts_of_gap() {
                    for (column, c) in forms.coefficients(source, theirs, width) {
                        add_part_tracked(&mut row[column], c, (factor, part), radius, &range.magnitude(column));
                    }
                }
                for (column, c) in row.iter_mut().enumerate().filter(|(_, c)| !c.is_zero()) {
                    if is_kept {
                        // Differences are small, and need not be known to the last of the digits that exact numbers can have.
                        let (short, error) = c.shortened();
                        radius.add_product(&error, &range.magnitude(column));
                        numbers[index * width + column] = short;
                        is_nothing = false;
                    } else {
                        if !c.is_finite() && !range.magnitude(column).is_zero() {
                            // Which end of the range matters is not known, nor how much it does.
                            rests[index].iter_mut().for_each(|rest| rest.add_error(&N::of(f64::INFINITY)));
                        }
                        let (low, high) = (&range.lower[column], &range.upper[column]);
                        let (least, most) = if c.is_positive() { (low, high) } else { (high, low) };
                        rests[index][0].add_product(&c.negative(), least);
                        rests[index][1].add_product(c, most);
                    }
                }
            }
            if is_kept && !is_nothing {
                self.blocks.insert(source, Block::Full(numbers));
            } else {
                room.give_back(numbers.len());
            }
        }
        let [lower, upper] = [0, 1].map(|side| {
            let bound = |rest: &[Upper<N>; 2]| rest[side].bound().limit.shortened_up();
            rests.iter().map(bound).collect::<Vec<N>>()
        });
        let is_nothing = lower.iter().chain(&upper).all(N::is_zero);
        let lower = lower.iter().map(N::negative).collect();
        Some((!is_nothing).then_some(Range { lower, upper }))
    }

    /// The coefficients of a row on the elements of a block that are not 0.
    fn coefficients(&self, source: BasisSource, row: usize, width: usize) -> impl Iterator<Item = (usize, &N)> {
        self.blocks.get(&source).into_iter().flat_map(move |block| block.row(row, width))
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

    /// Bounds of a row on the domain.
    pub(crate) fn bounds(&self, row: usize, basis: &Basis<N>) -> Interval<N> {
        let nothing = Self { blocks: BTreeMap::new(), constants: vec![N::default()], radii: vec![N::default()] };
        self.difference(row, Multiple { forms: &nothing, row: 0, factor: 0.0 }, basis)
    }

    /// How far a row can be from a multiple of a row of other forms, anywhere on the domain.
    pub(crate) fn distance(&self, row: usize, other: Multiple<'_, N>, basis: &Basis<N>) -> N {
        let Interval { lower, upper } = self.difference(row, other, basis);
        lower.abs().larger(&upper.abs())
    }

    /// Bounds of a row less a multiple of a row of other forms.
    pub(crate) fn difference(&self, row: usize, other: Multiple<'_, N>, basis: &Basis<N>) -> Interval<N> {
        let Multiple { forms, row: theirs, factor } = other;
        let (mut above, mut below, mut error) = (Upper::default(), Upper::default(), Upper::default());
        error.add_error(&self.radii[row]);
        error.add_product(&N::of(factor.abs()), &forms.radii[theirs]);
        let mut constant = self.constants[row].clone();
        add_tracked(&mut constant, &forms.constants[theirs], -factor, &mut error, &N::of(1.0));
        above.add(&constant);
        below.add(&constant.negative());
        let mut coefficients = Vec::new();
        let others = forms.blocks.keys().filter(|source| !self.blocks.contains_key(source));
        for &source in self.blocks.keys().chain(others) {
            let range = basis.range(source);
            coefficients.clear();
            coefficients.resize(range.len(), N::default());
            for (column, c) in self.coefficients(source, row, range.len()) {
                coefficients[column] = c.clone();
            }
            for (column, c) in forms.coefficients(source, theirs, range.len()) {
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
        Interval { lower: N::default().minus(&below.bound().limit), upper: above.bound().limit }
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
    add_part_tracked(sum, a, (b, 1.0), radius, magnitude);
}

/// The same for a part of a product: a number from -1 to 1 that it is multiplied by.
fn add_part_tracked<N: Number>(sum: &mut N, a: &N, (b, part): (f64, f64), radius: &mut Upper<N>, magnitude: &N) {
    if a.is_zero() || b == 0.0 {
        return;
    }
    let (mut product, product_error) = a.product_and_error(&N::of(b));
    radius.add_product(&product_error, magnitude);
    if part != 1.0 {
        let part_error;
        (product, part_error) = product.product_and_error(&N::of(part));
        radius.add_product(&part_error, magnitude);
    }
    let sum_error;
    (*sum, sum_error) = sum.sum_and_error(&product);
    radius.add_product(&sum_error, magnitude);
}
