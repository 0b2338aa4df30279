//! Batches as their non-zero numbers.
//!
//! Four of five pixels of a handwritten digit are 0, and so are half of the outputs of a ReLU layer or more. A batch is
//! therefore kept as a list, for every two neighbouring inputs, of the samples where one of them is not 0: everything
//! that training does with a batch touches only these. Two at a time, because neighbours are often zero together, and
//! the loops in [`crate::loops`] are limited by what they load and store, not by what they compute.

use crate::matrix::{LANES, PaddedMatrix};

/// Two neighbouring inputs of one sample, not both 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct InputPair {
    pub(crate) sample: u32,
    pub(crate) values: [f32; 2],
}

/// A data set, sample by sample. Small, because every step reads another random corner of it.
#[derive(Clone, Debug)]
pub(crate) struct SparseSamples {
    inputs: usize,
    /// Where each sample begins in the two lists, and where the last one ends.
    starts: Vec<usize>,
    /// Which pairs of inputs are not both 0, ascending within a sample, and their values, of which 255 stands for 1.
    pairs: Vec<u16>,
    bytes: Vec<[u8; 2]>,
}

impl SparseSamples {
    /// How many inputs a sample can have.
    pub(crate) const MAX_INPUTS: usize = 1 << 17;

    /// Samples as rows of bytes.
    pub(crate) fn new(inputs: usize, rows: &[u8]) -> Self {
        assert!(inputs <= Self::MAX_INPUTS, "pairs have numbers of 16 bits");
        let mut samples = Self { inputs, starts: vec![0], pairs: Vec::new(), bytes: Vec::new() };
        for row in rows.chunks_exact(inputs) {
            for (index, pair) in row.chunks(2).enumerate() {
                let bytes = [pair[0], pair.get(1).copied().unwrap_or(0)];
                if bytes != [0, 0] {
                    samples.pairs.push(index as u16);
                    samples.bytes.push(bytes);
                }
            }
            samples.starts.push(samples.pairs.len());
        }
        samples
    }

    pub(crate) fn inputs(&self) -> usize {
        self.inputs
    }

    fn sample(&self, sample: u32) -> impl Iterator<Item = (usize, [u8; 2])> {
        let range = self.starts[sample as usize]..self.starts[sample as usize + 1];
        self.pairs[range.clone()].iter().map(|&pair| usize::from(pair)).zip(self.bytes[range].iter().copied())
    }
}

/// A batch, pair of inputs by pair of inputs.
#[derive(Clone, Debug, Default)]
pub(crate) struct SparseBatch {
    /// How many samples the batch has, hence how much room each pair has.
    samples: usize,
    /// How many entries each pair has.
    counts: Vec<usize>,
    entries: Vec<InputPair>,
}

impl SparseBatch {
    /// The entries of each pair of inputs, samples ascending.
    #[inline(always)]
    pub(crate) fn iter(&self) -> impl Iterator<Item = &[InputPair]> {
        self.entries.chunks_exact(self.samples).zip(&self.counts).map(|(entries, &count)| &entries[..count])
    }

    /// Becomes the batch of the samples that `chosen` names, in that order.
    pub(crate) fn gather(&mut self, samples: &SparseSamples, chosen: &[u32]) {
        self.reset(samples.inputs, chosen.len());
        for (row, &sample) in chosen.iter().enumerate() {
            for (pair, bytes) in samples.sample(sample) {
                let count = &mut self.counts[pair];
                let values = bytes.map(|byte| UNIT[usize::from(byte)]);
                self.entries[pair * chosen.len() + *count] = InputPair { sample: row as u32, values };
                *count += 1;
            }
        }
    }

    /// Becomes the batch of the rows of a matrix.
    pub(crate) fn gather_rows(&mut self, matrix: &PaddedMatrix) {
        let samples = matrix.rows().len();
        self.reset(matrix.width(), samples);
        for (pair, (entries, count)) in self.entries.chunks_exact_mut(samples).zip(&mut self.counts).enumerate() {
            let (group, lane) = (2 * pair / LANES, 2 * pair % LANES);
            let mut next = 0;
            for (sample, row) in matrix.rows().enumerate() {
                let values = [row[group].0[lane], row[group].0[lane + 1]];
                // Written always, kept only if it is not 0: a branch here could not be foretold.
                entries[next] = InputPair { sample: sample as u32, values };
                next += usize::from((values[0] != 0.0) | (values[1] != 0.0));
            }
            *count = next;
        }
    }

    fn reset(&mut self, inputs: usize, samples: usize) {
        self.samples = samples;
        self.counts.clear();
        self.counts.resize(inputs.div_ceil(2), 0);
        self.entries.resize(self.counts.len() * samples, InputPair::default());
    }
}

