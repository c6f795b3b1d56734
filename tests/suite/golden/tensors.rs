//! Log-probabilities, masked statistics, aggregation and KL estimates, with gradients where the source gives them.

use burn::tensor::{Tensor, TensorData};
use serde_json::Value;
use turnwise::objective::{KlEstimator, entropy, kl_estimate, masked_mean};
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
    token_mean_only(case.word("aggregation"))?;
    let (values, trained) = (case.rows("token_loss")?, case.rows("loss_mask")?);
    let device = cpu().autodiff();
    if case.has("micro_batches") {
        let mean = |rows: &[Vec<f64>], trained: &[Vec<f64>], count: usize| {
            number(masked_mean(matrix(rows, &device), mask(trained, &device), count))
        };
        let parts: Vec<f64> = case
            .rows("micro_batches")?
            .iter()
            .map(|range| range[0] as usize..range[1] as usize)
            .map(|range| mean(&values[range.clone()], &trained[range], count(&trained)))
            .collect();
        case.close_list("micro_losses_global_denominator", &parts)?;
        case.close("sum_global", parts.iter().sum())?;
        return case.done();
    }
    let losses = matrix(&values, &device).require_grad();
    let loss = masked_mean(losses.clone(), mask(&trained, &device), count(&trained));
    case.close("loss", number(loss.clone()))?;
    case.close_rows("grad_token_loss", &rows(losses.grad(&loss.backward()).expect("the losses have a gradient")))?;
    case.done()
}

/// Stops unless the aggregation is the token mean.
pub fn token_mean_only(aggregation: &str) -> Result<(), Stop> {
    match aggregation {
        "token-mean" => Ok(()),
        "" => does_not_apply("unknown inputs: no `aggregation`"),
        other => does_not_apply(format!("aggregation `{other}` is not offered yet")),
    }
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
    let clamps = estimator == KlEstimator::K3 || case.source.contains("OpenRLHF");
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
        other => does_not_apply(format!("KL estimator `{other}` is not offered")),
    }
}
