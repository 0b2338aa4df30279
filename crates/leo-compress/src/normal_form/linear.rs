//! Linear dependence, in floating point: which rows are combinations of others.
//!
//! Whether a row *is* a combination cannot be seen in rounded arithmetic. What can be seen is how much the combination
//! misses, and that is what is weighed here: no more than rounding makes ([`NOISE`]), or no more than is allowed. What
//! it comes to in the end is for the checker to prove.
//!
//! Both ways are modified Gram-Schmidt orthogonalisation, which gives the triangle of a QR decomposition as accurately
//! as Householder's reflections do: Å. Björck, *Solving Linear Least Squares Problems by Gram-Schmidt
//! Orthogonalization*, BIT 7 (1967). [`Span`] takes rows in their own order, and does it twice ("twice is enough", as
//! B. N. Parlett quotes W. Kahan in *The Symmetric Eigenvalue Problem*, 1980). [`decompose`] finds the rank and the
//! rows that carry the others: it takes the longest remainder first, which is the column pivoting of P. Businger and
//! G. H. Golub, *Linear Least Squares Solutions by Householder Transformations*, Numerische Mathematik 7 (1965), and
//! stops as soon as what remains may be missed.

use leo_network::{add_multiple, dot};

/// What rounding can make of rows with a few thousand terms of size 1.
pub(crate) const NOISE: f64 = 1.0 / (1_u64 << 44) as f64;

/// Combinations with larger numbers would lose in rounding what they gain.
const LARGEST_FACTOR: f64 = 64.0;

/// Orthonormal directions, and the rows that they were made of.
#[derive(Default)]
struct Orthonormal {
    directions: Vec<Vec<f64>>,
    /// Each row by the directions up to its own.
    triangle: Vec<Vec<f64>>,
}

impl Orthonormal {
    /// Takes in a row, of which is known how far it goes along the directions so far and what it is besides. One that
    /// is nothing besides, or past all numbers, gets a direction that nothing goes along.
    fn add(&mut self, mut along: Vec<f64>, mut rest: Vec<f64>) {
        let length = length(&rest);
        let is_direction = length > 0.0 && length.is_finite();
        if is_direction {
            rest.iter_mut().for_each(|number| *number /= length);
        } else {
            rest.fill(0.0);
        }
        along.push(if is_direction { length } else { 1.0 });
        self.directions.push(rest);
        self.triangle.push(along);
    }

    /// Which combination of the rows goes this far along the directions.
    fn combination(&self, along: &[f64]) -> Vec<f64> {
        let mut left = along.to_vec();
        let mut combination = vec![0.0; along.len()];
        for row in (0..along.len()).rev() {
            let factor = left[row] / self.triangle[row][row];
            add_multiple(&mut left[..=row], -factor, &self.triangle[row]);
            combination[row] = factor;
        }
        combination
    }
}

/// The root of the sum of squares, where squares may be too small or too large for a number.
fn length(row: &[f64]) -> f64 {
    let squares = dot(row, row);
    if (1e-200..1e200).contains(&squares) {
        return squares.sqrt();
    }
    let largest = row.iter().fold(0.0_f64, |largest, number| largest.max(number.abs()));
    if largest == 0.0 {
        return 0.0;
    }
    largest * row.iter().map(|number| (number / largest).powi(2)).sum::<f64>().sqrt()
}

/// Rows that are linearly independent, one after the other.
pub(crate) struct Span {
    /// How large each column's variable can be.
    magnitudes: Vec<f64>,
    /// In units of the magnitudes.
    basis: Orthonormal,
}

impl Span {
    pub(crate) fn new(magnitudes: Vec<f64>) -> Self {
        Self { magnitudes, basis: Orthonormal::default() }
    }

    /// The combination of the rows so far that a row is, if what that misses is no more than is allowed, or than
    /// rounding makes. Otherwise the row becomes one of them.
    pub(crate) fn express(&mut self, row: &[f64], allowance: f64) -> Option<Vec<f64>> {
        let mut rest: Vec<f64> = row.iter().zip(&self.magnitudes).map(|(w, magnitude)| w * magnitude).collect();
        let size = |row: &[f64]| row.iter().map(|number| number.abs()).sum::<f64>();
        let allowance = allowance.max(NOISE * size(&rest));
        let mut along = vec![0.0; self.basis.directions.len()];
        // Twice, because the first time leaves what its own rounding made.
        for _ in 0..2 {
            for (direction, along) in self.basis.directions.iter().zip(&mut along) {
                let part = dot(direction, &rest);
                add_multiple(&mut rest, -part, direction);
                *along += part;
            }
        }
        if size(&rest) <= allowance {
            let combination = self.basis.combination(&along);
            if combination.iter().all(|factor| factor.abs() <= LARGEST_FACTOR) {
                return Some(combination);
            }
        }
        self.basis.add(along, rest);
        None
    }
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

/// Writes rows as combinations of as few of them as possible: takes the row that sticks out furthest from those taken
/// before, again and again, until what is left may be missed. The rows have `width` columns, in units of how large
/// their variables can be.
pub(crate) fn decompose(rows: &[Vec<f64>], width: usize, allowance: Allowance<'_>) -> Decomposition {
    if rows.is_empty() || width == 0 {
        return Decomposition { factors: vec![Vec::new(); rows.len()], ..Decomposition::default() };
    }
    Factorisation::new(rows, allowance).solve(width)
}

struct Factorisation<'a> {
    rows: &'a [Vec<f64>],
    allowance: Allowance<'a>,
    /// What an error in a row weighs.
    weights: Vec<f64>,
    /// The rows that were taken, weighed.
    basis: Orthonormal,
    /// Which.
    pivots: Vec<usize>,
    /// The others.
    remainders: Vec<Remainder>,
}

