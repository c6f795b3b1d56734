//! Where the advantage of a turn came from: fact, reward term, discount, value, baseline and scale. Every step can be checked: the
//! sums and products give back the advantage that is shown.

use super::compare::{Scaling, Whitening};
use super::map::{CreditMap, Part, PartKind};
use crate::environment::Facts;
use crate::reward::{RewardTable, WeightedTerm};
use crate::rollout::Trajectory;

/// A reward that a value is made of.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct DiscountedReward {
    /// The turn that earned it.
    pub turn: usize,
    /// What happened there.
    pub facts: Facts,
    /// The terms that paid, with their amounts.
    pub terms: Vec<WeightedTerm>,
    /// Gamma to the power of the turns in between.
    pub discount: f64,
    /// `discount` times the sum of the amounts.
    pub amount: f64,
}

/// A part of the advantage and what its value is made of.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct PartProvenance {
    pub part: Part,
    /// The rewards in `part.value`.
    pub rewards: Vec<DiscountedReward>,
    /// The rest of `part.value`: the discounted value of the state after the turn, where the part has one.
    pub value_after: Option<f64>,
    /// What `part.scale` is without the epsilon that keeps it from 0; `null` where nothing is divided.
    pub deviation: Option<f64>,
}

/// The chain from facts to the advantage of one turn, which all its tokens get.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct CreditChain {
    pub trajectory: usize,
    pub turn: usize,
    /// Each contributes `weight (value - baseline) / scale`.
    pub parts: Vec<PartProvenance>,
    /// The centring and division over the batch that followed, if any.
    pub whitening: Option<Whitening>,
    /// The sum of the contributions, whitened.
    pub advantage: f64,
}

/// The chain of a turn; nothing for a turn that there is not. `rewards` and `map` are those of the trajectories, `gamma` is the
/// discount that the map was made with.
pub fn credit_chain(
    (index, turn): (usize, usize),
    trajectories: &[Trajectory],
    rewards: &RewardTable,
    map: &CreditMap,
    gamma: f64,
) -> Option<CreditChain> {
    let trajectory = trajectories.get(index)?;
    let parts = map.parts.get(index)?.get(turn)?;
    let part = |part: &Part| {
        let last = trajectory.turns.len();
        let (turns, kept): (_, fn(&WeightedTerm) -> bool) = match part.kind {
            PartKind::Episode | PartKind::ReturnToGo | PartKind::State => (part.turn..last, |_| true),
            PartKind::Outcome => (part.turn..last, |term| term.term.is_outcome()),
            PartKind::ProcessReward => (part.turn..part.turn + 1, |term| !term.term.is_outcome()),
            PartKind::TurnReward | PartKind::TemporalDifference => (part.turn..part.turn + 1, |_| true),
        };
        let reward = |turn: usize| {
            let terms: Vec<WeightedTerm> = rewards.turns[index][turn].iter().filter(|term| kept(term)).copied().collect();
            let discount = gamma.powi((turn - part.turn) as i32);
            let amount = discount * terms.iter().fold(0.0, |sum, term| sum + term.weight);
            DiscountedReward { turn, facts: trajectory.turns[turn].facts, terms, discount, amount }
        };
        let rewards: Vec<DiscountedReward> = turns.map(reward).filter(|reward| !reward.terms.is_empty()).collect();
        let sum = rewards.iter().fold(0.0, |sum, reward| sum + reward.amount);
        let value_after = (part.kind == PartKind::TemporalDifference).then_some(part.value - sum);
        let deviation = (part.scale != 1.0).then_some(part.scale - Scaling::SAMPLE.epsilon);
        PartProvenance { part: *part, rewards, value_after, deviation }
    };
    Some(CreditChain {
        trajectory: index,
        turn,
        parts: parts.iter().map(part).collect(),
        whitening: map.whitening[trajectory.group],
        advantage: map.advantages[index][turn],
    })
}
