//! The policy's forward and backward pass on slices.

use std::borrow::Cow;
use std::sync::OnceLock;

use pulp::Arch;

use super::attention::{Heads, Slopes, Span, attend, attend_backward, size_of_probabilities};
use super::batch::{Batch, Row};
use super::distribution::{Distributions, Taken, distribute, distribute_backward};
use super::norm::{self, Normalised, normalise, normalise_backward};
use super::product::{Into, Matrix, Panels, add_row_products, multiply};
use super::vector::{add_bias, add_rows, relu, relu_backward};
use crate::parallel;
use crate::policy::{Layout, Policy};
use crate::vocabulary::{Token, TokenSet};

/// The weights of a policy, packed for forward passes.
pub struct Network {
    pub(super) layout: Layout,
    pub(super) arch: Arch,
    weights: Vec<f32>,
    pub(super) layers: Vec<LayerPanels>,
    pub(super) head: Panels,
    /// For backward passes, once there is one.
    transposed: OnceLock<Transposed>,
}

/// The transposed matrices of all blocks, and of the head.
struct Transposed {
    layers: Vec<LayerPanels>,
    head: Panels,
}

/// The matrices of a block.
pub(super) struct LayerPanels {
    pub queries: Panels,
    pub keys_values: Panels,
    pub out: Panels,
    pub up: Panels,
    pub down: Panels,
}

/// What a forward pass gives, with what the backward pass needs of it.
pub struct Pass<'a> {
    network: &'a Network,
    batch: &'a Batch,
    temperature: f32,
    layers: Vec<Layer<'a>>,
    norm: Normalised,
    normal: Vec<f32>,
    distributions: Distributions,
    /// For each token asked for, which distribution it came from.
    taken: Vec<Taken>,
}

/// What a block keeps.
struct Layer<'a> {
    /// Rows that go on after attention; `None` where all do.
    kept: Option<Vec<usize>>,
    spans: Vec<Span<'a>>,
    attention_norm: Normalised,
    attention_input: Vec<f32>,
    queries: Vec<f32>,
    keys_values: Vec<f32>,
    probabilities: Vec<f32>,
    attended: Vec<f32>,
    hidden_norm: Normalised,
    hidden_input: Vec<f32>,
    hidden: Vec<f32>,
}

impl Network {
    /// Whether a policy is on the CPU and of a shape that is covered: all but those with GELU.
    pub fn covers(policy: &Policy) -> bool {
        parallel::cuts(&policy.device()) && Network::layout_of(policy).is_some()
    }

    fn layout_of(policy: &Policy) -> Option<Layout> {
        Layout::of(policy).filter(|layout| !layout.gelu && layout.d_model.is_multiple_of(layout.heads))
    }

    /// Packs the weights of a policy; `None` where it is not covered.
    pub fn of(policy: &Policy) -> Option<Network> {
        let layout = Network::layout_of(policy)?;
        let weights = policy.numbers()?;
        let arch = Arch::new();
        let (layers, head, transposed) = (Vec::new(), Panels::default(), OnceLock::new());
        let mut network = Network { layout, arch, weights, layers, head, transposed };
        (network.layers, network.head) = network.pack(|matrix| matrix);
        Some(network)
    }

    /// The matrices of all blocks and of the head, as they are or transposed.
    fn pack(&self, turned: impl Fn(Matrix) -> Matrix) -> (Vec<LayerPanels>, Panels) {
        let panels = |matrix| Panels::of(self.arch, turned(matrix));
        let block = |layer: usize| {
            let Matrices { queries, keys_values, out, up, down } = self.matrices(layer);
            let (queries, keys_values) = (panels(queries), panels(keys_values));
            LayerPanels { queries, keys_values, out: panels(out), up: panels(up), down: panels(down) }
        };
        ((0..self.layout.layers).map(block).collect(), panels(self.head_matrix()))
    }

    /// Packs what backward passes need, which the first of them would do.
    pub fn pack_backward(&self) {
        self.transposed();
    }

    fn transposed(&self) -> &Transposed {
        self.transposed.get_or_init(|| {
            let (layers, head) = self.pack(|matrix| matrix.transposed());
            Transposed { layers, head }
        })
    }

