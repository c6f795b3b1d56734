//! Batched sampling, one turn at a time.
//!
//! All rows decode the same number of tokens on the device, then one read brings the turn's tokens and log-probabilities to the
//! host, the environments answer, and the answers are fed in one block. A row that ends its action early keeps sampling until
//! the turn is over; what it samples then is hidden from its later tokens and never kept. Finished rows leave the batch. Rows
//! that start from the same tokens share the work on them.

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::automaton::Automaton;
use super::row::Row;
use super::{Episode, Trajectory};
use crate::config::ExperimentConfig;
use crate::parallel;
use crate::policy::{Cache, Policy, Visible, cumulating, log_distribution, sample};
use crate::readback::{ReadError, read};
use crate::vocabulary::{PAD, SIZE, Token};

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

/// Rows that one thread plays together: small enough that a few cores share a step evenly, large enough that the work per
/// operation outweighs its overhead. The same on every machine, so that results are too.
const SHARD: usize = 64;

/// Plays all episodes to their end. The result is in the order of `episodes`.
///
/// # Errors
/// When the device fails or a log-probability is not finite.
pub async fn roll_out(policy: &Policy, episodes: Vec<Episode>, sampling: &Sampling) -> Result<Vec<Trajectory>, RolloutError> {
    let workers = parallel::workers(&policy.device());
    if !parallel::cuts(&policy.device()) || episodes.len() <= SHARD {
        return play(policy, episodes, sampling).await;
    }
    let mut rest = episodes.into_iter();
    let shards = std::iter::from_fn(|| Some(rest.by_ref().take(SHARD).collect::<Vec<_>>()).filter(|shard| !shard.is_empty()));
    let played = parallel::map(workers, shards.collect(), |shard| parallel::wait(play(policy, shard, sampling)));
    Ok(played.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

/// Plays episodes as one batch.
async fn play(policy: &Policy, episodes: Vec<Episode>, sampling: &Sampling) -> Result<Vec<Trajectory>, RolloutError> {
    let device = policy.device().without_autodiff();
    let mut finished: Vec<Option<Trajectory>> = episodes.iter().map(|_| None).collect();
    let mut rows: Vec<Row> = episodes.into_iter().enumerate().map(|(index, episode)| Row::new(index, episode)).collect();
    let automaton = match (sampling.legal_token_mask, rows.first()) {
        (true, Some(row)) => Some(Automaton::new(row.environment.grammar(), &device)),
        _ => None,
    };
    let ones = cumulating(SIZE, &device);
    let mut begun: Option<Cache> = None;

    while !rows.is_empty() {
        let (logits, mut cache) = match begun.take() {
            Some(mut cache) => (feed_pending(policy, &mut rows, &mut cache, &device), cache),
            None => begin(policy, &mut rows, &device),
        };
        let packed = decode_turn(policy, &rows, logits, &mut cache, sampling, automaton.as_ref(), &ones, &device);
        let values = read(packed).await?; // [B * 2 turn_tokens]
        for (row, values) in rows.iter_mut().zip(values.chunks_exact(2 * sampling.turn_tokens)) {
            let (tokens, log_probs) = values.split_at(sampling.turn_tokens);
            row.take_action(tokens, log_probs, sampling, automaton.as_ref().map(|a| &a.grammar))?;
        }
        let active: Vec<usize> = (0..rows.len()).filter(|&index| rows[index].end.is_none()).collect();
        if active.len() < rows.len() {
            cache.keep_rows(&active);
            for row in rows.extract_if(.., |row| row.end.is_some()) {
                let index = row.index;
                finished[index] = Some(row.into_trajectory());
            }
        }
        begun = Some(cache);
    }
    Ok(finished.into_iter().flatten().collect())
}

/// Feeds what each row starts from, every distinct start once. Gives the logits `[B, V]` after it and the cache.
fn begin(policy: &Policy, rows: &mut [Row], device: &Device) -> (Tensor<2>, Cache) {
    let mut starts: Vec<Vec<Token>> = Vec::new();
    let mut known = std::collections::HashMap::new();
    let start_of: Vec<usize> = rows
        .iter()
        .map(|row| {
            *known.entry(row.pending.clone()).or_insert_with(|| {
                starts.push(row.pending.clone());
                starts.len() - 1
            })
        })
        .collect();
    let head = policy.d_model() / policy.heads();
    let mut cache = Cache::new(policy.layers(), starts.len(), policy.heads(), head, device);
    let blocks: Vec<Block> = starts.iter().map(|tokens| Block { tokens, first: 0, seen: &[] }).collect();
    let (logits, counts) = feed(policy, &blocks, &mut cache, device);
    for (row, &start) in rows.iter_mut().zip(&start_of) {
        row.seen.extend(&counts[start]);
        row.pending.clear();
    }
    if starts.len() == rows.len() {
        return (logits, cache);
    }
    cache.keep_rows(&start_of);
    let index: Vec<i32> = start_of.iter().map(|&start| start as i32).collect();
    (logits.select(0, Tensor::<1, Int>::from_data(TensorData::new(index, [rows.len()]), device)), cache)
}

/// Feeds each row's pending tokens as one block and gives the logits `[B, V]` after them.
fn feed_pending(policy: &Policy, rows: &mut [Row], cache: &mut Cache, device: &Device) -> Tensor<2> {
    let blocks: Vec<Block> = rows
        .iter()
        .map(|row| Block { tokens: &row.pending, first: row.tokens.len() - row.pending.len(), seen: &row.seen })
        .collect();
    let (logits, counts) = feed(policy, &blocks, cache, device);
    for (row, counts) in rows.iter_mut().zip(counts) {
        row.seen.extend(counts);
        row.pending.clear();
    }
    logits
}

/// Tokens of one row that go to the policy together.
struct Block<'a> {
    tokens: &'a [Token],
    /// Position of the first of them.
    first: usize,
    /// Which cache slots the row may see.
    seen: &'a [bool],
}

/// Feeds blocks, padded on the left to the longest. Gives the logits `[B, V]` after them, and which of the new slots count.
fn feed(policy: &Policy, blocks: &[Block], cache: &mut Cache, device: &Device) -> (Tensor<2>, Vec<Vec<bool>>) {
    let width = blocks.iter().map(|block| block.tokens.len()).max().unwrap_or(0);
    let (mut tokens, mut positions, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for block in blocks.iter() {
        let (padding, length) = (width - block.tokens.len(), block.tokens.len());
        tokens.extend(std::iter::repeat_n(i32::from(PAD), padding).chain(block.tokens.iter().map(|&token| i32::from(token))));
        let places = (block.first..block.first + length).map(|position| position as i32);
        positions.extend(std::iter::repeat_n(0, padding).chain(places));
        counts.push((0..width).map(|slot| slot >= padding).collect::<Vec<_>>());
    }
    let visible = {
        let old: Vec<&[bool]> = blocks.iter().map(|block| block.seen).collect();
        let new: Vec<&[bool]> = counts.iter().map(Vec::as_slice).collect();
        Visible::new(&old, &new)
    };
    let shape = [blocks.len(), width];
    let tokens = Tensor::from_data(TensorData::new(tokens, shape), device);
    let positions = Tensor::from_data(TensorData::new(positions, shape), device);
    (policy.extend(tokens, positions, &visible, cache), counts)
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
