//! Policy losses with their gradients, the loss of a critic, and the whole loss of a public GRPO trainer.

use turnwise::credit::{Convention, EpsilonOn, Lone, Scaling, Spread, outcome_advantages};
use turnwise::learner::{TokenBatch, TrainingExample};
use turnwise::objective::{
    Aggregation, ClipBounds, KlTerm, PolicyLossSettings, RatioLevel, Surrogate, clipped_value_loss, kl_estimate, masked_mean,
    masked_sum, policy_loss as token_loss, row_weights, weighted_sum,
};
use turnwise::vocabulary::Token;

use super::case::{Case, Rows, Stop, does_not_apply};
use super::tensors::{aggregation_of, count, counts, estimator, vector};
use crate::support::{conversation, cpu, mask, matrix, number, rows};

/// What a case asks to be computed.
struct Objective {
    policy_loss: PolicyLossSettings,
    aggregation: Aggregation,
    /// The rows over whose tokens a group aggregation is taken.
    groups: Vec<usize>,
    kl: Option<KlTerm>,
}

/// What comes of a policy loss.
struct Evaluation {
    loss: f64,
    gradient: Rows,
    clip_fraction: f64,
    /// The same by rows: mean over them of the share of their trained tokens.
    clipped_rows: f64,
    dual_clip_fraction: f64,
    /// Mean of `log p_old - log p`.
    k1_to_old: f64,
    kl: f64,
}

/// The learner's loss, from given log-probabilities, of the rows in `range`; weights are those of the whole batch.
fn evaluate(case: &Case, objective: &Objective, range: std::ops::Range<usize>) -> Result<Evaluation, Stop> {
    let (log_probs, trained) = (case.rows("logp")?, case.rows("loss_mask")?);
    // Without old log-probabilities those of the current policy stand in, as constants.
    let old = if case.raw("logp_old").is_null() { log_probs.clone() } else { case.rows("logp_old")? };
    let (advantages, total) = (case.advantages()?, count(&trained));
    let device = cpu().autodiff();
    let part = |all: &Rows| matrix(&all[range.clone()], &device);
    let weights = row_weights(objective.aggregation, &counts(&trained), &objective.groups);
    let weights = vector(&weights[range.clone()], &device);
    let log_probs = part(&log_probs).require_grad();
    let mask = mask(&trained[range.clone()], &device);
    let policy = token_loss(log_probs.clone(), part(&old), part(&advantages), mask.clone(), &objective.policy_loss);
    let mut loss = weighted_sum(policy.loss, mask.clone(), weights.clone());
    let mut kl_mean = 0.0;
    if let Some(kl) = objective.kl {
        let difference = (log_probs.clone() - part(&case.rows("logp_ref")?)).mask_fill(mask.clone().bool_not(), 0.0);
        let estimate = kl_estimate(difference, kl.estimator);
        let estimate = if kl.times_ratio { estimate * policy.ratio.clone() } else { estimate };
        kl_mean = number(masked_mean(estimate.clone(), mask.clone(), total));
        loss = loss + weighted_sum(estimate, mask.clone(), weights).mul_scalar(kl.beta);
    }
    let mean = |values| number(masked_mean(values, mask.clone(), total));
    let batch = range.len();
    let by_rows = row_weights(Aggregation::SequenceMean { count_empty: true }, &counts(&trained[range]), &vec![0; batch]);
    Ok(Evaluation {
        clipped_rows: number(weighted_sum(policy.clipped.clone(), mask.clone(), vector(&by_rows, &device))),
        loss: number(loss.clone()),
        gradient: rows(log_probs.grad(&loss.backward()).expect("log-probabilities have a gradient")),
        clip_fraction: mean(policy.clipped),
        dual_clip_fraction: mean(policy.dual_clipped),
        k1_to_old: -number(masked_sum(policy.log_ratio, mask.clone())) / total.max(1) as f64,
        kl: kl_mean,
    })
}

