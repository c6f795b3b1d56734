//! What an update says of itself: plain numbers.

/// Diagnostics of the update, averaged over the trained tokens of the step's updates unless stated.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct UpdateStatistics {
    /// The whole loss.
    pub loss: f64,
    /// Its policy part. About 0 at the first update of a step by construction: the advantages are centred and the ratio is 1.
    pub policy_loss: f64,
    /// Entropy of the policy over sampled tokens, nats.
    pub entropy: f64,
    /// k3 estimate of KL(old policy, current policy), nats.
    pub approximate_kl: f64,
    /// Estimate of KL to the reference (the warm start) by the chosen estimator, nats; 0 where KL is no term of the loss.
    pub reference_kl: f64,
    /// Mean of the probability ratio.
    pub ratio_mean: f64,
    /// Largest distance of the ratio from 1. At the first update of a step this is the rounding between the sampling and the
    /// training pass: a health figure.
    pub ratio_deviation: f64,
    /// Share of tokens whose ratio was clipped.
    pub clip_fraction: f64,
    /// Share of tokens whose loss the dual clip bounded.
    pub dual_clip_fraction: f64,
    /// L2 norm of the gradient before clipping, mean over updates.
    pub gradient_norm: f64,
    /// Tokens that were trained.
    pub trained_tokens: usize,
    /// Updates made.
    pub updates: usize,
    /// How the critic fits, where there is one.
    pub critic: Option<CriticStatistics>,
}

/// How a critic fits the returns of a step.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct CriticStatistics {
    /// Mean loss over its passes.
    pub loss: f64,
    /// Before fitting: `1 - Var(return - value) / Var(return)`. 1 is perfect, 0 no better than a constant; below 0 worse.
    pub explained_variance: f64,
}
