//! The parts of tokens in the loss add up to it, and each token's chain to its part.

use super::*;
use crate::rollout::Turn;

/// The loss from its definition, not from the parts of tokens.
fn direct(trajectories: &[Trajectory], advantages: &[Vec<f64>], ratios: &[Vec<f64>], settings: &LossSettings) -> f64 {
    let Clip { low, high, dual } = settings.clip;
    let mut sums = Vec::new();
    for (index, trajectory) in trajectories.iter().enumerate() {
        let mut sum = (0.0, 0.0);
        for (turn, advantage) in trajectory.turns.iter().zip(&advantages[index]) {
            for ratio in &ratios[index][turn.start..if settings.train_tool_tokens { turn.end } else { turn.action_end }] {
                let mut gain = (ratio * advantage).min(ratio.max(1.0 - low).min(1.0 + high) * advantage);
                if let (Some(dual), true) = (dual, *advantage < 0.0) {
                    gain = gain.max(dual * advantage);
                }
                sum = (sum.0 - gain, sum.1 + 1.0);
            }
        }
        sums.push(sum);
    }
    let total = |of: fn(&(f64, f64)) -> f64| sums.iter().map(of).sum::<f64>();
    match settings.aggregation {
        Aggregation::TokenMean => total(|sum| sum.0) / total(|sum| sum.1).max(1.0),
        Aggregation::SequenceMean { count_untrained } => {
            let counted = if count_untrained { sums.len() as f64 } else { total(|sum| f64::from(u8::from(sum.1 > 0.0))) };
            total(|sum| sum.0 / sum.1.max(1.0)) / counted.max(1.0)
        }
        Aggregation::Constant { length } => total(|sum| sum.0) / (sums.len() as f64 * length),
    }
}

/// Turns of three sampled tokens, of which each but the last is followed by a tool result of two.
fn with_tools(mut trajectory: Trajectory) -> Trajectory {
    let count = trajectory.turns.len();
    let turns = trajectory.turns.iter().enumerate().map(|(index, turn)| {
        let (start, result) = (2 + 5 * index, if index + 1 < count { 2 } else { 0 });
        Turn { start, action_end: start + 3, end: start + 3 + result, ..*turn }
    });
    trajectory.turns = turns.collect();
    trajectory.prompt_length = 2;
    trajectory.tokens = vec![1; trajectory.turns.last().map_or(2, |turn| turn.end)];
    trajectory
}

fn loss_settings() -> impl Strategy<Value = LossSettings> {
    let aggregation = prop_oneof![
        Just(Aggregation::TokenMean),
        any::<bool>().prop_map(|count_untrained| Aggregation::SequenceMean { count_untrained }),
        (1.0_f64..50.0).prop_map(|length| Aggregation::Constant { length }),
    ];
    let dual = prop::option::of(1.5_f64..4.0);
    (aggregation, 0.05_f64..0.5, 0.05_f64..0.5, dual, any::<bool>()).prop_map(
        |(aggregation, low, high, dual, train_tool_tokens)| LossSettings {
            clip: Clip { low, high, dual },
            aggregation,
            train_tool_tokens,
        },
    )
}

/// Ratios on both sides of any clip, one for every token.
fn ratios(trajectories: &[Trajectory], seed: u32) -> Vec<Vec<f64>> {
    let mut draws = crate::seed::RootSeed(seed).draws(crate::seed::Purpose::Question, 0, 0, 0);
    let row = |trajectory: &Trajectory| trajectory.tokens.iter().map(|_| f64::from(draws.normal()).exp()).collect();
    trajectories.iter().map(row).collect()
}

const MIXED: fn() -> ExperimentConfig =
    || ExperimentConfig { reward_mode: RewardMode::Mixed, turn_weight: -0.125, ..ExperimentConfig::default() };

