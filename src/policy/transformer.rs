//! The decoder.
//!
//! Pre-norm residual blocks (Xiong et al., "On layer normalization in the transformer architecture", arXiv:2002.04745):
//! `h += W_o attention(norm(h))`, then `h += W_2 activation(W_1 norm(h))`, learned position embeddings, an untied output
//! head. Linear layers act on flattened tokens `[B * T, d]`, so that each is one matrix product.

use burn::module::{Module, Param};
use burn::nn::{Embedding, EmbeddingConfig, Initializer, LayerNorm, LayerNormConfig, Linear, LinearConfig};
use burn::tensor::activation::{gelu, relu, softmax};
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::cache::{Cache, Visible};
use crate::config::ExperimentConfig;
use crate::vocabulary;

/// What the hidden layer of a block applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    Relu,
    /// The exact form, with the error function.
    Gelu,
}

/// The shape of a policy.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct PolicyConfig {
    /// Number of symbols, V.
    pub vocabulary: usize,
    /// Longest trajectory in tokens.
    pub context_length: usize,
    /// Width of the residual stream, d.
    pub d_model: usize,
    /// Residual blocks.
    pub layers: usize,
    /// Attention heads, each `d_model / heads` wide.
    pub heads: usize,
    /// Width of the hidden layer of a block.
    pub hidden: usize,
    pub activation: Activation,
    /// Whether the attention projections and the head have biases (the hidden layers always do).
    pub bias: bool,
}

impl PolicyConfig {
    /// The shape that an experiment asks for: hidden width 4 d, ReLU, no biases in attention and head.
    pub fn of(config: &ExperimentConfig) -> Self {
        PolicyConfig {
            vocabulary: vocabulary::SIZE,
            context_length: config.context_length,
            d_model: config.d_model,
            layers: config.layers,
            heads: config.heads,
            hidden: 4 * config.d_model,
            activation: Activation::Relu,
            bias: false,
        }
    }

    /// A policy with zero weights; they are loaded afterwards ([`Policy::with_weights`]).
    pub fn init(&self, device: &Device) -> Policy {
        let linear = |from: usize, to: usize, bias: bool| {
            LinearConfig::new(from, to).with_bias(bias).with_initializer(Initializer::Zeros).init(device)
        };
        let embedding = |rows: usize| EmbeddingConfig::new(rows, self.d_model).with_initializer(Initializer::Zeros).init(device);
        let norm = || LayerNormConfig::new(self.d_model).init(device);
        let blocks = (0..self.layers)
            .map(|_| Block {
                attention_norm: norm(),
                qkv: linear(self.d_model, 3 * self.d_model, self.bias),
                out: linear(self.d_model, self.d_model, self.bias),
                hidden_norm: norm(),
                up: linear(self.d_model, self.hidden, true),
                down: linear(self.hidden, self.d_model, true),
            })
            .collect();
        Policy {
            tokens: embedding(self.vocabulary),
            positions: embedding(self.context_length),
            blocks,
            norm: norm(),
            head: linear(self.d_model, self.vocabulary, self.bias),
            heads: self.heads,
            gelu: self.activation == Activation::Gelu,
        }
    }
}

/// A transformer decoder over the shared vocabulary.
#[derive(Module, Debug)]
pub struct Policy {
    pub(super) tokens: Embedding,
    positions: Embedding,
    pub(super) blocks: Vec<Block>,
    norm: LayerNorm,
    pub(super) head: Linear,
    #[module(skip)]
    heads: usize,
    #[module(skip)]
    pub(super) gelu: bool,
}

#[derive(Module, Debug)]
pub(super) struct Block {
    attention_norm: LayerNorm,
    qkv: Linear,
    pub(super) out: Linear,
    hidden_norm: LayerNorm,
    pub(super) up: Linear,
    down: Linear,
}

impl Policy {
    /// The same network with another head: `outputs` numbers per position, zero at first. With one output it is a critic.
    pub fn with_outputs(self, outputs: usize) -> Policy {
        let device = self.device();
        let head = LinearConfig::new(self.d_model(), outputs).with_bias(false).with_initializer(Initializer::Zeros).init(&device);
        Policy { head, ..self }
    }

    /// Width of the residual stream, d.
    pub fn d_model(&self) -> usize {
        self.tokens.weight.lazy_shape()[1]
    }

    /// Longest trajectory in tokens.
    pub fn context_length(&self) -> usize {
        self.positions.weight.lazy_shape()[0]
    }

    /// Attention heads.
    pub fn heads(&self) -> usize {
        self.heads
    }

    /// What the hidden layer of a block applies.
    pub fn activation(&self) -> Activation {
        if self.gelu { Activation::Gelu } else { Activation::Relu }
    }

    /// Residual blocks.
    pub fn layers(&self) -> usize {
        self.blocks.len()
    }

    /// The device that holds the weights.
    pub fn device(&self) -> Device {
        self.tokens.weight.lazy_device()
    }

