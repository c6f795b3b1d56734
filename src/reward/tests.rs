use proptest::prelude::*;

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
    Facts::clean_call()
}

pub(crate) fn malformed() -> Facts {
    Facts::malformed()
}

/// An answer of the right form, right or wrong.
pub(crate) fn answer(right: bool) -> Facts {
    Facts::answer(true, right)
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
        step_right_weight: 0.015625,
        clean_result_weight: 0.0078125,
        error_result_weight: -0.00390625,
        new_page_weight: 0.001953125,
        luck_weight: 2.0,
        ..ExperimentConfig::default()
    }
}

fn totals(config: &ExperimentConfig, facts: &[Facts]) -> Vec<f64> {
    score(&[trajectory(0, facts)], &weighted_terms(config)).totals().remove(0)
}

#[test]
fn each_fact_pays_its_own_term_at_its_own_turn() {
    let clean = 0.5 + 0.0078125 - 0.03125;
    let cases: [(Facts, f64, f64); 10] = [
        (malformed(), -0.125 - 0.03125, 0.0),
        (call(), clean, 0.0),
        (Facts { repeated_call: true, ..call() }, clean - 0.0625, 0.0),
        (Facts { step_right: true, ..call() }, clean + 0.015625, 0.0),
        (Facts { new_page: true, ..call() }, clean + 0.001953125, 0.0),
        (Facts::failed_call(), 0.5 - 0.00390625 - 0.03125, 0.0),
        (Facts { lucky: true, ..call() }, clean, 2.0),
        (Facts { judged: true, answer_right: true, ..call() }, clean, 1.0),
        (answer(false), 0.25 - 0.03125, 0.0),
        (answer(true), 0.25 - 0.03125, 1.0),
    ];
    let facts = cases.map(|(facts, ..)| facts);
    assert_eq!(totals(&distinct_weights(RewardMode::Process), &facts), cases.map(|(_, process, _)| process));
    assert_eq!(totals(&distinct_weights(RewardMode::Outcome), &facts), cases.map(|(.., outcome)| outcome));
    assert_eq!(totals(&distinct_weights(RewardMode::Mixed), &facts), cases.map(|(_, process, outcome)| process + outcome));
    let table = score(&[trajectory(0, &facts)], &weighted_terms(&distinct_weights(RewardMode::Mixed)));
    assert_eq!(table.outcome_totals(), [cases.map(|(.., outcome)| outcome)]);
}

#[test]
fn a_wrong_answer_earns_its_form_and_a_formless_one_nothing() {
    let config = ExperimentConfig { turn_weight: 0.0, ..distinct_weights(RewardMode::Mixed) };
    assert_eq!(totals(&config, &[answer(false)]), [0.25]);
    assert_eq!(totals(&config, &[Facts::answer(false, false)]), [0.0]);
}

#[test]
fn being_judged_earns_nothing_by_itself() {
    let judged = Facts { judged: true, ..call() };
    assert_eq!(totals(&distinct_weights(RewardMode::Mixed), &[judged]), totals(&distinct_weights(RewardMode::Mixed), &[call()]));
}

#[test]
fn calls_are_paid_every_time_once_per_distinct_call_or_up_to_the_cap_of_each_term() {
    let repeated = Facts { repeated_call: true, ..call() };
    let facts = [call(), repeated, Facts::failed_call(), malformed(), call(), Facts::failed_call()];
    let paid = |call_payment, call_cap| {
        let config = ExperimentConfig {
            reward_mode: RewardMode::Process,
            valid_call_weight: 1.0,
            clean_result_weight: 0.25,
            error_result_weight: -0.5,
            repeated_call_weight: -0.125,
            malformed_weight: -0.0625,
            format_weight: 0.0,
            call_payment,
            call_cap,
            ..ExperimentConfig::default()
        };
        totals(&config, &facts)
    };
    assert_eq!(paid(CallPayment::Every, 1), [1.25, 1.125, 0.5, -0.0625, 1.25, 0.5]);
    assert_eq!(paid(CallPayment::Distinct, 1), [1.25, -0.125, 0.5, -0.0625, 1.25, 0.5], "a repeated call still costs");
    assert_eq!(paid(CallPayment::Capped, 1), [1.25, -0.125, -0.5, -0.0625, 0.0, 0.0]);
    assert_eq!(paid(CallPayment::Capped, 2), [1.25, 1.125, -0.5, -0.0625, 0.0, -0.5]);
    assert_eq!(paid(CallPayment::Capped, 8), paid(CallPayment::Every, 1));
}