proptest! {
    #[test]
    fn the_shares_of_all_tokens_sum_to_the_loss(
        episodes in episodes(), empty in any::<bool>(), config in configs(), settings in loss_settings(), seed in any::<u32>(),
    ) {
        let mut episodes: Vec<Trajectory> = episodes.into_iter().map(with_tools).collect();
        if empty {
            episodes.push(with_tools(trajectory(0, &[])));
        }
        let config = ExperimentConfig { reward_mode: RewardMode::Mixed, ..config };
        let map = credited(&episodes, &config);
        let ratios = ratios(&episodes, seed);
        let losses = token_losses(&episodes, &map.advantages, &ratios, &settings);
        let expected = direct(&episodes, &map.advantages, &ratios, &settings);
        let shares: f64 = losses.iter().flatten().map(|token| token.share).sum();
        let size: f64 = losses.iter().flatten().map(|token| token.share.abs()).sum();
        prop_assert!((shares - expected).abs() <= 1e-12 * (1.0 + size), "{} is not {}", shares, expected);
        // The gradient is the slope of the loss at the log-probability of one token.
        let place = losses.iter().enumerate().find_map(|(i, row)| row.iter().position(|token| token.trained).map(|t| (i, t)));
        if let Some((index, token)) = place {
            let moved = |step: f64| {
                let mut ratios = ratios.clone();
                ratios[index][token] *= step.exp();
                token_losses(&episodes, &map.advantages, &ratios, &settings)[index][token]
            };
            let [below, above] = [-1e-6, 1e-6].map(moved);
            if below.clipped == above.clipped {
                let slope = (above.share - below.share) / 2e-6;
                prop_assert!((slope - losses[index][token].gradient).abs() <= 1e-6 * (1.0 + slope.abs()));
            }
        }
    }

    #[test]
    fn the_chain_of_a_token_leads_from_facts_to_its_advantage(episodes in episodes(), config in configs(), seed in any::<u32>()) {
        let episodes: Vec<Trajectory> = episodes.into_iter().map(with_tools).collect();
        let config = ExperimentConfig { reward_mode: RewardMode::Mixed, turn_weight: -0.125, ..config };
        let (rewards, map) = (score(&episodes, &weighted_terms(&config)), credited(&episodes, &config));
        let clip = Clip { low: 0.2, high: 0.2, dual: None };
        let settings = LossSettings { clip, aggregation: Aggregation::TokenMean, train_tool_tokens: false };
        let losses = token_losses(&episodes, &map.advantages, &ratios(&episodes, seed), &settings);
        for (index, episode) in episodes.iter().enumerate() {
            for position in 0..episode.tokens.len() + 1 {
                let chain = provenance((index, position), &episodes, &rewards, &map, config.gamma, &losses);
                prop_assert_eq!(chain.is_some(), (episode.prompt_length..episode.tokens.len()).contains(&position));
                let Some(chain) = chain else { continue };
                let mut sum = 0.0;
                for PartProvenance { part, rewards, value_after } in &chain.parts {
                    for reward in rewards {
                        let amounts: f64 = reward.terms.iter().map(|term| term.weight).sum();
                        let discount = config.gamma.powi((reward.turn - part.turn) as i32);
                        prop_assert!((reward.discount * amounts - reward.amount).abs() < 1e-12 && reward.discount == discount);
                        prop_assert_eq!(reward.facts, episode.turns[reward.turn].facts);
                    }
                    let value = rewards.iter().map(|reward| reward.amount).sum::<f64>() + value_after.unwrap_or(0.0);
                    prop_assert!((value - part.value).abs() < 1e-9, "{:?} is made of {}", part, value);
                    sum += part.weight * (value - part.baseline) / part.scale;
                }
                if let Some(whitening) = chain.whitening {
                    sum = (sum - whitening.mean) / whitening.scale;
                }
                prop_assert!((sum - chain.advantage).abs() < 1e-6 * (1.0 + sum.abs()), "{} is not {}", sum, chain.advantage);
                let token = chain.token;
                prop_assert_eq!(token.trained, position < episode.turns[chain.turn].action_end);
                prop_assert_eq!(token.advantage, if token.trained { chain.advantage } else { 0.0 });
                prop_assert_eq!(token.share, token.weight * token.loss);
            }
        }
    }

    #[test]
    fn property_9_with_the_loss_mask_off_only_tool_tokens_change(episodes in episodes(), length in 1.0_f64..50.0, seed in any::<u32>()) {
        let episodes: Vec<Trajectory> = episodes.into_iter().map(with_tools).collect();
        let map = credited(&episodes, &MIXED());
        let ratios = ratios(&episodes, seed);
        let losses = |train_tool_tokens| {
            let clip = Clip { low: 0.2, high: 0.2, dual: None };
            let settings = LossSettings { clip, aggregation: Aggregation::Constant { length }, train_tool_tokens };
            token_losses(&episodes, &map.advantages, &ratios, &settings)
        };
        let (on, off) = (losses(false), losses(true));
        for (index, episode) in episodes.iter().enumerate() {
            for position in 0..episode.tokens.len() {
                let (on, off) = (on[index][position], off[index][position]);
                let turn = episode.turns.iter().find(|turn| (turn.start..turn.end).contains(&position));
                match turn {
                    Some(turn) if position >= turn.action_end => prop_assert!(!on.trained && off.trained && on.gradient == 0.0),
                    _ => prop_assert_eq!(on, off),
                }
            }
        }
    }
}

