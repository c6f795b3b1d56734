//! Promises of lessons, each with one seed and as few steps as show it. The tables over five seeds are in `tests/README.md`.

use pollster::block_on;
use turnwise::config::ExperimentConfig;
use turnwise::lesson::lesson;
use turnwise::metrics::Report;
use turnwise::trainer::{Trainer, initial_policy};

use crate::learning::warm;
use crate::support::cpu;

/// The first settings of a lesson.
fn first(name: &str) -> ExperimentConfig {
    lesson(name).unwrap().config()
}

/// Those that it is compared with.
fn other(name: &str) -> ExperimentConfig {
    lesson(name).unwrap().other_config().unwrap()
}

/// The reports of the first steps of a run from its shipped warm start.
fn reports(config: &ExperimentConfig, steps: usize) -> Vec<Report> {
    let mut trainer = warm(config);
    (0..steps).map(|_| block_on(trainer.train_step()).unwrap().3).collect()
}

fn best(reports: &[Report]) -> f64 {
    reports.iter().map(|report| report.held_out_success).fold(0.0, f64::max)
}

/// Mean of the last five steps.
fn end(reports: &[Report], of: fn(&Report) -> f64) -> f64 {
    let last = &reports[reports.len() - 5..];
    last.iter().map(of).sum::<f64>() / last.len() as f64
}

#[test]
#[cfg_attr(debug_assertions, ignore = "slow without --release")]
fn a_single_turn_stays_at_the_ceiling_of_guessing() {
    let (single, several) = (best(&reports(&first("single-turn"), 25)), best(&reports(&other("single-turn"), 25)));
    println!("at most {single:.2} in one turn, {several:.2} in several");
    assert!(single < 0.45 && several >= 0.9);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "slow without --release")]
fn without_a_discount_every_question_gets_two_searches() {
    let reports = reports(&first("gamma"), 20);
    let calls: Vec<f64> = reports[19].by_type.iter().map(|kind| kind.calls.expect("every kind of question was asked")).collect();
    println!("calls {calls:.2?}");
    assert!(best(&reports) >= 0.9 && calls.iter().all(|&calls| calls > 1.7));
}

#[test]
#[cfg_attr(debug_assertions, ignore = "slow without --release")]
fn without_the_loss_mask_long_documents_spoil_the_policy() {
    let (on, off) = (reports(&first("loss-mask"), 16), reports(&other("loss-mask"), 16));
    println!(
        "mask on: at most {:.2}; off: at most {:.2}, {:.2} in the end",
        best(&on),
        best(&off),
        end(&off, |r| r.held_out_success)
    );
    assert!(best(&on) >= 0.9);
    assert!(best(&off) < 0.75 && end(&off, |report| report.held_out_success) < off[0].held_out_success);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "slow without --release")]
fn a_policy_that_is_paid_for_calls_alone_stops_answering() {
    let reports = reports(&first("calling"), 20);
    let (success, calls) = (end(&reports, |report| report.held_out_success), end(&reports, |report| report.calls));
    println!("success {success:.2}, {calls:.2} calls, return {:.2}", reports[19].mean_return);
    assert!(success < 0.05 && calls > 4.5 && reports[19].mean_return > reports[0].mean_return + 0.2);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "slow without --release")]
fn a_second_search_that_was_never_shown_is_not_found() {
    let (never, few) = (best(&reports(&first("demonstrations"), 25)), best(&reports(&other("demonstrations"), 40)));
    println!("never shown: at most {never:.2}; one in twenty: {few:.2}");
    assert!(never < 0.75 && few >= 0.9);
}

#[test]
fn without_a_warm_start_no_group_has_signal() {
    let config = ExperimentConfig { held_out: 0, ..first("from-scratch") };
    let mut trainer = Trainer::new(config.clone(), &initial_policy(&config, &cpu()).unwrap());
    let report = block_on(trainer.train_step()).unwrap().3;
    assert_eq!((report.train_success, report.no_signal_groups), (0.0, 1.0));
}