#[test]
fn the_cap_starts_anew_with_every_episode() {
    let config = ExperimentConfig { reward_mode: RewardMode::Process, call_payment: CallPayment::Capped, ..Default::default() };
    let config = ExperimentConfig { call_cap: 1, valid_call_weight: 1.0, ..config };
    let episodes = [trajectory(0, &[call(), call()]), trajectory(0, &[call(), call()])];
    assert_eq!(score(&episodes, &weighted_terms(&config)).totals(), [[1.0, 0.0], [1.0, 0.0]]);
}

#[test]
fn t_17_rewards_of_every_turn_stand_in_the_table() {
    let config = ExperimentConfig { reward_mode: RewardMode::Mixed, format_weight: 0.0, ..ExperimentConfig::default() };
    assert_eq!(totals(&config, &[call(), malformed(), call(), answer(true)]), [0.1, 0.0, 0.1, 1.0]);
}

/// The ladder of Search-R1's `qa_em_format`, as far as named terms that add up can say it: an answer 0.8, its form 0.2, the hit
/// (the judged step) 0.1. Two rungs cannot be: a right answer without the form does not occur in our tasks, and a wrong one is
/// worth 0.1 there by being given at all, for which there is no term. And the hit adds to a right answer here, where the ladder
/// pays 1.0 with or without it: a table of cases, not a sum.
#[test]
fn t_51_the_ladder_of_answer_form_and_hit() {
    let config = ExperimentConfig {
        reward_mode: RewardMode::Mixed,
        outcome_weight: 0.8,
        format_weight: 0.2,
        step_right_weight: 0.1,
        valid_call_weight: 0.0,
        ..ExperimentConfig::default()
    };
    let hit = Facts { step_right: true, ..call() };
    let formless = Facts::answer(false, false);
    let ladder: [(&[Facts], f64); 6] = [
        (&[call(), answer(true)], 1.0),
        (&[hit, answer(false)], 0.3),
        (&[call(), answer(false)], 0.2),
        (&[call(), formless], 0.0),
        (&[call(), malformed()], 0.0),
        (&[hit, answer(true)], 1.1),
    ];
    for (facts, expected) in ladder {
        let total: f64 = totals(&config, facts).iter().sum();
        assert!((total - expected).abs() < 1e-12, "{facts:?}: {total}, expected {expected}");
    }
}

#[test]
fn a_turn_lists_the_terms_that_paid_and_only_those() {
    let config = distinct_weights(RewardMode::Mixed);
    let table = score(&[trajectory(0, &[call(), answer(false)])], &weighted_terms(&config));
    let listed: Vec<Vec<RewardTerm>> = table.turns[0].iter().map(|terms| terms.iter().map(|term| term.term).collect()).collect();
    let expected =
        [vec![RewardTerm::ValidCall, RewardTerm::Turn, RewardTerm::CleanResult], vec![RewardTerm::FormatRight, RewardTerm::Turn]];
    assert_eq!(listed, expected);
}

#[test]
fn terms_of_weight_zero_are_left_out() {
    let defaults = ExperimentConfig { reward_mode: RewardMode::Mixed, ..ExperimentConfig::default() };
    let terms: Vec<_> = weighted_terms(&defaults).terms.iter().map(|term| term.term).collect();
    assert_eq!(terms, [RewardTerm::AnswerRight, RewardTerm::ValidCall, RewardTerm::FormatRight]);
    let none = ExperimentConfig { outcome_weight: 0.0, reward_mode: RewardMode::Outcome, ..defaults };
    assert_eq!(weighted_terms(&none).terms, []);
}

#[test]
fn t_04_an_episode_without_turns_earns_nothing_and_keeps_its_place() {
    let terms = weighted_terms(&ExperimentConfig::default());
    let table = score(&[trajectory(0, &[]), trajectory(0, &[answer(true)])], &terms);
    assert_eq!(table.totals(), [vec![], vec![1.0]]);
}

