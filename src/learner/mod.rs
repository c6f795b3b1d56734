//! Updates: gradients of the objective over a whole batch, norm clipping, Adam, schedules; and imitation for the warm start.
//!
//! [`UpdateStatistics`] is plain data and builds without the tensor library; the rest is behind the feature `engine`.

mod statistics;
pub use statistics::{CriticStatistics, UpdateStatistics};

#[cfg(feature = "engine")]
mod batch;
#[cfg(feature = "engine")]
mod critic;
#[cfg(feature = "gpu")]
mod fused;
#[cfg(all(feature = "engine", not(feature = "gpu")))]
#[path = "no_fused.rs"]
mod fused;
#[cfg(feature = "engine")]
mod gradient;
#[cfg(feature = "engine")]
mod imitation;
#[cfg(feature = "engine")]
mod loss;
#[cfg(feature = "engine")]
mod optimizer;
#[cfg(feature = "engine")]
mod packet;
#[cfg(feature = "engine")]
mod reference;
#[cfg(feature = "engine")]
mod settings;
#[cfg(feature = "cpu")]
mod slices;
#[cfg(all(feature = "engine", not(feature = "cpu")))]
#[path = "no_slices.rs"]
mod slices;
#[cfg(feature = "engine")]
mod update;

#[cfg(feature = "engine")]
pub use batch::{TokenBatch, TrainingExample};
#[cfg(feature = "engine")]
pub use critic::{Critic, CriticSettings};
#[cfg(feature = "engine")]
pub use gradient::{gradient_packet, log_probs_packet};
#[cfg(feature = "engine")]
pub use imitation::{Imitation, ImitationSettings, imitation_packet};
#[cfg(feature = "engine")]
pub use optimizer::Optimizer;
#[cfg(feature = "engine")]
pub use settings::{OptimizerSettings, UpdateSettings};
#[cfg(feature = "engine")]
pub use update::{Learner, LearnerError};
