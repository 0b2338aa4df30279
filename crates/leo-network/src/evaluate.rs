//! Batched evaluation: many samples through a network at once, by matrix products.
//!
//! A batch is a row-major matrix with one sample a row. [`Evaluator::run`] cuts it into blocks whose values stay in
//! the processor's cache, takes each block through the whole network, and spreads the blocks over the threads. How
//! the batch is cut depends on the network alone, so results are the same, bit for bit, for any number of threads.

use rayon::prelude::*;

use crate::network::{Network, ValueId};
use crate::op::{Evaluate, Kernel, Operands};
use crate::product::Real;

/// How many numbers one block's values should take at the most: 2 MiB in single precision.
const BLOCK_ELEMENTS: usize = 1 << 19;

/// The most samples in a block. More bring nothing: the products are efficient by then.
const BLOCK_ROWS: usize = 256;

/// A network made ready to run in one precision: its weights converted once, its operators' kernels chosen.
pub struct Evaluator<T> {
    steps: Vec<EvaluationStep<T>>,
    /// How many numbers each value has for one sample.
    widths: Vec<usize>,
    outputs: Vec<ValueId>,
    block_rows: usize,
}

struct EvaluationStep<T> {
    kernel: Box<dyn Kernel<T>>,
    operands: Vec<ValueId>,
}

/// Room for every value of a network for one block of samples. Make it once, use it for many blocks: nothing is
/// allocated after the first.
pub struct Workspace<T> {
    /// What each node makes.
    made: Vec<Vec<T>>,
}

/// Every value of a network for one block of samples, one row a sample.
#[derive(Clone, Copy)]
pub struct Values<'a, T> {
    samples: &'a [T],
    made: &'a [Vec<T>],
}

impl<'a, T> Values<'a, T> {
    /// The rows of one value.
    pub fn get(&self, id: ValueId) -> &'a [T] {
        id.node().map_or(self.samples, |index| &self.made[index])
    }
}

impl<T: Real> Evaluator<T> {
    /// Prepares `network`.
    pub fn new(network: &Network) -> Self {
        let steps = network
            .nodes()
            .iter()
            .map(|node| {
                let shapes: Vec<_> = node.operands().iter().map(|&value| network.shape(value)).collect();
                EvaluationStep { kernel: node.op().kernel(&shapes), operands: node.operands().to_vec() }
            })
            .collect();
        let widths: Vec<usize> = network.values().map(|value| network.shape(value).elements()).collect();
        let block_rows = (BLOCK_ELEMENTS / widths.iter().sum::<usize>()).clamp(1, BLOCK_ROWS);
        Self { steps, widths, outputs: network.outputs().to_vec(), block_rows }
    }

    /// Room for one block of samples.
    pub fn workspace(&self) -> Workspace<T> {
        Workspace { made: self.steps.iter().map(|_| Vec::new()).collect() }
    }

    /// How many samples [`run`](Self::run) takes through the network at a time.
    pub fn block_rows(&self) -> usize {
        self.block_rows
    }

    /// Computes every value of the network for these samples, on the calling thread, in the room of `workspace`.
    ///
    /// # Panics
    /// If the samples are not whole rows, or the workspace is another network's.
    pub fn forward<'a>(&self, workspace: &'a mut Workspace<T>, samples: &'a [T]) -> Values<'a, T> {
        let rows = self.rows(samples);
        assert_eq!(workspace.made.len(), self.steps.len(), "the workspace belongs to another network");
        for (index, step) in self.steps.iter().enumerate() {
            let (made, rest) = workspace.made.split_at_mut(index);
            let output = &mut rest[0];
            output.resize(rows * self.widths[index + 1], T::default());
            step.kernel.run(Operands { values: Values { samples, made }, ids: &step.operands, rows }, output);
        }
        Values { samples, made: &workspace.made }
    }

    fn rows(&self, samples: &[T]) -> usize {
        let width = self.widths[0];
        assert!(samples.len().is_multiple_of(width), "samples are rows of {width} numbers");
        samples.len() / width
    }

