//! Convolutions, of any number of dimensions, in groups, and transposed.

use std::borrow::Cow;

use super::window::{Plane, TapRun, Taps, Window};
use super::{Action, ActionKind, Evaluate, Kernel, Map, Operands, Operator, Sums};
use crate::channels::Channels;
use crate::product::{Real, add_product};
use crate::shape::{NetworkError, Shape, finite};
use pulp::{Arch, Simd, WithSimd};

/// `y[o, p] = b[o] + Σ W[o, i, k] x[i, q]`, over the input channels `i` of the group that output channel `o` belongs
/// to, and over the positions `q` that a [window](Window) has at `p`, each with its entry `k` of the kernel.
///
/// The operand has its channels along one axis, and the axes of the window behind it. What axes are before it hold
/// further samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Convolution {
    window: Window,
    groups: usize,
    /// How many channels there are that it makes.
    outputs: usize,
    /// How many channels of the operand each of them reads.
    inputs: usize,
    /// For each output channel, each input channel of its group, each entry of the kernel.
    weights: Vec<f64>,
    bias: Option<Vec<f64>>,
}

impl Convolution {
    /// A convolution that makes `outputs` channels in `groups` groups. Weights are in the order of output channel,
    /// input channel within the group, and entry of the kernel.
    ///
    /// # Errors
    /// If the groups do not divide the channels, or the weights or the bias do not have as many finite numbers as they
    /// should.
    pub fn new(
        window: Window,
        groups: usize,
        outputs: usize,
        weights: Vec<f64>,
        bias: Option<Vec<f64>>,
    ) -> Result<Self, NetworkError> {
        if groups == 0 || outputs == 0 || !outputs.is_multiple_of(groups) {
            return Err(NetworkError::mismatch(format!("{outputs} channels cannot be made in {groups} groups")));
        }
        let row = window.entries().and_then(|entries| entries.checked_mul(outputs)).filter(|&row| row > 0);
        let inputs = row.filter(|row| !weights.is_empty() && weights.len().is_multiple_of(*row));
        let Some(inputs) = inputs.map(|row| weights.len() / row) else {
            return Err(NetworkError::mismatch(format!(
                "{} weights are none for {outputs} channels and this kernel",
                weights.len()
            )));
        };
        finite("the weights", &weights)?;
        if let Some(bias) = &bias {
            if bias.len() != outputs {
                return Err(NetworkError::mismatch(format!("a bias of {} numbers for {outputs} channels", bias.len())));
            }
            finite("the bias", bias)?;
        }
        Ok(Self { window, groups, outputs, inputs, weights, bias })
    }

    /// How it moves over the positions.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// In how many groups, each of which reads channels of its own.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// How many channels it makes.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// How many channels it reads, in all groups.
    pub fn inputs(&self) -> usize {
        self.inputs * self.groups
    }

    /// In the order of output channel, input channel within the group, and entry of the kernel.
    pub fn weights(&self) -> &[f64] {
        &self.weights
    }

    /// What is added to each channel, if anything is.
    pub fn bias(&self) -> Option<&[f64]> {
        self.bias.as_deref()
    }

    /// The axis of the channels of an operand or result of this shape.
    fn axis(&self, shape: &Shape) -> Option<usize> {
        shape.rank().checked_sub(self.window.axes().len() + 1)
    }
}

impl Operator for Convolution {
    fn name(&self) -> &'static str {
        if self.window.is_transposed() { "transposed convolution" } else { "convolution" }
    }

    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError> {
        let shape = operands[0];
        let Some(axis) = self.axis(shape).filter(|&axis| shape.extents()[axis] == self.inputs()) else {
            return Err(NetworkError::mismatch(format!(
                "the kernel takes {} channels and {} axes behind them, the input has shape {shape}",
                self.inputs(),
                self.window.axes().len(),
            )));
        };
        let mut extents = shape.extents()[..axis].to_vec();
        extents.push(self.outputs);
        extents.extend(self.window.output(&shape.extents()[axis + 1..])?);
        Shape::new(extents)
    }

    fn channels(&self, _operand: Channels, result: &Shape) -> Channels {
        Channels::along(result, self.axis(result).unwrap_or(0))
    }

    fn parameters(&self) -> usize {
        self.weights.len() + self.bias.as_ref().map_or(0, Vec::len)
    }
}