/// Any facts, whether or not a task could state them together.
fn any_facts() -> impl Strategy<Value = Facts> {
    any::<u16>().prop_map(|bits| {
        let bit = |place: u32| bits >> place & 1 == 1;
        Facts {
            answered: bit(0),
            answer_right: bit(1),
            format_right: bit(2),
            valid_call: bit(3),
            repeated_call: bit(4),
            malformed: bit(5),
            step_right: bit(6),
            judged: bit(7),
            clean_result: bit(8),
            error_result: bit(9),
            new_page: bit(10),
            lucky: bit(11),
        }
    })
}

fn any_payment() -> impl Strategy<Value = (CallPayment, usize)> {
    (prop_oneof![Just(CallPayment::Every), Just(CallPayment::Distinct), Just(CallPayment::Capped)], 1..4_usize)
}

/// A configuration whose process weights are `process` times one set of weights, and its outcome weights `outcome` times another.
fn weighted(outcome: f64, process: f64, (call_payment, call_cap): (CallPayment, usize)) -> ExperimentConfig {
    let base = distinct_weights(RewardMode::Mixed);
    ExperimentConfig {
        outcome_weight: outcome * base.outcome_weight,
        luck_weight: outcome * base.luck_weight,
        valid_call_weight: process * base.valid_call_weight,
        format_weight: process * base.format_weight,
        malformed_weight: process * base.malformed_weight,
        repeated_call_weight: process * base.repeated_call_weight,
        turn_weight: process * base.turn_weight,
        step_right_weight: process * base.step_right_weight,
        clean_result_weight: process * base.clean_result_weight,
        error_result_weight: process * base.error_result_weight,
        new_page_weight: process * base.new_page_weight,
        call_payment,
        call_cap,
        ..base
    }
}

proptest! {
    /// Properties 5 and 6.
    #[test]
    fn without_process_weights_mixed_is_outcome_and_without_outcome_weights_it_is_process(
        facts in proptest::collection::vec(any_facts(), 0..9),
        payment in any_payment(),
    ) {
        for (outcome, process, mode) in [(1.0, 0.0, RewardMode::Outcome), (0.0, 1.0, RewardMode::Process)] {
            let alone = ExperimentConfig { reward_mode: mode, ..weighted(1.0, 1.0, payment) };
            prop_assert_eq!(totals(&weighted(outcome, process, payment), &facts), totals(&alone, &facts));
        }
    }

    /// Property 6: rewards are linear in the weights, hence so is every discounted sum of them.
    #[test]
    fn rewards_are_linear_in_the_weights_of_outcome_and_process(
        facts in proptest::collection::vec(any_facts(), 0..9),
        payment in any_payment(),
        outcome in -2.0..2.0_f64,
        process in -2.0..2.0_f64,
    ) {
        let [of_outcome, of_process] = [(1.0, 0.0), (0.0, 1.0)].map(|(o, p)| totals(&weighted(o, p, payment), &facts));
        let both = totals(&weighted(outcome, process, payment), &facts);
        for ((total, o), p) in both.iter().zip(&of_outcome).zip(&of_process) {
            prop_assert!((total - (outcome * o + process * p)).abs() < 1e-9);
        }
    }

    /// A cap or distinct payment never pays more turns than payment of every call, and pays the first call of its kind.
    #[test]
    fn limited_payment_pays_a_part_of_the_calls(facts in proptest::collection::vec(any_facts(), 0..9), payment in any_payment()) {
        let paid = |payment| score(&[trajectory(0, &facts)], &weighted_terms(&weighted(1.0, 1.0, payment))).turns.remove(0);
        let (all, some) = (paid((CallPayment::Every, 1)), paid(payment));
        for (all, some) in all.iter().zip(&some) {
            prop_assert!(some.iter().all(|term| all.contains(term)));
            let others = |terms: &[WeightedTerm]| terms.iter().filter(|term| !term.term.is_for_calls()).count();
            prop_assert_eq!(others(all), others(some), "terms that do not pay for calls are not limited");
        }
    }
}
