//! Checkpoints: weights and the shape of their policy in the safetensors format, which other tools read; and, where a run is to
//! go on from there, what else it needs: the optimizer's moments, the reference, the critic.

use std::collections::HashMap;

use half::f16;
use safetensors::tensor::{Dtype, SafeTensors};

use super::{CheckpointFile, NamedWeight, PolicyConfig, Precision, Weights};

/// A policy in a file.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Shape of the policy.
    pub policy: PolicyConfig,
    /// The experiment that made it, in the link form.
    pub experiment: String,
    /// The weights.
    pub weights: Weights,
    /// What a run needs to go on from here; a file that only holds a policy has none.
    pub training: Option<TrainingState>,
}

/// What a run holds beside its policy.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingState {
    /// Training steps done.
    pub iteration: usize,
    /// The optimizer's.
    pub moments: Moments,
    /// The policy that KL and preferences are measured to, where the run measures them.
    pub reference: Option<Weights>,
    /// Where the credit method has one.
    pub critic: Option<(Weights, Moments)>,
}

/// First and second moments of Adam, by parameter, after `time` steps; with `time` 0 there are none.
#[derive(Clone, Debug, PartialEq)]
pub struct Moments {
    pub time: usize,
    pub first: Weights,
    pub second: Weights,
}

/// What the names of a run's tensors begin with; those of the policy have no such part.
const FIRST: &str = "adam_first/";
const SECOND: &str = "adam_second/";
const REFERENCE: &str = "reference/";
const CRITIC: &str = "critic/";
const CRITIC_FIRST: &str = "critic_adam_first/";
const CRITIC_SECOND: &str = "critic_adam_second/";

/// The numbers of a training state in a file's metadata.
#[derive(serde::Serialize, serde::Deserialize)]
struct Counts {
    iteration: usize,
    adam_steps: usize,
    critic_adam_steps: usize,
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
    /// The file, to be written piece by piece.
    ///
    /// # Errors
    /// When the format's library refuses (a shape that does not fit its data).
    pub fn file(&self, precision: Precision) -> Result<CheckpointFile<'_>, CheckpointError> {
        let policy = serde_json::to_string(&self.policy).map_err(|error| CheckpointError::Format(error.to_string()))?;
        let mut metadata = HashMap::from([
            ("format".to_string(), "pt".to_string()),
            ("turnwise_policy".to_string(), policy),
            ("turnwise_experiment".to_string(), self.experiment.clone()),
        ]);
        if let Some(training) = &self.training {
            let counts = Counts {
                iteration: training.iteration,
                adam_steps: training.moments.time,
                critic_adam_steps: training.critic.as_ref().map_or(0, |(_, moments)| moments.time),
            };
            let counts = serde_json::to_string(&counts).map_err(|error| CheckpointError::Format(error.to_string()))?;
            metadata.insert("turnwise_training".to_string(), counts);
        }
        let weights = self
            .parts()
            .into_iter()
            .flat_map(|(part, weights)| weights.0.iter().map(move |weight| (format!("{part}{}", weight.name), weight)));
        CheckpointFile::new(weights.collect(), precision, metadata)
    }

    /// The file's bytes, together.
    ///
    /// # Errors
    /// As [`Checkpoint::file`].
    pub fn to_bytes(&self, precision: Precision) -> Result<Vec<u8>, CheckpointError> {
        let file = self.file(precision)?;
        let mut bytes = Vec::with_capacity(file.length());
        file.pieces().for_each(|piece| bytes.extend_from_slice(&piece));
        Ok(bytes)
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
        let counts = metadata.get("turnwise_training").map(|text| serde_json::from_str::<Counts>(text));
        let counts = counts.transpose().map_err(|_| CheckpointError::Metadata("turnwise_training"))?;
        let mut take = |part: &str| {
            let (own, rest) = std::mem::take(&mut weights).into_iter().partition(|weight| weight.name.starts_with(part));
            weights = rest;
            let own: Vec<NamedWeight> = own;
            Weights(own.into_iter().map(|weight| NamedWeight { name: weight.name[part.len()..].to_string(), ..weight }).collect())
        };
        let (critic, reference) = (take(CRITIC), take(REFERENCE));
        let (first, second) = (take(FIRST), take(SECOND));
        let (critic_first, critic_second) = (take(CRITIC_FIRST), take(CRITIC_SECOND));
        let training = counts.map(|counts| TrainingState {
            iteration: counts.iteration,
            moments: Moments { time: counts.adam_steps, first, second },
            reference: (reference.count() > 0).then_some(reference),
            critic: (critic.count() > 0)
                .then_some((critic, Moments { time: counts.critic_adam_steps, first: critic_first, second: critic_second })),
        });
        Ok(Checkpoint { policy, experiment, weights: Weights(weights), training })
    }

    /// All tensors with the beginning of their names.
    fn parts(&self) -> Vec<(&'static str, &Weights)> {
        let mut parts = vec![("", &self.weights)];
        let Some(training) = &self.training else { return parts };
        parts.extend([(FIRST, &training.moments.first), (SECOND, &training.moments.second)]);
        parts.extend(training.reference.as_ref().map(|reference| (REFERENCE, reference)));
        if let Some((critic, moments)) = &training.critic {
            parts.extend([(CRITIC, critic), (CRITIC_FIRST, &moments.first), (CRITIC_SECOND, &moments.second)]);
        }
        parts
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