/// What each byte stands for.
static UNIT: [f32; 256] = {
    let mut unit = [0.0; 256];
    let mut byte = 0;
    while byte < 256 {
        unit[byte] = (byte as f64 / 255.0) as f32;
        byte += 1;
    }
    unit
};

#[cfg(test)]
mod tests {
    use super::*;

    use proptest::prelude::*;
    use pulp::Arch;

    use crate::loops::{AddProduct, Descend, GradientStep};

    /// A batch as a matrix with one sample a row.
    fn dense(batch: &SparseBatch, inputs: usize, samples: usize) -> Vec<Vec<f32>> {
        let mut rows = vec![vec![0.0; inputs]; samples];
        for (pair, entries) in batch.iter().enumerate() {
            for entry in entries {
                for (input, value) in (2 * pair..).zip(entry.values).take_while(|&(input, _)| input < inputs) {
                    rows[entry.sample as usize][input] = value;
                }
            }
        }
        rows
    }

    fn random_matrix(rows: usize, columns: usize, random: &mut fastrand::Rng) -> PaddedMatrix {
        let mut matrix = PaddedMatrix::zeros(rows, columns);
        for row in 0..rows {
            for column in 0..columns {
                // Small whole numbers: sums of their products are exact, in whatever order.
                *matrix.get_mut(row, column) = f32::from(random.i8(-4..5));
            }
        }
        matrix
    }

    proptest! {
        #[test]
        fn batches_and_products_agree_with_plain_loops(
            samples in 1_usize..20, inputs in 1_usize..40, outputs in 1_usize..300, seed in any::<u64>(),
        ) {
            let mut random = fastrand::Rng::with_seed(seed);
            // 255 stands for 1, and whole numbers it is.
            let rows: Vec<u8> = (0..30 * inputs).map(|_| if random.u8(..) < 100 { 255 } else { 0 }).collect();
            let chosen: Vec<u32> = (0..samples).map(|_| random.u32(0..30)).collect();
            let mut batch = SparseBatch::default();
            batch.gather(&SparseSamples::new(inputs, &rows), &chosen);
            let x = dense(&batch, inputs, samples);
            for (row, &sample) in x.iter().zip(&chosen) {
                let bytes = &rows[sample as usize * inputs..][..inputs];
                prop_assert!(row.iter().zip(bytes).all(|(&value, &byte)| value == f32::from(byte) / 255.0));
            }

            let weights = random_matrix(inputs.next_multiple_of(2), outputs, &mut random);
            let before = random_matrix(samples, outputs, &mut random);
            let mut out = before.clone();
            Arch::new().dispatch(AddProduct { out: &mut out, batch: &batch, weights: &weights });
            for (sample, row) in x.iter().enumerate() {
                for output in 0..outputs {
                    let sum: f32 = row.iter().enumerate().map(|(input, x)| x * weights.get(input, output)).sum();
                    prop_assert_eq!(out.get(sample, output), before.get(sample, output) + sum);
                }
            }

            let (mut moved, mut velocity) = (weights.clone(), PaddedMatrix::zeros(inputs.next_multiple_of(2), outputs));
            let step = GradientStep { rate: 0.5, momentum: 0.5, l1: 1.0 };
            let (delta, batch) = (&before, &batch);
            Arch::new().dispatch(Descend { weights: &mut moved, velocity: &mut velocity, batch, delta, step });
            for input in 0..inputs {
                for output in 0..outputs {
                    let weight = weights.get(input, output);
                    let terms = x.iter().enumerate().map(|(sample, row)| row[input] * before.get(sample, output));
                    let gradient = terms.sum::<f32>() + if weight == 0.0 { 0.0 } else { weight.signum() };
                    prop_assert_eq!(moved.get(input, output), weight - 0.5 * gradient);
                    prop_assert_eq!(velocity.get(input, output), gradient);
                }
            }
        }

        #[test]
        fn rows_of_a_matrix_make_a_batch(samples in 1_usize..20, inputs in 1_usize..60, seed in any::<u64>()) {
            let matrix = random_matrix(samples, inputs, &mut fastrand::Rng::with_seed(seed));
            let mut batch = SparseBatch::default();
            batch.gather_rows(&matrix);
            for (sample, row) in dense(&batch, inputs, samples).iter().enumerate() {
                prop_assert!(row.iter().enumerate().all(|(input, &value)| value == matrix.get(sample, input)));
            }
            prop_assert!(batch.iter().flatten().all(|entry| entry.values != [0.0, 0.0]));
        }
    }
}
