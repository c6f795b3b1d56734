//! The policy: a small pre-norm transformer decoder, its weights, and how logits become log-probabilities and tokens.

mod cache;
mod checkpoint;
mod distribution;
mod file;
mod held;
mod huggingface;
mod layout;
mod transformer;
mod weights;

pub use cache::{Cache, Visible};
pub use checkpoint::{Checkpoint, CheckpointError, Moments, TrainingState};
pub use distribution::{Sampled, cumulating, log_distribution, sample, taken_log_probs};
pub use file::{CheckpointFile, Precision};
pub use huggingface::huggingface;
pub use layout::{BlockLayout, Layout, Place, places};
pub use transformer::{Activation, Policy, PolicyConfig};
pub use weights::{NamedWeight, Weights};
