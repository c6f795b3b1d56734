//! Rolling on from the middle, and true credit measured with it.

use pollster::block_on;
use turnwise::config::{CreditMethod, ExperimentConfig, RewardMode};
use turnwise::environment::REGISTRY;
use turnwise::rollout::{Prefix, Trajectory};
use turnwise::seed::Purpose;
use turnwise::trainer::{Boundaries, Run, Trainer, TrueCreditRun};
use turnwise::web::protocol::Phase;

use crate::support::{fresh, paid, tiny};

fn config() -> ExperimentConfig {
    ExperimentConfig { groups: 4, num_generations: 6, ..paid(tiny()) }
}

/// States before turns are the same exactly where group, tokens so far and hidden state are; all members share the first.
#[test]
fn equal_states_are_one() {
    let config = config();
    let rollout = block_on(Trainer::new(config.clone(), &fresh(&config)).sample()).unwrap();
    let boundaries = Boundaries::of(&rollout, &config);
    let before = |trajectory: &Trajectory, turn: usize| (trajectory.group, Prefix::of(trajectory, turn).tokens);
    let places = || {
        let turns = |index: usize| (0..rollout.training[index].turns.len()).map(move |turn| (index, turn));
        (0..rollout.training.len()).flat_map(turns)
    };
    for (i, k) in places() {
        for (j, l) in places() {
            let same = before(&rollout.training[i], k) == before(&rollout.training[j], l);
            assert_eq!(boundaries.index()[i][k] == boundaries.index()[j][l], same, "({i}, {k}) and ({j}, {l})");
        }
    }
    let distinct: std::collections::BTreeSet<usize> = boundaries.index().iter().flatten().copied().collect();
    assert_eq!(distinct.len(), boundaries.states());
    assert!(boundaries.states() < places().count(), "members share their first state at least");
}

/// Continuations depend on their number alone: two at a time or all at once, together with others or apart.
#[test]
fn continuations_are_the_same_in_parts() {
    let config = config();
    let policy = fresh(&config);
    let rollout = block_on(Trainer::new(config.clone(), &policy).sample()).unwrap();
    let boundaries = Boundaries::of(&rollout, &config);
    let roll = |first, rolls| block_on(boundaries.roll(&policy, &config, Purpose::TrueCredit, first, rolls)).unwrap();
    let (all, first, second) = (roll(0, 6), roll(0, 2), roll(2, 4));
    for ((all, first), second) in all.iter().zip(first).zip(second) {
        assert_eq!(*all, [first, second].concat());
    }
    assert!(all.iter().flatten().any(|value| *value != all[0][0]), "they are not all alike");
}

/// The value of the first state is the expected return: over many continuations it agrees with that over many fresh episodes.
#[test]
fn values_are_expected_returns() {
    let config = ExperimentConfig { num_generations: 64, groups: 1, ..config() };
    let policy = fresh(&config);
    let trainer = &mut Trainer::new(config.clone(), &policy);
    let rollout = block_on(trainer.sample()).unwrap();
    let rewards = block_on(trainer.score(&rollout)).unwrap();
    let credit = block_on(trainer.credit(&rollout, &rewards)).unwrap();
    let returns: Vec<f64> = credit.map.returns_to_go.iter().map(|turns| turns[0]).collect();
    let boundaries = Boundaries::of(&rollout, &config);
    let rolled = block_on(boundaries.roll(&policy, &config, Purpose::TrueCredit, 0, 400)).unwrap();
    let moments = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64;
        (mean, variance / values.len() as f64)
    };
    let ((a, error_a), (b, error_b)) = (moments(&returns), moments(&rolled[boundaries.index()[0][0]]));
    assert!(error_a > 0.0 && (a - b).abs() < 4.0 * (error_a + error_b).sqrt(), "{a} and {b}");
}

/// True credit telescopes: with gamma 1 its sum over an episode is the return less the value of the start. More continuations
/// shrink its errors, and every method that needs no critic is compared with it.
#[test]
fn true_credit_adds_up_and_grows_surer() {
    let config = ExperimentConfig { gamma: 1.0, ..config() };
    let policy = fresh(&config);
    let mut run = Run::new(config.clone(), &policy);
    assert!(run.true_credit().is_none(), "no episodes yet");
    while block_on(run.advance()).unwrap().done != Phase::Credit {}
    let mut measurement: TrueCreditRun = run.true_credit().unwrap();
    block_on(measurement.advance(8)).unwrap();
    let coarse = measurement.measured();
    block_on(measurement.advance(56)).unwrap();
    let fine = measurement.measured();
    assert_eq!(measurement.rolls(), 64);
    let sum = |values: &[Vec<Option<f64>>]| values.iter().flatten().map(|value| value.unwrap()).sum::<f64>();
    assert!(sum(&fine.standard_errors) < 0.6 * sum(&coarse.standard_errors));
    let rollout = block_on(Trainer::new(config.clone(), &policy).sample()).unwrap();
    let rewards = block_on(Trainer::new(config.clone(), &policy).score(&rollout)).unwrap().totals();
    for ((credits, values), rewards) in fine.credits.iter().zip(&fine.values).zip(rewards) {
        let telescoped = rewards.iter().sum::<f64>() - values[0].unwrap();
        assert!((credits.iter().map(|credit| credit.unwrap()).sum::<f64>() - telescoped).abs() < 1e-9);
    }
    let accuracy = measurement.accuracy(&fine);
    let methods: Vec<CreditMethod> = accuracy.methods.iter().map(|method| method.method).collect();
    assert!(methods.contains(&CreditMethod::MonteCarlo) && !methods.contains(&CreditMethod::Gae));
    assert_eq!(methods.len(), turnwise::credit::METHODS.len() - 1);
    let pearson = |of: CreditMethod| {
        let method = accuracy.methods.iter().find(|method| method.method == of).unwrap();
        method.all_turns.pearson.unwrap().value
    };
    assert!(pearson(CreditMethod::MonteCarlo) > pearson(CreditMethod::Grpo), "measured values beat one return for all");
}

/// Every environment can be rolled on from every turn, and a state restored by replay is the one that was left.
#[test]
fn every_environment_can_be_rolled_on() {
    for environment in REGISTRY {
        let mut config = ExperimentConfig::defaults(environment.name, REGISTRY);
        (config.d_model, config.layers, config.heads, config.groups, config.num_generations) = (32, 1, 2, 2, 3);
        (config.legal_token_mask, config.held_out, config.reward_mode) = (true, 0, RewardMode::Mixed);
        let policy = fresh(&config);
        let mut run = Run::new(config, &policy);
        while block_on(run.advance()).unwrap().done != Phase::Credit {}
        let mut measurement = run.true_credit().unwrap();
        block_on(measurement.advance(2)).unwrap();
        let measured = measurement.measured();
        assert!(measured.credits.iter().flatten().all(|credit| credit.is_some_and(f64::is_finite)), "{}", environment.name);
    }
}
