//! Matrix products of small matrices.
//!
//! One register tile, [`TALL`] rows high and two vectors wide, serves every product. The right operand is packed into panels as wide
//! as a tile, so that the tile reads it from front to back; of the left one a strip of `TALL` rows is packed at a time (Goto and van
//! de Geijn, "Anatomy of high-performance matrix multiplication", 2008). Strides tell a matrix from its transpose, which costs
//! nothing but the packing.

use pulp::{Arch, Simd, WithSimd};

/// Rows of a register tile: with two vectors across, twelve sums, two vectors of the panel and one of the strip fit sixteen registers.
pub(super) const TALL: usize = 6;

/// Rows that a sum over rows takes at a time: their panel stays in the first-level cache.
const DEEP: usize = 256;

/// A matrix in a slice, by strides.
#[derive(Clone, Copy)]
pub(super) struct Matrix<'a> {
    values: &'a [f32],
    pub rows: usize,
    pub columns: usize,
    by_row: usize,
    by_column: usize,
}

impl<'a> Matrix<'a> {
    /// Rows one after another, as many as there are numbers for.
    pub fn new(values: &'a [f32], columns: usize) -> Self {
        Matrix { values, rows: values.len() / columns.max(1), columns, by_row: columns, by_column: 1 }
    }

    /// `count` columns from `first` on.
    pub fn columns(self, first: usize, count: usize) -> Self {
        Matrix { values: &self.values[(first * self.by_column).min(self.values.len())..], columns: count, ..self }
    }

    /// `count` rows from `first` on.
    pub fn rows(self, first: usize, count: usize) -> Self {
        Matrix { values: &self.values[(first * self.by_row).min(self.values.len())..], rows: count, ..self }
    }

    pub fn transposed(self) -> Self {
        Matrix { rows: self.columns, columns: self.rows, by_row: self.by_column, by_column: self.by_row, ..self }
    }
}

/// A right operand, packed: `columns / width` panels of `depth` rows, the last one filled up with zeros.
#[derive(Clone, Default)]
pub(super) struct Panels {
    values: Vec<f32>,
    pub depth: usize,
    pub columns: usize,
}

impl Panels {
    /// Packs a matrix.
    pub fn of(arch: Arch, matrix: Matrix) -> Panels {
        let mut panels = Panels::default();
        arch.dispatch(Pack { matrix, panels: &mut panels });
        panels
    }

    /// Packs a matrix in place of what was there.
    #[inline(always)]
    pub fn pack<S: Simd>(&mut self, matrix: Matrix) {
        let width = width::<S>();
        (self.depth, self.columns) = (matrix.rows, matrix.columns);
        let size = matrix.columns.div_ceil(width) * matrix.rows * width;
        if self.values.len() < size {
            self.values = vec![0.0; size];
        }
        self.values.truncate(size);
        for (index, panel) in self.values.chunks_exact_mut((matrix.rows * width).max(1)).enumerate() {
            let first = index * width;
            let count = width.min(matrix.columns - first);
            if count < width {
                panel.fill(0.0);
            }
            if matrix.by_column == 1 {
                for (row, line) in panel.chunks_exact_mut(width).enumerate() {
                    let place = row * matrix.by_row + first;
                    line[..count].copy_from_slice(&matrix.values[place..place + count]);
                }
            } else {
                for column in 0..count {
                    let own = &matrix.values[(first + column) * matrix.by_column..];
                    let own = own.iter().step_by(matrix.by_row);
                    panel.iter_mut().skip(column).step_by(width).zip(own).for_each(|(entry, &value)| *entry = value);
                }
            }
        }
    }

    /// The panel that begins with column `index * width`.
    #[inline(always)]
    fn panel<S: Simd>(&self, index: usize) -> &[[S::f32s; 2]] {
        let size = self.depth * width::<S>();
        S::as_simd_f32s(&self.values[index * size..(index + 1) * size]).0.as_chunks::<2>().0
    }
}

/// Columns of a panel.
#[inline(always)]
pub(super) fn width<S: Simd>() -> usize {
    2 * size_of::<S::f32s>() / size_of::<f32>()
}

struct Pack<'a> {
    matrix: Matrix<'a>,
    panels: &'a mut Panels,
}

impl WithSimd for Pack<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, _: S) {
        self.panels.pack::<S>(self.matrix);
    }
}

/// Some rows of a left operand, packed: entry `k` of each, side by side.
pub(super) type Strip = Vec<[f32; TALL]>;

