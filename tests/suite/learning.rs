//! Whether anything is learned. Slow, hence run on request: `cargo test --release --test suite -- --ignored learning`.

use pollster::block_on;
use turnwise::config::ExperimentConfig;
use turnwise::environment::REGISTRY;
use turnwise::trainer::{Trainer, imitation};

use crate::support::cpu;

/// Held-out success that counts as learned, and the training steps in which it has to be reached.
const GOAL: (f64, usize) = (0.9, 25);

/// The training step at which success on held-out questions reached the goal, after a live warm start.
fn steps_to_goal(config: &ExperimentConfig) -> Option<usize> {
    let mut warm = imitation(config, &cpu()).unwrap();
    while block_on(warm.advance()).unwrap().is_some() {}
    let mut trainer = Trainer::new(config.clone(), &warm.policy());
    (0..GOAL.1).find(|_| {
        let report = block_on(trainer.train_step()).unwrap().3;
        println!("seed {}, step {}: held-out {:.3}", config.seed, report.iteration, report.held_out_success);
        report.held_out_success >= GOAL.0
    })
}

#[test]
#[ignore = "slow: trains two seeds with the default settings"]
fn search_is_learned_with_the_default_settings() {
    for seed in [0, 1] {
        let config = ExperimentConfig { seed, ..ExperimentConfig::defaults("search", REGISTRY) };
        let steps = steps_to_goal(&config);
        println!("seed {seed}: goal reached at step {steps:?}");
        assert!(steps.is_some(), "seed {seed}: below {} after {} steps", GOAL.0, GOAL.1);
    }
}
