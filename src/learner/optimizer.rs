//! Adam with gradient accumulation and clipping by the global norm.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::{AdamConfig, GradientsAccumulator, GradientsParams, ModuleOptimizer};
use burn::tensor::{Device, Gradients, Tensor};

use crate::policy::Policy;

/// Constants of Adam (Kingma and Ba, arXiv:1412.6980) and of clipping.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OptimizerSettings {
    pub beta1: f64,
    pub beta2: f64,
    /// Added to the root of the second moment, after bias correction.
    pub epsilon: f64,
    /// Largest L2 norm of the whole gradient; 0 turns clipping off.
    pub max_grad_norm: f64,
}

/// Optimizer state and the gradient accumulated so far.
#[derive(Clone)]
pub struct Optimizer {
    adam: ModuleOptimizer,
    max_grad_norm: f64,
}

impl Optimizer {
    /// Fresh state.
    pub fn new(settings: OptimizerSettings) -> Self {
        let adam = AdamConfig::new()
            .with_beta_1(settings.beta1 as f32)
            .with_beta_2(settings.beta2 as f32)
            .with_epsilon(settings.epsilon as f32);
        Optimizer { adam: adam.init(), max_grad_norm: settings.max_grad_norm }
    }

    /// One step with the accumulated gradients. Gives the policy after it and the L2 norm of the gradient before clipping, `[1]`.
    /// A norm that is not finite leaves the weights not finite: check it after reading it back.
    pub fn step(&mut self, policy: Policy, mut gradients: Accumulated, learning_rate: f64) -> (Policy, Tensor<1>) {
        let device = policy.device().without_autodiff();
        let mut gradients = gradients.0.grads();
        let mut squares = SquaredNorm { gradients: &gradients, sum: Tensor::zeros([1], &device) };
        policy.visit(&mut squares);
        let norm = squares.sum.sqrt();
        if self.max_grad_norm > 0.0 {
            // min(1, max / norm): the norm is only divided by where it is above the bound.
            let scale = norm.clone().clamp_min(self.max_grad_norm).recip().mul_scalar(self.max_grad_norm);
            policy.visit(&mut Scale { gradients: &mut gradients, scale });
        }
        (self.adam.step(learning_rate, policy, gradients), norm)
    }
}

/// Gradients summed over micro-batches.
#[derive(Default)]
pub struct Accumulated(GradientsAccumulator<Policy>);

impl Accumulated {
    /// The gradients of one backward pass, by parameter.
    pub fn gradients(policy: &Policy, gradients: Gradients) -> GradientsParams {
        GradientsParams::from_grads(gradients, policy)
    }

    /// Adds gradients of the same parameters.
    pub fn add(&mut self, policy: &Policy, gradients: GradientsParams) {
        self.0.accumulate(policy, gradients);
    }
}

struct SquaredNorm<'a> {
    gradients: &'a GradientsParams,
    sum: Tensor<1>,
}

impl ModuleVisitor for SquaredNorm<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.get::<D>(param.id) {
            self.sum = self.sum.clone() + gradient.square().sum();
        }
    }
}

struct Scale<'a> {
    gradients: &'a mut GradientsParams,
    scale: Tensor<1>,
}

impl ModuleVisitor for Scale<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        if let Some(gradient) = self.gradients.remove::<D>(param.id) {
            self.gradients.register::<D>(param.id, gradient * self.scale.clone().unsqueeze::<D>());
        }
    }
}

/// A device to differentiate on, from a plain one.
pub(super) fn training_device(device: &Device) -> Device {
    device.clone().autodiff()
}
