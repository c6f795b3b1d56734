//! Monte-Carlo values: how much a turn changed the value of the state, with values measured by re-rolls (VinePPO).
//!
//! `A_k = (r_k + gamma V(s_{k+1}) - V(s_k)) / s`, where `V(s_k)` is the mean return of fresh episodes that the current policy continues
//! from the start of turn `k`, and 0 after the last turn (Kazemnejad et al., arXiv:2410.01679, section 4, with 9 re-rolls). With
//! `gamma = 1` and without scaling the advantages of a trajectory sum to its return less the value of its start. `s` is the root mean
//! square of the differences over the turns of the group (or batch) plus 1e-4, or 1 without scaling, as in the paper. Values come
//! from [`super::Evidence::values`]; without them there is no credit.

use super::map::Parts;
use super::tree::temporal_parts;
use super::{Inputs, Method, Whitened};

pub(super) const METHOD: Method = Method { parts, whitened: Whitened::Never, needs_values: true };

/// `r_k + gamma V_{k+1} - V_k` for one trajectory. `values[k]` is the value before turn `k`; after the last turn it is 0.
pub fn temporal_differences(rewards: &[f64], values: &[f64], gamma: f64) -> Vec<f64> {
    let after = |turn: usize| if turn + 1 < rewards.len() { values[turn + 1] } else { 0.0 };
    (0..rewards.len()).map(|turn| rewards[turn] + gamma * after(turn) - values[turn]).collect()
}

/// Values that were not measured, filled from the end backwards with `r_k + gamma V_{k+1}`, so that their turns get no credit
/// (VinePPO's code, for prefixes too near the end of the context to go on from).
pub fn fill_missing_values(rewards: &[f64], values: &[Option<f64>], gamma: f64) -> Vec<f64> {
    let mut filled = vec![0.0; rewards.len()];
    let mut after = 0.0;
    for turn in (0..rewards.len()).rev() {
        after = values.get(turn).copied().flatten().unwrap_or(rewards[turn] + gamma * after);
        filled[turn] = after;
    }
    filled
}

fn parts(inputs: &Inputs) -> Parts {
    let (rewards, values) = (&inputs.evidence.rewards, inputs.values);
    let after = |index: usize, turn: usize| if turn + 1 < rewards[index].len() { values[index][turn + 1] } else { 0.0 };
    temporal_parts(inputs, |index, turn| (after(index, turn), values[index][turn], 0))
}
