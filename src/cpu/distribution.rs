//! From logits to log-probabilities of the tokens taken and entropies, and back. As in [`crate::policy::log_distribution`]: temperature
//! divides logits, and forbidden tokens get a logit so low that their probability is exactly 0.

use pulp::Arch;

use super::vector::{exp, largest, sum, sum2};
use crate::vocabulary::TokenSet;

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
    arch.dispatch(|| {
        let rows = logits.chunks_exact_mut(vocabulary).zip(probabilities.chunks_exact_mut(vocabulary));
        for (index, (row, weights)) in rows.enumerate() {
            restrict(row, temperature, legal.get(index).copied());
            log_softmax(row, weights);
            entropies.push(-sum2(weights, row, |weight, log_prob| weight * log_prob));
        }
    });
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

/// From the slopes by the log-probability of the token taken and by the entropy, a pair a row, to those by the logits.
pub(super) fn distribute_backward(
    arch: Arch,
    kept: &Distributions,
    targets: &[u8],
    slopes: &[(f32, f32)],
    temperature: f32,
) -> Vec<f32> {
    let mut by_logits = vec![0.0; kept.log_probs.len()];
    let vocabulary = kept.log_probs.len() / targets.len().max(1);
    arch.dispatch(|| {
        let rows = by_logits.chunks_exact_mut(vocabulary.max(1));
        let known = kept.probabilities.chunks_exact(vocabulary.max(1)).zip(kept.log_probs.chunks_exact(vocabulary.max(1)));
        for (((row, (weights, log_probs)), &(taken, undecided)), (&target, &entropy)) in
            rows.zip(known).zip(slopes).zip(targets.iter().zip(&kept.entropies))
        {
            for (slope, (&weight, &log_prob)) in row.iter_mut().zip(weights.iter().zip(log_probs)) {
                *slope = -weight * (taken + undecided * (log_prob + entropy)) / temperature;
            }
            row[usize::from(target)] += taken / temperature;
        }
    });
    by_logits
}
