//! Rolling out: groups of trajectories from the same start state.
//!
//! [`Trajectory`] is plain data and builds without the tensor library; the batched sampler is behind the feature `engine`.

mod demonstrations;
mod trajectory;
pub use demonstrations::demonstrate;
pub use trajectory::{End, GroupInfo, Trajectory, Turn};

#[cfg(feature = "engine")]
mod sampler;
#[cfg(feature = "engine")]
pub use sampler::{Episode, RolloutError, Sampling, roll_out};
