//! Adam with clipping by the global norm, on all parameters as one vector.
//!
//! The rule is burn's; its moments are held here, because a checkpoint needs them and burn hands them out by a synchronous read
//! only, which panics on WebGPU in a browser. On the CPU the same rule is one pass over slices.

use burn::module::{Module, ModuleVisitor, Param};
use burn::optim::{Adam, AdamConfig, AdamState, AdaptiveMomentumState, Optimizer as Rule};
use burn::tensor::{Gradients, Tensor, TensorData};

use super::OptimizerSettings;
use super::slices::Momentum;
use crate::policy::{CheckpointError, Moments, NamedWeight, Policy, Weights};
use crate::readback::{ReadError, read};

/// Optimizer state.
#[derive(Clone)]
pub struct Optimizer {
    adam: Adam,
    settings: OptimizerSettings,
    state: State,
}

/// The moments.
#[derive(Clone)]
enum State {
    /// In the CPU's memory.
    Slices(Momentum),
    /// On a device; nothing before the first step.
    Device(Option<Box<AdaptiveMomentumState<1>>>),
}

impl Optimizer {
    /// Fresh state for a policy on its device.
    pub fn new(policy: &Policy, settings: OptimizerSettings) -> Self {
        let state = Momentum::zeros(policy).map_or(State::Device(None), State::Slices);
        Optimizer::with_state(state, settings)
    }

    fn with_state(state: State, settings: OptimizerSettings) -> Self {
        let adam = AdamConfig::new()
            .with_beta_1(settings.beta1 as f32)
            .with_beta_2(settings.beta2 as f32)
            .with_epsilon(settings.epsilon as f32);
        Optimizer { adam: adam.build(), settings, state }
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
        let weights = match &mut self.state {
            State::Slices(momentum) => momentum.step(&self.settings, learning_rate, weights, gradient, scale),
            State::Device(moments) => {
                let gradient = scale.map_or(gradient.clone(), |scale| gradient * scale);
                let (weights, state) =
                    self.adam.step(learning_rate, weights, gradient, moments.take().map(|moments| AdamState::new(*moments)));
                *moments = state.map(|state| Box::new(state.momentum));
                weights
            }
        };
        (policy.with_tensor(weights), norm)
    }

    /// Whether the last step gave a weight that is not finite, where that is known without a read: on the CPU.
    pub(super) fn broke(&self) -> bool {
        matches!(&self.state, State::Slices(momentum) if !momentum.finite())
    }

    /// Weights and moments for a checkpoint. One read, none where they lie in memory.
    ///
    /// # Errors
    /// When the device gave no data.
    pub(super) async fn state(&self, policy: &Policy) -> Result<(Weights, Moments), ReadError> {
        if let (State::Slices(momentum), Some(weights)) = (&self.state, policy.numbers()) {
            let named = |mut values: &[f32]| policy.named(&mut values);
            let (time, [first, second]) = momentum.numbers();
            return Ok((named(&weights), Moments { time, first: named(first), second: named(second) }));
        }
        let (time, tensors) = self.tensors(policy);
        Ok(named_state(policy, time, &read(Tensor::cat(tensors, 0)).await?))
    }

    /// The steps done, and the parameters of the policy, then its first and second moments, zeros where there are none yet: what a
    /// checkpoint needs, not read back yet.
    pub(super) fn tensors(&self, policy: &Policy) -> (usize, Vec<Tensor<1>>) {
        let device = policy.device().without_autodiff();
        let (time, moments) = match &self.state {
            State::Slices(momentum) => {
                let (time, moments) = momentum.numbers();
                (time, moments.map(|values| Tensor::from_data(TensorData::new(values.to_vec(), [values.len()]), &device)))
            }
            State::Device(Some(moments)) => (moments.time, [moments.moment_1.clone(), moments.moment_2.clone()]),
            State::Device(None) => (0, [(); 2].map(|()| Tensor::zeros([policy.num_params()], &device))),
        };
        let mut tensors = policy.tensors();
        tensors.extend(moments);
        (time, tensors)
    }

    /// The state of a checkpoint.
    ///
    /// # Errors
    /// When the moments of a parameter are missing or have another shape, naming it.
    pub(super) fn restore(&mut self, policy: &Policy, saved: &Moments) -> Result<(), CheckpointError> {
        let moments = if saved.time > 0 { Some([moment(policy, &saved.first)?, moment(policy, &saved.second)?]) } else { None };
        match (&mut self.state, moments) {
            (State::Slices(momentum), Some(moments)) => momentum.restore(saved.time, moments),
            (State::Device(state), Some(moments)) => {
                let device = policy.device().without_autodiff();
                let [first, second] =
                    moments.map(|values| Tensor::from_data(TensorData::new(values, [policy.num_params()]), &device));
                *state = Some(Box::new(AdaptiveMomentumState::new(saved.time, first, second)));
            }
            (_, None) => *self = Optimizer::new(policy, self.settings),
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
fn moment(policy: &Policy, saved: &Weights) -> Result<Vec<f32>, CheckpointError> {
    let mut all: Vec<f32> = Vec::with_capacity(saved.count());
    for (name, wanted) in policy.shapes() {
        let NamedWeight { shape, values, .. } = saved.find(&name)?;
        if *shape != wanted {
            return Err(CheckpointError::Shape { name, found: shape.clone(), wanted });
        }
        all.extend(values);
    }
    Ok(all)
}

/// Weights and moments from the numbers of [`Optimizer::tensors`].
pub(super) fn named_state(policy: &Policy, time: usize, mut values: &[f32]) -> (Weights, Moments) {
    let mut next = || policy.named(&mut values);
    let (weights, first, second) = (next(), next(), next());
    (weights, Moments { time, first, second })
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
        let (mut found, mut rule) = (Optimizer::new(&policy, settings), Optimizer::with_state(State::Device(None), settings));
        assert!(matches!(found.state, State::Slices(_)));
        let mut by_rule = policy.clone();
        // The last numbers fill no vector, whatever its width.
        assert_ne!(policy.num_params() % 4, 0);
        for (step, size) in [1.0, 0.3, 1e-4].into_iter().enumerate() {
            let mut draws = RootSeed(5).draws(Purpose::Weights, step as u32, 0, 0);
            let gradient: Vec<f32> = (0..policy.num_params()).map(|_| size * draws.normal()).collect();
            let gradient = Tensor::from_data(TensorData::new(gradient, [policy.num_params()]), &device);
            let (norm, found_norm);
            (by_rule, norm) = rule.step(by_rule, gradient.clone(), 0.01);
            // What remembers an earlier state keeps it.
            let (before, memory) = (found.tensors(&policy), found.clone());
            let remembered = policy.clone();
            (policy, found_norm) = found.step(policy, gradient, 0.01);
            assert_eq!(numbers(&found_norm), numbers(&norm));
            assert_eq!(numbers(&norm)[0] > 1.0, step < 2);
            let all = |(time, tensors): (usize, Vec<Tensor<1>>)| (time, numbers(&Tensor::cat(tensors, 0)));
            let (after, wanted) = (all(found.tensors(&policy)), all(rule.tensors(&by_rule)));
            assert_eq!(after.0, step + 1);
            assert_eq!(after, wanted);
            assert_eq!(all(memory.tensors(&remembered)), all(before));
            let (named, moments) = crate::parallel::wait(found.state(&policy)).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!((named, moments), named_state(&policy, after.0, &after.1));
        }
    }
}
