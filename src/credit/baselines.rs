//! Other baselines of the field, as functions of one number per trajectory. No setting leads to them: they are here to be compared
//! with, from a test or a notebook.

use super::{Convention, Lone, Scaling, Spread, Untrained, Whitening, compare, compare_weighted, token_returns};

/// OPO: `R_i - sum(len R) / sum(len)` over the group, the mean weighted by trained tokens (arXiv:2505.23585, as in verl).
/// `[trajectory]`. A group of one keeps its raw return if `lone` says so.
pub fn length_weighted_advantages(groups: &[usize], returns: &[f64], tokens: &[f64], lone: Lone) -> Vec<f64> {
    let comparisons = compare_weighted(groups, returns, tokens, Convention { scaling: Scaling::None, lone });
    comparisons.iter().zip(returns).map(|(comparison, &value)| comparison.advantage(value)).collect()
}

/// MaxRL: `(R_i - mean) / (mean + epsilon)` over the group (as in SkyRL). `[trajectory]`. A group of one keeps its raw return.
pub fn relative_advantages(groups: &[usize], returns: &[f64], epsilon: f64) -> Vec<f64> {
    let comparisons = compare(groups, returns, Convention { scaling: Scaling::None, lone: Lone::Zero });
    let advantage = |(comparison, &value): (&super::Comparison, &f64)| match comparison.peers {
        1 => value,
        _ => (value - comparison.baseline) / (comparison.baseline + epsilon),
    };
    comparisons.iter().zip(returns).map(advantage).collect()
}

/// Pass@k: the best trajectory of a group gets its lead over the second best, divided as `scaling` says, the others get 0
/// (arXiv:2503.19595, as in verl). `[trajectory]`. The first of several best ones gets the lead, which is then 0; a group of one
/// gets 0.
pub fn best_of_group_advantages(groups: &[usize], returns: &[f64], scaling: Scaling) -> Vec<f64> {
    let scales = compare(groups, returns, Convention { scaling, lone: Lone::Zero });
    // Best and second best of each group.
    let mut leaders: Vec<(Option<usize>, Option<f64>)> = vec![(None, None); groups.iter().max().map_or(0, |&last| last + 1)];
    for (index, (&group, &value)) in groups.iter().zip(returns).enumerate() {
        let (best, second) = &mut leaders[group];
        match *best {
            Some(leader) if value <= returns[leader] => *second = Some(second.map_or(value, |second| second.max(value))),
            Some(leader) => (*best, *second) = (Some(index), Some(returns[leader])),
            None => *best = Some(index),
        }
    }
    let mut advantages = vec![0.0; returns.len()];
    for (best, second) in leaders {
        if let (Some(best), Some(second)) = (best, second) {
            advantages[best] = (returns[best] - second) / scales[best].scale;
        }
    }
    advantages
}

/// GDPO: each reward component is standardised in its group, the weighted sum over the whole batch (TRL's
/// `normalize_then_sum`). `components` is `[trajectory][component]`; gives `[trajectory]`.
pub fn decoupled_advantages(groups: &[usize], components: &[Vec<f64>], weights: &[f64], spread: Spread) -> Vec<f64> {
    let mut sums = vec![0.0; groups.len()];
    for (component, weight) in weights.iter().enumerate() {
        let values: Vec<f64> = components.iter().map(|row| row[component]).collect();
        let standardised =
            super::outcome_advantages(groups, &values, Convention { scaling: Scaling::Group(spread), lone: Lone::Zero });
        sums.iter_mut().zip(standardised).for_each(|(sum, value)| *sum += weight * value);
    }
    let whitening = Whitening::of(&sums, &vec![1.0; sums.len()], spread);
    sums.iter().map(|&sum| whitening.apply(sum)).collect()
}

/// REINFORCE++-baseline as in rLLM: the return less the group's mean, divided by the deviation of these over all trajectories of
/// the batch, without a second centring. `[trajectory]`. A group of one gets 0.
pub fn centred_then_divided_advantages(groups: &[usize], returns: &[f64], spread: Spread) -> Vec<f64> {
    let centred = super::outcome_advantages(groups, returns, Convention { scaling: Scaling::None, lone: Lone::Zero });
    let whitening = Whitening::of(&centred, &vec![1.0; centred.len()], spread);
    centred.iter().map(|value| value / whitening.scale).collect()
}

/// PRIME's returns with leave-one-out baselines (arXiv:2502.01456): every reward `x` counts as `x n/(n-1) - sum of the means of
/// the group's trajectories / (n-1)`, `n` the size of the group; process rewards stand at all trained tokens, the outcome at the
/// last one; the two sources are weighted and added, and summed from each token on. `[trajectory][token]`, 0 at untrained tokens.
/// Not whitened.
pub fn process_and_outcome_returns(
    groups: &[usize],
    process: (&[Vec<f64>], f64),
    outcome: (&[f64], f64),
    trained: &[Vec<bool>],
) -> Vec<Vec<f64>> {
    let mean = |(row, trained): (&Vec<f64>, &Vec<bool>)| {
        let chosen: Vec<f64> = row.iter().zip(trained).filter(|&(_, &trained)| trained).map(|(&x, _)| x).collect();
        chosen.iter().sum::<f64>() / chosen.len().max(1) as f64
    };
    let process_means: Vec<f64> = process.0.iter().zip(trained).map(mean).collect();
    // Mean and size of each trajectory's group, for both sources.
    let unscaled = Convention { scaling: Scaling::None, lone: Lone::Zero };
    let (of_process, of_outcome) = (compare(groups, &process_means, unscaled), compare(groups, outcome.0, unscaled));
    let against = |value: f64, group: super::Comparison| {
        let count = group.peers as f64;
        if group.peers > 1 { (value - group.baseline) * count / (count - 1.0) } else { 0.0 }
    };
    let row = |index: usize| {
        let trained = &trained[index];
        let last = trained.iter().rposition(|&trained| trained);
        let reward = |(place, &x): (usize, &f64)| {
            let end = if Some(place) == last { outcome.1 * against(outcome.0[index], of_outcome[index]) } else { 0.0 };
            process.1 * against(x, of_process[index]) + end
        };
        let rewards: Vec<f64> = process.0[index].iter().enumerate().map(reward).collect();
        token_returns(&rewards, trained, 1.0, Untrained::Skipped)
    };
    (0..groups.len()).map(row).collect()
}
