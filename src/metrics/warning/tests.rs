use super::WarningKind::*;
use super::*;
use crate::config::{CallPayment, RewardMode};
use crate::credit::{Convention, outcome_advantages};
use crate::environment::REGISTRY;
use crate::learner::UpdateStatistics;
use crate::metrics::summarise_episodes;

/// One line of a file in `tests/cases`: what the rules read of a report.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    iteration: usize,
    train_success: f64,
    held_out_success: f64,
    held_out_episodes: usize,
    mean_return: f64,
    malformed: f64,
    no_signal_groups: f64,
    entropy: f64,
    approximate_kl: f64,
    ratio_mean: f64,
    ratio_deviation: f64,
    clip_fraction: f64,
    gradient_norm: f64,
    updates: usize,
}

impl Line {
    fn report(self) -> Report {
        Report {
            train_success: self.train_success,
            held_out_success: self.held_out_success,
            held_out_episodes: self.held_out_episodes,
            mean_return: self.mean_return,
            malformed: self.malformed,
            no_signal_groups: self.no_signal_groups,
            update: UpdateStatistics {
                entropy: self.entropy,
                approximate_kl: self.approximate_kl,
                ratio_mean: self.ratio_mean,
                ratio_deviation: self.ratio_deviation,
                clip_fraction: self.clip_fraction,
                gradient_norm: self.gradient_norm,
                updates: self.updates,
                ..UpdateStatistics::default()
            },
            ..summarise_episodes(self.iteration, &[], &[], &[], 0)
        }
    }
}

fn recorded(lines: &str) -> Vec<Report> {
    lines.lines().map(|line| serde_json::from_str::<Line>(line).expect("a line of numbers").report()).collect()
}

fn collapse() -> Vec<Report> {
    recorded(include_str!("../../../tests/cases/collapse.jsonl"))
}

fn healthy() -> Vec<Report> {
    recorded(include_str!("../../../tests/cases/healthy.jsonl"))
}

fn defaults() -> ExperimentConfig {
    ExperimentConfig::defaults("search", REGISTRY)
}

/// The warnings after these reports.
fn warnings(reports: &[Report], config: &ExperimentConfig) -> Vec<Warning> {
    let mut watch = Watch::new(config);
    reports.iter().for_each(|report| watch.add(report));
    watch.warnings().to_vec()
}

fn kinds(warnings: &[Warning]) -> Vec<WarningKind> {
    warnings.iter().map(|warning| warning.kind).collect()
}

/// The first ten steps of the healthy run, changed from one step on.
fn changed(from: usize, change: impl Fn(&mut Report)) -> Vec<Report> {
    let mut reports = healthy();
    reports.truncate(10);
    reports[from..].iter_mut().for_each(change);
    reports
}

/// The one warning of reports under the defaults.
fn only(reports: &[Report]) -> Warning {
    let found = warnings(reports, &defaults());
    assert_eq!(found.len(), 1, "{found:?}");
    found[0].clone()
}

#[test]
fn t_52_a_collapse_is_announced_before_the_return_falls_under_half_its_peak() {
    let reports = collapse();
    let peak = reports.iter().map(|report| report.mean_return).fold(0.0, f64::max);
    let top = reports.iter().position(|report| report.mean_return == peak).expect("a peak");
    let half = (top..reports.len()).find(|&step| reports[step].mean_return < peak / 2.0).expect("it collapses");
    // What was known then, and no more.
    let early = warnings(&reports[..half], &defaults());
    assert!(early.iter().any(|warning| warning.kind == MalformedRising), "{early:?}");
    assert!(early.iter().any(|warning| warning.kind == EntropyRising), "{early:?}");
    assert!(early.iter().all(|warning| warning.iteration < half && warning.figure >= warning.bound));
    let late = warnings(&reports, &defaults());
    assert_eq!(late[..early.len()], early);
}

#[test]
fn t_52_a_healthy_run_gets_no_warning() {
    let reports = healthy();
    assert!(reports.last().expect("reports").held_out_success > LEARNED);
    assert_eq!(warnings(&reports, &defaults()), []);
    assert_eq!(warnings(&[], &defaults()), []);
}

#[test]
fn a_run_is_watched_for_as_long_as_it_lasts() {
    // A spike after more steps than any window holds, against the gradients just before it.
    let config = defaults();
    let mut watch = Watch::new(&config);
    let quiet = &healthy()[0];
    for iteration in 0..100_000 {
        let mut report = Report { iteration, ..quiet.clone() };
        report.update.gradient_norm = if iteration == 99_999 { 2.0 } else { 0.1 };
        assert_eq!(watch.warnings(), [], "{iteration}");
        watch.add(&report);
    }
    assert_eq!(kinds(watch.warnings()), [GradientSpike]);
    assert_eq!((watch.warnings()[0].iteration, watch.warnings()[0].bound), (99_999, 0.5));
}