impl Map for Convolution {
    fn action(&self, operand: &Shape) -> Action<'_> {
        let axis = self.axis(operand).expect("an operand that it takes");
        let taps = self.window.taps(&operand.extents()[axis + 1..]);
        let samples = operand.extents()[..axis].iter().product();
        Action::Sums(Sums::of_kernel(KernelSums {
            taps: taps.into(),
            weights: Cow::Borrowed(&self.weights),
            bias: self.bias.as_deref(),
            groups: self.groups,
            outputs: self.outputs,
            inputs: self.inputs,
            samples,
        }))
    }

    fn kind(&self) -> ActionKind {
        ActionKind::Sums
    }

    fn ties_channels(&self) -> bool {
        self.groups > 1
    }
}

/// The sums that a kernel makes of the channels of some samples.
#[derive(Clone, Debug)]
pub(crate) struct KernelSums<'a> {
    pub(crate) taps: std::sync::Arc<Taps>,
    pub(crate) weights: Cow<'a, [f64]>,
    pub(crate) bias: Option<&'a [f64]>,
    pub(crate) groups: usize,
    /// Output channels, in all groups.
    pub(crate) outputs: usize,
    /// Input channels of a group.
    pub(crate) inputs: usize,
    pub(crate) samples: usize,
}

impl<'a> KernelSums<'a> {
    /// How many elements are read.
    pub(crate) fn read(&self) -> usize {
        self.samples * self.groups * self.inputs * self.taps.read()
    }

    /// How many elements are made.
    pub(crate) fn made(&self) -> usize {
        self.samples * self.outputs * self.taps.made()
    }

    /// The output channel of an element.
    pub(crate) fn channel(&self, output: usize) -> usize {
        output / self.taps.made() % self.outputs
    }

    /// The terms of one sum.
    pub(crate) fn terms(&self, output: usize) -> KernelTerms<'_> {
        let (made, read) = (self.taps.made(), self.taps.read());
        let channel = self.channel(output);
        let group = channel / (self.outputs / self.groups);
        let first = (output / made / self.outputs * self.groups + group) * self.inputs;
        let row = self.inputs * self.taps.entries();
        KernelTerms {
            taps: self.taps.of(output % made),
            weights: &self.weights[channel * row..][..row],
            entries: self.taps.entries(),
            read,
            start: first * read,
            channel: 0,
            tap: 0,
        }
    }

    /// In how many sums one input is at the most.
    pub(crate) fn readers(&self) -> usize {
        self.outputs / self.groups * self.taps.entries()
    }
}

/// The terms of one sum that a kernel makes, channel by channel.
pub(crate) struct KernelTerms<'s> {
    taps: &'s [(u32, u32)],
    /// Those of the output channel.
    weights: &'s [f64],
    entries: usize,
    read: usize,
    /// The first element of the channel at hand.
    start: usize,
    channel: usize,
    tap: usize,
}

impl Iterator for KernelTerms<'_> {
    type Item = (usize, f64);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.tap == self.taps.len() {
            (self.tap, self.channel, self.start) = (0, self.channel + 1, self.start + self.read);
        }
        let weights = self.weights.get(self.channel * self.entries..).filter(|weights| !weights.is_empty())?;
        let &(read, entry) = self.taps.get(self.tap)?;
        self.tap += 1;
        Some((self.start + read as usize, weights[entry as usize]))
    }

    #[inline]
    fn fold<B, F: FnMut(B, Self::Item) -> B>(self, mut all: B, mut f: F) -> B {
        let mut tap = self.tap;
        let mut start = self.start;
        for weights in self.weights.chunks_exact(self.entries).skip(self.channel) {
            for &(read, entry) in &self.taps[tap..] {
                all = f(all, (start + read as usize, weights[entry as usize]));
            }
            (tap, start) = (0, start + self.read);
        }
        all
    }
}

