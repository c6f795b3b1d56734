//! The policy-gradient update of one training step.

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};

use super::batch::micro_batches;
use super::loss::{Counts, MicroBatch, SUMS, log_probs, micro_loss};
use super::optimizer::{Accumulated, training_device};
use super::{Optimizer, TokenBatch, TrainingExample, UpdateSettings, UpdateStatistics};
use crate::objective::row_weights;
use crate::parallel;
use crate::policy::Policy;
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
    policy: Policy,
    reference: Policy,
    optimizer: Optimizer,
    /// Policy and optimizer before the last update, for [`Learner::undo`].
    before: Option<(Policy, Optimizer)>,
    settings: UpdateSettings,
    device: Device,
}

impl Learner {
    /// Starts from a policy, which is also the reference.
    pub fn new(policy: &Policy, settings: UpdateSettings) -> Self {
        let reference = policy.valid();
        let device = training_device(&reference.device());
        let optimizer = Optimizer::new(settings.optimizer);
        Learner { policy: reference.clone().train(), reference, optimizer, before: None, settings, device }
    }

    /// The current policy, without gradients.
    pub fn policy(&self) -> Policy {
        self.policy.valid()
    }

    /// Takes the last update back: what was sampled with its weights turned out not to be finite.
    pub fn undo(&mut self) {
        if let Some(before) = self.before.take() {
            (self.policy, self.optimizer) = before;
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
        let before = (self.policy.clone(), self.optimizer.clone());
        let learning_rate = self.settings.learning_rate_at(iteration);
        let micro = self.micro_batches(examples);
        let mut report = Vec::new();
        for _ in 0..self.settings.inner_epochs {
            let policy = self.policy.valid();
            let workers = parallel::workers(&self.device);
            // Every job differentiates its own copy of the policy: copies share no graph, so that none waits for another.
            let results = parallel::map(workers, micro.iter().collect(), |batch: &MicroBatch| {
                let policy = policy.clone().train();
                let part = micro_loss(&policy, batch, counts, &self.settings);
                (Accumulated::gradients(&policy, part.loss.backward()), part.sums, part.deviation)
            });
            let mut gradients = Accumulated::default();
            let mut sums: Option<(Tensor<1>, Tensor<1>)> = None;
            for (gradient, part, deviation) in results {
                gradients.add(&self.policy, gradient);
                sums = Some(match sums {
                    None => (part, deviation),
                    Some((sum, largest)) => (sum + part, largest.max_pair(deviation)),
                });
            }
            let Some((sums, deviation)) = sums else { break };
            let (policy, norm) = self.optimizer.step(self.policy.clone(), gradients, learning_rate);
            self.policy = policy;
            report.push(Tensor::cat(vec![sums, deviation, norm], 0));
        }
        let statistics = match read(Tensor::cat(report, 0)).await {
            Ok(values) => statistics(&values, counts, &self.settings),
            Err(error) => Err(error.into()),
        };
        match &statistics {
            Ok(_) => self.before = Some(before),
            Err(_) => (self.policy, self.optimizer) = before,
        }
        statistics
    }

    /// Cuts the batch into micro-batches on the device; the longest come first, so that cores finish together.
    fn micro_batches(&self, examples: &[TrainingExample]) -> Vec<MicroBatch> {
        let trained: Vec<usize> = examples.iter().map(TrainingExample::trained_tokens).collect();
        let groups: Vec<usize> = examples.iter().map(|example| example.group).collect();
        let weights = row_weights(self.settings.objective.aggregation, &trained, &groups);
        let unit = if self.settings.objective.preference.is_some() { 2 } else { 1 };
        let mut parts = micro_batches(examples, self.settings.micro_batches, unit);
        parts.reverse();
        let policy = self.policy.valid();
        let needs_reference = self.settings.objective.kl.is_some() || self.settings.objective.preference.is_some();
        parallel::map(parallel::workers(&self.device), parts, |rows: Vec<usize>| {
            let part: Vec<&TrainingExample> = rows.iter().map(|&row| &examples[row]).collect();
            let tokens = TokenBatch::new(&part, &self.device);
            let weights: Vec<f32> = rows.iter().map(|&row| weights[row] as f32).collect();
            let weights = Tensor::from_data(TensorData::new(weights, [rows.len()]), &self.device);
            let constant = |policy: &Policy| {
                let (_, taken) = log_probs(policy, &tokens, self.settings.temperature);
                Tensor::from_inner(taken)
            };
            // Tool tokens, trained when the loss mask is off, were not sampled: theirs come from a forward pass.
            let old = if tokens.trains_tool_tokens {
                let missing = tokens.loss_mask.clone().bool_and(tokens.sampled.clone().bool_not());
                tokens.old_log_probs.clone().mask_where(missing, constant(&policy))
            } else {
                tokens.old_log_probs.clone()
            };
            let reference = needs_reference.then(|| constant(&self.reference));
            MicroBatch { weights, old, reference, tokens }
        })
    }

    /// `log p_old - log p_ref` of the sampled tokens of each example: what a KL cost in the reward is made of. 0 where nothing
    /// was sampled. One read.
    ///
    /// # Errors
    /// When the device fails.
    pub async fn reference_log_ratios(&self, examples: &[TrainingExample]) -> Result<Vec<Vec<f64>>, LearnerError> {
        let parts = micro_batches(examples, self.settings.micro_batches, 1);
        let flat = parallel::map(parallel::workers(&self.device), parts.clone(), |rows: Vec<usize>| {
            let part: Vec<&TrainingExample> = rows.iter().map(|&row| &examples[row]).collect();
            let tokens = TokenBatch::new(&part, &self.device);
            let reference = log_probs(&self.reference, &tokens, self.settings.temperature).1;
            let sampled = tokens.sampled.clone().without_autodiff();
            let ratio = tokens.old_log_probs.clone().without_autodiff() - reference;
            let ratio = ratio.mask_fill(sampled.bool_not(), 0.0);
            let [rows, length] = ratio.dims();
            (length, ratio.reshape([rows * length]))
        });
        let (lengths, flat): (Vec<usize>, Vec<Tensor<1>>) = flat.into_iter().unzip();
        let mut all: Vec<Vec<f64>> = examples.iter().map(|example| vec![0.0; example.tokens.len()]).collect();
        if flat.is_empty() {
            return Ok(all);
        }
        let values = read(Tensor::cat(flat, 0)).await?;
        let mut rest = values.as_slice();
        for (rows, length) in parts.iter().zip(lengths) {
            for &row in rows {
                let (own, tail) = rest.split_at(length.min(rest.len()));
                rest = tail;
                // Entry t of the padded row belongs to token t + 1.
                all[row].iter_mut().skip(1).zip(own).for_each(|(entry, &value)| *entry = f64::from(value));
            }
        }
        Ok(all)
    }
}

/// Averages what the optimizer steps reported.
fn statistics(values: &[f32], counts: Counts, settings: &UpdateSettings) -> Result<UpdateStatistics, LearnerError> {
    let width = SUMS + 2;
    let steps = values.len() / width;
    let sum = |index: usize| values.chunks_exact(width).map(|step| f64::from(step[index])).sum::<f64>();
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
        ratio_deviation: values.chunks_exact(width).map(|step| f64::from(step[SUMS])).fold(0.0, f64::max),
        clip_fraction: mean(5, counts.trained),
        dual_clip_fraction: mean(6, counts.trained),
        gradient_norm,
        trained_tokens: counts.trained,
        updates: steps,
        critic: None,
    })
}