/// What remains of a row, weighed.
struct Remainder {
    row: usize,
    /// How far the row goes along the directions so far.
    along: Vec<f64>,
    rest: Vec<f64>,
    length: f64,
}

impl Remainder {
    /// Takes out what goes along a direction.
    fn leave(&mut self, direction: &[f64]) {
        let part = dot(direction, &self.rest);
        add_multiple(&mut self.rest, -part, direction);
        self.along.push(part);
        self.length = length(&self.rest);
    }
}

impl<'a> Factorisation<'a> {
    fn new(rows: &'a [Vec<f64>], allowance: Allowance<'a>) -> Self {
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
        let remainder = |(row, (numbers, weight)): (usize, (&Vec<f64>, &f64))| {
            let rest: Vec<f64> = numbers.iter().map(|number| number * weight).collect();
            Remainder { row, along: Vec::new(), length: length(&rest), rest }
        };
        let remainders = rows.iter().zip(&weights).enumerate().map(remainder).collect();
        Self { rows, allowance, weights, basis: Orthonormal::default(), pivots: Vec::new(), remainders }
    }

    fn solve(mut self, width: usize) -> Decomposition {
        for _ in 0..width.min(self.rows.len()) {
            let missed: Vec<&Remainder> =
                self.remainders.iter().filter(|remainder| !self.is_noise(remainder)).collect();
            // No sum of absolute values is less than the root of the sum of squares.
            let least = missed.iter().map(|remainder| remainder.length).fold(0.0, f64::max);
            if least <= self.allowance.budget {
                let decomposition = self.decomposition(missed.iter().map(|remainder| remainder.row));
                if least == 0.0 || decomposition.cost <= self.allowance.budget {
                    return decomposition;
                }
            }
            self.take_longest();
        }
        self.decomposition(self.remainders.iter().map(|remainder| remainder.row))
    }

    /// Whether what is left of a row is no more than rounding makes.
    fn is_noise(&self, remainder: &Remainder) -> bool {
        remainder.length <= NOISE * self.allowance.sizes[remainder.row] * self.weights[remainder.row]
    }

    /// Makes a pivot of the row that sticks out furthest, the first of several.
    fn take_longest(&mut self) {
        let longer = |best: usize, place: usize| {
            if self.remainders[place].length > self.remainders[best].length { place } else { best }
        };
        let longest = (0..self.remainders.len()).fold(0, longer);
        let Remainder { row, along, rest, .. } = self.remainders.remove(longest);
        self.pivots.push(row);
        self.basis.add(along, rest);
        if let Some(direction) = self.basis.directions.last() {
            self.remainders.iter_mut().for_each(|remainder| remainder.leave(direction));
        }
    }

    /// All rows as combinations of the pivots, which miss some of them.
    fn decomposition(&self, missed: impl Iterator<Item = usize>) -> Decomposition {
        let mut factors = vec![Vec::new(); self.rows.len()];
        for (place, &pivot) in self.pivots.iter().enumerate() {
            factors[pivot] = vec![0.0; self.pivots.len()];
            factors[pivot][place] = 1.0;
        }
        for Remainder { row, along, .. } in &self.remainders {
            let of_weighed = self.basis.combination(along).into_iter().zip(&self.pivots);
            factors[*row] = of_weighed.map(|(of, &pivot)| of * (self.weights[pivot] / self.weights[*row])).collect();
        }
        self.costed(self.pivots.clone(), factors, missed)
    }

    /// With what it costs that some rows are not quite the combinations.
    fn costed(&self, pivots: Vec<usize>, factors: Vec<Vec<f64>>, missed: impl Iterator<Item = usize>) -> Decomposition {
        let costs = self.allowance.costs;
        let mut totals = vec![0.0; self.allowance.parties];
        for row in missed {
            let mut rest = self.rows[row].clone();
            for (factor, &pivot) in factors[row].iter().zip(&pivots) {
                add_multiple(&mut rest, -factor, &self.rows[pivot]);
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

    #[test]
    fn ranks_are_found_at_any_scale() {
        // Twelve rows made of the first five, with numbers between -1 and 1 from a linear congruential generator.
        let mut state = 1_u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
        };
        for scale in [1e-250, 1.0, 1e250] {
            let mut rows: Vec<Vec<f64>> = (0..5).map(|_| (0..9).map(|_| next() * scale).collect()).collect();
            for _ in 5..12 {
                let factors: Vec<f64> = (0..5).map(|_| next()).collect();
                let mut row = vec![0.0; 9];
                factors.iter().zip(&rows).for_each(|(factor, of)| add_multiple(&mut row, *factor, of));
                rows.push(row);
            }
            let sizes = vec![9.0 * scale; 12];
            let costs: [&[(usize, f64)]; 12] = [&[(0, 1.0)]; 12];
            for weighing in [Weighing::Costs, Weighing::Sizes] {
                let allowance = Allowance { costs: &costs, parties: 1, budget: 0.0, sizes: &sizes, weighing };
                let Decomposition { pivots, factors, .. } = decompose(&rows, 9, allowance);
                assert_eq!(pivots.len(), 5, "at {scale:e}");
                for (row, factors) in rows.iter().zip(&factors) {
                    let mut rest = row.clone();
                    factors.iter().zip(&pivots).for_each(|(factor, &of)| add_multiple(&mut rest, -factor, &rows[of]));
                    assert!(rest.iter().all(|number| number.abs() < 1e-13 * scale), "{rest:?} at {scale:e}");
                }
            }
        }
    }
}
