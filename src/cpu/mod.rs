//! The policy on the CPU without a graph: forward and backward passes, decoding, and the step of the optimizer, on slices.
//!
//! burn's operations are general: each allocates its result, pads what is shorter, computes above the diagonal of the attention and
//! takes one exponential at a time. For a tiny policy that is more than half of the time. Here
//!
//! - trajectories that begin alike share the rows of their beginning ([`Batch`]), there is no padding, and attention stops at the
//!   diagonal;
//! - after the last attention only those rows go on whose distribution the loss needs;
//! - every product runs through one register tile (`product`), and everything else through loops over vectors, the exponential
//!   included (`vector`);
//! - what rows have sampled alike is decoded once ([`Decoder`]), and a row ends when it ends.
//!
//! Instruction sets are chosen by `pulp` when the program runs; in a browser it is plain SIMD of four lanes, where nothing is rounded
//! differently from one machine to another. Natively products fuse multiplication and addition where the processor does.
//!
//! The reference is burn's path: tests hold every gradient to its automatic differentiation, and the tokens drawn to its own. Objectives stay burn's
//! on both paths; what lies between tokens and log-probabilities is done here. Policies with GELU take the reference path for that. The
//! step of the optimizer ([`adam()`]) is that of every policy on the CPU, and rounds as burn's rule does.

mod adam;
mod attention;
mod batch;
mod decoder;
mod distribution;
mod network;
mod norm;
mod packed;
mod product;
mod vector;

pub use adam::{State, Step, adam};
pub use batch::Batch;
pub use decoder::{Decoder, Draw, Node};
pub use network::{Network, Pass};
pub use packed::Packed;
