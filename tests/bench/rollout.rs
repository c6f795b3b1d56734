//! `cargo bench --bench rollout`: the rollout of the default search task, and 64 decoded tokens, on the graphics device.
//!
//! Two tables. First seconds, dispatches and reads of one rollout of a training step, by burn's operations and by the kernels,
//! taken in turn; then tokens per second of the decode kernel for 8 to 1,024 rows with the fraction of the bound that memory
//! bandwidth sets (weights once per token of all rows and the cache of every row once per token, at the bandwidth of a copy, which is
//! measured first). On a GPU all of it takes less than a minute. `TURNWISE_BENCH_STEPS` says how many rollouts (5);
//! `TURNWISE_TILE=LANES,UNITS` tries another tile in the second table.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use burn::tensor::{Device, Tensor};
use cubecl::logging::{LaunchObservation, LaunchObserver};
use pollster::block_on;
use turnwise::config::ExperimentConfig;
use turnwise::device::{DeviceChoice, DeviceKind, choose, native_adapter};
use turnwise::environment::{self, REGISTRY};
use turnwise::kernel::{Decoder, Home, Start, Tile};
use turnwise::policy::{Policy, PolicyConfig, Weights};
use turnwise::readback::{read, reads};
use turnwise::rollout::{Episode, Origin, Prefix, Sampling, roll_out};
use turnwise::seed::{Purpose, RootSeed};
use turnwise::trainer::{initial_policy, shipped_policy};

/// Kernels launched so far.
#[derive(Default)]
struct Launches(AtomicUsize);

