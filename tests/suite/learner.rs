//! Updates: cases of public bug reports (T-..), and properties that always hold.

use pollster::block_on;
use turnwise::config::{CreditMethod, ExperimentConfig, KlPlacement, NoSignalGroups, PolicyLoss, Truncated};
use turnwise::learner::{Learner, LearnerError, TrainingExample, UpdateSettings};
use turnwise::metrics::UpdateStatistics;
use turnwise::policy::Weights;
use turnwise::reward::{RewardTable, RewardTerm};
use turnwise::rollout::End;
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

/// T-15, T-45: episodes that a limit cut, left out of the loss: no gradient comes from them, the others' is as it would be without
/// them, and the denominator does not count them. Their rewards still count in the group. The same for groups without signal.
#[test]
fn what_is_left_out_of_the_loss_does_not_count_anywhere() {
    let base = ExperimentConfig { turn_limit: 2, groups: 4, learning_rate: 0.1, ..paid(plain()) };
    let update = |config: &ExperimentConfig| {
        let mut trainer = Trainer::new(config.clone(), &fresh(config));
        let rollout = block_on(trainer.sample()).unwrap();
        let rewards = block_on(trainer.score(&rollout)).unwrap();
        let credit = block_on(trainer.credit(&rollout, &rewards)).unwrap();
        let report = block_on(trainer.update(&rollout, &credit)).unwrap();
        (rollout, credit, report.update, trainer.policy())
    };
    let cut = ExperimentConfig { truncated: Truncated::Mask, ..base.clone() };
    let (rollout, credit, masked, policy) = update(&cut);
    let ended = |index: &usize| rollout.training[*index].end == End::Terminated;
    let kept: Vec<usize> = (0..rollout.training.len()).filter(ended).collect();
    assert!(!kept.is_empty() && kept.len() < rollout.training.len(), "{} of {}", kept.len(), rollout.training.len());
    let (_, all, failed, _) = update(&base);
    assert_eq!(credit.map.advantages, all.map.advantages, "rewards of cut episodes count in the group");
    let tokens = |indices: &[usize]| indices.iter().map(|&index| rollout.training[index].sampled_tokens()).sum::<usize>();
    assert_eq!(masked.trained_tokens, tokens(&kept));
    assert!(failed.trained_tokens > masked.trained_tokens);
    let alone: Vec<TrainingExample> =
        kept.iter().map(|&index| TrainingExample::new(&rollout.training[index], &credit.map.advantages[index], false)).collect();
    let mut learner = learner(&cut);
    let direct = block_on(learner.update(&alone, 0)).unwrap();
    assert!((direct.gradient_norm - masked.gradient_norm).abs() < 1e-6 && distance(&learner.policy(), &policy) < 1e-7);

    let dropped = update(&ExperimentConfig { no_signal_groups: NoSignalGroups::Drop, ..base.clone() });
    let flat = |index: &usize| !dropped.1.map.equal_returns[dropped.0.training[*index].group];
    let informative: Vec<usize> = (0..dropped.0.training.len()).filter(flat).collect();
    assert_eq!(dropped.2.trained_tokens, tokens(&informative));
}

/// Dynamic sampling: groups without signal make way for other questions, and there are fewer of them afterwards.
#[test]
fn groups_without_signal_are_replaced() {
    let base = ExperimentConfig { groups: 8, num_generations: 2, ..paid(plain()) };
    let flat = |no_signal_groups: NoSignalGroups| {
        let config = ExperimentConfig { no_signal_groups, ..base.clone() };
        let trainer = &mut Trainer::new(config.clone(), &fresh(&config));
        let rollout = block_on(trainer.sample()).unwrap();
        let rewards = block_on(trainer.score(&rollout)).unwrap();
        let credit = block_on(trainer.credit(&rollout, &rewards)).unwrap();
        let places: Vec<u32> = rollout.starts.iter().map(|start| start.place).collect();
        let prompts_agree =
            rollout.training.iter().all(|episode| episode.tokens.starts_with(&rollout.groups[episode.group].prompt));
        assert!(prompts_agree && rollout.training.len() == 16);
        (credit.map.equal_returns.iter().filter(|&&flat| flat).count(), places)
    };
    let (kept, places) = flat(NoSignalGroups::Keep);
    let (left, others) = flat(NoSignalGroups::Resample);
    assert!(kept > 0 && left < kept, "{kept} flat groups before, {left} after");
    assert_eq!(places, (0..8).collect::<Vec<_>>());
    assert_eq!(others.iter().filter(|&&place| place >= 8).count(), kept, "each flat group was replaced");
}

