//! Early warnings: what the reports of a run say is going wrong, before success shows it.
//!
//! Every rule looks at one step and the steps before it, never ahead, and fires once: a warning stays as it was when later
//! reports come in. Means over several steps keep a single odd step from counting.

mod text;

use crate::config::{CreditMethod, ExperimentConfig, PolicyLoss, RatioLevel, ScaleRewards};
use crate::credit::{discounted_returns, uninformative_probability};
use crate::environment::{self, Facts};
use crate::reward;
use crate::rollout::{End, Trajectory, Turn};
use crate::vocabulary::ANSWER;

use super::Report;

/// Steps in a mean where one step says little: shares of 16 groups, and success on other questions in every step.
pub const WINDOW: usize = 5;
/// Steps in a mean where things go wrong within a few steps.
pub const SHORT_WINDOW: usize = 3;
/// Share of groups without signal: from here on three quarters of the episodes are sampled for nothing.
pub const NO_SIGNAL: f64 = 0.75;
/// Success of a task that is learned: groups without signal are then groups that have nothing left to learn.
pub const LEARNED: f64 = 0.9;
/// Entropy in nats at which the policy has all but stopped trying: a token with 99 % on one choice has 0.06.
pub const ENTROPY_FLOOR: f64 = 0.05;
/// Success below which a policy that has stopped trying has not found the solution; learned tasks end far above it.
pub const LOW_SUCCESS: f64 = 0.5;
/// How many times its lowest the entropy may become; in nine healthy runs it rose to 1.7 times at most.
pub const ENTROPY_RISE: f64 = 2.0;
/// Nats by which it must have risen as well: a policy that is nearly sure doubles its entropy by chance.
pub const ENTROPY_RISE_NATS: f64 = 0.1;
/// Fall of success under its best, and rise of the return since then: twice the standard error of either over a window.
pub const HACKED: f64 = 0.1;
/// Distance of the mean probability ratio from 1 after several updates on the same episodes: in expectation it is 1 exactly.
pub const RATIO_MEAN: f64 = 0.1;
/// Largest distance of any ratio from 1 at the only update of a step: two passes with the same weights differ by 2e-5 at most.
pub const RATIO_MISMATCH: f64 = 0.01;
/// Share of tokens clipped: of one in five the update has taken all that the trust region allows.
pub const CLIPPED: f64 = 0.2;
/// The same for the ratio of a whole trajectory, whose narrow range clips a fifth of healthy runs (GSPO reports 0.15).
pub const CLIPPED_SEQUENCE: f64 = 0.5;
/// KL of an update in nats: PPO implementations that stop early do so at 0.01 to 0.03.
pub const KL: f64 = 0.05;
/// How many times the median a gradient norm may be; in nine healthy runs the largest was 2.2 times.
pub const SPIKE: f64 = 5.0;
/// Earlier steps that the median is of.
pub const SPIKE_STEPS: usize = 20;
/// Fewest of them: a median of less says nothing.
pub const SPIKE_STEPS_LEAST: usize = 5;
/// Rise of the share of malformed turns over its lowest; in nine healthy runs it rose by 0.1 at most.
pub const MALFORMED_RISE: f64 = 0.15;

/// What is going wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
#[serde(rename_all = "snake_case")]
pub enum WarningKind {
    /// Groups of one episode, with a method that compares the episodes of a group.
    SingletonGroups,
    /// Groups of two with scaling by the standard deviation: the size of the gap between them is lost.
    PairsScaled,
    /// Under these weights an episode that only calls tools earns more than one that solves the task.
    CallingPays,
    /// Most groups earned the same in all their episodes, and the task is not learned.
    NoSignal,
    /// The policy has stopped trying while success is low.
    EntropyCollapse,
    /// The policy is becoming more random.
    EntropyRising,
    /// The return rises while success falls.
    RewardHacked,
    /// Probability ratios are not about 1 where they should be.
    RatioOff,
    /// Many tokens are clipped.
    ClipFractionHigh,
    /// One step moves the policy far.
    KlHigh,
    /// A gradient is far longer than those before it.
    GradientSpike,
    /// More turns are malformed than before.
    MalformedRising,
}

