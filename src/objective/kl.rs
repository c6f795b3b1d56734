//! Estimates of KL(current || reference) from the log-probabilities of sampled tokens.
//!
//! With `d = log p - log p_ref`: `k1 = d`, `k2 = d^2 / 2`, `k3 = exp(-d) - 1 + d` (Schulman, "Approximating KL divergence",
//! 2020). In a loss k1 has no pull towards the reference (its expected gradient is 0); k2 has the gradient of the KL; k3 has the
//! gradient of the reversed KL. GRPO uses k3 (DeepSeekMath, arXiv:2402.03300, eq. 4).

#[cfg(feature = "engine")]
use burn::tensor::Tensor;

/// Which estimate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum KlEstimator {
    K1,
    K2,
    K3,
    /// `|d|`.
    Absolute,
    /// The value of k1 with the gradient of k2 (verl's `k1+`).
    K1Plus,
    /// The value of k3 with the gradient of k2: low variance and the right pull (verl's `k3+`).
    K3Plus,
}

/// The estimate per token, in nats, of the shape of `difference` (`log p - log p_ref`).
#[cfg(feature = "engine")]
pub fn kl_estimate<const D: usize>(difference: Tensor<D>, estimator: KlEstimator) -> Tensor<D> {
    let straight_through = |value: KlEstimator| {
        let pull = kl_estimate(difference.clone(), KlEstimator::K2);
        kl_estimate(difference.clone(), value).detach() + pull.clone() - pull.detach()
    };
    match estimator {
        KlEstimator::K1 => difference,
        KlEstimator::K2 => difference.square().mul_scalar(0.5),
        KlEstimator::K3 => difference.clone().neg().exp().sub_scalar(1.0) + difference,
        KlEstimator::Absolute => difference.abs(),
        KlEstimator::K1Plus => straight_through(KlEstimator::K1),
        KlEstimator::K3Plus => straight_through(KlEstimator::K3),
    }
}
