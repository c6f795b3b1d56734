//! What a pass keeps: one buffer for each kind of activation, all layers in it one after another.

use burn::tensor::Device;

use crate::kernel::Buffer;
use crate::policy::Layout;

/// Buffers of a forward and a backward pass over a number of rows. `by_x` is the gradient by `x`.
pub(super) struct Activations {
    /// The residual stream at the input of every norm, `[2 L + 1, M, d]`: of attention and of the hidden layer of every block, then
    /// of the head.
    pub stream: Buffer,
    /// After those norms.
    pub normed: Buffer,
    /// Mean and reciprocal deviation of the rows of `stream`, `[2 L + 1, M, 2]`.
    pub moments: Buffer,
    /// `[L, M, 3 d]`.
    pub qkv: Buffer,
    /// `[L, M, d]`.
    pub attended: Buffer,
    /// Logarithms of the sums of exponentials of attention, `[L, M, H]`.
    pub sums: Buffer,
    /// After the activation, `[L, M, hidden]`.
    pub hidden: Buffer,
    /// Slope of GELU, of the same shape; with ReLU one number.
    pub slopes: Buffer,
    /// `[M, V]`: logits, then log-probabilities, then the gradient of the logits.
    pub logits: Buffer,
    /// For every row the log-probability of the target, the entropy, and the slope of the loss by the former, `[3, M]`.
    pub outcome: Buffer,
    pub by_stream: Buffer,
    pub by_normed: Buffer,
    pub by_qkv: Buffer,
    /// Of one layer.
    pub by_attended: Buffer,
    pub by_hidden: Buffer,
}

impl Activations {
    /// Room for `rows` rows, not initialised; `None` where the device is not one that runs kernels.
    pub fn new(layout: &Layout, rows: usize, device: &Device) -> Option<Activations> {
        let room = |width: usize| Buffer::room(width * rows, device);
        let (width, layers) = (layout.d_model, layout.layers);
        let points = 2 * layers + 1;
        Some(Activations {
            stream: room(points * width)?,
            normed: room(points * width)?,
            moments: room(points * 2)?,
            qkv: room(layers * 3 * width)?,
            attended: room(layers * width)?,
            sums: room(layers * layout.heads)?,
            hidden: room(layers * layout.hidden)?,
            slopes: if layout.gelu { room(layers * layout.hidden)? } else { Buffer::room(4, device)? },
            logits: room(layout.vocabulary)?,
            outcome: room(3)?,
            by_stream: room(points * width)?,
            by_normed: room(points * width)?,
            by_qkv: room(layers * 3 * width)?,
            by_attended: room(width)?,
            by_hidden: room(layers * layout.hidden)?,
        })
    }

    /// Numbers that a row takes in all buffers together.
    pub fn numbers_per_row(layout: &Layout) -> usize {
        let (width, layers) = (layout.d_model, layout.layers);
        let hidden = if layout.gelu { 3 } else { 2 } * layout.hidden;
        (2 * layers + 1) * (4 * width + 2) + layers * (7 * width + layout.heads + hidden) + width + layout.vocabulary + 3
    }
}
