//! A run that can stand still after every phase.

use std::rc::Rc;

use crate::config::ExperimentConfig;
use crate::policy::Policy;
use crate::reward::RewardTable;
use crate::trainer::{Credit, Rollout, TrainError, Trainer};
use crate::web::protocol::{Batch, Phase};

use super::{Changed, PlayedOn, Report, TrueCreditRun};

/// A trainer and what the phases of the current step have produced so far.
pub struct Run {
    trainer: Trainer,
    pending: Pending,
    /// The last episodes that were credited, and the policy that played them.
    last: Option<Played>,
}

/// Episodes with the policy that played them.
struct Played {
    rollout: Rc<Rollout>,
    rewards: Rc<RewardTable>,
    credit: Rc<Credit>,
    policy: Policy,
}

enum Pending {
    Nothing,
    Sampled(Rc<Rollout>),
    Scored(Rc<Rollout>, Rc<RewardTable>),
    Credited(Rc<Rollout>, Rc<RewardTable>, Rc<Credit>),
}

/// What one phase gave.
pub struct PhaseResult {
    /// The step it belongs to.
    pub iteration: usize,
    pub done: Phase,
    pub next: Phase,
    /// After `Update`.
    pub report: Option<Report>,
}

impl Run {
    /// A run that has not begun.
    pub fn new(config: ExperimentConfig, policy: &Policy) -> Self {
        Run::on(Trainer::new(config, policy))
    }

    /// A run that goes on with a trainer that stands between two steps.
    pub fn on(trainer: Trainer) -> Self {
        Run { trainer, pending: Pending::Nothing, last: None }
    }

    /// From now on updates keep what a checkpoint needs.
    pub fn keep_checkpoints(&mut self) {
        self.trainer.keep_checkpoints();
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
        let mut report = None;
        self.pending = match std::mem::replace(&mut self.pending, Pending::Nothing) {
            Pending::Nothing => Pending::Sampled(Rc::new(self.trainer.sample().await?)),
            Pending::Sampled(rollout) => {
                let rewards = self.trainer.score(&rollout).await?;
                Pending::Scored(rollout, Rc::new(rewards))
            }
            Pending::Scored(rollout, rewards) => {
                let credit = Rc::new(self.trainer.credit(&rollout, &rewards).await?);
                let policy = self.trainer.policy();
                self.last = Some(Played { rollout: rollout.clone(), rewards: rewards.clone(), credit: credit.clone(), policy });
                Pending::Credited(rollout, rewards, credit)
            }
            Pending::Credited(rollout, _, credit) => {
                report = Some(self.trainer.update(&rollout, &credit).await?);
                Pending::Nothing
            }
        };
        Ok(PhaseResult { iteration, done, next: self.next(), report })
    }

    /// The episodes of the current step, with what is known of them so far; `None` between two steps.
    pub fn episodes(&self) -> Option<Batch> {
        match &self.pending {
            Pending::Nothing => None,
            Pending::Sampled(rollout) => Some(frozen(rollout, None, None)),
            Pending::Scored(rollout, rewards) => Some(frozen(rollout, Some(rewards), None)),
            Pending::Credited(rollout, rewards, credit) => Some(frozen(rollout, Some(rewards), Some(credit))),
        }
    }

    /// The last episodes that were credited, also after the update that they were for; `None` before there are any.
    pub fn credited(&self) -> Option<Batch> {
        let Played { rollout, rewards, credit, .. } = self.last.as_ref()?;
        Some(frozen(rollout, Some(rewards), Some(credit)))
    }

    /// The step of the last episodes that were credited.
    pub fn last_iteration(&self) -> Option<usize> {
        self.last.as_ref().map(|played| played.rollout.iteration)
    }

    /// Plays on from a change of the last episodes that were credited, with the policy that played them: the episode as it was and
    /// as it goes, each with `rolls` continuations. `None` before there are any or where the change does not fit.
    ///
    /// # Errors
    /// When the device fails or a log-probability is not finite.
    pub async fn counterfactual(&self, changed: &Changed, rolls: usize) -> Result<Option<(PlayedOn, PlayedOn)>, TrainError> {
        let config = self.trainer.config();
        let Some(Played { rollout, policy, .. }) = self.last.as_ref() else { return Ok(None) };
        if changed.check(rollout, config).is_err() {
            return Ok(None);
        }
        Ok(Some(changed.play(policy, rollout, config, rolls).await?))
    }

    /// A measurement of the true credit of the last episodes that were credited; `None` before there are any.
    pub fn true_credit(&self) -> Option<TrueCreditRun> {
        let Played { rollout, rewards, credit, policy } = self.last.as_ref()?;
        Some(TrueCreditRun::new(self.trainer.config(), policy, rollout, rewards, credit.values.clone()))
    }
}

/// The episodes as the page keeps them.
pub fn frozen(rollout: &Rollout, rewards: Option<&RewardTable>, credit: Option<&Credit>) -> Batch {
    Batch {
        iteration: rollout.iteration,
        groups: rollout.groups.clone(),
        trajectories: rollout.training.clone(),
        rewards: rewards.cloned(),
        credit: credit.map(|credit| credit.map.clone()),
        values: credit.and_then(|credit| credit.values.clone()),
        valued_by: credit.filter(|credit| credit.values.is_some()).map(|credit| credit.method),
    }
}
