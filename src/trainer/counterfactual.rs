//! What if a turn had gone otherwise? One turn of a frozen episode is replaced or left out, and the tail is played again by the
//! same policy with the same randomness.
//!
//! Draws belong to places, so the first token after the change is drawn with the number that the first token after that turn had,
//! the next with the next, and tools likewise: what differs afterwards differs because of the change, not by luck (common random
//! numbers). One tail still says little about what the change is worth on average; that is measured by continuations with draws
//! of their own, the same ones for both.

use super::{Rollout, TrainError};
use crate::config::ExperimentConfig;
use crate::credit::{ReRolls, discounted_returns};
use crate::policy::Policy;
use crate::reward::{self, RewardTable};
use crate::rollout::{End, Episode, Limits, Prefix, Sampling, TOOL_POSITIONS_PER_TURN, Trajectory, replay, roll_out};
use crate::seed::{Purpose, RootSeed};
use crate::vocabulary::{EOT, Token};

/// Which turn is changed, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// Index of the trajectory in the rollout.
    pub trajectory: usize,
    /// The turn, from 0.
    pub turn: usize,
    /// The action in its place, closed by `<eot>` where that is missing and fits; nothing leaves the turn out.
    pub replacement: Option<Vec<Token>>,
}

/// An episode played on from a change, or as it was.
pub struct PlayedOn {
    pub trajectory: Trajectory,
    /// Of this one trajectory.
    pub rewards: RewardTable,
    /// Discounted return of the whole episode.
    pub reward: f64,
    /// Discounted returns of whole episodes whose tails were drawn otherwise.
    pub continuations: ReRolls,
}

/// Why a change cannot be played.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ChangeError {
    #[error("trajectory {0} has no turn {1}")]
    NoSuchTurn(usize, usize),
    #[error("the action has {found} tokens; it must have 1 to {bound}")]
    ActionLength { found: usize, bound: usize },
}

/// Where a tail begins: in the middle of an episode, or at its end.
enum Tail {
    Open(Box<Episode>, Shift),
    Ended(Trajectory),
}

/// How far the draws of a changed episode are shifted, so that its tail finds those of the tail as it was.
#[derive(Clone, Copy, Default)]
struct Shift {
    sampling: i32,
    tool: i32,
}

/// Numbers of continuations start here, behind those that measure true credit.
const FIRST_ROLL: u32 = 1 << 16;

/// Tool draws of a continuation stand behind its sampling draws.
const TOOL_POSITION: i32 = 1 << 20;

/// Continuations that are in memory at the same time.
const EPISODES_AT_ONCE: usize = 1024;

impl Changed {
    /// Checks that there is such a turn and that the action fits into one.
    ///
    /// # Errors
    /// Says which.
    pub fn check(&self, rollout: &Rollout, config: &ExperimentConfig) -> Result<(), ChangeError> {
        let turns = rollout.training.get(self.trajectory).map_or(0, |trajectory| trajectory.turns.len());
        if self.turn >= turns {
            return Err(ChangeError::NoSuchTurn(self.trajectory, self.turn));
        }
        let found = self.replacement.as_ref().map_or(1, Vec::len);
        let bound = config.turn_tokens;
        if (1..=bound).contains(&found) { Ok(()) } else { Err(ChangeError::ActionLength { found, bound }) }
    }

    /// The episode as it was and as it goes with the change, each with `rolls` continuations. The change has been checked.
    ///
    /// # Errors
    /// When the device fails or a log-probability is not finite.
    pub async fn play(
        &self,
        policy: &Policy,
        rollout: &Rollout,
        config: &ExperimentConfig,
        rolls: usize,
    ) -> Result<(PlayedOn, PlayedOn), TrainError> {
        let original = &rollout.training[self.trajectory];
        let before = match self.unchanged(rollout, config) {
            Tail::Open(start, shift) => {
                let continuations = self.continuations(policy, rollout, config, (&start, shift), rolls).await?;
                played_on(original.clone(), continuations, config)
            }
            Tail::Ended(trajectory) => certain(trajectory, rolls, config),
        };
        let after = match self.changed(rollout, config) {
            Tail::Open(start, shift) => {
                let continuations = self.continuations(policy, rollout, config, (&start, shift), rolls).await?;
                let trajectory = roll_out(policy, vec![*start], &Sampling::of(config)).await?.remove(0);
                played_on(trajectory, continuations, config)
            }
            Tail::Ended(trajectory) => certain(trajectory, rolls, config),
        };
        Ok((before, after))
    }

    /// The episode after the turn as it was.
    fn unchanged(&self, rollout: &Rollout, config: &ExperimentConfig) -> Tail {
        let original = &rollout.training[self.trajectory];
        if self.turn + 1 == original.turns.len() {
            return Tail::Ended(original.clone());
        }
        Tail::Open(Box::new(self.at(rollout, config, self.turn + 1)), Shift::default())
    }

