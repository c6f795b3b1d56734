//! Adam with clipping by the global norm, on all parameters as one vector.
//!
//! The rule is burn's; its moments are held here, because a checkpoint needs them and burn hands them out by a synchronous read
//! only, which panics on WebGPU in a browser.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::{Adam, AdamConfig, AdamState, AdaptiveMomentumState, Optimizer as Rule};
use burn::tensor::{Gradients, Tensor, TensorData};

use super::{OptimizerSettings, slices};
use crate::policy::{CheckpointError, Moments, NamedWeight, Policy, Weights};

/// Optimizer state.
#[derive(Clone)]
pub struct Optimizer {
    adam: Adam,
    settings: OptimizerSettings,
    /// Nothing before the first step.
    moments: Option<AdaptiveMomentumState<1>>,
}

impl Optimizer {
    /// Fresh state.
    pub fn new(settings: OptimizerSettings) -> Self {
        let adam = AdamConfig::new()
            .with_beta_1(settings.beta1 as f32)
            .with_beta_2(settings.beta2 as f32)
            .with_epsilon(settings.epsilon as f32);
        Optimizer { adam: adam.build(), settings, moments: None }
    }

    /// One step of a policy without gradients, with a gradient that has one number per parameter in the order of [`Policy::tensors`].
    /// Gives the policy after it and the L2 norm of the gradient before clipping, `[1]`. A norm that is not finite leaves the weights
    /// not finite: check it after reading it back.
    ///
    /// # Panics
    /// When the policy tracks gradients.
    pub fn step(&mut self, policy: Policy, gradient: Tensor<1>, learning_rate: f64) -> (Policy, Tensor<1>) {
        let norm = norm(&policy, gradient.clone());
        let most = self.settings.max_grad_norm;
        // min(1, max / norm): the norm is only divided by where it is above the bound.
        let scale = (most > 0.0).then(|| norm.clone().clamp_min(most).recip().mul_scalar(most));
        let weights = Tensor::cat(policy.tensors(), 0);
        let moments = self.moments.take();
        let found = slices::adam(&self.settings, learning_rate, &weights, &gradient, scale.as_ref(), moments.as_ref());
        let (weights, moments) = match found {
            Some((weights, moments)) => (weights, Some(moments)),
            None => self.reference_step(weights, gradient, scale, moments, learning_rate),
        };
        self.moments = moments;
        (policy.with_tensor(weights), norm)
    }

    /// The step by burn's rule, on every device.
    fn reference_step(
        &self,
        weights: Tensor<1>,
        gradient: Tensor<1>,
        scale: Option<Tensor<1>>,
        moments: Option<AdaptiveMomentumState<1>>,
        learning_rate: f64,
    ) -> (Tensor<1>, Option<AdaptiveMomentumState<1>>) {
        let gradient = scale.map_or(gradient.clone(), |scale| gradient * scale);
        let (weights, state) = self.adam.step(learning_rate, weights, gradient, moments.map(AdamState::new));
        (weights, state.map(|state| state.momentum))
    }

    /// First and second moment of the policy's parameters, in their order, zeros where there are none yet, and the steps done:
    /// what a checkpoint needs, not read back yet.
    pub(super) fn tensors(&self, policy: &Policy) -> (usize, [Tensor<1>; 2]) {
        match self.moments.clone() {
            Some(AdaptiveMomentumState { time, moment_1, moment_2, .. }) => (time, [moment_1, moment_2]),
            None => {
                let zeros = Tensor::zeros([policy.num_params()], &policy.device().without_autodiff());
                (0, [zeros.clone(), zeros])
            }
        }
    }

    /// The state of a checkpoint.
    ///
    /// # Errors
    /// When the moments of a parameter are missing or have another shape, naming it.
    pub(super) fn restore(&mut self, policy: &Policy, saved: &Moments) -> Result<(), CheckpointError> {
        self.moments = None;
        if saved.time > 0 {
            let (first, second) = (moment(policy, &saved.first)?, moment(policy, &saved.second)?);
            self.moments = Some(AdaptiveMomentumState::new(saved.time, first, second));
        }
        Ok(())
    }
}

