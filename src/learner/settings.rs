//! What an update needs to know, made from an experiment's settings.

use crate::config::{ExperimentConfig, LearningRateSchedule};
use crate::objective::ObjectiveSettings;

/// Constants of Adam (Kingma and Ba, arXiv:1412.6980) and of clipping.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct OptimizerSettings {
    pub beta1: f64,
    pub beta2: f64,
    /// Added to the root of the second moment, after bias correction.
    pub epsilon: f64,
    /// Largest L2 norm of the whole gradient; 0 turns clipping off.
    pub max_grad_norm: f64,
}

/// What an update needs to know.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct UpdateSettings {
    pub optimizer: OptimizerSettings,
    pub learning_rate: f64,
    pub schedule: LearningRateSchedule,
    /// Training steps over which the schedule runs.
    pub iterations: usize,
    pub objective: ObjectiveSettings,
    pub temperature: f64,
    /// Passes over the batch, one optimizer step each.
    pub inner_epochs: usize,
    /// Parts over which gradients are accumulated; the gradient does not depend on it. Kernels cut the batch by the memory it takes instead.
    pub micro_batches: usize,
    /// Whether updates go ways of our own where there are some for the device and the policy's shape, kernels on
    /// graphics devices or passes on slices on the CPU, else burn's operations with its automatic
    /// differentiation. The gradients agree but for rounding.
    pub kernels: bool,
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
            objective: ObjectiveSettings::of(config),
            temperature: config.temperature,
            inner_epochs: config.inner_epochs,
            micro_batches: config.micro_batches,
            kernels: true,
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
