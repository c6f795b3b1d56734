//! GRPO with outcome supervision: one advantage for the whole trajectory.
//!
//! `A_i = (R_i - mean(R)) / (std(R) + 1e-4)` over the trajectories of the group, where `R_i` is the discounted return of
//! trajectory `i` (DeepSeekMath, arXiv:2402.03300, section 4.1.2; there the reward comes once, at the end). Frameworks differ in
//! the standard deviation: TRL divides by the sample deviation plus 1e-4 (ours), verl adds 1e-6, others use the population
//! deviation. With scaling off this is the advantage of Dr. GRPO (arXiv:2503.20783). A group of equal returns gives exactly 0;
//! a group of one gives 0 (verl gives the raw reward).

use super::{CreditMap, GroupStatistics, Scaling, discounted_returns, members};

/// Advantages of one value per trajectory, compared within each group.
pub fn outcome_advantages(groups: &[usize], returns: &[f64], scaling: Scaling) -> Vec<f64> {
    let statistics = group_statistics(groups, returns, scaling);
    groups.iter().zip(returns).map(|(&group, &value)| statistics[group].advantage(value)).collect()
}

/// The credit map: every turn of a trajectory carries the advantage of the whole.
pub(super) fn assign(groups: &[usize], rewards: &[Vec<f64>], gamma: f64, scaling: Scaling) -> CreditMap {
    let returns_to_go: Vec<Vec<f64>> = rewards.iter().map(|rewards| discounted_returns(rewards, gamma)).collect();
    let returns: Vec<f64> = returns_to_go.iter().map(|returns| returns.first().copied().unwrap_or(0.0)).collect();
    let statistics = group_statistics(groups, &returns, scaling);
    let spread = |per_trajectory: &dyn Fn(usize) -> f64| -> Vec<Vec<f64>> {
        rewards.iter().enumerate().map(|(i, turns)| vec![per_trajectory(i); turns.len()]).collect()
    };
    CreditMap {
        rewards: rewards.to_vec(),
        values: spread(&|i| returns[i]),
        baselines: spread(&|i| statistics[groups[i]].mean),
        scales: spread(&|i| statistics[groups[i]].scale),
        peers: rewards.iter().zip(groups).map(|(turns, &group)| vec![statistics[group].count; turns.len()]).collect(),
        advantages: spread(&|i| statistics[groups[i]].advantage(returns[i])),
        no_signal: statistics.iter().map(|group| group.flat).collect(),
        returns_to_go,
    }
}

/// One entry per group, empty groups included.
fn group_statistics(groups: &[usize], values: &[f64], scaling: Scaling) -> Vec<GroupStatistics> {
    let of = |group: &Vec<usize>| GroupStatistics::of(&group.iter().map(|&i| values[i]).collect::<Vec<_>>(), scaling);
    members(groups).iter().map(of).collect()
}
