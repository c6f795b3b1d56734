//! The policy-gradient update of one training step.

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use super::batch::micro_batches;
use super::optimizer::{Accumulated, training_device};
use super::{Optimizer, OptimizerSettings, TokenBatch, TrainingExample, UpdateStatistics};
use crate::config::{ExperimentConfig, LearningRateSchedule};
use crate::objective::{ClipBounds, KlEstimator, clipped_ratio_loss, entropy, kl_estimate, masked_mean, masked_sum};
use crate::policy::{Policy, log_distribution, taken_log_probs};
use crate::readback::{ReadError, read};

/// What an update needs to know.
#[derive(Clone, Debug, PartialEq)]
pub struct UpdateSettings {
    pub optimizer: OptimizerSettings,
    pub learning_rate: f64,
    pub schedule: LearningRateSchedule,
    /// Training steps over which the schedule runs.
    pub iterations: usize,
    pub clip: ClipBounds,
    /// Weight of the k3 estimate of KL to the reference.
    pub beta: f64,
    /// Weight of the entropy bonus.
    pub entropy_coefficient: f64,
    pub temperature: f64,
    /// Passes over the batch, one optimizer step each.
    pub inner_epochs: usize,
    /// Parts over which gradients are accumulated; the gradient does not depend on it.
    pub micro_batches: usize,
}

impl UpdateSettings {
    /// The settings of an experiment.
    pub fn of(config: &ExperimentConfig) -> Self {
        UpdateSettings {
            optimizer: OptimizerSettings {
                beta1: config.adam_beta1,
                beta2: config.adam_beta2,
                epsilon: 1e-8,
                max_grad_norm: config.max_grad_norm,
            },
            learning_rate: config.learning_rate,
            schedule: config.learning_rate_schedule,
            iterations: config.iterations,
            clip: ClipBounds { low: config.epsilon, high: config.epsilon_high },
            beta: config.beta,
            entropy_coefficient: config.entropy_coefficient,
            temperature: config.temperature,
            inner_epochs: config.inner_epochs,
            micro_batches: config.micro_batches,
        }
    }

    /// The learning rate of a training step: constant, or falling to 0 over the run, in a line or along half a cosine.
    pub fn learning_rate_at(&self, iteration: usize) -> f64 {
        let progress = (iteration as f64 / self.iterations.max(1) as f64).min(1.0);
        self.learning_rate
            * match self.schedule {
                LearningRateSchedule::Constant => 1.0,
                LearningRateSchedule::Linear => 1.0 - progress,
                LearningRateSchedule::Cosine => 0.5 * (1.0 + (std::f64::consts::PI * progress).cos()),
            }
    }
}

/// Why an update failed. The weights are those before it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LearnerError {
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Names what was not a finite number.
    #[error("{0} is not a finite number")]
    NonFinite(&'static str),
}

/// The policy being trained, its optimizer, and the reference that KL is measured to.
pub struct Learner {
    policy: Policy,
    reference: Policy,
    optimizer: Optimizer,
    /// Policy and optimizer before the last update, for [`Learner::undo`].
    before: Option<(Policy, Optimizer)>,
    settings: UpdateSettings,
    device: Device,
}

/// Sums over trained tokens that a micro-batch reports, in this order, as one vector.
const SUMS: usize = 8;

impl Learner {
    /// Starts from a policy, which is also the reference.
    pub fn new(policy: &Policy, settings: UpdateSettings) -> Self {
        let reference = policy.valid();
        let device = training_device(&reference.device());
        let optimizer = Optimizer::new(settings.optimizer);
        Learner { policy: reference.clone().train(), reference, optimizer, before: None, settings, device }
    }

    /// The current policy, without gradients.
    pub fn policy(&self) -> Policy {
        self.policy.valid()
    }

    /// Takes the last update back: what was sampled with its weights turned out not to be finite.
    pub fn undo(&mut self) {
        if let Some(before) = self.before.take() {
            (self.policy, self.optimizer) = before;
        }
    }

    /// The settings in force.
    pub fn settings(&self) -> &UpdateSettings {
        &self.settings
    }

    /// Updates the policy on one batch: `inner_epochs` optimizer steps. Nothing is read back until the end, then once.
    ///
    /// # Errors
    /// When the device fails, or loss or gradient are not finite; the policy and the optimizer are then as before.
    pub async fn update(&mut self, examples: &[TrainingExample], iteration: usize) -> Result<UpdateStatistics, LearnerError> {
        let trained: usize = examples.iter().map(TrainingExample::trained_tokens).sum();
        let sampled: usize = examples.iter().flat_map(|example| &example.sampled).filter(|&&sampled| sampled).count();
        let before = (self.policy.clone(), self.optimizer.clone());
        let learning_rate = self.settings.learning_rate_at(iteration);
        let micro: Vec<TokenBatch> = micro_batches(examples, self.settings.micro_batches)
            .iter()
            .map(|examples| TokenBatch::new(examples, &self.device))
            .collect();
        let old: Vec<Tensor<2>> = micro.iter().map(|batch| self.old_log_probs(batch)).collect();
        let mut report = Vec::new();
        for _ in 0..self.settings.inner_epochs {
            let mut gradients = Accumulated::default();
            let mut sums: Option<(Tensor<1>, Tensor<1>)> = None;
            for (batch, old) in micro.iter().zip(&old) {
                let (loss, part, deviation) = self.loss(batch, old.clone(), trained, sampled);
                gradients.add(&self.policy, loss.backward());
                sums = Some(match sums {
                    None => (part, deviation),
                    Some((sum, largest)) => (sum + part, largest.max_pair(deviation)),
                });
            }
            let Some((sums, deviation)) = sums else { break };
            let (policy, norm) = self.optimizer.step(self.policy.clone(), gradients, learning_rate);
            self.policy = policy;
            report.push(Tensor::cat(vec![sums, deviation, norm], 0));
        }
        if report.is_empty() {
            return Ok(UpdateStatistics::default());
        }
        let statistics = match read(Tensor::cat(report, 0)).await {
            Ok(values) => statistics(&values, trained, sampled, self.settings.beta, self.settings.entropy_coefficient),
            Err(error) => Err(error.into()),
        };
        match &statistics {
            Ok(_) => self.before = Some(before),
            Err(_) => (self.policy, self.optimizer) = before,
        }
        statistics
    }

