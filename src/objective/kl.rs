//! Estimates of KL(current || reference) from the log-probabilities of sampled tokens.
//!
//! With `d = log p - log p_ref`: `k1 = d`, `k2 = d^2 / 2`, `k3 = exp(-d) - 1 + d` (Schulman, "Approximating KL divergence",
//! 2020). In a loss k1 has no pull towards the reference (its expected gradient is 0); k2 has the gradient of the KL; k3 has the
//! gradient of the reversed KL. GRPO uses k3 (DeepSeekMath, arXiv:2402.03300, eq. 4).

use burn::tensor::Tensor;

/// Which estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KlEstimator {
    K1,
    K2,
    K3,
}

/// The estimate per token, in nats, of the shape of `difference` (`log p - log p_ref`).
pub fn kl_estimate<const D: usize>(difference: Tensor<D>, estimator: KlEstimator) -> Tensor<D> {
    match estimator {
        KlEstimator::K1 => difference,
        KlEstimator::K2 => difference.square().mul_scalar(0.5),
        KlEstimator::K3 => difference.clone().neg().exp().sub_scalar(1.0) + difference,
    }
}
