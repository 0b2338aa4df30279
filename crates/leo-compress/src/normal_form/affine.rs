//! Affine maps, `x -> W x + b`, on the way from one layer to the next.

use leo_network::op::{Dense, Matrix, Sums};
use leo_network::{NetworkError, add_product};

/// An affine map in plain numbers. Unlike a [`Dense`], it may have no rows or no columns.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Affine {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    /// Row-major.
    pub(crate) weight: Vec<f64>,
    pub(crate) bias: Vec<f64>,
}

impl Affine {
    /// What sums make of each vector along the innermost axis, if that is one matrix for all.
    pub(crate) fn of(sums: &Sums<'_>) -> Option<Self> {
        let (weight, bias) = sums.as_matrix()?;
        let (rows, columns) = (weight.len() / sums.longest(), sums.longest());
        let bias = bias.map_or_else(|| vec![0.0; rows], <[f64]>::to_vec);
        Some(Self { rows, columns, weight: weight.to_vec(), bias })
    }

    pub(crate) fn zero(rows: usize, columns: usize) -> Self {
        Self { rows, columns, weight: vec![0.0; rows * columns], bias: vec![0.0; rows] }
    }

    pub(crate) fn identity(width: usize) -> Self {
        let mut identity = Self::zero(width, width);
        (0..width).for_each(|index| identity.weight[index * width + index] = 1.0);
        identity
    }

    pub(crate) fn row(&self, row: usize) -> &[f64] {
        &self.weight[row * self.columns..][..self.columns]
    }

    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [f64] {
        &mut self.weight[row * self.columns..][..self.columns]
    }

    pub(crate) fn at(&self, row: usize, column: usize) -> f64 {
        self.weight[row * self.columns + column]
    }

    /// First `inner`, then this.
    pub(crate) fn after(&self, inner: &Self) -> Self {
        let mut composed = Self { bias: self.bias.clone(), ..Self::zero(self.rows, inner.columns) };
        add_product(&mut composed.weight, &self.weight, &inner.weight, self.rows, self.columns, inner.columns);
        add_product(&mut composed.bias, &self.weight, &inner.bias, self.rows, self.columns, 1);
        composed
    }

    /// Only some of the columns.
    pub(crate) fn with_columns(&self, columns: &[usize]) -> Self {
        let weight = (0..self.rows).flat_map(|row| columns.iter().map(move |&column| self.at(row, column))).collect();
        Self { rows: self.rows, columns: columns.len(), weight, bias: self.bias.clone() }
    }

    /// Only some of the rows.
    pub(crate) fn with_rows(&self, rows: &[usize]) -> Self {
        let weight = rows.iter().flat_map(|&row| self.row(row).to_vec()).collect();
        let bias = rows.iter().map(|&row| self.bias[row]).collect();
        Self { rows: rows.len(), columns: self.columns, weight, bias }
    }

    /// The first rows, and the others.
    pub(crate) fn split_rows(&self, rows: usize) -> (Self, Self) {
        let [first, others] = [0..rows, rows..self.rows].map(|rows| self.with_rows(&rows.collect::<Vec<_>>()));
        (first, others)
    }

    /// A sum of two: of the first columns, with the bias, and of the others, without.
    pub(crate) fn split_columns(&self, columns: usize) -> (Self, Self) {
        let [first, others] =
            [0..columns, columns..self.columns].map(|columns| self.with_columns(&columns.collect::<Vec<_>>()));
        (first, Self { bias: vec![0.0; self.rows], ..others })
    }

    /// The operator for it, with every number rounded by `round`.
    ///
    /// # Errors
    /// If it has no rows or no columns, or a number has become too large.
    pub(crate) fn to_dense(&self, round: impl Fn(f64) -> f64) -> Result<Dense, NetworkError> {
        Dense::new(self.rounded(&round)?, Some(self.bias.iter().map(|&number| round(number)).collect()))
    }

    /// The operator for it without its bias, with every number rounded by `round`.
    ///
    /// # Errors
    /// As for [`Affine::to_dense`].
    pub(crate) fn to_matrix(&self, round: impl Fn(f64) -> f64) -> Result<Dense, NetworkError> {
        Dense::new(self.rounded(&round)?, None)
    }

    fn rounded(&self, round: &impl Fn(f64) -> f64) -> Result<Matrix, NetworkError> {
        Matrix::new(self.rows, self.columns, self.weight.iter().map(|&number| round(number)).collect())
    }
}
