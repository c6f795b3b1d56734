//! Policy losses with their gradients, and the whole loss of a public GRPO trainer.

use burn::tensor::Tensor;
use turnwise::credit::{Scaling, outcome_advantages};
use turnwise::learner::{TokenBatch, TrainingExample};
use turnwise::objective::{ClipBounds, KlEstimator, clipped_ratio_loss, kl_estimate, masked_mean, masked_sum};
use turnwise::vocabulary::Token;

use super::case::{Case, Rows, Stop, does_not_apply};
use super::tensors::{count, estimator, token_mean_only};
use crate::support::{conversation, cpu, mask, matrix, number, rows};

/// What the clipped loss takes, and what comes of it.
struct Evaluation {
    loss: f64,
    gradient: Rows,
    clip_fraction: f64,
    /// Mean of `log p_old - log p`.
    k1_to_old: f64,
    kl: f64,
}

/// Mean over the trained tokens, `weight` times the KL estimate included: the learner's loss, from given log-probabilities.
fn evaluate(case: &Case, kl: Option<(KlEstimator, f64)>, range: std::ops::Range<usize>) -> Result<Evaluation, Stop> {
    let (log_probs, trained) = (case.rows("logp")?, case.rows("loss_mask")?);
    // Without old log-probabilities those of the current policy stand in, as constants.
    let old = if case.raw("logp_old").is_null() { log_probs.clone() } else { case.rows("logp_old")? };
    let bounds = ClipBounds { low: case.number("clip_low")?, high: case.number("clip_high")? };
    let (advantages, total) = (case.advantages()?, count(&trained));
    let device = cpu().autodiff();
    let part = |all: &Rows| matrix(&all[range.clone()], &device);
    let log_probs = part(&log_probs).require_grad();
    let mask = mask(&trained[range.clone()], &device);
    let policy = clipped_ratio_loss(log_probs.clone(), part(&old), part(&advantages), mask.clone(), bounds);
    let mean = |values: Tensor<2>| masked_mean(values, mask.clone(), total);
    let mut loss = mean(policy.loss);
    let mut kl_mean = 0.0;
    if let Some((estimator, weight)) = kl {
        let difference = (log_probs.clone() - part(&case.rows("logp_ref")?)).mask_fill(mask.clone().bool_not(), 0.0);
        let kl = mean(kl_estimate(difference, estimator));
        kl_mean = number(kl.clone());
        loss = loss + kl.mul_scalar(weight);
    }
    Ok(Evaluation {
        loss: number(loss.clone()),
        gradient: rows(log_probs.grad(&loss.backward()).expect("log-probabilities have a gradient")),
        clip_fraction: number(mean(policy.clipped)),
        k1_to_old: -number(masked_sum(policy.log_ratio, mask.clone())) / total.max(1) as f64,
        kl: kl_mean,
    })
}

/// One policy loss.
pub fn policy_loss(case: &Case) -> Result<(), Stop> {
    for variant in ["cispo", "sapo", "gspo", "geo_mean", "per_rollout"] {
        if case.source.contains(variant) {
            return does_not_apply(format!("the loss `{variant}` is not offered yet"));
        }
    }
    if !matches!(case.word("ratio_level"), "" | "token") {
        return does_not_apply("one ratio per sequence is not offered yet");
    }
    token_mean_only(case.word("aggregation"))?;
    let (log_ratios, advantages) = (trained_log_ratios(case)?, case.advantages()?.concat());
    let trained = case.rows("loss_mask")?.concat();
    if case.optional("log_ratio_clamp").is_some_and(|bound| log_ratios.iter().any(|ratio| ratio.abs() > bound)) {
        return does_not_apply("the source clamps the log-ratio here; here it is not clamped");
    }
    if let Some(bound) = case.optional("dual_clip_c") {
        let negative = |index: usize| trained[index] != 0.0 && advantages[index] < 0.0;
        if (0..trained.len()).any(|index| negative(index) && log_ratios[index].exp() > bound) {
            return does_not_apply("dual clipping takes effect here, which is not offered");
        }
    }
    let kl = case.optional("beta").map(|beta| estimator(case.word("kl_estimator")).map(|kind| (kind, beta))).transpose()?;
    let result = evaluate(case, kl, 0..case.rows("logp")?.len())?;
    case.close("loss", result.loss)?;
    case.close_rows("grad_logp", &result.gradient)?;
    case.close("clipfrac", result.clip_fraction)?;
    case.close("dual_clipfrac", 0.0)?;
    case.close("approx_kl_k1_old_new", result.k1_to_old)?;
    case.done()
}

