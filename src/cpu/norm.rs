//! Layer norm (Ba et al., arXiv:1607.06450), forward and backward, row by row.

use pulp::Arch;

use super::vector::{add_times, dot, each_with, each_with_two, scale, sum, vectorised};

/// As in burn's layer norm.
const EPSILON: f32 = 1e-5;

/// What a norm keeps for its backward pass.
#[derive(Default)]
pub(super) struct Normalised {
    /// Rows with mean 0 and variance 1.
    rows: Vec<f32>,
    /// One over the standard deviation of every row.
    scales: Vec<f32>,
}

/// Normalises rows; gives `gamma * normalised + beta`.
pub(super) fn normalise(arch: Arch, rows: &[f32], gamma: &[f32], beta: &[f32]) -> (Vec<f32>, Normalised) {
    let mut out = rows.to_vec();
    let mut kept = Normalised { rows: rows.to_vec(), scales: vec![0.0; rows.len() / gamma.len()] };
    forward(arch, (gamma, beta), &mut out, &mut kept);
    (out, kept)
}

vectorised! {
    /// Normalises `kept.rows` in place; `out` has the same numbers before.
    fn forward<S>(simd, gain_and_shift: (&'a [f32], &'a [f32]), out: &'a mut [f32], kept: &'a mut Normalised) {
        let (gamma, beta) = gain_and_shift;
        let width = gamma.len();
        let rows = kept.rows.chunks_exact_mut(width).zip(&mut kept.scales);
        for ((row, deviation), out) in rows.zip(out.chunks_exact_mut(width)) {
            let mean = simd.splat_f32s(sum(simd, row) / width as f32);
            each_with(simd, row, out, #[inline(always)] |_, x| simd.sub_f32s(x, mean));
            let variance = dot(simd, row, row) / width as f32;
            *deviation = 1.0 / (variance + EPSILON).sqrt();
            scale(simd, row, *deviation);
            each_with_two(simd, out, (row, gamma), #[inline(always)] |_, x, gamma| simd.mul_f32s(x, gamma));
            each_with(simd, out, beta, #[inline(always)] |entry, beta| simd.add_f32s(entry, beta));
        }
    }
}

/// Slopes that [`normalise_backward`] adds to.
pub(super) struct Slopes<'a> {
    pub by_gamma: &'a mut [f32],
    pub by_beta: &'a mut [f32],
    pub by_rows: &'a mut [f32],
}

vectorised! {
    /// From the slopes by what [`normalise`] gave, which are overwritten, to those by gain, shift and rows.
    pub(super) fn normalise_backward<S>(simd, kept: &'a Normalised, gamma: &'a [f32], by_out: &'a mut [f32], to: Slopes<'a>) {
        let width = gamma.len();
        let rows = kept.rows.chunks_exact(width).zip(&kept.scales);
        let slopes = by_out.chunks_exact_mut(width).zip(to.by_rows.chunks_exact_mut(width));
        for ((by_out, by_row), (normal, &deviation)) in slopes.zip(rows) {
            each_with_two(simd, to.by_gamma, (by_out, normal), #[inline(always)] |sum, slope, x| simd.add_f32s(sum, simd.mul_f32s(slope, x)));
            each_with(simd, to.by_beta, by_out, #[inline(always)] |sum, slope| simd.add_f32s(sum, slope));
            each_with(simd, by_out, gamma, #[inline(always)] |slope, gamma| simd.mul_f32s(slope, gamma));
            let mean = simd.splat_f32s(sum(simd, by_out) / width as f32);
            let along = dot(simd, by_out, normal) / width as f32;
            add_times(simd, by_out, -along, normal);
            let deviation = simd.splat_f32s(deviation);
            each_with(
                simd,
                by_row,
                by_out,
                #[inline(always)]
                |entry, slope| simd.add_f32s(entry, simd.mul_f32s(deviation, simd.sub_f32s(slope, mean))),
            );
        }
    }
}