    /// Logits at every position of whole trajectories, attention causal: row `t` predicts token `t + 1`.
    ///
    /// `tokens` is `[B, T]`, padded on the right; padding comes last, so no earlier row sees it.
    pub fn forward(&self, tokens: Tensor<2, Int>) -> Tensor<3> {
        let [batch, length] = tokens.dims();
        let positions = self.positions.weight.val().slice(0..length).unsqueeze::<3>(); // [1, T, d]
        let hidden = self.tokens.forward(tokens) + positions; // [B, T, d]
        let bias = causal_bias(length, &hidden.device()); // [1, 1, T, T]
        let mut flat = hidden.reshape([batch * length, self.d_model()]);
        for block in &self.blocks {
            let (query, key, value) = block.project(flat.clone(), batch, self.heads);
            flat = block.finish(flat, attend(query, key, value, bias.clone()), self.gelu);
        }
        self.logits(flat).reshape([batch as i32, length as i32, -1]) // [B, T, V]
    }

    /// Logits `[B, V]` after the last of `tokens` `[B, n]`, at `positions` `[B, n]`, given what `cache` holds; the tokens are
    /// added to the cache. `visible` says which cache slots, these included, each of them may attend to.
    pub fn extend(&self, tokens: Tensor<2, Int>, positions: Tensor<2, Int>, visible: &Visible, cache: &mut Cache) -> Tensor<2> {
        let [batch, length] = tokens.dims();
        let hidden = self.tokens.forward(tokens) + self.positions.forward(positions); // [B, n, d]
        let bias = visible.bias(&hidden.device()); // [B, 1, n, S]
        let mut flat = hidden.reshape([batch * length, self.d_model()]);
        for (layer, block) in self.blocks.iter().enumerate() {
            let (query, key, value) = block.project(flat.clone(), batch, self.heads);
            let (keys, values) = cache.append(layer, key, value); // [B, H, S, d / H]
            flat = block.finish(flat, attend(query, keys, values, bias.clone()), self.gelu);
        }
        cache.advance(length);
        let last = flat.reshape([batch, length, self.d_model()]).slice([0..batch, length - 1..length]); // [B, 1, d]
        self.logits(last.reshape([batch, self.d_model()]))
    }

    fn logits(&self, flat: Tensor<2>) -> Tensor<2> {
        self.head.forward(self.norm.forward(flat))
    }
}

impl Block {
    /// Queries, keys and values, each `[B, H, T, d / H]`, of `flat` `[B * T, d]`.
    fn project(&self, flat: Tensor<2>, batch: usize, heads: usize) -> (Tensor<4>, Tensor<4>, Tensor<4>) {
        let [rows, width] = flat.dims();
        let (length, head) = (rows / batch, width / heads);
        let qkv = self.qkv.forward(self.attention_norm.forward(flat)); // [B * T, 3 d]
        let qkv = qkv.reshape([batch, length, 3, heads, head]).permute([2, 0, 3, 1, 4]); // [3, B, H, T, d / H]
        let part = |index: usize| qkv.clone().slice(index..index + 1).reshape([batch, heads, length, head]);
        (part(0), part(1), part(2))
    }

    /// The rest of the block after attention; `attended` is `[B, H, T, d / H]`.
    fn finish(&self, flat: Tensor<2>, attended: Tensor<4>, use_gelu: bool) -> Tensor<2> {
        let [rows, width] = flat.dims();
        let flat = flat + self.out.forward(attended.swap_dims(1, 2).reshape([rows, width]));
        let hidden = self.up.forward(self.hidden_norm.forward(flat.clone())); // [B * T, hidden]
        flat + self.down.forward(if use_gelu { gelu(hidden) } else { relu(hidden) })
    }
}

/// Scaled dot-product attention (Vaswani et al., arXiv:1706.03762, eq. 1). `bias` is added to the scores.
fn attend(query: Tensor<4>, keys: Tensor<4>, values: Tensor<4>, bias: Tensor<4>) -> Tensor<4> {
    let [_, _, _, head] = query.dims();
    let scores = query.mul_scalar((head as f32).powf(-0.5)).matmul(keys.swap_dims(2, 3)) + bias; // [B, H, T, S]
    softmax(scores, 3).matmul(values)
}

/// 0 where the row may look, [`super::cache::HIDDEN`] above the diagonal; `[1, 1, T, T]`.
fn causal_bias(length: usize, device: &Device) -> Tensor<4> {
    let entry = |row: usize, column: usize| if column > row { super::cache::HIDDEN } else { 0.0 };
    let values = (0..length).flat_map(|row| (0..length).map(move |column| entry(row, column))).collect::<Vec<f32>>();
    Tensor::from_data(TensorData::new(values, [1, 1, length, length]), device)
}

/// Sets the value of one parameter, keeping its identity.
pub(super) fn set_param<const D: usize>(param: Param<Tensor<D>>, value: Tensor<D>) -> Param<Tensor<D>> {
    param.map(|old| {
        let tracked = old.is_require_grad();
        value.set_require_grad(tracked)
    })
}
