//! The gradient of a micro-batch and the log-probabilities of one, as jobs: done here, or by another worker that is told all of it
//! as plain data.

use std::sync::OnceLock;

use burn::module::Module;
use burn::tensor::{Device, Tensor, TensorData};

use super::batch::training_device;
use super::loss::{Counts, MicroBatch, SUMS, log_probs, micro_loss};
use super::optimizer::gradient;
use super::packet::{Row, pack, row_numbers, unpack, vector};
use super::{TokenBatch, TrainingExample, UpdateSettings, slices};
use crate::cpu::Packed;
use crate::parallel::{Held, Job, Kind, Packet, spelled, spelling, wait};
use crate::readback::read;

/// One micro-batch, not on the device yet.
pub(super) struct Part<'a> {
    pub examples: Vec<&'a TrainingExample>,
    /// Weight of every token of a row in the loss.
    pub weights: Vec<f32>,
    /// Log-probabilities of all tokens before the update, `[B, T]`, where tokens are trained that were not sampled.
    pub old: Option<Tensor<2>>,
    /// Those of the reference, `[B, T]`, where the loss needs them.
    pub reference: Option<Tensor<2>>,
    ready: OnceLock<MicroBatch>,
    judged: OnceLock<MicroBatch>,
}

impl<'a> Part<'a> {
    pub fn new(examples: Vec<&'a TrainingExample>, weights: Vec<f32>) -> Self {
        Part { examples, weights, old: None, reference: None, ready: OnceLock::new(), judged: OnceLock::new() }
    }

    /// Whether tokens are trained that the policy did not sample.
    pub fn trains_tool_tokens(&self) -> bool {
        self.examples.iter().any(|example| example.loss_mask != example.sampled)
    }

    /// The micro-batch on a device to differentiate on; made once.
    pub fn on(&self, device: &Device) -> &MicroBatch {
        self.ready.get_or_init(|| self.micro_batch(TokenBatch::new(&self.examples, device), device))
    }

    /// The micro-batch as [`Part::on`] gives it, but without the table of forbidden tokens, which only distributions by burn need.
    #[cfg_attr(not(feature = "cpu"), expect(dead_code, reason = "only passes on slices ask for it"))]
    pub fn judged(&self, device: &Device) -> &MicroBatch {
        self.judged.get_or_init(|| self.micro_batch(TokenBatch::without_grammar(&self.examples, device), device))
    }

    fn micro_batch(&self, tokens: TokenBatch, device: &Device) -> MicroBatch {
        let weights = Tensor::from_data(TensorData::new(self.weights.clone(), [self.weights.len()]), device);
        // Tool tokens, trained when the loss mask is off, were not sampled: theirs come from a forward pass.
        let old = match self.old.clone() {
            Some(old) => {
                let missing = tokens.loss_mask.clone().bool_and(tokens.sampled.clone().bool_not());
                tokens.old_log_probs.clone().mask_where(missing, Tensor::from_inner(old))
            }
            None => tokens.old_log_probs.clone(),
        };
        MicroBatch { weights, old, reference: self.reference.clone().map(Tensor::from_inner), tokens }
    }
}

/// The gradient of one micro-batch under a policy.
pub(super) struct GradientJob<'a> {
    pub policy: &'a Packed,
    /// The policy as other workers know it.
    pub held: Option<Held>,
    pub part: &'a Part<'a>,
    pub counts: Counts,
    pub settings: &'a UpdateSettings,
}

/// What a micro-batch gives: its share of the gradient, its sums `[SUMS]` and its largest deviation `[1]`.
pub(super) struct PartGradient {
    /// In the order of the parameters.
    pub gradient: Tensor<1>,
    pub sums: Tensor<1>,
    pub deviation: Tensor<1>,
}

impl PartGradient {
    /// Both together.
    pub fn and(self, other: PartGradient) -> PartGradient {
        PartGradient {
            gradient: self.gradient + other.gradient,
            sums: self.sums + other.sums,
            deviation: self.deviation.max_pair(other.deviation),
        }
    }
}

impl Job for GradientJob<'_> {
    const KIND: Kind = Kind::Gradient;

    type Result = PartGradient;

    async fn here(self) -> PartGradient {
        if let Some(gradient) = slices::gradient(&self) {
            return gradient;
        }
        // Every job differentiates its own copy of the policy: copies share no graph, so that none waits for another.
        let policy = self.policy.policy().clone().train();
        let loss = micro_loss(&policy, self.part.on(&policy.device()), self.counts, self.settings);
        PartGradient { gradient: gradient(&policy, &loss.loss.backward()), sums: loss.sums, deviation: loss.deviation }
    }

    fn packet(&self) -> Option<Packet> {
        let Part { examples, weights, old, reference, .. } = self.part;
        let task = GradientTask {
            settings: self.settings.clone(),
            counts: self.counts,
            rows: examples.iter().map(|example| Row::of(example)).collect(),
            old: old.is_some(),
            reference: reference.is_some(),
        };
        let mut numbers = row_numbers(examples);
        numbers.extend(weights);
        for constant in [old, reference].into_iter().flatten() {
            let size = constant.dims().iter().product::<usize>();
            numbers.extend(wait(read(constant.clone().reshape([size]))).ok()?);
        }
        Some(Packet { kind: Self::KIND, task: spelled(&task)?, numbers, needs: vec![self.held?] })
    }

    fn answered(&self, answer: Packet) -> Option<PartGradient> {
        let (gradient, figures) = unpack(answer, self.policy.policy(), SUMS + 1)?;
        let (sums, deviation) = figures.split_at(SUMS);
        let vector = |numbers: &[f32]| vector(numbers.to_vec(), self.policy.policy());
        Some(PartGradient { gradient, sums: vector(sums), deviation: vector(deviation) })
    }
}

