//! Imitation of demonstrations: the warm start before reinforcement learning.

use burn::module::Module;
use burn::tensor::Tensor;

use super::batch::training_device;
use super::optimizer::gradient;
use super::packet::{Row, pack, row_numbers, unpack, vector};
use super::{LearnerError, Optimizer, OptimizerSettings, TokenBatch, TrainingExample, slices};
use crate::cpu::Packed;
use crate::objective::masked_mean;
use crate::parallel::{self, Held, Job, Kind, Packet, spelled, spelling};
use crate::policy::{Policy, log_distribution, taken_log_probs};
use crate::readback::read;
use crate::seed::{Purpose, RootSeed};

/// How the policy imitates.
#[derive(Clone, Debug, PartialEq)]
pub struct ImitationSettings {
    /// Updates.
    pub steps: usize,
    /// Demonstrations per update.
    pub batch: usize,
    /// Reached after `WARM_UP` updates, then falling in a line to a tenth.
    pub learning_rate: f64,
    pub optimizer: OptimizerSettings,
}

/// Updates over which the learning rate rises.
const WARM_UP: usize = 20;

/// Demonstrations that one core takes at a time.
const PART: usize = 32;

/// The loss is read back this often; a read costs more than an update on some devices.
const READ_EVERY: usize = 10;

/// Maximum likelihood on demonstrations, one update at a time.
pub struct Imitation {
    policy: Policy,
    optimizer: Optimizer,
    settings: ImitationSettings,
    examples: Vec<TrainingExample>,
    seed: RootSeed,
    step: usize,
}

impl Imitation {
    /// Imitation of `examples` (made with [`TrainingExample::demonstration`]) starting from `policy`.
    pub fn new(policy: &Policy, settings: ImitationSettings, examples: Vec<TrainingExample>, seed: RootSeed) -> Self {
        let policy = policy.valid();
        let optimizer = Optimizer::new(&policy, settings.optimizer);
        Imitation { policy, optimizer, settings, examples, seed, step: 0 }
    }

    /// Updates made.
    pub fn step(&self) -> usize {
        self.step
    }

    /// The policy so far, without gradients.
    pub fn policy(&self) -> Policy {
        self.policy.clone()
    }

    /// Makes one update. Gives the loss in nats per token when it was read back (at every tenth update and the last), and
    /// `None` once all updates are made.
    ///
    /// # Errors
    /// When the device fails or the loss is not finite.
    pub async fn advance(&mut self) -> Result<Option<Option<f64>>, LearnerError> {
        if self.step >= self.settings.steps || self.examples.is_empty() {
            return Ok(None);
        }
        let mut draws = self.seed.draws(Purpose::DemonstrationBatch, self.step as u32, 0, 0);
        let count = self.examples.len() as u32;
        let chosen: Vec<&TrainingExample> =
            (0..self.settings.batch).map(|_| &self.examples[draws.below(count) as usize]).collect();
        let trained = chosen.iter().map(|example| example.trained_tokens()).sum();
        let device = training_device(&self.policy.device());
        let (held, policy) = (self.policy.hold(), &Packed::new(&self.policy));
        let size = if parallel::cuts(&device) { PART } else { chosen.len().max(1) };
        let jobs = chosen.chunks(size).map(|part| ImitationJob { policy, held, part, trained, slices: true }).collect();
        let parts = parallel::all(&device, jobs).await.into_iter();
        let Some((gradient, loss)) = parts.reduce(|(gradient, loss), part| (gradient + part.0, loss + part.1)) else {
            return Ok(None);
        };
        let (policy, norm) = self.optimizer.step(self.policy.clone(), gradient, self.learning_rate());
        self.policy = policy;
        self.step += 1;
        if !self.step.is_multiple_of(READ_EVERY) && self.step != self.settings.steps {
            return Ok(Some(None));
        }
        let values = read(Tensor::cat(vec![loss, norm], 0)).await?;
        if values.iter().any(|value| !value.is_finite()) {
            return Err(LearnerError::NonFinite("the imitation loss"));
        }
        Ok(Some(Some(f64::from(values[0]))))
    }

    fn learning_rate(&self) -> f64 {
        let rise = ((self.step + 1) as f64 / WARM_UP as f64).min(1.0);
        let fall = 1.0 - 0.9 * self.step as f64 / self.settings.steps.max(1) as f64;
        self.settings.learning_rate * rise * fall
    }
}

