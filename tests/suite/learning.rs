//! Whether anything is learned: two seeds of each task with the default settings, from the warm start that ships with the page.
//! The table over five seeds is in `tests/README.md`.

use pollster::block_on;
use turnwise::config::ExperimentConfig;
use turnwise::environment::REGISTRY;
use turnwise::trainer::{Trainer, shipped_policy};

use crate::support::cpu;

/// Success on the held-out questions that counts as learned.
const GOAL: f64 = 0.9;

/// The first training step at which success on held-out questions reached the goal, counted from 0.
fn steps_to_goal(config: &ExperimentConfig, limit: usize) -> Option<usize> {
    let file = format!("{}/www/public/warm-start/{}.safetensors", env!("CARGO_MANIFEST_DIR"), config.environment);
    let policy = shipped_policy(config, &std::fs::read(file).unwrap(), &cpu()).unwrap();
    let mut trainer = Trainer::new(config.clone(), &policy);
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
