//! Sampling: whole batches of ragged conversations, against the rules of the interface and against the full forward pass.

use pollster::block_on;
use turnwise::config::ExperimentConfig;
use turnwise::environment::REGISTRY;
use turnwise::learner::{TokenBatch, TrainingExample};
use turnwise::policy::{Policy, log_distribution, taken_log_probs};
use turnwise::readback::reads;
use turnwise::rollout::{End, RolloutError, Sampling, Trajectory, demonstrate, roll_out};
use turnwise::trainer::{GroupStart, TrainError, Trainer};
use turnwise::vocabulary::{CALC, EOT, OBS, OBS_END, SIZE};

use crate::support::{cpu, fresh, numbers, sampled, tiny, weights};

/// A policy that is sure of itself: the initial weights, magnified.
fn decided(config: &ExperimentConfig) -> Policy {
    let policy = fresh(config);
    let mut values = weights(&policy);
    values.0.iter_mut().filter(|weight| weight.name.ends_with("weight")).for_each(|weight| {
        weight.values.iter_mut().for_each(|value| *value *= 1.6);
    });
    policy.with_weights(&values).unwrap()
}

/// The tiny run in either environment, `groups` groups of 16.
fn many(environment: &str, groups: usize, legal_token_mask: bool) -> ExperimentConfig {
    let small = tiny();
    let mut config = ExperimentConfig::defaults(environment, REGISTRY);
    (config.d_model, config.layers, config.heads) = (small.d_model, small.layers, small.heads);
    (config.groups, config.num_generations, config.held_out) = (groups, 16, 0);
    config.legal_token_mask = legal_token_mask;
    config
}

/// T-06, T-40, T-11: over 1000 random episodes every array has one entry per token, ids come back as they were, and the mask is
/// true exactly on what was sampled.
#[test]
fn a_thousand_episodes_keep_their_arrays_together() {
    let mut episodes = 0;
    for (environment, groups, legal) in
        [("search", 20, false), ("search", 12, true), ("calculator", 20, false), ("calculator", 12, true)]
    {
        let config = many(environment, groups, legal);
        for episode in &sampled(&config).training {
            episodes += 1;
            check_arrays(episode, &config);
            let text = serde_json::to_string(episode).unwrap();
            let back: Trajectory = serde_json::from_str(&text).unwrap();
            assert_eq!(back.tokens, episode.tokens);
            assert_eq!(back.log_probs, episode.log_probs);
        }
    }
    assert!(episodes >= 1000, "{episodes}");
}

fn check_arrays(episode: &Trajectory, config: &ExperimentConfig) {
    let length = episode.tokens.len();
    assert!(length <= config.context_length && episode.turns.len() <= config.turn_limit && !episode.turns.is_empty());
    assert_eq!((episode.loss_mask.len(), episode.log_probs.len()), (length, length));
    assert!(episode.legal.len() == if config.legal_token_mask { length } else { 0 });
    let example = TrainingExample::new(episode, &vec![1.0; episode.turns.len()], false);
    assert_eq!((example.advantages.len(), example.loss_mask.len()), (length, length));
    assert_eq!(example.loss_mask, episode.loss_mask);
    let mut place = episode.prompt_length;
    for turn in &episode.turns {
        assert!(turn.start == place && turn.start < turn.action_end && turn.action_end <= turn.end && turn.end <= length);
        assert!(turn.action_end - turn.start <= config.turn_tokens);
        let action = &episode.tokens[turn.start..turn.action_end];
        assert!(!action[..action.len() - 1].contains(&EOT), "nothing of a turn follows its end");
        if turn.end > turn.action_end {
            assert_eq!((episode.tokens[turn.action_end], episode.tokens[turn.end - 1]), (OBS, OBS_END));
        }
        place = turn.end;
    }
    assert_eq!(place, length);
    let action = |t: usize| episode.turns.iter().any(|turn| (turn.start..turn.action_end).contains(&t));
    for t in 0..length {
        assert_eq!(episode.loss_mask[t], action(t), "token {t}");
        let log_prob = episode.log_probs[t];
        assert!(if action(t) { log_prob <= 0.0 && log_prob.is_finite() } else { log_prob == 0.0 }, "token {t}: {log_prob}");
    }
}

