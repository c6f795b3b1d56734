//! Cases with known values (named by their number in the project's list of public bug reports) and properties that hold for
//! every reward.

mod cases;
mod evidence;
mod parts;
mod properties;
mod provenance;
mod truth;
mod worked;

use proptest::prelude::*;

use super::*;
use crate::config::{CreditAnchor, RewardMode, ScaleRewards, TurnBaseline};
use crate::environment::{Facts, REGISTRY};
use crate::reward::tests::{answer, call, malformed, trajectory};
use crate::reward::{score, weighted_terms};
use crate::rollout::{End, Trajectory, Turn, demonstrate};

const SCALINGS: [ScaleRewards; 3] = [ScaleRewards::Group, ScaleRewards::Batch, ScaleRewards::None];

/// One advantage for all turns of a trajectory.
const WHOLE: [CreditMethod; 3] = [CreditMethod::Grpo, CreditMethod::Rloo, CreditMethod::ReinforcePpBaseline];

/// Whitened over the trained tokens of the batch.
const WHITENED: [CreditMethod; 3] = [CreditMethod::ReinforcePp, CreditMethod::ReinforcePpBaseline, CreditMethod::Gae];

pub(crate) fn config(credit_method: CreditMethod, scale_rewards: ScaleRewards, gamma: f64) -> ExperimentConfig {
    ExperimentConfig { credit_method, scale_rewards, gamma, ..ExperimentConfig::default() }
}

fn assign_rewards(groups: &[usize], rewards: &[Vec<f64>], config: &ExperimentConfig) -> CreditMap {
    assign(&Evidence::of_rewards(groups, rewards), config)
}

const fn convention(scaling: Scaling) -> Convention {
    Convention { scaling, lone: Lone::Zero }
}

const UNSCALED: Convention = convention(Scaling::None);
const SCALED: Convention = convention(Scaling::GROUP);

#[track_caller]
fn assert_close(got: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(got.len(), expected.len(), "{got:?} against {expected:?}");
    let close = got.iter().zip(expected).all(|(got, expected)| (got - expected).abs() <= tolerance);
    assert!(close, "{got:?} is not {expected:?} within {tolerance}");
}

#[track_caller]
fn assert_rows_close(got: &[Vec<f64>], expected: &[Vec<f64>], tolerance: f64) {
    assert_eq!(got.len(), expected.len());
    got.iter().zip(expected).for_each(|(got, expected)| assert_close(got, expected, tolerance));
}

/// Four episodes of one group with rewards in the course of them.
fn worked_example() -> Vec<Vec<f64>> {
    vec![vec![0.1, 0.0, 1.0], vec![0.1, 0.0], vec![0.0, 0.0, 0.0], vec![0.1, 1.0]]
}

/// Groups and rewards of a batch: one to three groups of one to five trajectories of one to four turns, interleaved.
fn batches() -> impl Strategy<Value = (Vec<usize>, Vec<Vec<f64>>)> {
    let turns = prop::collection::vec(quarters(), 1..=4);
    prop::collection::vec((0_usize..3, turns), 1..=15).prop_map(|batch| batch.into_iter().unzip())
}

fn quarters() -> impl Strategy<Value = f64> {
    (-8_i32..=8).prop_map(|quarters| f64::from(quarters) / 4.0)
}

/// One turn: what was done and seen (few choices, so that histories repeat), reward, value before it, trained tokens.
type TurnDraw = (u64, f64, f64, usize);

/// Evidence whose members share prefixes as those of a real group do, with values for every turn.
fn evidences() -> impl Strategy<Value = Evidence> {
    let turn = (0_u64..2, quarters(), quarters(), 1_usize..5);
    let turns = prop::collection::vec(turn, 1..=4);
    prop::collection::vec((0_usize..3, any::<bool>(), turns), 1..=15).prop_map(|batch| {
        let mut evidence = Evidence { values: Some(Vec::new()), ..Evidence::default() };
        batch.iter().for_each(|(group, outcome, turns)| push(&mut evidence, *group, *outcome, turns));
        evidence
    })
}