/// `log p - log p_old`, 0 where nothing is trained.
fn trained_log_ratios(case: &Case) -> Result<Vec<f64>, Stop> {
    let (new, old, trained) = (case.rows("logp")?.concat(), case.rows("logp_old")?.concat(), case.rows("loss_mask")?.concat());
    Ok((0..trained.len()).map(|index| if trained[index] == 0.0 { 0.0 } else { new[index] - old[index] }).collect())
}

/// The whole loss of TRL's trainer: clipped loss, KL, aggregation, accumulation.
pub fn trl_loss(case: &Case) -> Result<(), Stop> {
    if case.has("completion_ids") {
        return masks(case);
    }
    match case.word("loss_type") {
        "dapo" | "bnpo" => {}
        "" => return does_not_apply("unknown inputs: no `loss_type`"),
        "grpo" => return does_not_apply("mean over rows of the token mean (`grpo`) is not offered yet"),
        "dr_grpo" => return does_not_apply("division by a constant (`dr_grpo`) is not offered yet"),
        other => return does_not_apply(format!("the loss `{other}` is not offered yet")),
    }
    if case.word("ratio_level") != "token" {
        return does_not_apply("one ratio per sequence is not offered yet");
    }
    if case.has("delta") {
        return does_not_apply("a second bound on the unclipped branch (`delta`) is not offered");
    }
    let beta = case.number("beta")?;
    if beta != 0.0 && case.raw("kl_times_ratio") == true {
        return does_not_apply("KL weighted by the probability ratio is not offered");
    }
    let kl = (beta != 0.0).then_some((KlEstimator::K3, beta));
    if case.has("micro_batches") {
        if case.word("loss_type") != "dapo" {
            return does_not_apply(
                "a mean of micro-batch means (`bnpo` with accumulation) is not offered: the denominator is global",
            );
        }
        let ranges = case.rows("micro_batches")?;
        let parts = ranges.iter().map(|range| evaluate(case, kl, range[0] as usize..range[1] as usize));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let losses: Vec<f64> = parts.iter().map(|part| part.loss).collect();
        case.close_list("micro_losses", &losses)?;
        case.close("sum", losses.iter().sum())?;
        case.close_rows("grad_logp", &parts.into_iter().flat_map(|part| part.gradient).collect())?;
        return case.done();
    }
    let result = evaluate(case, kl, 0..case.rows("logp")?.len())?;
    case.close("loss", result.loss)?;
    case.close_rows("grad_logp", &result.gradient)?;
    case.close("clip_fraction", result.clip_fraction)?;
    case.close("mean_kl", result.kl)?;
    case.done()
}

/// Which tokens of given conversations are trained, and the group advantages. The attention mask of the source has no
/// counterpart: padding comes last and attention is causal.
fn masks(case: &Case) -> Result<(), Stop> {
    if case.raw("mask_truncated_completions") == true {
        return does_not_apply("leaving out truncated episodes is not offered yet");
    }
    if case.word("scale_rewards") != "group" {
        return does_not_apply("division by the standard deviation of the whole batch is not offered yet");
    }
    let (tokens, sampled) = (case.rows("completion_ids")?, case.rows("env_mask")?);
    let examples: Vec<TrainingExample> = tokens
        .iter()
        .zip(&sampled)
        .map(|(tokens, sampled)| {
            // A prompt of one token goes ahead: the first token of a conversation is never predicted.
            let tokens = std::iter::once(0).chain(tokens.iter().map(|&token| token as Token)).collect();
            let sampled: Vec<bool> = std::iter::once(false).chain(sampled.iter().map(|&sampled| sampled != 0.0)).collect();
            let trajectory = conversation(tokens, &sampled);
            let advantages = vec![1.0; trajectory.turns.len()];
            TrainingExample::new(&trajectory, &advantages, false)
        })
        .collect();
    let batch = TokenBatch::new(&examples.iter().collect::<Vec<_>>(), &cpu());
    case.close_rows("loss_mask", &rows(batch.loss_mask.float()))?;
    case.close("num_items_in_batch", examples.iter().map(TrainingExample::trained_tokens).sum::<usize>() as f64)?;
    let (rewards, size) = (case.list("rewards")?, case.number("group_size")? as usize);
    let groups: Vec<usize> = (0..rewards.len()).map(|index| index / size).collect();
    // The inputs state epsilon alone; the source's deviation is the sample deviation.
    let scaling = Scaling::Deviation { ddof: 1, epsilon: case.number("eps")? };
    case.close_list("advantages", &outcome_advantages(&groups, &rewards, scaling))?;
    case.done()
}