/// Does the gradient job of a packet: gives gradient, sums and deviation as numbers.
/// Nothing where the packet does not say what to do.
pub async fn gradient_packet(policy: &Packed, packet: &Packet) -> Option<Packet> {
    let GradientTask { settings, counts, rows, old, reference } = spelling(&packet.task)?;
    let mut numbers = packet.numbers.as_slice();
    let examples = Row::examples(rows, &mut numbers)?;
    let (weights, mut numbers) = numbers.split_at_checked(examples.len())?;
    let shape = [examples.len(), examples.iter().map(|example| example.tokens.len()).max()? - 1];
    let device = policy.policy().device().without_autodiff();
    let mut constant = |there: bool| {
        let (own, rest) = numbers.split_at_checked(if there { shape[0] * shape[1] } else { 0 })?;
        numbers = rest;
        Some(there.then(|| Tensor::from_data(TensorData::new(own.to_vec(), shape), &device)))
    };
    let (old, reference) = (constant(old)?, constant(reference)?);
    let part = Part { old, reference, ..Part::new(examples.iter().collect(), weights.to_vec()) };
    let job = GradientJob { policy, held: None, part: &part, counts, settings: &settings };
    let PartGradient { gradient, sums, deviation } = job.here().await;
    pack(Kind::Gradient, gradient, vec![sums, deviation]).await
}

/// The log-probabilities of the tokens of some examples, `[B, T]`, without gradients.
pub(super) struct LogProbsJob<'a> {
    pub policy: &'a Packed,
    /// The policy as other workers know it.
    pub held: Option<Held>,
    pub examples: &'a [&'a TrainingExample],
    pub temperature: f64,
    /// Whether by [`crate::cpu`], where it can be.
    pub slices: bool,
}

impl Job for LogProbsJob<'_> {
    const KIND: Kind = Kind::LogProbs;

    type Result = Tensor<2>;

    async fn here(self) -> Tensor<2> {
        if let Some(found) = self.slices.then(|| slices::log_probs(self.policy, self.examples, self.temperature)).flatten() {
            return found;
        }
        let policy = self.policy.policy();
        let tokens = TokenBatch::new(self.examples, &training_device(&policy.device()));
        log_probs(policy, &tokens, self.temperature).1
    }

    fn packet(&self) -> Option<Packet> {
        let rows = self.examples.iter().map(|example| Row::of(example)).collect();
        let task = LogProbsTask { temperature: self.temperature, slices: self.slices, rows };
        Some(Packet { kind: Self::KIND, task: spelled(&task)?, numbers: row_numbers(self.examples), needs: vec![self.held?] })
    }

    fn answered(&self, answer: Packet) -> Option<Tensor<2>> {
        let shape = [self.examples.len(), self.examples.iter().map(|example| example.tokens.len()).max()? - 1];
        let device = self.policy.policy().device().without_autodiff();
        let fits = answer.numbers.len() == shape[0] * shape[1];
        fits.then(|| Tensor::from_data(TensorData::new(answer.numbers, shape), &device))
    }
}

/// Does the log-probability job of a packet. Nothing where the packet does not say what to do.
pub async fn log_probs_packet(policy: &Packed, packet: &Packet) -> Option<Packet> {
    let LogProbsTask { temperature, slices, rows } = spelling(&packet.task)?;
    let examples = Row::examples(rows, &mut packet.numbers.as_slice())?;
    let examples: Vec<&TrainingExample> = examples.iter().collect();
    let found = LogProbsJob { policy, held: None, examples: &examples, temperature, slices }.here().await;
    let size = found.dims().iter().product::<usize>();
    let numbers = read(found.reshape([size])).await.ok()?;
    Some(Packet { kind: Kind::LogProbs, task: Vec::new(), numbers, needs: Vec::new() })
}

/// A gradient job as other workers are told of it; its numbers are those of the rows, the row weights, then the constants that are there.
#[derive(serde::Serialize, serde::Deserialize)]
struct GradientTask {
    settings: UpdateSettings,
    counts: Counts,
    rows: Vec<Row>,
    old: bool,
    reference: bool,
}

#[derive(serde::Serialize, serde::Deserialize)]
struct LogProbsTask {
    temperature: f64,
    slices: bool,
    rows: Vec<Row>,
}
