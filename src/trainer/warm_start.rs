//! Where a run's policy comes from: fresh weights, imitation, or a checkpoint that ships with the page.

use burn::tensor::Device;

use crate::config::{self, ExperimentConfig, Section};
use crate::environment::{REGISTRY, declaration};
use crate::learner::{Imitation, ImitationSettings, LearnerError, TrainingExample, UpdateSettings};
use crate::policy::{Checkpoint, CheckpointError, Policy, PolicyConfig, Weights};
use crate::rollout::demonstrate;
use crate::seed::RootSeed;

/// Why there is no warm start.
#[derive(Debug, thiserror::Error)]
pub enum WarmStartError {
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Imitation(#[from] LearnerError),
    /// The checkpoint's policy has another shape than the settings ask for.
    #[error("the checkpoint's policy differs in {field}: {found}, the settings ask for {wanted}")]
    OtherShape { field: &'static str, found: usize, wanted: usize },
    /// The checkpoint imitates a demonstrator with other settings.
    #[error("the checkpoint imitates a demonstrator with {field} {found}, the settings ask for {wanted}")]
    OtherDemonstrator { field: &'static str, found: String, wanted: String },
}

/// A policy with the initial weights of the experiment's seed.
///
/// # Errors
/// Never in practice: initial weights fit their own shape.
pub fn initial_policy(config: &ExperimentConfig, device: &Device) -> Result<Policy, CheckpointError> {
    let shape = PolicyConfig::of(config);
    shape.init(device).with_weights(&Weights::initial(&shape, RootSeed(config.seed)))
}

/// The policy of a checkpoint, if it has the shape that the experiment asks for.
///
/// # Errors
/// When the file is not a checkpoint, is damaged, or holds a policy of another shape or of another demonstrator: says which
/// field differs.
pub fn shipped_policy(config: &ExperimentConfig, file: &[u8], device: &Device) -> Result<Policy, WarmStartError> {
    let checkpoint = Checkpoint::from_bytes(file)?;
    let (found, wanted) = (&checkpoint.policy, PolicyConfig::of(config));
    let fields = [
        ("vocabulary", found.vocabulary, wanted.vocabulary),
        ("context_length", found.context_length, wanted.context_length),
        ("d_model", found.d_model, wanted.d_model),
        ("layers", found.layers, wanted.layers),
        ("heads", found.heads, wanted.heads),
        ("hidden", found.hidden, wanted.hidden),
    ];
    if let Some((field, found, wanted)) = fields.into_iter().find(|(_, found, wanted)| found != wanted) {
        return Err(WarmStartError::OtherShape { field, found, wanted });
    }
    let imitated = config::from_link(&checkpoint.experiment, REGISTRY).config;
    let demonstrator = declaration(config).settings.iter().filter(|setting| setting.section == Section::WarmStart);
    for setting in demonstrator {
        let word = |of: &ExperimentConfig| of.value(setting.name).map(|value| value.to_string()).unwrap_or_default();
        let (found, wanted) = (word(&imitated), word(config));
        if found != wanted {
            return Err(WarmStartError::OtherDemonstrator { field: setting.name, found, wanted });
        }
    }
    Ok(wanted.init(device).with_weights(&checkpoint.weights)?)
}

/// The imitation phase of an experiment, before its first update.
///
/// # Errors
/// Never in practice: initial weights fit their own shape.
pub fn imitation(config: &ExperimentConfig, device: &Device) -> Result<Imitation, WarmStartError> {
    let policy = initial_policy(config, device)?;
    let settings = ImitationSettings {
        steps: config.imitation_steps,
        batch: config.imitation_batch,
        learning_rate: config.imitation_learning_rate,
        optimizer: UpdateSettings::of(config).optimizer,
    };
    let examples = demonstrate(config).iter().map(TrainingExample::demonstration).collect();
    Ok(Imitation::new(&policy, settings, examples, RootSeed(config.seed)))
}
