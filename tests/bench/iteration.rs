//! `cargo bench`: seconds per training step of the default search task on the native CPU, and memory over many steps.
//!
//! Prints one table: median, quartiles and share of sampling over `STEPS` steps after `WARM_UP`, without and with held-out
//! questions; then the resident memory every 50 steps over `MEMORY_STEPS` steps. `TURNWISE_BENCH_STEPS` shortens the
//! table, and with it leaves out memory; `TURNWISE_BENCH_MEMORY_STEPS` says over how many steps memory is watched.

mod measure;

use std::time::Instant;

use measure::{quartiles, resident_mebibytes};
use turnwise::config::ExperimentConfig;
use turnwise::device::{Chosen, DeviceChoice, choose, native_adapter};
use turnwise::environment::REGISTRY;
use turnwise::trainer::{Trainer, initial_policy, shipped_policy};

const WARM_UP: usize = 3;
const STEPS: usize = 30;
const MEMORY_STEPS: usize = 300;

fn main() {
    let number = |name: &str| std::env::var(name).ok().and_then(|steps| steps.parse::<usize>().ok());
    let (steps, watched) = (number("TURNWISE_BENCH_STEPS").unwrap_or(STEPS), number("TURNWISE_BENCH_MEMORY_STEPS"));
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
    if steps >= STEPS || watched.is_some() {
        memory(&chosen, watched.unwrap_or(MEMORY_STEPS));
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
    let [low, middle, high] = quartiles(&seconds);
    println!(
        "| {environment} | {held_out} | {micro_batches} | {middle:.3} | {low:.3}-{high:.3} | {:.3} | {} |",
        quartiles(&sampling)[1],
        tokens / steps
    );
}

fn memory(chosen: &Chosen, steps: usize) {
    let mut config = ExperimentConfig::defaults("search", REGISTRY);
    config.iterations = steps;
    let mut trainer = trainer(config, chosen);
    println!("\n| step | resident memory, MiB |\n| --- | --- |");
    for step in 1..=steps {
        pollster::block_on(trainer.train_step()).unwrap_or_else(|error| panic!("{error}"));
        if step % 50 == 0 || step == 5 {
            println!("| {step} | {:.0} |", resident_mebibytes());
        }
    }
}
