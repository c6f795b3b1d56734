//! Updates: cases of public bug reports (T-..), and properties that always hold.

use pollster::block_on;
use turnwise::config::ExperimentConfig;
use turnwise::learner::{Learner, LearnerError, TrainingExample, UpdateSettings};
use turnwise::metrics::UpdateStatistics;
use turnwise::policy::Weights;
use turnwise::trainer::Trainer;

use crate::support::{conversation, distance, examples, fresh, learner, paid, sampled, tiny, weights};

/// The tiny run without entropy bonus and clipping of gradients.
fn plain() -> ExperimentConfig {
    ExperimentConfig { entropy_coefficient: 0.0, max_grad_norm: 0.0, ..tiny() }
}

/// A learner whose step is nearly proportional to the gradient: Adam divides by the root of the second moment plus 1, so that
/// rounding in tiny gradients is not blown up to whole steps.
fn proportional(config: &ExperimentConfig) -> Learner {
    let mut settings = UpdateSettings::of(config);
    settings.optimizer.epsilon = 1.0;
    Learner::new(&fresh(config), settings)
}

fn update(learner: &mut Learner, examples: &[TrainingExample]) -> UpdateStatistics {
    block_on(learner.update(examples, 0)).expect("the update works")
}

/// T-34: before the first update the ratio is 1 at any temperature, with the grammar and without: sampling and training agree.
#[test]
fn the_ratio_is_one_before_the_first_update() {
    for legal_token_mask in [false, true] {
        for temperature in [0.5, 1.0, 1.7] {
            let config = ExperimentConfig { temperature, legal_token_mask, ..plain() };
            let statistics = update(&mut learner(&config), &examples(&sampled(&config), false));
            assert!(
                statistics.ratio_deviation <= 1e-4,
                "T {temperature}, grammar {legal_token_mask}: {}",
                statistics.ratio_deviation
            );
            assert!((statistics.ratio_mean - 1.0).abs() <= 1e-4 && statistics.clip_fraction == 0.0);
        }
    }
}

/// T-41: the first loss of a step is about 0 when advantages are centred over tokens, and its gradient is not.
#[test]
fn the_first_loss_is_zero_and_its_gradient_is_not() {
    let mut all = examples(&sampled(&plain()), false);
    let weighted: f32 = all.iter().flat_map(|example| &example.advantages).sum();
    let trained: usize = all.iter().map(TrainingExample::trained_tokens).sum();
    let mean = weighted / trained as f32;
    for example in &mut all {
        let centred = example.advantages.iter().zip(&example.loss_mask).map(|(a, &on)| if on { a - mean } else { 0.0 });
        example.advantages = centred.collect();
    }
    let statistics = update(&mut learner(&plain()), &all);
    assert!(statistics.policy_loss.abs() < 1e-4, "{}", statistics.policy_loss);
    assert!(statistics.gradient_norm > 1e-2, "{}", statistics.gradient_norm);
}

/// T-42, T-43, property 7: the number of micro-batches changes neither the gradient nor the weights after a step.
#[test]
fn micro_batches_change_nothing() {
    let base =
        ExperimentConfig { learning_rate: 0.1, beta: 0.1, entropy_coefficient: 0.01, groups: 4, num_generations: 4, ..plain() };
    let all = examples(&sampled(&base), false);
    let run = |micro_batches: usize| {
        let mut learner = proportional(&ExperimentConfig { micro_batches, ..base.clone() });
        let statistics = update(&mut learner, &all);
        (statistics, learner.policy())
    };
    let (whole, policy) = run(1);
    assert!(distance(&policy, &fresh(&base)) > 1e-4, "the step is visible");
    for parts in [2, 4, 8, 16] {
        let (statistics, other) = run(parts);
        let difference = (statistics.gradient_norm / whole.gradient_norm - 1.0).abs();
        assert!(difference < 1e-5, "{parts} parts: {difference}");
        assert!((statistics.loss - whole.loss).abs() < 1e-5 && (statistics.entropy - whole.entropy).abs() < 1e-5);
        assert!(distance(&policy, &other) < 1e-6, "{parts} parts: {}", distance(&policy, &other));
    }
}

/// Property 7: a batch that has every episode twice gives the same gradient.
#[test]
fn doubling_the_batch_changes_nothing() {
    let config = ExperimentConfig { entropy_coefficient: 0.01, learning_rate: 0.1, ..plain() };
    let all = examples(&sampled(&config), false);
    let (mut once, mut twice) = (proportional(&config), proportional(&config));
    let a = update(&mut once, &all);
    let b = update(&mut twice, &[all.clone(), all].concat());
    assert!((a.gradient_norm / b.gradient_norm - 1.0).abs() < 1e-5);
    assert!(distance(&once.policy(), &twice.policy()) < 1e-6);
}

/// T-26, T-04: padding changes nothing. An episode in which nothing was sampled, longer than the others, trains no token and only
/// adds padding to the others.
#[test]
fn padding_changes_nothing() {
    let config = ExperimentConfig { entropy_coefficient: 0.01, learning_rate: 0.1, ..plain() };
    let all: Vec<TrainingExample> =
        examples(&sampled(&config), false).into_iter().filter(|example| example.tokens.len() <= 30).take(6).collect();
    let long = TrainingExample::new(&conversation(vec![1; 40], &[false; 40]), &[], false);
    let (mut bare, mut padded) = (proportional(&config), proportional(&config));
    let a = update(&mut bare, &all);
    let b = update(&mut padded, &[all, vec![long]].concat());
    assert_eq!(a.trained_tokens, b.trained_tokens);
    for (a, b) in
        [(a.loss, b.loss), (a.gradient_norm, b.gradient_norm), (a.entropy, b.entropy), (a.approximate_kl, b.approximate_kl)]
    {
        assert!((a - b).abs() <= 1e-6 * a.abs().max(1.0), "{a} {b}");
    }
    assert!(distance(&bare.policy(), &padded.policy()) <= 1e-7);
}

