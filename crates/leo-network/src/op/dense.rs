//! The dense affine map.

use super::{Action, ActionKind, Evaluate, Kernel, Map, Operands, Operator, Sums};
use crate::product::{Real, add_product_transposed};
use crate::shape::{NetworkError, Shape, finite};

/// A matrix of finite numbers, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    rows: usize,
    columns: usize,
    values: Vec<f64>,
}

impl Matrix {
    /// A matrix of `rows` rows of `columns` numbers each, neither of them zero.
    ///
    /// # Errors
    /// If the number of values is another one, or a value is not finite.
    pub fn new(rows: usize, columns: usize, values: Vec<f64>) -> Result<Self, NetworkError> {
        if rows == 0 || columns == 0 {
            return Err(NetworkError::Empty { extents: vec![rows, columns] });
        }
        if rows.checked_mul(columns) != Some(values.len()) {
            return Err(NetworkError::mismatch(format!(
                "a {rows} by {columns} matrix cannot hold {} values",
                values.len()
            )));
        }
        finite("the weight matrix", &values)?;
        Ok(Self { rows, columns, values })
    }

    /// How many rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Row `index`.
    pub fn row(&self, index: usize) -> &[f64] {
        &self.values[index * self.columns..][..self.columns]
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The matrix with rows and columns exchanged.
    pub fn transposed(&self) -> Self {
        let values = (0..self.columns)
            .flat_map(|column| (0..self.rows).map(move |row| self.values[row * self.columns + column]))
            .collect();
        Self { rows: self.columns, columns: self.rows, values }
    }
}

/// `y = W x + b` along the innermost axis: every vector that the outer axes hold is mapped by the same `W` and `b`.
///
/// `W` has one row for each output. In a plain network `x` has one axis, and row `i` of `W` with `b_i` is the
/// pre-activation of unit `i` of the next layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Dense {
    weight: Matrix,
    bias: Option<Vec<f64>>,
}

impl Dense {
    /// The map with these weights, and no bias if there is none.
    ///
    /// # Errors
    /// If the bias does not have one finite number for each row.
    pub fn new(weight: Matrix, bias: Option<Vec<f64>>) -> Result<Self, NetworkError> {
        if let Some(bias) = &bias {
            if bias.len() != weight.rows() {
                return Err(NetworkError::mismatch(format!(
                    "a bias of {} numbers for {} outputs",
                    bias.len(),
                    weight.rows()
                )));
            }
            finite("the bias", bias)?;
        }
        Ok(Self { weight, bias })
    }

    /// `W`, a row for each output.
    pub fn weight(&self) -> &Matrix {
        &self.weight
    }

    /// `b`, if the map has one.
    pub fn bias(&self) -> Option<&[f64]> {
        self.bias.as_deref()
    }
}

impl Operator for Dense {
    fn name(&self) -> &'static str {
        "dense"
    }

    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError> {
        let shape = operands[0];
        if shape.last() != self.weight.columns() {
            return Err(NetworkError::mismatch(format!(
                "the weights take vectors of length {}, the input has shape {shape}",
                self.weight.columns()
            )));
        }
        shape.with_last(self.weight.rows())
    }

    fn parameters(&self) -> usize {
        self.weight.values().len() + self.bias.as_ref().map_or(0, Vec::len)
    }
}

impl Evaluate for Dense {
    fn kernel<T: Real>(&self, operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        let cast = |values: &[f64]| values.iter().map(|&value| T::from_f64(value)).collect();
        Box::new(DenseKernel {
            positions: operands[0].elements() / self.weight.columns(),
            inner: self.weight.columns(),
            weight: cast(self.weight.values()),
            bias: self.bias.as_deref().map_or_else(|| vec![T::default(); self.weight.rows()], cast),
        })
    }
}

impl Map for Dense {
    fn action(&self, operand: &Shape) -> Action<'_> {
        Action::Sums(Sums::of_dense(self, operand))
    }

    fn kind(&self) -> ActionKind {
        ActionKind::Sums
    }
}

struct DenseKernel<T> {
    /// How many vectors one sample holds.
    positions: usize,
    inner: usize,
    weight: Vec<T>,
    bias: Vec<T>,
}

impl<T: Real> Kernel<T> for DenseKernel<T> {
    fn run(&self, operands: Operands<'_, T>, output: &mut [T]) {
        for row in output.chunks_exact_mut(self.bias.len()) {
            row.copy_from_slice(&self.bias);
        }
        let vectors = operands.rows() * self.positions;
        add_product_transposed(output, operands.get(0), &self.weight, vectors, self.inner, self.bias.len());
    }
}
