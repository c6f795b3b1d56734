//! Advantages per turn: process supervision, returns-to-go, states, Monte-Carlo values.

use serde_json::Value;
use turnwise::credit::{
    Convention, EpsilonOn, Lone, Scaling, SingleTurn, Spread, Whitening, discounted_returns, fill_missing_values,
    gigpo_advantages, mt_grpo_advantages, normalised_rewards, outcome_advantages, pooled_advantages, process_and_outcome_returns,
    sums_to_come, temporal_differences, turn_advantages,
};

use super::advantages::{group_ids, on_tokens, scaling, spread, whitening};
use super::case::{Case, Rows, Stop, does_not_apply};

/// Process supervision.
pub fn process(case: &Case) -> Result<(), Stop> {
    if case.has("process_rewards") {
        return leave_one_out_returns(case);
    }
    if case.has("token_level_rewards") {
        return process_tokens(case);
    }
    let rewards = case.rows("turn_rewards")?;
    let groups = group_ids(case, rewards.len())?;
    let floored = |epsilon_on| Scaling::Group(Spread { ddof: 0, epsilon: 1e-8, epsilon_on });
    let (equal_weight, convention) = match case.word("statistics") {
        "" => (false, Convention { scaling: scaling(case)?, lone: Lone::Raw }),
        "pooled" => (false, Convention { scaling: floored(EpsilonOn::DeviationFloor), lone: Lone::Zero }),
        "equalweight" => (true, Convention { scaling: floored(EpsilonOn::Variance), lone: Lone::Zero }),
        other => return does_not_apply(format!("unknown statistics `{other}`")),
    };
    let normalised = normalised_rewards(&groups, &rewards, equal_weight, convention);
    let advantages = sums_to_come(&normalised);
    case.close_rows("normalized_turn_rewards", &normalised)?;
    case.close_rows("turn_advantages", &advantages)?;
    if case.expects("token_advantages").is_some() {
        case.close_rows("token_advantages", &on_tokens(&case.rows("turn_id")?, &advantages))?;
    }
    case.done()
}

/// Process supervision with one reward per token: every trained token is a step.
fn process_tokens(case: &Case) -> Result<(), Stop> {
    let (rewards, mask) = (case.rows("token_level_rewards")?, case.rows("loss_mask")?);
    let groups = group_ids(case, rewards.len())?;
    let chosen: Rows = rewards.iter().zip(&mask).map(|(row, mask)| trained(mask).map(|place| row[place]).collect()).collect();
    let convention = Convention { scaling: scaling(case)?, lone: Lone::Raw };
    let sums = sums_to_come(&normalised_rewards(&groups, &chosen, false, convention));
    let back = |(sums, mask): (&Vec<f64>, &Vec<f64>)| {
        let mut row = vec![0.0; mask.len()];
        trained(mask).zip(sums).for_each(|(place, &sum)| row[place] = sum);
        row
    };
    case.close_rows("token_advantages", &sums.iter().zip(&mask).map(back).collect())?;
    case.done()
}

fn trained(mask: &[f64]) -> impl Iterator<Item = usize> {
    (0..mask.len()).filter(|&place| mask[place] != 0.0)
}

fn leave_one_out_returns(case: &Case) -> Result<(), Stop> {
    let (rewards, outcome, mask) = (case.rows("process_rewards")?, case.list("outcome")?, case.rows("loss_mask")?);
    let groups = group_ids(case, rewards.len())?;
    let trained: Vec<Vec<bool>> = mask.iter().map(|row| row.iter().map(|&trained| trained != 0.0).collect()).collect();
    let (of_process, of_outcome) = (case.number("process_coef")?, case.number("outcome_coef")?);
    let returns = process_and_outcome_returns(&groups, (&rewards, of_process), (&outcome, of_outcome), &trained);
    case.close_rows("returns", &returns)?;
    case.close_rows("advantages_whitened", &whitened(case, &returns, &mask)?)?;
    case.done()
}

/// Rows whitened over their trained tokens, 0 elsewhere.
pub fn whitened(case: &Case, rows: &Rows, mask: &Rows) -> Result<Rows, Stop> {
    let whitening = Whitening::of(&rows.concat(), &mask.concat(), whitening(case)?);
    let value = |(&value, &trained): (&f64, &f64)| if trained == 0.0 { 0.0 } else { whitening.apply(value) };
    Ok(rows.iter().zip(mask).map(|(row, mask)| row.iter().zip(mask).map(value).collect()).collect())
}

