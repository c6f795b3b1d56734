//! The recorded runs that the page shows before anything was trained: one of each task, still what the code gives.

use pollster::block_on;
use serde_json::Value;
use turnwise::config::{self, ExperimentConfig};
use turnwise::environment::REGISTRY;
use turnwise::vocabulary::Token;

use crate::learning::warm;

/// The recording of a task, and its settings.
fn recording(environment: &str) -> (Value, ExperimentConfig) {
    let text = std::fs::read_to_string(crate::root().join(format!("www/public/recorded/{environment}.json")))
        .unwrap_or_else(|error| panic!("{environment}: {error}; it is made by `turnwise train --record`"));
    let file: Value = serde_json::from_str(&text).unwrap();
    let config = config::from_json(&file["config"].to_string(), REGISTRY).config;
    (file, config)
}

fn tokens(trajectory: &Value) -> Vec<Token> {
    serde_json::from_value(trajectory["tokens"].clone()).unwrap()
}

#[test]
fn every_task_has_a_recording_of_its_default_settings() {
    for declaration in REGISTRY {
        let (file, config) = recording(declaration.name);
        let defaults = ExperimentConfig { seed: config.seed, ..ExperimentConfig::defaults(declaration.name, REGISTRY) };
        assert_eq!(config, defaults, "{}", declaration.name);
        assert_eq!(file["reports"].as_array().unwrap().len(), config.iterations, "{}: a whole run", declaration.name);
        assert!(file["made_with"].as_str().unwrap().contains(&format!("env={}", declaration.name)));
        assert!(!file["batches"].as_array().unwrap().is_empty() && !file["measured"].as_array().unwrap().is_empty());
    }
}

/// The episodes of the first step, sampled again from the shipped warm start. Processors may round differently, and a token that
/// turns on that changes the rest of its episode: one in ten may.
#[test]
#[cfg_attr(debug_assertions, ignore = "slow without --release")]
fn recordings_begin_with_what_the_shipped_policy_samples() {
    for declaration in REGISTRY {
        let (file, config) = recording(declaration.name);
        let recorded: Vec<_> = file["batches"][0]["trajectories"].as_array().unwrap().iter().map(tokens).collect();
        let sampled = block_on(warm(&config).sample()).unwrap().training;
        let alike = recorded.iter().zip(&sampled).filter(|(tokens, trajectory)| **tokens == trajectory.tokens).count();
        println!("{}: {alike} of {} episodes alike", declaration.name, recorded.len());
        assert!(10 * alike >= 9 * recorded.len(), "{}: record it again", declaration.name);
    }
}
