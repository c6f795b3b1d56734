//! Embedding and layer normalisation, forward and backward. One invocation per row: a row of the residual stream is a few hundred
//! bytes, and there are thousands of rows.

use cubecl::prelude::*;

use super::batch::{PLACE, START, TOKEN};
use super::product::Four;

/// Added to the variance, as in the reference path.
const EPSILON: f32 = 1e-5;

/// Where a norm reads and writes. Offsets count fours; `gamma` and `beta` are places in the parameters.
#[derive(CubeLaunch, CubeType, Clone, Copy)]
pub(super) struct NormPlaces {
    /// Rows that are computed.
    pub rows: usize,
    /// From one row block of the buffers of all norms to the next.
    pub stride: usize,
    /// Width of a row in fours.
    pub width: usize,
    /// The row block of this norm in the buffers of all norms.
    pub point: usize,
    pub gamma: usize,
    pub beta: usize,
}

#[cube]
pub(super) fn total(values: Four) -> f32 {
    values.extract(0usize) + values.extract(1usize) + values.extract(2usize) + values.extract(3usize)
}

/// `stream[m] = tokens[token] + positions[m - start]`. One invocation per four numbers. `rows` is the table of [`super::batch`].
#[cube(launch)]
pub(super) fn embed(
    parameters: &[Four],
    rows: &[u32],
    stream: &mut [Four],
    count: usize,
    width: usize,
    tokens: usize,
    positions: usize,
) {
    let row = ABSOLUTE_POS / width;
    let column = ABSOLUTE_POS % width;
    if row >= count {
        terminate!();
    }
    let token = rows[TOKEN * count + row] as usize;
    let position = row - rows[START * count + row] as usize;
    stream[ABSOLUTE_POS] = parameters[tokens + token * width + column] + parameters[positions + position * width + column];
}

/// `normed = (x - mean) / sqrt(variance + epsilon) * gamma + beta`; mean and `1 / sqrt(..)` of each row go to `moments`.
#[cube(launch)]
pub(super) fn normalise(parameters: &[Four], stream: &[Four], normed: &mut [Four], moments: &mut [f32], at: NormPlaces) {
    if ABSOLUTE_POS >= at.rows {
        terminate!();
    }
    let row = at.point * at.stride + ABSOLUTE_POS;
    let first = row * at.width;
    let size = f32::cast_from(4 * at.width);
    let mut sum = Four::new(0.0);
    for k in 0..at.width {
        sum += stream[first + k];
    }
    let mean = total(sum) / size;
    let mut squares = Four::new(0.0);
    for k in 0..at.width {
        let off = stream[first + k] - Four::new(mean);
        squares += off * off;
    }
    let scale = 1.0 / (total(squares) / size + EPSILON).sqrt();
    for k in 0..at.width {
        let unit = (stream[first + k] - Four::new(mean)) * Four::new(scale);
        normed[first + k] = unit * parameters[at.gamma + k] + parameters[at.beta + k];
    }
    moments[2 * row] = mean;
    moments[2 * row + 1] = scale;
}

/// What passes a norm by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Beside {
    Nothing,
    /// The gradient at the next point.
    Next,
    /// The same, which only wanted rows have.
    NextOfWanted,
}

/// The gradient of the residual stream before the norm: what comes through the norm from `by_normed`, plus what passes it by. With `g = gamma d/d normed` and the unit row `u`:
/// `(g - mean(g) - u mean(g u)) / sqrt(variance + epsilon)`.
#[cube(launch)]
pub(super) fn normalise_backward(
    parameters: &[Four],
    stream: &[Four],
    moments: &[f32],
    by_normed: &[Four],
    by_stream: &mut [Four],
    rows: &[u32],
    at: NormPlaces,
    #[comptime] beside: Beside,
) {
    if ABSOLUTE_POS >= at.rows {
        terminate!();
    }
    let row = at.point * at.stride + ABSOLUTE_POS;
    let first = row * at.width;
    let mut next = first + at.stride * at.width;
    let mut passes = true.runtime();
    if comptime!(beside == Beside::NextOfWanted) {
        let place = rows[PLACE * at.rows + ABSOLUTE_POS] as usize;
        passes = place > 0;
        next = ((at.point + 1) * at.stride + max(place, 1) - 1) * at.width;
    }
    let mean = moments[2 * row];
    let scale = moments[2 * row + 1];
    let size = f32::cast_from(4 * at.width);
    let mut sum = Four::new(0.0);
    let mut along = Four::new(0.0);
    for k in 0..at.width {
        let slope = by_normed[first + k] * parameters[at.gamma + k];
        sum += slope;
        along += slope * (stream[first + k] - Four::new(mean)) * Four::new(scale);
    }
    let sum = total(sum) / size;
    let along = total(along) / size;
    for k in 0..at.width {
        let slope = by_normed[first + k] * parameters[at.gamma + k];
        let unit = (stream[first + k] - Four::new(mean)) * Four::new(scale);
        let mut result = (slope - Four::new(sum) - unit * Four::new(along)) * Four::new(scale);
        if comptime!(beside != Beside::Nothing) && passes {
            result += by_stream[next + k];
        }
        by_stream[first + k] = result;
    }
}
