//! Generalised advantage estimation over turns, with the values of a critic: the PPO of RLHF, with the turn as the step.
//!
//! `delta_k = r_k + gamma V_{k+1} - V_k`, `A_k = sum over j >= k of (gamma lambda)^(j-k) delta_j`, then whitened over the trained tokens
//! of the batch (Schulman et al., arXiv:1506.02438, eq. 16; on turns as in Turn-PPO, arXiv:2512.17008). The value after the last turn
//! is 0. The setting of scaling does not act. Frameworks differ: most step per token; verl skips tool tokens (one `gamma lambda` per
//! trained token), SkyRL and Search-R1 walk through them, with whatever the critic says there, OpenRLHF walks through them with
//! reward and value 0. Over turns the question does not arise.

use super::map::Parts;
use super::{Comparison, Inputs, Method, Part, PartKind, Whitened};

pub(super) const METHOD: Method = Method { parts, whitened: Whitened::Always, needs_values: true };

/// `A_k = delta_k + gamma lambda A_{k+1}` for one trajectory, before whitening. `values[k]` is the value before step `k`; after the
/// last step it is 0. `A_k + V_k` is what a critic is trained towards.
pub fn generalised_advantages(rewards: &[f64], values: &[f64], gamma: f64, lambda: f64) -> Vec<f64> {
    super::discounted_returns(&super::temporal_differences(rewards, values, gamma), gamma * lambda)
}

fn parts(inputs: &Inputs) -> Parts {
    let (rewards, values) = (&inputs.evidence.rewards, inputs.values);
    let decay = inputs.config.gamma * inputs.config.gae_lambda;
    let delta = |index: usize, at: usize, turn: usize| {
        let after = if at + 1 < rewards[index].len() { values[index][at + 1] } else { 0.0 };
        let comparison = Comparison { baseline: values[index][at], scale: 1.0, peers: 0 };
        let value = rewards[index][at] + inputs.config.gamma * after;
        Part { weight: decay.powi((at - turn) as i32), ..Part::of(PartKind::TemporalDifference, at, value, comparison) }
    };
    let from = |index: usize, turn: usize| (turn..rewards[index].len()).map(|at| delta(index, at, turn)).collect();
    (0..rewards.len()).map(|index| (0..rewards[index].len()).map(|turn| from(index, turn)).collect()).collect()
}
