//! Whether anything is learned: two seeds of each task with the default settings, from the warm start that ships with the page.
//! The table over five seeds is in `tests/README.md`.

use pollster::block_on;
use turnwise::config::{CreditMethod, ExperimentConfig, RewardMode, TurnBaseline};
use turnwise::environment::{REGISTRY, warm_start_name};
use turnwise::metrics::Report;
use turnwise::trainer::{Trainer, shipped_policy};

use crate::support::cpu;

/// Success on the held-out questions that counts as learned.
const GOAL: f64 = 0.9;

/// A run from the warm start that ships with the page.
pub fn warm(config: &ExperimentConfig) -> Trainer {
    let file = crate::root().join(format!("www/public/warm-start/{}.safetensors", warm_start_name(config)));
    let policy = shipped_policy(config, &std::fs::read(file).unwrap(), &cpu()).unwrap();
    Trainer::new(config.clone(), &policy)
}

/// The first training step at which success on held-out questions reached the goal, counted from 0.
fn steps_to_goal(config: &ExperimentConfig, limit: usize) -> Option<usize> {
    let mut trainer = warm(config);
    (0..=limit).find(|_| {
        let report = block_on(trainer.train_step()).unwrap().3;
        assert!(report.iteration > 0 || report.held_out_success < 0.75, "the warm start has much to learn");
        report.held_out_success >= GOAL
    })
}

fn learns(environment: &str, limit: usize) {
    for seed in [0, 1] {
        let config = ExperimentConfig { seed, ..ExperimentConfig::defaults(environment, REGISTRY) };
        let steps = steps_to_goal(&config, limit);
        println!("{environment}, seed {seed}: goal reached at step {steps:?}");
        assert!(steps.is_some(), "{environment}, seed {seed}: below {GOAL} after {limit} steps");
    }
}

#[test]
#[cfg_attr(debug_assertions, ignore = "slow without --release")]
fn search_is_learned_within_25_steps() {
    learns("search", 25);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "slow without --release")]
fn calculator_is_learned_within_45_steps() {
    learns("calculator", 45);
}

#[test]
#[cfg_attr(debug_assertions, ignore = "slow without --release")]
fn code_is_learned_within_35_steps() {
    learns("code", 35);
}

/// Trains on a process reward that a clean look earns: the return must rise by `more`, success must fall.
fn is_hacked(config: &ExperimentConfig, more: f64) {
    let mut trainer = warm(config);
    let reports: Vec<Report> = (0..30).map(|_| block_on(trainer.train_step()).unwrap().3).collect();
    let mean = |of: fn(&Report) -> f64, reports: &[Report]| reports.iter().map(of).sum::<f64>() / reports.len() as f64;
    let (first, last) = (&reports[..1], &reports[25..]);
    let (paid, earned) = (mean(|report| report.mean_return, first), mean(|report| report.mean_return, last));
    let (before, after) = (mean(|report| report.held_out_success, first), mean(|report| report.held_out_success, last));
    println!("return {paid:.2} to {earned:.2}, success {before:.2} to {after:.2}");
    assert!(earned > paid + more && after < before - 0.03);
}

/// A clean result pays as much as a right answer and an error costs as much.
#[test]
#[cfg_attr(debug_assertions, ignore = "slow without --release")]
fn a_bad_process_reward_is_hacked() {
    let config = ExperimentConfig {
        reward_mode: RewardMode::Mixed,
        clean_result_weight: 1.0,
        error_result_weight: -1.0,
        gamma: 1.0,
        ..ExperimentConfig::defaults("code", REGISTRY)
    };
    is_hacked(&config, 0.1);
}

/// Half as much, but what comes later is discounted: by credit per turn, compared with all turns of the group.
#[test]
#[cfg_attr(debug_assertions, ignore = "slow without --release")]
fn a_milder_process_reward_is_hacked_where_the_future_is_discounted() {
    let config = ExperimentConfig {
        reward_mode: RewardMode::Mixed,
        clean_result_weight: 0.5,
        error_result_weight: -0.5,
        gamma: 0.8,
        credit_method: CreditMethod::ReturnToGo,
        turn_baseline: TurnBaseline::Pooled,
        ..ExperimentConfig::defaults("code", REGISTRY)
    };
    is_hacked(&config, 0.03);
}

/// Where luck stands between decisions, credit per turn learns faster than credit per trajectory.
#[test]
#[cfg_attr(debug_assertions, ignore = "slow without --release")]
fn credit_per_turn_learns_faster_where_luck_intervenes() {
    let steps = |credit_method: CreditMethod, gamma: f64| {
        let config = ExperimentConfig { credit_method, gamma, ..ExperimentConfig::defaults("spin", REGISTRY) };
        let mut trainer = warm(&config);
        (0..40).find(|_| block_on(trainer.train_step()).unwrap().3.held_out_success >= 0.6).unwrap_or(40)
    };
    let (turn, trajectory) = (steps(CreditMethod::ReturnToGo, 0.0), steps(CreditMethod::Grpo, 1.0));
    println!("60 % at step {turn} with credit per turn, {trajectory} with credit per trajectory");
    assert!(turn < trajectory);
}
