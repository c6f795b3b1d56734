//! Decoding on the CPU: rows with caches of their own, each of which feeds exactly its own tokens.

use pulp::{Simd, WithSimd};

use super::attention::softmax;
use super::distribution::{log_softmax, restrict};
use super::network::{Network, gather};
use super::norm::normalise;
use super::vector::{add_times, vectorised};
use crate::policy::Layout;
use crate::vocabulary::{Token, TokenSet};

/// Keys and values of the tokens of one row.
#[derive(Clone)]
struct Cache {
    /// Of every layer, `[d, slots]`: one number of all keys after another.
    keys: Vec<f32>,
    /// Of every layer, `[slots, d]`.
    values: Vec<f32>,
}

/// Rows that a policy continues.
pub struct Decoder<'a> {
    network: &'a Network,
    /// Room in a cache, in tokens.
    slots: usize,
    caches: Vec<Cache>,
}

/// A token to be fed.
#[derive(Clone, Copy, Debug)]
pub struct Feed {
    pub row: usize,
    pub token: Token,
    /// Its position in the row.
    pub slot: usize,
}

/// A token drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    pub token: Token,
    pub log_prob: f32,
}

impl<'a> Decoder<'a> {
    /// Room for `rows` rows of at most `slots` tokens.
    pub fn new(network: &'a Network, rows: usize, slots: usize) -> Self {
        let Layout { layers, d_model, .. } = network.layout;
        let empty = || vec![0.0; layers * d_model * slots];
        let caches = (0..rows).map(|_| Cache { keys: empty(), values: empty() }).collect();
        Decoder { network, slots, caches }
    }

    /// Makes a row begin with the tokens that another has.
    pub fn copy(&mut self, from: usize, to: usize) {
        self.caches[to] = self.caches[from].clone();
    }

    /// Feeds tokens, those of a row in their order, and gives the logits `[last, V]` after the ones at the places `last`.
    pub fn feed(&mut self, tokens: &[Feed], last: &[usize]) -> Vec<f32> {
        let network = self.network;
        let Layout { d_model: d, layers, block, norm_gamma, norm_beta, head_bias, .. } = network.layout;
        let mut rows = vec![0.0; tokens.len() * d];
        for (row, feed) in rows.chunks_exact_mut(d).zip(tokens) {
            network.embed(feed.token, feed.slot, row);
        }
        for layer in 0..layers {
            let (base, panels) = (network.base(layer), &network.layers[layer]);
            let (gamma, beta) = network.gain_and_shift(base + block.attention_norm_gamma, base + block.attention_norm_beta);
            let (input, _) = normalise(network.arch, &rows, gamma, beta);
            let keys_values = network.linear(&input, &panels.keys_values, block.qkv_bias.map(|bias| base + bias + d));
            self.remember(layer, tokens, &keys_values);
            // After the last attention only rows whose logits are wanted go on.
            let going = Some(last).filter(|last| layer + 1 == layers && last.len() < tokens.len());
            let asking = going.map_or(tokens.to_vec(), |going| going.iter().map(|&place| tokens[place]).collect());
            let queries = gather(&input, going, d);
            let queries = network.linear(&queries, &panels.queries, block.qkv_bias.map(|bias| base + bias));
            if going.is_some() {
                rows = gather(&rows, going, d).into_owned();
            }
            network.add_linear(
                &mut rows,
                &self.attend(layer, &asking, &queries),
                &panels.out,
                block.out_bias.map(|bias| base + bias),
            );
            let (gamma, beta) = network.gain_and_shift(base + block.hidden_norm_gamma, base + block.hidden_norm_beta);
            let (input, _) = normalise(network.arch, &rows, gamma, beta);
            network.add_linear(&mut rows, &network.hidden(&input, layer), &panels.down, Some(base + block.down_bias));
        }
        let (gamma, beta) = network.gain_and_shift(norm_gamma, norm_beta);
        let (normal, _) = normalise(network.arch, &rows, gamma, beta);
        network.linear(&normal, &network.head, head_bias)
    }

