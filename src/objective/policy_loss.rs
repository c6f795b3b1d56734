//! The clipped probability-ratio loss of PPO, as GRPO uses it.
//!
//! `l_t = -min(rho_t A_t, clip(rho_t, 1 - epsilon, 1 + epsilon_high) A_t)` with `rho_t = exp(log p_t - log p_old_t)` (Schulman et
//! al., arXiv:1707.06347, eq. 7; a separate upper bound as in DAPO, arXiv:2503.14476, eq. 10).

use burn::tensor::{Bool, Tensor};

/// How far the ratio may move before its gradient is cut: `[1 - low, 1 + high]`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClipBounds {
    pub low: f64,
    pub high: f64,
}

/// Loss and diagnostics per token, `[B, T]` each.
pub struct PolicyLoss {
    /// `l_t`; 0 where the mask is false.
    pub loss: Tensor<2>,
    /// `rho_t`; 1 where the mask is false.
    pub ratio: Tensor<2>,
    /// `log p_t - log p_old_t`; 0 where the mask is false.
    pub log_ratio: Tensor<2>,
    /// 1 where clipping took effect (the clipped branch was the smaller one), else 0.
    pub clipped: Tensor<2>,
}

/// The loss of every token. Gradients flow through `log_probs` alone; `old_log_probs` and `advantages` are constants.
pub fn clipped_ratio_loss(
    log_probs: Tensor<2>,
    old_log_probs: Tensor<2>,
    advantages: Tensor<2>,
    mask: Tensor<2, Bool>,
    bounds: ClipBounds,
) -> PolicyLoss {
    let log_ratio = (log_probs - old_log_probs).mask_fill(mask.clone().bool_not(), 0.0);
    let advantages = advantages.mask_fill(mask.bool_not(), 0.0);
    let ratio = log_ratio.clone().exp();
    let free = ratio.clone() * advantages.clone();
    let cut = ratio.clone().clamp(1.0 - bounds.low, 1.0 + bounds.high) * advantages;
    let clipped = cut.clone().lower(free.clone());
    let loss = free.mask_where(clipped.clone(), cut).neg();
    PolicyLoss { loss, ratio, log_ratio, clipped: clipped.float() }
}
