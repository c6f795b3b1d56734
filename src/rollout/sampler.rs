//! Batched sampling, one turn at a time.
//!
//! All rows decode the same number of tokens on the device, then one read brings the turn's tokens and log-probabilities to the
//! host, the environments answer, and the answers are fed in one block. A row that ends its action early keeps sampling until
//! the turn is over; what it samples then is hidden from its later tokens and never kept. Finished rows leave the batch.

use burn::tensor::{Bool, Device, Int, Tensor, TensorData};

use super::{End, Trajectory, Turn};
use crate::config::ExperimentConfig;
use crate::environment::{Environment, Grammar};
use crate::policy::{Cache, Policy, Visible, cumulating, log_distribution, sample};
use crate::readback::{ReadError, read};
use crate::seed::Draws;
use crate::vocabulary::{EOT, PAD, SIZE, Token, TokenSet};

/// An episode about to be rolled out.
pub struct Episode {
    pub group: usize,
    pub member: usize,
    /// Just reset.
    pub environment: Box<dyn Environment>,
    pub prompt: Vec<Token>,
    /// Draws for sampled tokens; the position is the token's index in the trajectory.
    pub sampling: Draws,
    /// Draws for tools; every turn starts at its own position.
    pub tool: Draws,
}

/// How episodes are sampled and when they are cut.
#[derive(Clone, Debug, PartialEq)]
pub struct Sampling {
    /// Logits are divided by this.
    pub temperature: f64,
    /// Turns after which an episode is cut.
    pub turn_limit: usize,
    /// Tokens after which an action is cut.
    pub turn_tokens: usize,
    /// Tokens that a trajectory may have.
    pub context_length: usize,
    /// Whether the environment's grammar restricts sampling.
    pub legal_token_mask: bool,
}

impl Sampling {
    /// The settings of an experiment.
    pub fn of(config: &ExperimentConfig) -> Self {
        Sampling {
            temperature: config.temperature,
            turn_limit: config.turn_limit,
            turn_tokens: config.turn_tokens,
            context_length: config.context_length,
            legal_token_mask: config.legal_token_mask,
        }
    }
}

/// Why a rollout failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum RolloutError {
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A sampled token's log-probability is not a number: the weights are broken.
    #[error("a log-probability of the policy is not a finite number")]
    NonFinite,
}

/// Tool draws of one turn start this far from those of the turn before.
const TOOL_POSITIONS_PER_TURN: u32 = 256;

/// Plays all episodes to their end. The result is in the order of `episodes`.
///
/// # Errors
/// When the device fails or a log-probability is not finite.
pub async fn roll_out(policy: &Policy, episodes: Vec<Episode>, sampling: &Sampling) -> Result<Vec<Trajectory>, RolloutError> {
    let device = policy.device().without_autodiff();
    let mut finished: Vec<Option<Trajectory>> = episodes.iter().map(|_| None).collect();
    let mut rows: Vec<Row> = episodes.into_iter().enumerate().map(|(index, episode)| Row::new(index, episode)).collect();
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let automaton = match (sampling.legal_token_mask, rows.first()) {
        (true, Some(row)) => Some(Automaton::new(row.environment.grammar(), &device)),
        _ => None,
    };
    let ones = cumulating(SIZE, &device);
    let head = policy.d_model() / policy.heads();
    let mut cache = Cache::new(policy.layers(), rows.len(), policy.heads(), head, &device);

    for turn in 0..sampling.turn_limit {
        let logits = feed_pending(policy, &mut rows, &mut cache, &device);
        let packed = decode_turn(policy, &rows, logits, &mut cache, sampling, automaton.as_ref(), &ones, &device);
        let values = read(packed).await?; // [B * 2 turn_tokens]
        let last = turn + 1 == sampling.turn_limit;
        for (row, values) in rows.iter_mut().zip(values.chunks_exact(2 * sampling.turn_tokens)) {
            let (tokens, log_probs) = values.split_at(sampling.turn_tokens);
            row.take_action(tokens, log_probs, sampling, automaton.as_ref().map(|a| &a.grammar), last)?;
        }
        let active: Vec<usize> = (0..rows.len()).filter(|&index| rows[index].end.is_none()).collect();
        if active.len() < rows.len() {
            cache.keep_rows(&active);
            for row in rows.extract_if(.., |row| row.end.is_some()) {
                let index = row.index;
                finished[index] = Some(row.into_trajectory());
            }
        }
        if rows.is_empty() {
            break;
        }
    }
    Ok(finished.into_iter().flatten().collect())
}

