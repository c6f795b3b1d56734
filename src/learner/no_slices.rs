//! What `slices.rs` is in a build that trains on graphics devices alone: nothing is covered.

use burn::optim::GradientsParams;
use burn::tensor::Tensor;

use super::TrainingExample;
use super::gradient::{GradientJob, PartGradient};
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

pub(super) fn imitation(
    _policy: &Policy,
    _examples: &[&TrainingExample],
    _trained: usize,
) -> Option<(GradientsParams, Tensor<1>)> {
    None
}
