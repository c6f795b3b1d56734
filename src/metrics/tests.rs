//! The parts of tokens in the policy loss add up to it, and each token's provenance leads to its part.

use proptest::prelude::*;

use super::*;
use crate::config::{
    Aggregation, CreditMethod, ExperimentConfig, NoSignalGroups, PolicyLoss, RatioLevel, RewardMode, ScaleRewards, Truncated,
};
use crate::credit::tests::{config, configs, credited, episodes, with_tools};
use crate::credit::{CreditMap, METHODS, needs_values};
use crate::objective::LeftOut;
use crate::reward::tests::{answer, call, malformed, trajectory};
use crate::reward::{score, weighted_terms};
use crate::rollout::{End, Trajectory};
use crate::seed::{Purpose, RootSeed};

const SURROGATES: [PolicyLoss; 4] = [PolicyLoss::Clip, PolicyLoss::Cispo, PolicyLoss::Sapo, PolicyLoss::Gmpo];
const LEVELS: [RatioLevel; 3] = [RatioLevel::Token, RatioLevel::Sequence, RatioLevel::SequenceToken];
const AGGREGATIONS: [Aggregation; 4] =
    [Aggregation::TokenMean, Aggregation::SequenceMean, Aggregation::Constant, Aggregation::GroupMean];

/// Settings of credit and of the loss, all of them drawn.
fn settings() -> impl Strategy<Value = ExperimentConfig> {
    let choices = (
        prop::sample::select(SURROGATES.to_vec()),
        prop::sample::select(LEVELS.to_vec()),
        prop::sample::select(AGGREGATIONS.to_vec()),
    );
    let numbers = (0.05_f64..0.5, 0.05_f64..0.5, prop_oneof![Just(0.0), 1.5_f64..4.0]);
    let switches = (any::<bool>(), any::<bool>(), any::<bool>());
    (configs(), choices, numbers, switches).prop_map(|(base, choices, numbers, switches)| ExperimentConfig {
        reward_mode: RewardMode::Mixed,
        policy_loss: choices.0,
        ratio_level: choices.1,
        aggregation: choices.2,
        epsilon: numbers.0,
        epsilon_high: numbers.1,
        dual_clip: numbers.2,
        loss_mask: switches.0,
        truncated: if switches.1 { Truncated::Mask } else { Truncated::Failure },
        no_signal_groups: if switches.2 { NoSignalGroups::Drop } else { NoSignalGroups::Keep },
        ..base
    })
}

/// Log-probabilities old and now, with ratios on both sides of any clip.
fn log_probs(trajectories: &[Trajectory], seed: u32) -> [Vec<Vec<f64>>; 2] {
    let mut draws = RootSeed(seed).draws(Purpose::Question, 0, 0, 0);
    let mut rows = |spread: f64| -> Vec<Vec<f64>> {
        let row = |trajectory: &Trajectory| trajectory.tokens.iter().map(|_| spread * f64::from(draws.normal()) - 2.0).collect();
        trajectories.iter().map(row).collect()
    };
    [rows(0.3), rows(0.7)]
}

fn losses(
    config: &ExperimentConfig,
    episodes: &[Trajectory],
    map: &CreditMap,
    [old, now]: &[Vec<Vec<f64>>; 2],
) -> Vec<Vec<TokenLoss>> {
    token_losses(config, episodes, map, Some(LogProbs { old, now })).expect("the loss is of tokens")
}

/// The losses of one trajectory from their definitions.
fn direct_row(config: &ExperimentConfig, tokens: &[[f64; 3]]) -> Vec<f64> {
    let (low, high) = (config.epsilon, config.epsilon_high);
    let mean = |of: &dyn Fn(&[f64; 3]) -> f64| tokens.iter().map(of).sum::<f64>() / tokens.len().max(1) as f64;
    let sequence = mean(&|[old, now, _]| now - old).exp();
    let geometric = mean(&|[old, now, a]| if *a > 0.0 { (now - old).min(high) } else { (now - old).max(-low) }).exp();
    let loss = |&[old, now, a]: &[f64; 3]| {
        let ratio = if config.ratio_level == RatioLevel::Token { (now - old).exp() } else { sequence };
        match config.policy_loss {
            PolicyLoss::Cispo => -ratio.min(1.0 + high) * a * now,
            PolicyLoss::Sapo => {
                let tau = if a > 0.0 { 1.0 } else { 1.05 };
                -4.0 / tau / (1.0 + (-tau * (ratio - 1.0)).exp()) * a
            }
            PolicyLoss::Gmpo => -geometric * a,
            _ => {
                let gain = (ratio * a).min(ratio.max(1.0 - low).min(1.0 + high) * a);
                if config.dual_clip > 0.0 && a < 0.0 { -gain.max(config.dual_clip * a) } else { -gain }
            }
        }
    };
    tokens.iter().map(loss).collect()
}

