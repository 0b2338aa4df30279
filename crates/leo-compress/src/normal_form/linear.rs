//! Linear dependence, in floating point: which rows are combinations of others.
//!
//! Whether a row *is* a combination cannot be seen in rounded arithmetic. What can be seen is how much the combination
//! misses, and that is what is weighed here: no more than rounding makes ([`NOISE`]), or no more than is allowed. What
//! it comes to in the end is for the checker to prove.
//!
//! Both ways are textbook numerics. [`decompose`] finds the rank and the rows that carry the others by a rank-revealing
//! QR decomposition: Householder's, with the column pivoting of P. Businger and G. H. Golub, *Linear Least Squares
//! Solutions by Householder Transformations*, Numerische Mathematik 7 (1965). [`Span`] takes rows in their own order,
//! by modified Gram-Schmidt orthogonalisation, done twice ("twice is enough", as B. N. Parlett quotes W. Kahan in *The
//! Symmetric Eigenvalue Problem*, 1980).

use faer::linalg::triangular_solve::solve_upper_triangular_in_place;
use faer::{Mat, Par};

/// What rounding can make of rows with a few thousand terms of size 1.
pub(crate) const NOISE: f64 = 1.0 / (1_u64 << 44) as f64;

/// Combinations with larger numbers would lose in rounding what they gain.
const LARGEST_FACTOR: f64 = 64.0;

/// Rows that are linearly independent, one after the other.
pub(crate) struct Span {
    /// How large each column's variable can be.
    magnitudes: Vec<f64>,
    /// Orthonormal, in units of the magnitudes.
    directions: Vec<Vec<f64>>,
    /// Each row by the directions up to its own.
    triangle: Vec<Vec<f64>>,
}

impl Span {
    pub(crate) fn new(magnitudes: Vec<f64>) -> Self {
        Self { magnitudes, directions: Vec::new(), triangle: Vec::new() }
    }

    /// The combination of the rows so far that a row is, if what that misses is no more than is allowed, or than
    /// rounding makes. Otherwise the row becomes one of them.
    pub(crate) fn express(&mut self, row: &[f64], allowance: f64) -> Option<Vec<f64>> {
        let mut rest: Vec<f64> = row.iter().zip(&self.magnitudes).map(|(w, magnitude)| w * magnitude).collect();
        let size = |row: &[f64]| row.iter().map(|number| number.abs()).sum::<f64>();
        let allowance = allowance.max(NOISE * size(&rest));
        let mut along = vec![0.0; self.directions.len()];
        // Twice, because the first time leaves what its own rounding made.
        for _ in 0..2 {
            for (direction, along) in self.directions.iter().zip(&mut along) {
                let part = dot(direction, &rest);
                rest.iter_mut().zip(direction).for_each(|(rest, direction)| *rest -= part * direction);
                *along += part;
            }
        }
        if size(&rest) <= allowance {
            let combination = self.combination(&along);
            if combination.iter().all(|factor| factor.abs() <= LARGEST_FACTOR) {
                return Some(combination);
            }
        }
        // In units of its size, or squares might be too small or too large for a number.
        let size = size(&rest);
        rest.iter_mut().for_each(|number| *number /= size);
        let length = rest.iter().map(|number| number * number).sum::<f64>().sqrt();
        rest.iter_mut().for_each(|number| *number /= length);
        let is_direction = rest.iter().all(|number| number.is_finite()) && size.is_finite();
        along.push(if is_direction { length * size } else { 1.0 });
        self.directions.push(if is_direction { rest } else { vec![0.0; rest.len()] });
        self.triangle.push(along);
        None
    }

    /// Which combination of the rows has these parts along the directions.
    fn combination(&self, along: &[f64]) -> Vec<f64> {
        let mut left = along.to_vec();
        let mut combination = vec![0.0; along.len()];
        for row in (0..along.len()).rev() {
            let factor = left[row] / self.triangle[row][row];
            left.iter_mut().zip(&self.triangle[row]).for_each(|(left, part)| *left -= factor * part);
            combination[row] = factor;
        }
        combination
    }
}

/// The sum of products, in an order that leaves the compiler its vectors.
fn dot(a: &[f64], b: &[f64]) -> f64 {
    let (a, b) = (a.chunks_exact(8), b.chunks_exact(8));
    let rest: f64 = a.remainder().iter().zip(b.remainder()).map(|(a, b)| a * b).sum();
    let mut sums = [0.0; 8];
    for (a, b) in a.zip(b) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, (a, b))| *sum += a * b);
    }
    sums.iter().sum::<f64>() + rest
}

/// Rows as combinations of a few of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Decomposition {
    /// The few.
    pub(crate) pivots: Vec<usize>,
    /// For each row, its factors on them.
    pub(crate) factors: Vec<Vec<f64>>,
    /// What it costs that rows are not quite the combinations.
    pub(crate) cost: f64,
}

/// By what rows are compared that may stand for others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Weighing {
    /// By what errors in them cost, or, if nothing may be missed, by what rounding makes.
    #[default]
    Costs,
    /// By how large they are.
    Sizes,
}

/// How much a decomposition may miss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allowance<'a> {
    /// For each row, what an error of 1 costs some of several parties.
    pub(crate) costs: &'a [&'a [(usize, f64)]],
    pub(crate) parties: usize,
    /// What all errors together may cost any of them. If it is 0, nothing may be missed but what rounding makes.
    pub(crate) budget: f64,
    /// For each row, the size of what it was computed from.
    pub(crate) sizes: &'a [f64],
    pub(crate) weighing: Weighing,
}

