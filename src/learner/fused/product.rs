//! Matrix products of activations with weights, with what follows them.
//!
//! One invocation computes [`TILE`] rows of eight columns in registers and reads through the cache: 16 reads of four numbers for 256
//! multiply-adds, no workgroup memory and no barrier. Neighbouring invocations share their rows and read neighbouring columns. The
//! backward pass multiplies with transposed copies of the weights ([`transposed`]), so that it is this kernel too and reads its
//! weights in the same pattern.

use cubecl::prelude::*;

use super::batch::ROW;

/// Four neighbouring numbers.
pub(super) type Four = Vector<f32, Const<4>>;

/// Rows that one invocation computes; buffers of activations have a multiple of it.
pub(super) const TILE: usize = 8;

/// What happens to a product before it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Then {
    Store,
    /// Adds what the output buffer holds at `Places::beside`.
    AddResidual,
    /// The same, for rows that are the wanted ones among those at `Places::beside`.
    AddResidualOfWanted,
    /// `max(x, 0)`.
    Relu,
    /// `x Phi(x)`; its slope goes to `beside`.
    Gelu,
    /// Backward: passes where `beside`, the output of ReLU, is above 0.
    GateRelu,
    /// Backward: times `beside`, the slope that [`Then::Gelu`] stored.
    GateGelu,
}

/// Sizes of a product `[rows, inner] x [inner, columns]`, and where its operands begin in their buffers, in fours.
#[derive(CubeLaunch, CubeType, Clone, Copy)]
pub(super) struct Places {
    pub rows: usize,
    /// In fours, as `columns`.
    pub inner: usize,
    pub columns: usize,
    pub input: usize,
    pub weights: usize,
    /// In the buffer of the weights.
    pub bias: usize,
    pub output: usize,
    pub beside: usize,
}

/// Fours of a row that one invocation computes of a product with so many of them: two, half of the row apart, so that neighbours read
/// neighbours; one where they are odd.
pub(super) fn each_of(columns: usize) -> usize {
    if columns.is_multiple_of(2) { 2 } else { 1 }
}

/// `output = then(input * weights + bias)`. One invocation per [`TILE`] rows and `each` fours of columns.
#[cube(launch)]
pub(super) fn product(
    input: &[Four],
    weights: &[Four],
    output: &mut [Four],
    beside: &mut [Four],
    wanted: &[u32],
    at: Places,
    #[comptime] then: Then,
    #[comptime] bias: bool,
    #[comptime] each: usize,
) {
    let apart = at.columns / each;
    let column = ABSOLUTE_POS % apart;
    let row = ABSOLUTE_POS / apart * TILE;
    if row >= at.rows {
        terminate!();
    }
    let mut sums = Array::<Four>::new(comptime!(TILE * each));
    #[unroll]
    for i in 0..comptime!(TILE * each) {
        sums[i] = if bias { weights[at.bias + column + i % each * apart] } else { Four::new(0.0) };
    }
    let first = at.input + row * at.inner;
    let mut w = Array::<Four>::new(comptime!(4 * each));
    for k in 0..at.inner {
        let place = at.weights + 4 * k * at.columns + column;
        #[unroll]
        for i in 0..comptime!(4 * each) {
            w[i] = weights[place + i / each * at.columns + i % each * apart];
        }
        #[unroll]
        for r in 0..TILE {
            let x = input[first + r * at.inner + k];
            #[unroll]
            for c in 0..each {
                sums[r * each + c] += Four::new(x.extract(0usize)) * w[c]
                    + Four::new(x.extract(1usize)) * w[each + c]
                    + Four::new(x.extract(2usize)) * w[2 * each + c]
                    + Four::new(x.extract(3usize)) * w[3 * each + c];
            }
        }
    }
    #[unroll]
    for i in 0..comptime!(TILE * each) {
        let place = (row + i / each) * at.columns + column + i % each * apart;
        let sum = sums[i];
        if comptime!(then == Then::AddResidual) {
            output[at.output + place] = output[at.beside + place] + sum;
        } else if comptime!(then == Then::AddResidualOfWanted) {
            let residual = wanted[ROW * at.rows + row + i / each] as usize * at.columns + column + i % each * apart;
            output[at.output + place] = output[at.beside + residual] + sum;
        } else if comptime!(then == Then::Relu) {
            output[at.output + place] = max(sum, Four::new(0.0));
        } else if comptime!(then == Then::Gelu) {
            // Phi(x) + x phi(x) is the slope of x Phi(x).
            let below = (Four::new(1.0) + (sum * Four::new(std::f32::consts::FRAC_1_SQRT_2)).erf()) * Four::new(0.5);
            let density = (sum * sum * Four::new(-0.5)).exp() * Four::new(DENSITY);
            output[at.output + place] = sum * below;
            beside[at.beside + place] = below + sum * density;
        } else if comptime!(then == Then::GateRelu) {
            output[at.output + place] = gated(sum, beside[at.beside + place]);
        } else if comptime!(then == Then::GateGelu) {
            output[at.output + place] = sum * beside[at.beside + place];
        } else {
            output[at.output + place] = sum;
        }
    }
}

/// `1 / sqrt(2 pi)`.
const DENSITY: f32 = 0.398_942_3;

#[cube]
fn gated(value: Four, gate: Four) -> Four {
    let mut result = Four::new(0.0);
    #[unroll]
    for i in 0..4usize {
        if gate.extract(i) > 0.0 {
            result.insert(i, value.extract(i));
        }
    }
    result
}

/// Copies every weight matrix, transposed, to its own place in `output`. `matrices` holds `[offset, rows, columns]` of each; offsets and
/// rows are whole fours. One invocation per four numbers of the parameters.
#[cube(launch)]
pub(super) fn transposed(parameters: &[f32], output: &mut [Four], matrices: &[u32], count: usize) {
    let place = 4 * ABSOLUTE_POS;
    for index in 0..count {
        let offset = matrices[3 * index] as usize;
        let rows = matrices[3 * index + 1] as usize;
        let columns = matrices[3 * index + 2] as usize;
        if place >= offset && place < offset + rows * columns {
            // Neighbouring invocations write neighbours.
            let (row, column) = ((place - offset) % rows, (place - offset) / rows);
            let mut four = Four::new(0.0);
            #[unroll]
            for i in 0..4usize {
                four.insert(i, parameters[offset + (row + i) * columns + column]);
            }
            output[ABSOLUTE_POS] = four;
        }
    }
}
