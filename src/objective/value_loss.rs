//! The loss of a critic.
//!
//! `l = 1/2 max((v - R)^2, (clip(v, v_old - c, v_old + c) - R)^2)`: the squared error, with a limit on how far the value may move
//! in one step (the value clipping of PPO's reference implementation; verl's `compute_value_loss`).

use burn::tensor::Tensor;

/// Loss and diagnostics of a shape.
pub struct ValueLoss<const D: usize> {
    /// Loss of every value.
    pub loss: Tensor<D>,
    /// 1 where the clipped branch was the larger one, else 0.
    pub clipped: Tensor<D>,
}

/// The loss of every value. Gradients flow through `values` alone. `clip` 0 turns the limit off.
pub fn clipped_value_loss<const D: usize>(values: Tensor<D>, old: Tensor<D>, returns: Tensor<D>, clip: f64) -> ValueLoss<D> {
    let error = |values: Tensor<D>| (values - returns.clone()).square();
    let free = error(values.clone());
    if clip <= 0.0 {
        let clipped = Tensor::zeros(free.dims(), &free.device());
        return ValueLoss { loss: free.mul_scalar(0.5), clipped };
    }
    let limited = error(old.clone() + (values - old).clamp(-clip, clip));
    let clipped = limited.clone().greater(free.clone());
    ValueLoss { loss: free.mask_where(clipped.clone(), limited).mul_scalar(0.5), clipped: clipped.float() }
}
