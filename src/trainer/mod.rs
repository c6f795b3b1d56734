//! The driver: READ FIRST. One training step is the four phases of [`Trainer::train_step`], in order.

mod counterfactual;
mod episodes;
#[cfg(feature = "cpu")]
mod helper;
mod reroll;
mod resume;
mod run;
mod true_credit;
mod values;
mod warm_start;

pub use counterfactual::{ChangeError, Changed, PlayedOn};
pub use episodes::GroupStart;
#[cfg(feature = "cpu")]
pub use helper::{Helper, HelperError};
pub use reroll::Boundaries;
pub use resume::ResumeError;
pub use run::{PhaseResult, Run, frozen};
pub use true_credit::TrueCreditRun;
pub use warm_start::{WarmStartError, imitation, initial_policy, shipped_policy};

use std::cell::RefCell;
use std::rc::Rc;

use web_time::Instant;

use crate::config::{CreditMethod, ExperimentConfig, KlPlacement, NoSignalGroups};
use crate::credit::{self, CreditMap, Evidence};
use crate::environment;
use crate::learner::{Critic, CriticSettings, Learner, LearnerError, TrainingExample, UpdateSettings, UpdateStatistics};
use crate::metrics::{Report, summarise_episodes};
use crate::objective::trained_trajectories;
use crate::parallel;
use crate::policy::Policy;
use crate::reward::{self, RewardTable};
use crate::rollout::{Episode, GroupInfo, RolloutError, Sampling, Trajectory, roll_out};
use episodes::{Plan, held_out_episodes, training_episodes};

/// A run in progress.
pub struct Trainer {
    config: ExperimentConfig,
    learner: Learner,
    /// Where the credit method needs one.
    critic: Option<Critic>,
    question_types: usize,
    iteration: usize,
    /// What the next step plays, where there was time to plan it.
    plan: Rc<RefCell<Option<Plan>>>,
}

