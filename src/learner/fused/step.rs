//! The optimizer step over the flat parameters: the gradient from its chunks, its norm, and Adam (Kingma and Ba, arXiv:1412.6980) with
//! the conventions of [`crate::learner::Optimizer`].

use cubecl::prelude::*;

use super::norm::total;
use super::product::Four;

/// Sums of squares that are added up for the norm.
pub(super) const SQUARES: usize = 256;

/// `gradient = sum of chunks` (plus what it was, with `add`). One invocation per four numbers.
#[cube(launch)]
pub(super) fn gather(parts: &[Four], gradient: &mut [Four], chunks: usize, length: usize, #[comptime] add: bool) {
    let place = ABSOLUTE_POS;
    if place >= length {
        terminate!();
    }
    let mut sum = Four::new(0.0);
    if comptime!(add) {
        sum = gradient[place];
    }
    for chunk in 0..chunks {
        sum += parts[chunk * length + place];
    }
    gradient[place] = sum;
}

/// [`SQUARES`] sums of squares of a gradient of `length` fours.
#[cube(launch)]
pub(super) fn squares(gradient: &[Four], sums: &mut [f32], length: usize) {
    let own = ABSOLUTE_POS;
    if own >= SQUARES {
        terminate!();
    }
    let mut sum = Four::new(0.0);
    let mut place = own;
    while place < length {
        let value = gradient[place];
        sum += value * value;
        place += SQUARES;
    }
    sums[own] = total(sum);
}

/// The norm of a gradient from its [`SQUARES`] sums of squares; the report takes it too. One invocation: all others would add up the same.
#[cube(launch)]
#[allow(clippy::needless_range_loop, reason = "kernels index buffers")]
pub(super) fn norm(sums: &[Four], norm: &mut [f32], report: &mut [f32], slot: usize) {
    if ABSOLUTE_POS > 0 {
        terminate!();
    }
    let mut square = Four::new(0.0);
    for index in 0..SQUARES / 4 {
        square += sums[index];
    }
    let length = total(square).sqrt();
    norm[0] = length;
    report[slot] = length;
}

/// Constants of a step.
#[derive(CubeLaunch, CubeType, Clone, Copy)]
pub(super) struct Step {
    /// Parameters, in fours.
    pub length: usize,
    /// 0: no limit.
    pub max_norm: f32,
    pub beta1: f32,
    pub beta2: f32,
    /// `learning rate * sqrt(1 - beta2^t) / (1 - beta1^t)`.
    pub rate: f32,
    /// `epsilon * sqrt(1 - beta2^t)`.
    pub epsilon: f32,
}

/// One step of Adam. A state is parameters, first and second moments, one after another; the old one stays as it is, so that a step can
/// be taken back. One invocation per four numbers.
#[cube(launch)]
pub(super) fn adam(before: &[Four], gradient: &[Four], norm: &[f32], after: &mut [Four], by: Step) {
    let place = ABSOLUTE_POS;
    if place >= by.length {
        terminate!();
    }
    let mut scale = 1.0f32.runtime();
    if by.max_norm > 0.0 {
        scale = by.max_norm / max(norm[0], by.max_norm);
    }
    let slope = gradient[place] * Four::new(scale);
    let first = before[by.length + place] * Four::new(by.beta1) + slope * Four::new(1.0 - by.beta1);
    let second = before[2 * by.length + place] * Four::new(by.beta2) + slope * slope * Four::new(1.0 - by.beta2);
    let change = first * Four::new(by.rate) / (sqrt_of(second) + Four::new(by.epsilon));
    after[place] = before[place] - change;
    after[by.length + place] = first;
    after[2 * by.length + place] = second;
}

#[cube]
fn sqrt_of(values: Four) -> Four {
    values.sqrt()
}
