//! The objective as a kernel: one invocation per trajectory, which walks its rows two or three times. The formulas, with their
//! sources, are those of [`crate::objective`]; a test holds this form to burn's derivatives of the tensor form.

use cubecl::prelude::*;

use super::batch::{FLAGS, SAMPLED, TRAINED};
use super::distribution::span;
use super::rule::{Constants, Kind, Level, Pull, Rule};

/// Figures of a trajectory: its shares of policy loss and KL; sums over tokens of entropy, k3 of KL(old || current), ratio, clipped,
/// dual clipped; the largest distance of a ratio from 1.
pub(super) const FIGURES: usize = 8;

/// The loss of a token, its slopes by the ratio and (beside that) by the log-probability, and whether the clips took effect.
#[derive(CubeType, Clone, Copy)]
struct Term {
    loss: f32,
    by_ratio: f32,
    own: f32,
    clipped: f32,
    dual_clipped: f32,
}

#[cube]
fn term(log_prob: f32, ratio: f32, advantage: f32, by: Constants, #[comptime] rule: Rule) -> Term {
    let mut loss = -ratio * advantage;
    let mut by_ratio = -advantage;
    let mut own = 0.0f32.runtime();
    let mut clipped = 0.0f32.runtime();
    let mut dual_clipped = 0.0f32.runtime();
    if comptime!(rule.kind == Kind::Clip) {
        let mut free = ratio;
        if comptime!(rule.ceiling) && ratio > by.ceiling {
            free = by.ceiling;
            by_ratio = 0.0f32.runtime();
        }
        let inside = min(max(ratio, by.low), by.high);
        let cut = inside * advantage;
        loss = -free * advantage;
        if cut < free * advantage {
            loss = -cut;
            clipped = 1.0f32.runtime();
            by_ratio = 0.0f32.runtime();
            // Below a ceiling the clipped branch can be the smaller one without being at a bound.
            if inside == ratio {
                by_ratio = -advantage;
            }
        }
        if comptime!(rule.dual) {
            let most = -by.dual * advantage;
            if most > 0.0 && loss > most {
                loss = most;
                by_ratio = 0.0f32.runtime();
                dual_clipped = 1.0f32.runtime();
            }
        }
    } else if comptime!(rule.kind == Kind::Cispo) {
        let weight = min(max(ratio, by.low), by.high);
        loss = -weight * advantage * log_prob;
        own = -weight * advantage;
        by_ratio = 0.0f32.runtime();
        if weight != ratio {
            clipped = 1.0f32.runtime();
        }
    } else if comptime!(rule.kind == Kind::Sapo) {
        let mut temperature = by.low;
        if advantage > 0.0 {
            temperature = by.high;
        }
        let gate = 1.0 / (1.0 + (-temperature * (ratio - 1.0)).exp());
        loss = -(gate * advantage * 4.0 / temperature);
        by_ratio = -(gate * (1.0 - gate) * advantage * 4.0);
    }
    Term { loss, by_ratio, own, clipped, dual_clipped }
}

/// The KL estimate from `d = log p - log p_ref`, and its slope.
#[cube]
fn pull(d: f32, #[comptime] kind: Pull) -> (f32, f32) {
    let mut value = d;
    let mut slope = 1.0f32.runtime();
    if comptime!(kind == Pull::K2) {
        value = 0.5 * d * d;
    }
    if comptime!(kind == Pull::K3 || kind == Pull::K3Plus) {
        value = (-d).exp() - 1.0 + d;
        slope = 1.0 - (-d).exp();
    }
    if comptime!(kind == Pull::K2 || kind == Pull::K1Plus || kind == Pull::K3Plus) {
        slope = d;
    }
    if comptime!(kind == Pull::Absolute) {
        value = d.abs();
        slope = 0.0f32.runtime();
        if d > 0.0 {
            slope = 1.0f32.runtime();
        }
        if d < 0.0 {
            slope = -1.0f32.runtime();
        }
    }
    (value, slope)
}

/// The log-ratio within its limit, and 1 where the limit lets the gradient pass.
#[cube]
fn limited(raw: f32, by: Constants, #[comptime] rule: Rule) -> (f32, f32) {
    let mut value = raw;
    let mut passes = 1.0f32.runtime();
    if comptime!(rule.limit) {
        value = min(max(raw, -by.limit), by.limit);
        if raw.abs() > by.limit {
            passes = 0.0f32.runtime();
        }
    }
    (value, passes)
}

/// The log-ratio bounded on the side that the sign of the advantage gives (the geometric mean's clip); unchanged for other kinds.
#[cube]
fn one_sided(log_ratio: f32, advantage: f32, by: Constants, #[comptime] rule: Rule) -> f32 {
    let mut value = log_ratio;
    if comptime!(rule.kind == Kind::GeometricMean) {
        if advantage > 0.0 {
            value = min(log_ratio, by.high);
        } else {
            value = max(log_ratio, by.low);
        }
    }
    value
}

