//! One whole conversation as it was sampled: tokens in, tokens out, never re-tokenised.

use crate::environment::Facts;
use crate::vocabulary::{Token, TokenSet};

/// One episode: the prompt, then per turn an action of the policy and the observation that followed.
///
/// All per-token arrays have the length of `tokens`, and entry `t` of each belongs to token `t`.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Trajectory {
    /// Which group; members of a group share question and hidden state.
    pub group: usize,
    /// Which member of its group, `0..num_generations`.
    pub member: usize,
    /// Prompt, actions and observations. No padding.
    pub tokens: Vec<Token>,
    /// How many tokens belong to the prompt.
    pub prompt_length: usize,
    /// True for tokens that the policy sampled, its `<eot>` included; false for prompt and tool results.
    pub loss_mask: Vec<bool>,
    /// Log-probability under the sampling policy, in nats, at the sampling temperature; 0 where nothing was sampled.
    pub log_probs: Vec<f32>,
    /// The turns in order.
    pub turns: Vec<Turn>,
    /// How the episode ended.
    pub end: End,
    /// Index into the environment's `question_types`.
    pub question_type: usize,
    /// Legal tokens at each position where the grammar was on, empty where it was off. Not sent to the page.
    #[serde(skip)]
    #[cfg_attr(test, ts(skip))]
    pub legal: Vec<TokenSet>,
}

/// One turn: `tokens[start..action_end]` is the action, `tokens[action_end..end]` the observation after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Turn {
    pub start: usize,
    pub action_end: usize,
    pub end: usize,
    pub facts: Facts,
}

/// How an episode ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// By the rules of the task.
    Terminated,
    /// Cut by the turn limit.
    TurnLimit,
    /// Cut by the end of the context.
    ContextEnd,
}

/// What the members of a group share.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct GroupInfo {
    /// The prompt's tokens.
    pub prompt: Vec<Token>,
    /// Index into the environment's `question_types`.
    pub question_type: usize,
    /// What the policy did not see, in words.
    pub hidden_state: String,
}

impl Trajectory {
    /// The success of the episode, 0 to 1: the share of its judged turns that were right. Where the one judged turn is the answer
    /// or the goal, that is 1 or 0; an episode that was cut before any judged turn has 0.
    pub fn success(&self) -> f64 {
        let count = |fact: fn(&Facts) -> bool| self.turns.iter().filter(|turn| fact(&turn.facts)).count();
        count(|facts| facts.answer_right) as f64 / count(|facts| facts.judged).max(1) as f64
    }

    /// How many tokens the policy sampled.
    pub fn sampled_tokens(&self) -> usize {
        self.loss_mask.iter().filter(|&&sampled| sampled).count()
    }

    /// Number of well-formed tool calls.
    pub fn calls(&self) -> usize {
        self.turns.iter().filter(|turn| turn.facts.valid_call).count()
    }
}
