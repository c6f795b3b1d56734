//! Where an episode starts: at its prompt, or in the middle, after some of its turns.

use super::{Trajectory, Turn};
use crate::environment::Environment;
use crate::seed::Draws;
use crate::vocabulary::{Token, TokenSet};

/// An episode about to be rolled out, or to be rolled on from a turn boundary.
pub struct Episode {
    pub group: usize,
    pub member: usize,
    /// Just reset; or in the state after the turns of `prefix`.
    pub environment: Box<dyn Environment>,
    pub prefix: Prefix,
    /// Draws for sampled tokens; the position is the token's index in the trajectory.
    pub sampling: Draws,
    /// Draws for tools; every turn starts at its own position.
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

/// Tool draws of one turn start this far from those of the turn before.
const TOOL_POSITIONS_PER_TURN: u32 = 256;

/// The tool draws of one turn (from 0) of an episode.
pub fn tool_draws(tool: &Draws, turn: usize) -> Draws {
    tool.from(turn as u32 * TOOL_POSITIONS_PER_TURN)
}

/// Plays the first `turns` turns of a trajectory again on an environment that was just reset: its state is then exactly the one
/// after them. `tool` holds the draws of that trajectory.
pub fn replay(environment: &mut dyn Environment, trajectory: &Trajectory, turns: usize, tool: &Draws) {
    for (index, turn) in trajectory.turns.iter().take(turns).enumerate() {
        environment.step(&trajectory.tokens[turn.start..turn.action_end], tool_draws(tool, index));
    }
}
