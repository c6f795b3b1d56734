//! Gradients of the parameters: sums over rows.
//!
//! Rows are cut into chunks, so that there are enough invocations to fill a GPU although a matrix has few numbers; an invocation sums
//! over the rows of its chunk in order, and [`super::step::gather`] adds the chunks in order. Nothing is added atomically, so that the
//! same batch gives the same bits. All layers are one dispatch: buffers of activations hold all layers, one after another.

use cubecl::prelude::*;

use super::product::Four;

/// Operands of the gradient of a kind of weight matrix, `sum_m input[m]^T slope[m]` in every layer. Places, strides (from one layer to
/// the next) and widths count fours.
#[derive(CubeLaunch, CubeType, Clone, Copy)]
pub(super) struct WeightPlaces {
    pub rows: usize,
    /// Rows of the last layer.
    pub last_rows: usize,
    /// Rows of a chunk.
    pub chunk: usize,
    pub chunks: usize,
    pub layers: usize,
    /// Width of the input, even.
    pub inner: usize,
    pub columns: usize,
    pub input: usize,
    pub input_stride: usize,
    pub slope: usize,
    pub slope_stride: usize,
    /// In the parameters.
    pub weights: usize,
    pub bias: usize,
    pub block: usize,
    /// Of the parameters, in fours: from one chunk to the next.
    pub length: usize,
}

/// One invocation per chunk, layer, eight rows and `each` fours of columns of the matrix: with two of them ([`super::product::each_of`])
/// four reads of four numbers for 64 multiply-adds.
#[cube(launch)]
pub(super) fn weight_gradient(
    input: &[Four],
    slope: &[Four],
    parts: &mut [Four],
    at: WeightPlaces,
    #[comptime] bias: bool,
    #[comptime] each: usize,
) {
    let pairs = at.inner / 2;
    let apart = at.columns / each;
    let column = ABSOLUTE_POS % apart;
    let pair = ABSOLUTE_POS / apart % pairs;
    let layer = ABSOLUTE_POS / (apart * pairs) % at.layers;
    let chunk = ABSOLUTE_POS / (apart * pairs * at.layers);
    if chunk >= at.chunks {
        terminate!();
    }
    let mut sums = Array::<Four>::new(comptime!(8 * each));
    #[unroll]
    for i in 0..comptime!(8 * each) {
        sums[i] = Four::new(0.0);
    }
    let mut by_bias = Array::<Four>::new(each);
    #[unroll]
    for c in 0..each {
        by_bias[c] = Four::new(0.0);
    }
    let first = at.input + layer * at.input_stride + 2 * pair;
    let other = at.slope + layer * at.slope_stride + column;
    let mut rows = at.rows;
    if layer + 1 == at.layers {
        rows = at.last_rows;
    }
    for row in chunk * at.chunk..min((chunk + 1) * at.chunk, rows) {
        let x = input[first + row * at.inner];
        let y = input[first + row * at.inner + 1];
        #[unroll]
        for c in 0..each {
            let g = slope[other + row * at.columns + c * apart];
            #[unroll]
            for i in 0..4usize {
                sums[i * each + c] += Four::new(x.extract(i)) * g;
                sums[(i + 4) * each + c] += Four::new(y.extract(i)) * g;
            }
            if comptime!(bias) {
                by_bias[c] += g;
            }
        }
    }
    let own = chunk * at.length + layer * at.block;
    #[unroll]
    for i in 0..comptime!(8 * each) {
        parts[own + at.weights + (8 * pair + i / each) * at.columns + column + i % each * apart] = sums[i];
    }
    if comptime!(bias) && pair == 0 {
        #[unroll]
        for c in 0..each {
            parts[own + at.bias + column + c * apart] = by_bias[c];
        }
    }
}

/// Operands of the gradients of gains and shifts of all norms, in fours. Norms alternate: that of attention and that of the hidden
/// layer in every block, then the last.
#[derive(CubeLaunch, CubeType, Clone, Copy)]
pub(super) struct GainPlaces {
    pub rows: usize,
    /// Rows of the last two norms.
    pub last_rows: usize,
    pub chunk: usize,
    pub chunks: usize,
    pub norms: usize,
    pub width: usize,
    pub attention: usize,
    pub hidden: usize,
    pub last: usize,
    pub block: usize,
    pub length: usize,
}

/// One invocation per chunk, norm and four columns. A shift lies after its gain.
#[cube(launch)]
pub(super) fn gain_gradient(stream: &[Four], moments: &[f32], by_normed: &[Four], parts: &mut [Four], at: GainPlaces) {
    let column = ABSOLUTE_POS % at.width;
    let norm = ABSOLUTE_POS / at.width % at.norms;
    let chunk = ABSOLUTE_POS / (at.width * at.norms);
    if chunk >= at.chunks {
        terminate!();
    }
    let mut by_gain = Four::new(0.0);
    let mut by_shift = Four::new(0.0);
    let mut rows = at.rows;
    if norm + 2 >= at.norms {
        rows = at.last_rows;
    }
    for row in chunk * at.chunk..min((chunk + 1) * at.chunk, rows) {
        let row = norm * at.rows + row;
        let slope = by_normed[row * at.width + column];
        let off = stream[row * at.width + column] - Four::new(moments[2 * row]);
        by_gain += slope * off * Four::new(moments[2 * row + 1]);
        by_shift += slope;
    }
    let mut place = at.last;
    if norm + 1 < at.norms {
        place = norm / 2 * at.block + at.attention;
        if norm % 2 == 1 {
            place = norm / 2 * at.block + at.hidden;
        }
    }
    let own = chunk * at.length + place + column;
    parts[own] = by_gain;
    parts[own + at.width] = by_shift;
}

/// Places of the embeddings, in fours.
#[derive(CubeLaunch, CubeType, Clone, Copy)]
pub(super) struct EmbeddingPlaces {
    pub chunks: usize,
    pub width: usize,
    pub symbols: usize,
    pub positions: usize,
    pub by_symbol: usize,
    pub by_position: usize,
    pub length: usize,
}

/// The gradients of both embeddings: each number sums the rows of its token or position, which are listed
/// ([`super::batch::Rows::lists`]). One invocation per chunk, embedded vector and four columns.
#[cube(launch)]
pub(super) fn embedding_gradient(by_stream: &[Four], lists: &[u32], parts: &mut [Four], at: EmbeddingPlaces) {
    let vectors = at.symbols + at.positions;
    let column = ABSOLUTE_POS % at.width;
    let vector = ABSOLUTE_POS / at.width % vectors;
    let chunk = ABSOLUTE_POS / (at.width * vectors);
    if chunk >= at.chunks {
        terminate!();
    }
    let list = chunk * vectors + vector;
    let rows = at.chunks * vectors + 1;
    let mut sum = Four::new(0.0);
    for index in lists[list] as usize..lists[list + 1] as usize {
        sum += by_stream[lists[rows + index] as usize * at.width + column];
    }
    let mut place = at.by_symbol + vector * at.width;
    if vector >= at.symbols {
        place = at.by_position + (vector - at.symbols) * at.width;
    }
    parts[chunk * at.length + place + column] = sum;
}
