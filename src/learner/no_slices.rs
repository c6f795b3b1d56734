//! What `slices.rs` is in a build that trains on graphics devices alone: nothing is covered.

use burn::tensor::Tensor;

use super::gradient::{GradientJob, PartGradient};
use super::{OptimizerSettings, TrainingExample};
use crate::cpu::Packed;
use crate::policy::Policy;

pub(super) fn covers(_policy: &Policy) -> bool {
    false
}

pub(super) fn gradient(_job: &GradientJob) -> Option<PartGradient> {
    None
}

pub(super) fn log_probs(_policy: &Packed, _examples: &[&TrainingExample], _temperature: f64) -> Option<Tensor<2>> {
    None
}

pub(super) fn imitation(_policy: &Packed, _examples: &[&TrainingExample], _trained: usize) -> Option<(Tensor<1>, Tensor<1>)> {
    None
}

/// There is none.
#[derive(Clone)]
pub(super) enum Momentum {}

impl Momentum {
    pub fn zeros(_policy: &Policy) -> Option<Self> {
        None
    }

    pub fn finite(&self) -> bool {
        match *self {}
    }

    pub fn numbers(&self) -> (usize, [&[f32]; 2]) {
        match *self {}
    }

    pub fn restore(&mut self, _time: usize, _moments: [Vec<f32>; 2]) {
        match *self {}
    }

    pub fn step(
        &mut self,
        _settings: &OptimizerSettings,
        _learning_rate: f64,
        _weights: Tensor<1>,
        _gradient: Tensor<1>,
        _scale: Option<Tensor<1>>,
    ) -> Tensor<1> {
        match *self {}
    }
}
