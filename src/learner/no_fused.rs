//! What `fused` is in a build that trains on the CPU alone: there are no updates by kernels.

use burn::tensor::Tensor;

use super::loss::Counts;
use super::update::Figures;
use super::{TrainingExample, UpdateSettings};
use crate::policy::{CheckpointError, Moments, Policy};

/// There is none.
pub(super) enum Never {}

#[derive(Clone)]
pub(super) struct State {
    pub time: usize,
}

pub(super) struct Fused {
    pub state: State,
    pub activation_bytes: usize,
    never: Never,
}

pub(super) struct Report(Never);

impl Fused {
    pub fn new(_policy: &Policy) -> Option<Fused> {
        None
    }

    pub fn restore(&mut self, _policy: &Policy, _moments: &Moments, _reference: &Policy) -> Result<Option<()>, CheckpointError> {
        match self.never {}
    }

    pub fn tensor(&self) -> Tensor<1> {
        match self.never {}
    }

    pub fn policy(&self, _policy: Policy) -> Policy {
        match self.never {}
    }

    pub fn update(
        &mut self,
        _examples: &[TrainingExample],
        _weights: &[f64],
        _counts: Counts,
        _settings: &UpdateSettings,
        _learning_rate: f64,
    ) -> Option<Report> {
        match self.never {}
    }

    pub fn reference_log_probs(
        &self,
        _examples: &[TrainingExample],
        _settings: &UpdateSettings,
    ) -> Option<(Tensor<1>, Vec<Vec<usize>>)> {
        match self.never {}
    }
}

impl Report {
    pub fn tensor(&self) -> Tensor<1> {
        match self.0 {}
    }

    pub fn length(&self) -> usize {
        match self.0 {}
    }

    pub fn steps(&self, _values: &[f32]) -> Vec<Figures> {
        match self.0 {}
    }
}
