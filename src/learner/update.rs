//! The policy-gradient update of one training step.

use burn::module::Module;
use burn::tensor::{Device, Tensor};

use super::batch::training_device;
use super::fused::{Fused, State};
use super::loss::{Counts, SUMS};
use super::optimizer::named_state;
use super::{Optimizer, TrainingExample, UpdateSettings, UpdateStatistics};
use crate::objective::row_weights;
use crate::parallel::{self, Held};
use crate::policy::{CheckpointError, Moments, Policy, Weights};
use crate::readback::{ReadError, read};

/// Why an update failed. The weights are those before it.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LearnerError {
    #[error(transparent)]
    Read(#[from] ReadError),
    /// Names what was not a finite number.
    #[error("{0} is not a finite number")]
    NonFinite(&'static str),
}

/// The policy being trained, its optimizer, and the reference that KL and preferences are measured to.
pub struct Learner {
    pub(super) policy: Policy,
    pub(super) reference: Policy,
    pub(super) optimizer: Optimizer,
    /// Updates by kernels, where there are some for the device and the policy; they hold parameters and moments then.
    fused: Option<Fused>,
    /// What was before the last update, for [`Learner::undo`].
    before: Option<Before>,
    /// Whether updates read the new weights and moments back with their figures, where those do not lie in memory already.
    keep: bool,
    /// The current policy as other workers know it, where it was sent to them after the last update.
    pub(super) sent: Option<Held>,
    /// What the last update read back so; it is the state of the current policy.
    kept: Option<(Weights, Moments)>,
    pub(super) settings: UpdateSettings,
    pub(super) device: Device,
}

/// Policy and optimizer, by either path.
struct Before {
    policy: Policy,
    optimizer: Optimizer,
    state: Option<State>,
}

/// What an update reports, not read back yet, and how to make sense of it.
pub(super) struct Steps {
    /// The figures, `length` numbers together.
    pub tensors: Vec<Tensor<1>>,
    pub length: usize,
    pub decode: Box<Decode>,
}

/// From numbers read back to the figures of each optimizer step: sums, largest deviation of a ratio, gradient norm.
pub(super) type Decode = dyn Fn(&[f32]) -> Vec<Figures>;
pub(super) type Figures = [f64; SUMS + 2];

impl Learner {
    /// Starts from a policy, which is also the reference.
    pub fn new(policy: &Policy, settings: UpdateSettings) -> Self {
        let reference = policy.valid();
        let device = training_device(&reference.device());
        let fused = settings.kernels.then(|| Fused::new(&reference)).flatten();
        let optimizer = Optimizer::new(&reference, settings.optimizer);
        Learner {
            policy: reference.clone(),
            reference,
            optimizer,
            fused,
            before: None,
            keep: false,
            sent: None,
            kept: None,
            settings,
            device,
        }
    }

    /// Bytes that activations may take on a graphics device before the batch is cut into several passes (192 MiB unless said). The
    /// gradient does not depend on it.
    pub fn limit_activations(&mut self, bytes: usize) {
        if let Some(fused) = &mut self.fused {
            fused.activation_bytes = bytes;
        }
    }

    /// Whether updates are kernels of our own.
    pub fn uses_kernels(&self) -> bool {
        self.fused.is_some()
    }

    /// Goes on from the state of a checkpoint; the policy that the learner started from stays the reference unless the checkpoint
    /// has one.
    ///
    /// # Errors
    /// When something is missing or has another shape, naming it; the learner is not to be used then.
    pub fn restore(&mut self, weights: &Weights, moments: &Moments, reference: Option<&Weights>) -> Result<(), CheckpointError> {
        self.policy = self.reference.clone().with_weights(weights)?;
        self.optimizer.restore(&self.policy, moments)?;
        if let Some(reference) = reference {
            self.reference = self.reference.clone().with_weights(reference)?;
        }
        if let Some(fused) = &mut self.fused
            && fused.restore(&self.policy, moments, &self.reference)?.is_none()
        {
            self.fused = None;
        }
        (self.before, self.sent, self.kept) = (None, None, None);
        Ok(())
    }

    /// Whether every update reads weights and moments back together with its figures, so that [`Learner::state`] needs no read
    /// of its own; on the CPU they need none. An update that gives a weight which is not finite then fails at once.
    pub fn keep_state(&mut self, keep: bool) {
        self.keep = keep;
    }

    /// Weights and moments for a checkpoint. At most one read, none on the CPU or after an update that kept them.
    ///
    /// # Errors
    /// When the device gave no data.
    pub async fn state(&self) -> Result<(Weights, Moments), ReadError> {
        if let Some(kept) = &self.kept {
            return Ok(kept.clone());
        }
        let Some(fused) = &self.fused else { return self.optimizer.state(&self.policy).await };
        Ok(self.named_state(fused.state.time, &read(fused.tensor()).await?))
    }

    /// The reference, where the settings compare the policy with one. One read.
    ///
    /// # Errors
    /// When the device gave no data.
    pub async fn reference_weights(&self) -> Result<Option<Weights>, ReadError> {
        Ok(if self.needs_reference() { Some(self.reference.weights().await?) } else { None })
    }

    pub(super) fn needs_reference(&self) -> bool {
        self.settings.objective.kl.is_some() || self.settings.objective.preference.is_some()
    }

    fn state_tensors(&self) -> (usize, Vec<Tensor<1>>) {
        if let Some(fused) = &self.fused {
            return (fused.state.time, vec![fused.tensor()]);
        }
        self.optimizer.tensors(&self.policy)
    }

    fn named_state(&self, time: usize, values: &[f32]) -> (Weights, Moments) {
        named_state(&self.policy, time, values)
    }

    /// The current policy, without gradients.
    pub fn policy(&self) -> Policy {
        self.policy.clone()
    }

    /// Takes the last update back: what was sampled with its weights turned out not to be finite.
    pub fn undo(&mut self) {
        if let Some(before) = self.before.take() {
            self.go_back(before);
            self.kept = None;
        }
    }

    fn go_back(&mut self, before: Before) {
        (self.policy, self.optimizer, self.sent) = (before.policy, before.optimizer, None);
        if let (Some(fused), Some(state)) = (&mut self.fused, before.state) {
            fused.state = state;
        }
    }

    /// The settings in force.
    pub fn settings(&self) -> &UpdateSettings {
        &self.settings
    }

    /// Updates the policy on one batch: `inner_epochs` optimizer steps. Nothing is read back until the end, then once. Where
    /// preferences are trained, examples come in pairs, the preferred one first. Without examples nothing changes.
    ///
    /// # Errors
    /// When the device fails, or loss or gradient are not finite; the policy and the optimizer are then as before.
    pub async fn update(&mut self, examples: &[TrainingExample], iteration: usize) -> Result<UpdateStatistics, LearnerError> {
        if examples.is_empty() {
            return Ok(UpdateStatistics::default());
        }
        let counts = Counts {
            trained: examples.iter().map(TrainingExample::trained_tokens).sum(),
            sampled: examples.iter().flat_map(|example| &example.sampled).filter(|&&sampled| sampled).count(),
            pairs: examples.len() / 2,
        };
        // An update that fails leaves what was sampled with already: there is nothing to go back to behind it.
        self.before = None;
        let state = self.fused.as_ref().map(|fused| fused.state.clone());
        let before = Before { policy: self.policy.clone(), optimizer: self.optimizer.clone(), state };
        let learning_rate = self.settings.learning_rate_at(iteration);
        let weights = self.row_weights(examples);
        let Steps { tensors: mut report, length, decode } = if self.fused.is_some() {
            self.fused_steps(examples, &weights, counts, learning_rate)?
        } else {
            self.reference_steps(examples, &weights, counts, learning_rate).await
        };
        let mut time = 0;
        if self.keep && !parallel::cuts(&self.device) {
            let (steps, tensors) = self.state_tensors();
            time = steps;
            report.extend(tensors);
        }
        let report = if report.len() == 1 { report.remove(0) } else { Tensor::cat(report, 0) };
        let result = read(report).await.map_err(LearnerError::from).and_then(|values| {
            let (figures, state) = values.split_at(length.min(values.len()));
            let statistics = statistics(&decode(figures), counts, &self.settings)?;
            if (self.keep && self.optimizer.broke()) || state.iter().any(|value| !value.is_finite()) {
                return Err(LearnerError::NonFinite("a weight"));
            }
            Ok((statistics, (!state.is_empty()).then(|| self.named_state(time, state))))
        });
        match result {
            Ok((statistics, state)) => {
                (self.before, self.kept) = (Some(before), state);
                Ok(statistics)
            }
            Err(error) => {
                self.go_back(before);
                Err(error)
            }
        }
    }

    /// The weight of every token of each example in the loss.
    fn row_weights(&self, examples: &[TrainingExample]) -> Vec<f64> {
        let trained: Vec<usize> = examples.iter().map(TrainingExample::trained_tokens).collect();
        let groups: Vec<usize> = examples.iter().map(|example| example.group).collect();
        row_weights(self.settings.objective.aggregation, &trained, &groups)
    }

    /// The optimizer steps of an update by kernels.
    fn fused_steps(
        &mut self,
        examples: &[TrainingExample],
        weights: &[f64],
        counts: Counts,
        learning_rate: f64,
    ) -> Result<Steps, LearnerError> {
        let report = self.fused.as_mut().and_then(|fused| {
            let report = fused.update(examples, weights, counts, &self.settings, learning_rate)?;
            self.policy = fused.policy(self.reference.clone());
            Some(report)
        });
        let report = report.ok_or_else(|| ReadError("no buffer on the device".to_string()))?;
        let (tensors, length) = (vec![report.tensor()], report.length());
        Ok(Steps { tensors, length, decode: Box::new(move |values| report.steps(values)) })
    }

    /// `log p_old - log p_ref` of the sampled tokens of each example: what a KL cost in the reward is made of. 0 where nothing
    /// was sampled. One read.
    ///
    /// # Errors
    /// When the device fails.
    pub async fn reference_log_ratios(&self, examples: &[TrainingExample]) -> Result<Vec<Vec<f64>>, LearnerError> {
        if examples.is_empty() {
            return Ok(Vec::new());
        }
        let Some(fused) = &self.fused else { return self.reference_log_ratios_in_parts(examples).await };
        let found = fused.reference_log_probs(examples, &self.settings);
        let (tensor, places) = found.ok_or_else(|| ReadError("no buffer on the device".to_string()))?;
        let values = read(tensor).await?;
        let ratios = |(example, places): (&TrainingExample, &Vec<usize>)| {
            // The first token is given.
            let own = std::iter::once(None).chain(places.iter().map(|&place| values.get(place)));
            let tokens = example.sampled.iter().zip(&example.old_log_probs).zip(own);
            let ratio = |((&sampled, &old), reference): ((&bool, &f32), Option<&f32>)| match reference {
                Some(&reference) if sampled => f64::from(old - reference),
                _ => 0.0,
            };
            tokens.map(ratio).collect()
        };
        Ok(examples.iter().zip(&places).map(ratios).collect())
    }
}

/// Averages what the optimizer steps reported.
fn statistics(values: &[Figures], counts: Counts, settings: &UpdateSettings) -> Result<UpdateStatistics, LearnerError> {
    let steps = values.len();
    let sum = |index: usize| values.iter().map(|step| step[index]).sum::<f64>();
    let mean = |index: usize, over: usize| sum(index) / (steps * over.max(1)) as f64;
    let (policy_loss, reference_kl, entropy) = (mean(0, 1), mean(1, 1), mean(2, counts.sampled));
    let beta = settings.objective.kl.map_or(0.0, |kl| kl.beta);
    let loss = policy_loss + beta * reference_kl - settings.objective.entropy_coefficient * entropy;
    let gradient_norm = mean(SUMS + 1, 1);
    match (loss.is_finite(), gradient_norm.is_finite()) {
        (false, _) => return Err(LearnerError::NonFinite("the loss")),
        (_, false) => return Err(LearnerError::NonFinite("the gradient")),
        _ => {}
    }
    Ok(UpdateStatistics {
        loss,
        policy_loss,
        entropy,
        approximate_kl: mean(3, counts.trained),
        reference_kl,
        ratio_mean: mean(4, counts.trained),
        ratio_deviation: values.iter().map(|step| step[SUMS]).fold(0.0, f64::max),
        clip_fraction: mean(5, counts.trained),
        dual_clip_fraction: mean(6, counts.trained),
        gradient_norm,
        trained_tokens: counts.trained,
        updates: steps,
        critic: None,
    })
}
