//! `cargo bench --no-default-features --bench recredit`: milliseconds to credit 256 frozen search episodes again, per method, and
//! to judge every method against measured credit. Needs no tensors.
//!
//! The episodes are demonstrations, 16 to a group. Members of a group then differ in their question, so that states are told apart
//! more often than in groups that were sampled: the comparison of states has more to do, not less.

use std::hint::black_box;
use std::time::Instant;

use turnwise::config::{CreditMethod, ExperimentConfig, RewardMode};
use turnwise::credit::{Evidence, METHODS, Prefixes, ReRolls, TrueCredit, assign};
use turnwise::environment::REGISTRY;
use turnwise::metrics::MethodAccuracy;
use turnwise::reward::{RewardTable, score, weighted_terms};
use turnwise::rollout::{GroupInfo, Trajectory, demonstrate};
use turnwise::seed::RootSeed;
use turnwise::web::frozen::FrozenBatch;
use turnwise::web::protocol::Batch;

const EPISODES: usize = 256;
const GROUP: usize = 16;
const REPEATS: usize = 200;

fn main() {
    let mut config = ExperimentConfig::defaults("search", REGISTRY);
    (config.demonstrations, config.reward_mode) = (EPISODES, RewardMode::Mixed);
    let mut trajectories = demonstrate(&config);
    trajectories.iter_mut().enumerate().for_each(|(index, trajectory)| trajectory.group = index / GROUP);
    let turns: usize = trajectories.iter().map(|trajectory| trajectory.turns.len()).sum();
    println!("{EPISODES} trajectories, {turns} turns; {REPEATS} repeats");
    println!("| what | ms, median | ms, 90 % |\n| --- | --- | --- |");
    let values: Vec<Vec<f64>> = trajectories.iter().map(|trajectory| vec![0.5; trajectory.turns.len()]).collect();
    for &method in METHODS {
        let config = ExperimentConfig { credit_method: method, ..config.clone() };
        let again = || {
            let rewards = score(&trajectories, &weighted_terms(&config));
            assign(&Evidence::of(&trajectories, &rewards, Some(values.clone())), &config)
        };
        row(&format!("score, evidence, assign: {}", word(method)), REPEATS, again);
    }
    let frozen = frozen(&trajectories, values.clone());
    row("the advantages of all methods", REPEATS, || frozen.recredit_all(&config));
    row("provenance of a token", REPEATS, || frozen.provenance(&config, EPISODES / 2, trajectories[EPISODES / 2].turns[0].start));

    let rewards = score(&trajectories, &weighted_terms(&config));
    let measured = measured(&trajectories, &rewards, config.gamma);
    let credits = frozen.recredit_all(&config);
    let judge = || -> Vec<MethodAccuracy> {
        let assigned = credits.iter().map(|credit| (credit.method, credit.advantages.clone())).collect();
        MethodAccuracy::of_all(assigned, &trajectories, &measured, RootSeed(config.seed))
    };
    row("accuracy of all methods, with intervals", REPEATS / 10, judge);
}

/// Times a call and prints its row.
fn row<T>(name: &str, repeats: usize, call: impl Fn() -> T) {
    black_box(call());
    let time = |_| {
        let start = Instant::now();
        black_box(call());
        start.elapsed().as_secs_f64() * 1e3
    };
    let mut times: Vec<f64> = (0..repeats).map(time).collect();
    times.sort_by(f64::total_cmp);
    println!("| {name} | {:.3} | {:.3} |", times[repeats / 2], times[repeats * 9 / 10]);
}

/// The word of a method in links.
fn word(method: CreditMethod) -> String {
    serde_json::to_value(method).ok().and_then(|word| word.as_str().map(str::to_string)).unwrap_or_default()
}

fn frozen(trajectories: &[Trajectory], values: Vec<Vec<f64>>) -> FrozenBatch {
    let group = |_| GroupInfo { prompt: Vec::new(), question_type: 0, hidden_state: String::new() };
    let batch = Batch {
        iteration: 0,
        groups: (0..EPISODES.div_ceil(GROUP)).map(group).collect(),
        trajectories: trajectories.to_vec(),
        rewards: None,
        credit: None,
        values: Some(values),
        valued_by: Some(CreditMethod::MonteCarlo),
    };
    FrozenBatch::new(batch).unwrap_or_else(|error| panic!("{error}"))
}

/// Credit as if every state had been rolled 32 times, with returns that differ from state to state.
fn measured(trajectories: &[Trajectory], rewards: &RewardTable, gamma: f64) -> TrueCredit {
    let prefixes = Prefixes::of(&Evidence::of(trajectories, rewards, None));
    let mut re_rolls = vec![ReRolls::default(); prefixes.holders.len()];
    for (state, re_rolls) in re_rolls.iter_mut().enumerate() {
        (0..32).for_each(|roll| re_rolls.push(f64::from(u8::from((state * 7 + roll) % 11 < state % 12))));
    }
    TrueCredit::of(&rewards.totals(), &prefixes, &re_rolls, gamma)
}
