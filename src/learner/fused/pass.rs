//! Forward and backward passes: which kernel runs on which buffers, in order.

use cubecl::calculate_cube_count_elemwise;
use cubecl::prelude::{CubeCount, CubeDim};

use super::activations::Activations;
use super::attention::{HeadsLaunch, attend, attend_backward};
use super::batch::Rows;
use super::distribution::{distribute, distribute_backward};
use super::norm::{Beside, NormPlacesLaunch, embed, normalise, normalise_backward};
use super::product::{PlacesLaunch, TILE, Then, each_of, product};
use crate::kernel::Buffer;
use crate::policy::Layout;

/// Invocations of a workgroup: two warps, or one wave.
const GROUP: usize = 64;

/// How many workgroups run `invocations` invocations.
pub(super) fn cubes(buffer: &Buffer, invocations: usize) -> (CubeCount, CubeDim) {
    let group = CubeDim::new_1d(GROUP as u32);
    (calculate_cube_count_elemwise(buffer.client(), invocations, group), group)
}

/// A pass over rows.
pub(super) struct Pass<'a> {
    pub layout: &'a Layout,
    pub rows: &'a Rows,
    pub kept: &'a Activations,
    /// For arguments that a kernel does not use.
    pub nothing: &'a Buffer,
    pub temperature: f32,
}

/// A place in a buffer, in numbers.
type At<'a> = (&'a Buffer, usize);

/// A matrix product and what follows it.
struct Product<'a> {
    rows: usize,
    input: At<'a>,
    inner: usize,
    weights: At<'a>,
    bias: Option<usize>,
    columns: usize,
    output: At<'a>,
    then: Then,
    beside: At<'a>,
}

