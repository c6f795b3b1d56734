//! Matrix products of the tokens of a tile with the weights.

use cubecl::prelude::*;

use super::attention::cached;
use super::extend::{Lanes, Scratch};
use super::shape::Shape;

/// What a product is followed by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Then {
    /// Queries to the scratch, keys and values to the cache.
    Store,
    /// Added to the residual stream.
    Add,
    /// The activation, to the scratch.
    Activate,
    /// Kept, in the scratch.
    Keep,
}

/// A linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Product {
    pub inputs: usize,
    pub outputs: usize,
    /// The input is the hidden layer.
    pub from_wide: bool,
    pub bias: bool,
    pub then: Then,
}

/// One matrix product for all lanes. A unit takes a column for a group of lanes at a time. No barrier at the end.
#[cube]
#[allow(clippy::too_many_arguments)]
pub(super) fn multiply(
    weights: &[f32],
    matrix: usize,
    bias: usize,
    layer: usize,
    cache: &mut [f32],
    lanes: &Lanes,
    scratch: &mut Scratch,
    #[comptime] product: Product,
    #[comptime] shape: Shape,
) {
    let outputs = comptime!(product.outputs);
    let groups = comptime!(shape.groups(outputs));
    let each = comptime!(shape.lanes / groups);
    let stride = comptime!(if product.from_wide { shape.wide() } else { shape.layout.d_model });
    let mut item = UNIT_POS as usize;
    while item < comptime!(outputs * groups) {
        let column = item % outputs;
        let first = item / outputs * each;
        let mut sums = Array::<f32>::new(each);
        #[unroll]
        for lane in 0..each {
            sums[lane] = 0.0f32;
            if comptime!(product.bias) {
                sums[lane] = weights[bias + column];
            }
        }
        for row in 0..product.inputs {
            let weight = weights[matrix + row * outputs + column];
            #[unroll]
            for lane in 0..each {
                let place = (first + lane) * stride + row;
                if comptime!(product.from_wide) {
                    sums[lane] += weight * scratch.wide[place];
                } else {
                    sums[lane] += weight * scratch.input[place];
                }
            }
        }
        #[unroll]
        for lane in 0..each {
            finish(sums[lane], first + lane, column, layer, cache, lanes, scratch, product, shape);
        }
        item += shape.units;
    }
}

/// What happens to one output of a product.
#[cube]
#[allow(clippy::too_many_arguments)]
fn finish(
    value: f32,
    lane: usize,
    column: usize,
    layer: usize,
    cache: &mut [f32],
    lanes: &Lanes,
    scratch: &mut Scratch,
    #[comptime] product: Product,
    #[comptime] shape: Shape,
) {
    let d = comptime!(shape.layout.d_model);
    let wide = comptime!(shape.wide());
    match comptime!(product.then) {
        Then::Store => {
            let part = column / d;
            if part == 0 {
                scratch.wide[lane * wide + column] = value * comptime!(((d / shape.layout.heads) as f32).powf(-0.5));
            } else if lanes.active[lane] == 1 {
                let slot = lanes.slot[lane] as usize;
                let start = cached(lanes.row[lane], layer, shape);
                if part == 1 {
                    cache[start + (column - d) * shape.slots + slot] = value;
                } else {
                    cache[start + d * shape.slots + slot * d + column - 2 * d] = value;
                }
            }
        }
        Then::Add => scratch.residual[lane * d + column] += value,
        Then::Activate => scratch.wide[lane * wide + column] = activate(value, shape),
        Then::Keep => scratch.wide[lane * wide + column] = value,
    }
}

#[cube]
fn activate(value: f32, #[comptime] shape: Shape) -> f32 {
    if comptime!(shape.layout.gelu) {
        value * 0.5f32 * (1.0f32 + Erf::erf(value * comptime!(std::f32::consts::FRAC_1_SQRT_2)))
    } else {
        value.max(0.0f32)
    }
}
