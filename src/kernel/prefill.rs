//! The prefill kernel: tokens that are given rather than sampled go into the cache, in one dispatch.

use cubecl::prelude::*;

use super::extend::{Lanes, Scratch, extend};
use super::shape::Shape;

/// Numbers of a span in `spans`.
pub(super) const SPAN: usize = 6;

/// Adds the tokens of a span to its row, a workgroup per span and `shape.lanes` consecutive tokens at a time.
///
/// `spans` holds for each of them [`SPAN`] numbers (row of the cache, row that holds its first slots, how many of them, slot of
/// the first token, where the tokens are in `spans`, how many). No span is longer than `most`.
#[cube(launch)]
pub(super) fn prefill(weights: &[f32], cache: &mut [f32], spans: &[u32], most: u32, #[comptime] shape: Shape) {
    let mut lanes = Lanes::new(shape);
    let mut scratch = Scratch::new(shape);
    let span = CUBE_POS_X as usize * SPAN;
    let count = spans[span + 5];
    let mut done = 0u32;
    while done < most {
        let mut lane = UNIT_POS as usize;
        while lane < shape.lanes {
            let active = done + (lane as u32) < count;
            // Lanes behind the last token read what the first has.
            let index = select(active, done + lane as u32, 0u32);
            lanes.row[lane] = spans[span];
            lanes.origin[lane] = spans[span + 1];
            lanes.shared[lane] = spans[span + 2];
            lanes.slot[lane] = spans[span + 3] + index;
            lanes.token[lane] = spans[(spans[span + 4] + index) as usize];
            lanes.active[lane] = u32::cast_from(active);
            lane += shape.units;
        }
        sync_cube();
        extend(weights, cache, &lanes, &mut scratch, shape);
        done += comptime!(shape.lanes as u32);
    }
}