/// Turn-level credit.
pub fn turn(case: &Case) -> Result<(), Stop> {
    if case.has("mc_values") {
        return monte_carlo(case);
    }
    if case.has("outcome_reward") {
        return mt_grpo(case);
    }
    if case.has("episodes") {
        return gigpo(case);
    }
    let rewards = case.rows("turn_rewards")?;
    let gamma = case.number("gamma")?;
    let returns: Rows = rewards.iter().map(|rewards| discounted_returns(rewards, gamma)).collect();
    let advantages = match case.word("baseline") {
        "" => {
            case.close_rows("turn_returns", &returns)?;
            return case.done();
        }
        "turn_index" => turn_advantages,
        "pooled" => pooled_advantages,
        other => return does_not_apply(format!("unknown baseline `{other}`")),
    };
    let convention = Convention { scaling: scaling(case)?, lone: Lone::Zero };
    case.close_rows("step_returns", &returns)?;
    case.close_rows("step_advantage", &advantages(&group_ids(case, rewards.len())?, &returns, convention))?;
    case.done()
}

fn monte_carlo(case: &Case) -> Result<(), Stop> {
    let rewards = case.list("turn_rewards")?;
    let measured: Vec<Option<f64>> = case.raw("mc_values").as_array().into_iter().flatten().map(Value::as_f64).collect();
    let gamma = case.optional("gamma").unwrap_or(1.0);
    let values = fill_missing_values(&rewards, &measured, gamma);
    case.close_list("turn_advantages", &temporal_differences(&rewards, &values, gamma))?;
    case.done()
}

fn mt_grpo(case: &Case) -> Result<(), Stop> {
    let (turn, outcome, combined) = (case.list("turn_reward")?, case.list("outcome_reward")?, case.list("combined_reward")?);
    let (mask, called) = (case.rows("loss_mask")?, case.list("result_segment")?);
    let groups = vec![0; turn.len()];
    let convention = Convention { scaling: Scaling::Group(spread(case)?), lone: Lone::Zero };
    // Two turns, before and after the first tool result; one where there is none.
    let turns: Rows = turn.iter().zip(&called).map(|(&x, &called)| if called < 0.0 { vec![x] } else { vec![x, 0.0] }).collect();
    let single = SingleTurn::Combined(&combined);
    let advantages = mt_grpo_advantages(&groups, &turns, &outcome, case.number("turn_coef")?, single, convention);
    case.close_list("turn_z", &outcome_advantages(&groups, &turn, convention))?;
    case.close_list("outcome_z", &outcome_advantages(&groups, &outcome, convention))?;
    case.close_list("combined_z", &outcome_advantages(&groups, &combined, convention))?;
    let kinds: Vec<Vec<char>> = case
        .raw("token_kind")
        .as_array()
        .into_iter()
        .flatten()
        .map(|row| row.as_str().unwrap_or_default().chars().collect())
        .collect();
    let ids = |(mask, kinds): (&Vec<f64>, &Vec<char>)| {
        let result = kinds.iter().position(|&kind| kind == 't').unwrap_or(kinds.len());
        let turn = |(place, &trained): (usize, &f64)| if trained == 0.0 { -1.0 } else { f64::from(u8::from(place > result)) };
        mask.iter().enumerate().map(turn).collect()
    };
    case.close_rows("token_advantages", &on_tokens(&mask.iter().zip(&kinds).map(ids).collect(), &advantages))?;
    case.done()
}

fn gigpo(case: &Case) -> Result<(), Stop> {
    if case.has("similarity_threshold") {
        return does_not_apply("observations that are merely similar as texts are not pooled: they are told apart by a hash");
    }
    let episodes = case.raw("episodes").as_array().cloned().unwrap_or_default();
    let (mut known, mut groups, mut rewards, mut anchors): (Vec<String>, _, Rows, _) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for episode in &episodes {
        groups.push(episode["group_id"].as_u64().unwrap_or_default() as usize);
        rewards.push(episode["turn_rewards"].as_array().into_iter().flatten().filter_map(Value::as_f64).collect());
        let observations = episode["observations"].as_array().into_iter().flatten().map(Value::to_string);
        let anchor = |observation: String| {
            known.iter().position(|seen| *seen == observation).unwrap_or_else(|| {
                known.push(observation);
                known.len() - 1
            }) as u64
        };
        anchors.push(observations.map(anchor).collect::<Vec<u64>>());
    }
    let scaling = match case.word("mode") {
        "mean_norm" => Scaling::None,
        "mean_std_norm" => Scaling::Group(spread(case)?),
        other => return does_not_apply(format!("unknown mode `{other}`")),
    };
    let gamma = case.number("gamma")?;
    let returns_to_go: Rows = rewards.iter().map(|rewards| discounted_returns(rewards, gamma)).collect();
    let sums: Vec<f64> = sums_to_come(&rewards).iter().map(|sums| sums.first().copied().unwrap_or(0.0)).collect();
    let convention = Convention { scaling, lone: Lone::Raw };
    let weight = case.number("step_advantage_weight")?;
    let got = gigpo_advantages(&groups, &sums, &returns_to_go, &anchors, weight, convention);
    let episode: Rows = got.episode.iter().zip(&rewards).map(|(&episode, turns)| vec![episode; turns.len()]).collect();
    case.close_rows("step_returns", &returns_to_go)?;
    case.close_rows("episode_advantage", &episode)?;
    case.close_rows("step_advantage", &got.step)?;
    case.close_rows("advantage", &got.sum)?;
    case.done()
}
