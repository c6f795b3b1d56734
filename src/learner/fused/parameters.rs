//! From activations to a step of the parameters: their gradient, its norm, Adam.

use burn::tensor::Device;

use super::activations::Activations;
use super::batch::{Chunks, Rows};
use super::gradient::{
    EmbeddingPlacesLaunch, GainPlacesLaunch, WeightPlacesLaunch, embedding_gradient, gain_gradient, weight_gradient,
};
use super::matrices;
use super::pass::cubes;
use super::product::{each_of, transposed};
use super::step::{SQUARES, StepLaunch, adam, gather, norm, squares};
use crate::kernel::Buffer;
use crate::learner::OptimizerSettings;
use crate::policy::Layout;

/// Numbers that the chunks of the gradient may take: 16 MiB.
const CHUNK_NUMBERS: usize = 4 << 20;

/// Chunks at most.
const MOST_CHUNKS: usize = 32;

/// Buffers of the length of the parameters.
pub(super) struct Gradients {
    length: usize,
    /// The gradient in chunks of rows, `[chunks, length]`.
    parts: Buffer,
    chunks: usize,
    gradient: Buffer,
    squares: Buffer,
    norm: Buffer,
    transposed: Buffer,
    matrices: (Buffer, usize),
    device: Device,
}

/// A kind of weight matrix: its input and the gradient of its output, with their places in the first layer and the distance to the
/// next; all in numbers.
struct Kind<'a> {
    input: (&'a Buffer, usize, usize),
    inner: usize,
    slope: (&'a Buffer, usize, usize),
    columns: usize,
    weights: usize,
    bias: Option<usize>,
    layers: usize,
    last_rows: usize,
}

impl Gradients {
    /// Buffers for the parameters of a layout.
    pub fn new(layout: &Layout, device: &Device) -> Option<Gradients> {
        let length = layout.length;
        let chunks = (CHUNK_NUMBERS / length).clamp(1, MOST_CHUNKS);
        let room = |length: usize| Buffer::room(length, device);
        Some(Gradients {
            length,
            parts: room(chunks * length)?,
            chunks,
            gradient: room(length)?,
            squares: room(SQUARES)?,
            norm: room(1)?,
            transposed: room(length)?,
            matrices: matrices(layout, device)?,
            device: device.clone(),
        })
    }

    /// Chunks of rows that there is room for.
    pub fn most_chunks(&self) -> usize {
        self.chunks
    }

    /// The parameters with every matrix transposed, as [`Gradients::transpose`] left them.
    pub fn transposed(&self) -> &Buffer {
        &self.transposed
    }

    /// Transposes all matrices, in one dispatch.
    pub fn transpose(&self, parameters: &Buffer) {
        let (cubes, group) = cubes(parameters, self.length / 4);
        let (table, count) = &self.matrices;
        let output = self.transposed.arg();
        transposed::launch(parameters.client(), cubes, group, parameters.arg(), output, table.arg(), *count);
    }

    /// The gradient of the parameters from the gradients of activations, added to what there is with `add`. Eight dispatches.
    pub fn add(&self, layout: &Layout, rows: &Rows, kept: &Activations, add: bool) {
        let (width, hidden, count, layers) = (layout.d_model, layout.hidden, rows.count, layout.layers);
        let Chunks { rows: chunk, count: chunks } = rows.chunks;
        let (base, block) = (layout.first_block, &layout.block);
        let place = |offset: usize| base + offset;
        let of = |width: usize| count * width;
        let kinds = [
            Kind {
                input: (&kept.normed, 0, of(2 * width)),
                inner: width,
                slope: (&kept.by_qkv, 0, of(3 * width)),
                columns: 3 * width,
                weights: place(block.qkv),
                bias: block.qkv_bias.map(place),
                layers,
                last_rows: count,
            },
            Kind {
                input: (&kept.attended, 0, of(width)),
                inner: width,
                slope: (&kept.by_stream, of(width), of(2 * width)),
                columns: width,
                weights: place(block.out),
                bias: block.out_bias.map(place),
                layers,
                last_rows: rows.wanted,
            },
            Kind {
                input: (&kept.normed, of(width), of(2 * width)),
                inner: width,
                slope: (&kept.by_hidden, 0, of(hidden)),
                columns: hidden,
                weights: place(block.up),
                bias: Some(place(block.up_bias)),
                layers,
                last_rows: rows.wanted,
            },
            Kind {
                input: (&kept.hidden, 0, of(hidden)),
                inner: hidden,
                slope: (&kept.by_stream, of(2 * width), of(2 * width)),
                columns: width,
                weights: place(block.down),
                bias: Some(place(block.down_bias)),
                layers,
                last_rows: rows.wanted,
            },
            Kind {
                input: (&kept.normed, 2 * layers * of(width), 0),
                inner: width,
                slope: (&kept.logits, 0, 0),
                columns: layout.vocabulary,
                weights: layout.head,
                bias: layout.head_bias,
                layers: 1,
                last_rows: rows.wanted,
            },
        ];
        kinds.iter().for_each(|kind| self.weights(kind, layout, count, (chunk, chunks)));
        self.gains(layout, rows, kept);
        self.embeddings(layout, rows, kept);
        let (cubes, group) = cubes(&self.parts, self.length / 4);
        let (parts, gradient) = (self.parts.arg(), self.gradient.arg());
        gather::launch(self.parts.client(), cubes, group, parts, gradient, chunks, self.length / 4, add);
    }

    fn weights(&self, kind: &Kind, layout: &Layout, rows: usize, (chunk, chunks): (usize, usize)) {
        let four = |number: usize| number / 4;
        let (inner, columns, layers) = (four(kind.inner), four(kind.columns), kind.layers);
        let each = each_of(columns);
        let (cubes, group) = cubes(&self.parts, chunks * layers * inner / 2 * columns / each);
        let ((input, first, stride), (slope, slope_first, slope_stride)) = (kind.input, kind.slope);
        let at = WeightPlacesLaunch::new(
            rows,
            kind.last_rows,
            chunk,
            chunks,
            layers,
            inner,
            columns,
            four(first),
            four(stride),
            four(slope_first),
            four(slope_stride),
            four(kind.weights),
            four(kind.bias.unwrap_or(0)),
            four(layout.block_length),
            four(self.length),
        );
        let (client, parts) = (self.parts.client(), self.parts.arg());
        weight_gradient::launch(client, cubes, group, input.arg(), slope.arg(), parts, at, kind.bias.is_some(), each);
    }

    fn gains(&self, layout: &Layout, rows: &Rows, kept: &Activations) {
        let Chunks { rows: chunk, count: chunks } = rows.chunks;
        let (width, norms, base) = (layout.d_model / 4, 2 * layout.layers + 1, layout.first_block);
        let (cubes, group) = cubes(&self.parts, chunks * norms * width);
        let attention = (base + layout.block.attention_norm_gamma) / 4;
        let hidden = (base + layout.block.hidden_norm_gamma) / 4;
        let (last, block) = (layout.norm_gamma / 4, layout.block_length / 4);
        let (all, wanted, length) = (rows.count, rows.wanted, self.length / 4);
        let at = GainPlacesLaunch::new(all, wanted, chunk, chunks, norms, width, attention, hidden, last, block, length);
        let (stream, moments, by_normed) = (kept.stream.arg(), kept.moments.arg(), kept.by_normed.arg());
        gain_gradient::launch(self.parts.client(), cubes, group, stream, moments, by_normed, self.parts.arg(), at);
    }

    fn embeddings(&self, layout: &Layout, rows: &Rows, kept: &Activations) {
        let (width, symbols, positions) = (layout.d_model / 4, layout.vocabulary, layout.context_length);
        let chunks = rows.chunks.count;
        let (cubes, group) = cubes(&self.parts, chunks * (symbols + positions) * width);
        let (by_symbol, by_position) = (layout.tokens / 4, layout.positions / 4);
        let at = EmbeddingPlacesLaunch::new(chunks, width, symbols, positions, by_symbol, by_position, self.length / 4);
        let (by_stream, lists, parts) = (kept.by_stream.arg(), rows.lists.arg(), self.parts.arg());
        embedding_gradient::launch(self.parts.client(), cubes, group, by_stream, lists, parts, at);
    }

    /// One step of Adam from a state with the gradient as it is; gives the new state. The gradient's norm before its limit goes to a
    /// slot of the report. Three dispatches.
    pub fn step(
        &self,
        state: &Buffer,
        report: &Buffer,
        settings: &OptimizerSettings,
        (learning_rate, time, slot): (f32, usize, usize),
    ) -> Option<Buffer> {
        let client = state.client();
        let (one, group) = cubes(state, SQUARES);
        squares::launch(client, one, group, self.gradient.arg(), self.squares.arg(), self.length / 4);
        let (one, group) = cubes(state, 1);
        norm::launch(client, one, group, self.squares.arg(), self.norm.arg(), report.arg(), slot);
        let after = Buffer::room(3 * self.length, &self.device)?;
        let (beta1, beta2) = (settings.beta1 as f32, settings.beta2 as f32);
        let root = (1.0 - beta2.powi(time as i32)).sqrt();
        let by = StepLaunch::new(
            self.length / 4,
            settings.max_grad_norm as f32,
            beta1,
            beta2,
            learning_rate * (root / (1.0 - beta1.powi(time as i32))),
            settings.epsilon as f32 * root,
        );
        let (cubes, group) = cubes(state, self.length / 4);
        adam::launch(client, cubes, group, state.arg(), self.gradient.arg(), self.norm.arg(), after.arg(), by);
        Some(after)
    }
}
