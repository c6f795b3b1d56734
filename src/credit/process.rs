//! GRPO with process supervision: the normalised rewards of this turn and the later ones.
//!
//! `r~_j = (r_j - mean(r)) / (std(r) + 1e-4)` over all turns of all trajectories of the group, `A_k = sum of
//! gamma^(j-k) r~_j over j >= k` (DeepSeekMath, arXiv:2402.03300, section 4.1.3, which has no discount: `gamma = 1`). A turn without
//! a reward counts as 0. Pooling lets long trajectories weigh more in the mean, and since centred rewards are summed, the size of
//! an early advantage grows with the number of turns that follow: a trajectory of many turns a little below the mean is punished
//! at its start. Frameworks differ: thunlp/OPD divides by the sample deviation (ours), AgentEvolver by the population deviation,
//! and it offers statistics in which every trajectory weighs the same whatever its length.

use super::map::Parts;
use super::{
    Convention, Inputs, Method, Part, PartKind, Whitened, compare, compare_weighted, discounted_returns, per_turn, rows_like,
};

pub(super) const METHOD: Method = Method { parts, whitened: Whitened::Never, needs_values: false };

/// `(r - mean) / scale` over all turns of the group, `[trajectory][turn]`. With `equal_weight` every trajectory counts the same,
/// its turns sharing the weight.
pub fn normalised_rewards(groups: &[usize], rewards: &[Vec<f64>], equal_weight: bool, convention: Convention) -> Vec<Vec<f64>> {
    let (keys, values) = per_turn(rewards, |index, _| groups[index]);
    let weight = |turns: &Vec<f64>| vec![if equal_weight { 1.0 / turns.len() as f64 } else { 1.0 }; turns.len()];
    let weights: Vec<f64> = rewards.iter().flat_map(weight).collect();
    let comparisons = compare_weighted(&keys, &values, &weights, convention);
    let normalised: Vec<f64> = comparisons.iter().zip(&values).map(|(comparison, &x)| comparison.advantage(x)).collect();
    rows_like(rewards, &normalised)
}

/// The sum of each number and all after it, `[trajectory][turn]`.
pub fn sums_to_come(rows: &[Vec<f64>]) -> Vec<Vec<f64>> {
    rows.iter().map(|row| discounted_returns(row, 1.0)).collect()
}

fn parts(inputs: &Inputs) -> Parts {
    let (rewards, groups) = (&inputs.evidence.rewards, &inputs.evidence.groups);
    let (keys, values) = per_turn(rewards, |index, _| groups[index]);
    let comparisons = rows_like(rewards, &compare(&keys, &values, inputs.convention));
    let from = |index: usize, turn: usize| {
        let later = turn..rewards[index].len();
        let part = |at: usize| Part {
            weight: inputs.config.gamma.powi((at - turn) as i32),
            ..Part::of(PartKind::TurnReward, at, rewards[index][at], comparisons[index][at])
        };
        later.map(part).collect()
    };
    (0..rewards.len()).map(|index| (0..rewards[index].len()).map(|turn| from(index, turn)).collect()).collect()
}
