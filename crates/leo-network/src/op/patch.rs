//! Coefficients of a linear function that reads a window of a value, and their way back through sums.
//!
//! What one position of a convolution reads is a window of what comes before, that window reads a larger one, and so
//! on: linear bounds of one position have coefficients on a *patch* of each value (Patches mode of auto_LiRPA, Xu et
//! al. 2020), which only in the end is all of it. So they take no more memory than the values, and what convolutions
//! and dense maps do to them is a matrix product over the positions of the patch.

use super::Sums;
use super::convolution::KernelSums;
use super::sums::Lies;
use crate::channels::Channels;
use crate::product::Scalar;

/// How many numbers a matrix product may make before they are added to where they belong.
const MOST_COLUMNS: usize = 1 << 18;

/// For some positions of a value, a coefficient on each of its channels there. On all others it is 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch<S> {
    layout: Channels,
    /// In ascending order.
    positions: Vec<usize>,
    /// For each position, a coefficient for each channel.
    coefficients: Vec<S>,
}

impl<S: Scalar> Patch<S> {
    /// A coefficient on a single element of a value whose channels lie like this.
    pub fn of_element(layout: Channels, element: usize, coefficient: S) -> Self {
        let mut coefficients = vec![S::default(); layout.count()];
        coefficients[layout.of(element)] = coefficient;
        Self { layout, positions: vec![layout.position(element)], coefficients }
    }

    /// Coefficients on these elements, in any order.
    pub fn of_elements(layout: Channels, given: Vec<(usize, S)>) -> Self {
        let (at, positions) = Self::places(given.iter().map(|(element, _)| layout.position(*element)));
        let mut patch = Self::zero(layout, positions);
        for (element, coefficient) in given {
            let place = at.of(layout.position(element)) * layout.count() + layout.of(element);
            S::add_numbers(&mut patch.coefficients[place..=place], std::slice::from_ref(&coefficient));
        }
        patch
    }

    fn zero(layout: Channels, positions: Vec<usize>) -> Self {
        let coefficients = vec![S::default(); positions.len() * layout.count()];
        Self { layout, positions, coefficients }
    }

    /// Some positions in ascending order, each once, and where each of them stands then.
    fn places(all: impl Iterator<Item = usize> + Clone) -> (Places, Vec<usize>) {
        let (Some(first), Some(last)) = (all.clone().min(), all.clone().max()) else {
            return (Places { first: 0, places: Vec::new() }, Vec::new());
        };
        let mut places = vec![u32::MAX; last - first + 1];
        all.for_each(|position| places[position - first] = 0);
        let mut positions = Vec::new();
        for (ahead, place) in places.iter_mut().enumerate().filter(|(_, place)| **place == 0) {
            *place = positions.len() as u32;
            positions.push(first + ahead);
        }
        (Places { first, places }, positions)
    }

    /// All coefficients.
    pub fn coefficients(&self) -> &[S] {
        &self.coefficients
    }

    /// All coefficients, each with its element.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &S)> {
        let rows = self.positions.iter().zip(self.coefficients.chunks_exact(self.layout.count()));
        rows.flat_map(move |(&position, row)| {
            row.iter().enumerate().map(move |(channel, c)| (self.layout.element(channel, position), c))
        })
    }

    /// All coefficients, each with its element, to be replaced.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut S)> {
        let layout = self.layout;
        let rows = self.positions.iter().zip(self.coefficients.chunks_exact_mut(layout.count()));
        rows.flat_map(move |(&position, row)| {
            row.iter_mut().enumerate().map(move |(channel, c)| (layout.element(channel, position), c))
        })
    }

    /// The same coefficients, for a value whose channels lie like this.
    pub fn with_layout(self, layout: Channels) -> Self {
        if self.layout.is_alike(&layout) {
            return Self { layout, ..self };
        }
        Self::of_elements(layout, self.iter().map(|(element, c)| (element, c.clone())).collect())
    }

    /// Adds coefficients on the same value, and tells of each that is added which element it is on, what it was before
    /// and what was added.
    pub fn add(self, other: Self, mut added: impl FnMut(usize, &S, &S)) -> Self {
        let layout = self.layout;
        let other = other.with_layout(layout);
        let (at, positions) = Self::places(self.positions.iter().chain(&other.positions).copied());
        let mut sum = Self::zero(layout, positions);
        let count = layout.count();
        for (&position, row) in self.positions.iter().zip(self.coefficients.chunks_exact(count)) {
            sum.coefficients[at.of(position) * count..][..count].clone_from_slice(row);
        }
        for (&position, row) in other.positions.iter().zip(other.coefficients.chunks_exact(count)) {
            let present = &mut sum.coefficients[at.of(position) * count..][..count];
            for (channel, (present, given)) in present.iter().zip(row).enumerate() {
                added(layout.element(channel, position), present, given);
            }
            S::add_numbers(present, row);
        }
        sum
    }
}

