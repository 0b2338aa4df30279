//! The loops that training spends its time in.
//!
//! Every sum is taken in the order of its terms, one fused multiply-add a term; only different sums share a register.
//! So results do not depend on the machine: neither on how wide its registers are, nor on how a library cuts its
//! matrices into blocks. `pulp` compiles the loops for several generations of processors and picks at run time.

use pulp::{Simd, WithSimd};

use crate::matrix::PaddedMatrix;
use crate::sparse::{InputPair, SparseBatch};

/// How far a step of gradient descent goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GradientStep {
    pub(crate) rate: f32,
    pub(crate) momentum: f32,
    /// The weight of the sum of absolute values in the loss.
    pub(crate) l1: f32,
}

/// Velocities below this count as 0. Left alone they would dwindle to denormal numbers and stay there, where arithmetic
/// is slow on many processors.
const MIN_VELOCITY: f32 = 1e-30;

/// `out += batch weights`, where the rows of `weights` come in pairs.
pub(crate) struct AddProduct<'a> {
    pub(crate) out: &'a mut PaddedMatrix,
    pub(crate) batch: &'a SparseBatch,
    pub(crate) weights: &'a PaddedMatrix,
}

/// A step of gradient descent, where the loss has the gradient `batchᵀ delta`, plus that of the l1 term.
pub(crate) struct Descend<'a> {
    pub(crate) weights: &'a mut PaddedMatrix,
    pub(crate) velocity: &'a mut PaddedMatrix,
    pub(crate) batch: &'a SparseBatch,
    pub(crate) delta: &'a PaddedMatrix,
    pub(crate) step: GradientStep,
}

/// A step of gradient descent for biases, the one row of `bias`: their gradient is the sum of the rows of `delta`.
pub(crate) struct DescendBias<'a> {
    pub(crate) bias: &'a mut PaddedMatrix,
    pub(crate) velocity: &'a mut PaddedMatrix,
    pub(crate) delta: &'a PaddedMatrix,
    pub(crate) step: GradientStep,
}

/// Cuts rows of `$vectors` vectors into tiles that fit the registers, and calls `$tile::<S, vectors>(first, ..)` for
/// each.
macro_rules! for_tiles {
    ($vectors:expr, $tile:ident ( $($argument:expr),* )) => {
        // A tile is there twice, once for each input of a pair, and half of the registers are for other things.
        let widest = S::REGISTER_COUNT / 4;
        for first in (0..$vectors).step_by(widest) {
            match widest.min($vectors - first) {
                1 => $tile::<S, 1>(first, $($argument),*),
                2 => $tile::<S, 2>(first, $($argument),*),
                3 => $tile::<S, 3>(first, $($argument),*),
                4 => $tile::<S, 4>(first, $($argument),*),
                5 => $tile::<S, 5>(first, $($argument),*),
                6 => $tile::<S, 6>(first, $($argument),*),
                7 => $tile::<S, 7>(first, $($argument),*),
                _ => $tile::<S, 8>(first, $($argument),*),
            }
        }
    };
}

impl WithSimd for AddProduct<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (out, weights) = (self.out.vectors_mut::<S>(), self.weights.vectors::<S>());
        let stride = self.weights.row_vectors::<S>();
        for_tiles!(stride, add_product_tile(simd, stride, &mut *out, self.batch, weights));
    }
}

/// Adds to `T` vectors of every row of `out`. The weights of two inputs stay in registers for all samples.
#[inline(always)]
fn add_product_tile<S: Simd, const T: usize>(
    first: usize,
    simd: S,
    stride: usize,
    out: &mut [S::f32s],
    batch: &SparseBatch,
    weights: &[S::f32s],
) {
    for (entries, rows) in batch.iter().zip(weights.chunks_exact(2 * stride)) {
        if entries.is_empty() {
            continue;
        }
        let (even, odd): ([S::f32s; T], [S::f32s; T]) = (tile(rows, first), tile(rows, stride + first));
        for &InputPair { sample, values } in entries {
            let [left, right] = values.map(|value| simd.splat_f32s(value));
            let sums = &mut out[sample as usize * stride + first..][..T];
            for vector in 0..T {
                let sum = simd.mul_add_f32s(even[vector], left, sums[vector]);
                sums[vector] = simd.mul_add_f32s(odd[vector], right, sum);
            }
        }
    }
}

