//! From one number per token to one number.

use burn::tensor::{Bool, Tensor};

/// Sum of `values` over the positions where `mask` is true, `[1]`. Other positions may hold anything, NaN included.
pub fn masked_sum(values: Tensor<2>, mask: Tensor<2, Bool>) -> Tensor<1> {
    values.mask_fill(mask.bool_not(), 0.0).sum()
}

/// Token mean: the masked sum over `count`, which is the number of trained tokens of the *whole* optimizer step, so that a
/// split into micro-batches changes nothing (a mean of means would). A count of 0 counts as 1.
pub fn masked_mean(values: Tensor<2>, mask: Tensor<2, Bool>, count: usize) -> Tensor<1> {
    masked_sum(values, mask).div_scalar(count.max(1) as f64)
}