    /// Computes the network's outputs for a batch: for each output, one row a sample.
    ///
    /// # Panics
    /// If the samples are not whole rows.
    pub fn run(&self, samples: &[T]) -> Vec<Vec<T>> {
        self.run_with_progress(samples, &|_| ())
    }

    /// Computes the outputs as [`run`](Self::run) does, and tells `done` after every block how many samples it had.
    ///
    /// # Panics
    /// If the samples are not whole rows.
    pub fn run_with_progress(&self, samples: &[T], done: &(dyn Fn(usize) + Sync)) -> Vec<Vec<T>> {
        let rows = self.rows(samples);
        let blocks: Vec<Vec<Vec<T>>> = samples
            .par_chunks(self.block_rows * self.widths[0])
            .map_init(
                || self.workspace(),
                |workspace, block| {
                    let values = self.forward(workspace, block);
                    let outputs = self.outputs.iter().map(|&id| values.get(id).to_vec()).collect();
                    done(block.len() / self.widths[0]);
                    outputs
                },
            )
            .collect();
        (0..self.outputs.len())
            .map(|output| {
                let mut joined = Vec::with_capacity(rows * self.widths[self.outputs[output].index()]);
                blocks.iter().for_each(|block| joined.extend_from_slice(&block[output]));
                joined
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::op::{Arithmetic, Broadcast, Dense, Elementwise, Matrix, Relu, Reshape, Sum, Transpose};
    use crate::shape::{NetworkError, Shape};

    /// `x -> W₂ relu(W₁ x) + x` on a 2 by 2 sample that is transposed, flattened and scaled first.
    fn residual() -> Result<Network, NetworkError> {
        let mut builder = Network::builder(Shape::new([2, 2])?);
        let turned = builder.add("turn", Transpose::new([1, 0])?, &[ValueId::INPUT])?;
        let flat = builder.add("flat", Reshape::new(Shape::new([4])?), &[turned])?;
        let half = Elementwise::new(Arithmetic::Divide, Broadcast::new(Shape::new([1])?, vec![2.0])?)?;
        let scaled = builder.add("half", half, &[flat])?;
        let first = Matrix::new(2, 4, vec![1., 0., 0., 0., 0., -1., 0., 0.])?;
        let hidden = builder.add("fc1", Dense::new(first, Some(vec![0., 1.]))?, &[scaled])?;
        let active = builder.add("relu", Relu, &[hidden])?;
        let second = Matrix::new(4, 2, vec![1., 0., 0., 1., 1., 1., 0., 0.])?;
        let mapped = builder.add("fc2", Dense::new(second, None)?, &[active])?;
        let sum = builder.add("sum", Sum, &[mapped, scaled])?;
        builder.finish(vec![sum, active])
    }

    #[test]
    fn every_operator_computes_what_it_says() -> Result<(), NetworkError> {
        let outputs = Evaluator::<f64>::new(&residual()?).run(&[2., 4., -6., 8., -2., 0., 2., 0.]);
        // Sample 1: turned [2, -6, 4, 8], halved [1, -3, 2, 4], hidden [1, 4]. Sample 2: [-1, 1, 0, 0], hidden [-1, 0].
        assert_eq!(outputs[1], [1., 4., 0., 0.]);
        assert_eq!(outputs[0], [2., 1., 7., 4., -1., 1., 0., 0.]);
        Ok(())
    }

    #[test]
    fn the_thread_count_does_not_show() -> Result<(), Box<dyn std::error::Error>> {
        let network = residual()?;
        let evaluator = Evaluator::<f32>::new(&network);
        let samples: Vec<f32> = (0..4 * 1000).map(|i| (i as f32 * 0.37).sin()).collect();
        let on = |threads| -> Result<_, Box<dyn std::error::Error>> {
            Ok(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?.install(|| evaluator.run(&samples)))
        };
        assert_eq!(on(1)?, on(4)?);
        Ok(())
    }
}
