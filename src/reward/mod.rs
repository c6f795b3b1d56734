//! Scoring: facts get their worth here, as named weighted terms. Pure functions of plain data.

mod kl;
#[cfg(test)]
pub(crate) mod tests;

use crate::config::{CallPayment, ExperimentConfig, RewardMode};
use crate::environment::Facts;
use crate::rollout::Trajectory;

/// A named reason for reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum RewardTerm {
    /// The right answer (outcome).
    AnswerRight,
    /// A win by chance (outcome: the task pays it, and no step on the way earned it).
    Luck,
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
    /// A step towards the solution, as the task judges it (process).
    StepRight,
    /// A call that gave no error (process).
    CleanResult,
    /// A call that gave an error (process).
    ErrorResult,
    /// A page reached for the first time (process).
    NewPage,
    /// The distance from the reference policy, where KL acts in the reward; its amount is no weight of a fact.
    Kl,
}

impl RewardTerm {
    /// Whether the term pays for how the episode came out, and not for the way there.
    pub fn is_outcome(self) -> bool {
        matches!(self, RewardTerm::AnswerRight | RewardTerm::Luck)
    }
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
        self.sums(|_| true)
    }

    /// The part of each turn's reward that outcome terms paid, `[trajectory][turn]`.
    pub fn outcome_totals(&self) -> Vec<Vec<f64>> {
        self.sums(RewardTerm::is_outcome)
    }

    fn sums(&self, counts: fn(RewardTerm) -> bool) -> Vec<Vec<f64>> {
        // Folding from 0.0: the sum of no terms is -0.0.
        let add = |sum: f64, term: &WeightedTerm| if counts(term.term) { sum + term.weight } else { sum };
        self.turns.iter().map(|turns| turns.iter().map(|terms| terms.iter().fold(0.0, add)).collect()).collect()
    }
}

/// What facts are worth in an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Worth {
    /// The terms that count, each at most once, with weights other than 0.
    pub terms: Vec<WeightedTerm>,
    /// For which calls the terms on calls pay.
    pub calls: CallPayment,
    /// How often each of them pays in an episode under [`CallPayment::Capped`].
    pub cap: usize,
}

/// The terms that the configuration turns on, with their weights. Outcome mode has the outcome terms alone, process mode
/// the process terms alone, mixed mode both.
pub fn weighted_terms(config: &ExperimentConfig) -> Worth {
    let terms = [
        (RewardTerm::AnswerRight, config.outcome_weight),
        (RewardTerm::Luck, config.luck_weight),
        (RewardTerm::ValidCall, config.valid_call_weight),
        (RewardTerm::FormatRight, config.format_weight),
        (RewardTerm::Malformed, config.malformed_weight),
        (RewardTerm::RepeatedCall, config.repeated_call_weight),
        (RewardTerm::Turn, config.turn_weight),
        (RewardTerm::StepRight, config.step_right_weight),
        (RewardTerm::CleanResult, config.clean_result_weight),
        (RewardTerm::ErrorResult, config.error_result_weight),
        (RewardTerm::NewPage, config.new_page_weight),
    ];
    let counts = |term: RewardTerm| match config.reward_mode {
        RewardMode::Outcome => term.is_outcome(),
        RewardMode::Process => !term.is_outcome(),
        RewardMode::Mixed => true,
    };
    let used = terms.into_iter().filter(|&(term, weight)| weight != 0.0 && counts(term));
    Worth {
        terms: used.map(|(term, weight)| WeightedTerm { term, weight }).collect(),
        calls: config.call_payment,
        cap: config.call_cap,
    }
}

/// Scores trajectories: each turn's facts, weighted. Which calls are paid depends on the turns before, nothing else does.
pub fn score(trajectories: &[Trajectory], worth: &Worth) -> RewardTable {
    RewardTable { turns: trajectories.iter().map(|trajectory| earned(trajectory, worth)).collect() }
}

impl RewardTerm {
    /// Whether the fact that the term pays for holds.
    fn holds(self, facts: &Facts) -> bool {
        match self {
            RewardTerm::AnswerRight => facts.answer_right,
            RewardTerm::Luck => facts.lucky,
            RewardTerm::ValidCall => facts.valid_call,
            RewardTerm::FormatRight => facts.format_right,
            RewardTerm::Malformed => facts.malformed,
            RewardTerm::RepeatedCall => facts.repeated_call,
            RewardTerm::Turn => true,
            RewardTerm::StepRight => facts.step_right,
            RewardTerm::CleanResult => facts.clean_result,
            RewardTerm::ErrorResult => facts.error_result,
            RewardTerm::NewPage => facts.new_page,
            RewardTerm::Kl => false,
        }
    }

    /// Whether the term pays for calling as such, so that the payment of calls applies to it.
    fn is_for_calls(self) -> bool {
        matches!(self, RewardTerm::ValidCall | RewardTerm::CleanResult | RewardTerm::ErrorResult)
    }
}

/// What each turn of a trajectory earned.
fn earned(trajectory: &Trajectory, worth: &Worth) -> Vec<Vec<WeightedTerm>> {
    // How often each term has paid so far.
    let mut paid = vec![0; worth.terms.len()];
    let mut pays = |index: usize, facts: &Facts| {
        let term = worth.terms[index].term;
        let left = !term.is_for_calls()
            || match worth.calls {
                CallPayment::Every => true,
                CallPayment::Distinct => !facts.repeated_call,
                CallPayment::Capped => paid[index] < worth.cap,
            };
        let pays = term.holds(facts) && left;
        paid[index] += usize::from(pays);
        pays
    };
    let mut turn =
        |facts: &Facts| (0..worth.terms.len()).filter(|&index| pays(index, facts)).map(|index| worth.terms[index]).collect();
    trajectory.turns.iter().map(|entry| turn(&entry.facts)).collect()
}