/// DPO on pairs: the first loss is ln 2, the best of a group gains against the worst, and groups without a preference train nothing.
#[test]
fn preferences_train_pairs() {
    let base = ExperimentConfig { policy_loss: PolicyLoss::Dpo, groups: 6, learning_rate: 0.01, ..paid(plain()) };
    let mut trainer = Trainer::new(base.clone(), &fresh(&base));
    let (rollout, _, credit, report) = block_on(trainer.train_step()).unwrap();
    let pairs = credit.map.equal_returns.iter().filter(|&&flat| !flat).count();
    assert!(pairs > 0 && (report.update.policy_loss - 2f64.ln()).abs() < 1e-5, "{:?}", report.update);
    let again = ExperimentConfig { inner_epochs: 8, ..base.clone() };
    let mut longer = Trainer::new(again.clone(), &fresh(&again));
    let (_, _, _, report) = block_on(longer.train_step()).unwrap();
    assert!(report.update.policy_loss < 2f64.ln() - 1e-3, "the pairs come apart: {}", report.update.policy_loss);
    assert_eq!(rollout.training.len(), 24);
    let flat = ExperimentConfig { outcome_weight: 0.0, valid_call_weight: 0.0, format_weight: 0.0, ..base };
    let mut idle = Trainer::new(flat.clone(), &fresh(&flat));
    let (_, _, _, report) = block_on(idle.train_step()).unwrap();
    assert_eq!((report.update.updates, distance(&idle.policy(), &fresh(&flat))), (0, 0.0));
}

/// KL in the reward: nothing at the first step, where policy and reference are one; later every turn pays, and the costs are in
/// the rewards that credit is made from.
#[test]
fn kl_can_be_a_cost_of_every_turn() {
    let config =
        ExperimentConfig { beta: 0.5, kl_placement: KlPlacement::Reward, learning_rate: 0.02, inner_epochs: 4, ..paid(plain()) };
    let mut trainer = Trainer::new(config.clone(), &fresh(&config));
    let (_, rewards, _, report) = block_on(trainer.train_step()).unwrap();
    let costs = |rewards: &RewardTable| -> Vec<f64> {
        let terms = rewards.turns.iter().flatten().flatten();
        terms.filter(|term| term.term == RewardTerm::Kl).map(|term| term.weight).collect()
    };
    assert!(costs(&rewards).iter().all(|cost| cost.abs() < 1e-4), "{:?}", costs(&rewards));
    assert_eq!(report.update.reference_kl, 0.0, "it is no term of the loss");
    let (rollout, rewards, credit, _) = block_on(trainer.train_step()).unwrap();
    let paid = costs(&rewards);
    assert!(paid.iter().any(|cost| cost.abs() > 1e-3));
    assert_eq!(credit.map.rewards, rewards.totals());
    let mean = paid.iter().sum::<f64>() / rollout.training.len() as f64;
    assert!(mean < 0.0, "k1 is positive on average: the turns pay {mean}");
}

/// A critic learns the value of turns, its credit is what generalised advantage estimation makes of it, and it is fitted to the
/// returns of each step.
#[test]
fn a_critic_learns_the_value_of_turns() {
    let config = ExperimentConfig {
        credit_method: CreditMethod::Gae,
        critic_learning_rate: 2e-3,
        critic_epochs: 8,
        value_clip: 0.0,
        learning_rate: 1e-6,
        groups: 32,
        ..paid(plain())
    };
    let mut trainer = Trainer::new(config.clone(), &fresh(&config));
    let (rollout, _, credit, report) = block_on(trainer.train_step()).unwrap();
    let values = credit.values.expect("a critic gives values");
    assert!(values.iter().flatten().all(|&value| value == 0.0), "it starts at 0");
    assert!(values.iter().zip(&rollout.training).all(|(values, episode)| values.len() == episode.turns.len()));
    assert!(report.update.critic.is_some_and(|critic| critic.explained_variance.abs() < 1e-9));
    let mut last = 0.0;
    for _ in 0..16 {
        let (_, _, _, report) = block_on(trainer.train_step()).unwrap();
        last = report.update.critic.map_or(0.0, |critic| critic.explained_variance);
    }
    assert!(last > 0.05, "the critic explains {last} of the variance of fresh returns");
}
