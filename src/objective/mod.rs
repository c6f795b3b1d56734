//! The objective: from log-probabilities, advantages and masks to one loss, with its diagnostics.
//!
//! Arrays are `[B, T]`, indexed by token. Positions that are not trained are *selected* away before any exponential, never
//! multiplied away after it: a masked log-probability of -10000 must not turn the loss into NaN.
//!
//! What is chosen ([`ObjectiveSettings`]) and how token losses are weighted ([`Aggregation`]) is plain data and builds without
//! the tensor library; the rest is behind the feature `engine`.

mod aggregate;
mod scalar;
mod selection;
mod settings;

pub use aggregate::{Aggregation, row_weights};
pub use scalar::{ScalarLoss, TrainedToken, scalar_losses};
pub use selection::{LeftOut, left_out, trained_trajectories};
pub use settings::{ClipBounds, KlTerm, ObjectiveSettings, PolicyLossSettings, RatioLevel, Surrogate};

#[cfg(feature = "engine")]
mod entropy;
mod kl;
#[cfg(feature = "engine")]
mod policy_loss;
#[cfg(feature = "engine")]
mod preference;
#[cfg(feature = "engine")]
mod reduce;
#[cfg(feature = "engine")]
mod value_loss;

#[cfg(feature = "engine")]
pub use entropy::entropy;
pub use kl::KlEstimator;
#[cfg(feature = "engine")]
pub use kl::kl_estimate;
#[cfg(feature = "engine")]
pub use policy_loss::{PolicyLoss, policy_loss};
#[cfg(feature = "engine")]
pub use preference::preference_loss;
#[cfg(feature = "engine")]
pub use reduce::{masked_mean, masked_sum, weighted_sum};
#[cfg(feature = "engine")]
pub use value_loss::{ValueLoss, clipped_value_loss};