impl WithSimd for Descend<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (weights, velocity) = (self.weights.vectors_mut::<S>(), self.velocity.vectors_mut::<S>());
        let delta = self.delta.vectors::<S>();
        let stride = self.delta.row_vectors::<S>();
        for_tiles!(stride, descend_tile(simd, stride, &mut *weights, &mut *velocity, self.batch, delta, self.step));
    }
}

/// Moves `T` vectors of every row of the weights. Their gradient never leaves the registers.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn descend_tile<S: Simd, const T: usize>(
    first: usize,
    simd: S,
    stride: usize,
    weights: &mut [S::f32s],
    velocity: &mut [S::f32s],
    batch: &SparseBatch,
    delta: &[S::f32s],
    step: GradientStep,
) {
    let rows = weights.chunks_exact_mut(2 * stride).zip(velocity.chunks_exact_mut(2 * stride));
    for (entries, (weights, velocity)) in batch.iter().zip(rows) {
        let (mut even, mut odd) = ([simd.splat_f32s(0.0); T], [simd.splat_f32s(0.0); T]);
        for &InputPair { sample, values } in entries {
            let [left, right] = values.map(|value| simd.splat_f32s(value));
            let delta = &delta[sample as usize * stride + first..][..T];
            for vector in 0..T {
                even[vector] = simd.mul_add_f32s(delta[vector], left, even[vector]);
                odd[vector] = simd.mul_add_f32s(delta[vector], right, odd[vector]);
            }
        }
        for vector in 0..T {
            let (left, right) = (first + vector, stride + first + vector);
            step.take(simd, &mut weights[left], &mut velocity[left], even[vector]);
            step.take(simd, &mut weights[right], &mut velocity[right], odd[vector]);
        }
    }
}

impl WithSimd for DescendBias<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let (bias, velocity) = (self.bias.vectors_mut::<S>(), self.velocity.vectors_mut::<S>());
        let step = GradientStep { l1: 0.0, ..self.step };
        for (index, (bias, velocity)) in bias.iter_mut().zip(velocity).enumerate() {
            let rows = self.delta.vectors::<S>().chunks_exact(self.delta.row_vectors::<S>());
            let gradient = rows.fold(simd.splat_f32s(0.0), |sum, row| simd.add_f32s(sum, row[index]));
            step.take(simd, bias, velocity, gradient);
        }
    }
}

impl GradientStep {
    /// Moves weights against their gradient.
    #[inline(always)]
    fn take<S: Simd>(self, simd: S, weights: &mut S::f32s, velocity: &mut S::f32s, gradient: S::f32s) {
        let zero = simd.splat_f32s(0.0);
        let l1 = simd.splat_f32s(self.l1);
        let up = simd.select_f32s(simd.less_than_f32s(*weights, zero), l1, zero);
        let pull = simd.select_f32s(simd.less_than_f32s(zero, *weights), l1, simd.sub_f32s(zero, up));
        let moved = simd.mul_add_f32s(simd.splat_f32s(self.momentum), *velocity, simd.add_f32s(gradient, pull));
        let stands = simd.less_than_f32s(simd.abs_f32s(moved), simd.splat_f32s(MIN_VELOCITY));
        *velocity = simd.select_f32s(stands, zero, moved);
        *weights = simd.mul_add_f32s(simd.splat_f32s(-self.rate), *velocity, *weights);
    }
}

#[inline(always)]
fn tile<V: Copy, const T: usize>(vectors: &[V], first: usize) -> [V; T] {
    let vectors = &vectors[first..][..T];
    std::array::from_fn(|index| vectors[index])
}