/// Packs `count` (at most [`TALL`]) rows of a matrix from `first` on, `depth` numbers of each; the missing rows repeat the last.
#[inline(always)]
pub(super) fn pack_strip(strip: &mut Strip, matrix: Matrix, first: usize, count: usize, depth: usize) {
    strip.resize(depth, [0.0; TALL]);
    if depth == 0 {
        return;
    }
    if matrix.by_row == 1 && matrix.by_column >= TALL && count == TALL {
        let lines = matrix.values[first..].chunks(matrix.by_column);
        for (entry, line) in strip.iter_mut().zip(lines) {
            entry.copy_from_slice(&line[..TALL]);
        }
        return;
    }
    for side in 0..TALL {
        let row = &matrix.values[(first + side.min(count - 1)) * matrix.by_row..];
        if matrix.by_column == 1 {
            strip.iter_mut().zip(row).for_each(|(entry, &value)| entry[side] = value);
        } else {
            strip.iter_mut().zip(row.iter().step_by(matrix.by_column)).for_each(|(entry, &value)| entry[side] = value);
        }
    }
}

/// What becomes of what was in the result before.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Into {
    Set,
    Add,
}

/// Where a strip's product goes: rows `stride` apart, from the first number of `values` on.
pub(super) struct Target<'a> {
    pub values: &'a mut [f32],
    pub stride: usize,
    pub into: Into,
}

/// The product of `count` rows in a strip with the first `columns` columns of panels, over the strip's depth; of the panels from row
/// `from` on.
#[inline(always)]
pub(super) fn multiply_strip<S: Simd>(
    simd: S,
    (strip, count): (&[[f32; TALL]], usize),
    (panels, from): (&Panels, usize),
    columns: usize,
    to: &mut Target,
) {
    let width = width::<S>();
    for (index, first) in (0..columns).step_by(width).enumerate() {
        let sums = tile(simd, strip, &panels.panel::<S>(index)[from..]);
        let across = width.min(columns - first);
        for (row, sums) in sums.iter().enumerate().take(count) {
            let place = row * to.stride + first;
            let line = &mut to.values[place..place + across];
            if across == width {
                for (entry, &sum) in S::as_mut_simd_f32s(line).0.iter_mut().zip(sums) {
                    *entry = if to.into == Into::Add { simd.add_f32s(*entry, sum) } else { sum };
                }
            } else {
                let mut whole = [0.0; 64];
                S::as_mut_simd_f32s(&mut whole[..width]).0.copy_from_slice(sums);
                for (entry, sum) in line.iter_mut().zip(whole) {
                    *entry = if to.into == Into::Add { *entry + sum } else { sum };
                }
            }
        }
    }
}

/// A tile of sums, over the shorter of strip and panel. Its rows are named and its steps come in pairs, so that a compiler that unrolls
/// no loops keeps the sums in registers, too: a module compiled for size is half as fast again with them.
#[inline(always)]
fn tile<S: Simd>(simd: S, strip: &[[f32; TALL]], panel: &[[S::f32s; 2]]) -> [[S::f32s; 2]; TALL] {
    let depth = strip.len().min(panel.len());
    let (left, rest_left) = strip[..depth].as_chunks::<2>();
    let (right, rest_right) = panel[..depth].as_chunks::<2>();
    let [mut a, mut b, mut c, mut d, mut e, mut f] = [[simd.splat_f32s(0.0); 2]; TALL];
    for ([first, second], &[low, high]) in left.iter().zip(right) {
        a = add_times(simd, add_times(simd, a, first[0], low), second[0], high);
        b = add_times(simd, add_times(simd, b, first[1], low), second[1], high);
        c = add_times(simd, add_times(simd, c, first[2], low), second[2], high);
        d = add_times(simd, add_times(simd, d, first[3], low), second[3], high);
        e = add_times(simd, add_times(simd, e, first[4], low), second[4], high);
        f = add_times(simd, add_times(simd, f, first[5], low), second[5], high);
    }
    if let (Some(left), Some(&right)) = (rest_left.first(), rest_right.first()) {
        a = add_times(simd, a, left[0], right);
        b = add_times(simd, b, left[1], right);
        c = add_times(simd, c, left[2], right);
        d = add_times(simd, d, left[3], right);
        e = add_times(simd, e, left[4], right);
        f = add_times(simd, f, left[5], right);
    }
    [a, b, c, d, e, f]
}

/// `sums + left * right`.
#[inline(always)]
fn add_times<S: Simd>(simd: S, sums: [S::f32s; 2], left: f32, right: [S::f32s; 2]) -> [S::f32s; 2] {
    let left = simd.splat_f32s(left);
    [fused(simd, left, right[0], sums[0]), fused(simd, left, right[1], sums[1])]
}

/// `a b + c`, rounded once where the processor does that at no cost. Four lanes without such an instruction (WebAssembly) would call a
/// function for it.
#[inline(always)]
fn fused<S: Simd>(simd: S, a: S::f32s, b: S::f32s, c: S::f32s) -> S::f32s {
    if size_of::<S::f32s>() > 16 || cfg!(target_arch = "aarch64") {
        simd.mul_add_e_f32s(a, b, c)
    } else {
        simd.add_f32s(simd.mul_f32s(a, b), c)
    }
}

