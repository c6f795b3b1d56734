//! Adam with gradient accumulation and clipping by the global norm.
//!
//! The rule is burn's; its moments are held here, because a checkpoint needs them and burn hands them out by a synchronous read
//! only, which panics on WebGPU in a browser.

use std::collections::HashMap;

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::optim::{Adam, AdamConfig, AdamState, AdaptiveMomentumState, GradientsAccumulator, GradientsParams, Optimizer as Rule};
use burn::tensor::{Device, Gradients, Tensor, TensorData};

use crate::policy::{CheckpointError, Moments, NamedWeight, Policy, Weights};

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

/// Optimizer state and the gradient accumulated so far.
#[derive(Clone)]
pub struct Optimizer {
    adam: Adam,
    /// Of the parameters that had a gradient so far.
    moments: HashMap<ParamId, Moment>,
    max_grad_norm: f64,
}

/// First and second moment of one parameter, flattened, after `time` steps.
#[derive(Clone)]
struct Moment {
    time: usize,
    first: Tensor<1>,
    second: Tensor<1>,
}

impl Optimizer {
    /// Fresh state.
    pub fn new(settings: OptimizerSettings) -> Self {
        let adam = AdamConfig::new()
            .with_beta_1(settings.beta1 as f32)
            .with_beta_2(settings.beta2 as f32)
            .with_epsilon(settings.epsilon as f32);
        Optimizer { adam: adam.build(), moments: HashMap::new(), max_grad_norm: settings.max_grad_norm }
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
        let mut update = Update { adam: &self.adam, moments: &mut self.moments, gradients, learning_rate };
        (policy.map(&mut update), norm)
    }

    /// First and second moments in the order of the policy's parameters, zeros where there are none yet, and the steps done:
    /// what a checkpoint needs, not read back yet.
    pub(super) fn tensors(&self, policy: &Policy) -> (usize, Vec<Tensor<1>>) {
        let mut found = Collect { moments: &self.moments, time: 0, first: Vec::new(), second: Vec::new() };
        policy.visit(&mut found);
        found.first.append(&mut found.second);
        (found.time, found.first)
    }

    /// The state of a checkpoint.
    ///
    /// # Errors
    /// When the moments of a parameter are missing or have another shape, naming it.
    pub(super) fn restore(&mut self, policy: &Policy, saved: &Moments) -> Result<(), CheckpointError> {
        self.moments.clear();
        if saved.time == 0 {
            return Ok(());
        }
        let mut restore = Restore { saved, path: Vec::new(), moments: &mut self.moments, error: None };
        policy.visit(&mut restore);
        restore.error.map_or(Ok(()), Err)
    }
}

/// One step of every parameter that has a gradient.
struct Update<'a> {
    adam: &'a Adam,
    moments: &'a mut HashMap<ParamId, Moment>,
    gradients: GradientsParams,
    learning_rate: f64,
}

impl ModuleMapper for Update<'_> {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let Some(gradient) = self.gradients.remove::<D>(param.id) else { return param };
        let id = param.id;
        let shape = gradient.dims();
        let state = self.moments.remove(&id).map(|Moment { time, first, second }| {
            AdamState::new(AdaptiveMomentumState::new(time, first.reshape(shape), second.reshape(shape)))
        });
        param.map(|value| {
            let tracked = value.is_require_grad();
            let (value, state) = self.adam.step(self.learning_rate, value.inner(), gradient, state);
            if let Some(AdaptiveMomentumState { time, moment_1, moment_2, .. }) = state.map(|state| state.momentum) {
                let flat = |tensor: Tensor<D>| tensor.flatten::<1>(0, D - 1);
                self.moments.insert(id, Moment { time, first: flat(moment_1), second: flat(moment_2) });
            }
            Tensor::from_inner(value).set_require_grad(tracked)
        })
    }
}

struct Collect<'a> {
    moments: &'a HashMap<ParamId, Moment>,
    time: usize,
    first: Vec<Tensor<1>>,
    second: Vec<Tensor<1>>,
}

impl ModuleVisitor for Collect<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let moment = self.moments.get(&param.id).cloned().unwrap_or_else(|| {
            let size = param.lazy_shape().iter().product::<usize>();
            let zeros = Tensor::zeros([size], &param.lazy_device().without_autodiff());
            Moment { time: 0, first: zeros.clone(), second: zeros }
        });
        self.time = self.time.max(moment.time);
        self.first.push(moment.first);
        self.second.push(moment.second);
    }
}

struct Restore<'a> {
    saved: &'a Moments,
    path: Vec<String>,
    moments: &'a mut HashMap<ParamId, Moment>,
    error: Option<CheckpointError>,
}

impl ModuleVisitor for Restore<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let (name, wanted) = (self.path.join("."), param.lazy_shape().to_vec());
        let device = param.lazy_device().without_autodiff();
        let load = |weights: &Weights| -> Result<Tensor<1>, CheckpointError> {
            let NamedWeight { shape, values, .. } = weights.find(&name)?;
            if *shape != wanted {
                return Err(CheckpointError::Shape { name: name.clone(), found: shape.clone(), wanted: wanted.clone() });
            }
            Ok(Tensor::from_data(TensorData::new(values.clone(), [values.len()]), &device))
        };
        match load(&self.saved.first).and_then(|first| Ok((first, load(&self.saved.second)?))) {
            Ok((first, second)) => _ = self.moments.insert(param.id, Moment { time: self.saved.time, first, second }),
            Err(error) => _ = self.error.get_or_insert(error),
        }
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
