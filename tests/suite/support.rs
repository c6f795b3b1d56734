//! What several modules of the suite need.

use std::cell::Cell;
use std::sync::{Arc, OnceLock};

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};
use cubecl::logging::{LaunchObservation, LaunchObserver};
use pollster::block_on;
use turnwise::config::{ExperimentConfig, RewardMode, WarmStart};
use turnwise::device::{Chosen, DeviceChoice, DeviceKind, choose, native_adapter};
use turnwise::environment::{Facts, REGISTRY};
use turnwise::learner::{Learner, TrainingExample, UpdateSettings};
use turnwise::policy::{Policy, Weights};
use turnwise::readback::{read, reads};
use turnwise::rollout::{End, Trajectory, Turn};
use turnwise::trainer::{Rollout, Trainer, initial_policy};
use turnwise::vocabulary::Token;

/// The CPU.
pub fn cpu() -> Device {
    Device::flex()
}

/// The graphics device, or a visible skip of a test.
pub fn gpu(test: &str) -> Option<Device> {
    // A device is opened once: opening it again is an error.
    static CHOSEN: OnceLock<Chosen> = OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| block_on(choose(DeviceChoice::Gpu, native_adapter)));
    if chosen.report.kind != DeviceKind::Webgpu {
        // Written past the capture of test output: a missing device is not a silent pass.
        use std::io::Write;
        let (reason, detail) = (chosen.report.reason, &chosen.report.detail);
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: no adapter ({reason:?} {detail})");
        return None;
    }
    println!("adapter: {}", chosen.report.name);
    Some(chosen.device.clone())
}

/// The devices with ways of our own beside burn's operations: the CPU, and the graphics device where there is one.
pub fn devices(test: &str) -> Vec<Device> {
    std::iter::once(cpu()).chain(gpu(test)).collect()
}

thread_local! {
    static LAUNCHES: Cell<usize> = const { Cell::new(0) };
}

/// Counts the kernels that each thread launches.
struct Launches;

impl LaunchObserver for Launches {
    fn launched(&self, _kernel: &'static str) {
        LAUNCHES.set(LAUNCHES.get() + 1);
    }
}

/// Dispatches and reads of what `run` does on this thread. The observer stays for the life of the process, since there is one place
/// for one and tests run side by side.
pub fn cost(run: impl FnOnce()) -> (usize, usize) {
    static WATCHING: OnceLock<LaunchObservation> = OnceLock::new();
    WATCHING.get_or_init(|| LaunchObservation::new(Arc::new(Launches)));
    let before = (LAUNCHES.get(), reads());
    run();
    (LAUNCHES.get() - before.0, reads() - before.1)
}

/// A rectangle of numbers, `[B, T]`.
pub fn matrix(rows: &[Vec<f64>], device: &Device) -> Tensor<2> {
    let values: Vec<f32> = rows.iter().flatten().map(|&value| value as f32).collect();
    Tensor::from_data(TensorData::new(values, [rows.len(), width(rows)]), device)
}

/// A mask, `[B, T]`: true where a number is not 0.
pub fn mask(rows: &[Vec<f64>], device: &Device) -> Tensor<2, Bool> {
    let values: Vec<bool> = rows.iter().flatten().map(|&value| value != 0.0).collect();
    Tensor::from_data(TensorData::new(values, [rows.len(), width(rows)]), device)
}

/// Whole numbers, `[B, T]`.
pub fn integers(rows: &[Vec<f64>], device: &Device) -> Tensor<2, Int> {
    let values: Vec<i32> = rows.iter().flatten().map(|&value| value as i32).collect();
    Tensor::from_data(TensorData::new(values, [rows.len(), width(rows)]), device)
}

fn width(rows: &[Vec<f64>]) -> usize {
    rows.first().map_or(0, Vec::len)
}

/// All numbers of a tensor, in row-major order. It may be one to differentiate through.
pub fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f64> {
    let count = tensor.dims().iter().product::<usize>();
    let flat = tensor.without_autodiff().reshape([count]);
    block_on(read(flat)).expect("the CPU gives its numbers").into_iter().map(f64::from).collect()
}

