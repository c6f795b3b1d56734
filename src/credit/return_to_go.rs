//! Per-turn discounted return-to-go, compared within the group.
//!
//! `G_{i,k} = r_{i,k} + gamma G_{i,k+1}`, `A_{i,k} = (G_{i,k} - b) / (std + 1e-4)`. The baseline `b` (and `std` with it) is over the
//! members of the group that have a turn `k` (`turn_index`), or over all turns of all members (`pooled`). Gamma acts once per
//! turn: tool tokens never consume it. (The step returns of rLLM and of GiGPO, arXiv:2505.10978, with the turn index or nothing as
//! the state; some frameworks discount per token instead, which makes credit depend on how long a tool's answer is.) A lone
//! survivor at a late turn has no peer and gets 0. The pooled baseline compares different times: with a reward at the end and
//! `gamma < 1` it favours late turns whatever they did.

use super::map::Parts;
use super::{Convention, Inputs, Method, Part, PartKind, Whitened, compare, parts_of, per_turn, rows_like};
use crate::config::TurnBaseline;

pub(super) const METHOD: Method = Method { parts, whitened: Whitened::Never, needs_values: false };

/// `G_k = r_k + gamma G_{k+1}` for one trajectory.
pub fn discounted_returns(rewards: &[f64], gamma: f64) -> Vec<f64> {
    let mut returns = rewards.to_vec();
    for turn in (0..returns.len().saturating_sub(1)).rev() {
        returns[turn] += gamma * returns[turn + 1];
    }
    returns
}

/// Returns-to-go against those of the group at the same turn, `[trajectory][turn]`.
pub fn turn_advantages(groups: &[usize], returns_to_go: &[Vec<f64>], convention: Convention) -> Vec<Vec<f64>> {
    advantages(returns_to_go, convention, |index, turn| (groups[index], turn))
}

/// Returns-to-go against those of all turns of the group, `[trajectory][turn]`.
pub fn pooled_advantages(groups: &[usize], returns_to_go: &[Vec<f64>], convention: Convention) -> Vec<Vec<f64>> {
    advantages(returns_to_go, convention, |index, _| (groups[index], 0))
}

/// Returns-to-go against those of all turns with the same key.
pub(super) fn advantages<K: Copy + Eq + std::hash::Hash>(
    returns_to_go: &[Vec<f64>],
    convention: Convention,
    key: impl Fn(usize, usize) -> K,
) -> Vec<Vec<f64>> {
    let (keys, values) = per_turn(returns_to_go, key);
    let comparisons = compare(&keys, &values, convention);
    let advantages: Vec<f64> = comparisons.iter().zip(&values).map(|(comparison, &x)| comparison.advantage(x)).collect();
    rows_like(returns_to_go, &advantages)
}

fn parts(inputs: &Inputs) -> Parts {
    let (returns, groups) = (inputs.returns_to_go, &inputs.evidence.groups);
    let pooled = inputs.config.turn_baseline == TurnBaseline::Pooled;
    let (keys, values) = per_turn(returns, |index, turn| (groups[index], if pooled { 0 } else { turn }));
    let comparisons = rows_like(returns, &compare(&keys, &values, inputs.convention));
    parts_of(returns, |index, turn| Part::of(PartKind::ReturnToGo, turn, returns[index][turn], comparisons[index][turn]))
}
