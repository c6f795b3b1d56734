//! Kernels of our own on the graphics device, and decoding on slices on the CPU, against the reference by burn on the CPU: the same
//! tokens, the same log-probabilities.

use burn::tensor::{Device, Int, Tensor, TensorData};
use pollster::block_on;
use turnwise::config::ExperimentConfig;
use turnwise::environment::{self, REGISTRY};
use turnwise::kernel::runs_on;
use turnwise::policy::{Activation, Policy, PolicyConfig, Weights, log_distribution};
use turnwise::rollout::{Episode, Origin, Prefix, Sampling, Trajectory, replay, roll_out};
use turnwise::seed::{Draws, Purpose, RootSeed};
use turnwise::vocabulary::TokenSet;

use crate::support::{cost, cpu, devices, gpu, numbers};

/// A policy that is sure of itself, with biases and norms that are not those of the start.
fn policy(config: &ExperimentConfig, activation: Activation, bias: bool, device: &Device) -> Policy {
    let shape = PolicyConfig { activation, bias, ..PolicyConfig::of(config) };
    let mut weights = Weights::initial(&shape, RootSeed(config.seed));
    let root = RootSeed(config.seed + 1);
    for (index, weight) in weights.0.iter_mut().enumerate() {
        let mut draws = root.draws(Purpose::Weights, index as u32, 0, 0);
        let embeds = weight.name.ends_with("weight");
        weight.values.iter_mut().for_each(|value| *value = if embeds { *value * 1.5 } else { *value + 0.2 * draws.normal() });
    }
    shape.init(device).with_weights(&weights).unwrap()
}

fn sampling_draws(config: &ExperimentConfig, group: usize, member: usize) -> Draws {
    RootSeed(config.seed).draws(Purpose::SampleToken, 3, group as u32, member as u32)
}

fn tool_draws(config: &ExperimentConfig, group: usize, member: usize) -> Draws {
    RootSeed(config.seed).draws(Purpose::Tool, 3, group as u32, member as u32)
}

/// What the environment of an episode comes from.
fn origin(config: &ExperimentConfig, group: usize, member: usize) -> Origin {
    let question = RootSeed(config.seed).draws(Purpose::Question, 3, group as u32, 0);
    Origin { question, tool: tool_draws(config, group, member) }
}

/// `groups` groups of `num_generations`.
fn episodes(config: &ExperimentConfig) -> Vec<Episode> {
    let group = |group: usize| {
        let mut environment = environment::create(config);
        let prompt = environment.reset(RootSeed(config.seed).draws(Purpose::Question, 3, group as u32, 0));
        (0..config.num_generations).map(move |member| Episode {
            group,
            member,
            environment: environment.boxed_clone(),
            origin: origin(config, group, member),
            prefix: Prefix::prompt(prompt.clone()),
            sampling: sampling_draws(config, group, member),
            tool: tool_draws(config, group, member),
        })
    };
    (0..config.groups).flat_map(group).collect()
}

fn play(policy: &Policy, episodes: Vec<Episode>, config: &ExperimentConfig) -> Vec<Trajectory> {
    block_on(roll_out(policy, episodes, &Sampling::of(config))).unwrap()
}

/// By burn's operations.
fn play_by_burn(policy: &Policy, episodes: Vec<Episode>, config: &ExperimentConfig) -> Vec<Trajectory> {
    block_on(roll_out(policy, episodes, &Sampling { kernels: false, ..Sampling::of(config) })).unwrap()
}

fn small(environment: &str) -> ExperimentConfig {
    let mut config = ExperimentConfig::defaults(environment, REGISTRY);
    (config.d_model, config.layers, config.heads, config.groups, config.num_generations) = (32, 1, 2, 3, 5);
    config
}

