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

/// `sum_b w_b sum_t m_bt x_bt`, `[1]`, from values and mask `[B, T]` and weights `[B]` (those of [`super::row_weights`]).
pub fn weighted_sum(values: Tensor<2>, mask: Tensor<2, Bool>, weights: Tensor<1>) -> Tensor<1> {
    let [rows, length] = values.dims();
    let weights = weights.reshape([rows, 1]).expand([rows, length]);
    (values.mask_fill(mask.bool_not(), 0.0) * weights).sum()
}