    /// The episode after the change; draws are shifted so that the tail finds those of the tail as it was.
    fn changed(&self, rollout: &Rollout, config: &ExperimentConfig) -> Tail {
        let original = &rollout.training[self.trajectory];
        let mut episode = self.at(rollout, config, self.turn);
        let limits = Limits::of(config);
        let (mut end, mut shift) = (None, Shift::default());
        if let Some(action) = &self.replacement {
            let mut action = action.clone();
            if !action.contains(&EOT) && action.len() < limits.turn_tokens {
                action.push(EOT);
            }
            action.truncate(action.iter().position(|&token| token == EOT).map_or(action.len(), |at| at + 1));
            // The policy did not sample these tokens: they have no log-probability.
            let log_probs = vec![0.0; action.len()];
            let Episode { environment, prefix, tool, .. } = &mut episode;
            end = prefix.take_turn(environment.as_mut(), &action, &log_probs, tool, &limits);
        } else {
            shift.tool = TOOL_POSITIONS_PER_TURN as i32;
        }
        shift.sampling = original.turns[self.turn].end as i32 - episode.prefix.tokens.len() as i32;
        episode.sampling = episode.sampling.shifted(shift.sampling);
        episode.tool = episode.tool.shifted(shift.tool);
        let room = episode.prefix.tokens.len() < limits.context_length;
        match end.or((!room).then_some(End::ContextEnd)) {
            None => Tail::Open(Box::new(episode), shift),
            Some(end) => {
                let question_type = episode.environment.question_type();
                Tail::Ended(episode.prefix.into_trajectory(episode.group, episode.member, question_type, end))
            }
        }
    }

    /// The episode before a turn, with its own draws.
    fn at(&self, rollout: &Rollout, config: &ExperimentConfig, turn: usize) -> Episode {
        let original = &rollout.training[self.trajectory];
        let start = &rollout.starts[original.group];
        let tool = start.tool_draws(config, rollout.iteration, original.member);
        let mut environment = start.environment.boxed_clone();
        replay(environment.as_mut(), original, turn, &tool);
        let root = RootSeed(config.seed);
        Episode {
            group: original.group,
            member: original.member,
            environment,
            origin: start.origin(config, rollout.iteration, original.member),
            prefix: Prefix::of(original, turn),
            sampling: root.draws(Purpose::SampleToken, rollout.iteration as u32, start.place, original.member as u32),
            tool,
        }
    }

    /// Returns of whole episodes that go on from `start` with draws of their own. Both tails use the same numbers.
    async fn continuations(
        &self,
        policy: &Policy,
        rollout: &Rollout,
        config: &ExperimentConfig,
        (start, shift): (&Episode, Shift),
        rolls: usize,
    ) -> Result<ReRolls, TrainError> {
        let root = RootSeed(config.seed);
        let mut returns = ReRolls::default();
        let numbers: Vec<u32> = (0..rolls as u32).map(|roll| FIRST_ROLL + roll).collect();
        for part in numbers.chunks(EPISODES_AT_ONCE) {
            let episodes = part.iter().map(|&roll| {
                let draws = root.draws(Purpose::TrueCredit, rollout.iteration as u32, self.trajectory as u32, roll);
                Episode {
                    group: start.group,
                    member: start.member,
                    environment: start.environment.boxed_clone(),
                    origin: start.origin.clone(),
                    prefix: start.prefix.clone(),
                    tool: draws.shifted(TOOL_POSITION + shift.tool),
                    sampling: draws.shifted(shift.sampling),
                }
            });
            for trajectory in roll_out(policy, episodes.collect(), &Sampling::of(config)).await? {
                returns.push(score(&trajectory, config).1);
            }
        }
        Ok(returns)
    }
}

/// Rewards and discounted return of one episode. A cost of KL, which depends on policies and not on what happened, is left out.
fn score(trajectory: &Trajectory, config: &ExperimentConfig) -> (RewardTable, f64) {
    let rewards = reward::score(std::slice::from_ref(trajectory), &reward::weighted_terms(config));
    let totals = rewards.totals();
    let reward = totals.first().and_then(|turns| discounted_returns(turns, config.gamma).first().copied()).unwrap_or(0.0);
    (rewards, reward)
}

fn played_on(trajectory: Trajectory, continuations: ReRolls, config: &ExperimentConfig) -> PlayedOn {
    let (rewards, reward) = score(&trajectory, config);
    PlayedOn { trajectory, rewards, reward, continuations }
}

/// An episode that is over: every continuation is itself.
fn certain(trajectory: Trajectory, rolls: usize, config: &ExperimentConfig) -> PlayedOn {
    let mut played = played_on(trajectory, ReRolls::default(), config);
    (0..rolls).for_each(|_| played.continuations.push(played.reward));
    played
}