/// One warning.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(ts_rs::TS), ts(export_to = "protocol.ts"))]
pub struct Warning {
    pub kind: WarningKind,
    /// The training step whose report it fired at; the first for what the settings alone decide.
    pub iteration: usize,
    /// What was measured: see the constants of this module.
    pub figure: f64,
    /// What it was held against.
    pub bound: f64,
    /// What it means and what to try, in English.
    pub text_en: String,
    /// The same in Chinese.
    pub text_zh: String,
}

/// What a rule found: figure, bound, and the sentence in English and Chinese.
struct Finding {
    figure: f64,
    bound: f64,
    text: (String, String),
}

/// A rule looks at a run up to a step.
type Rule = fn(&Run, usize) -> Option<Finding>;

/// All rules, in the order of [`WarningKind`].
const RULES: &[(WarningKind, Rule)] = &[
    (WarningKind::NoSignal, no_signal),
    (WarningKind::EntropyCollapse, entropy_collapse),
    (WarningKind::EntropyRising, entropy_rising),
    (WarningKind::RewardHacked, reward_hacked),
    (WarningKind::RatioOff, ratio_off),
    (WarningKind::ClipFractionHigh, clip_fraction_high),
    (WarningKind::KlHigh, kl_high),
    (WarningKind::GradientSpike, gradient_spike),
    (WarningKind::MalformedRising, malformed_rising),
];

/// The warnings of a run so far, one at most of each kind, by iteration and then kind. `reports` are those of all its steps in
/// order; without any, what the settings alone decide. Takes time in proportion to the number of reports.
pub fn warnings(reports: &[Report], config: &ExperimentConfig) -> Vec<Warning> {
    let run = Run::of(reports, config);
    let first = reports.first().map_or(0, |report| report.iteration);
    let settings = [
        (WarningKind::SingletonGroups, singleton_groups(config)),
        (WarningKind::PairsScaled, pairs_scaled(config)),
        (WarningKind::CallingPays, calling_pays(config)),
    ];
    let of_settings = settings.into_iter().filter_map(|(kind, finding)| Some((kind, first, finding?)));
    let of_steps = RULES.iter().filter_map(|&(kind, rule)| {
        let fires = |step: usize| Some((kind, reports[step].iteration, rule(&run, step)?));
        (0..reports.len()).find_map(fires)
    });
    let warning = |(kind, iteration, finding): (WarningKind, usize, Finding)| {
        let Finding { figure, bound, text: (text_en, text_zh) } = finding;
        Warning { kind, iteration, figure, bound, text_en, text_zh }
    };
    let mut all: Vec<Warning> = of_settings.chain(of_steps).map(warning).collect();
    all.sort_by_key(|warning| (warning.iteration, warning.kind));
    all
}

/// A run as the rules see it: means over windows that end at each step, and extremes so far. One entry per report.
struct Run<'a> {
    reports: &'a [Report],
    config: &'a ExperimentConfig,
    train_success: Vec<f64>,
    /// Of the held-out questions, which are the same in every step, or of the training ones where none are held out.
    success: Vec<f64>,
    /// The step at which `success` was best so far.
    best: Vec<usize>,
    mean_return: Vec<f64>,
    no_signal: Vec<f64>,
    entropy: Vec<f64>,
    recent_entropy: Vec<f64>,
    lowest_entropy: Vec<f64>,
    malformed: Vec<f64>,
    lowest_malformed: Vec<f64>,
    clipped: Vec<f64>,
    kl: Vec<f64>,
}

impl<'a> Run<'a> {
    fn of(reports: &'a [Report], config: &'a ExperimentConfig) -> Self {
        let means = |window: usize, value: fn(&Report) -> f64| windowed(&reports.iter().map(value).collect::<Vec<_>>(), window);
        // A step without an update (nothing was left to train on) says nothing of entropy: the last figure stands for it.
        let mut known = f64::NAN;
        let carried = |report: &Report| {
            if report.update.updates > 0 {
                known = report.update.entropy;
            }
            known
        };
        let entropies: Vec<f64> = reports.iter().map(carried).collect();
        let success = means(WINDOW, |report| match report.held_out_episodes {
            0 => report.train_success,
            _ => report.held_out_success,
        });
        let recent_entropy = windowed(&entropies, SHORT_WINDOW);
        let malformed = means(SHORT_WINDOW, |report| report.malformed);
        Run {
            reports,
            config,
            train_success: means(WINDOW, |report| report.train_success),
            best: best_so_far(&success),
            success,
            mean_return: means(WINDOW, |report| report.mean_return),
            no_signal: means(WINDOW, |report| report.no_signal_groups),
            entropy: windowed(&entropies, WINDOW),
            lowest_entropy: lowest_so_far(&recent_entropy),
            recent_entropy,
            lowest_malformed: lowest_so_far(&malformed),
            malformed,
            clipped: means(SHORT_WINDOW, |report| report.update.clip_fraction),
            kl: means(SHORT_WINDOW, |report| report.update.approximate_kl),
        }
    }
}

