//! Advantages of whole episodes: within the group, and with the other baselines of the field.

use serde_json::Value;
use turnwise::config::ExperimentConfig;
use turnwise::credit::{
    Convention, CreditMap, EpsilonOn, Evidence, Lone, Scaling, Spread, assign, best_of_group_advantages, decoupled_advantages,
    leave_one_out, length_weighted_advantages, outcome_advantages, relative_advantages,
};
use turnwise::environment::Facts;
use turnwise::metrics::token_losses;
use turnwise::reward::{RewardTable, RewardTerm, WeightedTerm};
use turnwise::rollout::{End, Trajectory, Turn};

use super::case::{Case, Rows, Stop, does_not_apply};

/// Advantages of whole episodes within their group.
pub fn group(case: &Case) -> Result<(), Stop> {
    if case.raw("rewards").as_array().is_some_and(|rewards| rewards.iter().any(Value::is_null)) {
        return does_not_apply("episodes without a reward are not offered: every episode is scored");
    }
    if case.word("multi_objective_aggregation") == "normalize_then_sum" {
        let components = case.rows("rewards_per_component")?;
        let groups = group_ids(case, components.len())?;
        let advantages = decoupled_advantages(&groups, &components, &case.list("reward_weights")?, spread(case)?);
        case.close_list("advantages", &advantages)?;
        return case.done();
    }
    let rewards = rewards(case)?;
    let groups = group_ids(case, rewards.len())?;
    // The sources whose inputs have `normalize_std` keep the raw reward of an episode without peers.
    let lone = if case.has("normalize_std") { Lone::Raw } else { Lone::Zero };
    let advantages = outcome_advantages(&groups, &rewards, Convention { scaling: scaling(case)?, lone });
    close(case, &groups, &rewards, &advantages)
}

/// Leave-one-out and other baselines.
pub fn baselines(case: &Case) -> Result<(), Stop> {
    let rewards = case.list("rewards")?;
    let groups = group_ids(case, rewards.len())?;
    let source = case.source.clone();
    let named = |name: &str| source.contains(name);
    let advantages = if named("rloo") {
        let lone = if named("vectorized") { Lone::Zero } else { Lone::Raw };
        let comparisons = leave_one_out(&groups, &rewards, lone);
        comparisons.iter().zip(&rewards).map(|(comparison, &reward)| comparison.advantage(reward)).collect()
    } else if named("opo") {
        let lengths: Vec<f64> = case.rows("loss_mask")?.iter().map(|row| row.iter().sum()).collect();
        length_weighted_advantages(&groups, &rewards, &lengths, Lone::Raw)
    } else if named("passk") {
        best_of_group_advantages(&groups, &rewards, scaling(case)?)
    } else if named("maxrl") {
        relative_advantages(&groups, &rewards, case.number("eps")?)
    } else {
        return does_not_apply(format!("unknown baseline of {}", case.source));
    };
    close(case, &groups, &rewards, &advantages)
}

fn close(case: &Case, groups: &[usize], rewards: &[f64], advantages: &[f64]) -> Result<(), Stop> {
    equal_rewards_give_exactly_zero(groups, rewards, advantages)?;
    case.close_list("advantages", advantages)?;
    if case.expects("token_advantages").is_some() {
        case.close_rows("token_advantages", &spread_out(&case.rows("loss_mask")?, advantages))?;
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
        other => does_not_apply(format!("unknown way of combining rewards `{other}`")),
    }
}