impl LaunchObserver for Launches {
    fn launched(&self, _kernel: &'static str) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn main() {
    let chosen = block_on(choose(DeviceChoice::Gpu, native_adapter));
    if chosen.report.kind != DeviceKind::Webgpu {
        println!("no graphics device: {:?} {}", chosen.report.reason, chosen.report.detail);
        return;
    }
    println!("{}", chosen.report.name);
    let launches = Arc::new(Launches::default());
    let _watching = LaunchObservation::new(launches.clone());
    rollouts(&chosen.device, &launches);
    tokens(&chosen.device);
}

fn quartiles(mut values: Vec<f64>) -> [f64; 3] {
    values.sort_by(f64::total_cmp);
    [0.25, 0.5, 0.75].map(|q| values[((values.len() - 1) as f64 * q).round() as usize])
}

/// The episodes of a training step of a configuration.
fn episodes(config: &ExperimentConfig) -> Vec<Episode> {
    let root = RootSeed(config.seed);
    let group = |group: usize| {
        let mut environment = environment::create(config);
        let prompt = environment.reset(root.draws(Purpose::Question, 0, group as u32, 0));
        (0..config.num_generations).map(move |member| Episode {
            group,
            member,
            environment: environment.boxed_clone(),
            origin: Origin {
                question: root.draws(Purpose::Question, 0, group as u32, 0),
                tool: root.draws(Purpose::Tool, 0, group as u32, member as u32),
            },
            prefix: Prefix::prompt(prompt.clone()),
            sampling: root.draws(Purpose::SampleToken, 0, group as u32, member as u32),
            tool: root.draws(Purpose::Tool, 0, group as u32, member as u32),
        })
    };
    (0..config.groups).flat_map(group).collect()
}

fn rollouts(device: &Device, launches: &Launches) {
    let steps = std::env::var("TURNWISE_BENCH_STEPS").ok().and_then(|steps| steps.parse().ok()).unwrap_or(5);
    let config = ExperimentConfig::defaults("search", REGISTRY);
    let shipped = std::fs::read("www/public/warm-start/search.safetensors").ok();
    let policy = shipped.and_then(|file| shipped_policy(&config, &file, device).ok());
    let policy = policy.unwrap_or_else(|| initial_policy(&config, device).unwrap_or_else(|error| panic!("{error}")));
    println!("\n| decoding | first s | s/rollout median | quartiles | dispatches | reads | turns | sampled tokens/s |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    let mut rows = [true, false].map(|kernels| (kernels, Vec::new(), [0; 4]));
    for _ in 0..=steps {
        for (kernels, seconds, counts) in &mut rows {
            let sampling = Sampling { kernels: *kernels, ..Sampling::of(&config) };
            let before = (launches.0.load(Ordering::Relaxed), reads());
            let start = Instant::now();
            let played = block_on(roll_out(&policy, episodes(&config), &sampling)).unwrap_or_else(|error| panic!("{error}"));
            seconds.push(start.elapsed().as_secs_f64());
            let turns = played.iter().map(|episode| episode.turns.len()).max().unwrap_or(0);
            let sampled = played.iter().map(|episode| episode.sampled_tokens()).sum();
            *counts = [launches.0.load(Ordering::Relaxed) - before.0, reads() - before.1, turns, sampled];
        }
    }
    for (kernels, seconds, [dispatches, reads, turns, sampled]) in rows {
        let name = if kernels { "kernels" } else { "burn's operations" };
        let [low, median, high] = quartiles(seconds[1..].to_vec());
        let rate = sampled as f64 / median;
        let first = seconds[0];
        println!("| {name} | {first:.2} | {median:.4} | {low:.4}-{high:.4} | {dispatches} | {reads} | {turns} | {rate:.0} |");
    }
}

/// Bytes per second of a copy of 128 MiB, reading and writing counted.
fn bandwidth(device: &Device) -> f64 {
    let length = 32 << 20;
    let source = Tensor::<1>::ones([length], device);
    let run = || {
        let start = Instant::now();
        let copies = (0..8).fold(source.clone(), |copy, _| copy.add_scalar(1.0));
        block_on(read(copies.slice(0..1))).unwrap_or_else(|error| panic!("{error}"));
        8.0 * 2.0 * 4.0 * length as f64 / start.elapsed().as_secs_f64()
    };
    (0..4).map(|_| run()).fold(0.0, f64::max)
}

fn tokens(device: &Device) {
    const TOKENS: usize = 64;
    let bandwidth = bandwidth(device);
    println!("\nbandwidth of a copy: {:.1} GB/s", bandwidth / 1e9);
    let tile = std::env::var("TURNWISE_TILE").ok().and_then(|tile| {
        let (lanes, units) = tile.split_once(',')?;
        Some(Tile { lanes: lanes.parse().ok()?, units: units.parse().ok()? })
    });
    let most: usize = std::env::var("TURNWISE_BENCH_ROWS").ok().and_then(|rows| rows.parse().ok()).unwrap_or(1024);
    println!(
        "\n| d | layers | rows | lanes, units | first s | s for {TOKENS} tokens, median | quartiles | tokens/s | of the bound |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for (d_model, layers) in [(64, 2), (128, 4)] {
        let mut config = ExperimentConfig::defaults("search", REGISTRY);
        (config.d_model, config.layers, config.context_length) = (d_model, layers, TOKENS + 1);
        let shape = PolicyConfig { vocabulary: 64, ..PolicyConfig::of(&config) };
        let weights = Weights::initial(&shape, RootSeed(1));
        let policy: Policy = shape.init(device).with_weights(&weights).unwrap_or_else(|error| panic!("{error}"));
        let mut rows = 8;
        while rows <= most {
            let Some(decoder) = Decoder::new(&policy, rows, TOKENS + 1, None, tile) else { break };
            let tile = decoder.tile();
            let start = |row: usize| Start {
                home: Home { row, origin: row, shared: 0 },
                slot: 0,
                token: (row % 64) as u8,
                most: TOKENS,
                uniforms: (0..TOKENS)
                    .map(|t| RootSeed(2).draws(Purpose::SampleToken, 0, 0, row as u32).at(t as u32) >> 8)
                    .collect(),
            };
            let starts: Vec<Start> = (0..rows).map(start).collect();
            let run = |_| {
                let start = Instant::now();
                let drawn = decoder.decode(&starts, TOKENS, u32::MAX, 1.0).map(|drawn| block_on(read(drawn)));
                assert!(matches!(drawn, Some(Ok(_))), "the device decodes");
                start.elapsed().as_secs_f64()
            };
            let seconds: Vec<f64> = (0..6).map(run).collect();
            let [low, median, high] = quartiles(seconds[1..].to_vec());
            let cache = (TOKENS + 1) as f64 / 2.0 * (layers * 2 * d_model * 4) as f64;
            let bound = TOKENS as f64 * (4.0 * weights.count() as f64 + rows as f64 * cache) / bandwidth;
            println!(
                "| {d_model} | {layers} | {rows} | {}, {} | {:.2} | {median:.4} | {low:.4}-{high:.4} | {:.0} | {:.1} % |",
                tile.lanes,
                tile.units,
                seconds[0],
                (rows * TOKENS) as f64 / median,
                100.0 * bound / median
            );
            rows *= 2;
        }
    }
}
