//! Early warnings: what the reports of a run say is going wrong, before success shows it.
//!
//! Every rule looks at one step and the steps before it, never ahead, and fires once: a warning stays as it was when later
//! reports come in. Means over several steps keep a single odd step from counting.

mod text;

use std::collections::VecDeque;

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

/// A rule looks at a run up to its last step.
type Rule = fn(&Run, &Report) -> Option<Finding>;

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

/// Watches a run: takes the reports of its steps one by one, in order. A step costs the same however many came before it.
pub struct Watch {
    run: Run,
    found: Vec<Warning>,
}

impl Watch {
    /// Before the first step there are the warnings that the settings alone decide.
    pub fn new(config: &ExperimentConfig) -> Self {
        let of_settings = [
            (WarningKind::SingletonGroups, singleton_groups(config)),
            (WarningKind::PairsScaled, pairs_scaled(config)),
            (WarningKind::CallingPays, calling_pays(config)),
        ];
        let found = of_settings.into_iter().filter_map(|(kind, finding)| Some(finding?.warning(kind, 0))).collect();
        Watch { run: Run::new(config), found }
    }

    /// Takes the report of the next step.
    pub fn add(&mut self, report: &Report) {
        self.run.add(report);
        if self.run.steps == 1 {
            self.found.iter_mut().for_each(|warning| warning.iteration = report.iteration);
        }
        for &(kind, rule) in RULES {
            if self.found.iter().any(|warning| warning.kind == kind) {
                continue;
            }
            self.found.extend(rule(&self.run, report).map(|finding| finding.warning(kind, report.iteration)));
        }
    }

    /// The warnings of the run so far, one at most of each kind, by iteration and then kind.
    pub fn warnings(&self) -> &[Warning] {
        &self.found
    }
}

impl Finding {
    fn warning(self, kind: WarningKind, iteration: usize) -> Warning {
        let Finding { figure, bound, text: (text_en, text_zh) } = self;
        Warning { kind, iteration, figure, bound, text_en, text_zh }
    }
}

/// A run at its last step, as the rules see it: means over windows that end there, and extremes so far.
struct Run {
    config: ExperimentConfig,
    steps: usize,
    train_success: Window<WINDOW>,
    /// Of the held-out questions, which are the same in every step, or of the training ones where none are held out.
    success: Window<WINDOW>,
    mean_return: Window<WINDOW>,
    /// The means at the last step at which `success` was best.
    best: Best,
    no_signal: Window<WINDOW>,
    /// Entropy after the last update.
    last_entropy: f64,
    entropy: Window<WINDOW>,
    recent_entropy: Window<SHORT_WINDOW>,
    lowest_entropy: f64,
    malformed: Window<SHORT_WINDOW>,
    lowest_malformed: f64,
    clipped: Window<SHORT_WINDOW>,
    kl: Window<SHORT_WINDOW>,
    /// Lengths of the last gradients before that of this step. Steps in which no group had a signal have none.
    norms: VecDeque<f64>,
    norm: f64,
}

/// Means at the step at which success was best.
#[derive(Clone, Copy)]
struct Best {
    success: f64,
    train_success: f64,
    mean_return: f64,
}

impl Run {
    fn new(config: &ExperimentConfig) -> Self {
        Run {
            config: config.clone(),
            steps: 0,
            train_success: Window::default(),
            success: Window::default(),
            mean_return: Window::default(),
            best: Best { success: f64::NAN, train_success: f64::NAN, mean_return: f64::NAN },
            no_signal: Window::default(),
            last_entropy: f64::NAN,
            entropy: Window::default(),
            recent_entropy: Window::default(),
            lowest_entropy: f64::INFINITY,
            malformed: Window::default(),
            lowest_malformed: f64::INFINITY,
            clipped: Window::default(),
            kl: Window::default(),
            norms: VecDeque::new(),
            norm: 0.0,
        }
    }

    fn add(&mut self, report: &Report) {
        let update = &report.update;
        self.steps += 1;
        self.train_success.add(report.train_success);
        self.success.add(if report.held_out_episodes == 0 { report.train_success } else { report.held_out_success });
        self.mean_return.add(report.mean_return);
        let (success, train_success, mean_return) = (self.success.mean(), self.train_success.mean(), self.mean_return.mean());
        if self.steps == 1 || success >= self.best.success {
            self.best = Best { success, train_success, mean_return };
        }
        self.no_signal.add(report.no_signal_groups);
        // A step without an update (nothing was left to train on) says nothing of entropy: the last figure stands for it.
        if update.updates > 0 {
            self.last_entropy = update.entropy;
        }
        self.entropy.add(self.last_entropy);
        self.recent_entropy.add(self.last_entropy);
        self.lowest_entropy = self.lowest_entropy.min(self.recent_entropy.mean());
        self.malformed.add(report.malformed);
        self.lowest_malformed = self.lowest_malformed.min(self.malformed.mean());
        self.clipped.add(update.clip_fraction);
        self.kl.add(update.approximate_kl);
        if self.norm > 0.0 {
            self.norms.push_back(self.norm);
        }
        if self.norms.len() > SPIKE_STEPS {
            self.norms.pop_front();
        }
        self.norm = update.gradient_norm;
    }
}

