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
    /// k3 estimate of KL to the reference (the warm start), nats; 0 when beta is 0.
    pub reference_kl: f64,
    /// Mean of the probability ratio.
    pub ratio_mean: f64,
    /// Largest distance of the ratio from 1. At the first update of a step this is the rounding between the sampling and the
    /// training pass: a health figure.
    pub ratio_deviation: f64,
    /// Share of tokens whose ratio was clipped.
    pub clip_fraction: f64,
    /// L2 norm of the gradient before clipping, mean over updates.
    pub gradient_norm: f64,
    /// Tokens that were trained.
    pub trained_tokens: usize,
    /// Updates made.
    pub updates: usize,
}
