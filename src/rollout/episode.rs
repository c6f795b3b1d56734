//! Where an episode starts: at its prompt, or in the middle, after some of its turns.

use super::{End, Trajectory, Turn};
use crate::config::ExperimentConfig;
use crate::environment::{Environment, Grammar};
use crate::seed::Draws;
use crate::vocabulary::{Token, TokenSet};

/// An episode about to be rolled out, or to be rolled on from a turn boundary.
pub struct Episode {
    pub group: usize,
    pub member: usize,
    /// Just reset; or in the state after the turns of `prefix`.
    pub environment: Box<dyn Environment>,
    /// What the environment's state comes from.
    pub origin: Origin,
    pub prefix: Prefix,
    /// Draws for sampled tokens; the position is the token's index in the trajectory.
    pub sampling: Draws,
    /// Draws for tools; every turn starts at its own position.
    pub tool: Draws,
}

/// The draws that an environment's state comes from: with the actions taken since they are enough to make it again.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Origin {
    /// Those of the question and the hidden state.
    pub question: Draws,
    /// Those of the tools so far; the tools of what is still to come may have others ([`Episode::tool`]).
    pub tool: Draws,
}

/// The part of a trajectory that has happened already: a prompt, or a prompt and whole turns with their observations. Per-token
/// arrays have the length of `tokens`.
#[derive(Clone, Debug, Default)]
pub struct Prefix {
    pub tokens: Vec<Token>,
    pub prompt_length: usize,
    pub loss_mask: Vec<bool>,
    pub log_probs: Vec<f32>,
    /// Empty where no grammar was on.
    pub legal: Vec<TokenSet>,
    pub turns: Vec<Turn>,
}

impl Prefix {
    /// The start of an episode.
    pub fn prompt(tokens: Vec<Token>) -> Self {
        let length = tokens.len();
        Prefix {
            prompt_length: length,
            loss_mask: vec![false; length],
            log_probs: vec![0.0; length],
            tokens,
            ..Prefix::default()
        }
    }

    /// A trajectory before its turn `turn` (from 0), or whole where it has no more turns.
    pub fn of(trajectory: &Trajectory, turn: usize) -> Self {
        let end = trajectory.turns.get(turn).map_or(trajectory.tokens.len(), |turn| turn.start);
        Prefix {
            tokens: trajectory.tokens[..end].to_vec(),
            prompt_length: trajectory.prompt_length,
            loss_mask: trajectory.loss_mask[..end].to_vec(),
            log_probs: trajectory.log_probs[..end].to_vec(),
            legal: trajectory.legal.iter().take(end).copied().collect(),
            turns: trajectory.turns.iter().take(turn).copied().collect(),
        }
    }
}

/// What cuts an episode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Limits {
    /// Turns of an episode.
    pub turn_limit: usize,
    /// Tokens of an action.
    pub turn_tokens: usize,
    /// Tokens of a trajectory.
    pub context_length: usize,
}

impl Limits {
    /// The settings of an experiment.
    pub fn of(config: &ExperimentConfig) -> Self {
        Limits { turn_limit: config.turn_limit, turn_tokens: config.turn_tokens, context_length: config.context_length }
    }
}

impl Prefix {
    /// The actions so far, in order.
    pub fn actions(&self) -> impl Iterator<Item = &[Token]> {
        self.turns.iter().map(|turn| &self.tokens[turn.start..turn.action_end])
    }

    /// Notes from which legal tokens those of an action that comes next are chosen.
    pub fn note_legal(&mut self, grammar: &Grammar, action: &[Token]) {
        self.legal.resize(self.tokens.len(), TokenSet::ALL);
        self.legal.extend(grammar.along(action));
    }

    /// The next turn: adds the action with its log-probabilities, lets the environment answer (`tool` holds the draws of the
    /// episode), and adds the answer where it fits. Gives how the episode ended, if it did. The action is within the limits.
    pub fn take_turn(
        &mut self,
        environment: &mut dyn Environment,
        action: &[Token],
        log_probs: &[f32],
        tool: &Draws,
        limits: &Limits,
    ) -> Option<End> {
        let start = self.tokens.len();
        self.tokens.extend(action);
        self.loss_mask.resize(self.tokens.len(), true);
        self.log_probs.extend(log_probs);
        let step = environment.step(action, tool_draws(tool, self.turns.len()));
        let action_end = self.tokens.len();
        let observation = step.observation.as_ref().map(|observation| environment.format_observation(observation));
        let end = match observation {
            _ if step.done => Some(End::Terminated),
            _ if self.turns.len() + 1 >= limits.turn_limit => Some(End::TurnLimit),
            Some(observation) if action_end + observation.len() < limits.context_length => {
                self.tokens.extend(&observation);
                self.loss_mask.resize(self.tokens.len(), false);
                self.log_probs.resize(self.tokens.len(), 0.0);
                None
            }
            _ => Some(End::ContextEnd),
        };
        self.turns.push(Turn { start, action_end, end: self.tokens.len(), facts: step.facts });
        end
    }

    /// The whole episode, ended.
    pub fn into_trajectory(mut self, group: usize, member: usize, question_type: usize, end: End) -> Trajectory {
        if !self.legal.is_empty() {
            self.legal.resize(self.tokens.len(), TokenSet::ALL);
        }
        Trajectory {
            group,
            member,
            tokens: self.tokens,
            prompt_length: self.prompt_length,
            loss_mask: self.loss_mask,
            log_probs: self.log_probs,
            turns: self.turns,
            end,
            question_type,
            legal: self.legal,
        }
    }
}

/// Tool draws of one turn start this far from those of the turn before.
pub const TOOL_POSITIONS_PER_TURN: u32 = 256;

/// The tool draws of one turn (from 0) of an episode.
pub fn tool_draws(tool: &Draws, turn: usize) -> Draws {
    tool.from(turn as u32 * TOOL_POSITIONS_PER_TURN)
}

/// Plays the first `turns` turns of a trajectory again on an environment that was just reset: its state is then exactly the one
/// after them. `tool` holds the draws of that trajectory.
pub fn replay(environment: &mut dyn Environment, trajectory: &Trajectory, turns: usize, tool: &Draws) {
    let actions = trajectory.turns.iter().take(turns).map(|turn| &trajectory.tokens[turn.start..turn.action_end]);
    repeat(environment, actions, tool);
}

/// Takes actions again on an environment that was just reset, from the first turn on.
pub(super) fn repeat<'a>(environment: &mut dyn Environment, actions: impl Iterator<Item = &'a [Token]>, tool: &Draws) {
    for (turn, action) in actions.enumerate() {
        environment.step(action, tool_draws(tool, turn));
    }
}
