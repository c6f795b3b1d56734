//! Checks of the whole crate through its public interface: one binary, one module per subject.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod architecture;
mod checkpoint;
mod device;
mod golden;
mod learner;
mod learning;
mod objective;
mod rollout;
mod support;