/// T-10 on real episodes of the demonstrator: a call with its end of turn is trained, the tool's whole answer is not.
#[test]
fn a_calculator_call_is_masked_as_it_should_be() {
    let mut config = ExperimentConfig::defaults("calculator", REGISTRY);
    config.demonstrations = 64;
    let episodes = demonstrate(&config);
    let (episode, turn) = episodes
        .iter()
        .flat_map(|episode| episode.turns.iter().map(move |turn| (episode, turn)))
        .find(|(_, turn)| turn.facts.valid_call)
        .expect("a demonstration calls the calculator");
    assert_eq!((episode.tokens[turn.start], episode.tokens[turn.action_end - 1]), (CALC, EOT));
    assert!(episode.loss_mask[turn.start..turn.action_end].iter().all(|&trained| trained));
    assert_eq!((episode.tokens[turn.action_end], episode.tokens[turn.end - 1]), (OBS, OBS_END));
    assert!(episode.loss_mask[turn.action_end..turn.end].iter().all(|&trained| !trained));
    assert!(episode.loss_mask[..episode.prompt_length].iter().all(|&trained| !trained));
}

/// Decoding with the key and value cache, over turns of different length in one batch, gives the log-probabilities of the full
/// forward pass.
#[test]
fn cached_decoding_equals_the_full_forward_pass() {
    for (environment, temperature, legal) in
        [("search", 1.0, false), ("calculator", 1.0, false), ("search", 0.5, true), ("calculator", 1.7, true)]
    {
        let mut config = many(environment, 4, legal);
        config.temperature = temperature;
        let policy = decided(&config);
        let episodes = block_on(Trainer::new(config.clone(), &policy).sample()).unwrap().training;
        let lengths: Vec<usize> = episodes.iter().map(|episode| episode.tokens.len()).collect();
        assert!(lengths.iter().max() > lengths.iter().min(), "the batch is ragged");
        let examples: Vec<TrainingExample> =
            episodes.iter().map(|episode| TrainingExample::new(episode, &vec![1.0; episode.turns.len()], false)).collect();
        let batch = TokenBatch::new(&examples.iter().collect::<Vec<_>>(), &cpu());
        assert_eq!(batch.illegal.is_some(), legal);
        let all = log_distribution(policy.forward(batch.inputs), temperature, batch.illegal);
        let full = numbers(taken_log_probs(all, batch.targets));
        let width = full.len() / episodes.len();
        let mut compared = 0;
        for (episode, full) in episodes.iter().zip(full.chunks(width)) {
            for t in (1..episode.tokens.len()).filter(|&t| episode.loss_mask[t]) {
                let difference = (full[t - 1] - f64::from(episode.log_probs[t])).abs();
                assert!(difference < 1e-4, "{environment}: token {t} differs by {difference}");
                compared += 1;
            }
        }
        assert!(compared > 200, "{compared}");
    }
}

/// The same settings give the same episodes, another seed gives others.
#[test]
fn the_same_settings_give_the_same_episodes() {
    let config = many("search", 3, false);
    let first = sampled(&config).training;
    assert_eq!(first, sampled(&config).training);
    assert_ne!(first, sampled(&ExperimentConfig { seed: config.seed + 1, ..config }).training);
}

/// Members of a group share the question and its hidden state, and sample on their own; groups have questions of their own.
#[test]
fn members_of_a_group_share_the_question() {
    let config = many("search", 6, false);
    let rollout = sampled(&config);
    assert_eq!(rollout.groups.len(), 6);
    for (group, info) in rollout.groups.iter().enumerate() {
        let members: Vec<&Trajectory> = rollout.training.iter().filter(|episode| episode.group == group).collect();
        assert_eq!(members.iter().map(|episode| episode.member).collect::<Vec<_>>(), (0..16).collect::<Vec<_>>());
        assert!(members.iter().all(|episode| episode.tokens[..episode.prompt_length] == info.prompt[..]));
        assert!(members.iter().any(|episode| episode.tokens != members[0].tokens), "members sample on their own");
    }
    let hidden = |group: usize| (&rollout.groups[group].prompt, &rollout.groups[group].hidden_state);
    assert!((1..6).any(|group| hidden(group) != hidden(0)));
}