/// The policy loss of a batch from its definition, not from the parts of tokens.
fn direct(config: &ExperimentConfig, episodes: &[Trajectory], map: &CreditMap, [old, now]: &[Vec<Vec<f64>>; 2]) -> f64 {
    let mut rows: Vec<(usize, Vec<f64>)> = Vec::new();
    for (index, episode) in episodes.iter().enumerate() {
        if config.truncated == Truncated::Mask && episode.end == End::TurnLimit {
            continue;
        }
        if config.no_signal_groups == NoSignalGroups::Drop && map.equal_returns[episode.group] {
            continue;
        }
        let mut tokens = Vec::new();
        for (turn, &advantage) in episode.turns.iter().zip(&map.advantages[index]) {
            let end = if config.loss_mask { turn.action_end } else { turn.end };
            tokens.extend((turn.start..end).map(|place| [old[index][place], now[index][place], advantage]));
        }
        rows.push((episode.group, direct_row(config, &tokens)));
    }
    let sum = |row: &Vec<f64>| row.iter().sum::<f64>();
    let total: f64 = rows.iter().map(|(_, row)| sum(row)).sum();
    let filled = rows.iter().filter(|(_, row)| !row.is_empty());
    match config.aggregation {
        Aggregation::TokenMean => total / rows.iter().map(|(_, row)| row.len()).sum::<usize>().max(1) as f64,
        Aggregation::SequenceMean => {
            filled.clone().map(|(_, row)| sum(row) / row.len() as f64).sum::<f64>() / filled.count().max(1) as f64
        }
        Aggregation::Constant => total / (rows.len().max(1) * config.turn_limit * config.turn_tokens) as f64,
        Aggregation::GroupMean => {
            let groups: std::collections::BTreeSet<usize> = rows.iter().map(|(group, _)| *group).collect();
            let mean = |group: &usize| {
                let own = || rows.iter().filter(|(other, _)| other == group).map(|(_, row)| row);
                own().map(sum).sum::<f64>() / own().map(Vec::len).sum::<usize>().max(1) as f64
            };
            groups.iter().map(mean).sum::<f64>() / groups.len().max(1) as f64
        }
    }
}

