//! A step of Adam in one pass over the parameters.

use pulp::Simd;

use super::vector::vectorised;

/// Constants of a step of Adam (Kingma and Ba, arXiv:1412.6980, at the end of section 2).
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// What the gradient is multiplied by first: below 1 where it is clipped.
    pub scale: f32,
    pub beta1: f32,
    pub beta2: f32,
    pub epsilon: f32,
    pub learning_rate: f32,
    /// Which step it is, from 1.
    pub time: i32,
}

/// What a step changes, one number of each per parameter.
pub struct State<'a> {
    pub weights: &'a mut [f32],
    pub first: &'a mut [f32],
    pub second: &'a mut [f32],
}

/// One step with a gradient, rounded as burn's rule rounds it. All slices have the same length. Tells whether all weights after it are
/// finite.
pub fn adam(step: Step, gradient: &[f32], State { weights, first, second }: State) -> bool {
    let mut zero = 0.0;
    advance(pulp::Arch::new(), step, gradient, weights, first, second, &mut zero);
    zero == 0.0
}

vectorised! {
    fn advance<S>(
        simd,
        step: Step,
        gradient: &'a [f32],
        weights: &'a mut [f32],
        first: &'a mut [f32],
        second: &'a mut [f32],
        zero: &'a mut f32,
    ) {
        let Step { scale, beta1, beta2, epsilon, learning_rate, time } = step;
        let correction = (1.0 - beta2.powi(time)).sqrt();
        let factor = correction / (1.0 - beta1.powi(time));
        let constants = [scale, beta1, 1.0 - beta1, beta2, 1.0 - beta2, factor, epsilon * correction, learning_rate];
        let constants = constants.map(|constant| simd.splat_f32s(constant));
        let (gradients, last_gradient) = S::as_simd_f32s(gradient);
        let (weights, last_weight) = S::as_mut_simd_f32s(weights);
        let (firsts, last_first) = S::as_mut_simd_f32s(first);
        let (seconds, last_second) = S::as_mut_simd_f32s(second);
        // Every weight times 0: not a number where one of them is not finite.
        let none = simd.splat_f32s(0.0);
        let mut zeros = none;
        for (((&gradient, weight), first), second) in gradients.iter().zip(weights).zip(firsts).zip(seconds) {
            (*weight, *first, *second) = moved(simd, constants, gradient, *weight, *first, *second);
            zeros = simd.add_f32s(zeros, simd.mul_f32s(*weight, none));
        }
        if !last_gradient.is_empty() {
            let (gradient, weight) = (simd.partial_load_f32s(last_gradient), simd.partial_load_f32s(last_weight));
            let (first, second) = (simd.partial_load_f32s(last_first), simd.partial_load_f32s(last_second));
            let (weight, first, second) = moved(simd, constants, gradient, weight, first, second);
            simd.partial_store_f32s(last_weight, weight);
            zeros = simd.add_f32s(zeros, simd.mul_f32s(simd.partial_load_f32s(last_weight), none));
            simd.partial_store_f32s(last_first, first);
            simd.partial_store_f32s(last_second, second);
        }
        *zero = simd.reduce_sum_f32s(zeros);
    }
}

/// The weight and both moments after the step.
#[inline(always)]
fn moved<S: Simd>(
    simd: S,
    [scale, beta1, rest1, beta2, rest2, factor, epsilon, learning_rate]: [S::f32s; 8],
    gradient: S::f32s,
    weight: S::f32s,
    first: S::f32s,
    second: S::f32s,
) -> (S::f32s, S::f32s, S::f32s) {
    let gradient = simd.mul_f32s(gradient, scale);
    let first = simd.add_f32s(simd.mul_f32s(first, beta1), simd.mul_f32s(gradient, rest1));
    let square = simd.mul_f32s(gradient, gradient);
    let second = simd.add_f32s(simd.mul_f32s(second, beta2), simd.mul_f32s(square, rest2));
    let size = simd.add_f32s(simd.sqrt_f32s(second), epsilon);
    let change = simd.div_f32s(simd.mul_f32s(first, factor), size);
    (simd.sub_f32s(weight, simd.mul_f32s(change, learning_rate)), first, second)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Wherever it is, whatever the width of a vector.
    #[test]
    fn a_weight_that_is_not_finite_is_seen() {
        let step = Step { scale: 1.0, beta1: 0.9, beta2: 0.95, epsilon: 1e-8, learning_rate: 0.01, time: 1 };
        for length in [1, 7, 64, 67] {
            let advance = |mut weights: Vec<f32>| {
                let (mut first, mut second) = (vec![0.0; length], vec![0.0; length]);
                let state = State { weights: &mut weights, first: &mut first, second: &mut second };
                adam(step, &vec![0.5; length], state)
            };
            assert!(advance(vec![1e30; length]));
            for place in 0..length {
                for broken in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                    let mut weights = vec![1.0; length];
                    weights[place] = broken;
                    assert!(!advance(weights), "{broken} at {place} of {length}");
                }
            }
        }
    }
}