    fn matrices(&self, layer: usize) -> Matrices<'_> {
        let Layout { d_model, hidden, block, .. } = self.layout;
        let base = self.base(layer);
        let qkv = Matrix::new(self.part(base + block.qkv, 3 * d_model * d_model), 3 * d_model);
        Matrices {
            queries: qkv.columns(0, d_model),
            keys_values: qkv.columns(d_model, 2 * d_model),
            out: Matrix::new(self.part(base + block.out, d_model * d_model), d_model),
            up: Matrix::new(self.part(base + block.up, d_model * hidden), hidden),
            down: Matrix::new(self.part(base + block.down, hidden * d_model), d_model),
        }
    }

    fn head_matrix(&self) -> Matrix<'_> {
        Matrix::new(self.part(self.layout.head, self.layout.d_model * self.layout.vocabulary), self.layout.vocabulary)
    }

    /// Where the parameters of a block begin.
    pub(super) fn base(&self, layer: usize) -> usize {
        self.layout.first_block + layer * self.layout.block_length
    }

    pub(super) fn part(&self, first: usize, count: usize) -> &[f32] {
        &self.weights[first..first + count]
    }

    pub(super) fn heads(&self) -> Heads {
        Heads { heads: self.layout.heads, d_model: self.layout.d_model }
    }

    /// The embedding of a token at a position.
    pub(super) fn embed(&self, token: Token, position: usize, out: &mut [f32]) {
        let d = self.layout.d_model;
        let token = self.part(self.layout.tokens + usize::from(token) * d, d);
        let position = self.part(self.layout.positions + position * d, d);
        out.iter_mut().zip(token.iter().zip(position)).for_each(|(entry, (token, position))| *entry = token + position);
    }

    /// `rows W + bias`.
    pub(super) fn linear(&self, rows: &[f32], panels: &Panels, bias: Option<usize>) -> Vec<f32> {
        let mut out = vec![0.0; rows.len() / panels.depth * panels.columns];
        multiply(self.arch, Matrix::new(rows, panels.depth), panels, &mut out, Into::Set);
        if let Some(bias) = bias {
            add_bias(self.arch, &mut out, self.part(bias, panels.columns));
        }
        out
    }

    /// `to + rows W + bias`, in place.
    pub(super) fn add_linear(&self, to: &mut [f32], rows: &[f32], panels: &Panels, bias: Option<usize>) {
        multiply(self.arch, Matrix::new(rows, panels.depth), panels, to, Into::Add);
        if let Some(bias) = bias {
            add_bias(self.arch, to, self.part(bias, panels.columns));
        }
    }

    /// `relu(rows W + bias)`.
    pub(super) fn hidden(&self, rows: &[f32], layer: usize) -> Vec<f32> {
        let mut hidden = self.linear(rows, &self.layers[layer].up, Some(self.base(layer) + self.layout.block.up_bias));
        relu(self.arch, &mut hidden);
        hidden
    }

    /// Gain and shift that begin at two places.
    pub(super) fn gain_and_shift(&self, gamma: usize, beta: usize) -> (&[f32], &[f32]) {
        (self.part(gamma, self.layout.d_model), self.part(beta, self.layout.d_model))
    }

    /// Reads a batch.
    pub fn forward<'a>(&'a self, batch: &'a Batch, temperature: f64) -> Pass<'a> {
        let Layout { d_model: d, layers, vocabulary, norm_gamma, norm_beta, head_bias, .. } = self.layout;
        let mut rows = vec![0.0; batch.rows.len() * d];
        rows.chunks_exact_mut(d).zip(&batch.rows).for_each(|(out, row)| self.embed(row.token, row.position, out));
        let (wanted, taken) = batch.wanted_rows();
        let mut kept = Vec::with_capacity(layers);
        for layer in 0..layers {
            // After the last attention only rows whose distribution is wanted go on.
            let last = layer + 1 == layers && wanted.len() < batch.rows.len();
            let (next, layer) = self.block(layer, rows, batch, last.then(|| wanted.clone()));
            rows = next;
            kept.push(layer);
        }
        let (gamma, beta) = self.gain_and_shift(norm_gamma, norm_beta);
        let (normal, norm) = normalise(self.arch, &rows, gamma, beta);
        let logits = self.linear(&normal, &self.head, head_bias);
        let legal: Vec<TokenSet> = wanted.iter().map(|&row| batch.rows[row].legal).collect();
        let distributions = distribute(self.arch, logits, vocabulary, temperature as f32, &legal);
        Pass { network: self, batch, temperature: temperature as f32, layers: kept, norm, normal, distributions, taken }
    }

    fn block<'a>(&self, layer: usize, rows: Vec<f32>, batch: &'a Batch, kept: Option<Vec<usize>>) -> (Vec<f32>, Layer<'a>) {
        let Layout { d_model: d, block, .. } = self.layout;
        let (base, panels) = (self.base(layer), &self.layers[layer]);
        let (gamma, beta) = self.gain_and_shift(base + block.attention_norm_gamma, base + block.attention_norm_beta);
        let (attention_input, attention_norm) = normalise(self.arch, &rows, gamma, beta);
        let keys_values = self.linear(&attention_input, &panels.keys_values, block.qkv_bias.map(|bias| base + bias + d));
        let asking = gather(&attention_input, kept.as_deref(), d);
        let queries = self.linear(&asking, &panels.queries, block.qkv_bias.map(|bias| base + bias));
        let spans = batch.spans(kept.as_deref());
        let mut probabilities = vec![0.0; size_of_probabilities(&spans, self.heads())];
        let mut attended = vec![0.0; queries.len()];
        attend(self.arch, (&spans, self.heads()), &queries, &keys_values, &mut probabilities, &mut attended);
        let mut rows = match kept.as_deref() {
            None => rows,
            Some(kept) => gather(&rows, Some(kept), d).into_owned(),
        };
        self.add_linear(&mut rows, &attended, &panels.out, block.out_bias.map(|bias| base + bias));
        let (gamma, beta) = self.gain_and_shift(base + block.hidden_norm_gamma, base + block.hidden_norm_beta);
        let (hidden_input, hidden_norm) = normalise(self.arch, &rows, gamma, beta);
        let hidden = self.hidden(&hidden_input, layer);
        self.add_linear(&mut rows, &hidden, &panels.down, Some(base + block.down_bias));
        let layer = Layer {
            kept,
            spans,
            attention_norm,
            attention_input,
            queries,
            keys_values,
            probabilities,
            attended,
            hidden_norm,
            hidden_input,
            hidden,
        };
        (rows, layer)
    }
}