#[test]
fn the_clip_acts_on_the_side_where_it_would_go_too_far() {
    let one = [with_tools(trajectory(0, &[answer(true)]))];
    let loss = |ratio: f64, advantage: f64, high: f64, dual: Option<f64>| {
        let settings =
            LossSettings { clip: Clip { low: 0.2, high, dual }, aggregation: Aggregation::TokenMean, train_tool_tokens: false };
        let token = token_losses(&one, &[vec![advantage]], &[vec![ratio; 5]], &settings)[0][2];
        assert_close(&[token.weight], &[1.0 / 3.0], 1e-12);
        assert_eq!(token.clipped, token.gradient == 0.0);
        (token.loss, token.clipped)
    };
    let cases = [
        (1.5, 1.0, -1.2, true),
        (1.5, -1.0, 1.5, false),
        (0.5, 1.0, -0.5, false),
        (0.5, -1.0, 0.8, true),
        (5.0, -1.0, 5.0, false),
    ];
    for (ratio, advantage, expected, clipped) in cases {
        assert_eq!(loss(ratio, advantage, 0.2, None), (expected, clipped));
    }
    assert_eq!(loss(5.0, -1.0, 0.2, Some(3.0)), (3.0, true));
    assert_eq!((loss(1.25, 1.0, 0.2, None).0, loss(1.25, 1.0, 0.28, None).0), (-1.2, -1.25));
}

#[test]
fn t_23_a_group_without_signal_has_no_gradient_at_all() {
    let group = |group: usize, rights: [bool; 3]| rights.map(|right| with_tools(trajectory(group, &[call(), answer(right)])));
    let episodes = [group(0, [true, false, true]), group(1, [true; 3])].concat();
    let group_methods = METHODS.iter().filter(|&&method| method != CreditMethod::ReinforcePp && !needs_values(method));
    for &method in group_methods {
        let map = credited(
            &episodes,
            &ExperimentConfig { reward_mode: RewardMode::Outcome, ..config(method, ScaleRewards::Batch, 0.9) },
        );
        // Process supervision compares the turns of an episode too, so that a group of equals has signal there.
        let silent = method != CreditMethod::Process;
        assert_eq!(map.no_signal, [false, silent], "{method:?}");
        let clip = Clip { low: 0.2, high: 0.2, dual: None };
        let settings = LossSettings { clip, aggregation: Aggregation::TokenMean, train_tool_tokens: false };
        let losses = token_losses(&episodes, &map.advantages, &ratios(&episodes, 1), &settings);
        let norms = losses.iter().map(|row| row.iter().map(|token| token.gradient.abs()).sum::<f64>());
        let norms: Vec<f64> = norms.collect();
        assert!(norms[..3].iter().sum::<f64>() > 0.0);
        assert!(!silent || norms[3..] == [0.0; 3], "{method:?}: {norms:?}");
    }
}

#[test]
fn t_41_a_loss_of_zero_at_ratio_one_is_no_sign_of_no_gradient() {
    let episodes = [true, false, false].map(|right| with_tools(trajectory(0, &[call(), answer(right)])));
    let map = credited(&episodes, &config(CreditMethod::Grpo, ScaleRewards::Group, 1.0));
    let clip = Clip { low: 0.2, high: 0.2, dual: None };
    let settings =
        LossSettings { clip, aggregation: Aggregation::SequenceMean { count_untrained: true }, train_tool_tokens: false };
    let ones: Vec<Vec<f64>> = episodes.iter().map(|episode| vec![1.0; episode.tokens.len()]).collect();
    let losses = token_losses(&episodes, &map.advantages, &ones, &settings).concat();
    assert_close(&[losses.iter().map(|token| token.share).sum()], &[0.0], 1e-12);
    assert!(losses.iter().map(|token| token.gradient.abs()).sum::<f64>() > 0.5);
}
