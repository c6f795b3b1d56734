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

/// Constants of a step.
#[derive(CubeLaunch, CubeType, Clone, Copy)]
pub(super) struct Step {
    /// Parameters, in fours.
    pub length: usize,
    /// Where the report takes the norm.
    pub slot: usize,
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
/// be taken back. The norm of the gradient before its limit goes to the report. One invocation per four numbers.
#[cube(launch)]
#[allow(clippy::needless_range_loop, reason = "kernels index buffers")]
pub(super) fn adam(before: &[Four], gradient: &[Four], sums: &[f32], after: &mut [Four], report: &mut [f32], by: Step) {
    let place = ABSOLUTE_POS;
    if place >= by.length {
        terminate!();
    }
    let mut square = 0.0f32.runtime();
    for index in 0..SQUARES {
        square += sums[index];
    }
    let norm = square.sqrt();
    if place == 0 {
        report[by.slot] = norm;
    }
    let mut scale = 1.0f32.runtime();
    if by.max_norm > 0.0 {
        scale = by.max_norm / max(norm, by.max_norm);
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