/// Some demonstrations of an update, as a job.
struct ImitationJob<'a> {
    policy: &'a Packed,
    /// The policy as other workers know it.
    held: Option<Held>,
    part: &'a [&'a TrainingExample],
    /// Tokens that the whole update trains.
    trained: usize,
    /// Whether by [`crate::cpu`], where it can be.
    slices: bool,
}

/// The job as other workers are told of it.
#[derive(serde::Serialize, serde::Deserialize)]
struct Task {
    trained: usize,
    rows: Vec<Row>,
}

impl Job for ImitationJob<'_> {
    const KIND: Kind = Kind::Imitation;

    /// Share of the gradient, and of the loss `[1]`.
    type Result = (Tensor<1>, Tensor<1>);

    async fn here(self) -> Self::Result {
        if let Some(found) = self.slices.then(|| slices::imitation(self.policy, self.part, self.trained)).flatten() {
            return found;
        }
        let policy = self.policy.policy().clone().train();
        let batch = TokenBatch::new(self.part, &policy.device());
        let all = log_distribution(policy.forward(batch.inputs), 1.0, None);
        let loss = masked_mean(taken_log_probs(all, batch.targets).neg(), batch.loss_mask, self.trained);
        (gradient(&policy, &loss.backward()), loss.inner())
    }

    fn packet(&self) -> Option<Packet> {
        let task = Task { trained: self.trained, rows: self.part.iter().map(|example| Row::of(example)).collect() };
        Some(Packet { kind: Self::KIND, task: spelled(&task)?, numbers: row_numbers(self.part), needs: vec![self.held?] })
    }

    fn answered(&self, answer: Packet) -> Option<Self::Result> {
        let (gradient, loss) = unpack(answer, self.policy.policy(), 1)?;
        Some((gradient, vector(loss, self.policy.policy())))
    }
}

/// Does the imitation job of a packet. Nothing where the packet does not say what to do.
pub async fn imitation_packet(policy: &Packed, packet: &Packet) -> Option<Packet> {
    let Task { trained, rows } = spelling(&packet.task)?;
    let examples = Row::examples(rows, &mut packet.numbers.as_slice())?;
    let part: Vec<&TrainingExample> = examples.iter().collect();
    let (gradient, loss) = ImitationJob { policy, held: None, part: &part, trained, slices: true }.here().await;
    pack(Kind::Imitation, gradient, vec![loss]).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ExperimentConfig;
    use crate::environment::REGISTRY;
    use crate::parallel::wait;
    use crate::policy::{PolicyConfig, Weights};

    /// Passes on slices against burn's automatic differentiation, on demonstrations that begin alike.
    #[test]
    fn the_gradient_on_slices_is_that_of_autodiff() {
        let shape = PolicyConfig::of(&ExperimentConfig { layers: 2, ..ExperimentConfig::defaults("search", REGISTRY) });
        let fresh = shape.init(&burn::tensor::Device::flex());
        let policy = fresh.with_weights(&Weights::initial(&shape, RootSeed(2))).unwrap_or_else(|error| panic!("{error}"));
        let policy = Packed::new(&policy);
        let example = |tokens: &[u8], from: usize| TrainingExample {
            group: 0,
            tokens: tokens.to_vec(),
            loss_mask: (0..tokens.len()).map(|place| place >= from && place != 5).collect(),
            sampled: vec![false; tokens.len()],
            old_log_probs: vec![0.0; tokens.len()],
            advantages: vec![0.0; tokens.len()],
            legal: Vec::new(),
        };
        let examples = [example(&[1, 9, 4, 20, 7, 3, 8], 3), example(&[1, 9, 4, 20, 6], 3), example(&[2, 5, 4], 1)];
        let part: Vec<&TrainingExample> = examples.iter().collect();
        let trained = part.iter().map(|example| example.trained_tokens()).sum();
        let flat = |slices: bool| {
            let (gradient, loss) = wait(ImitationJob { policy: &policy, held: None, part: &part, trained, slices }.here());
            let packet = wait(pack(Kind::Imitation, gradient, vec![loss]));
            packet.map(|packet| packet.numbers).unwrap_or_default()
        };
        let (found, wanted) = (flat(true), flat(false));
        assert_eq!((found.len(), found.len() > 100_000), (wanted.len(), true));
        let norm = |values: &mut dyn Iterator<Item = f32>| values.map(|value| f64::from(value).powi(2)).sum::<f64>().sqrt();
        let off = norm(&mut found.iter().zip(&wanted).map(|(found, wanted)| found - wanted)) / norm(&mut wanted.iter().copied());
        assert!(off < 1e-5, "{off}");
    }
}
