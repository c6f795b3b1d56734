//! A run that can stand still after every phase.

use crate::config::ExperimentConfig;
use crate::credit::CreditMap;
use crate::policy::Policy;
use crate::reward::RewardTable;
use crate::rollout::Trajectory;
use crate::trainer::{Rollout, TrainError, Trainer};
use crate::web::protocol::{Batch, Phase};

use super::Report;

/// A trainer and what the phases of the current step have produced so far.
pub struct Run {
    trainer: Trainer,
    pending: Pending,
}

enum Pending {
    Nothing,
    Sampled(Rollout),
    Scored(Rollout, RewardTable),
    Credited(Rollout, CreditMap),
}

/// What one phase gave.
pub struct PhaseResult {
    /// The step it belongs to.
    pub iteration: usize,
    pub done: Phase,
    pub next: Phase,
    /// The episodes, with what is known of them; after `Update` they are gone.
    pub batch: Option<Batch>,
    /// After `Update`.
    pub report: Option<Report>,
}

impl Run {
    /// A run that has not begun.
    pub fn new(config: ExperimentConfig, policy: &Policy) -> Self {
        Run { trainer: Trainer::new(config, policy), pending: Pending::Nothing }
    }

    /// The trainer.
    pub fn trainer(&self) -> &Trainer {
        &self.trainer
    }

    /// Whether the stated number of iterations is done.
    pub fn finished(&self) -> bool {
        self.trainer.iteration() >= self.trainer.config().iterations
    }

    /// The phase that comes next.
    pub fn next(&self) -> Phase {
        match self.pending {
            Pending::Nothing => Phase::Sample,
            Pending::Sampled(..) => Phase::Score,
            Pending::Scored(..) => Phase::Credit,
            Pending::Credited(..) => Phase::Update,
        }
    }

    /// Does the next phase.
    ///
    /// # Errors
    /// As [`Trainer::train_step`]. The step starts over with sampling.
    pub async fn advance(&mut self) -> Result<PhaseResult, TrainError> {
        let (iteration, done) = (self.trainer.iteration(), self.next());
        let (mut batch, mut report) = (None, None);
        self.pending = match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Nothing => {
                let rollout = self.trainer.sample().await?;
                batch = Some(frozen(iteration, &rollout, None, None));
                Pending::Sampled(rollout)
            }
            Pending::Sampled(rollout) => {
                let rewards = self.trainer.score(&rollout);
                batch = Some(frozen(iteration, &rollout, Some(&rewards), None));
                Pending::Scored(rollout, rewards)
            }
            Pending::Scored(rollout, rewards) => {
                let credit = self.trainer.credit(&rollout, &rewards);
                batch = Some(frozen(iteration, &rollout, Some(&rewards), Some(&credit)));
                Pending::Credited(rollout, credit)
            }
            Pending::Credited(rollout, credit) => {
                report = Some(self.trainer.update(&rollout, &credit).await?);
                Pending::Nothing
            }
        };
        Ok(PhaseResult { iteration, done, next: self.next(), batch, report })
    }
}

/// The episodes as the page keeps them.
pub fn frozen(iteration: usize, rollout: &Rollout, rewards: Option<&RewardTable>, credit: Option<&CreditMap>) -> Batch {
    let trajectories: Vec<Trajectory> = rollout.training.clone();
    Batch { iteration, groups: rollout.groups.clone(), trajectories, rewards: rewards.cloned(), credit: credit.cloned() }
}
