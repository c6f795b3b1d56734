//! One step of a tile: one token of each of its lanes goes through the network.
//!
//! A lane is a place in a workgroup for one token: of one row each while decoding, of one row all while filling in a prompt.
//! Weights are `[in, out]`, so neighbouring units read neighbouring numbers, and every number read serves all lanes of a tile.
//!
//! # Why tiles with barriers
//!
//! Counted for the default search task: 107,500 weights (430 KB), 384 rows (256 episodes and 128 held-out questions), 2 layers,
//! d 64. Per token of all rows:
//!
//! | | a workgroup of 64 units for a tile of 4 rows | a unit for a row |
//! | --- | --- | --- |
//! | units | 96 workgroups, 6,144 units | 384 units |
//! | groups of 32 in step | 192: one to three a core of a discrete GPU, 8 to 24 of an integrated one | 12: most cores idle |
//! | multiply-adds one after another | 1,600 steps of 4 independent ones | 107,500, each waiting for the last |
//! | at 1.5 GHz | 10 to 50 us, by how much latency is hidden | 300 us at 4 cycles, whatever the device |
//! | weights read, from the second-level cache | 96 x 430 KB = 41 MB: 40 us at 1 TB/s, 200 us at 0.2 TB/s | 12 x 430 KB |
//! | activations | 9 KB of workgroup memory, shared | 500 numbers for each unit: more than registers hold |
//! | barriers | 8 a layer and 4 to 6 more: about 20 of some 30 cycles each, below 1 us | none |
//! | dispatches per turn | 1 | 1 |
//!
//! So tiles are five times faster on a GPU and have room to grow with the number of rows, and their barriers cost nothing there.
//! On a device that is a processor a barrier makes every group of units that run in step change places with the others; with a
//! workgroup that is one such group there is nobody to change with. Measured on lavapipe (8 in step), 64 tokens for 8 rows,
//! seconds: 0.82 with 4 lanes and 64 units, 0.11 with 4 lanes and 8 units, 0.056 with 8 lanes and 8 units (two shared,
//! busy cores). Hence one kernel and the tile as its parameter, rather than two kernels.
//!
//! Rows of different length need no padding and no mask of visible slots: a row's slot is its position. Rows that begin alike
//! read the slots they share from one row of the cache.

use cubecl::prelude::*;

use super::attention::{attend, score};
use super::product::{Product, Then, multiply};
use super::shape::Shape;

/// What a workgroup knows of its lanes, one entry per lane. An idle lane computes along and writes nothing but its scratch.
#[derive(CubeType)]
pub(super) struct Lanes {
    /// Row of the cache.
    pub row: Shared<[u32]>,
    /// Row that holds the first slots.
    pub origin: Shared<[u32]>,
    /// How many slots that row holds for this one.
    pub shared: Shared<[u32]>,
    /// Slot (and position) of the lane's token.
    pub slot: Shared<[u32]>,
    pub token: Shared<[u32]>,
    /// 0 for idle lanes.
    pub active: Shared<[u32]>,
}

#[cube]
impl Lanes {
    pub fn new(#[comptime] shape: Shape) -> Lanes {
        Lanes {
            row: Shared::new_slice(shape.lanes),
            origin: Shared::new_slice(shape.lanes),
            shared: Shared::new_slice(shape.lanes),
            slot: Shared::new_slice(shape.lanes),
            token: Shared::new_slice(shape.lanes),
            active: Shared::new_slice(shape.lanes),
        }
    }
}

/// The numbers a workgroup works on.
#[derive(CubeType)]
pub(super) struct Scratch {
    /// Residual stream, `[lanes, d]`.
    pub residual: Shared<[f32]>,
    /// Input of the next product, `[lanes, d]`.
    pub input: Shared<[f32]>,
    /// `[lanes, wide]`: queries `[d]` and scores `[heads, slots]`, then the hidden layer, in the end the logits.
    pub wide: Shared<[f32]>,
}

#[cube]
impl Scratch {
    pub fn new(#[comptime] shape: Shape) -> Scratch {
        Scratch {
            residual: Shared::new_slice(shape.lanes * shape.layout.d_model),
            input: Shared::new_slice(shape.lanes * shape.layout.d_model),
            wide: Shared::new_slice(shape.lanes * shape.wide()),
        }
    }
}