/// Where each of some positions stands among them.
struct Places {
    first: usize,
    places: Vec<u32>,
}

impl Places {
    fn of(&self, position: usize) -> usize {
        self.places[position - self.first] as usize
    }
}

impl Sums<'_> {
    /// Coefficients on outputs, as coefficients on inputs, and how many products that took. Biases are left out.
    pub fn backward_of_patch<S: Scalar>(&self, patch: Patch<S>) -> (Patch<S>, usize) {
        match &self.0 {
            &Lies::Matrix { ref weights, inner, outer, positions, .. } => {
                let [from, to] = [outer, inner].map(|count| Channels::laid(count, positions, 1));
                let patch = patch.with_layout(from);
                let mut made = Patch::zero(to, patch.positions);
                S::add_rows_times_weights(&mut made.coefficients, &patch.coefficients, weights, outer, inner);
                let products = made.positions.len() * inner * outer;
                (made, products)
            }
            Lies::Kernel(sums) => sums.backward_of_patch(patch),
            Lies::Terms(_) => {
                let mut given = Vec::new();
                for (output, c) in patch.iter() {
                    for (input, weight) in self.terms(output) {
                        let mut product = [S::default()];
                        S::add_products(&mut product, std::slice::from_ref(c), &[weight]);
                        let [product] = product;
                        given.push((input, product));
                    }
                }
                let products = given.len();
                (Patch::of_elements(Channels::laid(1, self.inputs(), 1), given), products)
            }
        }
    }
}

impl KernelSums<'_> {
    fn backward_of_patch<S: Scalar>(&self, patch: Patch<S>) -> (Patch<S>, usize) {
        let (made, read, entries) = (self.taps.made(), self.taps.read(), self.taps.entries());
        let patch = patch.with_layout(Channels::laid(self.outputs, self.samples * made, made));
        let to = Channels::laid(self.groups * self.inputs, self.samples * read, read);
        let taps = |position: usize| {
            let first = position / made * read;
            self.taps.of(position % made).iter().map(move |&(at, entry)| (first + at as usize, entry as usize))
        };
        let (at, positions) =
            Patch::<S>::places(patch.positions.iter().flat_map(|&position| taps(position).map(|(read, _)| read)));
        let mut found = Patch::zero(to, positions);
        let (outputs, width) = (self.outputs / self.groups, to.count());
        let products = patch.positions.len() * self.weights.len();
        if (outputs, self.inputs) == (1, 1) {
            // For each entry of the kernel, the weights of all channels.
            let weights = turned(&self.weights, width, entries);
            for (&position, row) in patch.positions.iter().zip(patch.coefficients.chunks_exact(width)) {
                for (read, entry) in taps(position) {
                    let sum = &mut found.coefficients[at.of(read) * width..][..width];
                    S::add_products(sum, row, &weights[entry * width..][..width]);
                }
            }
            return (found, products);
        }
        let columns = self.inputs * entries;
        let block = (MOST_COLUMNS / columns).max(1);
        for group in 0..self.groups {
            let weights = &self.weights[group * outputs * columns..][..outputs * columns];
            // Entry by entry, so that what belongs to a position that is read lies together.
            let rows = weights.chunks_exact(columns).flat_map(|row| turned(row, self.inputs, entries));
            let weights: Vec<f64> = rows.collect();
            let rows = patch.coefficients.chunks(block * self.outputs).zip(patch.positions.chunks(block));
            for (rows, positions) in rows {
                let own: Vec<S> = match self.groups {
                    1 => rows.to_vec(),
                    _ => rows
                        .chunks_exact(self.outputs)
                        .flat_map(|row| &row[group * outputs..][..outputs])
                        .cloned()
                        .collect(),
                };
                let mut product = vec![S::default(); positions.len() * columns];
                S::add_rows_times_weights(&mut product, &own, &weights, outputs, columns);
                for (&position, row) in positions.iter().zip(product.chunks_exact(columns)) {
                    for (read, entry) in taps(position) {
                        let sum = &mut found.coefficients[at.of(read) * width + group * self.inputs..][..self.inputs];
                        S::add_numbers(sum, &row[entry * self.inputs..][..self.inputs]);
                    }
                }
            }
        }
        (found, products)
    }
}

