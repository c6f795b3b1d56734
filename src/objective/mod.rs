//! The objective: from log-probabilities, advantages and masks to one loss, with its diagnostics.
//!
//! Arrays are `[B, T]`, indexed by token. Positions that are not trained are *selected* away before any exponential, never
//! multiplied away after it: a masked log-probability of -10000 must not turn the loss into NaN.

mod aggregate;
mod entropy;
mod kl;
mod policy_loss;

pub use aggregate::{masked_mean, masked_sum};
pub use entropy::entropy;
pub use kl::{KlEstimator, kl_estimate};
pub use policy_loss::{ClipBounds, PolicyLoss, clipped_ratio_loss};