/// Mean over the last `window` reports up to each one; at the start over fewer.
fn windowed(values: &[f64], window: usize) -> Vec<f64> {
    let mean = |step: usize| {
        let last = &values[(step + 1).saturating_sub(window)..=step];
        last.iter().sum::<f64>() / last.len() as f64
    };
    (0..values.len()).map(mean).collect()
}

fn lowest_so_far(values: &[f64]) -> Vec<f64> {
    let lower = |lowest: &mut f64, &value: &f64| {
        *lowest = lowest.min(value);
        Some(*lowest)
    };
    values.iter().scan(f64::INFINITY, lower).collect()
}

/// Where the highest value up to each place is; the last of equals.
fn best_so_far(values: &[f64]) -> Vec<usize> {
    let better = |best: &mut usize, step: usize| {
        if values[step] >= values[*best] {
            *best = step;
        }
        Some(*best)
    };
    (0..values.len()).scan(0, better).collect()
}

/// A finding if the figure is at or over its bound.
fn over(figure: f64, bound: f64, text: impl FnOnce() -> (String, String)) -> Option<Finding> {
    (figure >= bound).then(|| Finding { figure, bound, text: text() })
}

/// Whether the settings compare the episodes of a group with one another.
fn compares_episodes(config: &ExperimentConfig) -> bool {
    let alone = matches!(config.credit_method, CreditMethod::ReinforcePp | CreditMethod::MonteCarlo | CreditMethod::Gae);
    config.policy_loss == PolicyLoss::Dpo || !alone
}

fn singleton_groups(config: &ExperimentConfig) -> Option<Finding> {
    let alone = config.num_generations == 1 && compares_episodes(config);
    alone.then(|| Finding { figure: 1.0, bound: 2.0, text: text::singleton_groups() })
}

/// `(x - mean) / (std + 1e-4)` of two is `+-1/sqrt(2)` whatever the gap: the sample deviation of two is `gap / sqrt(2)`.
fn pairs_scaled(config: &ExperimentConfig) -> Option<Finding> {
    use CreditMethod::{Gigpo, Grpo, MtGrpo, ReturnToGo};
    let divides = matches!(config.credit_method, Grpo | ReturnToGo | MtGrpo | Gigpo) && config.policy_loss != PolicyLoss::Dpo;
    let pairs = config.num_generations == 2 && config.scale_rewards == ScaleRewards::Group && divides;
    pairs.then(|| Finding { figure: 2.0, bound: 3.0, text: text::pairs_scaled() })
}

/// What an episode of these turns earns under the settings, discounted.
fn earns(turns: &[Facts], config: &ExperimentConfig) -> f64 {
    let turn = |&facts: &Facts| Turn { start: 0, action_end: 0, end: 0, facts };
    let episode = Trajectory {
        group: 0,
        member: 0,
        tokens: Vec::new(),
        prompt_length: 0,
        loss_mask: Vec::new(),
        log_probs: Vec::new(),
        turns: turns.iter().map(turn).collect(),
        end: End::Terminated,
        question_type: 0,
        legal: Vec::new(),
    };
    let totals = reward::score(&[episode], &reward::weighted_terms(config)).totals();
    totals.first().and_then(|rewards| discounted_returns(rewards, config.gamma).first().copied()).unwrap_or(0.0)
}