/// Adds the lanes' tokens to the cache and leaves the residual stream after the last block in the scratch.
#[cube]
pub(super) fn extend(weights: &[f32], cache: &mut [f32], lanes: &Lanes, scratch: &mut Scratch, #[comptime] shape: Shape) {
    let layout = comptime!(shape.layout);
    let block = comptime!(layout.block);
    let d = comptime!(layout.d_model);
    embed(weights, lanes, scratch, shape);
    for layer in 0..layout.layers {
        let place = layout.first_block + layer * layout.block_length;
        normalise(weights, place + block.attention_norm_gamma, place + block.attention_norm_beta, scratch, shape);
        let product =
            comptime!(Product { inputs: d, outputs: 3 * d, from_wide: false, bias: block.qkv_bias.is_some(), then: Then::Store });
        let bias = comptime!(block.qkv_bias.unwrap_or(0));
        multiply(weights, place + block.qkv, place + bias, layer, cache, lanes, scratch, product, shape);
        sync_storage();
        score(cache, layer, lanes, scratch, shape);
        attend(cache, layer, lanes, scratch, shape);
        let product =
            comptime!(Product { inputs: d, outputs: d, from_wide: false, bias: block.out_bias.is_some(), then: Then::Add });
        let bias = comptime!(block.out_bias.unwrap_or(0));
        multiply(weights, place + block.out, place + bias, layer, cache, lanes, scratch, product, shape);
        sync_cube();
        normalise(weights, place + block.hidden_norm_gamma, place + block.hidden_norm_beta, scratch, shape);
        let product =
            comptime!(Product { inputs: d, outputs: layout.hidden, from_wide: false, bias: true, then: Then::Activate });
        multiply(weights, place + block.up, place + block.up_bias, layer, cache, lanes, scratch, product, shape);
        sync_cube();
        let product = comptime!(Product { inputs: layout.hidden, outputs: d, from_wide: true, bias: true, then: Then::Add });
        multiply(weights, place + block.down, place + block.down_bias, layer, cache, lanes, scratch, product, shape);
        sync_cube();
    }
}

/// Leaves the logits of the lanes in the scratch, `wide[lane, ..V]`.
#[cube]
pub(super) fn logits(weights: &[f32], cache: &mut [f32], lanes: &Lanes, scratch: &mut Scratch, #[comptime] shape: Shape) {
    let layout = comptime!(shape.layout);
    normalise(weights, layout.norm_gamma.runtime(), layout.norm_beta.runtime(), scratch, shape);
    let product = comptime!(Product {
        inputs: layout.d_model,
        outputs: layout.vocabulary,
        from_wide: false,
        bias: layout.head_bias.is_some(),
        then: Then::Keep
    });
    let bias = comptime!(layout.head_bias.unwrap_or(0));
    multiply(weights, layout.head.runtime(), bias.runtime(), 0usize.runtime(), cache, lanes, scratch, product, shape);
    sync_cube();
}

/// Token and position embeddings into the residual stream.
#[cube]
fn embed(weights: &[f32], lanes: &Lanes, scratch: &mut Scratch, #[comptime] shape: Shape) {
    let d = comptime!(shape.layout.d_model);
    let mut item = UNIT_POS as usize;
    while item < comptime!(shape.lanes * d) {
        let lane = item / d;
        let column = item % d;
        let token = shape.layout.tokens + lanes.token[lane] as usize * d + column;
        let position = shape.layout.positions + lanes.slot[lane] as usize * d + column;
        scratch.residual[item] = weights[token] + weights[position];
        item += shape.units;
    }
    sync_cube();
}

/// Layer norm (Ba et al., arXiv:1607.06450) of the residual stream into the input of the next product. Several units share a
/// lane: each finds mean and variance by itself (reads of workgroup memory at the same address cost one), and writes its part.
#[cube]
fn normalise(weights: &[f32], gamma: usize, beta: usize, scratch: &mut Scratch, #[comptime] shape: Shape) {
    let d = comptime!(shape.layout.d_model);
    let parts = comptime!(shape.parts());
    let mut item = UNIT_POS as usize;
    while item < comptime!(shape.lanes * parts) {
        let start = item / parts * d;
        let part = item % parts;
        let mut sum = 0.0f32;
        for column in 0..d {
            sum += scratch.residual[start + column];
        }
        let mean = sum / comptime!(d as f32);
        let mut squares = 0.0f32;
        for column in 0..d {
            let centred = scratch.residual[start + column] - mean;
            squares += centred * centred;
        }
        let scale = 1.0f32 / (squares / comptime!(d as f32) + 1e-5f32).sqrt();
        for index in 0..comptime!(d.div_ceil(parts)) {
            let column = index * parts + part;
            if column < d {
                let value = (scratch.residual[start + column] - mean) * scale;
                scratch.input[start + column] = value * weights[gamma + column] + weights[beta + column];
            }
        }
        item += shape.units;
    }
    sync_cube();
}
