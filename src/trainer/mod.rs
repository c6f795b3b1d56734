//! The driver: READ FIRST. One training step is the four phases of [`Trainer::train_step`], in order.

mod run;
mod warm_start;

pub use run::{PhaseResult, Run, frozen};
pub use warm_start::{WarmStartError, imitation, initial_policy, shipped_policy};

use web_time::Instant;

use crate::config::ExperimentConfig;
use crate::credit::{self, CreditMap};
use crate::environment;
use crate::learner::{Learner, LearnerError, TrainingExample, UpdateSettings};
use crate::metrics::{Report, summarise_episodes};
use crate::policy::Policy;
use crate::reward::{self, RewardTable};
use crate::rollout::{Episode, GroupInfo, RolloutError, Sampling, Trajectory, roll_out};
use crate::seed::{Purpose, RootSeed};

/// A run in progress.
pub struct Trainer {
    config: ExperimentConfig,
    learner: Learner,
    question_types: usize,
    iteration: usize,
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
    pub groups: Vec<GroupInfo>,
    /// Sorted by group, then member.
    pub training: Vec<Trajectory>,
    pub held_out: Vec<Trajectory>,
    seconds: f64,
}

impl Trainer {
    /// A run that starts from `policy`, which is also the reference for KL.
    pub fn new(config: ExperimentConfig, policy: &Policy) -> Self {
        let learner = Learner::new(policy, UpdateSettings::of(&config));
        let question_types = environment::declaration(&config).question_types.len();
        Trainer { config, learner, question_types, iteration: 0 }
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
    pub async fn train_step(&mut self) -> Result<(Rollout, RewardTable, CreditMap, Report), TrainError> {
        let rollout = self.sample().await?;
        let rewards = self.score(&rollout);
        let credit = self.credit(&rollout, &rewards);
        let report = self.update(&rollout, &credit).await?;
        Ok((rollout, rewards, credit, report))
    }

    /// Phase 1: the policy plays `groups` questions `num_generations` times each, and the held-out questions once each, all in
    /// one batch.
    ///
    /// # Errors
    /// When the device fails or a log-probability is not finite; the update that made it so is then taken back.
    pub async fn sample(&mut self) -> Result<Rollout, TrainError> {
        let start = Instant::now();
        let (groups, mut episodes) = self.training_episodes();
        let count = episodes.len();
        episodes.extend(self.held_out_episodes(self.config.held_out));
        let mut training = match roll_out(&self.policy(), episodes, &Sampling::of(&self.config)).await {
            Err(error @ RolloutError::NonFinite) => {
                self.learner.undo();
                return Err(error.into());
            }
            result => result?,
        };
        let held_out = training.split_off(count);
        Ok(Rollout { groups, training, held_out, seconds: start.elapsed().as_secs_f64() })
    }

    /// Phase 2: facts get their worth.
    pub fn score(&self, rollout: &Rollout) -> RewardTable {
        reward::score(&rollout.training, &reward::weighted_terms(&self.config))
    }

    /// Phase 3: rewards become one advantage per turn.
    pub fn credit(&self, rollout: &Rollout, rewards: &RewardTable) -> CreditMap {
        let groups: Vec<usize> = rollout.training.iter().map(|trajectory| trajectory.group).collect();
        credit::assign(&groups, &rewards.totals(), &self.config)
    }

    /// Phase 4: the policy changes. Counts the step as done.
    ///
    /// # Errors
    /// When the device fails or something is not a finite number; the weights are then those before the step.
    pub async fn update(&mut self, rollout: &Rollout, credit: &CreditMap) -> Result<Report, TrainError> {
        let start = Instant::now();
        let example = |(trajectory, advantages): (&Trajectory, &Vec<f64>)| {
            TrainingExample::new(trajectory, advantages, !self.config.loss_mask)
        };
        let examples: Vec<_> = rollout.training.iter().zip(&credit.advantages).map(example).collect();
        let update = self.learner.update(&examples, self.iteration).await?;
        let returns: Vec<f64> = credit.returns_to_go.iter().map(|turns| turns.first().copied().unwrap_or(0.0)).collect();
        let mut report = summarise_episodes(self.iteration, &rollout.training, &rollout.held_out, &returns, self.question_types);
        report.no_signal_groups = share(credit.no_signal.iter().filter(|&&flat| flat).count(), credit.no_signal.len());
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
        let mut episodes = self.held_out_episodes(count);
        loop {
            let part: Vec<Episode> = episodes.by_ref().take(512).collect();
            if part.is_empty() {
                return Ok(played);
            }
            played.extend(roll_out(&self.policy(), part, &Sampling::of(&self.config)).await?);
        }
    }

    /// The groups of this step: every member of a group has the same question and hidden state, and its own sampling draws.
    fn training_episodes(&self) -> (Vec<GroupInfo>, Vec<Episode>) {
        let (root, iteration) = (RootSeed(self.config.seed), self.iteration as u32);
        let (mut groups, mut episodes) = (Vec::new(), Vec::new());
        for group in 0..self.config.groups {
            let mut environment = environment::create(&self.config);
            let prompt = environment.reset(root.draws(Purpose::Question, iteration, group as u32, 0));
            groups.push(GroupInfo {
                prompt: prompt.clone(),
                question_type: environment.question_type(),
                hidden_state: environment.hidden_state(),
            });
            episodes.extend((0..self.config.num_generations).map(|member| Episode {
                group,
                member,
                environment: environment.boxed_clone(),
                prompt: prompt.clone(),
                sampling: root.draws(Purpose::SampleToken, iteration, group as u32, member as u32),
                tool: root.draws(Purpose::Tool, iteration, group as u32, member as u32),
            }));
        }
        (groups, episodes)
    }

    /// The held-out questions: the same, with the same draws, in every step.
    fn held_out_episodes(&self, count: usize) -> impl Iterator<Item = Episode> {
        let root = RootSeed(self.config.seed);
        (0..count).map(move |index| {
            let mut environment = environment::create(&self.config);
            let question = index as u32;
            Episode {
                group: index,
                member: 0,
                prompt: environment.reset(root.draws(Purpose::HeldOutQuestion, 0, question, 0)),
                environment,
                sampling: root.draws(Purpose::HeldOutSampleToken, 0, question, 0),
                tool: root.draws(Purpose::HeldOutTool, 0, question, 0),
            }
        })
    }
}

fn share(count: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { count as f64 / of as f64 }
}