struct Product<'a> {
    left: Matrix<'a>,
    right: &'a Panels,
    to: Target<'a>,
}

impl WithSimd for Product<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let Product { left, right, to } = self;
        let mut strip = Strip::new();
        for first in (0..left.rows).step_by(TALL) {
            let count = TALL.min(left.rows - first);
            pack_strip(&mut strip, left, first, count, right.depth);
            let values = &mut to.values[first * to.stride..];
            multiply_strip(simd, (&strip, count), (right, 0), right.columns, &mut Target { values, ..to });
        }
    }
}

/// `left [M, K]` times `right [K, N]`, to `out [M, N]`.
pub(super) fn multiply(arch: Arch, left: Matrix, right: &Panels, out: &mut [f32], into: Into) {
    arch.dispatch(Product { left, right, to: Target { values: out, stride: right.columns, into } });
}

struct RowSum<'a> {
    left: Matrix<'a>,
    right: Matrix<'a>,
    out: &'a mut [f32],
    stride: usize,
}

impl WithSimd for RowSum<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        let RowSum { left, right, out, stride } = self;
        let (mut panels, mut strip) = (Panels::default(), Strip::new());
        for start in (0..left.rows).step_by(DEEP) {
            let deep = DEEP.min(left.rows - start);
            panels.pack::<S>(right.rows(start, deep));
            let left = left.rows(start, deep).transposed();
            for first in (0..left.rows).step_by(TALL) {
                let count = TALL.min(left.rows - first);
                pack_strip(&mut strip, left, first, count, deep);
                let mut to = Target { values: &mut out[first * stride..], stride, into: Into::Add };
                multiply_strip(simd, (&strip, count), (&panels, 0), right.columns, &mut to);
            }
        }
    }
}

/// Adds `left^T right`, the sum over rows of `left [R, K]` and `right [R, N]`, to `out [K, N]`, whose rows are `stride` apart: a
/// weight's gradient.
pub(super) fn add_row_products(arch: Arch, left: Matrix, right: Matrix, out: &mut [f32], stride: usize) {
    arch.dispatch(RowSum { left, right, out, stride });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(count: usize, seed: u32) -> Vec<f32> {
        (0..count as u32).map(|i| ((i.wrapping_mul(2_654_435_761).wrapping_add(seed) >> 8) as f32 / 8_388_608.0) - 1.0).collect()
    }

    /// Row by row in `f64`, and the bound of what rounding may cost.
    fn agrees(found: &[f32], left: impl Fn(usize, usize) -> f32, right: impl Fn(usize, usize) -> f32, [m, k, n]: [usize; 3]) {
        for row in 0..m {
            for column in 0..n {
                let sum: f64 = (0..k).map(|i| f64::from(left(row, i)) * f64::from(right(i, column))).sum();
                let off = (f64::from(found[row * n + column]) - sum).abs();
                assert!(off < 1e-5 * (k as f64).sqrt(), "[{m}, {k}, {n}] at {row}, {column}: off by {off}");
            }
        }
    }

    #[test]
    fn products_of_all_shapes() {
        let arch = Arch::new();
        for shape @ [m, k, n] in [[1, 1, 1], [7, 1, 3], [6, 16, 16], [7, 3, 17], [13, 64, 44], [70, 48, 192], [5, 300, 33]] {
            let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
            let mut out = vec![1.0; m * n];
            multiply(arch, Matrix::new(&a, k), &Panels::of(arch, Matrix::new(&b, n)), &mut out, Into::Set);
            agrees(&out, |r, i| a[r * k + i], |i, c| b[i * n + c], shape);
            multiply(arch, Matrix::new(&a, k), &Panels::of(arch, Matrix::new(&b, n)), &mut out, Into::Add);
            agrees(&out, |r, i| 2.0 * a[r * k + i], |i, c| b[i * n + c], shape);
            // Both operands transposed: the numbers of a are read as [K, M], those of b as [N, K].
            let panels = Panels::of(arch, Matrix::new(&b, k).transposed());
            multiply(arch, Matrix::new(&a, m).transposed(), &panels, &mut out, Into::Set);
            agrees(&out, |r, i| a[i * m + r], |i, c| b[c * k + i], shape);
        }
    }

    #[test]
    fn sums_over_more_rows_than_a_panel_holds() {
        for shape @ [k, rows, n] in [[5, 2, 9], [64, 700, 44], [12, 256, 64]] {
            let (x, dy) = (numbers(rows * k, 3), numbers(rows * n, 4));
            let mut out = vec![0.0; k * n];
            add_row_products(Arch::new(), Matrix::new(&x, k), Matrix::new(&dy, n), &mut out, n);
            agrees(&out, |r, i| x[i * k + r], |i, c| dy[i * n + c], shape);
        }
    }
}
