//! Loops over slices in vectors of whatever width the processor has. No multiplication is fused with an addition here.
//!
//! [`vectorised!`] turns a function that is generic over the instruction set into one that takes an [`pulp::Arch`]; everything
//! that such a function calls must be inlined into it (`#[inline(always)]`, closures included), or it is compiled without the
//! instruction set.

use pulp::Simd;

/// Defines a function `name(arch, arguments)` whose body is compiled once for every instruction set, with `simd` the one in use.
macro_rules! vectorised {
    ($(#[$documentation:meta])* $visible:vis fn $name:ident<$set:ident>($simd:ident, $($argument:ident: $type:ty),+ $(,)?) $body:block) => {
        $(#[$documentation])*
        $visible fn $name<'a>(arch: pulp::Arch, $($argument: $type),+) {
            struct Kernel<'a> {
                $($argument: $type),+
            }
            impl<'a> pulp::WithSimd for Kernel<'a> {
                type Output = ();

                #[inline(always)]
                fn with_simd<$set: pulp::Simd>(self, $simd: $set) {
                    let Kernel { $($argument),+ } = self;
                    $body
                }
            }
            arch.dispatch(Kernel { $($argument),+ });
        }
    };
}
pub(super) use vectorised;

/// Changes every number of a slice.
#[inline(always)]
pub(super) fn each<S: Simd>(simd: S, out: &mut [f32], of: impl Fn(S::f32s) -> S::f32s) {
    let (whole, rest) = S::as_mut_simd_f32s(out);
    for entry in whole {
        *entry = of(*entry);
    }
    if !rest.is_empty() {
        let entry = of(simd.partial_load_f32s(rest));
        simd.partial_store_f32s(rest, entry);
    }
}

/// Changes every number of a slice by that of another at its place.
#[inline(always)]
pub(super) fn each_with<S: Simd>(simd: S, out: &mut [f32], by: &[f32], of: impl Fn(S::f32s, S::f32s) -> S::f32s) {
    let ((whole, rest), (by, rest_by)) = (S::as_mut_simd_f32s(out), S::as_simd_f32s(by));
    for (entry, &by) in whole.iter_mut().zip(by) {
        *entry = of(*entry, by);
    }
    if !rest.is_empty() && !rest_by.is_empty() {
        let entry = of(simd.partial_load_f32s(rest), simd.partial_load_f32s(rest_by));
        simd.partial_store_f32s(rest, entry);
    }
}

/// Changes every number of a slice by those of two others at its place.
#[inline(always)]
pub(super) fn each_with_two<S: Simd>(
    simd: S,
    out: &mut [f32],
    (a, b): (&[f32], &[f32]),
    of: impl Fn(S::f32s, S::f32s, S::f32s) -> S::f32s,
) {
    let (whole, rest) = S::as_mut_simd_f32s(out);
    let ((a, rest_a), (b, rest_b)) = (S::as_simd_f32s(a), S::as_simd_f32s(b));
    for ((entry, &a), &b) in whole.iter_mut().zip(a).zip(b) {
        *entry = of(*entry, a, b);
    }
    if !rest.is_empty() && !rest_a.is_empty() && !rest_b.is_empty() {
        let entry = of(simd.partial_load_f32s(rest), simd.partial_load_f32s(rest_a), simd.partial_load_f32s(rest_b));
        simd.partial_store_f32s(rest, entry);
    }
}

/// The sum of `of` over two slices of the same length; `of(0, 0)` must be 0.
#[inline(always)]
pub(super) fn sum_of<S: Simd>(simd: S, a: &[f32], b: &[f32], of: impl Fn(S::f32s, S::f32s) -> S::f32s) -> f32 {
    let ((whole_a, rest_a), (whole_b, rest_b)) = (S::as_simd_f32s(a), S::as_simd_f32s(b));
    let mut sums = simd.splat_f32s(0.0);
    for (&a, &b) in whole_a.iter().zip(whole_b) {
        sums = simd.add_f32s(sums, of(a, b));
    }
    if !rest_a.is_empty() {
        sums = simd.add_f32s(sums, of(simd.partial_load_f32s(rest_a), simd.partial_load_f32s(rest_b)));
    }
    simd.reduce_sum_f32s(sums)
}

/// The product of two vectors of the same length.
#[inline(always)]
pub(super) fn dot<S: Simd>(simd: S, a: &[f32], b: &[f32]) -> f32 {
    sum_of(
        simd,
        a,
        b,
        #[inline(always)]
        |a, b| simd.mul_f32s(a, b),
    )
}

