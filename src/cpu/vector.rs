//! Sums and exponentials of slices, written so that the compiler makes vector instructions of them, whatever the processor: eight
//! lanes side by side, no multiplication fused with an addition. The same order and rounding everywhere.

/// Numbers that are summed side by side.
const LANES: usize = 8;

/// The sum of `of` over two slices of the same length.
#[inline(always)]
pub(super) fn sum2(a: &[f32], b: &[f32], of: impl Fn(f32, f32) -> f32) -> f32 {
    let ((a, rest_a), (b, rest_b)) = (a.as_chunks::<LANES>(), b.as_chunks::<LANES>());
    let mut lanes = [0.0; LANES];
    for (a, b) in a.iter().zip(b) {
        for lane in 0..LANES {
            lanes[lane] += of(a[lane], b[lane]);
        }
    }
    rest_a.iter().zip(rest_b).for_each(|(&a, &b)| lanes[0] += of(a, b));
    lanes.iter().sum()
}

/// The sum of `of` over a slice.
#[inline(always)]
pub(super) fn sum(values: &[f32], of: impl Fn(f32) -> f32) -> f32 {
    sum2(values, values, |value, _| of(value))
}

/// The largest number of a slice; NaN where one is.
#[inline(always)]
pub(super) fn largest(values: &[f32]) -> f32 {
    let (chunks, rest) = values.as_chunks::<LANES>();
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let larger = |most: f32, value: f32| if value <= most { most } else { value };
    for chunk in chunks {
        for lane in 0..LANES {
            lanes[lane] = larger(lanes[lane], chunk[lane]);
        }
    }
    lanes.iter().chain(rest).copied().fold(f32::NEG_INFINITY, larger)
}

/// Adds the rows of a matrix to `out`.
#[inline(always)]
pub(super) fn add_rows(rows: &[f32], out: &mut [f32]) {
    for row in rows.chunks_exact(out.len()) {
        out.iter_mut().zip(row).for_each(|(sum, &value)| *sum += value);
    }
}

/// `e^x` within two units in the last place; 0 below -87, infinity above 88, NaN of NaN.
///
/// `e^x = 2^n e^r` with `|r| <= ln 2 / 2`, `ln 2` in two parts (Cody and Waite, "Software manual for the elementary functions", 1980), and
/// the Taylor polynomial of degree 7 for `e^r`.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    // Adding it leaves the nearest whole number in the low bits.
    const ROUND: f32 = 12_582_912.0;
    let shifted = x * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = x - n * 0.693_359_4 + n * 2.121_944_4e-4;
    let mut power = 1.0 / 5040.0;
    for factor in [1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5, 1.0, 1.0] {
        power = power * r + factor;
    }
    let scaled = f32::from_bits(power.to_bits().wrapping_add(shifted.to_bits() << 23));
    let low = if x < -87.0 { 0.0 } else { scaled };
    let high = if x > 88.0 { f32::INFINITY } else { low };
    if x.is_nan() { x } else { high }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponential() {
        let mut worst: f64 = 0.0;
        for step in -87_000..=88_000 {
            let x = step as f32 / 1000.0;
            let exact = f64::from(x).exp();
            worst = worst.max(((f64::from(exp(x)) - exact) / exact).abs());
        }
        assert!(worst < 2.5e-7, "{worst}");
        assert_eq!((exp(0.0), exp(-1e9), exp(-88.0), exp(89.0)), (1.0, 0.0, 0.0, f32::INFINITY));
        assert_eq!((exp(f32::NEG_INFINITY), exp(f32::INFINITY)), (0.0, f32::INFINITY));
        assert!(exp(f32::NAN).is_nan());
    }

    #[test]
    fn sums_of_any_length() {
        for length in 0..40 {
            let values: Vec<f32> = (0..length).map(|i| i as f32).collect();
            assert_eq!(sum(&values, |x| x), (0..length).sum::<i32>() as f32);
            assert_eq!(largest(&values), if length == 0 { f32::NEG_INFINITY } else { (length - 1) as f32 });
        }
        assert!(largest(&[1.0, f32::NAN, 2.0]).is_nan() || largest(&[1.0, f32::NAN]).is_nan());
        let mut total = [1.0, 2.0];
        add_rows(&[1.0, 10.0, 2.0, 20.0], &mut total);
        assert_eq!(total, [4.0, 32.0]);
    }
}
