//! Group-relative advantages and turn-level returns.

use turnwise::credit::{Scaling, discounted_returns, outcome_advantages, turn_advantages};
use turnwise::learner::TrainingExample;
use turnwise::reward::{RewardTable, RewardTerm, WeightedTerm};
use turnwise::vocabulary::Token;

use super::case::{Case, Rows, Stop, does_not_apply};
use crate::support::conversation;

/// Advantages of whole episodes within their group.
pub fn group(case: &Case) -> Result<(), Stop> {
    if case.raw("rewards").as_array().is_some_and(|rewards| rewards.iter().any(serde_json::Value::is_null)) {
        return does_not_apply("episodes without a reward are not offered: every episode is scored");
    }
    let rewards = rewards(case)?;
    let groups = group_ids(case, rewards.len())?;
    let scaling = scaling(case)?;
    // The sources whose inputs have `normalize_std` keep the raw reward of an episode without peers.
    let lone = (0..groups.len()).any(|i| groups.iter().filter(|&&group| group == groups[i]).count() == 1);
    if lone && case.has("normalize_std") {
        return does_not_apply("another convention: an episode without peers keeps its raw reward; here its advantage is 0");
    }
    let advantages = outcome_advantages(&groups, &rewards, scaling);
    equal_rewards_give_exactly_zero(&groups, &rewards, &advantages)?;
    case.close_list("advantages", &advantages)?;
    if case.expects("token_advantages").is_some() {
        case.close_rows("token_advantages", &spread(&case.rows("loss_mask")?, &advantages))?;
    }
    case.done()
}

/// One number per episode: given as such, or as components with weights, which the reward table sums.
fn rewards(case: &Case) -> Result<Vec<f64>, Stop> {
    match case.word("multi_objective_aggregation") {
        "" => case.list("rewards"),
        "sum_then_normalize" => {
            let weights = case.list("reward_weights")?;
            let term = |(weight, amount): (&f64, &f64)| WeightedTerm { term: RewardTerm::Turn, weight: weight * amount };
            let amounts = |row: &Vec<f64>| vec![weights.iter().zip(row).map(term).collect()];
            let turns = case.rows("rewards_per_component")?.iter().map(amounts).collect();
            Ok(RewardTable { turns }.totals().concat())
        }
        "normalize_then_sum" => does_not_apply("reward terms normalised one by one are not offered yet"),
        other => does_not_apply(format!("unknown way of combining rewards `{other}`")),
    }
}

/// The group of every episode, numbered from 0.
fn group_ids(case: &Case, episodes: usize) -> Result<Vec<usize>, Stop> {
    let ids: Vec<usize> = match case.optional("group_size") {
        Some(size) => (0..episodes).map(|index| index / size as usize).collect(),
        None => case.list("group_id")?.iter().map(|&id| id as usize).collect(),
    };
    let mut known: Vec<usize> = Vec::new();
    let place = |id: &usize| {
        known.iter().position(|seen| seen == id).unwrap_or_else(|| {
            known.push(*id);
            known.len() - 1
        })
    };
    Ok(ids.iter().map(place).collect())
}

/// The division that the inputs state.
fn scaling(case: &Case) -> Result<Scaling, Stop> {
    match case.word("scale_rewards") {
        "none" => return Ok(Scaling::None),
        "batch" => return does_not_apply("division by the standard deviation of the whole batch is not offered yet"),
        "" | "group" => {}
        other => return does_not_apply(format!("unknown scaling `{other}`")),
    }
    if case.raw("normalize_std") == false {
        return Ok(Scaling::None);
    }
    if !matches!(case.word("eps_on"), "" | "std") {
        return does_not_apply("another convention: epsilon is not added to the standard deviation");
    }
    Ok(Scaling::Deviation { ddof: case.number("ddof")? as usize, epsilon: case.number("eps")? })
}

fn equal_rewards_give_exactly_zero(groups: &[usize], rewards: &[f64], advantages: &[f64]) -> Result<(), Stop> {
    for (index, &advantage) in advantages.iter().enumerate() {
        let mut peers = (0..groups.len()).filter(|&peer| groups[peer] == groups[index]);
        if peers.all(|peer| rewards[peer] == rewards[index]) && advantage != 0.0 {
            return Err(Stop::Failed(format!("identical rewards give {advantage}, not exactly 0")));
        }
    }
    Ok(())
}

/// The advantage of an episode on its trained tokens, as the learner lays it out.
fn spread(loss_mask: &Rows, advantages: &[f64]) -> Rows {
    let row = |(mask, &advantage): (&Vec<f64>, &f64)| {
        let sampled: Vec<bool> = mask.iter().map(|&trained| trained != 0.0).collect();
        let trajectory = conversation(vec![0 as Token; mask.len()], &sampled);
        let turns = vec![advantage; trajectory.turns.len()];
        TrainingExample::new(&trajectory, &turns, false).advantages.into_iter().map(f64::from).collect()
    };
    loss_mask.iter().zip(advantages).map(row).collect()
}

/// Turn-level credit.
pub fn turn(case: &Case) -> Result<(), Stop> {
    for (mark, reason) in [
        ("mc_values", "advantages from Monte-Carlo values are not offered yet"),
        ("outcome_reward", "the sum of normalised outcome and turn rewards is not offered yet"),
        ("episodes", "groups of turns with the same observation are not offered yet"),
    ] {
        if case.has(mark) {
            return does_not_apply(reason);
        }
    }
    let rewards = case.rows("turn_rewards")?;
    let gamma = case.number("gamma")?;
    let returns: Rows = rewards.iter().map(|rewards| discounted_returns(rewards, gamma)).collect();
    match case.word("baseline") {
        "" => case.close_rows("turn_returns", &returns)?,
        "turn_index" => {
            let groups = group_ids(case, rewards.len())?;
            case.close_rows("step_returns", &returns)?;
            case.close_rows("step_advantage", &turn_advantages(&groups, &returns, scaling(case)?))?;
        }
        "pooled" => return does_not_apply("a baseline over all turns of the group is not offered yet"),
        other => return does_not_apply(format!("unknown baseline `{other}`")),
    }
    case.done()
}
