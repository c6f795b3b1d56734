//! The policy part of the loss, token by token: the clipped probability ratio of PPO and its relatives.

use burn::tensor::activation::sigmoid;
use burn::tensor::{Bool, Tensor};

use super::{ClipBounds, PolicyLossSettings, RatioLevel, Surrogate};

/// Loss and diagnostics per token, `[B, T]` each.
pub struct PolicyLoss {
    /// `l_t`; 0 where the mask is false.
    pub loss: Tensor<2>,
    /// `rho_t` of the chosen level; 1 where the mask is false.
    pub ratio: Tensor<2>,
    /// `log p_t - log p_old_t` of each token; 0 where the mask is false.
    pub log_ratio: Tensor<2>,
    /// 1 where clipping took effect (the clipped branch was the smaller one), else 0.
    pub clipped: Tensor<2>,
    /// 1 where the dual clip took effect, else 0.
    pub dual_clipped: Tensor<2>,
}

/// The loss of every token. Gradients flow through `log_probs` alone; `old_log_probs` and `advantages` are constants.
pub fn policy_loss(
    log_probs: Tensor<2>,
    old_log_probs: Tensor<2>,
    advantages: Tensor<2>,
    mask: Tensor<2, Bool>,
    settings: &PolicyLossSettings,
) -> PolicyLoss {
    let masked = mask.clone().bool_not();
    let select = |values: Tensor<2>| values.mask_fill(masked.clone(), 0.0);
    let log_probs = select(log_probs);
    let mut log_ratio = log_probs.clone() - select(old_log_probs);
    if let Some(limit) = settings.log_ratio_limit {
        log_ratio = log_ratio.clamp(-limit, limit);
    }
    let advantages = select(advantages);
    let (shape, device) = (log_ratio.dims(), log_ratio.device());
    let no_clip = || Tensor::zeros(shape, &device);
    if let Surrogate::GeometricMean { bounds } = settings.surrogate {
        let cut = clip_one_side(log_ratio.clone(), &advantages, bounds);
        let clipped = select((cut.clone() - log_ratio.clone()).abs()).greater_elem(0.0).float();
        let ratio = row_means(cut, &mask).exp();
        return PolicyLoss { loss: select(ratio.clone() * advantages).neg(), ratio, log_ratio, clipped, dual_clipped: no_clip() };
    }
    let ratio = match settings.ratio_level {
        RatioLevel::Token => log_ratio.clone(),
        RatioLevel::Sequence => select(row_means(log_ratio.clone(), &mask)),
        RatioLevel::SequenceToken => {
            select(row_means(log_ratio.clone(), &mask).detach() + log_probs.clone() - log_probs.clone().detach())
        }
    }
    .exp();
    let (loss, clipped, dual_clipped) = match settings.surrogate {
        Surrogate::Cispo { low, high } => {
            let weight = ratio.clone().clamp(low, high).detach();
            let clipped = (weight.clone() - ratio.clone().detach()).abs().greater_elem(0.0).float();
            ((weight * advantages * log_probs).neg(), clipped, no_clip())
        }
        Surrogate::Sapo { positive, negative } => {
            let gate = |tau: f64| sigmoid(ratio.clone().sub_scalar(1.0).mul_scalar(tau)).mul_scalar(4.0 / tau);
            let gate = gate(negative).mask_where(advantages.clone().greater_elem(0.0), gate(positive));
            ((gate * advantages).neg(), no_clip(), no_clip())
        }
        Surrogate::Clip { bounds, dual, ceiling } => clip(ratio.clone(), advantages, bounds, dual, ceiling),
        Surrogate::GeometricMean { .. } => (no_clip(), no_clip(), no_clip()), // returned above
    };
    PolicyLoss { loss: select(loss), ratio, log_ratio, clipped: select(clipped), dual_clipped: select(dual_clipped) }
}

/// PPO's clip, with an upper bound on the loss of negative advantages and on the unclipped ratio where given.
fn clip(
    ratio: Tensor<2>,
    advantages: Tensor<2>,
    bounds: ClipBounds,
    dual: Option<f64>,
    ceiling: Option<f64>,
) -> (Tensor<2>, Tensor<2>, Tensor<2>) {
    let capped = |ratio: Tensor<2>| ceiling.map_or(ratio.clone(), |ceiling| ratio.clamp_max(ceiling));
    let free = capped(ratio.clone()) * advantages.clone();
    let cut = ratio.clamp(1.0 - bounds.low, 1.0 + bounds.high) * advantages.clone();
    let clipped = cut.clone().lower(free.clone());
    let loss = free.mask_where(clipped.clone(), cut).neg();
    let Some(dual) = dual else {
        let none = Tensor::zeros(loss.dims(), &loss.device());
        return (loss, clipped.float(), none);
    };
    let bound = advantages.mul_scalar(-dual);
    let bounded = bound.clone().greater_elem(0.0).bool_and(loss.clone().greater(bound.clone()));
    (loss.mask_where(bounded.clone(), bound), clipped.float(), bounded.float())
}

/// The log-ratio, bounded above where the advantage is positive and below where it is negative.
fn clip_one_side(log_ratio: Tensor<2>, advantages: &Tensor<2>, bounds: ClipBounds) -> Tensor<2> {
    let above = log_ratio.clone().clamp_max(bounds.high);
    log_ratio.clamp_min(-bounds.low).mask_where(advantages.clone().greater_elem(0.0), above)
}

/// The mean over the trained tokens of each row, at every position of it, `[B, T]`; 0 for a row without trained tokens.
fn row_means(values: Tensor<2>, mask: &Tensor<2, Bool>) -> Tensor<2> {
    let [rows, length] = values.dims();
    let count = mask.clone().float().sum_dim(1).clamp_min(1.0);
    let sum = values.mask_fill(mask.clone().bool_not(), 0.0).sum_dim(1);
    (sum / count).expand([rows, length])
}
