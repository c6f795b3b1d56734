//! Attention of the tokens of a tile to the cache.
//!
//! Keys are `[d, slots]`, for neighbouring units score neighbouring slots; values are `[slots, d]`, for neighbouring units sum
//! neighbouring columns.

use cubecl::prelude::*;

use super::extend::{Lanes, Scratch};
use super::shape::Shape;

/// Below every score: where the running maximum begins.
pub(super) const LOWEST: f32 = -1e30;

/// Where a row's keys of a layer begin, `[d, slots]`; its values, `[slots, d]`, follow.
#[cube]
pub(super) fn cached(row: u32, layer: usize, #[comptime] shape: Shape) -> usize {
    (row as usize * shape.layout.layers + layer) * comptime!(2 * shape.layout.d_model * shape.slots)
}

/// The row that holds a slot of a lane's row.
#[cube]
fn holder(lanes: &Lanes, lane: usize, slot: usize) -> u32 {
    select(slot < lanes.shared[lane] as usize, lanes.origin[lane], lanes.row[lane])
}

/// Scaled products of queries and keys (Vaswani et al., arXiv:1706.03762, eq. 1), behind the queries in the scratch.
#[cube]
pub(super) fn score(cache: &mut [f32], layer: usize, lanes: &Lanes, scratch: &mut Scratch, #[comptime] shape: Shape) {
    let d = comptime!(shape.layout.d_model);
    let heads = comptime!(shape.layout.heads);
    let width = comptime!(d / heads);
    let mut item = UNIT_POS as usize;
    while item < comptime!(shape.lanes * heads * shape.slots) {
        let slot = item % shape.slots;
        let head = item / shape.slots % heads;
        let lane = item / comptime!(shape.slots * heads);
        if slot <= lanes.slot[lane] as usize {
            let keys = cached(holder(lanes, lane, slot), layer, shape) + head * comptime!(width * shape.slots) + slot;
            let start = lane * comptime!(shape.wide());
            let queries = start + head * width;
            let mut sum = 0.0f32;
            for column in 0..width {
                sum += scratch.wide[queries + column] * cache[keys + column * shape.slots];
            }
            scratch.wide[start + d + head * shape.slots + slot] = sum;
        }
        item += shape.units;
    }
    sync_cube();
}

/// Softmax of the scores and the mean of the values under it, into the input of the next product.
#[cube]
pub(super) fn attend(cache: &mut [f32], layer: usize, lanes: &Lanes, scratch: &mut Scratch, #[comptime] shape: Shape) {
    let d = comptime!(shape.layout.d_model);
    let width = comptime!(d / shape.layout.heads);
    let mut item = UNIT_POS as usize;
    while item < comptime!(shape.lanes * d) {
        let lane = item / d;
        let column = item % d;
        let scores = lane * comptime!(shape.wide()) + d + column / width * shape.slots;
        let slots = lanes.slot[lane] as usize + 1;
        let mut highest = LOWEST.runtime();
        for slot in 0..slots {
            highest = highest.max(scratch.wide[scores + slot]);
        }
        let mut total = 0.0f32;
        let mut sum = 0.0f32;
        for slot in 0..slots {
            let weight = (scratch.wide[scores + slot] - highest).exp();
            let values = cached(holder(lanes, lane, slot), layer, shape) + comptime!(d * shape.slots);
            total += weight;
            sum += weight * cache[values + slot * d + column];
        }
        scratch.input[item] = sum / total;
        item += shape.units;
    }
    sync_cube();
}