/// The sum of a slice.
#[inline(always)]
pub(super) fn sum<S: Simd>(simd: S, values: &[f32]) -> f32 {
    sum_of(
        simd,
        values,
        values,
        #[inline(always)]
        |value, _| value,
    )
}

/// The largest number of a slice, whichever it is where one is NaN; negative infinity where there is none.
#[inline(always)]
pub(super) fn largest<S: Simd>(simd: S, values: &[f32]) -> f32 {
    let (whole, rest) = S::as_simd_f32s(values);
    let mut most = simd.splat_f32s(f32::NEG_INFINITY);
    for &value in whole {
        most = simd.max_f32s(most, value);
    }
    rest.iter().copied().fold(simd.reduce_max_f32s(most), f32::max)
}

/// `row + other`, in place.
#[inline(always)]
pub(super) fn add<S: Simd>(simd: S, row: &mut [f32], other: &[f32]) {
    each_with(
        simd,
        row,
        other,
        #[inline(always)]
        |entry, other| simd.add_f32s(entry, other),
    );
}

/// `row + factor * other`, in place.
#[inline(always)]
pub(super) fn add_times<S: Simd>(simd: S, row: &mut [f32], factor: f32, other: &[f32]) {
    let factor = simd.splat_f32s(factor);
    each_with(
        simd,
        row,
        other,
        #[inline(always)]
        |entry, other| simd.add_f32s(entry, simd.mul_f32s(factor, other)),
    );
}

/// `factor * row`, in place.
#[inline(always)]
pub(super) fn scale<S: Simd>(simd: S, row: &mut [f32], factor: f32) {
    let factor = simd.splat_f32s(factor);
    each(
        simd,
        row,
        #[inline(always)]
        |entry| simd.mul_f32s(entry, factor),
    );
}

vectorised! {
    /// Adds the rows of a matrix to `out`.
    pub(super) fn add_rows<S>(simd, rows: &'a [f32], out: &'a mut [f32]) {
        for row in rows.chunks_exact(out.len()) {
            add(simd, out, row);
        }
    }
}

vectorised! {
    /// Adds `bias` to every row of a matrix.
    pub(super) fn add_bias<S>(simd, rows: &'a mut [f32], bias: &'a [f32]) {
        for row in rows.chunks_exact_mut(bias.len()) {
            add(simd, row, bias);
        }
    }
}

vectorised! {
    /// `max(x, 0)`, in place; NaN stays.
    pub(super) fn relu<S>(simd, values: &'a mut [f32]) {
        let zero = simd.splat_f32s(0.0);
        each(simd, values, #[inline(always)] |value| simd.select_f32s(simd.less_than_f32s(value, zero), zero, value));
    }
}

vectorised! {
    /// Keeps slopes where [`relu`] gave more than 0.
    pub(super) fn relu_backward<S>(simd, slopes: &'a mut [f32], values: &'a [f32]) {
        let zero = simd.splat_f32s(0.0);
        each_with(
            simd,
            slopes,
            values,
            #[inline(always)]
            |slope, value| simd.select_f32s(simd.less_than_f32s(zero, value), slope, zero),
        );
    }
}

/// `e^x` within two units in the last place; 0 below -87, infinity above 88, NaN of NaN.
///
/// `e^x = 2^n e^r` with `|r| <= ln 2 / 2`, `ln 2` in two parts (Cody and Waite, "Software manual for the elementary functions", 1980), and
/// the Taylor polynomial of degree 7 for `e^r`.
#[inline(always)]
pub(super) fn exp<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    // Adding it leaves the nearest whole number in the low bits.
    let round = simd.splat_f32s(12_582_912.0);
    let shifted = simd.add_f32s(simd.mul_f32s(x, simd.splat_f32s(std::f32::consts::LOG2_E)), round);
    let n = simd.sub_f32s(shifted, round);
    let high = simd.mul_f32s(n, simd.splat_f32s(0.693_359_4));
    let low = simd.mul_f32s(n, simd.splat_f32s(2.121_944_4e-4));
    let r = simd.add_f32s(simd.sub_f32s(x, high), low);
    // Step by step, for the same reason as in the tile of a product.
    let power = horner(simd, simd.splat_f32s(1.0 / 5040.0), r, 1.0 / 720.0);
    let power = horner(simd, power, r, 1.0 / 120.0);
    let power = horner(simd, power, r, 1.0 / 24.0);
    let power = horner(simd, power, r, 1.0 / 6.0);
    let power = horner(simd, power, r, 0.5);
    let power = horner(simd, horner(simd, power, r, 1.0), r, 1.0);
    let exponent = simd.wrapping_dyn_shl_u32s(simd.transmute_u32s_f32s(shifted), simd.splat_u32s(23));
    let scaled = simd.transmute_f32s_u32s(simd.add_u32s(simd.transmute_u32s_f32s(power), exponent));
    let known = simd.select_f32s(simd.less_than_f32s(x, simd.splat_f32s(-87.0)), simd.splat_f32s(0.0), scaled);
    let known = simd.select_f32s(simd.less_than_f32s(simd.splat_f32s(88.0), x), simd.splat_f32s(f32::INFINITY), known);
    simd.select_f32s(simd.equal_f32s(x, x), known, x)
}

