//! Gradients, log-probabilities and steps of the optimizer by [`crate::cpu`]: on slices. What lies between log-probabilities and the
//! loss is the objective as it always is, differentiated by burn.

use std::sync::Arc;

use burn::module::Module;
use burn::tensor::{Tensor, TensorData};

use super::batch::training_device;
use super::gradient::{GradientJob, PartGradient};
use super::loss::{MicroLoss, loss_of};
use super::packet::vector;
use super::{OptimizerSettings, TrainingExample, UpdateSettings};
use crate::cpu::{self, Batch, Network, Packed};
use crate::parallel;
use crate::policy::Policy;
use crate::readback::look;

/// Some examples as the network reads them, with the place of every wanted token in an array `[B, T]`.
struct Wanted {
    batch: Batch,
    places: Vec<usize>,
    shape: [usize; 2],
}

impl Wanted {
    /// `wanted` tells of a token (never the first) of an example whether its log-probability is needed; `grammar`, whether it is one
    /// among the legal tokens only.
    fn of(examples: &[&TrainingExample], grammar: bool, wanted: impl Fn(&TrainingExample, usize) -> bool) -> Wanted {
        let length = examples.iter().map(|example| example.tokens.len()).max().unwrap_or(2) - 1;
        let (mut batch, mut places) = (Batch::default(), Vec::new());
        for (row, example) in examples.iter().enumerate() {
            let own = (1..example.tokens.len()).filter(|&place| wanted(example, place));
            places.extend(own.clone().map(|place| row * length + place - 1));
            batch.push(&example.tokens, own, if grammar { &example.legal } else { &[] });
        }
        Wanted { batch, places, shape: [examples.len(), length] }
    }

    /// What the loss or its diagnostics look at.
    fn by_loss(examples: &[&TrainingExample]) -> Wanted {
        Wanted::of(examples, true, |example, place| example.loss_mask[place] || example.sampled[place])
    }

    /// One number per wanted token as an array; 0 elsewhere.
    fn spread(&self, values: &[f32]) -> TensorData {
        let mut all = vec![0.0; self.shape[0] * self.shape[1]];
        self.places.iter().zip(values).for_each(|(&place, &value)| all[place] = value);
        TensorData::new(all, self.shape)
    }

    /// The numbers of the wanted tokens in an array; 0 where there is none.
    fn collect(&self, array: Option<Tensor<2>>) -> Option<Vec<f32>> {
        let Some(array) = array else { return Some(vec![0.0; self.places.len()]) };
        let all = look(array.reshape([self.shape[0] * self.shape[1]])).ok()?;
        Some(self.places.iter().map(|&place| all[place]).collect())
    }
}

/// Whether there are passes on slices for a policy, its device and its shape.
pub(super) fn covers(policy: &Policy) -> bool {
    Network::covers(policy)
}

/// The network of a policy, where updates are to be made here.
fn network<'a>(policy: &'a Packed, settings: &UpdateSettings) -> Option<&'a Network> {
    settings.kernels.then(|| policy.network()).flatten()
}

/// The gradient of a micro-batch; `None` where the policy's device or shape is not one for slices.
pub(super) fn gradient(job: &GradientJob) -> Option<PartGradient> {
    let GradientJob { policy, part, counts, settings, .. } = *job;
    let network = network(policy, settings)?;
    let wanted = Wanted::by_loss(&part.examples);
    let pass = network.forward(&wanted.batch, settings.temperature);
    let device = training_device(&policy.policy().device());
    let leaf = |values: &[f32]| Tensor::<2>::from_data(wanted.spread(values), &device).require_grad();
    let (taken, entropy) = (leaf(&pass.log_probs()), leaf(&pass.entropies()));
    let MicroLoss { loss, sums, deviation } = loss_of(taken.clone(), entropy.clone(), part.judged(&device), counts, settings);
    let slopes = loss.backward();
    let by_taken = wanted.collect(taken.grad(&slopes))?;
    let by_entropy = wanted.collect(entropy.grad(&slopes))?;
    let slopes: Vec<(f32, f32)> = by_taken.into_iter().zip(by_entropy).collect();
    Some(PartGradient { gradient: vector(pass.backward(&slopes), policy.policy()), sums, deviation })
}

