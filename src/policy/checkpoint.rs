//! Checkpoints: weights and the shape of their policy in the safetensors format, which other tools read.

use std::collections::HashMap;

use half::f16;
use safetensors::tensor::{Dtype, SafeTensors, TensorView, serialize};

use super::{NamedWeight, PolicyConfig, Weights};

/// How weights are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// 32-bit: exact.
    Full,
    /// 16-bit: half the size, for checkpoints that ship with the page.
    Half,
}

/// A policy in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Shape of the policy.
    pub policy: PolicyConfig,
    /// The experiment that made it, in the link form.
    pub experiment: String,
    /// The weights.
    pub weights: Weights,
}

/// Why a checkpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("not a readable safetensors file: {0}")]
    Format(String),
    #[error("the file holds no Turnwise policy: its metadata has no usable `{0}`")]
    Metadata(&'static str),
    #[error("parameter `{name}` is missing")]
    Missing { name: String },
    #[error("parameter `{name}` has shape {found:?}; this policy needs {wanted:?}")]
    Shape { name: String, found: Vec<usize>, wanted: Vec<usize> },
    #[error("parameter `{name}` holds a value that is not a finite number")]
    NonFinite { name: String },
    #[error("parameter `{name}` is stored as {found}; F32 and F16 are read")]
    Type { name: String, found: String },
    #[error("`{field}` is {found}; it must be {bound}")]
    Bound { field: &'static str, found: usize, bound: &'static str },
}

impl Checkpoint {
    /// The file's bytes.
    ///
    /// # Errors
    /// When the format's library refuses (a shape that does not fit its data).
    pub fn to_bytes(&self, precision: Precision) -> Result<Vec<u8>, CheckpointError> {
        let encode = |values: &[f32]| -> Vec<u8> {
            match precision {
                Precision::Full => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
                Precision::Half => values.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect(),
            }
        };
        let dtype = if precision == Precision::Full { Dtype::F32 } else { Dtype::F16 };
        let data: Vec<Vec<u8>> = self.weights.0.iter().map(|weight| encode(&weight.values)).collect();
        let views = self.weights.0.iter().zip(&data).map(|(weight, bytes)| {
            let view = TensorView::new(dtype, weight.shape.clone(), bytes);
            view.map(|view| (weight.name.as_str(), view)).map_err(|error| CheckpointError::Format(error.to_string()))
        });
        let policy = serde_json::to_string(&self.policy).map_err(|error| CheckpointError::Format(error.to_string()))?;
        let metadata = HashMap::from([
            ("format".to_string(), "pt".to_string()),
            ("turnwise_policy".to_string(), policy),
            ("turnwise_experiment".to_string(), self.experiment.clone()),
        ]);
        serialize(views.collect::<Result<Vec<_>, _>>()?, Some(metadata))
            .map_err(|error| CheckpointError::Format(error.to_string()))
    }

    /// Reads a file: its format, its metadata, its bounds, and that every value is a finite number.
    ///
    /// # Errors
    /// The first thing that does not fit, by name.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CheckpointError> {
        let format = |error: safetensors::SafeTensorError| CheckpointError::Format(error.to_string());
        let (_, header) = SafeTensors::read_metadata(bytes).map_err(format)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(format)?;
        let metadata = header.metadata().clone().unwrap_or_default();
        let policy = metadata.get("turnwise_policy").ok_or(CheckpointError::Metadata("turnwise_policy"))?;
        let policy: PolicyConfig = serde_json::from_str(policy).map_err(|_| CheckpointError::Metadata("turnwise_policy"))?;
        check_bounds(&policy)?;
        let mut weights = Vec::new();
        for (name, view) in tensors.tensors() {
            let values: Vec<f32> = match view.dtype() {
                Dtype::F32 => view.data().as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect(),
                Dtype::F16 => view.data().as_chunks().0.iter().map(|&bytes| f16::from_le_bytes(bytes).to_f32()).collect(),
                other => return Err(CheckpointError::Type { name, found: format!("{other:?}") }),
            };
            if values.iter().any(|value| !value.is_finite()) {
                return Err(CheckpointError::NonFinite { name });
            }
            weights.push(NamedWeight { name, shape: view.shape().to_vec(), values });
        }
        let experiment = metadata.get("turnwise_experiment").cloned().unwrap_or_default();
        Ok(Checkpoint { policy, experiment, weights: Weights(weights) })
    }
}

/// A file must not make us allocate without limit.
fn check_bounds(policy: &PolicyConfig) -> Result<(), CheckpointError> {
    let within = |field, found: usize, low: usize, high: usize, bound| {
        if (low..=high).contains(&found) { Ok(()) } else { Err(CheckpointError::Bound { field, found, bound }) }
    };
    within("vocabulary", policy.vocabulary, 1, 64, "1 to 64")?;
    within("context_length", policy.context_length, 1, 1024, "1 to 1024")?;
    within("d_model", policy.d_model, 1, 1024, "1 to 1024")?;
    within("layers", policy.layers, 1, 16, "1 to 16")?;
    within("heads", policy.heads, 1, policy.d_model, "between 1 and d_model")?;
    within("hidden", policy.hidden, 1, 8192, "1 to 8192")?;
    within("d_model modulo heads", policy.d_model % policy.heads, 0, 0, "0")
}