/// The matrices of a block, as they lie among the weights.
struct Matrices<'a> {
    queries: Matrix<'a>,
    keys_values: Matrix<'a>,
    out: Matrix<'a>,
    up: Matrix<'a>,
    down: Matrix<'a>,
}

impl Pass<'_> {
    /// The log-probability of every wanted token, in the order of the batch.
    pub fn log_probs(&self) -> Vec<f32> {
        let (all, vocabulary) = (&self.distributions.log_probs, self.network.layout.vocabulary);
        self.taken.iter().map(|taken| all[taken.place * vocabulary + usize::from(taken.token)]).collect()
    }

    /// The entropy of the distribution that every wanted token came from, in nats.
    pub fn entropies(&self) -> Vec<f32> {
        self.taken.iter().map(|taken| self.distributions.entropies[taken.place]).collect()
    }

    /// The gradient by all parameters, flat in their order ([`Policy::tensors`]), from the slopes by log-probability and entropy of
    /// every wanted token.
    pub fn backward(mut self, slopes: &[(f32, f32)]) -> Vec<f32> {
        let network = self.network;
        let Layout { d_model: d, vocabulary, head, head_bias, norm_gamma, norm_beta, length, .. } = network.layout;
        let mut gradient = vec![0.0; length];
        let by_logits = distribute_backward(network.arch, &self.distributions, &self.taken, slopes, self.temperature);
        let right = Matrix::new(&by_logits, vocabulary);
        add_row_products(network.arch, Matrix::new(&self.normal, d), right, &mut gradient[head..], vocabulary);
        if let Some(bias) = head_bias {
            add_rows(network.arch, &by_logits, &mut gradient[bias..bias + vocabulary]);
        }
        let mut by_normal = network.linear(&by_logits, &network.transposed().head, None);
        let mut by_rows = vec![0.0; by_normal.len()];
        network.norm_backward(&self.norm, &mut by_normal, (norm_gamma, norm_beta), &mut gradient, &mut by_rows);
        while let Some(layer) = self.layers.pop() {
            by_rows = self.block_backward(self.layers.len(), &layer, by_rows, &mut gradient);
        }
        for (slopes, &Row { token, position, .. }) in by_rows.chunks_exact(d).zip(&self.batch.rows) {
            for first in [network.layout.tokens + usize::from(token) * d, network.layout.positions + position * d] {
                add_rows(network.arch, slopes, &mut gradient[first..first + d]);
            }
        }
        gradient
    }

    /// From the slopes by the rows after a block to those by the rows before it.
    fn block_backward(&self, index: usize, layer: &Layer, by_rows: Vec<f32>, gradient: &mut [f32]) -> Vec<f32> {
        let network = self.network;
        let Layout { d_model: d, hidden, block, .. } = network.layout;
        let (base, panels, arch) = (network.base(index), &network.transposed().layers[index], network.arch);
        let mut by_middle = by_rows;

        add_rows(arch, &by_middle, &mut gradient[base + block.down_bias..][..d]);
        add_row_products(
            arch,
            Matrix::new(&layer.hidden, hidden),
            Matrix::new(&by_middle, d),
            &mut gradient[base + block.down..],
            d,
        );
        let mut by_hidden = network.linear(&by_middle, &panels.down, None);
        relu_backward(arch, &mut by_hidden, &layer.hidden);
        add_rows(arch, &by_hidden, &mut gradient[base + block.up_bias..][..hidden]);
        let input = Matrix::new(&layer.hidden_input, d);
        add_row_products(arch, input, Matrix::new(&by_hidden, hidden), &mut gradient[base + block.up..], hidden);
        let mut by_input = network.linear(&by_hidden, &panels.up, None);
        let places = (base + block.hidden_norm_gamma, base + block.hidden_norm_beta);
        network.norm_backward(&layer.hidden_norm, &mut by_input, places, gradient, &mut by_middle);

        if let Some(bias) = block.out_bias {
            add_rows(arch, &by_middle, &mut gradient[base + bias..][..d]);
        }
        add_row_products(arch, Matrix::new(&layer.attended, d), Matrix::new(&by_middle, d), &mut gradient[base + block.out..], d);
        let by_attended = network.linear(&by_middle, &panels.out, None);
        let mut by_queries = vec![0.0; layer.queries.len()];
        let mut by_keys_values = vec![0.0; layer.keys_values.len()];
        let to = Slopes { queries: &mut by_queries, keys_values: &mut by_keys_values };
        let heads = (layer.spans.as_slice(), network.heads());
        attend_backward(arch, heads, (&layer.queries, &layer.keys_values), &layer.probabilities, &by_attended, to);

        if let Some(bias) = block.qkv_bias {
            add_rows(arch, &by_queries, &mut gradient[base + bias..][..d]);
            add_rows(arch, &by_keys_values, &mut gradient[base + bias + d..][..2 * d]);
        }
        let kept = layer.kept.as_deref();
        let asking = gather(&layer.attention_input, kept, d);
        let by_qkv = &mut gradient[base + block.qkv..];
        add_row_products(arch, Matrix::new(&asking, d), Matrix::new(&by_queries, d), by_qkv, 3 * d);
        let (input, right) = (Matrix::new(&layer.attention_input, d), Matrix::new(&by_keys_values, 2 * d));
        add_row_products(arch, input, right, &mut by_qkv[d..], 3 * d);
        let mut by_input = network.linear(&by_keys_values, &panels.keys_values, None);
        scatter(arch, &network.linear(&by_queries, &panels.queries, None), kept, d, &mut by_input);
        let places = (base + block.attention_norm_gamma, base + block.attention_norm_beta);
        let mut before = match kept {
            None => by_middle,
            Some(_) => {
                let mut before = vec![0.0; by_input.len()];
                scatter(arch, &by_middle, kept, d, &mut before);
                before
            }
        };
        network.norm_backward(&layer.attention_norm, &mut by_input, places, gradient, &mut before);
        before
    }
}

