//! The reference: a turn decoded token by token with burn's operations, on any device.
//!
//! All rows decode the same number of tokens. A row that ends its action early keeps sampling until the turn is over; what it
//! samples then is hidden from its later tokens and never kept.

use burn::tensor::{Device, Int, Tensor, TensorData};

use super::automaton::Automaton;
use super::decoding::{self, Decoded};
use super::row::Row;
use super::{RolloutError, Sampling};
use crate::environment::Grammar;
use crate::policy::{Cache, Policy, Visible, cumulating, log_distribution, sample};
use crate::vocabulary::{PAD, SIZE, Token};

/// What a batch holds on the device.
pub(super) struct Decoding {
    device: Device,
    automaton: Option<Automaton>,
    /// For cumulative sums.
    ones: Tensor<2>,
    /// `None` before the first turn.
    cache: Option<Cache>,
}

impl Decoding {
    pub fn new(policy: &Policy, grammar: Option<Grammar>) -> Self {
        let device = policy.device().without_autodiff();
        let automaton = grammar.map(|grammar| Automaton::new(grammar, &device));
        Decoding { automaton, ones: cumulating(SIZE, &device), cache: None, device }
    }
}

impl decoding::Decoding for Decoding {
    /// See [`decode_turn`].
    fn turn(&mut self, policy: &Policy, rows: &mut [Row], sampling: &Sampling) -> Result<Decoded, RolloutError> {
        let (logits, mut cache) = match self.cache.take() {
            Some(mut cache) => (feed_pending(policy, rows, &mut cache, &self.device), cache),
            None => begin(policy, rows, &self.device),
        };
        let packed = decode_turn(policy, rows, logits, &mut cache, sampling, self.automaton.as_ref(), &self.ones, &self.device);
        self.cache = Some(cache);
        Ok(Decoded::There(Box::new(packed)))
    }

    /// Every row feeds a whole turn.
    fn rest(&self, row: &mut Row, length: usize, sampling: &Sampling) {
        row.wait_behind_all_fed(length, sampling.limits.turn_tokens);
    }

    fn keep_rows(&mut self, rows: &[usize]) {
        if let Some(cache) = &mut self.cache {
            cache.keep_rows(rows);
        }
    }
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
        .map(|row| Block { tokens: &row.pending, first: row.prefix.tokens.len() - row.pending.len(), seen: &row.seen })
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
    for step in 0..sampling.limits.turn_tokens {
        let uniforms = vector(rows.iter().map(|row| row.sampling.unit_at((row.prefix.tokens.len() + step) as u32)).collect());
        let illegal = automaton.zip(state.as_ref()).map(|(automaton, state)| automaton.illegal(state));
        let drawn = sample(log_distribution(logits.clone(), sampling.temperature, illegal), uniforms, ones);
        state = automaton.zip(state).map(|(automaton, state)| automaton.advance(state, drawn.tokens.clone()));
        tokens.push(drawn.tokens.clone().reshape([batch, 1]));
        log_probs.push(drawn.log_probs.reshape([batch, 1]));
        if step + 1 < sampling.limits.turn_tokens {
            let last = sampling.limits.context_length - 1;
            let positions = rows.iter().map(|row| (row.prefix.tokens.len() + step).min(last) as i32).collect::<Vec<_>>();
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
