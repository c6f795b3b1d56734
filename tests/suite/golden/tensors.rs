//! Log-probabilities, masked statistics, aggregation and KL estimates, with gradients where the source gives them.

use burn::tensor::{Device, Tensor, TensorData};
use serde_json::Value;
use turnwise::objective::{Aggregation, KlEstimator, entropy, kl_estimate, masked_mean, row_weights, weighted_sum};
use turnwise::policy::{log_distribution, taken_log_probs};

use super::case::{Case, Rows, Stop, does_not_apply};
use crate::support::{cpu, integers, mask, matrix, number, numbers, rows};

/// Log-probabilities of tokens and entropies at a temperature, and their gradients.
pub fn log_probs(case: &Case) -> Result<(), Stop> {
    let Some(values) = cube(case.raw("logits")) else { return does_not_apply("unknown inputs: no usable `logits`") };
    let shape = [values.len(), values[0].len(), values[0][0].len()];
    let tokens = case.rows("tokens")?;
    let weights = case.rows("weights")?;
    let temperature = case.number("temperature")?;
    let device = cpu().autodiff();
    let flat: Vec<f32> = values.concat().concat().into_iter().map(|value| value as f32).collect();
    let logits = Tensor::<3>::from_data(TensorData::new(flat, shape), &device).require_grad();

    let all = log_distribution(logits.clone(), temperature, None);
    let taken = taken_log_probs(all.clone(), integers(&tokens, &device));
    let entropies = entropy(all);
    case.close_rows("logp", &rows(taken.clone()))?;
    case.close_rows("entropy", &rows(entropies.clone()))?;
    let gradients = (taken * matrix(&weights, &device)).sum().backward();
    case.close_list("grad_logits_of_weighted_logp", &numbers(logits.grad(&gradients).expect("the logits have a gradient")))?;

    let all = log_distribution(logits.clone(), temperature, None);
    let gradients = entropy(all).sum().backward();
    case.close_list("grad_logits_of_entropy_sum", &numbers(logits.grad(&gradients).expect("the logits have a gradient")))?;
    case.done()
}

fn cube(value: &Value) -> Option<Vec<Rows>> {
    serde_json::from_value::<Vec<Rows>>(value.clone()).ok().filter(|cube| cube.first().is_some_and(|rows| !rows.is_empty()))
}

/// The mean over trained positions.
pub fn masked_statistics(case: &Case) -> Result<(), Stop> {
    let (values, trained) = (case.rows("values")?, case.rows("loss_mask")?);
    let device = cpu();
    let mean = masked_mean(matrix(&values, &device), mask(&trained, &device), count(&trained));
    case.close("masked_mean", number(mean))?;
    case.done()
}

/// From token losses to one loss.
pub fn aggregation(case: &Case) -> Result<(), Stop> {
    let (values, trained) = (case.rows("token_loss")?, case.rows("loss_mask")?);
    let (aggregation, groups) = aggregation_of(case, values.len())?;
    let device = cpu().autodiff();
    let weights = row_weights(aggregation, &counts(&trained), &groups);
    if case.has("micro_batches") {
        let part = |range: std::ops::Range<usize>| {
            let mask = mask(&trained[range.clone()], &device);
            number(weighted_sum(matrix(&values[range.clone()], &device), mask, vector(&weights[range], &device)))
        };
        let ranges = case.rows("micro_batches")?;
        let parts: Vec<f64> = ranges.iter().map(|range| part(range[0] as usize..range[1] as usize)).collect();
        case.close_list("micro_losses_global_denominator", &parts)?;
        case.close("sum_global", parts.iter().sum())?;
        return case.done();
    }
    let losses = matrix(&values, &device).require_grad();
    let loss = weighted_sum(losses.clone(), mask(&trained, &device), vector(&weights, &device));
    case.close("loss", number(loss.clone()))?;
    case.close_rows("grad_token_loss", &rows(losses.grad(&loss.backward()).expect("the losses have a gradient")))?;
    case.done()
}