/// Log-probabilities `[B, T]` of the tokens that a loss looks at, 0 elsewhere; `None` as for [`gradient`].
pub(super) fn log_probs(policy: &Packed, examples: &[&TrainingExample], temperature: f64) -> Option<Tensor<2>> {
    let network = policy.network()?;
    let wanted = Wanted::by_loss(examples);
    let values = network.forward(&wanted.batch, temperature).log_probs();
    Some(Tensor::from_data(wanted.spread(&values), &policy.policy().device().without_autodiff()))
}

/// The gradient of the imitation loss `-sum log p / trained` over the tokens that are trained, and that loss `[1]`; `None` as for
/// [`gradient`].
pub(super) fn imitation(policy: &Packed, examples: &[&TrainingExample], trained: usize) -> Option<(Tensor<1>, Tensor<1>)> {
    let network = policy.network()?;
    let wanted = Wanted::of(examples, false, |example, place| example.loss_mask[place]);
    let pass = network.forward(&wanted.batch, 1.0);
    let share = 1.0 / trained.max(1) as f32;
    let loss = -share * pass.log_probs().iter().sum::<f32>();
    let slopes = vec![(-share, 0.0); wanted.batch.wanted()];
    let policy = policy.policy();
    Some((vector(pass.backward(&slopes), policy), vector(vec![loss], policy)))
}

/// Both moments of Adam in the CPU's memory, one number per parameter, zeros before the first step. Copies share them until one of
/// them takes a step.
#[derive(Clone)]
pub(super) struct Momentum {
    time: usize,
    first: Arc<Vec<f32>>,
    second: Arc<Vec<f32>>,
    finite: bool,
}

impl Momentum {
    /// Before the first step of a policy; `None` where it does not lie in the CPU's memory.
    pub fn zeros(policy: &Policy) -> Option<Self> {
        let zeros = || Arc::new(vec![0.0; policy.num_params()]);
        parallel::cuts(&policy.device()).then(|| Momentum { time: 0, first: zeros(), second: zeros(), finite: true })
    }

    /// Whether all weights after the last step are finite.
    pub fn finite(&self) -> bool {
        self.finite
    }

    /// Steps done, first and second moments.
    pub fn numbers(&self) -> (usize, [&[f32]; 2]) {
        (self.time, [&self.first, &self.second])
    }

    /// Goes on from these.
    pub fn restore(&mut self, time: usize, [first, second]: [Vec<f32>; 2]) {
        *self = Momentum { time, first: Arc::new(first), second: Arc::new(second), finite: true };
    }

    /// A step on weights, with a gradient that is multiplied by `scale` (`[1]`) first: the weights after it.
    pub fn step(
        &mut self,
        settings: &OptimizerSettings,
        learning_rate: f64,
        weights: Tensor<1>,
        gradient: Tensor<1>,
        scale: Option<Tensor<1>>,
    ) -> Tensor<1> {
        let device = weights.device();
        let tensor = |values: Vec<f32>| {
            let length = values.len();
            Tensor::from_data(TensorData::new(values, [length]), &device)
        };
        let scale = scale.map_or(Some(1.0), |scale| look(scale).ok()?.first().copied());
        let (Ok(mut weights), Ok(gradient), Some(scale)) = (look(weights), look(gradient), scale) else {
            // Seen as any update that gives no numbers.
            self.finite = false;
            return tensor(vec![f32::NAN; self.first.len()]);
        };
        self.time += 1;
        let step = cpu::Step {
            scale,
            beta1: settings.beta1 as f32,
            beta2: settings.beta2 as f32,
            epsilon: settings.epsilon as f32,
            learning_rate: learning_rate as f32,
            time: self.time as i32,
        };
        let (first, second) = (Arc::make_mut(&mut self.first), Arc::make_mut(&mut self.second));
        self.finite = cpu::adam(step, &gradient, cpu::State { weights: &mut weights, first, second });
        tensor(weights)
    }
}
