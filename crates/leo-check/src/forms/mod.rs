//! Values as affine functions of a basis, with a bound on how far each is from what it stands for.
//!
//! A *basis* is a set of numbers that are known on the domain up to their ranges: the input, outputs of some units, and
//! *error symbols*, one for each unit that is not quite what it is said to be ([`mod@crate::deviation`]). A row of
//! [`AffineForms`] says that an element of a value is, everywhere on the domain, `constant + Σ coefficient · basis
//! element`, give or take its *radius*. A symbol passes through affine maps as any other element of the basis does, so
//! that errors that cancel are seen to. The radius is for rounding alone: for single sums and products as much as was
//! rounded away, which is nothing where they are exact, and for matrix products the bound of [`crate::sound`].
//!
//! This is affine arithmetic (Comba and Stolfi 1993; de Figueiredo and Stolfi 2004), whose sets of values are zonotopes
//! (for networks: DeepZ, Singh et al. 2018), with outputs of units among the symbols. What affine nodes make of forms
//! is in [`propagation`], and what units make of them in [`symbols`].

mod propagation;
mod symbols;

use std::collections::BTreeMap;

use crate::basis::{Basis, BasisSource, MemoryBudget};
use crate::number::Number;
use crate::range::Interval;
use crate::sound::Upper;
pub(crate) use symbols::{Gap, UnitForm};

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

// Derived, these would ask for numbers that can be copied.
impl<N> Clone for Multiple<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<N> Copy for Multiple<'_, N> {}

impl<N: Number> AffineForms<N> {
    /// The first `rows` elements of the block of the basis that comes from `source`, one a row.
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
        self.blocks.values().map(|block| numbers(block) + MemoryBudget::BLOCK_OVERHEAD).sum()
    }

    /// The coefficients of a row on the elements of a block that are not 0.
    fn coefficients(&self, source: BasisSource, row: usize, width: usize) -> impl Iterator<Item = (usize, &N)> {
        self.blocks.get(&source).into_iter().flat_map(move |block| block.row(row, width))
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

/// Adds the product of `a` and `b` to `sum`, and to `radius` what is rounded away, times `magnitude`.
fn add_tracked<N: Number>(sum: &mut N, a: &N, b: f64, radius: &mut Upper<N>, magnitude: &N) {
    add_part_tracked(sum, a, (b, 1.0), radius, magnitude);
}

/// Adds a part of a product to `sum`: `a` times `b` times `part`, which is from -1 to 1; and to `radius` what is
/// rounded away, times `magnitude`.
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
