//! Checks of the whole crate through its public interface: one binary, one module per subject. Without the feature `engine` those
//! of the plain-data half run.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod architecture;
#[cfg(feature = "engine")]
mod checkpoint;
#[cfg(feature = "engine")]
mod counterfactual;
#[cfg(feature = "engine")]
mod device;
#[cfg(feature = "engine")]
mod fused;
mod golden;
#[cfg(feature = "engine")]
mod huggingface;
#[cfg(feature = "engine")]
mod kernels;
#[cfg(feature = "engine")]
mod learner;
#[cfg(feature = "engine")]
mod learning;
#[cfg(feature = "engine")]
mod lessons;
mod links;
#[cfg(feature = "engine")]
mod objective;
#[cfg(feature = "engine")]
mod provenance;
#[cfg(feature = "engine")]
mod recordings;
#[cfg(feature = "engine")]
mod resume;
#[cfg(feature = "engine")]
mod rollout;
#[cfg(feature = "engine")]
mod support;
#[cfg(feature = "engine")]
mod true_credit;
#[cfg(feature = "engine")]
mod workers;

/// The root of the repository: where cargo runs the test, since one build folder may serve several checkouts.
fn root() -> std::path::PathBuf {
    std::env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| env!("CARGO_MANIFEST_DIR").into(), Into::into)
}