/// The aggregation that a case names, and the groups of its rows.
pub fn aggregation_of(case: &Case, batch: usize) -> Result<(Aggregation, Vec<usize>), Stop> {
    let aggregation = match case.word("aggregation") {
        "token-mean" => Aggregation::TokenMean,
        "token-sum" => Aggregation::TokenSum,
        "seq-mean-token-mean" => Aggregation::SequenceMean { count_empty: false },
        "seq-mean-token-mean, all rows counted" => Aggregation::SequenceMean { count_empty: true },
        "seq-mean-token-sum" => Aggregation::SequenceSum { count_empty: false, length: 1.0 },
        "seq-mean-token-sum-norm" => Aggregation::SequenceSum { count_empty: false, length: case.number("scale_constant")? },
        "constant" => Aggregation::SequenceSum { count_empty: true, length: case.number("scale_constant")? },
        "prompt-mean" => Aggregation::GroupMean,
        "" => return does_not_apply("unknown inputs: no `aggregation`"),
        other => return does_not_apply(format!("aggregation `{other}` is not offered")),
    };
    let groups =
        if case.has("group_id") { case.list("group_id")?.iter().map(|&group| group as usize).collect() } else { vec![0; batch] };
    Ok((aggregation, groups))
}

/// A vector, `[B]`.
pub fn vector(values: &[f64], device: &Device) -> Tensor<1> {
    let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
    let length = values.len();
    Tensor::from_data(TensorData::new(values, [length]), device)
}

/// Trained positions of each row.
pub fn counts(trained: &[Vec<f64>]) -> Vec<usize> {
    trained.iter().map(|row| row.iter().filter(|&&trained| trained != 0.0).count()).collect()
}

/// How many positions are trained.
pub fn count(trained: &[Vec<f64>]) -> usize {
    trained.iter().flatten().filter(|&&trained| trained != 0.0).count()
}

/// Largest magnitude of a log-probability difference and of an estimate that the sources leave as they are.
const CLAMPS: (f64, f64) = (20.0, 10.0);

/// Estimates of the KL divergence per token.
pub fn kl(case: &Case) -> Result<(), Stop> {
    let estimator = estimator(case.word("estimator"))?;
    let (log_probs, reference, trained) = (case.rows("logp")?, case.rows("logp_ref")?, case.rows("loss_mask")?);
    let device = cpu().autodiff();
    let log_probs = matrix(&log_probs, &device).require_grad();
    let mask = mask(&trained, &device);
    // As in the learner: what is masked is selected away before the exponential.
    let difference = (log_probs.clone() - matrix(&reference, &device)).mask_fill(mask.clone().bool_not(), 0.0);
    let estimate = kl_estimate(difference.clone(), estimator);
    let largest = |tensor: &Tensor<2>| numbers(tensor.clone()).into_iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
    let clamps = matches!(estimator, KlEstimator::K3 | KlEstimator::K3Plus) || case.source.contains("OpenRLHF");
    if clamps && (largest(&difference) > CLAMPS.0 || largest(&estimate) > CLAMPS.1) {
        return does_not_apply("the source clamps the estimate here; here it is not clamped");
    }
    case.close_rows("kl", &rows(estimate.clone()))?;
    let mean = masked_mean(estimate, mask, count(&trained));
    case.close("masked_mean", number(mean.clone()))?;
    case.close_rows("grad_of_masked_mean", &rows(log_probs.grad(&mean.backward()).expect("log-probabilities have a gradient")))?;
    case.done()
}

/// An estimator by its name in the cases.
pub fn estimator(name: &str) -> Result<KlEstimator, Stop> {
    match name {
        "k1" => Ok(KlEstimator::K1),
        "k2" => Ok(KlEstimator::K2),
        "k3" => Ok(KlEstimator::K3),
        "abs" => Ok(KlEstimator::Absolute),
        "k1+" => Ok(KlEstimator::K1Plus),
        "k3+" => Ok(KlEstimator::K3Plus),
        other => does_not_apply(format!("KL estimator `{other}` is not offered")),
    }
}
