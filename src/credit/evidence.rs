//! What credit is assigned from: numbers per trajectory and turn, nothing of tokens, policy or tensors.

use crate::reward::RewardTable;
use crate::rollout::Trajectory;
use crate::vocabulary::Token;

/// Rewards and states of a batch. Rows are trajectories; `[trajectory][turn]` unless said otherwise, ragged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    /// The group of each trajectory, `[trajectory]`.
    pub groups: Vec<usize>,
    /// Reward of each turn, all terms together.
    pub rewards: Vec<Vec<f64>>,
    /// The part of it that the outcome terms paid.
    pub outcome_rewards: Vec<Vec<f64>>,
    /// Which history each turn started from: a hash of all tokens before it. One entry more than turns: the last is the history
    /// after the last turn. Only compared within a group, so equal entries mean equal token sequences up to collisions.
    pub histories: Vec<Vec<u64>>,
    /// What was just observed before each turn: a hash of the prompt for the first, of the last tool result for the others.
    pub observations: Vec<Vec<u64>>,
    /// How many tokens the policy sampled in each turn.
    pub trained_tokens: Vec<Vec<usize>>,
    /// The value of the state before each turn, from a critic or from re-rolls. After the last turn the value is 0.
    pub values: Option<Vec<Vec<f64>>>,
}

impl Evidence {
    /// The evidence of scored trajectories; `values[i][k]` is the value before turn `k` of trajectory `i`, where it is known.
    ///
    /// Histories are told apart by 64-bit hashes. Among the `n` different histories of a group two collide with a probability of
    /// about `n^2 / 2^65`; a group has at most 64 trajectories of 9 histories, which makes less than 1e-13.
    pub fn of(trajectories: &[Trajectory], rewards: &RewardTable, values: Option<Vec<Vec<f64>>>) -> Self {
        Evidence {
            groups: trajectories.iter().map(|trajectory| trajectory.group).collect(),
            rewards: rewards.totals(),
            outcome_rewards: rewards.outcome_totals(),
            histories: trajectories.iter().map(histories).collect(),
            observations: trajectories.iter().map(observations).collect(),
            trained_tokens: trajectories.iter().map(sampled_tokens).collect(),
            values,
        }
    }

    /// Evidence of rewards alone: every turn has one token and a state of its own, and the last turn earns the outcome.
    pub fn of_rewards(groups: &[usize], rewards: &[Vec<f64>]) -> Self {
        let mut outcome_rewards: Vec<Vec<f64>> = rewards.iter().map(|turns| vec![0.0; turns.len()]).collect();
        for (outcome, turns) in outcome_rewards.iter_mut().zip(rewards) {
            if let (Some(outcome), Some(&last)) = (outcome.last_mut(), turns.last()) {
                *outcome = last;
            }
        }
        let own = |(index, turns): (usize, &Vec<f64>), more: usize| {
            (0..turns.len() + more).map(|turn| hash(&[index.to_le_bytes(), turn.to_le_bytes()].concat())).collect()
        };
        Evidence {
            groups: groups.to_vec(),
            rewards: rewards.to_vec(),
            outcome_rewards,
            histories: rewards.iter().enumerate().map(|entry| own(entry, 1)).collect(),
            observations: rewards.iter().enumerate().map(|entry| own(entry, 0)).collect(),
            trained_tokens: rewards.iter().map(|turns| vec![1; turns.len()]).collect(),
            values: None,
        }
    }

    /// The values, if there is one for every turn.
    pub(super) fn complete_values(&self) -> Option<&[Vec<f64>]> {
        let values = self.values.as_deref()?;
        let complete = values.len() == self.rewards.len()
            && values.iter().zip(&self.rewards).all(|(values, rewards)| {
                values.len() >= rewards.len() && values[..rewards.len()].iter().all(|value| value.is_finite())
            });
        complete.then_some(values)
    }
}

/// FNV-1a with 64 bits (Fowler, Noll and Vo): the same on every machine and in every release.
struct Hash(u64);

impl Hash {
    const EMPTY: Hash = Hash(0xcbf2_9ce4_8422_2325);

    fn extend(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

fn hash(bytes: &[Token]) -> u64 {
    let mut hash = Hash::EMPTY;
    hash.extend(bytes);
    hash.0
}

fn histories(trajectory: &Trajectory) -> Vec<u64> {
    let (mut running, mut read) = (Hash::EMPTY, 0);
    let starts = trajectory.turns.iter().map(|turn| turn.start);
    let end = trajectory.turns.last().map_or(trajectory.prompt_length, |turn| turn.end);
    starts
        .chain([end])
        .map(|place| {
            running.extend(&trajectory.tokens[read..place]);
            read = place;
            running.0
        })
        .collect()
}

fn observations(trajectory: &Trajectory) -> Vec<u64> {
    let results = trajectory.turns.iter().map(|turn| hash(&trajectory.tokens[turn.action_end..turn.end]));
    [hash(&trajectory.tokens[..trajectory.prompt_length])].into_iter().chain(results).take(trajectory.turns.len()).collect()
}

fn sampled_tokens(trajectory: &Trajectory) -> Vec<usize> {
    trajectory.turns.iter().map(|turn| turn.action_end - turn.start).collect()
}