    /// Log-probabilities of the policy before the update, `[B, T]`: those of the rollout where a token was sampled, else (tool
    /// tokens, trained when the loss mask is off) those of a forward pass.
    fn old_log_probs(&self, batch: &TokenBatch) -> Tensor<2> {
        let missing = batch.loss_mask.clone().bool_and(batch.sampled.clone().bool_not());
        let known = batch.old_log_probs.clone();
        if !batch.trains_tool_tokens {
            return known;
        }
        let computed = self.log_probs(&self.policy.valid(), batch).1;
        known.mask_where(missing, Tensor::from_inner(computed))
    }

    /// Log-probabilities over the vocabulary `[B, T, V]` and of the targets `[B, T]`.
    fn log_probs(&self, policy: &Policy, batch: &TokenBatch) -> (Tensor<3>, Tensor<2>) {
        let tracked = policy.device().is_autodiff();
        let plain = |tensor: Tensor<3>| if tracked { tensor } else { tensor.without_autodiff() };
        let inputs = if tracked { batch.inputs.clone() } else { batch.inputs.clone().without_autodiff() };
        let targets = if tracked { batch.targets.clone() } else { batch.targets.clone().without_autodiff() };
        let illegal = batch.illegal.clone().map(plain);
        let all = log_distribution(policy.forward(inputs), self.settings.temperature, illegal);
        let taken = taken_log_probs(all.clone(), targets);
        (all, taken)
    }

    /// The loss of a micro-batch as its share of the whole batch's mean, `[1]`; the sums of [`statistics`] without gradients;
    /// and the largest distance of a ratio from 1.
    fn loss(&self, batch: &TokenBatch, old: Tensor<2>, trained: usize, sampled: usize) -> (Tensor<1>, Tensor<1>, Tensor<1>) {
        let (all, taken) = self.log_probs(&self.policy, batch);
        let mask = batch.loss_mask.clone();
        let part = clipped_ratio_loss(taken.clone(), old, batch.advantages.clone(), mask.clone(), self.settings.clip);
        let entropy = entropy(all);
        let mut loss = masked_mean(part.loss.clone(), mask.clone(), trained);
        if self.settings.entropy_coefficient != 0.0 {
            let mean = masked_mean(entropy.clone(), batch.sampled.clone(), sampled);
            loss = loss - mean.mul_scalar(self.settings.entropy_coefficient);
        }
        let reference_kl = (self.settings.beta != 0.0).then(|| {
            let reference = Tensor::from_inner(self.log_probs(&self.reference, batch).1);
            let difference = (taken - reference).mask_fill(mask.clone().bool_not(), 0.0);
            kl_estimate(difference, KlEstimator::K3)
        });
        if let Some(kl) = &reference_kl {
            loss = loss + masked_mean(kl.clone(), mask.clone(), trained).mul_scalar(self.settings.beta);
        }
        // k3 of KL(old || current), from samples of the old policy: exp(log_ratio) - 1 - log_ratio.
        let drift = kl_estimate(part.log_ratio.clone().neg(), KlEstimator::K3);
        let zero = || Tensor::zeros([1], &self.device);
        let sums: [Tensor<1>; SUMS - 2] = [
            masked_sum(part.loss, mask.clone()),
            masked_sum(entropy, batch.sampled.clone()),
            masked_sum(drift, mask.clone()),
            reference_kl.map_or_else(zero, |kl| masked_sum(kl, mask.clone())),
            masked_sum(part.ratio.clone(), mask.clone()),
            masked_sum(part.clipped, mask),
        ];
        let deviation = part.ratio.sub_scalar(1.0).abs().max().inner();
        (loss, Tensor::cat(sums.to_vec(), 0).inner(), deviation)
    }
}

/// Averages what the optimizer steps reported.
fn statistics(
    values: &[f32],
    trained: usize,
    sampled: usize,
    beta: f64,
    entropy_coefficient: f64,
) -> Result<UpdateStatistics, LearnerError> {
    let steps = values.len() / SUMS;
    let mean = |index: usize, over: usize| {
        let sum: f64 = values.chunks_exact(SUMS).map(|step| f64::from(step[index])).sum();
        sum / (steps * over.max(1)) as f64
    };
    let (policy_loss, entropy, reference_kl) = (mean(0, trained), mean(1, sampled), mean(3, trained));
    let loss = policy_loss + beta * reference_kl - entropy_coefficient * entropy;
    let gradient_norm = mean(7, 1);
    match (loss.is_finite(), gradient_norm.is_finite()) {
        (false, _) => return Err(LearnerError::NonFinite("the loss")),
        (_, false) => return Err(LearnerError::NonFinite("the gradient")),
        _ => {}
    }
    Ok(UpdateStatistics {
        loss,
        policy_loss,
        entropy,
        approximate_kl: mean(2, trained),
        reference_kl,
        ratio_mean: mean(4, trained),
        ratio_deviation: values.chunks_exact(SUMS).map(|step| f64::from(step[6])).fold(0.0, f64::max),
        clip_fraction: mean(5, trained),
        gradient_norm,
        trained_tokens: trained,
        updates: steps,
    })
}
