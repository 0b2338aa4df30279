//! Bounds on how far outputs can move: for each output, one for each of its elements.

/// The largest of all bounds.
pub(crate) fn largest(deltas: &[Vec<f64>]) -> f64 {
    deltas.iter().flatten().copied().fold(0.0, f64::max)
}

/// Whether no element moves at all.
pub(crate) fn are_zero(deltas: &[Vec<f64>]) -> bool {
    deltas.iter().flatten().all(|delta| *delta == 0.0)
}

/// Whether no element moves further than it may.
pub(crate) fn are_within(deltas: &[Vec<f64>], tolerances: &[Vec<f64>]) -> bool {
    deltas.iter().flatten().zip(tolerances.iter().flatten()).all(|(delta, tolerance)| delta <= tolerance)
}

/// Adds what elements move once more.
pub(crate) fn add(sums: &mut [Vec<f64>], deltas: &[Vec<f64>]) {
    combine(sums, deltas, |sum, delta| if sum == 0.0 { delta } else { (sum + delta).next_up() });
}

/// Takes the lesser of two bounds; what is no number is no bound.
pub(crate) fn take_less(least: &mut [Vec<f64>], found: &[Vec<f64>]) {
    combine(least, found, |least, found| if found < least { found } else { least });
}

/// Takes the larger of two bounds.
pub(crate) fn take_more(most: &mut [Vec<f64>], found: &[Vec<f64>]) {
    combine(most, found, f64::max);
}

fn combine(all: &mut [Vec<f64>], others: &[Vec<f64>], of: impl Fn(f64, f64) -> f64) {
    all.iter_mut().flatten().zip(others.iter().flatten()).for_each(|(one, &other)| *one = of(*one, other));
}
