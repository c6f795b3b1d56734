//! The loss of one micro-batch, with what it reports.

use burn::tensor::Tensor;

use super::{TokenBatch, UpdateSettings};
use crate::objective::{
    KlEstimator, ObjectiveSettings, entropy, kl_estimate, masked_mean, masked_sum, policy_loss, preference_loss, weighted_sum,
};
use crate::policy::{Policy, log_distribution, taken_log_probs};

/// A micro-batch on the device, with what belongs to it.
pub(super) struct MicroBatch {
    pub tokens: TokenBatch,
    /// Weight of every token of a row in the loss, `[B]`.
    pub weights: Tensor<1>,
    /// Log-probabilities of the policy before the update, `[B, T]`.
    pub old: Tensor<2>,
    /// Those of the reference, `[B, T]`, where the loss needs them.
    pub reference: Option<Tensor<2>>,
}

/// How many tokens the whole update trains, and how many of them the policy sampled.
#[derive(Clone, Copy, serde::Serialize, serde::Deserialize)]
pub(super) struct Counts {
    pub trained: usize,
    pub sampled: usize,
    /// Pairs of trajectories, where preferences are trained.
    pub pairs: usize,
}

/// Sums that a micro-batch reports, in the order of [`MicroLoss::sums`].
pub(super) const SUMS: usize = 7;

/// A loss and its diagnostics.
pub(super) struct MicroLoss {
    /// The share of this micro-batch in the loss, `[1]`, with gradients.
    pub loss: Tensor<1>,
    /// Without gradients, `[SUMS]`: policy loss and KL as their shares of the whole; then sums over tokens of entropy, k3 of
    /// KL(old || current), ratio, clipped, dual clipped.
    pub sums: Tensor<1>,
    /// Largest distance of a ratio from 1, `[1]`.
    pub deviation: Tensor<1>,
}

/// Log-probabilities over the vocabulary `[B, T, V]` and of the targets `[B, T]`; with gradients if the policy has them.
pub(super) fn log_probs(policy: &Policy, batch: &TokenBatch, temperature: f64) -> (Tensor<3>, Tensor<2>) {
    let tracked = policy.device().is_autodiff();
    let plain = |tensor: Tensor<3>| if tracked { tensor } else { tensor.without_autodiff() };
    let inputs = if tracked { batch.inputs.clone() } else { batch.inputs.clone().without_autodiff() };
    let targets = if tracked { batch.targets.clone() } else { batch.targets.clone().without_autodiff() };
    let illegal = batch.illegal.clone().map(plain);
    let all = log_distribution(policy.forward(inputs), temperature, illegal);
    let taken = taken_log_probs(all.clone(), targets);
    (all, taken)
}

/// The loss of a micro-batch under the current policy.
pub(super) fn micro_loss(policy: &Policy, batch: &MicroBatch, counts: Counts, settings: &UpdateSettings) -> MicroLoss {
    let (all, taken) = log_probs(policy, &batch.tokens, settings.temperature);
    loss_of(taken, entropy(all), batch, counts, settings)
}

/// The loss of a micro-batch from the log-probabilities of its tokens and the entropies of the distributions they came from, `[B, T]`
/// each. Only those of trained and of sampled tokens count.
pub(super) fn loss_of(
    taken: Tensor<2>,
    entropy: Tensor<2>,
    batch: &MicroBatch,
    counts: Counts,
    settings: &UpdateSettings,
) -> MicroLoss {
    let ObjectiveSettings { entropy_coefficient, kl, preference, .. } = settings.objective;
    let (mask, sampled) = (batch.tokens.loss_mask.clone(), batch.tokens.sampled.clone());
    let advantages = batch.tokens.advantages.clone();
    let part = policy_loss(taken.clone(), batch.old.clone(), advantages, mask.clone(), &settings.objective.policy_loss);
    let difference = batch.reference.clone().map(|reference| (taken - reference).mask_fill(mask.clone().bool_not(), 0.0));
    let zero = || Tensor::zeros([1], &batch.weights.device());
    let policy_part = match (preference, &difference) {
        (Some(beta), Some(difference)) => pair_loss(difference.clone(), beta).div_scalar(counts.pairs.max(1) as f64),
        _ => weighted_sum(part.loss, mask.clone(), batch.weights.clone()),
    };
    let mut loss = policy_part.clone();
    if entropy_coefficient != 0.0 {
        let mean = masked_mean(entropy.clone(), sampled.clone(), counts.sampled);
        loss = loss - mean.mul_scalar(entropy_coefficient);
    }
    let mut kl_part = zero();
    if let (Some(kl), Some(difference)) = (kl, difference) {
        let estimate = kl_estimate(difference, kl.estimator);
        let estimate = if kl.times_ratio { estimate * part.ratio.clone() } else { estimate };
        kl_part = weighted_sum(estimate, mask.clone(), batch.weights.clone());
        loss = loss + kl_part.clone().mul_scalar(kl.beta);
    }
    // k3 of KL(old || current), from samples of the old policy: exp(log_ratio) - 1 - log_ratio.
    let drift = kl_estimate(part.log_ratio.neg(), KlEstimator::K3);
    let sums: [Tensor<1>; SUMS] = [
        policy_part,
        kl_part,
        masked_sum(entropy, sampled),
        masked_sum(drift, mask.clone()),
        masked_sum(part.ratio.clone(), mask.clone()),
        masked_sum(part.clipped, mask.clone()),
        masked_sum(part.dual_clipped, mask),
    ];
    let deviation = part.ratio.sub_scalar(1.0).abs().max().inner();
    MicroLoss { loss, sums: Tensor::cat(sums.to_vec(), 0).inner(), deviation }
}

/// The summed loss of pairs, `[1]`: rows come in pairs, the preferred one first. `difference` is `log p - log p_ref`, 0 where
/// nothing is trained, `[2 P, T]`.
fn pair_loss(difference: Tensor<2>, beta: f64) -> Tensor<1> {
    let [rows, _] = difference.dims();
    let sums = difference.sum_dim(1).reshape([rows / 2, 2]);
    let side = |index: usize| sums.clone().slice([0..rows / 2, index..index + 1]).reshape([rows / 2]);
    preference_loss(side(0), side(1), beta).sum()
}