/// Writes the slope of the loss by every trained token's log-probability to the third column of `outcome`, and the figures of every
/// trajectory to `report` from `figures` on. Where preferences are trained, trajectories come in pairs, the preferred one first.
#[cube(launch)]
pub(super) fn judge(
    rows: &[u32],
    old: &[f32],
    constants: &[f32],
    reference: &[f32],
    outcome: &mut [f32],
    report: &mut [f32],
    count: usize,
    trajectories: usize,
    figures: usize,
    by: Constants,
    #[comptime] rule: Rule,
) {
    let trajectory = ABSOLUTE_POS;
    if trajectory >= trajectories {
        terminate!();
    }
    let whole = comptime!(rule.kind == Kind::GeometricMean || rule.level != Level::Token);
    let shared = comptime!(rule.kind == Kind::GeometricMean || rule.level == Level::Sequence);
    let (first, length) = span(rows, count, trajectory);
    let weight = constants[count + trajectory];

    let mut trained = 0.0f32.runtime();
    let mut mean = 0.0f32.runtime();
    for row in first..first + length {
        if rows[FLAGS * count + row] & TRAINED != 0u32 {
            let (log_ratio, _) = limited(outcome[row] - old[row], by, rule);
            mean += one_sided(log_ratio, constants[row], by, rule);
            trained += 1.0;
        }
    }
    mean /= max(trained, 1.0);

    let mut by_preference = 0.0f32.runtime();
    let mut policy_loss = 0.0f32.runtime();
    if comptime!(rule.preference) {
        let pair = trajectory / 2 * 2;
        // log p - log p_ref, summed over the preferred trajectory less the rejected one.
        let mut margin = 0.0f32.runtime();
        #[unroll]
        for side in 0..2usize {
            let (first, length) = span(rows, count, pair + side);
            let mut sum = 0.0f32.runtime();
            for row in first..first + length {
                if rows[FLAGS * count + row] & TRAINED != 0u32 {
                    sum += outcome[row] - reference[row];
                }
            }
            if comptime!(side == 0) {
                margin += sum;
            } else {
                margin -= sum;
            }
        }
        let margin = margin * by.preference_beta;
        // -log sigmoid(margin), and its slope.
        let slope = -by.preference_beta * by.pair_share / (1.0 + margin.exp());
        by_preference = slope;
        if trajectory == pair {
            policy_loss = (max(-margin, 0.0) + (1.0 + (-(margin.abs())).exp()).ln()) * by.pair_share;
        } else {
            by_preference = -slope;
        }
    }

    let mut kl = 0.0f32.runtime();
    let mut entropy = 0.0f32.runtime();
    let mut drift = 0.0f32.runtime();
    let mut ratios = 0.0f32.runtime();
    let mut clipped = 0.0f32.runtime();
    let mut dual_clipped = 0.0f32.runtime();
    let mut deviation = 0.0f32.runtime();
    let mut through_mean = 0.0f32.runtime();
    for row in first..first + length {
        let flags = rows[FLAGS * count + row];
        if flags & SAMPLED != 0u32 {
            entropy += outcome[count + row];
        }
        if flags & TRAINED != 0u32 {
            let log_prob = outcome[row];
            let advantage = constants[row];
            let (log_ratio, passes) = limited(log_prob - old[row], by, rule);
            let mut ratio = log_ratio.exp();
            if comptime!(whole) {
                ratio = mean.exp();
            }
            let term = term(log_prob, ratio, advantage, by, rule);
            let mut by_ratio = 0.0f32.runtime();
            let mut slope = by_preference;
            if comptime!(!rule.preference) {
                policy_loss += weight * term.loss;
                by_ratio = weight * term.by_ratio;
                slope = weight * term.own;
            }
            if comptime!(rule.kl != Pull::None) {
                let (mut estimate, mut by_log_prob) = pull(log_prob - reference[row], rule.kl);
                if comptime!(rule.kl_times_ratio) {
                    by_ratio += weight * by.kl_beta * estimate;
                    estimate *= ratio;
                    by_log_prob *= ratio;
                }
                kl += weight * estimate;
                slope += weight * by.kl_beta * by_log_prob;
            }
            if comptime!(shared) {
                through_mean += by_ratio * ratio;
            } else if comptime!(rule.level == Level::SequenceToken) {
                slope += by_ratio * ratio;
            } else {
                slope += by_ratio * ratio * passes;
            }
            outcome[2 * count + row] = slope;
            drift += log_ratio.exp() - 1.0 - log_ratio;
            ratios += ratio;
            clipped += term.clipped;
            dual_clipped += term.dual_clipped;
            if one_sided(log_ratio, advantage, by, rule) != log_ratio {
                clipped += 1.0;
            }
            deviation = max(deviation, (ratio - 1.0).abs());
        }
    }
    if comptime!(shared) {
        let share = through_mean / max(trained, 1.0);
        for row in first..first + length {
            if rows[FLAGS * count + row] & TRAINED != 0u32 {
                let (log_ratio, passes) = limited(outcome[row] - old[row], by, rule);
                if one_sided(log_ratio, constants[row], by, rule) == log_ratio {
                    outcome[2 * count + row] += share * passes;
                }
            }
        }
    }
    let place = figures + trajectory * FIGURES;
    report[place] = policy_loss;
    report[place + 1] = kl;
    report[place + 2] = entropy;
    report[place + 3] = drift;
    report[place + 4] = ratios;
    report[place + 5] = clipped;
    report[place + 6] = dual_clipped;
    report[place + 7] = deviation;
}
