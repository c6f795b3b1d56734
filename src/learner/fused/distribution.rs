//! From logits to log-probabilities of the taken tokens and entropies, and back. One invocation per row; the vocabulary has a few
//! dozen symbols.

use cubecl::prelude::*;

use super::batch::{END_COLUMNS, FLAGS, LEGAL, SAMPLED, TARGET, TRAINED};

/// Added to the logits of tokens that the grammar forbids, as in the reference path.
const FORBIDDEN: f32 = -1e9;

/// Turns the logits of each row into log-probabilities, `log softmax(logits / temperature)` over the legal tokens, in place. Writes
/// the log-probability of the target and the entropy in nats to the first two columns of `outcome`. With `complete`, tokens that are
/// trained but were not sampled get their log-probability as their old one.
#[cube(launch)]
pub(super) fn distribute(
    logits: &mut [f32],
    rows: &[u32],
    outcome: &mut [f32],
    old: &mut [f32],
    count: usize,
    size: usize,
    temperature: f32,
    #[comptime] grammar: bool,
    #[comptime] complete: bool,
) {
    let row = ABSOLUTE_POS;
    if row >= count {
        terminate!();
    }
    let first = row * size;
    let mut largest = f32::min_value();
    for v in 0..size {
        let mut logit = logits[first + v] / temperature;
        if comptime!(grammar) {
            let word = rows[(LEGAL + v / 32) * count + row];
            if (word >> (v % 32) as u32) & 1u32 == 0u32 {
                logit += FORBIDDEN;
            }
        }
        logits[first + v] = logit;
        largest = max(largest, logit);
    }
    let mut sum = 0.0f32.runtime();
    for v in 0..size {
        sum += (logits[first + v] - largest).exp();
    }
    let norm = sum.ln();
    let mut entropy = 0.0f32.runtime();
    for v in 0..size {
        let log = logits[first + v] - largest - norm;
        logits[first + v] = log;
        entropy -= log.exp() * log;
    }
    let taken = logits[first + rows[TARGET * count + row] as usize];
    outcome[row] = taken;
    outcome[count + row] = entropy;
    if comptime!(complete) {
        let flags = rows[FLAGS * count + row];
        if flags & TRAINED != 0u32 && flags & SAMPLED == 0u32 {
            old[row] = taken;
        }
    }
}

/// The gradient of the logits, in place of the log-probabilities: with `s` the slope of the loss by the log-probability of the target
/// (third column of `outcome`) and `e` that by the entropy `H`, `(s ([v is the target] - p_v) - e p_v (log p_v + H)) / temperature`.
/// One invocation per number.
#[cube(launch)]
pub(super) fn distribute_backward(
    logs: &mut [f32],
    rows: &[u32],
    outcome: &[f32],
    count: usize,
    size: usize,
    temperature: f32,
    by_entropy: f32,
) {
    let row = ABSOLUTE_POS / size;
    let symbol = ABSOLUTE_POS % size;
    if row >= count {
        terminate!();
    }
    let flags = rows[FLAGS * count + row];
    let log = logs[ABSOLUTE_POS];
    let share = log.exp();
    let mut slope = 0.0f32.runtime();
    if flags & TRAINED != 0u32 {
        let by_taken = outcome[2 * count + row];
        slope -= by_taken * share;
        if rows[TARGET * count + row] as usize == symbol {
            slope += by_taken;
        }
    }
    if flags & SAMPLED != 0u32 {
        slope -= by_entropy * share * (log + outcome[count + row]);
    }
    logs[ABSOLUTE_POS] = slope / temperature;
}

/// The first row of a trajectory and how many it has.
#[cube]
pub(super) fn span(rows: &[u32], count: usize, trajectory: usize) -> (usize, usize) {
    let place = END_COLUMNS * count + 2 * trajectory;
    (rows[place] as usize, rows[place + 1] as usize)
}
