//! Decoding on the CPU: a prefix tree of the tokens of all rows, each of which is fed once.
//!
//! What a policy computes of a token depends on the tokens up to it alone. Rows that have sampled the same tokens so far therefore
//! share them, their keys and values and the distribution of the next one; each draws from it with its own random numbers.

use std::collections::HashMap;

use pulp::{Simd, WithSimd};

use super::attention::softmax;
use super::distribution::{log_softmax, restrict};
use super::network::{Network, gather};
use super::norm::normalise;
use super::vector::{add_times, dot, vectorised};
use crate::policy::Layout;
use crate::vocabulary::{Token, TokenSet};

/// A token in the tree, and with it those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Node(usize);

/// Rows that a policy continues.
pub struct Decoder<'a> {
    network: &'a Network,
    nodes: Vec<Known>,
    /// The node behind another that has a token; the first ones are behind none.
    next: HashMap<(Option<Node>, Token), Node>,
    /// Of every node, `[layers, d]`.
    keys: Vec<f32>,
    /// Of every node, `[layers, d]`.
    values: Vec<f32>,
    /// Of nodes that something was drawn after, `[V]`.
    logits: Vec<f32>,
}

/// What is known of a node.
struct Known {
    before: Option<Node>,
    token: Token,
    position: usize,
    /// Its place among the logits.
    logits: Option<usize>,
}

/// A token drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Draw {
    pub token: Token,
    pub log_prob: f32,
}

impl<'a> Decoder<'a> {
    /// Without any token.
    pub fn new(network: &'a Network) -> Self {
        let (keys, values, logits) = (Vec::new(), Vec::new(), Vec::new());
        Decoder { network, nodes: Vec::new(), next: HashMap::new(), keys, values, logits }
    }

    /// Feeds to each row, which has come to a node or has not begun, at least one token. Gives the nodes that the rows come to;
    /// [`Decoder::draw`] can draw after those.
    pub fn feed<'t>(&mut self, rows: impl Iterator<Item = (Option<Node>, &'t [Token])>) -> Vec<Node> {
        let first = self.nodes.len();
        let end_of = |(start, tokens): (Option<Node>, &[Token])| {
            let mut node = start;
            for (index, &token) in tokens.iter().enumerate() {
                let last = index + 1 == tokens.len();
                let known = self.next.get(&(node, token)).copied();
                // One that was passed by in an earlier call has no logits: it is fed again.
                let known = known.filter(|&Node(known)| !last || known >= first || self.nodes[known].logits.is_some());
                node = Some(known.unwrap_or_else(|| self.add(node, token)));
            }
            node.unwrap_or(Node(0))
        };
        let ends: Vec<Node> = rows.map(end_of).collect();
        let mut wanted: Vec<usize> = ends.iter().filter_map(|end| end.0.checked_sub(first)).collect();
        wanted.sort_unstable();
        wanted.dedup();
        if !wanted.is_empty() {
            let place = self.logits.len() / self.network.layout.vocabulary;
            wanted.iter().enumerate().for_each(|(index, &node)| self.nodes[first + node].logits = Some(place + index));
            let logits = self.compute(first, &wanted);
            self.logits.extend(logits);
        }
        ends
    }

    fn add(&mut self, before: Option<Node>, token: Token) -> Node {
        let node = Node(self.nodes.len());
        let position = before.map_or(0, |Node(before)| self.nodes[before].position + 1);
        self.nodes.push(Known { before, token, position, logits: None });
        self.next.insert((before, token), node);
        node
    }

    /// Computes the nodes from `first` on; gives the logits `[wanted, V]` of some of them, counted from the first.
    fn compute(&mut self, first: usize, wanted: &[usize]) -> Vec<f32> {
        let network = self.network;
        let Layout { d_model: d, layers, block, norm_gamma, norm_beta, head_bias, .. } = network.layout;
        let count = self.nodes.len() - first;
        let room = vec![0.0; count * layers * d];
        self.keys.extend_from_slice(&room);
        self.values.extend_from_slice(&room);
        let mut rows = vec![0.0; count * d];
        for (row, node) in rows.chunks_exact_mut(d).zip(&self.nodes[first..]) {
            network.embed(node.token, node.position, row);
        }
        let every: Vec<usize> = (0..count).collect();
        for layer in 0..layers {
            let (base, panels) = (network.base(layer), &network.layers[layer]);
            let (gamma, beta) = network.gain_and_shift(base + block.attention_norm_gamma, base + block.attention_norm_beta);
            let (input, _) = normalise(network.arch, &rows, gamma, beta);
            let keys_values = network.linear(&input, &panels.keys_values, block.qkv_bias.map(|bias| base + bias + d));
            for (index, line) in keys_values.chunks_exact(2 * d).enumerate() {
                let place = ((first + index) * layers + layer) * d;
                self.keys[place..place + d].copy_from_slice(&line[..d]);
                self.values[place..place + d].copy_from_slice(&line[d..]);
            }
            // After the last attention only nodes whose logits are wanted go on.
            let going = Some(wanted).filter(|wanted| layer + 1 == layers && wanted.len() < count);
            let queries = gather(&input, going, d);
            let queries = network.linear(&queries, &panels.queries, block.qkv_bias.map(|bias| base + bias));
            if going.is_some() {
                rows = gather(&rows, going, d).into_owned();
            }
            let mut attended = vec![0.0; queries.len()];
            let asking = going.unwrap_or(&every);
            network.arch.dispatch(Attention { decoder: self, layer, first, asking, queries: &queries, out: &mut attended });
            network.add_linear(&mut rows, &attended, &panels.out, block.out_bias.map(|bias| base + bias));
            let (gamma, beta) = network.gain_and_shift(base + block.hidden_norm_gamma, base + block.hidden_norm_beta);
            let (input, _) = normalise(network.arch, &rows, gamma, beta);
            network.add_linear(&mut rows, &network.hidden(&input, layer), &panels.down, Some(base + block.down_bias));
        }
        let (gamma, beta) = network.gain_and_shift(norm_gamma, norm_beta);
        let (normal, _) = normalise(network.arch, &rows, gamma, beta);
        network.linear(&normal, &network.head, head_bias)
    }

    /// Draws a token for each of some rows, after the node that it has come to, by inverting the cumulative distribution at
    /// `uniforms`, as [`crate::policy::sample`] does; `legal` is empty without a grammar.
    pub fn draw(&self, rows: &[Node], temperature: f64, legal: &[TokenSet], uniforms: &[f32]) -> Vec<Draw> {
        let vocabulary = self.network.layout.vocabulary;
        let mut logits = Vec::with_capacity(rows.len() * vocabulary);
        for (index, &Node(node)) in rows.iter().enumerate() {
            let place = self.nodes[node].logits.unwrap_or(0) * vocabulary;
            logits.extend_from_slice(&self.logits[place..place + vocabulary]);
            restrict(&mut logits[index * vocabulary..], temperature as f32, legal.get(index).copied());
        }
        let mut draws = vec![Draw { token: 0, log_prob: 0.0 }; rows.len()];
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

/// Attention of queries `[asking, d]` of new nodes, counted from `first`, to the nodes up to them.
struct Attention<'a> {
    decoder: &'a Decoder<'a>,
    layer: usize,
    first: usize,
    asking: &'a [usize],
    queries: &'a [f32],
    out: &'a mut [f32],
}

