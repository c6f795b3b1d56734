//! From logits to log-probabilities and tokens. The same function serves sampling and training, so that the probability ratio
//! is 1 before the first update: temperature divides logits, and the grammar renormalises over the same tokens, in both.

use burn::tensor::activation::log_softmax;
use burn::tensor::{Device, Int, Tensor, TensorData};

/// Added to the logits of tokens that the grammar forbids: their probability becomes exactly 0.
const FORBIDDEN: f32 = -1e9;

/// Log-probabilities over the vocabulary: `log softmax(logits / temperature)`, restricted to the legal tokens.
///
/// `illegal`, where given, is 1 for forbidden tokens and 0 elsewhere, of the shape of the logits `[.., V]`.
pub fn log_distribution<const D: usize>(logits: Tensor<D>, temperature: f64, illegal: Option<Tensor<D>>) -> Tensor<D> {
    let scaled = if temperature == 1.0 { logits } else { logits.div_scalar(temperature) };
    let restricted = match illegal {
        Some(illegal) => scaled + illegal.mul_scalar(FORBIDDEN),
        None => scaled,
    };
    log_softmax(restricted, D - 1)
}

/// The log-probability of the token that was taken, `[B, T]`, from log-probabilities `[B, T, V]` and tokens `[B, T]`.
pub fn taken_log_probs(log_probs: Tensor<3>, taken: Tensor<2, Int>) -> Tensor<2> {
    let [batch, length] = taken.dims();
    log_probs.gather(2, taken.unsqueeze_dim::<3>(2)).reshape([batch, length])
}

/// Tokens drawn from a distribution, with their log-probabilities, `[B]` each.
pub struct Sampled {
    pub tokens: Tensor<1, Int>,
    pub log_probs: Tensor<1>,
}

/// Draws one token per row by inverting the cumulative distribution at `uniforms` (numbers in `[0, 1)`, `[B]`).
///
/// `ones` is [`cumulating`]'s matrix. Nothing is read back: the token is the number of entries of the cumulative distribution
/// that are at most `u` times its last entry (which is 1 up to rounding).
pub fn sample(log_probs: Tensor<2>, uniforms: Tensor<1>, ones: &Tensor<2>) -> Sampled {
    let [batch, size] = log_probs.dims();
    let cumulative = log_probs.clone().exp().matmul(ones.clone()); // [B, V]
    let threshold = cumulative.clone().slice([0..batch, size - 1..size]) * uniforms.reshape([batch, 1]); // [B, 1]
    let below = cumulative.lower_equal(threshold.expand([batch, size]));
    let tokens = below.int().sum_dim(1).clamp_max(size as i64 - 1); // [B, 1]
    Sampled { log_probs: log_probs.gather(1, tokens.clone()).reshape([batch]), tokens: tokens.reshape([batch]) }
}

/// The matrix `[V, V]` with ones on and above the diagonal: multiplying by it gives cumulative sums.
pub fn cumulating(size: usize, device: &Device) -> Tensor<2> {
    let entry = |row: usize, column: usize| if column >= row { 1.0 } else { 0.0 };
    let values = (0..size).flat_map(|row| (0..size).map(move |column| entry(row, column))).collect::<Vec<f32>>();
    Tensor::from_data(TensorData::new(values, [size, size]), device)
}