fn push(evidence: &mut Evidence, group: usize, outcome: bool, turns: &[TurnDraw]) {
    let rewards: Vec<f64> = turns.iter().map(|turn| turn.1).collect();
    let last = |(turn, &reward): (usize, &f64)| if outcome && turn + 1 == turns.len() { reward } else { 0.0 };
    let mut history = vec![1];
    turns.iter().for_each(|turn| history.push(history[history.len() - 1] * 3 + turn.0));
    evidence.groups.push(group);
    evidence.outcome_rewards.push(rewards.iter().enumerate().map(last).collect());
    evidence.rewards.push(rewards);
    evidence.observations.push(history[..turns.len()].iter().map(|history| history % 3).collect());
    evidence.histories.push(history);
    evidence.trained_tokens.push(turns.iter().map(|turn| turn.3).collect());
    if let Some(values) = &mut evidence.values {
        values.push(turns.iter().map(|turn| turn.2).collect());
    }
}

fn methods() -> impl Strategy<Value = CreditMethod> {
    prop::sample::select(METHODS.to_vec())
}

fn scalings() -> impl Strategy<Value = ScaleRewards> {
    prop::sample::select(SCALINGS.to_vec())
}

/// Settings of credit, all of them drawn.
pub(crate) fn configs() -> impl Strategy<Value = ExperimentConfig> {
    let switches = (any::<bool>(), any::<bool>());
    let numbers = (0.0_f64..=1.0, 0.0_f64..4.0, 0.0_f64..4.0, 0.0_f64..=1.0);
    (methods(), scalings(), switches, numbers).prop_map(|(method, scaling, (pooled, observed), numbers)| ExperimentConfig {
        turn_baseline: if pooled { TurnBaseline::Pooled } else { TurnBaseline::TurnIndex },
        credit_anchor: if observed { CreditAnchor::Observation } else { CreditAnchor::History },
        step_weight: numbers.1,
        turn_coefficient: numbers.2,
        gae_lambda: numbers.3,
        ..config(method, scaling, numbers.0)
    })
}

/// Trajectories of two groups with any mixture of turns.
pub(crate) fn episodes() -> impl Strategy<Value = Vec<Trajectory>> {
    let repeated = Facts { repeated_call: true, ..call() };
    let step = prop::sample::select(vec![call(), malformed(), repeated]);
    let last = prop::sample::select(vec![answer(true), answer(false), malformed()]);
    let turns = (prop::collection::vec(step, 0..4), last).prop_map(|(mut turns, last)| {
        turns.push(last);
        turns
    });
    prop::collection::vec((0_usize..2, turns).prop_map(|(group, facts)| trajectory(group, &facts)), 2..12)
}

/// Turns of three sampled tokens, of which each but the last is followed by a tool result of two, after a prompt of two; cut by the
/// turn limit where the last turn is no answer.
pub(crate) fn with_tools(mut trajectory: Trajectory) -> Trajectory {
    let count = trajectory.turns.len();
    let turns = trajectory.turns.iter().enumerate().map(|(index, turn)| {
        let (start, result) = (2 + 5 * index, if index + 1 < count { 2 } else { 0 });
        Turn { start, action_end: start + 3, end: start + 3 + result, ..*turn }
    });
    trajectory.turns = turns.collect();
    trajectory.prompt_length = 2;
    let length = trajectory.turns.last().map_or(2, |turn| turn.end);
    trajectory.tokens = vec![1; length];
    let sampled = |place| trajectory.turns.iter().any(|turn| (turn.start..turn.action_end).contains(&place));
    trajectory.loss_mask = (0..length).map(sampled).collect();
    trajectory.log_probs = trajectory.loss_mask.iter().map(|&sampled| if sampled { -0.5 } else { 0.0 }).collect();
    if trajectory.turns.last().is_none_or(|turn| !turn.facts.answered) {
        trajectory.end = End::TurnLimit;
    }
    trajectory
}

/// Scores and assigns credit, as a training step does; every state has the value 1/2.
pub(crate) fn credited(trajectories: &[Trajectory], config: &ExperimentConfig) -> CreditMap {
    let values = trajectories.iter().map(|trajectory| vec![0.5; trajectory.turns.len()]).collect();
    let rewards = score(trajectories, &weighted_terms(config));
    assign(&Evidence::of(trajectories, &rewards, Some(values)), config)
}
