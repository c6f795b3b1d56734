//! Causal attention (Vaswani et al., arXiv:1706.03762, eq. 1) along the paths of trajectories through their rows, forward and backward.
//!
//! A strip of queries meets the keys up to its last query only: what lies above the diagonal of the scores is not computed.

use pulp::{Arch, Simd, WithSimd};

use super::product::{Into, Matrix, Panels, Strip, TALL, Target, multiply_strip, pack_strip};
use super::vector::{dot, each_with, exp_of, largest, scale};

/// What one trajectory asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span<'a> {
    /// Its rows, from the first token on.
    pub path: &'a [usize],
    /// Its first query among all queries, and the position of each of its queries on the path, in rising order.
    pub first_query: usize,
    pub positions: Vec<usize>,
}

impl Span<'_> {
    /// The lines `[length, width]` of the path, one after another, out of those of all rows.
    #[inline(always)]
    fn gather(&self, all: &[f32], width: usize, to: &mut Vec<f32>) {
        to.clear();
        self.path.iter().for_each(|&row| to.extend_from_slice(&all[row * width..(row + 1) * width]));
    }
}

/// Numbers of a row in the arrays.
#[derive(Clone, Copy)]
pub(super) struct Heads {
    pub heads: usize,
    /// Width of the residual stream, all heads together.
    pub d_model: usize,
}

impl Heads {
    fn width(self) -> usize {
        self.d_model / self.heads
    }

    fn factor(self) -> f32 {
        (self.width() as f32).powf(-0.5)
    }
}

/// The part of a head in rows that are `stride` numbers apart.
#[inline(always)]
fn part(rows: &[f32], stride: usize, first: usize, count: usize, column: usize, width: usize) -> Matrix<'_> {
    Matrix::new(rows, stride).rows(first, count).columns(column, width)
}

/// Places of the probabilities of all spans and heads: `[heads, queries, length]` of each span.
pub(super) fn size_of_probabilities(spans: &[Span], shape: Heads) -> usize {
    spans.iter().map(|span| shape.heads * span.positions.len() * span.path.len()).sum()
}

struct Forward<'a> {
    spans: &'a [Span<'a>],
    shape: Heads,
    queries: &'a [f32],
    keys_values: &'a [f32],
    probabilities: &'a mut [f32],
    out: &'a mut [f32],
}

impl WithSimd for Forward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Forward { spans, shape, queries, keys_values, mut probabilities, out } = self;
        let (width, d, factor) = (shape.width(), shape.d_model, shape.factor());
        let (mut keys, mut values, mut strip) = (Panels::default(), Panels::default(), Strip::new());
        let mut gathered = Vec::new();
        for span in spans {
            let Span { path, first_query, positions } = span;
            let length = &path.len();
            span.gather(keys_values, 2 * d, &mut gathered);
            for head in 0..shape.heads {
                let column = head * width;
                keys.pack::<S>(part(&gathered, 2 * d, 0, *length, column, width).transposed());
                values.pack::<S>(part(&gathered, 2 * d, 0, *length, d + column, width));
                let (own, rest) = std::mem::take(&mut probabilities).split_at_mut(positions.len() * length);
                probabilities = rest;
                let asked = part(queries, d, *first_query, positions.len(), column, width);
                for (start, seen) in positions.chunks(TALL).enumerate().map(|(index, seen)| (index * TALL, seen)) {
                    let (count, limit) = (seen.len(), seen[seen.len() - 1] + 1);
                    pack_strip(&mut strip, asked, start, count, width);
                    let scores = &mut own[start * length..];
                    let mut to = Target { values: scores, stride: *length, into: Into::Set };
                    multiply_strip(simd, (&strip, count), (&keys, 0), limit, &mut to);
                    for (row, &position) in own[start * length..].chunks_exact_mut(*length).zip(seen) {
                        let (row, hidden) = row.split_at_mut(position + 1);
                        softmax(simd, row, factor);
                        hidden.fill(0.0);
                    }
                    pack_strip(&mut strip, Matrix::new(own, *length), start, count, limit);
                    let place = (first_query + start) * d + column;
                    let mut to = Target { values: &mut out[place..], stride: d, into: Into::Set };
                    multiply_strip(simd, (&strip, count), (&values, 0), width, &mut to);
                }
            }
        }
    }
}

/// `softmax(factor * row)`, in place.
#[inline(always)]
pub(super) fn softmax<S: Simd>(simd: S, row: &mut [f32], factor: f32) {
    let most = largest(simd, row);
    let total = exp_of(simd, row, factor, factor * most);
    scale(simd, row, 1.0 / total);
}

/// What queries `[Q, d]` get from keys and values `[R, 2 d]`, to `out [Q, d]`; the probabilities are kept for the backward pass.
pub(super) fn attend(
    arch: Arch,
    (spans, shape): (&[Span], Heads),
    queries: &[f32],
    keys_values: &[f32],
    probabilities: &mut [f32],
    out: &mut [f32],
) {
    arch.dispatch(Forward { spans, shape, queries, keys_values, probabilities, out });
}