impl Pass<'_> {
    /// Log-probabilities of the targets and entropies under `parameters`, into `outcome`; the activations stay for the backward pass.
    /// With `complete`, tokens that were not sampled get their old log-probability. `7 L + 4` dispatches.
    pub fn forward(&self, parameters: &Buffer, outcome: &Buffer, complete: bool) {
        let Pass { layout, rows, kept, .. } = self;
        let (width, hidden, count) = (layout.d_model, layout.hidden, rows.count);
        let (cubes_of_row, group) = cubes(parameters, count * width / 4);
        let (tokens, positions) = (layout.tokens / 4, layout.positions / 4);
        let client = parameters.client();
        let (table, stream) = (rows.table.arg(), kept.stream.arg());
        embed::launch(client, cubes_of_row, group, parameters.arg(), table, stream, count, width / 4, tokens, positions);
        for layer in 0..layout.layers {
            let base = layout.first_block + layer * layout.block_length;
            let block = &layout.block;
            let at = |width: usize| layer * count * width;
            let point = |index: usize| (2 * layer + index) * count * width;
            let behind = self.rows_behind(layer);
            self.normalise(parameters, 2 * layer);
            self.product(Product {
                rows: count,
                input: (&kept.normed, point(0)),
                inner: width,
                weights: (parameters, base + block.qkv),
                bias: block.qkv_bias.map(|bias| base + bias),
                columns: 3 * width,
                output: (&kept.qkv, at(3 * width)),
                then: Then::Store,
                beside: (self.nothing, 0),
            });
            self.attend(layer);
            self.product(Product {
                rows: behind,
                input: (&kept.attended, at(width)),
                inner: width,
                weights: (parameters, base + block.out),
                bias: block.out_bias.map(|bias| base + bias),
                columns: width,
                output: (&kept.stream, point(1)),
                then: if self.is_last(layer) { Then::AddResidualOfWanted } else { Then::AddResidual },
                beside: (self.nothing, point(0)),
            });
            self.normalise(parameters, 2 * layer + 1);
            self.product(Product {
                rows: behind,
                input: (&kept.normed, point(1)),
                inner: width,
                weights: (parameters, base + block.up),
                bias: Some(base + block.up_bias),
                columns: hidden,
                output: (&kept.hidden, at(hidden)),
                then: if layout.gelu { Then::Gelu } else { Then::Relu },
                beside: (&kept.slopes, if layout.gelu { at(hidden) } else { 0 }),
            });
            self.product(Product {
                rows: behind,
                input: (&kept.hidden, at(hidden)),
                inner: hidden,
                weights: (parameters, base + block.down),
                bias: Some(base + block.down_bias),
                columns: width,
                output: (&kept.stream, point(2)),
                then: Then::AddResidual,
                beside: (self.nothing, point(1)),
            });
        }
        self.normalise(parameters, 2 * layout.layers);
        self.product(Product {
            rows: rows.wanted,
            input: (&kept.normed, 2 * layout.layers * count * width),
            inner: width,
            weights: (parameters, layout.head),
            bias: layout.head_bias,
            columns: layout.vocabulary,
            output: (&kept.logits, 0),
            then: Then::Store,
            beside: (self.nothing, 0),
        });
        let wanted = rows.wanted;
        let (cubes, group) = cubes(parameters, wanted);
        let (size, grammar, old) = (layout.vocabulary, rows.grammar, rows.old.arg());
        let (logits, table, outcome) = (kept.logits.arg(), rows.wanted_table.arg(), outcome.arg());
        distribute::launch(client, cubes, group, logits, table, outcome, old, wanted, size, self.temperature, grammar, complete);
    }

    /// From the slopes by log-probabilities (in the activations) and by the entropy of a sampled token to the gradients of all
    /// activations. `weights` holds the parameters with every matrix transposed. `7 L + 3` dispatches.
    pub fn backward(&self, parameters: &Buffer, weights: &Buffer, by_entropy: f32) {
        let Pass { layout, rows, kept, .. } = self;
        let (width, hidden, count) = (layout.d_model, layout.hidden, rows.count);
        let wanted = rows.wanted;
        let (cubes, group) = cubes(parameters, wanted * layout.vocabulary);
        let (size, heat) = (layout.vocabulary, self.temperature);
        let (logs, table, outcome) = (kept.logits.arg(), rows.wanted_table.arg(), kept.outcome.arg());
        distribute_backward::launch(parameters.client(), cubes, group, logs, table, outcome, wanted, size, heat, by_entropy);
        let plain = |rows, input, inner, place, columns, output| {
            let (weights, beside) = ((weights, place), (self.nothing, 0));
            self.product(Product { rows, input, inner, weights, bias: None, columns, output, then: Then::Store, beside });
        };
        let last = 2 * layout.layers;
        plain(wanted, (&kept.logits, 0), layout.vocabulary, layout.head, width, (&kept.by_normed, last * count * width));
        self.normalise_backward(parameters, last);
        for layer in (0..layout.layers).rev() {
            let base = layout.first_block + layer * layout.block_length;
            let block = &layout.block;
            let at = |width: usize| layer * count * width;
            let point = |index: usize| (2 * layer + index) * count * width;
            let behind = self.rows_behind(layer);
            self.product(Product {
                rows: behind,
                input: (&kept.by_stream, point(2)),
                inner: width,
                weights: (weights, base + block.down),
                bias: None,
                columns: hidden,
                output: (&kept.by_hidden, at(hidden)),
                then: if layout.gelu { Then::GateGelu } else { Then::GateRelu },
                beside: (if layout.gelu { &kept.slopes } else { &kept.hidden }, at(hidden)),
            });
            plain(behind, (&kept.by_hidden, at(hidden)), hidden, base + block.up, width, (&kept.by_normed, point(1)));
            self.normalise_backward(parameters, 2 * layer + 1);
            plain(behind, (&kept.by_stream, point(1)), width, base + block.out, width, (&kept.by_attended, 0));
            self.attend_backward(layer);
            plain(count, (&kept.by_qkv, at(3 * width)), 3 * width, base + block.qkv, width, (&kept.by_normed, point(0)));
            self.normalise_backward(parameters, 2 * layer);
        }
    }

    fn is_last(&self, layer: usize) -> bool {
        layer + 1 == self.layout.layers
    }

    /// Rows that go on behind the attention of a layer: in the last one the wanted ones alone.
    fn rows_behind(&self, layer: usize) -> usize {
        if self.is_last(layer) { self.rows.wanted } else { self.rows.count }
    }

    fn product(&self, with: Product) {
        let four = |number: usize| number / 4;
        let each = each_of(four(with.columns));
        let (cubes, group) = cubes(with.input.0, with.rows / TILE * four(with.columns) / each);
        let at = PlacesLaunch::new(
            with.rows,
            four(with.inner),
            four(with.columns),
            four(with.input.1),
            four(with.weights.1),
            four(with.bias.unwrap_or(0)),
            four(with.output.1),
            four(with.beside.1),
        );
        let (input, weights) = (with.input.0.arg(), with.weights.0.arg());
        let (output, beside, wanted) = (with.output.0.arg(), with.beside.0.arg(), self.rows.wanted_table.arg());
        let (client, then, bias) = (with.input.0.client(), with.then, with.bias.is_some());
        product::launch(client, cubes, group, input, weights, output, beside, wanted, at, then, bias, each);
    }

    /// Rows at a point of the residual stream.
    fn rows_at(&self, point: usize) -> usize {
        if point == 0 { self.rows.count } else { self.rows_behind((point - 1) / 2) }
    }

    /// Gain and shift of the norm at a point of the residual stream.
    fn norm_at(&self, point: usize) -> NormPlacesLaunch {
        let layout = self.layout;
        let base = layout.first_block + point / 2 * layout.block_length;
        let (gamma, beta) = match (point == 2 * layout.layers, point.is_multiple_of(2)) {
            (true, _) => (layout.norm_gamma, layout.norm_beta),
            (_, true) => (base + layout.block.attention_norm_gamma, base + layout.block.attention_norm_beta),
            (_, false) => (base + layout.block.hidden_norm_gamma, base + layout.block.hidden_norm_beta),
        };
        NormPlacesLaunch::new(self.rows_at(point), self.rows.count, layout.d_model / 4, point, gamma / 4, beta / 4)
    }

    fn normalise(&self, parameters: &Buffer, point: usize) {
        let (cubes, group) = cubes(parameters, self.rows_at(point));
        let (stream, normed, moments) = (self.kept.stream.arg(), self.kept.normed.arg(), self.kept.moments.arg());
        normalise::launch(parameters.client(), cubes, group, parameters.arg(), stream, normed, moments, self.norm_at(point));
    }

    fn normalise_backward(&self, parameters: &Buffer, point: usize) {
        let (cubes, group) = cubes(parameters, self.rows_at(point));
        let (stream, moments) = (self.kept.stream.arg(), self.kept.moments.arg());
        let (by_normed, by_stream) = (self.kept.by_normed.arg(), self.kept.by_stream.arg());
        let beside = match 2 * self.layout.layers - point {
            0 => Beside::Nothing,
            2 => Beside::NextOfWanted,
            _ => Beside::Next,
        };
        let (client, rows, at) = (parameters.client(), self.rows.table.arg(), self.norm_at(point));
        normalise_backward::launch(
            client,
            cubes,
            group,
            parameters.arg(),
            stream,
            moments,
            by_normed,
            by_stream,
            rows,
            at,
            beside,
        );
    }

    fn heads(&self, layer: usize) -> (HeadsLaunch, usize) {
        let Layout { d_model, heads, .. } = *self.layout;
        let size = d_model / heads;
        (HeadsLaunch::new(self.rows.count, heads, d_model / 4, layer, (size as f32).powf(-0.5)), size / 4)
    }

    fn attend(&self, layer: usize) {
        let (cubes, group) = cubes(&self.kept.qkv, self.rows.count * self.layout.heads);
        let (at, size) = self.heads(layer);
        let (qkv, table) = (self.kept.qkv.arg(), self.rows.table.arg());
        let (attended, sums) = (self.kept.attended.arg(), self.kept.sums.arg());
        attend::launch(self.kept.qkv.client(), cubes, group, qkv, table, attended, sums, at, size, self.is_last(layer));
    }

    fn attend_backward(&self, layer: usize) {
        let (cubes, group) = cubes(&self.kept.qkv, self.rows.count * self.layout.heads);
        let (at, size) = self.heads(layer);
        let (qkv, table) = (self.kept.qkv.arg(), self.rows.table.arg());
        let (attended, sums) = (self.kept.attended.arg(), self.kept.sums.arg());
        let (by_attended, by_qkv, client) = (self.kept.by_attended.arg(), self.kept.by_qkv.arg(), self.kept.qkv.client());
        let wanted = self.is_last(layer);
        attend_backward::launch(client, cubes, group, qkv, table, attended, sums, by_attended, by_qkv, at, size, wanted);
    }
}

/// Whether the kernels know a policy of this shape.
pub(super) fn supports(layout: &Layout) -> bool {
    let Layout { d_model, hidden, heads, vocabulary, block, .. } = *layout;
    let sizes = d_model.is_multiple_of(8)
        && hidden.is_multiple_of(8)
        && vocabulary.is_multiple_of(4)
        && vocabulary <= 64
        && d_model.is_multiple_of(4 * heads)
        && d_model / heads <= 128;
    // The gradients of norms are written with the shift after the gain.
    let after = |gamma: usize, beta: usize| beta == gamma + d_model;
    sizes
        && after(block.attention_norm_gamma, block.attention_norm_beta)
        && after(block.hidden_norm_gamma, block.hidden_norm_beta)
        && after(layout.norm_gamma, layout.norm_beta)
}

/// Rows of a pass whose activations take at most `bytes`.
pub(super) fn most_rows(layout: &Layout, bytes: usize) -> usize {
    bytes / (4 * Activations::numbers_per_row(layout)) / TILE * TILE
}

/// Bytes that the activations of a pass may take. The largest buffer takes less than half of it: less than the 128 MiB that every
/// WebGPU device can bind.
pub(super) const ACTIVATION_BYTES: usize = 192 << 20;
