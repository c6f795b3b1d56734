//! One episode in progress.

use super::sampler::{RolloutError, Sampling};
use super::{End, Episode, Trajectory, Turn, tool_draws};
use crate::environment::{Environment, Grammar};
use crate::seed::Draws;
use crate::vocabulary::{EOT, Token, TokenSet};

/// One row of the batch.
pub(super) struct Row {
    /// Place in the result.
    pub index: usize,
    group: usize,
    member: usize,
    pub environment: Box<dyn Environment>,
    pub sampling: Draws,
    tool: Draws,
    pub tokens: Vec<Token>,
    prompt_length: usize,
    loss_mask: Vec<bool>,
    log_probs: Vec<f32>,
    legal: Vec<TokenSet>,
    turns: Vec<Turn>,
    pub end: Option<End>,
    /// The last tokens of `tokens`, not yet fed to the policy.
    pub pending: Vec<Token>,
    /// For each cache slot whether its token belongs to this row.
    pub seen: Vec<bool>,
}

impl Row {
    pub fn new(index: usize, episode: Episode) -> Self {
        let prefix = episode.prefix;
        Row {
            index,
            group: episode.group,
            member: episode.member,
            environment: episode.environment,
            sampling: episode.sampling,
            tool: episode.tool,
            prompt_length: prefix.prompt_length,
            loss_mask: prefix.loss_mask,
            log_probs: prefix.log_probs,
            legal: prefix.legal,
            turns: prefix.turns,
            end: None,
            pending: prefix.tokens.clone(),
            tokens: prefix.tokens,
            seen: Vec::new(),
        }
    }

    /// The slots this row sees when `step` tokens of the current turn have been fed.
    pub fn seen_with(&self, step: usize) -> Vec<bool> {
        self.seen.iter().copied().chain(std::iter::repeat_n(true, step)).collect()
    }

    /// Keeps the sampled tokens up to `<eot>` (or the budget), lets the environment answer, and queues its answer.
    pub fn take_action(
        &mut self,
        tokens: &[f32],
        log_probs: &[f32],
        sampling: &Sampling,
        grammar: Option<&Grammar>,
    ) -> Result<(), RolloutError> {
        let budget = sampling.turn_tokens.min(sampling.context_length.saturating_sub(self.tokens.len()));
        let sampled: Vec<Token> = tokens.iter().map(|&token| token as Token).collect();
        let length = sampled[..budget].iter().position(|&token| token == EOT).map_or(budget, |eot| eot + 1);
        let action = &sampled[..length];
        if log_probs[..length].iter().any(|value| !value.is_finite()) {
            return Err(RolloutError::NonFinite);
        }
        let start = self.tokens.len();
        self.tokens.extend(action);
        self.loss_mask.resize(self.tokens.len(), true);
        self.log_probs.extend(&log_probs[..length]);
        if let Some(grammar) = grammar {
            self.legal.resize(start, TokenSet::ALL);
            self.legal.extend(grammar.along(action));
        }
        let step = self.environment.step(action, tool_draws(&self.tool, self.turns.len()));
        let action_end = self.tokens.len();
        let observation = step.observation.as_ref().map(|observation| self.environment.format_observation(observation));
        // Of the action all but the budget's last token has been fed: that one waits with the observation.
        let fed = length.min(sampling.turn_tokens - 1);
        self.seen.extend((0..sampling.turn_tokens - 1).map(|slot| slot < fed));
        match observation {
            _ if step.done => self.end = Some(End::Terminated),
            _ if self.turns.len() + 1 >= sampling.turn_limit => self.end = Some(End::TurnLimit),
            Some(observation) if action_end + observation.len() < sampling.context_length => {
                self.pending.extend(action[fed..].iter().chain(&observation));
                self.tokens.extend(&observation);
                self.loss_mask.resize(self.tokens.len(), false);
                self.log_probs.resize(self.tokens.len(), 0.0);
            }
            _ => self.end = Some(End::ContextEnd),
        }
        self.turns.push(Turn { start, action_end, end: self.tokens.len(), facts: step.facts });
        Ok(())
    }

    pub fn into_trajectory(mut self) -> Trajectory {
        if !self.legal.is_empty() {
            self.legal.resize(self.tokens.len(), TokenSet::ALL);
        }
        Trajectory {
            group: self.group,
            member: self.member,
            question_type: self.environment.question_type(),
            tokens: self.tokens,
            prompt_length: self.prompt_length,
            loss_mask: self.loss_mask,
            log_probs: self.log_probs,
            turns: self.turns,
            end: self.end.unwrap_or(End::TurnLimit),
            legal: self.legal,
        }
    }
}