proptest! {
    #[test]
    fn the_shares_of_all_tokens_sum_to_the_loss(
        episodes in episodes(), empty in any::<bool>(), config in settings(), seed in any::<u32>(),
    ) {
        let mut episodes: Vec<Trajectory> = episodes.into_iter().map(with_tools).collect();
        if empty {
            episodes.push(Trajectory { end: End::Terminated, ..with_tools(trajectory(0, &[])) });
        }
        let map = credited(&episodes, &config);
        let given = log_probs(&episodes, seed);
        let all = losses(&config, &episodes, &map, &given);
        let expected = direct(&config, &episodes, &map, &given);
        let shares = policy_loss_of(&all).expect("all log-probabilities are known");
        let size: f64 = all.iter().flatten().filter_map(|token| token.share).map(f64::abs).sum();
        prop_assert!((shares - expected).abs() <= 1e-12 * (1.0 + size), "{} is not {}", shares, expected);
        let of_gradient: f64 = all.iter().flatten().map(|token| token.gradient_share).sum();
        prop_assert!((of_gradient - 1.0).abs() < 1e-9 || all.iter().flatten().all(|token| token.gradient == 0.0));

        // The gradient is the slope of the loss at the log-probability of one token. Two surrogates stop it on purpose.
        let stopped = config.policy_loss == PolicyLoss::Cispo
            || config.policy_loss != PolicyLoss::Gmpo && config.ratio_level == RatioLevel::SequenceToken;
        let mut places = all.iter().enumerate().flat_map(|(i, row)| (0..row.len()).map(move |t| (i, t)));
        let place = places.find(|&(i, t)| all[i][t].left_out.is_none());
        if let (Some((index, token)), false) = (place, stopped) {
            let moved = |step: f64| {
                let [old, mut now] = given.clone();
                now[index][token] += step;
                losses(&config, &episodes, &map, &[old, now])
            };
            let [below, above] = [-1e-6, 1e-6].map(moved);
            let clips = |rows: &[Vec<TokenLoss>]| rows[index].iter().map(|token| token.clipped).collect::<Vec<_>>();
            if clips(&below) == clips(&above) {
                let slope = (policy_loss_of(&above).unwrap() - policy_loss_of(&below).unwrap()) / 2e-6;
                let gradient = all[index][token].gradient;
                prop_assert!((slope - gradient).abs() <= 1e-6 * (1.0 + size), "{} is not {}", slope, gradient);
            }
        }
    }

    #[test]
    fn the_provenance_of_a_token_leads_from_its_turn_s_credit_to_its_shares(
        episodes in episodes(), config in settings(), seed in any::<u32>(),
    ) {
        let episodes: Vec<Trajectory> = episodes.into_iter().map(with_tools).collect();
        let (rewards, map) = (score(&episodes, &weighted_terms(&config)), credited(&episodes, &config));
        let [old, now] = &log_probs(&episodes, seed);
        let given = Some(LogProbs { old, now });
        let all = token_losses(&config, &episodes, &map, given).unwrap();
        for (index, episode) in episodes.iter().enumerate() {
            for position in 0..episode.tokens.len() + 1 {
                let found = provenance((index, position), &config, &episodes, &rewards, &map, given);
                prop_assert_eq!(found.is_some(), (episode.prompt_length..episode.tokens.len()).contains(&position));
                let Some(Provenance { chain, token: Some(token), policy_loss, gradient_sum, trained_tokens, .. }) = found else {
                    prop_assert!(position == episode.tokens.len() || all[index][position].left_out == Some(LeftOut::Prompt));
                    continue
                };
                let turn = episode.turns[chain.turn];
                prop_assert!((turn.start..turn.end).contains(&position) && chain.trajectory == index);
                prop_assert_eq!((token, policy_loss), (all[index][position], policy_loss_of(&all)));
                let reason = if position >= turn.action_end && config.loss_mask {
                    Some(LeftOut::ToolToken)
                } else if config.truncated == Truncated::Mask && episode.end == End::TurnLimit {
                    Some(LeftOut::Truncated)
                } else if config.no_signal_groups == NoSignalGroups::Drop && map.equal_returns[episode.group] {
                    Some(LeftOut::NoSignal)
                } else {
                    None
                };
                prop_assert_eq!(token.left_out, reason);
                prop_assert_eq!(token.advantage, if token.left_out.is_none() { chain.advantage } else { 0.0 });
                prop_assert_eq!(token.share, token.loss.map(|loss| token.weight * loss));
                prop_assert_eq!(trained_tokens, Some(all.iter().flatten().filter(|other| other.left_out.is_none()).count()));
                prop_assert!((token.gradient_share * gradient_sum.unwrap() - token.gradient.abs()).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn property_9_with_the_loss_mask_off_only_tool_tokens_change(episodes in episodes(), seed in any::<u32>()) {
        let episodes: Vec<Trajectory> = episodes.into_iter().map(with_tools).collect();
        let config = ExperimentConfig { aggregation: Aggregation::Constant, ..mixed() };
        let map = credited(&episodes, &config);
        let given = log_probs(&episodes, seed);
        let [on, off] = [true, false].map(|loss_mask| losses(&ExperimentConfig { loss_mask, ..config.clone() }, &episodes, &map, &given));
        for (on, off) in on.iter().flatten().zip(off.iter().flatten()) {
            if on.left_out == Some(LeftOut::ToolToken) {
                prop_assert!(off.left_out.is_none() && on.gradient == 0.0);
            } else {
                let without_share = |token: &TokenLoss| TokenLoss { gradient_share: 0.0, ..*token };
                prop_assert_eq!(without_share(on), without_share(off));
            }
        }
    }
}

fn mixed() -> ExperimentConfig {
    ExperimentConfig { reward_mode: RewardMode::Mixed, turn_weight: -0.125, ..ExperimentConfig::default() }
}

#[test]
fn the_clip_acts_on_the_side_where_it_would_go_too_far() {
    let one = [with_tools(trajectory(0, &[answer(true)]))];
    let loss = |ratio: f64, advantage: f64, epsilon_high: f64, dual_clip: f64| {
        let config = ExperimentConfig { epsilon_high, dual_clip, ..ExperimentConfig::default() };
        let map = CreditMap { advantages: vec![vec![advantage]], ..credited(&one, &config) };
        let token = losses(&config, &one, &map, &[vec![vec![0.0; 5]], vec![vec![ratio.ln(); 5]]])[0][2];
        assert!((token.weight - 1.0 / 3.0).abs() < 1e-12);
        assert_eq!(token.clipped, token.gradient == 0.0);
        (token.loss.unwrap(), token.clipped)
    };
    let cases = [
        (1.5, 1.0, 0.2, 0.0, -1.2, true),
        (1.5, -1.0, 0.2, 0.0, 1.5, false),
        (0.5, 1.0, 0.2, 0.0, -0.5, false),
        (0.5, -1.0, 0.2, 0.0, 0.8, true),
        (5.0, -1.0, 0.2, 0.0, 5.0, false),
        (5.0, -1.0, 0.2, 3.0, 3.0, true),
        (1.25, 1.0, 0.2, 0.0, -1.2, true),
        (1.25, 1.0, 0.28, 0.0, -1.25, false),
    ];
    for (ratio, advantage, epsilon_high, dual, expected, clipped) in cases {
        let (loss, was_clipped) = loss(ratio, advantage, epsilon_high, dual);
        assert!((loss - expected).abs() < 1e-12 && was_clipped == clipped, "{ratio} {advantage}: {loss} {was_clipped}");
    }
}

/// T-15, T-45: a truncated episode that is left out has no share and no gradient, and does not count in the denominator.
#[test]
fn a_truncated_episode_that_is_left_out_changes_nothing_of_the_others() {
    let cut = with_tools(trajectory(0, &[call(), malformed()]));
    let whole = [true, false].map(|right| with_tools(trajectory(0, &[call(), answer(right)])));
    let episodes = [whole.to_vec(), vec![cut]].concat();
    for aggregation in AGGREGATIONS {
        let config = ExperimentConfig { truncated: Truncated::Mask, aggregation, ..mixed() };
        let map = credited(&episodes, &config);
        let with = token_losses(&config, &episodes, &map, None).unwrap();
        assert!(with[2][2..].iter().all(|token| token.left_out.is_some() && token.gradient == 0.0 && token.share == Some(0.0)));
        assert_eq!(with[2][2].left_out, Some(LeftOut::Truncated));
        let alone = CreditMap { advantages: map.advantages[..2].to_vec(), ..map };
        assert_eq!(with[..2], token_losses(&config, &episodes[..2], &alone, None).unwrap());
    }
}

/// T-23: a group without signal has no gradient at all.
#[test]
fn a_group_without_signal_has_no_gradient_at_all() {
    let group = |group: usize, rights: [bool; 3]| rights.map(|right| with_tools(trajectory(group, &[call(), answer(right)])));
    let episodes = [group(0, [true, false, true]), group(1, [true; 3])].concat();
    let group_methods = METHODS.iter().filter(|&&method| method != CreditMethod::ReinforcePp && !needs_values(method));
    for &method in group_methods {
        let config = ExperimentConfig { reward_mode: RewardMode::Outcome, ..config(method, ScaleRewards::Batch, 0.9) };
        let map = credited(&episodes, &config);
        // Process supervision compares the turns of an episode too, so that a group of equals has signal there.
        let silent = method != CreditMethod::Process;
        assert_eq!(map.no_signal, [false, silent], "{method:?}");
        let all = losses(&config, &episodes, &map, &log_probs(&episodes, 1));
        let norms: Vec<f64> = all.iter().map(|row| row.iter().map(|token| token.gradient.abs()).sum()).collect();
        assert!(norms[..3].iter().sum::<f64>() > 0.0);
        assert!(!silent || norms[3..] == [0.0; 3], "{method:?}: {norms:?}");
    }
}

/// T-41: at ratio 1 the loss is 0 and its gradient is not.
#[test]
fn a_loss_of_zero_at_ratio_one_is_no_sign_of_no_gradient() {
    let episodes = [true, false, false].map(|right| with_tools(trajectory(0, &[call(), answer(right)])));
    let config =
        ExperimentConfig { aggregation: Aggregation::SequenceMean, ..config(CreditMethod::Grpo, ScaleRewards::Group, 1.0) };
    let all = token_losses(&config, &episodes, &credited(&episodes, &config), None).unwrap();
    assert!(policy_loss_of(&all).unwrap().abs() < 1e-12);
    assert!(all.iter().flatten().all(|token| token.left_out.is_some() || token.ratio == 1.0));
    assert!(all.iter().flatten().map(|token| token.gradient.abs()).sum::<f64>() > 0.5);
}

#[test]
fn what_is_not_known_is_said() {
    let episodes = [true, false].map(|right| with_tools(trajectory(0, &[call(), answer(right)])));
    let config = ExperimentConfig { policy_loss: PolicyLoss::Cispo, loss_mask: false, beta: 0.04, ..mixed() };
    let (rewards, map) = (score(&episodes, &weighted_terms(&config)), credited(&episodes, &config));
    let of = |config: &ExperimentConfig, position| provenance((0, position), config, &episodes, &rewards, &map, None).unwrap();
    let tool = of(&config, 5);
    let token = tool.token.unwrap();
    assert_eq!((token.left_out, token.log_prob, token.share, tool.policy_loss), (None, None, None, None));
    assert!(token.gradient != 0.0 && of(&config, 2).token.unwrap().share.is_some());
    assert!(tool.other_terms.contains(&OtherTerm::Kl { beta: 0.04 }));

    let pairs = of(&ExperimentConfig { policy_loss: PolicyLoss::Dpo, ..config }, 2);
    assert!(pairs.token.is_none() && pairs.policy_loss.is_none());
    assert!(pairs.other_terms.iter().any(|term| matches!(term, OtherTerm::Preference { .. })));
}
