//! Weights by name, as plain numbers: initial values, and the way in and out of a policy.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Tensor, TensorData};

use super::transformer::set_param;
use super::{CheckpointError, Policy, PolicyConfig};
use crate::device;
use crate::parallel;
use crate::readback::{ReadError, look, read};
use crate::seed::{Purpose, RootSeed};

/// One parameter: its path in the policy (`blocks.0.qkv.weight`), shape and values in row-major order. A linear layer's weight
/// is `[in, out]`.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedWeight {
    pub name: String,
    pub shape: Vec<usize>,
    pub values: Vec<f32>,
}

/// All parameters of a policy, in the order of the forward pass.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights(pub Vec<NamedWeight>);

impl Weights {
    /// Initial weights, drawn normally and scaled so that every layer starts with unit-size outputs: embeddings 0.5,
    /// projections `1 / sqrt(in)`, those that write to the residual stream smaller by `1 / sqrt(2 layers)` (as in GPT-2),
    /// the head by half; biases 0, norm gains 1. The same seed gives the same weights everywhere.
    pub fn initial(config: &PolicyConfig, seed: RootSeed) -> Self {
        let mut shapes = Shapes::default();
        config.init(&device::any()).visit(&mut shapes);
        let residual = (2.0 * config.layers as f32).powf(-0.5);
        let weights = shapes.found.into_iter().enumerate().map(|(index, (name, shape))| {
            let fan_in = (shape[0] as f32).powf(-0.5);
            let scale = match name.as_str() {
                "tokens.weight" | "positions.weight" => 0.5,
                "head.weight" => 0.5 * fan_in,
                name if name.ends_with("out.weight") || name.ends_with("down.weight") => fan_in * residual,
                _ => fan_in,
            };
            let mut draws = seed.draws(Purpose::Weights, index as u32, 0, 0);
            let values = (0..shape.iter().product::<usize>())
                .map(|_| match name.rsplit('.').next() {
                    Some("gamma") => 1.0,
                    Some("weight") => scale * draws.normal(),
                    _ => 0.0,
                })
                .collect();
            NamedWeight { name, shape, values }
        });
        Weights(weights.collect())
    }

    /// One parameter.
    ///
    /// # Errors
    /// When it is missing, naming it.
    pub fn find(&self, name: &str) -> Result<&NamedWeight, CheckpointError> {
        self.0.iter().find(|weight| weight.name == name).ok_or_else(|| CheckpointError::Missing { name: name.to_string() })
    }

    /// Number of parameters.
    pub fn count(&self) -> usize {
        self.0.iter().map(|weight| weight.values.len()).sum()
    }
}

impl Policy {
    /// The policy with these weights; the identity of its parameters is kept.
    ///
    /// # Errors
    /// When a parameter is missing or has another shape, naming it.
    pub fn with_weights(self, weights: &Weights) -> Result<Policy, CheckpointError> {
        let mut loader = Loader { weights, path: Vec::new(), error: None };
        let policy = self.map(&mut loader);
        match loader.error {
            Some(error) => Err(error),
            None => Ok(policy),
        }
    }

    /// Reads all weights back, in one read.
    ///
    /// # Errors
    /// When the device gave no data.
    pub async fn weights(&self) -> Result<Weights, ReadError> {
        let flat = read(Tensor::cat(self.tensors(), 0)).await?;
        Ok(self.named(&mut flat.as_slice()))
    }

    /// All parameters as plain numbers, in the order of [`Policy::tensors`], where they lie in the CPU's memory already; `None` on other
    /// devices.
    pub fn numbers(&self) -> Option<Vec<f32>> {
        if parallel::cuts(&self.device()) { look(Tensor::cat(self.tensors(), 0)).ok() } else { None }
    }

    /// All parameters, flattened, in their order.
    pub fn tensors(&self) -> Vec<Tensor<1>> {
        let mut collector = Collector::default();
        self.visit(&mut collector);
        collector.flat
    }

    /// The policy whose parameters are the parts of one vector, in their order ([`Policy::tensors`], put together). Parts that begin
    /// and end on the device's boundaries share its memory. The identity of parameters is kept.
    ///
    /// # Panics
    /// When the vector is shorter than the parameters together, or the policy tracks gradients.
    pub fn with_tensor(self, flat: Tensor<1>) -> Policy {
        self.map(&mut Parts { flat, next: 0 })
    }

    /// Paths and shapes of all parameters, in the order of [`Policy::tensors`].
    pub fn shapes(&self) -> Vec<(String, Vec<usize>)> {
        let mut shapes = Shapes::default();
        self.visit(&mut shapes);
        shapes.found
    }

    /// Numbers read back in the order of the parameters (the weights themselves, or one number for each of them) under the
    /// parameters' names; takes them off the front of `values`.
    pub fn named(&self, values: &mut &[f32]) -> Weights {
        let weights = self.shapes().into_iter().map(|(name, shape)| {
            let (own, tail) = values.split_at(shape.iter().product::<usize>().min(values.len()));
            *values = tail;
            NamedWeight { name, shape, values: own.to_vec() }
        });
        Weights(weights.collect())
    }
}

/// Paths and shapes of all parameters.
#[derive(Default)]
struct Shapes {
    path: Vec<String>,
    found: Vec<(String, Vec<usize>)>,
}

impl ModuleVisitor for Shapes {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.found.push((self.path.join("."), param.lazy_shape().to_vec()));
    }
}

/// Flattened parameters.
#[derive(Default)]
struct Collector {
    flat: Vec<Tensor<1>>,
}

impl ModuleVisitor for Collector {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        self.flat.push(param.val().without_autodiff().flatten::<1>(0, D - 1));
    }
}

/// Parameters taken from one vector.
struct Parts {
    flat: Tensor<1>,
    next: usize,
}

impl ModuleMapper for Parts {
    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let shape: [usize; D] = param.val().dims();
        let start = self.next;
        self.next += shape.iter().product::<usize>();
        set_param(param, self.flat.clone().slice(start..self.next).reshape(shape))
    }
}

struct Loader<'a> {
    weights: &'a Weights,
    path: Vec<String>,
    error: Option<CheckpointError>,
}

impl ModuleMapper for Loader<'_> {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_string());
    }

    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }

    fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.join(".");
        let shape = param.lazy_shape().to_vec();
        let weight = match self.weights.find(&name) {
            Ok(weight) => weight,
            Err(error) => {
                self.error.get_or_insert(error);
                return param;
            }
        };
        if weight.shape != shape {
            self.error.get_or_insert(CheckpointError::Shape { name, found: weight.shape.clone(), wanted: shape });
            return param;
        }
        let device = param.lazy_device();
        set_param(param, Tensor::from_data(TensorData::new(weight.values.clone(), shape), &device))
    }
}
