//! `cargo bench --bench peers`: the whole training step of the default search task, this crate on the native CPU against PyTorch
//! and JAX on the same machine, in rounds that take turns.
//!
//! All start from the policy that ships with the page and play with a learning rate of 1e-6, so that episodes stay as long as
//! they are: return, success and tokens of a step in the table show that the task is the same. `-- growth` adds width, groups
//! and context length, from random weights, where every episode runs into its limits.
//!
//! The scripts need Python with `tests/bench/requirements.txt`; `TURNWISE_PYTHON` names it (`python3` where it is not set).
//! Whoever is missing is named in a line, and the others are measured. `TURNWISE_BENCH_ROUNDS` shortens it.

mod contender;
mod measure;

use std::path::{Path, PathBuf};

use contender::{Contender, Native, Script, Steps};
use measure::quartiles;
use turnwise::config::ExperimentConfig;
use turnwise::device::{Chosen, DeviceChoice, choose, native_adapter};
use turnwise::environment::REGISTRY;
use turnwise::policy::{Checkpoint, Policy, PolicyConfig, Precision};
use turnwise::trainer::{initial_policy, shipped_policy};

const ROUNDS: usize = 7;
const STEPS_A_ROUND: usize = 3;
const LEARNING_RATE: f64 = 1e-6;
const WARM_START: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/www/public/warm-start/search.safetensors");

fn main() {
    let rounds = std::env::var("TURNWISE_BENCH_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    let chosen = pollster::block_on(choose(DeviceChoice::Cpu, native_adapter));
    println!("{} cores visible; {rounds} rounds of {STEPS_A_ROUND} steps each, in turn", cores());
    println!(
        "| contender | s/step median | quartiles | times as long as native | quartiles | processor s/step | return | success | tokens/step | MiB |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    let config = search(&[]);
    let shipped = std::fs::read(WARM_START).map_err(|error| error.to_string());
    let policy = shipped.and_then(|file| shipped_policy(&config, &file, &chosen.device).map_err(|error| error.to_string()));
    let policy = policy.unwrap_or_else(|error| panic!("{WARM_START}: {error}"));
    compare(&config, &policy, Path::new(WARM_START), rounds);
    if std::env::args().any(|argument| argument == "growth") {
        growth(&chosen, rounds.min(3));
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The search task without held-out questions, which the scripts do not play, with some settings by name.
fn search(changes: &[(&str, usize)]) -> ExperimentConfig {
    let mut config = ExperimentConfig::defaults("search", REGISTRY);
    (config.held_out, config.learning_rate) = (0, LEARNING_RATE);
    for &(name, value) in changes {
        match name {
            "d_model" => config.d_model = value,
            "groups" => config.groups = value,
            "context_length" => config.context_length = value,
            "turn_limit" => config.turn_limit = value,
            _ => config.turn_tokens = value,
        }
    }
    config
}

/// The scripts, and how many threads each may use (all where nothing is said).
const SCRIPTS: [(&str, Option<usize>); 3] = [("grpo_pytorch.py", Some(1)), ("grpo_pytorch.py", None), ("grpo_jax.py", None)];

/// Native, and the scripts; whoever is missing is named.
fn contenders(config: &ExperimentConfig, policy: &Policy, weights: &Path) -> Vec<Box<dyn Contender>> {
    let mut found: Vec<Box<dyn Contender>> = vec![Box::new(Native::new(config, policy))];
    for (file, threads) in SCRIPTS {
        match Script::start(file, config, weights, threads) {
            Ok(script) => found.push(Box::new(script)),
            Err(reason) => println!("(not measured: {file}: {reason})"),
        }
    }
    found
}

/// One row for each contender: all make the same number of steps in every round, one contender after the other.
fn compare(config: &ExperimentConfig, policy: &Policy, weights: &Path, rounds: usize) {
    let mut contenders = contenders(config, policy, weights);
    let mut seen: Vec<Vec<Steps>> = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        for (contender, seen) in contenders.iter_mut().zip(&mut seen) {
            match contender.steps(if round == 0 { 2 } else { STEPS_A_ROUND }) {
                Ok(steps) if round > 0 => seen.push(steps),
                Ok(_) => {} // The first round warms up: compilers, allocators.
                Err(reason) => println!("({}: {reason})", contender.name()),
            }
        }
    }
    let native: Vec<f64> = seen[0].iter().map(|steps| quartiles(&steps.seconds)[1]).collect();
    for (contender, seen) in contenders.iter().zip(&seen) {
        row(&contender.name(), seen, &native);
    }
}

/// Medians over all steps; the ratio is that of medians within a round, and its median over rounds.
fn row(name: &str, seen: &[Steps], native: &[f64]) {
    let all: Vec<f64> = seen.iter().flat_map(|steps| steps.seconds.clone()).collect();
    let ratios: Vec<f64> = seen.iter().zip(native).map(|(steps, native)| quartiles(&steps.seconds)[1] / native).collect();
    let ([low, middle, high], [ratio_low, ratio, ratio_high]) = (quartiles(&all), quartiles(&ratios));
    let mean = |of: fn(&Steps) -> f64| seen.iter().map(of).sum::<f64>() / seen.len().max(1) as f64;
    println!(
        "| {name} | {middle:.3} | {low:.3}-{high:.3} | {ratio:.2} | {ratio_low:.2}-{ratio_high:.2} | {:.3} | {:.3} | {:.3} | {:.0} | {:.0} |",
        mean(|steps| steps.processor),
        mean(|steps| steps.mean_return),
        mean(|steps| steps.success),
        mean(|steps| steps.tokens),
        seen.last().map_or(0.0, |steps| steps.mebibytes),
    );
}

/// One table for each of width, groups and context length (with more and longer turns to fill it).
fn growth(chosen: &Chosen, rounds: usize) {
    let shapes: [&[(&str, usize)]; 9] = [
        &[("d_model", 32)],
        &[("d_model", 64)],
        &[("d_model", 128)],
        &[("d_model", 256)],
        &[("groups", 4)],
        &[("groups", 32)],
        &[("groups", 64)],
        &[("context_length", 80), ("turn_limit", 8), ("turn_tokens", 6)],
        &[("context_length", 128), ("turn_limit", 8), ("turn_tokens", 12)],
    ];
    for shape in shapes {
        let config = search(shape);
        let policy = initial_policy(&config, &chosen.device).unwrap_or_else(|error| panic!("{error}"));
        let words: Vec<String> = shape.iter().map(|(name, value)| format!("{name} {value}")).collect();
        println!("| **{}**, random weights |", words.join(", "));
        let file = save(&config, &policy);
        compare(&config, &policy, &file, rounds);
        std::fs::remove_file(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

/// The weights as a file that the scripts read.
fn save(config: &ExperimentConfig, policy: &Policy) -> PathBuf {
    let weights = pollster::block_on(policy.weights()).unwrap_or_else(|error| panic!("{error}"));
    let checkpoint = Checkpoint { policy: PolicyConfig::of(config), experiment: String::new(), weights, training: None };
    let bytes = checkpoint.to_bytes(Precision::Full).unwrap_or_else(|error| panic!("{error}"));
    let file = std::env::temp_dir().join(format!("turnwise-peers-{}.safetensors", std::process::id()));
    std::fs::write(&file, bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    file
}
