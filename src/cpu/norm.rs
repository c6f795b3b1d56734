//! Layer norm (Ba et al., arXiv:1607.06450), forward and backward, row by row.

use pulp::Arch;

use super::vector::{sum, sum2};

/// As in burn's layer norm.
const EPSILON: f32 = 1e-5;

/// What a norm keeps for its backward pass.
#[derive(Default)]
pub(super) struct Normalised {
    /// Rows with mean 0 and variance 1.
    pub rows: Vec<f32>,
    /// One over the standard deviation of every row.
    pub scales: Vec<f32>,
}

/// Normalises rows; `out` is `gamma * normalised + beta`.
pub(super) fn normalise(arch: Arch, rows: &[f32], gamma: &[f32], beta: &[f32]) -> (Vec<f32>, Normalised) {
    let width = gamma.len();
    let mut out = vec![0.0; rows.len()];
    let mut kept = Normalised { rows: vec![0.0; rows.len()], scales: Vec::with_capacity(rows.len() / width) };
    arch.dispatch(
        #[inline(always)]
        || {
            let places = out.chunks_exact_mut(width).zip(kept.rows.chunks_exact_mut(width));
            for (row, (out, normal)) in rows.chunks_exact(width).zip(places) {
                let mean = sum(row, |x| x) / width as f32;
                let variance = sum(row, |x| (x - mean) * (x - mean)) / width as f32;
                let scale = 1.0 / (variance + EPSILON).sqrt();
                normal.iter_mut().zip(row).for_each(|(entry, &x)| *entry = (x - mean) * scale);
                let constants = gamma.iter().zip(beta);
                out.iter_mut().zip(&*normal).zip(constants).for_each(|((entry, &x), (&gamma, &beta))| *entry = x * gamma + beta);
                kept.scales.push(scale);
            }
        },
    );
    (out, kept)
}

/// From the slopes by what [`normalise`] gave to those by the rows, which are added to `slopes`; those by gain and shift are added to
/// theirs.
pub(super) fn normalise_backward(
    arch: Arch,
    kept: &Normalised,
    gamma: &[f32],
    by_out: &mut [f32],
    by_gamma: &mut [f32],
    by_beta: &mut [f32],
    slopes: &mut [f32],
) {
    let width = gamma.len();
    arch.dispatch(
        #[inline(always)]
        || {
            let rows = kept.rows.chunks_exact(width).zip(&kept.scales);
            for ((by_out, slopes), (normal, &scale)) in
                by_out.chunks_exact_mut(width).zip(slopes.chunks_exact_mut(width)).zip(rows)
            {
                by_gamma.iter_mut().zip(&*by_out).zip(normal).for_each(|((sum, &slope), &x)| *sum += slope * x);
                by_beta.iter_mut().zip(&*by_out).for_each(|(sum, &slope)| *sum += slope);
                by_out.iter_mut().zip(gamma).for_each(|(slope, &gamma)| *slope *= gamma);
                let mean = sum(by_out, |slope| slope) / width as f32;
                let along = sum2(by_out, normal, |slope, x| slope * x) / width as f32;
                let terms = by_out.iter().zip(normal);
                slopes.iter_mut().zip(terms).for_each(|(entry, (&slope, &x))| *entry += scale * (slope - mean - x * along));
            }
        },
    );
}
