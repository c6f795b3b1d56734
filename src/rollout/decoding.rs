//! The ways of decoding a turn, and which of them a batch takes.

use burn::tensor::Tensor;

use super::row::Row;
use super::{RolloutError, Sampling, reference};
use crate::cpu::Packed;
use crate::environment::Grammar;
use crate::policy::Policy;

/// What a batch holds while its turns are decoded.
pub(super) trait Decoding {
    /// Feeds what waits in the rows and samples a turn.
    ///
    /// # Errors
    /// When the device takes no more buffers.
    fn turn(&mut self, policy: &Policy, rows: &mut [Row], sampling: &Sampling) -> Result<Decoded, RolloutError>;

    /// Puts what follows an action of `length` tokens, and those of its tokens that this way has not fed, among what waits in its row:
    /// all but the last have been.
    fn rest(&self, row: &mut Row, length: usize, _sampling: &Sampling) {
        row.wait_from_last(length);
    }

    /// Keeps the given rows, by their places.
    fn keep_rows(&mut self, _rows: &[usize]) {}
}

/// Tokens and log-probabilities, row by row: `turn_tokens` tokens (exact in `f32`), then as many log-probabilities.
pub(super) enum Decoded {
    /// On a device, not read back yet.
    There(Box<Tensor<1>>),
    #[cfg_attr(not(feature = "cpu"), expect(dead_code, reason = "only decoding on slices gives it"))]
    Here(Vec<f32>),
}

/// The fastest way that the device, the policy and the settings allow: by kernels of our own in one dispatch on graphics devices, on
/// slices on the CPU, where nothing has to be read, else by burn's operations token by token.
pub(super) fn decoding<'a>(
    policy: &'a Packed,
    rows: &[Row],
    sampling: &Sampling,
    grammar: Option<&Grammar>,
) -> Box<dyn Decoding + 'a> {
    #[cfg(feature = "gpu")]
    if let Some(kernels) =
        sampling.kernels.then(|| super::kernels::Decoding::new(policy.policy(), rows, sampling, grammar)).flatten()
    {
        return Box::new(kernels);
    }
    #[cfg(feature = "cpu")]
    if let Some(slices) = sampling.kernels.then(|| super::slices::Decoding::new(policy, rows.len(), grammar)).flatten() {
        return Box::new(slices);
    }
    Box::new(reference::Decoding::new(policy.policy(), grammar.cloned()))
}

/// How many rows kernels can decode at once; `None` where the policy is not decoded by them.
#[cfg(feature = "gpu")]
pub(super) fn most_rows(policy: &Policy, sampling: &Sampling) -> Option<usize> {
    sampling.kernels.then(|| crate::kernel::Decoder::most_rows(policy, sampling.limits.context_length)).flatten()
}
/// How many rows kernels can decode at once; there are none here.
#[cfg(not(feature = "gpu"))]
pub(super) fn most_rows(_policy: &Policy, _sampling: &Sampling) -> Option<usize> {
    None
}
