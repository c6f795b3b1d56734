//! Returns and advantages per token: REINFORCE++ and generalised advantage estimation.

use turnwise::credit::{
    Convention, Lone, Scaling, Untrained, bi_level_advantages, centred_then_divided_advantages, outcome_advantages,
    token_advantages, token_returns,
};

use super::advantages::{group_ids, spread};
use super::case::{Case, Rows, Stop, does_not_apply};
use super::turns::whitened;

/// What each source does at tool tokens.
fn untrained(case: &Case) -> Result<Untrained, Stop> {
    match case.source.split('/').next() {
        Some("volcengine") => Ok(Untrained::Skipped),
        Some("NovaSky-AI") => Ok(Untrained::Walked),
        Some("OpenRLHF") => Ok(Untrained::Zeroed),
        _ => does_not_apply(format!("unknown source {}", case.source)),
    }
}

fn trained(mask: &Rows) -> Vec<Vec<bool>> {
    mask.iter().map(|row| row.iter().map(|&trained| trained != 0.0).collect()).collect()
}

/// REINFORCE++.
pub fn reinforce(case: &Case) -> Result<(), Stop> {
    if case.has("group_id") {
        return with_baseline(case);
    }
    let (rewards, mask) = (case.rows("token_level_rewards")?, case.rows("loss_mask")?);
    let (gamma, untrained) = (case.number("gamma")?, untrained(case)?);
    let rows = rewards.iter().zip(trained(&mask));
    let returns: Rows = rows.map(|(rewards, trained)| token_returns(rewards, &trained, gamma, untrained)).collect();
    case.close_rows("returns", &returns)?;
    if case.expects("advantages").is_some() {
        case.close_rows("advantages", &whitened(case, &returns, &mask)?)?;
    }
    case.done()
}

/// REINFORCE++ with the mean of the group as the baseline.
fn with_baseline(case: &Case) -> Result<(), Stop> {
    let rewards = case.list("rewards")?;
    let groups = group_ids(case, rewards.len())?;
    if !case.has("whiten") {
        case.close_list("advantages", &centred_then_divided_advantages(&groups, &rewards, spread(case)?))?;
        return case.done();
    }
    let mask = case.rows("loss_mask")?;
    // verl takes 0 as the mean of a group of one, OpenRLHF its reward.
    let lone = if case.source.starts_with("volcengine") { Lone::Raw } else { Lone::Zero };
    let centred = outcome_advantages(&groups, &rewards, Convention { scaling: Scaling::None, lone });
    let rows = centred.iter().zip(&mask).map(|(&centred, mask)| vec![centred; mask.len()]).collect();
    case.close_rows("token_advantages", &whitened(case, &rows, &mask)?)?;
    case.done()
}

/// Generalised advantage estimation.
pub fn gae(case: &Case) -> Result<(), Stop> {
    let (rewards, values, mask) = (case.rows("token_level_rewards")?, case.rows("values")?, case.rows("loss_mask")?);
    let decay = (case.number("gamma")?, case.number("lambda")?);
    let row = |index: usize, trained: &[bool]| -> Result<Vec<f64>, Stop> {
        let (rewards, values) = (&rewards[index], &values[index]);
        Ok(match case.optional("high_level_gamma") {
            Some(turn_gamma) => {
                let ends: Vec<bool> = rewards.iter().map(|&reward| reward != 0.0).collect();
                bi_level_advantages(rewards, values, trained, &ends, turn_gamma, decay)
            }
            None => token_advantages(rewards, values, trained, decay, untrained(case)?),
        })
    };
    let advantages: Rows =
        trained(&mask).iter().enumerate().map(|(index, trained)| row(index, trained)).collect::<Result<_, _>>()?;
    let rows = advantages.iter().zip(&values).zip(&mask);
    let target = |((advantages, values), mask): ((&Vec<f64>, &Vec<f64>), &Vec<f64>)| {
        advantages.iter().zip(values).zip(mask).map(|((advantage, value), mask)| (advantage + value) * mask).collect()
    };
    case.close_rows("advantages_raw", &advantages)?;
    case.close_rows("returns", &rows.map(target).collect())?;
    if case.expects("advantages_whitened").is_some() {
        case.close_rows("advantages_whitened", &whitened(case, &advantages, &mask)?)?;
    }
    case.done()
}
