//! Direct preference optimisation on pairs of trajectories.
//!
//! `l = -log sigmoid(beta ((log p(w) - log p_ref(w)) - (log p(l) - log p_ref(l))))` for a preferred trajectory w and a rejected
//! one l, with log-probabilities summed over the tokens that the policy wrote (Rafailov et al., arXiv:2305.18290, eq. 7). Tool
//! tokens are left out of the sums, as they are of every other loss. Here the pair is the best and the worst of a group, so the
//! data are on-policy.

use burn::tensor::Tensor;
use burn::tensor::activation::log_sigmoid;

/// The loss of every pair, `[P]`, from `log p - log p_ref` of the preferred and of the rejected trajectory, `[P]` each.
pub fn preference_loss(preferred: Tensor<1>, rejected: Tensor<1>, beta: f64) -> Tensor<1> {
    log_sigmoid((preferred - rejected).mul_scalar(beta)).neg()
}