/// Why a training step failed. The weights are those before it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TrainError {
    #[error("sampling: {0}")]
    Rollout(#[from] RolloutError),
    #[error("update: {0}")]
    Learner(#[from] LearnerError),
}

impl TrainError {
    /// What was not a finite number, where that was the cause.
    pub fn non_finite(&self) -> Option<String> {
        match self {
            TrainError::Rollout(RolloutError::NonFinite) => Some("a log-probability".to_string()),
            TrainError::Learner(LearnerError::NonFinite(quantity)) => Some(quantity.to_string()),
            _ => None,
        }
    }
}

/// The episodes of a training step, just sampled.
pub struct Rollout {
    pub iteration: usize,
    pub groups: Vec<GroupInfo>,
    /// Where each group started.
    pub starts: Vec<GroupStart>,
    /// Sorted by group, then member.
    pub training: Vec<Trajectory>,
    pub held_out: Vec<Trajectory>,
    seconds: f64,
}

/// Credit, and the values of states that it was made from where the method needs some (`[trajectory][turn]`).
pub struct Credit {
    pub method: CreditMethod,
    pub map: CreditMap,
    pub values: Option<Vec<Vec<f64>>>,
}

impl Trainer {
    /// A run that starts from `policy`, which is also the reference for KL.
    pub fn new(config: ExperimentConfig, policy: &Policy) -> Self {
        let learner = Learner::new(policy, UpdateSettings::of(&config));
        let critic = (config.credit_method == CreditMethod::Gae).then(|| Critic::new(policy, CriticSettings::of(&config)));
        let question_types = environment::declaration(&config).question_types.len();
        Trainer { config, learner, critic, question_types, iteration: 0, plan: Rc::default() }
    }

    /// Training steps done.
    pub fn iteration(&self) -> usize {
        self.iteration
    }

    /// The settings of the run.
    pub fn config(&self) -> &ExperimentConfig {
        &self.config
    }

    /// The current policy, without gradients.
    pub fn policy(&self) -> Policy {
        self.learner.policy()
    }

    /// One training step: sample, score, credit, update.
    ///
    /// # Errors
    /// When the device fails or something is not a finite number; the weights are then those before the step.
    pub async fn train_step(&mut self) -> Result<(Rollout, RewardTable, Credit, Report), TrainError> {
        let rollout = self.sample().await?;
        let rewards = self.score(&rollout).await?;
        let credit = self.credit(&rollout, &rewards).await?;
        let report = self.update(&rollout, &credit).await?;
        Ok((rollout, rewards, credit, report))
    }

    /// Phase 1: the policy plays `groups` questions `num_generations` times each, and the held-out questions once each, all in
    /// one batch. Where the settings ask for it, groups without signal are replaced.
    ///
    /// # Errors
    /// When the device fails or a log-probability is not finite; the update that made it so is then taken back.
    pub async fn sample(&mut self) -> Result<Rollout, TrainError> {
        let start = Instant::now();
        let planned = self.plan.take().filter(|plan| plan.iteration == self.iteration);
        let Plan { starts, episodes, .. } = planned.unwrap_or_else(|| Plan::new(&self.config, self.iteration));
        let count = episodes.len() - self.config.held_out;
        let mut training = match roll_out(&self.policy(), episodes, &Sampling::of(&self.config)).await {
            Err(error @ RolloutError::NonFinite) => {
                self.learner.undo();
                return Err(error.into());
            }
            result => result?,
        };
        let held_out = training.split_off(count);
        let groups = Vec::new();
        let mut rollout = Rollout { iteration: self.iteration, groups, starts, training, held_out, seconds: 0.0 };
        if self.config.no_signal_groups == NoSignalGroups::Resample {
            self.resample(&mut rollout).await?;
        }
        rollout.groups = rollout.starts.iter().map(GroupStart::info).collect();
        rollout.seconds = start.elapsed().as_secs_f64();
        Ok(rollout)
    }

    /// Phase 2: facts get their worth. Where KL acts in the reward, every turn pays for its distance from the reference.
    ///
    /// # Errors
    /// When the device fails.
    pub async fn score(&self, rollout: &Rollout) -> Result<RewardTable, TrainError> {
        let mut rewards = reward::score(&rollout.training, &reward::weighted_terms(&self.config));
        if self.config.beta != 0.0 && self.config.kl_placement == KlPlacement::Reward {
            let examples: Vec<_> = rollout.training.iter().map(TrainingExample::demonstration).collect();
            let ratios = self.learner.reference_log_ratios(&examples).await?;
            rewards.charge_kl(&rollout.training, &ratios, self.config.beta);
        }
        Ok(rewards)
    }

    /// Phase 3: rewards become one advantage per turn. Methods that compare with the value of a state ask the critic, or measure
    /// it by playing on from every turn.
    ///
    /// # Errors
    /// When the device fails or something is not a finite number.
    pub async fn credit(&self, rollout: &Rollout, rewards: &RewardTable) -> Result<Credit, TrainError> {
        let values = self.values(rollout).await?;
        let evidence = Evidence::of(&rollout.training, rewards, values.clone());
        Ok(Credit { method: self.config.credit_method, map: credit::assign(&evidence, &self.config), values })
    }

    /// Phase 4: the policy changes (and the critic, where there is one). Counts the step as done.
    ///
    /// # Errors
    /// When the device fails or something is not a finite number; the weights are then those before the step.
    pub async fn update(&mut self, rollout: &Rollout, credit: &Credit) -> Result<Report, TrainError> {
        let start = Instant::now();
        let examples = self.examples(rollout, &credit.map);
        // The critic goes first: where it fails, the policy has not moved.
        let critic = match (&mut self.critic, &credit.values) {
            (Some(critic), Some(values)) => Some(critic.fit(&rollout.training, values, &credit.map.returns_to_go).await?),
            _ => None,
        };
        let (config, next, plan) = (self.config.clone(), self.iteration + 1, self.plan.clone());
        parallel::while_waiting(move || *plan.borrow_mut() = Some(Plan::new(&config, next)));
        let update = UpdateStatistics { critic, ..self.learner.update(&examples, self.iteration).await? };
        let returns: Vec<f64> = credit.map.returns_to_go.iter().map(|turns| turns.first().copied().unwrap_or(0.0)).collect();
        let mut report = summarise_episodes(self.iteration, &rollout.training, &rollout.held_out, &returns, self.question_types);
        report.no_signal_groups = share(credit.map.no_signal.iter().filter(|&&flat| flat).count(), credit.map.no_signal.len());
        report.update = update;
        report.rollout_seconds = rollout.seconds;
        report.seconds = rollout.seconds + start.elapsed().as_secs_f64();
        report.tokens_per_second = report.tokens as f64 / report.seconds.max(1e-9);
        self.iteration += 1;
        Ok(report)
    }

    /// Plays the first `count` held-out questions.
    ///
    /// # Errors
    /// When the device fails or a log-probability is not finite.
    pub async fn play_held_out(&self, count: usize) -> Result<Vec<Trajectory>, TrainError> {
        let mut played = Vec::with_capacity(count);
        let mut episodes = held_out_episodes(&self.config, count);
        loop {
            let part: Vec<Episode> = episodes.by_ref().take(512).collect();
            if part.is_empty() {
                return Ok(played);
            }
            played.extend(roll_out(&self.policy(), part, &Sampling::of(&self.config)).await?);
        }
    }

    /// Dynamic sampling (DAPO, arXiv:2503.14476, section 3.2): groups whose episodes all earned the same make way for other
    /// questions, a bounded number of times.
    async fn resample(&self, rollout: &mut Rollout) -> Result<(), TrainError> {
        for round in 1..=RESAMPLING_ROUNDS {
            let rewards = reward::score(&rollout.training, &reward::weighted_terms(&self.config));
            let map = credit::assign(
                &Evidence::of(&rollout.training, &rewards, None),
                &ExperimentConfig { credit_method: CreditMethod::Grpo, ..self.config.clone() },
            );
            let flat: Vec<usize> = (0..rollout.starts.len()).filter(|&group| map.equal_returns[group]).collect();
            if flat.is_empty() {
                break;
            }
            for &group in &flat {
                let place = (round * self.config.groups + group) as u32;
                rollout.starts[group] = GroupStart::new(&self.config, self.iteration, place);
            }
            let flat_starts = flat.iter().map(|&group| (group, &rollout.starts[group]));
            let episodes = training_episodes(&self.config, self.iteration, flat_starts);
            let played = roll_out(&self.policy(), episodes, &Sampling::of(&self.config)).await?;
            let size = self.config.num_generations;
            for (&group, episodes) in flat.iter().zip(played.chunks(size)) {
                rollout.training[group * size..(group + 1) * size].clone_from_slice(episodes);
            }
        }
        Ok(())
    }

    /// What is trained on: the episodes that the settings leave in, or the best and the worst of each group.
    fn examples(&self, rollout: &Rollout, credit: &CreditMap) -> Vec<TrainingExample> {
        let example =
            |index: usize| TrainingExample::new(&rollout.training[index], &credit.advantages[index], !self.config.loss_mask);
        trained_trajectories(&self.config, &rollout.training, credit).into_iter().map(example).collect()
    }
}

/// How often flat groups are replaced at most.
const RESAMPLING_ROUNDS: usize = 3;

fn share(count: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { count as f64 / of as f64 }
}
