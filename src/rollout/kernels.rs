//! A turn decoded by kernels of our own: at most two dispatches, whatever the number of tokens.

use std::collections::HashMap;

use super::decoding::{self, Decoded};
use super::row::Row;
use super::{RolloutError, Sampling};
use crate::environment::Grammar;
use crate::kernel::{Decoder, Edges, Home, Span, Start};
use crate::policy::Policy;
use crate::readback::ReadError;
use crate::vocabulary::{EOT, SIZE, Token};

/// What a batch holds on the device.
pub(super) struct Decoding {
    decoder: Decoder,
    /// By the index of a row.
    homes: Vec<Home>,
}

impl Decoding {
    /// `None` where there are no kernels for the device or the policy.
    pub fn new(policy: &Policy, rows: &[Row], sampling: &Sampling, grammar: Option<&Grammar>) -> Option<Self> {
        let decoder = Decoder::new(policy, rows.len(), sampling.limits.context_length, grammar.map(edges), None)?;
        // Rows that start from the same tokens share all of them but the last, whose turn it is first while decoding.
        let mut known: HashMap<&[Token], usize> = HashMap::new();
        let mut homes = Vec::with_capacity(rows.len());
        for (row, start) in rows.iter().enumerate() {
            let origin = *known.entry(&start.pending).or_insert(row);
            let shared = if origin == row { 0 } else { start.pending.len().saturating_sub(1) };
            homes.push(Home { row, origin, shared });
        }
        Some(Decoding { decoder, homes })
    }

    /// What waits in a row but for its last token; nothing where another row has it.
    fn span<'a>(&self, row: &'a Row) -> Option<Span<'a>> {
        let home = self.homes[row.index];
        let slot = row.prefix.tokens.len() - row.pending.len();
        let tokens = &row.pending[..row.pending.len().saturating_sub(1)];
        (!tokens.is_empty() && slot >= home.shared).then_some(Span { home, slot, tokens })
    }

    fn start(&self, row: &Row, sampling: &Sampling) -> Start {
        let length = row.prefix.tokens.len();
        let most = sampling.limits.turn_tokens.min(sampling.limits.context_length.saturating_sub(length));
        Start {
            home: self.homes[row.index],
            slot: length.saturating_sub(1),
            token: row.prefix.tokens.last().copied().unwrap_or(0),
            most,
            uniforms: (0..most).map(|token| row.sampling.at((length + token) as u32) >> 8).collect(),
        }
    }
}

impl decoding::Decoding for Decoding {
    fn turn(&mut self, _policy: &Policy, rows: &mut [Row], sampling: &Sampling) -> Result<Decoded, RolloutError> {
        let spans: Vec<Span> = rows.iter().filter_map(|row| self.span(row)).collect();
        self.decoder.prefill(&spans);
        drop(spans);
        let starts: Vec<Start> = rows.iter().map(|row| self.start(row, sampling)).collect();
        rows.iter_mut().for_each(|row| row.pending.clear());
        let drawn = self.decoder.decode(&starts, sampling.limits.turn_tokens, u32::from(EOT), sampling.temperature as f32);
        drawn
            .map(Box::new)
            .map(Decoded::There)
            .ok_or_else(|| RolloutError::Read(ReadError("no buffer on the device".to_string())))
    }
}

/// The grammar as the kernels read it.
fn edges(grammar: &Grammar) -> Edges {
    let states = grammar.legal.iter().zip(&grammar.next);
    states.flat_map(|(legal, next)| (0..SIZE).map(move |token| legal.contains(token as Token).then(|| next[token]))).collect()
}
