//! One episode in progress.

use super::sampler::{RolloutError, Sampling};
use super::{End, Episode, Prefix, Trajectory};
use crate::environment::{Environment, Grammar};
use crate::seed::Draws;
use crate::vocabulary::{EOT, Token};

/// One row of the batch.
pub(super) struct Row {
    /// Place in the result.
    pub index: usize,
    group: usize,
    member: usize,
    pub environment: Box<dyn Environment>,
    pub sampling: Draws,
    tool: Draws,
    /// What has happened so far.
    pub prefix: Prefix,
    pub end: Option<End>,
    /// The last tokens, not yet fed to the policy.
    pub pending: Vec<Token>,
    /// For each cache slot whether its token belongs to this row.
    pub seen: Vec<bool>,
}

impl Row {
    pub fn new(index: usize, episode: Episode) -> Self {
        Row {
            index,
            group: episode.group,
            member: episode.member,
            environment: episode.environment,
            sampling: episode.sampling,
            tool: episode.tool,
            pending: episode.prefix.tokens.clone(),
            prefix: episode.prefix,
            end: None,
            seen: Vec::new(),
        }
    }

    /// The slots this row sees when `step` tokens of the current turn have been fed.
    pub fn seen_with(&self, step: usize) -> Vec<bool> {
        self.seen.iter().copied().chain(std::iter::repeat_n(true, step)).collect()
    }

    /// Keeps the sampled tokens up to `<eot>` (or the budget) and lets the environment answer. Gives the action's length.
    pub fn take_action(
        &mut self,
        tokens: &[f32],
        log_probs: &[f32],
        sampling: &Sampling,
        grammar: Option<&Grammar>,
    ) -> Result<usize, RolloutError> {
        let start = self.prefix.tokens.len();
        let budget = sampling.limits.turn_tokens.min(sampling.limits.context_length.saturating_sub(start));
        let sampled: Vec<Token> = tokens.iter().map(|&token| token as Token).collect();
        let length = sampled[..budget].iter().position(|&token| token == EOT).map_or(budget, |eot| eot + 1);
        let action = &sampled[..length];
        if log_probs[..length].iter().any(|value| !value.is_finite()) {
            return Err(RolloutError::NonFinite);
        }
        if let Some(grammar) = grammar {
            self.prefix.note_legal(grammar, action);
        }
        let environment = self.environment.as_mut();
        self.end = self.prefix.take_turn(environment, action, &log_probs[..length], &self.tool, &sampling.limits);
        Ok(length)
    }

    /// What waits after a turn of the reference: it has fed as many tokens for every row, all but the last of the budget. The
    /// slots of those behind the action are hidden, and what the action has more waits with the observation.
    pub fn wait_behind_all_fed(&mut self, length: usize, turn_tokens: usize) {
        let fed = length.min(turn_tokens - 1);
        self.seen.extend((0..turn_tokens - 1).map(|slot| slot < fed));
        self.wait_from(length, fed);
    }

    /// What waits after a turn by kernels or on slices: they feed all of the action but its last token.
    pub fn wait_from_last(&mut self, length: usize) {
        self.wait_from(length, length.saturating_sub(1));
    }

    /// The last action's tokens from its `fed`-th wait, and the observation after it.
    fn wait_from(&mut self, length: usize, fed: usize) {
        if let (None, Some(turn)) = (self.end, self.prefix.turns.last()) {
            debug_assert_eq!(turn.action_end, turn.start + length);
            self.pending.extend(&self.prefix.tokens[turn.start + fed..]);
        }
    }

    pub fn into_trajectory(self) -> Trajectory {
        let question_type = self.environment.question_type();
        self.prefix.into_trajectory(self.group, self.member, question_type, self.end.unwrap_or(End::TurnLimit))
    }
}
