//! One turn changed, the tail played on with the same randomness.

use pollster::block_on;
use turnwise::config::{ExperimentConfig, WarmStart};
use turnwise::environment::REGISTRY;
use turnwise::policy::Policy;
use turnwise::rollout::Trajectory;
use turnwise::trainer::{ChangeError, Changed, PlayedOn, Rollout, Trainer, shipped_policy};
use turnwise::vocabulary::{EOT, Token, spell};

use crate::support::cpu;

/// Search with long documents, so that tools draw too, played by the warm start of the plain task.
fn played() -> (ExperimentConfig, Policy, Rollout) {
    let mut config = ExperimentConfig::defaults("search", REGISTRY);
    (config.groups, config.num_generations, config.held_out, config.warm_start) = (6, 8, 0, WarmStart::Shipped);
    let file = std::fs::read(crate::root().join("www/public/warm-start/search.safetensors")).unwrap();
    let policy = shipped_policy(&config, &file, &cpu()).unwrap();
    let rollout = block_on(Trainer::new(config.clone(), &policy).sample()).unwrap();
    (config, policy, rollout)
}

fn action(trajectory: &Trajectory, turn: usize) -> Vec<Token> {
    let turn = trajectory.turns[turn];
    trajectory.tokens[turn.start..turn.action_end].to_vec()
}

fn play(setting: &(ExperimentConfig, Policy, Rollout), changed: &Changed, rolls: usize) -> (PlayedOn, PlayedOn) {
    let (config, policy, rollout) = setting;
    changed.check(rollout, config).unwrap();
    block_on(changed.play(policy, rollout, config, rolls)).unwrap()
}

/// Putting in place what was there changes nothing: the tail is drawn with the same numbers.
#[test]
fn the_same_action_gives_the_same_episode() {
    let setting = played();
    for (index, trajectory) in setting.2.training.iter().enumerate() {
        for turn in 0..trajectory.turns.len() {
            let changed = Changed { trajectory: index, turn, replacement: Some(action(trajectory, turn)) };
            let (original, other) = play(&setting, &changed, 2);
            assert_eq!(original.trajectory, *trajectory);
            assert_eq!(other.trajectory.tokens, trajectory.tokens, "episode {index}, turn {turn}");
            assert_eq!(other.trajectory.turns, trajectory.turns);
            assert_eq!((original.reward, original.continuations), (other.reward, other.continuations));
        }
    }
}

/// A turn that is left out is gone, what came before stays, and the episode is played to an end by the rules.
#[test]
fn a_turn_can_be_left_out() {
    let setting = played();
    let long = |(_, trajectory): &(usize, &Trajectory)| trajectory.turns.len() >= 2;
    let (index, trajectory) = setting.2.training.iter().enumerate().find(long).unwrap();
    let (_, other) = play(&setting, &Changed { trajectory: index, turn: 0, replacement: None }, 4);
    let prompt = trajectory.prompt_length;
    assert_eq!(other.trajectory.tokens[..prompt], trajectory.tokens[..prompt]);
    assert_eq!(other.trajectory.turns[0].start, prompt);
    assert_eq!(other.trajectory.log_probs.len(), other.trajectory.tokens.len());
    assert_eq!(other.continuations.count, 4);
    // It is played with the numbers of the turn after it, not with its own again.
    let own = block_on(Trainer::new(setting.0.clone(), &setting.1).sample()).unwrap();
    assert_eq!(own.training[index].tokens, trajectory.tokens);
}

/// A search that finds the answer in place of a guess: reward rises from 0 to 1 in some episode, and the other way round.
#[test]
fn a_changed_action_changes_the_reward() {
    let setting = played();
    let (mut better, mut worse) = (0, 0);
    for (index, trajectory) in setting.2.training.iter().enumerate() {
        let last = trajectory.turns.len() - 1;
        let answer = action(trajectory, last);
        for digit in "0123456789".chars() {
            let mut replacement = answer.clone();
            let Some(place) = replacement.iter().position(|&token| spell(&[token]).trim().parse::<u8>().is_ok()) else {
                continue;
            };
            replacement[place] = turnwise::vocabulary::NAMES.iter().position(|name| *name == digit.to_string()).unwrap() as Token;
            let (original, other) = play(&setting, &Changed { trajectory: index, turn: last, replacement: Some(replacement) }, 0);
            better += usize::from(other.reward > original.reward);
            worse += usize::from(other.reward < original.reward);
        }
    }
    assert!(better > 0 && worse > 0, "{better} better, {worse} worse");
}

/// An action without `<eot>` is closed where there is room.
#[test]
fn an_open_action_is_closed() {
    let setting = played();
    let mut open = action(&setting.2.training[0], 0);
    open.retain(|&token| token != EOT);
    let (_, other) = play(&setting, &Changed { trajectory: 0, turn: 0, replacement: Some(open.clone()) }, 0);
    assert_eq!(action(&other.trajectory, 0), [open, vec![EOT]].concat());
}

#[test]
fn what_does_not_fit_is_named() {
    let (config, _, rollout) = played();
    let change = |trajectory, turn, replacement| Changed { trajectory, turn, replacement }.check(&rollout, &config);
    assert_eq!(change(0, 99, None), Err(ChangeError::NoSuchTurn(0, 99)));
    assert_eq!(change(9999, 0, None), Err(ChangeError::NoSuchTurn(9999, 0)));
    let bound = config.turn_tokens;
    assert_eq!(change(0, 0, Some(vec![1; bound + 1])), Err(ChangeError::ActionLength { found: bound + 1, bound }));
    assert_eq!(change(0, 0, Some(Vec::new())), Err(ChangeError::ActionLength { found: 0, bound }));
}