/// The L2 norm of a gradient, `[1]`: the sums of its parameters, added up.
fn norm(policy: &Policy, gradient: Tensor<1>) -> Tensor<1> {
    let (squares, mut next) = (gradient.square(), 0);
    let sums = policy.shapes().into_iter().map(|(_, shape)| {
        let start = next;
        next += shape.iter().product::<usize>();
        squares.clone().slice(start..next).sum()
    });
    sums.reduce(|all, sum| all + sum).unwrap_or_else(|| squares.clone().sum()).sqrt()
}

/// A moment of a checkpoint as one vector.
fn moment(policy: &Policy, saved: &Weights) -> Result<Tensor<1>, CheckpointError> {
    let mut all: Vec<f32> = Vec::with_capacity(saved.count());
    for (name, wanted) in policy.shapes() {
        let NamedWeight { shape, values, .. } = saved.find(&name)?;
        if *shape != wanted {
            return Err(CheckpointError::Shape { name, found: shape.clone(), wanted });
        }
        all.extend(values);
    }
    let length = all.len();
    Ok(Tensor::from_data(TensorData::new(all, [length]), &policy.device().without_autodiff()))
}

/// The gradient of a backward pass in the order of the parameters, 0 where a parameter has none.
pub(super) fn gradient(policy: &Policy, gradients: &Gradients) -> Tensor<1> {
    let mut found = Flat { gradients, flat: Vec::new() };
    policy.visit(&mut found);
    Tensor::cat(found.flat, 0)
}

struct Flat<'a> {
    gradients: &'a Gradients,
    flat: Vec<Tensor<1>>,
}

impl ModuleVisitor for Flat<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let gradient = value.grad(self.gradients).unwrap_or_else(|| value.inner().zeros_like());
        self.flat.push(gradient.flatten::<1>(0, D - 1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use burn::tensor::Device;

    use crate::policy::{Activation, PolicyConfig, Weights};
    use crate::readback::look;
    use crate::seed::{Purpose, RootSeed};

    fn numbers(tensor: &Tensor<1>) -> Vec<f32> {
        look(tensor.clone()).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Three steps, the last with a gradient that is not clipped, against burn's rule, to the last bit.
    #[test]
    fn a_step_on_slices_is_that_of_the_rule() {
        for max_grad_norm in [1.0, 0.0] {
            same_as_the_rule(OptimizerSettings { beta1: 0.9, beta2: 0.95, epsilon: 1e-8, max_grad_norm });
        }
    }

    fn same_as_the_rule(settings: OptimizerSettings) {
        let (activation, bias) = (Activation::Relu, false);
        let shape =
            PolicyConfig { vocabulary: 10, context_length: 7, d_model: 5, layers: 1, heads: 1, hidden: 20, activation, bias };
        let device = Device::flex();
        let start = shape.init(&device).with_weights(&Weights::initial(&shape, RootSeed(3)));
        let mut policy = start.unwrap_or_else(|error| panic!("{error}"));
        let (mut found, mut rule) = (Optimizer::new(settings), Optimizer::new(settings));
        let mut weights = Tensor::cat(policy.tensors(), 0);
        // The last numbers fill no vector, whatever its width.
        assert_ne!(policy.num_params() % 4, 0);
        for (step, size) in [1.0, 0.3, 1e-4].into_iter().enumerate() {
            let mut draws = RootSeed(5).draws(Purpose::Weights, step as u32, 0, 0);
            let gradient: Vec<f32> = (0..policy.num_params()).map(|_| size * draws.normal()).collect();
            let gradient = Tensor::from_data(TensorData::new(gradient, [policy.num_params()]), &device);
            let norm = norm(&policy, gradient.clone());
            let most = settings.max_grad_norm;
            let scale = (most > 0.0).then(|| norm.clone().clamp_min(most).recip().mul_scalar(most));
            let moments = rule.moments.take();
            (weights, rule.moments) = rule.reference_step(weights, gradient.clone(), scale, moments, 0.01);
            let (next, found_norm) = found.step(policy, gradient, 0.01);
            policy = next;
            assert_eq!(numbers(&found_norm), numbers(&norm));
            assert_eq!(numbers(&norm)[0] > 1.0, step < 2);
            let [(time, moments), (wanted_time, wanted)] = [&found, &rule].map(|optimizer| optimizer.tensors(&policy));
            assert_eq!((time, wanted_time), (step + 1, step + 1));
            assert_eq!(moments.each_ref().map(numbers), wanted.each_ref().map(numbers));
            assert_eq!(numbers(&Tensor::cat(policy.tensors(), 0)), numbers(&weights));
        }
    }
}
