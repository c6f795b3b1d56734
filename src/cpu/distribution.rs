//! From logits to log-probabilities of the tokens taken and entropies, and back. As in [`crate::policy::log_distribution`]: temperature
//! divides logits, and forbidden tokens get a logit so low that their probability is exactly 0.

use pulp::{Arch, Simd};

use super::vector::{each, each_with, exp_of, largest, scale, sum_of, vectorised};
use crate::vocabulary::{Token, TokenSet};

/// Added to the logits of tokens that the grammar forbids.
const FORBIDDEN: f32 = -1e9;

/// What is known of a distribution over the vocabulary.
#[derive(Default)]
pub(super) struct Distributions {
    pub probabilities: Vec<f32>,
    pub log_probs: Vec<f32>,
    /// In nats.
    pub entropies: Vec<f32>,
}

/// Turns logits `[W, V]` into log-probabilities, in place, with probabilities `[W, V]` and entropies `[W]`.
pub(super) fn distribute(
    arch: Arch,
    mut logits: Vec<f32>,
    vocabulary: usize,
    temperature: f32,
    legal: &[TokenSet],
) -> Distributions {
    let count = logits.len() / vocabulary;
    for (index, row) in logits.chunks_exact_mut(vocabulary).enumerate() {
        restrict(row, temperature, legal.get(index).copied());
    }
    let mut all = Distributions { probabilities: logits.clone(), log_probs: logits, entropies: vec![0.0; count] };
    forward(arch, vocabulary, &mut all);
    all
}

vectorised! {
    fn forward<S>(simd, vocabulary: usize, all: &'a mut Distributions) {
        let rows = all.log_probs.chunks_exact_mut(vocabulary).zip(all.probabilities.chunks_exact_mut(vocabulary));
        for ((row, weights), entropy) in rows.zip(&mut all.entropies) {
            log_softmax(simd, row, weights);
            *entropy = -sum_of(simd, weights, row, #[inline(always)] |weight, log_prob| simd.mul_f32s(weight, log_prob));
        }
    }
}

/// Divides logits by the temperature and bars what is not legal.
pub(super) fn restrict(logits: &mut [f32], temperature: f32, legal: Option<TokenSet>) {
    if temperature != 1.0 {
        logits.iter_mut().for_each(|logit| *logit /= temperature);
    }
    if let Some(legal) = legal.filter(|&legal| legal != TokenSet::ALL) {
        let barred = |&(token, _): &(usize, &mut f32)| !legal.contains(token as Token);
        logits.iter_mut().enumerate().filter(barred).for_each(|(_, logit)| *logit += FORBIDDEN);
    }
}

/// Logits become log-probabilities; `weights`, the same logits before, are the probabilities.
#[inline(always)]
pub(super) fn log_softmax<S: Simd>(simd: S, row: &mut [f32], weights: &mut [f32]) {
    let most = largest(simd, row);
    let total = exp_of(simd, weights, 1.0, most);
    scale(simd, weights, 1.0 / total);
    let (most, total) = (simd.splat_f32s(most), simd.splat_f32s(total.ln()));
    each(
        simd,
        row,
        #[inline(always)]
        |logit| simd.sub_f32s(simd.sub_f32s(logit, most), total),
    );
}

/// What a loss asks of a distribution.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    /// Which distribution.
    pub place: usize,
    pub token: Token,
}

/// From the slopes by the log-probability of each token taken and by the entropy of the distribution that it came from, a pair for each,
/// to those by the logits.
pub(super) fn distribute_backward(
    arch: Arch,
    kept: &Distributions,
    taken: &[Taken],
    slopes: &[(f32, f32)],
    temperature: f32,
) -> Vec<f32> {
    let count = kept.entropies.len();
    let vocabulary = kept.log_probs.len() / count.max(1);
    let mut sums = vec![(0.0, 0.0); count];
    for (Taken { place, .. }, (by_log_prob, by_entropy)) in taken.iter().zip(slopes) {
        sums[*place].0 += by_log_prob;
        sums[*place].1 += by_entropy;
    }
    let mut by_logits = kept.log_probs.clone();
    backward(arch, (kept, &sums), temperature, &mut by_logits);
    for (&Taken { place, token }, (by_log_prob, _)) in taken.iter().zip(slopes) {
        by_logits[place * vocabulary + usize::from(token)] += by_log_prob / temperature;
    }
    by_logits
}

vectorised! {
    /// `-p (sum + by_entropy (log p + entropy)) / temperature` of every logit; `by_logits` is `log p` before.
    fn backward<S>(simd, known: (&'a Distributions, &'a [(f32, f32)]), temperature: f32, by_logits: &'a mut [f32]) {
        let (kept, sums) = known;
        let vocabulary = by_logits.len() / sums.len().max(1);
        let rows = by_logits.chunks_exact_mut(vocabulary.max(1)).zip(kept.probabilities.chunks_exact(vocabulary.max(1)));
        for ((slopes, weights), (&(all, undecided), &entropy)) in rows.zip(sums.iter().zip(&kept.entropies)) {
            let (own, each) = (simd.splat_f32s(-(all + undecided * entropy) / temperature), simd.splat_f32s(-undecided / temperature));
            each_with(
                simd,
                slopes,
                weights,
                #[inline(always)]
                |log_prob, weight| simd.mul_f32s(weight, simd.add_f32s(own, simd.mul_f32s(each, log_prob))),
            );
        }
    }
}