/// One policy loss.
pub fn policy_loss(case: &Case) -> Result<(), Stop> {
    let bounds = || Ok::<_, Stop>(ClipBounds { low: case.number("clip_low")?, high: case.number("clip_high")? });
    let surrogate = if case.source.contains("cispo") {
        let low = case.optional("clip_low").map_or(0.0, |low| 1.0 - low);
        Surrogate::Cispo { low, high: 1.0 + case.number("clip_high")? }
    } else if case.source.contains("sapo") {
        Surrogate::Sapo { positive: case.number("tau_pos")?, negative: case.number("tau_neg")? }
    } else if case.source.contains("geo_mean") {
        Surrogate::GeometricMean { bounds: bounds()? }
    } else {
        Surrogate::Clip { bounds: bounds()?, dual: case.optional("dual_clip_c"), ceiling: None }
    };
    let ratio_level = match case.word("ratio_level") {
        "" | "token" => RatioLevel::Token,
        // The source takes the gradient of each token's own log-probability.
        "sequence" if case.source.contains("verl") => RatioLevel::SequenceToken,
        other => return does_not_apply(format!("unknown ratio level `{other}`")),
    };
    let batch = case.rows("logp")?.len();
    let (aggregation, groups) = if case.has("rollout_id") {
        (Aggregation::RolloutMean, case.list("rollout_id")?.iter().map(|&id| id as usize).collect())
    } else if matches!(surrogate, Surrogate::GeometricMean { .. }) {
        (Aggregation::SequenceMean { count_empty: true }, vec![0; batch])
    } else {
        aggregation_of(case, batch)?
    };
    let kl = match case.optional("beta") {
        None => None,
        Some(beta) if case.word("kl_estimator") == "ratio*k1" => {
            Some(KlTerm { estimator: estimator("k1")?, beta, times_ratio: true })
        }
        Some(beta) => Some(KlTerm { estimator: estimator(case.word("kl_estimator"))?, beta, times_ratio: false }),
    };
    let policy_loss = PolicyLossSettings { surrogate, ratio_level, log_ratio_limit: case.optional("log_ratio_clamp") };
    let result = evaluate(case, &Objective { policy_loss, aggregation, groups, kl }, 0..batch)?;
    case.close("loss", result.loss)?;
    case.close_rows("grad_logp", &result.gradient)?;
    // For GMPO the source counts what leaves the bounds on either side where A > 0, taken or not.
    if !matches!(surrogate, Surrogate::GeometricMean { .. }) {
        case.close("clipfrac", result.clip_fraction)?;
    }
    case.close("dual_clipfrac", result.dual_clip_fraction)?;
    case.close("approx_kl_k1_old_new", result.k1_to_old)?;
    case.done()
}

/// The clipped loss of a critic.
pub fn value_loss(case: &Case) -> Result<(), Stop> {
    let trained = case.rows("loss_mask")?;
    let device = cpu().autodiff();
    let tensor = |name: &str| case.rows(name).map(|rows| matrix(&rows, &device));
    let values = tensor("values_new")?.require_grad();
    let part = clipped_value_loss(values.clone(), tensor("values_old")?, tensor("returns")?, case.number("clip")?);
    let (aggregation, groups) = aggregation_of(case, trained.len())?;
    let weights = vector(&row_weights(aggregation, &counts(&trained), &groups), &device);
    let mask = mask(&trained, &device);
    let loss = weighted_sum(part.loss, mask.clone(), weights);
    case.close("loss", number(loss.clone()))?;
    case.close("clipfrac", number(masked_mean(part.clipped, mask, count(&trained))))?;
    case.close_rows("grad_values", &rows(values.grad(&loss.backward()).expect("values have a gradient")))?;
    case.done()
}

