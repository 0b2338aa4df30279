//! Pools: sums over windows, of which averages are made, and the largest of each window.

use std::borrow::Cow;

use super::convolution::KernelSums;
use super::window::{TapRun, Taps, Window};
use super::{Action, ActionKind, Evaluate, Kernel, Map, Operands, Operator, Sums};
use crate::channels::Channels;
use crate::product::Real;
use crate::shape::{NetworkError, Shape};

/// The axis of the channels, if a window is about all axes behind it.
fn axis_of(window: &Window, shape: &Shape) -> Result<usize, NetworkError> {
    shape.rank().checked_sub(window.axes().len() + 1).ok_or_else(|| {
        let axes = window.axes().len();
        NetworkError::mismatch(format!("a window along {axes} axes behind the channels, the input has shape {shape}"))
    })
}

fn pooled(window: &Window, shape: &Shape) -> Result<Shape, NetworkError> {
    let axis = axis_of(window, shape)?;
    let mut extents = shape.extents()[..=axis].to_vec();
    extents.extend(window.output(&shape.extents()[axis + 1..])?);
    Shape::new(extents)
}

/// Those of the operand, unless windows move over them.
fn pooled_channels(window: &Window, operand: Channels, result: &Shape) -> Channels {
    Channels::along(result, operand.axis().min(axis_of(window, result).unwrap_or(0)))
}

/// How many channels there are, of all samples, and which positions read which.
fn taps_of(window: &Window, shape: &Shape) -> (usize, Taps) {
    let axis = axis_of(window, shape).expect("an operand that it takes");
    (shape.extents()[..=axis].iter().product(), window.taps(&shape.extents()[axis + 1..]))
}

/// The sum over each window, channel by channel. An average is that over the number of what it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SumPool {
    window: Window,
}

impl SumPool {
    /// Sums over such windows.
    pub fn new(window: Window) -> Self {
        Self { window }
    }

    /// How it moves over the positions.
    pub fn window(&self) -> &Window {
        &self.window
    }
}

impl Operator for SumPool {
    fn name(&self) -> &'static str {
        "sum pool"
    }

    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError> {
        pooled(&self.window, operands[0])
    }

    fn channels(&self, operand: Channels, result: &Shape) -> Channels {
        pooled_channels(&self.window, operand, result)
    }
}

impl Map for SumPool {
    fn action(&self, operand: &Shape) -> Action<'_> {
        let (channels, taps) = taps_of(&self.window, operand);
        Action::Sums(Sums::of_kernel(KernelSums {
            weights: Cow::Owned(vec![1.0; taps.entries()]),
            taps: taps.into(),
            bias: None,
            groups: 1,
            outputs: 1,
            inputs: 1,
            samples: channels,
        }))
    }

    fn kind(&self) -> ActionKind {
        ActionKind::Sums
    }

    fn ties_channels(&self) -> bool {
        true
    }
}

impl Evaluate for SumPool {
    fn kernel<T: Real>(&self, operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        Box::new(PoolKernel::new(&self.window, operands[0], |sum: T, x: T| sum + x, T::default()))
    }
}

/// The largest number of each window, channel by channel. What is beyond the edge does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaxPool {
    window: Window,
}

impl MaxPool {
    /// The largest of such windows.
    pub fn new(window: Window) -> Self {
        Self { window }
    }

    /// How it moves over the positions.
    pub fn window(&self) -> &Window {
        &self.window
    }

    /// What each element is the largest of, for an operand of this shape.
    pub fn windows(&self, operand: &Shape) -> MaxWindows {
        MaxWindows(taps_of(&self.window, operand).1)
    }
}

/// What the elements of a value are the largest of.
#[derive(Clone, Debug)]
pub struct MaxWindows(Taps);

impl MaxWindows {
    /// The elements that one is the largest of, in ascending order, at least one.
    pub fn of(&self, output: usize) -> impl Iterator<Item = usize> + '_ {
        let channel = output / self.0.made();
        self.0.of(output % self.0.made()).iter().map(move |&(read, _)| channel * self.0.read() + read as usize)
    }
}

impl Operator for MaxPool {
    fn name(&self) -> &'static str {
        "max pool"
    }

    fn output_shape(&self, operands: &[&Shape]) -> Result<Shape, NetworkError> {
        let axes = self.window.axes();
        if self.window.is_transposed()
            || axes.iter().any(|axis| axis.before.max(axis.after) > (axis.kernel - 1).saturating_mul(axis.dilation))
        {
            // Otherwise a window might have nothing in it.
            return Err(NetworkError::mismatch("padding as wide as the window, of which nothing is the largest"));
        }
        let shape = pooled(&self.window, operands[0])?;
        let axis = axis_of(&self.window, operands[0])?;
        match self.window.has_no_empty(&operands[0].extents()[axis + 1..]) {
            true => Ok(shape),
            false => Err(NetworkError::mismatch("a window that lies on padding alone")),
        }
    }

    fn channels(&self, operand: Channels, result: &Shape) -> Channels {
        pooled_channels(&self.window, operand, result)
    }
}

impl Evaluate for MaxPool {
    fn kernel<T: Real>(&self, operands: &[&Shape]) -> Box<dyn Kernel<T>> {
        let larger = |a: T, b: T| if b > a { b } else { a };
        Box::new(PoolKernel::new(&self.window, operands[0], larger, T::from_f64(f64::NEG_INFINITY)))
    }
}

/// A pool made ready to run.
struct PoolKernel<T, F> {
    made: usize,
    read: usize,
    runs: Vec<TapRun>,
    fold: F,
    begin: T,
}

impl<T: Real, F: Fn(T, T) -> T> PoolKernel<T, F> {
    fn new(window: &Window, operand: &Shape, fold: F, begin: T) -> Self {
        let (_, taps) = taps_of(window, operand);
        Self { made: taps.made(), read: taps.read(), runs: taps.runs().concat(), fold, begin }
    }
}

impl<T: Real, F: Fn(T, T) -> T + Send + Sync> Kernel<T> for PoolKernel<T, F> {
    fn run(&self, operands: Operands<'_, T>, output: &mut [T]) {
        let channels = operands.get(0).chunks_exact(self.read).zip(output.chunks_exact_mut(self.made));
        for (x, y) in channels {
            y.fill(self.begin);
            for run in &self.runs {
                let made = y[run.made..].iter_mut().step_by(run.made_step);
                let read = x[run.read..].iter().step_by(run.read_step.max(1));
                made.zip(read).take(run.length).for_each(|(y, &x)| *y = (self.fold)(*y, x));
            }
        }
    }
}
