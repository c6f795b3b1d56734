//! From logits to log-probabilities of the tokens taken and entropies, and back. As in [`crate::policy::log_distribution`]: temperature
//! divides logits, and forbidden tokens get a logit so low that their probability is exactly 0.

use pulp::Arch;

use super::vector::{exp, largest, sum, sum2};
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
    let mut probabilities = vec![0.0; logits.len()];
    let mut entropies = Vec::with_capacity(logits.len() / vocabulary);
    arch.dispatch(
        #[inline(always)]
        || {
            let rows = logits.chunks_exact_mut(vocabulary).zip(probabilities.chunks_exact_mut(vocabulary));
            for (index, (row, weights)) in rows.enumerate() {
                restrict(row, temperature, legal.get(index).copied());
                log_softmax(row, weights);
                entropies.push(-sum2(weights, row, |weight, log_prob| weight * log_prob));
            }
        },
    );
    Distributions { probabilities, log_probs: logits, entropies }
}

/// Divides logits by the temperature and bars what is not legal.
#[inline(always)]
pub(super) fn restrict(logits: &mut [f32], temperature: f32, legal: Option<TokenSet>) {
    if temperature != 1.0 {
        logits.iter_mut().for_each(|logit| *logit /= temperature);
    }
    if let Some(legal) = legal.filter(|&legal| legal != TokenSet::ALL) {
        let barred = |&(token, _): &(usize, &mut f32)| !legal.contains(token as u8);
        logits.iter_mut().enumerate().filter(barred).for_each(|(_, logit)| *logit += FORBIDDEN);
    }
}

/// Logits become log-probabilities; `weights` are the probabilities.
#[inline(always)]
pub(super) fn log_softmax(row: &mut [f32], weights: &mut [f32]) {
    let most = largest(row);
    weights.iter_mut().zip(&*row).for_each(|(weight, &logit)| *weight = exp(logit - most));
    let total = sum(weights, |weight| weight);
    let (share, shift) = (1.0 / total, most + total.ln());
    weights.iter_mut().for_each(|weight| *weight *= share);
    row.iter_mut().for_each(|logit| *logit -= shift);
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
    let mut by_logits = vec![0.0; kept.log_probs.len()];
    arch.dispatch(
        #[inline(always)]
        || {
            for (place, (&(all, undecided), &entropy)) in sums.iter().zip(&kept.entropies).enumerate() {
                let own = place * vocabulary..(place + 1) * vocabulary;
                let known = kept.probabilities[own.clone()].iter().zip(&kept.log_probs[own.clone()]);
                for (slope, (&weight, &log_prob)) in by_logits[own].iter_mut().zip(known) {
                    *slope = -weight * (all + undecided * (log_prob + entropy)) / temperature;
                }
            }
        },
    );
    for (&Taken { place, token }, (by_log_prob, _)) in taken.iter().zip(slopes) {
        by_logits[place * vocabulary + usize::from(token)] += by_log_prob / temperature;
    }
    by_logits
}