impl Evaluate for Convolution {
    fn kernel<T: Real>(&self, operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        let shape = operands[0];
        let axis = self.axis(shape).expect("an operand that it takes");
        let taps = self.window.taps(&shape.extents()[axis + 1..]);
        let has_plane = self.inputs == 1 && !taps.is_pointwise();
        let plane = has_plane.then(|| Plane::new(&self.window, &shape.extents()[axis + 1..])).flatten();
        let cast = |values: &[f64]| values.iter().map(|&value| T::from_f64(value)).collect::<Vec<T>>();
        let bias = self.bias.as_deref().map_or_else(|| vec![T::default(); self.outputs], cast);
        Box::new(ConvolutionKernel {
            made: taps.made(),
            read: taps.read(),
            is_pointwise: taps.is_pointwise(),
            entries: taps.entries(),
            runs: if plane.is_some() { Vec::new() } else { taps.runs() },
            plane,
            groups: self.groups,
            inputs: self.inputs,
            weights: cast(&self.weights),
            bias,
        })
    }
}

/// A convolution made ready to run.
struct ConvolutionKernel<T> {
    /// How many positions are made, and read.
    made: usize,
    read: usize,
    is_pointwise: bool,
    entries: usize,
    /// For each entry of the kernel, what it reads where, if there is a matrix product to be made of that.
    runs: Vec<Vec<TapRun>>,
    /// If there is not, because each channel is made of one, that with its padding.
    plane: Option<Plane>,
    groups: usize,
    /// Input channels of a group.
    inputs: usize,
    weights: Vec<T>,
    bias: Vec<T>,
}

impl<T: Real> Kernel<T> for ConvolutionKernel<T> {
    fn run(&self, operands: Operands<'_, T>, output: &mut [T]) {
        let outputs = self.bias.len() / self.groups;
        let row = self.inputs * self.entries;
        // What a matrix product reads: for each input channel and entry of the kernel, all positions.
        let mut columns = Vec::new();
        if self.plane.is_none() && !self.is_pointwise {
            columns.resize(row * self.made, T::default());
        }
        let mut room = self.plane.as_ref().map_or_else(PlaneRoom::default, PlaneRoom::new);
        let read = operands.get(0).chunks_exact(self.inputs * self.read);
        let made = output.chunks_exact_mut(outputs * self.made);
        for (group, (x, y)) in read.zip(made).enumerate() {
            let first = group % self.groups * outputs;
            if let Some(plane) = &self.plane {
                let channels = y.chunks_exact_mut(self.made).zip(self.weights[first * row..].chunks_exact(row));
                for ((y, weights), &bias) in channels.zip(&self.bias[first..]) {
                    Arch::new().dispatch(WindowSums { y, x, plane, room: &mut room, weights, bias });
                }
                continue;
            }
            for (y, &bias) in y.chunks_exact_mut(self.made).zip(&self.bias[first..]) {
                y.fill(bias);
            }
            let weights = &self.weights[first * row..][..outputs * row];
            if self.is_pointwise {
                add_product(y, weights, x, outputs, row, self.made);
            } else {
                let rows = columns.chunks_exact_mut(self.made);
                for (index, column) in rows.enumerate() {
                    let x = &x[index / self.runs.len() * self.read..][..self.read];
                    self.runs[index % self.runs.len()].iter().for_each(|run| copy_run(column, x, run));
                }
                add_product(y, weights, &columns, outputs, row, self.made);
            }
        }
    }
}

/// Room for a channel with its padding, and for the sums of all places.
#[derive(Default)]
struct PlaneRoom<T> {
    padded: Vec<T>,
    sums: Vec<T>,
}

