use super::*;
use crate::rollout::{End, Turn};

/// A trajectory of three-token actions without tool results, with the given facts turn by turn.
pub(crate) fn trajectory(group: usize, facts: &[Facts]) -> Trajectory {
    let length = 3 * facts.len();
    let turn = |(index, &facts): (usize, &Facts)| Turn { start: 3 * index, action_end: 3 * index + 3, end: 3 * index + 3, facts };
    Trajectory {
        group,
        member: 0,
        tokens: vec![0; length],
        prompt_length: 0,
        loss_mask: vec![true; length],
        log_probs: vec![0.0; length],
        turns: facts.iter().enumerate().map(turn).collect(),
        end: End::Terminated,
        question_type: 0,
        legal: Vec::new(),
    }
}

pub(crate) fn call() -> Facts {
    Facts { valid_call: true, ..Facts::default() }
}

pub(crate) fn malformed() -> Facts {
    Facts { malformed: true, ..Facts::default() }
}

/// An answer of the right form, right or wrong.
pub(crate) fn answer(right: bool) -> Facts {
    Facts { answered: true, format_right: true, answer_right: right, ..Facts::default() }
}

/// A configuration in which every term has a weight that no sum of others gives.
fn distinct_weights(mode: RewardMode) -> ExperimentConfig {
    ExperimentConfig {
        reward_mode: mode,
        outcome_weight: 1.0,
        valid_call_weight: 0.5,
        format_weight: 0.25,
        malformed_weight: -0.125,
        repeated_call_weight: -0.0625,
        turn_weight: -0.03125,
        ..ExperimentConfig::default()
    }
}

fn totals(config: &ExperimentConfig, facts: &[Facts]) -> Vec<f64> {
    score(&[trajectory(0, facts)], &weighted_terms(config)).totals().remove(0)
}

#[test]
fn each_fact_pays_its_own_term_at_its_own_turn() {
    let repeated = Facts { repeated_call: true, ..call() };
    let facts = [malformed(), call(), repeated, answer(true)];
    assert_eq!(totals(&distinct_weights(RewardMode::Mixed), &facts), [-0.15625, 0.46875, 0.40625, 1.21875]);
    assert_eq!(totals(&distinct_weights(RewardMode::Process), &facts), [-0.15625, 0.46875, 0.40625, 0.21875]);
    assert_eq!(totals(&distinct_weights(RewardMode::Outcome), &facts), [0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn a_wrong_answer_earns_its_form_and_a_formless_one_nothing() {
    let config = ExperimentConfig { turn_weight: 0.0, ..distinct_weights(RewardMode::Mixed) };
    assert_eq!(totals(&config, &[answer(false)]), [0.25]);
    assert_eq!(totals(&config, &[Facts { answered: true, ..Facts::default() }]), [0.0]);
}

#[test]
fn facts_without_a_term_earn_nothing() {
    let judged = Facts { step_right: true, ..call() };
    assert_eq!(totals(&distinct_weights(RewardMode::Mixed), &[judged]), totals(&distinct_weights(RewardMode::Mixed), &[call()]));
}

#[test]
fn a_turn_lists_the_terms_that_paid_and_only_those() {
    let config = distinct_weights(RewardMode::Mixed);
    let table = score(&[trajectory(0, &[call(), answer(false)])], &weighted_terms(&config));
    let listed: Vec<Vec<RewardTerm>> = table.turns[0].iter().map(|terms| terms.iter().map(|term| term.term).collect()).collect();
    assert_eq!(listed, [[RewardTerm::ValidCall, RewardTerm::Turn], [RewardTerm::FormatRight, RewardTerm::Turn]]);
}

#[test]
fn terms_of_weight_zero_are_left_out() {
    let defaults = ExperimentConfig { reward_mode: RewardMode::Mixed, ..ExperimentConfig::default() };
    let terms: Vec<_> = weighted_terms(&defaults).iter().map(|term| term.term).collect();
    assert_eq!(terms, [RewardTerm::AnswerRight, RewardTerm::ValidCall, RewardTerm::FormatRight]);
    let none = ExperimentConfig { outcome_weight: 0.0, reward_mode: RewardMode::Outcome, ..defaults };
    assert_eq!(weighted_terms(&none), []);
}

#[test]
fn t_04_an_episode_without_turns_earns_nothing_and_keeps_its_place() {
    let terms = weighted_terms(&ExperimentConfig::default());
    let table = score(&[trajectory(0, &[]), trajectory(0, &[answer(true)])], &terms);
    assert_eq!(table.totals(), [vec![], vec![1.0]]);
}
