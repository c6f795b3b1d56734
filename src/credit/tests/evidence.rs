//! What is read off trajectories.

use super::*;
use crate::rollout::{End, Turn};
use crate::vocabulary::{PAD, Token};

/// A trajectory with a prompt of two tokens, then per turn the action and the observation after it.
fn spoken(prompt: [Token; 2], turns: &[(&[Token], &[Token])]) -> Trajectory {
    let mut spoken = Trajectory { tokens: prompt.to_vec(), prompt_length: 2, ..trajectory(0, &[]) };
    for (action, observation) in turns {
        let start = spoken.tokens.len();
        spoken.tokens.extend(action.iter().chain(*observation));
        let (action_end, end) = (start + action.len(), spoken.tokens.len());
        spoken.turns.push(Turn { start, action_end, end, facts: call() });
    }
    spoken.loss_mask = vec![true; spoken.tokens.len()];
    spoken.log_probs = vec![0.0; spoken.tokens.len()];
    spoken.end = End::TurnLimit;
    spoken
}

fn evidence(trajectories: &[Trajectory]) -> Evidence {
    Evidence::of(trajectories, &score(trajectories, &weighted_terms(&ExperimentConfig::default())), None)
}

#[test]
fn histories_are_equal_exactly_where_all_tokens_before_are() {
    let one = spoken([1, 2], &[(&[3, 4], &[5, 6]), (&[7], &[8]), (&[9], &[])]);
    let other_result = spoken([1, 2], &[(&[3, 4], &[5, 5]), (&[7], &[8]), (&[9], &[])]);
    let other_action = spoken([1, 2], &[(&[3, 4], &[5, 6]), (&[6], &[8]), (&[9], &[])]);
    let other_prompt = spoken([2, 2], &[(&[3, 4], &[5, 6])]);
    let Evidence { histories, observations, trained_tokens, .. } = evidence(&[one, other_result, other_action, other_prompt]);
    assert_eq!(histories.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 4, 2]);
    let shared = |a: usize, b: usize| histories[a].iter().zip(&histories[b]).take_while(|(a, b)| a == b).count();
    assert_eq!([shared(0, 1), shared(0, 2), shared(0, 3)], [1, 2, 0]);
    assert!(histories[0][1..].iter().zip(&histories[1][1..]).all(|(a, b)| a != b));
    // The second result is the same in all; the first only where nothing differs.
    assert_eq!(observations.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3, 1]);
    assert!(observations[0][0] == observations[1][0] && observations[0][0] != observations[3][0]);
    assert!(observations[0][1] != observations[1][1] && observations[0][1] == observations[2][1]);
    assert!(observations[0][2] == observations[1][2] && observations[0][2] == observations[2][2]);
    assert_eq!(trained_tokens, [vec![2, 1, 1], vec![2, 1, 1], vec![2, 1, 1], vec![2]]);
}

#[test]
fn outcome_rewards_are_those_of_outcome_terms() {
    let config = ExperimentConfig { reward_mode: RewardMode::Mixed, ..ExperimentConfig::default() };
    let trajectories = [trajectory(0, &[call(), answer(true)]), trajectory(0, &[answer(false)])];
    let rewards = score(&trajectories, &weighted_terms(&config));
    let evidence = Evidence::of(&trajectories, &rewards, None);
    assert_eq!(evidence.rewards, [vec![0.1, 1.05], vec![0.05]]);
    assert_eq!(evidence.outcome_rewards, [vec![0.0, 1.0], vec![0.0]]);
}

#[test]
fn no_two_histories_of_many_real_episodes_collide() {
    let trajectories = demonstrate(&ExperimentConfig { demonstrations: 2000, ..ExperimentConfig::defaults("search", REGISTRY) });
    let mut seen = std::collections::HashMap::new();
    for (trajectory, histories) in trajectories.iter().zip(evidence(&trajectories).histories) {
        let places = trajectory.turns.iter().map(|turn| turn.start).chain([trajectory.tokens.len()]);
        for (place, history) in places.zip(histories) {
            let tokens = &trajectory.tokens[..place];
            assert_eq!(*seen.entry(history).or_insert(tokens), tokens);
        }
    }
    assert!(seen.len() > 1000);
}

#[test]
fn t_26_padding_changes_nothing() {
    let settings = ExperimentConfig { reward_mode: RewardMode::Mixed, ..ExperimentConfig::default() };
    let plain = [trajectory(0, &[call(), answer(true)]), trajectory(0, &[malformed()]), trajectory(0, &[call(), answer(false)])];
    let padded = plain.clone().map(|mut trajectory| {
        trajectory.tokens.extend([PAD; 10]);
        trajectory.loss_mask.extend([false; 10]);
        trajectory.log_probs.extend([0.0; 10]);
        trajectory
    });
    assert_eq!(evidence(&plain), evidence(&padded));
    for method in METHODS.iter().copied() {
        let config = ExperimentConfig { credit_method: method, ..settings.clone() };
        assert_eq!(credited(&plain, &config), credited(&padded, &config));
    }
}