impl<T: Real> PlaneRoom<T> {
    fn new(plane: &Plane) -> Self {
        Self { padded: vec![T::default(); plane.size], sums: vec![T::default(); plane.size] }
    }
}

/// Sums up what windows read of one channel, each number times its weight, at all places at once.
struct WindowSums<'a, T> {
    y: &'a mut [T],
    x: &'a [T],
    plane: &'a Plane,
    room: &'a mut PlaneRoom<T>,
    weights: &'a [T],
    bias: T,
}

impl<T: Real> WithSimd for WindowSums<'_, T> {
    type Output = ();

    // Compiled for each generation of processors: what the loops below become is up to the compiler.
    #[inline(always)]
    fn with_simd<S: Simd>(self, _simd: S) {
        let Self { y, x, plane, room, weights, bias } = self;
        for &(from, to) in &plane.rows {
            room.padded[to..][..plane.row].copy_from_slice(&x[from..][..plane.row]);
        }
        let last = plane.places.last().map_or(0, |last| last + 1);
        let sums = &mut room.sums[..last];
        sums.fill(bias);
        for (&offset, &weight) in plane.offsets.iter().zip(weights) {
            for (sum, &x) in sums.iter_mut().zip(&room.padded[offset..][..last]) {
                *sum = *sum + weight * x;
            }
        }
        y.iter_mut().zip(&plane.places).for_each(|(y, &place)| *y = sums[place]);
    }
}

/// Copies what a run reads.
fn copy_run<T: Real>(y: &mut [T], x: &[T], run: &TapRun) {
    let (y, x) = (&mut y[run.made..], &x[run.read..]);
    if (run.made_step, run.read_step) == (1, 1) {
        y[..run.length].copy_from_slice(&x[..run.length]);
    } else {
        let pairs = y.iter_mut().step_by(run.made_step).zip(x.iter().step_by(run.read_step));
        pairs.take(run.length).for_each(|(y, &x)| *y = x);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evaluate::Evaluator;
    use crate::network::{Network, ValueId};
    use crate::op::WindowAxis;

    /// However a kernel is evaluated (as a product with each position, with columns, or with a channel and its padding
    /// in one row), it makes the sums that it tells.
    #[test]
    fn kernels_make_the_sums_that_they_tell() -> Result<(), NetworkError> {
        // Small whole numbers, so that no order of summation rounds.
        let numbers = |count: usize| (0..count).map(|i| (i * 7 % 11) as f64 - 5.0).collect::<Vec<f64>>();
        for (kernel, stride, dilation) in [(1, 1, 1), (1, 2, 1), (3, 1, 1), (3, 2, 1), (2, 1, 2), (2, 3, 2)] {
            for (inputs, outputs, groups) in [(1, 1, 1), (1, 3, 1), (4, 4, 4), (2, 4, 2), (4, 2, 2), (3, 2, 1)] {
                let axis = WindowAxis { dilation, before: kernel / 2, after: 1, ..WindowAxis::new(kernel, stride) };
                for window in [Window::new([axis; 2]), Window::transposed([axis; 2])] {
                    let weights = numbers(outputs * (inputs / groups) * kernel * kernel);
                    let map = Convolution::new(window, groups, outputs, weights, Some(numbers(outputs)))?;
                    let shape = Shape::new([inputs, 5, 4])?;
                    let mut builder = Network::builder(shape.clone());
                    let made = builder.add("conv", map.clone(), &[ValueId::INPUT])?;
                    let network = builder.finish(vec![made])?;
                    let samples = numbers(2 * shape.elements());
                    let Action::Sums(sums) = map.action(&shape) else { panic!("sums") };
                    let evaluated = Evaluator::<f64>::new(&network).run(&samples);
                    assert_eq!(evaluated[0], sums.forward_fast(&samples), "{map:?}");
                }
            }
        }
        Ok(())
    }
}