/// Compares episodes; where tokens differ, the first that does must have been drawn where two candidates meet. Gives how many
/// tokens were compared.
fn same(got: &[Trajectory], wanted: &[Trajectory], policy: &Policy, config: &ExperimentConfig) -> usize {
    assert_eq!(got.len(), wanted.len());
    let mut compared = 0;
    for (got, wanted) in got.iter().zip(wanted) {
        let pairs = got.tokens.iter().zip(&wanted.tokens);
        let shared = pairs.take_while(|(got, wanted)| got == wanted).count();
        for t in 0..shared {
            let (got, wanted) = (got.log_probs[t], wanted.log_probs[t]);
            assert!((got - wanted).abs() < 1e-4, "token {t}: {got}, the reference has {wanted}");
        }
        compared += wanted.loss_mask[..shared].iter().filter(|&&sampled| sampled).count();
        if shared < wanted.tokens.len() {
            let place = format!("{}, group {}, member {}: token {shared}", config.environment, wanted.group, wanted.member);
            assert!(ties(wanted, shared, policy, config), "{place}: {:?}, the reference has {:?}", got.tokens, wanted.tokens);
        } else {
            assert_eq!((got.turns.len(), got.end, &got.legal), (wanted.turns.len(), wanted.end, &wanted.legal));
        }
    }
    compared
}

/// Whether the draw of a token fell within rounding of the border between two candidates.
fn ties(episode: &Trajectory, t: usize, policy: &Policy, config: &ExperimentConfig) -> bool {
    if !episode.loss_mask[t] {
        return false;
    }
    let tokens: Vec<i32> = episode.tokens[..t].iter().map(|&token| i32::from(token)).collect();
    let logits = policy.forward(Tensor::<2, Int>::from_data(TensorData::new(tokens, [1, t]), &cpu()));
    let [_, _, size] = logits.dims();
    let legal = episode.legal.get(t).copied().unwrap_or(TokenSet::ALL);
    let illegal: Vec<f32> = (0..size).map(|token| if legal.contains(token as u8) { 0.0 } else { 1.0 }).collect();
    let illegal = Tensor::from_data(TensorData::new(illegal, [1, 1, size]), &cpu());
    let all = log_distribution(logits.slice([0..1, t - 1..t, 0..size]), config.temperature, Some(illegal));
    let uniform = f64::from(sampling_draws(config, episode.group, episode.member).unit_at(t as u32));
    let mut sum = 0.0;
    numbers(all).iter().any(|log_prob| {
        sum += log_prob.exp();
        (sum - uniform).abs() < 1e-4
    })
}

#[test]
fn every_device_samples_what_the_reference_samples() {
    for device in devices("every_device_samples_what_the_reference_samples") {
        assert!(runs_on(&device) != (device == cpu()));
        let relu = |config: ExperimentConfig| (config, Activation::Relu, false);
        let cases = [
            relu(small("search")),
            relu(ExperimentConfig { legal_token_mask: true, temperature: 0.7, turn_limit: 1, ..small("calculator") }),
            relu(ExperimentConfig { d_model: 64, layers: 2, heads: 4, legal_token_mask: true, turn_limit: 4, ..small("search") }),
            relu(ExperimentConfig { d_model: 128, heads: 8, context_length: 128, temperature: 1.6, ..small("code") }),
            (ExperimentConfig { layers: 3, heads: 1, turn_tokens: 3, ..small("spin") }, Activation::Gelu, true),
            (ExperimentConfig { layers: 3, heads: 1, turn_tokens: 3, ..small("spin") }, Activation::Relu, true),
            (ExperimentConfig { context_length: 24, turn_tokens: 24, ..small("web") }, Activation::Gelu, true),
        ];
        for (config, activation, bias) in cases {
            let (ours, reference) = (policy(&config, activation, bias, &device), policy(&config, activation, bias, &cpu()));
            let wanted = play_by_burn(&reference, episodes(&config), &config);
            let compared = same(&play(&ours, episodes(&config), &config), &wanted, &reference, &config);
            let sampled: usize = wanted.iter().map(Trajectory::sampled_tokens).sum();
            assert!(compared * 10 > sampled * 9, "{}: {compared} of {sampled} tokens agree", config.environment);
        }
    }
}

