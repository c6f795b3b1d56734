//! `cargo bench --bench true_credit`: what measuring true credit costs, by continuations, groups and turns, on the native CPU.
//!
//! One table: distinct states, continuations played and seconds, from the warm starts that ship with the page.

use std::time::Instant;

use turnwise::config::ExperimentConfig;
use turnwise::device::{Chosen, DeviceChoice, choose, native_adapter};
use turnwise::environment::REGISTRY;
use turnwise::trainer::{Run, initial_policy, shipped_policy};
use turnwise::web::protocol::Phase;

fn main() {
    let chosen = pollster::block_on(choose(DeviceChoice::Cpu, native_adapter));
    println!("native CPU, {} threads visible", std::thread::available_parallelism().map_or(1, usize::from));
    println!("| environment | groups of 16 | turn limit | K | turns | states | s | states x K per s |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- |");
    for (environment, turn_limits) in [("search", [2, 5, 8]), ("spin", [2, 4, 6])] {
        let most = turn_limits[2];
        for rolls in [8, 32, 128] {
            row(environment, 12, most, rolls, &chosen);
        }
        for groups in [3, 6, 24] {
            row(environment, groups, most, 32, &chosen);
        }
        for turn_limit in [turn_limits[0], turn_limits[1]] {
            row(environment, 12, turn_limit, 32, &chosen);
        }
    }
}

fn row(environment: &str, groups: usize, turn_limit: usize, rolls: usize, chosen: &Chosen) {
    let mut config = ExperimentConfig::defaults(environment, REGISTRY);
    (config.groups, config.num_generations, config.turn_limit, config.held_out) = (groups, 16, turn_limit, 0);
    let shipped = std::fs::read(format!("www/public/warm-start/{environment}.safetensors")).ok();
    let policy = shipped.and_then(|file| shipped_policy(&config, &file, &chosen.device).ok());
    let policy = policy.unwrap_or_else(|| initial_policy(&config, &chosen.device).unwrap_or_else(|error| panic!("{error}")));
    let mut run = Run::new(config, &policy);
    while pollster::block_on(run.advance()).unwrap_or_else(|error| panic!("{error}")).done != Phase::Credit {}
    let Some(mut measurement) = run.true_credit() else { return };
    let start = Instant::now();
    pollster::block_on(measurement.advance(rolls)).unwrap_or_else(|error| panic!("{error}"));
    let measured = measurement.measured();
    let accuracy = measurement.accuracy(&measured);
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "| {environment} | {groups} | {turn_limit} | {rolls} | {} | {} | {seconds:.2} | {:.0} |",
        accuracy.turns,
        accuracy.states,
        (accuracy.states * rolls) as f64 / seconds
    );
}
