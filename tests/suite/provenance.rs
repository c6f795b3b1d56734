//! What is said of every token's share of the policy loss adds up to the loss that was trained.

use pollster::block_on;
use turnwise::config::{Aggregation, CreditMethod, ExperimentConfig, PolicyLoss};
use turnwise::learner::{TokenBatch, TrainingExample};
use turnwise::metrics::{LogProbs, policy_loss_of, token_losses};
use turnwise::policy::{Policy, log_distribution, taken_log_probs};
use turnwise::rollout::Trajectory;
use turnwise::trainer::Trainer;

use crate::support::{cpu, fresh, numbers, paid, tiny};

/// Log-probabilities before a step's first update: those of sampling, and those of a forward pass for tokens nobody sampled.
fn log_probs(policy: &Policy, trajectory: &Trajectory, config: &ExperimentConfig) -> Vec<f64> {
    let example = TrainingExample::demonstration(trajectory);
    let batch = TokenBatch::new(&[&example], &cpu());
    let all = log_distribution(policy.forward(batch.inputs), config.temperature, batch.illegal);
    // Entry t of the row belongs to token t + 1.
    let passed = [0.0].into_iter().chain(numbers(taken_log_probs(all, batch.targets)));
    let sampled = trajectory.log_probs.iter().zip(&trajectory.loss_mask);
    passed.zip(sampled).map(|(passed, (&log_prob, &sampled))| if sampled { f64::from(log_prob) } else { passed }).collect()
}

#[test]
fn the_shares_of_all_tokens_sum_to_the_loss_of_the_step() {
    let aggregations = [Aggregation::TokenMean, Aggregation::SequenceMean, Aggregation::Constant, Aggregation::GroupMean];
    let mut largest: f64 = 0.0;
    for policy_loss in [PolicyLoss::Clip, PolicyLoss::Cispo, PolicyLoss::Sapo, PolicyLoss::Gmpo] {
        for aggregation in aggregations {
            for loss_mask in [true, false] {
                let credit_method = CreditMethod::ReturnToGo;
                let base = ExperimentConfig { inner_epochs: 1, credit_method, ..paid(tiny()) };
                let config = ExperimentConfig { policy_loss, aggregation, loss_mask, ..base };
                let policy = fresh(&config);
                let (rollout, _, credit, report) =
                    block_on(Trainer::new(config.clone(), &policy).train_step()).expect("the step works");
                let before: Vec<Vec<f64>> =
                    rollout.training.iter().map(|trajectory| log_probs(&policy, trajectory, &config)).collect();
                let given = LogProbs { old: &before, now: &before };
                let tokens = token_losses(&config, &rollout.training, &credit.map, Some(given)).expect("a loss of tokens");
                let trained = tokens.iter().flatten().filter(|token| token.left_out.is_none()).count();
                assert_eq!(trained, report.update.trained_tokens);
                let (shares, trained) = (policy_loss_of(&tokens).expect("all is known"), report.update.policy_loss);
                let case = format!("{policy_loss:?} {aggregation:?} loss mask {loss_mask}");
                assert!((shares - trained).abs() < 1e-5, "{case}: {shares} is not {trained}");
                largest = largest.max(trained.abs());
                if loss_mask {
                    let first = token_losses(&config, &rollout.training, &credit.map, None).as_deref().and_then(policy_loss_of);
                    assert_eq!(first, Some(shares), "{case}: without log-probabilities it is the first update");
                }
            }
        }
    }
    assert!(largest > 0.01, "the losses say something: {largest}");
}