impl Network {
    /// [`normalise_backward`] of the norm whose gain and shift are at two places.
    fn norm_backward(
        &self,
        norm: &Normalised,
        by_out: &mut [f32],
        (gamma, beta): (usize, usize),
        gradient: &mut [f32],
        slopes: &mut [f32],
    ) {
        let d = self.layout.d_model;
        let (mut by_gamma, mut by_beta) = (vec![0.0; d], vec![0.0; d]);
        let to = norm::Slopes { by_gamma: &mut by_gamma, by_beta: &mut by_beta, by_rows: slopes };
        normalise_backward(self.arch, norm, self.part(gamma, d), by_out, to);
        add_rows(self.arch, &by_gamma, &mut gradient[gamma..gamma + d]);
        add_rows(self.arch, &by_beta, &mut gradient[beta..beta + d]);
    }
}

/// Some rows of many, `d` numbers each; all of them where none are named.
pub(super) fn gather<'a>(rows: &'a [f32], kept: Option<&[usize]>, d: usize) -> Cow<'a, [f32]> {
    match kept {
        None => Cow::Borrowed(rows),
        Some(kept) => {
            let mut some = Vec::with_capacity(kept.len() * d);
            kept.iter().for_each(|&row| some.extend_from_slice(&rows[row * d..(row + 1) * d]));
            some.into()
        }
    }
}

/// Adds rows to those of many that they were gathered from.
fn scatter(arch: Arch, rows: &[f32], kept: Option<&[usize]>, d: usize, to: &mut [f32]) {
    match kept {
        None => add_rows(arch, rows, to),
        Some(kept) => {
            rows.chunks_exact(d).zip(kept).for_each(|(row, &place)| add_rows(arch, row, &mut to[place * d..(place + 1) * d]));
        }
    }
}