#[test]
fn a_return_that_rises_while_success_falls_is_hacked() {
    let reports = recorded(include_str!("../../../tests/cases/hacked.jsonl"));
    let config = ExperimentConfig::defaults("code", REGISTRY);
    let found = warnings(&reports, &config);
    assert_eq!(kinds(&found), [RewardHacked], "{found:?}");
    assert!(found[0].iteration <= 10 && found[0].figure >= HACKED);
    // A return that falls along is a policy that gets worse, and one that rises with success is as it should be.
    let mut worse = reports.clone();
    worse.iter_mut().for_each(|report| report.mean_return = report.train_success);
    assert_eq!(warnings(&worse, &config), []);
}

#[test]
fn a_warning_never_looks_ahead_and_stays_as_it_was() {
    let mut spliced = healthy();
    spliced.extend(collapse());
    spliced.iter_mut().enumerate().for_each(|(iteration, report)| report.iteration = iteration);
    let all = warnings(&spliced, &defaults());
    assert!(all.len() >= 3, "{all:?}");
    for steps in 0..=spliced.len() {
        let known: Vec<Warning> = all.iter().filter(|warning| warning.iteration < steps).cloned().collect();
        assert_eq!(warnings(&spliced[..steps], &defaults()), known, "{steps}");
    }
    // Iterations are those of the reports, not their places.
    spliced.iter_mut().for_each(|report| report.iteration += 7);
    let moved: Vec<usize> = warnings(&spliced, &defaults()).iter().map(|warning| warning.iteration - 7).collect();
    assert_eq!(moved, all.iter().map(|warning| warning.iteration).collect::<Vec<_>>());
}

#[test]
fn t_21_scaled_pairs_are_told_that_the_gap_is_lost() {
    let config = ExperimentConfig { num_generations: 2, ..defaults() };
    let found = warnings(&[], &config);
    assert_eq!(kinds(&found), [PairsScaled]);
    assert_eq!((found[0].iteration, found[0].figure, found[0].bound), (0, 2.0, 3.0));
    assert!(found[0].text_en.contains("0.7071") && found[0].text_zh.contains("0.7071"));
    // It is true of what the warning is about.
    for gap in [1.0, 0.1] {
        let advantages = outcome_advantages(&[0; 2], &[gap, 0.0], Convention::of(&config));
        assert!((advantages[0] - std::f64::consts::FRAC_1_SQRT_2).abs() < 2e-3, "{advantages:?}");
    }
    for fine in [
        ExperimentConfig { num_generations: 3, ..defaults() },
        ExperimentConfig { scale_rewards: ScaleRewards::None, ..config.clone() },
        ExperimentConfig { scale_rewards: ScaleRewards::Batch, ..config.clone() },
        ExperimentConfig { credit_method: CreditMethod::Rloo, ..config.clone() },
        ExperimentConfig { policy_loss: PolicyLoss::Dpo, ..config },
    ] {
        assert_eq!(warnings(&[], &fine), []);
    }
}

#[test]
fn groups_of_one_are_told_where_episodes_are_compared() {
    let alone = ExperimentConfig { num_generations: 1, ..defaults() };
    assert_eq!(kinds(&warnings(&[], &alone)), [SingletonGroups]);
    // That no group has a signal then goes without saying.
    let reports = changed(0, |report| report.no_signal_groups = 1.0);
    assert_eq!(kinds(&warnings(&reports, &alone)), [SingletonGroups]);
    let critic = ExperimentConfig { credit_method: CreditMethod::Gae, ..alone };
    assert_eq!(warnings(&[], &critic), []);
    let preferences = ExperimentConfig { policy_loss: PolicyLoss::Dpo, ..critic };
    assert_eq!(kinds(&warnings(&[], &preferences)), [SingletonGroups]);
}

#[test]
fn weights_under_which_calling_pays_more_than_solving_are_told() {
    let calls =
        ExperimentConfig { reward_mode: RewardMode::Mixed, valid_call_weight: 0.5, format_weight: 0.0, gamma: 1.0, ..defaults() };
    // Five calls earn 2.5, a call and the right answer 1.5.
    let found = warnings(&[], &calls);
    assert_eq!(kinds(&found), [CallingPays]);
    assert_eq!((found[0].figure, found[0].bound), (2.5, 1.5));
    assert!(found[0].text_en.contains("2.50") && found[0].text_zh.contains("1.50"), "{found:?}");
    for fine in [
        ExperimentConfig { valid_call_weight: 0.1, ..calls.clone() },
        ExperimentConfig { reward_mode: RewardMode::Outcome, ..calls.clone() },
        ExperimentConfig { call_payment: CallPayment::Capped, call_cap: 1, ..calls.clone() },
        ExperimentConfig { turn_limit: 1, ..calls.clone() },
        ExperimentConfig { gamma: 0.5, ..calls.clone() },
    ] {
        assert_eq!(warnings(&[], &fine), []);
    }
    // Where there is nothing to answer, calls are the task.
    let spin = ExperimentConfig {
        reward_mode: RewardMode::Mixed,
        valid_call_weight: 0.5,
        ..ExperimentConfig::defaults("spin", REGISTRY)
    };
    assert_eq!(warnings(&[], &spin), []);
}

