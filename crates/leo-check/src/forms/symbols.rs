//! What units give, as forms: sums of multiples of rows, and a new error symbol for what is left over of each.
//!
//! The symbols are what affine arithmetic calls noise symbols: each stands for one unit's error, keeps its sign through
//! all that follows, and so cancels where errors do.

use std::collections::BTreeMap;

use super::{AffineForms, Block, Multiple, add_part_tracked, add_tracked, limits};
use crate::basis::{Basis, BasisSource, MemoryBudget};
use crate::number::Number;
use crate::range::{Interval, Range};
use crate::sound::Upper;

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

    /// The gap as parts of multiples of rows. A part of a factor is no double if the factor is small enough, so they
    /// stay two numbers.
    fn parts_of_gap(&self) -> impl Iterator<Item = (Multiple<'a, N>, f64)> {
        self.gap.into_iter().flat_map(|Gap { of, from, part }| [(of, part), (from, -part)])
    }
}

/// Which blocks the gaps of some sums have coefficients on, and which of these are kept: the others are only known by
/// their bounds. So that neither memory nor time grows with the square of the number of layers, those that come from
/// far before are not kept.
struct Gaps(BTreeMap<BasisSource, bool>);

/// How many blocks of gaps are kept at the most.
const GAP_BLOCKS: usize = 64;
/// How many numbers all blocks of gaps that are kept may have together.
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
    /// Sums as rows, if there is room for them. What is left over of each is a symbol of its own: an element of a new
    /// block of the basis, `symbols`, which comes after `depth` layers.
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
                        // Differences are small, and need not be known to the last of the digits that exact numbers can
                        // have.
                        let (short, error) = c.shortened();
                        radius.add_product(&error, &range.magnitude(column));
                        numbers[index * width + column] = short;
                        is_nothing = false;
                    } else {
                        add_bounds(&mut rests[index], c, range, column);
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
}

/// Adds to bounds of a sum, from below (as an upper bound of its negative) and from above, those of a product: of `c`
/// and an element with this range.
fn add_bounds<N: Number>([below, above]: &mut [Upper<N>; 2], c: &N, range: &Range<N>, element: usize) {
    if !c.is_finite() && !range.magnitude(element).is_zero() {
        // Which end of the range matters is not known, nor how much it does.
        below.add_error(&N::of(f64::INFINITY));
        above.add_error(&N::of(f64::INFINITY));
    }
    let (low, high) = (&range.lower[element], &range.upper[element]);
    let (least, most) = if c.is_positive() { (low, high) } else { (high, low) };
    below.add_product(&c.negative(), least);
    above.add_product(c, most);
}
