//! Checkpoints of a run: everything that it needs to go on as if it had never stopped.
//!
//! All draws are hashes of their place, so weights, moments and the number of steps are enough: the run that goes on plays the
//! same episodes and reports the same numbers as one that was not interrupted.

use super::Trainer;
use crate::config::{self, ExperimentConfig};
use crate::environment::REGISTRY;
use crate::policy::{Checkpoint, CheckpointError, Policy, PolicyConfig, TrainingState};
use crate::readback::ReadError;

/// Why a run cannot go on from a checkpoint.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    /// The file holds a policy and nothing to train it on with.
    #[error("the checkpoint holds a policy but no state of training: it can be a start, not be gone on with")]
    NoTrainingState,
    #[error("the checkpoint belongs to other settings, which differ in {0}")]
    OtherExperiment(String),
    #[error("the checkpoint is of step {found}, the run has {bound} steps")]
    Beyond { found: usize, bound: usize },
}

impl Trainer {
    /// From now on every update reads weights and moments back with its figures, so that [`Trainer::checkpoint`] waits for nothing.
    pub fn keep_checkpoints(&mut self) {
        self.learner.keep_state(true);
    }

    /// The run as it stands, between two training steps.
    ///
    /// # Errors
    /// When the device gave no data.
    pub async fn checkpoint(&self) -> Result<Checkpoint, ReadError> {
        let (weights, moments) = self.learner.state().await?;
        let critic = match &self.critic {
            Some(critic) => Some(critic.state().await?),
            None => None,
        };
        let reference = self.learner.reference_weights().await?;
        Ok(Checkpoint {
            policy: PolicyConfig::of(&self.config),
            experiment: config::to_link(&self.config, REGISTRY),
            weights,
            training: Some(TrainingState { iteration: self.iteration, moments, reference, critic }),
        })
    }

    /// A run that goes on from a checkpoint of the same experiment.
    ///
    /// # Errors
    /// When the file holds no state of training, belongs to other settings (the number of iterations and the title may differ), or
    /// does not fit their shapes.
    pub fn resume(config: ExperimentConfig, checkpoint: &Checkpoint, device: &burn::tensor::Device) -> Result<Self, ResumeError> {
        let training = checkpoint.training.as_ref().ok_or(ResumeError::NoTrainingState)?;
        let saved = config::from_link(&checkpoint.experiment, REGISTRY).config;
        let saved = ExperimentConfig { iterations: config.iterations, title: config.title.clone(), ..saved };
        let differing: Vec<&str> =
            config::differences(&saved, &config, REGISTRY).into_iter().map(|difference| difference.name).collect();
        if !differing.is_empty() {
            return Err(ResumeError::OtherExperiment(differing.join(", ")));
        }
        if training.iteration > config.iterations {
            return Err(ResumeError::Beyond { found: training.iteration, bound: config.iterations });
        }
        let start: Policy = PolicyConfig::of(&config).init(device).with_weights(&checkpoint.weights)?;
        let mut trainer = Trainer::new(config, &start);
        trainer.learner.restore(&checkpoint.weights, &training.moments, training.reference.as_ref())?;
        if let (Some(critic), Some((weights, moments))) = (&mut trainer.critic, &training.critic) {
            critic.restore(weights, moments)?;
        }
        trainer.iteration = training.iteration;
        Ok(trainer)
    }
}
