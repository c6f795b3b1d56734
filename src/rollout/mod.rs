//! Rolling out: groups of trajectories from the same start state.
//!
//! [`Trajectory`] is plain data and builds without the tensor library; the batched sampler is behind the feature `engine`.

mod demonstrations;
mod episode;
mod trajectory;
pub use demonstrations::demonstrate;
pub use episode::{Episode, Limits, Origin, Prefix, TOOL_POSITIONS_PER_TURN, replay, tool_draws};
pub use trajectory::{End, GroupInfo, Trajectory, Turn};

#[cfg(feature = "engine")]
mod automaton;
#[cfg(feature = "engine")]
mod decoding;
#[cfg(feature = "gpu")]
mod kernels;
#[cfg(feature = "engine")]
mod reference;
#[cfg(feature = "engine")]
mod row;
#[cfg(feature = "engine")]
mod sampler;
#[cfg(feature = "engine")]
mod shard;
#[cfg(feature = "cpu")]
mod slices;
#[cfg(feature = "engine")]
pub use sampler::{RolloutError, Sampling, roll_out};
#[cfg(feature = "engine")]
pub use shard::play_packet;