/// A matrix of `rows` rows of `columns` numbers, column by column.
fn turned(numbers: &[f64], rows: usize, columns: usize) -> Vec<f64> {
    (0..columns).flat_map(|column| (0..rows).map(move |row| numbers[row * columns + column])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Action, AffineMap, Convolution, Dense, Matrix, Op, Select, SumPool, Window, WindowAxis};
    use crate::shape::{NetworkError, Shape};

    /// Small whole numbers, so that no order of summation rounds.
    fn numbers(count: usize) -> Vec<f64> {
        (0..count).map(|i| (i * 7 % 11) as f64 - 5.0).collect()
    }

    fn agrees(op: impl Into<Op>, shape: &Shape, given: Channels) {
        let op: Op = op.into();
        let Some(Action::Sums(sums)) = op.as_affine().map(|map: &AffineMap| map.action(shape)) else { panic!("sums") };
        for wanted in [vec![0], vec![sums.outputs() - 1], vec![1, 2, sums.outputs() / 2], (0..sums.outputs()).collect()]
        {
            let mut row = vec![0.0; sums.outputs()];
            for (index, &output) in wanted.iter().enumerate() {
                row[output] = index as f64 % 5.0 - 2.0;
            }
            let patch = Patch::of_elements(given, wanted.iter().map(|&output| (output, row[output])).collect());
            let (found, _) = sums.backward_of_patch(patch);
            let mut product = vec![0.0; sums.inputs()];
            found.iter().for_each(|(input, c)| product[input] += c);
            assert_eq!(product, sums.backward(&row), "{op:?}");
            assert!(found.coefficients().len() <= sums.inputs(), "{op:?}");
        }
    }

    #[test]
    fn patches_go_back_as_rows_of_all_elements_do() -> Result<(), NetworkError> {
        for (inputs, outputs, groups) in [(1, 1, 1), (1, 3, 1), (4, 4, 4), (2, 4, 2), (4, 2, 2), (3, 2, 1)] {
            for (kernel, stride, dilation) in [(1, 1, 1), (1, 2, 1), (3, 1, 1), (3, 2, 1), (2, 1, 2), (2, 3, 2)] {
                let axis = WindowAxis { dilation, before: kernel / 2, after: 1, ..WindowAxis::new(kernel, stride) };
                for window in [Window::new([axis; 2]), Window::transposed([axis; 2])] {
                    for shape in [vec![inputs, 5, 4], vec![2, inputs, 5, 4]] {
                        let shape = Shape::new(shape)?;
                        let weights = numbers(outputs * (inputs / groups) * kernel * kernel);
                        let map = Convolution::new(window.clone(), groups, outputs, weights, None)?;
                        let made = crate::op::Operator::output_shape(&map, &[&shape])?;
                        agrees(map, &shape, Channels::along(&made, shape.rank() - 3));
                    }
                }
            }
        }
        let shape = Shape::new([3, 5, 4])?;
        agrees(SumPool::new(Window::new([WindowAxis::new(2, 1); 2])), &shape, Channels::laid(3, 12, 12));
        agrees(Dense::new(Matrix::new(3, 4, numbers(12))?, None)?, &shape, Channels::laid(3, 15, 15));
        let every = |extent: usize| (0..extent).map(Some).collect::<Vec<_>>();
        let padded = vec![every(3), vec![None, Some(1), Some(1), Some(4)], every(4)];
        agrees(Select::new(padded), &shape, Channels::laid(3, 16, 16));
        Ok(())
    }

    #[test]
    fn patches_are_added_element_by_element() -> Result<(), NetworkError> {
        let layout = Channels::along(&Shape::new([2, 6])?, 0);
        let one = Patch::of_elements(layout, vec![(1, 1.0), (8, 2.0)]);
        let other = Patch::of_elements(Channels::laid(1, 12, 1), vec![(8, 3.0), (5, 4.0)]);
        let mut told = Vec::new();
        let sum = one.add(other, |element, a, b| told.push((element, *a, *b)));
        assert_eq!(
            sum.iter().filter(|(_, c)| **c != 0.0).map(|(e, c)| (e, *c)).collect::<Vec<_>>(),
            [(1, 1.0), (8, 5.0), (5, 4.0)]
        );
        assert!(told.contains(&(8, 2.0, 3.0)));
        Ok(())
    }
}