/// Feeds each row's pending tokens as one block, padded on the left, and gives the logits `[B, V]` after them.
fn feed_pending(policy: &Policy, rows: &mut [Row], cache: &mut Cache, device: &Device) -> Tensor<2> {
    let width = rows.iter().map(|row| row.pending.len()).max().unwrap_or(0);
    let (mut tokens, mut positions, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for row in rows.iter() {
        let padding = width - row.pending.len();
        let first = row.tokens.len() - row.pending.len();
        tokens.extend(std::iter::repeat_n(i32::from(PAD), padding).chain(row.pending.iter().map(|&token| i32::from(token))));
        positions.extend(std::iter::repeat_n(0, padding).chain((first..row.tokens.len()).map(|position| position as i32)));
        counts.push(std::iter::repeat_n(false, padding).chain(row.pending.iter().map(|_| true)).collect::<Vec<_>>());
    }
    let visible = {
        let old: Vec<&[bool]> = rows.iter().map(|row| row.seen.as_slice()).collect();
        let new: Vec<&[bool]> = counts.iter().map(Vec::as_slice).collect();
        Visible::new(&old, &new)
    };
    for (row, counts) in rows.iter_mut().zip(counts) {
        row.seen.extend(counts);
        row.pending.clear();
    }
    let shape = [rows.len(), width];
    let tokens = Tensor::from_data(TensorData::new(tokens, shape), device);
    let positions = Tensor::from_data(TensorData::new(positions, shape), device);
    policy.extend(tokens, positions, &visible, cache)
}

/// Samples `turn_tokens` tokens for every row without reading anything back. Gives tokens and log-probabilities packed as one
/// vector, row by row: `turn_tokens` tokens (exact in `f32`), then as many log-probabilities.
#[allow(clippy::too_many_arguments)]
fn decode_turn(
    policy: &Policy,
    rows: &[Row],
    mut logits: Tensor<2>,
    cache: &mut Cache,
    sampling: &Sampling,
    automaton: Option<&Automaton>,
    ones: &Tensor<2>,
    device: &Device,
) -> Tensor<1> {
    let batch = rows.len();
    let vector = |values: Vec<f32>| Tensor::<1>::from_data(TensorData::new(values, [batch]), device);
    let mut state = automaton.map(|automaton| automaton.start(batch, device));
    let (mut tokens, mut log_probs) = (Vec::new(), Vec::new());
    for step in 0..sampling.turn_tokens {
        let uniforms = vector(rows.iter().map(|row| row.sampling.unit_at((row.tokens.len() + step) as u32)).collect());
        let illegal = automaton.zip(state.as_ref()).map(|(automaton, state)| automaton.illegal(state));
        let drawn = sample(log_distribution(logits.clone(), sampling.temperature, illegal), uniforms, ones);
        state = automaton.zip(state).map(|(automaton, state)| automaton.advance(state, drawn.tokens.clone()));
        tokens.push(drawn.tokens.clone().reshape([batch, 1]));
        log_probs.push(drawn.log_probs.reshape([batch, 1]));
        if step + 1 < sampling.turn_tokens {
            let last = sampling.context_length - 1;
            let positions = rows.iter().map(|row| (row.tokens.len() + step).min(last) as i32).collect::<Vec<_>>();
            let positions = Tensor::from_data(TensorData::new(positions, [batch, 1]), device);
            let old: Vec<Vec<bool>> = rows.iter().map(|row| row.seen_with(step)).collect();
            let old: Vec<&[bool]> = old.iter().map(Vec::as_slice).collect();
            let visible = Visible::new(&old, &vec![[true].as_slice(); batch]);
            logits = policy.extend(drawn.tokens.reshape([batch, 1]), positions, &visible, cache);
        }
    }
    let tokens: Tensor<2> = Tensor::<2, Int>::cat(tokens, 1).float(); // [B, n]
    Tensor::cat(vec![tokens, Tensor::cat(log_probs, 1)], 1).reshape([-1])
}

/// One episode in progress.
struct Row {
    /// Place in the result.
    index: usize,
    group: usize,
    member: usize,
    environment: Box<dyn Environment>,
    sampling: Draws,
    tool: Draws,
    tokens: Vec<Token>,
    prompt_length: usize,
    loss_mask: Vec<bool>,
    log_probs: Vec<f32>,
    legal: Vec<TokenSet>,
    turns: Vec<Turn>,
    end: Option<End>,
    /// The last tokens of `tokens`, not yet fed to the policy.
    pending: Vec<Token>,
    /// For each cache slot whether its token belongs to this row.
    seen: Vec<bool>,
}

impl Row {
    fn new(index: usize, episode: Episode) -> Self {
        let length = episode.prompt.len();
        Row {
            index,
            group: episode.group,
            member: episode.member,
            environment: episode.environment,
            sampling: episode.sampling,
            tool: episode.tool,
            prompt_length: length,
            loss_mask: vec![false; length],
            log_probs: vec![0.0; length],
            legal: Vec::new(),
            turns: Vec::new(),
            end: None,
            pending: episode.prompt.clone(),
            tokens: episode.prompt,
            seen: Vec::new(),
        }
    }

    /// The slots this row sees when `step` tokens of the current turn have been fed.
    fn seen_with(&self, step: usize) -> Vec<bool> {
        self.seen.iter().copied().chain(std::iter::repeat_n(true, step)).collect()
    }

    /// Keeps the sampled tokens up to `<eot>` (or the budget), lets the environment answer, and queues its answer.
    fn take_action(
        &mut self,
        tokens: &[f32],
        log_probs: &[f32],
        sampling: &Sampling,
        grammar: Option<&Grammar>,
        last: bool,
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
        let tool = self.tool.from(self.turns.len() as u32 * TOOL_POSITIONS_PER_TURN);
        let step = self.environment.step(action, tool);
        let action_end = self.tokens.len();
        let observation = step.observation.as_ref().map(|observation| self.environment.format_observation(observation));
        // Of the action all but the budget's last token has been fed: that one waits with the observation.
        let fed = length.min(sampling.turn_tokens - 1);
        self.seen.extend((0..sampling.turn_tokens - 1).map(|slot| slot < fed));
        match observation {
            _ if step.done => self.end = Some(End::Terminated),
            _ if last => self.end = Some(End::TurnLimit),
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

    fn into_trajectory(mut self) -> Trajectory {
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

/// The environment's grammar as tensors, so that a whole turn can be sampled under it without the host.
struct Automaton {
    grammar: Grammar,
    /// `[states, V]`, 1 for forbidden tokens.
    illegal: Tensor<2>,
    /// `[states * V]`, the next state.
    next: Tensor<1, Int>,
}

impl Automaton {
    fn new(grammar: Grammar, device: &Device) -> Self {
        let states = grammar.legal.len();
        let forbidden = |legal: &TokenSet| (0..SIZE as Token).map(|token| !legal.contains(token)).collect::<Vec<bool>>();
        let illegal: Vec<bool> = grammar.legal.iter().flat_map(forbidden).collect();
        let next: Vec<i32> = grammar.next.iter().flatten().map(|&state| i32::from(state)).collect();
        Automaton {
            illegal: Tensor::<2, Bool>::from_data(TensorData::new(illegal, [states, SIZE]), device).float(),
            next: Tensor::from_data(TensorData::new(next, [states * SIZE]), device),
            grammar,
        }
    }

    fn start(&self, batch: usize, device: &Device) -> Tensor<1, Int> {
        Tensor::zeros([batch], device)
    }

    fn illegal(&self, state: &Tensor<1, Int>) -> Tensor<2> {
        self.illegal.clone().select(0, state.clone())
    }

    fn advance(&self, state: Tensor<1, Int>, tokens: Tensor<1, Int>) -> Tensor<1, Int> {
        self.next.clone().select(0, state.mul_scalar(SIZE as i64) + tokens)
    }
}
