//! How undecided the policy is.

use burn::tensor::Tensor;

/// Entropy of each distribution in nats, `[B, T]`, from log-probabilities over the vocabulary `[B, T, V]`. Forbidden tokens, whose
/// log-probability is a large negative finite number, add nothing.
pub fn entropy(log_probs: Tensor<3>) -> Tensor<2> {
    let [batch, length, size] = log_probs.dims();
    let surprise = (log_probs.clone().exp() * log_probs).reshape([batch * length, size]);
    surprise.sum_dim(1).neg().reshape([batch, length])
}