/// The group of every episode, numbered from 0.
pub fn group_ids(case: &Case, episodes: usize) -> Result<Vec<usize>, Stop> {
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
pub fn scaling(case: &Case) -> Result<Scaling, Stop> {
    match case.word("scale_rewards") {
        "none" => return Ok(Scaling::None),
        "batch" => return Ok(Scaling::Batch(spread(case)?)),
        "" | "group" => {}
        other => return does_not_apply(format!("unknown scaling `{other}`")),
    }
    if case.raw("normalize_std") == false {
        return Ok(Scaling::None);
    }
    Ok(Scaling::Group(spread(case)?))
}

/// The deviation that the inputs state.
pub fn spread(case: &Case) -> Result<Spread, Stop> {
    let epsilon_on = match case.word("eps_on") {
        "" | "std" => EpsilonOn::Deviation,
        "variance" => EpsilonOn::Variance,
        other => return does_not_apply(format!("unknown place of epsilon `{other}`")),
    };
    Ok(Spread { ddof: case.number("ddof")? as usize, epsilon: case.number("eps")?, epsilon_on })
}

/// The whitening that the inputs state.
pub fn whitening(case: &Case) -> Result<Spread, Stop> {
    let stated = case.raw("whiten");
    let ddof = stated["ddof"].as_u64().map(|ddof| ddof as usize);
    let (epsilon, epsilon_on) = match (stated["eps_on"].as_str(), stated["floor_on"].as_str()) {
        (Some("variance"), None) => (stated["eps"].as_f64(), EpsilonOn::Variance),
        (Some("std"), None) => (stated["eps"].as_f64(), EpsilonOn::Deviation),
        (None, Some("variance")) => (stated["floor"].as_f64(), EpsilonOn::VarianceFloor),
        (None, Some("std")) => (stated["floor"].as_f64(), EpsilonOn::DeviationFloor),
        _ => (None, EpsilonOn::Variance),
    };
    match (ddof, epsilon) {
        (Some(ddof), Some(epsilon)) => Ok(Spread { ddof, epsilon, epsilon_on }),
        _ => does_not_apply("unknown inputs: no usable `whiten`"),
    }
}

fn equal_rewards_give_exactly_zero(groups: &[usize], rewards: &[f64], advantages: &[f64]) -> Result<(), Stop> {
    for (index, &advantage) in advantages.iter().enumerate() {
        let peers: Vec<usize> = (0..groups.len()).filter(|&peer| groups[peer] == groups[index]).collect();
        if peers.len() > 1 && peers.iter().all(|&peer| rewards[peer] == rewards[index]) && advantage != 0.0 {
            return Err(Stop::Failed(format!("identical rewards give {advantage}, not exactly 0")));
        }
    }
    Ok(())
}

/// The advantage of each episode on its trained tokens, as the loss has it.
fn spread_out(loss_mask: &Rows, advantages: &[f64]) -> Rows {
    let ids = |row: &Vec<f64>| row.iter().map(|&trained| if trained == 0.0 { -1.0 } else { 0.0 }).collect();
    let turns = advantages.iter().map(|&advantage| vec![advantage]).collect();
    on_tokens(&loss_mask.iter().map(ids).collect(), &turns)
}

/// The advantage of each turn on its trained tokens, as the loss has it. `turn_ids` says to which turn each token belongs; -1 for
/// tokens of nobody.
pub fn on_tokens(turn_ids: &Rows, advantages: &Rows) -> Rows {
    let config = ExperimentConfig::default();
    let row = |(ids, advantages): (&Vec<f64>, &Vec<f64>)| {
        let (mut turns, mut of_turns) = (Vec::new(), Vec::new());
        let mut start = 0;
        // Each run of tokens of one turn is an action; what nobody said after it is its tool result.
        for run in ids.chunk_by(|a, b| a == b) {
            let end = start + run.len();
            if let Some(&advantage) = advantages.get(run[0] as usize).filter(|_| run[0] >= 0.0) {
                turns.push(Turn { start, action_end: end, end, facts: Facts::default() });
                of_turns.push(advantage);
            }
            start = end;
        }
        let trajectory = Trajectory {
            group: 0,
            member: 0,
            tokens: vec![1; ids.len()],
            prompt_length: 0,
            loss_mask: ids.iter().map(|&id| id >= 0.0).collect(),
            log_probs: vec![0.0; ids.len()],
            turns,
            end: End::Terminated,
            question_type: 0,
            legal: Vec::new(),
        };
        let map = assign(&Evidence::of_rewards(&[0], &[vec![0.0; of_turns.len()]]), &config);
        let map = CreditMap { advantages: vec![of_turns], ..map };
        let losses = token_losses(&config, &[trajectory], &map, None).expect("the loss is of tokens");
        losses[0].iter().map(|token| token.advantage).collect()
    };
    turn_ids.iter().zip(advantages).map(row).collect()
}