/// Long documents: observations of many tokens, so that prefills take several rounds.
#[test]
fn long_observations_are_filled_in() {
    for device in devices("long_observations_are_filled_in") {
        let mut config = ExperimentConfig { legal_token_mask: true, context_length: 64, ..small("search") };
        config.parameters.insert("random_tokens", 8.0.into());
        let (ours, reference) =
            (policy(&config, Activation::Relu, false, &device), policy(&config, Activation::Relu, false, &cpu()));
        let wanted = play_by_burn(&reference, episodes(&config), &config);
        assert!(wanted.iter().flat_map(|episode| &episode.turns).any(|turn| turn.end - turn.action_end > 8), "one is long");
        assert!(same(&play(&ours, episodes(&config), &config), &wanted, &reference, &config) > 50);
    }
}

/// As true credit does: several continuations of states in the middle of episodes, of different length.
#[test]
fn continuations_from_the_middle_agree() {
    for device in devices("continuations_from_the_middle_agree") {
        let config = ExperimentConfig { legal_token_mask: true, ..small("search") };
        let (ours, reference) =
            (policy(&config, Activation::Relu, false, &device), policy(&config, Activation::Relu, false, &cpu()));
        let first = play_by_burn(&reference, episodes(&config), &config);
        let resumed = || {
            let states = first.iter().filter(|episode| episode.turns.len() > 1).enumerate();
            let state = states.flat_map(|(index, episode)| (0..3).map(move |roll| (index, episode, roll)));
            let resume = |(index, episode, roll): (usize, &Trajectory, usize)| {
                let turn = 1 + index % (episode.turns.len() - 1);
                let mut environment = environment::create(&config);
                environment.reset(RootSeed(config.seed).draws(Purpose::Question, 3, episode.group as u32, 0));
                replay(environment.as_mut(), episode, turn, &tool_draws(&config, episode.group, episode.member));
                let (group, member) = (40 + index, roll);
                Episode {
                    group,
                    member,
                    environment,
                    origin: origin(&config, episode.group, episode.member),
                    prefix: Prefix::of(episode, turn),
                    sampling: sampling_draws(&config, group, member),
                    tool: tool_draws(&config, group, member),
                }
            };
            state.map(resume).collect::<Vec<Episode>>()
        };
        assert!(resumed().len() > 12, "{}", resumed().len());
        let wanted = play_by_burn(&reference, resumed(), &config);
        assert!(same(&play(&ours, resumed(), &config), &wanted, &reference, &config) > 50);
    }
}

/// A row's result does not depend on who else is in the batch.
#[test]
fn the_batch_does_not_matter() {
    for device in devices("the_batch_does_not_matter") {
        let config = small("search");
        let policy = policy(&config, Activation::Relu, false, &device);
        let all = play(&policy, episodes(&config), &config);
        let mut some = episodes(&config);
        some.retain(|episode| (episode.group * config.num_generations + episode.member) % 3 == 1);
        let played = play(&policy, some, &config);
        let wanted: Vec<&Trajectory> = all.iter().skip(1).step_by(3).collect();
        assert_eq!(played.iter().collect::<Vec<_>>(), wanted);
    }
}

/// Two dispatches and one read per turn, beside one dispatch for each parameter, once per rollout.
#[test]
fn a_turn_takes_two_dispatches_and_one_read() {
    let Some(device) = gpu("a_turn_takes_two_dispatches_and_one_read") else { return };
    let config = ExperimentConfig { legal_token_mask: true, ..small("search") };
    let policy = policy(&config, Activation::Relu, false, &device);
    play(&policy, episodes(&config), &config);
    let mut played = Vec::new();
    let (dispatches, reads) = cost(|| played = play(&policy, episodes(&config), &config));
    let turns = played.iter().map(|episode| episode.turns.len()).max().unwrap();
    assert!(turns > 1 && dispatches > turns, "{dispatches} dispatches in {turns} turns");
    let once = policy.tensors().len();
    assert!(dispatches <= once + 2 * turns, "{dispatches} dispatches: {once} once and more than 2 in each of {turns} turns");
    assert_eq!(reads, turns);
}
