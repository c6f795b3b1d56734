//! How much the tokens of each trajectory weigh in the loss.
//!
//! Every aggregation in use is linear in the token losses and gives the tokens of one trajectory the same weight, so that it
//! comes down to one number per trajectory: `loss = sum_i w_i sum_t m_it l_it`. The weights are made from the *whole* optimizer
//! step; a split into micro-batches changes nothing.

/// From token losses to one loss.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub enum Aggregation {
    /// Sum over all trained tokens / their number (DAPO, arXiv:2503.14476, eq. 8; default of verl and TRL): long trajectories
    /// weigh more.
    TokenMean,
    /// Mean over trajectories of their token mean (GRPO, arXiv:2402.03300, eq. 3): every trajectory weighs the same, hence a
    /// token of a long one less. `count_empty`: whether a trajectory without trained tokens counts in the number of
    /// trajectories (TRL and SkyRL: yes; verl and OpenRLHF: no).
    SequenceMean { count_empty: bool },
    /// Mean over trajectories of their token sum, divided by a constant length (Dr. GRPO, arXiv:2503.20783, section 3.2): no
    /// trajectory's own length divides anything. With 1 it is verl's `seq-mean-token-sum`.
    SequenceSum { count_empty: bool, length: f64 },
    /// Token mean inside each group, then the mean over groups (the formula of DAPO taken group by group, SkyRL).
    GroupMean,
    /// Sum over all trained tokens.
    TokenSum,
    /// Every trajectory's tokens divided by the tokens of its group and by the number of trajectories (agent-lightning's
    /// per-rollout mean, where the rows of a "group" are the turns of one rollout).
    RolloutMean,
}

/// The weight of every token of each trajectory, `[B]`, from its number of trained tokens and its group. Nothing to train gives
/// weights whose products are 0, never a division by 0.
pub fn row_weights(aggregation: Aggregation, trained: &[usize], groups: &[usize]) -> Vec<f64> {
    let all: usize = trained.iter().sum();
    let inverse = |count: usize| 1.0 / count.max(1) as f64;
    let counted = |count_empty: bool| if count_empty { trained.len() } else { trained.iter().filter(|&&n| n > 0).count() };
    let mut in_group = std::collections::BTreeMap::<usize, usize>::new();
    trained.iter().zip(groups).for_each(|(&count, &group)| *in_group.entry(group).or_default() += count);
    let weight = |(&count, group): (&usize, &usize)| match aggregation {
        Aggregation::TokenMean => inverse(all),
        Aggregation::TokenSum => 1.0,
        Aggregation::SequenceMean { count_empty } => inverse(counted(count_empty)) * inverse(count),
        Aggregation::SequenceSum { count_empty, length } => inverse(counted(count_empty)) / length,
        Aggregation::GroupMean => inverse(in_group.len()) * inverse(in_group.get(group).copied().unwrap_or(0)),
        Aggregation::RolloutMean => inverse(trained.len()) * inverse(in_group.get(group).copied().unwrap_or(0)),
    };
    trained.iter().zip(groups).map(weight).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// T-42, T-47: two trajectories, two tokens of loss 1 and six of loss 2.
    #[test]
    fn the_aggregations_of_two_trajectories_of_unequal_length() {
        let (trained, sums) = ([2, 6], [2.0, 12.0]);
        let loss = |aggregation, groups: &[usize]| {
            row_weights(aggregation, &trained, groups).iter().zip(sums).map(|(weight, sum)| weight * sum).sum::<f64>()
        };
        let one = [0, 0];
        assert_eq!(loss(Aggregation::TokenMean, &one), 1.75);
        assert_eq!(loss(Aggregation::SequenceMean { count_empty: true }, &one), 1.5);
        assert_eq!(loss(Aggregation::SequenceSum { count_empty: true, length: 1.0 }, &one), 7.0);
        assert_eq!(loss(Aggregation::SequenceSum { count_empty: true, length: 8.0 }, &one), 0.875);
        assert_eq!(loss(Aggregation::TokenSum, &one), 14.0);
        assert_eq!(loss(Aggregation::GroupMean, &one), 1.75);
        assert_eq!(loss(Aggregation::GroupMean, &[0, 1]), 1.5);
    }

    /// T-04: an empty trajectory divides nothing by 0, and counts only where the convention says so.
    #[test]
    fn trajectories_without_trained_tokens() {
        let weights = |aggregation| row_weights(aggregation, &[0, 4], &[0, 1]);
        assert_eq!(weights(Aggregation::SequenceMean { count_empty: true })[1], 0.125);
        assert_eq!(weights(Aggregation::SequenceMean { count_empty: false })[1], 0.25);
        assert!(row_weights(Aggregation::TokenMean, &[0, 0], &[0, 0]).iter().all(|weight| weight.is_finite()));
        assert!(row_weights(Aggregation::GroupMean, &[0, 0], &[0, 1]).iter().all(|weight| weight.is_finite()));
    }
}
