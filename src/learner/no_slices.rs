//! What `slices.rs` is in a build that trains on graphics devices alone: nothing is covered.

use burn::optim::AdaptiveMomentumState;
use burn::tensor::Tensor;

use super::gradient::{GradientJob, PartGradient};
use super::{OptimizerSettings, TrainingExample};
use crate::policy::Policy;

pub(super) fn covers(_policy: &Policy) -> bool {
    false
}

pub(super) fn gradient(_job: &GradientJob) -> Option<PartGradient> {
    None
}

pub(super) fn log_probs(_policy: &Policy, _examples: &[&TrainingExample], _temperature: f64) -> Option<Tensor<2>> {
    None
}

pub(super) fn imitation(_policy: &Policy, _examples: &[&TrainingExample], _trained: usize) -> Option<(Tensor<1>, Tensor<1>)> {
    None
}

pub(super) fn adam(
    _settings: &OptimizerSettings,
    _learning_rate: f64,
    _weights: &Tensor<1>,
    _gradient: &Tensor<1>,
    _scale: Option<&Tensor<1>>,
    _moments: Option<&AdaptiveMomentumState<1>>,
) -> Option<(Tensor<1>, AdaptiveMomentumState<1>)> {
    None
}