#[test]
fn t_24_groups_without_signal_are_reported_with_the_chance_of_them() {
    let failing =
        |share: f64, success: f64| changed(0, move |report| (report.no_signal_groups, report.train_success) = (share, success));
    let config = |group: usize| ExperimentConfig { num_generations: group, scale_rewards: ScaleRewards::None, ..defaults() };
    for (group, chance) in [(2, "70 % of"), (4, "45 % of"), (8, "20 % of"), (16, "4 % of")] {
        let found = warnings(&failing(0.8, 0.18), &config(group));
        assert_eq!(kinds(&found), [NoSignal]);
        assert!(found[0].iteration == WINDOW - 1 && (found[0].figure - 0.8).abs() < 1e-12 && found[0].bound == NO_SIGNAL);
        assert!(found[0].text_en.contains(chance), "{}", found[0].text_en);
        assert!(found[0].text_zh.contains(&chance.replace("of", "的组")), "{}", found[0].text_zh);
    }
    assert_eq!(warnings(&failing(0.7, 0.18), &config(4)), []);
    assert_eq!(warnings(&failing(1.0, 0.95), &config(4)), [], "a task that is learned");
}

#[test]
fn entropy_near_zero_counts_only_where_success_is_low() {
    let still = |success: f64| changed(0, move |report| (report.update.entropy, report.train_success) = (0.04, success));
    let found = only(&still(0.3));
    assert_eq!((found.kind, found.iteration, found.bound), (EntropyCollapse, WINDOW - 1, ENTROPY_FLOOR));
    assert_eq!(warnings(&still(0.6), &defaults()), []);
}

#[test]
fn entropy_rises_over_twice_its_lowest_and_by_enough_to_matter() {
    let found = only(&changed(5, |report| report.update.entropy *= 3.0));
    assert!(found.kind == EntropyRising && (5..8).contains(&found.iteration) && found.figure >= found.bound);
    assert_eq!(warnings(&changed(5, |report| report.update.entropy *= 1.5), &defaults()), []);
    let mut tiny = changed(0, |report| report.update.entropy = 0.01);
    tiny[5..].iter_mut().for_each(|report| report.update.entropy = 0.1);
    assert_eq!(warnings(&tiny, &defaults()), []);
}

#[test]
fn the_figures_of_an_update_are_held_against_their_bounds() {
    let of_update = |change: fn(&mut UpdateStatistics)| changed(4, move |report| change(&mut report.update));
    let one = only(&of_update(|update| update.ratio_deviation = 0.02));
    assert_eq!((one.kind, one.iteration, one.figure, one.bound), (RatioOff, 4, 0.02, RATIO_MISMATCH));
    // Over several passes single ratios go far; their mean should not.
    assert_eq!(warnings(&of_update(|update| (update.updates, update.ratio_deviation) = (4, 5.0)), &defaults()), []);
    let many = only(&of_update(|update| (update.updates, update.ratio_mean) = (4, 0.85)));
    assert!(many.kind == RatioOff && (many.figure - 0.15).abs() < 1e-12);
    let clipped = of_update(|update| update.clip_fraction = 0.3);
    assert_eq!(only(&clipped).kind, ClipFractionHigh);
    assert_eq!(warnings(&clipped, &ExperimentConfig { ratio_level: RatioLevel::Sequence, ..defaults() }), []);
    assert_eq!(only(&of_update(|update| update.approximate_kl = 0.08)).kind, KlHigh);
    assert_eq!(warnings(&of_update(|update| update.approximate_kl = 0.04), &defaults()), []);
}

#[test]
fn a_gradient_spikes_over_the_median_and_over_all_before() {
    let spike = |at: usize, norm: f64| changed(at, move |report| report.update.gradient_norm = norm);
    let found = only(&spike(8, 2.0));
    assert!(found.kind == GradientSpike && found.iteration == 8 && found.figure == 2.0 && found.bound > 1.0);
    assert_eq!(warnings(&spike(8, 1.0), &defaults()), []);
    assert_eq!(warnings(&spike(3, 9.0), &defaults()), [], "too few steps before it");
    let mut learned = changed(2, |report| report.update.gradient_norm = 0.01);
    learned[9].update.gradient_norm = 0.2;
    assert_eq!(warnings(&learned, &defaults()), [], "gradients of that size came before");
}

#[test]
fn malformed_turns_count_from_their_lowest() {
    let found = only(&changed(6, |report| report.malformed = 0.3));
    assert!(found.kind == MalformedRising && found.iteration == 7 && found.figure < 0.3);
    assert_eq!(warnings(&changed(6, |report| report.malformed = 0.1), &defaults()), []);
    assert_eq!(warnings(&changed(0, |report| report.malformed = 0.6), &defaults()), [], "high from the start is not rising");
}