/// The whole loss of TRL's trainer: policy loss, KL, aggregation, accumulation.
pub fn trl_loss(case: &Case) -> Result<(), Stop> {
    if case.has("completion_ids") {
        return masks(case);
    }
    let loss_type = case.word("loss_type");
    let batch = case.rows("logp")?.len();
    let aggregation = match loss_type {
        "dapo" | "bnpo" | "cispo" => Aggregation::TokenMean,
        "grpo" | "sapo" => Aggregation::SequenceMean { count_empty: true },
        "dr_grpo" => Aggregation::SequenceSum { count_empty: true, length: case.number("scale_constant")? },
        "luspo" => Aggregation::SequenceSum { count_empty: true, length: 1.0 },
        "" => return does_not_apply("unknown inputs: no `loss_type`"),
        other => return does_not_apply(format!("the loss `{other}` is not offered")),
    };
    let surrogate = match loss_type {
        // Here the bound is that of the ratio itself.
        "cispo" => Surrogate::Cispo { low: 0.0, high: case.number("clip_high")? },
        // The inputs do not state the temperatures; these are the source's defaults.
        "sapo" => Surrogate::Sapo { positive: 1.0, negative: 1.05 },
        _ => {
            let bounds = ClipBounds { low: case.number("clip_low")?, high: case.number("clip_high")? };
            Surrogate::Clip { bounds, dual: None, ceiling: case.optional("delta") }
        }
    };
    let ratio_level = match case.word("ratio_level") {
        "token" => RatioLevel::Token,
        "sequence" => RatioLevel::Sequence,
        other => return does_not_apply(format!("unknown ratio level `{other}`")),
    };
    let beta = case.number("beta")?;
    let times_ratio = case.raw("kl_times_ratio") == true;
    let kl = (beta != 0.0).then_some(KlTerm { estimator: estimator("k3")?, beta, times_ratio });
    let policy_loss = PolicyLossSettings { surrogate, ratio_level, log_ratio_limit: None };
    let objective = Objective { policy_loss, aggregation, groups: vec![0; batch], kl };
    if case.has("micro_batches") {
        if loss_type == "bnpo" {
            return does_not_apply(
                "a mean of micro-batch means (`bnpo` with accumulation) is not offered: the denominator is global",
            );
        }
        let ranges = case.rows("micro_batches")?;
        let parts = ranges.iter().map(|range| evaluate(case, &objective, range[0] as usize..range[1] as usize));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let losses: Vec<f64> = parts.iter().map(|part| part.loss).collect();
        case.close_list("micro_losses", &losses)?;
        case.close("sum", losses.iter().sum())?;
        case.close_rows("grad_logp", &parts.into_iter().flat_map(|part| part.gradient).collect())?;
        return case.done();
    }
    let result = evaluate(case, &objective, 0..batch)?;
    case.close("loss", result.loss)?;
    case.close_rows("grad_logp", &result.gradient)?;
    // With one ratio and one advantage per trajectory the source counts trajectories.
    let by_rows = ratio_level == RatioLevel::Sequence && !case.raw("advantages")[0].is_array();
    case.close("clip_fraction", if by_rows { result.clipped_rows } else { result.clip_fraction })?;
    case.close("mean_kl", result.kl)?;
    case.done()
}

/// Which tokens of given conversations are trained, and the group advantages. The attention mask of the source has no
/// counterpart: padding comes last and attention is causal.
fn masks(case: &Case) -> Result<(), Stop> {
    if case.word("scale_rewards") != "group" {
        return does_not_apply("another scaling than that of the group");
    }
    let leave_out = case.raw("mask_truncated_completions") == true;
    let ends = [case.number("eos_id")?, case.number("pad_id")?];
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
            let mut example = TrainingExample::new(&trajectory, &advantages, false);
            let cut = !trajectory.tokens.last().is_some_and(|&last| ends.contains(&f64::from(last)));
            if leave_out && cut {
                // What the trainer leaves out of its batch.
                example.loss_mask.fill(false);
            }
            example
        })
        .collect();
    let batch = TokenBatch::new(&examples.iter().collect::<Vec<_>>(), &cpu());
    case.close_rows("loss_mask", &rows(batch.loss_mask.float()))?;
    case.close("num_items_in_batch", examples.iter().map(TrainingExample::trained_tokens).sum::<usize>() as f64)?;
    let (rewards, size) = (case.list("rewards")?, case.number("group_size")? as usize);
    let groups: Vec<usize> = (0..rewards.len()).map(|index| index / size).collect();
    // The inputs state epsilon alone; the source's deviation is the sample deviation.
    let spread = Spread { ddof: 1, epsilon: case.number("eps")?, epsilon_on: EpsilonOn::Deviation };
    let convention = Convention { scaling: Scaling::Group(spread), lone: Lone::Zero };
    case.close_list("advantages", &outcome_advantages(&groups, &rewards, convention))?;
    case.done()
}
