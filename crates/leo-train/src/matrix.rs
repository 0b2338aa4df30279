//! Matrices whose rows are made of whole vector registers.

use bytemuck::{Pod, Zeroable};
use pulp::Simd;

/// How many numbers a group has: one register of AVX-512, two of AVX2, four of NEON.
pub(crate) const LANES: usize = 16;

/// Numbers side by side in a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Group(pub(crate) [f32; LANES]);

/// A row-major matrix of single-precision numbers. Rows are padded with zeros to whole groups.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PaddedMatrix {
    /// How many groups a row has.
    stride: usize,
    groups: Vec<Group>,
}

impl PaddedMatrix {
    pub(crate) fn zeros(rows: usize, columns: usize) -> Self {
        let stride = columns.div_ceil(LANES);
        Self { stride, groups: vec![Group::default(); rows * stride] }
    }

    /// How many numbers a row has, padding included.
    pub(crate) fn width(&self) -> usize {
        self.stride * LANES
    }

    pub(crate) fn row(&self, row: usize) -> &[Group] {
        &self.groups[row * self.stride..][..self.stride]
    }

    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [Group] {
        &mut self.groups[row * self.stride..][..self.stride]
    }

    pub(crate) fn rows(&self) -> impl ExactSizeIterator<Item = &[Group]> {
        self.groups.chunks_exact(self.stride)
    }

    pub(crate) fn rows_mut(&mut self) -> impl Iterator<Item = &mut [Group]> {
        self.groups.chunks_exact_mut(self.stride)
    }

    pub(crate) fn get(&self, row: usize, column: usize) -> f32 {
        self.row(row)[column / LANES].0[column % LANES]
    }

    pub(crate) fn get_mut(&mut self, row: usize, column: usize) -> &mut f32 {
        &mut self.row_mut(row)[column / LANES].0[column % LANES]
    }

    /// How many of a processor's vectors a row has.
    #[inline(always)]
    pub(crate) fn row_vectors<S: Simd>(&self) -> usize {
        self.width() / S::F32_LANES
    }

    /// All numbers, as a processor's vectors.
    #[inline(always)]
    pub(crate) fn vectors<S: Simd>(&self) -> &[S::f32s] {
        S::as_simd_f32s(bytemuck::cast_slice(&self.groups)).0
    }

    #[inline(always)]
    pub(crate) fn vectors_mut<S: Simd>(&mut self) -> &mut [S::f32s] {
        S::as_mut_simd_f32s(bytemuck::cast_slice_mut(&mut self.groups)).0
    }

    /// Gets `rows` rows, each of them `row`.
    pub(crate) fn repeat(&mut self, row: &Self, rows: usize) {
        self.stride = row.stride;
        self.groups.clear();
        for _ in 0..rows {
            self.groups.extend_from_slice(row.row(0));
        }
    }

    /// Gets `rows` rows of zeros, as wide as those of `like`.
    pub(crate) fn clear(&mut self, like: &Self, rows: usize) {
        self.stride = like.stride;
        self.groups.clear();
        self.groups.resize(rows * like.stride, Group::default());
    }

    /// `max(0, x)` for every number.
    pub(crate) fn rectify(&mut self) {
        for group in &mut self.groups {
            for number in &mut group.0 {
                *number = number.max(0.0);
            }
        }
    }

    /// Sets to 0 every number whose counterpart in `outputs`, the outputs of a layer of ReLUs, is 0.
    pub(crate) fn keep_where_active(&mut self, outputs: &Self) {
        for (group, output) in self.groups.iter_mut().zip(&outputs.groups) {
            for lane in 0..LANES {
                let number = group.0[lane];
                group.0[lane] = if output.0[lane] > 0.0 { number } else { 0.0 };
            }
        }
    }

    /// Becomes the transpose of the first `columns` columns of `matrix`, whose height is a multiple of a group's.
    pub(crate) fn transpose(&mut self, matrix: &Self, columns: usize) {
        self.stride = matrix.groups.len() / matrix.stride / LANES;
        self.groups.clear();
        self.groups.resize(columns * self.stride, Group::default());
        for (across, block) in matrix.groups.chunks_exact(matrix.stride * LANES).enumerate() {
            for (column, target) in self.groups.chunks_exact_mut(self.stride).enumerate() {
                let (group, lane) = (column / LANES, column % LANES);
                for (number, row) in target[across].0.iter_mut().zip(block.chunks_exact(matrix.stride)) {
                    *number = row[group].0[lane];
                }
            }
        }
    }
}
