//! `cargo bench`: seconds per training step of the default search task on the native CPU, and memory over many steps.
//!
//! Prints one table: median, quartiles and share of sampling over `STEPS` steps after `WARM_UP`, without and with held-out
//! questions; then the resident memory every 50 steps over `MEMORY_STEPS` steps. `TURNWISE_BENCH_STEPS` shortens it.

use std::time::Instant;

use turnwise::config::ExperimentConfig;
use turnwise::device::{Chosen, DeviceChoice, choose, native_adapter};
use turnwise::environment::REGISTRY;
use turnwise::trainer::{Trainer, initial_policy, shipped_policy};

const WARM_UP: usize = 3;
const STEPS: usize = 30;
const MEMORY_STEPS: usize = 300;

fn main() {
    let steps = std::env::var("TURNWISE_BENCH_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(STEPS);
    let chosen = pollster::block_on(choose(DeviceChoice::Cpu, native_adapter));
    println!("native CPU, {} threads visible", std::thread::available_parallelism().map_or(1, usize::from));
    println!("| environment | held-out questions | micro-batches | s/step median | quartiles | sampling s | tokens/step |");
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for environment in ["search", "calculator"] {
        for (held_out, micro_batches) in [(0, 1), (0, 2), (0, 4), (0, 8), (128, 4)] {
            let mut config = ExperimentConfig::defaults(environment, REGISTRY);
            (config.held_out, config.micro_batches) = (held_out, micro_batches);
            step_times(config, &chosen, steps);
        }
    }
    if steps >= STEPS {
        memory(&chosen);
    }
}

/// The shipped warm start, so that episodes are as long as they are for a person; initial weights where it is missing.
fn trainer(config: ExperimentConfig, chosen: &Chosen) -> Trainer {
    let shipped = std::fs::read(format!("www/public/warm-start/{}.safetensors", config.environment)).ok();
    let policy = shipped.and_then(|file| shipped_policy(&config, &file, &chosen.device).ok());
    let policy = policy.unwrap_or_else(|| {
        println!("(no shipped warm start: initial weights)");
        initial_policy(&config, &chosen.device).unwrap_or_else(|error| panic!("{error}"))
    });
    Trainer::new(config, &policy)
}

fn step_times(config: ExperimentConfig, chosen: &Chosen, steps: usize) {
    let (environment, held_out, micro_batches) = (config.environment.clone(), config.held_out, config.micro_batches);
    let mut trainer = trainer(config, chosen);
    let (mut seconds, mut sampling, mut tokens) = (Vec::new(), Vec::new(), 0);
    for step in 0..WARM_UP + steps {
        let start = Instant::now();
        let (_, _, _, report) = pollster::block_on(trainer.train_step()).unwrap_or_else(|error| panic!("{error}"));
        if step >= WARM_UP {
            seconds.push(start.elapsed().as_secs_f64());
            sampling.push(report.rollout_seconds);
            tokens += report.tokens;
        }
    }
    let quantile = |values: &mut Vec<f64>, q: f64| {
        values.sort_by(f64::total_cmp);
        values[((values.len() - 1) as f64 * q).round() as usize]
    };
    println!(
        "| {environment} | {held_out} | {micro_batches} | {:.3} | {:.3}-{:.3} | {:.3} | {} |",
        quantile(&mut seconds, 0.5),
        quantile(&mut seconds, 0.25),
        quantile(&mut seconds, 0.75),
        quantile(&mut sampling, 0.5),
        tokens / steps
    );
}

fn memory(chosen: &Chosen) {
    let mut config = ExperimentConfig::defaults("search", REGISTRY);
    config.iterations = MEMORY_STEPS;
    let mut trainer = trainer(config, chosen);
    println!("\n| step | resident memory, MiB |\n| --- | --- |");
    for step in 1..=MEMORY_STEPS {
        pollster::block_on(trainer.train_step()).unwrap_or_else(|error| panic!("{error}"));
        if step % 50 == 0 || step == 5 {
            println!("| {step} | {:.0} |", resident_mebibytes());
        }
    }
}

/// Resident memory of this process; 0 where the system does not tell in this way.
fn resident_mebibytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kilobytes = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).and_then(|rest| rest.split_whitespace().next());
    kilobytes.and_then(|number| number.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}