/// An episode of nothing but calls without an error up to the turn limit, all different or all the same, against one call in the
/// right direction and the right answer. Only where there is something to answer.
fn calling_pays(config: &ExperimentConfig) -> Option<Finding> {
    let answers = environment::create(config).grammar().legal.first().is_some_and(|legal| legal.contains(ANSWER));
    if !answers || config.turn_limit < 2 {
        return None;
    }
    let solving = earns(&[Facts { step_right: true, ..Facts::clean_call() }, Facts::answer(true, true)], config);
    let calls = |repeated: bool| {
        let call = |turn: usize| Facts { repeated_call: repeated && turn > 0, ..Facts::clean_call() };
        earns(&(0..config.turn_limit).map(call).collect::<Vec<_>>(), config)
    };
    let calling = calls(true).max(calls(false));
    (calling > solving).then(|| Finding { figure: calling, bound: solving, text: text::calling_pays(calling, solving) })
}

fn no_signal(run: &Run, step: usize) -> Option<Finding> {
    let (share, success, group) = (run.no_signal[step], run.train_success[step], run.config.num_generations);
    // Groups of one never have a signal, which has its own warning.
    if step + 1 < WINDOW || success >= LEARNED || group == 1 {
        return None;
    }
    over(share, NO_SIGNAL, || text::no_signal(share, success, group, uninformative_probability(success, group)))
}

fn entropy_collapse(run: &Run, step: usize) -> Option<Finding> {
    let (figure, success) = (run.entropy[step], run.train_success[step]);
    let collapsed = step + 1 >= WINDOW && figure < ENTROPY_FLOOR && success < LOW_SUCCESS;
    collapsed.then(|| Finding { figure, bound: ENTROPY_FLOOR, text: text::entropy_collapse(figure, success) })
}

fn entropy_rising(run: &Run, step: usize) -> Option<Finding> {
    let (figure, lowest) = (run.recent_entropy[step], run.lowest_entropy[step]);
    let bound = (lowest * ENTROPY_RISE).max(lowest + ENTROPY_RISE_NATS);
    over(figure, bound, || text::entropy_rising(figure, lowest))
}

fn reward_hacked(run: &Run, step: usize) -> Option<Finding> {
    let best = run.best[step];
    let fall = run.success[best] - run.success[step];
    let (before, now) = (run.mean_return[best], run.mean_return[step]);
    // Where training success rises, so may the return: questions of a step differ from those held out.
    if now - before < HACKED || run.train_success[step] > run.train_success[best] {
        return None;
    }
    over(fall, HACKED, || text::reward_hacked([before, now], [run.success[best], run.success[step]]))
}

fn ratio_off(run: &Run, step: usize) -> Option<Finding> {
    let update = &run.reports[step].update;
    match update.updates {
        0 => None,
        1 => over(update.ratio_deviation, RATIO_MISMATCH, || text::ratio_mismatch(update.ratio_deviation)),
        _ => over((update.ratio_mean - 1.0).abs(), RATIO_MEAN, || text::ratio_mean(update.ratio_mean)),
    }
}

fn clip_fraction_high(run: &Run, step: usize) -> Option<Finding> {
    let bound = match run.config.ratio_level {
        RatioLevel::Token => CLIPPED,
        _ => CLIPPED_SEQUENCE,
    };
    over(run.clipped[step], bound, || text::clip_fraction_high(run.clipped[step]))
}

fn kl_high(run: &Run, step: usize) -> Option<Finding> {
    over(run.kl[step], KL, || text::kl_high(run.kl[step]))
}

fn gradient_spike(run: &Run, step: usize) -> Option<Finding> {
    let norm = |report: &Report| report.update.gradient_norm;
    // Steps in which no group had a signal have no gradient.
    let mut earlier: Vec<f64> = run.reports[..step].iter().rev().map(norm).filter(|&norm| norm > 0.0).take(SPIKE_STEPS).collect();
    earlier.sort_by(f64::total_cmp);
    let (figure, highest) = (norm(&run.reports[step]), earlier.last().copied()?);
    let median = earlier[earlier.len() / 2];
    // As a task is learned gradients become small, and one of the old size is no spike.
    if earlier.len() < SPIKE_STEPS_LEAST || figure <= highest {
        return None;
    }
    over(figure, SPIKE * median, || text::gradient_spike(figure, median))
}

fn malformed_rising(run: &Run, step: usize) -> Option<Finding> {
    let (figure, lowest) = (run.malformed[step], run.lowest_malformed[step]);
    over(figure, lowest + MALFORMED_RISE, || text::malformed_rising(figure, lowest))
}

#[cfg(test)]
mod tests;