/// `power * r + next`.
#[inline(always)]
fn horner<S: Simd>(simd: S, power: S::f32s, r: S::f32s, next: f32) -> S::f32s {
    simd.add_f32s(simd.mul_f32s(power, r), simd.splat_f32s(next))
}

/// `row = e^(factor * row - shift)`, in place; gives the sum of it.
#[inline(always)]
pub(super) fn exp_of<S: Simd>(simd: S, row: &mut [f32], factor: f32, shift: f32) -> f32 {
    let (factor, shift) = (simd.splat_f32s(factor), simd.splat_f32s(shift));
    each(
        simd,
        row,
        #[inline(always)]
        |entry| exp(simd, simd.sub_f32s(simd.mul_f32s(factor, entry), shift)),
    );
    sum(simd, row)
}

#[cfg(test)]
mod tests {
    use super::*;
    use pulp::Arch;

    vectorised! {
        fn exponentials<S>(simd, values: &'a mut [f32]) {
            each(simd, values, #[inline(always)] |x| exp(simd, x));
        }
    }

    vectorised! {
        fn figures<S>(simd, values: &'a [f32], out: &'a mut [f32; 3]) {
            *out = [sum(simd, values), sum_of(simd, values, values, #[inline(always)] |a, b| simd.mul_f32s(a, b)), largest(simd, values)];
        }
    }

    #[test]
    fn the_exponential() {
        let arguments: Vec<f32> = (-87_000..=88_000).map(|step| step as f32 / 1000.0).collect();
        let mut values = arguments.clone();
        exponentials(Arch::new(), &mut values);
        let off = |(&x, &value): (&f32, &f32)| ((f64::from(value) - f64::from(x).exp()) / f64::from(x).exp()).abs();
        let worst = arguments.iter().zip(&values).map(off).fold(0.0, f64::max);
        assert!(worst < 2.5e-7, "{worst}");
        let mut special = [0.0, -1e9, -88.0, 89.0, f32::NEG_INFINITY, f32::INFINITY, f32::NAN];
        exponentials(Arch::new(), &mut special);
        assert_eq!(special[..6], [1.0, 0.0, 0.0, f32::INFINITY, 0.0, f32::INFINITY]);
        assert!(special[6].is_nan());
    }

    #[test]
    fn sums_of_any_length() {
        for length in 0..40 {
            let values: Vec<f32> = (0..length).map(|i| i as f32).collect();
            let mut found = [0.0; 3];
            figures(Arch::new(), &values, &mut found);
            let squares: i32 = (0..length).map(|i| i * i).sum();
            let most = if length == 0 { f32::NEG_INFINITY } else { (length - 1) as f32 };
            assert_eq!(found, [(0..length).sum::<i32>() as f32, squares as f32, most]);
        }
    }

    #[test]
    fn rows_of_any_width() {
        for width in 1..20 {
            let rows: Vec<f32> = (0..3 * width).map(|i| i as f32 - 5.0).collect();
            let mut total = vec![1.0; width];
            add_rows(Arch::new(), &rows, &mut total);
            assert!((0..width).all(|i| total[i] == 1.0 + (0..3).map(|row| rows[row * width + i]).sum::<f32>()));
            let mut moved = rows.clone();
            add_bias(Arch::new(), &mut moved, &total);
            assert!((0..3 * width).all(|i| moved[i] == rows[i] + total[i % width]));
            let mut cut = rows.clone();
            relu(Arch::new(), &mut cut);
            assert!(cut.iter().zip(&rows).all(|(cut, value)| *cut == value.max(0.0)));
            let mut slopes = vec![2.0; 3 * width];
            relu_backward(Arch::new(), &mut slopes, &cut);
            assert!(slopes.iter().zip(&rows).all(|(slope, &value)| *slope == if value > 0.0 { 2.0 } else { 0.0 }));
        }
        let mut broken = [f32::NAN, -1.0];
        relu(Arch::new(), &mut broken);
        assert!(broken[0].is_nan() && broken[1] == 0.0);
    }
}