/// Slopes by queries `[Q, d]`, which are set, and by keys and values `[R, 2 d]`, which are added to.
pub(super) struct Slopes<'a> {
    pub queries: &'a mut [f32],
    pub keys_values: &'a mut [f32],
}

struct Backward<'a> {
    spans: &'a [Span<'a>],
    shape: Heads,
    queries: &'a [f32],
    keys_values: &'a [f32],
    probabilities: &'a [f32],
    by_out: &'a [f32],
    to: Slopes<'a>,
}

impl WithSimd for Backward<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Backward { spans, shape, queries, keys_values, mut probabilities, by_out, to } = self;
        let (width, d, factor) = (shape.width(), shape.d_model, shape.factor());
        let (mut keys, mut values, mut strip) = (Panels::default(), Panels::default(), Strip::new());
        let (mut asked, mut given, mut by_scores) = (Panels::default(), Panels::default(), Vec::new());
        let (mut gathered, mut by_gathered) = (Vec::new(), Vec::new());
        for span in spans {
            let Span { path, first_query, positions } = span;
            let length = &path.len();
            span.gather(keys_values, 2 * d, &mut gathered);
            by_gathered.resize(gathered.len(), 0.0);
            for head in 0..shape.heads {
                let column = head * width;
                keys.pack::<S>(part(&gathered, 2 * d, 0, *length, column, width));
                values.pack::<S>(part(&gathered, 2 * d, 0, *length, d + column, width).transposed());
                let slopes = part(by_out, d, *first_query, positions.len(), column, width);
                asked.pack::<S>(part(queries, d, *first_query, positions.len(), column, width));
                given.pack::<S>(slopes);
                let (own, rest) = probabilities.split_at(positions.len() * length);
                probabilities = rest;
                by_scores.resize(own.len(), 0.0);
                for (start, seen) in positions.chunks(TALL).enumerate().map(|(index, seen)| (index * TALL, seen)) {
                    let (count, limit) = (seen.len(), seen[seen.len() - 1] + 1);
                    pack_strip(&mut strip, slopes, start, count, width);
                    let rows = start * length..(start + count) * length;
                    let mut into = Target { values: &mut by_scores[rows.clone()], stride: *length, into: Into::Set };
                    multiply_strip(simd, (&strip, count), (&values, 0), limit, &mut into);
                    let lines = by_scores[rows.clone()].chunks_exact_mut(*length).zip(own[rows].chunks_exact(*length));
                    for (slopes, weights) in lines {
                        // Weights are 0 beyond the query's own position, and so are the slopes then. A strip of keys may end behind it.
                        slopes[limit..(limit + TALL).min(*length)].fill(0.0);
                        let (slopes, weights) = (&mut slopes[..limit], &weights[..limit]);
                        let mean = simd.splat_f32s(dot(simd, slopes, weights));
                        let factor = simd.splat_f32s(factor);
                        each_with(
                            simd,
                            slopes,
                            weights,
                            #[inline(always)]
                            |slope, weight| simd.mul_f32s(simd.mul_f32s(factor, weight), simd.sub_f32s(slope, mean)),
                        );
                    }
                    pack_strip(&mut strip, Matrix::new(&by_scores, *length), start, count, limit);
                    let place = (first_query + start) * d + column;
                    let mut into = Target { values: &mut to.queries[place..], stride: d, into: Into::Set };
                    multiply_strip(simd, (&strip, count), (&keys, 0), width, &mut into);
                }
                for start in (0..*length).step_by(TALL) {
                    let count = TALL.min(length - start);
                    // Earlier queries do not see these keys.
                    let from = positions.partition_point(|&position| position < start);
                    let depth = positions.len() - from;
                    for (rows, right, column) in [(&*by_scores, &asked, column), (own, &given, d + column)] {
                        let matrix = Matrix::new(rows, *length).rows(from, depth).transposed();
                        pack_strip(&mut strip, matrix, start, count, depth);
                        let place = start * 2 * d + column;
                        let mut into = Target { values: &mut by_gathered[place..], stride: 2 * d, into: Into::Set };
                        multiply_strip(simd, (&strip, count), (right, from), width, &mut into);
                    }
                }
            }
            for (line, &row) in by_gathered.chunks_exact(2 * d).zip(*path) {
                to.keys_values[row * 2 * d..(row + 1) * 2 * d].iter_mut().zip(line).for_each(|(sum, &slope)| *sum += slope);
            }
        }
    }
}

/// From the slopes by what [`attend`] gave to those by queries, keys and values.
pub(super) fn attend_backward(
    arch: Arch,
    (spans, shape): (&[Span], Heads),
    (queries, keys_values): (&[f32], &[f32]),
    probabilities: &[f32],
    by_out: &[f32],
    to: Slopes,
) {
    arch.dispatch(Backward { spans, shape, queries, keys_values, probabilities, by_out, to });
}