    /// Puts keys and values `[tokens, 2 d]` of a layer into the caches.
    fn remember(&mut self, layer: usize, tokens: &[Feed], keys_values: &[f32]) {
        let (d, slots) = (self.network.layout.d_model, self.slots);
        for (feed, line) in tokens.iter().zip(keys_values.chunks_exact(2 * d)) {
            let Cache { keys, values } = &mut self.caches[feed.row];
            let (key, value) = line.split_at(d);
            let places = keys[layer * d * slots + feed.slot..].iter_mut().step_by(slots);
            places.zip(key).for_each(|(place, &number)| *place = number);
            values[(layer * slots + feed.slot) * d..][..d].copy_from_slice(value);
        }
    }

    /// Attention of queries `[tokens, d]` to the caches of their rows, up to their own slots.
    fn attend(&self, layer: usize, tokens: &[Feed], queries: &[f32]) -> Vec<f32> {
        let mut out = vec![0.0; queries.len()];
        self.network.arch.dispatch(Attention { decoder: self, layer, tokens, queries, out: &mut out });
        out
    }

    /// Draws a token of each row of logits `[rows, V]` by inverting the cumulative distribution at `uniforms`, as
    /// [`crate::policy::sample`] does; `legal` is empty without a grammar.
    pub fn draw(&self, mut logits: Vec<f32>, temperature: f64, legal: &[TokenSet], uniforms: &[f32]) -> Vec<Draw> {
        let vocabulary = self.network.layout.vocabulary;
        for (index, row) in logits.chunks_exact_mut(vocabulary).enumerate() {
            restrict(row, temperature as f32, legal.get(index).copied());
        }
        let mut draws = vec![Draw { token: 0, log_prob: 0.0 }; uniforms.len()];
        invert(self.network.arch, &mut logits, uniforms, &mut draws);
        draws
    }
}

vectorised! {
    /// Draws from every row of logits, which become log-probabilities.
    fn invert<S>(simd, logits: &'a mut [f32], uniforms: &'a [f32], draws: &'a mut [Draw]) {
        let vocabulary = logits.len() / uniforms.len().max(1);
        let mut weights = Vec::new();
        for ((row, &uniform), draw) in logits.chunks_exact_mut(vocabulary.max(1)).zip(uniforms).zip(draws) {
            weights.clear();
            weights.extend_from_slice(row);
            log_softmax(simd, row, &mut weights);
            let mut total = 0.0;
            for weight in &mut weights {
                total += *weight;
                *weight = total;
            }
            let threshold = total * uniform;
            let token = weights.iter().filter(|&&weight| weight <= threshold).count().min(vocabulary - 1);
            *draw = Draw { token: token as Token, log_prob: row[token] };
        }
    }
}

struct Attention<'a> {
    decoder: &'a Decoder<'a>,
    layer: usize,
    tokens: &'a [Feed],
    queries: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for Attention<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Decoder { network, slots, caches } = self.decoder;
        let (Layout { d_model: d, heads, .. }, layer) = (network.layout, self.layer);
        let width = d / heads;
        let factor = (width as f32).powf(-0.5);
        let mut scores = vec![0.0; *slots];
        for ((feed, query), out) in self.tokens.iter().zip(self.queries.chunks_exact(d)).zip(self.out.chunks_exact_mut(d)) {
            let Cache { keys, values } = &caches[feed.row];
            let keys = &keys[layer * d * slots..][..d * slots];
            let values = &values[layer * d * slots..][..(feed.slot + 1) * d];
            for head in 0..heads {
                let scores = &mut scores[..=feed.slot];
                scores.fill(0.0);
                for column in head * width..(head + 1) * width {
                    let keys = &keys[column * slots..][..=feed.slot];
                    add_times(simd, scores, query[column] * factor, keys);
                }
                softmax(simd, scores, 1.0);
                let out = &mut out[head * width..(head + 1) * width];
                for (&weight, values) in scores.iter().zip(values.chunks_exact(d)) {
                    add_times(simd, out, weight, &values[head * width..(head + 1) * width]);
                }
            }
        }
    }
}