/// T-23: groups without signal give no gradient at all when beta and entropy are off; with beta on, only that of the KL term.
#[test]
fn no_signal_leaves_only_the_kl_gradient() {
    let flat = |config: &ExperimentConfig| {
        let mut all = examples(&sampled(config), false);
        all.iter_mut().for_each(|example| example.advantages.fill(0.0));
        all
    };
    let config = plain();
    let mut without = learner(&config);
    let statistics = update(&mut without, &flat(&config));
    assert_eq!((statistics.gradient_norm, statistics.loss), (0.0, 0.0));
    assert_eq!(distance(&without.policy(), &fresh(&config)), 0.0);

    // Both policies move away from the reference by the same step (there the KL term has no gradient yet).
    let second = |beta: f64| {
        let config = ExperimentConfig { beta, ..plain() };
        let mut learner = learner(&config);
        let first = update(&mut learner, &examples(&sampled(&config), false));
        assert!(first.reference_kl.abs() < 1e-6);
        update(&mut learner, &flat(&config))
    };
    let (one, two) = (second(0.1), second(0.2));
    assert!(one.gradient_norm > 1e-5 && one.reference_kl > 1e-6, "{one:?}");
    assert!((two.gradient_norm / one.gradient_norm - 2.0).abs() < 1e-3, "{} {}", one.gradient_norm, two.gradient_norm);
    assert!((one.policy_loss, two.policy_loss) == (0.0, 0.0));
}

/// The gradient norm is limited to the setting, and the report gives it before the limit.
#[test]
fn the_gradient_norm_is_limited() {
    let free = ExperimentConfig { learning_rate: 0.1, ..plain() };
    let all = examples(&sampled(&free), false);
    let run = |config: &ExperimentConfig| {
        let mut learner = proportional(config);
        let norm = update(&mut learner, &all).gradient_norm;
        (norm, distance(&learner.policy(), &fresh(config)))
    };
    let (norm, step) = run(&free);
    let (same_norm, shorter) = run(&ExperimentConfig { max_grad_norm: norm / 1000.0, ..free.clone() });
    let (_, equal) = run(&ExperimentConfig { max_grad_norm: norm * 1.5, ..free });
    assert!((norm - same_norm).abs() < 1e-6 * norm);
    assert!((equal - step).abs() < 1e-6 && shorter < step / 100.0, "{step} {equal} {shorter}");
}

/// With the loss mask off the tool's tokens are trained: more tokens, another gradient, and a ratio that starts at 1 for them too.
#[test]
fn the_loss_mask_can_be_switched_off() {
    let config = plain();
    let rollout = sampled(&config);
    let (on, off) =
        (update(&mut learner(&config), &examples(&rollout, false)), update(&mut learner(&config), &examples(&rollout, true)));
    let written: usize = rollout.training.iter().flat_map(|e| &e.turns).map(|turn| turn.end - turn.action_end).sum();
    assert!(written > 0);
    assert_eq!(off.trained_tokens, on.trained_tokens + written);
    assert!(off.ratio_deviation <= 1e-4 && (on.gradient_norm - off.gradient_norm).abs() > 1e-4);
    assert!((on.entropy - off.entropy).abs() < 1e-6, "entropy is over sampled tokens in both");
}

fn all_finite(weights: &Weights) -> bool {
    weights.0.iter().all(|weight| weight.values.iter().all(|value| value.is_finite()))
}

/// A learning rate of 1 without a limit on the gradient either goes on with numbers or stops with weights that are numbers; an
/// absurd one is stopped, with weights that are numbers too.
#[test]
fn a_wild_learning_rate_keeps_the_weights_finite() {
    for learning_rate in [1.0, 1e20] {
        let config = ExperimentConfig { learning_rate, inner_epochs: 2, ..paid(plain()) };
        let mut trainer = Trainer::new(config.clone(), &fresh(&config));
        for _ in 0..12 {
            let result = block_on(trainer.train_step());
            assert!(all_finite(&weights(&trainer.policy())), "learning rate {learning_rate}");
            match result {
                Ok((_, _, _, report)) => {
                    assert!(report.update.loss.is_finite() && report.update.gradient_norm.is_finite());
                    assert!(report.iteration > 0 || report.update.gradient_norm > 1e-2, "there is something to learn");
                }
                Err(error) => {
                    assert!(error.non_finite().is_some(), "{error}");
                    // What is kept can be sampled from: an update whose weights could not be is taken back.
                    block_on(trainer.sample()).expect("the weights that are kept work");
                    break;
                }
            }
        }
        assert!(learning_rate < 1e3 || trainer.iteration() < 12, "the absurd one is stopped");
    }
}

/// An update that fails leaves the weights as they were.
#[test]
fn a_failed_update_leaves_the_weights() {
    let config = plain();
    let mut all = examples(&sampled(&config), false);
    let place = all[0].loss_mask.iter().position(|&trained| trained).unwrap();
    all[0].advantages[place] = f32::NAN;
    let mut learner = learner(&config);
    let error = block_on(learner.update(&all, 0)).expect_err("the update fails");
    assert!(matches!(error, LearnerError::NonFinite(_)), "{error}");
    assert_eq!(distance(&learner.policy(), &fresh(&config)), 0.0);
    all[0].advantages[place] = 1.0;
    assert!(update(&mut learner, &all).gradient_norm > 0.0, "and the learner goes on");
    assert!(block_on(learner.update(&[], 0)).is_ok(), "an empty batch is no failure");
}
