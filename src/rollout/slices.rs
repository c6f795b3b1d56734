//! A turn decoded on the CPU by [`crate::cpu`]: every row feeds its own tokens and ends when it ends.

use std::collections::HashMap;

use super::Sampling;
use super::row::Row;
use crate::cpu::{Decoder, Draw, Feed, Network};
use crate::environment::Grammar;
use crate::vocabulary::{EOT, Token, TokenSet};

/// What a batch holds while it is decoded.
pub(super) struct Decoding<'a> {
    decoder: Decoder<'a>,
    grammar: Option<Grammar>,
    /// Whether the rows have been fed what they start from.
    begun: bool,
}

/// A row in a turn.
struct Active {
    /// Its place among the rows of the turn.
    place: usize,
    /// State of the grammar.
    state: usize,
}

impl<'a> Decoding<'a> {
    pub fn new(network: &'a Network, rows: usize, sampling: &Sampling, grammar: Option<Grammar>) -> Self {
        Decoding { decoder: Decoder::new(network, rows, sampling.limits.context_length), grammar, begun: false }
    }

    /// Feeds what waits in the rows and samples a turn. Gives tokens and log-probabilities row by row: `turn_tokens` tokens, 0 behind
    /// the action, then as many log-probabilities.
    pub fn turn(&mut self, rows: &mut [Row], sampling: &Sampling) -> Vec<f32> {
        let turn_tokens = sampling.limits.turn_tokens;
        let mut packed = vec![0.0; rows.len() * 2 * turn_tokens];
        let room = |row: &Row| turn_tokens.min(sampling.limits.context_length.saturating_sub(row.prefix.tokens.len()));
        let mut active: Vec<Active> =
            (0..rows.len()).filter(|&place| room(&rows[place]) > 0).map(|place| Active { place, state: 0 }).collect();
        let mut logits = self.feed_pending(rows, &active);
        for step in 0..turn_tokens {
            let of =
                |active: &Active| rows[active.place].sampling.unit_at((rows[active.place].prefix.tokens.len() + step) as u32);
            let uniforms: Vec<f32> = active.iter().map(of).collect();
            let legal: Vec<TokenSet> = match &self.grammar {
                Some(grammar) => active.iter().map(|active| grammar.legal[active.state]).collect(),
                None => Vec::new(),
            };
            let draws = self.decoder.draw(std::mem::take(&mut logits), sampling.temperature, &legal, &uniforms);
            let mut feeds = Vec::with_capacity(active.len());
            let mut next = draws.into_iter();
            active.retain_mut(|active| {
                let Some(Draw { token, log_prob }) = next.next() else { return false };
                let own = &mut packed[active.place * 2 * turn_tokens..][..2 * turn_tokens];
                (own[step], own[turn_tokens + step]) = (f32::from(token), log_prob);
                let row = &rows[active.place];
                if token == EOT || step + 1 >= room(row) {
                    return false;
                }
                if let Some(grammar) = &self.grammar {
                    active.state = usize::from(grammar.next[active.state][usize::from(token)]);
                }
                feeds.push(Feed { row: row.index, token, slot: row.prefix.tokens.len() + step });
                true
            });
            if active.is_empty() {
                break;
            }
            logits = self.decoder.feed(&feeds, &(0..feeds.len()).collect::<Vec<_>>());
        }
        packed
    }

    /// Feeds what waits; gives the logits after it of the active rows. What several rows start from is fed once.
    fn feed_pending(&mut self, rows: &mut [Row], active: &[Active]) -> Vec<f32> {
        let mut known: HashMap<Vec<Token>, usize> = HashMap::new();
        let (mut feeds, mut last, mut origins, mut copies) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for Active { place, .. } in active {
            let row = &mut rows[*place];
            let pending = std::mem::take(&mut row.pending);
            if !self.begun {
                if let Some(&(origin, from)) = known.get(&pending).map(|&place| (place, last[place])).as_ref() {
                    copies.push((from, row.index));
                    origins.push(origin);
                    continue;
                }
            }
            let first = row.prefix.tokens.len() - pending.len();
            feeds.extend(pending.iter().enumerate().map(|(index, &token)| Feed { row: row.index, token, slot: first + index }));
            origins.push(last.len());
            known.insert(pending, last.len());
            last.push(feeds.len() - 1);
        }
        self.begun = true;
        let logits = self.decoder.feed(&feeds, &last);
        for (from, to) in copies {
            self.decoder.copy(feeds[from].row, to);
        }
        let vocabulary = logits.len() / last.len().max(1);
        origins.iter().flat_map(|&origin| &logits[origin * vocabulary..][..vocabulary]).copied().collect()
    }
}