/// Writes rows as combinations of as few of them as possible, by a QR decomposition with pivoting, which takes the row
/// that sticks out furthest from those taken before, again and again, until what is left may be missed. The rows have
/// `width` columns, in units of how large their variables can be.
pub(crate) fn decompose(rows: &[Vec<f64>], width: usize, allowance: Allowance<'_>) -> Decomposition {
    if rows.is_empty() || width == 0 {
        return Decomposition { factors: vec![Vec::new(); rows.len()], ..Decomposition::default() };
    }
    Factorisation::new(rows, width, allowance).solve()
}

struct Factorisation<'a> {
    rows: &'a [Vec<f64>],
    allowance: Allowance<'a>,
    /// What an error in a row weighs.
    weights: Vec<f64>,
    /// A column for each row, weighed.
    scaled: Mat<f64>,
}

impl<'a> Factorisation<'a> {
    fn new(rows: &'a [Vec<f64>], width: usize, allowance: Allowance<'a>) -> Self {
        let Allowance { costs, budget, sizes, weighing, .. } = allowance;
        let weight = |row: usize| {
            let most = || costs[row].iter().map(|&(_, cost)| cost).fold(0.0, f64::max);
            let weight = match weighing {
                Weighing::Sizes => 1.0,
                Weighing::Costs if budget > 0.0 => most(),
                Weighing::Costs => 1.0 / sizes[row],
            };
            if weight > 0.0 && weight.is_finite() { weight } else { f64::MIN_POSITIVE.sqrt() }
        };
        let weights: Vec<f64> = (0..rows.len()).map(weight).collect();
        let scaled = Mat::from_fn(width, rows.len(), |column, row| rows[row][column] * weights[row]);
        Self { rows, allowance, weights, scaled }
    }

    fn solve(&self) -> Decomposition {
        let count = self.rows.len();
        let qr = self.scaled.col_piv_qr();
        let (triangle, order) = (qr.thin_R(), qr.P().arrays().0);
        let steps = triangle.nrows().min(count);
        // For each number of steps, what is left of each row then, in the order of the pivots.
        let mut left = vec![vec![0.0_f64; count]; steps + 1];
        for step in (0..steps).rev() {
            for place in step..count {
                left[step][place] = left[step + 1][place].hypot(triangle[(step, place)]);
            }
        }
        let is_noise = |step: usize, place: usize| {
            let row = order[place];
            left[step][place] <= NOISE * self.allowance.sizes[row] * self.weights[row]
        };
        let combined = |rank: usize| {
            let corner = Mat::from_fn(rank, rank, |i, j| if i <= j { triangle[(i, j)] } else { 0.0 });
            let mut solution = Mat::from_fn(rank, count - rank, |i, j| triangle[(i, rank + j)]);
            solve_upper_triangular_in_place(corner.as_ref(), solution.as_mut(), Par::Seq);
            let mut factors = vec![vec![0.0; rank]; count];
            for (place, &row) in order.iter().enumerate() {
                for (step, &pivot) in order[..rank].iter().enumerate() {
                    factors[row][step] = match place.checked_sub(rank) {
                        None => f64::from(u8::from(step == place)),
                        Some(place) => solution[(step, place)] * (self.weights[pivot] / self.weights[row]),
                    };
                }
            }
            let missed = (rank..count).filter(|&place| rank == steps || !is_noise(rank, place));
            self.costed(order[..rank].to_vec(), factors, missed.map(|place| order[place]))
        };
        for (rank, left) in left.iter().enumerate().take(steps) {
            // No sum of absolute values is less than the root of the sum of squares.
            let missed = (rank..count).filter(|&place| !is_noise(rank, place));
            let least = missed.map(|place| left[place]).fold(0.0, f64::max);
            if least > self.allowance.budget {
                continue;
            }
            let decomposition = combined(rank);
            if least == 0.0 || decomposition.cost <= self.allowance.budget {
                return decomposition;
            }
        }
        combined(steps)
    }

    /// With what it costs that some rows are not quite the combinations.
    fn costed(&self, pivots: Vec<usize>, factors: Vec<Vec<f64>>, missed: impl Iterator<Item = usize>) -> Decomposition {
        let costs = self.allowance.costs;
        let mut totals = vec![0.0; self.allowance.parties];
        for row in missed {
            let mut rest = self.rows[row].clone();
            for (factor, &pivot) in factors[row].iter().zip(&pivots) {
                rest.iter_mut().zip(&self.rows[pivot]).for_each(|(rest, number)| *rest -= factor * number);
            }
            let missing: f64 = rest.iter().map(|number| number.abs()).sum();
            costs[row].iter().for_each(|&(party, cost)| totals[party] += cost * missing);
        }
        Decomposition { pivots, factors, cost: totals.into_iter().fold(0.0, f64::max) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_for_the_others_depends_on_how_rows_are_weighed() {
        // The second row is three times the first, and errors in the first cost ten times as much.
        let rows = [vec![1.0, 2.0], vec![3.0, 6.0]];
        let costs: [&[(usize, f64)]; 2] = [&[(0, 10.0)], &[(0, 1.0)]];
        let pivots = |weighing, budget| {
            let allowance = Allowance { costs: &costs, parties: 1, budget, sizes: &[3.0, 9.0], weighing };
            let Decomposition { pivots, factors, cost } = decompose(&rows, 2, allowance);
            assert!(cost <= budget, "{cost} of {budget}");
            for (row, factors) in rows.iter().zip(&factors) {
                let [pivot, factor] = [rows[pivots[0]][0], factors[0]];
                assert!((row[0] - factor * pivot).abs() < 1e-12, "{factor} times {pivot}");
            }
            pivots
        };
        for budget in [0.0, 1e-3] {
            assert_eq!(pivots(Weighing::Sizes, budget), [1]);
        }
        assert_eq!(pivots(Weighing::Costs, 1e-3), [0]);
    }
}
