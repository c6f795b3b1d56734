//! Rolling episodes on from the middle: what a state is worth to the current policy, measured.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use super::Rollout;
use crate::config::ExperimentConfig;
use crate::credit::discounted_returns;
use crate::environment::Environment;
use crate::policy::Policy;
use crate::reward;
use crate::rollout::{Episode, Origin, Prefix, RolloutError, Sampling, replay, roll_out};
use crate::seed::{Purpose, RootSeed};

/// The states before every turn of frozen episodes, each distinct one once: what was said so far, and the environment restored
/// to the moment.
pub struct Boundaries {
    states: Vec<State>,
    /// `[trajectory][turn]`: index of the state before the turn.
    index: Vec<Vec<usize>>,
    iteration: usize,
}

struct State {
    group: usize,
    environment: Box<dyn Environment>,
    origin: Origin,
    prefix: Prefix,
}

impl Boundaries {
    /// The states of the training episodes of a rollout. Two are the same when group, tokens so far and hidden state are.
    pub fn of(rollout: &Rollout, config: &ExperimentConfig) -> Self {
        let (mut states, mut known): (Vec<State>, HashMap<(usize, u64), usize>) = (Vec::new(), HashMap::new());
        let index = rollout.training.iter().map(|trajectory| {
            let start = &rollout.starts[trajectory.group];
            let tool = start.tool_draws(config, rollout.iteration, trajectory.member);
            let before = |turn: usize| {
                let mut environment = start.environment.boxed_clone();
                replay(environment.as_mut(), trajectory, turn, &tool);
                let prefix = Prefix::of(trajectory, turn);
                let mut hash = DefaultHasher::new();
                (&prefix.tokens, format!("{environment:?}")).hash(&mut hash);
                let key = (trajectory.group, hash.finish());
                *known.entry(key).or_insert_with(|| {
                    let origin = start.origin(config, rollout.iteration, trajectory.member);
                    states.push(State { group: trajectory.group, environment, origin, prefix });
                    states.len() - 1
                })
            };
            (0..trajectory.turns.len()).map(before).collect()
        });
        let index = index.collect();
        Boundaries { states, index, iteration: rollout.iteration }
    }

    /// How many distinct states there are.
    pub fn states(&self) -> usize {
        self.states.len()
    }

    /// `[trajectory][turn]`: which state stands before the turn.
    pub fn index(&self) -> &[Vec<usize>] {
        &self.index
    }

    /// Plays `rolls` more continuations of every state, numbered from `first`, with draws of their own for policy and tools.
    /// Gives the discounted return from the state on, `[state][roll]`.
    ///
    /// # Errors
    /// When the device fails or a log-probability is not finite.
    pub async fn roll(
        &self,
        policy: &Policy,
        config: &ExperimentConfig,
        purpose: Purpose,
        first: usize,
        rolls: usize,
    ) -> Result<Vec<Vec<f64>>, RolloutError> {
        let root = RootSeed(config.seed);
        let terms = reward::weighted_terms(config);
        let mut order: Vec<usize> = (0..self.states.len()).collect();
        // Similar lengths together: their starts are fed as one block.
        order.sort_by_key(|&state| self.states[state].prefix.tokens.len());
        let mut returns = vec![Vec::new(); self.states.len()];
        for part in order.chunks((EPISODES_AT_ONCE / rolls.max(1)).max(1)) {
            let episodes = part.iter().flat_map(|&index| {
                let state = &self.states[index];
                (first..first + rolls).map(move |roll| {
                    // Tool draws stand behind the sampling draws of the same place.
                    let draws = root.draws(purpose, self.iteration as u32, index as u32, roll as u32);
                    Episode {
                        group: state.group,
                        member: roll,
                        environment: state.environment.boxed_clone(),
                        origin: state.origin.clone(),
                        prefix: state.prefix.clone(),
                        tool: draws.shifted(TOOL_POSITION),
                        sampling: draws,
                    }
                })
            });
            let played = roll_out(policy, episodes.collect(), &Sampling::of(config)).await?;
            let rewards = reward::score(&played, &terms).totals();
            for (&index, rewards) in part.iter().zip(rewards.chunks(rolls.max(1))) {
                let turn = self.states[index].prefix.turns.len();
                let value = |rewards: &Vec<f64>| discounted_returns(rewards, config.gamma).get(turn).copied().unwrap_or(0.0);
                returns[index] = rewards.iter().map(value).collect();
            }
        }
        Ok(returns)
    }
}

/// Continuations that are in memory at the same time.
const EPISODES_AT_ONCE: usize = 4096;

/// Positions of tool draws start here, behind every position of a token.
const TOOL_POSITION: i32 = 1 << 20;