/// The last values of a measure, at the start fewer than `SIZE`.
#[derive(Default)]
struct Window<const SIZE: usize>(VecDeque<f64>);

impl<const SIZE: usize> Window<SIZE> {
    fn add(&mut self, value: f64) {
        if self.0.len() == SIZE {
            self.0.pop_front();
        }
        self.0.push_back(value);
    }

    fn mean(&self) -> f64 {
        self.0.iter().sum::<f64>() / self.0.len() as f64
    }
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

fn no_signal(run: &Run, _: &Report) -> Option<Finding> {
    let (share, success, group) = (run.no_signal.mean(), run.train_success.mean(), run.config.num_generations);
    // Groups of one never have a signal, which has its own warning.
    if run.steps < WINDOW || success >= LEARNED || group == 1 {
        return None;
    }
    over(share, NO_SIGNAL, || text::no_signal(share, success, group, uninformative_probability(success, group)))
}

fn entropy_collapse(run: &Run, _: &Report) -> Option<Finding> {
    let (figure, success) = (run.entropy.mean(), run.train_success.mean());
    let collapsed = run.steps >= WINDOW && figure < ENTROPY_FLOOR && success < LOW_SUCCESS;
    collapsed.then(|| Finding { figure, bound: ENTROPY_FLOOR, text: text::entropy_collapse(figure, success) })
}

fn entropy_rising(run: &Run, _: &Report) -> Option<Finding> {
    let (figure, lowest) = (run.recent_entropy.mean(), run.lowest_entropy);
    let bound = (lowest * ENTROPY_RISE).max(lowest + ENTROPY_RISE_NATS);
    over(figure, bound, || text::entropy_rising(figure, lowest))
}

fn reward_hacked(run: &Run, _: &Report) -> Option<Finding> {
    let (best, success) = (run.best, run.success.mean());
    let now = run.mean_return.mean();
    // Where training success rises, so may the return: questions of a step differ from those held out.
    if now - best.mean_return < HACKED || run.train_success.mean() > best.train_success {
        return None;
    }
    over(best.success - success, HACKED, || text::reward_hacked([best.mean_return, now], [best.success, success]))
}

fn ratio_off(_: &Run, report: &Report) -> Option<Finding> {
    let update = &report.update;
    match update.updates {
        0 => None,
        1 => over(update.ratio_deviation, RATIO_MISMATCH, || text::ratio_mismatch(update.ratio_deviation)),
        _ => over((update.ratio_mean - 1.0).abs(), RATIO_MEAN, || text::ratio_mean(update.ratio_mean)),
    }
}

fn clip_fraction_high(run: &Run, _: &Report) -> Option<Finding> {
    let bound = match run.config.ratio_level {
        RatioLevel::Token => CLIPPED,
        _ => CLIPPED_SEQUENCE,
    };
    let figure = run.clipped.mean();
    over(figure, bound, || text::clip_fraction_high(figure))
}

fn kl_high(run: &Run, _: &Report) -> Option<Finding> {
    let figure = run.kl.mean();
    over(figure, KL, || text::kl_high(figure))
}

fn gradient_spike(run: &Run, _: &Report) -> Option<Finding> {
    let mut earlier: Vec<f64> = run.norms.iter().copied().collect();
    earlier.sort_by(f64::total_cmp);
    let (figure, highest) = (run.norm, earlier.last().copied()?);
    let median = earlier[earlier.len() / 2];
    // As a task is learned gradients become small, and one of the old size is no spike.
    if earlier.len() < SPIKE_STEPS_LEAST || figure <= highest {
        return None;
    }
    over(figure, SPIKE * median, || text::gradient_spike(figure, median))
}

fn malformed_rising(run: &Run, _: &Report) -> Option<Finding> {
    let (figure, lowest) = (run.malformed.mean(), run.lowest_malformed);
    over(figure, lowest + MALFORMED_RISE, || text::malformed_rising(figure, lowest))
}

#[cfg(test)]
mod tests;
