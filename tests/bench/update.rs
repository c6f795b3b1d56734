//! `cargo bench --bench update`: seconds and dispatches per update of the default search task on the graphics device, by kernels of our
//! own and by burn's operations, and on the CPU, in one run.
//!
//! Rows differ in width and in the objective. Updates alternate between the paths, so that a busy machine disturbs all of them alike.
//! `TURNWISE_BENCH_STEPS` sets how many updates are timed after one to warm up, `TURNWISE_BENCH_DEVICES` leaves some out.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use cubecl::logging::{LaunchObservation, LaunchObserver};
use pollster::block_on;
use turnwise::config::ExperimentConfig;
use turnwise::device::{Chosen, DeviceChoice, DeviceKind, choose, native_adapter};
use turnwise::environment::REGISTRY;
use turnwise::learner::{Learner, TrainingExample, UpdateSettings};
use turnwise::trainer::{Trainer, initial_policy, shipped_policy};

const STEPS: usize = 5;

thread_local! {
    static LAUNCHES: Cell<usize> = const { Cell::new(0) };
}

struct Launches;

impl LaunchObserver for Launches {
    fn launched(&self, _kernel: &'static str) {
        LAUNCHES.set(LAUNCHES.get() + 1);
    }
}

/// A way of updating, with what it cost so far.
struct Path {
    name: &'static str,
    learner: Learner,
    seconds: Vec<f64>,
    dispatches: usize,
}

fn main() {
    let steps = std::env::var("TURNWISE_BENCH_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(STEPS);
    let only = std::env::var("TURNWISE_BENCH_DEVICES").unwrap_or_else(|_| "kernels,burn,cpu".to_string());
    let (gpu, cpu) = (open(DeviceChoice::Gpu), open(DeviceChoice::Cpu));
    let found = gpu.report.kind == DeviceKind::Webgpu;
    println!("graphics device: {} ({:?}); {} threads visible", gpu.report.name, gpu.report.reason, threads());
    let _watching = LaunchObservation::new(Arc::new(Launches));
    println!("| width | KL | tokens | path | s/update median | quartiles | dispatches | gradient norm |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let widths: Vec<usize> = std::env::var("TURNWISE_BENCH_WIDTHS")
        .map_or_else(|_| vec![64], |widths| widths.split(',').filter_map(|width| width.parse().ok()).collect());
    for width in widths {
        for beta in [0.0, 0.04] {
            let mut config = ExperimentConfig::defaults("search", REGISTRY);
            (config.d_model, config.beta) = (width, beta);
            let policy = |chosen: &Chosen| {
                let shipped = std::fs::read("www/public/warm-start/search.safetensors").ok();
                let policy = shipped.and_then(|file| shipped_policy(&config, &file, &chosen.device).ok());
                policy.unwrap_or_else(|| initial_policy(&config, &chosen.device).unwrap_or_else(|error| panic!("{error}")))
            };
            let examples = examples(&config, &cpu);
            let path = |name: &'static str, chosen: &Chosen, kernels: bool| {
                let learner = Learner::new(&policy(chosen), UpdateSettings { kernels, ..UpdateSettings::of(&config) });
                Path { name, learner, seconds: Vec::new(), dispatches: 0 }
            };
            let mut paths = Vec::new();
            if found && only.contains("kernels") {
                paths.push(path("kernels", &gpu, true));
            }
            if found && only.contains("burn") {
                paths.push(path("burn", &gpu, false));
            }
            if only.contains("cpu") {
                paths.push(path("CPU, burn", &cpu, false));
            }
            measure(&mut paths, &examples, (width, beta), steps);
        }
    }
}

fn open(choice: DeviceChoice) -> Chosen {
    block_on(choose(choice, native_adapter))
}

fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// The episodes of a step, with made-up advantages.
fn examples(config: &ExperimentConfig, cpu: &Chosen) -> Vec<TrainingExample> {
    let config = ExperimentConfig { held_out: 0, ..config.clone() };
    let policy = initial_policy(&config, &cpu.device).unwrap_or_else(|error| panic!("{error}"));
    let rollout = block_on(Trainer::new(config, &policy).sample()).unwrap_or_else(|error| panic!("{error}"));
    let example =
        |(index, trajectory)| TrainingExample::new(trajectory, &vec![(index % 5) as f64 - 2.0; trajectory.turns.len()], false);
    rollout.training.iter().enumerate().map(example).collect()
}

fn measure(paths: &mut [Path], examples: &[TrainingExample], (width, beta): (usize, f64), steps: usize) {
    let tokens: usize = examples.iter().map(|example| example.tokens.len()).sum();
    let mut norms = vec![0.0; paths.len()];
    for step in 0..=steps {
        for (path, norm) in paths.iter_mut().zip(&mut norms) {
            let (start, before) = (Instant::now(), LAUNCHES.get());
            let statistics = block_on(path.learner.update(examples, 0)).unwrap_or_else(|error| panic!("{error}"));
            path.dispatches = LAUNCHES.get() - before;
            *norm = statistics.gradient_norm;
            if step > 0 {
                path.seconds.push(start.elapsed().as_secs_f64());
            }
        }
    }
    for (path, norm) in paths.iter_mut().zip(norms) {
        path.seconds.sort_by(f64::total_cmp);
        let at = |q: f64| path.seconds[((path.seconds.len() - 1) as f64 * q).round() as usize];
        let (median, low, high) = (at(0.5), at(0.25), at(0.75));
        let Path { name, dispatches, .. } = path;
        println!("| {width} | {beta} | {tokens} | {name} | {median:.3} | {low:.3}-{high:.3} | {dispatches} | {norm:.4} |");
    }
}
