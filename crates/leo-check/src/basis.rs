//! What affine forms are functions of, and how much room they may take.

use std::collections::BTreeMap;

use leo_network::{LayerId, ValueId};

use crate::number::Number;
use crate::range::Range;

/// Where elements of a basis come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum BasisSource {
    /// A value of the first network.
    Value(ValueId),
    /// What units of a layer of the first network are besides what is claimed of them.
    Claim(LayerId),
    /// What units of a layer of the second network are besides the role that is claimed of them.
    Role(LayerId),
    /// What a value of the second network is besides the anchor that it is said to be, and what is kept of their
    /// difference.
    Anchor(ValueId),
}

/// Numbers that are known up to their ranges, in blocks.
#[derive(Clone, Debug)]
pub(crate) struct Basis<N> {
    blocks: BTreeMap<BasisSource, (Range<N>, usize)>,
}

impl<N: Number> Basis<N> {
    pub(crate) fn new() -> Self {
        Self { blocks: BTreeMap::new() }
    }

    /// Adds a block that comes after `depth` layers. Only a value may be there already, with another range that holds
    /// for it: two symbols are never one.
    pub(crate) fn insert(&mut self, source: BasisSource, range: Range<N>, depth: usize) {
        let before = self.blocks.insert(source, (range, depth));
        assert!(before.is_none() || matches!(source, BasisSource::Value(_)), "symbols of another row");
    }

    /// Where the elements of a block lie.
    pub(crate) fn range(&self, source: BasisSource) -> &Range<N> {
        &self.blocks[&source].0
    }

    /// After how many layers a block comes.
    pub(crate) fn depth(&self, source: BasisSource) -> usize {
        self.blocks[&source].1
    }
}

/// How many more numbers expressions may take, and how much work: a small file could ask for more than any machine has.
#[derive(Debug)]
pub(crate) struct MemoryBudget {
    numbers: usize,
    /// Products of words of 64 bits.
    work: f64,
}

impl MemoryBudget {
    /// What a block takes besides its numbers, in numbers.
    pub(crate) const BLOCK_OVERHEAD: usize = 16;

    /// Four gibibytes, or about as much of exact numbers of a few hundred bits; minutes of work.
    pub(crate) fn new<N: Number>() -> Self {
        if N::ROUNDS { Self { numbers: 1 << 29, work: 5e12 } } else { Self { numbers: 1 << 25, work: 2e9 } }
    }

    /// Takes room for `numbers` numbers; `None` if there is not as much left.
    pub(crate) fn take(&mut self, numbers: usize) -> Option<()> {
        self.numbers = self.numbers.checked_sub(numbers)?;
        Some(())
    }

    /// Takes room for a block of `rows` times `columns` numbers; `None` if there is not as much left.
    pub(crate) fn take_block(&mut self, rows: usize, columns: usize) -> Option<()> {
        self.take(rows.checked_mul(columns)?.checked_add(Self::BLOCK_OVERHEAD)?)
    }

    /// Takes time for `times` products with each of `numbers`; `None` if there is not as much left.
    pub(crate) fn take_work<N: Number>(&mut self, numbers: &[N], times: usize) -> Option<()> {
        self.work -= numbers.len() as f64 * times as f64 * N::words(numbers);
        (self.work >= 0.0).then_some(())
    }

    /// Gives back room for `numbers` numbers.
    pub(crate) fn give_back(&mut self, numbers: usize) {
        self.numbers += numbers;
    }
}
