//! The decode kernel: a whole turn of every row, in one dispatch.

use cubecl::prelude::*;

use super::attention::LOWEST;
use super::extend::{Lanes, Scratch, extend, logits};
use super::shape::Shape;

/// Numbers of a row in `starts` before its uniforms.
pub(super) const START: usize = 6;

/// Which tokens the grammar forbids is marked by this entry in place of a next state.
pub(super) const FORBIDDEN: u32 = u32::MAX;

/// Samples up to `turn_tokens` tokens for each of `rows` rows, a tile of `shape.lanes` rows per workgroup.
///
/// `starts` holds for each row [`START`] numbers (row of the cache, row that holds its first slots, how many of them, the slot
/// and the token to begin with, most tokens) and `turn_tokens` uniforms as multiples of 2^-24. `grammar` is `[states, V]`, the
/// next state or [`FORBIDDEN`]; read where `restricted`. `drawn` becomes `[rows, 2 turn_tokens]`: tokens, then log-probabilities.
/// A row that draws `stop` or its last token stops there; what `drawn` has beyond is undefined.
#[cube(launch)]
#[allow(clippy::too_many_arguments)]
pub(super) fn decode(
    weights: &[f32],
    cache: &mut [f32],
    starts: &[u32],
    grammar: &[u32],
    drawn: &mut [f32],
    rows: u32,
    turn_tokens: u32,
    stop: u32,
    temperature: f32,
    #[comptime] restricted: bool,
    #[comptime] shape: Shape,
) {
    let mut lanes = Lanes::new(shape);
    let mut scratch = Scratch::new(shape);
    let mut states = Shared::<[u32]>::new_slice(shape.lanes);
    let mut going = Shared::<[u32]>::new_slice(1usize);
    let stride = START + turn_tokens as usize;
    let mut lane = UNIT_POS as usize;
    while lane < shape.lanes {
        let row = CUBE_POS_X as usize * shape.lanes + lane;
        let active = row < rows as usize;
        // Lanes behind the last row read what the first has.
        let begin = select(active, row * stride, 0usize);
        lanes.row[lane] = starts[begin];
        lanes.origin[lane] = starts[begin + 1];
        lanes.shared[lane] = starts[begin + 2];
        lanes.slot[lane] = starts[begin + 3];
        lanes.token[lane] = starts[begin + 4];
        lanes.active[lane] = u32::cast_from(active);
        states[lane] = 0u32;
        lane += shape.units;
    }
    sync_cube();
    let mut step = 0u32;
    let mut more = true;
    while more {
        extend(weights, cache, &lanes, &mut scratch, shape);
        logits(weights, cache, &lanes, &mut scratch, shape);
        let mut lane = UNIT_POS as usize;
        while lane < shape.lanes {
            if lanes.active[lane] == 1 {
                let row = CUBE_POS_X as usize * shape.lanes + lane;
                let begin = row * stride;
                let uniform = f32::cast_from(starts[begin + START + step as usize]) * comptime!(1.0f32 / 16_777_216.0);
                let start = lane * comptime!(shape.wide());
                let token = sample(uniform, temperature, grammar, states[lane] as usize, start, &mut scratch, restricted, shape);
                let place = row * 2 * turn_tokens as usize + step as usize;
                drawn[place] = f32::cast_from(token);
                drawn[place + turn_tokens as usize] = scratch.wide[start + token as usize];
                if restricted {
                    let next = grammar[states[lane] as usize * shape.layout.vocabulary + token as usize];
                    states[lane] = select(next == FORBIDDEN, 0u32, next);
                }
                lanes.token[lane] = token;
                let last = token == stop || step + 1 >= starts[begin + 5];
                lanes.active[lane] = select(last, 0u32, 1u32);
                if !last {
                    lanes.slot[lane] += 1;
                }
            }
            lane += shape.units;
        }
        sync_cube();
        if UNIT_POS == 0 {
            let mut active = 0u32;
            for lane in 0..shape.lanes {
                active += lanes.active[lane];
            }
            going[0] = active;
        }
        step += 1;
        more = workgroup_uniform_load(&going[0]) > 0 && step < turn_tokens;
    }
}

/// Draws a token by inverting the cumulative distribution, and leaves the log-probabilities in place of the logits. The same
/// steps as [`crate::policy::log_distribution`] and [`crate::policy::sample`].
#[cube]
#[allow(clippy::too_many_arguments)]
fn sample(
    uniform: f32,
    temperature: f32,
    grammar: &[u32],
    state: usize,
    start: usize,
    scratch: &mut Scratch,
    #[comptime] restricted: bool,
    #[comptime] shape: Shape,
) -> u32 {
    let size = comptime!(shape.layout.vocabulary);
    let mut highest = LOWEST.runtime();
    for token in 0..size {
        let mut value = scratch.wide[start + token] / temperature;
        if restricted {
            value = select(grammar[state * size + token] == FORBIDDEN, LOWEST.runtime(), value);
        }
        scratch.wide[start + token] = value;
        highest = highest.max(value);
    }
    let mut total = 0.0f32;
    for token in 0..size {
        total += (scratch.wide[start + token] - highest).exp();
    }
    let normaliser = highest + total.ln();
    let mut all = 0.0f32;
    for token in 0..size {
        let log_prob = scratch.wide[start + token] - normaliser;
        scratch.wide[start + token] = log_prob;
        all += log_prob.exp();
    }
    let threshold = all * uniform;
    let mut cumulative = 0.0f32;
    let mut below = 0u32;
    for token in 0..size {
        cumulative += scratch.wide[start + token].exp();
        below += u32::cast_from(cumulative <= threshold);
    }
    below.min(comptime!(size as u32 - 1))
}