/// The numbers of a rectangle, by row.
pub fn rows(tensor: Tensor<2>) -> Vec<Vec<f64>> {
    let width = tensor.dims()[1];
    numbers(tensor).chunks(width).map(<[f64]>::to_vec).collect()
}

/// The only number of a tensor.
pub fn number<const D: usize>(tensor: Tensor<D>) -> f64 {
    let all = numbers(tensor);
    assert_eq!(all.len(), 1, "one number was expected");
    all[0]
}

/// A run small enough for a test: search with a policy of width 32 and one layer.
pub fn tiny() -> ExperimentConfig {
    let mut config = ExperimentConfig::defaults("search", REGISTRY);
    config.d_model = 32;
    config.layers = 1;
    config.heads = 2;
    config.groups = 3;
    config.num_generations = 4;
    config.held_out = 0;
    config.turn_limit = 3;
    config.warm_start = WarmStart::None;
    config
}

/// The same with rewards that a policy with random weights earns now and then, so that there is something to learn from.
pub fn paid(config: ExperimentConfig) -> ExperimentConfig {
    ExperimentConfig { reward_mode: RewardMode::Mixed, valid_call_weight: 0.5, legal_token_mask: true, ..config }
}

/// The policy with the initial weights of a configuration.
pub fn fresh(config: &ExperimentConfig) -> Policy {
    initial_policy(config, &cpu()).expect("initial weights fit")
}

/// The episodes of the first training step under the initial weights.
pub fn sampled(config: &ExperimentConfig) -> Rollout {
    block_on(Trainer::new(config.clone(), &fresh(config)).sample()).expect("sampling works")
}

/// All weights of a policy.
pub fn weights(policy: &Policy) -> Weights {
    block_on(policy.weights()).expect("the CPU gives its numbers")
}

/// Largest difference between the weights of two policies of the same shape.
pub fn distance(a: &Policy, b: &Policy) -> f32 {
    let (a, b) = (weights(a), weights(b));
    let pairs = a.0.iter().zip(&b.0).flat_map(|(a, b)| {
        assert_eq!((&a.name, &a.shape), (&b.name, &b.shape));
        a.values.iter().zip(&b.values)
    });
    pairs
        .map(|(a, b)| if a == b { 0.0 } else { (a - b).abs() })
        .fold(0.0, |largest: f32, x| if x.is_nan() { x } else { largest.max(x) })
}

/// A learner with the settings of a configuration and its initial weights.
pub fn learner(config: &ExperimentConfig) -> Learner {
    Learner::new(&fresh(config), UpdateSettings::of(config))
}

/// A conversation from which tokens the policy sampled: a turn is a run of sampled tokens and what follows it.
pub fn conversation(tokens: Vec<Token>, sampled: &[bool]) -> Trajectory {
    let length = tokens.len();
    let prompt_length = sampled.iter().position(|&sampled| sampled).unwrap_or(length);
    let (mut turns, mut start) = (Vec::new(), prompt_length);
    while start < length {
        let run = |from: usize, value: bool| sampled[from..].iter().position(|&s| s != value).map_or(length, |n| from + n);
        let action_end = run(start, true);
        let end = run(action_end, false);
        turns.push(Turn { start, action_end, end, facts: Facts::default() });
        start = end;
    }
    Trajectory {
        group: 0,
        member: 0,
        tokens,
        prompt_length,
        loss_mask: sampled.to_vec(),
        log_probs: vec![0.0; length],
        turns,
        end: End::Terminated,
        question_type: 0,
        legal: Vec::new(),
    }
}

/// Training examples of sampled episodes with made-up advantages that differ from turn to turn.
pub fn examples(rollout: &Rollout, train_tool_tokens: bool) -> Vec<TrainingExample> {
    let example = |(index, trajectory): (usize, &Trajectory)| {
        let advantages: Vec<f64> = (0..trajectory.turns.len()).map(|turn| ((index * 7 + turn * 3) % 5) as f64 - 2.0).collect();
        TrainingExample::new(trajectory, &advantages, train_tool_tokens)
    };
    rollout.training.iter().enumerate().map(example).collect()
}
