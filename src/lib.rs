//! # Turnwise: multi-turn reinforcement learning, small enough to watch
//!
//! A small transformer learns by trial and error to use tools over several turns. Everything that happens between the
//! settings and the curve is in this crate, and data flows one way:
//!
//! ```text
//! config -> environment -> policy -> rollout -> reward -> credit -> objective -> learner -> metrics -> page
//! ```
//!
//! Between the policy and the rollout and the learner stand the fast ways of computing it: [`cpu`] on the CPU, the kernels of
//! [`kernel`] on a graphics device.
//!
//! A module imports only from modules to its left (a test reads the `use crate::` lines); the driver [`trainer`], the
//! browser border `web` and the command line may import everything. Read [`trainer`] first: one training step, on one screen.
//!
//! Two halves: everything that is a pure function of plain data (settings, tasks, trajectories, rewards, credit, reports)
//! builds without the tensor library, in seconds, and answers the page at slider speed. What needs tensors (policy,
//! sampling, objective, learner, trainer) is behind the feature `engine`, and comes with `cpu`, `gpu` or both: a browser loads the
//! engine of the one it trains on.

pub mod seed;
pub mod vocabulary;

pub mod config;
#[cfg(feature = "cpu")]
pub mod cpu;
#[cfg(all(feature = "engine", not(feature = "cpu")))]
#[path = "cpu/no_cpu.rs"]
pub mod cpu;
pub mod credit;
pub mod environment;
#[cfg(feature = "gpu")]
pub mod kernel;
pub mod learner;
pub mod lesson;
pub mod metrics;
pub mod objective;
#[cfg(feature = "engine")]
pub mod policy;
pub mod reward;
pub mod rollout;

pub mod device;
#[cfg(feature = "engine")]
pub mod parallel;
#[cfg(feature = "engine")]
pub mod readback;
#[cfg(feature = "engine")]
pub mod trainer;

pub mod web;