/// With the grammar on no turn is malformed unless a limit cut it; every token is legal where it stands.
#[test]
fn the_grammar_leaves_no_malformed_turn() {
    for environment in ["search", "calculator"] {
        let mut config = many(environment, 8, true);
        config.turn_tokens = 8;
        config.context_length = 96;
        let episodes = sampled(&config).training;
        let turns: Vec<_> = episodes.iter().flat_map(|episode| episode.turns.iter().map(move |turn| (episode, turn))).collect();
        let ended = |episode: &Trajectory, end: usize| episode.tokens[end - 1] == EOT;
        let whole: Vec<_> = turns.iter().filter(|(episode, turn)| ended(episode, turn.action_end)).collect();
        assert!(whole.len() * 2 > turns.len(), "{} of {} turns ended", whole.len(), turns.len());
        assert!(whole.iter().all(|(_, turn)| !turn.facts.malformed));
        for episode in &episodes {
            let legal = |t: usize| episode.legal[t].contains(episode.tokens[t]);
            assert!((0..episode.tokens.len()).all(legal));
        }
        let free = sampled(&many(environment, 8, false)).training;
        assert!(free.iter().flat_map(|episode| &episode.turns).any(|turn| turn.facts.malformed), "without it there are some");
    }
}

/// Turn limit 1 is the single-turn contrast: one action, no observation.
#[test]
fn one_turn_works() {
    let mut config = many("search", 4, true);
    config.turn_limit = 1;
    let mut trainer = Trainer::new(config.clone(), &fresh(&config));
    let (rollout, _, credit, report) = block_on(trainer.train_step()).unwrap();
    for episode in &rollout.training {
        assert_eq!((episode.turns.len(), episode.turns[0].end), (1, episode.tokens.len()));
        assert!(episode.end == End::TurnLimit || episode.turns[0].facts.answered);
    }
    assert_eq!(report.turns, 1.0);
    assert!(credit.map.advantages.iter().all(|turns| turns.len() == 1));
}

/// Reading from the device is awaited once per turn of a rollout by burn's operations and once per update, however many micro-batches
/// and passes. On slices a rollout reads nothing back.
#[test]
fn reads_keep_to_their_budget() {
    let mut config = many("search", 4, false);
    (config.inner_epochs, config.micro_batches, config.beta, config.held_out) = (3, 4, 0.1, 8);
    let mut trainer = Trainer::new(config.clone(), &fresh(&config));
    let start = reads();
    let rollout = block_on(trainer.sample()).unwrap();
    let sampling = reads() - start;
    assert_eq!(sampling, 0);
    let episodes =
        (0..4).flat_map(|group| GroupStart::new(&config, 0, group as u32).episodes(&config, 0, group).collect::<Vec<_>>());
    let by_burn = Sampling { kernels: false, ..Sampling::of(&config) };
    let played = block_on(roll_out(&fresh(&config), episodes.collect(), &by_burn)).unwrap();
    let turns = played.iter().map(|episode| episode.turns.len()).max().unwrap();
    assert!(turns > 0 && turns <= config.turn_limit);
    assert_eq!(reads() - start, turns);
    let sampling = reads() - start;
    let rewards = block_on(trainer.score(&rollout)).unwrap();
    let credit = block_on(trainer.credit(&rollout, &rewards)).unwrap();
    block_on(trainer.update(&rollout, &credit)).unwrap();
    assert_eq!(reads() - start - sampling, 1);
}

/// Weights that are not numbers stop the rollout with that reason.
#[test]
fn broken_weights_stop_the_rollout() {
    let config = tiny();
    let mut values = weights(&fresh(&config));
    values.0.iter_mut().find(|weight| weight.name == "head.weight").unwrap().values[..SIZE].fill(f32::NAN);
    let policy = fresh(&config).with_weights(&values).unwrap();
    let error = block_on(Trainer::new(config, &policy).sample()).err().expect("sampling stops");
    assert!(matches!(error, TrainError::Rollout(RolloutError::NonFinite)), "{error}");
    assert!(error.non_finite().is_some());
}
