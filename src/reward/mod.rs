//! Scoring: facts get their worth here, as named weighted terms. Pure functions of plain data.

#[cfg(test)]
pub(crate) mod tests;

use crate::config::{ExperimentConfig, RewardMode};
use crate::environment::Facts;
use crate::rollout::Trajectory;

/// A named reason for reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum RewardTerm {
    /// The right answer (outcome).
    AnswerRight,
    /// A well-formed tool call (process).
    ValidCall,
    /// An answer of the right form (process).
    FormatRight,
    /// A malformed turn (process).
    Malformed,
    /// A call made before (process).
    RepeatedCall,
    /// Every turn (process).
    Turn,
}

/// One term of the reward: its weight times the fact, which is 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct WeightedTerm {
    pub term: RewardTerm,
    pub weight: f64,
}

/// What was earned: per trajectory and turn, the terms that paid (or cost) something.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct RewardTable {
    /// `[trajectory][turn]`: the amounts by term; terms that paid nothing are left out.
    pub turns: Vec<Vec<Vec<WeightedTerm>>>,
}

impl RewardTable {
    /// The reward of each turn, `[trajectory][turn]`: the sum of its terms.
    pub fn totals(&self) -> Vec<Vec<f64>> {
        // Folding from 0.0: the sum of no terms is -0.0.
        let total = |terms: &Vec<WeightedTerm>| terms.iter().fold(0.0, |sum, term| sum + term.weight);
        self.turns.iter().map(|turns| turns.iter().map(total).collect()).collect()
    }
}

/// The terms that the configuration turns on, with their weights. Outcome mode has the outcome term alone, process mode
/// the process terms alone, mixed mode both.
pub fn weighted_terms(config: &ExperimentConfig) -> Vec<WeightedTerm> {
    let outcome = [(RewardTerm::AnswerRight, config.outcome_weight)];
    let process = [
        (RewardTerm::ValidCall, config.valid_call_weight),
        (RewardTerm::FormatRight, config.format_weight),
        (RewardTerm::Malformed, config.malformed_weight),
        (RewardTerm::RepeatedCall, config.repeated_call_weight),
        (RewardTerm::Turn, config.turn_weight),
    ];
    let used: Vec<_> = match config.reward_mode {
        RewardMode::Outcome => outcome.to_vec(),
        RewardMode::Process => process.to_vec(),
        RewardMode::Mixed => [&outcome[..], &process[..]].concat(),
    };
    used.into_iter().filter(|&(_, weight)| weight != 0.0).map(|(term, weight)| WeightedTerm { term, weight }).collect()
}

/// Scores trajectories: each turn's facts, weighted.
pub fn score(trajectories: &[Trajectory], terms: &[WeightedTerm]) -> RewardTable {
    let earned = |facts: &Facts| terms.iter().copied().filter(|term| holds(term.term, facts)).collect();
    let turns = trajectories.iter().map(|trajectory| trajectory.turns.iter().map(|turn| earned(&turn.facts)).collect());
    RewardTable { turns: turns.collect() }
}

fn holds(term: RewardTerm, facts: &Facts) -> bool {
    match term {
        RewardTerm::AnswerRight => facts.answer_right,
        RewardTerm::ValidCall => facts.valid_call,
        RewardTerm::FormatRight => facts.format_right,
        RewardTerm::Malformed => facts.malformed,
        RewardTerm::RepeatedCall => facts.repeated_call,
        RewardTerm::Turn => true,
    }
}
