//! A turn decoded on the CPU by [`crate::cpu`]: every row feeds its own tokens, those that it shares with others once, and ends when
//! it ends.

use super::decoding::{self, Decoded};
use super::row::Row;
use super::{RolloutError, Sampling};
use crate::cpu::{Decoder, Draw, Node, Packed};
use crate::environment::Grammar;
use crate::policy::Policy;
use crate::vocabulary::{EOT, Token, TokenSet};

/// What a batch holds while it is decoded.
pub(super) struct Decoding<'a> {
    decoder: Decoder<'a>,
    grammar: Option<Grammar>,
    /// Where each row has come to, by its index; `None` before it begins.
    nodes: Vec<Option<Node>>,
}

/// A row in a turn.
struct Active {
    /// Its place among the rows of the turn.
    place: usize,
    node: Node,
    /// State of the grammar.
    state: usize,
}

impl decoding::Decoding for Decoding<'_> {
    fn turn(&mut self, _policy: &Policy, rows: &mut [Row], sampling: &Sampling) -> Result<Decoded, RolloutError> {
        let turn_tokens = sampling.limits.turn_tokens;
        let mut packed = vec![0.0; rows.len() * 2 * turn_tokens];
        let room = |row: &Row| turn_tokens.min(sampling.limits.context_length.saturating_sub(row.prefix.tokens.len()));
        let mut active = self.begin(rows, room);
        for step in 0..turn_tokens {
            let row = |active: &Active| &rows[active.place];
            let uniform = |active: &Active| row(active).sampling.unit_at((row(active).prefix.tokens.len() + step) as u32);
            let uniforms: Vec<f32> = active.iter().map(uniform).collect();
            let legal: Vec<TokenSet> = match &self.grammar {
                Some(grammar) => active.iter().map(|active| grammar.legal[active.state]).collect(),
                None => Vec::new(),
            };
            let nodes: Vec<Node> = active.iter().map(|active| active.node).collect();
            let mut drawn = self.decoder.draw(&nodes, sampling.temperature, &legal, &uniforms).into_iter();
            let mut tokens = Vec::with_capacity(active.len());
            active.retain_mut(|active| {
                let Some(Draw { token, log_prob }) = drawn.next() else { return false };
                let own = &mut packed[active.place * 2 * turn_tokens..][..2 * turn_tokens];
                (own[step], own[turn_tokens + step]) = (f32::from(token), log_prob);
                if token == EOT || step + 1 >= room(&rows[active.place]) {
                    // Its last token waits for the observation.
                    self.nodes[rows[active.place].index] = Some(active.node);
                    return false;
                }
                if let Some(grammar) = &self.grammar {
                    active.state = usize::from(grammar.next[active.state][usize::from(token)]);
                }
                tokens.push(token);
                true
            });
            if active.is_empty() {
                break;
            }
            let feeds = active.iter().zip(tokens.chunks_exact(1)).map(|(active, token)| (Some(active.node), token));
            let nodes = self.decoder.feed(feeds);
            active.iter_mut().zip(nodes).for_each(|(active, node)| active.node = node);
        }
        Ok(Decoded::Here(packed))
    }
}

impl<'a> Decoding<'a> {
    /// `None` where the policy's device or shape is not one for slices.
    pub fn new(policy: &'a Packed, rows: usize, grammar: Option<&Grammar>) -> Option<Self> {
        let decoder = Decoder::new(policy.network()?);
        Some(Decoding { decoder, grammar: grammar.cloned(), nodes: vec![None; rows] })
    }

    /// Feeds what waits in the rows that have room for a turn.
    fn begin(&mut self, rows: &mut [Row], room: impl Fn(&Row) -> usize) -> Vec<Active> {
        let places: Vec<usize> = (0..rows.len()).filter(|&place| room(&rows[place]) > 0).collect();
        let pending: Vec<Vec<Token>> = places.iter().map(|&place| std::mem::take(&mut rows[place].pending)).collect();
        let starts = places.iter().map(|&place| self.nodes[rows[place].index]);
        let nodes = self.decoder.feed(starts.zip(pending.iter().map(Vec::as_slice)));
        places.into_iter().zip(nodes).map(|(place, node)| Active { place, node, state: 0 }).collect()
    }
}
