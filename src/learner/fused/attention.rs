//! Causal attention, forward and backward, without a matrix of scores in memory (Dao et al., arXiv:2205.14135, without the tiling: a
//! whole trajectory's keys and values are a few kilobytes, which the cache holds).
//!
//! One invocation per row and head. Forward: one pass over the keys with a running maximum; the logarithm of the sum of exponentials
//! is kept. Backward, in one dispatch: an invocation first acts as a query and walks the keys before it, then as a key and walks the
//! queries after it, so that every invocation walks its whole trajectory once, and nothing is added up by two invocations.

use cubecl::prelude::*;

use super::batch::{END, PLACE, START};
use super::norm::total;
use super::product::Four;

/// Sizes of attention; widths count fours.
#[derive(CubeLaunch, CubeType, Clone, Copy)]
pub(super) struct Heads {
    pub rows: usize,
    pub heads: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Which row block of the buffers of all layers.
    pub layer: usize,
    /// `1 / sqrt(width of a head)`.
    pub scale: f32,
}

/// `attended[m] = sum_j softmax_j(q_m k_j) v_j` over the rows `start..=m` of the trajectory. With `wanted` only the wanted rows are
/// queries, and `attended` and `sums` hold those.
#[cube(launch)]
pub(super) fn attend(
    qkv: &[Four],
    rows: &[u32],
    attended: &mut [Four],
    sums: &mut [f32],
    at: Heads,
    #[comptime] size: usize,
    #[comptime] wanted: bool,
) {
    let row = ABSOLUTE_POS / at.heads;
    let head = ABSOLUTE_POS % at.heads;
    if row >= at.rows {
        terminate!();
    }
    let mut out = row;
    if comptime!(wanted) {
        let place = rows[PLACE * at.rows + row] as usize;
        if place == 0 {
            terminate!();
        }
        out = max(place, 1) - 1;
    }
    let layer = at.layer * at.rows;
    let own = (layer + row) * 3 * at.width + head * size;
    let mut query = Array::<Four>::new(size);
    let mut sum = Array::<Four>::new(size);
    #[unroll]
    for c in 0..size {
        query[c] = qkv[own + c] * Four::new(at.scale);
        sum[c] = Four::new(0.0);
    }
    let mut largest = -1e30f32.runtime();
    let mut weight = 0.0f32.runtime();
    for j in rows[START * at.rows + row] as usize..row + 1 {
        let key = (layer + j) * 3 * at.width + at.width + head * size;
        let mut score = Four::new(0.0);
        #[unroll]
        for c in 0..size {
            score += query[c] * qkv[key + c];
        }
        let score = total(score);
        let top = max(largest, score);
        let shrink = (largest - top).exp();
        let share = (score - top).exp();
        weight = weight * shrink + share;
        #[unroll]
        for c in 0..size {
            sum[c] = sum[c] * Four::new(shrink) + Four::new(share) * qkv[key + at.width + c];
        }
        largest = top;
    }
    let place = (layer + out) * at.width + head * size;
    #[unroll]
    for c in 0..size {
        attended[place + c] = sum[c] / Four::new(weight);
    }
    sums[(layer + out) * at.heads + head] = largest + weight.ln();
}

/// From the gradient of `attended` to that of queries, keys and values. With `p_ij` the attention of row i to j and `o_i` the
/// attended row: `ds_ij = p_ij do_i (v_j - o_i)`, `dq_i = sum_j ds_ij k_j`, `dk_j = sum_i ds_ij q_i`, `dv_j = sum_i p_ij do_i`.
/// `by_attended` holds one layer. `wanted` is that of [`attend`].
#[cube(launch)]
pub(super) fn attend_backward(
    qkv: &[Four],
    rows: &[u32],
    attended: &[Four],
    sums: &[f32],
    by_attended: &[Four],
    by_qkv: &mut [Four],
    at: Heads,
    #[comptime] size: usize,
    #[comptime] wanted: bool,
) {
    let row = ABSOLUTE_POS / at.heads;
    let head = ABSOLUTE_POS % at.heads;
    if row >= at.rows {
        terminate!();
    }
    let layer = at.layer * at.rows;
    let own = (layer + row) * 3 * at.width + head * size;
    let mut out = row;
    // The row after the last that this one looks at as a query.
    let mut end = row + 1;
    if comptime!(wanted) {
        let place = rows[PLACE * at.rows + row] as usize;
        out = max(place, 1) - 1;
        if place == 0 {
            end = 0;
        }
    }
    let place = (layer + out) * at.width + head * size;
    let slope = out * at.width + head * size;
    let mut near = Array::<Four>::new(size);
    let mut far = Array::<Four>::new(size);
    let mut output = Array::<Four>::new(size);
    let mut first = Array::<Four>::new(size);
    let mut second = Array::<Four>::new(size);

    // As a query.
    #[unroll]
    for c in 0..size {
        near[c] = qkv[own + c] * Four::new(at.scale);
        far[c] = by_attended[slope + c];
        output[c] = attended[place + c];
        first[c] = Four::new(0.0);
    }
    let sum = sums[(layer + out) * at.heads + head];
    for j in rows[START * at.rows + row] as usize..end {
        let key = (layer + j) * 3 * at.width + at.width + head * size;
        let mut score = Four::new(0.0);
        let mut by_score = Four::new(0.0);
        #[unroll]
        for c in 0..size {
            score += near[c] * qkv[key + c];
            by_score += far[c] * (qkv[key + at.width + c] - output[c]);
        }
        let share = (total(score) - sum).exp() * total(by_score) * at.scale;
        #[unroll]
        for c in 0..size {
            first[c] += Four::new(share) * qkv[key + c];
        }
    }
    #[unroll]
    for c in 0..size {
        by_qkv[own + c] = first[c];
    }

    // As a key with its value.
    #[unroll]
    for c in 0..size {
        near[c] = qkv[own + at.width + c] * Four::new(at.scale);
        far[c] = qkv[own + 2 * at.width + c];
        first[c] = Four::new(0.0);
        second[c] = Four::new(0.0);
    }
    for i in row..rows[END * at.rows + row] as usize {
        let mut there = i;
        let mut asks = true.runtime();
        if comptime!(wanted) {
            let place = rows[PLACE * at.rows + i] as usize;
            there = max(place, 1) - 1;
            asks = place > 0;
        }
        if asks {
            let query = (layer + i) * 3 * at.width + head * size;
            let seen = (layer + there) * at.width + head * size;
            let slope = there * at.width + head * size;
            let mut score = Four::new(0.0);
            let mut by_score = Four::new(0.0);
            #[unroll]
            for c in 0..size {
                score += near[c] * qkv[query + c];
                by_score += by_attended[slope + c] * (far[c] - attended[seen + c]);
            }
            let share = (total(score) - sums[(layer + there) * at.heads + head]).exp();
            let by_score = share * total(by_score) * at.scale;
            #[unroll]
            for c in 0..size {
                first[c] += Four::new(by_score) * qkv[query + c];
                second[c] += Four::new(share) * by_attended[slope + c];
            }
        }
    }
    #[unroll]
    for c in 0..size {
        by_qkv[own + at.width + c] = first[c];
        by_qkv[own + 2 * at.width + c] = second[c];
    }
}
