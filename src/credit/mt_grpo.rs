//! MT-GRPO: the outcome of the trajectory plus, on all turns but the last, the reward of the turn.
//!
//! `A_k = A^O + lambda A^T_k` for `k < K`, `A_K = A^O`: `A^O` is the discounted outcome reward of the trajectory and `A^T_k` the process
//! reward of turn `k`, each less its mean over the group and divided by its deviation plus 1e-4 (Zeng et al., arXiv:2505.11821,
//! there for two turns; here a turn is compared with the same turn of the members for which it is not the last). In outcome mode
//! all process rewards are 0 and this is GRPO. Lambda stands where the authors' code has it; the paper's formula for more turns
//! has it before `A^O`. The code has two segments, before and after the first tool result, and gives trajectories without one the
//! advantage of both rewards added up, so that the advantages of a group need not sum to 0.

use super::map::Parts;
use super::{Comparison, Convention, Inputs, Method, Part, PartKind, Whitened, compare, discounted_returns, outcome_advantages};

pub(super) const METHOD: Method = Method { parts, whitened: Whitened::Never, needs_values: false };

/// What a trajectory of a single turn gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SingleTurn<'a> {
    /// The outcome part, as any last turn. Its process reward is compared with nobody's.
    Outcome,
    /// The advantage of these rewards, `[trajectory]`, in its place; its process reward counts in the statistics of its turn (the
    /// authors' code).
    Combined(&'a [f64]),
}

/// Advantages, `[trajectory][turn]`, from the process reward of each turn, `[trajectory][turn]`, and the outcome reward of each
/// trajectory, `[trajectory]`.
pub fn mt_grpo_advantages(
    groups: &[usize],
    turn_rewards: &[Vec<f64>],
    outcomes: &[f64],
    coefficient: f64,
    single: SingleTurn,
    convention: Convention,
) -> Vec<Vec<f64>> {
    let outcome = outcome_advantages(groups, outcomes, convention);
    let turn = turn_comparisons(groups, turn_rewards, single != SingleTurn::Outcome, convention);
    let combined = match single {
        SingleTurn::Outcome => outcome.clone(),
        SingleTurn::Combined(rewards) => outcome_advantages(groups, rewards, convention),
    };
    let advantage = |index: usize, turn_index: usize, rewards: &[f64]| match rewards.len() {
        1 => combined[index],
        count if turn_index + 1 == count => outcome[index],
        _ => {
            let part = turn[index][turn_index].map_or(0.0, |comparison| comparison.advantage(rewards[turn_index]));
            outcome[index] + coefficient * part
        }
    };
    let row = |(index, rewards): (usize, &Vec<f64>)| (0..rewards.len()).map(|turn| advantage(index, turn, rewards)).collect();
    turn_rewards.iter().enumerate().map(row).collect()
}

/// What the process reward of each turn is compared with; nothing for last turns, unless `with_single` and it is the only one.
fn turn_comparisons(
    groups: &[usize],
    turn_rewards: &[Vec<f64>],
    with_single: bool,
    convention: Convention,
) -> Vec<Vec<Option<Comparison>>> {
    let compared = |turns: usize, turn: usize| turn + 1 < turns || (with_single && turns == 1);
    let places: Vec<(usize, usize)> = turn_rewards
        .iter()
        .enumerate()
        .flat_map(|(index, turns)| {
            (0..turns.len()).filter(move |&turn| compared(turns.len(), turn)).map(move |turn| (index, turn))
        })
        .collect();
    let keys: Vec<(usize, usize)> = places.iter().map(|&(index, turn)| (groups[index], turn)).collect();
    let values: Vec<f64> = places.iter().map(|&(index, turn)| turn_rewards[index][turn]).collect();
    let mut comparisons: Vec<Vec<Option<Comparison>>> = turn_rewards.iter().map(|turns| vec![None; turns.len()]).collect();
    for ((index, turn), comparison) in places.into_iter().zip(compare(&keys, &values, convention)) {
        comparisons[index][turn] = Some(comparison);
    }
    comparisons
}

fn parts(inputs: &Inputs) -> Parts {
    let evidence = inputs.evidence;
    let returns = evidence.outcome_rewards.iter().map(|rewards| discounted_returns(rewards, inputs.config.gamma));
    let outcomes: Vec<f64> = returns.map(|returns| returns.first().copied().unwrap_or(0.0)).collect();
    let difference =
        |(all, outcome): (&Vec<f64>, &Vec<f64>)| all.iter().zip(outcome).map(|(all, outcome)| all - outcome).collect();
    let turn_rewards: Vec<Vec<f64>> = evidence.rewards.iter().zip(&evidence.outcome_rewards).map(difference).collect();
    let outcome = compare(&evidence.groups, &outcomes, inputs.convention);
    let turns = turn_comparisons(&evidence.groups, &turn_rewards, false, inputs.convention);
    let of_turn = |index: usize, turn: usize| {
        let mut parts = vec![Part::of(PartKind::Outcome, 0, outcomes[index], outcome[index])];
        parts.extend(turns[index][turn].map(|comparison| Part {
            weight: inputs.config.turn_coefficient,
            ..Part::of(PartKind::ProcessReward, turn, turn_rewards[index][turn], comparison)
        }));
        parts
    };
    (0..turns.len()).map(|index| (0..turns[index].len()).map(|turn| of_turn(index, turn)).collect()).collect()
}