impl WithSimd for Attention<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Decoder { network, nodes, keys, values, .. } = self.decoder;
        let Layout { d_model: d, heads, layers, .. } = network.layout;
        let width = d / heads;
        let factor = (width as f32).powf(-0.5);
        let (mut path, mut scores) = (Vec::new(), Vec::new());
        for ((index, query), out) in self.asking.iter().zip(self.queries.chunks_exact(d)).zip(self.out.chunks_exact_mut(d)) {
            path.clear();
            let mut next = Some(Node(self.first + index));
            while let Some(Node(node)) = next {
                path.push((node * layers + self.layer) * d);
                next = nodes[node].before;
            }
            scores.resize(path.len(), 0.0);
            for head in 0..heads {
                let own = head * width..(head + 1) * width;
                let query = &query[own.clone()];
                for (score, &place) in scores.iter_mut().zip(&path) {
                    let key = &keys[place + own.start..place + own.end];
                    *score = factor * dot(simd, query, key);
                }
                softmax(simd, &mut scores, 1.0);
                let out = &mut out[own.clone()];
                for (&weight, &place) in scores.iter().zip(&path) {
                    add_times(simd, out, weight, &values[place + own.start..place + own.end]);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ExperimentConfig;
    use crate::environment::REGISTRY;
    use crate::policy::{Policy, PolicyConfig, Weights};
    use crate::seed::RootSeed;

    fn network() -> Network {
        let shape = PolicyConfig::of(&ExperimentConfig::defaults("search", REGISTRY));
        let fresh: Policy = shape.init(&burn::tensor::Device::flex());
        let policy = fresh.with_weights(&Weights::initial(&shape, RootSeed(3))).unwrap_or_else(|error| panic!("{error}"));
        Network::of(&policy).unwrap_or_else(|| panic!("the CPU is covered"))
    }

    /// The log-probability that a token would be drawn with.
    fn after(decoder: &Decoder, node: Node) -> Vec<Draw> {
        (0..8).flat_map(|step| decoder.draw(&[node], 1.0, &[], &[step as f32 / 8.0])).collect()
    }

    #[test]
    fn what_rows_have_alike_is_fed_once_and_gives_what_it_gives_alone() {
        let network = network();
        let mut decoder = Decoder::new(&network);
        let rows: [&[Token]; 4] = [&[3, 4, 5], &[3, 4], &[3, 4, 5], &[3, 4, 6, 7]];
        let ends = decoder.feed(rows.iter().map(|&tokens| (None, tokens)));
        assert_eq!(decoder.nodes.len(), 5);
        assert_eq!((ends[0], ends[0] == ends[1]), (ends[2], false));
        let longer = decoder.feed([(Some(ends[1]), &[5, 9][..]), (Some(ends[3]), &[9][..])].into_iter());
        assert_eq!(decoder.nodes.len(), 7, "the 5 after 3 4 is known");
        // A 6 after 3 4 is known, but was passed by.
        let again = decoder.feed([(Some(ends[1]), &[6][..])].into_iter());
        assert_eq!(decoder.nodes.len(), 8);
        let all = [(ends[0], &[3, 4, 5][..]), (ends[1], &[3, 4]), (ends[3], &[3, 4, 6, 7]), (longer[0], &[3, 4, 5, 9])];
        for (node, tokens) in all.into_iter().chain([(longer[1], &[3, 4, 6, 7, 9][..]), (again[0], &[3, 4, 6])]) {
            let mut alone = Decoder::new(&network);
            let end = alone.feed([(None, tokens)].into_iter())[0];
            assert_eq!(after(&decoder, node), after(&alone, end), "{tokens:?}");
        }
    }
}
